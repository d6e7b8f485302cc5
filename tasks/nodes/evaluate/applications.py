"""Rank correlations of scores with application performance, within machine types, on nodes that taught nothing."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.nodes.params import ScoreParams
from tasks.nodes.ranking.node_scores import (
    COMMON,
    LEAST_NODES,
    PER_SECOND,
    Levels,
    fit_shared_component,
    learn_reference,
    score_nodes,
)
from tasks.nodes.type_tables import APPLICATION, Bools, Floats, NodeTables, group_medians, robust_deviation
from tasks.report.evaluation import Figures, put

LIMIT = 5.0  # robust deviations at which a value is cut: one odd node must not be the component
LEAST = 4  # pairs of values from which a correlation is told
UNKNOWN = "unknown"  # machine type of nodes of which nobody says it, in keys of figures
COLUMNS = ["machine_type", "half", "method", "series", "spearman", "chosen"]
NO_CORRELATION = "the score and an application never both vary over 4 nodes or more"
NO_APPLICATION = "no application (aspect application) ran on these nodes"


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


@dataclass(frozen=True)
class OfMachineType:
    """One machine type. correlations: one row a half, method and series: COLUMNS, half being the one that was tested,
    chosen the single microbenchmark, else empty. n_nodes: with a microbenchmark. reasons: by method, why it cannot be
    had; such a method has no row."""

    machine_type: str
    n_nodes: int
    correlations: pd.DataFrame
    reasons: Mapping[str, str]


def node_matrix(tables: NodeTables, is_counted: Bools, params: ScoreParams) -> NodeMatrix:
    """The microbenchmarks and applications of each node, from the executions of the mask (n_executions,).

    Of the applications only rates count where any is measured: the latency of the same runs mirrors them."""
    counted = tables.of_executions(is_counted)
    micro_params = params.model_copy(update={"left_out_aspects": sorted({*params.left_out_aspects, APPLICATION})})
    micro = counted.of_aspects(micro_params.left_out_aspects)
    reference = learn_reference(micro, np.ones(tables.n_executions, dtype=bool), micro_params)
    scores = score_nodes(micro, reference, micro_params)
    series: dict[str, tuple[bool, Floats]] = {}  # whether it is a rate, and its medians
    for table in counted.tables:
        if table.aspect == APPLICATION:
            medians = group_medians(table.natural, table.nodes, len(counted.nodes)) * table.orientation
            for at, metric in enumerate(table.metrics):
                is_rate = table.units[at].endswith(PER_SECOND) and table.orientation[at] > 0
                name = table.name if len(table.metrics) == 1 else f"{table.name}:{metric}"
                series[name] = (is_rate, medians[:, at])
    if any(is_rate for is_rate, _ in series.values()):
        series = {name: rate for name, rate in series.items() if rate[0]}
    applications = np.column_stack([np.empty((len(counted.nodes), 0)), *(medians for _, medians in series.values())])
    kinds = np.array([name or UNKNOWN for name in counted.machine_types], dtype=object)
    return NodeMatrix(counted.nodes, kinds, scores.log_scores, scores.levels, applications, tuple(series))


def spearman(scores: Floats, others: Floats) -> Floats:
    """Spearman's correlation of scores (n,) with each column of others (n, a), ties by mean rank: (a,).

    Over the rows where both are there; NaN for fewer than 4, and where either does not vary."""
    together = pd.DataFrame(np.column_stack([scores, others])).corr(method="spearman", min_periods=LEAST)
    return together.to_numpy()[0, 1:]


def typical(correlations: Floats) -> float:
    """Median absolute value, of those that are known; NaN for none."""
    return float(pd.Series(correlations).abs().median())


Scored = tuple[Floats, str]


def _geometric_mean(train: NodeMatrix, test: NodeMatrix) -> Scored:
    """Our score, natural logarithm, the training nodes' medians being the reference."""
    return test.levels.overall(test.micro - _medians(train.micro)), ""


def first_component(train: Floats, test: Floats) -> Floats:
    """Place of test nodes on the direction in which training nodes differ most: (n_test,), more is better.

    train, test: (n, n_types) oriented log scores, each type by its training nodes' median and robust deviation, cut at
    LIMIT; what is missing counts as the median, and types without spread say nothing. Raises ValueError if none has
    any."""
    centre, scale = np.nan_to_num(_medians(train)), np.nan_to_num(robust_deviation(train))
    if not (scale > 0).any():
        raise ValueError(f"{train.shape[1]} metrics of {len(train)} nodes, none of which varies")

    def ready(values: Floats) -> Floats:
        apart = np.divide(values - centre, scale, out=np.zeros_like(values), where=scale > 0)
        return np.asarray(np.clip(np.nan_to_num(apart, nan=0.0), -LIMIT, LIMIT))

    loadings = np.linalg.svd(ready(train) - ready(train).mean(axis=0), full_matrices=False)[2][0]
    # orientation fixes the sign, which a singular vector does not have; a sum of 0 is left to its first column
    sign = np.sign(loadings.sum()) or np.sign(loadings[np.flatnonzero(loadings)[0]])
    return np.asarray(ready(test) @ (sign * loadings))


def _best_single(by: NodeMatrix, test: NodeMatrix) -> Scored:
    """The type with the largest median absolute correlation with the applications, of those that half the nodes ran.

    Raises ValueError if no type has a correlation with any."""
    is_common = (~np.isnan(by.micro)).mean(axis=0) >= COMMON
    strength = np.array([typical(spearman(column, by.applications)) for column in by.micro.T])
    strength = np.where(is_common, strength, np.nan)
    if np.isnan(strength).all():
        raise ValueError("no microbenchmark varies beside an application")
    at = int(np.nanargmax(strength))
    return test.micro[:, at], by.levels.types[at]


def _medians(values: Floats) -> Floats:
    """Of each column, NaN without a value."""
    return pd.DataFrame(values).median().to_numpy(dtype=np.float64)


METHODS: Mapping[str, Callable[[NodeMatrix, NodeMatrix], Scored]] = {
    "spearman": _geometric_mean,
    "pc1": lambda train, test: (first_component(train.micro, test.micro), ""),
    "shared": lambda train, test: (fit_shared_component(train.micro, train.levels.types).score(test.micro), ""),
    "best_single": _best_single,
    "best_oracle": lambda _, test: _best_single(test, test),
}
"""From training and test nodes the scores of the test nodes (n,), and the single microbenchmark that was chosen."""


def is_second_half(nodes: tuple[str, ...]) -> Bools:
    """Which nodes are of the second half: by the hash of their names, so that a new node moves no other. (n,)"""
    return np.array([zlib.crc32(node.encode()) % 2 == 1 for node in nodes], dtype=bool)


def compare_by_machine_type(matrix: NodeMatrix) -> list[OfMachineType]:
    """Compare scores with applications within each machine type, in order of name: learn from one half of the nodes and
    ask the other, both ways round."""
    comparisons = []
    for machine_type in sorted({str(name) for name in matrix.machine_types}):
        of_type = matrix.where((matrix.machine_types == machine_type) & ~np.isnan(matrix.micro).all(axis=1))
        why = _why_not_compared(of_type)
        reasons = dict.fromkeys(METHODS, why) if why else {}
        rows: list[tuple[object, ...]] = []
        is_second = is_second_half(of_type.nodes)
        for half, is_test in enumerate(() if why else (is_second, ~is_second)):
            train, test = of_type.where(~is_test), of_type.where(is_test)
            for method, score in METHODS.items():
                try:
                    scores, benchmark = score(train, test)
                except ValueError as error:  # nothing varies: there is nothing to learn or to choose from
                    reasons[method] = str(error)
                    continue
                correlations = zip(of_type.series, spearman(scores, test.applications), strict=True)
                rows += [(machine_type, half, method, series, value, benchmark) for series, value in correlations]
        table = pd.DataFrame(rows, columns=COLUMNS)
        for method in METHODS:
            if table.loc[table["method"] == method, "spearman"].isna().all():
                reasons.setdefault(method, NO_CORRELATION)
        comparisons.append(
            OfMachineType(machine_type, len(of_type.nodes), table[~table["method"].isin(reasons)], reasons)
        )
    return comparisons


def _why_not_compared(matrix: NodeMatrix) -> str:
    """Why nodes of one machine type cannot be compared with applications; empty where they can."""
    if not matrix.series or np.isnan(matrix.applications).all():
        return NO_APPLICATION
    if not matrix.levels.types:
        return "no microbenchmark ran on these nodes"
    n_second = int(is_second_half(matrix.nodes).sum())
    n_each = min(n_second, len(matrix.nodes) - n_second)
    if n_each < LEAST_NODES / 2:
        return f"{len(matrix.nodes)} nodes, {n_each} in the smaller half; at least {LEAST_NODES} are needed"
    return ""


def rank_figures(comparisons: Sequence[OfMachineType]) -> Figures:
    """For each machine type `rank.nodes` and `rank.<method>` (median over series of the absolute correlation, mean over
    the two halves); without a machine type: the median over the series of all of them, and `.mean`, the mean of their
    values."""
    figures: Figures = {}
    for comparison in comparisons:
        slice_ = comparison.machine_type
        figures[f"rank.nodes.{slice_}"] = comparison.n_nodes
        for method in METHODS:
            put(figures, f"rank.{method}.{slice_}", _typical([comparison], method), comparison.reasons.get(method, ""))
        benchmarks = comparison.correlations[comparison.correlations["method"] == "best_single"]["chosen"].unique()
        if len(benchmarks):
            figures[f"rank.best_single.{slice_}.chosen"] = ", ".join(map(str, benchmarks))
    for method in METHODS:
        reasons = dict.fromkeys(kind.reasons[method] for kind in comparisons if method in kind.reasons)
        reason = "; ".join(reasons) or "no node"
        put(figures, f"rank.{method}", _typical(comparisons, method), reason)
        values = [value for comparison in comparisons if (value := _typical([comparison], method)) is not None]
        put(figures, f"rank.{method}.mean", float(np.mean(values)) if values else None, reason)
    figures["rank.series"] = max((comparison.correlations["series"].nunique() for comparison in comparisons), default=0)
    return figures


def _typical(comparisons: Sequence[OfMachineType], method: str) -> float | None:
    """The median over series, mean over halves."""
    kept = [comparison.correlations for comparison in comparisons if method not in comparison.reasons]
    if not kept:
        return None
    rows = pd.concat(kept, ignore_index=True)
    by_half = rows[rows["method"] == method].groupby("half")["spearman"]
    return float(by_half.agg(lambda values: typical(values.to_numpy())).mean())
