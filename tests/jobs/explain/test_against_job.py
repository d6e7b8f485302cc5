"""A run against the usual runs of its job: what the job always has explains nothing of one run."""

import numpy as np
import pytest

from tasks.jobs.explain.against_job import against_stretch, against_usual
from tasks.jobs.explain.contributions import Contributions

NAMES = ("input_bytes", "op_WINDOW")


def one_score(values, base=0.5):
    values = np.asarray(values, dtype=float)
    return Contributions(values[:, :, None], np.full((len(values), 1), base), NAMES)


def test_a_run_and_two_usual_ones_worked_out_by_hand():
    usual = one_score([[1.0, 3.0], [3.0, 3.0], [9.0, 9.0]])
    found = against_usual(one_score([[6.0, 3.0]]), ["a"], usual, ["a", "a", "b"])
    assert found.single.tolist() == [[4.0, 0.0]]  # the plan is that of all runs of a
    assert found.base.tolist() == [[0.5 + 5.0]]
    assert found.raw == pytest.approx(one_score([[6.0, 3.0]]).raw)


def test_a_job_without_usual_runs_is_left_as_it_is():
    parts = one_score([[6.0, 3.0], [1.0, 1.0]])
    for groups in (["z", "0"], ["b", "c"]):
        found = against_usual(parts, groups, one_score([[1.0, 3.0]]), ["a"])
        assert found.values.tolist() == parts.values.tolist()
    none = against_usual(parts, ["a", "b"], one_score(np.empty((0, 2))), [])
    assert none.values.tolist() == parts.values.tolist()


def test_the_order_of_the_usual_runs_does_not_matter():
    rng = np.random.default_rng(1)
    values, groups = rng.normal(size=(30, 2)), rng.integers(4, size=30).astype(str)
    order = rng.permutation(30)
    one = against_usual(one_score(values), groups, one_score(values), groups)
    other = against_usual(one_score(values), groups, one_score(values[order]), groups[order])
    assert one.values == pytest.approx(other.values)
    for group in np.unique(groups):
        assert np.median(one.single[groups == group], axis=0) == pytest.approx([0.0, 0.0])


def test_each_run_can_have_its_own_stretch_of_usual_runs():
    usual = one_score([[1.0, 0.0], [3.0, 0.0], [5.0, 6.0], [7.0, 0.0]])
    found = against_stretch(one_score([[6.0, 3.0], [6.0, 3.0]]), usual, [0, 1], [3, 3])
    assert found.single == pytest.approx(np.array([[6.0 - 3.0, 3.0 - 0.0], [6.0 - 5.0, 3.0 - 0.0]]))
    assert found.base[:, 0] == pytest.approx([0.5 + 3.0, 0.5 + 5.0])
    assert found.raw == pytest.approx(one_score([[6.0, 3.0], [6.0, 3.0]]).raw)


def test_one_run_with_a_huge_input_does_not_make_a_usual_one_seem_small():
    usual = one_score([[1.0, 0.0], [1.0, 0.0], [9.0, 0.0]])
    assert against_usual(one_score([[1.0, 0.0]]), ["a"], usual, ["a"] * 3).single.tolist() == [[0.0, 0.0]]
    assert against_stretch(one_score([[1.0, 0.0]]), usual, [0], [3]).single.tolist() == [[0.0, 0.0]]


def test_stretches_of_many_lengths_are_those_of_each_run():
    rng = np.random.default_rng(5)
    usual, n = one_score(rng.normal(size=(200, 2))), rng.integers(0, 12, size=60)
    first = rng.integers(0, 188, size=60)
    parts = one_score(rng.normal(size=(60, 2)))
    found = against_stretch(parts, usual, first, n).single
    for row in range(60):
        stretch = usual.single[first[row] : first[row] + n[row]]
        reference = np.median(stretch, axis=0) if n[row] >= 3 else 0.0
        assert found[row] == pytest.approx(parts.single[row] - reference)


def test_two_earlier_runs_are_no_usual_ones():
    parts = one_score([[6.0, 3.0], [6.0, 3.0]])
    found = against_stretch(parts, one_score([[1.0, 1.0]] * 3), [0, -1], [2, 0])
    assert found.values.tolist() == parts.values.tolist()
    assert found.base.tolist() == parts.base.tolist()


def test_contributions_of_another_model_are_refused():
    other = Contributions(np.zeros((1, 1, 1)), np.zeros((1, 1)), ("load_mean",))
    with pytest.raises(ValueError, match="expected the same model"):
        against_usual(one_score([[1.0, 1.0]]), ["a"], other, ["a"])
