"""Which metrics count, and which way is better: by what tools declare, by words of names, and by how values vary.

Selection (Perona, III-B 2): metrics that say something; for each of the others the reason why it is dropped.

The paper wants a standard deviation of at least a threshold and two distinct values. A threshold in absolute units
keeps every throughput and drops every latency in seconds, so ours is a share of the median.

Orientation (Perona, III-B 3): whether more or less of a metric is better.

Declared by the tool, else told by name or unit, else more is better: what has neither is a score or a rate. Where the
tool's facts say that neither is better the paper's rule decides. It is computed for every metric all the same, and
where it contradicts what is declared or told that is listed; of a metric that nothing tells there is nothing to
contradict:

    L = median - min, R = max - median: maximise if R ≤ L, else minimise.

It wants stress in the training data and turns with one outlier, or where few machines are much larger than most: of
SpareCores' 25 metrics of PassMark that nothing else tells it turns 22, all of them rates and marks."""

import re
from typing import Literal

import numpy as np

from tasks.nodes.params import PreprocessParams
from tasks.nodes.preprocess.unification import conversion_of
from tasks.nodes.tools.parsing import MetricFacts
from tasks.nodes.type_tables import Floats
from tasks.params import Params

MIN_DISPERSION = 0.001  # metrics that vary less, as a share of their median, are dropped (ours)
TROUBLE = frozenset({
    "error", "errors", "failed", "failures", "retr", "retrans", "retransmits", "retries", "lost", "drop", "drops",
    "dropped", "overhead", "std", "stdev", "stddev", "mdev", "jitter", "variance", "deviation",
})  # less is better, whatever the unit  # fmt: skip
WORSE = frozenset({
    "latency", "lat", "clat", "slat", "rtt", "time", "delay", "cost", "wait", "miss", "misses", "fault", "faults",
    "runtime", "duration", "elapsed", "latencies", "lag", "makespan", "stall", "stalls", "slowdown", "steal", "ttfb",
})  # less is better, where the unit says nothing  # fmt: skip
TIMES = frozenset({
    "seconds", "secs", "milliseconds", "msec", "ms", "microseconds", "usec", "us", "nanoseconds", "nsec", "ns",
    "minutes", "hours", "p50", "p75", "p90", "p95", "p99", "p999", "response", "energy", "joules",
})  # less is better, where no word of BETTER stands beside it: not of iops_p99  # fmt: skip
CALENDAR = frozenset({"min", "minute", "hour", "day", "second", "h", "d"})  # as a whole name: the least, or of a date
MONEY = frozenset({"cost", "usd", "eur", "price"})  # less is better also of a rate
BETTER = frozenset({
    "iops", "throughput", "bandwidth", "bw", "bitrate", "rate", "tps", "qps", "ops", "events", "score", "speed",
    "mips", "flops", "efficiency",
})  # fmt: skip
RESULT = "result"  # the metric of a benchmark that was a column: its name is the benchmark's
SETTINGS = frozenset({
    "version", "num_threads", "number_of_threads", "threads", "prime_numbers_limit", "block_size", "total_size",
    "operation", "scope", "number_of_processes", "msg_size", "timeout", "access_recv", "iodepth", "port", "seed",
    "run", "round", "iteration", "repetition", "repeat", "rep", "trial", "attempt",
})  # whole names  # fmt: skip


TAILS = (0.05, 0.95)
NORMAL_WIDTH = 3.2897072539  # of a normal distribution between these, in standard deviations
SAME = 1e-9  # values closer than this, as a share, are one: the rest is rounding of units


class ValueSpread(Params):
    """Of the training values of a metric, in base units. n_distinct counts values that differ by more than rounding.

    low, high: 5 % and 95 % quantiles. deviation: sample standard deviation, 0 for one value."""

    n_values: int
    n_distinct: int
    least: float
    low: float
    median: float
    high: float
    greatest: float
    mean: float
    deviation: float

    @property
    def robust_deviation(self) -> float:
        """Width between the tails, as the standard deviation of a normal distribution of that width."""
        return (self.high - self.low) / NORMAL_WIDTH

    @property
    def dispersion(self) -> float:
        """Robust coefficient of variation: robust deviation over |median|; the same in every unit.

        Up to 5 % of outliers on either side do not count. Where the median is 0 the larger tail takes its place."""
        levels = (abs(self.median), max(abs(self.low), abs(self.high)))
        level = next((size for size in levels if size > 0), 0.0)
        return self.robust_deviation / level if level else 0.0


def spread_of(values: Floats) -> ValueSpread | None:
    """The spread of values (n,), in any order; None without any."""
    if not len(values):
        return None
    ordered = np.sort(values)  # sums in one order: the same for any order of the executions
    low, median, high = np.quantile(ordered, [TAILS[0], 0.5, TAILS[1]])
    return ValueSpread(
        n_values=len(ordered),
        n_distinct=count_distinct(ordered),
        least=float(ordered[0]),
        low=float(low),
        median=float(median),
        high=float(high),
        greatest=float(ordered[-1]),
        mean=float(ordered.mean()),
        deviation=_deviation(ordered),
    )


def _deviation(ordered: Floats) -> float:
    """The standard deviation, 0 of one value; of values whose squares are none, infinite."""
    with np.errstate(over="ignore"):
        return float(ordered.std(ddof=1)) if len(ordered) > 1 else 0.0


def count_distinct(ordered: Floats) -> int:
    """Number of distinct values among rising ones (n,), n at least 1; those as close as rounding are one."""
    limits = SAME * np.maximum(np.abs(ordered[1:]), np.abs(ordered[:-1]))
    return 1 + int(np.count_nonzero(np.diff(ordered) > limits))


NO_VALUE = "no usable value"
MIN_DISTINCT = 2
PAPER_MIN_DISTINCT = 4  # the code's; the paper's text says two
PAPER_MIN_DEVIATION = 0.01
PAPER_UNITS = {"B": 1e-6, "B/s": 1e-6, "s/B": 1e9}  # to MB, MB/s and s/GB; the rest is as the code has it
PAPER_EXCLUDED = (
    "duration", "disk_util", "_min", "_max", "real_time", "cpu_time", "_cpus_", "fio-cpu", "_cpu_util_",
)  # fmt: skip


def why_dropped(
    benchmark: str,
    metric: str,
    base: str,
    spread: ValueSpread | None,
    fact: MetricFacts | None,
    params: PreprocessParams,
) -> str:
    """Why the metric is dropped; empty if it is kept. spread: of its training values, None without any."""
    if spread is None:
        return NO_VALUE
    if params.is_paper:
        return _by_the_authors(f"{benchmark}-{metric}", base, spread)
    if is_setting(metric, fact):
        return "a setting or a version, not a result"
    if spread.n_distinct < MIN_DISTINCT:
        return f"distinct values: {spread.n_distinct}, at least {MIN_DISTINCT} needed"
    if spread.dispersion < MIN_DISPERSION:
        return f"varies by {spread.dispersion:.2g} of its median, at least {MIN_DISPERSION:g} needed"
    return ""


def is_setting(metric: str, fact: MetricFacts | None) -> bool:
    """Whether a metric tells how the benchmark was called: by the tool's facts, else by its name."""
    return fact.is_setting if fact else metric in SETTINGS


def _by_the_authors(name: str, base: str, spread: ValueSpread) -> str:
    for part in PAPER_EXCLUDED:
        if part in name:
            return f"name holds {part!r}: on the authors' list"
    if spread.n_distinct < PAPER_MIN_DISTINCT:
        return f"distinct values: {spread.n_distinct}, at least {PAPER_MIN_DISTINCT} needed"
    if spread.greatest <= 0:
        return "no value above 0"
    deviation = spread.deviation * PAPER_UNITS.get(base, 1.0)
    if deviation < PAPER_MIN_DEVIATION:
        return f"standard deviation {deviation:.2g}, at least {PAPER_MIN_DEVIATION} needed"
    return ""


Sign = Literal[1, -1]
Origin = Literal["declared", "name", "unit", "rule", "override", "none"]

BY_UNIT: dict[str, Sign] = {"1/s": 1, "B/s": 1, "s": -1, "s/B": -1}
WORDS = re.compile(r"[^a-z0-9]+")
PER = re.compile(r"/|[\s_]per[\s_]", re.IGNORECASE)
PAPER_OVERRIDES: tuple[tuple[str, Sign], ...] = (("msg_rate", 1), ("stdev", -1), ("stddev", -1))  # the authors' code


class Orientation(Params):
    """sign: 1 where more is better, -1 where less is. origin: what says so; none: nothing does, and 1 stands.

    rule_with_stressed, rule_without_stressed: what the paper's rule says; None where the values do not differ.
    is_directed: false where the tool declares that neither is better: the sign is a guess, and counts in no score."""

    sign: Sign
    origin: Origin
    rule_with_stressed: Sign | None
    rule_without_stressed: Sign | None
    is_directed: bool = True

    @property
    def agrees(self) -> bool | None:
        """Whether the paper's rule, on all executions, says what is declared or told; None where either is silent."""
        if self.rule_with_stressed is None or self.origin in ("rule", "none"):
            return None
        return self.rule_with_stressed == self.sign


def rule_of(spread: ValueSpread | None) -> Sign | None:
    """What the paper's rule says; None without two distinct values."""
    if spread is None or spread.n_distinct < 2:
        return None
    left, right = spread.median - spread.least, spread.greatest - spread.median
    return 1 if right <= left + SAME * (left + right) else -1


def orient(
    metric: str,
    base: str,
    fact: MetricFacts | None,
    spread: ValueSpread | None,
    unstressed: ValueSpread | None,
    params: PreprocessParams,
) -> Orientation:
    """The orientation of a metric. spread: of all its training values; unstressed: of those without known stress."""
    rule = rule_of(spread)
    sign, origin = _overridden(metric) if params.is_paper else _stated_sign(metric, base, fact)
    if sign is None:
        is_asked = rule is not None and (params.is_paper or fact is not None)
        sign, origin = (rule, "rule") if is_asked else (1, "none")
    return Orientation(
        sign=sign,
        origin=origin,
        rule_with_stressed=rule,
        rule_without_stressed=rule_of(unstressed),
        is_directed=params.is_paper or fact is None or fact.higher_is_better is not None,
    )


def _stated_sign(metric: str, base: str, fact: MetricFacts | None) -> tuple[Sign | None, Origin]:
    if fact is not None:  # neither better nor worse: the rule, and no guess from the unit
        return (None if fact.higher_is_better is None else 1 if fact.higher_is_better else -1), "declared"
    words = set(WORDS.split(PER.split(metric)[0].lower()))  # ms of ms/op; not the sec of tokens/sec
    if words & TROUBLE or (base == "1/s" and words & MONEY):
        return -1, "name"
    if base in BY_UNIT:
        return BY_UNIT[base], "unit"
    if words & WORSE:
        return -1, "name"
    if words & BETTER:
        return 1, "name"
    if metric.lower() not in CALENDAR and (named := conversion_of(metric).base) in BY_UNIT:  # sec, requests_sec
        return BY_UNIT[named], "name"
    return (-1, "name") if words & TIMES else (None, "none")


def _overridden(metric: str) -> tuple[Sign | None, Origin]:
    return next(((sign, "override") for part, sign in PAPER_OVERRIDES if part in metric), (None, "none"))
