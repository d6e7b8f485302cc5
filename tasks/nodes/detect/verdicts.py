"""Verdicts on the executions of a source: a detector with its threshold, learned, kept as a model, and asked.

The threshold follows from a budget: how many false alarms a day over the fleet somebody is willing to look at.

An alarm needs several flagged executions among the last few of a node and aspect (alarm rules). So the rate of false
alarms is counted, not assumed: the rules are run over the calm executions of training at a ladder of thresholds, and

    ln(alarms an execution) = a + k ln r(p),   1 / r(p) = 1 / (p P[Bin(last - 1, p) >= flagged - 1]) + d(p)

is fitted to the counts by Poisson regression. r(p) is the rate where flags are independent with share p: 1 / r(p) is
how long it takes until an alarm is raised, and d(p) = ((1 - p)^-clear - 1) / p how long it goes on. There a = 0 and
k = 1, and k is less where flags come in rows. The budget gives the share, and that the threshold. A rung counts as
MOST_ALARMS at most: those near the budget, which have few, would else have no say. Chosen on drawn flags alone."""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from scipy.special import bdtrc

from tasks.errors import BadInput
from tasks.nodes.detect.alarms import follow
from tasks.nodes.detect.detector import (
    EVEN_ODDS,
    FittedDetector,
    TypeDetector,
    contributions,
    fit_detector,
    load_detector,
    prepare,
    rows_of,
    save_detector,
)
from tasks.nodes.detect.deviations import (
    RECENT,
    Centre,
    Rows,
    Windows,
    directions_of,
    level_of,
    logarithms,
    usual_of,
    usual_of_normal_looking,
    windows_of,
    without_fleet_drift,
)
from tasks.nodes.evaluate.measures import measures_of
from tasks.nodes.history import History
from tasks.nodes.node_words import FAR, LEAST_DEVIATION
from tasks.nodes.params import AlarmParams, BudgetParams, DetectorParams, PreprocessParams
from tasks.nodes.preprocess.fitting import Preprocessor, fit, load_preprocessor, save_preprocessor, tables_of
from tasks.nodes.tools import resolution
from tasks.nodes.type_tables import (
    FEWEST,
    HOUR_S,
    Bools,
    Floats,
    Ints,
    NodeTables,
    hours_of,
    is_stressed,
    is_unstressed,
    type_names,
)

RUNGS = np.geomspace(0.3, 0.003, 16)  # flagged shares of calm executions that are tried
MOST_ALARMS = 30.0  # that a rung counts as
ITERATIONS = 60  # of the regression, each with a step of at most 1 in a and k
LEAST_SLOPE = 0.1
GRID = 4000
LEAST_SHARE, LARGEST_SHARE = 1e-9, 0.1  # of calm executions that may be flagged, whatever the budget
DAY_H = 24.0


@dataclass(frozen=True)
class Budget:
    """threshold: scores above it are flagged. alarms_per_day: false ones to be expected over the fleet at its pace,
    executions_per_day; not is_timed: nobody knows when they ran, and all of them count as one day's. flagged_share: of
    calm executions. n_alarms: raised in training at the rung next to it; with few the expectation is a guess."""

    threshold: float
    alarms_per_day: float
    executions_per_day: float
    flagged_share: float
    n_alarms: int
    is_timed: bool = True


def threshold_of_alarms(
    executions: pd.DataFrame,
    scores: Floats,
    is_calm: Bools,
    at_h: Floats,
    budget: BudgetParams,
    alarm: AlarmParams,
    *,
    least_days: float = 0.0,
) -> Budget:
    """The threshold that raises at most budget.alarms_per_day false alarms, by the calm executions of training; even
    odds at least, however large the budget: what is more likely well than not does not look degraded.

    executions: with node and aspect. scores: (n,) out of fold, NaN where nothing is known. at_h: (n,) hours, NaN where
    unknown. least_days: see pace. Raises ValueError if no calm execution has a score."""
    is_used = is_calm & ~np.isnan(scores)
    if not is_used.any():
        raise ValueError("no calm execution has a score; a threshold is a quantile of these")
    used = scores[is_used]
    rows = list(_series(executions["node"].astype(str) + "\n" + executions["aspect"].astype(str), is_used, at_h))
    per_day = pace(at_h, least_days)
    rungs = [scores > _quantile(used, share) for share in RUNGS]
    counts = np.array(
        [sum(len(follow(flags[series], at_h[series] * HOUR_S, alarm)) for series in rows) for flags in rungs]
    )
    a, k = _fitted(counts, len(used), alarm)
    shares = np.geomspace(LEAST_SHARE, LARGEST_SHARE, GRID)
    rates = np.maximum.accumulate(a + k * np.log(independent_rate(shares, alarm)))
    share = float(np.exp(np.interp(np.log(budget.alarms_per_day / per_day), rates, np.log(shares))))
    threshold = max(_quantile(used, share), EVEN_ODDS)
    share = min(share, max(float((used > threshold).mean()), LEAST_SHARE)) if threshold == EVEN_ODDS else share
    expected = float(np.exp(np.interp(np.log(share), np.log(shares), rates))) * per_day
    nearest = int(np.abs(np.log(RUNGS / max(share, RUNGS[-1]))).argmin())
    is_timed = int((~np.isnan(at_h)).sum()) > 1
    return Budget(threshold, expected, per_day, share, int(counts[nearest]), is_timed)


def degraded_until_now(
    executions: pd.DataFrame, scores: Floats, is_calm: Bools, at_h: Floats, alarm: AlarmParams
) -> Bools:
    """The calm executions of an alarm that was confirmed and goes on, from the first flag behind it: (n,).

    Of a node and benchmark type, by the alarm rules with even odds as threshold. What looks worse than the past of its
    node up to now, and so often, is not what scores of well nodes are like. scores, at_h: as threshold_of_alarms."""
    is_degraded, is_judged = np.zeros(len(scores), dtype=bool), is_calm & ~np.isnan(scores)
    for series in _series(executions["node"].astype(str) + "\n" + type_names(executions), is_judged, at_h):
        episodes = follow(scores[series] > EVEN_ODDS, at_h[series] * HOUR_S, alarm)
        if episodes and episodes[-1].state == "confirmed":
            is_degraded[series[episodes[-1].first :]] = True
    return is_degraded


def _series(names: pd.Series, is_used: Bools, at_h: Floats) -> Iterator[Ints]:
    """The used rows of each name in time order, those without a time last."""
    rows = np.flatnonzero(is_used)
    codes = pd.factorize(names.to_numpy()[rows])[0]
    order = np.lexsort((np.nan_to_num(at_h[rows], nan=np.inf), codes))
    yield from np.split(rows[order], np.flatnonzero(np.diff(codes[order])) + 1) if len(rows) else []


def pace(at_h: Floats, least_days: float = 0.0) -> float:
    """Executions a day, all nodes together. at_h: (n,) hours, NaN where unknown; one day where fewer than two are.

    least_days: what a shorter record counts as, where nobody knows that it goes on like this."""
    known = at_h[~np.isnan(at_h)]
    span_h = float(known.max() - known.min()) if len(known) > 1 else DAY_H
    return len(at_h) / max(span_h, least_days * DAY_H, 1 / DAY_H) * DAY_H


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


MOST = 5  # reasons of an execution
USUAL_DEVIATIONS = 2.0  # either side: about 95 of 100 executions
ROUNDED_STEPS = 50  # of what a tool rounds to: a usual value of fewer is no measurement
COLUMNS = (
    "execution", "place", "metric", "unit", "value", "usual_low", "usual_high", "deviation",
)  # fmt: skip


def reasons_of(fitted: FittedDetector, tables: NodeTables, at_h: Floats, is_target: Bools) -> pd.DataFrame:
    """The metrics that say so, the most telling first: one row an execution and metric, with COLUMNS.

    is_target: (n_executions,) executions to give reasons for. value and usual range: in base units, of the last
    executions, of the level or, where the verdict looks at these, of the last that looked normal: whichever it is
    furthest from. deviation: positive where it is worse. An execution of
    which no metric is LEAST_DEVIATION worse has the metrics without which its score would fall most."""
    parts = [pd.DataFrame(columns=list(COLUMNS))]
    for table in tables.tables:
        known = fitted.types.get(table.name)
        targets = np.flatnonzero(is_target[table.executions])
        if known is None or known.metrics != table.metrics or not len(targets):
            continue
        rows, windows = rows_of(table, tables, at_h), windows_of(table, known.normal.is_positive)
        signs = np.where(known.signs != 0, known.signs, directions_of(table))
        usual, worse = _furthest(_views(rows, known, windows, targets), signs)
        typical = np.abs(natural_of(usual.median, known.normal.is_positive))
        steps = np.array([resolution(table.name.split("@")[0], metric) for metric in table.metrics])
        is_rounded = (steps > 0) & (typical < ROUNDED_STEPS * steps)  # the tool rounds it away
        alone = np.where(~is_rounded & (signs != 0), worse, -np.inf)  # (k, m)
        is_first = (known.signs != 0) & (alone >= LEAST_DEVIATION)
        weight = np.where(alone >= LEAST_DEVIATION, np.minimum(alone, FAR) + np.where(is_first, FAR, 0.0), 0.0)
        if len(unclear := np.flatnonzero(~(weight > 0).any(axis=1))):
            prepared = prepare(rows, known.normal, windows, known.signs, fitted.is_plain)
            lost = contributions(known, prepared.where(targets[unclear]))
            weight[unclear] = np.where((signs != 0) & ~np.isnan(worse[unclear]), np.maximum(lost, 0.0), 0.0)
        order = np.argsort(-weight, axis=1, kind="stable")[:, :MOST]
        row, place = np.nonzero(np.take_along_axis(weight, order, axis=1) > 0)
        column = order[row, place]
        middle, spread = (values[row, column] for values in usual)
        ends = (middle - USUAL_DEVIATIONS * spread, middle + USUAL_DEVIATIONS * spread)
        low, high = (natural_of(end, known.normal.is_positive[column]) for end in ends)
        least, most = (end.reduce(table.natural, axis=0)[column] for end in (np.fmin, np.fmax))
        is_log = known.normal.is_positive[column]  # of the others, counts above all, the ends lie among what there was
        low, high = np.where(is_log, low, np.maximum(low, least)), np.where(is_log, high, np.minimum(high, most))
        parts.append(
            pd.DataFrame(
                {
                    "execution": table.executions[targets[row]],
                    "place": place + 1,
                    "metric": np.array(table.metrics, dtype=object)[column],
                    "unit": np.array(table.units, dtype=object)[column],
                    "value": table.natural[targets[row], column],
                    "usual_low": low,
                    "usual_high": high,
                    "deviation": worse[row, column],
                }
            )
        )
    reasons = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    return reasons.sort_values(["execution", "place"], kind="stable", ignore_index=True)


Beside = tuple[Centre, Floats]  # what is usual, and deviations from it: (k, m) each


def _views(rows: Rows, known: TypeDetector, windows: Windows, targets: Ints) -> Iterator[Beside]:
    """The targets beside the last executions of the node, less what the whole fleet shows; beside its level, with the
    spread of the type at least, as that of few executions may be any; and, where verdicts look at these, beside the
    last that looked normal: headline metrics alone."""
    normal = known.normal
    lately, deviations = usual_of(rows, normal, windows, RECENT[-1])
    level = level_of(rows, normal, windows)
    beside = [Centre(level.median, np.fmax(level.deviation, normal.pooled))]
    if not known.knows_stress:
        beside.append(usual_of_normal_looking(rows, normal, windows, level, known.signs))
    x = logarithms(rows.table.natural, normal.is_positive)
    views = [(lately, without_fleet_drift(deviations, rows))]
    for usual, z in [*views, *((usual, (x - usual.median) / usual.deviation) for usual in beside)]:
        yield Centre(usual.median[targets], usual.deviation[targets]), z[targets]


def _furthest(views: Iterable[Beside], signs: Floats) -> Beside:
    """Of each metric the view that it looks worst in, with how much worse: (k, m). Where none is known, NaN."""
    centres, deviations = zip(*views, strict=True)
    worse = np.array([np.where(np.isnan(z), -np.inf, -z * np.where(signs != 0, signs, 1.0)) for z in deviations])
    worst = worse.argmax(axis=0)[None]  # (1, k, m)
    usual = (np.take_along_axis(np.array(each), worst, axis=0)[0] for each in zip(*centres, strict=True))
    size = worse.max(axis=0)
    return Centre(*usual), np.where(np.isneginf(size), np.nan, size)


def natural_of(values: Floats, is_positive: Bools) -> Floats:
    """From the scale of logarithms() back to base units. is_positive: of the last axis."""
    with np.errstate(over="ignore"):
        return np.asarray(np.where(is_positive, np.exp(values), np.sign(values) * np.expm1(np.abs(values))))


PREPROCESSOR, BUDGET = "preprocessor.json", "budget.json"
SHOWN = ("auprc", "f1_outlier", "precision", "recall", "false_alarms_per_1000")


@dataclass(frozen=True)
class VerdictModel:
    """A detector with what it reads executions by, and the threshold of its verdicts, in logits.

    budget: what the threshold was chosen by; None where a precision or a recall was asked for."""

    preprocessor: Preprocessor
    detector: FittedDetector
    threshold: float
    budget: Budget | None


@dataclass(frozen=True)
class Learned:
    """model: to be kept. figures: of each execution by what the other fifths of its type taught; empty where no stress
    is known. n_learned: executions; n_stressed: of them, known to be."""

    model: VerdictModel
    figures: dict[str, float]
    n_learned: int
    n_stressed: int


@dataclass(frozen=True)
class Verdicts:
    """executions: one row an execution of the history: execution_id, score, probability (NaN where no type is known),
    is_flagged, is_cold, by_labels. reasons: of the flagged ones, as reasons_of, with execution_id."""

    executions: pd.DataFrame
    reasons: pd.DataFrame


def learn_verdicts(
    history: History,
    preprocess: PreprocessParams,
    detect: DetectorParams,
    budget: BudgetParams,
    alarm: AlarmParams,
    *,
    under_alarm: Collection[str] = (),
    seed: int = 0,
) -> Learned:
    """Learn from all executions of a source; thresholds and figures come from scores that are out of fold.

    under_alarm: ids of executions that are not taken for calm, whoever says so: their nodes look degraded.
    Raises BadInput where nothing can be learned, and where precision or recall is asked for and no stress is known."""
    executions = history.executions
    stressed, calm = (mask_of(executions).to_numpy(dtype=bool) for mask_of in (is_stressed, is_unstressed))
    calm = calm & ~executions["execution_id"].isin(under_alarm).to_numpy(dtype=bool)
    hours = hours_of(executions)
    preprocessor = fit(history, preprocess)
    tables = tables_of(history, preprocessor)
    fitted = fit_detector(tables, hours, stressed | calm, stressed, calm, detect, seed=seed)
    scores = fitted.in_training
    if not fitted.types:
        is_many = (type_names(executions)[calm].value_counts() >= FEWEST).any()
        wanted = f"{FEWEST} of a benchmark at least, and {FEWEST + alarm.last} of a node to tell a degradation"
        few = ("no benchmark has five calm ones", wanted, "run it more often")
        alike = ("no metric of theirs varies", "values as they were measured", "export them with all their digits")
        raise BadInput(f"{len(executions)} executions", *(alike if is_many else few))
    alarm_budget: Budget | None = None
    if budget.by == "alarms":
        well = calm & ~degraded_until_now(executions, scores, calm, hours, alarm)
        alarm_budget = threshold_of_alarms(executions, scores, well, hours, budget, alarm, least_days=1.0)
        threshold = alarm_budget.threshold
    else:
        known = ~np.isnan(scores) & (stressed | calm)
        try:
            threshold = threshold_of_share(scores[known], stressed[known], budget.by, budget.share)
        except ValueError as error:
            raise BadInput("nodes.budget.by", str(error), "alarms", "choose by alarms, or record stress") from error
    model = VerdictModel(preprocessor, fitted, threshold, alarm_budget)
    figures = _figures(executions, scores, stressed, calm, threshold)
    return Learned(model, figures, int((stressed | calm).sum()), int(stressed.sum()))


def judge_history(history: History, model: VerdictModel) -> Verdicts:
    """What the detector says of every execution, each by what its node had done before."""
    hours = hours_of(history.executions)
    tables = tables_of(history, model.preprocessor)
    scored = model.detector.score(tables, hours)
    flagged = np.nan_to_num(scored.score, nan=-np.inf) > model.threshold
    ids = history.executions["execution_id"].astype(str).to_numpy(dtype=object)
    reasons = reasons_of(model.detector, tables, hours, flagged)
    columns = {"execution_id": ids, "score": scored.score, "probability": scored.probability, "is_flagged": flagged}
    return Verdicts(
        pd.DataFrame({**columns, "is_cold": scored.is_cold, "by_labels": scored.by_labels}),
        reasons.assign(execution_id=ids[reasons["execution"].to_numpy(dtype=np.int64)]).drop(columns="execution"),
    )


def save_verdict_model(model: VerdictModel, folder: Path) -> None:
    """Write the files of a model; nothing in them is code."""
    save_preprocessor(model.preprocessor, folder / PREPROCESSOR)
    save_detector(model.detector, folder)
    contents = {"threshold": model.threshold, "budget": vars(model.budget) if model.budget else None}
    (folder / BUDGET).write_text(json.dumps(contents, indent=1))


def load_verdict_model(folder: Path) -> VerdictModel:
    """What save_verdict_model wrote. Raises BadInput for files that are missing, damaged or foreign."""
    try:
        contents = json.loads((folder / BUDGET).read_text())
        budget = Budget(**contents["budget"]) if contents["budget"] else None
        detector = load_detector(folder)
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
        problem = f"no detector of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "what 'whorl nodes train' wrote", "train again") from error
    return VerdictModel(load_preprocessor(folder / PREPROCESSOR), detector, float(contents["threshold"]), budget)


def _figures(
    executions: pd.DataFrame, scores: Floats, stressed: Bools, calm: Bools, threshold: float
) -> dict[str, float]:
    """Detection over the labelled executions with a score; empty where only one kind is known."""
    known = ~np.isnan(scores) & (stressed | calm)
    series = pd.factorize(executions["node"].astype(str) + "\n" + type_names(executions))[0]
    measured = measures_of(scores[known], scores[known] > threshold, stressed[known], series[known])
    return {name: float(value) for name in SHOWN if (value := measured[name]) is not None}
