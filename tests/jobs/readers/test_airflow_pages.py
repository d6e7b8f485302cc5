"""What stands around the list of an Airflow export is read as well, and no secret or half character gets through."""

import csv
import json
import logging
from pathlib import Path

import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs import intake
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers.airflow import BLOCK_BYTES, AirflowReader
from tasks.warehouse.connection import reading
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse

EXPORTS = Path(__file__).parent / "fixtures" / "airflow"
JSON, EARLY, CSV = (
    EXPORTS / name for name in ("task_instances.json", "task_instances_early.json", "task_instance.csv")
)
EXPORT = json.loads(JSON.read_text())
TASKS = EXPORT["task_instances"]
LIST = json.dumps(TASKS)


def read(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(AirflowReader().read(str(path), ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


MORE_TEXT = {
    "two exports": json.dumps(EXPORT) + json.dumps(EXPORT),
    "two lists": LIST + LIST,
    "a word after an export": json.dumps(EXPORT) + " end",
    "an export and blanks of a block, then one more": json.dumps(EXPORT) + " " * BLOCK_BYTES + "{}",
    "two lists in one object": f'{{"task_instances": {LIST}, "task_instances": {LIST}}}',
    "two pages in one object": f'{{"a": {{"task_instances": {LIST}}}, "b": {{"task_instances": {LIST}}}}}',
}


@pytest.mark.parametrize("text", MORE_TEXT.values(), ids=MORE_TEXT)
def test_what_follows_the_list_is_not_dropped_in_silence(tmp_path: Path, text: str) -> None:
    (tmp_path / "export.json").write_text(text)
    with pytest.raises(BadInput, match="more text after the list; expected one export a file; split the file"):
        read(tmp_path / "export.json")


DAMAGED = {
    "no end of the object": f'{{"task_instances": {LIST}, "total_entries": 49',
    "no comma before the list": f'{{"total_entries": 49 "task_instances": {LIST}}}',
    "a wrong mark after the list": f'{{"task_instances": {LIST}; "total_entries": 49}}',
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_damage_around_the_list_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "export.json").write_text(text)
    with pytest.raises(BadInput, match="the JSON is damaged or cut off"):
        read(tmp_path / "export.json")


WHOLE = {
    "line feeds at the end": json.dumps(EXPORT) + "\n\n",
    "blanks of more than a block": json.dumps(EXPORT) + " " * (BLOCK_BYTES + 9),
    "a list": f"\n{LIST}\n",
    "an object around it": f'{{"data": {{"total": 3, "task_instances" : {LIST}, "x": [1]}}, "y": "}}"}}',
    "the key inside a text": json.dumps({"note": '"task_instances": [', **EXPORT, "tail": '"task_instances"'}),
}


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


def test_entries_that_lie_across_blocks_are_read_whole(tmp_path: Path) -> None:
    entries = [json.dumps({**TASKS[0], "dag_run_id": f"r{number}", "note": "n" * 300_000}) for number in range(9)]
    (tmp_path / "wide.json").write_text(f"[{'1' * 2000}, {', '.join(entries)}]")
    rows, refused = read(tmp_path / "wide.json")
    assert rows["run_id"].str.split("/").str[1].to_list() == [f"r{number}" for number in range(9)]
    assert refused["reason"].to_list() == ["not an object; expected a task instance"]


@pytest.mark.parametrize("field", ["dag_id", "task_id", "dag_run_id", "pool", "queue", "unixname", "state"])
def test_half_a_character_is_refused_and_not_a_fault_of_ours(tmp_path: Path, field: str) -> None:
    (tmp_path / "export.json").write_text(json.dumps([{**TASKS[0], field: "a\ud800b"}, *TASKS[1:]]))
    rows, refused = read(tmp_path / "export.json")
    assert (len(rows), refused["place"].to_list()) == (48, [1])
    assert refused["reason"].to_list() == [f"{field} holds half a character; expected whole ones"]


@pytest.mark.parametrize("field", ["duration", "start_date", "try_number"])
def test_a_reason_holds_no_half_character(tmp_path: Path, field: str) -> None:
    (tmp_path / "export.json").write_text(json.dumps([{**TASKS[0], field: "a\ud800b"}, *TASKS[1:]]))
    refused = read(tmp_path / "export.json")[1]
    assert refused["reason"].iloc[0].encode().startswith(f"{field} 'a\\ud800b' is not a".encode())


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
