"""What kind of executions a source holds: measured ones or simulated ones, never both."""

from tasks.errors import BadInput, NotFound
from tasks.warehouse.connection import Connection

KINDS = """
    SELECT count(*) FILTER (is_simulated), count(*) FILTER (NOT is_simulated)
    FROM nodes.executions WHERE source = $source
"""


def is_simulated_source(connection: Connection, source: str) -> bool:
    """Whether the executions of a source are simulated: all of them or none.

    Raises NotFound if it has no executions, BadInput if simulated ones stand among measured ones."""
    n_simulated, n_measured = connection.execute(KINDS, {"source": source}).fetchone() or (0, 0)
    if not n_simulated + n_measured:
        raise NotFound(f"source {source!r} has no executions of benchmarks; fill it with 'whorl nodes ingest PATH'")
    if n_simulated and n_measured:
        problem = f"{n_simulated:,} simulated executions stand among {n_measured:,} measured ones"
        fix = "ingest the simulated executions under a source of their own"
        raise BadInput(f"source {source!r}", problem, "one kind only, so that no figure mixes them", fix)
    return bool(n_simulated)
