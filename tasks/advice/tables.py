"""Tables of runs, machine types, memory profiles and tasks of workflows, as data frames with our columns.

Column names of scout and Ruya are known by themselves; others are named by --map ours=theirs. Traces of workflows, a
row a task that ran, are Nextflow's trace.txt, Lotaru's execution reports, or a person's table. A trace of Nextflow does
not say on which machine a task ran: the folder that it lies in, or --machine, does. Its sizes are what a task read
(rchar), unless another column is named with --map size=THEIRS."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

import numpy as np
import pandas as pd
import pyarrow as pa

from tasks.advice.machines import Ints, MachineType, MemoryNeed, stated_need
from tasks.advice.params import CPU_ONE_THREAD
from tasks.errors import BadInput, quoted
from tasks.intake import aliases
from tasks.intake.aliases import amounts, named, single_column, trimmed
from tasks.intake.cells import flag_of
from tasks.intake.files import number_of
from tasks.intake.tables import choose_columns, whole_table
from tasks.jobs.columns import key_of, status_of
from tasks.jobs.params import Status
from tasks.params import ReadLimits
from tasks.quantities import FACTORS, Dimension, unit_in_name

logger = logging.getLogger(__name__)
LACKED_MEMORY = re.compile(  # words of a status or a reason; 137: killed, as a container is that lacks memory
    r"\boom|out[\W_]*of[\W_]*memory|(?:heap|metaspace|memory)[\W_]*(?:space|error|exceed|exhaust)"
    r"|(?<!within )(?<!within its )(?<!within the )(?:heap|metaspace|mem(?:ory)?)[\W_]*(?:usage[\W_]*)?limit"
    r"|(?:exceed|beyond|insufficient|not enough)(?:(?!time|wall|\.\s)[^,;:()]){0,20}memory|bad_alloc|\benomem\b"
    r"|(?:cannot|can.t|could not|unable to|failed to) allocate (?:\w+ )?(?:memory|[\d.]+ ?[kmgt]i?b)"
    r"|(?:exit(?:ed)?(?:[\W_]+with)?|code|status)\W*137\b",
    re.IGNORECASE,
)
CLUSTER_STATES = ("cluster_status", "cluster_state")  # of EMR, where a bad end is TERMINATED_WITH_ERRORS
TERMINATED, WITH_ERRORS = key_of("TERMINATED"), key_of("TERMINATED_WITH_ERRORS")
OF_CLUSTERS: dict[str, Status] = {TERMINATED: "completed"}
STEPS_ENDED = re.compile(r"steps[\W_]*completed", re.IGNORECASE)  # why a cluster did, as EMR says it
ENDED_EARLY = re.compile(r"user|error|fail|time[\W_]*out", re.IGNORECASE)
ENDED = {"completed": True, "failed": False, "cancelled": False, "timeout": False}  # of a run that still goes on: none


@dataclass(frozen=True)
class Field:
    """A column: its type, other names that it is known by, whether a table may be without it, and the unit of its
    numbers (s, B or GB), in which those with another unit are read as well: `Duration (min)`, a cell `2.5 h`.
    has_gaps: whether cells may be empty although the column is needed."""

    kind: type
    known_as: tuple[str, ...] = ()
    is_needed: bool = True
    unit: str = ""
    has_gaps: bool = False

    @property
    def dimension(self) -> Dimension | None:
        """What its numbers measure, where they have a unit."""
        return ("s" if self.unit == "s" else "bytes") if self.unit else None


RUNS = {
    "job": Field(str, ("workload", "job_name", "application", "application_name", "app_name", "model_name")),
    "machine_type": Field(str, ("vm_type", "instance_type", "machine", "instance", "warehouse_size", "warehouse")),
    "nodes": Field(
        int,
        ("node_count", "n_nodes", "num_nodes", "scale_out", "instance_count", "workers", "core_nodes", "cluster_size"),
        is_needed=False,
    ),
    "runtime_s": Field(
        float, ("elapsed_time", "runtime", "duration", "elapsed", "execution_time"), unit="s", has_gaps=True
    ),
    "completed": Field(bool, ("status", "state", "outcome", *CLUSTER_STATES), is_needed=False),
    "failure": Field(
        object,
        (
            "failure_reason",
            "error",
            "error_message",
            "reason",
            "state_reason",
            "state_change_reason",
            "state_change_reason_message",
            "state_change_reason_code",
        ),
        is_needed=False,
    ),
    "application": Field(str, (), is_needed=False),
    "framework": Field(str, (), is_needed=False),
    "input_bytes": Field(float, ("input_size_bytes", "input_size", "input_gb", "input_mb"), is_needed=False, unit="B"),
}
JOB_RUNS = {
    "job": RUNS["job"],
    "machine_type": RUNS["machine_type"],
    "runtime_s": RUNS["runtime_s"],
    "completed": RUNS["completed"],
    "failure": RUNS["failure"],
    "cpu_s": Field(float, ("cpu_seconds", "cpu_time"), is_needed=False, unit="s"),
    "read_bytes": Field(float, ("disk_read_bytes", "disk_read"), is_needed=False, unit="B"),
    "memory_bytes": Field(float, ("buffer_bytes", "peak_memory_bytes", "peak_memory"), is_needed=False, unit="B"),
    "spilled_bytes": Field(float, ("temp_bytes",), is_needed=False, unit="B"),
}
MACHINES = {
    "machine_type": Field(
        str, ("vm_type", "instance_type", "machine", "name", "instance", "warehouse_size", "warehouse")
    ),
    "vcpu": Field(float, ("vcpus", "cores")),
    "memory_gb": Field(float, ("memory", "ram"), unit="GB"),
    "price_per_h": Field(
        float,
        (
            "price",
            "price_usd_per_h",
            "price_per_hour",
            "price_usd_hour",
            "hourly_price",
            "price_h",
            "hourly_price_usd",
            "price_per_hour_usd",
            "usd_per_hour",
            "usd_per_h",
            "cost_per_hour",
            "hourly_cost",
            "on_demand_price",
            "credits_per_hour",
        ),
    ),
    "priced_on": Field(str, is_needed=False),
}
PROFILE = {
    "job": Field(str),
    "input_bytes": Field(float, ("dataset_size", "input_size", "input_gb", "input_mb"), unit="B"),
    "peak_bytes": Field(float, ("max_memory_used", "peak_memory_bytes", "peak_memory", "peak_gb", "peak_mb"), unit="B"),
}
NEEDS = {"job": Field(str), "need_gb": Field(object)}
MACHINE_SCORES = {
    "machine": Field(str, ("node", "instance", "machine_type", "name", "host")),
    "aspect": Field(str),
    "score": Field(float),
    "low": Field(float, is_needed=False),
    "high": Field(float, is_needed=False),
}
SCORES = {
    "machine_type": Field(str, ("node", "instance", "machine", "name")),
    "aspect": Field(str, is_needed=False),
    "score": Field(object),
}
SHARED = ("job", "machine_type", "input_bytes")  # of several tables of one question, which may name them differently


def theirs_of(names: Sequence[str], fields: Mapping[str, Field], renamed: Mapping[str, str]) -> dict[str, str]:
    """What a table calls those of our columns that it calls otherwise: as --map says (renamed), which may speak of
    another table of the question, else by an alias, in any spelling and with a unit behind it."""
    known = {alias: ours for ours, field in fields.items() for alias in field.known_as if alias not in fields}
    theirs: dict[str, str] = {}
    for named_as, name in renamed.items():
        ours = known.get(named_as, named_as)
        if (ours in fields or ours not in ANYWHERE) and (name in names or ours not in SHARED):
            theirs[ours] = name
    for ours, field in fields.items():
        if ours not in theirs and ours not in names:
            for name, _ in named(names, (ours, *field.known_as), theirs.values(), field.dimension):
                theirs.setdefault(ours, name)
    return theirs


def factor_of_column(path: str, column: str, field: Field) -> float:
    """How much of the field's unit one in a column is that may name another. Raises BadInput where nobody can tell."""
    if field.dimension is None:
        return 1.0
    try:
        unit = unit_in_name(column, field.dimension) or field.unit
    except ValueError as error:
        raise BadInput(path, f"column {quoted(column)}: {error}", "a unit that one can tell", "rename it") from error
    return FACTORS[field.dimension][unit.lower()] / FACTORS[field.dimension][field.unit.lower()]


def read_columns(path: str, fields: Mapping[str, Field], renamed: Mapping[str, str]) -> pd.DataFrame:
    """The rows of a table with our columns, in our units, those that it does not need only where it has them.

    Beside completed stands status, the words that say so. renamed: ours to theirs. Raises BadInput for a column that is
    missing, and for a value that is none of its kind, with its line."""
    table = whole_table(path, ReadLimits())
    theirs = theirs_of(table.names, fields, renamed)
    columns = choose_columns(table, list(fields), [(ours,) for ours in fields if fields[ours].is_needed], theirs)
    if len(table.refused):
        line = table.refused.iloc[0]
        raise BadInput(path, f"line {line['place']}: {line['reason']}", "a row of the table", "mend that line")
    values = {
        ours: _values(path, ours, fields[ours], column, theirs.get(ours, ours), table.places)
        for ours, column in columns.items()
    }
    if "completed" in columns:
        values["status"] = _values(path, "status", Field(object), columns["completed"], "", table.places)
    for ours, name in theirs.items():
        _say_unit(path, ours, name, fields[ours])
    return pd.DataFrame(values)


def _say_unit(path: str, ours: str, name: str, field: Field) -> None:
    """Nothing is guessed in silence: in which unit another column is read."""
    if dimension := field.dimension:
        unit = unit_in_name(name, dimension)
        if unit is None or factor_of_column(path, name, field) != 1:
            words = single_column(name, unit=unit or field.unit).in_words(ours, dimension)
            logger.warning("%s: %s", path, words)


def _values(path: str, name: str, field: Field, column: pa.ChunkedArray, theirs: str, places: Ints) -> pd.Series:
    """A column in its type; what may be missing is empty or NaN there."""
    cells = pd.Series(column.to_pylist(), dtype=object)
    texts = cells.map(lambda cell: "" if cell is None else str(cell).strip())
    is_empty = (texts == "") | (texts == "nan")
    if field.kind is object:
        return texts
    if field.kind is str:
        values, bad, expected = texts, is_empty, "a name"
    elif field.kind is bool:
        is_of_clusters = {key_of(theirs), *texts.map(key_of)} & {*map(key_of, CLUSTER_STATES), WITH_ERRORS}
        values = texts.map(partial(_is_completed, known=OF_CLUSTERS if is_of_clusters else {}))
        bad, expected = values.isna(), "completed, failed or killed, or true and false"
    else:
        unit = (
            FACTORS[field.dimension][field.unit.lower()] if field.dimension else 1.0
        )  # cells with a unit: s and bytes
        factor = unit * factor_of_column(path, theirs, field)
        values = amounts(trimmed(column), field.dimension, factor, has_commas=False)[0] / unit
        bad, expected = ~np.isfinite(values), "a number"
        if field.kind is int:
            bad, expected = bad | (values < 1) | (values % 1 != 0), "a whole number from 1"
    if (field.has_gaps or not field.is_needed) and field.kind is not bool:
        bad = bad & ~is_empty
    if bad.any():
        at = int(np.flatnonzero(bad.to_numpy())[0])
        problem = f"line {places[at]}: {name} is {quoted(str(texts.iloc[at])) or 'empty'}"
        raise BadInput(path, problem, expected, "mend that line, or name another column with --map")
    return values


def _is_completed(text: str, known: Mapping[str, Status]) -> bool | None:
    """Whether a run completed, from a claim or a status in anybody's words; None for one that has not ended.

    known: what these words are first looked up in."""
    flag = False if LACKED_MEMORY.search(text) else flag_of(text)
    return ENDED.get(status_of(text, known) or "") if flag is None else flag


def _read_ended(path: str, fields: Mapping[str, Field], renamed: Mapping[str, str]) -> pd.DataFrame:
    """The rows of a table of runs with completed (True where the table does not say), lacked_memory (from words of
    status and failure) and runtime_s (> 0; NaN for one that failed and does not say it). Raises BadInput."""
    runs = read_columns(path, fields, renamed)
    nothing = pd.Series("", index=runs.index)
    status, reason = runs.get("status", nothing), runs.get("failure", nothing)
    completed = runs.get("completed", nothing == "").astype(bool)
    is_terminated = status.map(key_of) == TERMINATED
    completed |= is_terminated & reason.str.contains(STEPS_ENDED)
    completed &= ~(is_terminated & reason.str.contains(ENDED_EARLY))
    runs = runs.drop(columns=["status", "failure"], errors="ignore").assign(completed=completed)
    runs["lacked_memory"] = ~completed & (reason + " " + status).str.contains(LACKED_MEMORY)
    return runs.assign(runtime_s=_runtimes_above_0(path, runs))


def _runtimes_above_0(path: str, runs: pd.DataFrame) -> pd.Series:
    """The runtimes of runs, NaN for one that failed and says 0 or none. Raises BadInput for one that is not above 0."""
    runtime_s = runs["runtime_s"].where(runs["completed"] | (runs["runtime_s"] != 0))
    if (bad := ~(runtime_s > 0) & (runs["completed"] | runtime_s.notna())).any():
        row = runs[bad].iloc[0]
        took = "says no runtime" if np.isnan(row["runtime_s"]) else f"took {row['runtime_s']:g} s"
        problem = f"a run of {quoted(row['job'])} {took}"
        raise BadInput(path, problem, "runtimes above 0", "leave out runs that never started")
    return runtime_s


def read_runs(path: str, renamed: Mapping[str, str]) -> pd.DataFrame:
    """Runs: job, machine_type, nodes (1 where the table has none), runtime_s (> 0; NaN for one that failed and does not
    say it), completed (True where the table does not say), lacked_memory (from words of status and failure),
    application, family, and input_bytes where known.

    application: as the table says, else the part of the job's name before the first underscore; family: with the
    framework, jobs of one family differ in their input. Raises BadInput."""
    runs = _read_ended(path, RUNS, renamed)
    if "nodes" not in runs:
        logger.warning("%s: no column nodes: each run counts as one on a single machine", path)
        runs["nodes"] = 1
    for name in ("application", "framework"):  # a row that was added by hand may leave them out
        if name in runs:
            runs[name] = runs.groupby("job")[name].transform("max")
    by_name = runs["job"].str.split("_").str[0]
    runs["application"] = (
        runs["application"].where(runs["application"] != "", by_name) if "application" in runs else by_name
    )
    runs["family"] = (
        runs["application"] + " " + runs["framework"] if "framework" in runs else runs["application"]
    ).str.strip()
    runs["nodes"] = runs["nodes"].astype("int64")
    return runs.drop(columns="framework", errors="ignore")


@dataclass(frozen=True)
class Machines:
    """Machine types by name, and the date of their prices, empty where the table does not say."""

    types: dict[str, MachineType]
    priced_on: str


def read_machines(path: str, renamed: Mapping[str, str]) -> Machines:
    """Machine types: machine_type, vcpu, memory_gb, price_per_h, and the day of the price (priced_on).

    Raises BadInput for one without a price, one that stands there twice, and for vCPU, memory or price not above 0."""
    table = read_columns(path, MACHINES, renamed)
    for name in ("vcpu", "memory_gb", "price_per_h"):
        for kind, value in zip(table["machine_type"], table[name], strict=True):
            if not value > 0:
                problem = f"machine type {quoted(kind)}: {name} is {value:g}"
                raise BadInput(path, problem, "a number above 0", "mend that line")
    if (twice := table["machine_type"].duplicated()).any():
        problem = f"machine type {quoted(table['machine_type'][twice].iloc[0])} stands there twice"
        raise BadInput(path, problem, "each machine type once", "leave one of its lines out")
    rows = zip(*(table[name] for name in ("machine_type", "vcpu", "memory_gb", "price_per_h")), strict=True)
    types = {kind: MachineType(kind, *facts) for kind, *facts in rows}
    dates = sorted(set(table["priced_on"])) if "priced_on" in table else []
    return Machines(types, " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else "")


def read_needs(path: str, renamed: Mapping[str, str]) -> dict[str, MemoryNeed]:
    """Memory needs by job: need_gb, 0 where more input needs no more, empty where it is not clear. Raises BadInput."""
    table = read_columns(path, NEEDS, renamed)
    texts = table["need_gb"]
    numbers = pd.to_numeric(texts, errors="coerce")
    if (bad := (texts != "") & ~(numbers >= 0)).any():
        problem = f"need_gb of {quoted(table['job'][bad].iloc[0])} is {quoted(texts[bad].iloc[0])}"
        raise BadInput(path, problem, "GB from 0, or nothing where it is not clear", "mend that line")
    return {job: stated_need(need) for job, need in zip(table["job"], numbers, strict=True)}


def read_scores(path: str, renamed: Mapping[str, str]) -> pd.DataFrame:
    """Scores of machine types: machine_type, aspect (one thread where it has none), score (> 0).

    A machine whose score is empty has none. Raises BadInput for a score that is no number, or not above 0."""
    scores = read_columns(path, SCORES, renamed)
    texts = scores["score"]
    numbers = pd.to_numeric(texts, errors="coerce").astype(float)
    if (bad := (texts != "") & ~(numbers > 0)).any():
        at = int(np.flatnonzero(bad.to_numpy())[0])
        shown = quoted(texts.iloc[at]) if np.isnan(numbers.iloc[at]) else f"{numbers.iloc[at]:g}"
        raise BadInput(path, f"score {shown} of {quoted(scores['machine_type'].iloc[at])}", "numbers above 0")
    if "aspect" not in scores:
        scores["aspect"] = CPU_ONE_THREAD
    return scores.assign(score=numbers)[texts != ""].reset_index(drop=True)


def read_job_runs(path: str, renamed: Mapping[str, str]) -> pd.DataFrame:
    """Runs of recurring jobs: job, machine_type, runtime_s, status (completed or failed), and where the table has them
    cpu_s, read_bytes, memory_bytes, spilled_bytes. Raises BadInput."""
    runs = _read_ended(path, JOB_RUNS, renamed)
    status = runs["completed"].map({True: "completed", False: "failed"})
    return runs.assign(status=status).drop(columns=["completed", "lacked_memory"])


def read_machine_scores(path: str, aspects: Sequence[str], renamed: Mapping[str, str]) -> pd.DataFrame:
    """Scores of machines: machine, aspect, score, and low and high where the table has them.

    aspects: those that count; empty: all. A table without a column `aspect` may have a column for each of them instead:
    they must be named then. Raises BadInput."""
    names = whole_table(path, ReadLimits()).names
    if aspects and theirs_of(names, MACHINE_SCORES, renamed).get("aspect", "aspect") not in names:
        wide = {"machine": MACHINE_SCORES["machine"], **{aspect: Field(float) for aspect in aspects}}
        return read_columns(path, wide, renamed).melt("machine", var_name="aspect", value_name="score")
    scores = read_columns(path, MACHINE_SCORES, renamed)
    if missing := [aspect for aspect in aspects if aspect not in set(scores["aspect"])]:
        raise BadInput(
            path, f"no score of aspect {quoted(missing)}", f"some of {quoted(sorted(set(scores['aspect'])))}"
        )
    return scores[scores["aspect"].isin(aspects)] if aspects else scores


def read_resource_trace(path: str) -> pd.DataFrame:
    """Rows of a workflow's resource trace with all their columns, as text. Raises BadInput."""
    columns = whole_table(path, ReadLimits()).by_name()
    return pd.DataFrame({name: pd.Series(column.to_pylist(), dtype=object) for name, column in columns.items()})


TASK_COLUMNS = ["workflow", "task", "machine", "size", "runtime_s"]
TASKS = {  # also as Nextflow's traces and Lotaru's reports name them
    "workflow": Field(str, is_needed=False),
    "task": Field(str, ("process", "name")),  # without and with what a task worked on, in brackets behind it
    "machine": Field(str, is_needed=False),
    "size": Field(str, ("task_input_size_uncompressed", "rchar"), unit="B"),
    "runtime_s": Field(str, ("runtime",), unit="s"),
    "runtime_ms": Field(str),
    "realtime": Field(str),  # with a unit, or in ms
    "status": Field(str, is_needed=False),
}
TABLES = (TASKS, RUNS, JOB_RUNS, MACHINES, PROFILE, NEEDS, MACHINE_SCORES, SCORES)
ANYWHERE = {name for table in TABLES for ours, field in table.items() for name in (ours, *field.known_as)}
OF_WHAT = re.compile(r"\s*\([^()]*\)\s*$")  # NFCORE:FASTQC (sample1): the task is NFCORE:FASTQC
FINISHED = {"completed", "cached", "complete", "ok", "success", "succeeded", "true", ""}  # cached: it ran once
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTP]?)i?B?", re.IGNORECASE)
POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
STEP_BYTES = 1024  # Nextflow's KB
MS = 1e-3


def duration_s(text: str) -> float:
    """Seconds of a duration as Nextflow writes it: `1m 2s`, `350ms`, `1h 3m`; a bare number is milliseconds (raw).

    NaN for `-` and what is none."""
    if (number := number_of(text)) is not None:
        return number * MS
    seconds = aliases.duration_s(text)
    return float("nan") if seconds is None else seconds


def size_bytes(text: str) -> float:
    """Bytes of a size as Nextflow writes it: `1.5 GB` (of 1024), or a bare number of bytes. NaN for what is none."""
    match = SIZE.fullmatch(text.strip())
    return float(match[1]) * float(STEP_BYTES ** POWERS[match[2].upper()]) if match else float("nan")


def read_traces(paths: Sequence[str], renamed: Mapping[str, str], *, machine: str = "") -> pd.DataFrame:
    """All finished tasks of some traces: workflow, task, machine, size (> 0, bytes as a rule), runtime_s (> 0).

    Rows that are none are logged by reason. renamed: ours to theirs. machine: for files that have no column of it; else
    the name of the folder that a file lies in. Raises BadInput for a file without tasks, runtimes or sizes, and for
    finished tasks that took no time or read nothing throughout."""
    parts, reasons = [], {"not finished": 0, "no runtime above 0": 0, "no size above 0": 0}
    for path in paths:
        rows = _rows(path, renamed, machine)
        is_finished = rows["status"].str.strip().str.lower().isin(FINISHED)
        has_time, has_size = rows["runtime_s"] > 0, rows["size"] > 0
        reasons["not finished"] += int((~is_finished).sum())
        reasons["no runtime above 0"] += int((is_finished & ~has_time).sum())
        reasons["no size above 0"] += int((is_finished & has_time & ~has_size).sum())
        kept = rows[is_finished & has_time & has_size]
        if kept.empty:
            problem = f"none of its {int((is_finished & has_time).sum())} finished tasks says a size above 0"
            if not (is_finished & has_time).any():
                problem = f"each of its {int(is_finished.sum())} finished tasks took 0 s, or says no time"
            if not is_finished.any():
                problem = f"none of its {len(is_finished)} tasks has finished"
            raise BadInput(
                path, problem, "finished tasks with a runtime and a size above 0", "name another column with --map"
            )
        parts.append(kept[TASK_COLUMNS])
    if not parts:
        raise BadInput("traces", "no file is named", "at least one trace", "name it with --traces")
    for reason, n in reasons.items():
        if n:
            logger.warning("left out %d tasks of the traces: %s", n, reason)
    return pd.concat(parts, ignore_index=True)


def _rows(path: str, renamed: Mapping[str, str], machine: str) -> pd.DataFrame:
    """Every row of a file: TASK_COLUMNS and status; NaN where a value is none."""
    table = whole_table(path, ReadLimits())
    runtimes = ("runtime_s", "runtime_ms", "realtime")
    theirs = theirs_of(table.names, TASKS, renamed)
    columns = choose_columns(table, list(TASKS), [("task",), runtimes, ("size",)], theirs)
    texts = {ours: pd.Series(column.to_pylist()).map(_text) for ours, column in columns.items()}
    n = len(texts["task"])
    folder = PurePosixPath(path).parent.name
    named = {"machine": machine or folder, "workflow": PurePosixPath(path).name.partition(".")[0]}
    for name, text in named.items():
        if name not in texts or (name == "machine" and machine):
            texts[name] = pd.Series([text] * n)
    if not named["machine"] and "machine" not in columns:
        fix = "name it with --machine, or put the trace into a folder that is called after it"
        raise BadInput(path, "nobody says on which machine its tasks ran", "the name of a machine", fix)
    return pd.DataFrame(
        {
            "workflow": texts["workflow"],
            "task": texts["task"].str.replace(OF_WHAT, "", regex=True),
            "machine": texts["machine"],
            "size": _in_unit(path, texts["size"], TASKS["size"], theirs.get("size", "size"), size_bytes),
            "runtime_s": _runtimes(path, texts, theirs.get("runtime_s", "runtime_s")),
            "status": texts["status"] if "status" in texts else pd.Series([""] * n),
        }
    )


def _runtimes(path: str, texts: Mapping[str, pd.Series], column: str) -> pd.Series:
    if "runtime_s" in texts:
        if column != "runtime_s":
            _say_unit(path, "runtime_s", column, TASKS["runtime_s"])
        return _in_unit(path, texts["runtime_s"], TASKS["runtime_s"], column, duration_s)
    return texts["runtime_ms" if "runtime_ms" in texts else "realtime"].map(duration_s)


def _in_unit(path: str, texts: pd.Series, field: Field, column: str, parse: Callable[[str], float]) -> pd.Series:
    """Numbers in the unit that their column names, else in the field's; cells with a unit of their own as parsed."""
    numbers = pd.to_numeric(texts, errors="coerce").astype(float) * factor_of_column(path, column, field)
    return numbers.fillna(texts.map(parse))


def _text(value: object) -> str:
    return "" if value is None or (isinstance(value, float) and np.isnan(value)) else str(value)


def one_machine(runs: pd.DataFrame, source: str) -> str:
    """The machine that runs are taken from: the one that is named, or the only one there is.

    Raises BadInput if none is named and there are several."""
    machines = sorted(runs["machine"].unique())
    if source or len(machines) == 1:
        return source or str(machines[0])
    raise BadInput("traces", f"runs on {quoted(machines)}", "one of them with --from", "name it")
