"""The rows of a job log: the columns of jobs.runs, what statuses are called by whom, and which rows can be used.

Statuses are one table for all readers. A word is compared without case, blanks, dashes and underscores: TIMED_OUT,
timed out and TimedOut are one. Numbers are no words: 0 is success as an exit code and failure in other logs, so they
count in a column of exit codes alone (status_of_exit_code); a code of Standard Workload Format is for its reader."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.intake.cells import flag_of
from tasks.intake.files import Chunk, refusals, without_accents
from tasks.jobs.params import ReadParams, Status

TIMESTAMP = pa.timestamp("us")  # UTC, without a time zone
OF_SKU = ("tokens", "free_tokens", "load_mean", "load_sd")
OF_VERTEX = ("cpu_s", "min_tokens", "mean_tokens", "peak_tokens", "read_bytes", "temp_bytes")
SKUS = pa.list_(pa.struct({"sku": pa.string(), **dict.fromkeys(OF_SKU, pa.float64())}))
PLACED = {"vertex": pa.int32(), "stage": pa.string(), "sku": pa.string()}
TIMED = {"started_at": TIMESTAMP, "ended_at": TIMESTAMP}
VERTICES = pa.list_(pa.struct({**PLACED, **TIMED, **dict.fromkeys(OF_VERTEX, pa.float64())}))
SKYLINE = pa.list_(pa.struct([("at_s", pa.float64()), ("tokens", pa.float64()), ("guaranteed", pa.float64())]))

COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "run_id": (pa.string(), "native id of the run within its source"),
    "group_key": (pa.string(), "recurring job that the run belongs to: normalised name and plan signature"),
    "name": (pa.string(), "name as the log gives it, or a pseudonym"),
    "plan_signature": (pa.string(), "hash over the operators of the execution plan, without parameters"),
    "user_name": (pa.string(), "who submitted the run, or a pseudonym"),
    "queue": (pa.string(), "queue, partition or pool"),
    "submitted_at": (TIMESTAMP, "submission, UTC"),
    "started_at": (TIMESTAMP, "start, UTC"),
    "ended_at": (TIMESTAMP, "end, UTC; missing while the run goes on"),
    "wait_s": (pa.float64(), "seconds from submission to start"),
    "runtime_s": (pa.float64(), "seconds from start to end; missing while the run goes on"),
    "status": (pa.string(), "completed, failed, cancelled, timeout, running, pending or unknown"),
    "requested_cpus": (pa.float64(), "processors, cores or tokens that were asked for"),
    "used_cpus": (pa.float64(), "processors, cores or tokens that the run got"),
    "requested_runtime_s": (pa.float64(), "time limit in seconds"),
    "requested_memory_bytes": (pa.float64(), "memory that was asked for, in bytes"),
    "cpu_s": (pa.float64(), "CPU seconds over all processors"),
    "peak_memory_bytes": (pa.float64(), "largest memory in use, in bytes"),
    "input_bytes": (pa.float64(), "bytes of input data"),
    "is_simulated": (pa.bool_(), "true for rows that were drawn, not measured"),
}
# What Zhu et al. 2023 (3.2, 3.3) explain runtimes by. Few logs have it: a reader leaves out what its log lacks.
KNOWN_BEFORE: dict[str, tuple[pa.DataType, str]] = {
    "period": (pa.string(), "period of a recording, such as D1"),
    "what_if": (
        pa.string(),
        "what was changed on purpose against matched_run_id: no_spare, newest_sku or steady_load; baseline for the "
        "unchanged replay",
    ),
    "matched_run_id": (pa.string(), "run of the same source that this one repeats"),
    "account": (pa.string(), "account or group that the run is charged to, or a pseudonym"),
    "partition": (pa.string(), "part of the machine that the run is for, where that is not the queue"),
    "qos": (pa.string(), "quality of service that was asked for"),
    "features": (
        pa.string(),
        "JSON object of further columns of the table that the run was read from; those that are missing are left out",
    ),
    "operators": (pa.string(), "JSON object of the operators of the plan with their counts"),
    "estimated_rows": (pa.float64(), "rows of the result as the optimiser estimates them"),
    "estimated_cost": (pa.float64(), "estimated cardinalities summed over all operators of the plan (C_out), rows"),
    "spare_tokens_available": (pa.float64(), "preemptible tokens that were free just before submission"),
    "queue_length": (pa.float64(), "runs that were waiting when this one was submitted"),
    "load_mean": (
        pa.float64(),
        "usage over quota of the SKUs offered, mean over the 10 s before submission and over them, a ratio",
    ),
    "load_sd": (pa.float64(), "standard deviation of that load, a ratio"),
    "skus": (SKUS, "SKUs offered to the run with their state just before submission (view jobs.run_skus)"),
}
KNOWN_AFTER: dict[str, tuple[pa.DataType, str]] = {
    "min_tokens": (pa.float64(), "smallest number of tokens in use; the mean is used_cpus"),
    "peak_tokens": (pa.float64(), "largest number of tokens in use"),
    "spare_tokens_used": (pa.float64(), "preemptible tokens in use beyond the request, mean over the run"),
    "read_bytes": (pa.float64(), "bytes read"),
    "temp_bytes": (pa.float64(), "largest size of what was spilled to disk, in bytes"),
    "vertices": (VERTICES, "vertices of the run (view jobs.vertices)"),
    "skyline": (SKYLINE, "tokens held over time, a step function (view jobs.skylines; Figure 3)"),
    "recorded_cause": (
        pa.string(),
        "cause of a long run where the recorder knows it: for checking explanations only, never a feature",
    ),
}
CONDITIONS = KNOWN_BEFORE | KNOWN_AFTER
ALL_COLUMNS = COLUMNS | CONDITIONS
STATUSES = ("completed", "failed", "cancelled", "timeout", "running", "pending", "unknown")
ONGOING = ("running", "pending")
TEXT_COLUMNS = [name for name, (kind, _) in ALL_COLUMNS.items() if kind == pa.string()]
TIME_COLUMNS = [name for name, (kind, _) in ALL_COLUMNS.items() if kind == TIMESTAMP]
NUMBER_COLUMNS = [name for name, (kind, _) in ALL_COLUMNS.items() if kind == pa.float64()]
LIST_COLUMNS = [name for name, (kind, _) in ALL_COLUMNS.items() if pa.types.is_list(kind)]
FLAT_COLUMNS = [name for name in ALL_COLUMNS if name not in LIST_COLUMNS]
MADE_COLUMNS = ("features",)  # made by a reader, never a column of a table
PLACE = pa.field("place", pa.int64())  # line or row in the file: travels with the rows until ingest
RUNS_SCHEMA = pa.schema([*((name, kind) for name, (kind, _) in ALL_COLUMNS.items()), PLACE])


STATUS_WORDS: tuple[tuple[Status, str], ...] = (
    ("completed", "completed, complete, success, successful, succeeded, ok, done, finished, passed, pass, warn"),
    ("completed", "succ, ended ok, ✔, ✓, ✅, erfolgreich, erfolg, abgeschlossen, beendet, réussi, réussie, succès"),
    ("completed", "terminé, terminée, completado, completada, terminado, finalizado, éxito, exitoso, correcto"),
    ("completed", "completato, completata, riuscito, successo, concluído, sucesso, geslaagd, voltooid"),
    ("failed", "failed, failure, fail, error, errored, err, broken, crashed, oom, oom killed, out of memory"),
    ("failed", "abend, ended not ok, not ok, nok, ko, unsuccessful, completed with errors, ✘, ✗, ❌, fehler"),
    ("failed", "fehlgeschlagen, échec, échoué, échouée, erreur, fallido, fallida, fallo, fallito, fallita, errore"),
    ("failed", "falhou, falha, erro, mislukt, fout"),
    ("cancelled", "cancelled, canceled, aborted, abort, killed, terminated, interrupted, skipped, abgebrochen"),
    ("cancelled", "annulé, annulée, cancelado, cancelada, annullato, annullata, geannuleerd"),
    ("timeout", "timeout, timed out, time limit, deadline exceeded, expired"),
    ("running", "running, active, executing, in progress, started"),
    ("pending", "pending, queued, waiting, scheduled, submitted, created, held"),
    ("unknown", "unknown"),
    # GitHub: neutral has ended and holds nothing up; stale was given up; action_required waits for leave
    ("completed", "neutral"),
    ("failed", "startup_failure"),
    ("cancelled", "stale"),
    ("pending", "action_required, requested"),
    # GitLab
    ("running", "canceling"),
    ("pending", "waiting_for_resource, waiting_for_callback, preparing, manual"),
    # Airflow: of up_for_retry this try, the next one is a run of its own; upstream_failed and removed never began;
    # deferred has begun and waits in a triggerer; up_for_reschedule is a sensor between two looks
    ("failed", "up_for_retry, restarting"),
    ("cancelled", "upstream_failed, removed"),
    ("running", "deferred, up_for_reschedule, awaiting_input"),
    # Kubernetes: phases of pods, conditions and reasons of jobs and pods; an evicted pod is not taken up again
    ("completed", "SuccessCriteriaMet"),
    ("failed", "Evicted, FailureTarget, OOMKilled, BackoffLimitExceeded, CrashLoopBackOff, ContainerCannotRun"),
    ("running", "Terminating"),
    ("pending", "ContainerCreating, PodInitializing, ImagePullBackOff, ErrImagePull"),
    # Jenkins: unstable has ended, and tests failed
    ("completed", "UNSTABLE"),
    ("cancelled", "NOT_BUILT"),
    # Snowflake
    ("failed", "INCIDENT, FAILED_WITH_INCIDENT"),
    ("pending", "RESUMING_WAREHOUSE"),
    # Databricks: result states, and codes of what ended a run
    ("failed", "SUCCESS_WITH_FAILURES, INTERNAL_ERROR, DRIVER_ERROR, CLUSTER_ERROR, REPOSITORY_CHECKOUT_FAILED"),
    ("failed", "INVALID_CLUSTER_REQUEST, STORAGE_ACCESS_ERROR, RUN_EXECUTION_ERROR, UNAUTHORIZED_ERROR"),
    ("failed", "LIBRARY_INSTALLATION_ERROR, RESOURCE_NOT_FOUND, INVALID_RUN_CONFIGURATION, CLOUD_FAILURE"),
    ("cancelled", "USER_CANCELED, UPSTREAM_CANCELED, MAXIMUM_CONCURRENT_RUNS_REACHED, MAX_CONCURRENT_RUNS_EXCEEDED"),
    ("cancelled", "EXCLUDED, DISABLED"),
    ("pending", "BLOCKED"),
    # YARN, AWS Batch, EMR, Azure, Tekton
    ("completed", "partiallySucceeded"),
    ("failed", "TERMINATED_WITH_ERRORS"),
    ("cancelled", "TaskRunCancelled, CancelledRunningFinally, StoppedRunningFinally"),
    ("timeout", "PipelineRunTimeout, TaskRunTimeout"),
    ("pending", "NEW, NEW_SAVING, ACCEPTED, RUNNABLE, STARTING, notStarted"),
    # Nextflow: its trace repeats the times of the run that made the result
    ("completed", "CACHED"),
    # Prefect
    ("running", "PAUSED, CANCELLING, Retrying"),
    ("pending", "Late"),
    # Slurm (man sacct, "JOB STATE CODES"): preempted is stopped by somebody else's job, not by its own fault; a revoked
    # job was taken by another cluster
    ("completed", "CD"),
    ("failed", "NODE_FAIL, BOOT_FAIL, LAUNCH_FAILED, RECONFIG_FAIL, BF, NF"),
    ("cancelled", "PREEMPTED, REVOKED, CA, PR, RV"),
    ("timeout", "DEADLINE, DL, TO"),
    ("running", "COMPLETING, SUSPENDED, SIGNALING, STAGE_OUT, RESIZING, R, CG, SI, SO, RS"),
    ("pending", "CONFIGURING, POWER_UP_NODE, REQUEUED, REQUEUE_HOLD, REQUEUE_FED, RESV_DEL_HOLD, SPECIAL_EXIT"),
    ("pending", "PD, CF, RD, RF, RH, RQ, SE"),
    # AutoSys: success, failure, terminated, running, activated, inactive
    ("completed", "SU"),
    ("failed", "FA"),
    ("cancelled", "TE"),
    ("running", "RU"),
    ("pending", "AC, IN"),
    # LSF (man bjobs, "STAT")
    ("failed", "EXIT"),
    ("running", "RUN, USUSP, SSUSP"),
    ("pending", "PEND, PSUSP"),
)
# What says one thing in Slurm and another elsewhere: F is finished in PBS, STOPPED is final in others
SLURM_ONLY: tuple[tuple[Status, str], ...] = (("running", "STOPPED, ST, S"), ("failed", "F"))
BY_WHOM = re.compile(r" by \S+$")  # CANCELLED by 380693
SHOWN_CHARS = 60
FLAG = re.compile(r"(?:is|was|has)?[_ ]?(?:(success|successful|succeeded|passed)|(failed))", re.IGNORECASE)
EXIT_CODE = re.compile(r"(?:exit|return)[_ ]?(?:code|status|value)?|rc|retcode|returncode", re.IGNORECASE)
CODE = re.compile(r"(-?[0-9]{1,10})(?:\.0+)?(?::([0-9]{1,10}))?")  # 0, 137, 1.0, and 0:15 (Slurm: code and signal)
EXPECTED = "a word such as " + ", ".join(get_args(Status))


def key_of(text: str) -> str:
    """What two spellings of one word share: small letters and digits."""
    return re.sub(r"[\s_+-]+", "", without_accents(BY_WHOM.sub("", text.strip()))).lower()


KNOWN: dict[str, Status] = {key_of(word): status for status, words in STATUS_WORDS for word in words.split(",")}
KNOWN_TO_SLURM = KNOWN | {key_of(word): status for status, words in SLURM_ONLY for word in words.split(",")}


def status_of(text: str, mapped: Mapping[str, Status], known: Mapping[str, Status] = KNOWN) -> Status | None:
    """The status that a word of a log stands for; None where nobody knows. mapped: what the user says, which wins."""
    key = key_of(text)
    ours: dict[str, Status] = {key_of(theirs): status for theirs, status in mapped.items()}
    return ours.get(key) or known.get(key)


def status_of_exit_code(text: str) -> Status | None:
    """Completed for 0, failed for any other number; None for what is no exit code."""
    code = CODE.fullmatch(text.strip())
    return None if code is None else "completed" if not int(code[1]) and not int(code[2] or 0) else "failed"


def status_of_flag(column: str, text: str) -> Status | None:
    """Completed or failed, as true or false in a column called succeeded, is_success or failed say; else None."""
    called, is_true = FLAG.fullmatch(column.strip()), flag_of(text)
    return None if not called or is_true is None else "completed" if is_true == bool(called[1]) else "failed"


def is_exit_code(column: str) -> bool:
    """Whether a column is called as columns of exit codes are: exit_code, ExitStatus, returncode, rc."""
    return bool(EXIT_CODE.fullmatch(column.strip()))


def is_flag(column: str) -> bool:
    """Whether a column is called as those are that say true or false of how a run ended."""
    return bool(FLAG.fullmatch(column.strip()))


def unknown_status(text: str) -> str:
    """Why a word is no status, and how to map it."""
    shown = text[:SHOWN_CHARS]
    what = (
        "is a number, which counts in a column of exit codes alone" if CODE.fullmatch(text.strip()) else "is not known"
    )
    return f"status '{shown}' {what}; expected {EXPECTED}; map it: --map-value 'status:{shown}=completed'"


Check = tuple[str, Any]  # a reason, and which rows it holds for: (n_rows,)


class Elements:
    """The elements of a list column, all rows one after the other; rows: (n_elements,), the row of each, from 0."""

    def __init__(self, column: Any) -> None:
        array = pa.array(column)
        self.array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        self.rows = pc.list_parent_indices(self.array).to_numpy(zero_copy_only=False)
        self.values = pc.list_flatten(self.array)

    def field(self, name: str) -> Any:
        """One field of every element; a missing number is NaN, a missing time NaT."""
        field = pc.struct_field(self.values, name)
        field = field.cast(pa.float64()) if pa.types.is_integer(field.type) else field
        return field.to_numpy(zero_copy_only=False)

    def rows_with(self, is_bad: Any) -> Any:
        """Which rows have an element that a claim holds for: (n_rows,)."""
        has_bad = np.zeros(len(self.array), dtype=bool)
        has_bad[self.rows[is_bad]] = True
        return has_bad

    def stands_twice(self, name: str) -> Any:
        """Which rows have two elements with the same value of a field: (n_rows,)."""
        pairs = pd.DataFrame({"row": self.rows, "value": self.field(name)})
        return self.rows_with(pairs.duplicated().to_numpy())

    def amount_is_wrong(self) -> Any:
        """Which rows have a negative or infinite amount in an element: (n_rows,)."""
        amounts = [self.field(field.name) for field in self.values.type if field.type == pa.float64()]
        return self.rows_with(np.logical_or.reduce([(amount < 0) | np.isinf(amount) for amount in amounts]))


def as_list_column(given: pd.Series, name: str) -> Any:
    """A list column in its Arrow type, whether it holds Arrow lists or Python lists of dicts."""
    if isinstance(given.dtype, pd.ArrowDtype) and given.dtype.pyarrow_dtype == ALL_COLUMNS[name][0]:
        return given.array
    return pd.arrays.ArrowExtensionArray(pa.array(given, type=ALL_COLUMNS[name][0], from_pandas=True))


def condition_checks(rows: dict[str, Any], latest: Any) -> list[Check]:
    """What can be wrong with the columns of CONDITIONS that are there.

    rows: arrays of one length by column; latest: of the times of vertices, UTC."""
    checks: list[Check] = []
    if "operators" in rows:
        checks.append(("operators is not a JSON object of counts", _not_counts(rows["operators"])))
    if "skus" in rows:
        skus = Elements(rows["skus"])
        checks += [
            ("a SKU without a name", skus.rows_with(pd.isna(skus.field("sku")) | (skus.field("sku") == ""))),
            ("a SKU stands twice in one run", skus.stands_twice("sku")),
            ("a negative or infinite number of a SKU; expected 0 or more", skus.amount_is_wrong()),
        ]
    if "vertices" in rows:
        some = Elements(rows["vertices"])
        started, ended = some.field("started_at"), some.field("ended_at")
        is_out = (started < EARLIEST) | (ended < EARLIEST) | (started > latest) | (ended > latest)
        checks += [
            ("a vertex without a number from 0", some.rows_with(~(some.field("vertex") >= 0))),
            ("a vertex stands twice in one run", some.stands_twice("vertex")),
            ("a vertex ends before it starts; check the times", some.rows_with(ended < started)),
            ("a vertex lies before 1970 or in the future; check clock, unit and time zone", some.rows_with(is_out)),
            ("a negative or infinite number of a vertex; expected 0 or more", some.amount_is_wrong()),
        ]
    if "skyline" in rows:
        steps = Elements(rows["skyline"])
        at_s, is_same_row = steps.field("at_s"), np.diff(steps.rows, prepend=-1) == 0
        is_incomplete, is_back = np.isnan(at_s) | np.isnan(steps.field("tokens")), np.diff(at_s, prepend=0) < 0
        checks += [
            ("a step of the skyline without time or tokens", steps.rows_with(is_incomplete)),
            ("a negative or infinite number in the skyline; expected 0 or more", steps.amount_is_wrong()),
            (
                "the skyline goes back in time; expected at_s in ascending order",
                steps.rows_with(is_same_row & is_back),
            ),
        ]
    return checks


def _not_counts(texts: Any) -> Any:
    """Rows whose text is there and is no JSON object of whole counts; each text is looked at once."""
    codes, distinct = pd.factorize(texts)
    is_bad = np.array([not _holds_counts(str(text)) for text in distinct], dtype=bool)
    return np.append(is_bad, False)[codes]  # code -1, missing, is the last


def _holds_counts(text: str) -> bool:
    try:
        counts = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(counts, dict) and all(type(count) is int and count >= 0 for count in counts.values())


CENTURY_S = 100 * 365.25 * 86_400
MICROSECONDS = 1e6
NOT_A_TIME = np.datetime64("NaT", "us")
EARLIEST = np.datetime64("1970-01-01", "us")
ROUNDING = np.timedelta64(1, "s")
AMOUNTS = [name for name in NUMBER_COLUMNS if name not in ("runtime_s", "wait_s")]

Frame = dict[str, Any]  # arrays of one length by column


def vet_runs(rows: pd.DataFrame, params: ReadParams, now: datetime) -> Chunk:
    """Complete job rows and refuse those that cannot be true, each with its first reason.

    rows: columns of jobs.runs as far as the log has them, `place` (line or row from 1) and optionally `raw`
    (the line itself). Missing times and durations are derived: end = start + runtime, start = submission + wait,
    and so on. A run that goes on has neither end nor runtime; one that was cancelled before it started has no
    runtime either. now: UTC without a zone; later times (beyond params.future_slack_s) are refused.
    The rows of the result have every column of COLUMNS, in its type, those of CONDITIONS that the log has, and
    `place`."""
    full = _derived(_completed(rows))
    which, reasons = np.full(len(rows), -1), list[str]()  # the position of the first reason that holds; -1: none
    for position, (reason, is_bad) in enumerate(_checks(full, params, now)):
        which[is_bad & (which < 0)] = position
        reasons.append(reason)
    vetted, bad = pd.DataFrame(full), np.flatnonzero(which >= 0)
    if not len(bad):
        return Chunk(vetted, refusals([], [], []), {})
    raw = rows["raw"].iloc[bad].fillna("") if "raw" in rows else [""] * len(bad)
    refused = refusals(full["place"][bad].tolist(), [reasons[which[row]] for row in bad], raw)
    return Chunk(vetted[which < 0].reset_index(drop=True), refused, {})


def _completed(rows: pd.DataFrame) -> Frame:
    """The columns of jobs.runs in their types; of COLUMNS also those that the log lacks, as missing values."""
    names = [name for name in ALL_COLUMNS if name in rows or name in COLUMNS]
    full = {name: _typed(name, rows.get(name), len(rows)) for name in names}
    full["status"] = full["status"].fillna("unknown")
    return full | {"place": rows["place"].to_numpy(dtype="int64")}


def _typed(name: str, given: pd.Series | None, n_rows: int) -> Any:
    if name in TEXT_COLUMNS:
        if given is None:
            return pd.array([None], dtype="str").take(np.zeros(n_rows, dtype=int))  # ten times faster than from NaN
        return given.astype("str").array
    if name in TIME_COLUMNS:
        if given is None:
            return np.full(n_rows, NOT_A_TIME)
        if isinstance(given.dtype, pd.DatetimeTZDtype):
            given = given.dt.tz_convert("UTC").dt.tz_localize(None)
        return given.astype("datetime64[us]").to_numpy()
    if name in NUMBER_COLUMNS:
        return np.full(n_rows, np.nan) if given is None else pd.to_numeric(given).to_numpy(float, na_value=np.nan)
    if given is not None and name in LIST_COLUMNS:
        return as_list_column(given, name)
    return np.zeros(n_rows, dtype=bool) if given is None else given.fillna(False).to_numpy(dtype=bool)


def _derived(rows: Frame) -> Frame:
    is_over = ~np.asarray(rows["status"].isin(ONGOING))
    submitted, wait, runtime = rows["submitted_at"], _as_delta(rows["wait_s"]), _as_delta(rows["runtime_s"])
    started = _filled(rows["started_at"], submitted + wait)
    ended = _filled(rows["ended_at"], started + runtime)
    before_end = ended - runtime  # of durations in whole seconds it may lie a little before the submission
    is_rounded = (before_end < submitted) & (submitted - before_end <= ROUNDING)
    started = _filled(started, np.where(is_rounded, submitted, before_end))
    submitted = _filled(submitted, started - wait)
    runtime_s = np.where(np.isnan(rows["runtime_s"]), _in_seconds(ended - started), rows["runtime_s"])
    limit_s = rows["requested_runtime_s"]
    return rows | {
        "requested_runtime_s": np.where(limit_s == 0, np.nan, limit_s),  # where none was set, as sacct --json has it
        "submitted_at": submitted,
        "started_at": started,
        "ended_at": np.where(is_over, ended, NOT_A_TIME),
        "wait_s": np.where(np.isnan(rows["wait_s"]), _in_seconds(started - submitted), rows["wait_s"]),
        "runtime_s": np.where(is_over, runtime_s, np.nan),
    }


def _filled(times: Any, others: Any) -> Any:
    return np.where(np.isnat(times), others, times)


def _in_seconds(span: Any) -> Any:
    return np.where(np.isnat(span), np.nan, span.astype("int64") / MICROSECONDS)


def _as_delta(seconds: Any) -> Any:
    """Durations in whole microseconds; NaT for what is missing, infinite or over a century."""
    is_usable = np.abs(seconds) <= CENTURY_S
    whole = np.rint(np.where(is_usable, seconds, 0) * MICROSECONDS).astype("timedelta64[us]")
    return np.where(is_usable, whole, np.timedelta64("NaT", "us"))


def _checks(rows: Frame, params: ReadParams, now: datetime) -> list[Check]:
    """What can be wrong with a row: the reason, and which rows it holds for."""
    submitted, started, ended = times = [rows[name] for name in TIME_COLUMNS]
    runtime, wait, status, run_id = rows["runtime_s"], rows["wait_s"], rows["status"], rows["run_id"]
    is_over = ~np.asarray(status.isin(ONGOING))
    never_began = np.asarray(status == "cancelled") & np.isnat(started)
    has_no_runtime = is_over & np.isnan(runtime) & ~never_began
    latest = np.datetime64(now, "us") + np.timedelta64(int(params.future_slack_s * MICROSECONDS), "us")
    numbers = np.stack([rows[name] for name in NUMBER_COLUMNS if name in rows])  # (n_columns, n_rows)
    amounts = np.stack([rows[name] for name in AMOUNTS if name in rows])
    is_early = np.logical_or.reduce([at < EARLIEST for at in times])
    is_late = np.logical_or.reduce([at > latest for at in times])
    return [
        (
            "no run id; expected one that is unique in its source",
            np.asarray(pd.isna(run_id)) | np.asarray(run_id == "", dtype=bool),
        ),
        (f"unknown status; expected one of {', '.join(STATUSES)}", ~np.asarray(status.isin(STATUSES))),
        ("an infinite number; expected a finite one or none", np.isinf(numbers).any(axis=0)),
        ("negative runtime; expected 0 s or more", runtime < 0),
        ("runtime or wait over 100 years; expected seconds", (runtime > CENTURY_S) | (wait > CENTURY_S)),
        ("neither submission nor start time; expected one of them", np.isnat(submitted) & np.isnat(started)),
        (
            "no runtime and no end time; expected one of them, or the status running or pending",
            has_no_runtime & np.isnat(ended),
        ),
        ("an end but neither a runtime nor a start; expected one of them", has_no_runtime),
        ("ends before it starts; check the times and their zones", ended < started),
        ("starts before it is submitted; check the times", (started < submitted) | (wait < 0)),
        ("negative size or amount; expected 0 or more", (amounts < 0).any(axis=0)),
        ("lies before 1970; check the unit of the times", is_early),
        ("lies in the future; check clock, unit and time zone", is_late),
        *condition_checks(rows, latest),
    ]
