"""Airflow's task instances: exports of two DAGs that Airflow 3.3 really ran (fixtures/README.md), and small ones."""

import csv
import gzip
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.intake.pseudonyms import without_names
from tasks.jobs import intake
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers import READERS, detect
from tasks.params import ReadLimits
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
N_ROWS, BROKEN = 49, 20
BROKEN_FIELDS: list[tuple[str, object, str]] = [
    ("start_date", "yesterday", "start_date 'yesterday' is not a time (YYYY-MM-DDTHH:MM:SS+00:00)"),
    ("end_date", "2026-13-01T00:00:00Z", "end_date '2026-13-01T00:00:00Z' is not a time"),
    ("state", "happy", "status 'happy' is not known; expected a word such as completed"),
    ("dag_id", None, "dag_id 'None' is not a text"),
    ("task_id", "", "task_id '' is not a text"),
    ("map_index", "first", "map_index 'first' is not a whole number"),
    ("map_index", -9, "map_index '-9' is too small"),
    ("try_number", 1.5, "try_number '1.5' is not a whole number"),
    ("duration", "3 s", "duration '3 s' is not a number of seconds"),
    ("end_date", "2020-01-01T00:00:00Z", "ends before it starts"),
]
WRONG_FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "blank lines": (lambda: b"\n\n", "the header lacks dag_id"),
    "no rows": (
        lambda: b'{"task_instances": [], "total_entries": 0}',
        "no row in it; expected at least one task instance",
    ),
    "cut off": (lambda: JSON.read_bytes()[:-900], "the JSON is damaged or cut off ("),
    "a wrong byte": (lambda: JSON.read_bytes().replace(b'"state":', b'"state";', 1), "the JSON is damaged or cut off"),
    "not UTF-8": (lambda: JSON.read_bytes().replace(b"load", b"l\xf6ad"), "not UTF-8 text"),
    "no state": (lambda: CSV.read_bytes().replace(b",state,", b",status,", 1), "the header lacks state"),
    "no DAG run": (lambda: CSV.read_bytes().replace(b",run_id,", b",run,", 1), "the header lacks dag_run_id"),
    "no header": (lambda: CSV.read_bytes().partition(b"\n")[2], "the header lacks dag_id, task_id, state, start_date"),
}
EXPORT = json.loads(JSON.read_text())
TASKS = EXPORT["task_instances"]
LIST = json.dumps(TASKS)
DAMAGED = {
    "two exports": json.dumps(EXPORT) + json.dumps(EXPORT),
    "two lists": LIST + LIST,
    "a word after an export": json.dumps(EXPORT) + " end",
    "no end of the object": f'{{"task_instances": {LIST}, "total_entries": 49',
    "no comma before the list": f'{{"total_entries": 49 "task_instances": {LIST}}}',
    "a wrong mark after the list": f'{{"task_instances": {LIST}; "total_entries": 49}}',
}
WHOLE = {
    "line feeds at the end": json.dumps(EXPORT) + "\n\n",
    "a list": f"\n{LIST}\n",
    "two pages in one object": json.dumps({"a": {"task_instances": TASKS[:20]}, "b": {"task_instances": TASKS[20:]}}),
    "an object around it": f'{{"data": {{"total": 3, "task_instances" : {LIST}, "x": [1]}}, "y": "}}"}}',
    "the key inside a text": json.dumps({"note": '"task_instances": [', **EXPORT, "tail": '"task_instances"'}),
}


def read(path: Path, params: ReadParams | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(READERS["airflow"].read(str(path), params or ReadParams()))
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


def test_the_reader_is_found_by_content_and_no_other_takes_it(tmp_path: Path) -> None:
    for path in (JSON, CSV):
        head = path.read_bytes()[:4096]
        assert next(name for name, reader in READERS.items() if reader.sniff(head, "x")) == "airflow"
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


@pytest.mark.parametrize(("field", "value", "reason"), BROKEN_FIELDS, ids=[reason[:40] for *_, reason in BROKEN_FIELDS])
def test_a_broken_task_instance_is_refused_alone(tmp_path: Path, field: str, value: object, reason: str) -> None:
    export = json.loads(JSON.read_text())
    export["task_instances"][BROKEN] = {**export["task_instances"][BROKEN], field: value}
    (tmp_path / "export.json").write_text(json.dumps(export))
    rows, refused = read(tmp_path / "export.json")
    assert (len(rows), refused["place"].to_list()) == (N_ROWS - 1, [BROKEN + 1])
    assert reason in refused["reason"].iloc[0]
    assert without_names(refused)["raw"].to_list() == [""]


@pytest.mark.parametrize(("content", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_file_of_the_wrong_kind_is_one_clear_line(tmp_path: Path, content: Callable[[], bytes], message: str) -> None:
    path = tmp_path / "export"
    path.write_bytes(content())
    with pytest.raises(BadInput) as told:
        read(path)
    assert message in str(told.value) and "\n" not in str(told.value)
    assert str(told.value).startswith(f"{path}: ")


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_damage_around_the_list_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "export.json").write_text(text)
    with pytest.raises(BadInput, match="the JSON is damaged or cut off"):
        read(tmp_path / "export.json")


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_a_whole_export_is_read_without_a_warning(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "export.json").write_text(text)
    with caplog.at_level(logging.WARNING):
        assert len(read(tmp_path / "export.json")[0]) == 49
    assert caplog.messages == []


@pytest.mark.parametrize("is_before", [True, False])
def test_one_page_of_many_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture, is_before: bool) -> None:
    total, page = {"total_entries": 4900}, {"task_instances": TASKS[:10]}
    (tmp_path / "page.json").write_text(json.dumps(total | page if is_before else page | total))
    with caplog.at_level(logging.WARNING):
        assert len(read(tmp_path / "page.json")[0]) == 10
    assert caplog.messages == [
        f"{tmp_path}/page.json: 10 of 4,900 task instances; export the other pages too (limit, offset)"
    ]


def test_a_page_with_a_cursor_to_the_next_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "page.json").write_text(json.dumps({"task_instances": TASKS[:10], "next_cursor": "abc"}))
    with caplog.at_level(logging.WARNING):
        read(tmp_path / "page.json")
    assert caplog.messages == [f"{tmp_path}/page.json: one page of several; export the other pages too (next_cursor)"]


@pytest.mark.parametrize("word", ["NULL", "\\N", "None"])
def test_words_for_nothing_in_csv_are_missing_values(tmp_path: Path, word: str) -> None:
    with CSV.open() as source, (tmp_path / "t.csv").open("w") as target:
        csv.writer(target).writerows([field or word for field in line] for line in csv.reader(source))
    rows, refused = read(tmp_path / "t.csv")
    assert refused.empty
    pd.testing.assert_frame_equal(rows, read(CSV)[0])


def test_a_task_may_be_called_none(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CSV.read_text().replace(",nightly_sales,", ",None,"))
    assert read(tmp_path / "t.csv")[0]["name"].str.startswith("None.").any()


def test_a_refused_line_of_csv_shows_few_fields(tmp_path: Path) -> None:
    with CSV.open() as source:
        names, first, *others = csv.reader(source)
    secret = dict(zip(names, first, strict=True)) | {"duration": "long", "hostname": "s3cret"}
    with (tmp_path / "t.csv").open("w") as target:
        csv.writer(target).writerows([names, list(secret.values()), *others])
    refused = read(tmp_path / "t.csv")[1]
    shown = json.loads(refused["raw"].iloc[0])
    assert (shown["duration"], shown["dag_id"], shown["run_id"]) == ("long", secret["dag_id"], secret["run_id"])
    assert "s3cret" not in refused["raw"].iloc[0]


def test_pseudonymised_ids_hold_no_name_and_a_later_export_still_updates_them(tmp_path: Path) -> None:
    warehouse = Warehouse(home=tmp_path / "home")
    hidden = intake.Intake("airflow", "", ReadParams(pseudonymise=True), GroupParams())
    for path in (EARLY, JSON, CSV):
        ingest(warehouse, "jobs", intake.land_log(warehouse, str(path), hidden).batch_id)
    with reading(warehouse) as connection:
        ids = connection.execute("SELECT run_id, status FROM jobs.runs").df()
    assert len(ids) == 49 and "running" not in set(ids["status"])
    assert ids["run_id"].str.fullmatch("[0-9a-f]{32}").all()
