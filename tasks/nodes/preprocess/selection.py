"""Selection (Perona, III-B 2): metrics that say something; for each of the others the reason why it is dropped.

The paper wants a standard deviation of at least a threshold and two distinct values. A threshold in absolute units
keeps every throughput and drops every latency in seconds, so ours is a share of the median."""

from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.spread import Spread
from tasks.nodes.preprocess.telling_words import SETTINGS
from tasks.nodes.tools.facts import MetricFacts

NO_VALUE = "no usable value"
PAPER_MIN_DISTINCT = 4  # the code's; the paper's text says two
PAPER_MIN_DEVIATION = 0.01
PAPER_UNITS = {"B": 1e-6, "B/s": 1e-6, "s/B": 1e9}  # to MB, MB/s and s/GB; the rest is as the code has it
PAPER_EXCLUDED = (
    "duration", "disk_util", "_min", "_max", "real_time", "cpu_time", "_cpus_", "fio-cpu", "_cpu_util_",
)  # fmt: skip


def why_dropped(
    benchmark: str, metric: str, base: str, spread: Spread | None, fact: MetricFacts | None, params: PreprocessParams
) -> str:
    """Why the metric is dropped; empty if it is kept. spread: of its training values, None without any."""
    if spread is None:
        return NO_VALUE
    if params.variant == "paper":
        return _by_the_authors(f"{benchmark}-{metric}", base, spread)
    if is_setting(metric, fact):
        return "a setting or a version, not a result"
    if spread.n_distinct < params.min_distinct:
        return f"distinct values: {spread.n_distinct}, at least {params.min_distinct} needed"
    if spread.dispersion < params.min_dispersion:
        return f"varies by {spread.dispersion:.2g} of its median, at least {params.min_dispersion:g} needed"
    return ""


def is_setting(metric: str, fact: MetricFacts | None) -> bool:
    """Whether a metric tells how the benchmark was called: by the tool's facts, else by its name."""
    return fact.is_setting if fact else metric in SETTINGS


def _by_the_authors(name: str, base: str, spread: Spread) -> str:
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
