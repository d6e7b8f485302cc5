import numpy as np
import pytest

from tasks.nodes.perona.graph import edge_size, graphs_of, least_predecessors, predecessors_of, slot_pairs
from tasks.nodes.perona.params import GraphParams, ModelParams


def all_normal(inputs, count=3):
    return predecessors_of(inputs, np.ones(len(inputs), dtype=bool), count)


def test_graphs_are_of_the_targets_asked_for(inputs_with):
    inputs = inputs_with([0] * 6, [0] * 6)
    graphs = graphs_of(inputs, np.array([5, 1]), all_normal(inputs))
    assert len(graphs) == 2
    assert graphs.predecessors.tolist() == [[2, 3, 4], [-1, -1, 0]]
    assert graphs.n_predecessors.tolist() == [3, 1]
    assert graphs.of(np.array([1])).targets.tolist() == [1]
    assert graphs.of(np.array([True, False])).targets.tolist() == [5]


def test_the_paper_has_no_graph_with_fewer_than_three_predecessors_and_we_have(inputs_with, ours, paper):
    inputs = inputs_with([0] * 6, [0] * 6)
    rows, predecessors = np.arange(6), all_normal(inputs)
    assert graphs_of(inputs, rows, predecessors, least=least_predecessors(paper)).targets.tolist() == [3, 4, 5]
    assert len(graphs_of(inputs, rows, predecessors, least=least_predecessors(ours))) == 6


def test_predecessors_of_other_executions_are_refused(inputs_with):
    inputs = inputs_with([0] * 6, [0] * 6)
    with pytest.raises(ValueError, match="expected one row for each of 6"):
        graphs_of(inputs, np.array([5, 1]), all_normal(inputs)[:2])


def test_slots_are_joined_forward_and_in_the_paper_to_themselves(ours, paper):
    forward = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    pairs = slot_pairs(ours)
    assert list(zip(pairs.earlier.tolist(), pairs.later.tolist(), strict=True)) == forward
    assert pairs.decay.tolist() == [0.5, 0.25, 0.125, 0.5, 0.25, 0.5]
    theirs = slot_pairs(paper)
    own = [(at, at) for at in range(4)]
    assert list(zip(theirs.earlier.tolist(), theirs.later.tolist(), strict=True)) == forward + own
    assert theirs.decay.tolist()[6:] == [1.0] * 4


def test_attributes_are_as_long_as_what_they_tell(inputs_with, ours, paper):
    inputs = inputs_with([0], [0], c=39)
    assert edge_size(inputs, ours) == 39 + 39 + 1 + 4
    assert edge_size(inputs, paper) == 83  # 85 in the paper's code, of which two never vary
    one_scale = ModelParams(graph=GraphParams(interval_scales_s=(60.0,)))
    assert edge_size(inputs_with([0], [0], c=0), one_scale) == 2
