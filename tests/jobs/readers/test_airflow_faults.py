"""What is wrong with an export of Airflow is said in one line: faults put into exports of a real Airflow."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.airflow import AirflowReader
from tasks.pseudonyms import without_names
from tasks.read_limits import ReadLimits

EXPORTS = Path(__file__).parent / "fixtures" / "airflow"
JSON, CSV = (EXPORTS / name for name in ("task_instances.json", "task_instance.csv"))
N_ROWS, BROKEN = 49, 20


def read(path: Path, params: ReadParams | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(AirflowReader().read(str(path), params or ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


BROKEN_FIELDS: list[tuple[str, object, str]] = [
    ("start_date", "yesterday", "start_date 'yesterday' is not a time (YYYY-MM-DDTHH:MM:SS+00:00)"),
    ("end_date", "2026-13-01T00:00:00Z", "end_date '2026-13-01T00:00:00Z' is not a time"),
    ("state", "happy", "status 'happy' is not known; expected a word such as completed"),
    ("dag_id", None, "dag_id 'None' is not a text"),
    ("task_id", "", "task_id '' is not a text"),
    ("dag_run_id", 7, "dag_run_id '7' is not a text"),
    ("map_index", "first", "map_index 'first' is not a whole number"),
    ("map_index", -9, "map_index '-9' is too small"),
    ("try_number", 1.5, "try_number '1.5' is not a whole number"),
    ("duration", "3 s", "duration '3 s' is not a number of seconds"),
    ("duration", -3, "negative runtime; expected 0 s or more"),
    ("duration", "inf", "an infinite number"),
    ("duration", 1e11, "runtime or wait over 100 years"),
    ("end_date", "2020-01-01T00:00:00Z", "ends before it starts"),
    ("end_date", "2126-01-01T00:00:00Z", "lies in the future"),
]


@pytest.mark.parametrize(("field", "value", "reason"), BROKEN_FIELDS, ids=[reason[:40] for *_, reason in BROKEN_FIELDS])
def test_a_broken_task_instance_is_refused_alone(tmp_path: Path, field: str, value: object, reason: str) -> None:
    export = json.loads(JSON.read_text())
    export["task_instances"][BROKEN] = {**export["task_instances"][BROKEN], field: value}
    (tmp_path / "export.json").write_text(json.dumps(export))
    rows, refused = read(tmp_path / "export.json")
    assert (len(rows), refused["place"].to_list()) == (N_ROWS - 1, [BROKEN + 1])
    assert reason in refused["reason"].iloc[0]
    assert without_names(refused)["raw"].to_list() == [""]


BROKEN_LINES: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda line: line[:80] + b"\n", "fields instead of 37"),
    (lambda line: b"a," + line, "38 fields instead of 37"),
    (lambda line: line.replace(b"nightly", b"n\xefghtly"), "the line is not UTF-8"),
    (lambda line: line.replace(b"nightly", b"n\x00ghtly"), "a NUL byte in the line"),
    (lambda line: line.replace(b"nightly", b'"nightly'), "not a line of CSV (unexpected end of data)"),
]


@pytest.mark.parametrize(("mutate", "reason"), BROKEN_LINES, ids=[reason for _, reason in BROKEN_LINES])
def test_a_broken_line_of_csv_is_refused_alone(tmp_path: Path, mutate: Callable[[bytes], bytes], reason: str) -> None:
    lines = CSV.read_bytes().splitlines(keepends=True)
    place = next(place for place, line in enumerate(lines) if b",nightly_sales," in line)
    (tmp_path / "t.csv").write_bytes(b"".join([*lines[:place], mutate(lines[place]), *lines[place + 1 :]]))
    rows, refused = read(tmp_path / "t.csv")
    assert (len(rows), refused["place"].to_list()) == (N_ROWS - 1, [place + 1])
    assert reason in refused["reason"].iloc[0]


WRONG_FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "the file is empty"),
    "blank lines": (lambda: b"\n\n", "only blank lines; expected an export of Airflow"),
    "no rows": (lambda: b'{"task_instances": [], "total_entries": 0}', "no task instance in it"),
    "DAG runs": (lambda: JSON.read_bytes().replace(b"task_instances", b"dag_runs"), "no list 'task_instances' in it"),
    "cut off": (lambda: JSON.read_bytes()[:-900], "the JSON is damaged or cut off; expected a whole export"),
    "a wrong byte": (lambda: JSON.read_bytes().replace(b'"state":', b'"state";', 1), "the JSON is damaged or cut off"),
    "not UTF-8": (lambda: JSON.read_bytes().replace(b"load", b"l\xf6ad"), "not UTF-8 text"),
    "no state": (lambda: CSV.read_bytes().replace(b",state,", b",status,", 1), "the header lacks state"),
    "no DAG run": (lambda: CSV.read_bytes().replace(b",run_id,", b",run,", 1), "the header lacks dag_run_id"),
    "no header": (lambda: CSV.read_bytes().partition(b"\n")[2], "the header lacks dag_id, task_id, state, start_date"),
    "UTF-16": (lambda: CSV.read_text().encode("utf-16"), "the text is UTF-16"),
    "binary": (lambda: CSV.read_bytes().replace(b",", b"\x00"), "binary content (NUL bytes)"),
    "zip": (lambda: b"PK\x03\x04" + CSV.read_bytes(), "packed with zip; expected plain text or gzip"),
    "cut-off gzip": (lambda: gzip.compress(JSON.read_bytes())[:-90], "the gzip stream is damaged or cut off"),
}


@pytest.mark.parametrize(("content", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_file_of_the_wrong_kind_is_one_clear_line(tmp_path: Path, content: Callable[[], bytes], message: str) -> None:
    path = tmp_path / "export"
    path.write_bytes(content())
    with pytest.raises(BadInput) as told:
        read(path)
    assert message in str(told.value) and "\n" not in str(told.value)
    assert str(told.value).startswith(f"{path}: ")


def test_limits_hold(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="more than 9,000 bytes"):
        read(JSON, ReadParams(limits=ReadLimits(max_bytes=9000)))
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b" " * 5_000_000 + JSON.read_bytes()))
    with pytest.raises(BadInput, match="unpacks to more than 50 times its size"):
        read(tmp_path / "bomb.gz", ReadParams(limits=ReadLimits(max_ratio=50)))
