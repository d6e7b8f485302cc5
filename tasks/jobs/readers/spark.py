"""Spark event logs: JSON lines, plain, rolled and packed. One run is one application.

An application is what a recurring batch job starts; its SQL executions, jobs and stages are parts of it. A server
that runs for weeks (Thrift server, notebook) is one long run. A file may hold several applications, one after the
other. What we decide:

- Status: running without an end; then failed if the exit code is not 0 or the last job or SQL execution failed,
  cancelled if that job was cancelled, else completed.
- A token is a core held by a task (spark.task.cpus); used_cpus is their mean over the run.
  One whose end is missing is free at the end of its stage, at the latest of the run. Tasks at impossible times are
  refused.
- input_bytes: what successful tasks read; read_bytes: of all tasks, with shuffle; temp_bytes: all spills, summed.
- A vertex is a stage attempt on a host.
- A rolled log that Spark compacted lacks events: sums are then too small, and a warning says so."""

import json
import logging
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from math import nan
from pathlib import PurePosixPath
from typing import IO, Any, cast

import pandas as pd
import pyarrow as pa

from tasks.errors import BadInput
from tasks.intake.files import (
    HEAD_BYTES,
    RAW_CHARS,
    Chunk,
    Lines,
    Refused,
    all_refusals,
    counted,
    open_checked,
    open_plain,
    read_lines,
    refused_rows,
)
from tasks.jobs.columns import vet_runs
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.spark_events import (
    APP_START,
    BEFORE_START,
    HANDLERS,
    LOG_START,
    MS,
    Application,
    SparkVertex,
    count,
    parse_event,
    signature,
)
from tasks.params import ReadLimits
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
    matches = [(PART.fullmatch(PurePosixPath(name).name), name) for name in _names_in(path)]
    parts = sorted((int(match[1]), name) for match, name in matches if match)
    compacted = [number for number, name in parts if name.endswith(COMPACT)]
    if compacted:  # what it stands for may not be deleted yet
        newest = compacted[-1]
        parts = [(n, name) for n, name in parts if n > newest or (n == newest and name.endswith(COMPACT))]
    again = "copy the whole folder again"
    if not parts:
        raise BadInput(path, "no events in it", "files events_1_<application> and so on", again)
    first, last = parts[0][0], parts[-1][0]
    if missing := sorted(set(range(first if compacted else 1, last + 1)) - {number for number, _ in parts}):
        raise BadInput(path, f"file events_{missing[0]}_… is missing", f"all files up to events_{last}_…", again)
    return [name for _, name in parts]


def read_parts(path: str, limits: ReadLimits) -> Iterator[Lines]:
    """The lines of an event log, numbered through all of its files.

    Raises BadInput as read_lines does; the last file may end too early while the application runs, or be empty yet."""
    names = _names_in(path) if is_rolled(path) else [path]
    is_running, before, parts = any(name.endswith(IN_PROGRESS) for name in names), 0, parts_of(path)
    for part in parts:
        last, may_be_cut = 0, is_running and part == parts[-1]
        try:
            for lines in read_lines(part, limits, open_as=open_event_log):
                last = max([last, *lines.places[-1:], *(place for place, _, _ in lines.refused)])
                refused = [(place + before, why, raw) for place, why, raw in lines.refused]
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
    """A stream over chunks of bytes: what is there before a fault is given before the fault is raised."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.chunks, self.waiting = chunks, bytearray()
        self.fault: BadInput | None = None

    def read(self, size: int) -> bytes:
        while len(self.waiting) < size and self.fault is None:
            try:
                piece = next(self.chunks, None)
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
        if unpack := _unpacker_of(magic):
            raw.seek(0)
            yield counted(path, raw, _Unpacked(unpack(path, raw)), limits)
            return
    with open_checked(path, limits) as stream:
        yield stream


def unpacked_head(path: str, limits: ReadLimits) -> bytes:
    """The first 64 KiB of a file in one of Spark's own packings; nothing for any other file."""
    with open_plain(path) as raw:
        if _unpacker_of(raw.read(MAGIC_BYTES)) is None:
            return b""
    with open_event_log(path, limits) as stream:
        return stream.read(HEAD_BYTES)


def _unpacker_of(magic: bytes) -> Callable[[str, IO[bytes]], Iterator[bytes]] | None:
    """What unpacks a stream with these first bytes into chunks; None for one that Spark has not packed."""
    unpackers = {ZSTD_MAGIC: _zstd, LZ4_MAGIC: _lz4_blocks, SNAPPY_MAGIC: _snappy_blocks}
    return next((unpack for mark, unpack in unpackers.items() if magic.startswith(mark)), None)


def _zstd(path: str, raw: IO[bytes]) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.PythonFile(_Lent(raw), mode="r"), "zstd")
    try:
        while piece := stream.read(ZSTD_PIECE_BYTES):
            yield piece
    except OSError as error:
        if "Truncated" in str(error):
            raise CutOff(path, "the zstd stream is cut off", WHOLE, AGAIN) from error
        raise _damaged(path, "zstd", str(error)) from error


def _lz4_blocks(path: str, raw: IO[bytes]) -> Iterator[bytes]:
    codec = pa.Codec("lz4_raw")
    while magic := raw.read(len(LZ4_MAGIC)):
        method, n_packed, n_bytes, _ = LZ4_HEADER.unpack(_exactly(path, raw, LZ4_HEADER.size, "lz4"))
        if magic != LZ4_MAGIC or max(n_packed, n_bytes) > LARGEST_BLOCK_BYTES:
            raise _damaged(path, "lz4", "no block where one should begin")
        data = _exactly(path, raw, n_packed, "lz4")
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
            raise CutOff(path, "the snappy stream is cut off", WHOLE, AGAIN)
        (n_packed,) = SNAPPY_LENGTH.unpack(prefix)
        if n_packed > LARGEST_BLOCK_BYTES:
            raise _damaged(path, "snappy", "no block where one should begin")
        data = _exactly(path, raw, n_packed, "snappy")
        n_bytes = _varint(data)
        if n_bytes > LARGEST_BLOCK_BYTES:
            raise _damaged(path, "snappy", "a block without a length")
        yield _unpacked(path, "snappy", codec, data, n_bytes)


def _exactly(path: str, raw: IO[bytes], n_bytes: int, codec: str) -> bytes:
    data = raw.read(n_bytes)
    if len(data) < n_bytes:
        raise CutOff(path, f"the {codec} stream is cut off", WHOLE, AGAIN)
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


def _damaged(path: str, codec: str, why: str) -> BadInput:
    return BadInput(path, f"the {codec} stream is damaged ({why.splitlines()[0]})", WHOLE, "copy it again")


logger = logging.getLogger(__name__)
CHUNK_RUNS, CHUNK_REFUSED = 1000, 10_000
FIRST_EVENT = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"Event"\s*:')
EXPECTED = "an event log of Spark from its first event on"
MEMORY = re.compile(r"([0-9]{1,15})\s*([kmgtp]?)b?", re.IGNORECASE)
POWERS = "kmgtp"
MEBIBYTE_POWER = 2  # spark.executor.memory without a unit is in MiB
PROFILE = "profile "
LOCAL = re.compile(r"local(?:-cluster)?\[([^\]]*)\]")


def sniff(head: bytes, path: str) -> bool:
    """By its name where Spark gave it, else by a first line that is an event."""
    is_named = is_rolled(path) or PLAIN_NAME.fullmatch(PurePosixPath(path).name) is not None
    return FIRST_EVENT.match(head) is not None or (not head and is_named)


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """Chunks of some 1,000 applications. Raises BadInput for a file without any start of an application."""
    now = datetime.now(UTC).replace(tzinfo=None)
    if is_rolled(path) and any(name.endswith(COMPACT) for name in parts_of(path)):
        logger.warning("%s: Spark has compacted this log; sums over its tasks are too small", path)
    latest_ms = (now.replace(tzinfo=UTC).timestamp() + params.future_slack_s) * MS
    ended, refused = list[Application](), list[Refused]()
    current: Application | None = None
    n_runs, n_lines, has_refused_start = 0, 0, False
    for lines in read_parts(path, params.limits):
        refused += lines.refused
        for place, line in zip(lines.places, lines.lines, strict=True):
            if not line or line.isspace():
                continue
            n_lines += 1
            try:
                name, event = parse_event(line) or ("", {})
                if name and (current is None or _begins_another(name, current)):
                    ended += [current] if current else []
                    n_runs += current is not None and current.id is not None
                    current = Application(place, latest_ms)
                if name and current and name != LOG_START:
                    HANDLERS[name](current, event)
            except ValueError as error:
                refused.append((place, str(error), line[:RAW_CHARS]))
                has_refused_start |= APP_START in line
        n_lines += len(lines.refused)
        if len(ended) >= CHUNK_RUNS or len(refused) >= CHUNK_REFUSED:
            yield _chunk(ended, refused, params, now)
            ended, refused = [], []
    ended += [current] if current else []
    n_runs += current is not None and current.id is not None
    if not n_runs and not has_refused_start:  # else the refused line says what is wrong
        problem = "no SparkListenerApplicationStart in it" if n_lines else "only blank lines"
        whole = "of a rolled log name the whole folder eventlog_v2_<application>" if n_lines else "export it again"
        raise BadInput(path, problem, EXPECTED, whole)
    yield _chunk(ended, refused, params, now)


def _begins_another(name: str, current: Application) -> bool:
    """Logs that were put together may lack the first line of each."""
    is_second = name == APP_START and current.id is not None
    return name == LOG_START or is_second or (current.ended_ms is not None and name in BEFORE_START)


def _chunk(apps: list[Application], refused: list[Refused], params: ReadParams, now: datetime) -> Chunk:
    known, bad = list[Application](), list[Refused]()
    for app in apps:
        why = "a log without a start of an application; expected a SparkListenerApplicationStart" if not app.id else ""
        if app.outruns_its_end:
            why = why or "a task ends over a minute after its application; check the times"
        bad += [(app.place, why, "")] if why else []
        known += [] if why else [app]
    none = pd.DataFrame({"place": pd.Series([], dtype="int64")})
    vetted = vet_runs(pd.DataFrame(map(application_row, known)) if known else none, params, now)
    if left_out := sum(app.n_left_out > 0 for app in known):
        logger.warning("%d applications have too many stages and hosts: some vertices are left out", left_out)
    return Chunk(vetted.rows, all_refusals([refused_rows([*refused, *bad]), vetted.refused]), {})


def application_row(app: Application) -> dict[str, object]:
    """One row in the columns of jobs.runs, with `place`. Times are UTC without a zone."""
    last_ms = app.ended_ms if app.ended_ms is not None else app.tokens.last_ms
    span_ms = last_ms - (app.started_ms or 0)
    plan, requested = signature(app.trees), requested_cpus(app)
    submitted_ms = count(app.properties.get("spark.app.submitTime"))
    # without a plan the size would be a part of the group key, and a mean changes from run to run
    used = app.tokens.mean(span_ms) if plan or requested is not None else None
    return {
        "run_id": f"{app.id}_{app.attempt}" if app.attempt else app.id,
        "name": app.name,
        "user_name": app.user,
        "queue": app.properties.get("spark.yarn.queue") or app.properties.get("spark.kubernetes.namespace"),
        "plan_signature": plan,
        "operators": json.dumps(dict(sorted(app.operators.items()))) if app.operators else None,
        "submitted_at": _at(None if submitted_ms is None or submitted_ms > (app.started_ms or 0) else submitted_ms),
        "started_at": _at(app.started_ms),
        "ended_at": _at(app.ended_ms),
        "runtime_s": nan if app.ended_ms is None else span_ms / MS,
        "status": _status(app),
        "requested_cpus": requested,
        "used_cpus": used,
        "requested_memory_bytes": _requested_memory(app),
        "cpu_s": app.cpu_s,
        "peak_memory_bytes": sum(app.peak_memory.values()) or nan,
        "input_bytes": app.input_bytes,
        "read_bytes": app.read_bytes,
        "temp_bytes": app.temp_bytes,
        "min_tokens": app.tokens.least,
        "peak_tokens": app.tokens.peak,
        "vertices": [_vertex(number, vertex) for number, vertex in enumerate(app.vertices.values())] or None,
        "skyline": _skyline(app, requested),
        "place": app.place,
    }


def requested_cpus(app: Application) -> float | None:
    """Cores that the application asked for; None where it left that open (dynamic allocation)."""
    properties = app.properties
    local = LOCAL.fullmatch(properties.get("spark.master", ""))
    if local:
        return _local_cores(local[1], app)
    if properties.get("spark.dynamicAllocation.enabled") == "true":
        return None
    instances, cores = (count(properties.get(f"spark.executor.{key}")) for key in ("instances", "cores"))
    if instances is None:
        return count(properties.get("spark.cores.max"))
    return instances * (cores or 1)


def _local_cores(text: str, app: Application) -> float | None:
    """local[4], local[4,2] (failures), local[*], and local-cluster[2,1,512] (workers, cores, memory)."""
    numbers = [count(part) for part in text.split(",")]
    if len(numbers) == len("wcm") and None not in numbers:
        return float(numbers[0] or 0) * float(numbers[1] or 0)
    return numbers[0] if numbers[0] is not None else sum(app.cores.values()) or None


def _requested_memory(app: Application) -> float | None:
    instances = count(app.properties.get("spark.executor.instances"))
    match = MEMORY.fullmatch(app.properties.get("spark.executor.memory", "").strip())
    if instances is None or match is None or app.properties.get("spark.dynamicAllocation.enabled") == "true":
        return None
    power = POWERS.index(match[2].lower()) + 1 if match[2] else MEBIBYTE_POWER
    return instances * float(match[1]) * 1024.0**power


def _status(app: Application) -> str:
    if app.ended_ms is None:
        return "running"
    if app.is_cancelled:
        return "cancelled"
    return "failed" if app.has_failed or app.exit_code else "completed"


def _vertex(number: int, vertex: SparkVertex) -> dict[str, object]:
    """The SKU is the resource profile of the executor where there is more than the default one, else the host."""
    tokens = vertex.tokens
    return {
        "vertex": number,
        "stage": vertex.stage,
        "sku": f"{PROFILE}{vertex.profile}" if vertex.profile not in ("", "0") else vertex.host,
        "started_at": _microseconds(tokens.first_ms),
        "ended_at": _microseconds(tokens.last_ms if tokens.first_ms is not None else None),
        "cpu_s": vertex.cpu_s,
        "min_tokens": tokens.least,
        "mean_tokens": tokens.mean(tokens.last_ms - (tokens.first_ms or 0)),
        "peak_tokens": tokens.peak,
        "read_bytes": vertex.read_bytes,
        "temp_bytes": vertex.temp_bytes,
    }


def _skyline(app: Application, requested: float | None) -> list[dict[str, float | None]] | None:
    started = app.started_ms or 0
    steps = [
        {"at_s": max(0.0, at_ms - started) / MS, "tokens": tokens, "guaranteed": requested}
        for at_ms, tokens in app.tokens.steps
    ]
    return steps or None


def _microseconds(time_ms: float | None) -> int | None:
    """As Arrow keeps it: a timestamp in a list, beyond what pandas holds in nanoseconds, would be another one."""
    return int(time_ms) * MS if time_ms is not None else None


def _at(time_ms: float | None) -> pd.Timestamp | None:
    """UTC without a zone; None beyond the calendar, which the checks then report as a missing time."""
    if time_ms is None:
        return None
    try:
        return pd.Timestamp(int(time_ms), unit="ms").as_unit("us")
    except (ValueError, OverflowError):
        return None
