"""What the learned model is given in a split: nothing of what is tested but its features, and those in time order.

Labels are hidden outside training and validation before anything is made of the history, so that no code behind this
can look at them."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed
from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.detectors.registry import PLAIN
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.fingerprint.judging import can_be_judged, is_metric, undisturbed
from tasks.nodes.graph.fitting import InputScales, inputs_of, learn_inputs
from tasks.nodes.graph.graph_set import GraphSet, graphs_of, least_predecessors
from tasks.nodes.graph.inputs import STRESSED, UNKNOWN, UNSTRESSED, Inputs
from tasks.nodes.graph.predecessors import predecessors_of
from tasks.nodes.history import History
from tasks.nodes.model.params import ModelParams
from tasks.nodes.type_tables import Bools, Floats

CLAIMS, LABELS = ("is_stressed", "stress_wanted"), ("dose", "dose_level")


@dataclass(frozen=True)
class Prepared:
    """scales: learned from the training executions. inputs: of all executions; labels of those that train or validate
    alone. undisturbed: (n,) completed, and not together with others. train, validation: graphs to fit to, by what is
    known of their labels; in the training graphs nothing is seen but training executions."""

    scales: InputScales
    inputs: Inputs
    undisturbed: Bools
    train: GraphSet
    validation: GraphSet


def blinded(history: History, is_seen: Bools) -> History:
    """The history without what is known of stress where the mask (n_executions,) is false."""
    executions = history.executions
    seen = pd.Series(is_seen, index=executions.index)
    hidden = {name: executions[name].where(seen) for name in LABELS if name in executions.columns}
    hidden |= {name: executions[name].astype("boolean").where(seen) for name in CLAIMS if name in executions.columns}
    return replace(history, executions=executions.assign(**hidden))


def blind_case(case: Case) -> Case:
    """The case without the labels of what is tested."""
    return replace(case, history=blinded(case.history, case.is_train | case.is_validation))


def evidence_of(case: Case, params: DetectorParams) -> Floats:
    """What the plain detectors say of each execution, (n_executions, 4): NaN where one says nothing."""
    return np.column_stack([detector(case, params) for detector in PLAIN.values()])


def inputs_in(
    case: Case, scales: InputScales, model: ModelParams, params: EvaluateParams, *, has_evidence: bool
) -> Inputs:
    """The inputs of all executions of a blind case, with what the plain detectors say or without."""
    return inputs_of(case.history, scales, model, evidence=evidence_of(case, params.detect) if has_evidence else None)


def takes_evidence(blind: Case, model: ModelParams) -> bool:
    """Whether a fit sees what the plain detectors say: ours does, unless it has to imitate stress, of which they cannot
    say anything."""
    stressed = is_stressed(blind.history.executions).to_numpy(dtype=bool)
    return model.variant == "ours" and model.network.evidence and bool((stressed & blind.is_train).any())


def prepare_case(case: Case, model: ModelParams, params: EvaluateParams) -> Prepared:
    """What a fit in this split is given.

    An execution of which nobody says whether it was stressed counts as unstressed among the predecessors. Where the
    parts of the split lie mixed in time, plain detectors look back at executions of all parts: what they say to the
    training graphs then comes from training executions alone, and to the validation graphs not from tested ones."""
    blind = blind_case(case)
    scales = learn_inputs(blind.history, blind.is_train, model, params.preprocess, params.score)
    has_evidence = takes_evidence(blind, model)
    inputs = inputs_in(blind, scales, model, params, has_evidence=has_evidence)
    calm = undisturbed(blind.history.executions)
    seen = blind.is_train | blind.is_validation
    taught, chosen_by = inputs, inputs
    if has_evidence and is_mixed(inputs, blind.is_train):
        taught = inputs_in(within(blind, blind.is_train), scales, model, params, has_evidence=True)
        chosen_by = inputs_in(within(blind, seen), scales, model, params, has_evidence=True)
    train = known_graphs(training_alone(taught, blind.is_train), blind.is_train, blind.is_train & calm, model)
    validation = known_graphs(chosen_by, blind.is_validation, seen & calm, model)
    return Prepared(scales, inputs, calm, train, validation)


def within(case: Case, is_kept: Bools) -> Case:
    """The case in which plain detectors see some executions alone, and say nothing of others. is_kept: (n,)."""
    return replace(case, tables=case.tables.of_executions(is_kept))


def is_mixed(inputs: Inputs, is_train: Bools) -> bool:
    """Whether a training execution comes after one that is not, of the same node and type."""
    n_others = pd.Series((~is_train).astype(np.int64)).groupby([inputs.node_of, inputs.type_of]).cumsum().to_numpy()
    return bool((is_train & (n_others > 0)).any())


def training_alone(inputs: Inputs, is_train: Bools) -> Inputs:
    """The inputs with labels of the training executions alone."""
    return replace(inputs, labels=np.where(is_train, inputs.labels, UNKNOWN).astype(inputs.labels.dtype))


def known_graphs(inputs: Inputs, is_target: Bools, may_precede: Bools, model: ModelParams) -> GraphSet:
    """The graphs of some executions, each beside the latest earlier ones that may precede and are not known to be
    stressed. is_target, may_precede: (n,)."""
    beside = predecessors_of(inputs, may_precede & (inputs.labels != STRESSED), model.graph.predecessors)
    targets = np.flatnonzero(is_target & can_be_judged(inputs))
    return graphs_of(inputs, targets, beside, least=least_predecessors(model))


def part_graphs(inputs: Inputs, is_part: Bools, model: ModelParams) -> GraphSet:
    """The paper's graphs: of the executions of one part of a split, each beside the last ones of the same part that are
    labelled unstressed; those with fewer than all are left out. is_part: (n,)."""
    beside = predecessors_of(inputs, is_part & (inputs.labels == UNSTRESSED), model.graph.predecessors)
    return graphs_of(inputs, np.flatnonzero(is_part & can_be_judged(inputs)), beside, least=model.graph.predecessors)


def n_drawn(n_graphs: int, share: float, most: int) -> int:
    """How many of the graphs are drawn."""
    return min(max(1, round(share * n_graphs)), most)


def drawn_graphs(graphs: GraphSet, share: float, most: int, rng: np.random.Generator) -> GraphSet:
    """A drawn share of the graphs, at most so many, in their order; the rest stay as predecessors."""
    count = n_drawn(len(graphs), share, most)
    if count >= len(graphs):
        return graphs
    return graphs.of(np.sort(rng.choice(len(graphs), size=count, replace=False)))


def without_one_hot(graphs: GraphSet) -> GraphSet:
    """The graphs over inputs that do not tell the type."""
    inputs = graphs.inputs
    kept = is_metric(inputs)
    columns = tuple(name for name, is_kept in zip(inputs.columns, kept, strict=True) if is_kept)
    return replace(graphs, inputs=replace(inputs, columns=columns, x=inputs.x[:, kept], is_own=inputs.is_own[:, kept]))
