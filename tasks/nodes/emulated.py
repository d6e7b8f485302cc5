"""Which nodes are emulated: made of limits on a larger machine, and called so wherever they are shown."""

from tasks.nodes.history import History


def emulated_nodes(history: History) -> frozenset[str]:
    """The nodes of which some execution says that they are emulated."""
    is_emulated = history.executions["is_emulated"].astype("boolean").fillna(False).astype(bool)
    return frozenset(str(node) for node in history.executions.loc[is_emulated, "node"].unique())
