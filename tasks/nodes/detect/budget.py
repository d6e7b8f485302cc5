"""The threshold of verdicts from a budget: how many false alarms a day over the fleet somebody is willing to look at.

An alarm needs several flagged executions among the last few of a node and aspect (alarm rules). So the rate of false
alarms is counted, not assumed: the rules are run over the calm executions of training at a ladder of thresholds, and

    ln(alarms an execution) = a + k ln r(p),   1 / r(p) = 1 / (p P[Bin(last - 1, p) >= flagged - 1]) + d(p)

is fitted to the counts by Poisson regression. r(p) is the rate where flags are independent with share p: 1 / r(p) is
how long it takes until an alarm is raised, and d(p) = ((1 - p)^-clear - 1) / p how long it goes on. There a = 0 and
k = 1, and k is less where flags come in rows. The budget gives the share, and that the threshold. A rung counts as
MOST_ALARMS at most: those near the budget, which have few, would else have no say. Chosen on drawn flags alone."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.special import bdtrc

from tasks.nodes.detect.alarms import follow
from tasks.nodes.detect.params import AlarmParams, BudgetParams
from tasks.nodes.type_tables import Bools, Floats

RUNGS = np.geomspace(0.3, 0.003, 16)  # flagged shares of calm executions that are tried
MOST_ALARMS = 30.0  # that a rung counts as
ITERATIONS = 60  # of the regression, each with a step of at most 1 in a and k
LEAST_SLOPE = 0.1
GRID = 4000
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
    a, k = _fitted(counts, len(used), alarm)
    shares = np.geomspace(LEAST_SHARE, LARGEST_SHARE, GRID)
    rates = np.maximum.accumulate(a + k * np.log(independent_rate(shares, alarm)))
    share = float(np.exp(np.interp(np.log(budget.alarms_per_day / per_day), rates, np.log(shares))))
    expected = float(np.exp(np.interp(np.log(share), np.log(shares), rates))) * per_day
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


def independent_rate(share: Floats, alarm: AlarmParams) -> Floats:
    """r: alarms an execution where flags are independent with this share, (n,)."""
    raising = share * bdtrc(alarm.flagged - 2, alarm.last - 1, share)
    going_on = ((1 - share) ** -alarm.clear - 1) / share
    return np.asarray(1 / (1 / np.maximum(raising, np.finfo(np.float64).tiny) + going_on))


def _fitted(counts: np.ndarray, n: int, alarm: AlarmParams) -> tuple[float, float]:
    """a and k of the rungs' alarms among n executions. Beforehand a = 0 and k = 1, worth one alarm."""
    x = np.column_stack([np.ones(len(RUNGS)), np.log(independent_rate(RUNGS, alarm))])
    prior = np.array([0.0, 1.0])
    line = prior
    for _ in range(ITERATIONS):
        expected = n * np.exp(np.minimum(x @ line, 0.0))
        weight = np.minimum(1.0, MOST_ALARMS / np.maximum(expected, 1.0))
        gradient = x.T @ (weight * (counts - expected)) - (line - prior)
        step = np.linalg.solve(x.T @ (x * (weight * expected)[:, None]) + np.eye(2), gradient)
        line = line + np.clip(step, -1.0, 1.0)
        line = np.array([line[0], max(line[1], LEAST_SLOPE)])
    return float(line[0]), float(line[1])


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
