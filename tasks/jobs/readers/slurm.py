"""Slurm's accounting: the output of `sacct --parsable2` (or --parsable), with a header line or without."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from math import nan

import numpy as np
import pandas as pd

from tasks.errors import BadInput, BadSetting, quoted
from tasks.intake.cells import TimeReadings, check_zone, needs_zone, read_times, settle
from tasks.intake.files import Chunk, Lines, Refused, all_refusals, read_lines, refusals, refused_rows
from tasks.jobs.columns import KNOWN_TO_SLURM, status_of, vet_runs
from tasks.jobs.params import ReadParams, Status

BAR = "|"
MAX_HELD_LINES = 50_000
CHUNK_CHARS, CHUNK_LINES = 16 * 2**20, 50_000  # each chunk costs some fixed time
STEP_MARK = "."  # 123.batch, 123.0, 123.extern
IDS = ("JobIDRaw", "JobID")  # the raw id first: it is unique to a task of a job array
NAME = "JobName"
WANTED = (
    *IDS,
    NAME,
    *("Cluster", "User", "UID", "Account", "Group", "Partition", "QOS", "State"),
    *("Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "Timelimit", "TimelimitRaw"),
    *("NCPUS", "AllocCPUS", "ReqCPUS", "NNodes", "AllocNodes", "ReqNodes"),
    *("ReqMem", "ReqTRES", "AllocTRES", "MaxRSS", "TotalCPU", "CPUTimeRAW"),
)
CANONICAL = {name.lower(): name for name in WANTED}  # sacct takes field names in any case
NEEDED = (IDS, ("Start",), ("End", "Elapsed", "ElapsedRaw"))


@dataclass(frozen=True)
class Layout:
    """How the lines of a log are built: the fields in their order, as sacct names them."""

    fields: tuple[str, ...]
    header: str | None
    has_trailing_bar: bool  # `sacct --parsable`


def read_table(lines: Lines, layout: Layout) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The lines as texts: (table, refused).

    table: columns of WANTED as far as the log has them (str) and place (int64). Blank lines and repeated
    headers are left out; a line with too few or too many bars is refused, with those of the block."""
    n_fields = len(layout.fields)
    places, rows, bad = list[int](), list[list[str]](), list[Refused]()
    for place, line in zip(lines.places, lines.lines, strict=True):
        if not line or line.isspace() or line == layout.header:
            continue
        fields = line.split(BAR)
        surplus = len(fields) - n_fields - layout.has_trailing_bar
        if surplus > 0 and layout.fields[-1] == NAME:  # they can only belong to the name, in which sacct escapes none
            fields = line.removesuffix(BAR * layout.has_trailing_bar).split(BAR, n_fields - 1)
        elif surplus:
            hint = "; a bar in a name? let JobName be the last field" if surplus > 0 else ""
            bad.append((place, f"{n_fields + surplus} fields instead of {n_fields}{hint}", line))
            continue
        places.append(place)
        rows.append(fields)
    at = {name: layout.fields.index(name) for name in WANTED if name in layout.fields}  # of one listed twice the first
    texts = {name: pd.Series([row[column] for row in rows], dtype="str") for name, column in at.items()}
    table = pd.DataFrame(texts).assign(place=pd.Series(places, dtype="int64"))
    return table, refused_rows([*lines.refused, *bad])


def sacct_fields_in(line: str) -> set[str]:
    """The fields of sacct that a header line names; empty for a line that does not name a job id."""
    names = set(_canonical(line.split(BAR)))
    return set() if names.isdisjoint(IDS) else names & set(WANTED)


def find_layout(path: str, lines: list[str], sacct_fields: str) -> Layout:
    """The layout that a header line tells, or else the fields of the setting read.sacct_fields.

    lines: the first lines of the log, not blank. Raises BadInput where fields are missing or do not fit."""
    header = lines[0]
    if BAR not in header:
        raise BadInput(path, "no bars (|) between fields", "output of sacct --parsable2", "run sacct with --parsable2")
    if sacct_fields_in(header):
        layout = Layout(_canonical(header.removesuffix(BAR).split(BAR)), header, header.endswith(BAR))
        if lacking := _lacking(layout.fields):
            raise BadInput(path, f"the header lacks {lacking}", "JobID, Start and End", "add it to sacct --format")
        data = [line for line in lines if line != header]
        is_fit = not data or any(line.count(BAR) - layout.has_trailing_bar >= len(layout.fields) - 1 for line in data)
    else:
        names = [name.partition("%")[0] for name in sacct_fields.replace(BAR, ",").strip(", ").split(",")]
        has_trailing_bar = all(line.endswith(BAR) and line.count(BAR) >= len(names) for line in lines)
        layout, data = Layout(_canonical(names), None, has_trailing_bar), lines
        if lacking := _lacking(layout.fields):
            raise BadSetting(f"read.sacct_fields lacks {lacking}; list the fields that sacct --format was given")
        is_fit = _commonest_bars(lines) - has_trailing_bar == len(layout.fields) - 1
    if not is_fit:
        listed = "read.sacct_fields" if layout.header is None else "its header"
        raise BadInput(
            path,
            f"lines of {_commonest_bars(data) + 1 - layout.has_trailing_bar} fields, but {listed} names "
            f"{len(layout.fields)}",
            f"the fields {quoted(layout.fields)}",
            "export with a header (sacct --parsable2, no --noheader) or list the fields in read.sacct_fields",
        )
    return layout


def _canonical(names: list[str]) -> tuple[str, ...]:
    return tuple(CANONICAL.get(name.strip().lower(), name.strip()) for name in names)


def _lacking(fields: tuple[str, ...]) -> str:
    return next((" or ".join(some) for some in NEEDED if set(some).isdisjoint(fields)), "")


def _commonest_bars(lines: list[str]) -> int:
    return Counter(line.count(BAR) for line in lines).most_common(1)[0][0]


logger = logging.getLogger(__name__)
SNIFFED_LINES = 20
ENOUGH_FIELDS = 3  # names of sacct's fields, job id among them, that tell a header from other text
OTHER_FORMAT_ROWS = 20  # times of which not one can be read: another format, not broken lines
LAYOUT_LINES = 1000  # the commonest number of fields in these counts
BUNDLE_MARK = "_["  # 123_[5-9]: tasks of a job array that have not begun
SOME_JOB_ID = re.compile(r"\d+(_(\d+|\[.+\])|\+\d+)?(\.\w+)?")
SOME_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*|\d{9,11}|Unknown|None")
SOME_DURATION = re.compile(r"(\d+-)?\d\d:\d\d:\d\d")
JOB_ID = r"[0-9]+(?:_(?:[0-9]+|\[.+\])|\+[0-9]+)?"  # 123, task 123_4, tasks 123_[5-9] that wait, component 123+1
STEP_PEAK = "step_peak_bytes"  # column that the reader adds: largest MaxRSS of the job's steps
SHOWN_CHARS = 60  # of a wrong value, in the reason
NO_VALUE = frozenset(
    {"", "Unknown", "None", "NONE", "N/A", "n/a", "INVALID", "UNLIMITED", "Partition_Limit", "Not set"}
)
BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
# A newer sacct prints the flag bit "per CPU" of an older record as part of the amount, in megabytes: 2147486648Mn
# are 3000 for each processor, which ReqTRES confirms in all 4,238 such rows of xdmod's phillips log.
PER_CPU_FLAG = 2**31
NO_VALUE_FROM = 2**32 - 3  # 0xfffffffd and above: Slurm's "unset" and "infinite"
DURATION = re.compile(r"(?:([0-9]{1,7})-)?(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{1,9}(?:\.[0-9]{1,9})?)")
COUNT = re.compile(r"[0-9]{1,18}")
AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)([KMGTPE]?)")
REQUESTED_MEMORY = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)([KMGTPE]?)([nc]?)")
STATE = re.compile(r"([A-Z_]+)\+?(?: by \S+)?")


def sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """A header with a job id and other fields of sacct, or lines with an id, a time and a state."""
    lines = [line for line in head.decode("utf-8", "replace").splitlines() if line.strip()][:SNIFFED_LINES]
    if not lines or b"\x00" in head:
        return False
    return len(sacct_fields_in(lines[0])) >= ENOUGH_FIELDS or sum(map(_looks_like_a_job, lines)) * 2 > len(lines)


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """Chunks of some 50,000 jobs, in the order of the file: a later line of a job is its newer state.

    Job steps (123.batch) are no runs, but lend the job their peak memory.

    Raises BadInput if the fields do not fit, or if times name no zone and params.time_zone is empty;
    BadSetting for a wrong params.time_zone or params.sacct_fields."""
    check_zone(params.time_zone or "UTC")
    now, cluster, n_left_out = datetime.now(UTC).replace(tzinfo=None), "", 0
    for lines, layout in _batches(path, params):
        table, miscounted = read_table(lines, layout)
        if not cluster and "Cluster" in table and len(table):
            cluster = str(table["Cluster"].mode().iloc[0])
        jobs = _jobs(table)
        n_left_out += len(table) - len(jobs)
        chunk = job_rows(jobs, params, now, path=path, cluster=cluster)
        raw, places = dict(zip(lines.places, lines.lines, strict=True)), chunk.refused["place"]
        refused = refusals(places, chunk.refused["reason"].to_list(), [raw[place] for place in places])
        yield Chunk(chunk.rows, all_refusals([miscounted, refused]), {})
    if n_left_out:
        logger.info("%s: %d lines are job steps or array tasks that have not begun", path, n_left_out)


def _looks_like_a_job(line: str) -> bool:
    fields = line.split(BAR)
    has_state = any(map(is_state, fields))
    kinds = [any(kind.fullmatch(field) for field in fields) for kind in (SOME_JOB_ID, SOME_TIME, SOME_DURATION)]
    return kinds[0] and kinds[1] and (has_state or kinds[2])


def _batches(path: str, params: ReadParams) -> Iterator[tuple[Lines, Layout]]:
    """The lines in large batches that end before a job, so that it stays together with its steps."""
    layout = None
    places, texts, refused = list[int](), list[str](), list[Refused]()
    for block in read_lines(path, params.limits):
        places, texts, refused = places + block.places, texts + block.lines, [*refused, *block.refused]
        if len(texts) >= CHUNK_LINES or sum(map(len, texts)) >= CHUNK_CHARS:
            layout = layout or _layout(path, texts, params)
            end = _last_job(texts, layout)
            yield Lines(places[:end], texts[:end], refused), layout
            places, texts, refused = places[end:], texts[end:], []
    if texts or refused:
        yield Lines(places, texts, refused), layout or _layout(path, texts, params)


def _last_job(texts: list[str], layout: Layout) -> int:
    """Where the last job begins: more of its steps may follow. One with MAX_HELD_LINES of steps is not held: later
    ones do not count for its peak memory."""
    id_column = next(layout.fields.index(name) for name in IDS if name in layout.fields)
    for at in reversed(range(max(0, len(texts) - MAX_HELD_LINES), len(texts))):
        job_id = texts[at].split(BAR, id_column + 1)[id_column : id_column + 1]
        if any(text[:1].isdigit() and STEP_MARK not in text for text in job_id):
            return at
    return len(texts)


def _layout(path: str, texts: list[str], params: ReadParams) -> Layout:
    lines = [line for line in texts if line.strip()][:LAYOUT_LINES]
    if not lines:
        raise BadInput(path, "only blank lines", "output of sacct --parsable2", "export it again")
    return find_layout(path, lines, params.sacct_fields)


def _jobs(table: pd.DataFrame) -> pd.DataFrame:
    """The jobs without their steps, but with the largest MaxRSS of these; without bundles of waiting tasks."""
    is_step = run_ids(table).str.contains(STEP_MARK, regex=False)
    is_bundle = pd.Series(False, index=table.index)
    if {"JobID", "State"} <= set(table):
        is_bundle = table["JobID"].str.contains(BUNDLE_MARK, regex=False) & (table["State"] == "PENDING")
    jobs = table[~is_step & ~is_bundle]
    if "MaxRSS" not in table or not is_step.any():
        return jobs
    peak, _ = read_numbers(table[is_step], "MaxRSS", memory_bytes)
    largest = peak.groupby(run_ids(table[is_step]).str.partition(STEP_MARK)[0]).max()
    return jobs.assign(**{STEP_PEAK: run_ids(jobs).map(largest)})


def job_rows(jobs: pd.DataFrame, params: ReadParams, now: datetime, *, path: str, cluster: str) -> Chunk:
    """Job rows of a table of texts, with the places of lines that cannot be used and why (raw is empty).

    jobs: as read_table gives it, without job steps, index unique. cluster: lines of another one are refused,
    since their ids may coincide. Raises BadInput if times name no zone and params.time_zone is empty."""
    submission = "Submit" if "Submit" in jobs else "Eligible"
    times = {name: _read_times(jobs, name, params.time_zone, path) for name in (submission, "Start", "End")}
    parsers: dict[str, tuple[str, Callable[[str], object]]] = {
        "state": ("State", partial(status, mapped=params.statuses)),
        **PARSERS,
    }
    values = {ours: read_numbers(jobs, field, parse) for ours, (field, parse) in parsers.items()}
    id_field = next(name for name in IDS if name in jobs)
    is_wrong = ~jobs[id_field].str.fullmatch(JOB_ID).fillna(False).astype(bool)
    wrong_ids = _about(jobs, id_field, pd.Series("is not a job id", index=jobs.index[is_wrong], dtype="object"))
    problems = [wrong_ids, _other_clusters(jobs, cluster)]
    problems += [_about(jobs, name, reading.problem) for name, reading in times.items()]
    problems += [_about(jobs, parsers[ours][0], problem) for ours, (_, problem) in values.items()]
    reasons = pd.concat(problems)
    reasons = reasons[~reasons.index.duplicated()].sort_index()
    rows = _rows(jobs, {ours: value for ours, (value, _) in values.items()}, *times.values())
    vetted = vet_runs(rows.drop(index=reasons.index), params, now)
    refused = refusals(jobs.loc[reasons.index, "place"], reasons.to_list(), [""] * len(reasons))
    return Chunk(vetted.rows, all_refusals([refused, vetted.refused]), {})


def run_ids(table: pd.DataFrame) -> pd.Series:
    """The id by which a job is known: JobIDRaw if the log has it, else JobID."""
    return table[next(name for name in IDS if name in table)]


def read_numbers(table: pd.DataFrame, field: str, parse: Callable[[str], object]) -> tuple[pd.Series, pd.Series]:
    """What `parse` says of each text of a field, and for the rows where it objects, why.

    Parses each distinct text once. A field that the log lacks is missing throughout."""
    if field not in table:
        return pd.Series(nan, index=table.index), pd.Series([], dtype="object")
    codes, texts = pd.factorize(table[field].fillna(""))
    parsed: list[object] = []
    objections: dict[int, str] = {}
    for code, text in enumerate(texts.tolist()):
        try:
            parsed.append(parse(text))
        except ValueError as error:
            objections[code] = str(error)
            parsed.append(None)
    values = pd.Series(parsed, dtype=None if parsed else "float64").take(codes).set_axis(table.index)
    is_wrong = np.isin(codes, list(objections))
    problem = pd.Series([objections[code] for code in codes[is_wrong]], index=table.index[is_wrong], dtype="object")
    return values, problem


def _read_times(jobs: pd.DataFrame, field: str, zone: str, path: str) -> TimeReadings:
    text = jobs[field] if field in jobs else pd.Series(pd.NA, index=jobs.index, dtype="str")
    text = text.mask(text.isin(NO_VALUE))
    if not zone and needs_zone(text):
        raise BadInput(
            path,
            f"{field} is local time without a time zone",
            "the time zone of the cluster's clock",
            "name it: --time-zone Europe/Berlin (or export with SLURM_TIME_FORMAT=%s)",
        )
    readings = read_times(text, zone)
    if text.notna().sum() >= OTHER_FORMAT_ROWS and readings.first.isna().all():
        raise BadInput(
            path,
            f"{field}: none of its times can be read",
            "YYYY-MM-DDTHH:MM:SS or epoch seconds; SLURM_TIME_FORMAT or the locale has changed them",
            "export again: SLURM_TIME_FORMAT=standard sacct …",
        )
    return readings


def _about(jobs: pd.DataFrame, field: str, problem: pd.Series) -> pd.Series:
    values = jobs.loc[problem.index, field] if len(problem) else []
    reasons = [f"{field} '{str(value)[:SHOWN_CHARS]}' {why}" for value, why in zip(values, problem, strict=True)]
    return pd.Series(reasons, index=problem.index, dtype="object")


def _other_clusters(jobs: pd.DataFrame, cluster: str) -> pd.Series:
    if "Cluster" not in jobs:
        return pd.Series([], dtype="object")
    why = f"in a log of '{cluster}', whose job ids may be the same; export each cluster by itself"
    is_other = jobs["Cluster"] != cluster
    return _about(jobs, "Cluster", pd.Series(why, index=jobs.index[is_other], dtype="object"))


def _rows(
    jobs: pd.DataFrame, values: dict[str, pd.Series], submission: TimeReadings, start: TimeReadings, end: TimeReadings
) -> pd.DataFrame:
    elapsed_s = values["elapsed_s"].fillna(values["elapsed_raw_s"])
    submitted, started, ended = settle(submission, start, end, elapsed_s)
    status = _status(jobs, values["state"], started, ended)
    # sacct prints the time of the cancellation as the start of a job that never began
    never_began = (status == "cancelled") & (elapsed_s == 0) & (started.isna() | (started == ended))
    cpus = values["cpus"].fillna(values["allocated_cpus"]).fillna(values["allocated_tres_cpus"])
    requested_cpus = values["requested_cpus"].fillna(values["requested_tres_cpus"])
    peak = values["peak_memory_bytes"]
    if STEP_PEAK in jobs:
        peak = peak.where(~(jobs[STEP_PEAK] > peak.fillna(0)), jobs[STEP_PEAK])
    reserved_cpus = values["reserved_cpu_s"] / elapsed_s.where(elapsed_s > 0)
    user = next((name for name in ("User", "UID") if name in jobs), "")
    return pd.DataFrame(
        {
            "run_id": run_ids(jobs),
            "name": _text(jobs, "JobName"),
            "user_name": _text(jobs, user),
            "queue": _text(jobs, "Partition"),
            "account": _text(jobs, "Account" if "Account" in jobs else "Group"),
            "qos": _text(jobs, "QOS"),
            "submitted_at": submitted,
            "started_at": started.mask(never_began),
            "ended_at": ended,
            "runtime_s": elapsed_s.mask(never_began),  # not end - start: a suspended job does not run
            "status": status,
            "requested_cpus": requested_cpus,
            "used_cpus": cpus.fillna(reserved_cpus),
            "requested_runtime_s": values["limit_s"].fillna(values["limit_raw_min"] * 60),
            "requested_memory_bytes": _requested_memory(values, requested_cpus.fillna(cpus)),
            # sacct prints 0 where it has not looked: with -X, and for jobs too short to be sampled
            "cpu_s": values["cpu_s"].where(values["cpu_s"] > 0),
            "peak_memory_bytes": peak.where(peak > 0),
            "place": jobs["place"],
        }
    )


def _text(jobs: pd.DataFrame, field: str) -> pd.Series:
    text = jobs[field] if field in jobs else pd.Series("", index=jobs.index, dtype="str")
    return text.mask(text == "")


def _requested_memory(values: dict[str, pd.Series], cpus: pd.Series) -> pd.Series:
    nodes = values["nodes"].fillna(values["requested_nodes"]).fillna(values["allocated_nodes"])
    requested = values["tres_memory_bytes"].fillna(values["job_memory_bytes"])
    return requested.fillna(values["node_memory_bytes"] * nodes).fillna(values["cpu_memory_bytes"] * cpus)


def _status(jobs: pd.DataFrame, state: pd.Series, started: pd.Series, ended: pd.Series) -> pd.Series:
    """The state's status; without one a job that has no end yet runs, or waits if it has no start."""
    status = state.fillna("unknown") if "State" in jobs else pd.Series("unknown", index=jobs.index)
    if "End" not in jobs:
        return status
    is_open = (status == "unknown") & ended.isna()
    return status.mask(is_open & started.notna(), "running").mask(is_open & started.isna(), "pending")


def duration_s(text: str) -> float:
    """Seconds of `[D-]HH:MM:SS`, `MM:SS.mmm` (TotalCPU of short jobs)."""
    if text in NO_VALUE:
        return nan
    match = DURATION.fullmatch(text)
    if not match:
        raise ValueError("is not a duration ([D-]HH:MM:SS)")
    days, hours, minutes, seconds = match.groups(default="0")
    return int(days) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def count(text: str) -> float:
    """A whole number of something, or raw seconds."""
    if text in NO_VALUE:
        return nan
    if not COUNT.fullmatch(text):
        raise ValueError("is not a whole number")
    return float(text)


def tres_cpus(text: str) -> float:
    """Processors in a list of trackable resources, `billing=8,cpu=8,mem=24000M,node=1`."""
    return _amount(_resources(text).get("cpu", ""), "", "has no number for cpu=")


def tres_memory_bytes(text: str) -> float:
    """Memory in a list of trackable resources, for the whole job; no unit means megabytes."""
    return _amount(_resources(text).get("mem", ""), "M", "has no amount for mem=") or nan


def status(text: str, mapped: Mapping[str, Status]) -> Status:
    """Our status for a job state; a state of a newer Slurm that we do not know is `unknown`. mapped: the user's words.

    `CANCELLED by 380693` names who did it, `CANCELLED+` is a state cut at ten characters."""
    if text in NO_VALUE:
        return "unknown"
    known = status_of(text, mapped, KNOWN_TO_SLURM)
    if known is None and not STATE.fullmatch(text):
        raise ValueError("is not a job state")
    return known or "unknown"


def is_state(text: str) -> bool:
    """Whether a text is a state as sacct prints it."""
    match = STATE.fullmatch(text)
    return bool(match and len(match[1]) > 2 and status_of(match[1], {}, KNOWN_TO_SLURM))


def _resources(text: str) -> dict[str, str]:
    if text in NO_VALUE:
        return {}
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("is not a list of resources (cpu=8,mem=24000M)")
    return {name: value for name, _, value in pairs}


def _amount(text: str, default_unit: str, problem: str) -> float:
    if text in NO_VALUE:
        return nan
    match = AMOUNT.fullmatch(text)
    if not match:
        raise ValueError(problem)
    return float(match[1]) * BYTES[match[2] or default_unit]


nodes = partial(_amount, default_unit="", problem="is not a number of nodes")  # sacct shortens large ones: 1.50K
memory_bytes = partial(_amount, default_unit="", problem="is not an amount of memory")  # MaxRSS 0 has no unit


def requested_memory_bytes(text: str, per: str) -> float:
    """Bytes of ReqMem where it is for what `per` says, else NaN: the whole job (empty, `64G`), each node (`n`,
    `31000Mn`) or each processor (`c`, `4000Mc`, and `2147487648Mn`, see PER_CPU_FLAG).

    No unit means megabytes; 0 asks for all of a node's memory, of which the log does not say how much it is."""
    if text in NO_VALUE:
        return nan
    match = REQUESTED_MEMORY.fullmatch(text)
    if not match:
        raise ValueError("is not an amount of memory")
    number, unit, given_per = float(match[1]), match[2] or "M", match[3]
    is_flagged = number * BYTES[unit] >= PER_CPU_FLAG * BYTES["M"]
    if is_flagged and (unit != "M" or number >= NO_VALUE_FROM):  # rounded to `2.00P`: the amount is lost
        return nan
    if is_flagged:
        number, given_per = number - PER_CPU_FLAG, "c"
    return number * BYTES[unit] if number and given_per == per else nan


PARSERS: dict[str, tuple[str, Callable[[str], object]]] = {  # our value: (Slurm's field, how it is read)
    "elapsed_s": ("Elapsed", duration_s),
    "elapsed_raw_s": ("ElapsedRaw", count),
    "limit_s": ("Timelimit", duration_s),
    "limit_raw_min": ("TimelimitRaw", count),
    "requested_cpus": ("ReqCPUS", count),
    "requested_tres_cpus": ("ReqTRES", tres_cpus),
    "cpus": ("NCPUS", count),
    "allocated_cpus": ("AllocCPUS", count),
    "allocated_tres_cpus": ("AllocTRES", tres_cpus),
    "reserved_cpu_s": ("CPUTimeRAW", count),
    "nodes": ("NNodes", nodes),
    "requested_nodes": ("ReqNodes", nodes),
    "allocated_nodes": ("AllocNodes", nodes),
    "tres_memory_bytes": ("ReqTRES", tres_memory_bytes),
    "job_memory_bytes": ("ReqMem", partial(requested_memory_bytes, per="")),
    "node_memory_bytes": ("ReqMem", partial(requested_memory_bytes, per="n")),
    "cpu_memory_bytes": ("ReqMem", partial(requested_memory_bytes, per="c")),
    "cpu_s": ("TotalCPU", duration_s),
    "peak_memory_bytes": ("MaxRSS", memory_bytes),
}
