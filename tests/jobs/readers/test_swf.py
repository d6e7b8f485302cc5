"""Standard Workload Format: lines worked out by hand, and what other logs of the archive look like."""

import gzip
import logging
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.intake import files
from tasks.intake.files import Chunk
from tasks.jobs.params import ReadParams
from tasks.jobs.readers import READERS

NASA = Path(os.environ.get("WHORL_DATASETS", "-")) / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz"
START = pd.Timestamp("2001-09-09 01:46:40")
HEADER = "; Version: 2.2\n; UnixStartTime: 1000000000\n; Queue:  3  express lane\n"
NAMES = "job submit wait run procs cpu used asked time mem status user group app queue part prev think"
LINE = "7   100   20  300  4    250.5 2048 8     600  4096 1 12   3   45  3     1    6   10"
STATUSES = {"0": "failed", "1": "completed", "5": "cancelled", "-1": "unknown"}
NOT_SWF = {
    "words": (b"hello world\nthis is text\n", "its first lines are not numbers (line 1: 'hello world')"),
    "four numbers": (b"1 2 3 4\n5 6 7 8\n", "most of its first lines have 4 numbers (line 1: '1 2 3 4')"),
    "a CSV": (b"run_id,name,runtime_s\n1,etl,5\n", "its first lines are not numbers (line 1: 'run_id,name"),
    "only comments": (HEADER.encode(), "no job in it, only comments; expected Standard Workload Format"),
    "two logs": (
        f"{HEADER}{LINE}\n; UnixStartTime: 5\n{LINE}\n".encode(),
        "line 5 starts another log (UnixStartTime: 5); expected one log; split the file",
    ),
}
SNIFFED = {
    "comments": (HEADER.encode() + LINE.encode() + b"\n", True),
    "18 numbers": (f"{LINE}\n{LINE}\n".encode(), True),
    "only comments": (HEADER.encode(), True),
    "18 numbers and more": (f"{LINE} {{12}} q_1d\n".encode(), True),
    "17 numbers": (b"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", False),
    "an INI file": (b"; settings\n[a]\nb = 1\n", False),
    "a CSV": (b"run_id,name\n1,a\n", False),
    "a table with our word": (b"; Version: 1\nname value\nx y\n", False),
    "nothing": (b"", False),
}
NO_NASA = "WHORL_DATASETS names no folder with swf/NASA-iPSC-1993-3.1-cln.swf.gz"
N_COMMENTS, N_JOBS = 32, 2_000  # the beginning of the log is enough
VICTIM = 500  # the line that is mutated
Mutation = Callable[[list[str]], None]


def read(
    path: Path | str, content: str | bytes | None = None, params: ReadParams | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    if content is not None:
        Path(path).write_bytes(content.encode() if isinstance(content, str) else content)
    chunks = list(READERS["swf"].read(str(path), params or ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.swf"


def fields(**changes: str) -> str:
    names = NAMES.split()
    return " ".join((dict(zip(names, LINE.split(), strict=True)) | changes).values())


def test_one_line_worked_out_by_hand(log: Path) -> None:
    rows, refused = read(log, HEADER + LINE + "\n")
    assert refused.empty
    row = rows.iloc[0].dropna().to_dict()
    assert row == {
        "run_id": "7", "name": "app 45", "user_name": "user 12", "queue": "express lane", "account": "group 3",
        "partition": "partition 1", "submitted_at": START + pd.Timedelta(seconds=100),
        "started_at": START + pd.Timedelta(seconds=120), "ended_at": START + pd.Timedelta(seconds=420),
        "wait_s": 20.0, "runtime_s": 300.0, "status": "completed", "requested_cpus": 8.0, "used_cpus": 4.0,
        "requested_runtime_s": 600.0,
        "requested_memory_bytes": 4096 * 1024 * 8.0,  # asked for a processor
        "cpu_s": 250.5 * 4,  # averaged over the processors
        "peak_memory_bytes": 2048 * 1024 * 4.0, "is_simulated": False, "place": 4,
    }  # fmt: skip


def test_minus_one_is_missing_in_every_field_that_may_be_missing(log: Path) -> None:
    rows, _ = read(log, HEADER + "7 100 -1 300 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n")
    known = rows.iloc[0].dropna().to_dict()
    assert sorted(known) == ["ended_at", "is_simulated", "place", "run_id", "runtime_s", "started_at", "status"]
    assert known["status"] == "unknown"


def test_a_job_without_a_wait_began_at_its_submit_time(log: Path) -> None:
    rows, _ = read(log, HEADER + fields(wait="-1") + "\n")
    assert rows.loc[0, "started_at"] == START + pd.Timedelta(seconds=100)
    assert rows.loc[0, ["submitted_at", "wait_s"]].isna().all()


@pytest.mark.parametrize(("code", "status"), STATUSES.items())
def test_status_codes_are_words(log: Path, code: str, status: str) -> None:
    rows, _ = read(log, HEADER + fields(status=code) + "\n")
    assert rows["status"].to_list() == [status]


def test_a_log_that_writes_its_statuses_otherwise_is_read_by_what_the_user_says(log: Path) -> None:
    """Some logs have 0 for every job that ended."""
    lines = "".join(fields(status=code) + "\n" for code in ("0", "2", "7"))
    mapped = {"0": "completed", "2": "failed", "7": "timeout", "1e400": "failed", "green": "completed"}
    rows, refused = read(log, HEADER + lines, ReadParams(statuses=mapped))
    assert rows["status"].to_list() == ["completed", "failed", "timeout"]
    assert refused.empty


@pytest.mark.parametrize("runtime", ["0", "-1"])
def test_a_job_that_was_cancelled_in_the_queue_never_began(log: Path, runtime: str) -> None:
    rows, _ = read(log, HEADER + fields(status="5", run=runtime, procs="-1") + "\n")
    row = rows.iloc[0]
    assert row[["started_at", "runtime_s", "wait_s"]].isna().all()
    assert row[["submitted_at", "ended_at"]].to_list() == [START + pd.Timedelta(seconds=s) for s in (100, 120)]


def test_parts_of_interrupted_jobs_are_refused_and_the_job_itself_stays(log: Path) -> None:
    lines = [fields(status="1", run="500"), *(fields(status=code) for code in "234")]
    rows, refused = read(log, HEADER + "\n".join(lines) + "\n")
    assert rows["runtime_s"].to_list() == [500.0]
    assert refused["place"].to_list() == [5, 6, 7]
    assert set(refused["reason"]) == {"a part of an interrupted job (status 2 to 4); expected its own line"}
    assert refused["raw"].to_list() == lines[1:]


def test_a_log_without_a_start_counts_from_1970_and_says_so(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows, _ = read(log, "; UnixStartTime: UNKNOWN\n" + LINE + "\n")
    assert rows.loc[0, "submitted_at"] == pd.Timestamp("1970-01-01 00:01:40")
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "no UnixStartTime in its comments, so its times count from 1970-01-01; add a line" in record.getMessage()


OTHER_LOGS = {
    "tabs": "\t".join(LINE.split()),
    "many spaces": "     " + LINE.replace(" ", "    ") + "   ",
    "CR LF": LINE + "\r",
    "a carriage return inside": LINE.replace(" ", "\r", 1),
    "floats": fields(submit="100.0", wait="2e1", run="300.00", status="1.0", user="12.0", job="7.0", queue="3.0"),
    "no last line end": LINE,
}


@pytest.mark.parametrize("line", OTHER_LOGS.values(), ids=OTHER_LOGS)
def test_the_same_job_written_in_another_way_gives_the_same_row(log: Path, line: str) -> None:
    expected, _ = read(log, HEADER + LINE + "\n")
    found, refused = read(log, HEADER + line + ("" if line == LINE else "\n"))
    pd.testing.assert_frame_equal(found, expected)
    assert refused.empty


def test_fractions_of_seconds_are_kept(log: Path) -> None:
    rows, _ = read(log, HEADER + fields(submit="0.25", wait="0.5", run="1.125") + "\n")
    assert rows.loc[0, "ended_at"] == START + pd.Timedelta(seconds=1.875)


def test_comments_and_blank_lines_between_jobs_are_no_jobs_but_are_counted_as_lines(log: Path) -> None:
    rows, refused = read(log, HEADER + f"\n{LINE}\n  ; Note: a break\n\n   \n{LINE}\n;; end\n")
    assert rows["place"].to_list() == [5, 9]
    assert refused.empty


def test_a_log_with_fewer_fields_is_read_up_to_where_it_goes(log: Path) -> None:
    short = " ".join(LINE.split()[:5])
    rows, refused = read(log, f"{short}\n{short} 1\n{short}\n")
    assert rows[["run_id", "runtime_s", "used_cpus"]].to_numpy().tolist() == [["7", 300.0, 4.0]] * 2
    assert refused["reason"].to_list() == ["6 fields; the lines of this log have 5"]


def test_what_a_log_appends_to_the_18_fields_is_left_out(log: Path) -> None:
    appended = [f"{LINE} {{1241,1241}} q_1d 1:ppn=64", f"{LINE} 7", f"{LINE} {{12}} q_2h mem=1gb node"]
    expected, _ = read(log, HEADER + LINE + "\n")
    short = " ".join(LINE.split()[:17])
    rows, refused = read(log, HEADER + "\n".join([*appended, short]) + "\n")
    for row in range(3):
        pd.testing.assert_series_equal(rows.iloc[row].drop("place"), expected.iloc[0].drop("place"), check_names=False)
    assert refused["reason"].to_list() == ["17 fields; the lines of this log have 18 or more"]


def test_a_line_of_field_names_is_refused_and_the_jobs_are_read(log: Path) -> None:
    rows, refused = read(log, "\t".join(NAMES.split()) + f"\n{LINE}\n{LINE}\n")
    assert (len(rows), refused["reason"].to_list()) == (2, ["field 1 is not a number"])


def test_submit_times_that_are_seconds_since_1970_need_no_start(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows, _ = read(log, fields(submit="1356996147") + "\n")
    assert rows.loc[0, "submitted_at"] == pd.Timestamp("2012-12-31 23:22:27")
    assert not caplog.records


def test_job_numbers_may_come_again_and_times_may_go_back(log: Path) -> None:
    rows, refused = read(log, HEADER + f"{LINE}\n{fields(submit='50')}\n{LINE}\n")
    assert rows["run_id"].to_list() == ["7", "7", "7"]
    assert refused.empty


def test_a_job_number_too_large_to_be_told_from_its_neighbour_is_refused(log: Path) -> None:
    _, refused = read(log, HEADER + fields(job="9007199254740993") + f"\n{LINE}\n")
    assert refused["reason"].to_list() == ["no run id; expected one that is unique in its source"]


def test_the_rows_do_not_depend_on_the_size_of_a_block(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEADER + "".join(f"{fields(job=str(job))}\n" + "; pause\n" * (job % 3) for job in range(20))
    whole, _ = read(log, text)
    monkeypatch.setattr(files, "BLOCK_BYTES", 200)
    chunks: list[Chunk] = list(READERS["swf"].read(str(log), ReadParams()))
    assert len(chunks) > 2
    pd.testing.assert_frame_equal(pd.concat([chunk.rows for chunk in chunks], ignore_index=True), whole)


def test_refused_lines_come_in_the_order_of_the_file_whatever_is_wrong_with_them(log: Path) -> None:
    lines = [fields(run="-9"), "oops", fields(status="3"), LINE, fields(status="8"), fields(submit="-1")]
    rows, refused = read(log, HEADER + "\n".join(lines) + "\n")
    assert refused["place"].to_list() == [4, 5, 6, 8, 9]
    assert refused["raw"].to_list() == [line for line in lines if line != LINE]
    assert rows["place"].to_list() == [7]


@pytest.mark.parametrize(("content", "said"), NOT_SWF.values(), ids=NOT_SWF)
@pytest.mark.parametrize("block_lines", [1, 100])
def test_another_kind_of_file_is_refused_whole(
    log: Path, monkeypatch: pytest.MonkeyPatch, block_lines: int, content: bytes, said: str
) -> None:
    monkeypatch.setattr(files, "BLOCK_LINES", block_lines)
    with pytest.raises(BadInput) as refusal:
        read(log, content)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("head", "is_swf"), SNIFFED.values(), ids=SNIFFED)
def test_the_format_is_told_by_its_content(head: bytes, is_swf: bool) -> None:
    assert READERS["swf"].sniff(head, "log.txt") is is_swf


@pytest.mark.skipif(not NASA.is_file(), reason=NO_NASA)
def test_the_nasa_log_is_read_whole() -> None:
    rows, refused = read(NASA)
    assert (len(rows), len(refused), rows["run_id"].is_unique) == (18_239, 0, True)
    text = gzip.decompress(NASA.read_bytes()).decode().splitlines()
    last = rows.iloc[-1]
    numbers = [int(word) for word in text[last["place"] - 1].split()]
    assert [last["run_id"], last["runtime_s"], last["used_cpus"]] == [str(numbers[0]), numbers[3], numbers[4]]
    assert rows["started_at"].min() == pd.Timestamp("1993-10-01 07:00:03")  # Fri Oct 01 00:00:03 PDT 1993
    assert np.isclose(rows["runtime_s"].sum(), sum(int(line.split()[3]) for line in text if line[0] != ";"))


def test_runs_that_ended_at_their_limit_or_were_cancelled_at_work_keep_runtime_and_limit(log: Path) -> None:
    killed, early = fields(run="600", time="600", status="0"), fields(job="8", run="40", time="600", status="0")
    cancelled = fields(job="9", run="200", time="600", status="5")
    rows, refused = read(log, HEADER + "\n".join([killed, early, cancelled]) + "\n")
    told = rows[["status", "runtime_s", "requested_runtime_s"]].to_numpy().tolist()
    assert told == [["failed", 600.0, 600.0], ["failed", 40.0, 600.0], ["cancelled", 200.0, 600.0]]
    assert refused.empty


def field(position: int, value: str) -> Mutation:
    def mutate(words: list[str]) -> None:
        words[position - 1] = value

    return mutate


@pytest.fixture(scope="module")
def nasa() -> list[str]:
    if not NASA.is_file():
        pytest.skip(NO_NASA)
    return gzip.decompress(NASA.read_bytes()).decode().splitlines()[: N_COMMENTS + N_JOBS]


LINE_FAULTS: dict[str, tuple[Mutation, str]] = {
    "a word for a number": (field(4, "long"), "field 4 is not a number"),
    "a decimal comma": (field(4, "1,5"), "field 4 is not a number"),
    "NaN": (field(4, "NaN"), "field 4 is not a number"),
    "an infinite runtime": (field(4, "inf"), "field 4 is not a number"),
    "a number beyond floats": (field(4, "1e999"), "field 4 is too large"),
    "a number of 400 digits": (field(4, "9" * 400), "field 4 is too large"),
    "memory beyond floats": (field(10, "1e307"), "an infinite number; expected a finite one or none"),
    "one field less": (lambda words: words.pop(), "17 fields; the lines of this log have 18"),
    "one field more": (lambda words: words.append("-1"), "19 fields; the lines of this log have 18"),
    "two lines run together": (lambda words: words.extend(words), "36 fields; the lines of this log have 18"),
    "no job number": (field(1, "-1"), "no run id; expected one that is unique in its source"),
    "milliseconds since 1970": (field(2, "1479712345678"), "lies in the future; check clock, unit and time zone"),
    "a negative runtime": (field(4, "-2"), "negative runtime; expected 0 s or more"),
    "a status of its own": (field(11, "9"), "status 9; expected -1 to 5"),
    "a part of a job": (field(11, "3"), "a part of an interrupted job (status 2 to 4); expected its own line"),
}


@pytest.mark.parametrize(("mutate", "reason"), LINE_FAULTS.values(), ids=LINE_FAULTS)
def test_a_broken_line_goes_to_the_quarantine_and_the_rest_loads(
    tmp_path: Path, nasa: list[str], mutate: Mutation, reason: str
) -> None:
    words = nasa[VICTIM - 1].split()
    mutate(words)
    path = tmp_path / "nasa.swf"
    path.write_text("\n".join([*nasa[: VICTIM - 1], " ".join(words), *nasa[VICTIM:]]) + "\n")
    rows, refused = read(path)
    assert refused.to_numpy().tolist() == [[VICTIM, reason, " ".join(words)]]
    assert len(rows) == N_JOBS - 1
