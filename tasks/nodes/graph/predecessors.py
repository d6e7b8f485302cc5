"""Which earlier executions an execution is seen beside."""

import numpy as np

from tasks.nodes.graph.graph_set import ABSENT
from tasks.nodes.graph.inputs import NO_TYPE, Bools, Inputs, Ints


def predecessors_of(inputs: Inputs, is_normal: Bools, count: int) -> Ints:
    """Rows of the latest `count` earlier executions of the same node and type that are normal: (n, count).

    Oldest first; -1 on the left where there are fewer. Earlier means an earlier row, so the order of the history holds
    where starts are equal. An execution of a type that training did not have has none. is_normal: (n,). No loop over
    executions: they are ordered by node and type, and the normal ones before each are counted."""
    group = inputs.node_of * (len(inputs.types) + 1) + inputs.type_of
    order = np.argsort(group, kind="stable")
    normal = is_normal[order]
    n_before: Ints = np.cumsum(normal) - normal  # normal ones before each row, of all groups so far
    is_first = np.diff(group[order], prepend=-2) != 0
    n_before_group = np.maximum.accumulate(np.where(is_first, n_before, 0))
    back = np.arange(count, 0, -1)
    place = n_before[:, None] - back  # among all normal ones, in this order
    is_there = (place >= n_before_group[:, None]) & (inputs.type_of[order] != NO_TYPE)[:, None]
    normal_rows = np.append(order[normal], ABSENT)
    found = np.full((len(order), count), ABSENT, dtype=np.int64)
    found[order] = np.where(is_there, normal_rows[np.where(is_there, place, -1)], ABSENT)
    return found
