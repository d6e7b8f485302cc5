"""From the texts of Slurm's fields to job rows in our units, and which lines cannot be used."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from math import nan

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers import slurm_fields as fields
from tasks.jobs.readers.slurm_layout import IDS
from tasks.jobs.vetting import vet_runs
from tasks.reading import Chunk, all_refusals, refusals
from tasks.times import (
    Readings,
    needs_zone,
    read_times,
    settle,
)

JOB_ID = r"[0-9]+(?:_(?:[0-9]+|\[.+\])|\+[0-9]+)?"  # 123, task 123_4, tasks 123_[5-9] that wait, component 123+1
STEP_PEAK = "step_peak_bytes"  # column that the reader adds: largest MaxRSS of the job's steps
SHOWN_CHARS = 60  # of a wrong value, in the reason
PARSERS: dict[str, tuple[str, Callable[[str], object]]] = {  # our value: (Slurm's field, how it is read)
    "elapsed_s": ("Elapsed", fields.duration_s),
    "elapsed_raw_s": ("ElapsedRaw", fields.count),
    "limit_s": ("Timelimit", fields.duration_s),
    "limit_raw_min": ("TimelimitRaw", fields.count),
    "requested_cpus": ("ReqCPUS", fields.count),
    "requested_tres_cpus": ("ReqTRES", fields.tres_cpus),
    "cpus": ("NCPUS", fields.count),
    "allocated_cpus": ("AllocCPUS", fields.count),
    "allocated_tres_cpus": ("AllocTRES", fields.tres_cpus),
    "reserved_cpu_s": ("CPUTimeRAW", fields.count),
    "nodes": ("NNodes", fields.nodes),
    "requested_nodes": ("ReqNodes", fields.nodes),
    "allocated_nodes": ("AllocNodes", fields.nodes),
    "tres_memory_bytes": ("ReqTRES", fields.tres_memory_bytes),
    "job_memory_bytes": ("ReqMem", fields.job_memory_bytes),
    "node_memory_bytes": ("ReqMem", fields.node_memory_bytes),
    "cpu_memory_bytes": ("ReqMem", fields.cpu_memory_bytes),
    "cpu_s": ("TotalCPU", fields.duration_s),
    "peak_memory_bytes": ("MaxRSS", fields.memory_bytes),
}


def job_rows(jobs: pd.DataFrame, params: ReadParams, now: datetime, *, path: str, cluster: str) -> Chunk:
    """Job rows of a table of texts, with the places of lines that cannot be used and why (raw is empty).

    jobs: as read_table gives it, without job steps, index unique. cluster: lines of another one are refused,
    since their ids may coincide. Raises BadInput if times name no zone and params.time_zone is empty."""
    submission = "Submit" if "Submit" in jobs else "Eligible"
    times = {name: _read_times(jobs, name, params.time_zone, path) for name in (submission, "Start", "End")}
    parsers: dict[str, tuple[str, Callable[[str], object]]] = {
        "state": ("State", partial(fields.status, mapped=params.statuses)),
        **PARSERS,
    }
    values = {ours: read_numbers(jobs, field, parse) for ours, (field, parse) in parsers.items()}
    problems = [_wrong_ids(jobs), _other_clusters(jobs, cluster)]
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


def _read_times(jobs: pd.DataFrame, field: str, zone: str, path: str) -> Readings:
    text = jobs[field] if field in jobs else pd.Series(pd.NA, index=jobs.index, dtype="str")
    text = text.mask(text.isin(fields.NO_VALUE))
    if not zone and needs_zone(text):
        raise BadInput(
            path,
            f"{field} is local time without a time zone",
            "the time zone of the cluster's clock",
            "name it: --time-zone Europe/Berlin (or export with SLURM_TIME_FORMAT=%s)",
        )
    return read_times(text, zone)


def _about(jobs: pd.DataFrame, field: str, problem: pd.Series) -> pd.Series:
    values = jobs.loc[problem.index, field] if len(problem) else []
    told = [f"{field} '{str(value)[:SHOWN_CHARS]}' {why}" for value, why in zip(values, problem, strict=True)]
    return pd.Series(told, index=problem.index, dtype="object")


def _wrong_ids(jobs: pd.DataFrame) -> pd.Series:
    field = next(name for name in IDS if name in jobs)
    is_wrong = ~jobs[field].str.fullmatch(JOB_ID).fillna(False).astype(bool)
    return _about(jobs, field, pd.Series("is not a job id", index=jobs.index[is_wrong], dtype="object"))


def _other_clusters(jobs: pd.DataFrame, cluster: str) -> pd.Series:
    if "Cluster" not in jobs:
        return pd.Series([], dtype="object")
    why = f"in a log of '{cluster}', whose job ids may be the same; export each cluster by itself"
    is_other = jobs["Cluster"] != cluster
    return _about(jobs, "Cluster", pd.Series(why, index=jobs.index[is_other], dtype="object"))


def _rows(
    jobs: pd.DataFrame, values: dict[str, pd.Series], submission: Readings, start: Readings, end: Readings
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
