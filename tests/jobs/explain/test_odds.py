"""Contributions to the log-odds of a set of shapes: worked out by hand, and additive."""

import numpy as np
import pytest
from scipy.special import softmax

from tasks.jobs.explain.contributions import Contributions
from tasks.jobs.explain.odds import log_odds, towards


def random_parts(k, n=50, p=4, size=1.0, seed=3):
    rng = np.random.default_rng(seed)
    base = np.broadcast_to(rng.normal(size=k), (n, k)).copy()
    return Contributions(size * rng.normal(size=(n, p, k)), base, tuple(f"op_{i}" for i in range(p)))


def test_two_shapes_worked_out_by_hand():
    """Scores 1 and 3 over bases 0.5 and 0: log-odds of the second start at -0.5 and end at 2."""
    parts = Contributions(np.array([[[0.25, 2.0], [0.25, 1.0]]]), np.array([[0.5, 0.0]]), ("a", "b"))
    second = towards(parts, [1])
    assert second.base == pytest.approx(-0.5)
    assert second.single[0].tolist() == pytest.approx([1.75, 0.75])
    assert second.raw[0, 0] == pytest.approx(2.0)


def test_the_odds_are_those_of_the_probabilities():
    raw = random_parts(5).raw
    probabilities = softmax(raw, axis=1)
    asked = probabilities[:, [1, 4]].sum(axis=1)
    assert log_odds(raw, [1, 4]) == pytest.approx(np.log(asked / (1 - asked)))


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_parts_add_up_to_the_log_odds_of_several_shapes(size):
    parts = random_parts(6, size=size)
    found = towards(parts, [4, 5])
    assert found.raw[:, 0] == pytest.approx(log_odds(parts.raw, [4, 5]), abs=1e-3)


def test_the_odds_of_the_others_are_the_opposite():
    parts = random_parts(6)
    assert towards(parts, [0, 3]).values == pytest.approx(-towards(parts, [1, 2, 4, 5]).values)


def test_what_pushes_all_shapes_alike_changes_no_odds():
    parts = random_parts(4)
    even = Contributions(np.full((50, 1, 4), 2.0), parts.base, ("op_0",))
    assert towards(even, [2, 3]).values == pytest.approx(0.0)


def test_shapes_that_the_model_never_saw_take_no_part():
    parts = random_parts(4)
    more_base = np.column_stack([parts.base, np.full(50, -np.inf)])
    more = Contributions(np.concatenate([parts.values, np.zeros((50, 4, 1))], axis=2), more_base, parts.features)
    assert towards(more, [3, 4]).values == pytest.approx(towards(parts, [3]).values)
    assert not towards(more, [4]).values.any()
    assert np.isneginf(towards(more, [4]).base).all()


def test_all_shapes_none_and_unknown_ones_are_refused():
    for shapes in ([], [0, 1, 2], [3], [-1]):
        with pytest.raises(ValueError, match="expected some, but not all, of 0 to 2"):
            towards(random_parts(3), shapes)
