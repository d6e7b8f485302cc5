"""Faults in whorl's own job logs: each one a mutation of the recorded jobs, each with its message."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput
from tasks.intake import files, tables
from tasks.intake.limits import ReadLimits
from tasks.jobs.columns import COLUMNS, STATUSES
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.table import TableReader

RECORDED = sorted((Path(__file__).parents[3] / "data" / "recorded" / "jobs").glob("runs-*.parquet"))[:1]
pytestmark = pytest.mark.skipif(not RECORDED, reason="data/recorded/jobs holds no recording")
N_RUNS = 120
VICTIM = 50  # the row that is mutated, from 1; in CSV it stands one line lower
LIMITS = ReadLimits(max_line_bytes=2048)


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    rows = pd.concat(pd.read_parquet(path) for path in RECORDED).head(N_RUNS)
    completed = rows.assign(status="completed", name="load, " + rows["name"])  # so that CSV has to quote
    return completed[[name for name in COLUMNS if name in rows]]


def read(path: Path, limits: ReadLimits = LIMITS) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(TableReader().read(str(path), ReadParams(limits=limits)))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


NO_RUNTIME = {"runtime_s": None, "ended_at": None}
ROW_FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({"run_id": None}, "no run id; expected one that is unique in its source"),
    "an unknown status": (
        {"status": "meh"},
        f"status 'meh' is not known; expected a word such as {', '.join(STATUSES)}; map it: "
        "--map-value 'status:meh=completed'",
    ),
    "a negative runtime": ({"runtime_s": -0.1}, "negative runtime; expected 0 s or more"),
    "an infinite number": ({"cpu_s": float("inf")}, "an infinite number; expected a finite one or none"),
    "no runtime": (NO_RUNTIME, "no runtime and no end time; expected one of them, or the status running or pending"),
    "no start": (
        {"started_at": None, "submitted_at": None, "ended_at": None},
        "neither submission nor start time; expected one of them",
    ),
    "the end before the start": (
        {"ended_at": pd.Timestamp("2020-01-01")},
        "ends before it starts; check the times and their zones",
    ),
    "the start before the submission": (
        {"submitted_at": pd.Timestamp("2050-01-01")},
        "starts before it is submitted; check the times",
    ),
    "a time to come": (
        {"submitted_at": None, "wait_s": None, "started_at": pd.Timestamp("2150-01-01"), "ended_at": None},
        "lies in the future; check clock, unit and time zone",
    ),
    "a time before 1970": (
        {"submitted_at": None, "wait_s": None, "started_at": pd.Timestamp("1969-12-31")},
        "lies before 1970; check the unit of the times",
    ),
    "negative memory": ({"peak_memory_bytes": -1.0}, "negative size or amount; expected 0 or more"),
    "milliseconds for seconds": ({"runtime_s": 4e12}, "runtime or wait over 100 years; expected seconds"),
}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("changes", "reason"), ROW_FAULTS.values(), ids=ROW_FAULTS)
def test_a_row_that_cannot_be_true_goes_to_the_quarantine_and_the_rest_loads(
    tmp_path: Path, runs: pd.DataFrame, kind: str, changes: dict[str, Any], reason: str
) -> None:
    broken = runs.copy()
    for column, value in changes.items():
        broken.loc[VICTIM - 1, column] = value
    path = tmp_path / f"log.{kind}"
    broken.to_csv(path, index=False) if kind == "csv" else broken.to_parquet(path)
    rows, refused = read(path)
    assert refused[["place", "reason"]].to_numpy().tolist() == [[VICTIM + (kind == "csv"), reason]]
    assert broken["name"].iloc[VICTIM - 1] in refused["raw"].iloc[0]
    assert len(rows) == N_RUNS - 1


def replace(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda line: line.replace(old, new, 1)


def with_field(column: str, text: bytes) -> Callable[[bytes], bytes]:
    """Puts a text in the place of a field; the name is quoted and stands before all that are replaced here."""

    def mutate(line: bytes) -> bytes:
        position = [name for name in COLUMNS if name != "group_key"].index(column)
        fields = line.split(b",")  # one more than columns: the name holds a comma
        return b",".join([*fields[: position + 1], text, *fields[position + 2 :]])

    return mutate


LINE_FAULTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a field less": (lambda line: line[: line.rindex(b",")], "18 fields; the header has 19"),
    "a field more": (lambda line: line + b",7", "20 fields; the header has 19"),
    "a quote that is not closed": (replace(b'"', b""), "20 fields; the header has 19"),
    "a quote that is never closed": (lambda line: b'"' + line.replace(b'"', b""), "a quote that is not closed"),
    "a word for a number": (with_field("runtime_s", b"fast"), "runtime_s 'fast' is not a number"),
    "a decimal comma": (with_field("runtime_s", b'"1,5"'), "runtime_s '1,5' is not a number"),
    "a date that does not exist": (
        with_field("started_at", b"2026-02-30T10:00:00"),
        "started_at is not a time; expected ISO text or epoch seconds",
    ),
    "a word for a flag": (with_field("is_simulated", b"maybe"), "is_simulated 'maybe' is not true or false"),
    "a NUL byte": (replace(b"load", b"lo\0d"), "a NUL byte in the line; expected text (was the disk full?)"),
    "Latin-1": (replace(b"load", b"l\xf6ad"), "the line is not UTF-8; convert the file"),
    "an endless line": (
        replace(b"load", b"load" * 1000),
        "the line is longer than 2,048 bytes; shorten it or raise read.limits.max_line_bytes",
    ),
    "a carriage return in it": (replace(b"load", b"lo\rad"), ""),
}


@pytest.mark.parametrize("block_bytes", [8000, 4 * 2**20])
@pytest.mark.parametrize(("mutate", "reason"), LINE_FAULTS.values(), ids=LINE_FAULTS)
def test_a_broken_line_is_refused_alone_with_its_number_and_the_rest_loads(
    tmp_path: Path,
    runs: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    block_bytes: int,
    mutate: Callable[[bytes], bytes],
    reason: str,
) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", block_bytes)
    lines = runs.to_csv(index=False).encode().splitlines()
    lines[VICTIM] = mutate(lines[VICTIM])
    (tmp_path / "log.csv").write_bytes(b"\n".join(lines) + b"\n")
    rows, refused = read(tmp_path / "log.csv")
    expected = [[VICTIM + 1, reason]] if reason else []
    assert refused[["place", "reason"]].to_numpy().tolist() == expected
    assert len(rows) == N_RUNS - len(expected)


def test_a_last_line_that_was_cut_off_is_refused_alone(tmp_path: Path, runs: pd.DataFrame) -> None:
    text = runs.to_csv(index=False).encode()
    (tmp_path / "log.csv").write_bytes(text[: text.rindex(b'"') - 5])
    rows, refused = read(tmp_path / "log.csv")
    assert refused[["place", "reason"]].to_numpy().tolist() == [[N_RUNS + 1, "a quote that is not closed"]]
    assert len(rows) == N_RUNS - 1


WHOLE_CSV_FAULTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda text: b"", "the file is empty; expected at least one row; export it again"),
    "a header alone": (lambda text: text[: text.index(b"\n") + 1], "no row in it; expected a header line and at least"),
    "no header": (lambda text: text[text.index(b"\n") + 1 :], "no column run_id and no name or group_key and no"),
    "UTF-16": (lambda text: text.decode().encode("utf-16"), "the text is UTF-16; expected UTF-8; convert it: iconv"),
    "gzip cut off": (lambda text: gzip.compress(text)[:-20], "the gzip stream is damaged or cut off"),
    "a gzip bomb": (lambda text: gzip.compress(text[:99] + b" " * 2**25), "(a gzip bomb?); expected an ordinary log"),
    "zip": (lambda text: b"PK\x03\x04" + text, "packed with zip; expected plain text or gzip; unpack it first"),
    "an Excel file in disguise": (lambda text: b"\xd0\xcf\x11\xe0" + bytes(999), "binary content (NUL bytes)"),
    "spaces between fields": (lambda text: text.replace(b",", b" "), "no column run_id and no name or group_key"),
}


@pytest.mark.parametrize(("mutate", "said"), WHOLE_CSV_FAULTS.values(), ids=WHOLE_CSV_FAULTS)
def test_a_csv_file_that_is_wrong_as_a_whole_is_refused_in_one_line(
    tmp_path: Path, runs: pd.DataFrame, mutate: Callable[[bytes], bytes], said: str
) -> None:
    (tmp_path / "log.csv").write_bytes(mutate(runs.to_csv(index=False).encode()))
    assert_refused(tmp_path / "log.csv", said)


def assert_refused(path: Path, said: str, limits: ReadLimits = LIMITS) -> None:
    with pytest.raises(BadInput) as refusal:
        read(path, limits)
    assert said in str(refusal.value)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)


def as_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def with_column(name: str, column: pa.Array) -> Callable[[pa.Table], bytes]:
    return lambda table: as_bytes(table.set_column(table.schema.get_field_index(name), name, column))


def flip(share: float) -> Callable[[pa.Table], bytes]:
    """Zeroes some bytes at a share of the file's length."""

    def mutate(table: pa.Table) -> bytes:
        data = as_bytes(table)
        start = int(len(data) * share)
        return data[:start] + bytes(40) + data[start + 40 :]

    return mutate


NOT_UTF8 = pa.array([b"\xff\xfe"] * N_RUNS, pa.binary())
WHOLE_PARQUET_FAULTS: dict[str, tuple[Callable[[pa.Table], bytes], str]] = {
    "cut off": (lambda table: as_bytes(table)[:-100], "the Parquet file is damaged (Parquet magic bytes not found"),
    "only its first bytes": (lambda table: as_bytes(table)[:4], "the Parquet file is damaged (Parquet file size is 4"),
    "zeros in the data": (flip(0.01), "the Parquet file is damaged ("),
    "zeros in the footer": (flip(0.95), "the Parquet file is damaged ("),
    "no rows": (lambda table: as_bytes(table[:0]), "no row in it; expected at least one run; export it again"),
    "a column twice": (
        lambda table: as_bytes(table.append_column("name", table["name"])),
        "the column 'name' stands there twice; expected each column once; export it again",
    ),
    "lists for runtimes": (
        with_column("runtime_s", pa.array([[1.0]] * N_RUNS)),
        "column 'runtime_s' (runtime_s) is of type 'list<element: double>'; expected numbers; convert it",
    ),
    "flags for times": (
        with_column("started_at", pa.array([True] * N_RUNS)),
        "column 'started_at' (started_at) is of type 'bool'; expected a timestamp, ISO text or epoch seconds",
    ),
    "bytes for names": (
        with_column("name", NOT_UTF8),
        "column 'name' (name) is of type 'binary'; expected text; convert it",
    ),
    "text that is not UTF-8": (
        with_column("name", pa.StringArray.from_buffers(N_RUNS, *NOT_UTF8.buffers()[1:])),
        "the Parquet file is damaged (",
    ),
}


@pytest.mark.parametrize(("mutate", "said"), WHOLE_PARQUET_FAULTS.values(), ids=WHOLE_PARQUET_FAULTS)
def test_a_parquet_file_that_is_wrong_as_a_whole_is_refused_in_one_line(
    tmp_path: Path, runs: pd.DataFrame, mutate: Callable[[pa.Table], bytes], said: str
) -> None:
    (tmp_path / "log.parquet").write_bytes(mutate(pa.Table.from_pandas(runs, preserve_index=False)))
    assert_refused(tmp_path / "log.parquet", said)


def test_a_parquet_file_over_the_limits_is_refused_before_it_is_unpacked(
    tmp_path: Path, runs: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.parquet"
    runs.to_parquet(path)
    assert_refused(path, "more than 1,024 bytes unpacked; expected a smaller file", ReadLimits(max_bytes=1024))
    runs.assign(name="x" * 500).to_parquet(path, use_dictionary=False, compression="zstd")
    monkeypatch.setattr(tables, "LARGE_COLUMN_BYTES", 100)
    assert_refused(
        path,
        "unpacks to more than 3 times its size; expected an ordinary log; look at it by hand",
        ReadLimits(max_ratio=3),
    )


TEXT_IN_PARQUET = {
    "runtime_s": ("fast", "runtime_s 'fast' is not a number"),
    "started_at": ("yesterday", "started_at is not a time; expected ISO text or epoch seconds"),
    "is_simulated": ("perhaps", "is_simulated 'perhaps' is not true or false"),
}


@pytest.mark.parametrize(("column", "text", "reason"), [(name, *case) for name, case in TEXT_IN_PARQUET.items()])
def test_a_text_that_is_no_value_of_its_column_is_refused_with_the_row_as_json(
    tmp_path: Path, runs: pd.DataFrame, column: str, text: str, reason: str
) -> None:
    texts = runs[column].astype("str").to_list()
    texts[VICTIM - 1] = text
    few = runs[["run_id", "name", "started_at", "runtime_s"]]
    few.assign(**{column: texts}).to_parquet(tmp_path / "log.parquet")
    rows, refused = read(tmp_path / "log.parquet")
    assert refused[["place", "reason"]].to_numpy().tolist() == [[VICTIM, reason]]
    assert f'"{column}": "{text}"' in refused["raw"].iloc[0]
    assert len(rows) == N_RUNS - 1


def test_a_time_that_no_calendar_has_is_refused_and_still_shown(tmp_path: Path, runs: pd.DataFrame) -> None:
    table = pa.Table.from_pandas(runs[["run_id", "name", "started_at", "runtime_s"]], preserve_index=False)
    values = table["started_at"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    values[VICTIM - 1] *= 1000
    (tmp_path / "log.parquet").write_bytes(with_column("started_at", pa.array(values, pa.timestamp("us")))(table))
    _, refused = read(tmp_path / "log.parquet")
    assert refused[["place", "reason"]].to_numpy().tolist() == [
        [VICTIM, "lies in the future; check clock, unit and time zone"]
    ]
    assert str(values[VICTIM - 1]) in refused["raw"].iloc[0]
