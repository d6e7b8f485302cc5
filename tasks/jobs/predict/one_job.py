"""The next run of one job: what the champion predicts, beside what the job's own runs say. Reads only its runs."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.errors import NotFound
from tasks.jobs.exceedance import Bound, bound
from tasks.jobs.outlook.exceeding import PredictedChance, chances_beside_history
from tasks.jobs.outlook.params import OutlookParams
from tasks.jobs.pmf import quantiles
from tasks.jobs.predict.champions import needed_champion
from tasks.jobs.predict.log_end import log_end
from tasks.jobs.predict.predicting import predict_next, shape_shares
from tasks.jobs.predict.rows import fetch_runs
from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import ShapeSet
from tasks.jobs.summary import find_group, refuse_mixture
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse

QUARTILES = (0.25, 0.75, 0.95)


@dataclass(frozen=True)
class Limit:
    """The time that the next run stays under with probability `level`: as predicted, and as its own runs bound it."""

    level: float
    predicted_s: float
    own: Bound


@dataclass(frozen=True)
class ShapeChance:
    """Probability of one shape. p25, p75, p95: of that shape, as a ratio to the median in the history, or seconds
    beyond it; is_open: p75 lies among the outliers, so it is at least that."""

    shape: int
    share: float
    p25: float
    p75: float
    p95: float
    is_open: bool


@dataclass(frozen=True)
class JobOutlook:
    """usual_s: median of the n_before finished runs; predicted_at: the end of the log, UTC; shapes: by kind, the most
    probable first; chances: of taking longer than given times."""

    group_key: str
    model_id: str
    predicted_at: pd.Timestamp
    n_before: int
    last_at: pd.Timestamp
    usual_s: float
    limits: list[Limit]
    chances: list[PredictedChance]
    shapes: dict[Kind, list[ShapeChance]]


def job_outlook(
    warehouse: Warehouse, source: str, job: str, params: OutlookParams, *, times_s: tuple[float, ...] = ()
) -> JobOutlook:
    """The next run of one job, named by its key or a unique part of it; times_s: ask for the chance to exceed each.

    Raises NotFound if no or several jobs fit, the job has no finished run, or the source has no model; BadSetting if
    a time is none."""
    card, trained = needed_champion(warehouse, source)
    group_key = find_group(warehouse, source, job)
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        past = fetch_runs(connection, source)
        now = log_end(connection, source)
    own = past[past["group_key"] == group_key]
    if own.empty:
        raise NotFound(f"job {group_key!r} of source {source!r} has no finished run with a runtime yet")
    found = predict_next(trained, past, keys=[group_key], now=now)
    runtimes_s = own["runtime_s"].to_numpy(dtype=float)
    levels = sorted(set(params.levels))
    times = np.maximum.accumulate(found.predicted.quantile(np.array([levels]))[0])
    return JobOutlook(
        group_key=group_key,
        model_id=card.model_id,
        predicted_at=now,
        n_before=len(own),
        last_at=found.jobs["last_at"].iloc[0],
        usual_s=float(found.jobs["usual_s"].iloc[0]),
        limits=[Limit(level, float(time), bound(runtimes_s, level)) for level, time in zip(levels, times, strict=True)],
        chances=[chances_beside_history(found.predicted, time, [runtimes_s])[0] for time in times_s],
        shapes={kind: _chances(trained.shapes[kind], p[0]) for kind, p in shape_shares(trained, found).items()},
    )


def _chances(shapes: ShapeSet, shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[ShapeChance]:
    """shares: (k,)."""
    known = quantiles(shapes.centres, shapes.bins, QUARTILES).tolist()
    chances = []
    for shape in np.argsort(-shares, kind="stable").tolist():
        p25, p75, p95 = known[shape]
        chances.append(ShapeChance(shape, float(shares[shape]), p25, p75, p95, is_open=p75 >= shapes.bins.high))
    return chances
