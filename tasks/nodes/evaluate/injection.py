"""Degradation where nobody knows of any: results of nodes that ran long are spoiled from a drawn time on.

Nothing before that time and nothing of other nodes is touched, so that what is told there is a false alarm. Only what
is tested is ever spoiled: training and validation stay as they are."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.nodes.aspects import type_names
from tasks.nodes.evaluate.learned_params import InjectionParams, Kind
from tasks.nodes.history import History
from tasks.nodes.type_tables import Bools, Floats, Ints, NodeTables

EARLIEST, LATEST = 0.2, 0.6  # where among a node's tested executions the spoiled ones begin
ONE_MACHINE_TYPE = "all long-lived nodes are of one machine type; results of another are needed"
FEW_NODES = "{0} nodes ran a benchmark {1} times or more; at least two are needed"


@dataclass(frozen=True)
class Spoiled:
    """history: with spoiled results. is_spoiled: (n_executions,). nodes: names of the nodes that have any."""

    history: History
    is_spoiled: Bools
    nodes: tuple[str, ...]


def long_lived(history: History, params: InjectionParams) -> list[str]:
    """The nodes that ran a benchmark often enough; of more than max_nodes, those with most executions. By name."""
    keys = pd.DataFrame({"node": history.executions["node"].astype(str), "type": type_names(history.executions)})
    runs = keys.groupby(["node", "type"]).size().groupby(level="node").max()
    sizes = keys.groupby("node").size()
    long = sizes[runs[runs >= params.least_runs].index].sort_values(ascending=False, kind="stable")
    return sorted(str(node) for node in long.index[: params.max_nodes])


def types_drawn(executions: pd.DataFrame, most: int, rng: np.random.Generator) -> Bools:
    """The executions of drawn benchmark types: (n_executions,). Of more than `most` as many types as there is room for,
    of each aspect in turn, one at least; whole ones, so that what is left of a type is as long and as dense as it was.
    """
    if len(executions) <= most:
        return np.ones(len(executions), dtype=bool)
    types = type_names(executions)
    each = executions["aspect"].fillna("").astype(str).groupby(types.to_numpy()).agg(["first", "size"])
    each = each.iloc[rng.permutation(len(each))]
    ordered = each.iloc[np.argsort(each.groupby("first").cumcount().to_numpy(), kind="stable")]
    chosen, room = [ordered.index[0]], most - int(ordered["size"].iloc[0])
    for name, size in ordered["size"].iloc[1:].items():
        if size <= room:  # one that is too large leaves room for those after it
            chosen.append(name)
            room -= int(size)
    return np.asarray(types.isin(chosen), dtype=bool)


def spoil(
    history: History, tables: NodeTables, is_test: Bools, kind: Kind, params: InjectionParams, rng: np.random.Generator
) -> Spoiled:
    """Spoil a drawn share of the results of drawn nodes, from a drawn time of their tested executions on.

    tables: of the history; they tell which way a metric is worse. is_test: (n_executions,). An execution of a benchmark
    that no node of another machine type ran stays as it is. Raises ValueError with a reason where none can be spoiled.
    """
    drawn = _drawn(history, is_test, params, rng)
    if kind == "replaced":
        donors = donors_of(history, drawn, is_test, rng)
        is_spoiled = np.zeros_like(drawn)
        is_spoiled[np.flatnonzero(drawn)[donors >= 0]] = True
        if not is_spoiled.any():
            raise ValueError(ONE_MACHINE_TYPE)
        found = replaced(history, np.flatnonzero(is_spoiled), donors[donors >= 0])
    else:
        is_spoiled = drawn
        found = shifted(history, tables, _factors(history, drawn, params, rng))
    nodes = sorted(history.executions["node"].astype(str)[is_spoiled].unique())
    return Spoiled(found, is_spoiled, tuple(nodes))


def _drawn(history: History, is_test: Bools, params: InjectionParams, rng: np.random.Generator) -> Bools:
    """The executions to be spoiled: (n_executions,). At least one node stays as it is."""
    node = history.executions["node"].astype(str).to_numpy(dtype=object)
    nodes = sorted(set(node[is_test]))
    if len(nodes) < 2:
        raise ValueError(FEW_NODES.format(len(nodes), params.least_runs))
    count = min(max(1, round(params.altered_nodes * len(nodes))), len(nodes) - 1)
    found = np.zeros(len(node), dtype=bool)
    for name in sorted(rng.choice(np.array(nodes, dtype=object), size=count, replace=False)):
        own = np.flatnonzero(is_test & (node == name))
        later = own[int(len(own) * rng.uniform(EARLIEST, LATEST)) :]
        found[later[rng.random(len(later)) < params.altered_share]] = True
    return found


def donors_of(history: History, is_drawn: Bools, is_test: Bools, rng: np.random.Generator) -> Ints:
    """For each drawn execution one of the same benchmark on a node of another machine type, of those that test and are
    not drawn themselves: (n_drawn,), -1 where there is none."""
    kinds = pd.factorize(type_names(history.executions))[0]
    machine = pd.factorize(history.executions["machine_type"].fillna("").astype(str))[0]
    found = np.full(int(is_drawn.sum()), -1, dtype=np.int64)
    asked = np.flatnonzero(is_drawn)
    for kind, own in sorted({(kinds[row], machine[row]) for row in asked}):
        givers = np.flatnonzero((kinds == kind) & (machine != own) & is_test & ~is_drawn)
        takers = np.flatnonzero((kinds[asked] == kind) & (machine[asked] == own))
        if len(givers):
            found[takers] = rng.choice(givers, size=len(takers))
    return found


def replaced(history: History, takers: Ints, donors: Ints) -> History:
    """The history in which some executions have the metrics and the duration of others. takers, donors: (k,) rows."""
    metrics, executions = history.metrics, history.executions
    order = np.argsort(metrics["execution"].to_numpy(), kind="stable")
    ordered = metrics.iloc[order].reset_index(drop=True)
    of = ordered["execution"].to_numpy(dtype=np.int64)
    first, end = np.searchsorted(of, donors), np.searchsorted(of, donors, side="right")
    counts = end - first
    places = np.repeat(first - np.append(0, np.cumsum(counts)[:-1]), counts) + np.arange(int(counts.sum()))
    given = ordered.iloc[places].assign(execution=np.repeat(takers, counts))
    kept = ordered[~np.isin(of, takers)]
    joined = pd.concat([kept, given], ignore_index=True).sort_values("execution", kind="stable", ignore_index=True)
    duration = executions["duration_s"].to_numpy(dtype=np.float64, na_value=np.nan).copy()
    duration[takers] = duration[donors]
    return replace(history, executions=executions.assign(duration_s=duration), metrics=joined)


def shifted(history: History, tables: NodeTables, factors: Floats) -> History:
    """The history in which results are worse by a factor: rates are divided by it, costs are multiplied.

    factors: (n_executions,), 1 where nothing changes. Metrics that are not kept have no better or worse, and stay."""
    signs = {
        (table.name, metric): sign
        for table in tables.tables
        for metric, sign in zip(table.metrics, table.orientation, strict=True)
    }
    of = history.metrics["execution"].to_numpy(dtype=np.int64)
    names = type_names(history.executions).to_numpy(dtype=object)
    touched = np.flatnonzero(factors[of] != 1)
    keys = zip(names[of[touched]], history.metrics["metric"].iloc[touched].astype(str), strict=True)
    sign = np.array([signs.get(key, 0.0) for key in keys], dtype=np.float64)
    value = history.metrics["value"].to_numpy(dtype=np.float64).copy()
    value[touched] = value[touched] * factors[of[touched]] ** -sign
    return replace(history, metrics=history.metrics.assign(value=value))


def _factors(history: History, drawn: Bools, params: InjectionParams, rng: np.random.Generator) -> Floats:
    """One factor a node, drawn evenly in logarithm; 1 for executions that are not drawn. (n_executions,)"""
    node_of, nodes = pd.factorize(history.executions["node"].astype(str), sort=True)
    low, high = np.log(params.least_factor), np.log(params.largest_factor)
    each = np.exp(rng.uniform(low, high, len(nodes)))
    return np.asarray(np.where(drawn, each[node_of], 1.0))
