"""Learns from training executions what the inputs of the network need, and makes the inputs of any executions."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed, is_unstressed, type_names
from tasks.nodes.graph.inputs import STRESSED, UNKNOWN, UNSTRESSED, Bools, Floats, Floats32, Inputs, Ints, Labels
from tasks.nodes.graph.node_metrics import node_metrics_of, sampled_metrics
from tasks.nodes.graph.scaled_node_metrics import NodeMetricScales, learn_scales, scale_node_metrics
from tasks.nodes.history import History
from tasks.nodes.model.params import ModelParams
from tasks.nodes.preprocess.fitted import Preprocessor
from tasks.nodes.preprocess.fitting import durations, fit
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.transforming import Prepared, transform
from tasks.nodes.reference_fleet import ReferenceFleet, learn_reference
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.scores import execution_scores
from tasks.nodes.tabulating import tables_of

LARGEST_EVIDENCE = 1e6  # scores of detectors are cut here, so that an infinite one stays a number
LARGEST_INPUT = 1e6  # in spans of training; the paper's scale has no end, and the square of 1e20 is none in float32
US_PER_S = 1e6
TYPE_SCALE = 4.0  # of ours, whose metrics reach 10: a type that is told by 1 is lost beside them


@dataclass(frozen=True)
class InputScales:
    """What training executions taught. reference: medians of their calm ones. score: how executions are scored."""

    preprocessor: Preprocessor
    reference: ReferenceFleet
    node_metrics: NodeMetricScales
    score: ScoreParams

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
    scales = NodeMetricScales(variant=params.variant)
    if params.graph.node_metrics:
        metrics = sampled_metrics(train.telemetry)
        told = node_metrics_of(train.telemetry, durations(train.executions), metrics)
        scales = learn_scales(told, params.variant)
    return InputScales(preprocessor, reference, scales, score)


def inputs_of(history: History, scales: InputScales, params: ModelParams, *, evidence: Floats | None = None) -> Inputs:
    """The inputs of executions, training ones or others.

    evidence: (n, v) scores of plain detectors, NaN where they say nothing; left out in the paper's variant and where
    network.evidence is off. Raises ValueError for a metric that is not finite, or evidence of another length."""
    executions = history.executions
    prepared = transform(scales.preprocessor, history)
    columns, x, is_own = _vectors(prepared, params)
    node_of, nodes = pd.factorize(executions["node"].astype(str), sort=True)
    told = node_metrics_of(history.telemetry, durations(executions), scales.node_metrics.metrics)
    before, during = scale_node_metrics(told, scales.node_metrics)
    return Inputs(
        columns=columns,
        x=x,
        is_own=is_own,
        types=scales.types,
        type_of=_types(executions, scales.types),
        nodes=tuple(str(node) for node in nodes),
        node_of=node_of.astype(np.int64),
        started_s=start_seconds(executions),
        before=before,
        during=during,
        evidence=as_evidence(evidence, len(executions), params),
        performance=_performance(history, scales),
        labels=_labels(executions),
        is_directed=_directions(scales.preprocessor, len(columns)),
    )


def _vectors(prepared: Prepared, params: ModelParams) -> tuple[tuple[str, ...], Floats32, Bools]:
    """Names of the columns (f,), x (n, f) and is_own (n, f): the metrics, and the types where the network is told."""
    is_paper = params.variant == "paper"
    x = np.clip(prepared.scaled, -LARGEST_INPUT, LARGEST_INPUT).astype(np.float32)
    is_own = prepared.is_own
    if not (is_paper or params.network.type_in_input):
        return prepared.columns, x, is_own
    columns = prepared.columns + tuple(f"type={name}" for name in prepared.types)
    one_hot = prepared.one_hot.astype(np.float32) * np.float32(1.0 if is_paper else TYPE_SCALE)
    return columns, np.hstack([x, one_hot]), np.hstack([is_own, np.full(one_hot.shape, is_paper)])


def _directions(preprocessor: Preprocessor, n_columns: int) -> Bools:
    """Which columns have a direction, (f,): as declared, all of a type that has none else, and those of types."""
    kept = preprocessor.kept
    told = {metric.type for metric in kept if metric.orientation.is_directed}
    found = np.ones(n_columns, dtype=bool)
    found[: len(kept)] = [metric.orientation.is_directed or metric.type not in told for metric in kept]
    return found


def _types(executions: pd.DataFrame, types: tuple[str, ...]) -> Ints:
    """The number of each execution's type, -1 for one that is not among them."""
    names = pd.Index(type_names(executions), dtype=object)
    return np.asarray(pd.Index(types, dtype=object).get_indexer(names), dtype=np.int64)


def start_seconds(executions: pd.DataFrame) -> Floats:
    """Seconds since the epoch, (n,); where nobody says, one second after the row before, counted from 0 at first."""
    started = pd.to_datetime(executions["started_at"]).to_numpy(dtype="datetime64[us]")
    is_known, rows = ~np.isnat(started), np.arange(len(started))
    seconds = np.where(is_known, started.astype(np.int64), 0) / US_PER_S
    latest = np.maximum.accumulate(np.where(is_known, rows, -1))
    since = np.where(latest >= 0, seconds[np.maximum(latest, 0)] + (rows - latest), rows)
    return np.asarray(np.where(is_known, seconds, since), dtype=np.float64)


def as_evidence(evidence: Floats | None, n_executions: int, params: ModelParams) -> Floats32:
    """(n, v): asinh of the scores, 0 for NaN; no columns where the network is not to see them.

    Raises ValueError for evidence of another length."""
    if evidence is None or params.variant == "paper" or not params.network.evidence:
        return np.empty((n_executions, 0), dtype=np.float32)
    if evidence.ndim != 2 or len(evidence) != n_executions:
        raise ValueError(f"evidence of shape {evidence.shape}; expected one row for each of {n_executions} executions")
    cut = np.clip(np.nan_to_num(evidence, nan=0.0), -LARGEST_EVIDENCE, LARGEST_EVIDENCE)
    return np.arcsinh(cut).astype(np.float32)


def _performance(history: History, scales: InputScales) -> Floats32:
    """Natural logarithm of each execution's score, (n,); NaN for a type without a reference."""
    tables = tables_of(history, scales.preprocessor)
    scores = [execution_scores(table, scales.reference, scales.score) for table in tables.tables]
    return tables.in_place(scores).astype(np.float32)


def _labels(executions: pd.DataFrame) -> Labels:
    is_unknown = executions["is_stressed"].isna().to_numpy()
    known = np.where(is_stressed(executions).to_numpy(dtype=bool), STRESSED, UNSTRESSED)
    return np.where(is_unknown, UNKNOWN, known).astype(np.int8)
