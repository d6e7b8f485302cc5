import numpy as np
import pandas as pd
import pytest

from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.splits import PROTOCOLS, splits_of

PARAMS = EvaluateParams(repeats=3)


@pytest.fixture(scope="module")
def executions():
    """Ten executions of each of two types on each of three nodes; the last two of each are stressed."""
    rows = [
        {"node": node, "type": kind, "run": run, "is_stressed": run >= 8}
        for run in range(10)
        for node in "abc"
        for kind in ("x", "y")
    ]
    return pd.DataFrame(rows).astype({"is_stressed": "boolean"})


def found(executions, protocol, params=PARAMS):
    return splits_of(executions, executions["type"].tolist(), protocol, params)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_execution_is_on_two_sides_and_each_is_on_one(executions, protocol):
    for splits in found(executions, protocol).rounds:
        for split in splits:
            sides = split.is_train.astype(int) + split.is_validation + split.is_test
            assert (sides <= 1).all() if protocol == "rolling" else (sides == 1).all()


def test_by_time_what_is_tested_comes_after_all_that_is_learned_from(executions):
    ((split,),) = found(executions, "chronological").rounds
    runs = executions["run"].to_numpy()
    assert runs[split.is_train].max() < runs[split.is_validation].min()
    assert runs[split.is_validation].max() < runs[split.is_test].min()
    assert (split.is_train.sum(), split.is_validation.sum(), split.is_test.sum()) == (36, 12, 12)


def test_at_random_each_side_has_its_share_of_each_node_type_and_label(executions):
    rounds = found(executions, "random").rounds
    assert len(rounds) == 3
    for (split,) in rounds:
        shares = executions.assign(train=split.is_train).groupby(["node", "type", "is_stressed"])["train"].mean()
        assert ((shares >= 0.5) & (shares <= 1.0)).all()
        assert shares[:, :, False].tolist() == [0.625] * 6  # 5 of 8
    assert not np.array_equal(rounds[0][0].is_test, rounds[1][0].is_test)
    again = found(executions, "random").rounds
    np.testing.assert_array_equal(rounds[2][0].is_test, again[2][0].is_test)


def test_a_left_node_is_tested_whole_and_teaches_nothing(executions):
    (splits,) = found(executions, "left_node").rounds
    assert [split.name for split in splits] == ["a", "b", "c"]
    for split in splits:
        is_own = (executions["node"] == split.name).to_numpy()
        np.testing.assert_array_equal(split.is_test, is_own)
        runs = executions["run"].to_numpy()
        assert runs[split.is_train].max() < runs[split.is_validation].min()


def test_one_node_cannot_be_left_out(executions):
    one = executions[executions["node"] == "a"].reset_index(drop=True)
    assert "at least two" in found(one, "left_node").reason
    assert not found(one, "left_node").rounds
