"""The detectors that an evaluation measures: ours, and the plain ones beside it.

Each is a function of a DetectionCase and gives (n_executions,) scores, larger for what is more anomalous, NaN where it
says nothing. What it says of an execution rests on the training executions and on earlier ones of any kind, never on
later ones that are not in training. The plain one without labels is the robust z-score (Iglewicz & Hoaglin 1993)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tasks.nodes.detect.detector import FittedDetector, fit_detector, rows_of
from tasks.nodes.detect.deviations import CLIPPED, learn_normal, level_deviations, positive_metrics, windows_of
from tasks.nodes.history import History
from tasks.nodes.params import DetectorParams
from tasks.nodes.type_tables import (
    FEWEST,
    SD_OF_MAD,
    Bools,
    Floats,
    NodeTables,
    hours_of,
    is_contaminated,
    is_stressed,
    is_unstressed,
)


@dataclass(frozen=True)
class DetectionCase:
    """history: all executions, in time order. tables: theirs, preprocessed with what the training executions taught.

    is_train: (n_executions,) executions that may be learned from. is_normal: (n_executions,) those of them that nothing
    is known against: completed, not stressed, not disturbed. is_validation: executions that a threshold may be
    chosen on. seed: of anything drawn."""

    history: History
    tables: NodeTables
    is_train: Bools
    is_normal: Bools
    is_validation: Bools
    seed: int = 0


def zscore_scores(case: DetectionCase) -> Floats:
    """The root mean square of a type's deviations from the level, better or worse: (n_executions,), levelled by type.

    Levels are those of detect/deviations.py: of the node in training; else what it did before, its machine type, the
    fleet. NaN without a table, or with fewer than FEWEST normal training executions of the type."""
    at_h, scores = hours_of(case.history.executions), np.full(case.tables.n_executions, np.nan)
    for table in case.tables.tables:
        is_normal = case.is_normal[table.executions]
        if is_normal.sum() < FEWEST:
            continue
        rows = rows_of(table, case.tables, at_h)
        windows = windows_of(table, positive_metrics(table.natural, is_normal))
        z = level_deviations(rows, learn_normal(rows, windows, is_normal), windows)
        squares = np.minimum(np.abs(np.nan_to_num(z)), CLIPPED) ** 2
        root = np.sqrt(squares.sum(axis=1) / np.maximum((~np.isnan(z)).sum(axis=1), 1))
        scores[table.executions] = levelled(root, is_normal)
    return scores


def levelled(scores: Floats, is_normal: Bools) -> Floats:
    """Scores of one type in robust deviations of the normal training executions, so one threshold serves all: (n,)."""
    centre = np.median(scores[is_normal])
    spread = SD_OF_MAD * np.median(np.abs(scores[is_normal] - centre))
    return np.asarray((scores - centre) / (spread or 1.0))


Detector = Callable[[DetectionCase], Floats]  # (n_executions,), larger: more anomalous; NaN: nothing to say
OUT_OF_FOLD = ("detector", "logistic")  # what they say of what they learned is by what the other stretches taught
WITHOUT_LABELS = "headline"  # what these are where no stress is known
BASELINE = "logistic"  # what a detector has to beat


def headline_scores(case: DetectionCase) -> Floats:
    """Ours without labels: the headline metrics' deviations from what the node did lately, (n_executions,).

    It is told nothing of stress, also where others are: what completed undisturbed counts as calm."""
    executions = case.history.executions
    is_undisturbed = ((executions["status"] == "completed") & ~is_contaminated(executions)).to_numpy(dtype=bool)
    is_learned = (case.is_train | case.is_validation) & is_undisturbed
    nobody = np.zeros(len(is_learned), dtype=bool)
    return _fitted(case, is_learned, nobody, is_learned).score(case.tables, hours_of(executions)).score


def labelled_scores(case: DetectionCase, *, is_plain: bool = False) -> Floats:
    """Ours, or one regularised logistic regression a type on deviations from the node's level: (n_executions,), out of
    fold where it learned."""
    executions = case.history.executions
    is_learned = case.is_train | case.is_validation
    known = executions["is_stressed"].notna().to_numpy()
    stressed, calm = (mask_of(executions).to_numpy(dtype=bool) for mask_of in (is_stressed, is_unstressed))
    is_learned &= stressed | calm | ~known
    fitted = _fitted(case, is_learned, stressed, calm, is_plain=is_plain)
    scores = fitted.score(case.tables, hours_of(executions)).score
    return np.where(np.isnan(fitted.in_training), scores, fitted.in_training)


def _fitted(
    case: DetectionCase, is_learned: Bools, stressed: Bools, calm: Bools, *, is_plain: bool = False
) -> FittedDetector:
    hours, params = hours_of(case.history.executions), DetectorParams()
    return fit_detector(case.tables, hours, is_learned, stressed, calm, params, is_plain=is_plain, seed=case.seed)


DETECTORS: dict[str, Detector] = {
    "detector": labelled_scores,
    "logistic": partial(labelled_scores, is_plain=True),
    "headline": headline_scores,
    "zscore": zscore_scores,
}
