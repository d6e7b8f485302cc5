"""What the artifacts about telemetry and fingerprints say, as markdown."""

from collections.abc import Sequence

from flows.publish import joined, table
from flows.shown import counted
from flows.site_pages import report_part
from flows.workload_results import Fingerprinted
from tasks.markdown import plain
from tasks.quantities import number
from tasks.warehouse.connection import fetch
from tasks.warehouse.landing import Batch
from tasks.warehouse.place import Warehouse

MAX_ROWS = 50
PHASES = """
WITH cut AS (SELECT run_id, count(*) AS n_phases FROM workloads.run_phases WHERE source = $source GROUP BY run_id),
counted AS (
    SELECT run_id, count(DISTINCT counter) AS n_counters, count(*) AS n_counter_phases
    FROM workloads.phases WHERE source = $source GROUP BY run_id
)
SELECT coalesce(workload, '(no label)') AS workload, count(*) AS n_runs, median(n_phases) AS n_phases,
    median(n_counter_phases / n_counters) AS per_counter, median(n_counters)::BIGINT AS n_counters
FROM workloads.runs JOIN cut USING (run_id) JOIN counted USING (run_id) WHERE source = $source
GROUP BY ALL ORDER BY workload
"""


def telemetry_page(source: str, batches: Sequence[Batch], refused: Sequence[str]) -> str:
    """What was read from each file, and which files were refused."""
    n_runs = sum(batch.tables["runs"].n_rows for batch in batches)
    n_refused = sum(batch.n_quarantined for batch in batches)
    rows = [
        (
            batch.origin.path,
            batch.origin.reader,
            batch.tables["runs"].n_rows,
            batch.tables["counters"].n_rows,
            batch.n_quarantined,
            batch.batch_id,
        )
        for batch in batches[:MAX_ROWS]
    ]
    header = ("file", "reader", "runs", "counters of runs", "rows in quarantine", "batch")
    return joined(
        [
            f"# Telemetry of source {plain(source)}",
            f"{counted(len(batches), 'file')}, {counted(n_runs, 'run')} and {counted(n_refused, 'row')} in quarantine.",
            table(header, rows) + rest(len(batches)) if rows else "",
            "\n".join(["## Files that could not be read", *(f"- {plain(line)}" for line in refused)])
            if refused
            else "",
        ]
    )


def fingerprints_page(warehouse: Warehouse, source: str, found: Fingerprinted) -> str:
    """How many runs were cut, and the phases by workload."""
    rows = [
        (workload, int(n_runs), number(n_phases), number(per_counter), int(n_counters))
        for workload, n_runs, n_phases, per_counter, n_counters in fetch(
            warehouse, PHASES, {"source": source}
        ).itertuples(index=False)
    ]
    header = ("workload", "runs", "phases of the workload (median)", "phases of a counter (median)", "counters")
    return joined(
        [
            f"# The phases of the runs of source {plain(source)}",
            f"{counted(found['n_new'], 'run')} of {found['n_runs']:,} cut now, in {counted(found['n_parts'], 'part')}; "
            f"{found['n_done']:,} had their phases.",
            table(header, rows[:MAX_ROWS]) + rest(len(rows)) if rows else "",
            report_part(found["report"]),
        ]
    )


def rest(n_all: int) -> str:
    """How many rows a table leaves out."""
    more = n_all - MAX_ROWS
    return f"\n\n{more:,} more are in the warehouse." if more > 0 else ""
