"""Traces of workflows, a row a task that ran: Nextflow's trace.txt, Lotaru's execution reports, or a person's table.

A trace of Nextflow does not say on which machine a task ran: the folder that it lies in, or --machine, does. Its sizes
are what a task read (rchar), unless another column is named with --map size=THEIRS."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import pandas as pd

from tasks.errors import BadInput, quoted
from tasks.intake import aliases
from tasks.intake.fields import number_of
from tasks.intake.limits import ReadLimits
from tasks.intake.tables import WholeTable, choose_columns, whole_table

COLUMNS = ["workflow", "task", "machine", "size", "runtime_s"]
KNOWN = [*COLUMNS, "runtime_ms", "realtime", "status"]
LOTARU = {
    "workflow": "Workflow", "task": "Task", "machine": "Machine", "size": "TaskInputSizeUncompressed",
    "runtime_ms": "Realtime",
}  # fmt: skip
NEXTFLOW_TASKS = ("process", "name")  # without and with what a task worked on, in brackets behind it
NEXTFLOW_SIZE = "rchar"
OF_WHAT = re.compile(r"\s*\([^()]*\)\s*$")  # NFCORE:FASTQC (sample1): the task is NFCORE:FASTQC
FINISHED = {"completed", "cached", "complete", "ok", "success", "succeeded", "true", ""}  # cached: it ran once
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTP]?)i?B?", re.IGNORECASE)
POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
STEP_BYTES = 1024  # Nextflow's KB
MS = 1e-3


@dataclass(frozen=True)
class Traces:
    """runs: workflow, task, machine, size (> 0, bytes as a rule), runtime_s (> 0), of finished tasks.

    n_left_out: rows that are none, by reason in words."""

    runs: pd.DataFrame
    n_left_out: Mapping[str, int]


def duration_s(text: str) -> float:
    """Seconds of a duration as Nextflow writes it: `1m 2s`, `350ms`, `1h 3m`; a bare number is milliseconds (raw).

    NaN for `-` and what is none."""
    if (number := number_of(text)) is not None:
        return number * MS
    found = aliases.duration_s(text)
    return float("nan") if found is None else found


def size_bytes(text: str) -> float:
    """Bytes of a size as Nextflow writes it: `1.5 GB` (of 1024), or a bare number of bytes. NaN for what is none."""
    told = SIZE.fullmatch(text.strip())
    return float(told[1]) * float(STEP_BYTES ** POWERS[told[2].upper()]) if told else float("nan")


def read_traces(paths: Sequence[str], renamed: Mapping[str, str], *, machine: str = "") -> Traces:
    """All finished tasks of some traces.

    renamed: ours to theirs. machine: for files that have no column of it; else the name of the folder that a file lies
    in. Raises BadInput for a file without tasks, runtimes or sizes, and for finished
    tasks that took no time or read nothing throughout."""
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
            problem = _why_none(is_finished, has_time)
            raise BadInput(
                path, problem, "finished tasks with a runtime and a size above 0", "name another column with --map"
            )
        parts.append(kept[COLUMNS])
    if not parts:
        raise BadInput("traces", "no file is named", "at least one trace", "name it with --traces")
    return Traces(pd.concat(parts, ignore_index=True), {name: n for name, n in reasons.items() if n})


def _why_none(is_finished: pd.Series, has_time: pd.Series) -> str:
    if not is_finished.any():
        return f"none of its {len(is_finished)} tasks has finished"
    if not (is_finished & has_time).any():
        return f"each of its {int(is_finished.sum())} finished tasks took 0 s, or says no time"
    return f"none of its {int((is_finished & has_time).sum())} finished tasks says a size above 0"


def _rows(path: str, renamed: Mapping[str, str], machine: str) -> pd.DataFrame:
    """Every row of a file: COLUMNS and status; NaN where a value is none."""
    table = whole_table(path, ReadLimits())
    others = {ours: theirs for ours, theirs in _aliases(table).items() if ours not in table.names}
    chosen = choose_columns(
        table, KNOWN, [("task",), ("runtime_s", "runtime_ms", "realtime"), ("size",)], {**others, **renamed}
    )
    texts = {ours: pd.Series(column.to_pylist()).map(_text) for ours, column in chosen.items()}
    n = len(texts["task"])
    folder = PurePosixPath(path).parent.name
    named = {"machine": machine or folder, "workflow": PurePosixPath(path).name.partition(".")[0]}
    for name, said in named.items():
        if name not in texts or (name == "machine" and machine):
            texts[name] = pd.Series([said] * n)
    if not named["machine"] and "machine" not in chosen:
        fix = "name it with --machine, or put the trace into a folder that is called after it"
        raise BadInput(path, "nobody says on which machine its tasks ran", "the name of a machine", fix)
    return pd.DataFrame(
        {
            "workflow": texts["workflow"],
            "task": texts["task"].str.replace(OF_WHAT, "", regex=True),
            "machine": texts["machine"],
            "size": texts["size"].map(size_bytes),
            "runtime_s": _runtimes(texts),
            "status": texts["status"] if "status" in texts else pd.Series([""] * n),
        }
    )


def _aliases(table: WholeTable) -> dict[str, str]:
    """Our columns by theirs, for Lotaru's reports and Nextflow's traces."""
    names = set(table.names)
    if set(LOTARU.values()) <= names:
        return dict(LOTARU)
    task = next((name for name in NEXTFLOW_TASKS if name in names), "")
    found = {"task": task} if task else {}
    return found | ({"size": NEXTFLOW_SIZE} if NEXTFLOW_SIZE in names else {})


def _runtimes(texts: Mapping[str, pd.Series]) -> pd.Series:
    for name, factor in (("runtime_s", 1.0), ("runtime_ms", MS)):
        if name in texts:
            return pd.to_numeric(texts[name], errors="coerce").astype(float) * factor
    return texts["realtime"].map(duration_s)


def _text(value: object) -> str:
    return "" if value is None or (isinstance(value, float) and np.isnan(value)) else str(value)


def one_machine(runs: pd.DataFrame, source: str) -> str:
    """The machine that runs are taken from: the one that is named, or the only one there is.

    Raises BadInput if none is named and there are several."""
    machines = sorted(runs["machine"].unique())
    if source or len(machines) == 1:
        return source or str(machines[0])
    raise BadInput("traces", f"runs on {quoted(machines)}", "one of them with --from", "name it")
