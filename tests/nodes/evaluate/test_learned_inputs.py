"""What a fit may see: no label of what is tested, no feature of it, and only earlier executions beside each."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.detectors import evidence
from tasks.nodes.detectors.deviations import COLUMNS
from tasks.nodes.detectors.evidence import evidence_of
from tasks.nodes.detectors.registry import PLAIN
from tasks.nodes.evaluate.hidden_labels import blinded
from tasks.nodes.evaluate.learned_inputs import (
    FOLDS,
    blind_case,
    drawn_graphs,
    is_mixed,
    n_drawn,
    out_of_fold_evidence,
    part_graphs,
    prepare_case,
    takes_evidence,
    told_of,
    training_folds,
    with_evidence,
    without_one_hot,
)
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.perona.graph import ABSENT, GraphSet
from tasks.nodes.perona.inputs import STRESSED, UNKNOWN, UNSTRESSED, inputs_of
from tasks.nodes.perona.params import FitParams, GraphParams, LossParams, ModelParams, NetworkParams

WITH_EVIDENCE = ModelParams()
QUICK_WITH_EVIDENCE = ModelParams(graph=GraphParams(node_metrics=False), fit=FitParams(epochs=2))
QUICK = ("zscore", "forest")  # plain detectors that look at no earlier execution of a node that was learned


def with_quick_detectors(monkeypatch, names=QUICK):
    monkeypatch.setattr(evidence, "PLAIN", {name: PLAIN[name] for name in names})


def worsened(case, rows):
    """The case in which some executions, a mask, measured something else; nothing is learned anew."""

    def other(table):
        own = rows[table.executions][:, None]
        natural, scaled = (
            np.where(own, 1.5 * table.natural, table.natural),
            np.where(own, table.scaled - 3, table.scaled),
        )
        return replace(table, natural=natural, scaled=scaled)

    return replace(case, tables=replace(case.tables, tables=tuple(map(other, case.tables.tables))))


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
    with_quick_detectors(monkeypatch, ("zscore", "lastk"))
    params = asked()
    split, case = case_by(history, "random", params)
    other_case = case_by(multiplied(history, 3.0, split.is_test), "random", params)[1]
    one, other = (prepare_case(each, WITH_EVIDENCE, params) for each in (case, other_case))
    assert one.train.inputs.evidence.shape[1] == evidence.n_evidence() == 2 + 1 + 2 * len(COLUMNS)
    for before, after in ((one.train, other.train), (one.validation, other.validation)):
        used = np.append(before.targets, before.predecessors[before.predecessors != ABSENT])
        np.testing.assert_array_equal(before.inputs.evidence[used], after.inputs.evidence[used])
        np.testing.assert_array_equal(before.inputs.x[used], after.inputs.x[used])
    assert not np.array_equal(one.inputs.evidence[split.is_test], other.inputs.evidence[split.is_test])


@pytest.mark.parametrize("by_turns", [False, True])
def test_folds_are_blocks_in_time_or_by_turns(history, case_by, asked, by_turns):
    _, case = case_by(history, "chronological", asked())
    folds = training_folds(case, by_turns=by_turns)
    assert (folds == -1).tolist() == (~case.is_train).tolist()
    own = history.executions[["node", "benchmark"]].assign(fold=folds)[case.is_train]
    for _, each in own.groupby(["node", "benchmark"]):  # 15 of 24 runs
        places = list(range(15))
        assert each["fold"].tolist() == ([at % FOLDS for at in places] if by_turns else [at // 3 for at in places])


def test_a_series_shorter_than_the_folds_and_one_of_a_single_execution_have_folds(history, case_by, asked):
    _, case = case_by(history, "chronological", asked())
    place = history.executions.groupby(["node", "benchmark"]).cumcount().to_numpy()
    is_first = (history.executions["node"] == "node-1").to_numpy()
    few = replace(case, is_train=place < np.where(is_first, 3, 1))
    folds = pd.Series(training_folds(few, by_turns=False))[few.is_train]
    assert sorted(folds) == [0, 0, 0, 0, 1, 1, 3, 3]
    found = out_of_fold_evidence(
        replace(few, is_normal=few.is_train), asked().detect, by_turns=False, node_metrics=True
    )
    assert np.isfinite(found[:, : len(PLAIN)]).all(axis=1).tolist() == few.is_train.tolist()


@pytest.mark.parametrize("by_turns", [False, True])
def test_what_is_said_of_a_training_execution_was_not_learned_from_its_fold(
    longer, case_by, asked, monkeypatch, by_turns
):
    """Half of a fold measures something else: the other half is told the same, by detectors that learned neither."""
    with_quick_detectors(monkeypatch)
    params = asked()
    _, case = case_by(longer, "chronological", params)
    is_fold, turns = training_folds(case, by_turns=by_turns) == 2, training_folds(case, by_turns=not by_turns)
    is_touched = is_fold & (turns % 2 == 0)
    is_other = is_fold & ~is_touched
    one, other = (
        out_of_fold_evidence(each, params.detect, by_turns=by_turns, node_metrics=True)
        for each in (case, worsened(case, is_touched))
    )
    assert is_other.sum() > 8 and np.isnan(one[~case.is_train]).all()
    np.testing.assert_array_equal(one[is_other], other[is_other])
    assert not np.array_equal(one[case.is_train & ~is_fold], other[case.is_train & ~is_fold])
    inside, changed = (
        evidence_of(each, params.detect, node_metrics=True) for each in (case, worsened(case, is_touched))
    )
    assert not np.array_equal(inside[is_other], changed[is_other])


@pytest.mark.parametrize("protocol", ["chronological", "random"])
def test_training_graphs_are_told_what_is_out_of_fold_and_others_what_all_of_training_taught(
    history, case_by, asked, monkeypatch, protocol
):
    with_quick_detectors(monkeypatch, ("zscore",))
    params = asked()
    split, case = case_by(history, protocol, params)
    prepared = prepare_case(case, WITH_EVIDENCE, params)
    told = out_of_fold_evidence(case, params.detect, by_turns=protocol == "random", node_metrics=True)
    expected = with_evidence(prepared.inputs, told, WITH_EVIDENCE).evidence
    np.testing.assert_array_equal(prepared.train.inputs.evidence, expected)
    rows = prepared.train.targets
    assert not np.array_equal(prepared.train.inputs.evidence[rows], prepared.inputs.evidence[rows])
    known = with_evidence(prepared.inputs, evidence_of(case, params.detect, node_metrics=True), WITH_EVIDENCE).evidence
    np.testing.assert_array_equal(prepared.inputs.evidence, known)
    chosen = split.is_validation
    np.testing.assert_array_equal(prepared.validation.inputs.evidence[chosen], known[chosen])


def test_by_time_what_comes_later_changes_nothing_of_what_came_before(history, case_by, asked, multiplied, monkeypatch):
    """Tripled from validation on, training stays bit for bit; tripled from the test on, all that was before it."""
    with_quick_detectors(monkeypatch, ("zscore", "lastk"))  # these look back
    params = asked()
    split, case = case_by(history, "chronological", params)
    one = prepare_case(case, WITH_EVIDENCE, params)
    names = ("x", "is_own", "before", "during", "evidence", "performance", "started_s")
    for is_later in (~split.is_train, split.is_test):
        other = prepare_case(
            case_by(multiplied(history, 3.0, is_later), "chronological", params)[1], WITH_EVIDENCE, params
        )
        for name in names:
            for before, after, rows in (
                (one.inputs, other.inputs, ~is_later),
                (one.train.inputs, other.train.inputs, split.is_train),
            ):
                was, now = getattr(before, name)[rows], getattr(after, name)[rows]
                np.testing.assert_array_equal(was, now)
        np.testing.assert_array_equal(one.train.predecessors, other.train.predecessors)
        assert not np.array_equal(one.inputs.evidence[is_later], other.inputs.evidence[is_later])


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


def test_by_time_parts_are_not_mixed_and_at_random_they_are(history, case_by, asked):
    params = asked()
    for protocol, told in (("chronological", False), ("left_node", False), ("random", True)):
        split, case = case_by(history, protocol, params)
        inputs = prepare_case(case, params.learned.asked("ours", 0), params).inputs
        assert is_mixed(inputs, split.is_train) is told, protocol


def test_evidence_is_for_ours_where_a_detector_is_asked_for():
    assert takes_evidence(WITH_EVIDENCE)
    assert not takes_evidence(WITH_EVIDENCE.model_copy(update={"variant": "paper"}))
    assert not takes_evidence(WITH_EVIDENCE.model_copy(update={"network": NetworkParams(evidence=False)}))
    assert not takes_evidence(WITH_EVIDENCE.model_copy(update={"loss": LossParams(detection=False)}))


def test_where_nobody_knows_of_stress_it_is_imitated_in_what_is_learned_and_chosen_by_alone(
    history, case_by, asked, unlabelled
):
    params = asked(model=QUICK_WITH_EVIDENCE)
    split, case = case_by(unlabelled(history), "chronological", params)
    model = params.learned.asked("ours", 0)
    prepared = prepare_case(case, model, params)
    plain = inputs_of(case.history, prepared.scales, model)
    np.testing.assert_array_equal(prepared.inputs.x, plain.x)
    assert (prepared.inputs.labels == UNKNOWN).all()
    for graphs in (prepared.train, prepared.validation):
        labels = graphs.inputs.labels[graphs.targets]
        assert (labels == STRESSED).any() and (labels == UNSTRESSED).any()
        np.testing.assert_array_equal(graphs.inputs.x[split.is_test], plain.x[split.is_test])
        assert (graphs.inputs.labels[graphs.predecessors[graphs.predecessors != ABSENT]] != STRESSED).all()
    told = told_of(blind_case(case), prepared.scales, model, params.detect, is_imitated=True)
    np.testing.assert_array_equal(told.evidence, prepared.inputs.evidence)  # when it is asked later
    trees = len(PLAIN)
    assert np.ptp(told.evidence[split.is_test, trees]) > 0  # they speak of what is judged too


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


def test_the_protocol_has_no_parameters_that_change_by_themselves():
    assert EvaluateParams().learned.model == ModelParams()
