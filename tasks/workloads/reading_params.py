"""How telemetry is read: the parameters of the readers, light enough for forms and flags."""

from typing import Literal

from pydantic import Field

from tasks.intake.limits import ReadLimits
from tasks.params import Params

TELEMETRY_BYTES = 2 * 2**30


class RegularParams(Params):
    """What becomes of irregular samples, gaps and short runs."""

    interval_s: float = Field(
        0, ge=0, le=86_400, description="Bring every run to this many seconds between samples; 0: each to its own"
    )
    max_gap_intervals: int = Field(
        10, ge=1, le=1_000_000, description="Longer gaps cut a run in two; shorter ones become missing samples"
    )
    min_samples: int = Field(5, ge=1, le=1_000_000, description="Runs with fewer samples are refused")


class PerfParams(Params):
    """How counts of perf stat are taken."""

    min_running_pct: float = Field(
        5, ge=0, le=100, description="A count is missing where perf counted less of the interval (multiplexing)"
    )
    per_cpu: Literal["sum", "each"] = Field(
        "sum", description="Counts of several CPUs (-A, --per-socket, …): summed, or each a counter of its own"
    )


class PrometheusParams(Params):
    """How a Prometheus server is asked."""

    match: list[str] = Field(
        [],
        max_length=100,
        description='Series to read, as PromQL selectors, such as {job="node"}; empty: those of the address',
    )
    run_by: str = Field(
        "instance", min_length=1, max_length=200, description="Label whose values are runs of their own"
    )
    start: str = Field("", max_length=40, description="Begin, ISO time or Unix seconds; empty: last_s before the end")
    end: str = Field("", max_length=40, description="End, ISO time or Unix seconds; empty: now")
    last_s: float = Field(3600, gt=0, le=1e9, description="How far back to read where no begin is given, in seconds")
    step_s: float = Field(0, ge=0, le=86_400, description="Seconds between samples; 0: the server's scrape interval")
    max_series: int = Field(5_000, ge=1, le=1_000_000, description="More series than this are refused")
    max_points: int = Field(
        500_000, ge=1_000, le=50_000_000, description="Values asked for at a time: longer ranges are read in parts"
    )
    timeout_s: float = Field(30, gt=0, le=3600, description="How long to wait for an answer, in seconds")
    tries: int = Field(3, ge=1, le=20, description="How often to ask when the connection or the server fails")
    backoff_s: float = Field(1, ge=0, le=600, description="Wait before asking again, doubled each time, in seconds")


class ReadParams(Params):
    """How telemetry is read, and where the labels of its runs come from."""

    label_from: str = Field(
        "",
        max_length=200,
        description="Workload of a file: stem (its name), parent (its folder), column:NAME; empty: its own columns",
    )
    manifest: str = Field(
        "", max_length=4096, description="CSV or JSONL with path, workload, input, round, machine of each file"
    )
    columns: dict[str, str] = Field(
        {}, description="Renames columns of tables: our name to the name in the file (ours: theirs)"
    )
    time_zone: str = Field("UTC", min_length=1, max_length=100, description="Time zone of times that name none")
    pseudonymise: bool = Field(
        False, description="Replace machines and names of runs by keyed hashes, before anything is kept"
    )
    interval_s: float = Field(
        0, ge=0, le=86_400, description="Seconds between the rows of tables without a time; 0: such a table is refused"
    )
    regular: RegularParams = RegularParams()
    perf: PerfParams = PerfParams()
    prometheus: PrometheusParams = PrometheusParams()
    limits: ReadLimits = ReadLimits(max_bytes=TELEMETRY_BYTES)
