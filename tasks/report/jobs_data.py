"""What the page about jobs shows, fetched over one connection so that all of it is of one moment."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasks.jobs.explain.variance import VarianceShares
from tasks.jobs.params import (
    ReportParams,
    SummaryParams,
)
from tasks.jobs.summary import (
    fetch_groups,
    fetch_summary,
    refuse_mixture,
)
from tasks.report.against_median import MedianComparison, fetch_against_median
from tasks.report.cov_drift import CovComparison, fetch_cov_drift
from tasks.report.runtimes_over_time import GOOD_SUPPORT, JobLines, fetch_lines
from tasks.report.skyline import Skyline, fetch_skyline
from tasks.report.variance_shares import fetch_variance
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse

FILES = """
    SELECT origin, reader, n_read, n_kept, n_quarantined
    FROM ops.files WHERE word = 'jobs' AND source = $source ORDER BY ordered_at, batch_id
"""
# Reasons that differ only in numbers and ids are one reason.
REASONS = """
WITH refused AS (
    SELECT
        regexp_replace(
            regexp_replace(reason, '^run id .* stands again in row \\d+', 'a run id stands again in another row'),
            '\\d+', '…', 'g'
        ) AS reason,
        origin, place
    FROM ops.quarantine JOIN ops.files USING (batch_id, word, source)
    WHERE word = 'jobs' AND source = $source
),
final AS (
    SELECT reason, count(*) AS n, arg_min(origin, (origin, place)) AS origin, arg_min(place, (origin, place)) AS place
    FROM refused GROUP BY reason
)
SELECT * FROM final ORDER BY n DESC, reason
"""
ALARMS = """
    SELECT message, coalesce(
        json_extract_string(evidence, 'ended_at'),
        json_extract_string(evidence, 'known_at'),
        json_extract_string(evidence, 'until_at')
    )::TIMESTAMP AS ended_at
    FROM ops.alarms WHERE word = 'jobs' AND source = $source ORDER BY ended_at DESC, alarm_id
"""


@dataclass(frozen=True)
class JobsData:
    """Totals, tables and figures of one source; a figure is None where the log cannot fill it.

    summary: the row of jobs.summaries; by_*: rows of jobs.groups; files, reasons, alarms: of ops.
    ranked_from: finished runs that a job needs for the table by variation."""

    source: str
    summary: dict[str, Any]
    ranked_from: int
    by_variation: pd.DataFrame
    by_waiting: pd.DataFrame
    by_support: pd.DataFrame
    files: pd.DataFrame
    reasons: pd.DataFrame
    alarms: pd.DataFrame
    lines: JobLines | None
    medians: MedianComparison | None
    covs: CovComparison | None
    skyline: Skyline | None
    variance: VarianceShares | None


def fetch_jobs_data(warehouse: Warehouse, source: str, params: ReportParams) -> JobsData:
    """Everything the page needs; at most params.max_points rows a figure leave the database.

    Raises NotFound if the source has no summary, BadInput if it mixes simulated with measured runs."""
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        summary = fetch_summary(connection, source)
        asked = SummaryParams.model_validate(summary["parameters"])
        n_good = connection.execute(
            "SELECT count(*) FROM jobs.groups WHERE source = $source AND n_finished >= $good",
            {"source": source, "good": GOOD_SUPPORT},
        ).fetchone()
        # a COV of three runs is mostly luck: rank well supported jobs where there are enough of them
        ranked_from = GOOD_SUPPORT if n_good and n_good[0] >= params.n_rows else asked.min_support
        return JobsData(
            source=source,
            summary=summary,
            ranked_from=ranked_from,
            by_variation=fetch_groups(connection, source, order="cov", min_support=ranked_from, limit=params.n_rows),
            by_waiting=fetch_groups(
                connection, source, order="waiting", min_support=asked.min_support, limit=params.n_rows
            ),
            by_support=fetch_groups(
                connection, source, order="support", min_support=asked.min_support, limit=params.n_rows
            ),
            files=connection.execute(FILES, {"source": source}).df(),
            reasons=connection.execute(REASONS, {"source": source}).df(),
            alarms=connection.execute(ALARMS, {"source": source}).df(),
            lines=fetch_lines(connection, source, asked, n_lines=params.n_lines, max_points=params.max_points),
            medians=fetch_against_median(connection, source, asked, max_points=params.max_points),
            covs=fetch_cov_drift(connection, source, max_points=params.max_points),
            skyline=fetch_skyline(connection, source, asked),
            variance=fetch_variance(connection, source, asked),
        )
