"""Everything that the network is given of executions, one row each, by what training executions taught.

Metrics are scaled by the variant's preprocessing. The paper's edges tell node metrics besides: percentiles of what a
node did before and during each execution; all samples count, equal ones too, which the published code collapses:

    z = (d - min) / (max - min),    d = 1 / (during + 0.001) - 1 / (before + 0.001)

Source: Perona, III-C, and its code."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError

from tasks.errors import BadInput
from tasks.nodes.history import History
from tasks.nodes.params import ModelParams, PreprocessParams, ScoreParams
from tasks.nodes.preprocess.fitting import (
    Preprocessor,
    durations,
    fit,
    load_preprocessor,
    save_preprocessor,
    tables_of,
    transform,
)
from tasks.nodes.ranking.scores import ReferenceFleet, execution_scores, learn_reference, load_reference, save_reference
from tasks.nodes.type_tables import is_stressed, is_unstressed, type_names
from tasks.params import Params

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.int8]
STRESSED, UNSTRESSED, UNKNOWN = 1, 0, -1  # labels
NO_TYPE = -1  # of an execution whose type training did not have
LARGEST_INPUT = 1e6  # in spans of training; the paper's scale has no end, and the square of 1e20 is none in float32
TYPE_SCALE = 4.0  # of ours, whose metrics reach 10: a type that is told by 1 is lost beside them
US_PER_S = 1e6

PERCENTILES = (10, 50, 90)
BEFORE_S = 50.0  # how long before its start the window before an execution begins
SAMPLES = 2_000_000  # telemetry rows are read until they have so many samples: memory stays bounded
INVERSE_FLOOR = 0.001
TINY = 1e-9  # spans below this share of the largest magnitude are rounding
ONE_HOT = "type="  # how the names of columns begin that tell the type, not a measurement
FORMAT, VERSION = "whorl.nodes.inputs", 2
PREPROCESSOR, REFERENCE, INPUTS = "preprocessor.json", "reference.json", "inputs.json"


class NodeMetricScales(Params):
    """columns: those kept, `<metric>/p<percentile>`. least, span: of each in training, (c,)."""

    columns: tuple[str, ...] = ()
    least: tuple[float, ...] = ()
    span: tuple[float, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that the columns are percentiles of, ordered."""
        return tuple(sorted({column.rpartition("/")[0] for column in self.columns}))


@dataclass(frozen=True)
class Inputs:
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

    preprocessor: Preprocessor
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
    preprocessor = fit(train, params.preprocess(preprocess))
    calm = is_unstressed(train.executions).to_numpy(dtype=bool)
    reference = learn_reference(tables_of(train, preprocessor), calm, score, "calm training executions")
    scales = NodeMetricScales()
    if params.is_paper and params.graph.node_metrics:
        metrics = sampled_metrics(train.telemetry)
        scales = learn_scales(node_metrics_of(train.telemetry, durations(train.executions), metrics))
    return InputScales(preprocessor, reference, scales)


def inputs_of(history: History, scales: InputScales, params: ModelParams) -> Inputs:
    """The inputs of executions, training ones or others. Raises ValueError for a metric that is not finite."""
    executions = history.executions
    prepared, tables = transform(scales.preprocessor, history), tables_of(history, scales.preprocessor)
    x = np.clip(prepared.scaled, -LARGEST_INPUT, LARGEST_INPUT).astype(np.float32)
    one_hot = prepared.one_hot.astype(np.float32) * np.float32(1.0 if params.is_paper else TYPE_SCALE)
    node_of, nodes = pd.factorize(executions["node"].astype(str), sort=True)
    names = pd.Index(type_names(executions), dtype=object)
    told = node_metrics_of(history.telemetry, durations(executions), scales.node_metrics.metrics)
    performance = [execution_scores(table, scales.reference) for table in tables.tables]
    return Inputs(
        columns=prepared.columns + tuple(f"{ONE_HOT}{name}" for name in prepared.types),
        x=np.hstack([x, one_hot]),
        is_own=np.hstack([prepared.is_own, np.full(one_hot.shape, params.is_paper)]),
        types=scales.types,
        type_of=np.asarray(pd.Index(scales.types, dtype=object).get_indexer(names), dtype=np.int64),
        nodes=tuple(str(node) for node in nodes),
        node_of=node_of.astype(np.int64),
        started_s=start_seconds(executions),
        node_metrics=scale_node_metrics(told, scales.node_metrics),
        performance=tables.in_place(performance).astype(np.float32),
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


@dataclass(frozen=True)
class NodeMetrics:
    """columns: `<metric>/p<percentile>`, (c,). before: (n, c) in [-50 s, 0]; during: (n, c) in [0, duration]; both ends
    belong to a window. NaN where nothing was sampled."""

    columns: tuple[str, ...]
    before: Floats
    during: Floats


def sampled_metrics(telemetry: pd.DataFrame) -> tuple[str, ...]:
    """The metrics that telemetry has, ordered."""
    return tuple(sorted(str(name) for name in telemetry["metric"].dropna().unique()))


def node_metrics_of(telemetry: pd.DataFrame, duration_s: Floats, metrics: Sequence[str]) -> NodeMetrics:
    """Percentiles of some metrics for all executions; what telemetry tells of other metrics is left out.

    telemetry: as a History has it. duration_s: (n,); where it is NaN the window during has no end."""
    columns = tuple(f"{metric}/p{percentile}" for metric in metrics for percentile in PERCENTILES)
    of = pd.Index(list(metrics), dtype=object).get_indexer(pd.Index(telemetry["metric"], dtype=object))
    kept = np.flatnonzero(of >= 0)
    execution, metric = telemetry["execution"].to_numpy(dtype=np.int64)[kept], of[kept]
    at_s, samples = (telemetry[name].to_numpy(dtype=object)[kept] for name in ("at_s", "samples"))
    shape = (len(duration_s), len(metrics), len(PERCENTILES))
    before, during = (np.full(shape, np.nan) for _ in range(2))
    end_s = np.where(np.isnan(duration_s), np.inf, duration_s)
    for part in _parts(np.array([len(one) for one in at_s], dtype=np.int64)):
        own, places = at_s[part], (execution[part], metric[part])
        lengths = np.array([len(one) for one in own], dtype=np.int64)
        row = np.repeat(np.arange(len(own)), lengths)
        at, value = _joined(own), _joined(samples[part])
        is_told = np.isfinite(value)
        is_before = is_told & (at >= -BEFORE_S) & (at <= 0)
        is_during = is_told & (at >= 0) & (at <= end_s[places[0]][row])
        before[places] = percentiles_of(value[is_before], np.bincount(row[is_before], minlength=len(own)))
        during[places] = percentiles_of(value[is_during], np.bincount(row[is_during], minlength=len(own)))
    flat = (shape[0], shape[1] * shape[2])
    return NodeMetrics(columns, before.reshape(flat), during.reshape(flat))


def percentiles_of(values: Floats, lengths: Ints) -> Floats:
    """The percentiles, interpolated linearly, of groups of values that lie one after another: (k, 3), NaN if empty.

    values: (sum of lengths,). lengths: (k,). Groups of one length are worked out at once."""
    found = np.full((len(lengths), len(PERCENTILES)), np.nan)
    first = np.cumsum(lengths) - lengths
    for length in np.unique(lengths[lengths > 0]):
        groups = np.flatnonzero(lengths == length)
        ordered = np.sort(values[first[groups][:, None] + np.arange(length)], axis=1)  # (groups, length)
        for at, percentile in enumerate(PERCENTILES):
            low, share = divmod((length - 1) * percentile, 100)
            above = ordered[:, min(low + 1, length - 1)]
            found[groups, at] = ordered[:, low] + (above - ordered[:, low]) * (share / 100)
    return found


def _parts(lengths: Ints) -> list[slice]:
    """Rows in their order, cut where they have SAMPLES samples."""
    block = np.cumsum(lengths) // SAMPLES
    edges = [0, *(np.flatnonzero(np.diff(block)) + 1), len(lengths)]
    return [slice(int(begin), int(end)) for begin, end in pairwise(edges) if end > begin]


def _joined(lists: np.ndarray) -> Floats:
    return np.concatenate([np.asarray(one, dtype=np.float64) for one in lists])


def learn_scales(told: NodeMetrics) -> NodeMetricScales:
    """The scales of node metrics from training executions; a column that does not vary in training is dropped."""
    change = inverse_difference(told.before, told.during)
    known = np.flatnonzero(~np.isnan(change).all(axis=0))
    if not len(known):
        return NodeMetricScales()
    change = change[:, known]
    least, most = np.nanmin(change, axis=0), np.nanmax(change, axis=0)
    varies = most - least > TINY * np.nanmax(np.abs(change), axis=0)
    return NodeMetricScales(
        columns=tuple(told.columns[at] for at in known[varies]),
        least=tuple(least[varies].tolist()),
        span=tuple((most - least)[varies].tolist()),
    )


def scale_node_metrics(told: NodeMetrics, scales: NodeMetricScales) -> Floats32:
    """The scaled change from before to during each execution, that of no change where nothing was sampled: (n, c).

    No column is missing from `told`."""
    at = np.array([told.columns.index(column) for column in scales.columns], dtype=np.int64)
    change = np.nan_to_num(inverse_difference(told.before[:, at], told.during[:, at]), nan=0.0)
    return np.asarray((change - np.asarray(scales.least)) / np.asarray(scales.span), dtype=np.float32)


def inverse_difference(before: Floats, during: Floats) -> Floats:
    """1 / (during + 0.001) - 1 / (before + 0.001), as the paper's code has it; NaN where either is.

    Values below 0 count as 0. Both of one shape."""
    earlier, later = (1 / (np.maximum(values, 0) + INVERSE_FLOOR) for values in (before, during))
    return np.asarray(later - earlier)


def save_inputs(scales: InputScales, folder: Path) -> None:
    """Write preprocessor.json, reference.json and inputs.json; the folder is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    save_preprocessor(scales.preprocessor, folder / PREPROCESSOR)
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
    preprocessor, reference = load_preprocessor(folder / PREPROCESSOR), load_reference(folder / REFERENCE)
    return InputScales(preprocessor, reference, node_metrics)
