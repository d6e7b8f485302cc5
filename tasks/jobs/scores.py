"""How good predicted runtime distributions were: CRPS, log-score, coverage of intervals, PIT and its calibration.

Every measure comes with the number of runs behind it, and with a reason where it cannot be computed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.jobs.distribution import Floats, Predicted, checked_times

LOG_FLOOR = -20.0  # nats: a density of 2e-9 per unit of log runtime counts as much as none
LEVEL = 0.9
CALIBRATION_LEVELS = tuple((np.arange(1, 20) / 20).tolist())  # 0.05, 0.10 ... 0.95


@dataclass(frozen=True)
class Score:
    """value: mean over n runs, None if there is none; n_left_out: runs without a score; reason: why, if any."""

    value: float | None
    n: int
    n_left_out: int = 0
    reason: str | None = None


@dataclass(frozen=True)
class Coverage:
    """Central intervals that should hold a share `level` of the runs: the share they held, and what lay outside.

    width_s: mean width in seconds: of two predictions that cover alike, the narrower is better."""

    level: float
    share: float | None
    below: float | None
    above: float | None
    width_s: float | None
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class Calibration:
    """How far PIT values are from uniform. error: mean over the levels of |share of values <= level - level|.

    largest: the largest such difference over all levels (Kolmogorov–Smirnov); shares: one for each level."""

    error: float | None
    largest: float | None
    levels: tuple[float, ...]
    shares: tuple[float, ...]
    n: int
    reason: str | None = None


def crps_of(predicted: Predicted, runtime_s: Any) -> Score:
    """Mean CRPS in seconds, smaller is better; runtime_s: (n,). A sure prediction scores its absolute error.

    Source: Gneiting & Raftery 2007, 4.2. Raises ValueError for NaN."""
    if predicted.n == 0:
        return Score(None, 0, reason="no runs to score")
    return Score(float(predicted.crps(_runs(predicted, runtime_s)).mean()), predicted.n)


def log_scores(predicted: Predicted, runtime_s: Any, *, floor: float = LOG_FLOOR) -> Floats:
    """Log density of log runtime of each run, at least `floor`, larger is better; NaN for runs of 0 s.

    (n,). Being a density of log runtime it has no unit. Source: Good 1952; Gneiting & Raftery 2007, 4.1."""
    times = _runs(predicted, runtime_s)
    scores = np.maximum(predicted.log_density(times), floor)
    return np.where(times > 0, scores, np.nan)


def log_score_of(predicted: Predicted, runtime_s: Any, *, floor: float = LOG_FLOOR) -> Score:
    """Mean log-score in nats, larger is better; runs of 0 s are left out, since 0 has no logarithm.

    runtime_s: (n,). The floor keeps one run where nothing was thought possible from deciding the mean."""
    if predicted.n == 0:
        return Score(None, 0, reason="no runs to score")
    scores = log_scores(predicted, runtime_s, floor=floor)
    is_there = ~np.isnan(scores)
    n, n_left_out = int(is_there.sum()), int((~is_there).sum())
    reason = f"{n_left_out} runs of 0 s have no log runtime" if n_left_out else None
    return Score(float(scores[is_there].mean()) if n else None, n, n_left_out, reason)


def coverage_of(predicted: Predicted, runtime_s: Any, *, level: float = LEVEL) -> Coverage:
    """Share of runs inside their central interval, ends included; runtime_s: (n,).

    Raises ValueError for a level outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level {level:g}: expected a share between 0 and 1, such as 0.9")
    if predicted.n == 0:
        return Coverage(level, None, None, None, None, 0, "no runs to score")
    times = _runs(predicted, runtime_s)
    ends = predicted.quantile(np.broadcast_to([(1 - level) / 2, (1 + level) / 2], (predicted.n, 2)))
    below, above = float((times < ends[:, 0]).mean()), float((times > ends[:, 1]).mean())
    width_s = float((ends[:, 1] - ends[:, 0]).mean())
    return Coverage(
        level, float(((times >= ends[:, 0]) & (times <= ends[:, 1])).mean()), below, above, width_s, len(times)
    )


def pit_values(predicted: Predicted, runtime_s: Any, rng: np.random.Generator) -> Floats:
    """Probability that was predicted to lie below each run: uniform if the predictions are calibrated; (n,).

    Where single values have a probability, a number drawn from [P(< x), P(<= x)]; rng is used only there.
    Source: Dawid 1984; Czado, Gneiting & Held 2009 for the draw."""
    times = _runs(predicted, runtime_s)
    low, high = predicted.cdf_below(times), predicted.cdf(times)
    is_tied = high > low
    values = high.copy()
    values[is_tied] = low[is_tied] + rng.uniform(size=int(is_tied.sum())) * (high - low)[is_tied]
    return values


def calibration_of(pit: Any, *, levels: tuple[float, ...] = CALIBRATION_LEVELS) -> Calibration:
    """How far PIT values, (n,), are from uniform; n uniform values have an error of about 0.3 / sqrt(n).

    Raises ValueError for values outside [0, 1]."""
    values = np.sort(np.asarray(pit, dtype=np.float64))
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"pit: shape {values.shape}; expected (n,) values from 0 to 1")
    n = len(values)
    if n == 0:
        return Calibration(None, None, levels, (), 0, "no runs to score")
    shares = np.searchsorted(values, levels, side="right") / n
    steps = np.arange(n + 1) / n
    largest = max(float(np.max(steps[1:] - values)), float(np.max(values - steps[:-1])))
    error = float(np.abs(shares - np.asarray(levels)).mean())
    return Calibration(error, largest, levels, tuple(shares.tolist()), n)


def _runs(predicted: Predicted, runtime_s: Any) -> Floats:
    times = checked_times("runtime_s", runtime_s, predicted.n)
    if times.ndim != 1:
        raise ValueError(f"runtime_s: shape {times.shape}; expected ({predicted.n},), one run for each instance")
    return times
