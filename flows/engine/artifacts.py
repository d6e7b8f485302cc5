"""What a flow shows: pages of the site, their sections as artifacts under stable keys, and alarms as events."""

import hashlib
import json
import logging
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pandas as pd
from prefect.artifacts import create_markdown_artifact
from prefect.events import emit_event

from flows.engine.servers import LOOPBACK
from flows.engine.shared_server import is_shared
from flows.engine.steps import step
from tasks.errors import BadInput, NotFound
from tasks.machine import read_server_file
from tasks.quantities import counted, number, plain, utc_text
from tasks.report.result import count, markdown_address, moment, records, table, table_markdown
from tasks.settings import load_settings
from tasks.warehouse.alarms import mark_announced, read_alarms
from tasks.warehouse.connection import fetch
from tasks.warehouse.landing import Batch, find_batch
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    from tasks.report.site import SiteParams

MAX_PART_CHARS = 60
SPREAD = ("low", "high", "deviation")  # of a figure over splits and fits, in keys after its own
HASH_CHARS = 8


def artifact_key(*parts: str) -> str:
    """The key of a report: its parts in small letters, digits and dashes, which is all that Prefect allows.

    A part that loses something on the way gets a hash, so that two sources never share a report."""
    return "-".join(_slug(part) for part in parts)


def _slug(part: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")[:MAX_PART_CHARS]
    if slug == part:
        return slug
    return f"{slug}-{hashlib.sha256(part.encode()).hexdigest()[:HASH_CHARS]}".strip("-")


def publish(key: str, markdown: str, description: str) -> None:
    """Show a report in Prefect's UI, under the run and among the artifacts."""
    create_markdown_artifact(markdown=markdown, key=key, description=description)


def joined(parts: Sequence[str]) -> str:
    """The parts of a report below each other; empty ones are left out."""
    return "\n\n".join(part for part in parts if part)


logger = logging.getLogger(__name__)
# What the artifact of a source shows, and which of its figures are drawn there.
SECTIONS = {
    "jobs": (
        "Jobs and their next runs",
        "Runtimes over time, from steady jobs to varying ones",
        "New runs against the median of their job's past",
        "What explains the variation inside jobs",
    ),
    "workloads": (
        "What ran when",
        "Latest identifications",
        "When a run changes",
        "What runs were taken for",
    ),
    "nodes": ("How good each node is", "Which nodes are degrading", "How repeatable each benchmark is"),
}
PICTURES = ("over-time", "against-median", "timeline", "series", "confusion", "ranking", "migration")


def site_address(warehouse: Warehouse) -> str:
    """Where a browser finds the pages of a home while it is served: as its server says, else by the settings."""
    server = read_server_file(warehouse.home)
    if server and server.pages:
        return server.pages
    return f"http://{LOOPBACK}:{load_settings().settings.whorl.reports_port}"


def page_line(warehouse: Warehouse, path: str) -> str:
    """Where a page is: on the site, and as a file; "" without one."""
    place, reports = Path(path), warehouse.home / "reports"
    if not path or not place.is_relative_to(reports):
        return f"On the worker's machine as a page: {plain(path)}" if path else ""
    address = markdown_address(site_address(warehouse), quote(place.relative_to(reports).as_posix()))
    return f"[The whole page]({address}), on the worker's machine {plain(path)}"


def site_params() -> "SiteParams":
    """What pages show, as the settings of this machine say."""
    from tasks.report.site import SiteParams

    settings = load_settings().settings
    return SiteParams(jobs=settings.jobs.report, workloads=settings.workloads.report)


SUMMARISED = "SELECT count(*) AS n FROM jobs.summaries WHERE source = $source"
_at_the_end = False


@contextmanager
def pages_at_the_end(warehouse: Warehouse) -> Iterator[None]:
    """A block whose flows write no page: after it all of the site is written, once."""
    from tasks.report.site import write_site

    global _at_the_end  # steps of flows within the block run in this process
    _at_the_end = True
    try:
        yield
    finally:
        _at_the_end = False
    write_site(warehouse, site_params())


@step
def write_report(warehouse: Warehouse, word: str, source: str, after: str) -> str:
    """Write the page of a source, those of its items and the index; returns the path of the first, "" while the source
    has nothing to show. after: what it rests on; a continued run with other data writes it again."""
    from tasks.report.site import page_name, reports, write_source  # two seconds that other steps need not pay

    if _at_the_end:
        return str(reports(warehouse) / page_name(word, source))
    logger.debug("writing %s %s after %s", word, source, after)
    try:
        if word == "jobs" and not fetch(warehouse, SUMMARISED, {"source": source})["n"].iloc[0]:
            from tasks.jobs import steps

            steps.summarise(warehouse, source, load_settings().settings.jobs.summary)
        return str(write_source(warehouse, word, source, site_params()))
    except NotFound as error:
        logger.info("no page yet: %s", error)
        return ""


def show(
    warehouse: Warehouse,
    word: str,
    source: str,
    about: str,
    title: str,
    *parts: str,
    path: str = "",
    sections: Sequence[str] = (),
) -> None:
    """Publish what a flow found about a source as an artifact: parts of its own, sections of the page, where that is.

    about: what the artifact is called within the source. sections: beginnings of their titles."""
    shown = ""
    if sections and path:
        from tasks.report.result import as_markdown
        from tasks.report.site import read_result

        result = read_result(warehouse, word, source, site_params())
        titles = [part.title for part in result.parts if part.title.startswith(tuple(sections))]
        names = [drawing.name for part in result.parts for drawing in part.figures if drawing.name.startswith(PICTURES)]
        drawn = () if is_shared() else names  # figures only where a UI shows them
        shown = as_markdown(result, only=titles or ["none"], pictures=drawn, site=site_address(warehouse))
    publish(artifact_key(word, source, about), joined([*parts, shown, page_line(warehouse, path)]) or title, title)


def publish_summary(warehouse: Warehouse, word: str, source: str, path: str) -> None:
    """Show what is known of a source as an artifact, with its main figures."""
    title = f"What is known of the {word} of source {source}"
    show(warehouse, word, source, "summary", title, path=path, sections=SECTIONS[word])


def reported(
    word: str,
    params: Any,
    answer: Mapping[str, Any],
    about: str,
    title: str,
    *parts: str,
    sections: Sequence[str] = (),
    is_summarised: bool = False,
    has_page: bool = True,
) -> dict[str, Any]:
    """A flow's answer, with the path of the page of its source, which is written anew; both are shown as an artifact.

    params: of the flow; about, parts, sections: as in `show`; is_summarised: the summary of the source is shown anew
    too; without has_page no page is written."""
    warehouse, source = params.warehouse, params.source
    path = write_report(warehouse, word, source, f"{answer}") if has_page else ""
    if is_summarised:
        publish_summary(warehouse, word, source, path)
    show(warehouse, word, source, about, title, *parts, path=path, sections=sections)
    return {**answer, "report": path}


def show_ingest(
    warehouse: Warehouse,
    word: str,
    source: str,
    what: str,
    ids: Sequence[str],
    tables: Mapping[str, str],
    refused: Sequence[BadInput],
    notice: str = "",
) -> list[Batch]:
    """Show what was read as an artifact; returns the batches with these ids. what: was read; tables: as ingest_part."""
    batches = [find_batch(warehouse.landing_folder, word, batch_id) for batch_id in ids]
    part = ingest_part(f"{what} of source {source}", batches, tables, refused, notice)
    show(warehouse, word, source, "ingest", f"{what} read into source {source}", part)
    return batches


def ingest_part(
    title: str, batches: Sequence[Batch], tables: Mapping[str, str], refused: Sequence[BadInput], notice: str = ""
) -> str:
    """What was read from each file, and which files were refused. tables: of the batches, and what a row of each is."""
    rows = [
        {"file": batch.origin.path, "reader": batch.origin.reader, "batch": batch.batch_id}
        | {name: batch.tables[name].n_rows if name in batch.tables else 0 for name in tables}
        | {"refused": batch.n_quarantined}
        for batch in batches
    ]
    counts = [(name, f"{what}s", count) for name, what in (*tables.items(), ("refused", "row in quarantine"))]
    first, what = next(iter(tables.items()))
    n_rows, n_refused = (sum(int(row[name]) for row in rows) for name in (first, "refused"))
    done = f"{counted(len(batches), 'file')}, {counted(n_rows, what)} and {counted(n_refused, 'row')} in quarantine."
    lines = "\n".join(["## Files that could not be read", *(f"- {plain(str(error))}" for error in refused)])
    shown = table(rows, ("file", "file"), ("reader", "reader"), *counts, ("batch", "batch"))
    files = table_markdown(shown) if rows else ""
    meanings = [
        f"- {plain(batch.origin.path)}: {plain('; '.join(batch.understood))}" for batch in batches if batch.understood
    ]
    understood = "\n".join(["## What columns were taken for", *meanings]) if meanings else ""
    return joined([f"# {plain(title)}", done, notice, files, understood, lines if refused else ""])


def alarms_part(title: str, warehouse: Warehouse, ids: Sequence[str], none: str) -> str:
    """The alarms that one watch raised, each with a link to its page, or that there was none. ids: of the alarms."""
    if not ids:
        return joined([f"# {plain(title)}", none])
    alarms = records(read_alarms(warehouse, ids))
    rows = [row | {"message.href": _page_of(row)} for row in alarms]
    shown = table(rows, ("message", "alarm"), ("kind", "kind"), ("raised_at", "raised (UTC)", moment))
    headline = f"{counted(len(alarms), 'new alarm')}."
    return joined([f"# {plain(title)}", headline, table_markdown(shown, site_address(warehouse))])


def _page_of(alarm: Mapping[str, Any]) -> str:
    """The address of the page of the job, workload or node that an alarm is of, relative to the site."""
    from tasks.report.intake import item_of
    from tasks.report.site import alarm_address

    return alarm_address(str(alarm["word"]), str(alarm["source"]), item_of(json.loads(alarm["evidence"])))


def figures_part(figures: Mapping[str, Any]) -> str:
    """All figures as a table, with how each spreads, and why some cannot be had (key.reason); "" without any."""
    alone = {}
    for key in figures:
        of, _, last = key.rpartition(".")
        is_beside = last == "reason" or (last in SPREAD and of in figures)
        if key != "report" and not is_beside:
            alone[key] = figure(figures, key)
    return facts_part(alone, "figure")


def facts_part(facts: Mapping[str, Any], what: str) -> str:
    """Names and values as a table; "" without any. what: the names are."""
    rows = [{"name": name, "value": str(value)} for name, value in facts.items()]
    return table_markdown(table(rows, ("name", what), ("value", "value"))) if rows else ""


def figure(figures: Mapping[str, Any], key: str) -> str:
    """A figure as it is written, with its interval or deviation; the reason where there is none."""
    value = figures[key]
    if value is None:
        return str(figures.get(f"{key}.reason", ""))
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    low, high, deviation = (figures.get(f"{key}.{name}") for name in SPREAD)
    if low is not None and high is not None:
        return f"{number(value)} ({number(low)} to {number(high)})"
    return f"{number(value)} ± {number(deviation)}" if deviation is not None else number(value)


MAX_EVENTS = 20  # a person reads twenty mails of one run, not five hundred


def announce(warehouse: Warehouse, ids: list[str]) -> int:
    """Emit one event for each alarm, the latest first; returns how many were emitted.

    After MAX_EVENTS of one run a last event says how many more there are: all of them stand in ops.alarms."""
    if not ids:
        return 0
    alarms = read_alarms(warehouse, ids)
    for alarm in records(alarms.head(MAX_EVENTS)):
        _emit(alarm | {"page": f"{site_address(warehouse)}/{_page_of(alarm)}"})
    more = len(alarms) - MAX_EVENTS
    if more > 0:
        _emit(_rest(alarms, more) | {"page": site_address(warehouse)})
    mark_announced(warehouse, ids)  # killed before this line, the next run emits the same events again
    return min(len(alarms), MAX_EVENTS + 1)


def _emit(alarm: dict[str, Any]) -> None:
    emit_event(
        event=f"whorl.{alarm['word']}.alarm",
        resource={
            "prefect.resource.id": f"whorl.alarm.{alarm['alarm_id']}",
            "prefect.resource.name": str(alarm["subject"]),
            "whorl.source": str(alarm["source"]),
            "whorl.kind": str(alarm["kind"]),
        },
        payload={
            **{key: alarm[key] for key in ("message", "source", "kind", "subject", "page")},
            "evidence": json.loads(alarm["evidence"]),
            "raised_at": utc_text(pd.Timestamp(alarm["raised_at"])),
        },
        id=uuid.uuid5(uuid.NAMESPACE_URL, f"whorl:alarm:{alarm['alarm_id']}"),  # emitted again, it is the same event
    )


def _rest(alarms: pd.DataFrame, more: int) -> dict[str, Any]:
    [first] = records(alarms.head(1))
    ids = ",".join(sorted(alarms["alarm_id"]))
    return first | {
        "alarm_id": f"more-{uuid.uuid5(uuid.NAMESPACE_URL, ids).hex[:16]}",
        "kind": "more",
        "subject": f"{more} more alarms",
        "message": f"{more} more alarms of source {first['source']}: see the table of the run, or ops.alarms",
        "evidence": json.dumps({"n_alarms": len(alarms)}),
    }
