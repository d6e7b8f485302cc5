"""Which machine type for a job that has run on one type only: the cheapest on which it is rarely late.

A run on the source type is taken apart into what it asks of a machine: CPU work, bytes from the disk, memory. On
another type the CPU work takes as much longer as its scores say (with one thread and with all of them, since nobody
knows how much of the job runs in parallel), the bytes as much as its disk is slower; the two overlap as far as they did
on the source. Where a run needs more memory than a type has, what does not fit goes to disk and back, the CPU has more
to do, or the run fails. The runs themselves are the distribution; what the model does not know is drawn for the whole
job at once, so that the chance of being late has an interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import ndtr, ndtri

from tasks.advice.machines import SECONDS_PER_HOUR, Floats
from tasks.advice.params import ChoiceParams
from tasks.errors import BadInput, NotFound
from tasks.params import Params

Bound = Literal["CPU", "disk", "CPU and disk", "memory", "neither CPU nor disk"]
MB, GB = 1e6, 1e9
LEAST_RUNS = 2
SILVERMAN, SILVERMAN_POWER, IQR_OF_SD = 0.9, -0.2, 1.349  # Silverman 1986, equation 3.31
FEW, MANY = 5, 200  # points of the normal distribution around a run, where there are draws as well, and where not
TAIL = 0.95
LEAST_BANDWIDTH = 0.02  # of log runtimes: two runs are never exactly alike
DOMINATES = 1.25  # a part is the bound if it takes this much longer than the other
MOSTLY = 0.5
TINY = 1e-9
COMPLETED = "completed"


class BeliefParams(Params):
    """What is not known of a job on a type where it never ran; what only a researcher varies.

    Set on a trial of 21 jobs with one run on each of four types, before any held-back run was looked at."""

    draws: int = Field(2000, ge=100, le=1_000_000, description="Draws of what is not known")
    parallel_least: float = Field(0.7, ge=0, le=1, description="Least share of the CPU work that all threads share")
    usable_memory_ratio: float = Field(0.6, gt=0, le=1, description="Share of a type's memory that a job may fill")
    spill_cpu_ratio: float = Field(0.3, ge=0, le=10, description="More CPU work where memory does not suffice")
    spill_soon_ratio: float = Field(0.1, gt=0, le=1, description="Lack of memory, over it, that costs all of that")
    fail_chance: float = Field(0.1, ge=0, le=1, description="Chance that a job without enough memory fails")
    fail_chance_spilled: float = Field(0.02, ge=0, le=1, description="The same for a job that has spilled before")
    error_same: float = Field(0.04, ge=0, le=5, description="Model error of log runtimes on a type like the source")
    error_speed: float = Field(0.06, ge=0, le=5, description="More of it where CPU or disk differ")
    error_memory: float = Field(0.2, ge=0, le=5, description="More of it where memory does not suffice")
    seed: int = Field(7, ge=0, le=2**31, description="Seed of the draws")


@dataclass(frozen=True)
class Capacity:
    """What a type has. cpu_one_thread, cpu_all_threads: scores; disk_bytes_per_s: NaN if unknown."""

    machine_type: str
    vcpu: float
    memory_bytes: float
    price_per_h: float
    cpu_one_thread: float
    cpu_all_threads: float
    disk_bytes_per_s: float


@dataclass(frozen=True)
class TypeEstimate:
    """A job on one type. late: its chance of being late; low, high: interval of that; meets: probability that it is
    rare enough; median_s, p95_s: runtime; cost: of a mean run; cpu_s, disk_s: mean wall time of each part;
    lacks_memory: share of the runs for which memory does not suffice; critical_s: the median run may take this long."""

    machine_type: str
    late: float
    low: float
    high: float
    meets: float
    median_s: float
    p95_s: float
    cost: float
    cpu_s: float
    disk_s: float
    lacks_memory: float
    critical_s: float
    bound: Bound
    late_draws: Floats

    def is_safe(self, late_share: float) -> bool:
        """Whether the whole interval is at or below the share, and so is the chance itself."""
        return max(self.high, self.late) <= late_share

    def is_unclear(self, late_share: float) -> bool:
        """Whether the interval has the share inside, or a small chance of failing for good decides."""
        return self.low <= late_share and not self.is_safe(late_share)


@dataclass(frozen=True)
class Choice:
    """The answer for one job. machine_type: the cheapest safe type, or the one that is late least often if none is
    safe, of equals the fastest; estimates: of all types; next_type: where a run would tell most, None if nothing could
    change; saving: what that run is expected to save of the cost, as a ratio."""

    job: str
    source: str
    deadline_s: float
    late_share: float
    level: float
    n_runs: int
    machine_type: str
    is_safe: bool
    estimates: tuple[TypeEstimate, ...]
    next_type: str | None
    saving: float

    @property
    def estimate(self) -> TypeEstimate:
        """Of the type that is the answer."""
        return self.of(self.machine_type)

    def of(self, machine_type: str) -> TypeEstimate:
        """Of any type."""
        return next(estimate for estimate in self.estimates if estimate.machine_type == machine_type)


def capacities(machines: pd.DataFrame, scores: pd.DataFrame | None = None) -> dict[str, Capacity]:
    """What each type has, by name.

    machines: machine_type, vcpu, memory_gb, price_per_h; scores: machine_type, aspect (cpu_one_thread,
    cpu_all_threads or cpu for both; disk in MB/s), score. Without CPU scores threads are alike on all types; without
    a disk score disks are.
    Raises BadInput for one type only, and for a score that a type lacks."""
    if len(machines) < LEAST_RUNS:
        raise BadInput("machines", "one type only", "two or more to choose from", "add the types that you could use")
    scored = pd.DataFrame(columns=["machine_type", "aspect", "score"]) if scores is None else scores
    score_of = {
        (kind, aspect): float(score) for kind, aspect, score in scored[["machine_type", "aspect", "score"]].to_numpy()
    }
    for aspect in dict.fromkeys(scored["aspect"]):
        if lacking := [name for name in machines["machine_type"] if not score_of.get((name, aspect), 0.0) > 0]:
            fault = f"{lacking[0]} has no {aspect}"
            raise BadInput("scores", fault, "a score above 0 of every type", "benchmark it, or drop the type")
    by_type = {}
    for name, vcpu, memory_gb, price in machines[["machine_type", "vcpu", "memory_gb", "price_per_h"]].to_numpy():
        cores, both = max(1.0, vcpu), score_of.get((name, "cpu"))
        one_thread = score_of.get((name, "cpu_one_thread"), min(1.0, vcpu) if both is None else both / cores)
        every = score_of.get((name, "cpu_all_threads"), one_thread * cores if both is None else both)
        disk_bytes_per_s = score_of.get((name, "disk"), math.nan) * MB
        by_type[name] = Capacity(
            name, float(vcpu), memory_gb * GB, float(price), one_thread, max(every, one_thread), disk_bytes_per_s
        )
    return by_type


@dataclass(frozen=True)
class SourceRuns:
    """The runs of a job on its source that completed, as arrays of (n_runs,), and how many did not.

    need_bytes: memory that it filled, with what it spilled; 0 where nobody recorded it."""

    runtime_s: Floats
    cpu_s: Floats
    read_bytes: Floats
    need_bytes: Floats
    has_spilled: Floats
    n_failed: int


def runs_of(history: pd.DataFrame, job: str) -> tuple[SourceRuns, str]:
    """The runs of a job, and the type on which they ran.

    history: job, machine_type, runtime_s; status (completed or not), cpu_s, read_bytes, memory_bytes, spilled_bytes
    where they were recorded. Without cpu_s all of the time counts as the CPU's. Raises NotFound for an unknown job,
    BadInput for runs on several types, fewer than two completed ones, and values that are no numbers."""
    rows = history[history["job"] == job]
    if rows.empty:
        known = ", ".join(map(str, dict.fromkeys(history["job"])))
        raise NotFound(f"job {job}: not in the history; expected one of {known[:200]}")
    types = list(dict.fromkeys(rows["machine_type"]))
    if len(types) > 1:
        problem = f"job {job} has run on {', '.join(map(str, types))}"
        raise BadInput("history", problem, "runs on one type", "name the one to go by with --source")
    status = rows["status"] if "status" in rows else pd.Series(COMPLETED, index=rows.index)
    done = rows[status == COMPLETED]
    if len(done) < LEAST_RUNS:
        raise BadInput("history", f"job {job} has {len(done)} completed runs", "two or more", "let it run more often")
    runtime_s = _numbers(done, "runtime_s", job)
    if (runtime_s <= 0).any():
        raise BadInput("history", f"job {job} has a runtime_s of 0 or less", "seconds above 0", "mend or drop the run")
    spilled = _numbers(done, "spilled_bytes", job)
    return SourceRuns(
        runtime_s=runtime_s,
        cpu_s=_numbers(done, "cpu_s", job) if "cpu_s" in done else runtime_s,
        read_bytes=_numbers(done, "read_bytes", job),
        need_bytes=_numbers(done, "memory_bytes", job) + spilled,
        has_spilled=(spilled > 0).astype(float),
        n_failed=len(rows) - len(done),
    ), str(types[0])


def _numbers(rows: pd.DataFrame, column: str, job: str) -> Floats:
    """A column of numbers of 0 or more; 0 where there is no such column."""
    if column not in rows:
        return np.zeros(len(rows))
    values = pd.to_numeric(rows[column], errors="coerce").to_numpy(dtype=float)
    if not (np.isfinite(values) & (values >= 0)).all():
        fault = f"job {job} has a run without {column}"
        raise BadInput("history", fault, "a number of 0 or more", "drop it or the column")
    return values


@dataclass(frozen=True)
class Demand:
    """Wall time of both parts of each run on a type for each draw, (n_draws, n_runs). lack_ratio: (n_runs,), memory
    that is lacking over the type's."""

    cpu_s: Floats
    disk_s: Floats
    lack_ratio: Floats


def demand_on(runs: SourceRuns, source: Capacity, target: Capacity, parallel: Floats, model: BeliefParams) -> Demand:
    """What runs on the source would ask of the target's CPU and disk.

    parallel: (n_draws,), share of the CPU work that all threads share; the rest has one."""
    lack_source = _lacking(runs, source, model) * runs.has_spilled  # what did not spill there had enough
    lack = _lacking(runs, target, model) * (runs.has_spilled if _has_no_less(target, source) else 1.0)
    bytes_ = np.maximum(0.0, runs.read_bytes + (lack - lack_source))  # what does not fit is written and read back once
    more_cpu = _more_cpu(lack / target.memory_bytes, model) / _more_cpu(lack_source / source.memory_bytes, model)
    work = (
        runs.cpu_s * more_cpu / min(1.0, source.vcpu) * source.cpu_one_thread
    )  # a quota makes CPU seconds last longer
    per_work = (1 - parallel) / target.cpu_one_thread + parallel / target.cpu_all_threads
    has_disks = math.isfinite(source.disk_bytes_per_s) and math.isfinite(target.disk_bytes_per_s)
    disk_s = bytes_ / target.disk_bytes_per_s if has_disks else np.zeros_like(bytes_)
    cpu_s = per_work[:, None] * work  # (n_draws, n_runs)
    return Demand(cpu_s, np.broadcast_to(disk_s, cpu_s.shape), lack / target.memory_bytes)


def _has_no_less(target: Capacity, source: Capacity) -> bool:
    """Whether what had memory enough on the source has it on the target."""
    return target.memory_bytes >= source.memory_bytes * (1 - LEAST_BANDWIDTH)


def _lacking(runs: SourceRuns, kind: Capacity, model: BeliefParams) -> Floats:
    return np.maximum(0.0, runs.need_bytes - model.usable_memory_ratio * kind.memory_bytes)


def _more_cpu(lack_ratio: Floats, model: BeliefParams) -> Floats:
    return 1 + model.spill_cpu_ratio * np.minimum(1.0, lack_ratio / model.spill_soon_ratio)


def transferred(runtime_s: Floats, there: Demand, here: Demand) -> Floats:
    """Runtimes on the target, (n_draws, n_runs): the longer part and as much of the shorter as did not overlap there.

    What neither part explains stays as it is; a run that was faster than its longer part is scaled by that.
    there: demand on the source; here: on the target."""
    longer, shorter = np.maximum(there.cpu_s, there.disk_s), np.minimum(there.cpu_s, there.disk_s)
    apart = np.clip((runtime_s - longer) / np.maximum(shorter, TINY), 0, 1)
    rest = np.maximum(0.0, runtime_s - longer - apart * shorter)
    return rest + _scale(runtime_s, there) * (
        np.maximum(here.cpu_s, here.disk_s) + apart * np.minimum(here.cpu_s, here.disk_s)
    )


def _scale(runtime_s: Floats, there: Demand) -> Floats:
    """What the parts of a run count for that was faster than the longer of them, (n_draws, n_runs)."""
    return np.minimum(1.0, runtime_s / np.maximum(np.maximum(there.cpu_s, there.disk_s), TINY))


def estimate_type(
    runs: SourceRuns, source: Capacity, target: Capacity, deadline_s: float, params: ChoiceParams, model: BeliefParams
) -> TypeEstimate:
    """The job on one type, from its runs on the source.

    What is not known is drawn alike for all types, so that types differ by type alone: (n_draws,) the parallel share,
    the model's error, whether it fails, how much wider runs may lie than these few do (by the posterior of a normal
    spread), and weights of the runs by the Bayesian bootstrap (Rubin 1981)."""
    rng, n, n_runs = np.random.default_rng(model.seed), model.draws, len(runs.runtime_s)
    parallel, error, fails = rng.uniform(model.parallel_least, 1, n), rng.standard_normal(n), rng.uniform(size=n)
    stretch = np.sqrt((n_runs - 1) / rng.chisquare(n_runs - 1, n))
    weights = rng.dirichlet(np.ones(n_runs), n)  # (n_draws, n_runs)
    there, here = (demand_on(runs, source, kind, parallel, model) for kind in (source, target))
    lacks = here.lack_ratio > 0
    model_error = error[:, None] * _error(source, target, lacks, runs.has_spilled, model)
    took_s = transferred(runs.runtime_s, there, here) * np.exp(model_error)  # (n_draws, n_runs)
    log_s, middle = np.log(took_s), np.median(np.log(took_s), axis=1, keepdims=True)
    bandwidth, shrink = _smoothing(log_s.mean(axis=0))
    centred = (log_s - middle) * shrink
    margin = (math.log(deadline_s) - middle) / stretch[:, None] - centred
    chance = model.fail_chance_spilled if runs.has_spilled.any() else model.fail_chance
    is_failing = (fails < chance)[:, None] & (lacks & (not _has_no_less(target, source)))
    run_late = np.where(is_failing, 1.0, ndtr(-margin / bandwidth))
    late_draws = np.minimum(1.0, (weights * run_late).sum(axis=1))
    if runs.n_failed and target.memory_bytes <= source.memory_bytes:  # with more memory nobody knows
        failed_share = runs.n_failed / (runs.n_failed + n_runs)
        late_draws = failed_share + (1 - failed_share) * late_draws
    low, high = np.quantile(late_draws, [(1 - params.level) / 2, (1 + params.level) / 2])
    smooth = np.exp(middle[:, :, None] + stretch[:, None, None] * (centred[:, :, None] + _kernel(bandwidth, FEW)))
    scale = _scale(runs.runtime_s, there)
    parts = (scale * here.cpu_s, scale * here.disk_s, took_s)
    cpu_s, disk_s, mean_s = (float((weights * part).sum(axis=1).mean()) for part in parts)
    beyond = np.quantile(centred.mean(axis=0)[:, None] + _kernel(bandwidth, MANY), 1 - params.late_share)
    return TypeEstimate(
        machine_type=target.machine_type,
        late=float(late_draws.mean()),
        low=float(low),
        high=float(high),
        meets=float((late_draws <= params.late_share).mean()),
        median_s=float(np.median(smooth)),
        p95_s=float(np.quantile(smooth, TAIL)),
        cost=mean_s * target.price_per_h / SECONDS_PER_HOUR,
        cpu_s=cpu_s,
        disk_s=disk_s,
        lacks_memory=float(lacks.mean()),
        critical_s=deadline_s / math.exp(float(beyond)),
        bound=_bound(cpu_s, disk_s, mean_s, float(lacks.mean())),
        late_draws=late_draws,
    )


def _error(
    source: Capacity, target: Capacity, lacks: NDArray[np.bool_], had_spilled: Floats, model: BeliefParams
) -> Floats:
    """Standard deviation of the model's error, (n_runs,): on the source only what changes from week to week."""
    alike = all(
        math.isclose(getattr(source, name), getattr(target, name), rel_tol=LEAST_BANDWIDTH)
        or (math.isnan(getattr(source, name)) and math.isnan(getattr(target, name)))
        for name in ("cpu_one_thread", "cpu_all_threads", "disk_bytes_per_s")
    )
    is_other = not math.isclose(source.memory_bytes, target.memory_bytes, rel_tol=LEAST_BANDWIDTH)
    spills = lacks if target.memory_bytes < source.memory_bytes else had_spilled  # with more memory it may not any more
    memory = model.error_memory * spills * is_other
    spread: Floats = np.sqrt(model.error_same**2 + (0.0 if alike else model.error_speed) ** 2 + memory**2)
    return spread


def _smoothing(log_s: Floats) -> tuple[float, float]:
    """The width of the normal distribution around a run (Silverman's rule), as a few runs have no tail of their own,
    and the ratio by which runs move inwards, so that the spread stays what it was (Silverman and Young 1987)."""
    quarter, three = np.quantile(log_s, [0.25, 0.75])
    sd = max(float(log_s.std(ddof=1)), LEAST_BANDWIDTH)
    spread = min(sd, float(three - quarter) / IQR_OF_SD) or sd
    bandwidth = max(LEAST_BANDWIDTH, SILVERMAN * spread * math.pow(len(log_s), SILVERMAN_POWER))
    return bandwidth, 1 / math.hypot(1, bandwidth / sd)


def _kernel(bandwidth: float, n: int) -> Floats:
    """n points of the normal distribution around a run, each as likely as the others."""
    points: Floats = ndtri((np.arange(n) + 0.5) / n) * bandwidth
    return points


def _bound(cpu_s: float, disk_s: float, mean_s: float, lacks_memory: float) -> Bound:
    if lacks_memory > MOSTLY:
        return "memory"
    if max(cpu_s, disk_s) < MOSTLY * mean_s:
        return "neither CPU nor disk"
    if cpu_s > DOMINATES * disk_s:
        return "CPU"
    return "disk" if disk_s > DOMINATES * cpu_s else "CPU and disk"


def choose_type(
    history: pd.DataFrame,
    machines: pd.DataFrame,
    scores: pd.DataFrame | None,
    job: str,
    deadline_s: float,
    params: ChoiceParams | None = None,
    model: BeliefParams | None = None,
) -> Choice:
    """The cheapest type on which the job is late in at most params.late_share of its runs, as far as can be told.

    Tables as in runs_of and capacities. Where the interval of the chance has the share inside, the type is not taken
    for safe. Raises NotFound, BadInput (a deadline that is not above 0, a source that is no known type)."""
    params, model = params or ChoiceParams(), model or BeliefParams()
    if not (math.isfinite(deadline_s) and deadline_s > 0):
        raise BadInput("deadline", f"{deadline_s:g} s", "seconds above 0", "give the time that a run may take")
    kinds = capacities(machines, scores)
    runs, source = runs_of(history, job)
    if source not in kinds:
        raise BadInput("machines", f"no type {source}, on which job {job} has run", "its row", "add it")
    estimates = tuple(estimate_type(runs, kinds[source], kind, deadline_s, params, model) for kind in kinds.values())
    safe = [estimate for estimate in estimates if estimate.is_safe(params.late_share)]
    least_late = min(estimates, key=lambda estimate: (round(estimate.late, 3), estimate.median_s))
    answer = min(safe, key=lambda estimate: estimate.cost) if safe else least_late
    next_type, saving = _next_run(answer, estimates, params.late_share, is_safe=bool(safe))
    return Choice(
        job=job,
        source=source,
        deadline_s=deadline_s,
        late_share=params.late_share,
        level=params.level,
        n_runs=len(runs.runtime_s) + runs.n_failed,
        machine_type=answer.machine_type,
        is_safe=bool(safe),
        estimates=estimates,
        next_type=next_type,
        saving=saving,
    )


def _next_run(
    answer: TypeEstimate, estimates: Sequence[TypeEstimate], late_share: float, *, is_safe: bool
) -> tuple[str | None, float]:
    """The type where a run would tell most, and the expected saving: the chance that it proves safe times what it is
    cheaper by. Where nothing is safe, the type whose verdict is most open."""
    if not is_safe:
        openness = {estimate.machine_type: estimate.meets * (1 - estimate.meets) for estimate in estimates}
        best = max(openness, key=lambda name: openness[name])
        return (best, 0.0) if openness[best] > 0 else (None, 0.0)
    cheaper = [estimate for estimate in estimates if estimate.cost < answer.cost and not estimate.is_safe(late_share)]
    values = {estimate.machine_type: estimate.meets * (1 - estimate.cost / answer.cost) for estimate in cheaper}
    most = max(values.values(), default=0.0)
    return (next(name for name in values if values[name] == most), most) if most > 0 else (None, 0.0)
