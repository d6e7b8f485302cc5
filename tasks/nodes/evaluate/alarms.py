"""Alarms of judged executions: whether a budget of false ones is held, how soon each dose is told, and how soon a limit
that is lowered for good.

    budget.<measure>.<detector>.<protocol>.at_<budget>[.dose_<level>]
    lowered.<measure>.<detector>.<node>.<aspect>

Thresholds are learned from calm executions that were learned from, and alarms counted among later calm ones. A silent
detector meets every budget, so the delay at each dose stands beside: of executions that are degraded at this dose from
some time on, drawn from those of one node and aspect at the dose, until the rules raise an alarm."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import BadSetting
from tasks.nodes.aspects import hours_of, is_stressed, is_unstressed
from tasks.nodes.detect.alarms import NEVER, follow
from tasks.nodes.detect.params import AlarmParams, BudgetParams
from tasks.nodes.detect.verdicts import (
    pace,
    threshold_of_alarms,
)
from tasks.nodes.evaluate.measures import Figures, put
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.type_tables import Bools, Floats

FLEET = "fleet"  # one false alarm a day over 500 nodes that run six benchmarks an hour
FLEET_EXECUTIONS_PER_DAY = 500 * 6 * 24.0
LEAST_ALARMS = 30  # from which a measured rate says something
DRAWS, LONGEST = 100, 200  # sequences of degraded executions of a node and aspect, and how long they are
LEVELS = (1, 2, 3)
HOUR_S = 3600.0
COLUMNS = ["protocol", "round", "detector", "budget", "threshold", "alarms_per_execution", "executions_per_day"]
COUNTED = ("stated_per_day", "measured_per_day", "ratio", "n_alarms", "flagged_per_1000")
LOWERED = {"cpu": ("cpu", "memory"), "disk": ("disk",), "network": ("network",)}  # what a limit is of, and who feels it
NUMBER_IN_ID = r"-(\d{4})-"  # of an execution of a recorded plan, from 1


def thresholds_by_budget(
    executions: pd.DataFrame, scores: Floats, is_calm: Bools, params: EvaluateParams
) -> Iterator[dict[str, Any]]:
    """For each of params.budgets, and for the fleet: COLUMNS but for protocol, round and detector.

    scores, is_calm: (n_executions,); calm executions that were learned from, with scores that are out of fold."""
    used = is_calm & ~np.isnan(scores)
    if not used.any():
        return
    own, hours = executions[used], hours_of(executions)[used]
    fleet = pace(hours) / FLEET_EXECUTIONS_PER_DAY
    for name, per_day in {**{_name_of(one): one for one in params.budgets}, FLEET: fleet}.items():
        asked = BudgetParams(alarms_per_day=per_day)
        every = np.ones(len(own), dtype=bool)
        found = threshold_of_alarms(own, scores[used], every, hours, asked, params.injection.alarm)
        yield {
            "budget": name,
            "threshold": found.threshold,
            "alarms_per_execution": found.alarms_per_day / found.executions_per_day,
            "executions_per_day": found.executions_per_day,
        }


def _name_of(budget: float) -> str:
    return f"{budget:g}".replace(".", "_")


def budget_figures(
    executions: pd.DataFrame, judged: pd.DataFrame, thresholds: pd.DataFrame, params: EvaluateParams
) -> Figures:
    """What each budget came to. judged: protocol, round, detector, execution, score. thresholds: COLUMNS.

    Without detector, protocol and budget: those of the smallest budget with LEAST_ALARMS alarms, or of the one with
    most; `budget.of` names it."""
    figures: Figures = {}
    for keys, own in thresholds.groupby(["protocol", "detector", "budget"], sort=False):
        protocol, detector, budget = map(str, keys)
        of_these = judged[(judged["protocol"] == protocol) & (judged["detector"] == detector)]
        joined = of_these[["round", "execution", "score"]].merge(own.drop(columns=["protocol", "detector"]), on="round")
        joined = joined.sort_values("execution", kind="stable", ignore_index=True)
        if not len(joined):
            continue
        rows = executions.iloc[joined["execution"].to_numpy(dtype=np.int64)].reset_index(drop=True)
        is_flagged = (joined["score"] > joined["threshold"]).to_numpy(dtype=bool)
        slice_ = f"{detector}.{protocol}.at_{budget}"
        for name, value in _counted(rows, is_flagged, joined, params.injection.alarm).items():
            put(figures, f"budget.{name}.{slice_}", value, "no calm execution was tested")
        for level, (delay, missed) in _delays(rows, is_flagged, params).items():
            put(figures, f"budget.delay_executions.{slice_}.dose_{level}", delay, "no alarm was raised")
            put(figures, f"budget.missed.{slice_}.dose_{level}", missed)
    return figures | _headline(figures)


def _counted(
    rows: pd.DataFrame, is_flagged: Bools, joined: pd.DataFrame, alarm: AlarmParams
) -> Mapping[str, float | int | None]:
    """COUNTED, over the calm rows."""
    calm = is_unstressed(rows).to_numpy(dtype=bool)
    if not calm.any():
        return dict.fromkeys(COUNTED)
    n_alarms = sum(len(follow(flags, at_s, alarm).episodes) for _, flags, at_s in _series(rows[calm], is_flagged[calm]))
    rate, per_day = (joined.loc[calm, name] for name in ("alarms_per_execution", "executions_per_day"))
    stated, ratio = float((rate * per_day).mean()), n_alarms / float(rate.sum())
    return {
        "stated_per_day": stated,
        "measured_per_day": stated * ratio,
        "ratio": ratio,
        "n_alarms": n_alarms,
        "flagged_per_1000": 1000 * float(is_flagged[calm].mean()),
    }


def _series(rows: pd.DataFrame, is_flagged: Bools) -> Iterator[tuple[tuple[str, str], Bools, Floats]]:
    """Node and aspect, flags, and times in seconds of each series."""
    at_s = hours_of(rows) * HOUR_S
    keys = [rows["node"].astype(str).to_numpy(), rows["aspect"].astype(str).to_numpy()]
    for (node, aspect), places in pd.Series(np.arange(len(rows))).groupby(keys):
        at = places.to_numpy()
        yield (str(node), str(aspect)), is_flagged[at], at_s[at]


def _delays(
    rows: pd.DataFrame, is_flagged: Bools, params: EvaluateParams
) -> dict[int, tuple[float | None, float | None]]:
    """By dose level: the median delay in executions until an alarm, and the share of drawn sequences without one."""
    levels = rows["dose_level"].astype("Float64").fillna(0).to_numpy(dtype=np.int64)
    stressed = is_stressed(rows).to_numpy(dtype=bool)
    found: dict[int, tuple[float | None, float | None]] = {}
    for level in LEVELS:
        chosen = stressed & (levels == level)
        if not chosen.any():
            continue
        rng = np.random.default_rng([params.seed, level])
        each = [
            _until_raised(rng.choice(flags, size=(DRAWS, LONGEST)), params.injection.alarm)
            for _, flags, _ in _series(rows[chosen], is_flagged[chosen])
        ]
        waited = np.concatenate(each)
        told = waited[~np.isnan(waited)]
        found[level] = (float(np.median(told)) if len(told) else None, float(np.isnan(waited).mean()))
    return found


def _until_raised(flags: Bools, alarm: AlarmParams) -> Floats:
    """Executions until the first alarm, itself counted; NaN where there is none: (k,). flags: (k, n), before which none
    was flagged, and enough had run."""
    sums = np.cumsum(flags, axis=1, dtype=np.int64)
    before = np.pad(sums, ((0, 0), (alarm.last, 0)))[:, : flags.shape[1]]
    raises = flags & (sums - before >= alarm.flagged)
    return np.where(raises.any(axis=1), raises.argmax(axis=1) + 1.0, np.nan)


def _headline(figures: Figures) -> Figures:
    """The figures of the smallest budget with enough alarms."""
    keys = [key for key in figures if key.startswith("budget.n_alarms.") and figures[key] is not None]
    keys = [key for key in keys if not key.endswith(f"at_{FLEET}")]
    if not keys:
        return {}
    ours = [key for key in keys if ".detector." in key] or keys
    enough = [key for key in ours if figures[key] >= LEAST_ALARMS]
    of = (enough[0] if enough else max(ours, key=lambda key: figures[key])).removeprefix("budget.n_alarms.")
    return {"budget.of": of} | {f"budget.{name}": figures[f"budget.{name}.{of}"] for name in COUNTED}


def halves_of(executions: pd.DataFrame, params: EvaluateParams) -> Bools:
    """The executions of the half that is tested: (n_executions,).

    By the number in the id of an execution of a recorded plan; raises BadSetting where ids have none."""
    if params.half == "whole":
        return np.ones(len(executions), dtype=bool)
    number = executions["execution_id"].astype(str).str.extract(NUMBER_IN_ID)[0]
    if number.isna().any():
        example = str(executions.loc[number.isna(), "execution_id"].iloc[0])
        raise BadSetting(
            f"nodes.evaluate.half = {params.half}: the id {example!r} has no number of a recorded plan (-0001-); "
            "expected ids of 'whorl nodes record', or half: whole"
        )
    is_odd = (number.astype(int) - 1) // params.stretch % 2 == 1
    return np.asarray(is_odd == (params.half == "reported"), dtype=bool)


def is_of_lowered(executions: pd.DataFrame) -> Bools:
    """Executions whose dose says that a limit of what they measure is lowered for good: (n_executions,)."""
    limit = executions["dose"].fillna("").astype(str).str.extract(r"lowered-([a-z]+)")[0].fillna("")
    each = zip(limit, executions["aspect"].astype(str), strict=True)
    return np.array([aspect in LOWERED.get(of, ()) for of, aspect in each], dtype=bool)


def lowered_figures(executions: pd.DataFrame, judged: pd.DataFrame, params: EvaluateParams) -> Figures:
    """Of each node and aspect of which a limit is lowered: executions and seconds from the first one with it to the
    first alarm (alarm_delay_…) and to the second of two flagged unstressed ones in a row (flagged_twice_…), and alarms
    before (false_alarms_before). judged: of one protocol, in time order by detector."""
    figures: Figures = {}
    for detector, own in judged.groupby("detector", sort=False):
        rows = executions.iloc[own["execution"].to_numpy(dtype=np.int64)].reset_index(drop=True)
        flags = own["is_flagged"].to_numpy(dtype=bool)
        lowered, calm = is_of_lowered(rows), is_unstressed(rows).to_numpy(dtype=bool)
        for node, aspect in rows.loc[lowered, ["node", "aspect"]].drop_duplicates().to_numpy():
            is_own = ((rows["node"] == node) & (rows["aspect"] == aspect)).to_numpy(dtype=bool)
            for name, value in _lowered(rows[is_own], flags[is_own], lowered[is_own], calm[is_own], params).items():
                put(figures, f"lowered.{name}.{detector}.{node}.{aspect}", value, "it is never told")
    return figures


def _lowered(
    rows: pd.DataFrame, flags: Bools, lowered: Bools, calm: Bools, params: EvaluateParams
) -> Mapping[str, float | int | None]:
    """The figures of one node and aspect, (n,) in time order."""
    at_s = hours_of(rows) * HOUR_S
    first = int(np.argmax(lowered))
    episodes = follow(flags, at_s, params.injection.alarm).episodes
    raised = next((one.raised for one in episodes if one.raised >= first), NEVER)
    unstressed = np.flatnonzero(calm & (np.arange(len(rows)) >= first))
    twice = np.flatnonzero(flags[unstressed][1:] & flags[unstressed][:-1])
    second = int(unstressed[twice[0] + 1]) if len(twice) else NEVER
    before = calm & (np.arange(len(rows)) < first)
    n_before = len(follow(flags[before], at_s[before], params.injection.alarm).episodes)
    found: dict[str, float | int | None] = {"false_alarms_before": n_before}
    for name, place in (("alarm_delay", raised), ("flagged_twice", second)):
        found[f"{name}_executions"] = place - first + 1 if place != NEVER else None
        found[f"{name}_seconds"] = float(at_s[place] - at_s[first]) if place != NEVER else None
    return found
