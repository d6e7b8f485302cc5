"""Stressed executions for a fit in which nobody knows of any: copies of normal ones, made worse by drawn amounts.

Scaled metrics are oriented (more is better), so worse is less. An imitation is one more execution of its node and type
at the same time beside the same predecessors: its own metrics fall by a severity of its own, each by a drawn share of
it, some by nothing. Its performance is unknown, since what was drawn is in spreads of the metrics; detectors that were
fitted on the original say nothing of it, so training with imitations has no evidence. Source: PERONA leaves unlabelled
training open; this is ours."""

from dataclasses import replace

import numpy as np

from tasks.nodes.graph.graph_set import GraphSet
from tasks.nodes.graph.inputs import STRESSED, UNKNOWN, UNSTRESSED, Bools, Floats, Floats32, Inputs, Ints
from tasks.nodes.model.params import ModelParams
from tasks.nodes.preprocess.scaling import softly_clipped

SHARE = 0.2  # of the graphs afterwards, as in the paper's campaign
LEAST, MOST = 1.0, 8.0  # severity in spreads of a metric, drawn evenly in logarithm
LEAST_FOLLOWED = 0.5  # a metric that reacts falls by this share of the severity at least
REACTS = 0.8  # chance that a metric reacts
NEARLY_ONE = 1 - 1e-6


def needs_imitation(graphs: GraphSet, params: ModelParams) -> bool:
    """Whether no target is known to be stressed, in our variant, where a detector is asked for."""
    has_stressed = bool((graphs.inputs.labels[graphs.targets] == STRESSED).any())
    return params.variant == "ours" and params.loss.detection and not has_stressed


def with_imitated_stress(graphs: GraphSet, rng: np.random.Generator) -> GraphSet:
    """The graphs and, after them, imitations: one for every four, at least one; their targets are rows of their own.

    Metrics without a direction stay. Executions of which nobody says whether they were stressed count as unstressed
    here, and evidence is left out (Inputs.evidence has no columns). What falls is drawn in as the inputs are
    (Inputs.clip). Raises ValueError if there are no graphs of executions that are not known to be stressed."""
    inputs = graphs.inputs
    normal = np.flatnonzero(inputs.labels[graphs.targets] != STRESSED)
    if not len(normal):
        raise ValueError("no graph of an unstressed execution; expected at least one to imitate stress with")
    count = max(1, round(len(normal) * SHARE / (1 - SHARE)))
    copied = np.sort(rng.choice(normal, size=min(count, len(normal)), replace=False))
    rows = graphs.targets[copied]
    is_moved = inputs.is_own[rows] & inputs.has_direction
    fallen = worsened(inputs.x[rows], is_moved, rng, inputs.clip)
    return GraphSet(
        _appended(inputs, rows, fallen.astype(inputs.x.dtype)),
        np.concatenate([graphs.targets, len(inputs) + np.arange(len(rows))]),
        np.concatenate([graphs.predecessors, graphs.predecessors[copied]]),
    )


def worsened(x: Floats | Floats32, is_own: Bools, rng: np.random.Generator, clip: tuple[float, float] | None) -> Floats:
    """Scaled metrics after imitated stress, (b, f): own ones fall or stay, in each row at least one falls (if it has
    one), others stay. x, is_own: (b, f). clip: how x is drawn in, see Inputs."""
    severity = np.exp(rng.uniform(np.log(LEAST), np.log(MOST), (len(x), 1)))
    share = rng.uniform(LEAST_FOLLOWED, 1.0, x.shape) * (rng.random(x.shape) < REACTS)
    chosen = np.argmax(np.where(is_own, rng.random(x.shape), -1.0), axis=1)  # reacts in any case
    at = np.arange(len(x))
    share[at, chosen] = np.maximum(share[at, chosen], LEAST_FOLLOWED)
    fallen = x - severity * share if clip is None else softly_clipped(_unclipped(x, *clip) - severity * share, *clip)
    return np.asarray(np.where(is_own & (share > 0), np.minimum(fallen, x), x))


def _unclipped(drawn_in: Floats | Floats32, start: float, limit: float) -> Floats:
    """What softly_clipped made these of: its inverse."""
    beyond = np.clip((np.abs(np.asarray(drawn_in, dtype=np.float64)) - start) / (limit - start), 0, NEARLY_ONE)
    far = start + (limit - start) * beyond / (1 - beyond)
    return np.asarray(np.where(np.abs(drawn_in) <= start, drawn_in, np.sign(drawn_in) * far))


def _appended(inputs: Inputs, rows: Ints, x: Floats32) -> Inputs:
    """The inputs with copies of some rows after the last, whose x is another, as stressed; without evidence."""

    def with_copies(column: np.ndarray) -> np.ndarray:
        return np.concatenate([column, column[rows]])

    labels = np.where(inputs.labels == UNKNOWN, UNSTRESSED, inputs.labels).astype(inputs.labels.dtype)
    unknown = np.full(len(rows), np.nan, dtype=inputs.performance.dtype)
    n_rows = len(inputs) + len(rows)
    return replace(
        inputs,
        x=np.concatenate([inputs.x, x]),
        is_own=with_copies(inputs.is_own),
        type_of=with_copies(inputs.type_of),
        node_of=with_copies(inputs.node_of),
        started_s=with_copies(inputs.started_s),
        before=with_copies(inputs.before),
        during=with_copies(inputs.during),
        evidence=np.zeros((n_rows, 0), dtype=inputs.evidence.dtype),
        performance=np.concatenate([inputs.performance, unknown]),
        labels=np.concatenate([labels, np.full(len(rows), STRESSED, dtype=labels.dtype)]),
    )
