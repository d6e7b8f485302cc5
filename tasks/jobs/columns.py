"""The columns of jobs.runs: names, types, and what each one means."""

import pyarrow as pa

TIMESTAMP = pa.timestamp("us")  # UTC, without a time zone
SKUS = pa.list_(
    pa.struct(
        [
            ("sku", pa.string()),
            ("tokens", pa.float64()),
            ("free_tokens", pa.float64()),
            ("load_mean", pa.float64()),
            ("load_sd", pa.float64()),
        ]
    )
)
VERTICES = pa.list_(
    pa.struct(
        [
            ("vertex", pa.int32()),
            ("stage", pa.string()),
            ("sku", pa.string()),
            ("started_at", TIMESTAMP),
            ("ended_at", TIMESTAMP),
            ("cpu_s", pa.float64()),
            ("min_tokens", pa.float64()),
            ("mean_tokens", pa.float64()),
            ("peak_tokens", pa.float64()),
            ("read_bytes", pa.float64()),
            ("temp_bytes", pa.float64()),
        ]
    )
)
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
