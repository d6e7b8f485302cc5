"""The counters that runs are compared on, and their means, deviations and shapes over a run.

Left out is what gives the session away: a classifier that uses it is right for the wrong reason. The level of free
memory or disk, the clock, and totals since boot say when a run was made, and so which run it was. The rule goes by
names, so that it holds for anybody's telemetry; counters of the workload's own control group stay."""

import re
import warnings
from collections import Counter as Counted
from collections.abc import Container, Sequence
from typing import Literal

import numpy as np

from tasks.errors import BadInput
from tasks.workloads.record.counters import GIVEAWAYS
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

TIME = re.compile(
    r"(^|[._])(timestamp|epoch|date|datetime|uptime|boot_?time|clock_seconds|time_seconds|unix_?time)($|[._])"
)
SPACE = re.compile(
    r"(^|[._])(disk|fs|filesystem|part|partition|swap|root)(_[a-z0-9]+)*_(free|used|avail|available|total|size|files)"
    r"($|[._])|(^|[._])(part_max_used|mbfs(free|used)|pct_u?fsused|ifree|iused|pct_iused)($|[._])"
)
MEMORY = re.compile(
    r"(^|[._])(mem|memory|meminfo)_(.*_)?(free|used|total|avail|available|buffers?|cached?|shared|active|"
    r"inactive|dirty|slab|mapped|anon|commit(ted)?|pct|bytes)($|[._])|"
    r"(^|[._])(kb[a-z]+|pct_(mem|swp|commit)[a-z]*|swap_?free|swap_?cached)($|[._])"
)
POWER = re.compile(r"(^|[._])(power|power_?watts?|watts?|temp|temperature|celsius|energy_(joules|uj))($|[._])")
TOTALS = re.compile(r"(_total|_since_boot|_count|_sum|_created|start_time_seconds)($|\.)")
REASONS = (
    (TIME, "time: says when the run was"),
    (SPACE, "space on a disk: drifts from run to run"),
    (MEMORY, "level of memory: what earlier runs left"),
    (POWER, "power or temperature: drifts with the machine"),
)
LEVELS = "a total that only grows: says when the run was"


def giveaway_of(counter: Counter) -> str:
    """Why a counter gives the session away; empty if it does not.

    A level is what does: rates (pages swapped in a second) and counters of the workload's own group never do. Of the
    counters of whorl's own recorder, those that its list names do as well, and no other level of memory."""
    if counter.scope == "workload" or counter.is_rate:
        return ""
    if counter.name in GIVEAWAYS:
        return GIVEAWAYS[counter.name]
    for pattern, reason in REASONS:
        if pattern.search(counter.name):
            return reason
    return LEVELS if TOTALS.search(counter.name) else ""


FLOOR_QUANTILE = 0.1  # of what is not 0: less is as good as nothing
NAMED = 8  # missing counters that a message names
MACHINE_MEMORY = "memory."  # levels of the whole machine's memory, as whorl records them
OWN_BUSY = ("own.cpu.user_cores", "own.cpu.system_cores")
IDLE = "idle"  # the label, and the answer, where nothing is at work
PLAIN = ("", "alone")  # recorded conditions of what is to be learned
OF_ONE_CORE = re.compile(r"^cpu\.\d+\.")  # of sysstat, which counts all of them together as well
QUIET = (*PLAIN, "unlearned", "input", "idle", "live")  # those in which nothing else was meant to run
CROWD = re.compile(r"(^|[._])(pressure|throttled|steal|idle|hypervisor|\w*migrations|rescheduling)")


def condition_of(run: Telemetry) -> str:
    """The condition that a run was recorded in; empty where nobody says."""
    return run.conditions.condition if run.conditions else ""


def unfit(counter: Counter) -> str:
    """Why a counter says nothing about what runs; empty if it does: give-aways, and those that tell how crowded the
    machine is: what others leave, take or hold, not what a workload does."""
    if reason := giveaway_of(counter):
        return reason
    if CROWD.search(counter.name):
        return "how crowded the machine is"
    is_level_of_machine = counter.scope == "machine" and not counter.is_rate and counter.name.startswith(MACHINE_MEMORY)
    return "level of the machine's memory: others hold it as well" if is_level_of_machine else ""


def is_of_one_core(name: str, names: Container[str]) -> bool:
    """Whether a counter is of one core, and one of these counts all cores together."""
    return bool(OF_ONE_CORE.match(name)) and OF_ONE_CORE.sub("cpu.all.", name) in names


def common_counters(
    runs: Sequence[Telemetry], view: Literal["own", "machine"], least_share: float = 1.0
) -> tuple[Counter, ...]:
    """The counters of a view that every run has, by name, without those that are unfit, and those of one core where all
    are counted together, as other machines have other cores; none where there is none.

    least_share: of the runs of each workload, if not all. Raises BadInput without a run."""
    if not runs:
        raise BadInput("runs", "none", "at least one run to learn from", "record or ingest some")
    n_runs = Counted(run.workload for run in runs)
    having = Counted((run.workload, name) for run in runs for name in run.names)
    scope = "workload" if view == "own" else "machine"
    known = {counter.name: counter for run in runs for counter in run.counters if counter.scope == scope}
    common = {
        name: known[name]
        for name in sorted(known)
        if not unfit(known[name]) and all(having[label, name] >= least_share * n for label, n in n_runs.items())
    }
    return tuple(counter for name, counter in common.items() if not is_of_one_core(name, common))


def missing_counters(
    run: Telemetry, counters: Sequence[Counter], weights: FloatArray, least_share: float
) -> tuple[str, ...]:
    """The names of the counters that a run lacks, if those that it has weigh at least `least_share` of all.

    weights: of each counter. Raises BadInput otherwise, naming what is missing."""
    present = set(run.names)
    is_missing = np.array([counter.name not in present for counter in counters], dtype=bool)
    missing = tuple(counter.name for counter in counters if counter.name not in present)
    if weights[is_missing].sum() > (1 - least_share) * weights.sum() + 1e-9:
        kin = "train on the counters that both have" if len(missing) < len(counters) else "train on runs of its kind"
        names = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
        raise BadInput(
            f"run {run.run_id}",
            f"lacks {len(missing)} of {len(counters)} counters: {names}",
            "the counters that the model was trained on",
            f"record them, or {kin}",
        )
    return missing


def floors_of(moments: FloatArray, quantile: float = FLOOR_QUANTILE) -> FloatArray:
    """Of each column what is as good as nothing, added before a logarithm: (c,); 1 where all is 0. moments: (n, c).

    quantile: of what is not 0."""
    present = [column[column > 0] for column in np.abs(moments).T]
    return np.array([np.quantile(values, quantile) if len(values) else 1.0 for values in present])


def columns_of(run: Telemetry, names: Sequence[str]) -> FloatArray:
    """The named counters of a run in this order, (n_samples, n_names); NaN for those that it lacks."""
    place = {name: column for column, name in enumerate(run.names)}
    there = [at for at, name in enumerate(names) if name in place]
    values = np.full((run.n_samples, len(names)), np.nan)
    values[:, there] = run.values[:, [place[names[at]] for at in there]]
    return values


def means_of(runs: Sequence[Telemetry], counters: Sequence[Counter]) -> FloatArray:
    """Mean of each counter over each run, in its own unit: (n_runs, n_counters); NaN: no value."""
    return moments_of(runs, counters)[:, : len(counters)]


def moments_of(runs: Sequence[Telemetry], counters: Sequence[Counter]) -> FloatArray:
    """Means and then standard deviations of the counters over each run: (n_runs, 2 n_counters); NaN: no value."""
    table = np.full((len(runs), 2, len(counters)), np.nan)
    names = [counter.name for counter in counters]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a counter without a value has no mean
        for row, run in enumerate(runs):
            values = columns_of(run, names)
            table[row] = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    return table.reshape(len(runs), 2 * len(counters))


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
N_SHAPES = len(QUANTILES) + 3
ROUNDING = 1e-9  # of a mean: what varies by less is constant


def shapes_of(runs: Sequence[Telemetry], counters: Sequence[Counter]) -> FloatArray:
    """How counters go through a run, whatever their level and deviation: (n_runs, N_SHAPES n_counters); NaN: no value.

    In deviations from the mean: quantiles, autocorrelation, the way from the first half to the second, and how far
    samples lie from the mean. A constant counter has none of it; a missing sample counts as the mean."""
    table = np.full((len(runs), N_SHAPES, len(counters)), np.nan)
    names = [counter.name for counter in counters]
    for row, run in enumerate(runs):
        values = columns_of(run, names)
        if not values.size:
            continue
        is_there = np.isfinite(values)
        n = np.maximum(is_there.sum(axis=0), 1)
        centred = np.where(is_there, values, 0.0)
        centre = centred.sum(axis=0) / n
        centred = np.where(is_there, values - centre, 0.0)
        spread = np.sqrt((centred**2).sum(axis=0) / n)
        scaled = centred / np.where(spread > ROUNDING * np.abs(centre), np.where(spread > 0, spread, 1.0), np.inf)
        half = len(scaled) // 2
        shapes = [
            *np.quantile(scaled, QUANTILES, axis=0),
            (scaled[1:] * scaled[:-1]).sum(axis=0) / len(scaled),
            np.abs(scaled[:half].sum(axis=0) - scaled[half:].sum(axis=0)) / max(half, 1),
            np.abs(scaled).mean(axis=0),
        ]
        table[row] = np.where(is_there.any(axis=0), shapes, np.nan)
    return table.reshape(len(runs), N_SHAPES * len(counters))
