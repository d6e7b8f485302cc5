"""What the words mean by which schedulers, workflow engines and people say how a run ended: one table for all readers.

A word is compared without case, blanks, dashes and underscores: TIMED_OUT, timed out and TimedOut are one. Numbers are
no words: 0 is success as an exit code and failure in other logs, so they count in a column of exit codes alone (see
status_of_exit_code); a code of Standard Workload Format is for its reader."""

import re
from collections.abc import Mapping
from typing import get_args

from tasks.jobs.params import Status

PLAIN: dict[str, Status] = {
    **dict.fromkeys(
        ("completed", "complete", "success", "successful", "succeeded", "ok", "done", "finished", "passed", "pass"),
        "completed",
    ),
    **dict.fromkeys(
        ("failed", "failure", "fail", "error", "errored", "broken", "crashed", "oom", "oom killed", "out of memory"),
        "failed",
    ),
    **dict.fromkeys(
        ("cancelled", "canceled", "aborted", "abort", "killed", "terminated", "interrupted", "skipped"), "cancelled"
    ),
    **dict.fromkeys(("timeout", "timed out", "time limit", "deadline exceeded", "expired"), "timeout"),
    **dict.fromkeys(("running", "active", "executing", "in progress", "started"), "running"),
    **dict.fromkeys(("pending", "queued", "waiting", "scheduled", "submitted", "created", "held"), "pending"),
    "unknown": "unknown",
}  # fmt: skip
GITHUB: dict[str, Status] = {  # conclusions and states of workflow runs
    "neutral": "completed",  # ended, and holds nothing up
    "startup_failure": "failed",
    "stale": "cancelled",  # given up after two weeks
    "action_required": "pending",  # waits for somebody's leave
    "requested": "pending",
}
GITLAB: dict[str, Status] = {
    "canceling": "running",
    "waiting_for_resource": "pending",
    "waiting_for_callback": "pending",
    "preparing": "pending",
    "manual": "pending",
}
AIRFLOW: dict[str, Status] = {
    "up_for_retry": "failed",  # this try; the next one is a run of its own
    "restarting": "failed",
    "upstream_failed": "cancelled",  # never began
    "removed": "cancelled",
    "deferred": "running",  # has begun, and waits in a triggerer
    "up_for_reschedule": "running",  # a sensor between two looks
    "awaiting_input": "running",
}
KUBERNETES: dict[str, Status] = {  # phases of pods, conditions and reasons of jobs and pods
    "FailureTarget": "failed",
    "SuccessCriteriaMet": "completed",
    "Evicted": "failed",  # its phase is Failed, and it is not taken up again
    "OOMKilled": "failed",
    "BackoffLimitExceeded": "failed",
    "CrashLoopBackOff": "failed",
    "ContainerCannotRun": "failed",
    "Terminating": "running",
    "ContainerCreating": "pending",
    "PodInitializing": "pending",
    "ImagePullBackOff": "pending",
    "ErrImagePull": "pending",
}
NEXTFLOW: dict[str, Status] = {"CACHED": "completed"}  # its trace repeats the times of the run that made the result
PREFECT: dict[str, Status] = {"PAUSED": "running", "CANCELLING": "running", "Late": "pending", "Retrying": "running"}
SLURM: dict[str, Status] = {  # man sacct, "JOB STATE CODES"
    "NODE_FAIL": "failed",
    "BOOT_FAIL": "failed",
    "LAUNCH_FAILED": "failed",
    "RECONFIG_FAIL": "failed",
    "PREEMPTED": "cancelled",  # stopped by somebody else's job, not by its own fault
    "REVOKED": "cancelled",  # a federated job that another cluster took
    "DEADLINE": "timeout",
    "COMPLETING": "running",
    "SUSPENDED": "running",
    "SIGNALING": "running",
    "STAGE_OUT": "running",
    "RESIZING": "running",
    "CONFIGURING": "pending",
    "POWER_UP_NODE": "pending",
    "REQUEUED": "pending",
    "REQUEUE_HOLD": "pending",
    "REQUEUE_FED": "pending",
    "RESV_DEL_HOLD": "pending",
    "SPECIAL_EXIT": "pending",
}
SLURM_CODES: dict[str, Status] = {
    **dict.fromkeys(("BF", "NF"), "failed"),
    **dict.fromkeys(("CA", "PR", "RV"), "cancelled"),
    **dict.fromkeys(("DL", "TO"), "timeout"),
    **dict.fromkeys(("R", "CG", "SI", "SO", "RS"), "running"),
    **dict.fromkeys(("PD", "CF", "RD", "RF", "RH", "RQ", "SE"), "pending"),
    "CD": "completed",
}  # fmt: skip
# What says one thing in Slurm and another elsewhere: F is finished in PBS, STOPPED is final in others
SLURM_ONLY: dict[str, Status] = {"STOPPED": "running", "ST": "running", "S": "running", "F": "failed"}
TABLES = (PLAIN, GITHUB, GITLAB, AIRFLOW, KUBERNETES, NEXTFLOW, PREFECT, SLURM, SLURM_CODES)
BY_WHOM = re.compile(r" by \S+$")  # CANCELLED by 380693
SHOWN_CHARS = 60
EXIT_CODE = re.compile(r"(?:exit|return)[_ ]?(?:code|status|value)?|rc|retcode|returncode", re.IGNORECASE)
CODE = re.compile(r"(-?[0-9]{1,10})(?:\.0+)?(?::([0-9]{1,10}))?")  # 0, 137, 1.0, and 0:15 (Slurm: code and signal)
EXPECTED = "a word such as " + ", ".join(get_args(Status))


def key_of(text: str) -> str:
    """What two spellings of one word share: small letters and digits."""
    return re.sub(r"[\s_+-]+", "", BY_WHOM.sub("", text.strip())).lower()


KNOWN: dict[str, Status] = {key_of(word): status for table in TABLES for word, status in table.items()}
KNOWN_TO_SLURM = KNOWN | {key_of(word): status for word, status in SLURM_ONLY.items()}


def status_of(text: str, mapped: Mapping[str, Status], known: Mapping[str, Status] = KNOWN) -> Status | None:
    """The status that a word of a log stands for; None where nobody knows. mapped: what the user says, which wins."""
    key = key_of(text)
    ours: dict[str, Status] = {key_of(theirs): status for theirs, status in mapped.items()}
    return ours.get(key) or known.get(key)


def status_of_exit_code(text: str) -> Status | None:
    """Completed for 0, failed for any other number; None for what is no exit code."""
    code = CODE.fullmatch(text.strip())
    return None if code is None else "completed" if not int(code[1]) and not int(code[2] or 0) else "failed"


def is_exit_code(column: str) -> bool:
    """Whether a column is called as columns of exit codes are: exit_code, ExitStatus, returncode, rc."""
    return bool(EXIT_CODE.fullmatch(column.strip()))


def unknown_status(text: str) -> str:
    """Why a word is no status, and how to map it."""
    shown = text[:SHOWN_CHARS]
    what = (
        "is a number, which counts in a column of exit codes alone" if CODE.fullmatch(text.strip()) else "is not known"
    )
    return f"status '{shown}' {what}; expected {EXPECTED}; map it: --map-value 'status:{shown}=completed'"
