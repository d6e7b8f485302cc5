from dataclasses import replace

import numpy as np
import pytest

from tasks.nodes.perona.graph import predecessors_of


def one_by_one(inputs, is_normal, count):
    """The same by looking at every earlier row."""
    found = []
    for row in range(len(inputs)):
        earlier = [
            other
            for other in range(row)
            if is_normal[other]
            and inputs.type_of[row] != -1
            and (inputs.node_of[other], inputs.type_of[other]) == (inputs.node_of[row], inputs.type_of[row])
        ]
        latest = earlier[-count:] if count else []
        found.append([-1] * (count - len(latest)) + latest)
    return np.array(found, dtype=np.int64).reshape(len(inputs), count)


def test_predecessors_worked_out_by_hand(inputs_with):
    inputs = inputs_with([0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0])
    is_normal = np.array([True, False, True, True, True, True])
    assert predecessors_of(inputs, is_normal, 2).tolist() == [
        [-1, -1],
        [-1, 0],
        [-1, -1],  # the first of its node
        [-1, 0],  # row 1 is not normal
        [-1, -1],  # the first of its type
        [0, 3],
    ]


@pytest.mark.parametrize("count", [1, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_predecessors_are_those_found_one_by_one(inputs_with, count, seed):
    rng = np.random.default_rng(seed)
    inputs = inputs_with(rng.integers(0, 4, size=150), rng.integers(-1, 3, size=150))
    is_normal = rng.random(150) < 0.7
    assert np.array_equal(predecessors_of(inputs, is_normal, count), one_by_one(inputs, is_normal, count))


def test_later_rows_change_nothing(inputs_with):
    rng = np.random.default_rng(0)
    nodes, types, is_normal = rng.integers(0, 3, 80), rng.integers(0, 2, 80), rng.random(80) < 0.8
    nodes[:6], types[:6] = [0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1]
    whole = predecessors_of(inputs_with(nodes, types), is_normal, 3)
    cut = predecessors_of(inputs_with(nodes[:50], types[:50]), is_normal[:50], 3)
    other = predecessors_of(inputs_with(nodes, types), np.append(is_normal[:50], ~is_normal[50:]), 3)
    assert np.array_equal(whole[:50], cut)
    assert np.array_equal(whole[:50], other[:50])
    assert not np.array_equal(whole, other)


def test_an_execution_is_never_its_own_predecessor_nor_a_later_ones(inputs_with):
    found = predecessors_of(inputs_with([0] * 30, [0] * 30), np.ones(30, dtype=bool), 4)
    assert (found < np.arange(30)[:, None]).all()
    assert found[29].tolist() == [25, 26, 27, 28]


def test_executions_of_an_unknown_type_have_none(inputs_with):
    inputs = inputs_with([0, 0, 0, 0], [-1, -1, 0, -1])
    assert (predecessors_of(inputs, np.ones(4, dtype=bool), 2) == -1).all()


def test_where_starts_are_equal_the_order_of_the_history_holds(inputs_with):
    inputs = inputs_with([0, 0, 0], [0, 0, 0], started_s=[5.0, 5.0, 5.0])
    assert predecessors_of(inputs, np.ones(3, dtype=bool), 2).tolist() == [[-1, -1], [-1, 0], [0, 1]]


def test_nothing_normal_means_no_predecessors(inputs_with):
    assert (predecessors_of(inputs_with([0] * 5, [0] * 5), np.zeros(5, dtype=bool), 3) == -1).all()


def test_no_executions_have_no_predecessors(inputs_with):
    empty = inputs_with([], [])
    assert predecessors_of(empty, np.zeros(0, dtype=bool), 3).shape == (0, 3)


def test_a_hundred_thousand_executions_are_ordered_at_once(inputs_with):
    n, rng = 100_000, np.random.default_rng(0)
    few = inputs_with([0], [0])
    names = tuple(map(str, range(20)))
    many = replace(few, x=np.empty((n, 0), dtype=np.float32), types=names[:6], nodes=names)
    many = replace(many, node_of=rng.integers(0, 20, n), type_of=rng.integers(0, 6, n))
    found = predecessors_of(many, np.ones(n, dtype=bool), 3)
    own = np.flatnonzero((many.node_of == 7) & (many.type_of == 4))
    assert found[own[3:]].tolist() == np.column_stack([own[:-3], own[1:-2], own[2:-1]]).tolist()
