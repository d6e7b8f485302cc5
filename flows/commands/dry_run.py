"""What `whorl <word> ingest --dry-run` shows: what each file would give, and whether it would be loaded."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flows.commands.file_results import FILE_COLUMNS
from flows.invocation import Invocation
from flows.shown import clean, count
from flows.tables import Column, show_table
from tasks.quantities import share

if TYPE_CHECKING:
    from tasks.tally import Preview

COLUMNS = (*FILE_COLUMNS[:-1], Column("n_refused", "refused", count, kind="number"))
JOB_COLUMNS = (
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


def look(
    invocation: Invocation,
    files: Sequence[str],
    preview: "Callable[[str], Preview]",
    max_refused_share: float,
    *,
    as_json: bool,
) -> None:
    """Print what the files would give; keeps nothing. Raises BadInput at the end if one of them would not be loaded."""
    from flows.progress_bar import progress_bar
    from tasks.errors import BadInput

    previews, refused = [], []
    with progress_bar(invocation):
        for path in files:
            try:
                found = preview(path)
                previews.append(found)
                found.require(max_refused_share)
            except BadInput as error:
                refused.append(error)
    if previews or as_json:
        _show(invocation, previews, as_json=as_json)
    for problem in refused[:-1]:
        print(f"whorl: {clean(str(problem))}", file=sys.stderr)
    if refused:
        raise refused[-1]


def _show(invocation: Invocation, previews: Sequence["Preview"], *, as_json: bool) -> None:
    from flows.machine_output import plain, show_json

    rows = plain(previews)
    if as_json:
        show_json({"files": rows})
        return
    of_jobs = [column for column in JOB_COLUMNS if rows and column.key in rows[0]]
    show_table(rows, (*COLUMNS, *of_jobs))
    for row in rows:
        if row["refused"]:
            print()
            if len(rows) > 1:
                print(f"{row['path']}:")
            show_table(row["refused"], REASONS)
    invocation.note("nothing was kept: this was a dry run")
