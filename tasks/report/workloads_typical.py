"""Which runs a page shows: of each workload the most typical one, and for one run another of the same workload."""

from dataclasses import dataclass

import pandas as pd

from tasks.report.workloads_run_phases import AboutRun, RunPhases, phases_of_rows
from tasks.warehouse.connection import Connection

RECENT = 50  # runs of a workload, the latest, that the typical one is chosen among
# The typical run: its mean levels are nearest to the medians over runs of its workload, summed over counters.
TYPICAL = """
WITH chosen AS (
    SELECT run_id, coalesce(workload, '') AS workload FROM workloads.runs WHERE source = $source
    QUALIFY row_number() OVER (PARTITION BY workload ORDER BY started_at DESC NULLS LAST, run_id DESC) <= $recent
),
levels AS (
    SELECT workload, run_id, counter,
        sum(mean * (end_sample - start_sample)) / sum(end_sample - start_sample) AS level
    FROM workloads.phases JOIN chosen USING (run_id) WHERE source = $source
    GROUP BY workload, run_id, counter
),
centres AS (SELECT workload, counter, median(level) AS centre FROM levels GROUP BY workload, counter),
gaps AS (
    SELECT workload, run_id, sum(abs(level - centre)) AS gap
    FROM levels JOIN centres USING (workload, counter) GROUP BY workload, run_id
),
final AS (
    SELECT workload, arg_min(run_id, (gap, run_id)) AS run_id, count(*) AS n_runs FROM gaps GROUP BY workload
)
SELECT workload, run_id FROM final ORDER BY n_runs DESC, workload LIMIT $most
"""
# Another run of the workload: with the same input if there is one, with another number of phases, the latest.
PARTNER = """
WITH counted AS (
    SELECT run_id, count(*) AS n_phases FROM workloads.run_phases WHERE source = $source GROUP BY run_id
),
labelled AS (SELECT * FROM workloads.runs JOIN counted USING (run_id) WHERE source = $source),
wanted AS (SELECT workload, input, n_phases FROM labelled WHERE run_id = $run_id),
final AS (
    SELECT run_id,
        labelled.input IS NOT DISTINCT FROM wanted.input AS has_same_input,
        labelled.n_phases <> wanted.n_phases AS has_other_number,
        started_at
    FROM labelled JOIN wanted ON labelled.workload = coalesce($workload, wanted.workload)
    WHERE run_id <> $run_id
)
SELECT run_id FROM final
ORDER BY has_same_input DESC, has_other_number DESC, started_at DESC NULLS LAST, run_id LIMIT 1
"""
ABOUT = """
SELECT run_id, workload, input, interval_s FROM workloads.runs
WHERE source = $source AND list_contains($run_ids, run_id)
"""
PHASES = """
SELECT run_id, counter, start_sample, end_sample, mean, probability FROM workloads.phases
WHERE source = $source AND list_contains($run_ids, run_id) ORDER BY run_id, counter, start_sample
"""
RUN_PHASES = """
SELECT run_id, start_sample, end_sample FROM workloads.run_phases
WHERE source = $source AND list_contains($run_ids, run_id) ORDER BY run_id, start_sample
"""


@dataclass(frozen=True)
class CutRuns:
    """Runs with their phases, and the rows of workloads.phases that they were made of."""

    runs: list[RunPhases]
    rows: pd.DataFrame


def typical_runs(connection: Connection, source: str, most: int) -> list[str]:
    """Run ids, one a workload that has fingerprints, those of the most runs first, at most so many.

    Runs without a label count as one workload."""
    found = connection.execute(TYPICAL, {"source": source, "recent": RECENT, "most": most}).fetchall()
    return [str(run_id) for _, run_id in found]


def partner_of(connection: Connection, source: str, run_id: str, workload: str | None = None) -> str | None:
    """Another run with phases, of that workload or of the run's own; None if there is none."""
    values = {"source": source, "run_id": run_id, "workload": workload}
    found = connection.execute(PARTNER, values).fetchone()
    return None if found is None else str(found[0])


def fetch_cut_runs(connection: Connection, source: str, run_ids: list[str]) -> CutRuns:
    """The named runs that have phases, in the order of the names."""
    values = {"source": source, "run_ids": run_ids}
    about = {
        str(row[0]): AboutRun(*row) for row in connection.execute(ABOUT, values).fetchall()
    }  # run_id, workload, input, interval_s
    rows, shared = (connection.execute(sql, values).df() for sql in (PHASES, RUN_PHASES))
    of_run, of_workload = dict(list(rows.groupby("run_id"))), dict(list(shared.groupby("run_id")))
    there = [run_id for run_id in run_ids if run_id in of_run and run_id in of_workload]
    return CutRuns([phases_of_rows(about[one], of_run[one], of_workload[one]) for one in there], rows)
