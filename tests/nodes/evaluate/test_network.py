"""Perona's network in an evaluation: what it may know, its figures beside plain ones, and nodes by its norms."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.errors import BadInput
from tasks.nodes.aspects import is_unstressed
from tasks.nodes.detect.plain import DETECTORS
from tasks.nodes.evaluate import network
from tasks.nodes.evaluate.applications import NodeMatrix, is_second_half, node_matrix
from tasks.nodes.evaluate.detection import detect, detection_results
from tasks.nodes.evaluate.measures import learned_figures
from tasks.nodes.evaluate.network import (
    RANK_COLUMNS,
    LearnedRanks,
    by_node,
    compared,
    drawn_from,
    drawn_of_series,
    fit_variants,
    for_many_types,
    in_batches,
    judge_in_time,
    known_labels,
    looked_at,
    node_scores,
    part_graphs,
    rank_learned,
    rank_learned_figures,
    typical_by_seed,
)
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.protocol import evaluate_history
from tasks.nodes.perona.inputs import STRESSED, UNKNOWN, inputs_of, learn_inputs
from tasks.nodes.perona.params import FitParams, LossParams, ModelParams
from tasks.nodes.ranking.scores import Levels
from tests.nodes.synthetic import synthetic_history

ZSCORE = {"zscore": DETECTORS["zscore"]}


@pytest.fixture(scope="module")
def both(longer, prepare, asked):
    """Both variants under both protocols, one fit each, beside z-scores."""
    params = asked(variants=("ours", "paper"), seeds=1)
    learned = fit_variants(longer, params)
    plain = detect(longer, prepare, ZSCORE, params)
    return learned, *detection_results(longer.executions, plain, list(ZSCORE), params, learned)


def test_the_papers_variant_stands_beside_plain_detectors_and_ours_gives_no_verdict(both, longer):
    learned, figures, tables = both
    json.dumps(figures, allow_nan=False)
    for suffix in ("", ".paper", ".dose_3", ".from_dose_2"):
        assert f"detect.auprc.paper{suffix}" in figures and f"detect.f1_outlier.zscore{suffix}" in figures
    assert 0 <= figures["detect.auprc.paper"] <= 1
    assert set(learned.judged["detector"]) == {"paper"} and not any(".model" in key for key in figures)
    doses = tables["detection"].query("detector == 'paper' and protocol == 'chronological'").set_index("dose")
    assert len(set(doses["n"] - doses["n_stressed"])) == 1  # each dose against the same calm ones
    judged = learned.judged[learned.judged["protocol"] == "paper"]
    assert set(judged["threshold"]) == {0.0}
    in_plain = tables["detection"].query("detector == 'zscore' and protocol == 'paper' and dose == 'any'")
    assert in_plain["n"].tolist() == [len(judged)]  # plain ones are measured on the same


def test_every_fit_has_its_measures(both):
    learned, _, _ = both
    figures = learned_figures(learned)
    for name in ("model", "paper"):
        for suffix in ("", ".paper"):
            assert figures[f"fit.rounds.{name}{suffix}"] == 1 and 0 <= figures[f"type.accuracy.{name}{suffix}"] <= 1
            assert figures[f"reconstruction.mse.own.{name}{suffix}"] > 0


def test_the_papers_protocol_tests_what_has_three_labelled_predecessors_in_its_part(longer, asked, case_by):
    model = asked(variants=("paper",)).learned.asked("paper", 0)
    split, case = case_by(longer, "random", asked())
    everything = np.ones(len(longer.executions), dtype=bool)
    scales = learn_inputs(longer, everything, model, asked().preprocess, asked().score)
    known = replace(inputs_of(longer, scales, model), labels=known_labels(case.history))
    graphs = part_graphs(known, split.is_test, model)
    assert len(graphs) and split.is_test[graphs.targets].all() and split.is_test[graphs.predecessors].all()
    assert (known.labels[graphs.predecessors] != STRESSED).all()


def test_labels_of_tested_executions_move_neither_thresholds_nor_flags(history, asked):
    params = asked(variants=("paper",), protocols=("chronological",), seeds=1)
    one = fit_variants(history, params).judged
    stressed = history.executions["is_stressed"].astype(bool)
    is_tested = np.isin(np.arange(len(stressed)), one["execution"].to_numpy(dtype=np.int64))
    turned = replace(history, executions=history.executions.assign(is_stressed=stressed.where(~is_tested, ~stressed)))
    other = fit_variants(turned, params).judged
    for column in ("execution", "score", "threshold", "is_flagged"):
        np.testing.assert_array_equal(one[column].to_numpy(), other[column].to_numpy())


def test_unlabelled_and_hidden_labels_have_reasons(history, unlabelled, asked):
    nobody = fit_variants(unlabelled(history), asked(variants=("ours", "paper")))
    assert nobody.fits.empty and all("is_stressed" in reason for reason in nobody.reasons.values())
    hidden = asked(variants=("ours", "paper"), seeds=1).model_copy(update={"without_labels": True})
    found = fit_variants(history, hidden)
    assert found.reasons["chronological", "model"] == found.reasons["paper", "model"] == ""
    assert "learns no verdicts" in found.reasons["chronological", "paper"]
    assert "labels, which are hidden" in found.reasons["paper", "paper"]
    assert set(known_labels(unlabelled(history))) == {UNKNOWN}


class Stub(torch.nn.Module):
    """A network whose logit of a target is a function of the rows of its graph; x holds the numbers of rows."""

    def __init__(self, answer):
        super().__init__()
        self.params, self.answer = ModelParams(variant="paper"), answer

    def forward(self, batch):
        rows = batch.x[:, 0].long().view(-1, 4).tolist()
        logit = torch.full((len(batch.x),), torch.nan)
        logit[3::4] = torch.tensor([float(self.answer(own)) for own in rows])
        return SimpleNamespace(logit=logit)


def test_what_is_flagged_or_may_not_precede_stands_beside_none_and_the_first_three_have_no_verdict(history, asked):
    model = asked().learned.asked("paper", 0)
    everything = np.ones(len(history.executions), dtype=bool)
    scales = learn_inputs(history, everything, model, asked().preprocess, asked().score)
    plain = inputs_of(history, scales, model)
    n = len(plain)
    rows = np.arange(n, dtype=np.float32)[:, None]
    own = replace(plain, columns=("t/row",), x=rows, is_own=np.ones((n, 1), dtype=bool))
    own = replace(own, node_of=np.zeros(n, dtype=np.int64), type_of=np.zeros(n, dtype=np.int64))
    seen = []

    def answer(graph):
        seen.append(graph)
        return 1.0 if graph[-1] == 5 else -1.0

    may = everything.copy()
    may[6] = False
    logits = judge_in_time(own, Stub(answer), 0.0, may)
    assert np.isnan(logits[:3]).all() and np.isfinite(logits[3:]).all()
    assert seen[:6] == [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [2, 3, 4, 6], [2, 3, 4, 7], [3, 4, 7, 8]]


@pytest.mark.slow
def test_an_evaluation_with_a_variant_explains_each_missing_figure_and_is_the_same_twice(longer, asked):
    params = asked(variants=("ours",), protocols=("chronological",))
    found, again = (evaluate_history(longer, params, ZSCORE) for _ in range(2))
    missing = [key for key, value in found.figures.items() if value is None]
    assert [key for key in missing if not found.figures.get(f"{key}.reason")] == []
    assert found.figures == again.figures
    assert len(found.tables["fits"]) == found.figures["fit.rounds.model"] == 2
    assert found.figures["rank.spearman.model"] is None


@pytest.fixture(scope="module")
def fleet():
    """24 nodes, each as good in all aspects, five runs of each of three benchmarks; the last is an application."""
    rng = np.random.default_rng(0)
    quality = {
        f"node-{at + 1}": dict.fromkeys(("cpu", "memory", "disk"), float(q))
        for at, q in enumerate(np.exp(0.3 * rng.normal(size=24)))
    }
    history = synthetic_history(nodes=24, types=3, runs=5, stressed=0.0, quality=quality, seed=2)
    is_disk = history.executions["aspect"] == "disk"
    told = history.executions.assign(
        aspect=history.executions["aspect"].mask(is_disk, "application"),
        is_stressed=pd.array([pd.NA] * len(is_disk), dtype="boolean"),
    )
    return replace(history, executions=told)


@pytest.fixture(scope="module")
def matrix(fleet, prepare):
    everything = np.ones(len(fleet.executions), dtype=bool)
    return node_matrix(prepare(fleet, everything), everything, EvaluateParams().score)


def test_a_nodes_score_in_a_type_is_the_median_of_its_executions():
    """Nodes are called b, a; there is a type that was never scored, an execution of a type that training did not have,
    one of a node that is not asked for, and one without a fingerprint."""
    levels = Levels(("y", "z", "x"), ("cpu",), np.zeros(3, dtype=np.int64), np.ones(1))
    log_norm = np.array([1.0, 5.0, 2.0, 7.0, np.nan, 9.0, 9.0])
    type_of, node_of = np.array([0, 0, 0, 1, 1, -1, 0]), np.array([1, 1, 1, 0, 0, 0, -1])
    found = by_node(log_norm, type_of, node_of, ("x", "y"), levels, 2)
    np.testing.assert_array_equal(found, [[7, np.nan, np.nan], [np.nan, np.nan, 2]])


def test_scores_that_order_the_tested_half_as_the_application_correlate():
    nodes = tuple(f"n{at}" for at in range(40))
    quality = np.random.default_rng(0).normal(size=40)
    levels = Levels(("x", "y"), ("cpu",), np.zeros(2, dtype=np.int64), np.ones(1))
    kinds = np.array(["m"] * 40, dtype=object)
    own = NodeMatrix(nodes, kinds, np.column_stack([quality, quality]), levels, -quality[:, None], ("app",))
    assert all(compared(own, half)[0] < -0.95 for half in (0, 1))  # beyond all training nodes a place is shared
    spoiled = own.micro.copy()
    spoiled[is_second_half(nodes)] = 0.0  # the tested half of half 0 does not vary any more, and teaches nothing
    assert all(np.isnan(compared(replace(own, micro=spoiled), half)[0]) for half in (0, 1))


def test_the_mean_over_halves_of_the_median_over_series():
    """Half 0: 0.2, -0.6, 0.4, so 0.4; half 1: 0.8, so 0.8; the second seed has one half."""
    rows = pd.DataFrame(
        [(0, 0, 0.2), (0, 0, -0.6), (0, 0, 0.4), (0, 1, 0.8), (1, 0, 0.1)], columns=["seed", "half", "spearman"]
    )
    assert typical_by_seed(rows) == pytest.approx([0.6, 0.1])
    assert typical_by_seed(rows[:0]) == []


def test_figures_of_each_machine_type_and_of_all():
    rows = [("m", half, "model", 0, "app", value) for half, value in ((0, 0.5), (1, 0.7))]
    rows += [("k", half, "model", 0, "app", -0.2) for half in (0, 1)]
    found = LearnedRanks(pd.DataFrame(rows, columns=RANK_COLUMNS), {"model": ""}, {"k": "", "m": "", "few": "3 nodes"})
    figures = rank_learned_figures(found)
    assert figures["rank.spearman.m.model"] == pytest.approx(0.6)
    assert figures["rank.spearman.k.model"] == pytest.approx(0.2)
    assert figures["rank.spearman.mean.model"] == pytest.approx(0.4)
    assert figures["rank.spearman.model"] == pytest.approx((0.35 + 0.45) / 2)
    assert figures["rank.spearman.few.model"] is None and figures["rank.spearman.few.model.reason"] == "3 nodes"


def test_a_fit_for_ranking_asks_for_no_labels_and_has_large_batches(asked):
    found = for_many_types(ModelParams(loss=LossParams(mined_per_type=0)))
    assert found.loss.terms == ("ranking",)
    assert [in_batches(found, n_graphs, asked()).fit.batch_size for n_graphs in (96, 2000, 100_000)] == [16, 100, 256]


def test_norms_alone_are_taught_where_they_alone_are_asked_for():
    """Ours by the term of ranking alone, in small steps; the paper's variant keeps its terms."""
    ours = for_many_types(ModelParams())
    assert ours.network.dropout == ours.fit.weight_decay == 0 and 0 < ours.fit.learning_rate < 0.01
    assert for_many_types(ModelParams(fit=FitParams(learning_rate=0.02))).fit.learning_rate == 0.02
    paper = for_many_types(ModelParams(variant="paper"))
    assert paper.loss.terms == ("reconstruction", "clustering", "classification", "ranking")
    assert paper.loss.mined_per_type > 0
    assert paper.fit == ModelParams().fit


def test_values_of_the_tested_half_teach_nothing(fleet, matrix, asked, multiplied):
    """All values of the tested half are tripled: what the fitted half is scored stays."""
    params = asked()
    model = for_many_types(params.learned.asked("ours", 0))
    is_tested = is_second_half(tuple(fleet.executions["node"]))
    own = fleet.where((fleet.executions["aspect"] != "application").to_numpy())
    changed = multiplied(fleet, 3.0, is_tested).where((fleet.executions["aspect"] != "application").to_numpy())
    before, after = (node_scores(history, matrix, 0, model, params) for history in (own, changed))
    is_fitted = ~is_second_half(matrix.nodes)
    np.testing.assert_array_equal(before[is_fitted], after[is_fitted])
    assert not np.array_equal(before[~is_fitted], after[~is_fitted])
    assert np.isfinite(before).all()


def test_executions_that_are_scored_in_parts_have_the_same_scores(fleet, matrix, asked, monkeypatch):
    params = asked()
    model = for_many_types(params.learned.asked("ours", 0))
    own = fleet.where((fleet.executions["aspect"] != "application").to_numpy())
    at_once = node_scores(own, matrix, 0, model, params)
    monkeypatch.setattr(network, "AT_ONCE", 50)
    np.testing.assert_allclose(node_scores(own, matrix, 0, model, params), at_once, rtol=1e-5)


def test_of_many_executions_some_are_looked_at_to_learn_from(fleet, asked):
    """Ten graphs are fitted to, so 40 executions of each part are looked at, and none of the rest."""
    params = asked(most_graphs=10)
    model = params.learned.asked("ours", 0)
    is_train = np.arange(len(fleet.executions)) < 150
    is_validation = ~is_train & (np.arange(len(fleet.executions)) < 180)
    scales = learn_inputs(fleet, is_train, model, params.preprocess, params.score)
    prepared = looked_at(fleet, scales, is_train, is_validation, model, params)
    assert (len(prepared.train), len(prepared.validation), len(prepared.inputs)) == (40, 30, 70)
    few = drawn_from(is_train, 40, np.random.default_rng(0))
    assert few.sum() == 40 and is_train[few].all()
    assert drawn_from(is_train, 150, np.random.default_rng(0)) is is_train


def test_a_node_that_ran_often_teaches_no_more_than_others(monkeypatch):
    """Node a ran x 50 times and y once, node b ran x twice."""
    monkeypatch.setattr(network, "MOST_OF_SERIES", 3)
    executions = pd.DataFrame(
        {"node": ["a"] * 51 + ["b"] * 2, "benchmark": ["x"] * 50 + ["y"] + ["x"] * 2, "template_hash": [None] * 53}
    )
    kept = drawn_of_series(executions, 0)
    assert kept[:50].sum() == 3 and kept[50:].all()
    assert not np.array_equal(kept, drawn_of_series(executions, 1))
    np.testing.assert_array_equal(kept, drawn_of_series(executions, 0))


def test_a_fit_of_one_half_that_fails_leaves_no_figure_of_the_other(fleet, matrix, asked, monkeypatch):
    own = network.node_scores

    def failing(history, matrix, half, model, params):
        if half == 1:
            raise BadInput("training", "half 1 came to nothing", "a fit")
        return own(history, matrix, half, model, params)

    monkeypatch.setattr(network, "node_scores", failing)
    found = rank_learned(fleet, is_unstressed(fleet.executions).to_numpy(dtype=bool), matrix, asked())
    assert found.correlations.empty
    assert rank_learned_figures(found)["rank.spearman.model.reason"].startswith("training: half 1 came to nothing")


def test_every_figure_is_there_for_nodes_with_an_application(fleet, matrix, asked):
    params = asked()
    calm = is_unstressed(fleet.executions).to_numpy(dtype=bool)
    found = rank_learned(fleet, calm, matrix, params)
    figures = rank_learned_figures(found)
    assert 0 <= figures["rank.spearman.drawn.model"] <= 1 and figures["rank.spearman.model"] is not None
    assert set(found.correlations["half"]) == {0, 1}
    assert set(found.correlations["series"]) == set(matrix.series)


def test_without_applications_there_is_a_reason(history, prepare, asked):
    everything = np.ones(len(history.executions), dtype=bool)
    own = node_matrix(prepare(history, everything), everything, EvaluateParams().score)
    figures = rank_learned_figures(rank_learned(history, everything, own, asked()))
    assert figures["rank.spearman.model"] is None and "no application" in figures["rank.spearman.model.reason"]


@pytest.mark.slow
def test_norms_of_nodes_that_were_never_seen_follow_their_applications(fleet, matrix, asked):
    params = asked(model=ModelParams(fit=FitParams(epochs=60)))
    calm = is_unstressed(fleet.executions).to_numpy(dtype=bool)
    figures = rank_learned_figures(rank_learned(fleet, calm, matrix, params))
    assert figures["rank.spearman.drawn.model"] > 0.6  # of few executions and epochs
