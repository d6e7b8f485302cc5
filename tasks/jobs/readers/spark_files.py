"""Which files make one Spark event log, and how Spark packs them."""

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, Any, cast

import pyarrow as pa

from tasks.errors import BadInput
from tasks.intake.files import HEAD_BYTES, Lines, counted, open_checked, open_plain, read_lines
from tasks.intake.limits import ReadLimits
from tasks.storage import storage_of

ROLLED = "eventlog_v2_"
PART = re.compile(r"events_(\d+)_.+")
COMPACT = ".compact"
IN_PROGRESS = ".inprogress"
PACKINGS = r"(\.(zstd|lz4|snappy|lzf|gz))?"
APPLICATION = r"(app-\d{14}-\d{4}|application_\d+_\d+(_\d+)?|local-\d{13}|spark-(application-\d{13}|[0-9a-f]{32}))"
PLAIN_NAME = re.compile(rf"{APPLICATION}(_\d+)?{PACKINGS}({re.escape(IN_PROGRESS)})?")
ROLLED_PART = re.compile(rf".*/{ROLLED}[^/]+/[^/]+")
ZSTD_MAGIC, LZ4_MAGIC, SNAPPY_MAGIC, LZF_MAGIC = b"(\xb5/\xfd", b"LZ4Block", b"\x82SNAPPY\x00", b"ZV"
LZF_KINDS = (0, 1)  # the byte behind ZV: a chunk as it is, a packed one
MAGIC_BYTES = 8
LZ4_HEADER = struct.Struct("<BIII")  # method and level, packed length, length, checksum
LZ4_AS_IT_IS, LZ4_PACKED = 0x10, 0x20
SNAPPY_VERSIONS = 8  # two numbers behind the magic bytes
SNAPPY_LENGTH = struct.Struct(">I")
LARGEST_BLOCK_BYTES = 64 * 2**20  # both libraries write blocks of at most 32 MiB
ZSTD_PIECE_BYTES = 4096  # so much is lost at the end of a stream that is still being written
WHOLE = "a whole event log"
AGAIN = "copy it again, or wait until the application has ended"


def has_event_log_name(path: str) -> bool:
    """Whether a path is called as Spark calls its event logs, plain or rolled."""
    name = PurePosixPath(path).name
    return name.startswith(ROLLED) or PLAIN_NAME.fullmatch(name) is not None


def is_rolled(path: str) -> bool:
    """Whether the path is called as the folder of a rolled log."""
    return PurePosixPath(path).name.startswith(ROLLED)


def without_parts(names: list[str]) -> list[str]:
    """The names, with each rolled log's folder once in place of its files."""
    gathered = [str(PurePosixPath(name).parent) if ROLLED_PART.fullmatch(name) else name for name in names]
    return list(dict.fromkeys(gathered))


def parts_of(path: str) -> list[str]:
    """The files of one event log in their order; a plain log is its own only part.

    Raises BadInput if a rolled log has no events, or a gap between its files."""
    if not is_rolled(path):
        return [path]
    numbered = {name: _number(name) for name in _names_in(path)}
    parts = sorted((number, name) for name, number in numbered.items() if number is not None)
    compacted = [number for number, name in parts if name.endswith(COMPACT)]
    if compacted:  # what it stands for may not be deleted yet
        newest = compacted[-1]
        parts = [(n, name) for n, name in parts if n > newest or (n == newest and name.endswith(COMPACT))]
    if not parts:
        raise BadInput(path, "no events in it", "files events_1_<application> and so on", "copy the whole folder again")
    first, last = parts[0][0], parts[-1][0]
    missing = sorted(set(range(first if compacted else 1, last + 1)) - {number for number, _ in parts})
    if missing:
        raise BadInput(
            path,
            f"file events_{missing[0]}_… is missing",
            f"all files up to events_{last}_…",
            "copy the whole folder again",
        )
    return [name for _, name in parts]


def is_compacted(path: str) -> bool:
    """Whether Spark has left out events of this log that it no longer shows."""
    return any(name.endswith(COMPACT) for name in parts_of(path))


def is_in_progress(path: str) -> bool:
    """Whether Spark says by a name that the application still runs."""
    names = _names_in(path) if is_rolled(path) else [path]
    return any(name.endswith(IN_PROGRESS) for name in names)


def read_parts(path: str, limits: ReadLimits) -> Iterator[Lines]:
    """The lines of an event log, numbered through all of its files.

    Raises BadInput as read_lines does; the last file may end too early while the application runs, or be empty yet."""
    is_running, before, parts = is_in_progress(path), 0, parts_of(path)
    for part in parts:
        last, may_be_cut = 0, is_running and part == parts[-1]
        try:
            for lines in read_lines(part, limits, open_as=open_event_log):
                last = max([last, *lines.places[-1:], *lines.refused["place"][-1:]])
                refused = lines.refused.assign(place=lines.refused["place"] + before)
                yield Lines([place + before for place in lines.places], lines.lines, refused)
        except CutOff:
            if not may_be_cut or not before + last:
                raise
        before += last


def _names_in(folder: str) -> list[str]:
    fs, root = storage_of(folder)
    if not fs.exists(root):
        raise BadInput(folder, "no such folder", "the folder of a rolled event log", "check the path")
    return sorted(fs.unstrip_protocol(str(name)).removeprefix("file://") for name in fs.find(root))


def _number(name: str) -> int | None:
    match = PART.fullmatch(PurePosixPath(name).name)
    return int(match[1]) if match else None


class CutOff(BadInput):
    """A packed log that ends in the middle: what was read before is good."""


class _Lent:
    """A file for pyarrow to read from, which closes what it is given."""

    closed = False

    def __init__(self, raw: IO[bytes]) -> None:
        self.read = raw.read

    def close(self) -> None:
        """Leave the file open."""


class _Unpacked:
    """A stream over pieces of bytes: what is there before a fault is given before the fault is raised."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces, self.waiting = pieces, bytearray()
        self.fault: BadInput | None = None

    def read(self, size: int) -> bytes:
        while len(self.waiting) < size and self.fault is None:
            try:
                piece = next(self.pieces, None)
            except BadInput as fault:
                self.fault = fault
                break
            if piece is None:
                break
            self.waiting += piece
        if self.fault and not self.waiting:
            raise self.fault
        block = bytes(self.waiting[:size])
        del self.waiting[:size]
        return block


@contextmanager
def open_event_log(path: str, limits: ReadLimits) -> Iterator[IO[bytes]]:
    """The bytes of one file of an event log, unpacked; plain and gzip files are opened as in other readers.

    Raises BadInput as open_checked does, for lzf, for a damaged stream; CutOff where it ends too early or is empty."""
    with open_plain(path) as raw:
        magic = raw.read(MAGIC_BYTES)
        if not magic:
            raise CutOff(path, "the file is empty", "events of Spark", AGAIN)
        if magic.startswith(LZF_MAGIC) and len(magic) > len(LZF_MAGIC) and magic[len(LZF_MAGIC)] in LZF_KINDS:
            raise BadInput(
                path,
                "packed with lzf",
                "an event log that is plain or packed with zstd, lz4, snappy or gzip",
                "set spark.eventLog.compression.codec (or spark.io.compression.codec) to zstd",
            )
        pieces = _pieces(path, raw, magic)
        if pieces is not None:
            raw.seek(0)
            yield counted(path, raw, _Unpacked(pieces), limits)
            return
    with open_checked(path, limits) as stream:
        yield stream


def unpacked_head(path: str, limits: ReadLimits) -> bytes:
    """The first 64 KiB of a file in one of Spark's own packings; nothing for any other file."""
    with open_plain(path) as raw:
        if _pieces(path, raw, raw.read(MAGIC_BYTES)) is None:
            return b""
    with open_event_log(path, limits) as stream:
        return stream.read(HEAD_BYTES)


def _pieces(path: str, raw: IO[bytes], magic: bytes) -> Iterator[bytes] | None:
    """The unpacked pieces of a stream whose first bytes are `magic`, or None if it is not packed so."""
    unpackers: dict[bytes, Callable[[str, IO[bytes]], Iterator[bytes]]] = {
        ZSTD_MAGIC: _zstd,
        LZ4_MAGIC: _lz4_blocks,
        SNAPPY_MAGIC: _snappy_blocks,
    }
    unpack = next((unpack for mark, unpack in unpackers.items() if magic.startswith(mark)), None)
    return unpack(path, raw) if unpack else None


def _zstd(path: str, raw: IO[bytes]) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.PythonFile(_Lent(raw), mode="r"), "zstd")
    try:
        while piece := stream.read(ZSTD_PIECE_BYTES):
            yield piece
    except OSError as error:
        if "Truncated" in str(error):
            raise _cut_off(path, "zstd") from error
        raise _damaged(path, "zstd", str(error)) from error


def _lz4_blocks(path: str, raw: IO[bytes]) -> Iterator[bytes]:
    codec = pa.Codec("lz4_raw")
    while magic := raw.read(len(LZ4_MAGIC)):
        header = raw.read(LZ4_HEADER.size)
        if len(header) < LZ4_HEADER.size:
            raise _cut_off(path, "lz4")
        method, n_packed, n_bytes, _ = LZ4_HEADER.unpack(header)
        if magic != LZ4_MAGIC or max(n_packed, n_bytes) > LARGEST_BLOCK_BYTES:
            raise _damaged(path, "lz4", "no block where one should begin")
        data = _block(path, raw, n_packed, "lz4")
        kind = method & 0xF0
        if kind not in (LZ4_AS_IT_IS, LZ4_PACKED):
            raise _damaged(path, "lz4", f"unknown method {method}")
        if n_bytes:  # an empty block ends a stream; another one may follow
            yield data if kind == LZ4_AS_IT_IS else _unpacked(path, "lz4", codec, data, n_bytes)


def _snappy_blocks(path: str, raw: IO[bytes]) -> Iterator[bytes]:
    codec = pa.Codec("snappy")
    raw.read(len(SNAPPY_MAGIC) + SNAPPY_VERSIONS)
    while prefix := raw.read(SNAPPY_LENGTH.size):
        if prefix == SNAPPY_MAGIC[: len(prefix)]:  # another stream begins
            raw.read(len(SNAPPY_MAGIC) - len(prefix) + SNAPPY_VERSIONS)
            continue
        if len(prefix) < SNAPPY_LENGTH.size:
            raise _cut_off(path, "snappy")
        (n_packed,) = SNAPPY_LENGTH.unpack(prefix)
        if n_packed > LARGEST_BLOCK_BYTES:
            raise _damaged(path, "snappy", "no block where one should begin")
        data = _block(path, raw, n_packed, "snappy")
        n_bytes = _varint(data)
        if n_bytes > LARGEST_BLOCK_BYTES:
            raise _damaged(path, "snappy", "a block without a length")
        yield _unpacked(path, "snappy", codec, data, n_bytes)


def _block(path: str, raw: IO[bytes], n_bytes: int, codec: str) -> bytes:
    data = raw.read(n_bytes)
    if len(data) < n_bytes:
        raise _cut_off(path, codec)
    return data


def _varint(data: bytes) -> int:
    """The number at the start of a snappy block: its unpacked length, 7 bits a byte, the lowest first."""
    number = 0
    for place, byte in enumerate(data[:5]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return number
    return LARGEST_BLOCK_BYTES + 1


def _unpacked(path: str, name: str, codec: Any, data: bytes, n_bytes: int) -> bytes:
    try:
        return cast(bytes, codec.decompress(data, n_bytes, asbytes=True))
    except (OSError, ValueError) as error:
        raise _damaged(path, name, str(error)) from error


def _cut_off(path: str, codec: str) -> CutOff:
    return CutOff(path, f"the {codec} stream is cut off", WHOLE, AGAIN)


def _damaged(path: str, codec: str, why: str) -> BadInput:
    return BadInput(path, f"the {codec} stream is damaged ({why.splitlines()[0]})", WHOLE, "copy it again")
