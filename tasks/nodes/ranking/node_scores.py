"""Scores of executions and nodes: geometric means of oriented ratios to a reference fleet; what several tools share.

    score = exp( Σ_j w_j · o_j · log(x_j / r_j) / Σ_j w_j )

over the metrics j that count, with o = 1 where more is better and -1 where less is: above 1 is better than the
reference, and twice the throughput is twice the score. The reference r are the medians of a stated set of nodes, frozen
with the model and kept as JSON: a machine that joins moves no other; only a new reference does.

Beside it, learned without any application, what the types of a machine type's nodes have in common. Microbenchmarks of
one tool run right after one another and share the noise of the moment; what several tools see alike belongs to the
node. So for the shared component of each tool the combination is sought that agrees best with those of the others:
generalised canonical correlation (MAXVAR; Kettenring 1971, Biometrika 58), of normal scores, as results have long
tails."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtri

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
class ReferenceFleet:
    """table: one row a type and metric: type, aspect, metric, unit, orientation, median (in unit), weight, n_nodes and
    n_executions behind the median. stated: which nodes these are, in words."""

    table: pd.DataFrame
    stated: str

    def of(self, table: TypeTable) -> tuple[Floats, Floats]:
        """Median and weight of the metrics of a table, (m,) each; NaN and 0 for one that the fleet lacks."""
        rows = self.table[self.table["type"] == table.name].set_index("metric")[["median", "weight"]]
        median, weight = rows.reindex(list(table.metrics)).to_numpy(dtype=np.float64).T
        return median, np.nan_to_num(weight, nan=0.0)

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
            node_medians = medians[~np.isnan(medians[:, at]), at]
            median = float(np.median(node_medians)) if len(node_medians) else np.nan
            about = (table.name, table.aspect, metric, table.units[at], table.orientation[at])
            n_executions = int((~np.isnan(table.natural[:, at])).sum())
            rows.append((*about, median, float(counts[at] and median > 0), len(node_medians), n_executions))
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
    for is_counted in (
        is_directed & is_average & is_rate & (table.orientation > 0),
        is_directed & is_average & is_time & (table.orientation < 0),
        is_directed & is_average,
    ):
        if is_counted.any():
            return np.asarray(is_counted)
    return is_directed


def counted_in(reference: pd.DataFrame) -> frozenset[tuple[str, str]]:
    """The types and metrics of a reference (ReferenceFleet.table) that count in scores: those with a weight."""
    counted = reference[reference["weight"] > 0]
    return frozenset(zip(counted["type"].astype(str), counted["metric"].astype(str), strict=True))


def usual_aspects(reference: pd.DataFrame) -> frozenset[str]:
    """The aspects that half of the nodes of a reference or more ran: what a node is expected to have run."""
    counted = reference[reference["weight"] > 0]
    n_nodes = counted.groupby(counted["aspect"].astype(str))["n_nodes"].max()
    return frozenset(str(aspect) for aspect in n_nodes.index[n_nodes >= USUAL * n_nodes.max()])


def log_ratios(table: TypeTable, reference: ReferenceFleet) -> Floats:
    """Natural logarithm of each value's oriented ratio to the reference: (n, m), NaN where there is none.

    A value of 0 or less has no logarithm: where more is better it counts as the smallest ratio, else it is left out
    (tools print a latency below their last digit as 0)."""
    median, limit = reference.of(table)[0], np.log(LARGEST_RATIO)
    usable = np.where(median > 0, median, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = table.orientation * (np.log(np.where(table.natural > 0, table.natural, np.nan)) - np.log(usable))
    is_nothing = (table.natural <= 0) & (table.orientation > 0) & (usable > 0)
    return np.asarray(np.clip(np.where(is_nothing, -limit, ratios), -limit, limit))


def execution_scores(table: TypeTable, reference: ReferenceFleet) -> Floats:
    """Natural logarithm of the score of each execution of a type: (n,), NaN without a metric that counts."""
    return weighted_mean(log_ratios(table, reference), reference.of(table)[1])


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
        mean = [weighted_mean(log_scores, (self.aspect_of == at).astype(np.float64)) for at in range(len(self.aspects))]
        return np.stack(mean, axis=-1) if mean else np.full((*log_scores.shape[:-1], 0), np.nan)

    def overall(self, log_scores: Floats) -> Floats:
        """One number from all types: the mean over the aspects, with their weights. (…,)"""
        return weighted_mean(self.by_aspect(log_scores), self.weights)


@dataclass(frozen=True)
class NodeScores:
    """log_scores: (n_nodes, n_types), medians over a node's executions, NaN for a type that it did not run."""

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
    log_scores = np.full((len(tables.nodes), len(counted.tables)), np.nan)
    for at, table in enumerate(counted.tables):
        scores = execution_scores(table, reference)
        log_scores[:, at] = group_medians(scores[:, None], table.nodes, len(tables.nodes))[:, 0]
    return NodeScores(levels_of(counted, params), log_scores)


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


COMMON = 0.5  # share of the nodes that must have run a type which is to rank them
LEAST_NODES = 10  # of a machine type, for its nodes to be ranked by what is shared
LEAST_TOOLS = 2  # that so many of these nodes ran
RIDGE = 0.1  # added to each type's variance, which is about 1; beside it types over nodes, as few nodes tell little
NOT_IN_A_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class SharedComponent:
    """training: of each type the values of the training nodes, ordered. weights: (n_types,) of the types' normal
    scores, 0 for a type that says nothing."""

    training: tuple[Floats, ...]
    weights: Floats

    def score(self, values: Floats) -> Floats:
        """The number of each node: (n,), 0 for the middle of the training nodes. values: (n, n_types)."""
        return np.asarray(normal_scores(values, self.training) @ self.weights)


def shared_components(scores: NodeScores, machine_types: Sequence[str]) -> dict[str, SharedComponent]:
    """The component of each machine type of which LEAST_NODES nodes or more ran LEAST_TOOLS tools or more.

    machine_types: (n_nodes,). Between machine types nothing is shared but their size, which the score tells better."""
    components = {}
    for machine_type in dict.fromkeys(machine_types):
        values = scores.log_scores[np.array([kind == machine_type for kind in machine_types])]
        is_common = (~np.isnan(values)).sum(axis=0) >= LEAST_NODES
        tools = {tool_of(name) for name, is_its in zip(scores.levels.types, is_common, strict=True) if is_its}
        if len(tools) >= LEAST_TOOLS:
            with suppress(ValueError):  # no type varies
                components[machine_type] = fit_shared_component(values, scores.levels.types)
    return components


def fit_shared_component(values: Floats, types: Sequence[str]) -> SharedComponent:
    """Weights of the types. values: (n, n_types), NaN where missing, which counts as the middle.

    A type that fewer than half of the nodes ran has weight 0. More is better: the component rises with the mean of all
    types. Raises ValueError if no type varies."""
    training = tuple(np.sort(column[~np.isnan(column)]) for column in values.T)
    scores = normal_scores(values, training)
    is_used = ((~np.isnan(values)).mean(axis=0) >= COMMON) & (np.ptp(scores, axis=0) > 0)
    if not is_used.any():
        raise ValueError(f"{values.shape[1]} types of {len(values)} nodes, none of which varies on enough of them")
    used = np.array(types, dtype=object)[is_used]
    tools = np.array([tool_of(name) for name in used], dtype=object)
    groups = tools if len(set(tools)) > 1 else used  # each type alone where there is one tool
    used_scores, weights = scores[:, is_used], np.zeros(values.shape[1])
    weights[is_used] = _weights(used_scores - used_scores.mean(axis=0), groups)
    return SharedComponent(training, weights)


def normal_scores(values: Floats, training: Sequence[Floats]) -> Floats:
    """Φ⁻¹(p), p being the place of each value among the training nodes: (n, n_types); 0 where there is none.

    p = (values below + half of the equal ones + 1/2) / (n + 1). training: of each type the ordered values (n,)."""
    scores = np.zeros(values.shape)
    for at, known in enumerate(training):
        below = np.searchsorted(known, values[:, at], side="left")
        below_or_equal = np.searchsorted(known, values[:, at], side="right")
        place = (below + below_or_equal + 1) / (2 * (len(known) + 1))
        scores[:, at] = np.where(np.isnan(values[:, at]), 0.0, ndtri(place))
    return scores


def tool_of(benchmark_type: str) -> str:
    """The first word of a type's name."""
    return NOT_IN_A_WORD.split(benchmark_type, maxsplit=1)[0]


def _weights(scores: Floats, groups: np.ndarray) -> Floats:
    """The direction in which the whitened groups differ most together: (n_types,). scores: (n, n_types), mean 0.

    In whitened groups every direction of a group has the same variance; what stands out is what groups share."""
    n_nodes, n_types = scores.shape
    ridge = RIDGE + n_types / n_nodes
    whitening = np.zeros((n_types, n_types))
    for group in dict.fromkeys(groups):  # (C + ridge · 1)^(-1/2), C being the covariance of the group
        at = np.flatnonzero(groups == group)
        group_scores = scores[:, at]
        variances, axes = np.linalg.eigh(group_scores.T @ group_scores / n_nodes + ridge * np.eye(len(at)))
        whitening[np.ix_(at, at)] = axes / np.sqrt(variances) @ axes.T
    _, _, directions = np.linalg.svd(scores @ whitening, full_matrices=False)
    weights = whitening @ directions[0]
    return np.asarray(-weights if (scores @ weights) @ scores.mean(axis=1) < 0 else weights)
