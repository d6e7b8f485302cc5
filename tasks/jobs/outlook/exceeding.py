"""The chance that the next run exceeds a time, as predicted, beside what the job's own runs say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.errors import BadSetting
from tasks.jobs.distribution import Floats, Predicted
from tasks.jobs.exceedance import Chance, chance_to_exceed


@dataclass(frozen=True)
class PredictedChance:
    """predicted: chance that the next run takes longer than time_s. history: how often past runs did; None without.

    agrees: the predicted chance lies in the Wilson interval of the history; None without a history."""

    time_s: float
    predicted: float
    history: Chance | None
    agrees: bool | None


def chances_to_exceed(predicted: Predicted, time_s: Any) -> Floats:
    """P(runtime > time_s), never rising with the time; time_s in seconds: one for all, (n,) or (n, m).

    Of a time that equals a predicted single value, that value does not count: it does not exceed it. The answer has
    the shape of time_s, (n,) for one. Raises BadSetting if a time is no time."""
    times = one_each("time", time_s, predicted.n)
    return np.asarray(np.clip(1 - predicted.cdf(times), 0.0, 1.0))


def chances_beside_history(
    predicted: Predicted, time_s: float, histories: Sequence[Any | None]
) -> list[PredictedChance]:
    """For each instance the predicted chance to exceed time_s and, from its past runtimes, the share that did.

    histories: n arrays of runtimes in seconds, None or empty for a job without finished runs. Raises BadSetting if
    time_s is no time, ValueError if histories are not one an instance."""
    found = chances_to_exceed(predicted, time_s)
    chances = []
    for share, runs in zip(found, histories, strict=True):
        runtimes_s = np.zeros(0) if runs is None else np.asarray(runs, dtype=np.float64)
        past = chance_to_exceed(runtimes_s, time_s) if len(runtimes_s) else None
        agrees = None if past is None else bool(past.low <= share <= past.high)
        chances.append(PredictedChance(float(time_s), float(share), past, agrees))
    return chances


def one_each(name: str, time_s: Any, n: int) -> Floats:
    """Times in seconds, (n,) or (n, m), from one time, (n,) or (n, m). Raises BadSetting for NaN and below 0."""
    times = np.asarray(time_s, dtype=np.float64)
    if times.ndim == 0:
        times = np.full(n, times)
    if times.ndim > 2 or len(times) != n:
        raise BadSetting(f"{name}: shape {times.shape}; expected one time, ({n},) or ({n}, m)")
    is_wrong = ~(np.isfinite(times) & (times >= 0))
    if is_wrong.any():
        raise BadSetting(f"{name} {times[is_wrong][0]:g} s: expected a number of seconds, 0 or more")
    return times
