"""What the artifacts of the flows about jobs say, as markdown."""

import json
from collections.abc import Sequence

import pandas as pd

from flows.publish import table
from flows.shown import counted
from tasks.markdown import plain
from tasks.quantities import duration
from tasks.warehouse.landing import Batch

MAX_ROWS = 50
MINUTE_CHARS = 16  # 2026-01-31T12:00


def ingest_page(source: str, batches: Sequence[Batch], refused: Sequence[str]) -> str:
    """What was read from each file, and which files were refused."""
    n_rows = sum(batch.tables["runs"].n_rows for batch in batches)
    n_refused = sum(batch.n_quarantined for batch in batches)
    rows = [
        (
            batch.origin.path,
            batch.origin.reader,
            batch.tables["runs"].n_rows,
            batch.n_quarantined,
            batch.batch_id,
        )
        for batch in batches[:MAX_ROWS]
    ]
    parts = [
        f"# Job logs of source {plain(source)}",
        f"{counted(len(batches), 'file')}, {counted(n_rows, 'run')} and {counted(n_refused, 'row')} in quarantine.",
        table(("file", "reader", "runs", "quarantine", "batch"), rows) + _rest(len(batches)) if rows else "",
        "\n".join(["## Files that could not be read", *(f"- {plain(line)}" for line in refused)]) if refused else "",
    ]
    return "\n\n".join(part for part in parts if part)


def alarms_page(source: str, alarms: pd.DataFrame) -> str:
    """The alarms that one watch raised, or that there was none."""
    title = f"# Slow runs, stopped and drifting jobs of source {plain(source)}"
    if alarms.empty:
        return f"{title}\n\nNo run was slow, and no job stopped or drifted, that had not been reported before."
    rows = []
    for kind, message, evidence in alarms[["kind", "message", "evidence"]].head(MAX_ROWS).itertuples(index=False):
        found = json.loads(evidence)
        as_of = found.get("ended_at") or found.get("known_at") or found.get("overdue_at") or found.get("until_at") or ""
        took_s = found.get("elapsed_s", found.get("gap_s", found.get("median_after_s")))
        rows.append((message, kind, str(as_of)[:MINUTE_CHARS].replace("T", " "), duration(took_s)))
    body = table(("alarm", "kind", "as of (UTC)", "runtime or gap"), rows)
    return f"{title}\n\n{counted(len(alarms), 'new alarm')}.\n\n{body}{_rest(len(alarms))}"


def _rest(n_all: int) -> str:
    more = n_all - MAX_ROWS
    return f"\n\n{more:,} more are in the warehouse." if more > 0 else ""
