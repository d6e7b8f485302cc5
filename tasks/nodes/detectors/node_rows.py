"""The executions of one node after another."""

import numpy as np

from tasks.nodes.type_tables import Ints


def rows_of_nodes(nodes: Ints) -> list[Ints]:
    """The rows of each node that has any, in their order. nodes: (n,) the node of each row."""
    if not len(nodes):
        return []
    order = np.argsort(nodes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(nodes[order])) + 1)
