"""What `whorl jobs ingest --dry-run` shows: what each log would give."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flows.commands.file_results import FILE_COLUMNS
from flows.invocation import Invocation
from flows.shown import count
from flows.tables import Column, show_table
from tasks.quantities import share

if TYPE_CHECKING:
    from tasks.jobs.preview import Preview

COLUMNS = (
    *FILE_COLUMNS[:-1],
    Column("n_refused", "refused", count, kind="number"),
    Column("n_groups", "jobs", count, kind="number"),
    Column("recurring_share", "recur", share, kind="number"),
    Column("support_3_share", "3 or more", share, kind="number"),
    Column("support_20_share", "20 or more", share, kind="number"),
)
REASONS = (
    Column("n_rows", "refused", count, kind="number"),
    Column("places", "for instance in line"),
    Column("reason", "because"),
)


def show_previews(invocation: Invocation, previews: Sequence["Preview"], *, as_json: bool) -> None:
    """Print what the logs would give."""
    from flows.machine_output import plain, show_json

    rows = plain(previews)
    if as_json:
        show_json(rows)
        return
    show_table(rows, COLUMNS)
    for row in rows:
        if row["refused"]:
            print()
            if len(rows) > 1:
                print(f"{row['path']}:")
            show_table(row["refused"], REASONS)
    invocation.note("nothing was kept: this was a dry run")
