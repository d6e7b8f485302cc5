"""Nodes in order of their scores, with intervals, and ties where executions do not tell nodes apart.

Where enough nodes of one machine type ran several tools, they stand in the order of what the tools say of them in
common (shared_component): on nodes that taught it nothing, that follows the speed of applications better than the score
does. Elsewhere, between machine types, and by aspect, in that of the score.

A task uses one thread, a cluster all of them: the aspect `cpu` mixes both, which is right for one number of a node, and
wrong for a task's runtime, so scores of processors are given apart too. What says how many threads a metric had: its
benchmark's command, or its name, as the tools and SpareCores name them.

Intervals are of medians of bootstrap resamples, drawn from their exact distribution without drawing the resamples. The
k-th smallest of n draws with replacement from n sorted values is the value at place floor(n·U), where U is the k-th
smallest of n uniform numbers: U ~ Beta(k, n - k + 1). Given it, the next one is U + (1 - U)·Beta(1, n - k). So a
resample's median costs two draws, however many values there are (Efron 1979, section 3; David & Nagaraja 2003, 2.5)."""

import re
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from tasks.nodes.history import History
from tasks.nodes.params import CONFIDENCE, MIN_EXECUTIONS, SEED, ScoreParams
from tasks.nodes.ranking.node_scores import (
    Levels,
    ReferenceFleet,
    execution_scores,
    levels_of,
    score_nodes,
    shared_components,
    usual_aspects,
)
from tasks.nodes.type_tables import Bools, Floats, Ints, NodeTables, group_medians, type_names


def resampled_medians(values: Floats, n_drawn: int, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Medians of n_resamples resamples of n_drawn values each: (n_resamples,).

    values: (n,) finite, in any order; n_drawn is n for a bootstrap. Raises ValueError without values."""
    if not len(values) or n_drawn < 1:
        raise ValueError(f"{n_drawn} draws from {len(values)} values; at least one of each is needed")
    ordered = np.sort(values)
    middle = (n_drawn + 1) // 2  # the lower of the two middle ones where there are two
    lower = rng.beta(middle, n_drawn - middle + 1, n_resamples)
    if n_drawn % 2:
        return np.asarray(ordered[_places(lower, len(ordered))])
    upper = lower + (1 - lower) * rng.beta(1, n_drawn - middle, n_resamples)
    return np.asarray((ordered[_places(lower, len(ordered))] + ordered[_places(upper, len(ordered))]) / 2)


def _places(uniform: Floats, n: int) -> np.ndarray:
    return np.minimum((uniform * n).astype(np.int64), n - 1)


@dataclass(frozen=True)
class SpreadOfType:
    """The log scores of the executions of one type, sorted by node. starts: (n_nodes + 1,) where each node's begin.

    residuals: of all nodes with enough executions, around their own medians; empty where there is no such node."""

    name: str
    aspect: str
    scores: Floats
    starts: Ints
    residuals: Floats

    def of(self, node: int) -> Floats:
        """Those of one node."""
        return self.scores[self.starts[node] : self.starts[node + 1]]


@dataclass(frozen=True)
class DrawnScores:
    """Log scores of one node, the one number first, then by aspect. seen: (1 + n_aspects,), NaN for an aspect without
    executions. drawn: (n_resamples, 1 + n_aspects), NaN where the spread is not known. of_types: (n_resamples, n_types)
    what is drawn of each type, NaN without executions. is_unknown: (n_types,) types whose spread is not known."""

    seen: Floats
    drawn: Floats
    of_types: Floats
    is_unknown: Bools


def spreads_of(tables: NodeTables, reference: ReferenceFleet) -> list[SpreadOfType]:
    """The scores of each type's executions by node."""
    spreads = []
    for table in tables.tables:
        scores = execution_scores(table, reference)
        is_there = ~np.isnan(scores)
        scores, nodes = scores[is_there], table.nodes[is_there]
        sizes = np.bincount(nodes, minlength=len(tables.nodes))
        order = np.argsort(nodes, kind="stable")
        medians = group_medians(scores[:, None], nodes, len(tables.nodes))[:, 0]
        residuals = (scores - medians[nodes])[sizes[nodes] >= MIN_EXECUTIONS]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        spreads.append(SpreadOfType(table.name, table.aspect, scores[order], starts, residuals))
    return spreads


def draw_scores(
    node: str, number: int, spreads: list[SpreadOfType], levels: Levels, params: ScoreParams
) -> DrawnScores | None:
    """Resample the executions of one node; None if it has none.

    The draws depend on the seed and the names of node and type alone, so other nodes change nothing. A node with fewer
    than MIN_EXECUTIONS of a type borrows the residuals of the other nodes, if any has enough."""
    seen = np.full(len(spreads), np.nan)
    drawn = np.full((params.resamples, len(spreads)), np.nan)
    is_unknown = np.zeros(len(spreads), dtype=bool)
    for at, spread in enumerate(spreads):
        scores = spread.of(number)
        if not len(scores):
            continue
        seen[at] = np.median(scores)
        source = scores if len(scores) >= MIN_EXECUTIONS else seen[at] + spread.residuals
        is_unknown[at] = not len(source)
        rng = np.random.default_rng([SEED, _number(node), _number(spread.name)])
        drawn[:, at] = seen[at] if is_unknown[at] else resampled_medians(source, len(scores), params.resamples, rng)
    if np.isnan(seen).all():
        return None
    by_level = _with_aspects(drawn, levels)
    by_level[:, ~np.isnan(_with_aspects(np.where(is_unknown, 0.0, np.nan)[None, :], levels)[0])] = np.nan
    return DrawnScores(_with_aspects(seen[None, :], levels)[0], by_level, drawn, is_unknown)


def _with_aspects(log_scores: Floats, levels: Levels) -> Floats:
    """The one number and the aspects: (n, 1 + n_aspects)."""
    return np.column_stack([levels.overall(log_scores), levels.by_aspect(log_scores)])


def _number(name: str) -> int:
    return zlib.crc32(name.encode())


EDGES = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)  # of intervals
ALL = "all"  # instead of an aspect: the one number of a node
COLUMNS = ["aspect", "place", "node", "machine_type", "score", "low", "high", "n_tied", "n_executions", "n_types"]
COLUMNS += ["lacks", "shared", "shared_place"]


def rank_nodes(tables: NodeTables, reference: ReferenceFleet, params: ScoreParams) -> pd.DataFrame:
    """One row a node and aspect, `all` first, best first: aspect, place (shared by ties), node, machine_type, score,
    low, high (interval, NaN where nobody repeats an execution), n_tied (nodes at that place, itself included),
    n_executions, n_types (of that aspect). Of the one number alone: lacks (aspects that half of the reference ran and
    the node did not, with commas between), shared (on the shared component of the node's
    machine type, 0 being the middle; NaN where there is none) and shared_place (place by it among the nodes of that
    machine type). With a single machine type place is shared_place.

    Executions are resampled within node and type: the interval says how much a score would move if the same benchmarks
    ran again. Nodes share a place while the interval of the ratio of the best of them to each holds 1. Nodes without a
    score are left out. A node that lacks an aspect stands behind those that lack none: its number is a mean over fewer
    aspects, and may be high for that alone."""
    counted = tables.of_aspects(params.left_out_aspects)
    levels = levels_of(counted, params)
    spreads = spreads_of(counted, reference)
    scores = score_nodes(tables, reference, params)
    usual = usual_aspects(reference.table)
    fitted = shared_components(scores, tables.machine_types)
    rows: list[dict[str, object]] = []
    draws: dict[tuple[str, str], Floats] = {}
    shared_draws: dict[str, Floats] = {}
    for number, node in enumerate(tables.nodes):
        node_draws = draw_scores(node, number, spreads, levels, params)
        if node_draws is None:
            continue
        low, high = np.quantile(node_draws.drawn, EDGES, axis=0)
        for at, aspect in enumerate((ALL, *levels.aspects)):
            if np.isnan(node_draws.seen[at]):
                continue
            counts = [len(spread.of(number)) for spread in spreads if aspect in (ALL, spread.aspect)]
            row: dict[str, object] = {"aspect": aspect, "node": node, "machine_type": tables.machine_types[number]}
            row |= {"score": np.exp(node_draws.seen[at]), "low": np.exp(low[at]), "high": np.exp(high[at])}
            row |= {"n_executions": sum(counts), "n_types": sum(n > 0 for n in counts)}
            row |= {"lacks": "", "shared": np.nan}
            if aspect == ALL:
                row["lacks"] = ", ".join(lacking(levels, node_draws.seen[1:], usual))
                if component := fitted.get(tables.machine_types[number]):
                    row["shared"] = component.score(scores.log_scores[[number]])[0]
                    has_unknown = (node_draws.is_unknown & (component.weights != 0)).any()
                    shared_draws[node] = np.where(has_unknown, np.nan, component.score(node_draws.of_types)).astype(
                        np.float32
                    )
            rows.append(row)
            draws[aspect, node] = node_draws.drawn[:, at].astype(np.float32)
    if not rows:
        return pd.DataFrame(columns=COLUMNS)
    frame, parts = pd.DataFrame(rows), []
    for aspect in (ALL, *levels.aspects):
        of_aspect = frame[frame["aspect"] == aspect]
        drawn = {str(node): draws[aspect, node] for node in of_aspect["node"]}
        parts.append(placed(of_aspect, "score", drawn).assign(shared_place=np.nan))
    parts[0] = _placed_by_shared(parts[0], shared_draws)
    return pd.concat([part[COLUMNS] for part in parts if len(part)], ignore_index=True)


def lacking(levels: Levels, by_aspect: Floats, usual: Collection[str]) -> list[str]:
    """The usual aspects that count and of which a node has no score. by_aspect: (n_aspects,), NaN for no score."""
    rows = zip(levels.aspects, levels.weights, by_aspect, strict=True)
    return [aspect for aspect, weight, score in rows if aspect in usual and weight > 0 and np.isnan(score)]


def _placed_by_shared(nodes: pd.DataFrame, drawn: Mapping[str, Floats]) -> pd.DataFrame:
    """With shared_place; with a single machine type in its order. nodes: by their one number."""
    for _, of_type in nodes[nodes["shared"].notna()].groupby("machine_type", dropna=False):
        by_shared = placed(of_type, "shared", drawn)
        if len(by_shared) == len(nodes):
            return by_shared.assign(shared_place=by_shared["place"].astype(np.float64))
        places = by_shared.set_index("node")["place"]
        is_its = nodes["node"].isin(places.index)
        nodes.loc[is_its, "shared_place"] = nodes.loc[is_its, "node"].map(places).astype(np.float64)
    return nodes


def placed(nodes: pd.DataFrame, by: str, drawn: Mapping[str, Floats]) -> pd.DataFrame:
    """The rows in order of a column, best first, those that lack nothing before others; with place and n_tied.

    drawn: of each node, (n_resamples,)."""
    ordered = nodes.assign(is_part=nodes["lacks"] != "").sort_values(
        ["is_part", by, "node"], ascending=[True, False, True], ignore_index=True
    )
    draws, is_part = [drawn[node] for node in ordered["node"]], ordered["is_part"].tolist()
    places, first = [], 0
    for at in range(len(ordered)):
        if is_part[at] != is_part[first] or not is_tie(draws[first], draws[at]):
            first = at
        places.append(first + 1)
    ordered = ordered.assign(place=places).drop(columns="is_part")
    return ordered.assign(n_tied=ordered.groupby("place")["node"].transform("size"))


def is_tie(first: Floats, other: Floats) -> bool:
    """Whether the interval of the ratio of two scores holds 1; unknown intervals tell nothing apart.

    first, other: (n_resamples,) logarithms, drawn independently."""
    apart = first - other
    if np.isnan(apart).any():
        return True
    low, high = np.quantile(apart, EDGES)
    return bool(low <= 0 <= high)


Threads = Literal["one", "all", "unsaid"]
ASPECTS: dict[Threads, str] = {"one": "cpu_one_thread", "all": "cpu_all_threads"}
COMMAND = re.compile(r"(?:--threads|--cpu|num_threads|number of threads|threads)[=: ]+(\d+)", re.IGNORECASE)
SETTING = re.compile(r"(?:^|_)threads_(\d+)(?:_|$)")
SINGLE, MULTI = re.compile(r"single_?(core|thread)"), re.compile(r"multi_?(core|thread)")
SINGLE_BENCHMARKS, MULTI_BENCHMARKS = ("stressngsinglecore",), ("stressng",)
COUNTED = ("stressngfull", "stressng-benchmarks")  # the last part of a metric's name says how many workers it had
MOST = ("n", "most")


def threads_of(benchmark: str, metric: str, template: str = "") -> Threads:
    """How many threads a metric of a benchmark had. template: its command, or the settings that its log prints.

    More than one counts as all: tools ask for as many as there are, or for more."""
    if match := COMMAND.search(template) or SETTING.search(metric):
        return "one" if int(match[1]) == 1 else "all"
    if benchmark in SINGLE_BENCHMARKS or SINGLE.search(metric):
        return "one"
    if benchmark in MULTI_BENCHMARKS or MULTI.search(metric):
        return "all"
    if benchmark in COUNTED:
        last = metric.rpartition("_")[2]
        return "one" if last == "1" else "all" if last in MOST else "unsaid"
    return "unsaid"


def by_threads(tables: NodeTables, history: History) -> NodeTables:
    """The tables of processors by how many threads a metric had, as aspects cpu_one_thread and cpu_all_threads.

    tables: of executions of the history. What says nothing of its threads is in neither."""
    template = history.executions["template"].fillna("").astype(str)
    templates = dict(zip(type_names(history.executions), template, strict=True))
    parts = []
    for table in tables.tables:
        benchmark, command = table.name.partition("@")[0], templates.get(table.name, "")
        threads = np.array([threads_of(benchmark, metric, command) for metric in table.metrics])
        for kind, aspect in ASPECTS.items():
            if table.aspect == "cpu" and (threads == kind).any():
                parts.append(replace(table.of_metrics(threads == kind), aspect=aspect))
    return replace(tables, tables=tuple(parts))


def rank_by_threads(
    tables: NodeTables, history: History, reference: ReferenceFleet, params: ScoreParams
) -> pd.DataFrame:
    """The rows of rank_nodes for one thread and for all; none where the aspect `cpu` is of one of them alone."""
    apart = by_threads(tables, history)
    if {table.aspect for table in apart.tables} != set(ASPECTS.values()):
        apart = replace(apart, tables=())
    ranked = rank_nodes(apart, reference, params)
    return ranked[ranked["aspect"] != ALL]
