"""Files opened with care: chunks of rows, refused lines, blocks of text, limits against bombs; and how many rows of a
file can be used, how many were refused and why: what stops a load, and what --dry-run tells.

What makes frames imports pandas when it is asked for: a text of numbers is read without it."""

from __future__ import annotations

import codecs
import csv
import errno
import gzip
import json
import logging
import lzma
import re
import sqlite3
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from tasks.errors import BadInput, reason_of
from tasks.params import ReadLimits
from tasks.quantities import share
from tasks.storage import CANNOT_OPEN, open_stored

if TYPE_CHECKING:
    import pandas as pd

GZIP_MAGIC = b"\x1f\x8b"
OTHER_PACKERS = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstd", b"PK\x03\x04": "zip"}
BROKEN_STREAM = (EOFError, zlib.error, gzip.BadGzipFile)
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
WEB_PAGES = (b"<!doctype html", b"<html")
WINDOWS = "cp1252"
LEAST_WINDOWS = 2  # lines that are not UTF-8; a single one is a fault
NEWLINE = ord("\n")
HEAD_BYTES = 64 * 1024
BLOCK_BYTES = 4 * 1024 * 1024
BLOCK_LINES = 100_000
RAW_CHARS = 500  # how much of a refused line is kept in the quarantine
RATIO_CHECKED_FROM_BYTES = 1024 * 1024  # a tiny file may shrink a thousandfold in good faith


INPUT_FAULTS = (
    ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError, NotImplementedError,
    MemoryError, EOFError, OSError, ImportError, csv.Error, struct.error, sqlite3.Error, zlib.error, lzma.LZMAError,
    tarfile.TarError, zipfile.BadZipFile,
)  # fmt: skip
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

logger = logging.getLogger(__name__)
Opener = Callable[[str, ReadLimits], AbstractContextManager[IO[bytes]]]
Refused = tuple[int, str, str]  # line or row in the file, from 1; the reason; what stands there
MISSING = ["", "-", "--", "n/a", "na", "nan", "none", "null", "nat", "undefined", "\\n"]  # in lower case
DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file: those that can be used and those that were refused.

    rows: the word's own columns plus `place` (int64: line or row in the file, from 1).
    refused: columns place (int64), reason (str) and raw (str, at most 500 characters).
    tables: further tables that belong to the rows, by name (for instance `vertices`).
    understood: of the columns, in words; with the first chunk. names_in_ids: ids are made of names."""

    rows: pd.DataFrame
    refused: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    understood: tuple[str, ...] = ()
    names_in_ids: bool = False


@dataclass(frozen=True)
class Block:
    """Whole lines of a text file: valid UTF-8, each ended by one newline, the first numbered `first` (from 1).

    A line that was refused stands in `data` as an empty one, so that numbers can be counted."""

    first: int
    data: bytes
    refused: Sequence[Refused] = ()


@dataclass(frozen=True)
class Lines:
    """A block of text lines without their line ends; `places` are their numbers in the file, from 1."""

    places: list[int]
    lines: list[str]
    refused: Sequence[Refused] = ()


def refused_rows(bad: Sequence[Refused]) -> pd.DataFrame:
    """What was refused as readers hand it on, in the order of the file."""
    ordered = sorted(bad, key=lambda line: line[0])
    return refusals([place for place, _, _ in ordered], [why for _, why, _ in ordered], [raw for _, _, raw in ordered])


def refusals(places: Iterable[int], reasons: Sequence[str] | str, raws: Iterable[str]) -> pd.DataFrame:
    """The frame of refused lines that a Chunk carries; one reason may stand for all of them."""
    import pandas as pd

    reason_texts = encodable(reasons) if isinstance(reasons, str) else [encodable(reason) for reason in reasons]
    shown = [encodable(raw[:RAW_CHARS]) for raw in raws]
    frame = pd.DataFrame({"place": pd.Series(list(places), dtype="int64"), "reason": reason_texts, "raw": shown})
    return frame.astype({"reason": "str", "raw": "str"})


def encodable(text: str) -> str:
    """A text that UTF-8 can hold: half a character (a lone surrogate, as JSON can name one) is written as \\ud800."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def no_refusals() -> pd.DataFrame:
    """A frame of refused lines with no line in it."""
    return refusals([], [], [])


def csv_fields(line: str, delimiter: str = ",") -> list[str]:
    """The fields of one line of CSV. Raises ValueError for what is none, such as a field over 131,072 characters."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise ValueError(str(error)) from error


def split_header(line: str, known: Collection[str] = ()) -> tuple[list[str], str]:
    """The names in a header line, and the delimiter: the one that makes most of them known, then most of them."""
    splits = []
    for mark in DELIMITERS:
        try:
            names = csv_fields(line, mark)
        except ValueError:  # a field that is too long for a name
            names = line.split(mark)
        splits.append(([name.strip() for name in names], mark))
    return max(splits, key=lambda split: (sum(name in known for name in split[0]), len(split[0])))


def key_of(name: str) -> str:
    """What spellings of one name share: small letters without accents, digits, and the dots of nested names."""
    return re.sub(r"[^a-z0-9.%]", "", without_accents(name).lower())


def without_accents(text: str) -> str:
    """Durée is Duree."""
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))


def number_of(text: object) -> float | None:
    """A number as Python reads it; None for what is none."""
    try:
        return float(str(text)) if text is not None else None
    except ValueError:
        return None


def json_of(text: str | bytes) -> Any:
    """A JSON document. Raises ValueError for what is none, and for one that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def all_refusals(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Several frames of refused lines as one, in the order of the file."""
    kept = [frame for frame in frames if len(frame)]
    if len(kept) < 2:
        return kept[0] if kept else no_refusals()
    import pandas as pd

    return pd.concat(kept).sort_values("place", kind="stable").reset_index(drop=True)


@contextmanager
def open_checked(path: str, limits: ReadLimits) -> Iterator[IO[bytes]]:
    """The bytes of a plain or gzip file (told by its content), local or anything fsspec reaches; UTF-16 as UTF-8.

    Raises BadInput if it is missing, empty, packed in another way, larger than the limits or truncated."""
    with open_plain(path) as raw:
        magic = raw.read(8)
        raw.seek(0)
        if not magic:
            raise BadInput(path, "the file is empty", "at least one row", "export it again")
        packer = next((name for mark, name in OTHER_PACKERS.items() if magic.startswith(mark)), None)
        if packer:
            raise BadInput(path, f"packed with {packer}", "plain text or gzip", "unpack it first")
        unpacked: Any = gzip.GzipFile(fileobj=raw) if magic.startswith(GZIP_MAGIC) else raw
        start = b""
        with suppress(*BROKEN_STREAM):  # which is told when all of it is read
            start = unpacked.read(len(UTF16_MARKS[0]))
        unpacked.seek(0)
        if start in UTF16_MARKS:  # as Excel writes "Unicode text"
            unpacked = codecs.EncodedFile(unpacked, "utf-8", "utf-16")
        yield counted(path, raw, unpacked, limits)


def counted(path: str, raw: IO[bytes], unpacked: Any, limits: ReadLimits) -> IO[bytes]:
    """The bytes of `unpacked`, up to the limits; raw: the file itself, which tells how much of it was unpacked."""
    return cast(IO[bytes], _Counted(path, raw, unpacked, limits))


@contextmanager
def open_plain(path: str) -> Iterator[IO[bytes]]:
    """The bytes of a file as they are, seekable; raises BadInput if it cannot be opened."""
    try:
        raw = open_stored(path)
    except CANNOT_OPEN as error:
        raise BadInput(path, f"cannot be opened ({reason_of(error)})", "a readable file", "check the path") from error
    except AttributeError as error:  # fsspec opens a FIFO or a device in a tar archive as nothing at all
        raise BadInput(path, "cannot be opened (it is no regular file)", "a regular file", "check the path") from error
    with raw:
        yield raw


@contextmanager
def input_faults(path: str, n_rows: int = 0) -> Iterator[None]:
    """Errors that the content of a file causes where it is read, as one line about the file; a full disk passes.

    n_rows: how many of its rows were read before. Readers say themselves what they know to be wrong; this is for what
    nobody thought of, so that a file never holds up those behind it. The traceback is logged at debug level."""
    try:
        yield
    except INPUT_FAULTS + _arrow_faults() as error:
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            raise
        logger.debug("%s cannot be read", path, exc_info=True)
        behind = f" behind row {n_rows:,}" if n_rows else ""
        problem = f"cannot be read{behind} ({type(error).__name__}: {reason_of(error)})"
        raise BadInput(path, problem, "a whole file of a known format", "copy or export it again") from error


def _arrow_faults() -> tuple[type[Exception], ...]:
    import pyarrow as pa

    return (pa.ArrowException,)


def parquet_faults() -> tuple[type[Exception], ...]:
    """What pyarrow raises for a damaged file."""
    return (*_arrow_faults(), OSError, ValueError, LookupError)


def damaged_parquet(path: str, error: Exception) -> BadInput:
    """The error for a Parquet file that cannot be read. error: one of parquet_faults()."""
    return BadInput(path, f"the Parquet file is damaged ({reason_of(error)})", "a whole file", "copy it again")


def guarded(path: str, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The chunks of a file, with the errors that its content causes in its reader as BadInput."""
    waiting, n_rows = iter(chunks), 0
    while True:
        with input_faults(path, n_rows):
            chunk = next(waiting, None)
        if chunk is None:
            return
        n_rows += len(chunk.rows) + len(chunk.refused)
        yield chunk


class _Counted:
    """A byte stream that stops at the limits, before memory or disk are full."""

    def __init__(self, path: str, raw: IO[bytes], unpacked: Any, limits: ReadLimits) -> None:
        self.path, self.raw, self.limits, self.stream, self.n_bytes = path, raw, limits, unpacked, 0
        self.packed = unpacked is not raw

    def read(self, size: int = BLOCK_BYTES) -> bytes:
        if size < 0:
            raise ValueError("read a stated number of bytes: memory must stay bounded")
        try:
            block = cast(bytes, self.stream.read(size))
            if not block and (rest := getattr(getattr(self.stream, "reader", None), "bytebuffer", b"")):
                raise UnicodeDecodeError("utf-16", rest, 0, len(rest), "half a character at its end")
        except (*BROKEN_STREAM, UnicodeDecodeError) as error:
            what = "text in UTF-16" if isinstance(error, UnicodeDecodeError) else "gzip stream"
            problem = f"the {what} is damaged or cut off ({error})"
            raise BadInput(self.path, problem, "a whole file", "copy it again") from error
        self.n_bytes += len(block)
        self._check()
        return block

    def _check(self) -> None:
        if self.n_bytes > self.limits.max_bytes:
            raise BadInput(
                self.path,
                f"more than {self.limits.max_bytes:,} bytes unpacked",
                "a smaller file",
                "split it, or raise read.limits.max_bytes",
            )
        n_packed = self.raw.tell() if self.packed else 0
        if n_packed and self.n_bytes > max(RATIO_CHECKED_FROM_BYTES, self.limits.max_ratio * n_packed):
            raise BadInput(
                self.path,
                f"unpacks to more than {self.limits.max_ratio:g} times its size (a gzip bomb?)",
                "an ordinary log",
                "unpack it by hand and look, or raise read.limits.max_ratio",
            )


def read_head(path: str, limits: ReadLimits) -> bytes:
    """The first 64 KiB of a file, unpacked: enough to tell its format."""
    with open_checked(path, limits) as stream:
        return stream.read(HEAD_BYTES)


def read_lines(path: str, limits: ReadLimits, *, open_as: Opener = open_checked) -> Iterator[Lines]:
    """The lines of a UTF-8 text file, at most 100,000 at a time; a line that is no text is refused alone.

    Raises BadInput for what read_blocks and open_checked (or what opens the file in its place) refuse."""
    for block in read_blocks(path, limits, open_as=open_as):
        text = block.data.decode().split("\n")[:-1]
        numbered = enumerate(text, block.first)
        if block.refused:
            gone = {place for place, _, _ in block.refused}
            kept = [(place, line) for place, line in numbered if place not in gone]
            yield Lines([place for place, _ in kept], [line for _, line in kept], block.refused)
        else:
            yield Lines(list(range(block.first, block.first + len(text))), text)


def read_blocks(path: str, limits: ReadLimits, *, open_as: Opener = open_checked) -> Iterator[Block]:
    """A UTF-8 text file in blocks of whole lines, at most 4 MiB (or one line) and 100,000 lines each.

    CR LF becomes LF. Lines that are not UTF-8, hold a NUL byte or are too long are refused one by one; a text of
    Windows-1252, as Excel saves it, is read as that, and a warning says so. Raises BadInput for binary content, a web
    page, a text without line feeds, and what open_checked refuses."""
    with open_as(path, limits) as stream:
        rest, first, is_start = b"", 1, True
        is_windows: bool | None = None  # until the first lines that are not ASCII
        while block := stream.read(BLOCK_BYTES):
            if is_start:
                block, is_start = _as_text(path, block), False
            if is_windows is None and (is_windows := _is_windows(path, rest + block, has_header=first == 1)):
                rest = rest.decode(WINDOWS, "replace").encode()
            if is_windows:
                block = block.decode(WINDOWS, "replace").encode()
            whole, newline, tail = block.rpartition(b"\n")
            if newline:
                for data in _line_blocks(rest + whole + newline):
                    yield _cleaned(first, data, limits.max_line_bytes)
                    first += data.count(b"\n")
                rest = b""
            rest = (rest + tail)[: limits.max_line_bytes + 1]  # so much tells that the line is too long
        if rest:
            yield _cleaned(first, rest + b"\n", limits.max_line_bytes)


def _as_text(path: str, start: bytes) -> bytes:
    lines = start[:HEAD_BYTES].rstrip(b"\n").split(b"\n")
    if 2 * sum(b"\x00" in line for line in lines) > len(lines):
        raise BadInput(path, "binary content (NUL bytes)", "a UTF-8 text log", "check that it is the right file")
    if start.removeprefix(UTF8_MARK).lstrip().lower().startswith(WEB_PAGES):
        raise BadInput(path, "a web page", "a table or log", "look at it: a server may have sent its log-in page")
    if b"\r" in start and b"\n" not in start:
        raise BadInput(path, "lines end in CR alone", "LF or CR LF", "convert it: tr '\\r' '\\n'")
    return start.removeprefix(UTF8_MARK)


def _is_windows(path: str, block: bytes, *, has_header: bool) -> bool | None:
    """Whether a text is of Windows-1252: several lines or the first are not UTF-8, and none is.

    None where the block does not tell: too few of its lines are not ASCII."""
    lines = [] if block.isascii() else [line for line in block.split(b"\n") if not line.isascii()]
    if any(_is_utf8(line) or b"\x00" in line for line in lines):
        return False
    if len(lines) < LEAST_WINDOWS and not (has_header and lines and block.startswith(lines[0])):
        return None
    try:
        b"".join(lines).decode(WINDOWS)
    except UnicodeDecodeError:
        return False
    logger.warning("%s: not UTF-8, read as Windows-1252; where names look wrong, convert it to UTF-8", path)
    return True


def _line_blocks(data: bytes) -> Iterator[bytes]:
    """Whole lines cut into pieces of at most BLOCK_LINES lines."""
    if data.count(b"\n") <= BLOCK_LINES:
        yield data
        return
    ends = _line_ends(data)
    cuts = [0, *(ends[BLOCK_LINES - 1 : -1 : BLOCK_LINES] + 1).tolist(), len(data)]
    yield from (data[start:stop] for start, stop in pairwise(cuts))


def _line_ends(data: bytes) -> Any:
    return np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == NEWLINE)


def _cleaned(first: int, data: bytes, max_line_bytes: int) -> Block:
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    is_long = len(data) > max_line_bytes and np.diff(_line_ends(data), prepend=-1).max() > max_line_bytes + 1
    if b"\x00" not in data and not is_long and _is_utf8(data):
        return Block(first, data)
    lines = data.split(b"\n")[:-1]
    reasons = [_fault(line, max_line_bytes) for line in lines]
    bad = [
        (first + at, reason, lines[at][:RAW_CHARS].decode("latin-1").replace("\x00", "\\0"))
        for at, reason in enumerate(reasons)
        if reason
    ]
    good = b"\n".join(b"" if reason else line for line, reason in zip(lines, reasons, strict=True))
    return Block(first, good + b"\n", bad)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _fault(line: bytes, max_line_bytes: int) -> str:
    if len(line) > max_line_bytes:
        return f"the line is longer than {max_line_bytes:,} bytes; shorten it or raise read.limits.max_line_bytes"
    if b"\x00" in line:
        return "a NUL byte in the line; expected text (was the disk full?)"
    return "" if _is_utf8(line) else "the line is not UTF-8; convert the file"


N_REASONS = 5
N_EXAMPLES = 3
# Lines that are refused with good reason, however many there are: they do not count as a fault of the file
UNSUPPORTED_EVENT = "this machine does not support the event"
PART_OF_A_JOB = "a part of an interrupted job (status 2 to 4); expected its own line"
NO_BENCHMARK = "describes the machine, is no benchmark"
CUT_OFF = "it was cut off"
SINCE_BOOT = "means since the machine was started; expected a sample"
NO_FAULTS = (UNSUPPORTED_EVENT, PART_OF_A_JOB, NO_BENCHMARK, CUT_OFF, SINCE_BOOT)  # how reasons end
MAX_REASONS = 10_000  # different ones that are counted by themselves: reasons may quote values
OTHER_REASONS = "other reasons"
# Words whose readers list single values of landed rows among what they refuse, at the place of their row: they stand in
# ops.quarantine, and are no rows of the file for ops.files.
REFUSE_VALUES = {"nodes"}
NOWHERE = np.zeros(0, dtype="int64")


@dataclass(frozen=True)
class RefusedFor:
    """Rows refused for one reason, with the first places (lines or rows of the file) where they stand."""

    reason: str
    n_rows: int
    places: list[int]


@dataclass(frozen=True)
class Preview:
    """What a file would give. n_kept, n_refused: rows of the file; refused: the most frequent reasons.

    n_faulty: refused rows that speak against the file, without those of NO_FAULTS. understood: of its columns. A run
    id that stands twice shows at ingest only."""

    path: str
    reader: str
    n_read: int
    n_kept: int
    n_refused: int
    n_faulty: int
    refused: list[RefusedFor]
    understood: tuple[str, ...] = ()

    def require(self, max_refused_share: float) -> None:
        """Raise BadInput if a larger share of the rows is faulty."""
        if self.n_faulty <= max_refused_share * self.n_read:
            return
        first = next(refusal for refusal in self.refused if not refusal.reason.endswith(NO_FAULTS))
        which = "most of them" if 2 * first.n_rows >= self.n_faulty else "some of them"
        raise BadInput(
            self.path,
            f"not loaded: {self.n_faulty:,} of {self.n_read:,} rows are refused, {which} ({first.n_rows:,}, in "
            f"line {', '.join(f'{place:,}' for place in first.places)}) because: {first.reason}",
            f"at most {share(max_refused_share)} refused",
            "mend or map what is named, or raise --max-refused-share (read.limits.max_refused_share)",
        )


class Tally:
    """Counts the rows of a file while it is read."""

    def __init__(self, word: str) -> None:
        self.n_kept = 0
        self.understood: list[str] = []
        self._refuses_values = word in REFUSE_VALUES
        self._reasons: Counter[str] = Counter()
        self._places: dict[str, list[int]] = {}
        self._kept, self._refused = [NOWHERE], [NOWHERE]

    def counted(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The chunks, each counted when it is asked for."""
        for chunk in chunks:
            self._add(chunk.rows, chunk.refused)
            self.understood += chunk.understood
            yield chunk

    def _add(self, rows: pd.DataFrame, refused: pd.DataFrame) -> None:
        self.n_kept += int(np.sum(rows["n_rows"])) if "n_rows" in rows else len(rows)
        if self._refuses_values:  # several faults of a row, and faults of rows that are kept
            self._kept += [rows["place"].to_numpy(dtype="int64")] if len(rows) else []
            self._refused.append(np.unique(refused["place"].to_numpy(dtype="int64")))
        for reason, group in refused.groupby("reason")["place"]:
            if reason in self._reasons or len(self._reasons) < MAX_REASONS:
                known = self._places.setdefault(str(reason), [])
                known += group.head(N_EXAMPLES - len(known)).to_list()
                self._reasons[str(reason)] += len(group)
            else:
                self._reasons[OTHER_REASONS] += len(group)

    def preview(self, path: str, reader: str) -> Preview:
        """What was counted so far."""
        n_refused = self._reasons.total()
        n_rightly = sum(n for reason, n in self._reasons.items() if reason.endswith(NO_FAULTS))
        if self._refuses_values:
            n_refused = len(np.setdiff1d(np.concatenate(self._refused), np.concatenate(self._kept)))
        frequent = self._reasons.most_common(N_REASONS)
        return Preview(
            path=path,
            reader=reader,
            n_read=self.n_kept + n_refused,
            n_kept=self.n_kept,
            n_refused=n_refused,
            n_faulty=max(0, n_refused - n_rightly),
            refused=[RefusedFor(reason, n_rows, self._places.get(reason, [])) for reason, n_rows in frequent],
            understood=tuple(self.understood),
        )


def preview_of(word: str, path: str, reader: str, chunks: Iterable[Chunk]) -> Preview:
    """What the chunks of a file would give; none of them is kept."""
    tally = Tally(word)
    for _ in tally.counted(guarded(path, chunks)):
        pass
    return tally.preview(path, reader)
