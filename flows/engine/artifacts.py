"""What a flow shows: markdown artifacts, one stable key for each report, and the pages of the site."""

import hashlib
import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
from prefect.artifacts import create_markdown_artifact

from flows.engine.shared_server import is_shared
from flows.engine.steps import step
from tasks.errors import NotFound
from tasks.markdown import plain
from tasks.settings import load_settings
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    from tasks.report.site import SiteParams

MAX_PART_CHARS = 60
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


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A GitHub table; numbers with thousands separators, and nothing from a log is read as markup."""
    lines = [
        _line(header),
        _line(["---:" if _is_number_column(rows, i) else "---" for i in range(len(header))]),
    ]
    return "\n".join([*lines, *(_line([_cell(value) for value in row]) for row in rows)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else plain(str(value))


def _is_number_column(rows: Sequence[Sequence[object]], i: int) -> bool:
    return bool(rows) and all(isinstance(row[i], int | float) and not isinstance(row[i], bool) for row in rows)


logger = logging.getLogger(__name__)
MOST_ALARMS = 10_000
# What the artifact of a source shows, and which of its figures are drawn there.
SECTIONS = {
    "jobs": (
        "Jobs and their next runs",
        "Runtimes over time, from steady jobs to varying ones",
        "New runs against the median of their job's past",
        "Variation of each job in the past and after it",
        "Tokens of a run over time",
        "What explains the variation inside jobs",
    ),
    "workloads": (
        "What ran when",
        "Latest identifications",
        "When a run changes",
        "Phases side by side",
        "How alike two runs are",
        "What runs were taken for",
        "Where the Dickey–Fuller statistic is determined",
    ),
    "nodes": ("How good each node is", "Which nodes are degrading", "How repeatable each benchmark is"),
}
PICTURES = (
    *("over-time", "against-median", "cov-drift", "skyline", "causes", "timeline", "series", "phases", "alignment"),
    *("confusion", "adf", "ranking", "reruns", "plane"),
)
FINGERPRINTS = (
    "Executions that look degraded, and why",
    "By fingerprint, beside the plain ranking",
    "Fingerprints by benchmark, and their norms",
)


def site_params() -> "SiteParams":
    """What pages show, as the settings of this machine say."""
    from tasks.report.site import SiteParams

    settings = load_settings().settings
    return SiteParams(jobs=settings.jobs.report, workloads=settings.workloads.report)


@step
def write_report(warehouse: Warehouse, word: str, source: str, after: str) -> str:
    """Write the page of a source, those of its items and the index; returns the path of the first, "" while the source
    has nothing to show. after: what it rests on; a continued run with other data writes it again."""
    from tasks.report.site import write_source  # charts: two seconds that other steps need not pay

    logger.debug("writing %s %s after %s", word, source, after)
    try:
        if word == "jobs":
            _need_summary(warehouse, source)
        return str(write_source(warehouse, word, source, site_params()))
    except NotFound as error:
        logger.info("no page yet: %s", error)
        return ""


def _need_summary(warehouse: Warehouse, source: str) -> None:
    """Summarise a source of jobs that never was. Raises NotFound without runs."""
    from tasks.jobs import steps
    from tasks.jobs.summary import read_summary

    try:
        read_summary(warehouse, source)
    except NotFound:
        steps.summarise(warehouse, source, load_settings().settings.jobs.summary)


def report_part(path: str) -> str:
    """Where the page is, for an artifact; a browser opens no file from Prefect's UI, so it is no link."""
    return f"On the worker's machine as a page: {plain(path)}" if path else ""


def publish_summary(warehouse: Warehouse, word: str, source: str, path: str) -> None:
    """Show what is known of a source as an artifact, with its main figures."""
    text = joined([sections_part(warehouse, word, source, SECTIONS[word]), report_part(path)])
    publish(artifact_key(word, source, "summary"), text, f"What is known of the {word} of source {source}")


def sections_part(warehouse: Warehouse, word: str, source: str, sections: Sequence[str]) -> str:
    """The answer about a source and some of its sections, for an artifact; figures only where a UI shows them."""
    from tasks.report.result import as_markdown
    from tasks.report.site import result_of

    with reading(warehouse) as connection:
        result, _ = result_of(connection, word, source, site_params())
        return as_markdown(result, only=sections, pictures=() if is_shared() else PICTURES)


def confusion_part(confusion: pd.DataFrame, model_id: str) -> str:
    """What the held-out runs were taken for. confusion: workload, identified_as, n_runs."""
    from tasks.report.result import figure_markdown
    from tasks.report.workloads_measured import confusion_figure, confusion_of_rows

    named = {"workload": "actual", "identified_as": "predicted", "n_runs": "n"}
    return figure_markdown(confusion_figure(confusion_of_rows(confusion.rename(columns=named), f"model {model_id}")))


def timeline_part(rows: pd.DataFrame, odd: Sequence[str] = ()) -> str:
    """What ran when; "" without a run. rows: of read_identifications; odd: ids of runs that have raised an alarm."""
    from tasks.report.result import figure_markdown
    from tasks.report.workloads import timeline_figure

    return figure_markdown(timeline_figure(rows, odd)) if len(rows) else ""


def watched_part(warehouse: Warehouse, source: str, looked_at: pd.DataFrame, expected: Sequence[str]) -> str:
    """What ran when on the machines of these runs, as far as it was identified.

    looked_at: of read_identifications; expected: workloads that may run, empty: those without an alarm."""
    from tasks.workloads.identification_rows import read_identifications

    known = read_identifications(warehouse, source)
    rows = known[known["machine"].isin(looked_at["machine"])]
    alarms = read_alarms(warehouse, source=source, limit=MOST_ALARMS)
    odd = [*alarms.loc[alarms["word"] == "workloads", "subject"]]
    if expected:
        odd += list(rows.loc[~rows["workload"].isin(list(expected)), "run_id"])
    return timeline_part(rows, odd)
