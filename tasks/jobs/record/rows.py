"""One row of the recording: what was planned, what the machine did before, and what the run took."""

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from tasks.jobs.record.cause import Conditions, recorded_cause
from tasks.jobs.record.monitor import MachineState
from tasks.jobs.record.orders import Measured
from tasks.jobs.record.plan import PlannedRun

MB = 1_000_000


@dataclass(frozen=True)
class Submission:
    """A planned run from the moment it stands in the queue. submitted_at: Unix seconds."""

    run: PlannedRun
    submitted_at: float
    queue_length: int


@dataclass(frozen=True)
class Surroundings:
    """What was known when a run was given to a worker."""

    state: MachineState
    load_level: str
    running_jobs: int
    input_bytes: float


def _moment(unix_s: float) -> datetime:
    return datetime.fromtimestamp(unix_s, UTC).replace(tzinfo=None)


def _known_before(submission: Submission, around: Surroundings) -> dict[str, Any]:
    run, job = submission.run, submission.run.job
    return {
        "run_id": run.run_id,
        "name": run.name,
        "user_name": job.user_name,
        "queue": job.queue,
        "submitted_at": _moment(submission.submitted_at),
        "requested_cpus": float(run.threads),
        "requested_runtime_s": job.time_limit_s,
        "requested_memory_bytes": float(job.memory_mb * MB),
        "input_bytes": around.input_bytes,
        "is_simulated": False,
        "job": job.name,
        "template": job.template.name,
        "sizing": job.sizing,
        "input_parts": run.parts[1],
        "typical_parts": job.typical_parts,
        "load_level": around.load_level,
        "running_jobs": around.running_jobs,
        "queue_length": submission.queue_length,
        "is_cold": run.is_cold,
        **{key: None if value != value else value for key, value in asdict(around.state).items()},
    }


def _measured_columns(measured: Measured) -> dict[str, Any]:
    is_complete = not measured.error
    return {
        "plan_signature": measured.signature,
        "operators": json.dumps(measured.operators) if measured.operators else None,
        "estimated_rows": measured.estimated_rows if measured.signature else None,
        "lock_wait_s": measured.lock_wait_s,
        "plan_s": measured.plan_s,
        **{
            key: float(getattr(measured, key)) if is_complete else None
            for key in ("input_rows", "read_bytes", "written_bytes", "temp_bytes", "cpu_wait_s")
        },
    }


def make_row(submission: Submission, around: Surroundings, answer: dict[str, Any]) -> dict[str, Any]:
    """A row with the columns of parts.SCHEMA, from a worker's answer; what the run never told is absent."""
    told = answer.get("measured")
    measured = Measured(**told) if told else None
    run, ended_at = submission.run, answer["ended_at"]
    started_at = answer.get("started_at") or ended_at
    runtime_s = measured.runtime_s if measured else max(0.0, ended_at - started_at)
    row = _known_before(submission, around) | {
        "started_at": _moment(started_at),
        "ended_at": _moment(started_at + runtime_s),
        "wait_s": max(0.0, started_at - submission.submitted_at),
        "runtime_s": runtime_s,
        "status": answer["status"],
        "error": answer.get("error"),
        "recorded_cause": recorded_cause(
            None if measured is None or measured.error else measured,
            float(answer.get("cpu_s") or 0.0),
            Conditions(
                run.parts[1], run.job.typical_parts, run.threads, cores=os.cpu_count() or 1, is_cold=run.is_cold
            ),
        ),
        **{key: answer.get(key) for key in ("cpu_s", "peak_memory_bytes", "disk_read_bytes")},
    }
    if row["cpu_s"] is not None and runtime_s > 0:
        row["used_cpus"] = row["cpu_s"] / runtime_s
    return row | (_measured_columns(measured) if measured else {})
