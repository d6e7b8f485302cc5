"""A fit: what it may know, why it cannot be, and what it is worth, by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from tasks.errors import BadInput
from tasks.nodes.aspects import time_places
from tasks.nodes.perona.fingerprints import fingerprints_of
from tasks.nodes.perona.fitting import fit_prepared, learn_scale, measures_of, prepare, scores_follow
from tasks.nodes.perona.inputs import STRESSED, UNKNOWN, UNSTRESSED, Inputs
from tasks.nodes.perona.params import FitParams, ModelParams, NetworkParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams
from tests.nodes.synthetic import synthetic_history

VARIANTS = pytest.mark.parametrize("variant", ["ours", "paper"])


@pytest.fixture(scope="module")
def history():
    """Two nodes, two types, 30 runs of each, a fifth of them stressed."""
    return synthetic_history(nodes=2, types=2, runs=30, seed=1)


def model_of(variant):
    network = NetworkParams(hidden=8, intermediate=8, heads=1)
    return ModelParams(variant=variant, network=network, fit=FitParams(epochs=2, batch_size=64))


def masks(history):
    """Training, validation and test by time."""
    places = time_places(history.executions)
    return places < 0.6, (places >= 0.6) & (places < 0.8), places >= 0.8


def prepared_of(history, variant="ours"):
    is_train, is_validation, _ = masks(history)
    return prepare(history, is_train, is_validation, model_of(variant), PreprocessParams(), ScoreParams())


def changed(history, rows):
    """The history with all values of some executions, a mask, tripled, and their labels turned round."""
    value = history.metrics["value"] * np.where(rows[history.metrics["execution"].to_numpy()], 3.0, 1.0)
    stressed = history.executions["is_stressed"].astype(bool)
    executions = history.executions.assign(is_stressed=stressed.where(~rows, ~stressed))
    return replace(history, metrics=history.metrics.assign(value=value), executions=executions)


@VARIANTS
def test_what_is_tested_teaches_nothing(history, variant):
    is_train, is_validation, is_test = masks(history)
    one, other = prepared_of(history, variant), prepared_of(changed(history, is_test), variant)
    weights = [fit_prepared(each, model_of(variant), 1000).network.state_dict() for each in (one, other)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not np.array_equal(one.inputs.x[is_test], other.inputs.x[is_test])
    assert (one.inputs.labels[is_test] == UNKNOWN).all() and (one.train.inputs.labels[~is_train] == UNKNOWN).all()
    assert is_train[one.train.targets].all() and is_validation[one.validation.targets].all()


def test_graphs_of_training_hold_calm_training_executions_alone(history):
    prepared, (is_train, _, is_test) = prepared_of(history, "paper"), masks(history)
    for graphs, may_be_seen in ((prepared.train, is_train), (prepared.validation, ~is_test)):
        assert len(graphs) and may_be_seen[graphs.predecessors].all()
        assert (graphs.inputs.labels[graphs.predecessors] == UNSTRESSED).all()
        assert (graphs.predecessors < graphs.targets[:, None]).all()


def test_an_execution_that_measured_nothing_is_no_example_and_stands_beside_none(history):
    row = int(prepared_of(history, "paper").train.predecessors[0, 0])
    silent = replace(history, metrics=history.metrics[history.metrics["execution"] != row].reset_index(drop=True))
    for variant in ("ours", "paper"):
        graphs = prepared_of(silent, variant).train
        assert len(graphs) and row not in graphs.targets and row not in graphs.predecessors


@VARIANTS
def test_where_no_stress_is_known_codes_are_learned_all_the_same(history, variant):
    unknown = pd.array([pd.NA] * len(history.executions), dtype="boolean")
    prepared = prepared_of(replace(history, executions=history.executions.assign(is_stressed=unknown)), variant)
    network = fit_prepared(prepared, model_of(variant), 1000).network
    assert "detection" not in network.params.loss.terms
    assert np.isfinite(fingerprints_of(prepared.inputs, network).log_norm).all()


def test_too_few_executions_to_learn_from_are_one_line(history):
    prepared = prepared_of(history)
    few = replace(prepared, train=prepared.train.of(np.arange(3)))
    with pytest.raises(BadInput, match="3 executions to learn from; expected at least 10"):
        fit_prepared(few, model_of("ours"), 1000)
    assert len(prepared.train.drawn(12, np.random.default_rng(0))) == 12


def test_labels_of_training_are_known_as_they_are(history):
    labels = prepared_of(history).train.inputs.labels
    is_train = masks(history)[0]
    assert ((labels == STRESSED) == (history.executions["is_stressed"].to_numpy(dtype=bool) & is_train)).all()


class Written(nn.Module):
    """The fingerprint is the input's first four columns, what it decodes to a constant, the type the larger column."""

    def __init__(self, decoded):
        super().__init__()
        self.params = ModelParams(network=NetworkParams(hidden=4))
        self.decoded = torch.tensor(decoded)

    def encode(self, x):
        return x[:, :4]

    def decoder(self, codes):
        return self.decoded.expand(len(codes), -1)

    def classifier(self, codes):
        return codes[:, :2]


def made(x, is_own, type_of, *, columns=None, performance=None):
    n, f = np.shape(x)
    none = np.zeros((n, 0), dtype=np.float32)
    return Inputs(
        columns=tuple(columns or (f"t/{at}" for at in range(f))),
        x=np.asarray(x, dtype=np.float32),
        is_own=np.asarray(is_own, dtype=bool),
        types=("one", "two"),
        type_of=np.asarray(type_of),
        nodes=("a",),
        node_of=np.zeros(n, dtype=np.int64),
        started_s=np.arange(n, dtype=np.float64),
        node_metrics=none,
        performance=np.zeros(n, dtype=np.float32) if performance is None else np.asarray(performance, np.float32),
        labels=np.zeros(n, dtype=np.int8),
    )


def first(n, of):
    return np.arange(of) < n


@pytest.fixture
def inputs():
    """Three training executions and two tested ones; column 0 is of type one, column 1 of type two, the rest filled."""
    x = [[0, 5, 0, 0], [4, 5, 0, 0], [9, 1, 0, 0], [2, 5, 0, 0], [9, 3, 0, 0]]
    is_own = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    return made(x, is_own, [0, 0, 1, 0, 1])


def test_ranges_are_of_measured_training_values_and_means_of_each_type(inputs):
    """Column 0 ran from 0 to 4 where it was measured; column 1 was measured once, and does not vary: 1."""
    scale = learn_scale(inputs, first(3, 5))
    assert scale.ranges.tolist() == [4, 1, 1, 1]
    assert scale.means.tolist() == [[2, 5, 0, 0], [9, 1, 0, 0]]


def test_errors_over_all_columns_and_over_own_metrics(inputs):
    """Decoded 0, 5, 0, 0; tested 2 5 0 0 and 9 3 0 0. Errors in ranges: -2/4, 0 and -9/4, 2. All eight cells:
    (0.25 + 5.0625 + 4) / 8; the two own ones: (0.25 + 4) / 2. Type means say 2 5 and 9 1: errors 0, 0 and 0, -2."""
    found = measures_of(inputs, Written([0.0, 5, 0, 0]), first(3, 5), ~first(3, 5))
    assert found["mse"] == pytest.approx((0.25 + 5.0625 + 4) / 8)
    assert found["mse_own"] == pytest.approx((0.25 + 4) / 2)
    assert found["mse_mean_predictor"] == pytest.approx(4 / 8)
    assert found["mse_own_mean_predictor"] == pytest.approx(4 / 2)


def test_the_one_hot_counts_in_the_papers_measure_and_not_among_own_metrics():
    """A decoder that is right but for the one-hot, which it puts at 0 and 0: one cell of three is off by 1."""
    columns = ("one/m", "type=one", "type=two")
    inputs = made(
        [[0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]], np.ones((3, 4)), [0, 0, 0], columns=(*columns, "type=three")
    )
    found = measures_of(inputs, Written([1.0, 0, 0, 0]), first(2, 3), ~first(2, 3))
    assert found["mse_own"] == 0 and found["mse"] == pytest.approx(1 / 4)


def test_types_are_told_by_the_larger_logit(inputs):
    """Tested 2 5 is told as two and is one; 9 3 is told as one and is two; the third row is wrong too."""
    network = Written([0.0, 0, 0, 0])
    told = [measures_of(inputs, network, first(3, 5), rows)["type_accuracy"] for rows in (~first(3, 5), first(5, 5))]
    assert told == [0, 0]
    assert (
        measures_of(replace(inputs, type_of=1 - inputs.type_of), network, first(3, 5), first(5, 5))["type_accuracy"]
        == 1
    )


def test_norms_that_follow_performance_have_no_deviation():
    """Norms 1, 2, 4, 8 in one column; performance their logarithms and a constant: ratios are the same."""
    norms = np.array([1.0, 2, 4, 8, 16])
    x = np.column_stack([norms, np.zeros((5, 3))])
    rows = np.arange(5)
    same = made(x, np.ones((5, 4)), np.zeros(5, dtype=int), performance=np.log(norms) + 3)
    found = scores_follow(same, Written([0.0] * 4), rows)
    assert found["score_spearman"] == pytest.approx(1) and found["score_deviation"] == pytest.approx(0, abs=1e-6)
    half = made(x, np.ones((5, 4)), np.zeros(5, dtype=int), performance=np.log(norms) / 2)
    told = scores_follow(half, Written([0.0] * 4), rows)
    assert told["score_spearman"] == pytest.approx(1)
    assert told["score_deviation"] == pytest.approx(1.4826 * np.log(2) / 2, rel=1e-5)  # half of |-2 -1 0 1 2| ln 2
    none = made(x, np.ones((5, 4)), np.zeros(5, dtype=int), performance=[np.nan] * 5)
    assert np.isnan(scores_follow(none, Written([0.0] * 4), rows)["score_spearman"])


def test_the_network_is_left_as_it_was(inputs):
    network = Written([0.0] * 4)
    network.train()
    measures_of(inputs, network, first(3, 5), ~first(3, 5))
    assert network.training
