"""Verdicts on the executions of a source: a detector with its threshold, learned, kept as a model, and asked."""

import json
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.nodes.aspects import hours_of, is_stressed, is_unstressed, type_names
from tasks.nodes.detect.budget import Budget, threshold_of_alarms, threshold_of_share
from tasks.nodes.detect.detector import FittedDetector, fit_detector, load_detector, save_detector
from tasks.nodes.detect.params import AlarmParams, BudgetParams, DetectorParams
from tasks.nodes.detect.reasons import reasons_of
from tasks.nodes.evaluate.measures import measures_of
from tasks.nodes.history import History
from tasks.nodes.preprocess.fitting import Preprocessor, fit, load_preprocessor, save_preprocessor
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.tabulating import tables_of
from tasks.nodes.type_tables import Bools, Floats

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
    seed: int = 0,
) -> Learned:
    """Learn from all executions of a source; thresholds and figures come from scores that are out of fold.

    Raises BadInput where nothing can be learned, and where precision or recall is asked for and no stress is known."""
    executions = history.executions
    stressed, calm = (one(executions).to_numpy(dtype=bool) for one in (is_stressed, is_unstressed))
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
