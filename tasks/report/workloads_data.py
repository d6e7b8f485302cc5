"""What the page about workloads shows, fetched over one connection so that all of it is of one moment."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.errors import BadInput, NotFound
from tasks.report.workloads_adf import AdfShares
from tasks.report.workloads_alignment import Alignment, align
from tasks.report.workloads_fetched_series import fetch_series
from tasks.report.workloads_measured import Measured, fetch_measured
from tasks.report.workloads_params import WorkloadsReportParams
from tasks.report.workloads_phases import PhasesOfRuns, phases_of_runs
from tasks.report.workloads_series import RunSeries
from tasks.report.workloads_typical import fetch_cut_runs, partner_of, typical_runs
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

KINDS = """
    SELECT count(*) FILTER (is_simulated), count(*) FILTER (NOT is_simulated)
    FROM workloads.runs WHERE source = $source
"""
# Runs by what ran on what input. n_phases: of the workload as a whole; medians over the runs.
GROUPS = """
WITH counted AS (
    SELECT run_id, count(*) AS n_counters FROM workloads.counters WHERE source = $source GROUP BY run_id
),
cut AS (SELECT run_id, count(*) AS n_phases FROM workloads.run_phases WHERE source = $source GROUP BY run_id),
final AS (
    SELECT workload, input, count(*) AS n_runs, count(DISTINCT round) AS n_rounds,
        count(DISTINCT machine) AS n_machines, median(duration_s) AS duration_s, sum(duration_s) AS total_s,
        median(n_counters) AS n_counters, sum(n_missed) AS n_missed, sum(n_samples) AS n_samples,
        median(n_phases) AS n_phases, count(n_phases) AS n_cut
    FROM workloads.runs LEFT JOIN counted USING (run_id) LEFT JOIN cut USING (run_id)
    WHERE source = $source GROUP BY workload, input
)
SELECT * FROM final ORDER BY workload NULLS LAST, input NULLS LAST
"""
LENGTHS = """
    SELECT end_sample - start_sample AS n_samples, adf IS NOT NULL AS is_determined, count(*) AS n
    FROM workloads.phases WHERE source = $source GROUP BY ALL ORDER BY ALL
"""
IDENTIFICATIONS = """
WITH final AS (
    SELECT identifications.*, runs.workload AS label, runs.input AS input,
        runs.started_at AS started_at
    FROM workloads.identifications AS identifications LEFT JOIN workloads.runs AS runs USING (source, run_id)
    WHERE source = $source
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY identified_at DESC, model_id DESC) = 1
)
SELECT * FROM final ORDER BY identified_at DESC, started_at DESC NULLS LAST, run_id
"""
ALARMS = """
    SELECT message, raised_at FROM ops.alarms
    WHERE word = 'workloads' AND source = $source ORDER BY raised_at DESC, alarm_id
"""
FILES = """
    SELECT origin, reader, n_read, n_kept, n_quarantined
    FROM ops.files WHERE word = 'workloads' AND source = $source ORDER BY ordered_at, batch_id
"""
REASONS = """
WITH refused AS (
    SELECT regexp_replace(reason, '\\d+', '…', 'g') AS reason, origin, place
    FROM ops.quarantine JOIN ops.files USING (batch_id, word, source)
    WHERE word = 'workloads' AND source = $source
),
final AS (
    SELECT reason, count(*) AS n, arg_min(origin, (origin, place)) AS origin, arg_min(place, (origin, place)) AS place
    FROM refused GROUP BY reason
)
SELECT * FROM final ORDER BY n DESC, reason
"""


@dataclass(frozen=True)
class WorkloadsData:
    """Tables and figures of one source; a figure is None where there are no phases yet.

    groups: runs by workload and input; identifications: the latest of each run, the newest first."""

    source: str
    data_version: str
    is_simulated: bool
    groups: pd.DataFrame
    phases: PhasesOfRuns | None
    series: RunSeries | None
    alignment: Alignment | None
    adf: AdfShares
    identifications: pd.DataFrame
    measured: Measured
    alarms: pd.DataFrame
    files: pd.DataFrame
    reasons: pd.DataFrame


def fetch_workloads_data(warehouse: Warehouse, source: str, params: WorkloadsReportParams) -> WorkloadsData:
    """Everything the page needs.

    Raises NotFound if the source has no runs, BadInput if it mixes simulated with measured ones."""
    asked = {"source": source}
    with reading(warehouse) as connection:
        is_simulated = _kind(connection, source)
        identifications = connection.execute(IDENTIFICATIONS, asked).df()
        typical = fetch_cut_runs(connection, source, typical_runs(connection, source, params.n_workloads))
        series, alignment = _one_run(connection, source, identifications, [one.run_id for one in typical.runs], params)
        lengths = connection.execute(LENGTHS, asked).df()
        return WorkloadsData(
            source=source,
            data_version=data_version(connection, "workloads", source),
            is_simulated=is_simulated,
            groups=connection.execute(GROUPS, asked).df(),
            phases=phases_of_runs(typical.runs) if typical.runs else None,
            series=series,
            alignment=alignment,
            adf=AdfShares(
                np.repeat(lengths["n_samples"].to_numpy(np.int64), lengths["n"]),
                np.repeat(lengths["is_determined"].to_numpy(bool), lengths["n"]),
            ),
            identifications=identifications,
            measured=fetch_measured(connection, source),
            alarms=connection.execute(ALARMS, asked).df(),
            files=connection.execute(FILES, asked).df(),
            reasons=connection.execute(REASONS, asked).df(),
        )


def _kind(connection: Connection, source: str) -> bool:
    """Whether the runs of a source are simulated: all of them or none."""
    n_simulated, n_measured = connection.execute(KINDS, {"source": source}).fetchone() or (0, 0)
    if not n_simulated + n_measured:
        raise NotFound(f"source {source!r} has no runs of workloads; fill it with 'whorl workloads ingest PATH'")
    if n_simulated and n_measured:
        raise BadInput(
            f"source {source!r}",
            f"{n_simulated:,} simulated runs stand among {n_measured:,} measured ones",
            "one kind only, so that no figure mixes them",
            "ingest the simulated runs under a source of their own",
        )
    return bool(n_simulated)


def _one_run(
    connection: Connection,
    source: str,
    identifications: pd.DataFrame,
    typical: list[str],
    params: WorkloadsReportParams,
) -> tuple[RunSeries | None, Alignment | None]:
    """The run that was identified last, else a typical one: over time, and beside another of what it was called."""
    wanted = [str(name) for name in identifications["run_id"].head(1)] + typical[:1]
    named = [str(name) for name in identifications["nearest"].head(1)]
    cut = fetch_cut_runs(connection, source, wanted)
    if not cut.runs:
        return None, None
    shown = cut.runs[0]
    series = fetch_series(connection, source, shown, cut.rows, params.n_counters)
    other = partner_of(connection, source, shown.run_id, named[0] if named and shown.run_id == wanted[0] else None)
    partner = fetch_cut_runs(connection, source, [other]).runs if other is not None else []
    return series, align(shown, partner[0]) if partner else None
