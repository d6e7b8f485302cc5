"""The columns of whorl's own job log: which are ours, by name or by --map, and how the format is told."""

import logging
from pathlib import Path

import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.own import OwnReader

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
