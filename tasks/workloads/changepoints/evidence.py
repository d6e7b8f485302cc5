"""The season and the noise of a series, as its evidence supports them.

What swings with a period, and what depends on the sample before it, looks like change after change to a model of
independent noise. So a series is told by one of several models, that with the largest marginal likelihood summed over
all segmentations: no season, or one of at most three periods (of the values or, where all are positive, of their
logarithm), with noise of several correlations and variances. A season's parameters cost what BIC takes for them.

How far noise may wander is limited. People call it a change when a series leaves its level for long, by as much as the
series varies; noise that all but walks is therefore believed in only where it is small beside the whole series.

Sources: Adams and MacKay 2007 (evidence of run lengths); Schwarz 1978 (BIC); Cleveland et al. 1990 (season as the mean
of each phase beside a moving average)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tasks.workloads.changepoints.online import PriorParams, filter_run_lengths, predictive_tables

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Chosen on the folder tcpd and on series of known truth of 42 kinds.
CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
WIDEST_WANDERING = 0.8  # largest correlation of noise that is not small beside the series
NOISES = (0.5, 0.2, 0.07, 0.02, 0.007, 0.002)  # stationary variance of the noise over that of the series
SMALL_NOISE = 0.01  # of NOISES, from which noise may all but walk
ALPHA = 10.0  # half the samples that the variance of the noise is worth: segments differ little in it
RISE = 3.0  # prior deviation of a line's rise, in deviations of the series
STARTS = ((4, 1), (4, 2), (2, 3), (7, 5))  # of the search, as places in CORRELATIONS and NOISES
SEASON_STARTS = ((4, 2), (7, 5))

CHOICE_SAMPLES = 2000  # the model is chosen on so many samples, from the middle of a longer series
PRUNE_NATS, MAX_RUN_LENGTHS = 20.0, 100  # of the filter while models are compared
SERIES_A_CHANGE = 10  # series of this length hold one change, before any is seen

MOST_PERIODS = 3
LONGEST_PERIOD = CHOICE_SAMPLES // 3  # a season is seen three times at least
LEAST_SHARE = 0.1  # of the variance beside the moving average that a period must explain to be tried
OF_MULTIPLE = 0.05  # so much more must a multiple of a period explain
MOST_HARMONICS = 40
MARGIN_NATS = 3.0  # by which a season must be better than none
MARGIN_OF_LOGARITHM = 0.05  # nats a sample by which a season must be better than none among logarithms
TINY = 1e-9  # deviations: what is left of a series that is its season


@dataclass(frozen=True)
class SeriesModel:
    """What a series was told by. period: samples, 0: no season. noise: variance over that of what is left.

    values: (n,) the series less its season, in its own deviations. evidence: log marginal likelihood of the samples
    that the model was chosen on, in deviations of the series."""

    values: Floats
    period: int
    is_logarithmic: bool
    correlation: float
    noise: float
    evidence: float

    def in_words(self) -> list[str]:
        """What was seen, in words; nothing where samples are independent and nothing returns."""
        logarithm = ", larger where the level is higher" if self.is_logarithmic else ""
        season = [f"a period of {self.period:,} samples{logarithm}"] if self.period else []
        return season + ([f"samples autocorrelated {self.correlation:g}"] if self.correlation else [])


def prior_of(noise: float) -> PriorParams:
    """Levels as wide as the series, lines that rise a few of its deviations, noise of this variance."""
    return PriorParams(kappa=noise, alpha=ALPHA, noise=noise, trend_span=RISE / noise**0.5)


def expected_length(n_samples: int) -> float:
    """Samples between two changes that are expected of a series."""
    return float(max(SERIES_A_CHANGE * n_samples, 2))


def best_model(values: Floats, raw: Floats, rows: Ints, min_segment: int) -> SeriesModel:
    """The model of one series. values: (n,) standardised, none missing; raw: (n,) as they were measured.

    rows: (n,) rising, when each was sampled: a season goes on through what is missing."""
    best = _with_noise(values, min_segment, STARTS)
    for season in _seasons(values, rows):
        best = _better(best, _less_season(values, season, min_segment), MARGIN_NATS)
    if raw.min() <= 0:
        return best
    logs = np.log(raw)
    spread = float(logs.std(ddof=1))
    if spread <= TINY or not _periods(_filled(logs, rows), 1):
        return best
    logs_scaled = (logs - logs.mean()) / spread
    part = _choice(len(raw))
    # densities of logarithms as densities of values, both in deviations
    jacobian = float((np.log(raw.std(ddof=1) / spread) - logs[part]).sum())
    plain = _with_noise(logs_scaled, min_segment, STARTS).evidence
    least = plain + max(MARGIN_NATS, MARGIN_OF_LOGARITHM * len(logs[part]))
    for season in _seasons(logs_scaled, rows):
        model = _less_season(logs_scaled, season, min_segment)
        if model.evidence > least:
            best = _better(best, replace(model, evidence=model.evidence + jacobian, is_logarithmic=True), MARGIN_NATS)
    return best


def best_noise(
    values: Floats, min_segment: int, starts: tuple[tuple[int, int], ...] = STARTS
) -> tuple[float, int, int]:
    """Log evidence and the places in CORRELATIONS and NOISES of the best noise. values: (n, d), as the filter takes it.

    The best of the starts, each followed uphill to a model that no neighbour betters."""
    part = np.ascontiguousarray(values[_choice(len(values))])
    log_hazard = np.log([1 / expected_length(len(values)), 1 - 1 / expected_length(len(values))])
    known: dict[tuple[int, int], float] = {}

    def evidence(place: tuple[int, int]) -> float:
        if place not in known:
            correlation, noise = CORRELATIONS[place[0]], NOISES[place[1]]
            tables = predictive_tables(prior_of(noise), len(part), correlation)
            filtered = filter_run_lengths(part, tables, log_hazard, min_segment, PRUNE_NATS, MAX_RUN_LENGTHS)
            known[place] = float(filtered[0][-1])
        return known[place]

    for place in starts:
        at: tuple[int, int] | None = place
        while at is not None:
            now = at
            uphill = [near for near in _neighbours(now) if evidence(near) > evidence(now)]
            at = max(uphill, key=evidence, default=None)
    best = max(known, key=evidence)
    return known[best], *best


def _neighbours(place: tuple[int, int]) -> Iterator[tuple[int, int]]:
    for more, wider in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)):
        i, j = place[0] + more, place[1] + wider
        if not (0 <= i < len(CORRELATIONS) and 0 <= j < len(NOISES)):
            continue
        if CORRELATIONS[i] <= WIDEST_WANDERING or NOISES[j] <= SMALL_NOISE:
            yield i, j


def _better(best: SeriesModel, other: SeriesModel, margin: float) -> SeriesModel:
    return other if other.evidence > best.evidence + margin else best


def _choice(n: int) -> slice:
    start = max(0, (n - CHOICE_SAMPLES) // 2)
    return slice(start, start + CHOICE_SAMPLES)


def _with_noise(values: Floats, min_segment: int, starts: tuple[tuple[int, int], ...]) -> SeriesModel:
    evidence, i, j = best_noise(values[:, None], min_segment, starts)
    return SeriesModel(values, 0, False, CORRELATIONS[i], NOISES[j], evidence)


def _less_season(values: Floats, season: tuple[int, Floats, int], min_segment: int) -> SeriesModel:
    period, swing, n_parameters = season
    left = values - swing
    spread = max(float(left.std(ddof=1)), TINY)
    model = _with_noise((left - left.mean()) / spread, min_segment, SEASON_STARTS)
    n = min(len(values), CHOICE_SAMPLES)
    cost = n * np.log(spread) + 0.5 * n_parameters * np.log(n)
    return replace(model, period=period, evidence=model.evidence - float(cost))


def _seasons(values: Floats, rows: Ints) -> Iterator[tuple[int, Floats, int]]:
    """For each season that is worth a trial: its period, its value at each sample (n,), and its number of parameters.

    A period that holds another one several times, as a week holds days, is also tried as the shorter season with a
    level for each: few harmonics tell of a weekend, and too many of it all."""
    filled = _filled(values, rows)
    periods = _periods(filled, MOST_PERIODS)
    apart = {period: filled - _moving_average(filled, period) for period in periods}
    patterns = {period: _pattern(apart[period], period) for period in periods}
    nested = [
        _with_levels(patterns[short][0], patterns[short][1], apart[period], short, period)
        for period in periods
        for short in periods
        if short < period and period % short == 0
    ]
    for pattern, n_parameters in (*patterns.values(), *nested):
        yield len(pattern), pattern[(rows - rows[0]) % len(pattern)], n_parameters


def _with_levels(swing: Floats, n_of_swing: int, apart: Floats, short: int, period: int) -> tuple[Floats, int]:
    """A season and its number of parameters: a shorter one, again and again, and a level each time, (period,).

    apart: (n,) distances from the moving average over the longer period, which a change of level bends for as long:
    hence medians over its turns. The levels begin where they differ most."""
    turns = np.pad(apart, (0, -len(apart) % period), constant_values=np.nan).reshape(-1, period)
    swings = np.resize(swing, period)
    left = np.nanmedian(turns, axis=0) - swings
    levels = np.array([np.roll(left, -at).reshape(-1, short).mean(axis=1) for at in range(short)])
    begin = int(levels.var(axis=1).argmax())
    return swings + np.roll(np.repeat(levels[begin], short), begin), n_of_swing + period // short


def _filled(values: Floats, rows: Ints) -> Floats:
    """A value for each row from the first to the last, between neighbours where none was sampled."""
    return np.interp(np.arange(rows[0], rows[-1] + 1), rows, values)


def _periods(values: Floats, most: int) -> list[int]:
    """At most so many periods whose phases explain most of what lies beside their moving average, the best first."""
    part = np.ascontiguousarray(values[_choice(len(values))])
    longest = min(len(part) // 3, LONGEST_PERIOD)
    if longest < 2:
        return []
    share = _explained(part, longest)
    peaks = [
        period
        for period in range(2, longest + 1)
        if share[period] > LEAST_SHARE
        and share[period] >= share[max(period - 1, 2)]
        and (period == longest or share[period] >= share[period + 1])
    ]
    periods: list[int] = []
    for period in sorted(peaks, key=lambda peak: -share[peak]):
        if not any(period % other == 0 and share[period] < share[other] + OF_MULTIPLE for other in periods):
            periods.append(period)
    return periods[:most]


@njit(cache=True)
def _moving_average(values: Floats, period: int) -> Floats:
    """The centred mean over a period, half weights at both ends of an even one; NaN where it does not fit."""
    n, half = len(values), period // 2
    sums, means = np.zeros(n + 1), np.full(n, np.nan)
    for i in range(n):
        sums[i + 1] = sums[i] + values[i]
    for i in range(half, n - half):
        if period % 2:
            means[i] = (sums[i + half + 1] - sums[i - half]) / period
        else:
            means[i] = (sums[i + half] - sums[i - half + 1] + 0.5 * (values[i - half] + values[i + half])) / period
    return means


@njit(cache=True)
def _explained(values: Floats, longest: int) -> Floats:
    """Adjusted share of variance beside the moving average that the means of a period's phases explain: (longest + 1,).

    Minus infinity where a phase is there less than twice."""
    n = len(values)
    shares = np.full(longest + 1, -np.inf)
    for period in range(2, longest + 1):
        average = _moving_average(values, period)
        sums, counts, total, seen = np.zeros(period), np.zeros(period), 0.0, 0
        for i in range(period // 2, n - period // 2):
            apart = values[i] - average[i]
            sums[i % period] += apart
            counts[i % period] += 1
            total += apart * apart
            seen += 1
        if counts.min() < 2 or total <= 0:
            continue
        explained = (sums * sums / counts).sum()
        shares[period] = 1 - (1 - explained / total) * (seen - 1) / max(seen - period, 1)
    return shares


def _pattern(apart: Floats, period: int) -> tuple[Floats, int]:
    """The season and its number of parameters: the strongest harmonics, as many as BIC takes.

    (period,), or less where these all repeat sooner: a swing of 31 samples is told by its harmonic of 186 as well.
    apart: (n,) distances from the moving average, NaN where there is none."""
    rows = np.flatnonzero(~np.isnan(apart))
    phases, seen = rows % period, apart[rows]
    counts = np.bincount(phases, minlength=period)
    means = np.bincount(phases, weights=seen, minlength=period) / np.maximum(counts, 1)
    waves = np.fft.rfft(means - means.mean())
    kept, best, least = np.zeros_like(waves), (np.zeros(period), 0), np.inf
    total, n_parameters = float((seen**2).sum()) or 1.0, 0
    for harmonic in (np.argsort(-np.abs(waves[1:])) + 1)[:MOST_HARMONICS].tolist():
        kept[harmonic] = waves[harmonic]
        n_parameters += 1 if 2 * harmonic == period else 2
        pattern = np.fft.irfft(kept, period)
        rest = float(((seen - pattern[phases]) ** 2).sum()) / total
        bic = len(seen) * np.log(max(rest, TINY)) + n_parameters * np.log(len(seen))
        if bic < least:
            least, best = bic, (pattern[: period // math.gcd(period, *np.flatnonzero(kept).tolist())], n_parameters)
    return best
