"""What is wrong with an event log of Spark is said in one line: faults put into logs that Spark wrote."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from tasks.errors import BadInput
from tasks.intake.limits import ReadLimits
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.spark import SparkReader

LOGS = Path(__file__).parent / "fixtures" / "spark"
PLAIN = LOGS / "local-1795239004004"
ROLLED = LOGS / "eventlog_v2_app-20261121053437-0000"
LINES = PLAIN.read_bytes().splitlines(keepends=True)
TASK_END = next(place for place, line in enumerate(LINES) if b"TaskEnd" in line)
SQL_START = next(place for place, line in enumerate(LINES) if b"SQLExecutionStart" in line)


def read(path: Path, params: ReadParams | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(SparkReader().read(str(path), params or ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


def packed(suffix: str) -> bytes:
    return next(LOGS.glob(f"*.{suffix}")).read_bytes()


def put(place: int, old: bytes, new: bytes) -> tuple[int, bytes]:
    assert old in LINES[place], LINES[place][:300]
    return place, LINES[place].replace(old, new, 1)


BROKEN_LINES: list[tuple[tuple[int, bytes], str]] = [
    ((TASK_END, LINES[TASK_END][:200] + b"\n"), "not a whole line of JSON"),
    ((TASK_END, b"INFO MemoryStore: cleared\n"), "not a whole line of JSON (Expecting value)"),
    ((TASK_END, b"[1, 2]\n"), "a line of JSON without an 'Event'; expected an event of Spark"),
    (put(TASK_END, b'"Finish Time":1', b'"Finish Time":"noon","x":1'), "Finish Time 'noon' is not a number"),
    (put(TASK_END, b'"Stage ID":', b'"Stage ID":null,"x":'), "Stage ID 'None' is not a number"),
    (put(TASK_END, b'"Task Info":', b'"Task":'), "TaskEnd lacks 'Task Info'"),
    (put(TASK_END, b'"Executor CPU Time":', b'"Executor CPU Time":-'), "is negative or too large; expected 0 or more"),
    (put(TASK_END, b'"Host":"node-1"', b'"Host":""'), "Host '' is not a text"),
    (put(SQL_START, b'"nodeName":', b'"nodeKind":'), "sparkPlanInfo is not a plan of nodes with names"),
    ((TASK_END, b'{"Event":"SparkListenerUnpersistRDD","RDD\n'), "is cut off; expected a whole line of JSON"),
    ((TASK_END, LINES[TASK_END].replace(b"node", b"n\xf6de")), "the line is not UTF-8; convert the file"),
    ((TASK_END, LINES[TASK_END].replace(b"node", b"n\x00de")), "a NUL byte in the line"),
    ((TASK_END, b'{"Event":"' + b"x" * 2**20 + b'"}\n'), "the line is longer than 1,048,576 bytes"),
]


@pytest.mark.parametrize(("fault", "reason"), BROKEN_LINES, ids=[reason[:40] for _, reason in BROKEN_LINES])
def test_a_broken_line_is_refused_alone(tmp_path: Path, fault: tuple[int, bytes], reason: str) -> None:
    place, line = fault
    path = tmp_path / "log"
    path.write_bytes(b"".join([*LINES[:place], line, *LINES[place + 1 :]]))
    rows, refused = read(path)
    assert (len(rows), refused["place"].to_list()) == (1, [place + 1])
    assert reason in refused["reason"].iloc[0]


WRONG_RUNS = [
    (
        b'"SparkListenerApplicationEnd","Timestamp":1795',
        b'"SparkListenerApplicationEnd","Timestamp":1695',
        "negative runtime",
    ),
    (
        b'"SparkListenerApplicationEnd","Timestamp":1795',
        b'"SparkListenerApplicationEnd","Timestamp":9795',
        "over 100 years",
    ),
    (
        b'"SparkListenerApplicationEnd","Timestamp":1795',
        b'"SparkListenerApplicationEnd","Timestamp":4795',
        "lies in the future",
    ),
]


@pytest.mark.parametrize(("old", "new", "reason"), WRONG_RUNS, ids=[reason for *_, reason in WRONG_RUNS])
def test_a_run_that_cannot_be_true_is_refused(tmp_path: Path, old: bytes, new: bytes, reason: str) -> None:
    log = PLAIN.read_bytes()
    assert log.count(old) == 1
    (tmp_path / "log").write_bytes(log.replace(old, new))
    rows, refused = read(tmp_path / "log")
    assert (len(rows), len(refused)) == (0, 1) and reason in refused["reason"].iloc[0]


WRONG_FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "the file is empty"),
    "blank lines": (lambda: b"\n \n", "only blank lines; expected an event log of Spark"),
    "no start": (lambda: b"".join(LINES[8:]), "no SparkListenerApplicationStart in it; expected an event log of Spark"),
    "another file": (lambda: b"JobID|State\n1|COMPLETED\n", "no SparkListenerApplicationStart in it"),
    "UTF-16": (lambda: PLAIN.read_text().encode("utf-16"), "the text is UTF-16"),
    "binary": (lambda: PLAIN.read_bytes().replace(b",", b"\x00"), "binary content (NUL bytes)"),
    "bzip2": (lambda: b"BZh9" + PLAIN.read_bytes(), "packed with bzip2; expected plain text or gzip"),
    "lzf": (lambda: packed("lzf"), "packed with lzf; expected an event log that is plain or packed with zstd"),
    "lzf, what to do": (lambda: packed("lzf"), "set spark.eventLog.compression.codec (or spark.io.compression.codec)"),
    "cut-off gzip": (lambda: gzip.compress(PLAIN.read_bytes())[:-90], "the gzip stream is damaged or cut off"),
    "cut-off zstd": (lambda: packed("zstd")[:-40], "the zstd stream is cut off; expected a whole event log"),
    "cut-off lz4": (lambda: packed("lz4")[:-40], "the lz4 stream is cut off"),
    "cut-off snappy": (lambda: packed("snappy")[:-40], "the snappy stream is cut off"),
    "damaged zstd": (lambda: packed("zstd")[:20] + b"\xff" * 900 + packed("zstd")[920:], "the zstd stream is damaged"),
    "damaged lz4": (lambda: packed("lz4")[:60] + b"\xff" * 900 + packed("lz4")[960:], "the lz4 stream is damaged"),
    "damaged snappy": (
        lambda: packed("snappy")[:16] + b"\xff" * 90 + packed("snappy")[106:],
        "the snappy stream is damaged",
    ),
}


@pytest.mark.parametrize(("content", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_file_of_the_wrong_kind_is_one_clear_line(tmp_path: Path, content: Callable[[], bytes], message: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(content())
    with pytest.raises(BadInput) as told:
        read(path)
    assert message in str(told.value) and "\n" not in str(told.value)
    assert str(told.value).startswith(f"{path}: ")


@pytest.mark.parametrize("suffix", ["zstd", "lz4", "snappy"])
def test_limits_hold_for_packed_logs(suffix: str) -> None:
    with pytest.raises(BadInput, match="more than 9,000 bytes unpacked; expected a smaller file"):
        read(next(LOGS.glob(f"*.{suffix}")), ReadParams(limits=ReadLimits(max_bytes=9000)))


def test_a_packed_bomb_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.zstd").write_bytes(pa.Codec("zstd").compress(LINES[TASK_END] * 4000, asbytes=True))
    with pytest.raises(BadInput, match="unpacks to more than 50 times its size"):
        read(tmp_path / "log.zstd", ReadParams(limits=ReadLimits(max_ratio=50)))


def test_a_rolled_log_with_a_gap_says_which_file_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / ROLLED.name
    shutil.copytree(ROLLED, folder)
    first = next(folder.glob("events_1_*"))
    first.rename(folder / first.name.replace("events_1_", "events_3_"))
    with pytest.raises(
        BadInput, match="file events_1_… is missing; expected all files up to events_3_…; copy the whole"
    ):
        read(folder)
    for path in folder.glob("events_*"):
        path.unlink()
    with pytest.raises(BadInput, match="no events in it; expected files events_1_<application> and so on"):
        read(folder)
    with pytest.raises(BadInput, match="no such folder"):
        read(tmp_path / "eventlog_v2_none")
