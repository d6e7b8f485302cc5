"""Which jobs have changed since a moment, and which of them have drifted to another shape.

Two questions with two kinds of evidence. Changed: a permutation test of the runtimes before and since, held at a false
discovery rate over all jobs. Runtimes are often whole seconds, and runs of one busy day are slow together, so the
tables of no test fit; but if nothing changed, every way to deal the stretches of time (days, say), with all their runs,
into `before` and `after` is as likely, and the p-value is the share of random deals whose statistic is at least the
observed one: right with ties, and with any dependence within a stretch; that over several stretches is not covered.
Another shape: a changed job whose runs are also MIN_BAYES_FACTOR times likelier under two different shapes than under
one. The Bayes factor alone would not do: a job between two shapes, with many runs, is drawn to one of them by luck,
and firmly."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tasks.jobs.distribution import Floats
from tasks.jobs.normalisation import Counts, histogram, normalise
from tasks.jobs.params import DriftParams
from tasks.jobs.shapes import ShapeSet, log_likelihood, log_posterior
from tasks.quantities import duration, share, times

Booleans = NDArray[np.bool_]
Ints = NDArray[np.int64]
DAY_S = 86_400.0
STRETCH_DAYS, N_STRETCHES = 1.0, 7  # of time since the moment: shorter ones than that where the log is
MIN_BAYES_FACTOR = 10.0
MAX_PERMUTATIONS = 100_000
SEED = 0
RESOLUTION = 10  # the smallest possible p-value is at most this part of the false discovery rate
ENOUGH = 20  # deals at least as extreme after which the p-value is known well enough
FIRST_BLOCK = 128
CELLS = 2_000_000  # deals times runs gone through together
ROUNDING = 1e-9  # of a statistic: the same deal must count as at least as extreme
LOG_10 = math.log(10)
MOST_POWER = 6  # of ten: a factor beyond that is said as such
COLUMNS = (
    "group_key", "n_before", "n_after", "stretches_before", "stretches_after", "median_before_s", "median_after_s",
    "median_factor", "spread_before_s", "spread_after_s", "statistic", "p_value", "q_value", "has_changed",
    "shape_before", "shape_after", "p_shape_before", "p_shape_after", "log_bayes_factor", "has_drifted",
)  # fmt: skip
MEASURES = COLUMNS[: COLUMNS.index("q_value")]


def find_drift(
    runs: pd.DataFrame,
    params: DriftParams,
    since_at: pd.Timestamp,
    *,
    shapes: ShapeSet | None = None,
    medians_s: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Compare each job's finished runs before and since a moment: one row a job with enough stretches of time on both
    sides, the surest drift first.

    runs: group_key, submitted_at, runtime_s in seconds, of jobs with runs on both sides (of watch_drift.sql). since_at:
    the moment, whose runs count as since. shapes: those of period D1; medians_s: historic median by job, of runs before
    the moment where it has none. Columns:
    - group_key; n_before, n_after: runs; stretches_before, stretches_after: stretches of time that these are of;
    - median_before_s, median_after_s, median_factor (after over before); spread_before_s, spread_after_s (25th to
      75th percentile);
    - statistic, p_value, q_value (Benjamini-Hochberg), has_changed;
    - shape_before, shape_after (most probable, -1 without shapes), p_shape_before, p_shape_after (their posteriors),
      log_bayes_factor (natural, two shapes against one); has_drifted: changed, and to another shape.
    The time since the moment is cut into stretches of a day, or into N_STRETCHES if that gives more, and the time
    before into as long ones: the runs of a job in one of them are one piece of evidence."""
    runs = runs.assign(is_after=runs["submitted_at"] >= since_at, stretch=_stretches(runs["submitted_at"], since_at))
    jobs = (
        _Sides(str(key), *(of_job[name].to_numpy() for name in ("runtime_s", "is_after", "stretch")))
        for key, of_job in runs.groupby("group_key", sort=True)
    )
    # not in so few stretches that not even the clearest change could be told from luck
    least_ways = RESOLUTION / params.false_discovery_rate
    sides = [job for job in jobs if math.comb(sum(job.n_stretches), job.n_stretches[1]) >= least_ways]
    # so many that the smallest p-value is a tenth of what the strictest step of Benjamini-Hochberg asks for
    n_deals = min(MAX_PERMUTATIONS, int(np.ceil(RESOLUTION * len(sides) / params.false_discovery_rate)))
    table = pd.DataFrame([_measures(job, n_deals) for job in sides], columns=list(MEASURES))
    from scipy.stats import false_discovery_control  # not above: half a second that other steps need not pay

    table["q_value"] = false_discovery_control(table["p_value"].to_numpy()) if len(table) else np.zeros(0)
    table["has_changed"] = table["q_value"] <= params.false_discovery_rate
    table = pd.concat([table, _shapes(sides, shapes, medians_s or {})], axis=1)
    is_other = table["shape_before"] != table["shape_after"]
    table["has_drifted"] = table["has_changed"] & is_other & (table["log_bayes_factor"] >= np.log(MIN_BAYES_FACTOR))
    order = ["has_drifted", "has_changed", "q_value", "p_value", "log_bayes_factor", "group_key"]
    ascending = [False, False, True, True, False, True]
    table = table.sort_values(order, ascending=ascending, kind="stable", ignore_index=True)
    return table[list(COLUMNS)]


def drift_words(job: Mapping[Any, Any]) -> str:
    """The row of a changed job of `find_drift` as a sentence: what changed, by how much, and how sure that is."""
    medians = f"median {duration(job['median_before_s'])}, now {duration(job['median_after_s'])}"
    if math.isfinite(job["median_factor"]):
        medians += f" ({times(job['median_factor'])})"
    spreads = f"middle half within {duration(job['spread_before_s'])}, now {duration(job['spread_after_s'])}"
    sure = f"{job['n_before']:,} runs before, {job['n_after']:,} since"
    sure += f", expected share of false alarms at most {share(job['q_value'])}"
    kind = "changed"
    if job["has_drifted"]:
        kind = f"drifted from shape {job['shape_before']} to shape {job['shape_after']}"
        power = job["log_bayes_factor"] / LOG_10
        factor = f"over 10^{MOST_POWER} ×" if power > MOST_POWER else times(math.exp(job["log_bayes_factor"]))
        sure += f", two shapes {factor} likelier than one"
    return f"{job['group_key']}: {kind}; {medians}; {spreads}; {sure}"


@dataclass(frozen=True)
class _Sides:
    """The runs of one job, by submission: runtime_s, is_after (since the moment), stretch (of time): (n,) each."""

    group_key: str
    runtime_s: Floats
    is_after: Booleans
    stretch: Ints

    @property
    def before(self) -> Floats:
        return self.runtime_s[~self.is_after]

    @property
    def after(self) -> Floats:
        return self.runtime_s[self.is_after]

    @property
    def n_stretches(self) -> tuple[int, int]:
        """How many stretches the runs before and the runs since are of."""
        before, after = (len(np.unique(self.stretch[side])) for side in (~self.is_after, self.is_after))
        return before, after


def _stretches(submitted_at: pd.Series, moment: pd.Timestamp) -> Ints:
    """Number of the stretch of time of each run, counted from the moment; each its own where nothing came after it."""
    since = (submitted_at - moment).dt.total_seconds().to_numpy(dtype=np.float64)
    last = float(since.max(initial=0.0))
    if last <= 0:
        return np.arange(len(since))
    n_after = max(N_STRETCHES, int(np.ceil(last / (STRETCH_DAYS * DAY_S))))
    whole = np.floor(since * n_after / last).astype(np.int64)
    return np.asarray(np.minimum(whole, n_after - 1))  # the last run of the log is no stretch of its own


def _measures(sides: _Sides, n_deals: int) -> tuple[object, ...]:
    """The row of one job, as in MEASURES. Its permutations depend on its own key only."""
    rng = np.random.default_rng([SEED, crc32(sides.group_key.encode())])
    test = permutation_test(sides.runtime_s, sides.stretch, sides.is_after, rng, max_permutations=n_deals)
    quartiles = [np.quantile(part, [0.25, 0.5, 0.75]) for part in (sides.before, sides.after)]
    (low, median_before, high), (low_after, median_after, high_after) = quartiles
    factor = median_after / median_before if median_before > 0 else np.nan
    sizes = (len(sides.before), len(sides.after), *sides.n_stretches)
    return sides.group_key, *sizes, median_before, median_after, factor, high - low, high_after - low_after, *test


def anderson_darling(values: Floats, is_after: Booleans) -> Floats:
    """The statistic of each deal: (n_deals,). values: (N,) ascending; is_after: (n_deals, N), some but not all.

    With n runs before, m after, and C_j of the after among the j smallest, sum over distinct values, h of which are
    tied at place j, of h (N C_j - m j)² / (j (N - j)) / (n m). Source: Pettitt 1976; ties as in Scholz & Stephens 1987,
    equation 6."""
    n_all = len(values)
    last = np.flatnonzero(np.append(np.diff(values) > 0, True))  # the last of each run of ties
    if len(last) == 1:
        return np.zeros(len(is_after))
    place = (last + 1)[:-1].astype(np.float64)  # j; at the largest value both cdfs are 1
    ties = np.diff(last, prepend=-1)[:-1]  # h
    after = np.cumsum(is_after, axis=1, dtype=np.int32)  # (n_deals, N)
    n_after = after[:, -1].astype(np.float64)  # m
    gap = n_all * after[:, last[:-1]] - n_after[:, None] * place  # (n_deals, n_distinct - 1)
    return np.asarray((gap**2) @ (ties / (place * (n_all - place))) / ((n_all - n_after) * n_after))


def permutation_test(
    values: Floats, stretch: Ints, is_after: Booleans, rng: np.random.Generator, *, max_permutations: int
) -> tuple[float, float]:
    """Statistic and p-value of the values before and after: (N,) each, in any order; ties are fine.

    stretch: number of the stretch of time of each value; those of one stretch are all before or all after and stay
    together; is_after: some but not all. Deals stop when ENOUGH of them were as extreme: p = ENOUGH / deals so far;
    otherwise p = (1 + extreme) / (1 + max_permutations). Either way P(p <= u) is at most u if nothing changed.
    Source: Besag & Clifford 1991."""
    number = np.unique(stretch, return_inverse=True)[1]
    sides = np.bincount(number, weights=is_after) > 0
    order = np.argsort(values, kind="stable")
    ascending, number = values[order], number[order]
    observed = float(anderson_darling(ascending, sides[number][None, :])[0])
    if ascending[0] == ascending[-1]:
        return observed, 1.0
    done = extreme = 0
    block = FIRST_BLOCK
    while done < max_permutations:
        n_deals = min(block, max_permutations - done, max(1, CELLS // len(values)))
        deals = rng.permuted(np.tile(sides, (n_deals, 1)), axis=1)  # (n_deals, n_stretches)
        hits = np.flatnonzero(anderson_darling(ascending, deals[:, number]) >= observed * (1 - ROUNDING))
        if extreme + len(hits) >= ENOUGH:
            return observed, ENOUGH / float(done + hits[ENOUGH - extreme - 1] + 1)
        done, extreme, block = done + n_deals, extreme + len(hits), 4 * block
    return observed, (1 + extreme) / (1 + max_permutations)


def _shapes(sides: list[_Sides], shapes: ShapeSet | None, medians_s: Mapping[str, float]) -> pd.DataFrame:
    """The shape of each job before and since, and the Bayes factor: one row a job."""
    n = len(sides)
    table = pd.DataFrame(
        {"shape_before": np.full(n, -1), "shape_after": -1, "p_shape_before": np.nan, "p_shape_after": np.nan,
         "log_bayes_factor": np.nan}
    )  # fmt: skip
    if shapes is None or not n:
        return table
    medians = [medians_s.get(job.group_key, np.nan) for job in sides]
    medians = [
        float(median) if np.isfinite(median) and median >= 0 else float(np.median(job.before))
        for median, job in zip(medians, sides, strict=True)
    ]
    counts = [_counts([getattr(job, side) for job in sides], medians, shapes) for side in ("before", "after")]
    is_known = (counts[0].sum(axis=1) > 0) & (counts[1].sum(axis=1) > 0)
    for side, side_counts in zip(("before", "after"), counts, strict=True):
        posterior = np.exp(log_posterior(side_counts, shapes.centres))
        table[f"shape_{side}"] = np.where(is_known, posterior.argmax(axis=1), -1)
        table[f"p_shape_{side}"] = np.where(is_known, posterior.max(axis=1), np.nan)
    factors = log_bayes_factors(counts[0], counts[1], shapes)
    table["log_bayes_factor"] = np.where(is_known, factors, np.nan)
    return table


def _counts(runtimes_s: list[Floats], medians_s: list[float], shapes: ShapeSet) -> Counts:
    """Runs in each bin of the shapes: (n_groups, n_bins). A job whose median is 0 has no ratios, so none."""
    sizes = [len(times_s) for times_s in runtimes_s]
    values = normalise(np.concatenate(runtimes_s), np.repeat(medians_s, sizes), shapes.bins.kind)
    return histogram(values, np.repeat(np.arange(len(sizes)), sizes), len(sizes), shapes.bins)


def log_bayes_factors(before: ArrayLike, after: ArrayLike, shapes: ShapeSet) -> Floats:
    """log P(runs | different shapes) / P(runs | one shape), natural log: (n_groups,); above 0 speaks for a change.

    before, after: (n_groups, n_bins) runs in each bin. With L_k and M_k the likelihoods of shape k before and after, of
    K shapes that are as likely beforehand, one shape has sum_k L_k M_k / K, two have
    sum_{j != k} L_j M_k / (K² - K). A group without runs on one side has 0: no evidence. A single shape leaves nothing
    to change to: -inf."""
    k = len(shapes.n_groups)
    first, second = (log_likelihood(counts, shapes.centres).T for counts in (before, after))  # (k, n_groups)
    if k == 1:
        return np.full(first.shape[1], -np.inf)
    one_shape = np.logaddexp.reduce(first + second) - np.log(k)
    pairs = [first[i] + second[j] for i in range(k) for j in range(k) if i != j]
    return np.asarray(np.logaddexp.reduce(pairs) - np.log(k * k - k) - one_shape)
