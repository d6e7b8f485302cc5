"""The columns of jobs.runs: names, types, and what each one means."""

import pyarrow as pa

TIMESTAMP = pa.timestamp("us")  # UTC, without a time zone

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
STATUSES = ("completed", "failed", "cancelled", "timeout", "running", "pending", "unknown")
ONGOING = ("running", "pending")
TEXT_COLUMNS = [name for name, (kind, _) in COLUMNS.items() if kind == pa.string()]
TIME_COLUMNS = [name for name, (kind, _) in COLUMNS.items() if kind == TIMESTAMP]
NUMBER_COLUMNS = [name for name, (kind, _) in COLUMNS.items() if kind == pa.float64()]
PLACE = pa.field("place", pa.int64())  # line or row in the file: travels with the rows until ingest
RUNS_SCHEMA = pa.schema([*((name, kind) for name, (kind, _) in COLUMNS.items()), PLACE])
