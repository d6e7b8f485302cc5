"""`whorl nodes summary`: what a source holds: nodes, benchmarks, executions."""

from typing import Any

import typer

from flows.commands.nodes_options import one_node_source
from flows.commands.options import Json, Source
from flows.invocation import invocation_of
from flows.shown import as_command, count, counted, moment, text
from flows.tables import Column, show_table
from tasks.nodes.node_words import called
from tasks.quantities import duration

NODES = """
SELECT node, any_value(machine_type) AS machine_type, coalesce(bool_or(is_emulated), false) AS is_emulated,
    count(*) AS n_executions, count(*) FILTER (is_stressed) AS n_stressed,
    count(*) FILTER (is_contaminated) AS n_contaminated, count(*) FILTER (status <> 'completed') AS n_not_completed,
    min(started_at) AS first_at, max(started_at) AS last_at
FROM nodes.executions WHERE source = $source GROUP BY node ORDER BY node
"""
BENCHMARKS = """
WITH counted AS (
    SELECT execution_id, count(DISTINCT metric) AS n_metrics
    FROM nodes.metrics WHERE source = $source GROUP BY execution_id
)
SELECT benchmark || CASE WHEN coalesce(template_hash, '') = '' THEN '' ELSE '@' || template_hash[1:8] END AS benchmark,
    aspect, count(*) AS n_executions, count(DISTINCT node) AS n_nodes, median(duration_s) AS duration_s,
    max(counted.n_metrics) AS n_metrics
FROM nodes.executions LEFT JOIN counted USING (execution_id) WHERE source = $source
GROUP BY ALL ORDER BY aspect, benchmark
"""
NODE_COLUMNS = (
    Column("name", "node", kind="key"),
    Column("machine_type", "machine type", text, is_extra=True),
    Column("n_executions", "executions", count, kind="number"),
    Column("n_stressed", "stressed", count, kind="number"),
    Column("n_contaminated", "disturbed", count, kind="number", is_extra=True),
    Column("n_not_completed", "not completed", count, kind="number", is_extra=True),
    Column("last_at", "last (UTC)", moment, kind="name"),
)
BENCHMARK_COLUMNS = (
    Column("benchmark", "benchmark", kind="key"),
    Column("aspect", "aspect", kind="name"),
    Column("n_executions", "executions", count, kind="number"),
    Column("n_nodes", "nodes", count, kind="number"),
    Column("duration_s", "takes", duration, kind="number"),
    Column("n_metrics", "metrics", count, kind="number"),
)
MOST_NODES = 50  # of a table for a person


def summary(context: typer.Context, source: Source = None, as_json: Json = False) -> None:
    """Show the nodes and benchmarks of a source, and how often each ran.

    A benchmark with another template is another benchmark, and stands in a line of its own."""
    from flows.machine_output import records, show_json
    from tasks.warehouse.connection import fetch

    invocation = invocation_of(context)
    warehouse = invocation.warehouse
    chosen = one_node_source(warehouse, source)
    nodes = records(fetch(warehouse, NODES, {"source": chosen}))
    benchmarks = records(fetch(warehouse, BENCHMARKS, {"source": chosen}))
    if as_json:
        show_json({"source": chosen, "nodes": nodes, "benchmarks": benchmarks})
        return
    show_table([_shown(row) for row in nodes[:MOST_NODES]], NODE_COLUMNS)
    if len(nodes) > MOST_NODES:
        print(f"{len(nodes) - MOST_NODES:,} more nodes; --json shows all")
    print()
    show_table(benchmarks, BENCHMARK_COLUMNS)
    n_executions = sum(int(row["n_executions"]) for row in nodes)
    told = f"{counted(n_executions, 'execution')} on {counted(len(nodes), 'node')}"
    invocation.note(f"source {chosen}: {told}; next: {as_command('whorl', 'nodes', 'rank', '--source', chosen)}")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "name": called(row["node"], row["is_emulated"])}
