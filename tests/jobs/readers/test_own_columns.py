"""The columns of whorl's own job log: which are ours, by name or by --map, and how the format is told."""

import json
import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.intake import Intake, land_log
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers.own import OwnReader
from tasks.warehouse.connection import reading
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse

UTC = ReadParams()
HEADER = "run_id,name,started_at,runtime_s,status,peak_memory_bytes"
LINE = "r1,etl,2026-01-01T12:00:00,1.5,completed,1024"


def of_csv(tmp_path: Path, text: str, params: ReadParams = UTC) -> tuple[pd.DataFrame, pd.DataFrame]:
    (tmp_path / "log.csv").write_bytes(text.encode())
    chunks = list(OwnReader().read(str(tmp_path / "log.csv"), params))
    rows, refused = ([getattr(chunk, part) for chunk in chunks] for part in ("rows", "refused"))
    return pd.concat(rows, ignore_index=True), pd.concat(refused, ignore_index=True)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_told_by_the_header(tmp_path: Path, delimiter: str) -> None:
    rows, refused = of_csv(tmp_path, f"{HEADER}\n{LINE}\n".replace(",", delimiter))
    assert (rows["runtime_s"].to_list(), len(refused)) == ([1.5], 0)


def test_columns_may_be_renamed_and_a_renamed_one_wins(tmp_path: Path) -> None:
    text = "job,name,start,runtime_s,ms\n7,etl,1767268800,999,2\n"
    params = ReadParams(columns={"run_id": "job", "started_at": "start", "runtime_s": "ms"})
    rows, _ = of_csv(tmp_path, text, params)
    assert rows[["run_id", "runtime_s"]].to_numpy().tolist() == [["7", 2.0]]


def test_unknown_columns_are_ignored_and_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rows, _ = of_csv(tmp_path, f"{HEADER},mood,colour\n" + f"{LINE},good,red\n" * 3)
    assert len(rows) == 3
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.endswith("log.csv: 2 unknown columns are ignored: 'mood', 'colour'")


def test_rows_keep_a_group_key_that_the_log_gives(tmp_path: Path) -> None:
    rows, _ = of_csv(tmp_path, "run_id,group_key,started_at,ended_at\n1,mine,2026-01-01,2026-01-01\n")
    assert rows["group_key"].to_list() == ["mine"]


SNIFFED = {
    "Parquet": (b"PAR1\x15\x04", True),
    "our columns": (f"{HEADER}\n".encode(), True),
    "our columns behind a byte order mark": (b"\xef\xbb\xbf" + HEADER.encode(), True),
    "other columns": (b"id,title,price\n", False),
    "sacct": (b"JobID|Start|End\n", False),
    "binary": (bytes(range(256)), False),
    "nothing": (b"", False),
}


@pytest.mark.parametrize(("head", "is_own"), SNIFFED.values(), ids=SNIFFED)
def test_the_format_is_told_by_its_content(head: bytes, is_own: bool) -> None:
    assert OwnReader().sniff(head, "log.txt") is is_own


WRONG_COLUMNS = {
    "no id": (
        "name,started_at,runtime_s",
        {},
        "no column run_id among 'name', 'started_at', 'runtime_s'; expected the columns run_id, name or group_key, "
        "started_at or submitted_at, runtime_s or ended_at; name yours, as in --map run_id=THEIRS",
    ),
    "no times": ("run_id,name", {}, "no column started_at or submitted_at and no runtime_s or ended_at among"),
    "an end alone": (
        "run_id,name,submitted_at,ended_at",
        {},
        "ended_at without started_at gives no runtime; expected the columns run_id, name or group_key,",
    ),
    "twice": (f"{HEADER},name", {}, "the column 'name' stands there twice; expected each column once"),
    "mapped from nowhere": (
        HEADER,
        {"name": "title"},
        "no column 'title' to read 'name' from; expected one of 'run_id',",
    ),
    "mapped to nowhere": (HEADER, {"nam": "name"}, "cannot map 'name' to 'nam'; expected one of run_id, group_key,"),
    "many columns": (",".join(f"c{i}" for i in range(30)), {}, "'c18', 'c19' and 10 more; expected"),
}


def test_a_table_without_a_header_is_told_in_one_short_line(tmp_path: Path) -> None:
    cells = [f"{'x' * 300}{number}" for number in range(400)]
    row = ",".join(["17", "load", "2026-01-01T00:00:00", *cells]) + "\n"
    with pytest.raises(BadInput, match="the first line seems to be a row: add a line with the names") as refusal:
        of_csv(tmp_path, row * 2)
    assert len(str(refusal.value).removeprefix(str(tmp_path))) < 1200


@pytest.mark.parametrize(("header", "columns", "said"), WRONG_COLUMNS.values(), ids=WRONG_COLUMNS)
def test_wrong_columns_are_named(tmp_path: Path, header: str, columns: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput) as refusal:
        of_csv(tmp_path, f"{header}\n", ReadParams(columns=columns))
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


FEATURES = f"{HEADER},files,branch,ok,hash\n{LINE},12,main,True,007\n{LINE.replace('r1', 'r2')},,NA,,1.50\n"


def features_in(tmp_path: Path, *names: str, text: str = FEATURES) -> list[object]:
    rows, refused = of_csv(tmp_path, text, ReadParams(features=list(names)))
    assert refused.empty
    return [json.loads(told) if isinstance(told, str) else None for told in rows["features"]]


def test_named_columns_are_kept_as_features_numbers_as_numbers_and_missing_ones_left_out(tmp_path: Path) -> None:
    assert features_in(tmp_path, "files", "branch") == [{"files": 12, "branch": "main"}, None]
    assert features_in(tmp_path, "hash") == [{"hash": "007"}, {"hash": 1.5}]


def test_all_keeps_every_column_that_is_not_ours(tmp_path: Path) -> None:
    assert features_in(tmp_path, "all") == [{"files": 12, "branch": "main", "ok": "True", "hash": "007"}, {"hash": 1.5}]
    # the same where a text runs over lines, so that the file is read record by record
    broken = FEATURES.replace("main", '"ma\nin"')
    assert features_in(tmp_path, "branch", text=broken) == [{"branch": "ma\nin"}, None]


def test_a_feature_that_is_no_column_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no column 'fils' to keep as a feature; expected one of .*; mend --features"):
        features_in(tmp_path, "fils")


def test_features_of_parquet_keep_their_types_and_lists_are_none(tmp_path: Path) -> None:
    at = pd.Timestamp("2026-01-01 12:00")
    run = {"run_id": "r1", "name": "etl", "started_at": at, "runtime_s": 1.5}
    mine = {"files": 12, "share": 0.25, "nan": np.nan, "ok": True, "made_at": at, "tags": ["a"]}
    pd.DataFrame([run | mine]).to_parquet(tmp_path / "log.parquet")
    (chunk,) = OwnReader().read(str(tmp_path / "log.parquet"), ReadParams(features=["all"]))
    told = json.loads(chunk.rows["features"].iloc[0])
    assert told.pop("made_at").startswith("2026-01-01 12:00:00")
    assert told == {"files": 12, "share": 0.25, "ok": True}
    with pytest.raises(BadInput, match=r"column 'tags' is of type 'list<.*>'; expected text, numbers or times"):
        list(OwnReader().read(str(tmp_path / "log.parquet"), ReadParams(features=["tags"])))


def test_without_features_named_none_are_kept_and_a_column_called_features_is_no_exception(tmp_path: Path) -> None:
    rows, refused = of_csv(tmp_path, f"{HEADER},features\n{LINE},many\n")
    assert ("features" in rows, len(refused)) == (False, 0)


def test_features_and_the_named_key_reach_the_warehouse_and_another_choice_replaces_the_rows(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(FEATURES.replace("run_id,name", "run_id,account").replace("etl", "physics"))
    home = Warehouse(home=tmp_path / "home")
    read, by = ReadParams(features=["files"], columns={"name": "branch"}), GroupParams(by=["account"])
    for chosen in (read, read.model_copy(update={"features": ["ok"]})):
        batch = land_log(home, str(tmp_path / "log.csv"), Intake("s", "", chosen, by))
        ingest(home, "jobs", batch.batch_id)
        with reading(home) as connection:
            rows = connection.execute("SELECT run_id, group_key, features FROM jobs.runs ORDER BY run_id").fetchall()
        told = '{"files": 12}' if chosen is read else '{"ok": "True"}'
        assert rows == [("r1", "physics", told), ("r2", "physics", None)]
