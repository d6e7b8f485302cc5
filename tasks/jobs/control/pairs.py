"""Matched pairs: runs done again unchanged, and again with one thing changed; the change as it was measured, and what a
predicted change can claim beside it, in sentences.

A `baseline` repeats a run of the log unchanged, and each changed run names the baseline that it is paired with. The
pair of a run and its own baseline, `replay`, says how much two runs differ when nothing was changed on purpose."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.control.effects import MAX_UNLIKE_SHARE, N_ATOMS, OUTLIER_RATIO, Support, moments
from tasks.jobs.distribution import Empirical, Floats
from tasks.jobs.scores import CONFIDENCE, Difference, bootstrap_difference, wilson
from tasks.quantities import counted, digits

BASELINE, REPLAY = "baseline", "replay"
DEAD_BAND = 0.05  # of a log runtime ratio: what changed by less has no direction
N_FOLDS = 5  # of jobs, over which the mean change is fitted and tried
MIN_CORRELATED = 3
NEEDED = ("run_id", "group_key", "what_if", "matched_run_id", "runtime_s")
SIDES = ["measured_before", "measured_after", "predicted_before", "predicted_after"]
LEVELS = (0.25, 0.75, 0.95)
ROUNDING = 1e-9  # of equal runtimes the variance is not quite 0


@dataclass(frozen=True)
class Pairs:
    """frame: one row a pair; reason: why there is no pair.

    Columns of frame: what_if (no_spare, newest_sku, …, or replay), group_key, row_before and row_after (positions in
    the runs, for their features), before_s and after_s, log_ratio (of after to before)."""

    frame: pd.DataFrame
    reason: str | None

    def of(self, what_if: str) -> pd.DataFrame:
        """The pairs of one change, index 0 … n - 1."""
        return self.frame[self.frame["what_if"] == what_if].reset_index(drop=True)


def match_pairs(runs: pd.DataFrame) -> Pairs:
    """The pairs among runs as read_runs(with_what_ifs=True) gives them, in the order of the changed runs.

    A job whose plan changed in between counts under the key of its baseline; a runtime of 0 s or none makes no pair."""
    frame = pd.DataFrame({name: runs.get(name, pd.Series(np.nan, runs.index, dtype=object)) for name in NEEDED})
    frame = frame.reset_index(drop=True).assign(row=np.arange(len(runs)))
    changed = frame[frame["what_if"].notna()]
    changed = changed.assign(kind=changed["what_if"].where(changed["what_if"] != BASELINE, REPLAY))
    before = frame.assign(is_baseline=frame["what_if"] == BASELINE).drop_duplicates("run_id")
    both = changed.merge(before, left_on="matched_run_id", right_on="run_id", suffixes=("_after", "_before"))
    # a changed run is paired with a baseline, a baseline with the run that it repeats
    both = both[both["is_baseline"] != (both["kind"] == REPLAY)].sort_values("row_after", kind="stable")
    times = both[["runtime_s_before", "runtime_s_after"]].astype(float)
    both = both[((times > 0) & (times < np.inf)).all(axis=1)]
    names = {"kind": "what_if", "group_key_before": "group_key"}
    names |= {"runtime_s_before": "before_s", "runtime_s_after": "after_s"}
    pairs = both[[*names, "row_before", "row_after"]].rename(columns=names).reset_index(drop=True)
    pairs = pairs.astype({"before_s": float, "after_s": float})
    pairs = pairs.assign(log_ratio=np.log(pairs["after_s"] / pairs["before_s"]))
    if len(pairs):
        return Pairs(pairs, None)
    if len(changed):
        lacking = "none has its partner, both with a runtime above 0 s"
        return Pairs(pairs, f"{len(changed):,} runs repeat another, but {lacking}")
    return Pairs(pairs, "no run of this log repeats another with something changed (what_if, matched_run_id)")


def predicted_change(before: Empirical, after: Empirical) -> Floats:
    """Log of the predicted median runtime after over before, (n,), of the same instances; NaN for a median of 0 s."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.log(after.quantile(0.5) / before.quantile(0.5))
    return np.where(np.isfinite(log_ratio), log_ratio, np.nan)


@dataclass(frozen=True)
class Directions:
    """Of n pairs that have a direction, the share that was foretold right, with its Wilson interval; those foretold to
    stay exactly alike count as wrong. n_in_band: pairs left out, whose log runtime changed by less than DEAD_BAND."""

    n: int
    share: float | None
    low: float | None
    high: float | None
    n_in_band: int


@dataclass(frozen=True)
class PairScore:
    """One change, over n pairs of n_groups jobs. mean_measured, mean_predicted: of the log runtime ratios.

    mae: mean absolute error of the log ratio, and of the same pairs for "no change" and for the mean change of other
    jobs (folds). versus_…: model less the other, below 0 where the model is better, with its interval over jobs.
    directions_mean_change: had each pair gone as the mean of other jobs. correlation: Pearson's, None for fewer than
    MIN_CORRELATED pairs or where all are alike."""

    n: int
    n_groups: int
    mean_measured: float | None = None
    mean_predicted: float | None = None
    directions: Directions | None = None
    directions_mean_change: Directions | None = None
    mae: float | None = None
    mae_no_change: float | None = None
    mae_mean_change: float | None = None
    versus_no_change: Difference | None = None
    versus_mean_change: Difference | None = None
    correlation: float | None = None
    reason: str | None = None


def score_pairs(measured: Any, predicted: Any, groups: Any, rng: np.random.Generator) -> PairScore:
    """Predicted beside measured log runtime ratios of the pairs of one change; measured, predicted, groups: (n,).

    Pairs whose prediction is NaN are left out; no pair is a reason, not an error."""
    real, forecast, keys = np.asarray(measured, dtype=float), np.asarray(predicted, dtype=float), np.asarray(groups)
    is_there = np.isfinite(forecast)
    real, forecast, keys = real[is_there], forecast[is_there], keys[is_there]
    n_groups = len(np.unique(keys))
    if not len(real):
        return PairScore(0, 0, reason="no matched pair with a measured and a predicted change")
    usual = mean_of_others(real, keys, rng)
    error, none, mean = np.abs(forecast - real), np.abs(real), np.abs(usual - real)
    is_correlated = len(real) >= MIN_CORRELATED and np.ptp(forecast) > 0 and np.ptp(real) > 0
    return PairScore(
        len(real),
        n_groups,
        mean_measured=float(real.mean()),
        mean_predicted=float(forecast.mean()),
        directions=directions_of(real, forecast),
        directions_mean_change=directions_of(real, usual) if n_groups > 1 else None,
        mae=float(error.mean()),
        mae_no_change=float(none.mean()),
        mae_mean_change=float(mean.mean()) if n_groups > 1 else None,
        versus_no_change=bootstrap_difference(error, none, keys, rng),
        versus_mean_change=bootstrap_difference(error, mean, keys, rng),
        correlation=float(np.corrcoef(real, forecast)[0, 1]) if is_correlated else None,
        reason="one job: no other to take a mean change from" if n_groups == 1 else None,
    )


def directions_of(measured: Floats, predicted: Floats) -> Directions:
    """Share of right directions over the pairs that changed by at least DEAD_BAND; (n,) log ratios.

    The interval takes pairs as independent; those of one job are not quite. Source: Wilson 1927."""
    is_predicted = np.isfinite(predicted)
    has_direction = is_predicted & (np.abs(measured) >= DEAD_BAND)
    n_in_band = int((is_predicted & ~has_direction).sum())
    real, forecast = np.sign(measured[has_direction]), np.sign(predicted[has_direction])
    n, n_right = len(real), int((real == forecast).sum())
    if n == 0:
        return Directions(0, None, None, None, n_in_band)
    return Directions(n, n_right / n, *wilson(n_right, n, CONFIDENCE), n_in_band)


def mean_of_others(measured: Floats, groups: Any, rng: np.random.Generator) -> Floats:
    """For each pair the mean change over the pairs of the other folds' jobs: (n,); NaN if there is only one job.

    Whole jobs are dealt at random into N_FOLDS folds, or as many as there are jobs."""
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(number.max(initial=-1)) + 1
    n_folds = min(N_FOLDS, n_groups)
    if n_folds < 2:
        return np.full(len(measured), np.nan)
    fold = (rng.permutation(n_groups) % n_folds)[number]
    sums, sizes = np.bincount(fold, weights=measured, minlength=n_folds), np.bincount(fold, minlength=n_folds)
    return np.asarray(((sums.sum() - sums) / (sizes.sum() - sizes))[fold])


@dataclass(frozen=True)
class Comparison:
    """One change over its pairs. score: log runtime ratio of each pair; measured, predicted: (score.n,) those ratios.

    overall: all pairs with a historic median as one sample, runtimes over it: rows p95, variance, log_variance, gap and
    outlier_share, columns SIDES."""

    what_if: str
    score: PairScore
    overall: pd.DataFrame
    measured: Floats
    predicted: Floats


def compare(
    pairs: pd.DataFrame, before: Empirical, after: Empirical, medians_s: Floats, what_if: str, rng: np.random.Generator
) -> Comparison:
    """pairs: of Pairs.of(what_if), (n,); before, after: predicted for the features of each baseline as they are, and
    with the change made in them; medians_s: (n,) historic medians of their jobs, NaN where unknown."""
    predicted, measured = predicted_change(before, after), pairs["log_ratio"].to_numpy(dtype=np.float64)
    at, is_predicted = np.flatnonzero(np.isfinite(medians_s) & (medians_s > 0)), np.isfinite(predicted)
    overall: dict[str, dict[str, float]] = {}
    for side, foretold in (("before", before), ("after", after)) if len(at) else ():
        real = pairs[f"{side}_s"].to_numpy(dtype=float)[at] / medians_s[at]
        values, weights = foretold.rows(at).atoms(N_ATOMS)  # of the mixture of the predictions, each run counted alike
        overall[f"measured_{side}"] = spread_of(real, np.full(len(at), 1 / len(at)))
        overall[f"predicted_{side}"] = spread_of((values / medians_s[at][:, None]).ravel(), weights.ravel() / len(at))
    score = score_pairs(measured, predicted, pairs["group_key"].to_numpy(), rng)
    table = pd.DataFrame(overall, columns=SIDES)
    return Comparison(what_if, score, table, measured[is_predicted], predicted[is_predicted])


def spread_of(values: Floats, weights: Floats) -> dict[str, float]:
    """95th percentile, variances of the runtime and of its log (free of its level; over values above 0), 25th-75th gap
    and share of outliers of runtimes over the historic median, (m,), whose weights sum to 1."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order])
    p25, p75, p95 = values[order][np.searchsorted(upto, np.array(LEVELS) - ROUNDING).clip(max=len(values) - 1)]
    is_positive = values > 0
    logs, log_weights = np.log(values[is_positive]), weights[is_positive]
    mean, sd = moments(values[None], weights[None])
    log_mean, log_sd = moments(logs[None], (log_weights / log_weights.sum())[None])
    return {
        "p95": p95,
        "variance": sd[0] ** 2 if sd[0] > ROUNDING * mean[0] else 0.0,
        "log_variance": log_sd[0] ** 2 if log_sd[0] > ROUNDING * max(1.0, abs(log_mean[0])) else 0.0,
        "gap": p75 - p25,
        "outlier_share": float(weights[values >= OUTLIER_RATIO].sum()),
    }


@dataclass(frozen=True)
class Noise:
    """How much two runs differ when nothing was changed on purpose: the log runtime ratio of a run and its replay.

    mean_absolute: no prediction of single runs can be expected to miss by less; None without such runs."""

    n: int
    mean_absolute: float | None


def noise_of(pairs: Pairs) -> Noise:
    """The noise of single runs, from runs that were repeated unchanged."""
    ratios = pairs.of(REPLAY)["log_ratio"].to_numpy(dtype=float)
    return Noise(len(ratios), float(np.abs(ratios).mean()) if len(ratios) else None)


WORDS = {"gap_s": "the 25th-75th gap", "p95_s": "the 95th percentile", "median_s": "the median runtime"}
OVERALL = {"p95": "95th percentile", "gap": "25th-75th gap"}
MOST_NAMED = 3
ALWAYS = (
    "The model was trained on runs as they happened, not on an experiment: runs with few spare tokens, or on one kind "
    "of machine, may differ from others in ways that it does not see, and it takes these for an effect of the change.",
    "Each run is changed by itself. If all jobs were changed, load, queues and free tokens would change with them; "
    "nothing of that is in the prediction.",
    "The runtimes of earlier runs are left as they were: the prediction is for the next run of a job, not for later "
    "ones, whose history would hold the change.",
    "The intervals say how the mean would vary with other jobs like these, and hold nothing of the model's own error.",
)


@dataclass(frozen=True)
class Claims:
    """Sentences; can: what the figures support, cannot: what they do not."""

    can: list[str]
    cannot: list[str]


def make_claims(changes: pd.DataFrame, support: Support, score: PairScore | None) -> Claims:
    """Claims of one change. changes, support: of its Outcome; score: the same change on its matched pairs, if there are
    any. What the pairs do not bear out is no claim, though it was predicted."""
    predicted = [_predicted(WORDS[str(key)], row) for key, row in changes.iterrows() if key in WORDS and row["n_runs"]]
    versus = score.versus_no_change if score else None
    is_refuted = versus is not None and versus.high is not None and not _is_better(versus)
    can = [] if is_refuted else [f"Predicted: {line}" for line in predicted]
    cannot = [f"Predicted, but the measured pairs do not bear it out: {line}" for line in predicted * is_refuted]
    cannot += ALWAYS
    if score is None or score.n == 0:
        why = f" ({score.reason})" if score is not None else ""
        cannot.insert(0, f"Nothing measured stands behind it: no run was done again with this change{why}.")
    else:
        can += _measured(score)
        is_good, verdict = _verdict(score)
        (can if is_good else cannot).append(verdict)
    return Claims(can, cannot + _support(support))


def describe_overall(overall: pd.DataFrame) -> Claims:
    """One sentence for each of OVERALL: a claim where it was foretold to go as it went. overall: of Comparison."""
    claims = Claims([], [])
    for name, words in OVERALL.items():
        if name not in overall.index or overall.loc[name].isna().any():
            continue
        before, after, old, new = (float(x) for x in np.asarray(overall.loc[name], dtype=np.float64))
        line = (
            f"Measured over all pairs together: the {words}, over the historic median, went from {digits(before)} to "
            f"{digits(after)}; foretold was {digits(old)} to {digits(new)}"
        )
        is_right = (after - before) * (new - old) > 0
        (claims.can if is_right else claims.cannot).append(f"{line}." if is_right else f"{line}, the other way.")
    return claims


def describe_noise(noise: Noise) -> list[str]:
    """How much runs differ anyway; nothing without runs that were repeated unchanged."""
    if noise.mean_absolute is None:
        return []
    return [
        f"How long a single run will take: {noise.n:,} runs that were repeated unchanged differ by "
        f"{noise.mean_absolute:.3f} in the logarithm on average."
    ]


def _predicted(words: str, row: pd.Series) -> str:
    mean = f"{words} of a run goes from {digits(row['before'])} to {digits(row['after'])} s on average"
    over = f"over {counted(int(row['n_runs']), 'run')} of {counted(int(row['n_groups']), 'job')}"
    if pd.isna(row["low"]):
        return f"{mean} {over} ({row['reason']})."
    low, high = (digits(row[end], sign="+") for end in ("low", "high"))
    is_open = row["low"] <= 0 <= row["high"]
    interval = f"{100 * CONFIDENCE:g} % interval of the change {low} to {high} s"
    return f"{mean}, {interval}, {over}" + ("; its direction is open." if is_open else ".")


def _measured(score: PairScore) -> list[str]:
    real, foretold = (100 * (math.exp(mean or 0) - 1) for mean in (score.mean_measured, score.mean_predicted))
    lines = [f"Measured: the geometric mean of the runtimes changed by {real:+.1f} %; foretold were {foretold:+.1f} %."]
    ours, others = score.directions, score.directions_mean_change
    if ours is not None and ours.n:
        known = others is not None and others.share is not None
        beside = f"; as the mean of other jobs {100 * (others.share or 0):.0f} %" if others and known else ""
        lines.append(
            f"Measured: of {ours.n:,} pairs that changed by {100 * DEAD_BAND:g} % or more ({ours.n_in_band:,} "
            f"changed less), the direction was foretold right in {100 * (ours.share or 0):.0f} % "
            f"({100 * (ours.low or 0):.0f} to {100 * (ours.high or 0):.0f} %){beside}."
        )
    usual = "" if score.mae_mean_change is None else f", {score.mae_mean_change:.3f} by the mean change of other jobs"
    over = f"{counted(score.n, 'pair')} of {counted(score.n_groups, 'job')}"
    lines.append(
        f"Measured: the log runtime ratio is missed by {score.mae:.3f} on average over {over}; by "
        f"{score.mae_no_change:.3f} if no change is assumed{usual}."
    )
    return lines


def _verdict(score: PairScore) -> tuple[bool, str]:
    """Whether single runs' changes are foretold better than by both simple answers, and the sentence."""
    if score.versus_no_change is None or score.versus_no_change.high is None:
        return False, "That it knows which runs change by how much: pairs of one job do not tell."
    words = {"no change": score.versus_no_change, "the mean change of other jobs": score.versus_mean_change}
    if all(map(_is_better, words.values())):
        return True, "The change of a single run is foretold better than by no change and by the mean of other jobs."
    parts = []
    for name, difference in words.items():
        is_worse = difference is not None and difference.low is not None and difference.low > 0
        how = "better than" if _is_better(difference) else "worse than" if is_worse else "not told apart from"
        parts.append(f"{how} {name}")
    return False, f"That it knows which runs change by how much: over the measured pairs it is {' and '.join(parts)}."


def _is_better(difference: Difference | None) -> bool:
    return difference is not None and difference.high is not None and difference.high < 0


def _support(support: Support) -> list[str]:
    if support.share is None:
        return ["Any effect: the change alters no feature of any of these runs."]
    if not support.share:
        return []
    names = sorted(support.outside, key=lambda name: -support.outside[name])[:MOST_NAMED]
    most = f", most often by {', '.join(names)}" if names else ""
    return [
        f"{100 * support.share:.1f} % of the {support.n_changed:,} changed runs are extrapolated: "
        f"{100 * (support.share_outside or 0):.1f} % lie outside the training range of a changed feature{most}; "
        f"{100 * (support.share_unlike or 0):.1f} % are less like any training run than "
        f"{100 * (1 - MAX_UNLIKE_SHARE):g} % of the unchanged runs are."
    ]
