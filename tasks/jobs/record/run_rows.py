"""Recorded runs as rows of `jobs`, and the part files that hold them."""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

import pyarrow as pa

from tasks.jobs.columns import RUNS_SCHEMA
from tasks.jobs.params import Campaign, Sku
from tasks.jobs.record.plan import Plan, usual_parts, usual_tokens
from tasks.jobs.record.scheduler import RunningJob, Step, Submission, Vertex, mean_tokens
from tasks.jobs.record.templates import MeasuredVertex
from tasks.record.facts import all_known, known
from tasks.record.parts import Parts, Record, check_same, deciding

MB = 1_000_000
MS_DIGITS = 3
Cause = Literal["none", "lock", "load", "big_input", "few_tokens", "spill", "cold_cache", "not_measured"]
FLOOR = 0.5  # what takes half of a run has doubled it


def _moment(unix_s: float) -> datetime:
    return datetime.fromtimestamp(unix_s, UTC).replace(tzinfo=None)


def _known_before(submission: Submission) -> dict[str, Any]:
    run, job, planned = submission.run, submission.run.job, submission.planned
    plan: dict[str, Any] = {}
    if planned is not None and not planned.error:
        plan = {"plan_signature": planned.signature, "operators": json.dumps(planned.operators)}
        plan |= {"estimated_rows": planned.estimated_rows, "estimated_cost": planned.estimated_cost}
    return {
        "run_id": run.run_id,
        "name": run.name,
        "user_name": job.user_name,
        "queue": job.queue,
        "submitted_at": _moment(submission.submitted_at),
        "requested_cpus": float(run.tokens),
        "requested_runtime_s": job.time_limit_s,
        "requested_memory_bytes": float(job.memory_mb * MB),
        "is_simulated": False,
        "period": run.period,
        "what_if": run.what_if,
        "matched_run_id": run.matched_run_id,
        "queue_length": float(submission.queue_length),
        "spare_tokens_available": submission.spare_tokens_available,
        "load_mean": known(submission.load_mean, MS_DIGITS),
        "load_sd": known(submission.load_sd, MS_DIGITS),
        "skus": [all_known(asdict(sku), MS_DIGITS) for sku in submission.skus],
        "job": job.name,
        "template": job.template.name,
        "sizing": job.sizing,
        "input_parts": run.parts[1],
        "typical_parts": job.typical_parts,
        "takes_spare": run.takes_spare,
        "is_cold": run.is_cold,
        **submission.surroundings,
        **plan,
    }


def _vertex(vertex: Vertex, job: RunningJob) -> dict[str, Any]:
    answer, measured = vertex.answer, vertex.answer.vertex
    held = [step.tokens for step in _within(vertex.steps, 0.0, answer.ended_at - job.started_at)]
    return {
        "vertex": vertex.number,
        "stage": vertex.stage,
        "sku": vertex.sku,
        "started_at": _moment(answer.started_at),
        "ended_at": _moment(answer.ended_at),
        "cpu_s": measured.cpu_s if measured else None,
        "min_tokens": float(min(held)),
        "mean_tokens": round(mean_tokens(vertex.steps, answer.ended_at - job.started_at), MS_DIGITS),
        "peak_tokens": float(max(held)),
        "read_bytes": float(measured.read_bytes) if measured else None,
        "temp_bytes": float(measured.temp_bytes) if measured else None,
    }


def _longest_path(job: RunningJob) -> list[Vertex]:
    """The vertices that the run's end waited for: the merge, the reader that ended last, and before each reader the
    one whose end made room for it."""
    reading = sorted((done for done in job.done if done.stage == "extract"), key=lambda done: done.answer.ended_at)
    path = [reading[-1]]
    for done in reversed(reading):
        if done.answer.ended_at <= path[0].answer.started_at:
            path.insert(0, done)
    return [*path, *(done for done in job.done if done.stage == "merge")]


@dataclass(frozen=True)
class VertexTimes:
    """Where the time of a vertex on the job's longest path went, in seconds. promised_s: CPU time of its tokens;
    disk_s: what the disk needs at its SKU's rate for the bytes that were not in the cache."""

    query_s: float
    lock_wait_s: float
    cpu_s: float
    promised_s: float
    is_cold: bool
    temp_bytes: float
    disk_s: float = 0.0


def _times(done: Vertex, job: RunningJob, sku: Sku, measured: MeasuredVertex) -> VertexTimes:
    held = mean_tokens(done.steps, done.answer.ended_at - job.started_at)
    promised_s, disk_s = sku.token_s(held, measured.query_s), measured.disk_read_bytes / (sku.read_mb_per_s * MB)
    used = (measured.query_s, measured.lock_wait_s, measured.cpu_s)
    return VertexTimes(*used, promised_s, done.answer.order.is_cold, measured.temp_bytes, disk_s)


def _cause(job: RunningJob, skus: dict[str, Sku], runtime_s: float) -> str:
    path = [(done, done.answer.vertex) for done in _longest_path(job)] if job.done and not job.error else []
    times = [_times(done, job, skus[done.sku], measured) for done, measured in path if measured is not None]
    if not times or runtime_s <= 0:
        return "not_measured"
    run = job.submission.run
    parts_ratio, tokens_ratio = run.parts[1] / usual_parts(run.job), run.tokens / usual_tokens(run.job)
    return recorded_cause(cause_shares(times, runtime_s, parts_ratio=parts_ratio, tokens_ratio=tokens_ratio))


def _sums(job: RunningJob) -> dict[str, float | None]:
    measurements = [done.answer.vertex for done in job.done]
    known = [measured for measured in measurements if measured is not None]
    if len(known) < len(measurements) or not known:
        return {}
    added = ("cpu_s", "read_bytes", "written_bytes", "disk_read_bytes", "input_rows", "lock_wait_s")
    largest = ("temp_bytes", "peak_memory_bytes")
    return {
        **{name: float(sum(getattr(measured, name) for measured in known)) for name in added},
        **{name: float(max(getattr(measured, name) for measured in known)) for name in largest},
    }


def _within(steps: list[Step], starts_s: float, ends_s: float) -> list[Step]:
    """The steps between two times after the job's promise, counted from the first: what came later held nothing."""
    inside = [Step(max(0.0, step.at_s - starts_s), step.tokens) for step in steps if step.at_s < ends_s]
    return inside or [Step(0.0, step.tokens) for step in steps[:1]]


def _skyline(steps: list[Step], guaranteed: int) -> list[dict[str, float]]:
    return [
        {"at_s": round(step.at_s, MS_DIGITS), "tokens": float(step.tokens), "guaranteed": float(guaranteed)}
        for step in steps
    ]


def make_row(job: RunningJob, input_bytes: float, skus: dict[str, Sku]) -> dict[str, Any]:
    """A row with the columns of parts.SCHEMA; what the run never told is absent.

    input_bytes: of the parts that it was given; skus: by name. The start is that of the first vertex."""
    submission = job.submission
    started_at = min((done.answer.started_at for done in job.done), default=job.started_at)
    ended_at = max((done.answer.ended_at for done in job.done), default=started_at)
    runtime_s = ended_at - started_at
    span = (started_at - job.started_at, ended_at - job.started_at)
    held, spare = _within(job.skyline, *span), _within(job.spare, *span)
    tokens = [step.tokens for step in held] or [0]
    status = "timeout" if job.is_late else "failed" if job.error else "completed"
    return _known_before(submission) | {
        "started_at": _moment(started_at),
        "ended_at": _moment(ended_at),
        "wait_s": max(0.0, started_at - submission.submitted_at),
        "runtime_s": runtime_s,
        "status": status,
        "error": job.error or None,
        "input_bytes": input_bytes,
        "used_cpus": round(mean_tokens(held, runtime_s), MS_DIGITS),
        "min_tokens": float(min(tokens)),
        "peak_tokens": float(max(tokens)),
        "spare_tokens_used": round(mean_tokens(spare, runtime_s), MS_DIGITS),
        "vertices": [_vertex(done, job) for done in sorted(job.done, key=lambda done: done.number)],
        "skyline": _skyline(held, sum(job.promised.values())),
        "recorded_cause": _cause(job, skus, runtime_s),
        **_sums(job),
    }


def kept_waiting_s(vertex: VertexTimes) -> float:
    """Seconds that a query took beyond those in which its tokens would have given it the CPU time that it used."""
    promised_rate = vertex.promised_s / vertex.query_s if vertex.query_s > 0 else 0.0
    return max(0.0, vertex.query_s - vertex.cpu_s / promised_rate) if promised_rate > 0 else 0.0


def cause_shares(
    path: Sequence[VertexTimes], runtime_s: float, *, parts_ratio: float, tokens_ratio: float
) -> dict[Cause, float]:
    """Share of the runtime that each cause explains; they may overlap. The ratios: parts of input, and tokens, over
    what is usual for the job.

    lock: waiting for a writer's lock. load, cold_cache, spill: seconds in which a query went slower than its tokens
    promised, by what was known of it: a spill, an input out of the cache (its own doing or another's), or else others'
    load. big_input: what goes beyond the usual input. few_tokens: what goes beyond the time with the usual tokens."""
    slow: dict[Cause, float] = {"load": 0.0, "cold_cache": 0.0, "spill": 0.0}
    for vertex in path:
        slow_s = kept_waiting_s(vertex)
        is_cold = vertex.is_cold or vertex.disk_s >= slow_s * FLOOR
        slow["spill" if vertex.temp_bytes else "cold_cache" if is_cold else "load"] += slow_s
    working_s = sum(vertex.query_s for vertex in path) - sum(slow.values())
    shares: dict[Cause, float] = {
        "lock": sum(vertex.lock_wait_s for vertex in path),
        "big_input": working_s * max(0.0, 1 - 1 / parts_ratio),
        "few_tokens": working_s * max(0.0, 1 - tokens_ratio),
        **slow,
    }
    return {cause: seconds / runtime_s for cause, seconds in shares.items()}


def recorded_cause(shares: Mapping[Cause, float]) -> Cause:
    """The cause with the largest share, if that is half of the run or more; `none` otherwise."""
    largest = max(shares, key=lambda cause: shares[cause])
    return largest if shares[largest] >= FLOOR else "none"


KINDS = ("runs", "pairs")  # pairs: matched pairs of what-ifs, kept apart from the jobs' own runs
UNIMPORTANT = frozenset({"scratch", "minutes", "part_minutes", "most_waiting"})  # a campaign's pace and place
MOST_WAITING = 1_000
DERIVED = ("group_key", "place")  # the reader makes them
# beyond the columns of jobs.runs; readers ignore them
EXTRA_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "job": (pa.string(), "name of the recurring job, without what changes from run to run"),
    "template": (pa.string(), "template that the job was made from"),
    "sizing": (pa.string(), "how the job's input changes from run to run"),
    "input_parts": (pa.int32(), "parts of the data set that the run was given"),
    "typical_parts": (pa.int32(), "parts that an everyday run of the job reads"),
    "takes_spare": (pa.bool_(), "whether the run takes spare tokens"),
    "is_cold": (pa.bool_(), "whether the input was dropped from the page cache before each vertex"),
    "input_rows": (pa.float64(), "rows that the scans read"),
    "written_bytes": (pa.float64(), "bytes that the engine wrote, spilled ones included"),
    "disk_read_bytes": (pa.float64(), "bytes that came from the disk and not from the page cache"),
    "lock_wait_s": (pa.float64(), "time spent waiting for a database's lock, summed over the vertices, seconds"),
    "load_levels": (pa.string(), "background load at submission, SKU by SKU: kind and percent of the SKU"),
    "load_1m": (pa.float64(), "load average of the machine over a minute, at submission"),
    "busy_cores": (pa.float64(), "cores in use on the machine, mean of the 5 s before submission"),
    "foreign_cores": (pa.float64(), "cores in use by others than the recorder, mean of the 5 s before submission"),
    "steal_cores": (pa.float64(), "cores taken by the hypervisor, mean of the 5 s before submission"),
    "cpu_pressure_pct": (pa.float64(), "pressure-stall share of the CPU over 10 s, at submission, percent"),
    "running_jobs": (pa.int32(), "other jobs of the recorder that held tokens at submission"),
    "error": (pa.string(), "first line of the error of a run that did not complete"),
}
SCHEMA = pa.schema(
    [
        *(field for field in RUNS_SCHEMA if field.name not in DERIVED),
        *((name, kind) for name, (kind, _) in EXTRA_COLUMNS.items()),
    ]
)


class RunLedger:
    """The runs that a folder holds. record: how those of this call are made, kept as metadata of each part.

    A finished run is written down by a thread, so that nobody waits for the disk; when the block ends, however it ends,
    all are in parts. Raises BadSetting if the folder holds another campaign, BadInput if a part cannot be read."""

    def __init__(self, folder: Path, params: Campaign, plan: Plan) -> None:
        def kind_of(table: pa.Table, _: Record) -> str:
            return KINDS[table["what_if"][0].as_py() is not None]

        self.record: Record = {"params": deciding(params, UNIMPORTANT), "plan": plan.digest()}
        self.parts = Parts(folder, KINDS, kind_of=kind_of, every_s=params.part_minutes * 60, most_waiting=MOST_WAITING)
        self.finished: set[str] = set()
        for path, table, record in self.parts.recorded():
            check_same(path, record, params, UNIMPORTANT, plan.digest())
            self.finished.update(table["run_id"].to_pylist())
        self._rows: deque[dict[str, Any]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._writing: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writing = self._thread.submit(self._write, is_last=True)
        self._thread.shutdown()
        self._writing.result()

    def keep(self, row: dict[str, Any]) -> None:
        """Have a finished run written down. Raises what an earlier write failed with."""
        self._rows.append(row)
        if self._writing is not None and self._writing.done():
            self._writing.result()
        self._writing = self._thread.submit(self._write)

    def _write(self, *, is_last: bool = False) -> None:
        while self._rows:
            table = pa.Table.from_pylist([self._rows[0]], schema=SCHEMA)
            self.parts.keep(self._rows[0]["run_id"], table, self.record)
            self._rows.popleft()  # only now: what could not be written is tried again
        if is_last:
            self.parts.close()
