"""Perona's network in an evaluation: what it may know, and its figures beside plain ones."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.nodes.detect.plain import DETECTORS
from tasks.nodes.evaluate.detection import LearnedResults, detect, detection_results
from tasks.nodes.evaluate.network_fits import (
    FIT_COLUMNS,
    FIT_MEASURES,
    fit_variants,
    judge_in_time,
    learned_figures,
    part_graphs,
)
from tasks.nodes.evaluate.protocol import evaluate_history
from tasks.nodes.params import ModelParams
from tasks.nodes.perona.inputs import STRESSED, UNKNOWN, inputs_of, labels_of, learn_inputs

ZSCORE = {"zscore": DETECTORS["zscore"]}


@pytest.fixture(scope="module")
def both(longer, asked):
    """Both variants under both protocols, one fit each, beside z-scores."""
    params = asked(variants=("ours", "paper"), seeds=1)
    learned = fit_variants(longer, params)
    plain = detect(longer, ZSCORE, params)
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
    model = asked(variants=("paper",)).learned.fit_params("paper", 0)
    split, case = case_by(longer, "random", asked())
    everything = np.ones(len(longer.executions), dtype=bool)
    scales = learn_inputs(longer, everything, model, asked().preprocess, asked().score)
    known = replace(inputs_of(longer, scales, model), labels=labels_of(case.history.executions))
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
    assert set(labels_of(unlabelled(history).executions)) == {UNKNOWN}


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
    model = asked().learned.fit_params("paper", 0)
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
    found, again = (evaluate_history(longer, params) for _ in range(2))
    missing = [key for key, value in found.figures.items() if value is None]
    assert [key for key in missing if not found.figures.get(f"{key}.reason")] == []
    assert found.figures == again.figures
    assert len(found.tables["fits"]) == found.figures["fit.rounds.model"] == 2


def test_every_measure_of_every_variant_and_protocol_has_a_key():
    reasons = {(protocol, name): "no label" for protocol in ("chronological", "paper") for name in ("model", "paper")}
    figures = learned_figures(LearnedResults(pd.DataFrame(), pd.DataFrame(columns=FIT_COLUMNS), reasons))
    for template in (*FIT_MEASURES.values(), "fit.rounds.{name}"):
        for key in (template.format(name=name) + suffix for name in ("model", "paper") for suffix in ("", ".paper")):
            assert (figures[key], figures[f"{key}.reason"]) == (None, "no label")
