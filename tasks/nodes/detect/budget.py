"""The threshold of verdicts from a budget: how many false alarms a day over the fleet somebody is willing to look at.

An alarm needs several flagged executions among the last few of a node and aspect (alarm rules). So the rate of false
alarms is counted, not assumed: the rules are run over the calm executions of training at a ladder of thresholds, and

    ln(alarms an execution) = a + k ln(flagged share)

is fitted through the rungs that raised enough of them. k is about the number of flags that an alarm needs where flags
come independently, and less where they come in rows, as they do. The budget gives the share, and that the threshold."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from tasks.nodes.detect.alarms import follow
from tasks.nodes.detect.params import AlarmParams, BudgetParams
from tasks.nodes.type_tables import (
    Bools,
    Floats,
)

RUNGS = np.geomspace(0.3, 0.003, 16)  # flagged shares of calm executions that are tried
LEAST_ALARMS = 3  # of a rung that the line is fitted through
LEAST_SHARE, LARGEST_SHARE = 1e-9, 0.2  # of calm executions that may be flagged, whatever the budget
DAY_H = 24.0


@dataclass(frozen=True)
class Budget:
    """threshold: scores above it are flagged. alarms_per_day: false ones to be expected over the fleet at its pace,
    executions_per_day. flagged_share: of calm executions. n_alarms: raised in training at the rung next to it; with few
    the expectation is a guess."""

    threshold: float
    alarms_per_day: float
    executions_per_day: float
    flagged_share: float
    n_alarms: int


def threshold_of_alarms(
    executions: pd.DataFrame, scores: Floats, is_calm: Bools, at_h: Floats, budget: BudgetParams, alarm: AlarmParams
) -> Budget:
    """The threshold that raises at most budget.alarms_per_day false alarms, by the calm executions of training.

    executions: with node and aspect. scores: (n,) out of fold, NaN where nothing is known. at_h: (n,) hours, NaN where
    unknown. Raises ValueError if no calm execution has a score."""
    is_used = is_calm & ~np.isnan(scores)
    if not is_used.any():
        raise ValueError("no calm execution has a score; a threshold is a quantile of these")
    used, hours = scores[is_used], at_h[is_used]
    series = executions.loc[is_used, ["node", "aspect"]].astype(str).agg("\n".join, axis=1)
    order = np.lexsort((np.nan_to_num(hours, nan=np.inf), pd.factorize(series)[0]))
    ends = np.flatnonzero(np.append(np.diff(pd.factorize(series)[0][order]) != 0, True)) + 1
    bounds = list(pairwise([0, *ends.tolist()]))
    per_day = pace(at_h)
    counts = np.array([_alarms(used[order] > _quantile(used, share), hours[order], bounds, alarm) for share in RUNGS])
    line = _line(counts, len(used), alarm)
    wanted = budget.alarms_per_day / per_day
    share = float(np.clip(np.exp((np.log(wanted) - line[1]) / line[0]), LEAST_SHARE, LARGEST_SHARE))
    expected = float(np.exp(line[1] + line[0] * np.log(share))) * per_day
    nearest = int(np.abs(np.log(RUNGS / max(share, RUNGS[-1]))).argmin())
    return Budget(_quantile(used, share), expected, per_day, share, int(counts[nearest]))


def pace(at_h: Floats) -> float:
    """Executions a day, all nodes together. at_h: (n,) hours, NaN where unknown; one day where fewer than two are."""
    known = at_h[~np.isnan(at_h)]
    span_h = float(known.max() - known.min()) if len(known) > 1 else DAY_H
    return len(at_h) / max(span_h, 1 / DAY_H) * DAY_H


def threshold_of_share(scores: Floats, is_stressed: Bools, by: str, wanted: float) -> float:
    """The lowest threshold with this precision, or the highest with this recall, over labelled executions. (n,) each.

    Where no threshold has the precision: the one with the best. Raises ValueError without a stressed execution."""
    if not is_stressed.any():
        raise ValueError(f"no execution is known to be stressed; a threshold by {by} is chosen on these")
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(is_stressed[order])
    precision, recall = hits / np.arange(1, len(order) + 1), hits / is_stressed.sum()
    if by == "recall":
        place = int(np.argmax(recall >= wanted))
    else:
        reached = np.flatnonzero(precision >= wanted)
        place = int(reached[-1]) if len(reached) else int(precision.argmax())
    following = scores[order][place + 1] if place + 1 < len(order) else scores[order][place] - 1
    return float((scores[order][place] + following) / 2)


def _alarms(is_flagged: Bools, at_h: Floats, bounds: list[tuple[int, int]], alarm: AlarmParams) -> int:
    """Alarms that the rules raise over all series."""
    at_s = at_h * 3600.0
    return sum(len(follow(is_flagged[a:b], at_s[a:b], alarm).episodes) for a, b in bounds)


def _line(counts: np.ndarray, n: int, alarm: AlarmParams) -> tuple[float, float]:
    """k and a of the line through the rungs with enough alarms; with fewer than two of these, as if flags came
    independently: of `last` executions, the newest flagged and flagged - 1 of the others."""
    usable = counts >= LEAST_ALARMS
    if usable.sum() >= 2:
        slope, start = np.polyfit(np.log(RUNGS[usable]), np.log(counts[usable] / n), 1, w=np.sqrt(counts[usable]))
        if slope > 0:
            return float(slope), float(start)
    ways = float(np.prod([(alarm.last - 1 - k) / (k + 1) for k in range(alarm.flagged - 1)]))
    return float(alarm.flagged), float(np.log(ways))


def _quantile(scores: Floats, share: float) -> float:
    """The score that this share of them exceeds; for less than one of them beyond the largest, along the mean excess of
    the top twentieth, as if the tail were exponential."""
    n = len(scores)
    if share * n >= 1:
        return float(np.quantile(scores, 1 - share))
    ordered = np.sort(scores)
    top = ordered[-max(2, n // 20) :]
    scale = float((top - top[0]).mean()) or 1.0
    return float(ordered[-1] + scale * np.log(1 / max(share * n, 1e-12)))
