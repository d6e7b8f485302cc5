"""Plain ways to tell that an execution is not like the others, which ours are measured against.

Each is a function of a Case and gives (n_executions,) scores, larger for what is more anomalous, NaN where it says
nothing. What it says of an execution rests on the training executions and on earlier executions of any kind, never on
later ones that are not in training. The four: robust z-scores (Iglewicz & Hoaglin 1993), isolation forests (Liu, Ting &
Zhou 2008), the median of the last k normal-looking executions, and change points (Adams & MacKay 2007). Nobody sets
their constants: they are what such detectors are usually run with."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numba import njit

from tasks.nodes.aspects import hours_of, is_contaminated, is_stressed, is_unstressed
from tasks.nodes.detect.detector import FittedDetector, fit_detector
from tasks.nodes.detect.params import DetectorParams
from tasks.nodes.history import History
from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.ranking.scores import execution_scores, learn_reference
from tasks.nodes.type_tables import (
    SD_OF_MAD,
    Bools,
    Floats,
    Ints,
    NodeTables,
    TypeTable,
    group_medians,
    robust_deviation,
    within_deviation,
)
from tasks.workloads.changepoints.online import filter_run_lengths
from tasks.workloads.changepoints.params import ChangePointParams, PriorParams
from tasks.workloads.changepoints.predictive import predictive_tables
from tasks.workloads.changepoints.standardise import checked

TINY = 1e-9  # of the largest magnitude: a metric that varies less is constant, and what varies is rounding
NORM = 2.0  # power of the mean over a type's metrics
LARGEST = 100.0  # deviations of one metric are cut here
FARTHEST = 1e12  # deviations: of scores that never varied in training a fall may be beyond the largest number

MIN_HISTORY = 10  # executions of a node and type to judge it by its own level; of fewer, the fleet
HISTORY = 50  # latest executions that a node without training executions is judged by
LEAST_SPREAD = 0.5  # a node's own spread counts as at least this share of that within all nodes

LEAST_NORMAL = 8  # executions to grow a forest from
TREES = 200  # of the forest of each type
LARGEST_SCALED = 1e30  # scaled values are cut here: a span of them is still a number in float32

K = 10  # normal-looking executions that the median is of
LOOKS_NORMAL = 3.5  # deviations up to which an execution enters later medians

EXPECTED_RUN_LENGTH = 50.0  # executions between changes before any is seen
RECENT = 3  # a change at most so many executions ago makes one suspicious
COMPARED = 20  # earlier executions whose median tells worse from better
PRIOR = PriorParams(noise=1.0, trend_share=0.0)
LIMITS = ChangePointParams()  # of run lengths that are kept


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


def forest_scores(case: Case) -> Floats:
    """How soon each execution is alone in an isolation forest of its type, levelled by type: (n_executions,).

    On the type's metrics as the preprocessing scales them. A type with fewer than 8 normal training executions has
    scores of 0; NaN without a table."""
    scores = []
    for number, table in enumerate(case.tables.tables):
        is_normal = case.normal_rows(table)
        scores.append(levelled(_isolation(table, is_normal, [case.seed, 0, number]), is_normal))
    return case.tables.in_place(scores)


def _isolation(table: TypeTable, is_normal: Bools, seed: list[int]) -> Floats:
    from sklearn.ensemble import IsolationForest  # type: ignore[import-untyped, unused-ignore]

    if is_normal.sum() < LEAST_NORMAL or not table.scaled.shape[1]:
        return np.zeros(len(table.executions))
    filled = np.nan_to_num(table.scaled, nan=0.0)  # 0 is the middle of the scale
    values = np.clip(filled, -LARGEST_SCALED, LARGEST_SCALED).astype(np.float32)
    forest = IsolationForest(n_estimators=TREES, random_state=int(np.random.default_rng(seed).integers(2**31)))
    return np.asarray(-forest.fit(values[is_normal]).score_samples(values))


def last_k_scores(case: Case) -> Floats:
    """Deviations from the median of a node's last executions that looked normal, levelled by type: (n_executions,).

    Training executions teach the spread alone: the median is always of earlier executions, whatever their label. NaN
    without a table."""
    found = []
    for table, normal in zip(case.tables.tables, case.normals, strict=True):
        with np.errstate(over="ignore"):  # what is beyond the largest number is cut as well
            series = table.natural / normal.within
        scores = np.full(len(table.executions), np.nan)
        for rows in rows_of_nodes(table.nodes):
            scores[rows] = last_k_deviations(series[rows])
        found.append(levelled(scores, case.normal_rows(table)))
    return case.tables.in_place(found)


@njit(cache=True)
def last_k_deviations(series: Floats, k: int = K) -> Floats:
    """The power mean of each row's distances from the medians of the last k rows that looked normal: (n,).

    series: (n, m) of one node in time order, in deviations, NaN where not measured. A row looks normal up to
    LOOKS_NORMAL, and where it cannot be compared (NaN). When k in a row do not, the node has a new level: they take the
    place of the normal ones, so that a lasting change is told once. Each verdict hangs on those before it: compiled."""
    n, m = series.shape
    scores = np.full(n, np.nan)
    normal, odd = np.empty((k, m)), np.empty((k, m))  # a row stands at its number modulo k
    n_normal, n_odd = 0, 0
    for row in range(n):
        total, n_told = 0.0, 0
        for metric in range(m):
            median = np.nanmedian(normal[: min(n_normal, k), metric]) if n_normal else np.nan
            apart = np.abs(series[row, metric] - median)
            if not np.isnan(apart):
                total += min(apart, LARGEST) ** NORM
                n_told += 1
        if n_told:
            scores[row] = (total / n_told) ** (1 / NORM)
        if scores[row] > LOOKS_NORMAL:
            odd[n_odd] = series[row]
            n_odd += 1
            if n_odd == k:
                normal, odd = odd, normal
                n_normal, n_odd = k, 0
        else:
            normal[n_normal % k] = series[row]
            n_normal, n_odd = n_normal + 1, 0
    return scores


def change_point_scores(case: Case) -> Floats:
    """The recent fall to be expected in the scores of a node and type, in deviations: (n_executions,).

    The series of each node is the logarithm of its score over the deviation of the normal training executions. NaN
    without a table."""
    scoring = ScoreParams(left_out_aspects=[])
    reference = learn_reference(case.tables, case.is_normal, scoring)
    found = []
    for table in case.tables.tables:
        scores = execution_scores(table, reference, scoring)
        normal = learn_normal(scores[:, None], table.nodes, case.normal_rows(table), len(case.tables.nodes))
        with np.errstate(over="ignore"):
            series = np.clip(scores / normal.within[0], -FARTHEST, FARTHEST)
        falls = np.zeros(len(scores))
        for rows in rows_of_nodes(table.nodes):
            falls[rows] = expected_fall(series[rows])
        found.append(falls)
    return case.tables.in_place(found)


def expected_fall(series: Floats) -> Floats:
    """Probability of a recent change times how far the sample lies below those before it, at least 0: (n,).

    series: (n,) in deviations of its noise, NaN where nothing was measured. Below: than the median of the samples
    before it, of the last COMPARED."""
    is_there = ~np.isnan(series)
    if not is_there.any():
        return np.zeros(len(series))
    earlier = pd.Series(series).rolling(COMPARED, min_periods=1).median().shift(1).to_numpy()
    below = np.clip(np.nan_to_num(earlier - series, nan=0.0), 0.0, LARGEST)
    from_first = series - series[is_there][0]  # the prior believes in levels around 0
    return np.asarray(recent_change(from_first) * below)


def recent_change(series: Floats, expected_run_length: float = EXPECTED_RUN_LENGTH, recent: int = RECENT) -> Floats:
    """Probability, after each sample, that a segment began within the last `recent` samples, the first aside: (n,).

    The one place where nodes use the change points of workloads. series: (n,) in deviations of its noise, NaN where
    nothing was measured; such samples are given 0. The filtered run-length posterior: later samples change nothing.
    Lines, scales and outliers of a whole series, which find_changepoints heeds, are none here, nor is anything looked
    at from its end. Raises BadInput for infinite values."""
    found = np.zeros(len(series))
    rows = np.flatnonzero(~np.isnan(series))
    if not len(rows):
        return found
    hazard = 1 / expected_run_length
    _, _, offsets, starts, probabilities, _, _ = filter_run_lengths(
        checked(series)[rows],
        predictive_tables(PRIOR, len(rows)).arrays(),
        np.log([hazard, 1 - hazard]),
        LIMITS.min_segment,
        LIMITS.prune_nats,
        LIMITS.max_run_lengths,
    )
    samples = np.repeat(np.arange(len(rows)), np.diff(offsets))
    is_recent = (starts > 0) & (rows[samples] - rows[starts] < recent)
    found[rows] = np.bincount(samples, weights=probabilities * is_recent, minlength=len(rows))
    return found


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


def rows_of_nodes(nodes: Ints) -> list[Ints]:
    """The rows of each node that has any, in their order. nodes: (n,) the node of each row."""
    if not len(nodes):
        return []
    order = np.argsort(nodes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(nodes[order])) + 1)


Detector = Callable[[Case], Floats]  # (n_executions,), larger: more anomalous; NaN: nothing to say
OUT_OF_FOLD = ("detector", "logistic")  # what they say of what they learned is by what the other stretches taught
WITHOUT_LABELS = "headline"  # what these are where no stress is known
BASELINE = "logistic"  # what a detector has to beat
EVEN_ODDS = 0.0  # score from which one of ours flags without a label to choose by


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
    "forest": forest_scores,
    "lastk": last_k_scores,
    "changepoint": change_point_scores,
}
