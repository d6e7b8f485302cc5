"""How much a rerun of a benchmark differs, and how many runs it takes to trust a difference.

A two-sided test on the difference of two medians of n runs each, by the normal approximation: the median of n values
of a normal distribution has variance π σ² / (2 n), so the test finds a difference δ with the wanted power from

    n = (z_{1 - α/2} + z_power)² · (π/2) · (σ₁² + σ₂²) / δ²

runs each on, σ and δ of the logarithms of the values. (Lehmann 1999, 3.2 and example 2.4.9)"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import ndtri

from tasks.nodes.params import MIN_EXECUTIONS
from tasks.nodes.type_tables import SD_OF_MAD, Bools, Floats, NodeTables, TypeTable, group_medians

SIGNIFICANCE, POWER = 0.05, 0.8
LEAST = 2  # one run has no spread
VARIANCE_OF_MEDIAN = np.pi / 2  # of a normal distribution, times σ²/n


def runs_needed(apart: Floats, deviation: Floats, other_deviation: Floats) -> Floats:
    """Runs on each side until a difference is found: whole numbers from 2 on, infinite for no difference.

    apart: difference of the medians of the logarithms; deviations: of the logarithms, on either side; same shapes.
    NaN where anything is missing."""
    factor = (ndtri(1 - SIGNIFICANCE / 2) + ndtri(POWER)) ** 2 * VARIANCE_OF_MEDIAN
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = factor * (deviation**2 + other_deviation**2) / np.asarray(apart, dtype=np.float64) ** 2
    needed = np.where((apart == 0) & ~np.isnan(deviation + other_deviation), np.inf, needed)
    return np.maximum(np.ceil(needed), LEAST)


def runs_to_see_change(change: float, deviation: Floats) -> Floats:
    """Runs before and after until a change by this share, such as 0.05, is found."""
    return runs_needed(np.full(np.shape(deviation), np.log1p(change)), deviation, deviation)


SMALL_CHANGE, LARGE_CHANGE = 0.05, 0.10
MAX_NODES = 50  # of a metric, between which pairs are formed
RERUN_LEVEL = 0.9


@dataclass(frozen=True)
class Repeatability:
    """metrics: one row a type, metric and node: type, aspect, metric, node, machine_type, n_runs, median, unit, cv
    (robust coefficient of variation), rerun_median and rerun_p90 (of |log ratio| of consecutive runs), runs_for_5 and
    runs_for_10 (runs before and after to find a change by 5 and 10 %).

    pairs: one row a type, metric and pair of nodes: type, aspect, metric, one, other, ratio (of medians), n_runs (of
    each, to tell them apart; infinite if their medians are equal)."""

    metrics: pd.DataFrame
    pairs: pd.DataFrame


def repeatability_of(tables: NodeTables, is_counted: Bools) -> Repeatability:
    """Repeatability of each metric on each node with at least MIN_EXECUTIONS values above 0.

    is_counted: (n_executions,) executions that count, such as those without stress. Values of 0 or less have no
    logarithm and are left out."""
    metrics, pairs = [], []
    for table in tables.of_executions(is_counted).tables:
        rows = _of_type(table, tables)
        metrics.append(rows)
        pairs += [_pairs(metric_rows, table) for _, metric_rows in rows.groupby("metric", sort=False)]
    return Repeatability(_together(metrics), _together(pairs))


def _together(parts: list[pd.DataFrame]) -> pd.DataFrame:
    kept = [part for part in parts if len(part)]
    return pd.concat(kept, ignore_index=True).drop(columns="deviation", errors="ignore") if kept else pd.DataFrame()


def _of_type(table: TypeTable, tables: NodeTables) -> pd.DataFrame:
    """One row a metric and node, with `deviation`, that of the logarithms."""
    n_nodes = len(tables.nodes)
    values = np.where(table.natural > 0, table.natural, np.nan)
    logs = np.log(values)
    medians, log_medians = group_medians(values, table.nodes, n_nodes), group_medians(logs, table.nodes, n_nodes)
    spread = SD_OF_MAD * group_medians(np.abs(values - medians[table.nodes]), table.nodes, n_nodes)
    deviation = SD_OF_MAD * group_medians(np.abs(logs - log_medians[table.nodes]), table.nodes, n_nodes)
    counts = pd.DataFrame(~np.isnan(values)).groupby(table.nodes).sum().reindex(range(n_nodes), fill_value=0)
    middle, high = _reruns(logs, table, n_nodes)
    number, metric = np.nonzero(counts.to_numpy() >= MIN_EXECUTIONS)
    cells = (number, metric)
    return pd.DataFrame(
        {
            "type": table.name,
            "aspect": table.aspect,
            "metric": np.array(table.metrics, dtype=object)[metric],
            "node": np.array(tables.nodes, dtype=object)[number],
            "machine_type": np.array(tables.machine_types, dtype=object)[number],
            "n_runs": counts.to_numpy()[cells],
            "median": medians[cells],
            "unit": np.array(table.units, dtype=object)[metric],
            "cv": spread[cells] / medians[cells],
            "rerun_median": middle[cells],
            "rerun_p90": high[cells],
            "runs_for_5": runs_to_see_change(SMALL_CHANGE, deviation[cells]),
            "runs_for_10": runs_to_see_change(LARGE_CHANGE, deviation[cells]),
            "deviation": deviation[cells],
        }
    )


def _reruns(logs: Floats, table: TypeTable, n_nodes: int) -> tuple[Floats, Floats]:
    """Median and 90th percentile of |log ratio| of consecutive runs of a node: (n_nodes, m) each."""
    order = np.argsort(table.nodes, kind="stable")
    apart = np.abs(np.diff(logs[order], axis=0))
    is_same = np.diff(table.nodes[order]) == 0
    by_node = pd.DataFrame(apart[is_same]).groupby(table.nodes[order][1:][is_same])
    places = range(n_nodes)
    return (
        by_node.median().reindex(places).to_numpy(dtype=np.float64),
        by_node.quantile(RERUN_LEVEL).reindex(places).to_numpy(dtype=np.float64),
    )


def _pairs(rows: pd.DataFrame, table: TypeTable) -> pd.DataFrame:
    """All pairs of the nodes that ran one metric; of many nodes, of the first MAX_NODES."""
    pairs = list(combinations(range(min(len(rows), MAX_NODES)), 2))
    if not pairs:
        return pd.DataFrame()
    first, other = np.array(pairs).T
    median, deviation = rows["median"].to_numpy(), rows["deviation"].to_numpy()
    apart = np.log(median[first]) - np.log(median[other])
    return pd.DataFrame(
        {
            "type": table.name,
            "aspect": table.aspect,
            "metric": rows["metric"].iloc[0],
            "one": rows["node"].to_numpy()[first],
            "other": rows["node"].to_numpy()[other],
            "ratio": np.exp(apart),
            "n_runs": runs_needed(apart, deviation[first], deviation[other]),
        }
    )
