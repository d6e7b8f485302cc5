"""Accounting of batch systems: PBS and Torque, and Grid Engine (its file `accounting`, or what `qacct -j` prints).

PBS, Torque: a line a record, `01/31/2026 12:00:00;E;123.server;key=value …`. A run is the record of its end (E); one
that has begun (S) and neither ends, is aborted (A) nor requeued (R) in the same file goes on. Grid Engine: a line a
run, its fields between colons (accounting(5)). What we decide where the manuals leave room:

- What a PBS job asked for are the processors of all chunks of `select`, else of `nodes`, else `ncpus`.
- A run that was killed (a negative status, a signal, Grid Engine's `failed`) and had run for its limit was stopped by
  the limit. Before it, SIGTERM is what qdel sends: cancelled. Whatever else is not 0 has failed.
- An array as a whole (123[]) is no run, nor is a part of a parallel job (pe_taskid).
- Grid Engine grants h_vmem to each slot, and has no resident memory of all processes: maxvmem stands for it."""

import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pandas as pd
import pyarrow as pa

from tasks.errors import BadInput
from tasks.intake.aliases import duration_s
from tasks.intake.cells import check_zone, needs_zone, utc_times
from tasks.intake.files import Chunk, Lines, Refused, all_refusals, read_lines, refused_rows
from tasks.jobs.columns import TIME_COLUMNS, vet_runs
from tasks.jobs.params import ReadParams, Status

logger = logging.getLogger(__name__)
Fields = Mapping[str, str]
Record = tuple[int, str, Fields | str]  # line in the file, what stands there, its fields or why it has none
Run = dict[str, Any]
CHUNK_RECORDS = 50_000
SNIFFED_LINES = 20
SHOWN_CHARS = 60
NO_VALUE = ("", "NONE", "none", "undefined", "-/-", "_pbs_project_default")
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)([kmgtp]?)([bw]?)", re.IGNORECASE)
WORD_BYTES = 8
SIGNALS_FROM, SIGTERM = 128, (128 + 15, 256 + 15)


def _read(
    path: str, params: ReadParams, records: Iterator[Record], run_of: Callable[[Fields, ReadParams], Run | None]
) -> Iterator[Chunk]:
    """Chunks of the runs of a file. run_of: None for a record of no run; raises ValueError for a wrong one."""
    check_zone(params.time_zone or "UTC")
    now, n_left_out = datetime.now(UTC).replace(tzinfo=None), 0
    while batch := list(islice(records, CHUNK_RECORDS)):
        rows, bad = list[Run](), list[Refused]()
        for place, raw, fields in batch:
            try:
                if isinstance(fields, str):
                    raise ValueError(fields)
                if run := run_of(fields, params):
                    rows.append({**run, "place": place, "raw": raw})
            except (ValueError, OverflowError) as error:
                bad.append((place, str(error), raw))
        n_left_out += len(batch) - len(rows) - len(bad)
        columns = list(rows[0]) if rows else ["run_id", "status", *TIME_COLUMNS, "place", "raw"]
        frame = pd.DataFrame(rows, columns=columns).astype({"place": "int64"})
        fault = pd.Series("", index=frame.index)
        for name in TIME_COLUMNS:
            text = frame[name].astype("str")
            if not params.time_zone and needs_zone(text):
                problem, expected = f"{name} is local time without a time zone", "the time zone of the cluster's clock"
                raise BadInput(path, problem, expected, "name it: --time-zone Europe/Berlin")
            frame[name], is_bad = utc_times(pa.array(text, pa.string()), params.time_zone)
            fault = fault.mask(is_bad & (fault == ""), f"{name} is no time")
        wrong = frame[fault != ""]
        bad += list(zip(wrong["place"], fault[fault != ""], wrong["raw"], strict=True))
        vetted = vet_runs(frame[fault == ""], params, now)
        yield Chunk(vetted.rows, all_refusals([refused_rows(bad), vetted.refused]), {})
    if n_left_out:
        logger.info("%s: %d records are no runs: arrays as a whole, parts of parallel jobs", path, n_left_out)


def _number(fields: Fields, name: str, parse: Callable[[str], float | None], what: str) -> float:
    """The value of a field, NaN where it has none. Raises ValueError for what is none of its kind."""
    text = fields.get(name, "")
    if text in NO_VALUE:
        return math.nan
    with suppress(ValueError):
        if (value := parse(text)) is not None:
            return value
    raise ValueError(f"{name} '{text[:SHOWN_CHARS]}' is not {what}")


def _seconds(fields: Fields, name: str) -> float:
    """Of 3600, 12.5s, 100:00:00."""
    return _number(fields, name, lambda text: duration_s(text) if re.search("[:a-z]", text) else float(text), "a time")


def _bytes(fields: Fields, name: str) -> float:
    """Of 2048kb, 4gb, 1.934MB, 10mw (words), 300 and 1.5e+08 (bytes)."""

    def parse(text: str) -> float | None:
        size = SIZE.fullmatch(text)
        word = WORD_BYTES if size and size[3] in ("w", "W") else 1
        return float(size[1]) * 1024.0 ** " kmgtp".index(size[2].lower() or " ") * word if size else None

    return _number(fields, name, parse, "an amount of memory")


def _code(fields: Fields, name: str) -> int | None:
    """Of 137, `100 : assumedly after job`, `137 (Killed)`."""
    code = _number(fields, name, lambda text: float(int(text.split()[0])), "a number")
    return None if math.isnan(code) else int(code)


def _text(fields: Fields, *names: str) -> str | None:
    return next((fields[name] for name in names if fields.get(name, "") not in NO_VALUE), None)


def _time(fields: Fields, *names: str) -> str | None:
    """A time as it stands there; None for 0, which stands for none."""
    at = _text(fields, *names)
    return None if at is None or not at.strip("0.") else at


def _ran_s(started: str | None, ended: str | None) -> float:
    """Seconds between two Unix times, of which one may be missing, or be none and be refused later."""
    try:
        return float(ended or math.nan) - float(started or math.nan)
    except ValueError:
        return math.nan


def _status(code: int | None, params: ReadParams, *, is_killed: bool, reached: bool) -> Status:
    """reached: it ran for its limit."""
    if code is None or str(code) in params.statuses:
        return params.statuses.get(str(code), "unknown")
    if code == 0:
        return "completed"
    return "timeout" if is_killed and reached else "cancelled" if code in SIGTERM else "failed"


PBS_LINE = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];[^;]+;")
PBS_FILE = re.compile(r"(.*/)?accounting/\d{8}(\.gz)?")
PAIR = re.compile(r"""(?:^|\s)([A-Za-z][\w.]*)=("[^"]*"|'[^']*'|\S*)""")
OVER_WALLTIME = -29  # of PBS Professional
CPUS_OF_CHUNK, SLOTS = re.compile(r":(?:ppn|ncpus)=(\d+)"), re.compile(r"\d+\*(\d+)|(\d+)-(\d+)|\d+")


def pbs_sniff(head: bytes, path: str) -> bool:
    """The folder that a server writes to, or lines of a date, a letter and an id."""
    lines = _first_lines(head)
    return bool(PBS_FILE.fullmatch(path)) or 2 * sum(bool(PBS_LINE.match(line)) for line in lines) > len(lines)


def pbs_read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """See Reader.read."""
    return _read(path, params, _pbs_records(read_lines(path, params.limits)), _pbs_run)


def _first_lines(head: bytes) -> list[str]:
    lines = [line for line in head.decode("utf-8", "replace").splitlines() if line.strip() and line[0] != "#"]
    return lines[:SNIFFED_LINES]


def _pbs_records(blocks: Iterator[Lines]) -> Iterator[Record]:
    """The records of runs that ended, then of those that go on."""
    going_on: dict[str, Record] = {}
    for block in blocks:
        yield from ((place, raw, fault) for place, fault, raw in block.refused)
        for place, line in zip(block.places, block.lines, strict=True):
            if not PBS_LINE.match(line):
                if line.strip():
                    yield place, line, "no record of PBS; expected date;letter;id;key=value …"
                continue
            _, kind, run_id, message = line.split(";", 3)
            if kind in "EAR":
                going_on.pop(run_id, None)
            if kind in "ES":
                fields = {key: value.strip("\"'") for key, value in PAIR.findall(message)}
                record = place, line, {**fields, "kind": kind, "id": run_id}
                if kind == "E":
                    yield record
                else:
                    going_on[run_id] = record
    yield from going_on.values()


def _pbs_run(fields: Fields, params: ReadParams) -> Run | None:
    run_id, _, _ = fields["id"].partition(".")  # the same server for all, and a host
    name, task = _text(fields, "jobname"), run_id.partition("[")[2].removesuffix("]")
    if run_id.endswith("[]"):
        return None
    started, ended, code = _time(fields, "start"), _time(fields, "end"), _code(fields, "Exit_status")
    used_s, limit_s = _seconds(fields, "resources_used.walltime"), _seconds(fields, "Resource_List.walltime")
    span_s = _ran_s(started, ended)
    reached = used_s >= limit_s or span_s >= limit_s or code == OVER_WALLTIME
    is_killed = code is not None and not 0 <= code < SIGNALS_FROM
    cpus, of_each = _asked_cpus(fields), _bytes(fields, "Resource_List.pmem")
    memory = _bytes(fields, "Resource_List.mem")
    return {
        "run_id": run_id,
        "name": name.removesuffix(f"-{task}") if name and task else name,  # Torque appends it
        "user_name": _text(fields, "user"),
        "queue": _text(fields, "queue"),
        "account": _text(fields, "account", "project", "group"),
        "submitted_at": _time(fields, "ctime", "qtime"),
        "started_at": started,
        "ended_at": ended,
        "status": "running" if fields["kind"] == "S" else _status(code, params, is_killed=is_killed, reached=reached),
        "runtime_s": span_s if used_s > span_s else used_s,  # less than end - start where it was suspended
        "requested_cpus": cpus,
        "used_cpus": _used_cpus(fields),
        "requested_runtime_s": limit_s,
        "requested_memory_bytes": of_each * cpus if math.isnan(memory) else memory,
        "cpu_s": _seconds(fields, "resources_used.cput"),
        "peak_memory_bytes": _bytes(fields, "resources_used.mem"),
    }


def _asked_cpus(fields: Fields) -> float:
    """Of 2:ncpus=8+1:ncpus=4 (select), n1:ppn=2+n2:ppn=2 or 16:myrinet (nodes): one a chunk that does not say."""
    chunks = _text(fields, "Resource_List.select", "Resource_List.nodes")
    if chunks is None:
        return _number(fields, "Resource_List.ncpus", float, "a number")
    sizes = [(re.match(r"\d+(?=:|$)", chunk), CPUS_OF_CHUNK.search(chunk)) for chunk in chunks.split("+")]
    return float(sum(int(times[0] if times else 1) * int(cpus[1] if cpus else 1) for times, cpus in sizes))


def _used_cpus(fields: Fields) -> float:
    """As the record says, else the slots of exec_host: n1/0+n1/1, n1/0-3,8 or n1/0*8."""
    used = _number(fields, "resources_used.ncpus", float, "a number")
    hosts = fields.get("exec_host", "").split("+")
    slots = SLOTS.findall(" ".join(host.partition("/")[2] for host in hosts))
    n_slots = sum(int(times or int(last or 0) - int(first or 0) + 1) for times, first, last in slots)
    return used if not math.isnan(used) or not slots else float(n_slots)


FIELDS = (
    "qname", "hostname", "group", "owner", "jobname", "jobnumber", "account", "priority", "qsub_time", "start_time",
    "end_time", "failed", "exit_status", "ru_wallclock", "ru_utime", "ru_stime", "ru_maxrss", "ru_ixrss", "ru_ismrss",
    "ru_idrss", "ru_isrss", "ru_minflt", "ru_majflt", "ru_nswap", "ru_inblock", "ru_oublock", "ru_msgsnd", "ru_msgrcv",
    "ru_nsignals", "ru_nvcsw", "ru_nivcsw", "project", "department", "granted_pe", "slots", "taskid", "cpu", "mem",
    "io",
)  # fmt: skip
BEHIND = re.compile(
    r"(?P<category>.*?):(?P<iow>[0-9.e+-]+):(?P<pe_taskid>[^:,]*[A-Za-z.][^:,]*):(?P<maxvmem>[0-9.e+-]+)(?::.*)?"
)
QACCT_LINE = re.compile(r"(\w+)\s+(.*)")
RULE = "====="  # stands before each run of qacct
LIMIT = re.compile(r"\b(h_rt|s_rt|h_vmem)=([^,\s]+)")
CTIME, UGE_TIME = "%a %b %d %H:%M:%S %Y", "%m/%d/%Y %H:%M:%S"
RESCHEDULED = (24, 25)  # it ran, and runs again


def grid_engine_sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """The rule and the first field of qacct, or lines of so many fields with numbers where they have to be."""
    lines = _first_lines(head)
    if lines and lines[0].startswith(RULE):
        return lines[1:2] != [] and lines[1].startswith("qname")
    return 2 * sum(isinstance(_accounted(line), dict) for line in lines) > len(lines)


def grid_engine_read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """See Reader.read; raises BadInput for qacct's local times without a time zone."""
    return _read(path, params, _grid_engine_records(read_lines(path, params.limits)), _grid_engine_run)


def _accounted(line: str) -> Fields | str:
    """The fields of a line of the file accounting, or why it has none."""
    parts = line.split(":", len(FIELDS))
    fields = dict(zip(FIELDS, parts, strict=False))
    behind = BEHIND.fullmatch(parts[-1]) if len(parts) > len(FIELDS) else None
    if behind is None:
        return f"{line.count(':') + 1} fields between colons; expected those of accounting(5)"
    numbers = [fields[name] for name in ("jobnumber", "qsub_time", "start_time", "end_time")]
    is_run = all(map(str.isdecimal, numbers))
    return {**fields, **behind.groupdict()} if is_run else "no number where accounting(5) has one"


def _grid_engine_records(blocks: Iterator[Lines]) -> Iterator[Record]:
    first, fields = 0, dict[str, str]()  # of the run of qacct that is being read
    for block in blocks:
        yield from ((place, raw, fault) for place, fault, raw in block.refused)
        for place, line in zip(block.places, block.lines, strict=True):
            if line.startswith(RULE):
                if fields:
                    yield first, " ".join(map("=".join, fields.items())), fields
                first, fields = place, {}
            elif first:
                field = QACCT_LINE.fullmatch(line.strip())
                fields |= {field[1]: field[2]} if field else {}
            elif line.strip() and line[0] != "#":
                yield place, line, _accounted(line)
    if fields:
        yield first, " ".join(map("=".join, fields.items())), fields


def _grid_engine_run(fields: Fields, params: ReadParams) -> Run | None:
    task, number = _text(fields, "taskid"), _text(fields, "jobnumber")
    if number is None and "qname" in fields:
        raise ValueError("no jobnumber")
    submitted, started, ended = (_clock(_time(fields, name)) for name in ("qsub_time", "start_time", "end_time"))
    if (
        number is None or _text(fields, "pe_taskid") or not (submitted or started)
    ):  # qacct's totals; never came to a host
        return None
    limits = dict(LIMIT.findall(f"{fields.get('hard_resources', '')} {fields.get('category', '')}"))
    limit_s = _seconds(limits, "h_rt" if "h_rt" in limits else "s_rt")
    slots, failed = _number(fields, "slots", float, "a number"), _code(fields, "failed")
    code = failed or _code(fields, "exit_status")
    reached = _seconds(fields, "ru_wallclock") >= limit_s or _seconds(fields, "wallclock") >= limit_s
    status = _status(code, params, is_killed=bool(failed) or (code or 0) >= SIGNALS_FROM, reached=reached)
    if status == "failed" and (failed in RESCHEDULED or _text(fields, "deleted_by") or not started):
        status = "cancelled"
    return {
        "run_id": f"{number}.{task}" if task and task != "0" else number,
        "name": _text(fields, "jobname"),
        "user_name": _text(fields, "owner"),
        "queue": _text(fields, "qname"),
        "account": _text(fields, "project", "group"),
        "submitted_at": submitted,
        "started_at": started,
        "ended_at": ended,
        "status": status,
        "requested_cpus": slots,
        "used_cpus": slots,
        "requested_runtime_s": limit_s,
        "requested_memory_bytes": _bytes(limits, "h_vmem") * slots,
        "cpu_s": _seconds(fields, "cpu"),
        "peak_memory_bytes": _bytes(fields, "maxvmem") or math.nan,
    }


def _clock(at: str | None) -> str | None:
    """Of Thu May 24 10:50:27 2018 or 05/24/2018 10:50:27.123 what tables of times have; others as they are."""
    for form in (CTIME, UGE_TIME):
        try:
            return datetime.strptime((at or "").partition(".")[0], form).isoformat()
        except ValueError:
            continue
    return at
