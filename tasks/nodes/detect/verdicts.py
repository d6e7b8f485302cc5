"""Verdicts on the executions of a source: a detector with its threshold, learned, kept as a model, and asked."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.nodes.aspects import hours_of, is_stressed, is_unstressed, type_names
from tasks.nodes.detect.budget import Budget, threshold_of_alarms, threshold_of_share
from tasks.nodes.detect.detector import FittedDetector, fit_detector, load_detector, rows_of, save_detector
from tasks.nodes.detect.deviations import RECENT, Centre, usual_of, windows_of, without_fleet_drift
from tasks.nodes.detect.params import AlarmParams, BudgetParams, DetectorParams
from tasks.nodes.evaluate.measures import measures_of
from tasks.nodes.history import History
from tasks.nodes.node_words import FAR
from tasks.nodes.preprocess.fitting import Preprocessor, fit, load_preprocessor, save_preprocessor, tables_of
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.tools import resolution
from tasks.nodes.type_tables import Bools, Floats, NodeTables

MOST = 5  # reasons of an execution
LEAST_DEVIATION = 2.0
USUAL_DEVIATIONS = 2.0  # either side: about 95 of 100 executions
ROUNDED_STEPS = 50  # of what a tool rounds to: a usual value of fewer is no measurement
COLUMNS = (
    "execution", "place", "metric", "unit", "value", "usual_low", "usual", "usual_high", "deviation", "is_headline",
    "higher_is_better",
)  # fmt: skip


def reasons_of(fitted: FittedDetector, tables: NodeTables, at_h: Floats, is_asked: Bools) -> pd.DataFrame:
    """The metrics that say so, the most telling first: one row an execution and metric, with COLUMNS.

    is_asked: (n_executions,) executions that reasons are wanted for. value and usual range: in base units. deviation:
    positive where it is worse. An execution of which no metric is LEAST_DEVIATION worse has none."""
    parts = [pd.DataFrame(columns=list(COLUMNS))]
    for table in tables.tables:
        known = fitted.types.get(table.name)
        asked = np.flatnonzero(is_asked[table.executions])
        if known is None or known.metrics != table.metrics or not len(asked):
            continue
        rows, windows = rows_of(table, tables, at_h), windows_of(table, known.normal.is_positive)
        usual = usual_of(rows, known.normal, windows, RECENT[-1])
        z = without_fleet_drift(usual.deviations, rows)[asked]
        signs = np.where(known.signs != 0, known.signs, table.orientation * _directed(table.is_directed))
        typical = np.abs(natural_of(usual.centre.median[asked], known.normal.is_positive))
        is_told = ~_rounded(table.name, table.metrics, typical) & (signs != 0)
        worse = np.where(is_told & ~np.isnan(z), -z * signs, -np.inf)  # (k, m)
        is_first = (known.signs != 0) & (worse >= LEAST_DEVIATION)
        rank = np.minimum(worse, FAR) + np.where(is_first, FAR, 0.0)
        order = np.argsort(-rank, axis=1, kind="stable")[:, :MOST]
        row, place = np.nonzero(np.take_along_axis(worse, order, axis=1) >= LEAST_DEVIATION)
        column = order[row, place]
        low, middle, high = _range(usual.centre, known.normal.is_positive, asked, row, column)
        parts.append(
            pd.DataFrame(
                {
                    "execution": table.executions[asked[row]],
                    "place": place + 1,
                    "metric": np.array(table.metrics, dtype=object)[column],
                    "unit": np.array(table.units, dtype=object)[column],
                    "value": table.natural[asked[row], column],
                    "usual_low": low,
                    "usual": middle,
                    "usual_high": high,
                    "deviation": worse[row, column],
                    "is_headline": known.signs[column] != 0,
                    "higher_is_better": signs[column] > 0,
                }
            )
        )
    found = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    return found.sort_values(["execution", "place"], kind="stable", ignore_index=True)


def _directed(is_directed: Bools | None) -> Floats | float:
    return 1.0 if is_directed is None else is_directed.astype(np.float64)


def _rounded(name: str, metrics: tuple[str, ...], typical: Floats) -> Bools:
    """Metrics that the tool rounds away: (k, m)."""
    steps = np.array([resolution(name.split("@")[0], metric) for metric in metrics])
    return np.asarray((steps > 0) & (typical < ROUNDED_STEPS * steps))


def natural_of(values: Floats, is_positive: Bools) -> Floats:
    """From the scale of logarithms() back to base units. is_positive: of the last axis."""
    with np.errstate(over="ignore"):
        return np.asarray(np.where(is_positive, np.exp(values), np.sign(values) * np.expm1(np.abs(values))))


def _range(
    usual: Centre, is_positive: Bools, asked: np.ndarray, row: np.ndarray, column: np.ndarray
) -> tuple[Floats, Floats, Floats]:
    """Low end, middle and high end of the usual range in base units: (r,) each."""
    middle, spread = usual.median[asked[row], column], usual.deviation[asked[row], column]
    ends = (middle - USUAL_DEVIATIONS * spread, middle, middle + USUAL_DEVIATIONS * spread)
    low, centre, high = (natural_of(one, is_positive[column]) for one in ends)
    return low, centre, high


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
    stressed, calm = (one(executions).to_numpy(dtype=bool) for one in (is_stressed, is_unstressed))
    calm = calm & ~executions["execution_id"].isin(under_alarm).to_numpy(dtype=bool)
    hours = hours_of(executions)
    preprocessor = fit(history, preprocess)
    tables = tables_of(history, preprocessor)
    fitted = fit_detector(tables, hours, stressed | calm, stressed, calm, detect, seed=seed)
    scores = fitted.in_training
    if not fitted.types:
        raise BadInput(
            f"{len(executions)} executions", "no benchmark has five calm ones", "several of a benchmark", "record more"
        )
    chosen: Budget | None = None
    if budget.by == "alarms":
        chosen = threshold_of_alarms(executions, scores, calm, hours, budget, alarm)
        threshold = chosen.threshold
    else:
        known = ~np.isnan(scores) & (stressed | calm)
        try:
            threshold = threshold_of_share(scores[known], stressed[known], budget.by, budget.share)
        except ValueError as error:
            raise BadInput("nodes.budget.by", str(error), "alarms", "choose by alarms, or record stress") from error
    model = VerdictModel(preprocessor, fitted, threshold, chosen)
    figures = _figures(executions, scores, stressed, calm, threshold)
    return Learned(model, figures, int((stressed | calm).sum()), int(stressed.sum()))


def judge_history(history: History, model: VerdictModel) -> Verdicts:
    """What the detector says of every execution, each by what its node had done before."""
    hours = hours_of(history.executions)
    tables = tables_of(history, model.preprocessor)
    found = model.detector.score(tables, hours)
    flagged = np.nan_to_num(found.score, nan=-np.inf) > model.threshold
    ids = history.executions["execution_id"].astype(str).to_numpy(dtype=object)
    reasons = reasons_of(model.detector, tables, hours, flagged)
    told = {"execution_id": ids, "score": found.score, "probability": found.probability, "is_flagged": flagged}
    return Verdicts(
        pd.DataFrame({**told, "is_cold": found.is_cold, "by_labels": found.by_labels}),
        reasons.assign(execution_id=ids[reasons["execution"].to_numpy(dtype=np.int64)]).drop(columns="execution"),
    )


def save_verdict_model(model: VerdictModel, folder: Path) -> None:
    """Write the files of a model; nothing in them is code."""
    save_preprocessor(model.preprocessor, folder / PREPROCESSOR)
    save_detector(model.detector, folder)
    told = {"threshold": model.threshold, "budget": vars(model.budget) if model.budget else None}
    (folder / BUDGET).write_text(json.dumps(told, indent=1))


def load_verdict_model(folder: Path) -> VerdictModel:
    """What save_verdict_model wrote. Raises BadInput for files that are missing, damaged or foreign."""
    try:
        told = json.loads((folder / BUDGET).read_text())
        budget = Budget(**told["budget"]) if told["budget"] else None
        detector = load_detector(folder)
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
        problem = f"no detector of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "what 'whorl nodes train' wrote", "train again") from error
    return VerdictModel(load_preprocessor(folder / PREPROCESSOR), detector, float(told["threshold"]), budget)


def _figures(
    executions: pd.DataFrame, scores: Floats, stressed: Bools, calm: Bools, threshold: float
) -> dict[str, float]:
    """Detection over the labelled executions with a score; empty where only one kind is known."""
    known = ~np.isnan(scores) & (stressed | calm)
    series = pd.factorize(executions["node"].astype(str) + "\n" + type_names(executions))[0]
    measured = measures_of(scores[known], scores[known] > threshold, stressed[known], series[known])
    return {name: float(value) for name in SHOWN if (value := measured[name]) is not None}
