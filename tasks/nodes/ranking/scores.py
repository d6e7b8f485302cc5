"""Scores of executions and nodes: geometric means of oriented ratios to a reference fleet.

    score = exp( Σ_j w_j · o_j · log(x_j / r_j) / Σ_j w_j )

over the metrics j that count, with o = 1 where more is better and -1 where less is: above 1 is better than the
reference, and twice the throughput is twice the score. The reference r are the medians of a stated set of nodes, frozen
with the model and kept as JSON: a machine that joins moves no other; only a new reference does."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.nodes.params import ScoreParams
from tasks.nodes.type_tables import Bools, Floats, Ints, NodeTables, TypeTable, group_medians, weighted_mean

NOT_AVERAGES = frozenset({"min", "max", "std", "stdev", "stddev", "mdev", "variance"})  # words of names: how runs vary
PER_SECOND = "/s"  # how base units of rates end
TIMES = ("s", "s/B")  # base units of what takes long
LARGEST_RATIO = 1000.0  # ratios to the reference are cut here; a throughput of 0 counts as 1 over it
USUAL = 0.5  # share of the nodes, from which an aspect is expected of all
COLUMNS = ["type", "aspect", "metric", "unit", "orientation", "median", "weight", "n_nodes", "n_executions"]
FORMAT, VERSION = "whorl.nodes.reference", 1
NUMBERS = ("orientation", "median", "weight")
COUNTS = ("n_nodes", "n_executions")


@dataclass(frozen=True)
class TypeReference:
    """The reference of the metrics of one type, in the order asked for; weight 0: does not count. (m,) each."""

    median: Floats
    weight: Floats


@dataclass(frozen=True)
class ReferenceFleet:
    """table: one row a type and metric: type, aspect, metric, unit, orientation, median (in unit), weight, n_nodes and
    n_executions behind the median. stated: which nodes these are, in words."""

    table: pd.DataFrame
    stated: str

    def of(self, table: TypeTable) -> TypeReference:
        """For the metrics of a table; a metric that the fleet lacks has NaN and weight 0."""
        own = self.table[self.table["type"] == table.name].set_index("metric")[["median", "weight"]]
        found = own.reindex(list(table.metrics))
        return TypeReference(
            found["median"].to_numpy(dtype=np.float64), found["weight"].fillna(0.0).to_numpy(dtype=np.float64)
        )

    @property
    def counted(self) -> frozenset[tuple[str, str]]:
        """The types and metrics that count in scores."""
        return counted_in(self.table)


def learn_reference(tables: NodeTables, is_reference: Bools, params: ScoreParams, stated: str = "") -> ReferenceFleet:
    """The medians over nodes of each node's medians, from the executions of the mask (n_executions,).

    Which metrics count: see `counting`; their median must be above 0, as ratios need it. Nodes count alike, however
    often they ran."""
    rows = []
    for table in tables.of_executions(is_reference).tables:
        medians = group_medians(table.natural, table.nodes, len(tables.nodes))
        counts = counting(table, params)
        for at, metric in enumerate(table.metrics):
            own = medians[~np.isnan(medians[:, at]), at]
            median = float(np.median(own)) if len(own) else np.nan
            told = (table.name, table.aspect, metric, table.units[at], table.orientation[at])
            n_executions = int((~np.isnan(table.natural[:, at])).sum())
            rows.append((*told, median, float(counts[at] and median > 0), len(own), n_executions))
    return ReferenceFleet(pd.DataFrame(rows, columns=COLUMNS), stated or "all nodes given")


def counting(table: TypeTable, params: ScoreParams) -> Bools:
    """Which metrics of a type count in its score: (m,).

    Average rates, else average times, or all if params.basis is `all`. A metric of which neither more nor less is
    better (a rate that is set, a processor's use) counts only in a type that has no other."""
    is_directed = np.ones(len(table.metrics), dtype=bool) if table.is_directed is None else table.is_directed
    if not is_directed.any():
        is_directed = ~is_directed
    if params.basis == "all":
        return is_directed
    is_average = np.array([not NOT_AVERAGES & set(metric.split("_")) for metric in table.metrics], dtype=bool)
    is_rate = np.array([unit.endswith(PER_SECOND) for unit in table.units], dtype=bool)
    is_time = np.array([unit in TIMES for unit in table.units], dtype=bool)
    for chosen in (
        is_directed & is_average & is_rate & (table.orientation > 0),
        is_directed & is_average & is_time & (table.orientation < 0),
        is_directed & is_average,
    ):
        if chosen.any():
            return np.asarray(chosen)
    return is_directed


def counted_in(reference: pd.DataFrame) -> frozenset[tuple[str, str]]:
    """The types and metrics of a reference (ReferenceFleet.table) that count in scores: those with a weight."""
    own = reference[reference["weight"] > 0]
    return frozenset(zip(own["type"].astype(str), own["metric"].astype(str), strict=True))


def usual_aspects(reference: pd.DataFrame) -> frozenset[str]:
    """The aspects that half of the nodes of a reference or more ran: what a node is expected to have run."""
    own = reference[reference["weight"] > 0]
    n_nodes = own.groupby(own["aspect"].astype(str))["n_nodes"].max()
    return frozenset(str(aspect) for aspect in n_nodes.index[n_nodes >= USUAL * n_nodes.max()])


def log_ratios(table: TypeTable, reference: ReferenceFleet) -> Floats:
    """Natural logarithm of each value's oriented ratio to the reference: (n, m), NaN where there is none.

    A value of 0 or less has no logarithm: where more is better it counts as the smallest ratio, else it is left out
    (tools print a latency below their last digit as 0)."""
    own = reference.of(table)
    limit = np.log(LARGEST_RATIO)
    usable = np.where(own.median > 0, own.median, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = table.orientation * (np.log(np.where(table.natural > 0, table.natural, np.nan)) - np.log(usable))
    is_nothing = (table.natural <= 0) & (table.orientation > 0) & (usable > 0)
    return np.asarray(np.clip(np.where(is_nothing, -limit, found), -limit, limit))


def execution_scores(table: TypeTable, reference: ReferenceFleet) -> Floats:
    """Natural logarithm of the score of each execution of a type: (n,), NaN without a metric that counts."""
    return weighted_mean(log_ratios(table, reference), reference.of(table).weight)


@dataclass(frozen=True)
class Levels:
    """How types sum up to aspects, and aspects to one number.

    types, aspects: names. aspect_of: (n_types,) numbers of aspects. weights: (n_aspects,)."""

    types: tuple[str, ...]
    aspects: tuple[str, ...]
    aspect_of: Ints
    weights: Floats

    def by_aspect(self, log_scores: Floats) -> Floats:
        """Mean over the types of each aspect. log_scores: (…, n_types); returns (…, n_aspects)."""
        each = [weighted_mean(log_scores, (self.aspect_of == at).astype(np.float64)) for at in range(len(self.aspects))]
        return np.stack(each, axis=-1) if each else np.full((*log_scores.shape[:-1], 0), np.nan)

    def overall(self, log_scores: Floats) -> Floats:
        """One number from all types: the mean over the aspects, with their weights. (…,)"""
        return weighted_mean(self.by_aspect(log_scores), self.weights)


@dataclass(frozen=True)
class NodeScores:
    """log_scores: (n_nodes, n_types), medians over a node's executions, NaN for a type that it did not run."""

    nodes: tuple[str, ...]
    levels: Levels
    log_scores: Floats

    def overall(self) -> Floats:
        """The score of each node, 1 being the reference: (n_nodes,), NaN without any type."""
        return np.asarray(np.exp(self.levels.overall(self.log_scores)))

    def by_aspect(self) -> Floats:
        """The score of each node in each aspect: (n_nodes, n_aspects)."""
        return np.asarray(np.exp(self.levels.by_aspect(self.log_scores)))


def levels_of(tables: NodeTables, params: ScoreParams) -> Levels:
    """The types of the tables with their aspects, each in order of name."""
    aspects = tuple(sorted({table.aspect for table in tables.tables}))
    of = np.array([aspects.index(table.aspect) for table in tables.tables], dtype=np.int64)
    weights = np.array([params.aspect_weights.get(aspect, 1.0) for aspect in aspects], dtype=np.float64)
    return Levels(tuple(table.name for table in tables.tables), aspects, of, weights)


def score_nodes(tables: NodeTables, reference: ReferenceFleet, params: ScoreParams) -> NodeScores:
    """Score nodes by their executions; median over executions, so that one throttled run sinks no node (III-B).

    Aspects that params leave out do not count. Runs in time linear in the executions."""
    counted = tables.of_aspects(params.left_out_aspects)
    found = np.full((len(tables.nodes), len(counted.tables)), np.nan)
    for at, table in enumerate(counted.tables):
        own = execution_scores(table, reference)
        found[:, at] = group_medians(own[:, None], table.nodes, len(tables.nodes))[:, 0]
    return NodeScores(tables.nodes, levels_of(counted, params), found)


def save_reference(reference: ReferenceFleet, file: Path) -> None:
    """Write a reference fleet; a median that nobody measured is null."""
    rows = reference.table.astype(object).where(reference.table.notna(), None).to_dict("records")
    main = {"format": FORMAT, "version": VERSION, "stated": reference.stated, "rows": rows}
    file.write_text(json.dumps(main, indent=1, default=_number), encoding="utf-8")


def load_reference(file: Path) -> ReferenceFleet:
    """What save_reference wrote. Raises BadInput if the file is missing, damaged or foreign."""
    try:
        main = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.get("format"), main.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        table = pd.DataFrame(main["rows"], columns=COLUMNS)
        table = table.astype({**dict.fromkeys(NUMBERS, np.float64), **dict.fromkeys(COUNTS, np.int64)})
        return ReferenceFleet(table, str(main["stated"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"no reference fleet ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(file, problem, "what 'whorl nodes preprocess' wrote", "preprocess again") from error


def _number(value: object) -> float:
    if isinstance(value, np.generic):
        return float(value.item())
    raise TypeError(f"{type(value).__name__} is no number; expected the values of a reference")
