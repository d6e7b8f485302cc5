"""Tables of runs, machine types and memory profiles, CSV or Parquet, as data frames with our columns.

Column names of scout and Ruya are known by themselves; others are named by --map ours=theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.advice.machines import Ints, MachineType, MemoryNeed, stated_need
from tasks.advice.params import CPU_ONE_THREAD
from tasks.errors import BadInput, quoted
from tasks.intake.cells import flag_of
from tasks.intake.limits import ReadLimits
from tasks.intake.tables import choose_columns, known_otherwise, whole_table
from tasks.jobs.columns import status_of

ENDED = {"completed": True, "failed": False, "cancelled": False, "timeout": False}  # of a run that still goes on: none


@dataclass(frozen=True)
class Field:
    """A column: its type, other names that it is known by, and whether a table may be without it."""

    kind: type
    known_as: tuple[str, ...] = ()
    is_needed: bool = True


RUNS = {
    "job": Field(str, ("workload",)),
    "machine_type": Field(str, ("vm_type", "instance_type", "machine")),
    "nodes": Field(int, ("node_count", "n_nodes", "scale_out")),
    "runtime_s": Field(float, ("elapsed_time_s",)),
    "completed": Field(bool, ("status",), is_needed=False),
    "application": Field(str, (), is_needed=False),
    "framework": Field(str, (), is_needed=False),
    "input_bytes": Field(float, ("input_size_bytes",), is_needed=False),
}
JOB_RUNS = {
    "job": RUNS["job"],
    "machine_type": RUNS["machine_type"],
    "runtime_s": RUNS["runtime_s"],
    "completed": RUNS["completed"],
    "cpu_s": Field(float, ("cpu_seconds",), is_needed=False),
    "read_bytes": Field(float, ("disk_read_bytes",), is_needed=False),
    "memory_bytes": Field(float, ("buffer_bytes", "peak_memory_bytes"), is_needed=False),
    "spilled_bytes": Field(float, ("temp_bytes",), is_needed=False),
}
MACHINES = {
    "machine_type": Field(str, ("vm_type", "instance_type", "machine", "name")),
    "vcpu": Field(float, ("vcpus", "cores")),
    "memory_gb": Field(float, ("memory", "ram_gb")),
    "price_per_h": Field(float, ("price", "price_usd_per_h")),
    "priced_on": Field(str, is_needed=False),
}
PROFILE = {
    "job": Field(str),
    "input_bytes": Field(float, ("dataset_size",)),
    "peak_bytes": Field(float, ("max_memory_used", "peak_memory_bytes")),
}
NEEDS = {"job": Field(str), "need_gb": Field(object)}
MACHINE_SCORES = {
    "machine": Field(str, ("node", "instance", "machine_type", "name")),
    "aspect": Field(str),
    "score": Field(float),
    "low": Field(float, is_needed=False),
    "high": Field(float, is_needed=False),
}
SCORES = {
    "machine_type": Field(str, ("node", "instance")),
    "aspect": Field(str, is_needed=False),
    "score": Field(object),
}


def read_columns(path: str, fields: Mapping[str, Field], renamed: Mapping[str, str]) -> pd.DataFrame:
    """The rows of a table with our columns, those that it does not need only where it has them.

    renamed: ours to theirs. Raises BadInput for a column that is missing, and for a value that is none of its kind,
    with its line."""
    table = whole_table(path, ReadLimits())
    aliases = known_otherwise(table.names, {ours: one.known_as for ours, one in fields.items()}, renamed)
    needed = [(ours,) for ours, one in fields.items() if one.is_needed]
    chosen = choose_columns(table, list(fields), needed, {**aliases, **renamed})
    if len(table.refused):
        line = table.refused.iloc[0]
        raise BadInput(path, f"line {line['place']}: {line['reason']}", "a row of the table", "mend that line")
    return pd.DataFrame(
        {
            ours: _values(path, ours, fields[ours], pd.Series(column.to_pylist(), dtype=object), table.places)
            for ours, column in chosen.items()
        }
    )


def _values(path: str, name: str, field: Field, cells: pd.Series, places: Ints) -> pd.Series:
    """A column in its type; what may be missing is empty or NaN there."""
    texts = cells.map(lambda cell: "" if cell is None else str(cell).strip())
    is_empty = (texts == "") | (texts == "nan")
    if field.kind is object:
        return texts
    if field.kind is str:
        values, bad, expected = texts, is_empty, "a name"
    elif field.kind is bool:
        values = texts.map(_is_completed)
        bad, expected = values.isna(), "completed, failed or killed, or true and false"
    else:
        values = pd.to_numeric(texts, errors="coerce").astype(float)
        bad, expected = values.isna() | np.isinf(values), "a number"
        if field.kind is int:
            bad, expected = bad | (values < 1) | (values % 1 != 0), "a whole number from 1"
    if not field.is_needed and field.kind is not bool:
        bad = bad & ~is_empty
    if bad.any():
        at = int(np.flatnonzero(bad.to_numpy())[0])
        problem = f"line {places[at]}: {name} is {quoted(str(texts.iloc[at])) or 'empty'}"
        raise BadInput(path, problem, expected, "mend that line, or name another column with --map")
    return values


def _is_completed(text: str) -> bool | None:
    """Whether a run completed, from a claim or a status in anybody's words; None for one that has not ended."""
    flag = flag_of(text)
    return ENDED.get(status_of(text, {}) or "") if flag is None else flag


def read_runs(path: str, renamed: Mapping[str, str]) -> pd.DataFrame:
    """Runs: job, machine_type, nodes, runtime_s (> 0), completed (True where the table does not say), application,
    family, and input_bytes where known.

    application: as the table says, else the part of the job's name before the first underscore; family: with the
    framework, jobs of one family differ in their input. Raises BadInput."""
    runs = read_columns(path, RUNS, renamed)
    if "completed" not in runs:
        runs["completed"] = True
    runs["completed"] = runs["completed"].astype(bool)
    if (bad := ~(runs["runtime_s"] > 0)).any():
        row = runs[bad].iloc[0]
        problem = f"a run of {quoted(row['job'])} took {row['runtime_s']:g} s"
        raise BadInput(path, problem, "runtimes above 0", "leave out runs that never started")
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


def read_machines(path: str) -> Machines:
    """Machine types: machine_type, vcpu, memory_gb, price_per_h, and the day of the price (priced_on).

    Raises BadInput for one without a price, one that stands there twice, and for vCPU, memory or price not above 0."""
    table = read_columns(path, MACHINES, {})
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


def read_profile(path: str, renamed: Mapping[str, str]) -> pd.DataFrame:
    """Runs with down-sampled input: job, input_bytes, peak_bytes. Raises BadInput."""
    return read_columns(path, PROFILE, renamed)


def read_needs(path: str) -> dict[str, MemoryNeed]:
    """Memory needs by job: need_gb, 0 where more input needs no more, empty where it is not clear. Raises BadInput."""
    table = read_columns(path, NEEDS, {})
    texts = table["need_gb"].map(lambda value: "" if value is None else str(value).strip())
    numbers = pd.to_numeric(texts, errors="coerce")
    if (bad := (texts != "") & ~(numbers >= 0)).any():
        problem = f"need_gb of {quoted(table['job'][bad].iloc[0])} is {quoted(texts[bad].iloc[0])}"
        raise BadInput(path, problem, "GB from 0, or nothing where it is not clear", "mend that line")
    return {job: stated_need(need) for job, need in zip(table["job"], numbers, strict=True)}


def read_scores(path: str, renamed: Mapping[str, str]) -> pd.DataFrame:
    """Scores of machine types: machine_type, aspect (one thread where it has none), score (> 0).

    A machine whose score is empty has none. Raises BadInput for a score that is no number, or not above 0."""
    scores = read_columns(path, SCORES, renamed)
    texts = scores["score"].map(lambda value: "" if value is None else str(value).strip())
    numbers = pd.to_numeric(texts, errors="coerce").astype(float)
    if (bad := (texts != "") & ~(numbers > 0)).any():
        at = int(np.flatnonzero(bad.to_numpy())[0])
        said = quoted(texts.iloc[at]) if np.isnan(numbers.iloc[at]) else f"{numbers.iloc[at]:g}"
        raise BadInput(path, f"score {said} of {quoted(scores['machine_type'].iloc[at])}", "numbers above 0")
    if "aspect" not in scores:
        scores["aspect"] = CPU_ONE_THREAD
    return scores.assign(score=numbers)[texts != ""].reset_index(drop=True)


def read_job_runs(path: str, renamed: Mapping[str, str]) -> pd.DataFrame:
    """Runs of recurring jobs: job, machine_type, runtime_s, status (completed or failed), and where the table has them
    cpu_s, read_bytes, memory_bytes, spilled_bytes. Raises BadInput."""
    runs = read_columns(path, JOB_RUNS, renamed)
    completed = runs["completed"].astype(bool) if "completed" in runs else pd.Series(True, index=runs.index)
    runs["status"] = completed.map({True: "completed", False: "failed"})
    return runs.drop(columns="completed", errors="ignore")


def read_machine_scores(path: str, aspects: Sequence[str], renamed: Mapping[str, str]) -> pd.DataFrame:
    """Scores of machines: machine, aspect, score, and low and high where the table has them.

    aspects: those that count; empty: all. A table without a column `aspect` may have a column for each of them instead:
    they must be named then. Raises BadInput."""
    names = whole_table(path, ReadLimits()).names
    if aspects and renamed.get("aspect", "aspect") not in names:
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
