"""Rank correlations of scores with application performance, with intervals over nodes."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from tasks.nodes.aspects import APPLICATION
from tasks.nodes.evaluate.measures import Figures, put
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.ranking.places import LIMIT, fit_first_component
from tasks.nodes.ranking.scores import Levels, score_nodes
from tasks.nodes.ranking.shared_component import COMMON, shared_score
from tasks.nodes.reference_fleet import PER_SECOND, learn_reference
from tasks.nodes.type_tables import Bools, Floats, NodeTables, group_medians, robust_deviation

LEAST = 4  # pairs of values from which a correlation is told
CELLS = 4_000_000  # resamples times nodes drawn together


def spearman(one: Floats, others: Floats) -> Floats:
    """Spearman's correlation of one (n,) with each column of others (n, a), ties by mean rank: (a,).

    Over the rows where both are there; NaN for fewer than 4, and where either does not vary."""
    return np.array([_pair(one, other) for other in others.T])


def _pair(one: Floats, other: Floats) -> float:
    is_there = ~np.isnan(one) & ~np.isnan(other)
    if is_there.sum() < LEAST:
        return np.nan
    first, second = _centred(rankdata(one[is_there])), _centred(rankdata(other[is_there]))
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size else np.nan


def _centred(ranks: Floats) -> Floats:
    return np.asarray(ranks - ranks.mean())


def typical(correlations: Floats) -> float:
    """Median absolute value, of those that are known; NaN for none."""
    known = np.abs(correlations[~np.isnan(correlations)])
    return float(np.median(known)) if len(known) else np.nan


def signed_interval(
    one: Floats, others: Floats, n_resamples: int, confidence: float, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Median over the columns of others of the signed correlation, and its interval over resampled rows.

    Rows are drawn with replacement and keep the ranks that they have among all rows. NaN where nothing is known."""
    known = spearman(one, others)
    if np.isnan(known).all():
        return np.nan, np.nan, np.nan
    ranks = [_both_ranks(one, other) for other in others.T]
    n = len(one)
    step = max(1, CELLS // n)
    drawn = []
    for first in range(0, n_resamples, step):
        counts = rng.multinomial(n, np.full(n, 1 / n), size=min(step, n_resamples - first)).astype(np.float64)
        each = np.column_stack([_weighted(counts, pair) for pair in ranks])
        drawn.append(np.nanmedian(each, axis=1))
    low, high = np.nanquantile(np.concatenate(drawn), [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(np.nanmedian(known)), float(low), float(high)


def _both_ranks(one: Floats, other: Floats) -> tuple[Floats, Floats, Floats]:
    """Ranks of both among the rows where both are there, 0 elsewhere, and whether they are."""
    is_there = ~np.isnan(one) & ~np.isnan(other)
    ranks = np.zeros((2, len(one)))
    if is_there.any():
        ranks[0, is_there] = _centred(rankdata(one[is_there]))
        ranks[1, is_there] = _centred(rankdata(other[is_there]))
    return ranks[0], ranks[1], is_there.astype(np.float64)


def _weighted(counts: Floats, pair: tuple[Floats, Floats, Floats]) -> Floats:
    """Pearson's correlation of the ranks in each resample: (n_resamples,). counts: (n_resamples, n)."""
    first, second, is_there = pair
    total = counts @ is_there
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (counts @ first) / total, (counts @ second) / total
        covariance = (counts @ (first * second)) / total - means[0] * means[1]
        variances = [(counts @ (x**2)) / total - mean**2 for x, mean in zip((first, second), means, strict=True)]
        return np.asarray(covariance / np.sqrt(variances[0] * variances[1]))


UNKNOWN = "unknown"  # machine type of nodes of which nobody says it, in keys of figures


@dataclass(frozen=True)
class NodeMatrix:
    """micro: (n_nodes, n_types) log scores of each microbenchmark type, NaN where it did not run. levels: how they sum
    up. applications: (n_nodes, n_series) medians of what applications reached, oriented so that more is better, NaN
    where they did not run. series: their names. machine_types: (n_nodes,), UNKNOWN where nobody says."""

    nodes: tuple[str, ...]
    machine_types: np.ndarray
    micro: Floats
    levels: Levels
    applications: Floats
    series: tuple[str, ...]

    def where(self, is_kept: Bools) -> "NodeMatrix":
        """The nodes for which the mask (n_nodes,) is true."""
        return replace(
            self,
            nodes=tuple(node for node, kept in zip(self.nodes, is_kept, strict=True) if kept),
            machine_types=self.machine_types[is_kept],
            micro=self.micro[is_kept],
            applications=self.applications[is_kept],
        )


def node_matrix(tables: NodeTables, is_counted: Bools, params: ScoreParams) -> NodeMatrix:
    """The microbenchmarks and applications of each node, from the executions of the mask (n_executions,).

    Of the applications only rates count where any is measured: the latency of the same runs mirrors them."""
    own = tables.of_executions(is_counted)
    micro_params = params.model_copy(update={"left_out_aspects": sorted({*params.left_out_aspects, APPLICATION})})
    micro = own.of_aspects(micro_params.left_out_aspects)
    reference = learn_reference(micro, np.ones(tables.n_executions, dtype=bool), micro_params)
    scores = score_nodes(micro, reference, micro_params)
    series, names = _applications(own)
    return NodeMatrix(
        own.nodes,
        np.array([one or UNKNOWN for one in own.machine_types], dtype=object),
        scores.log_scores,
        scores.levels,
        series,
        names,
    )


def _applications(tables: NodeTables) -> tuple[Floats, tuple[str, ...]]:
    columns, names, is_rate = [], [], []
    for table in tables.tables:
        if table.aspect != APPLICATION:
            continue
        medians = group_medians(table.natural, table.nodes, len(tables.nodes)) * table.orientation
        for at, metric in enumerate(table.metrics):
            columns.append(medians[:, at])
            names.append(table.name if len(table.metrics) == 1 else f"{table.name}:{metric}")
            is_rate.append(table.units[at].endswith(PER_SECOND) and table.orientation[at] > 0)
    if any(is_rate):
        columns = [column for column, kept in zip(columns, is_rate, strict=True) if kept]
        names = [name for name, kept in zip(names, is_rate, strict=True) if kept]
    found = np.column_stack(columns) if columns else np.empty((len(tables.nodes), 0))
    return found, tuple(names)


def geometric_mean(train: Floats, test: Floats, levels: Levels) -> Floats:
    """The score of each test node, natural logarithm, the training nodes' medians being the reference: (n_test,).

    train, test: (n, n_types) log scores by type."""
    return levels.overall(test - _medians(train))


def standardised_mean(train: Floats, test: Floats, levels: Levels) -> Floats:
    """As the score, with each type in robust deviations of the training nodes, cut at LIMIT: (n_test,).

    Types that vary much then say no more than those that vary little. Types without spread say nothing."""
    scale = robust_deviation(train)
    scale = np.where(scale > 0, scale, np.nan)
    return levels.overall(np.clip((test - _medians(train)) / scale, -LIMIT, LIMIT))


def first_component(train: Floats, test: Floats) -> Floats:
    """The first principal component of the training nodes' types, asked of the test nodes: (n_test,)."""
    return fit_first_component(train).score(test)


def best_single(types: Floats, applications: Floats) -> int:
    """The type with the largest median absolute correlation with the applications, of those that half the nodes ran.

    types: (n, n_types). applications: (n, n_series). Raises ValueError if no type has a correlation with any."""
    is_common = (~np.isnan(types)).mean(axis=0) >= COMMON
    strength = np.array([typical(spearman(column, applications)) for column in types.T])
    strength = np.where(is_common, strength, np.nan)
    if np.isnan(strength).all():
        raise ValueError("no microbenchmark varies beside an application")
    return int(np.nanargmax(strength))


def _medians(values: Floats) -> Floats:
    """Of each column, NaN without a value."""
    return np.array([np.median(own) if len(own := column[~np.isnan(column)]) else np.nan for column in values.T])


COLUMNS = ["machine_type", "half", "method", "series", "spearman", "chosen"]
SIGNED = "signed"  # among the reasons: why the signed correlation of our score cannot be had
NO_CORRELATION = "the score and an application never both vary over 4 nodes or more"
Told = tuple[Floats, str]


def _single(by: NodeMatrix, test: NodeMatrix) -> Told:
    at = best_single(by.micro, by.applications)
    return test.micro[:, at], by.levels.types[at]


TELL: Mapping[str, Callable[[NodeMatrix, NodeMatrix], Told]] = {
    "spearman": lambda train, test: (geometric_mean(train.micro, test.micro, train.levels), ""),  # our score
    "standardised": lambda train, test: (standardised_mean(train.micro, test.micro, train.levels), ""),
    "pc1": lambda train, test: (first_component(train.micro, test.micro), ""),
    "shared": lambda train, test: (shared_score(train.micro, test.micro, train.levels), ""),
    "best_single": _single,
    "best_oracle": lambda _, test: _single(test, test),
}
"""From training and test nodes the scores of the test nodes (n,), and the single microbenchmark that was chosen."""
METHODS = tuple(TELL)


@dataclass(frozen=True)
class OfMachineType:
    """One machine type. correlations: one row a half, method and series: machine_type, half (that was tested), method,
    series, spearman (signed), chosen (the single microbenchmark, else empty). signed: median over series, low, high, of
    our score over all nodes. n_nodes: with a microbenchmark. reasons: by method,
    and by SIGNED, why it cannot be had; such a method has no row."""

    machine_type: str
    n_nodes: int
    correlations: pd.DataFrame
    signed: tuple[float, float, float]
    reasons: Mapping[str, str]


def is_second_half(nodes: tuple[str, ...]) -> Bools:
    """Which nodes are of the second half: by the hash of their names, so that a new node moves no other. (n,)"""
    return np.array([zlib.crc32(node.encode()) % 2 == 1 for node in nodes], dtype=bool)


def compare_by_machine_type(matrix: NodeMatrix, params: EvaluateParams) -> list[OfMachineType]:
    """Compare scores with applications within each machine type, in order of name."""
    found = []
    for machine_type in sorted({str(one) for one in matrix.machine_types}):
        own = matrix.where((matrix.machine_types == machine_type) & ~np.isnan(matrix.micro).all(axis=1))
        found.append(_compare(machine_type, own, params))
    return found


def _compare(machine_type: str, own: NodeMatrix, params: EvaluateParams) -> OfMachineType:
    unknown = (np.nan, np.nan, np.nan)
    if reason := why_not_compared(own, params):
        nothing, reasons = pd.DataFrame(columns=COLUMNS), dict.fromkeys((*METHODS, SIGNED), reason)
        return OfMachineType(machine_type, len(own.nodes), nothing, unknown, reasons)
    rows, reasons = _halves(machine_type, own)
    score = geometric_mean(own.micro, own.micro, own.levels)
    rng = np.random.default_rng([params.seed, zlib.crc32(machine_type.encode())])
    signed = signed_interval(score, own.applications, params.resamples, params.score.confidence, rng)
    if np.isnan(signed[0]):
        reasons = {**reasons, SIGNED: NO_CORRELATION}
    return OfMachineType(machine_type, len(own.nodes), rows, signed, reasons)


def why_not_compared(own: NodeMatrix, params: EvaluateParams) -> str:
    """Why nodes of one machine type cannot be compared with applications; empty where they can."""
    if not own.series:
        return "no application (aspect application) ran on these nodes"
    if not own.levels.types:
        return "no microbenchmark ran on these nodes"
    is_second = is_second_half(own.nodes)
    n_each = min(int(is_second.sum()), int((~is_second).sum()))
    if n_each < params.least_nodes / 2:
        return f"{len(own.nodes)} nodes, {n_each} in the smaller half; at least {params.least_nodes} are needed"
    if np.isnan(own.applications).all():
        return "no application (aspect application) ran on these nodes"
    return ""


def _halves(machine_type: str, own: NodeMatrix) -> tuple[pd.DataFrame, dict[str, str]]:
    """Learn from one half and ask the other, both ways round: rows, and the reasons of methods without any."""
    is_second = is_second_half(own.nodes)
    found: list[dict[str, object]] = []
    reasons: dict[str, str] = {}
    for half, is_test in enumerate((is_second, ~is_second)):
        train, test = own.where(~is_test), own.where(is_test)
        for method, tell in TELL.items():
            try:
                scores, chosen = tell(train, test)
            except ValueError as error:  # nothing varies: there is nothing to learn or to choose from
                reasons[method] = str(error)
                continue
            about = {"machine_type": machine_type, "half": half, "method": method, "chosen": chosen}
            each = zip(own.series, spearman(scores, test.applications), strict=True)
            found += [{**about, "series": series, "spearman": value} for series, value in each]
    rows = pd.DataFrame(found, columns=COLUMNS)
    for method in METHODS:
        if rows.loc[rows["method"] == method, "spearman"].isna().all():
            reasons.setdefault(method, NO_CORRELATION)
    return rows[~rows["method"].isin(reasons)], reasons


def rank_figures(found: Sequence[OfMachineType], params: EvaluateParams) -> Figures:
    """For each machine type `rank.nodes`, `rank.<method>` (median over series of the absolute correlation, mean over
    the two halves), `rank.signed` with .low and .high, `rank.almost_nothing`;
    without a machine type: the median over the series of all of them, and `.mean`, the mean of their values."""
    figures: Figures = {}
    for one in found:
        slice_ = one.machine_type
        figures[f"rank.nodes.{slice_}"] = one.n_nodes
        for method in METHODS:
            put(figures, f"rank.{method}.{slice_}", _typical([one], method), one.reasons.get(method, ""))
        chosen = one.correlations[one.correlations["method"] == "best_single"]["chosen"].unique()
        if len(chosen):
            figures[f"rank.best_single.{slice_}.chosen"] = ", ".join(map(str, chosen))
        for name, value in zip(("", ".low", ".high"), one.signed, strict=True):
            put(figures, f"rank.signed.{slice_}{name}", value, one.reasons.get(SIGNED, ""))
        figures |= _nothing(one, params)
    for method in METHODS:
        why = dict.fromkeys(one.reasons[method] for one in found if method in one.reasons)
        reason = "; ".join(why) or "no node"
        put(figures, f"rank.{method}", _typical(found, method), reason)
        each = [told for one in found if (told := _typical([one], method)) is not None]
        put(figures, f"rank.{method}.mean", float(np.mean(each)) if each else None, reason)
    figures["rank.series"] = max((one.correlations["series"].nunique() for one in found), default=0)
    return figures


def _typical(found: Sequence[OfMachineType], method: str) -> float | None:
    """The median over series, mean over halves."""
    kept = [one.correlations for one in found if method not in one.reasons]
    if not kept:
        return None
    rows = pd.concat(kept, ignore_index=True)
    own = rows[rows["method"] == method].groupby("half")["spearman"]
    return float(own.agg(lambda values: typical(values.to_numpy())).mean())


def _nothing(one: OfMachineType, params: EvaluateParams) -> Figures:
    """`rank.almost_nothing`: whether the score says little or nothing of these nodes, and `.why`.

    By the applications that ran there: the interval holds 0, or the correlation is below a stated size."""
    key = f"rank.almost_nothing.{one.machine_type}"
    if reason := one.reasons.get(SIGNED, ""):
        return {key: None, f"{key}.reason": reason}
    middle, low, high = one.signed
    told = "correlation with applications"
    if low <= 0 <= high:
        return {key: True, f"{key}.why": f"the interval of the {told} holds 0: {low:.3f} to {high:.3f}"}
    if abs(middle) < params.nothing_below:
        return {key: True, f"{key}.why": f"the {told} is {middle:.3f}, below {params.nothing_below:g}"}
    return {key: False, f"{key}.why": f"the {told} is {middle:.3f} ({low:.3f} to {high:.3f})"}
