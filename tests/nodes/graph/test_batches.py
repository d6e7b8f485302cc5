from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from tasks.nodes.perona import graph as batches
from tasks.nodes.perona.graph import Batches, encode_intervals, graphs_of, predecessors_of
from tasks.nodes.perona.params import GraphParams, ModelParams


def gathered(inputs, params, targets=None, is_normal=None):
    """The batches of some targets, all executions being normal unless said."""
    normal = np.ones(len(inputs), dtype=bool) if is_normal is None else is_normal
    predecessors = predecessors_of(inputs, normal, params.graph.predecessors)
    rows = np.arange(len(inputs)) if targets is None else np.asarray(targets)
    return Batches(graphs_of(inputs, rows, predecessors), params)


def same(one, other):
    """Whether two batches are equal bit for bit."""
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]
    return all(a.dtype == b.dtype and a.shape == b.shape and torch.equal(_bits(a), _bits(b)) for a, b in pairs)


def _bits(tensor):
    return tensor.view(torch.int32) if tensor.dtype == torch.float32 else tensor


def test_a_graph_worked_out_by_hand(inputs_with, ours):
    inputs = inputs_with([0, 1, 0, 0], [0, 0, 0, 0], started_s=[0.0, 7.0, 60.0, 3600.0])
    batch = gathered(inputs, ours, targets=[3]).of(np.array([0]))
    assert batch.slot.tolist() == [1, 2, 3]  # slot 0 is absent
    assert batch.is_target.tolist() == [False, False, True]
    assert batch.n_predecessors.tolist() == [0, 1, 2]
    assert batch.edge_index.tolist() == [[0, 0, 1], [1, 2, 2]]
    assert np.array_equal(batch.x.numpy(), inputs.x[[0, 2, 3]])
    earlier_s, later_s, steps = [0, 0, 60], [60, 3600, 3600], [1, 2, 1]
    for at, later in enumerate([2, 3, 3]):
        elapsed = np.array(later_s[at] - earlier_s[at], dtype=float)
        codes = encode_intervals(elapsed, ours.graph.interval_scales_s)
        told = [*inputs.before[later], *inputs.during[later], 0.5 ** steps[at], *codes]
        assert batch.edge_attr[at].tolist() == pytest.approx(told, abs=1e-6)


def test_the_paper_tells_what_both_ends_did(inputs_with, paper):
    inputs = inputs_with([0] * 4, [0] * 4)
    batch = gathered(inputs, paper, targets=[3]).of(np.array([0]))
    assert batch.edge_index.shape == (2, 10)
    assert batch.edge_attr[0, :4].tolist() == pytest.approx([*inputs.during[0], *inputs.during[1]])
    assert batch.edge_attr[9, :5].tolist() == pytest.approx([*inputs.during[3], *inputs.during[3], 1.0])
    assert batch.edge_attr[9, 5:].tolist() == [1.0] * 4  # no time at all lies between an execution and itself


def test_graphs_of_a_batch_lie_in_the_order_asked_for(inputs_with, ours):
    inputs = inputs_with([0] * 8, [0] * 8)
    batch = gathered(inputs, ours).of(np.array([5, 0, 5]))
    assert batch.n_graphs == 3
    assert batch.graph.tolist() == [0, 0, 0, 0, 1, 2, 2, 2, 2]
    assert np.array_equal(batch.x[batch.is_target].numpy(), inputs.x[[5, 0, 5]])
    ends = batch.graph[batch.edge_index]
    assert torch.equal(ends[0], ends[1])  # edges stay within a graph
    assert batch.edge_index.shape == (2, 12)


def test_labels_are_nan_where_nobody_says(inputs_with, ours):
    inputs = inputs_with([0, 1, 2], [0, 0, 0])
    labels = gathered(inputs, ours).of(np.arange(3)).label
    assert inputs.labels.tolist() == [-1, 0, 1]
    assert torch.isnan(labels).tolist() == [True, False, False]
    assert labels[1:].tolist() == [0.0, 1.0]


def test_a_batch_of_executions_without_history_has_no_edges(inputs_with, ours):
    batch = gathered(inputs_with([0, 1, 2], [0, 0, 0]), ours).of(np.arange(3))
    assert batch.edge_index.shape == (2, 0)
    assert batch.edge_attr.shape == (0, 2 + 2 + 1 + 4)
    assert batch.n_predecessors.tolist() == [0, 0, 0]


def test_without_node_metrics_and_evidence_edges_tell_the_time_alone(inputs_with, ours):
    made = gathered(inputs_with([0] * 4, [0] * 4, c=0, v=0), ours)
    batch = made.of(np.array([3]))
    assert made.edge_size == batch.edge_attr.shape[1] == 5
    assert made.n_evidence == batch.evidence.shape[1] == 0


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_later_executions_change_nothing_of_earlier_graphs(inputs_with, variant):
    params = ModelParams(variant=variant)
    rng = np.random.default_rng(2)
    nodes, types = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    whole = inputs_with(nodes, types)
    other = inputs_with(nodes, types, seed=9)
    changed = {
        name: np.concatenate([getattr(whole, name)[:40], getattr(other, name)[40:]])
        for name in ("x", "is_own", "before", "during", "evidence", "performance")
    }
    changed |= {"labels": np.append(whole.labels[:40], -whole.labels[40:])}
    numbers = np.arange(40)
    before = gathered(whole, params).of(numbers)
    assert same(before, gathered(replace(whole, **changed), params).of(numbers))
    everything = np.arange(60)
    assert not same(gathered(whole, params).of(everything), gathered(replace(whole, **changed), params).of(everything))


def test_intervals_do_not_depend_on_how_many_are_worked_out_at_once(inputs_with, ours, monkeypatch):
    inputs = inputs_with([0] * 20, [0] * 20, started_s=np.random.default_rng(0).random(20).cumsum() * 1e5)
    at_once = gathered(inputs, ours).of(np.arange(20))
    monkeypatch.setattr(batches, "BLOCK", 3)
    assert same(at_once, gathered(inputs, ours).of(np.arange(20)))


def test_graphs_of_another_length_are_refused(inputs_with, ours):
    five = ModelParams(graph=GraphParams(predecessors=5))
    inputs = inputs_with([0] * 4, [0] * 4)
    graphs = graphs_of(inputs, np.arange(4), predecessors_of(inputs, np.ones(4, dtype=bool), 5))
    assert Batches(graphs, five).of(np.arange(4)).x.shape == (1 + 2 + 3 + 4, 3)
    with pytest.raises(ValueError, match="expected 3, as the parameters say"):
        Batches(graphs, ours)


def test_inputs_that_may_not_be_written_are_left_as_they_are(inputs_with, ours, recwarn):
    inputs = inputs_with([0] * 4, [0] * 4)
    inputs = replace(inputs, x=inputs.x.copy())
    inputs.x.setflags(write=False)
    kept = inputs.x.copy()
    gathered(inputs, ours).of(np.arange(4)).x.add_(1.0)
    assert np.array_equal(inputs.x, kept)
    assert not recwarn.list  # torch warns of arrays that it cannot keep from being written


def test_a_batch_moves_as_a_whole(inputs_with, ours):
    batch = gathered(inputs_with([0] * 4, [0] * 4), ours).of(np.arange(4))
    assert same(batch, batch.to("cpu"))
    assert batch.to("meta").edge_attr.device.type == "meta"
