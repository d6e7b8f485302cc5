"""The packings that Spark writes event logs in: zstd, and the block formats of Java's lz4 and snappy libraries.

spark.eventLog.compression.codec (before Spark 3: spark.io.compression.codec) says which. The blocks themselves are
unpacked by pyarrow; what stands around them is documented in lz4-java (LZ4BlockOutputStream) and snappy-java
(SnappyOutputStream)."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

import pyarrow as pa

from tasks.errors import BadInput
from tasks.read_limits import ReadLimits
from tasks.reading import HEAD_BYTES, counted, open_checked, open_plain

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
