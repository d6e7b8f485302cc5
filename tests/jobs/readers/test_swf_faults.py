"""Faults in logs in Standard Workload Format: each one a mutation of the NASA log, each with its message."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tasks import reading
from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.swf import SwfReader
from tasks.read_limits import ReadLimits

NASA = Path(os.environ.get("WHORL_DATASETS", "-")) / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz"
pytestmark = pytest.mark.skipif(
    not NASA.is_file(), reason="WHORL_DATASETS names no folder with swf/NASA-iPSC-1993-3.1-cln.swf.gz"
)
N_COMMENTS, N_JOBS = 32, 2_000  # the beginning of the log is enough
VICTIM = 500  # the line that is mutated
LIMITS = ReadLimits(max_line_bytes=1024)

Mutation = Callable[[list[str]], None]


def field(position: int, value: str) -> Mutation:
    def mutate(words: list[str]) -> None:
        words[position - 1] = value

    return mutate


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
    "no submit time": (field(2, "-1"), "neither submission nor start time; expected one of them"),
    "milliseconds since 1970": (field(2, "1479712345678"), "lies in the future; check clock, unit and time zone"),
    "before 1970": (field(2, "-749458900"), "lies before 1970; check the unit of the times"),
    "a negative wait": (field(3, "-7"), "starts before it is submitted; check the times"),
    "a negative runtime": (field(4, "-2"), "negative runtime; expected 0 s or more"),
    "a runtime of centuries": (field(4, "4e9"), "runtime or wait over 100 years; expected seconds"),
    "no runtime": (
        field(4, "-1"),
        "no runtime and no end time; expected one of them, or the status running or pending",
    ),
    "negative processors": (field(5, "-16"), "negative size or amount; expected 0 or more"),
    "a status of its own": (field(11, "9"), "status 9; expected -1 to 5"),
    "a part of a job": (field(11, "3"), "a part of an interrupted job (status 2 to 4); expected its own line"),
}


@pytest.fixture(scope="module")
def nasa() -> list[str]:
    return gzip.decompress(NASA.read_bytes()).decode().splitlines()[: N_COMMENTS + N_JOBS]


def read(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(SwfReader().read(str(path), ReadParams(limits=LIMITS)))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


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


BYTE_FAULTS: dict[str, tuple[Callable[[bytes], bytes], str, int]] = {
    "a NUL byte": (lambda line: line[:20] + b"\0" + line[21:], "a NUL byte in the line; expected text", 0),
    "Latin-1": (lambda line: b"\xe9" + line, "the line is not UTF-8; convert the file", 0),
    "an endless line": (
        lambda line: line + b" " * 2000 + b"7",
        "the line is longer than 1,024 bytes; shorten it or raise read.limits.max_line_bytes",
        0,
    ),
    "the last line cut": (lambda line: line, "12 fields; the lines of this log have 18", 1),
}


@pytest.mark.parametrize(("mutate", "reason", "at_end"), BYTE_FAULTS.values(), ids=BYTE_FAULTS)
def test_a_line_that_is_no_text_or_cut_off_is_refused_alone(
    tmp_path: Path, nasa: list[str], mutate: Callable[[bytes], bytes], reason: str, at_end: int
) -> None:
    lines = [line.encode() for line in nasa]
    lines[VICTIM - 1] = mutate(lines[VICTIM - 1])
    whole = b"\n".join(lines)
    path = tmp_path / "nasa.swf"
    path.write_bytes(whole[: -len(" -1 -1 -1 -1 -1 -1")] if at_end else whole + b"\n")
    rows, refused = read(path)
    assert len(rows) == N_JOBS - 1
    assert refused["place"].to_list() == [len(lines) if at_end else VICTIM]
    assert refused["reason"].iloc[0].startswith(reason)


WHOLE_FAULTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda text: b"", "the file is empty; expected at least one row; export it again"),
    "gzip cut off": (lambda text: gzip.compress(text)[:-99], "the gzip stream is damaged or cut off"),
    "a gzip bomb": (lambda text: gzip.compress(text[:14] + b" " * 2**25), "(a gzip bomb?); expected an ordinary log"),
    "UTF-16": (lambda text: text.decode().encode("utf-16"), "the text is UTF-16; expected UTF-8; convert it: iconv"),
    "CR for line ends": (lambda text: text.replace(b"\n", b"\r"), "lines end in CR alone; expected LF or CR LF"),
    "bzip2": (lambda text: b"BZh9" + text, "packed with bzip2; expected plain text or gzip; unpack it first"),
    "commas between fields": (
        lambda text: b"\n".join(b",".join(line.split()) for line in text.split(b"\n")),
        "its first lines are not numbers",
    ),
    "comments only": (
        lambda text: text[: text.rindex(b";") + 1],
        "no job in it, only comments; expected Standard Workload Format",
    ),
    "two logs joined": (
        lambda text: text + text.replace(b"749458803", b"749458804"),
        "starts another log (UnixStartTime: 749458804); expected one log; split the file",
    ),
}


@pytest.mark.parametrize(("mutate", "said"), WHOLE_FAULTS.values(), ids=WHOLE_FAULTS)
def test_a_file_that_is_wrong_as_a_whole_is_refused_in_one_line(
    tmp_path: Path, nasa: list[str], mutate: Callable[[bytes], bytes], said: str
) -> None:
    path = tmp_path / "nasa.swf"
    path.write_bytes(mutate("\n".join(nasa).encode() + b"\n"))
    with pytest.raises(BadInput) as refusal:
        read(path)
    assert said in str(refusal.value)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)


def test_a_broken_line_in_every_block_still_leaves_the_rest(
    tmp_path: Path, nasa: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", 16 * 1024)
    path = tmp_path / "nasa.swf"
    path.write_text("\n".join(line + " ?" * (number % 100 == 0) for number, line in enumerate(nasa, 1)) + "\n")
    rows, refused = read(path)
    assert refused["place"].to_list() == list(range(100, len(nasa) + 1, 100))
    assert len(rows) + len(refused) == N_JOBS


def test_a_log_that_is_out_of_order_gives_the_same_jobs(tmp_path: Path, nasa: list[str]) -> None:
    comments, jobs = [line for line in nasa if line[0] == ";"], [line for line in nasa if line[0] != ";"]
    path = tmp_path / "nasa.swf"
    path.write_text("\n".join([*comments, *jobs]) + "\n")
    straight, _ = read(path)
    path.write_text("\n".join([*comments, *reversed(jobs)]) + "\n")
    rows, refused = read(path)
    assert refused.empty
    mirrored = rows.iloc[::-1].reset_index(drop=True)
    pd.testing.assert_frame_equal(mirrored.drop(columns="place"), straight.reset_index(drop=True).drop(columns="place"))
