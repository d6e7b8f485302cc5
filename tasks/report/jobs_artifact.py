"""The summary of a job log as markdown with its figures inside: what Prefect shows under a run."""

import re

import pandas as pd

from tasks.jobs.params import (
    ReportParams,
    SummaryParams,
)
from tasks.quantities import duration, ratio, share
from tasks.report.images import data_uri
from tasks.report.jobs_data import JobsData, fetch_jobs_data
from tasks.report.jobs_figures import figures_as_png, figures_of
from tasks.report.style import plain_label
from tasks.warehouse.place import Warehouse

MAX_PNG_BYTES = 100_000  # Prefect's page grows slow above
NAME_CHARS = 80
SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~])")


def summary_artifact(warehouse: Warehouse, source: str, params: ReportParams) -> str:
    """The markdown for one source, with its figures as data URIs; pure text, for the flow to publish.

    Raises NotFound if the source has no summary yet, BadInput if it mixes simulated with measured runs."""
    return summary_markdown(fetch_jobs_data(warehouse, source, params))


def summary_markdown(data: JobsData) -> str:
    """Totals, the jobs that vary most and cost most, and the figures, each with its n and the data version."""
    asked, pictures = SummaryParams.model_validate(data.summary["parameters"]), figures_as_png(data)
    parts = [f"# Job runtimes: {_plain(data.source)}", _totals(data)]
    if data.summary["is_simulated"]:
        parts.append("**Simulated:** these runs were drawn, not measured.")
    if data.summary["n_supported_groups"]:
        parts += [
            f"## Which jobs vary most\n\nOf the jobs with at least {data.ranked_from} finished runs.",
            _table(data.by_variation),
            f"## Which jobs cost the most time\n\nOf the jobs with at least {asked.min_support} finished runs.",
            _table(data.by_waiting),
        ]
    for figure in figures_of(data):
        parts.append(f"## {figure.title}\n\n{figure.words}")
        png = pictures.get(figure.name)
        if png is not None and len(png) < MAX_PNG_BYTES:
            parts.append(f"![{figure.title}]({data_uri(png)})")
        parts.append(f"*{_escaped(figure.evidence)} · data version {data.summary['data_version']}*")
    return "\n\n".join(parts) + "\n"


def _totals(data: JobsData) -> str:
    totals = data.summary
    return (
        f"{totals['n_runs']:,} runs of {totals['n_groups']:,} jobs, {totals['n_finished']:,} of them finished. "
        f"{share(totals['recurring_share'])} of the runs belong to a job that ran at least twice, "
        f"{share(totals['support_3_share'])} at least 3 times, {share(totals['support_20_share'])} at least 20 times. "
        f"Median COV of the {totals['n_supported_groups']:,} jobs with enough runs: {ratio(totals['median_cov'])}; "
        f"{share(totals['slow_share'])} of their new runs were slow; time lost to variation: "
        f"{duration(totals['excess_s'])}. {data.reasons['n'].sum():,} rows are in quarantine."
    )


def _table(groups: pd.DataFrame) -> str:
    lines = ["| job | runs | median | 95 % | COV | time lost |", "|---|---:|---:|---:|---:|---:|"]
    for group in groups.to_dict("records"):
        cells = [
            _plain(group["group_key"]),
            f"{group['n_finished']:,}",
            duration(group["median_s"]),
            duration(group["p95_s"]),
            ratio(group["cov"]),
            duration(group["excess_s"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A name from a log as text: nothing in it is read as markdown or HTML."""
    return _escaped(plain_label(text, NAME_CHARS))


def _escaped(text: str) -> str:
    escaped = SPECIAL.sub(r"\\\1", text)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
