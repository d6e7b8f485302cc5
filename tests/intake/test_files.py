"""Files opened with care: what is refused whole, what is refused line by line, and in which words."""

import csv
import errno
import gzip
import logging
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pandas as pd
import pyarrow as pa
import pytest

from tasks.errors import BadInput
from tasks.intake import files
from tasks.intake.files import (  # fmt: skip
    PART_OF_A_JOB,
    UNSUPPORTED_EVENT,
    Chunk,
    csv_fields,
    guarded,
    input_faults,
    json_of,
    preview_of,
    read_blocks,
    read_head,
    read_lines,
    refusals,
)
from tasks.params import ReadLimits

LIMITS = ReadLimits()
KIB = 1024
BOMB = gzip.compress(bytes(3 * 1024 * KIB).replace(b"\0", b"a"))


def lines_of(path: Path | str, limits: ReadLimits = LIMITS) -> list[str]:
    return [line for block in read_lines(str(path), limits) for line in block.lines]


REFUSED_WHOLE = {
    "empty": (b"", LIMITS, "the file is empty; expected at least one row; export it again"),
    "bzip2": (b"BZh91AY", LIMITS, "packed with bzip2; expected plain text or gzip; unpack it first"),
    "zip": (b"PK\x03\x04rest", LIMITS, "packed with zip"),
    "zstd": (b"(\xb5/\xfd rest", LIMITS, "packed with zstd"),
    "UTF-16 with half a character": (b"\xff\xfe\x00\xd8\n\x00", LIMITS, "the text in UTF-16 is damaged or cut off"),
    "UTF-16 cut in a character": (b"\xff\xfea\x00\n\x00b", LIMITS, "the text in UTF-16 is damaged or cut off"),
    "UTF-16 without a mark": ("a b\n".encode("utf-16-le"), LIMITS, "binary content (NUL bytes)"),
    "a web page": (
        b"\xef\xbb\xbf\n <!DOCTYPE html><html>\n",
        LIMITS,
        "a web page; expected a table or log; look at it: a server may",
    ),
    "CR alone": (b"a\rb\rc\r", LIMITS, "lines end in CR alone; expected LF or CR LF; convert it: tr"),
    "gzip cut off": (gzip.compress(b"a\nb\n" * 9999)[:-30], LIMITS, "the gzip stream is damaged or cut off"),
    "gzip with a wrong byte": (gzip.compress(b"a\n")[:-5] + b"\xff1234", LIMITS, "the gzip stream is damaged"),
    "bomb": (BOMB, ReadLimits(max_ratio=500), "unpacks to more than 500 times its size (a gzip bomb?)"),
    "large": (b"a\n" * KIB, ReadLimits(max_bytes=KIB), "more than 1,024 bytes unpacked; expected a smaller file"),
    "large when unpacked": (gzip.compress(b"ab\n" * KIB), ReadLimits(max_bytes=2 * KIB), "more than 2,048 bytes"),
}


@pytest.mark.parametrize(("content", "limits", "said"), REFUSED_WHOLE.values(), ids=REFUSED_WHOLE)
def test_a_file_that_is_no_text_log_is_refused_in_one_line(
    tmp_path: Path, content: bytes, limits: ReadLimits, said: str
) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(content)
    with pytest.raises(BadInput) as refusal:
        lines_of(path, limits)
    assert said in str(refusal.value)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("missing.txt", "cannot be opened (No such file or directory); expected a readable file; check the path"),
        (".", "cannot be opened (Is a directory)"),
        ("nosuchprotocol://log", "cannot be opened (Protocol not known: nosuchprotocol)"),
    ],
)
def test_a_path_that_cannot_be_opened_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="cannot be opened") as refusal:
        lines_of(path)
    assert said in str(refusal.value)


REFUSED_LINES = {
    "not UTF-8": ("é\n".encode("latin-1"), "the line is not UTF-8; convert the file", "é"),
    "NUL": (b"a\x00b\n", "a NUL byte in the line; expected text (was the disk full?)", "a\\0b"),
    "long": (
        b"y" * 2000 + b"\n",
        "the line is longer than 1,024 bytes; shorten it or raise read.limits.max_line_bytes",
        "y" * 500,
    ),
}


@pytest.mark.parametrize("n_before", [1, files.HEAD_BYTES])
@pytest.mark.parametrize(("line", "reason", "raw"), REFUSED_LINES.values(), ids=REFUSED_LINES)
def test_a_broken_line_is_refused_alone_and_the_lines_around_it_keep_their_numbers(
    tmp_path: Path, n_before: int, line: bytes, reason: str, raw: str
) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"head\n" + b"x\n" * n_before + line + b"tail\n")
    block = list(read_lines(str(path), ReadLimits(max_line_bytes=KIB)))
    place = n_before + 2
    assert [one for part in block for one in part.refused] == [(place, reason, raw)]
    assert (block[-1].places[-1], block[-1].lines[-1]) == (place + 1, "tail")


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 64, 4096])
def test_lines_and_their_numbers_do_not_depend_on_the_size_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    path = tmp_path / "log.txt"
    long = "z" * 1500
    path.write_bytes(f"one\r\n\r\nthré\n{long}\nfive\n".encode() + b"\xffsix\nlast")
    monkeypatch.setattr(files, "BLOCK_BYTES", block_bytes)
    parts = list(read_lines(str(path), ReadLimits(max_line_bytes=KIB)))
    found = {place: line for part in parts for place, line in zip(part.places, part.lines, strict=True)}
    assert found == {1: "one", 2: "", 3: "thré", 5: "five", 7: "last"}
    assert [place for part in parts for place, _, _ in part.refused] == [4, 6]


def test_a_text_of_windows_is_told_by_its_first_letters_wherever_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 64)
    plain, path = "x\n" * 100, tmp_path / "log.txt"
    path.write_bytes((plain + "Müller\nKöln\nGröße\n" * 50).encode("cp1252"))
    parts = list(read_lines(str(path), ReadLimits()))
    assert [line for part in parts for line in part.lines][100:103] == ["Müller", "Köln", "Größe"]
    assert not any(part.refused for part in parts)
    path.write_bytes("Größe;b\n".encode("cp1252") + plain.encode())  # a table whose header alone is not ASCII
    assert next(read_lines(str(path), ReadLimits())).lines[0] == "Größe;b"
    path.write_bytes(plain.encode() + "Köln\n".encode() + plain.encode() + "Größe\nMüller\n".encode("cp1252"))
    assert sum(len(part.refused) for part in read_lines(str(path), ReadLimits())) == 2  # UTF-8, with two faults


WAYS = {  # gzip is told by its content
    "behind a byte order mark": b"\xef\xbb\xbfone\ntwo\n",
    "without a last line end": b"one\ntwo",
    "in UTF-16": "one\r\ntwo\r\n".encode("utf-16"),
    "in UTF-16, packed": gzip.compress("one\ntwo\n".encode("utf-16")),
    "in two members of gzip": gzip.compress(b"one\n") + gzip.compress(b"two\n"),
}


@pytest.mark.parametrize("content", WAYS.values(), ids=WAYS)
def test_the_lines_of_a_text_are_the_same_in_whatever_way_it_is_written(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log.txt").write_bytes(content)
    assert lines_of(tmp_path / "log.txt") == ["one", "two"]


def test_a_small_file_may_shrink_a_thousandfold_in_good_faith(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes(gzip.compress(b"a\n" * 200 * KIB))
    assert len(lines_of(tmp_path / "log.txt", ReadLimits(max_ratio=10))) == 200 * KIB


def test_a_block_holds_a_bounded_number_of_lines_and_misses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK_LINES", 10)
    (tmp_path / "log.txt").write_bytes(b"".join(b"%d\n" % number for number in range(1, 31)) + b"31\n")
    blocks = list(read_blocks(str(tmp_path / "log.txt"), LIMITS))
    assert [(block.first, block.data.count(b"\n")) for block in blocks] == [(1, 10), (11, 10), (21, 10), (31, 1)]
    assert b"".join(block.data for block in blocks).split() == [b"%d" % number for number in range(1, 32)]


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", KIB)
    (tmp_path / "log.txt").write_bytes(b"a" * 5000 * KIB)
    (block,) = read_blocks(str(tmp_path / "log.txt"), ReadLimits(max_line_bytes=KIB))
    assert (block.data, len(block.refused)) == (b"\n", 1)


def test_any_storage_that_fsspec_reaches_can_be_read() -> None:
    with fsspec.open("memory://logs/one.txt", "wb") as file:
        file.write(gzip.compress(b"one\ntwo\n"))
    assert lines_of("memory://logs/one.txt") == ["one", "two"]
    assert read_head("memory://logs/one.txt", LIMITS) == b"one\ntwo\n"


def test_reading_without_a_size_is_a_programming_error(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes(b"one\n")
    with files.open_checked(str(tmp_path / "log.txt"), LIMITS) as stream, pytest.raises(ValueError, match="bounded"):
        stream.read(-1)


FAULTS = (
    OverflowError("too\nlarge"), RecursionError("deep"), KeyError("x"), csv.Error("field"), MemoryError(),
    pa.ArrowKeyError("k"),
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_what_nobody_thought_of_is_one_line_about_the_file_and_its_place(
    fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def chunks() -> Iterator[Chunk]:
        yield Chunk(pd.DataFrame({"run_id": ["a", "b"]}), refusals([3], "bad", ["x"]), {})
        raise fault

    with caplog.at_level(logging.DEBUG, "tasks.intake.files"), pytest.raises(BadInput) as refusal:
        list(guarded("log.csv", chunks()))
    kind = type(fault).__name__
    assert str(refusal.value).startswith(f"log.csv: cannot be read behind row 3 ({kind}: ")
    assert "\n" not in str(refusal.value)
    assert caplog.records[0].exc_info


@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, "No space left on device"), AssertionError("ours"), BadInput("a", "b", "c")]
)
def test_a_full_disk_a_fault_of_ours_and_a_line_of_the_reader_pass_as_they_are(fault: Exception) -> None:
    with pytest.raises(type(fault)) as raised, input_faults("log.csv"):
        raise fault
    assert raised.value is fault


def test_json_that_is_nested_too_deeply_and_a_field_without_end_are_no_values() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        json_of("[" * 100_000)
    with pytest.raises(ValueError, match="field larger than field limit"):
        csv_fields("a," + "b" * 140_000)
    assert (json_of('{"a": 1}'), csv_fields('a,"b;c"')) == ({"a": 1}, ["a", "b;c"])


def test_half_a_character_in_a_refused_line_is_written_out() -> None:
    told = refusals([1, 2], ["Name '\ud800' is wrong", "né"], ["a\udfff", "b"])
    assert told["reason"].to_list() == ["Name '\\ud800' is wrong", "né"]
    assert told["raw"].to_list() == ["a\\udfff", "b"]
    assert refusals([1], "\ud800", [""])["reason"].to_list() == ["\\ud800"]


def chunk(n_kept: int, reasons: list[str], first: int = 1, **more: object) -> Chunk:
    rows = pd.DataFrame({"place": range(first, first + n_kept), **more})
    places = range(first + n_kept, first + n_kept + len(reasons))
    return Chunk(rows, refusals(places, reasons, [""] * len(reasons)), {})


def test_more_than_the_share_stops_the_file_and_exactly_the_share_does_not() -> None:
    seen = preview_of("jobs", "log.csv", "own", [chunk(7, ["bad"] * 2), chunk(1, [], first=10)])
    assert (seen.n_read, seen.n_kept, seen.n_refused) == (10, 8, 2)
    seen.require(0.2)
    with pytest.raises(BadInput) as refusal:
        seen.require(0.19)
    assert str(refusal.value) == (
        "log.csv: not loaded: 2 of 10 rows are refused, most of them (2, in line 8, 9) because: bad; expected at most "
        "19.0 % refused; mend or map what is named, or raise --max-refused-share (read.limits.max_refused_share)"
    )


def test_a_reason_of_few_rows_is_not_called_that_of_most() -> None:
    seen = preview_of("jobs", "log.csv", "own", [chunk(0, ["bad a", "bad b", "bad c"])])
    with pytest.raises(BadInput, match="3 of 3 rows are refused, some of them \\(1, in line 1\\) because: bad a"):
        seen.require(0.2)


def test_lines_that_are_left_out_with_good_reason_stop_no_file() -> None:
    seen = preview_of("workloads", "a.perf", "perf", [chunk(1, [UNSUPPORTED_EVENT] * 9, n_rows=4)])
    assert (seen.n_kept, seen.n_refused, seen.n_faulty) == (4, 9, 0)
    seen.require(0)
    preview_of("jobs", "a.swf", "swf", [chunk(1, [PART_OF_A_JOB] * 3)]).require(0.2)


def test_faults_of_single_values_of_kept_rows_are_no_refused_rows() -> None:
    rows = pd.DataFrame({"place": [1, 5], "n_rows": [4, 4]})
    refused = refusals([1, 1, 9, 9], ["a", "b", "c", "d"], [""] * 4)
    seen = preview_of("nodes", "f", "long", [Chunk(rows, refused, {})])
    assert (seen.n_kept, seen.n_refused) == (8, 1)


def test_the_most_frequent_reasons_are_told_with_their_first_places() -> None:
    seen = preview_of("jobs", "f", "own", [chunk(0, ["x"] + ["y"] * 5 + [f"z{n}" for n in range(9)])])
    assert (seen.refused[0].reason, seen.refused[0].n_rows, seen.refused[0].places) == ("y", 5, [2, 3, 4])
    assert len(seen.refused) == 5
