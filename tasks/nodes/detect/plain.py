"""The detectors that an evaluation measures: ours, and the plain ones beside it.

Each is a function of a Case and gives (n_executions,) scores, larger for what is more anomalous, NaN where it says
nothing. What it says of an execution rests on the training executions and on earlier executions of any kind, never on
later ones that are not in training. The plain one without labels is the robust z-score (Iglewicz & Hoaglin 1993)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tasks.nodes.detect.detector import FittedDetector, fit_detector
from tasks.nodes.history import History
from tasks.nodes.params import DetectorParams
from tasks.nodes.type_tables import (
    SD_OF_MAD,
    Bools,
    Floats,
    Ints,
    NodeTables,
    TypeTable,
    group_medians,
    hours_of,
    is_contaminated,
    is_stressed,
    is_unstressed,
    robust_deviation,
    within_deviation,
)

TINY = 1e-9  # of the largest magnitude: a metric that varies less is constant, and what varies is rounding
NORM = 2.0  # power of the mean over a type's metrics
LARGEST = 100.0  # deviations of one metric are cut here

MIN_HISTORY = 10  # executions of a node and type to judge it by its own level; of fewer, the fleet
HISTORY = 50  # latest executions that a node without training executions is judged by
LEAST_SPREAD = 0.5  # a node's own spread counts as at least this share of that within all nodes


@dataclass(frozen=True)
class Normal:
    """What the normal training executions of one type are like, for each of its metrics.

    n: (n_nodes,) executions of each node. centres, deviations: (n_nodes, m) of each node alone. centre, around: (m,)
    median and robust deviation of the whole fleet. within: (m,) robust deviation around the medians of the nodes."""

    n: Ints
    centres: Floats
    deviations: Floats
    centre: Floats
    around: Floats
    within: Floats


@dataclass(frozen=True)
class Case:
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

    def normal_rows(self, table: TypeTable) -> Bools:
        """The rows of a table that are what normal is learned from: (n,)."""
        return self.is_normal[table.executions]

    @cached_property
    def normals(self) -> tuple[Normal, ...]:
        """What the normal training executions of each table are like; learned once, for all that ask."""
        n_nodes = len(self.tables.nodes)
        return tuple(
            learn_normal(table.natural, table.nodes, self.normal_rows(table), n_nodes) for table in self.tables.tables
        )


def learn_normal(values: Floats, nodes: Ints, is_normal: Bools, n_nodes: int) -> Normal:
    """Learn from the rows of the mask (n,). values: (n, m). No spread is 0: it is at least rounding."""
    normal, of = values[is_normal], nodes[is_normal]
    centres = group_medians(normal, of, n_nodes)
    deviations = SD_OF_MAD * group_medians(np.abs(normal - centres[of]), of, n_nodes)
    floor = TINY * np.nanmax(np.abs(normal), axis=0, initial=0.0) + np.finfo(float).tiny if len(normal) else 1.0
    around = np.fmax(robust_deviation(normal), floor)
    within = within_deviation(normal, of, n_nodes)
    within = np.maximum(np.where(np.isnan(within), around, within), floor)
    centre = pd.DataFrame(normal).median().to_numpy(dtype=np.float64)
    return Normal(np.bincount(of, minlength=n_nodes), centres, deviations, centre, around, within)


def zscore_scores(case: Case) -> Floats:
    """The power mean of a type's z-scores, levelled by type: (n_executions,), NaN without a table."""
    scores = []
    for table, normal in zip(case.tables.tables, case.normals, strict=True):
        scores.append(levelled(power_mean(z_scores(table, normal)), case.normal_rows(table)))
    return case.tables.in_place(scores)


def z_scores(table: TypeTable, normal: Normal) -> Floats:
    """(x - median) / (1.4826 · MAD) of each metric, positive where it is worse: (n, m), NaN where not measured.

    By the node's own training executions; a node with few of them by its own earlier executions, and where these are
    few too, by the fleet. Infinite where it is beyond the largest number: a metric that hardly ever varied."""
    has_level = (normal.n >= MIN_HISTORY)[table.nodes]
    earlier = _earlier_medians(table, ~has_level)
    has_level, has_earlier = has_level[:, None], ~np.isnan(earlier)
    centre = np.where(has_level, normal.centres[table.nodes], np.where(has_earlier, earlier, normal.centre))
    of_node = np.maximum(normal.deviations[table.nodes], LEAST_SPREAD * normal.within)
    spread = np.where(has_level, of_node, np.where(has_earlier, normal.within, normal.around))
    with np.errstate(over="ignore"):
        return np.asarray(-table.orientation * (table.natural - centre) / spread)


def _earlier_medians(table: TypeTable, is_asked: Bools) -> Floats:
    """Median of each node's latest earlier executions, the row itself left out; NaN for fewer than MIN_HISTORY: (n, m).

    is_asked: (n,) all rows of some nodes; NaN for the others."""
    medians = np.full(table.natural.shape, np.nan)
    if is_asked.any():
        values = pd.DataFrame(table.natural[is_asked]).groupby(table.nodes[is_asked])
        rolled = values.rolling(HISTORY, min_periods=MIN_HISTORY).median().groupby(level=0).shift(1)
        medians[is_asked] = rolled.droplevel(0).sort_index().to_numpy(dtype=np.float64)
    return medians


def levelled(scores: Floats, is_normal: Bools) -> Floats:
    """Scores of one type in robust deviations of the normal training executions, so one threshold serves all: (n,).

    scores: (n,), NaN where nothing could be said: these become 0, the middle of what is normal."""
    normal = scores[is_normal & ~np.isnan(scores)]
    if not len(normal):
        return np.nan_to_num(scores, nan=0.0)
    centre = np.median(normal)
    spread = SD_OF_MAD * np.median(np.abs(normal - centre))
    return np.nan_to_num((scores - centre) / (spread or 1.0), nan=0.0)


def power_mean(deviations: Floats) -> Floats:
    """(mean_j |z_j|^p)^(1/p) over the metrics that are there: (n,), NaN without any. deviations: (n, m)."""
    is_there = ~np.isnan(deviations)
    cut = np.where(is_there, np.minimum(np.abs(deviations), LARGEST), 0.0)
    n_there = is_there.sum(axis=1)
    mean = np.divide((cut**NORM).sum(axis=1), n_there, out=np.full(len(deviations), np.nan), where=n_there > 0)
    return np.asarray(mean ** (1 / NORM))


Detector = Callable[[Case], Floats]  # (n_executions,), larger: more anomalous; NaN: nothing to say
OUT_OF_FOLD = ("detector", "logistic")  # what they say of what they learned is by what the other stretches taught
WITHOUT_LABELS = "headline"  # what these are where no stress is known
BASELINE = "logistic"  # what a detector has to beat


def detector_scores(case: Case) -> Floats:
    """Our detector: (n_executions,), out of fold where it learned."""
    return _by_labels(case)


def logistic_scores(case: Case) -> Floats:
    """One regularised logistic regression a type on deviations from the node's level: (n_executions,), likewise."""
    return _by_labels(case, is_plain=True)


def headline_scores(case: Case) -> Floats:
    """Ours without labels: the headline metrics' deviations from what the node did lately, (n_executions,).

    It is told nothing of stress, also where others are: what completed undisturbed counts as calm."""
    executions = case.history.executions
    is_undisturbed = ((executions["status"] == "completed") & ~is_contaminated(executions)).to_numpy(dtype=bool)
    is_learned = (case.is_train | case.is_validation) & is_undisturbed
    nobody = np.zeros(len(is_learned), dtype=bool)
    return _fitted(case, is_learned, nobody, is_learned).score(case.tables, hours_of(executions)).score


def _by_labels(case: Case, *, is_plain: bool = False) -> Floats:
    executions = case.history.executions
    is_learned = case.is_train | case.is_validation
    known = executions["is_stressed"].notna().to_numpy()
    stressed, calm = (one(executions).to_numpy(dtype=bool) for one in (is_stressed, is_unstressed))
    is_learned &= stressed | calm | ~known
    fitted = _fitted(case, is_learned, stressed, calm, is_plain=is_plain)
    scores = fitted.score(case.tables, hours_of(executions)).score
    return np.where(np.isnan(fitted.in_training), scores, fitted.in_training)


def _fitted(case: Case, is_learned: Bools, stressed: Bools, calm: Bools, *, is_plain: bool = False) -> FittedDetector:
    hours, params = hours_of(case.history.executions), DetectorParams()
    return fit_detector(case.tables, hours, is_learned, stressed, calm, params, is_plain=is_plain, seed=case.seed)


DETECTORS: dict[str, Detector] = {
    "detector": detector_scores,
    "logistic": logistic_scores,
    "headline": headline_scores,
    "zscore": zscore_scores,
}
