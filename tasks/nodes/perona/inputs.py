"""What the network is given: executions, one row each, by what training executions taught, as graphs of some of them.

Metrics are scaled by the variant's preprocessing. The paper's edges tell node metrics besides: percentiles of what a
node did before and during each execution; all samples count, equal ones too, which the published code collapses:

    z = (d - min) / (max - min),    d = 1 / (during + 0.001) - 1 / (before + 0.001)

Source: Perona, III-C, and its code.

A graph is an execution, its target, beside p earlier ones; in our variant p is 0. Its places, or slots, are 0 … p: the
predecessors, oldest first, then the target. Each earlier slot is joined to each later one, and each to itself. An
edge tells the node metrics of both ends, the decay 2^-(slots between), and for each time constant T of the time between

    g(T) = 2^(-ln(1 + Δt / T))

1 for no time at all, and falling ever more slowly. Whole days count, which the published code of the paper drops.
Batches are gathered from whole arrays: no loop over graphs, no object for each."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor

from tasks.errors import BadInput
from tasks.nodes.history import History
from tasks.nodes.params import ModelParams, PreprocessParams, ScoreParams
from tasks.nodes.preprocess import fitting
from tasks.nodes.ranking.node_scores import (
    ReferenceFleet,
    execution_scores,
    learn_reference,
    load_reference,
    save_reference,
)
from tasks.nodes.type_tables import Bools, Floats, Ints, is_stressed, is_unstressed, type_names
from tasks.params import Params

Floats32 = NDArray[np.float32]
Labels = NDArray[np.int8]
STRESSED, UNSTRESSED, UNKNOWN = 1, 0, -1  # labels
NO_TYPE = -1  # of an execution whose type training did not have
LARGEST_INPUT = 1e6  # in spans of training; the paper's scale has no end, and the square of 1e20 is none in float32
TYPE_SCALE = 4.0  # of ours, whose metrics reach 10: a type that is told by 1 is lost beside them
US_PER_S = 1e6

PERCENTILES = (10, 50, 90)
BEFORE_S = 50.0  # how long before its start the window before an execution begins
INVERSE_FLOOR = 0.001
TINY = 1e-9  # spans below this share of the largest magnitude are rounding
ONE_HOT = "type="  # how the names of columns begin that tell the type, not a measurement
FORMAT, VERSION = "whorl.nodes.inputs", 2
PREPROCESSOR, REFERENCE, INPUTS = "preprocessor.json", "reference.json", "inputs.json"


class NodeMetricScales(Params):
    """columns: those kept, `<metric>/p<percentile>`, in order. least, span: of each in training, (c,)."""

    columns: tuple[str, ...] = ()
    least: tuple[float, ...] = ()
    span: tuple[float, ...] = ()


@dataclass(frozen=True)
class NetworkInputs:
    """Rows are those of the history, in its order; n executions.

    columns: names of x: the m kept metrics, then `type=<name>` for each type.
    x: (n, f) scaled, what is missing filled in. is_own: (n, f) whether it was measured for that execution; of
    the columns of types all are True in the paper's variant and False in ours.
    types: of training; type_of: (n,) numbers of them, -1 for another. nodes: of the history; node_of: (n,).
    started_s: (n,) seconds since the epoch, in float64; where nobody says, one second after the row before.
    node_metrics: (n, c) how they changed from before to during each execution, 0 … 1 in training; c is 0 in ours.
    performance: (n,) natural logarithm of the execution's score, 1 being the reference; NaN where it has none.
    labels: (n,) 1 stressed, 0 not, -1 nobody says."""

    columns: tuple[str, ...]
    x: Floats32
    is_own: Bools
    types: tuple[str, ...]
    type_of: Ints
    nodes: tuple[str, ...]
    node_of: Ints
    started_s: Floats
    node_metrics: Floats32
    performance: Floats32
    labels: Labels

    def __len__(self) -> int:
        """Executions."""
        return len(self.x)

    @property
    def is_metric(self) -> Bools:
        """Which columns of x are measurements, (f,); the others tell the type."""
        return np.array([not name.startswith(ONE_HOT) for name in self.columns], dtype=bool)

    @property
    def is_measured(self) -> Bools:
        """Executions of a type of training with at least one measurement, (n,): all that anything can be said of."""
        return np.asarray((self.type_of != NO_TYPE) & self.is_own[:, self.is_metric].any(axis=1))

    @property
    def series(self) -> Ints:
        """The number of each execution's node and type, (n,)."""
        return np.asarray(self.node_of * (len(self.types) + 1) + self.type_of, dtype=np.int64)


@dataclass(frozen=True)
class InputScales:
    """What training executions taught. reference: medians of their calm ones."""

    preprocessor: fitting.Preprocessor
    reference: ReferenceFleet
    node_metrics: NodeMetricScales

    @property
    def types(self) -> tuple[str, ...]:
        """Benchmark types of the training executions, ordered."""
        return self.preprocessor.types


def learn_inputs(
    history: History, is_train: Bools, params: ModelParams, preprocess: PreprocessParams, score: ScoreParams
) -> InputScales:
    """Learn from the executions of the mask (n,) alone: nothing of the others is looked at."""
    train = history if is_train.all() else history.where(is_train)
    preprocessor = fitting.fit(train, params.preprocess(preprocess))
    calm = is_unstressed(train.executions).to_numpy(dtype=bool)
    reference = learn_reference(fitting.tables_of(train, preprocessor), calm, score, "calm training executions")
    scales = NodeMetricScales()
    if params.is_paper and params.graph.node_metrics:
        scales = learn_scales(node_changes(train.telemetry, fitting.durations(train.executions)))
    return InputScales(preprocessor, reference, scales)


def inputs_of(history: History, scales: InputScales, params: ModelParams) -> NetworkInputs:
    """The inputs of executions, training ones or others. Raises ValueError for a metric that is not finite."""
    executions = history.executions
    prepared, tables = fitting.transform(scales.preprocessor, history), fitting.tables_of(history, scales.preprocessor)
    x = np.clip(prepared.scaled, -LARGEST_INPUT, LARGEST_INPUT).astype(np.float32)
    one_hot = prepared.one_hot.astype(np.float32) * np.float32(1.0 if params.is_paper else TYPE_SCALE)
    node_of, nodes = pd.factorize(executions["node"].astype(str), sort=True)
    names = pd.Index(type_names(executions), dtype=object)
    performance = np.full(len(executions), np.nan, dtype=np.float32)
    for table in tables.tables:
        performance[table.executions] = execution_scores(table, scales.reference)
    return NetworkInputs(
        columns=prepared.columns + tuple(f"{ONE_HOT}{name}" for name in prepared.types),
        x=np.hstack([x, one_hot]),
        is_own=np.hstack([prepared.is_own, np.full(one_hot.shape, params.is_paper)]),
        types=scales.types,
        type_of=np.asarray(pd.Index(scales.types, dtype=object).get_indexer(names), dtype=np.int64),
        nodes=tuple(str(node) for node in nodes),
        node_of=node_of.astype(np.int64),
        started_s=start_seconds(executions),
        node_metrics=scale_changes(history.telemetry, fitting.durations(executions), scales.node_metrics),
        performance=performance,
        labels=labels_of(executions),
    )


def start_seconds(executions: pd.DataFrame) -> Floats:
    """Seconds since the epoch, (n,); where nobody says, one second after the row before, counted from 0 at first."""
    started = pd.to_datetime(executions["started_at"]).to_numpy(dtype="datetime64[us]")
    is_known, rows = ~np.isnat(started), np.arange(len(started))
    seconds = np.where(is_known, started.astype(np.int64), 0) / US_PER_S
    latest = np.maximum.accumulate(np.where(is_known, rows, -1))
    since = np.where(latest >= 0, seconds[np.maximum(latest, 0)] + (rows - latest), rows)
    return np.asarray(np.where(is_known, seconds, since), dtype=np.float64)


def labels_of(executions: pd.DataFrame) -> Labels:
    """1 stressed, 0 not, -1 nobody says: (n,)."""
    is_unknown = executions["is_stressed"].isna().to_numpy()
    known = np.where(is_stressed(executions).to_numpy(dtype=bool), STRESSED, UNSTRESSED)
    return np.where(is_unknown, UNKNOWN, known).astype(np.int8)


def node_changes(telemetry: pd.DataFrame, duration_s: Floats) -> pd.DataFrame:
    """How node metrics changed from before to during each execution, d of the module, one row an execution.

    Columns `<metric>/p<percentile>`; before: [-50 s, 0], during: [0, duration]; both ends belong to a window. NaN where
    either has no sample. telemetry: as a History has it. duration_s: (n,); where it is NaN the window has no end."""
    lengths = telemetry["at_s"].map(len).to_numpy(dtype=np.int64)
    samples = telemetry[["execution", "metric"]].loc[telemetry.index.repeat(lengths)].reset_index(drop=True)
    at_s, value = (np.concatenate([np.empty(0), *telemetry[name]]).astype(np.float64) for name in ("at_s", "samples"))
    end_s = np.where(np.isnan(duration_s), np.inf, duration_s)[samples["execution"].to_numpy(dtype=np.int64)]
    known = samples.assign(value=value)[np.isfinite(value)]
    at_s, end_s = at_s[np.isfinite(value)], end_s[np.isfinite(value)]
    before = _percentiles(known[(at_s >= -BEFORE_S) & (at_s <= 0)])
    during = _percentiles(known[(at_s >= 0) & (at_s <= end_s)])
    metrics = sorted(str(name) for name in telemetry["metric"].dropna().unique())
    columns = [f"{metric}/p{percentile}" for metric in metrics for percentile in PERCENTILES]
    rows = range(len(duration_s))
    framed = (frame.reindex(index=rows, columns=columns) for frame in (before, during))
    earlier, later = (1 / (values.clip(lower=0) + INVERSE_FLOOR) for values in framed)  # as the paper's code has it
    return later - earlier


def _percentiles(samples: pd.DataFrame) -> pd.DataFrame:
    """The percentiles, interpolated linearly, of the samples (execution, metric, value): a row an execution."""
    if not len(samples):
        return pd.DataFrame()
    shares = np.array(PERCENTILES) / 100
    percentiles = samples.groupby(["execution", "metric"])["value"].quantile(shares).unstack([1, 2])  # noqa: PD010
    columns: Any = percentiles.columns
    return percentiles.set_axis([f"{metric}/p{round(100 * share)}" for metric, share in columns], axis=1)


def learn_scales(changes: pd.DataFrame) -> NodeMetricScales:
    """The scales of node_changes of training executions; a column that does not vary in training is dropped."""
    changes = changes.dropna(axis=1, how="all")
    least, most = changes.min(), changes.max()
    varies = most - least > TINY * changes.abs().max()
    span = (most - least)[varies].tolist()
    return NodeMetricScales(
        columns=tuple(changes.columns[varies]), least=tuple(least[varies].tolist()), span=tuple(span)
    )


def scale_changes(telemetry: pd.DataFrame, duration_s: Floats, scales: NodeMetricScales) -> Floats32:
    """The scaled change from before to during each execution, that of no change where nothing was sampled: (n, c)."""
    if not scales.columns:
        return np.empty((len(duration_s), 0), dtype=np.float32)
    changes = node_changes(telemetry, duration_s).reindex(columns=list(scales.columns)).fillna(0.0)
    return np.asarray((changes - np.array(scales.least)) / np.array(scales.span), dtype=np.float32)


def save_inputs(scales: InputScales, folder: Path) -> None:
    """Write preprocessor.json, reference.json and inputs.json; the folder is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    fitting.save_preprocessor(scales.preprocessor, folder / PREPROCESSOR)
    save_reference(scales.reference, folder / REFERENCE)
    main = {"format": FORMAT, "version": VERSION, "node_metrics": scales.node_metrics.model_dump()}
    (folder / INPUTS).write_text(json.dumps(main, indent=1), encoding="utf-8")


def load_inputs(folder: Path) -> InputScales:
    """What save_inputs wrote. Raises BadInput for a file that is missing, damaged or foreign."""
    file = folder / INPUTS
    try:
        main = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.get("format"), main.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        node_metrics = NodeMetricScales.model_validate(main["node_metrics"])
    except (OSError, ValueError, KeyError, ValidationError) as error:
        problem = f"no inputs of a model of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(file, problem, "what a training of nodes wrote", "train again") from error
    preprocessor, reference = fitting.load_preprocessor(folder / PREPROCESSOR), load_reference(folder / REFERENCE)
    return InputScales(preprocessor, reference, node_metrics)


ABSENT = -1  # in place of a predecessor that there is not


@dataclass(frozen=True)
class GraphSet:
    """targets: (g,) rows of the inputs. predecessors: (g, p) rows, oldest first."""

    inputs: NetworkInputs
    targets: Ints
    predecessors: Ints

    def __len__(self) -> int:
        """Graphs."""
        return len(self.targets)

    def of(self, selection: Ints | Bools) -> "GraphSet":
        """Some of the graphs, by number or by mask."""
        return replace(self, targets=self.targets[selection], predecessors=self.predecessors[selection])

    def drawn(self, most: int, rng: np.random.Generator) -> "GraphSet":
        """At most so many of the graphs, drawn, in their order."""
        return self if most >= len(self) else self.of(np.sort(rng.choice(len(self), size=most, replace=False)))


def graphs_of(inputs: NetworkInputs, targets: Ints, predecessors: Ints) -> GraphSet:
    """The graphs of those of some executions that have all of their predecessors.

    targets: (g,) rows. predecessors: (n, p), one row an execution of the inputs, as predecessors_of has them."""
    rows = np.asarray(targets, dtype=np.int64)
    graphs = GraphSet(inputs, rows, predecessors[rows])
    return graphs.of((graphs.predecessors != ABSENT).all(axis=1))


def predecessors_of(inputs: NetworkInputs, is_normal: Bools, count: int) -> Ints:
    """Rows of the latest `count` earlier executions of the same node and type that are normal: (n, count).

    Oldest first; -1 on the left where there are fewer. Earlier means an earlier row, so the order of the history holds
    where starts are equal. An execution of a type that training did not have has none. is_normal: (n,). No loop over
    executions: they are ordered by node and type, and the normal ones before each are counted."""
    group = inputs.series
    order = np.argsort(group, kind="stable")
    normal = is_normal[order]
    n_before: Ints = np.cumsum(normal) - normal  # normal ones before each row, of all groups so far
    is_first = np.diff(group[order], prepend=-2) != 0
    n_before_group = np.maximum.accumulate(np.where(is_first, n_before, 0))
    place = n_before[:, None] - np.arange(count, 0, -1)  # among all normal ones, in this order
    is_there = (place >= n_before_group[:, None]) & (inputs.type_of[order] != NO_TYPE)[:, None]
    normal_rows = np.append(order[normal], ABSENT)
    predecessors = np.full((len(order), count), ABSENT, dtype=np.int64)
    predecessors[order] = np.where(is_there, normal_rows[np.where(is_there, place, -1)], ABSENT)
    return predecessors


@dataclass(frozen=True)
class GraphBatch:
    """n_graphs graphs of p + 1 vertices each, v in all, and E edges. Vertices lie graph by graph, oldest first, the
    target last.

    x, is_own: (v, f). type_of: (v,) -1 for a type that training did not have. label: (v,) 1 stressed, 0 not, NaN
    unknown. performance: (v,) natural logarithm, NaN unknown. edge_index: (2, E) from, to. edge_attr: (E, d), see
    edge_size."""

    n_graphs: int
    x: Tensor
    is_own: Tensor
    type_of: Tensor
    label: Tensor
    performance: Tensor
    edge_index: Tensor
    edge_attr: Tensor


class Batches:
    """Batches of a set of graphs. What does not depend on the choice of graphs is made once."""

    def __init__(self, graphs: GraphSet, params: ModelParams) -> None:
        inputs = graphs.inputs
        earlier, later, decay = slot_pairs(params.n_predecessors)
        rows = np.column_stack([graphs.predecessors, graphs.targets])  # (g, p + 1)
        elapsed_s = inputs.started_s[rows[:, later]] - inputs.started_s[rows[:, earlier]]  # (g, k)
        label = np.where(inputs.labels == UNKNOWN, np.nan, inputs.labels).astype(np.float32)
        self.n_inputs, self.n_types = inputs.x.shape[1], len(inputs.types)
        self.edge_size = edge_size(inputs, params)
        self._rows = torch.from_numpy(rows)
        self._ends = torch.from_numpy(np.stack([earlier, later]))  # (2, k)
        self._decay = torch.from_numpy(decay)
        self._intervals = _tensor(encode_intervals(elapsed_s, params.graph.interval_scales_s).astype(np.float32))
        self._node_metrics, self._label = _tensor(inputs.node_metrics), torch.from_numpy(label)
        self._x, self._is_own = _tensor(inputs.x), _tensor(inputs.is_own)
        self._type_of, self._performance = _tensor(inputs.type_of), _tensor(inputs.performance)

    def __len__(self) -> int:
        """Graphs."""
        return len(self._rows)

    def of(self, numbers: Ints) -> GraphBatch:
        """The graphs of these numbers, in this order; one may be asked for twice. numbers: (b,)"""
        graphs = torch.from_numpy(np.array(numbers, dtype=np.int64))
        rows = self._rows[graphs]  # (b, p + 1)
        row = rows.flatten()  # (v,), graph by graph
        first = torch.arange(len(rows)) * rows.shape[1]
        edge_index = (first[:, None] + self._ends[:, None]).flatten(1)  # (2, b, k) to (2, E)
        before, after = self._node_metrics[row[edge_index]]
        decay = self._decay.repeat(len(rows)).unsqueeze(1)
        return GraphBatch(
            n_graphs=len(rows),
            x=self._x[row],
            is_own=self._is_own[row],
            type_of=self._type_of[row],
            label=self._label[row],
            performance=self._performance[row],
            edge_index=edge_index,
            edge_attr=torch.cat([before, after, decay, self._intervals[graphs].flatten(0, 1)], dim=1),
        )


def slot_pairs(n_predecessors: int) -> tuple[Ints, Ints, Floats32]:
    """The slots that the edges of a graph join, earlier and later, and 2^-(later - earlier): (k,) each.

    p (p + 1) / 2 edges lead forward, and p + 1 from a slot to itself."""
    slots = np.arange(n_predecessors + 1)
    earlier, later = (np.append(ends, slots) for ends in np.triu_indices(n_predecessors + 1, k=1))
    return earlier, later, np.exp2(earlier - later).astype(np.float32)


def edge_size(inputs: NetworkInputs, params: ModelParams) -> int:
    """Length of the attributes of an edge: node metrics of both ends, the decay, and the interval at each scale."""
    return 2 * int(inputs.node_metrics.shape[1]) + 1 + len(params.graph.interval_scales_s)


def encode_intervals(elapsed_s: Floats, scales_s: Sequence[float]) -> Floats:
    """g of each interval at each scale: (…, len(scales_s)). elapsed_s: (…), seconds; negative ones count as 0."""
    elapsed = np.maximum(np.asarray(elapsed_s, dtype=np.float64), 0.0)[..., None]
    return np.asarray(np.exp2(-np.log1p(elapsed / np.asarray(scales_s, dtype=np.float64))))


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))
