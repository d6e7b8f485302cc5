"""Alarms of judged executions: whether a budget of false ones is held, and how soon each dose raises one.

    budget.<measure>.<detector>.<protocol>.at_<budget>[.dose_<level>]

Thresholds are learned from calm executions that were learned from, and alarms counted among later calm ones. A silent
detector meets every budget, so the delay at each dose stands beside: of executions that are degraded at this dose from
some time on, drawn from those of one node and aspect at the dose, until the rules raise an alarm."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from tasks.nodes.detect.alarms import follow
from tasks.nodes.detect.verdicts import degraded_until_now, pace, threshold_of_alarms
from tasks.nodes.params import AlarmParams, BudgetParams, EvaluateParams
from tasks.nodes.type_tables import HOUR_S, Bools, Floats, hours_of, is_stressed, is_unstressed
from tasks.report.evaluation import Figures, put

FLEET, FLEET_EXECUTIONS_PER_DAY = "fleet", 500 * 6 * 24.0  # one a day over 500 nodes, six benchmarks an hour
LEAST_ALARMS = 30  # from which a measured rate says something
DRAWS, LONGEST = 100, 200  # sequences of degraded executions of a node and aspect, and how long they are
LEVELS = (1, 2, 3)
COLUMNS = ["protocol", "round", "detector", "budget", "threshold", "alarms_per_execution", "executions_per_day"]
COUNTED = ("stated_per_day", "measured_per_day", "ratio", "n_alarms", "flagged_per_1000")


def thresholds_by_budget(
    executions: pd.DataFrame, scores: Floats, is_calm: Bools, params: EvaluateParams
) -> Iterator[dict[str, Any]]:
    """For each of params.budgets, and for the fleet: COLUMNS but for protocol, round and detector.

    scores, is_calm: (n_executions,); calm executions that were learned from, with scores that are out of fold."""
    used, alarm = is_calm & ~np.isnan(scores), params.injection.alarm
    used &= ~degraded_until_now(executions, scores, used, hours_of(executions), alarm)
    if not used.any():
        return
    calm, hours, every = executions[used], hours_of(executions)[used], np.ones(int(used.sum()), dtype=bool)
    budgets = {f"{rate:g}".replace(".", "_"): rate for rate in params.budgets}
    for name, per_day in {**budgets, FLEET: pace(hours) / FLEET_EXECUTIONS_PER_DAY}.items():
        budget_params = BudgetParams(alarms_per_day=per_day)
        budget = threshold_of_alarms(calm, scores[used], every, hours, budget_params, alarm)
        yield {
            "budget": name,
            "threshold": budget.threshold,
            "alarms_per_execution": budget.alarms_per_day / budget.executions_per_day,
            "executions_per_day": budget.executions_per_day,
        }


def budget_figures(
    executions: pd.DataFrame, judged: pd.DataFrame, thresholds: pd.DataFrame, params: EvaluateParams
) -> Figures:
    """What each budget came to. judged: protocol, round, detector, execution, score. thresholds: COLUMNS.

    Without detector, protocol and budget: those of the smallest budget with LEAST_ALARMS alarms, or of the one with
    most; `budget.of` names it."""
    figures: Figures = {}
    keys = ["protocol", "detector", "round"]
    joined = judged[[*keys, "execution", "score"]].merge(thresholds, on=keys)
    joined = joined.sort_values("execution", kind="stable", ignore_index=True)
    for (protocol, detector, budget), part in joined.groupby(["protocol", "detector", "budget"], sort=False):
        rows = executions.iloc[part["execution"].to_numpy(dtype=np.int64)].reset_index(drop=True)
        is_flagged = (part["score"] > part["threshold"]).to_numpy(dtype=bool)
        slice_ = f"{detector}.{protocol}.at_{budget}"
        for name, value in _counted(rows, is_flagged, part.reset_index(drop=True), params.injection.alarm).items():
            put(figures, f"budget.{name}.{slice_}", value, "no calm execution was tested")
        for level in LEVELS:
            waited = _waited(rows, is_flagged, level, params)
            if len(waited):
                delay = float(np.nanmedian(waited)) if not np.isnan(waited).all() else None
                put(figures, f"budget.delay_executions.{slice_}.dose_{level}", delay, "no alarm was raised")
                put(figures, f"budget.missed.{slice_}.dose_{level}", float(np.isnan(waited).mean()))
    counts = {key.removeprefix("budget.n_alarms."): n for key, n in figures.items() if ".n_alarms." in key}
    counts = {key: n for key, n in counts.items() if isinstance(n, int) and not key.endswith(f"at_{FLEET}")}
    counts = {key: n for key, n in counts.items() if key.startswith("detector.")} or counts
    if counts:
        of = next((key for key, n in counts.items() if n >= LEAST_ALARMS), max(counts, key=counts.__getitem__))
        figures |= {"budget.of": of} | {f"budget.{name}": figures[f"budget.{name}.{of}"] for name in COUNTED}
    return figures


def _counted(
    rows: pd.DataFrame, is_flagged: Bools, judged: pd.DataFrame, alarm: AlarmParams
) -> dict[str, float | int | None]:
    """COUNTED, over the calm rows."""
    calm = is_unstressed(rows).to_numpy(dtype=bool)
    if not calm.any():
        return dict.fromkeys(COUNTED)
    n_alarms = sum(len(follow(flags, at_s, alarm)) for flags, at_s in _series(rows[calm], is_flagged[calm]))
    rate, per_day = (judged.loc[calm, name] for name in ("alarms_per_execution", "executions_per_day"))
    stated, ratio = float((rate * per_day).mean()), n_alarms / float(rate.sum())
    flagged = 1000 * float(is_flagged[calm].mean())
    return dict(zip(COUNTED, (stated, stated * ratio, ratio, n_alarms, flagged), strict=True))


def _series(rows: pd.DataFrame, is_flagged: Bools) -> Iterator[tuple[Bools, Floats]]:
    """Flags, and times in seconds, of each node and aspect."""
    at_s = hours_of(rows) * HOUR_S
    keys = [rows["node"].astype(str).to_numpy(), rows["aspect"].astype(str).to_numpy()]
    for _, places in pd.Series(np.arange(len(rows))).groupby(keys):
        yield is_flagged[places.to_numpy()], at_s[places.to_numpy()]


def _waited(rows: pd.DataFrame, is_flagged: Bools, level: int, params: EvaluateParams) -> Floats:
    """Executions until an alarm, itself counted, of drawn sequences stressed at this level: (k,), NaN for none within
    LONGEST. Before a sequence none was flagged, and enough had run."""
    levels = rows["dose_level"].astype("Float64").fillna(0).to_numpy(dtype=np.int64)
    is_used, alarm = is_stressed(rows).to_numpy(dtype=bool) & (levels == level), params.injection.alarm
    rng = np.random.default_rng([params.seed, level])
    waits = [np.empty(0)]
    for series_flags, _ in _series(rows[is_used], is_flagged[is_used]):
        flags = rng.choice(series_flags, size=(DRAWS, LONGEST))
        sums = np.cumsum(flags, axis=1, dtype=np.int64)
        before = np.pad(sums, ((0, 0), (alarm.last, 0)))[:, : flags.shape[1]]
        raises = flags & (sums - before >= alarm.flagged)
        waits.append(np.where(raises.any(axis=1), raises.argmax(axis=1) + 1.0, np.nan))
    return np.concatenate(waits)
