"""Which metrics say that an execution was slow, worked out by hand with a network that answers by rule."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.nodes.fingerprint.fingerprint_params import FingerprintParams
from tasks.nodes.fingerprint.judging import judge
from tasks.nodes.fingerprint.reasons import Usual, learn_usual, reasons_of

PARAMS = FingerprintParams(most_reasons=2)
COLUMNS = ("cpu-a/rate", "cpu-a/latency", "cpu-a/jitter", "type=cpu-a")
# The first column tells the stub which row it is; what it expects of the others is 0.
USUAL = Usual(
    columns=COLUMNS, centre=(0.0, 1.0, 1.0, 0.0), beside=(100.0, 0.5, 0.25, 1.0), alone=(100.0, 2.0, 1.0, 1.0)
)


def case(inputs, stub, rows):
    x = np.column_stack([np.arange(len(rows)), rows, np.ones(len(rows))])
    found = inputs([0] * len(rows), x=x, columns=COLUMNS)
    network = stub(lambda one: -1.0, expected=lambda one: [one[-1], 0.0, 0.0, 0.0])
    return found, network, judge(found, network, PARAMS).predecessors


def test_deviations_are_in_usual_differences_the_worst_first(inputs, stub):
    """Execution 1 lies at -1 and -2, where 0 and 0 are expected: -1 / 0.5 and -2 / 0.25."""
    found, network, beside = case(inputs, stub, [[0, 0], [-1, -2]])
    told = reasons_of(found, network, np.array([1]), beside, USUAL, PARAMS)
    assert told["metric"].tolist() == ["cpu-a/jitter", "cpu-a/latency"] and told["place"].tolist() == [1, 2]
    assert told["deviation"].tolist() == pytest.approx([-8.0, -2.0])
    assert told["measured"].tolist() == [-2.0, -1.0] and told["expected"].tolist() == [0.0, 0.0]
    assert told["execution"].tolist() == [1, 1] and told["is_beside_others"].all()


def test_the_first_execution_of_a_node_is_held_against_the_middle_of_its_type(inputs, stub):
    """Centre 1 and 1, usual differences 2 and 1: (-3 - 1) / 2 = -2, (0 - 1) / 1 = -1."""
    found, network, beside = case(inputs, stub, [[-3, 0]])
    told = reasons_of(found, network, np.array([0]), beside, USUAL, PARAMS)
    assert told["metric"].tolist() == ["cpu-a/latency", "cpu-a/jitter"]
    assert told["deviation"].tolist() == pytest.approx([-2.0, -1.0]) and not told["is_beside_others"].any()


def test_better_than_expected_or_hardly_worse_is_no_reason(inputs, stub):
    found, network, beside = case(inputs, stub, [[0, 0], [5, -0.2]])
    assert reasons_of(found, network, np.array([1]), beside, USUAL, PARAMS).empty
    lax = PARAMS.model_copy(update={"least_deviation": 0.5})
    assert reasons_of(found, network, np.array([1]), beside, USUAL, lax)["metric"].tolist() == ["cpu-a/jitter"]


def test_what_was_not_measured_and_what_tells_the_type_is_no_reason(inputs, stub):
    found, network, beside = case(inputs, stub, [[0, 0], [-9, -9]])
    found.x[1, 3], found.is_own[1, 2] = -99, False
    assert reasons_of(found, network, np.array([1]), beside, USUAL, PARAMS)["metric"].tolist() == ["cpu-a/latency"]


def test_a_metric_that_is_neither_better_nor_worse_is_no_reason(inputs, stub):
    """As a processor's use: its orientation is a guess."""
    found, network, beside = case(inputs, stub, [[0, 0], [-9, -9]])
    guessed = replace(found, is_directed=np.array([True, True, False, True]))
    assert reasons_of(guessed, network, np.array([1]), beside, USUAL, PARAMS)["metric"].tolist() == ["cpu-a/latency"]


def test_no_more_metrics_are_named_than_asked_for_and_none_for_no_execution(inputs, stub):
    found, network, beside = case(inputs, stub, [[0, 0], [-9, -9], [-9, -9]])
    one = PARAMS.model_copy(update={"most_reasons": 1})
    told = reasons_of(found, network, np.array([1, 2]), beside, USUAL, one)
    assert told["execution"].tolist() == [1, 2] and told["place"].tolist() == [1, 1]
    assert reasons_of(found, network, np.array([], dtype=np.int64), beside, USUAL, PARAMS).empty


def test_usual_differences_are_those_of_calm_training_executions(inputs, stub):
    """Latency 0, 1, 2, 3, 4 beside an expected 0: median 2, absolute deviations 2 1 0 1 2, so 1.4826; the first one has
    no neighbourhood, and execution 5 is not learned from. Without it: 1, 2, 3, 4, deviations from 2.5: 1."""
    found, network, beside = case(inputs, stub, [[0, 7], [1, 7], [2, 7], [3, 7], [4, 7], [999, 999]])
    usual = learn_usual(found, network, beside, np.arange(6) < 5, PARAMS)
    assert usual.columns == COLUMNS
    assert usual.centre[1] == 2.0 and usual.alone[1] == pytest.approx(1.4826)
    assert usual.beside[1] == pytest.approx(1.4826)
    assert usual.alone[2] == 1.0 == usual.beside[2]  # jitter never differed: 1 stands for it
    assert Usual.model_validate_json(usual.model_dump_json()) == usual


def test_nothing_learned_leaves_the_scale_as_it_is(inputs, stub):
    found, network, beside = case(inputs, stub, [[0, 0]])
    usual = learn_usual(found, network, beside, np.zeros(1, dtype=bool), PARAMS)
    assert usual.centre == (0.0,) * 4 and usual.alone == usual.beside == (1.0,) * 4


def test_a_real_network_names_the_metric_that_fell(drawn):
    """The first metric of the last execution falls far below all others: it is named first."""
    calm = np.arange(len(drawn.inputs)) < len(drawn.inputs) - 1
    params = FingerprintParams(threshold=1)
    beside = judge(drawn.inputs, drawn.network, params).predecessors
    usual = learn_usual(drawn.inputs, drawn.network, beside, calm, params)
    last = len(drawn.inputs) - 1
    column = int(np.flatnonzero(drawn.inputs.is_own[last])[0])
    x = drawn.inputs.x.copy()
    x[last, column] -= 100
    told = reasons_of(replace(drawn.inputs, x=x), drawn.network, np.array([last]), beside, usual, params)
    assert told["metric"].iloc[0] == drawn.inputs.columns[column]
