"""Perona's network in a split: what it may know, that it is the same twice, what it finds, and why it cannot be."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tasks.nodes.evaluate.measures import average_precision, precision_recall
from tasks.nodes.evaluate.network import (
    accuracy,
    drawn_graphs,
    fit_prepared,
    judged_by,
    known_labels,
    learn_scale,
    logit_threshold,
    measures_of,
    n_drawn,
    part_graphs,
    prepare_case,
    scores_follow,
    type_accuracy,
    why_not,
    without_one_hot,
)
from tasks.nodes.perona.fingerprints import fingerprints_of
from tasks.nodes.perona.graph import ABSENT, GraphSet
from tasks.nodes.perona.inputs import STRESSED, UNKNOWN, UNSTRESSED, Inputs
from tasks.nodes.perona.params import FitParams, ModelParams, NetworkParams
from tasks.nodes.synthetic import synthetic_history


def fitted(case, params, variant="ours", seed=0):
    model = params.learned.asked(variant, seed)
    prepared = prepare_case(case, model, params)
    return prepared, fit_prepared(prepared, model, params.learned).network


def scores(case, params, variant="ours", seed=0):
    prepared, network = fitted(case, params, variant, seed)
    return judged_by(network, prepared, case.is_validation, params)[0]


def weights(case, params, variant="ours"):
    return fitted(case, params, variant)[1].state_dict()


def relabelled(case, rows):
    """The case in which what is known of some executions, a mask, is the opposite."""
    executions = case.history.executions
    opposite = executions["is_stressed"].where(~rows, ~executions["is_stressed"].astype(bool))
    return replace(case, history=replace(case.history, executions=executions.assign(is_stressed=opposite)))


@pytest.mark.parametrize("protocol", ["chronological", "random", "left_node"])
def test_labels_of_tested_executions_change_no_score(history, case_by, asked, protocol):
    params = asked()
    split, case = case_by(history, protocol, params)
    found = scores(case, params)
    np.testing.assert_array_equal(found, scores(relabelled(case, split.is_test), params))
    assert np.isnan(found).sum() <= 4  # the first of each node and type, beside which nothing stands


def test_labels_of_training_executions_are_learned_from(history, case_by, asked):
    params = asked()
    split, case = case_by(history, "chronological", params)
    assert not np.array_equal(scores(case, params), scores(relabelled(case, split.is_train), params))


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_values_of_tested_executions_teach_nothing_even_where_they_lie_between(
    history, case_by, asked, multiplied, variant
):
    params = asked()
    split, case = case_by(history, "random", params)
    other = case_by(multiplied(history, 3.0, split.is_test), "random", params)[1]
    before, after = weights(case, params, variant), weights(other, params, variant)
    for name in before:
        np.testing.assert_array_equal(before[name].numpy(), after[name].numpy())


def test_values_of_the_node_that_is_left_out_teach_nothing(history, case_by, asked, multiplied):
    params = asked()
    split, case = case_by(history, "left_node", params)
    assert set(history.executions["node"][split.is_test]) == {"node-1"}
    other = case_by(multiplied(history, 3.0, split.is_test), "left_node", params)[1]
    before, after = weights(case, params), weights(other, params)
    for name in before:
        np.testing.assert_array_equal(before[name].numpy(), after[name].numpy())


def test_later_executions_say_nothing_of_earlier_ones(history, case_by, asked, multiplied):
    """The last third of what is tested changes; validation and all before it have the scores that they had."""
    params = asked()
    split, case = case_by(history, "chronological", params)
    late = np.zeros(len(split.is_test), dtype=bool)
    late[np.flatnonzero(split.is_test)[-6:]] = True
    border = np.flatnonzero(late)[0]
    other = case_by(multiplied(history, 0.2, late), "chronological", params)[1]
    before, after = scores(case, params), scores(other, params)
    np.testing.assert_allclose(before[:border], after[:border], rtol=1e-5, atol=1e-5)
    assert not np.allclose(before[late], after[late])


def test_the_same_case_and_seed_give_the_same_scores_and_another_seed_others(history, case_by, asked):
    params = asked()
    _, case = case_by(history, "chronological", params)
    np.testing.assert_array_equal(scores(case, params), scores(case, params))
    assert not np.array_equal(scores(case, params), scores(case, params, seed=1))


def test_what_cannot_be_fitted_says_why(history, case_by, asked):
    params = asked()
    _, case = case_by(history, "chronological", params)
    prepared = prepare_case(case, params.learned.asked("ours", 0), params)
    assert why_not(prepared) == ""
    few = replace(prepared, train=prepared.train.of(np.arange(3)))
    assert why_not(few) == "3 executions to learn from; at least 10 are needed"
    none = replace(prepared, validation=prepared.validation.of(np.arange(0)))
    assert "best epoch" in why_not(none)
    inputs = prepared.train.inputs
    stressed = replace(inputs, labels=np.full(len(inputs), STRESSED, dtype=np.int8))
    assert "all training executions are stressed" in why_not(
        replace(prepared, train=replace(prepared.train, inputs=stressed))
    )


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_where_no_stress_is_known_codes_are_learned_and_no_verdict_is_given(
    history, case_by, asked, unlabelled, variant
):
    params = asked()
    _, case = case_by(unlabelled(history), "chronological", params)
    prepared, network = fitted(case, params, variant)
    assert not network.params.loss.detection
    assert np.isfinite(fingerprints_of(prepared.inputs, network).log_norm).all()
    logits, _ = judged_by(network, prepared, case.is_validation, params)
    assert np.isnan(logits).all()


def test_the_threshold_comes_from_validation_executions_with_labels(history, case_by, asked):
    """Logits 0 1 2 3 validate, the last two stressed: half way between 1 and 2. Larger ones are not looked at."""
    params = asked()
    _, case = case_by(history, "chronological", params)
    inputs = prepare_case(case, params.learned.asked("ours", 0), params).inputs
    labels = np.full(len(inputs), UNSTRESSED, dtype=np.int8)
    labels[[2, 3]] = STRESSED
    logits = np.full(len(inputs), 50.0)
    logits[:5] = [0, 1, 2, 3, np.nan]
    is_validation = np.arange(len(inputs)) < 5
    assert logit_threshold(logits, replace(inputs, labels=labels), is_validation, params) == 1.5
    nobody = replace(inputs, labels=np.full(len(inputs), UNKNOWN, dtype=np.int8))
    assert 2.9 < logit_threshold(logits, nobody, is_validation, params) < 3  # 1 % of them flagged


def test_the_papers_protocol_may_see_all_labels(history, case_by, asked, unlabelled):
    params = asked()
    case = case_by(history, "random", params)[1]
    assert (known_labels(case) == STRESSED).tolist() == history.executions["is_stressed"].tolist()
    assert set(known_labels(case_by(unlabelled(history), "random", params)[1])) == {UNKNOWN}


@pytest.mark.slow
def test_stress_at_a_large_dose_is_found(case_by, asked):
    """Ten deviations of performance, one in thirteen of the executions that are asked for."""
    history = synthetic_history(nodes=2, types=2, runs=60, seed=3)
    model = ModelParams(fit=FitParams(epochs=15))
    params = asked(model=model)
    split, case = case_by(history, "chronological", params)
    found = scores(case, params)
    is_asked = split.is_test & history.executions["dose_level"].isin([0, 3]).to_numpy()
    stressed = history.executions["is_stressed"].to_numpy(dtype=bool)[is_asked]
    assert average_precision(precision_recall(found[is_asked], stressed)) > 0.8


@pytest.mark.parametrize("protocol", ["chronological", "random", "left_node"])
@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_training_graphs_hold_calm_training_executions_alone(history, case_by, asked, protocol, variant):
    params = asked()
    split, case = case_by(history, protocol, params)
    prepared = prepare_case(case, params.learned.asked(variant, 0), params)
    for graphs, may_be_seen in ((prepared.train, split.is_train), (prepared.validation, ~split.is_test)):
        beside = graphs.predecessors[graphs.predecessors != ABSENT]
        assert may_be_seen[graphs.targets].all() and may_be_seen[beside].all()
        assert (graphs.inputs.labels[beside] == UNSTRESSED).all()
        assert (graphs.inputs.labels[split.is_test] == UNKNOWN).all()
        assert (np.where(graphs.predecessors == ABSENT, -1, graphs.predecessors) < graphs.targets[:, None]).all()
    assert (prepared.train.inputs.labels[~split.is_train] == UNKNOWN).all()
    assert split.is_train[prepared.train.targets].sum() == len(prepared.train)
    if variant == "paper":
        assert (prepared.train.predecessors != ABSENT).all()


def test_by_time_what_comes_later_changes_nothing_of_what_came_before(history, case_by, asked, multiplied):
    """Tripled from validation on, training stays bit for bit; tripled from the test on, all that was before it."""
    params = asked()
    model = params.learned.asked("ours", 0)
    split, case = case_by(history, "chronological", params)
    one = prepare_case(case, model, params)
    names = ("x", "is_own", "before", "during", "performance", "started_s")
    for is_later in (~split.is_train, split.is_test):
        other = prepare_case(case_by(multiplied(history, 3.0, is_later), "chronological", params)[1], model, params)
        for name in names:
            for before, after, rows in (
                (one.inputs, other.inputs, ~is_later),
                (one.train.inputs, other.train.inputs, split.is_train),
            ):
                was, now = getattr(before, name)[rows], getattr(after, name)[rows]
                np.testing.assert_array_equal(was, now)
        np.testing.assert_array_equal(one.train.predecessors, other.train.predecessors)
        assert not np.array_equal(one.inputs.x[is_later], other.inputs.x[is_later])


def test_an_execution_that_measured_nothing_is_no_example_and_stands_beside_none(longer, case_by, asked):
    params = asked()
    split, _ = case_by(longer, "chronological", params)
    calm = ~longer.executions["is_stressed"].to_numpy(dtype=bool)
    row = int(np.flatnonzero(split.is_train & calm)[20])
    silent = replace(longer, metrics=longer.metrics[longer.metrics["execution"] != row].reset_index(drop=True))
    assert (
        row
        in prepare_case(case_by(longer, "chronological", params)[1], params.learned.model, params).train.predecessors
    )
    for variant in ("ours", "paper"):
        model = params.learned.asked(variant, 0)
        prepared = prepare_case(case_by(silent, "chronological", params)[1], model, params)
        for graphs in (prepared.train, prepared.validation, part_graphs(prepared.inputs, split.is_train, model)):
            assert len(graphs) and row not in graphs.targets and row not in graphs.predecessors


def test_the_papers_graphs_lie_within_one_part_by_its_labels(longer, case_by, asked):
    params = asked()
    split, case = case_by(longer, "random", params)
    model = params.learned.asked("paper", 0)
    prepared = prepare_case(case, model, params)
    labels = np.where(longer.executions["is_stressed"], STRESSED, UNSTRESSED).astype(np.int8)
    graphs = part_graphs(replace(prepared.inputs, labels=labels), split.is_test, model)
    assert len(graphs) and (graphs.predecessors != ABSENT).all()
    assert split.is_test[graphs.targets].all() and split.is_test[graphs.predecessors].all()
    assert (labels[graphs.predecessors] == UNSTRESSED).all() and (labels[graphs.targets] == STRESSED).any()


def test_a_share_of_the_graphs_is_drawn_in_order():
    graphs = GraphSet(None, np.arange(10), np.full((10, 3), ABSENT))
    found = drawn_graphs(graphs, 0.5, 100, np.random.default_rng(0))
    assert len(found) == 5 and (np.diff(found.targets) > 0).all()
    assert len(drawn_graphs(graphs, 1.0, 3, np.random.default_rng(0))) == n_drawn(10, 1.0, 3) == 3
    assert drawn_graphs(graphs, 1.0, 100, np.random.default_rng(0)) is graphs
    assert n_drawn(10, 0.001, 100) == 1


def test_without_the_type_the_metrics_stay(history, case_by, asked):
    params = asked()
    _, case = case_by(history, "chronological", params)
    train = prepare_case(case, params.learned.asked("paper", 0), params).train
    silent = without_one_hot(train)
    n_metrics = len(train.inputs.columns) - len(train.inputs.types)
    assert len(silent.inputs.columns) == n_metrics == silent.inputs.x.shape[1] == silent.inputs.is_own.shape[1]
    np.testing.assert_array_equal(silent.inputs.x, train.inputs.x[:, :n_metrics])
    np.testing.assert_array_equal(silent.inputs.has_direction, train.inputs.has_direction[:n_metrics])


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
        before=none,
        during=none,
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
    assert type_accuracy(inputs, network, ~first(3, 5)) == 0
    assert type_accuracy(inputs, network, np.array([False, False, True, False, False])) == 0
    assert accuracy(np.array([0, 1, 1]), np.array([0, 0, 1])) == pytest.approx(2 / 3)
    assert accuracy(np.array([0, 1]), np.array([0, -1])) == 1  # a type that training did not have is left out
    assert np.isnan(accuracy(np.array([1]), np.array([-1])))


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
