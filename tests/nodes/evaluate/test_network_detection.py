"""Learned figures beside plain ones, under every protocol, in the keys of the README."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.detect.plain import DETECTORS
from tasks.nodes.evaluate import network_detection
from tasks.nodes.evaluate.detection import detect, detection_results
from tasks.nodes.evaluate.measures import MEASURES, learned_figures
from tasks.nodes.evaluate.network_detection import (
    ABLATION_COLUMNS,
    ABLATION_MEASURES,
    NONE,
    TERMS,
    Ablation,
    ablate,
    ablation_figures,
    detect_learned,
    plan_fits,
    without,
)
from tasks.nodes.evaluate.params import LearnedParams
from tasks.nodes.evaluate.protocol import evaluate_history
from tasks.nodes.perona.params import LossParams, ModelParams

ZSCORE = {"zscore": DETECTORS["zscore"]}


@pytest.fixture(scope="module")
def by_time(longer, prepare, asked):
    """Both variants by time and by the paper's protocol, one fit each, beside z-scores."""
    params = asked(variants=("ours", "paper"), protocols=("chronological", "paper"), seeds=1)
    learned = detect_learned(longer, prepare, params)
    plain = detect(longer, prepare, ZSCORE, params)
    return learned, *detection_results(longer.executions, plain, list(ZSCORE), params, learned), longer


def test_each_dose_stands_against_the_same_calm_executions(by_time):
    """At doses 1 to 3, at 2 and above, and over the mix: the stressed ones add up, the others are the same."""
    _, _, tables, _ = by_time
    for _, own in tables["detection"].groupby(["protocol", "round", "detector"]):
        by_dose = own.set_index("dose")
        assert len(set(by_dose["n"] - by_dose["n_stressed"])) == 1
        n = by_dose["n_stressed"].reindex(["dose_1", "dose_2", "dose_3", "from_dose_2", "any"], fill_value=0)
        assert n["dose_2"] + n["dose_3"] == n["from_dose_2"]
        assert n["dose_1"] + n["from_dose_2"] == n["any"]


def test_both_variants_stand_beside_plain_detectors_at_every_dose(by_time):
    _, figures, tables, _ = by_time
    json.dumps(figures, allow_nan=False)
    for name in ("zscore", "model", "paper"):
        for dose in ("", ".dose_1", ".dose_2", ".dose_3", ".from_dose_2"):
            for measure in MEASURES:
                assert f"detect.{measure}.{name}{dose}" in figures
        assert figures[f"detect.auprc.{name}"] is not None
    for name in ("model", "paper"):
        assert figures[f"detect.f1_outlier.{name}.paper"] is not None
    assert figures["detect.f1_outlier.zscore.paper"] is not None  # on the same executions as the others
    assert set(tables["detection"]["detector"]) == {"zscore", "model", "paper"}


def test_learned_and_plain_detectors_are_tested_on_the_same_executions_by_time(by_time):
    learned, figures, _, history = by_time
    own = learned.judged[learned.judged["protocol"] == "chronological"]
    for name in ("model", "paper"):
        assert len(own[own["detector"] == name]) == figures["detect.n"] == 48
    assert figures["detect.n"] < len(history.executions)


def test_the_papers_protocol_tests_what_has_three_labelled_predecessors_in_its_part(by_time):
    """Of each node and type about 12 executions test; the first three calm ones stand beside others alone."""
    learned, figures, tables, _ = by_time
    own = learned.judged[learned.judged["protocol"] == "paper"]
    assert 0 < figures["detect.n.paper"] < 48
    ours, theirs = (set(own.loc[own["detector"] == name, "execution"]) for name in ("model", "paper"))
    assert ours == theirs
    assert (own.loc[own["detector"] == "paper", "threshold"] == 0).all()  # probability 0.5
    counts = tables["detection"].query("protocol == 'paper' and dose == 'any'").set_index("detector")
    assert set(counts.index) == {"zscore", "model", "paper"} and set(counts["n"]) == {len(ours)}
    assert (own.loc[own["detector"] == "model", "threshold"] != 0).all()


def test_every_fit_has_its_measures(by_time):
    learned, *_ = by_time
    assert len(learned.fits) == 4 and set(learned.reasons.values()) == {""}
    figures = learned_figures(learned)
    for name in ("model", "paper"):
        for key in ("reconstruction.mse", "reconstruction.mse.own", "type.accuracy", "score.spearman"):
            assert figures[f"{key}.{name}"] is not None and figures[f"{key}.{name}.paper"] is not None
        assert 0 <= figures[f"type.accuracy_without_one_hot.{name}"] <= 1
    assert figures["reconstruction.mse.paper.mean_predictor"] < figures["reconstruction.mse.own.paper.mean_predictor"]


def test_a_network_that_is_never_told_the_type_is_not_fitted_again(asked):
    untold = SimpleNamespace(inputs=SimpleNamespace(columns=("cpu/events_per_second",)))
    assert network_detection._without(untold, None, asked(), np.array([True]), 0.75) == 0.75


def test_seeds_and_splits_of_every_protocol(history, asked):
    params = asked(seeds=3)
    by_time, _ = plan_fits(history, "chronological", params)
    assert [seed for _, seed, _ in by_time] == [0, 1, 2] and len({id(split) for _, _, split in by_time}) == 1
    mixed, _ = plan_fits(history, "random", params)
    assert [(number, seed, split.name) for number, seed, split in mixed] == [
        (0, 0, "repeat 1"),
        (1, 1, "repeat 2"),
        (2, 2, "repeat 1"),
    ]
    paper, _ = plan_fits(history, "paper", params)
    np.testing.assert_array_equal(paper[1][2].is_test, mixed[1][2].is_test)
    left, _ = plan_fits(history, "left_node", params)
    each = [(number, seed, split.name) for number, seed, split in left]
    assert each == [(at, at, node) for node in ("node-1", "node-2") for at in range(3)]
    one = history.where((history.executions["node"] == "node-1").to_numpy())
    assert plan_fits(one, "left_node", params)[0] == [] and "at least two" in plan_fits(one, "left_node", params)[1]


@pytest.mark.parametrize("protocol", ["chronological", "left_node"])
def test_labels_of_tested_executions_move_neither_thresholds_nor_flags(history, prepare, asked, protocol):
    """A threshold that was chosen on what is tested, or predecessors by its labels, would make others of them."""
    params = asked(protocols=(protocol,), seeds=1, epochs=1)
    split = plan_fits(history, protocol, params)[0][0][2]
    stress = history.executions["is_stressed"].astype(bool)
    opposite = history.executions.assign(is_stressed=stress ^ split.is_test)
    told = (history, replace(history, executions=opposite))
    one, other = (detect_learned(each, prepare, params).judged for each in told)
    of_split = one["split"] == split.name
    assert of_split.any()
    pd.testing.assert_frame_equal(one[of_split], other[of_split])


def test_unlabelled_executions_have_reasons_and_no_fit(history, prepare, unlabelled, asked):
    params = asked(variants=("ours", "paper"))
    learned = detect_learned(unlabelled(history), prepare, params)
    assert learned.fits.empty and learned.judged.empty
    assert all("is_stressed" in reason for reason in learned.reasons.values()) and len(learned.reasons) == 8
    figures = learned_figures(learned)
    assert (
        figures["type.accuracy.paper.random"] is None and "is_stressed" in figures["type.accuracy.paper.random.reason"]
    )


@pytest.mark.slow
def test_an_evaluation_with_a_variant_explains_each_missing_figure_and_is_the_same_twice(longer, asked):
    params = asked(seeds=2, epochs=1)
    found, again = (evaluate_history(longer, params, ZSCORE) for _ in range(2))
    json.dumps(found.figures, allow_nan=False)
    missing = [key for key, value in found.figures.items() if value is None]
    assert [key for key in missing if not found.figures.get(f"{key}.reason")] == []
    assert found.figures == again.figures
    for suffix in ("", ".random", ".left_node", ".paper"):
        assert found.figures[f"detect.auprc.model{suffix}"] is not None
    assert found.figures["detect.auprc.model.low"] <= found.figures["detect.auprc.model.high"]
    assert set(found.tables["judged"]["detector"]) == {"zscore", "model"}
    assert len(found.tables["fits"]) == 2 + 2 + 2 * 2 + 2  # two nodes are left out with each seed
    assert found.figures["fit.rounds.model.left_node"] == 2 and "detect.auprc.model.left_node.low" in found.figures
    assert found.figures["rank.spearman.model"] is None and found.figures["inject.shifted.recall.model"] is None


@pytest.mark.slow
def test_stress_without_effect_is_not_found(prepare, asked):
    """A protocol that leaked its labels would find what is not there."""
    from tasks.nodes.synthetic import synthetic_history

    history = synthetic_history(nodes=3, types=3, runs=40, stressed=0.0, seed=5)
    labels = pd.array(np.random.default_rng(0).random(len(history.executions)) < 0.2, dtype="boolean")
    drawn = replace(history, executions=history.executions.assign(is_stressed=labels))
    params = asked(variants=("ours", "paper"), protocols=("chronological", "random", "paper"), seeds=2, epochs=10)
    learned = detect_learned(drawn, prepare, params)
    plain = detect(drawn, prepare, {}, params)
    figures, _ = detection_results(drawn.executions, plain, [], params, learned)
    for name in ("model", "paper"):
        for suffix in ("", ".random", ".paper"):
            assert figures[f"detect.balanced_accuracy.{name}{suffix}"] < 0.65, (name, suffix)


def test_every_term_of_the_loss_is_left_out_alone():
    assert TERMS == ("reconstruction", "detection", "clustering", "classification", "ranking", "stressed_ranking")
    for term in TERMS:
        assert without(ModelParams(), term).loss == LossParams(**{term: False})
    assert without(ModelParams(), NONE) == ModelParams()


def test_figures_are_means_over_seeds_or_say_why_not():
    rows = pd.DataFrame(
        [("model", "ranking", seed, *[value] * len(ABLATION_MEASURES)) for seed, value in ((0, 1.0), (1, 3.0))],
        columns=ABLATION_COLUMNS,
    )
    figures = ablation_figures(Ablation(rows, {"model": "", "paper": "nobody is labelled"}))
    assert figures["ablation.ranking.auprc.model"] == 2
    assert figures["ablation.ranking.auprc.model.deviation"] == pytest.approx(np.sqrt(2))
    assert figures["ablation.none.mse_own.paper"] is None
    assert figures["ablation.none.mse_own.paper.reason"] == "nobody is labelled"


def test_unlabelled_executions_have_no_ablation(history, prepare, unlabelled, asked):
    found = ablate(unlabelled(history), prepare, asked(ablation_seeds=1))
    assert found.rows.empty and "is_stressed" in found.reasons["model"]


@pytest.mark.slow
def test_every_term_is_measured(history, prepare, asked):
    params = asked(ablation_seeds=1, epochs=1)
    found = ablate(history, prepare, params)
    assert found.rows["term"].tolist() == [NONE, *TERMS]
    others = found.rows[found.rows["term"] != "detection"]  # without it there are no verdicts to measure
    assert others[list(ABLATION_MEASURES)].notna().all(axis=None)
    figures = ablation_figures(found)
    assert {f"ablation.{term}.{measure}.model" for term in (NONE, *TERMS) for measure in ABLATION_MEASURES} <= set(
        figures
    )
    assert isinstance(params.learned, LearnedParams)


@pytest.fixture
def hidden(asked):
    """Parameters without labels, for splits by time."""
    return asked(protocols=("chronological",), seeds=1).model_copy(update={"without_labels": True})


@pytest.mark.parametrize(("variant", "name"), [("ours", "model"), ("paper", "paper")])
def test_without_labels_a_network_gives_no_verdicts_and_says_why(history, prepare, hidden, variant, name):
    asked = hidden.model_copy(update={"learned": hidden.learned.model_copy(update={"variants": (variant,)})})
    found = detect_learned(history, prepare, asked)
    assert found.judged.empty
    assert "known to be stressed" in found.reasons["chronological", name]


def test_graphs_that_are_made_by_labels_cannot_be_had(history, prepare, hidden):
    asked = hidden.model_copy(update={"learned": hidden.learned.model_copy(update={"protocols": ("paper",)})})
    found = detect_learned(history, prepare, asked)
    assert found.judged.empty and found.fits.empty
    assert found.reasons == {("paper", "model"): "the paper's protocol makes its graphs by labels, which are hidden"}
