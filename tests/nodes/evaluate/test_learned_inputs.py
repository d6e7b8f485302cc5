"""What a fit may see: no label of what is tested, no feature of it, and only earlier executions beside each."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.nodes.detectors.registry import PLAIN
from tasks.nodes.evaluate import learned_inputs
from tasks.nodes.evaluate.learned_inputs import (
    blind_case,
    blinded,
    drawn_graphs,
    is_mixed,
    n_drawn,
    part_graphs,
    prepare_case,
    takes_evidence,
    without_one_hot,
)
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.graph.graph_set import ABSENT, GraphSet
from tasks.nodes.graph.inputs import STRESSED, UNKNOWN, UNSTRESSED
from tasks.nodes.model.params import ModelParams, NetworkParams

WITH_EVIDENCE = ModelParams()


def test_labels_and_doses_are_hidden_where_they_may_not_be_seen(history):
    is_seen = np.arange(len(history.executions)) < 50
    hidden = blinded(history, is_seen).executions
    assert hidden["is_stressed"].notna().tolist() == is_seen.tolist()
    assert hidden["dose_level"][~is_seen].isna().all() and hidden["dose"][~is_seen].isna().all()
    assert hidden["is_stressed"][is_seen].tolist() == history.executions["is_stressed"][is_seen].tolist()
    assert history.executions["is_stressed"].notna().all()  # the history itself stays


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


def test_what_plain_detectors_say_of_training_comes_from_training_where_parts_lie_mixed(
    history, case_by, asked, multiplied, monkeypatch
):
    """Tested values are tripled: the evidence of training and validation graphs stays, that of judging does not."""
    monkeypatch.setattr(learned_inputs, "PLAIN", {name: PLAIN[name] for name in ("zscore", "lastk")})  # the quick ones
    params = asked()
    split, case = case_by(history, "random", params)
    other_case = case_by(multiplied(history, 3.0, split.is_test), "random", params)[1]
    one, other = (prepare_case(each, WITH_EVIDENCE, params) for each in (case, other_case))
    assert one.train.inputs.evidence.shape[1] == 2
    for before, after in ((one.train, other.train), (one.validation, other.validation)):
        used = np.append(before.targets, before.predecessors[before.predecessors != ABSENT])
        np.testing.assert_array_equal(before.inputs.evidence[used], after.inputs.evidence[used])
        np.testing.assert_array_equal(before.inputs.x[used], after.inputs.x[used])
    assert not np.array_equal(one.inputs.evidence[split.is_test], other.inputs.evidence[split.is_test])


def test_by_time_parts_are_not_mixed_and_at_random_they_are(history, case_by, asked):
    params = asked()
    for protocol, told in (("chronological", False), ("left_node", False), ("random", True)):
        split, case = case_by(history, protocol, params)
        inputs = prepare_case(case, params.learned.asked("ours", 0), params).inputs
        assert is_mixed(inputs, split.is_train) is told, protocol


def test_evidence_is_for_ours_and_not_where_stress_is_imitated(history, case_by, asked, unlabelled):
    params = asked()
    case = blind_case(case_by(history, "chronological", params)[1])
    assert takes_evidence(case, WITH_EVIDENCE)
    assert not takes_evidence(case, WITH_EVIDENCE.model_copy(update={"variant": "paper"}))
    assert not takes_evidence(case, WITH_EVIDENCE.model_copy(update={"network": NetworkParams(evidence=False)}))
    assert not takes_evidence(blind_case(case_by(unlabelled(history), "chronological", params)[1]), WITH_EVIDENCE)


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


def test_the_protocol_has_no_parameters_that_change_by_themselves():
    assert EvaluateParams().learned.model == ModelParams()
