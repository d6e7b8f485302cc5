"""Which benchmarks a node should run afresh for an aspect."""

from tasks.nodes.record.params import SHORT
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse


def benchmarks_of_aspect(warehouse: Warehouse, source: str, node: str, aspect: str) -> list[str]:
    """The benchmarks of an aspect that a node has run and that our recorder can run, by name."""
    found = fetch(
        warehouse,
        "SELECT DISTINCT benchmark FROM nodes.executions "
        "WHERE source = $source AND node = $node AND coalesce(aspect, 'unknown') = $aspect ORDER BY benchmark",
        {"source": source, "node": node, "aspect": aspect},
    )
    ours = {template.benchmark for template in SHORT}
    return [str(name) for name in found["benchmark"] if name in ours]
