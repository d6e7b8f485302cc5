"""Airflow's task instances: the REST API's JSON, or the table task_instance of its database as CSV.

A run is one try of one task of one DAG run; what recurs is the task (dag_id.task_id). What we decide:

- upstream_failed, skipped and removed are cancelled: such a task never began. up_for_retry is a failed try.
- A task without a state is left out: nobody has decided yet whether it runs.
- A later export updates earlier rows: running becomes final under the same id (DAG run, task, map index, try).
- Times carry their offset; those of the database have none and are UTC.
- A failed task may have no duration (its process was lost): then end - start."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.airflow_csv import SEPARATORS
from tasks.jobs.readers.airflow_fields import missing_fields, run_row
from tasks.jobs.readers.airflow_found import EXPECTED, Found
from tasks.jobs.readers.airflow_json import LIST_KEY
from tasks.jobs.readers.airflow_records import read_records
from tasks.jobs.vetting import vet_runs
from tasks.reading import Chunk, all_refusals, refusals

logger = logging.getLogger(__name__)

CHUNK_ROWS = 20_000
COLUMNS = (
    "run_id", "name", "user_name", "queue", "submitted_at", "started_at", "ended_at", "runtime_s", "status", "place",
)  # fmt: skip


@dataclass(frozen=True)
class AirflowReader:
    """Reads exports of task instances of Airflow 2 and 3."""

    name: str = "airflow"
    version: int = 2  # 2: pseudonymised ids; words for missing values in CSV
    ids_hold_names: bool = True  # DAG, run and task
    title: str = "Airflow: task instances (JSON of the REST API, CSV of the table)"
    endings: tuple[str, ...] = (
        "task_instances.json", "task_instances.json.gz", "task_instance.csv", "task_instance.csv.gz",
    )  # fmt: skip

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """JSON with a list task_instances, or a header line with the columns of the table."""
        text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").lstrip()
        if text.startswith("{"):
            return LIST_KEY in text
        if text.startswith("["):
            return all(f'"{name}"' in text for name in ("dag_id", "task_id", "try_number"))
        first = text.partition("\n")[0].lower().replace('"', "").strip()
        return any(not missing_fields({name.strip() for name in first.split(mark)}) for mark in SEPARATORS)

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """Chunks of some 20,000 task instances. Raises BadInput for a file that is no such export."""
        now, n_found, n_left_out = datetime.now(UTC).replace(tzinfo=None), 0, 0
        records = read_records(path, params.limits)
        while batch := list(islice(records, CHUNK_ROWS)):
            chunk, n_without_state = _chunk(batch, params, now)
            n_found, n_left_out = n_found + len(batch), n_left_out + n_without_state
            yield chunk
        if not n_found:
            raise BadInput(path, "no task instance in it", EXPECTED, "ask for another time span")
        if n_left_out:
            logger.info("%s: %d task instances have no state yet and are left out", path, n_left_out)


def _chunk(batch: list[Found], params: ReadParams, now: datetime) -> tuple[Chunk, int]:
    rows: list[dict[str, object]] = []
    bad: list[tuple[int, str, str]] = []
    n_left_out = 0
    for found in batch:
        if found.record is None:
            bad.append((found.place, found.reason, found.raw))
            continue
        try:
            row = run_row(found.record, found.place, params.statuses)
        except ValueError as error:
            bad.append((found.place, str(error), found.raw))
            continue
        rows += [row] if row else []
        n_left_out += row is None
    vetted = vet_runs(_frame(rows), params, now)
    raws = {found.place: found.raw for found in batch}
    vetoed = vetted.refused.assign(raw=[raws[place][:500] for place in vetted.refused["place"]])
    told = refusals([place for place, _, _ in bad], [why for _, why, _ in bad], [raw for _, _, raw in bad])
    return Chunk(vetted.rows, all_refusals([told, vetoed]), {}), n_left_out


def _frame(rows: list[dict[str, object]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    times = {name: pd.to_datetime(frame[name]) for name in ("submitted_at", "started_at", "ended_at")}
    return frame.assign(**times, place=frame["place"].astype("int64"))
