"""Predecessors, edges and batches of graphs: by hand, and nothing of later executions in them."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from tasks.nodes.params import ModelParams
from tasks.nodes.perona.graph import Batches, edge_size, encode_intervals, graphs_of, predecessors_of, slot_pairs
from tests.nodes.perona.conftest import make_inputs


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


def test_predecessors_worked_out_by_hand():
    inputs = make_inputs([0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0])
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
def test_predecessors_are_those_found_one_by_one(count, seed):
    rng = np.random.default_rng(seed)
    inputs = make_inputs(rng.integers(0, 4, size=150), rng.integers(-1, 3, size=150))
    is_normal = rng.random(150) < 0.7
    assert np.array_equal(predecessors_of(inputs, is_normal, count), one_by_one(inputs, is_normal, count))


def all_normal(inputs, count=3):
    return predecessors_of(inputs, np.ones(len(inputs), dtype=bool), count)


def test_graphs_are_of_those_asked_for_that_have_all_predecessors():
    inputs = make_inputs([0] * 6, [0] * 6)
    graphs = graphs_of(inputs, np.array([5, 1, 3]), all_normal(inputs))
    assert graphs.targets.tolist() == [5, 3] and graphs.predecessors.tolist() == [[2, 3, 4], [0, 1, 2]]
    assert graphs.of(np.array([1])).targets.tolist() == graphs.of(np.array([False, True])).targets.tolist() == [3]
    assert len(graphs_of(inputs, np.arange(6), all_normal(inputs, 0))) == 6  # ours: alone


def test_slots_are_joined_forward_and_to_themselves():
    earlier, later, decay = slot_pairs(3)
    forward, own = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], [(at, at) for at in range(4)]
    assert list(zip(earlier.tolist(), later.tolist(), strict=True)) == forward + own
    assert decay.tolist() == [0.5, 0.25, 0.125, 0.5, 0.25, 0.5, 1, 1, 1, 1]


def gathered(inputs, params, targets=None, is_normal=None):
    """The batches of some targets, all executions being normal unless said."""
    normal = np.ones(len(inputs), dtype=bool) if is_normal is None else is_normal
    predecessors = predecessors_of(inputs, normal, params.n_predecessors)
    rows = np.arange(len(inputs)) if targets is None else np.asarray(targets)
    return Batches(graphs_of(inputs, rows, predecessors), params)


def same(one, other):
    """Whether two batches are equal bit for bit."""
    pairs = [(getattr(one, of.name), getattr(other, of.name)) for of in fields(one) if of.name != "n_graphs"]
    return all(a.dtype == b.dtype and a.shape == b.shape and torch.equal(_bits(a), _bits(b)) for a, b in pairs)


def _bits(tensor):
    return tensor.view(torch.int32) if tensor.dtype == torch.float32 else tensor


def test_a_graph_worked_out_by_hand(paper):
    inputs = make_inputs([0, 1, 0, 0, 0], [0] * 5, started_s=[0.0, 7.0, 60.0, 3600.0, 3660.0])
    batch = gathered(inputs, paper, targets=[4]).of(np.array([0]))
    rows = [0, 2, 3, 4]
    assert np.array_equal(batch.x.numpy(), inputs.x[rows]) and batch.n_graphs == 1
    assert batch.edge_index.tolist() == [[0, 0, 0, 1, 1, 2, 0, 1, 2, 3], [1, 2, 3, 2, 3, 3, 0, 1, 2, 3]]
    assert batch.edge_attr.shape == (10, edge_size(inputs, paper)) == (10, 2 + 2 + 1 + 4)
    for at, (before, after) in enumerate(batch.edge_index.T.tolist()):
        earlier, later = rows[before], rows[after]
        elapsed = np.array(inputs.started_s[later] - inputs.started_s[earlier])
        told = [*inputs.node_metrics[earlier], *inputs.node_metrics[later], 0.5 ** (after - before)]
        expected = [*told, *encode_intervals(elapsed, paper.graph.interval_scales_s)]
        assert batch.edge_attr[at].tolist() == pytest.approx(expected, abs=1e-6)
    assert edge_size(make_inputs([0], [0], c=39), paper) == 83  # 85 in the paper's code, of which two never vary


def test_graphs_of_a_batch_lie_in_the_order_asked_for(paper, ours):
    inputs = make_inputs([0] * 9, [0] * 9)
    batch = gathered(inputs, paper).of(np.array([5, 0, 5]))
    assert batch.n_graphs == 3 and np.array_equal(batch.x[3::4].numpy(), inputs.x[[8, 3, 8]])
    ends = batch.edge_index // 4
    assert torch.equal(ends[0], ends[1]) and batch.edge_index.shape == (2, 30)  # edges stay within a graph
    assert np.array_equal(gathered(inputs, ours).of(np.array([5, 0])).x.numpy(), inputs.x[[5, 0]])


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_later_executions_change_nothing_of_earlier_graphs(variant):
    params = ModelParams(variant=variant)
    rng = np.random.default_rng(2)
    nodes, types = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    whole = make_inputs(nodes, types)
    other = make_inputs(nodes, types, seed=9)
    changed = {
        name: np.concatenate([getattr(whole, name)[:40], getattr(other, name)[40:]])
        for name in ("x", "is_own", "node_metrics", "performance")
    }
    changed |= {"labels": np.append(whole.labels[:40], -whole.labels[40:])}
    early = gathered(whole, params, np.arange(40))
    numbers = np.arange(len(early))
    assert same(early.of(numbers), gathered(replace(whole, **changed), params, np.arange(40)).of(numbers))
    one, other = gathered(whole, params), gathered(replace(whole, **changed), params)
    assert not same(one.of(np.arange(len(one))), other.of(np.arange(len(one))))


DAY_S = 86_400.0


def test_intervals_have_the_values_worked_out_by_hand():
    # ln(1 + (e - 1)) = 1, so 2^-1; and two days at a scale of one day: 2^-ln 3 = exp(-0.69315 * 1.09861)
    found = encode_intervals(np.array([0.0, 60 * (np.e - 1), 2 * DAY_S]), [60.0, DAY_S])
    assert found[0].tolist() == [1.0, 1.0]
    assert found[1, 0] == pytest.approx(0.5, abs=1e-12)
    assert found[2, 1] == pytest.approx(0.466965, abs=1e-6)
