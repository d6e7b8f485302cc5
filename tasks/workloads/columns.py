"""The columns of workloads.runs and workloads.counters as readers land them: names, types, and what each one means."""

import pyarrow as pa

TIMESTAMP = pa.timestamp("us")  # UTC, without a time zone
VALUES = pa.list_(pa.float64())
NAMES = pa.list_(pa.string())

RUN_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "run_id": (pa.string(), "name of the run within its source"),
    "workload": (pa.string(), "label: what ran; missing where nobody says"),
    "input": (pa.string(), "label: what it ran on"),
    "round": (pa.string(), "label: which repetition it was"),
    "machine": (pa.string(), "label: where it ran"),
    "started_at": (TIMESTAMP, "time that at_s counts from, UTC; missing where the file does not say"),
    "interval_s": (pa.float64(), "nominal seconds between two samples"),
    "n_samples": (pa.int64(), "samples of the run, missed ones included"),
    "duration_s": (pa.float64(), "seconds that the samples span, the interval of the first included"),
    "n_rows": (pa.int64(), "rows of the file that the samples were made of"),
    "n_missed": (pa.int64(), "samples that the file lacks: rows without a value that stand for them"),
    "n_resets": (pa.int64(), "values left out because a running total fell, over all counters"),
    "is_resampled": (pa.bool_(), "true where irregular samples were brought to a regular spacing"),
    "refused_columns": (NAMES, "columns of the file that are no counters of this run, each with the reason"),
    "at_s": (VALUES, "time of each sample, seconds after started_at, rising"),
    "is_simulated": (pa.bool_(), "true for samples that were drawn, not measured"),
}
COUNTER_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "run_id": (pa.string(), "run that it belongs to (workloads.runs)"),
    "counter": (pa.string(), "name: group before a dot, unit at the end where it has one"),
    "unit": (pa.string(), "unit of the values; of a rate, what there is of it per second; empty where unknown"),
    "kind": (pa.string(), "hardware, software or unknown: what counted it"),
    "is_rate": (pa.bool_(), "true: per second over the interval that ended at the sample; false: read at the sample"),
    "scope": (pa.string(), "machine, or workload: its own control group"),
    "is_constant": (pa.bool_(), "true where all values of the run are equal: kept, and marked"),
    "running_pct": (pa.float64(), "share of the time that perf counted it (multiplexing), mean, in percent"),
    "samples": (VALUES, "its values, in the order of at_s of the run; missing ones stay missing"),
}
PLACE = pa.field("place", pa.int64())  # of the run in the file: its first row; travels with the rows until ingest
RUNS_SCHEMA = pa.schema([*((name, kind) for name, (kind, _) in RUN_COLUMNS.items()), PLACE])
COUNTERS_SCHEMA = pa.schema([*((name, kind) for name, (kind, _) in COUNTER_COLUMNS.items()), PLACE])
LABELS = ("workload", "input", "round", "machine")
KEY_COLUMNS = ("run_id", *LABELS, "started_at", "at_s", "timestamp")  # of a table of samples; all others are counters
