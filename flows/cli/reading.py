"""What verbs that read files print: rows kept and refused, and why; with --dry-run what each file would give."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from flows.cli.invocation import Invocation, note_understood, progress_bar, raise_last, refuse_unreadable, run_flow
from flows.cli.output import plain, say, show_facts, show_json, show_table
from tasks.errors import NotAllRead
from tasks.quantities import counted, share
from tasks.report.result import Column, as_text, columns, count, records

if TYPE_CHECKING:
    from tasks.intake.files import Preview
    from tasks.warehouse.place import Warehouse

    Previewing = Callable[[Path, str, Any], Preview]

Begin = Callable[[str, Any], Sequence[str]]
MOST_REASONS = 5
MOST_FILES = 20  # that have a row each
FILES = """
    SELECT batch_id, origin AS path, reader, n_read, n_kept, n_quarantined
    FROM ops.files WHERE source = $source AND ($ids IS NULL OR list_contains($ids, batch_id)) ORDER BY origin
"""
REASONS = """
    SELECT reason, count(*) AS n_rows, min(place) AS first_place FROM ops.quarantine
    WHERE source = $source AND ($ids IS NULL OR list_contains($ids, batch_id))
    GROUP BY reason ORDER BY n_rows DESC, reason LIMIT $most
"""
MERGED_NAMES = """
    WITH names AS (
        SELECT group_key, name, count(*) AS n FROM jobs.runs WHERE source = $source AND name IS NOT NULL GROUP BY ALL
    ),
    jobs AS (
        SELECT count(*) AS n_names, min(name) AS example FROM names GROUP BY group_key
        HAVING count(*) > 1 AND sum(n) FILTER (n >= 3) >= 0.5 * sum(n)
    )
    SELECT coalesce(sum(n_names), 0) AS n_merged_names, count(*) AS n_merged_jobs, min(example) AS merged_example
    FROM jobs
"""  # whole names that recur, in jobs that hold several of them
SHARES = ("recurring_share", "support_3_share", "support_20_share")
FILE_COLUMNS = columns(
    Column("path", "file", lambda path: as_text(PurePosixPath(str(path)).name or path), kind="key"),
    ("reader", "format", "name"), ("n_read", "rows", count), ("n_kept", "kept", count),
    ("n_quarantined", "refused", count),
)  # fmt: skip
REASON_COLUMNS = columns(("n_rows", "refused", count), ("first_place", "first in line", count), ("reason", "because"))


@contextmanager
def ingesting(
    call: Invocation,
    flow: str,
    files: Sequence[str],
    intake: Any,
    begin: Begin,
    preview: "Previewing",
    **parameters: Any,
) -> Iterator[dict[str, Any] | None]:
    """What a flow gives that reads files; where it could not read all of them, what says so is raised after the block.

    None with dry_run, which says what each file would give. begin, preview: of one file. parameters: of the flow.
    Raises BadInput, before Prefect is started, if none of the files can be read."""
    if parameters.pop("dry_run"):
        home, most = call.warehouse.home, intake.read.limits.max_refused_share
        look(call, files, lambda path: preview(home, path, intake), most)
        yield None
        return
    understood = list(refuse_unreadable(files, lambda path: begin(path, intake), call.note))
    failed = None
    try:
        ingested = run_flow(call, flow, source=intake.source, **parameters)
    except NotAllRead as error:
        ingested, failed = error.result, error
    with suppress(GeneratorExit):  # of a verb that has told its JSON
        yield {**ingested, "not_loaded": failed.refused if failed else [], "understood": understood}
    if failed:
        raise failed


def totals(warehouse: "Warehouse", sql: str, source: str) -> dict[str, int]:
    """Counts of all that a source has. sql: of one row; without a warehouse every count is 0."""
    from tasks.warehouse.connection import fetch

    if not warehouse.file.exists():
        return dict.fromkeys(re.findall(r"AS (n_\w+)", sql), 0)
    [row] = fetch(warehouse, sql, {"source": source}).to_dict("records")
    return {str(key): int(value) for key, value in row.items()}


def read_results(warehouse: "Warehouse", source: str, batches: list[str] | None) -> dict[str, Any]:
    """Files and most frequent reasons of refusal. batches: only these files; None for all of the source."""
    from tasks.warehouse.connection import fetch

    if not warehouse.file.exists():  # there was nothing to read
        return {"source": source, "files": [], "refused": []}
    files = records(fetch(warehouse, FILES, {"source": source, "ids": batches}))
    reasons = records(fetch(warehouse, REASONS, {"source": source, "ids": batches, "most": MOST_REASONS}))
    return {"source": source, "files": files, "refused": reasons}


def file_results(warehouse: "Warehouse", source: str, batches: list[str] | None = None) -> dict[str, Any]:
    """Files and most frequent reasons of refusal, and how much of the whole source recurs.

    batches: only these files; by default all of the source."""
    from tasks.jobs.summary import read_summary
    from tasks.warehouse.connection import fetch, reading

    with reading(warehouse):  # kept open for all three: opening it costs 20 ms of CPU
        results, totals = read_results(warehouse, source, batches), read_summary(warehouse, source)
        [merged] = records(fetch(warehouse, MERGED_NAMES, {"source": source}))
    kept = ("n_runs", "n_groups", *SHARES)
    return results | {key: totals[key] for key in kept} | {"is_key_decided": bool(totals["key"])} | merged


def show_read(result: dict[str, Any]) -> None:
    """Print files, those of one format together where they are many, and reasons of refusal."""
    if files := result["files"]:
        show_table(files if len(files) <= MOST_FILES else _by_reader(files), FILE_COLUMNS)
    if result["refused"]:
        print()
        show_table(result["refused"], REASON_COLUMNS)


def _by_reader(files: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows: dict[str, Counter[str]] = {}
    for file in files:
        counts = {name: file[name] for name in ("n_read", "n_kept", "n_quarantined")}
        rows.setdefault(file["reader"], Counter()).update({**counts, "files": 1})
    return [{"path": counted(row["files"], "file"), "reader": reader, **row} for reader, row in rows.items()]


def show_files(result: dict[str, Any]) -> None:
    """Print files, reasons of refusal, what a job is and why, and how much of the source recurs."""
    show_read(result)
    print()
    show_facts({**recurrence_facts(result), **key_facts(result)})
    if (n_merged := result["n_merged_names"]) and not result["is_key_decided"]:  # else whole names were compared
        say(
            f"{count(n_merged)} names that recur as they stand, such as {result['merged_example']}, are taken for "
            f"{counted(result['n_merged_jobs'], 'job')}, as numbers and dates are no part of a name; "
            "--group-by user,full_name keeps them apart"
        )


def recurrence_facts(totals: dict[str, Any]) -> dict[str, str]:
    """How much of a source recurs, in words; totals: a row of jobs.summaries."""
    twice, three, twenty = (share(totals[key]) for key in SHARES)
    return {
        "source": as_text(totals["source"]),
        "runs": f"{count(totals['n_runs'])} of {counted(totals['n_groups'], 'job')}",
        "recurring": f"{twice} of the runs are of a job that ran at least twice, {three} at least 3 times, "
        f"{twenty} at least 20 times",
    }


def key_facts(grouping: Mapping[str, Any]) -> dict[str, str]:
    """What a job is and why, and what would predict better by now; grouping: `key` and `better`, which may be empty."""
    return {words: grouping[key] for words, key in (("a job", "key"), ("better", "better")) if grouping[key]}


PREVIEWED = (*FILE_COLUMNS[:-1], Column("n_refused", "refused", count, kind="number"))
JOB_COLUMNS = columns(
    ("n_groups", "jobs", count), ("recurring_share", "recur", share), ("support_3_share", "3 or more", share),
    ("support_20_share", "20 or more", share),
)  # fmt: skip
PREVIEW_REASONS = columns(("n_rows", "refused", count), ("places", "for instance in line"), ("reason", "because"))


def look(call: Invocation, files: Sequence[str], preview: "Callable[[str], Preview]", max_refused_share: float) -> None:
    """Print what the files would give; keeps nothing. Raises BadInput at the end if one of them would not be loaded."""
    from tasks.errors import BadInput

    previews, refused = [], []
    with progress_bar(call):
        for path in files:
            try:
                file_preview = preview(path)
                previews.append(file_preview)
                file_preview.require(max_refused_share)
            except BadInput as error:
                refused.append(error)
    rows = plain(previews)
    if call.as_json:
        show_json({"files": rows})
    elif rows:
        _show(call, rows)
    raise_last(refused)


def _show(call: Invocation, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        note_understood(print, row["path"], row["understood"])
    of_jobs = [column for column in JOB_COLUMNS if column.key in rows[0]]
    show_table(rows, (*PREVIEWED, *of_jobs))
    for row in rows:
        if row["refused"]:
            print()
            if len(rows) > 1:
                print(f"{row['path']}:")
            show_table(row["refused"], PREVIEW_REASONS)
    call.note("nothing was kept: this was a dry run")


def alarm_rows(warehouse: "Warehouse", ids: list[str]) -> list[dict[str, Any]]:
    """These alarms, each with its evidence."""
    from tasks.warehouse.alarms import read_alarms

    rows = records(read_alarms(warehouse, ids))
    return [{**row, "evidence": json.loads(row["evidence"])} for row in rows]
