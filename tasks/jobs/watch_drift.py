"""Jobs that have drifted: an alarm for each change, and none for what was told already."""

import logging
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from tasks.jobs.outlook.params import DriftParams
from tasks.jobs.params import WatchParams
from tasks.jobs.watch_champion import Champion
from tasks.jobs.watch_evidence import as_evidence
from tasks.utc import utc_text
from tasks.warehouse.alarms import Alarm
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)
KIND = "drift"
RUNS = Path(__file__).with_name("watch_drift.sql")


def find_drifted(
    warehouse: Warehouse,
    source: str,
    watch: WatchParams,
    drift: DriftParams,
    champion: Callable[[], Champion | None],
) -> list[Alarm]:
    """An alarm for each job that has drifted to another shape of the champion in the last days of the log.

    Without a champion there are no shapes: an alarm for each job whose runtimes have changed. Once told, a change is
    the job's new normal: only runs submitted after the last one that the alarm had seen are compared from then on. So
    the same drift is told once, and the next one as soon as enough runs stand on both sides of it. The false discovery
    rate holds for each search over the jobs of a source."""
    with reading(warehouse) as connection:
        runs = fetch_drift_runs(connection, source, watch, drift)
    if runs.empty:
        return []
    from tasks.jobs.outlook.drift import find_drift  # scipy: needed only where a job has enough runs

    model = champion()
    compared = runs[["group_key", "submitted_at", "runtime_s"]]
    since_at, until_at = runs["since_at"].iloc[0], runs["until_at"].iloc[0]
    if model is None:
        found = find_drift(compared, drift, since_at=since_at)
    else:
        trained = model[1]
        found = find_drift(
            compared,
            drift,
            shapes=trained.shapes["ratio"],
            medians_s={str(key): float(median_s) for key, median_s in trained.history_s.items()},
            empty_bin_prior=trained.params.characterise.posterior.empty_bin_prior,
            since_at=since_at,
        )
    table = found.table[found.table["has_drifted" if model else "has_changed"].astype(bool)]
    more: dict[Hashable, Any] = {
        "since_at": since_at,
        "until_at": until_at,
        "shapes_of": model[0] if model else None,
        "false_discovery_rate": drift.false_discovery_rate,
    }
    logger.info("%d of %d jobs of source %s have drifted", len(table), len(found.table), source)
    return [_alarm(source, {**job, **more}) for job in table.to_dict("records")]


def fetch_drift_runs(connection: Connection, source: str, watch: WatchParams, drift: DriftParams) -> pd.DataFrame:
    """Finished runs of jobs with enough of them on both sides of the moment, by job and submission.

    Columns: group_key, submitted_at, runtime_s, and the same in every row, since_at (drift.since_days before the last
    submission) and until_at (the last submission)."""
    asked = {
        "source": source,
        "kind": KIND,
        "statuses": list(watch.history_statuses),
        "since_days": drift.since_days,
        "before_days": drift.before_days,
        "min_before": drift.min_before,
        "min_after": drift.min_after,
        "max_runs": drift.max_runs,
    }
    return connection.execute(RUNS.read_text(), asked).df()


def _alarm(source: str, job: Mapping[Hashable, Any]) -> Alarm:
    from tasks.jobs.outlook.words import drift_words

    row = {str(name): value for name, value in job.items()}
    is_known = row["shapes_of"] is not None
    evidence = as_evidence(
        {name: value for name, value in row.items() if is_known or name not in ("shape_before", "shape_after")}
    )
    subject = f"{row['group_key']} @ {utc_text(row['until_at'])}"
    return Alarm("jobs", source, KIND, subject, drift_words(row), evidence)
