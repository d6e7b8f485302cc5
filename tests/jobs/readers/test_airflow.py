"""Airflow's task instances: exports of two DAGs that Airflow 3.3 really ran (fixtures/README.md), and small ones."""

import csv
import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from tasks.jobs import intake
from tasks.jobs.intake import pseudonymise
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers import READERS, detect
from tasks.jobs.readers.airflow import BLOCK_BYTES, AirflowReader
from tasks.read_limits import ReadLimits
from tasks.warehouse.connection import reading
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse

EXPORTS = Path(__file__).parent / "fixtures" / "airflow"
JSON, EARLY, CSV = (
    EXPORTS / name for name in ("task_instances.json", "task_instances_early.json", "task_instance.csv")
)
ONE = {
    "dag_id": "etl", "task_id": "load", "dag_run_id": "r1", "map_index": 2, "try_number": 1, "state": "success",
    "start_date": "2026-01-01T03:00:02+02:00", "end_date": "2026-01-01T01:00:05Z", "duration": 3.0,
    "queued_when": "2026-01-01T01:00:00+00:00", "pool": "p", "queue": "q", "unixname": "ada",
}  # fmt: skip


def read(path: Path, params: ReadParams | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(AirflowReader().read(str(path), params or ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


def read_one(tmp_path: Path, **changed: object) -> pd.Series:
    (tmp_path / "one.json").write_text(json.dumps({"task_instances": [{**ONE, **changed}], "total_entries": 1}))
    rows, refused = read(tmp_path / "one.json")
    assert refused.empty, refused["reason"].to_list()
    return rows.iloc[0]


def test_one_task_instance_worked_out_by_hand(tmp_path: Path) -> None:
    row = read_one(tmp_path)
    told = row[["run_id", "name", "user_name", "queue", "status", "wait_s", "runtime_s", "place"]]
    assert told.to_list() == ["etl/r1/load[2]/1", "etl.load", "ada", "p/q", "completed", 2.0, 3.0, 1]
    assert row["started_at"] == pd.Timestamp("2026-01-01 01:00:02")


@pytest.mark.parametrize(
    ("state", "status"),
    [("failed", "failed"), ("up_for_retry", "failed"), ("upstream_failed", "cancelled"), ("skipped", "cancelled")],
)
def test_states_have_a_status(tmp_path: Path, state: str, status: str) -> None:
    assert read_one(tmp_path, state=state)["status"] == status


def test_a_task_that_waits_or_runs_has_no_end(tmp_path: Path) -> None:
    assert read_one(tmp_path, state="queued", start_date=None, end_date=None, duration=None)["status"] == "pending"
    running = read_one(tmp_path, state="running", end_date=None, duration=None)
    assert running["status"] == "running" and pd.isna(running["runtime_s"])


def test_a_queued_task_keeps_its_id_when_it_begins(tmp_path: Path) -> None:
    queued = read_one(tmp_path, state="queued", try_number=0, start_date=None, end_date=None, duration=None)
    assert queued["run_id"] == read_one(tmp_path)["run_id"]


def test_a_failed_task_without_duration_ran_from_start_to_end() -> None:
    rows = read(JSON)[0].set_index("run_id")
    lost = rows.loc["nightly_sales/backfill__2026-11-15T00:00:00+00:00/extract/1"]
    assert (lost["status"], round(lost["runtime_s"], 3)) == ("failed", 32.611)


def test_the_api_and_the_database_tell_the_same_runs() -> None:
    told, held = (read(path)[0].set_index("run_id").sort_index() for path in (JSON, CSV))
    columns = ["name", "status", "started_at", "ended_at", "submitted_at", "runtime_s", "queue"]
    pd.testing.assert_frame_equal(told[columns], held[columns], check_exact=False, rtol=1e-6)
    assert len(told) == 49 and told["status"].value_counts().to_dict() == {"completed": 39, "cancelled": 7, "failed": 3}


def test_a_second_try_is_a_run_of_its_own() -> None:
    tries = read(JSON)[0]["run_id"].str.extract(r"/(\d+)$")[0]
    assert set(tries) == {"1", "2"}


def test_a_later_export_updates_what_was_running(tmp_path: Path) -> None:
    early, later = read(EARLY)[0], read(JSON)[0]
    running = early.loc[early["status"] == "running", "run_id"].to_list()
    assert len(running) == 1 and set(early["run_id"]) < set(later["run_id"])
    warehouse = Warehouse(home=tmp_path / "home")
    for path in (EARLY, JSON, CSV):
        taken = intake.Intake("airflow", "", ReadParams(), GroupParams())
        ingest(warehouse, "jobs", intake.land_log(warehouse, str(path), taken).batch_id)
    with reading(warehouse) as connection:
        counts = connection.execute(
            "SELECT count(*), count(*) FILTER (status = 'running'), any_value(status) FILTER (run_id = $id) "
            "FROM jobs.runs",
            {"id": running[0]},
        ).fetchone()
    assert counts == (49, 0, "completed")


def test_recurring_tasks_are_counted_and_pseudonyms_keep_them() -> None:
    preview = intake.preview_log(Path("unused"), str(JSON), intake.Intake("s", "", ReadParams(), GroupParams()))
    assert (preview.reader, preview.n_kept, preview.n_groups) == ("airflow", 49, 7)
    assert (preview.recurring_share, preview.support_3_share) == (1.0, 1.0)
    hidden = pseudonymise(read(JSON)[0], b"k" * 32)
    assert hidden["name"].nunique() == 7 and not hidden["name"].str.contains("sales").any()


def test_the_reader_is_found_by_content_and_no_other_takes_it(tmp_path: Path) -> None:
    for path in (JSON, CSV):
        head = path.read_bytes()[:4096]
        assert [name for name, reader in READERS.items() if reader.sniff(head, "x")] == ["airflow"]
        (tmp_path / "export.gz").write_bytes(gzip.compress(path.read_bytes()))
        assert detect(str(tmp_path / "export.gz"), ReadLimits()).name == "airflow"
        assert len(read(tmp_path / "export.gz")[0]) == 49


def test_other_shapes_of_the_same_export_are_read(tmp_path: Path) -> None:
    rows = read(JSON)[0]
    export = json.loads(JSON.read_text())
    (tmp_path / "pretty.json").write_text(json.dumps({"total_entries": 49, **export}, indent=2))
    (tmp_path / "list.json").write_text(json.dumps(export["task_instances"]))
    with CSV.open() as source, (tmp_path / "semicolons.csv").open("w") as target:
        csv.writer(target, delimiter=";", quoting=csv.QUOTE_ALL).writerows(csv.reader(source))
    for name in ("pretty.json", "list.json", "semicolons.csv"):
        assert set(read(tmp_path / name)[0]["run_id"]) == set(rows["run_id"]), name
        assert detect(str(tmp_path / name), ReadLimits()).name == "airflow"


def test_an_export_larger_than_a_block_is_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.jobs.readers.airflow.CHUNK_ROWS", 4_000)
    many = [{**ONE, "dag_run_id": f"r{number}"} for number in range(5_000)]
    (tmp_path / "many.json").write_text(json.dumps({"task_instances": many}))
    assert (tmp_path / "many.json").stat().st_size > BLOCK_BYTES
    chunks = list(AirflowReader().read(str(tmp_path / "many.json"), ReadParams()))
    assert [len(chunk.rows) for chunk in chunks] == [4_000, 1_000]
    assert chunks[1].rows["place"].iloc[-1] == 5_000
