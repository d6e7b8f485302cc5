"""What the learned model is given in a split: nothing of what is tested but its features, and those in time order.

Labels are hidden outside training and validation before anything is made of the history, so that no code behind this
can look at them."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.nodes.aspects import type_names
from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.evidence import evidence_of, n_evidence
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.evaluate.hidden_labels import blinded
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.fingerprint.judging import can_be_judged, is_metric, undisturbed
from tasks.nodes.perona.graph import GraphSet, graphs_of, least_predecessors, predecessors_of
from tasks.nodes.perona.imitated_stress import needs_imitation, with_imitated_stress
from tasks.nodes.perona.inputs import (
    STRESSED,
    UNKNOWN,
    UNSTRESSED,
    Inputs,
    InputScales,
    as_evidence,
    inputs_of,
    learn_inputs,
)
from tasks.nodes.perona.params import ModelParams
from tasks.nodes.type_tables import Bools, Floats, Ints

FOLDS = 5  # of the training executions: what plain detectors say of one fold comes from the others
NO_FOLD = -1


@dataclass(frozen=True)
class Prepared:
    """scales: learned from the training executions. inputs: of all executions; labels of those that train or validate
    alone. undisturbed: (n,) completed, and not together with others. train, validation: graphs to fit to, by what is
    known of their labels; in the training graphs nothing is seen but training executions. is_imitated: whether stress
    was imitated in both, because none was known."""

    scales: InputScales
    inputs: Inputs
    undisturbed: Bools
    train: GraphSet
    validation: GraphSet
    is_imitated: bool = False


def blind_case(case: Case) -> Case:
    """The case without the labels of what is tested."""
    return replace(case, history=blinded(case.history, case.is_train | case.is_validation))


def out_of_fold_evidence(case: Case, params: DetectorParams, *, by_turns: bool, node_metrics: bool) -> Floats:
    """The evidence of training executions, each from detectors that did not learn it: (n_executions, n_evidence()).

    NaN for others. A detector finds what it learned more normal than what comes later; a network that is taught by such
    scores trusts them too much. So what is said of each fold comes from detectors that learned the other folds. Nothing
    but training executions is looked at."""
    own, folds = within(case, case.is_train), training_folds(case, by_turns=by_turns)
    found = np.full((len(folds), n_evidence()), np.nan)
    for number in np.unique(folds[case.is_train]):
        is_left = folds == number
        others = replace(own, is_train=own.is_train & ~is_left, is_normal=own.is_normal & ~is_left)
        with np.errstate(over="ignore"):  # what was constant in the other folds has hardly any spread; scores are cut
            found[is_left] = evidence_of(others, params, node_metrics=node_metrics)[is_left]
    return found


def training_folds(case: Case, *, by_turns: bool) -> Ints:
    """The fold of each training execution, from 0 to FOLDS - 1, and NO_FOLD for others: (n_executions,).

    Folds lie in time as what is tested lies to what is learned: blocks of each node and type where it comes after,
    each FOLDS-th execution of them where both are mixed (by_turns)."""
    executions = case.history.executions
    keys = pd.DataFrame({"node": executions["node"].astype(str), "type": type_names(executions)})[case.is_train]
    each = keys.groupby(["node", "type"], dropna=False)
    place, size = (one.to_numpy(dtype=np.int64) for one in (each.cumcount(), each["node"].transform("size")))
    folds = np.full(len(executions), NO_FOLD, dtype=np.int64)
    folds[case.is_train] = place % FOLDS if by_turns else place * FOLDS // size
    return folds


def told_of(
    case: Case, scales: InputScales, model: ModelParams, detect: DetectorParams, *, is_imitated: bool
) -> Inputs:
    """The inputs of all executions of a case, with what plain detectors and trees say of them as far as the network is
    told.

    is_imitated: whether the network was taught by imitated stress; then so are the trees."""
    if not takes_evidence(model):
        return inputs_of(case.history, scales, model)
    taught = with_imitated_stress(case, scales.preprocessor, detect) if is_imitated else None
    evidence = evidence_of(case, detect, node_metrics=model.graph.node_metrics, taught=taught)
    return inputs_of(case.history, scales, model, evidence=evidence)


def with_evidence(inputs: Inputs, evidence: Floats, model: ModelParams) -> Inputs:
    """The inputs with other scores of the plain detectors, (n, v)."""
    return replace(inputs, evidence=as_evidence(evidence, len(inputs), model))


def takes_evidence(model: ModelParams) -> bool:
    """Whether the network sees what the plain detectors say."""
    return model.variant == "ours" and model.network.evidence and model.loss.detection


def prepare_case(case: Case, model: ModelParams, params: EvaluateParams) -> Prepared:
    """What a fit in this split is given.

    An execution of which nobody says whether it was stressed counts as unstressed among the predecessors. Where no
    training execution is known to be stressed, stress is imitated in what is learned and in what is chosen by, and
    nowhere else. What plain detectors say to the training graphs is out of fold. Where the parts of the split lie mixed
    in time they look back at executions of all parts: what they say to the validation graphs then does not come from
    tested ones."""
    blind = blind_case(case)
    scales = learn_inputs(blind.history, blind.is_train, model, params.preprocess, params.score)
    is_imitated = params.learned.imitate_stress and needs_imitation(blind, model)
    taught = with_imitated_stress(blind, scales.preprocessor, params.detect) if is_imitated else blind
    inputs = told_of(blind, scales, model, params.detect, is_imitated=is_imitated)
    calm, seen = undisturbed(blind.history.executions), blind.is_train | blind.is_validation
    learned = chosen_by = shown = inputs_of(taught.history, scales, model) if is_imitated else inputs
    if takes_evidence(model):
        by_turns = is_mixed(inputs, blind.is_train)
        sees = model.graph.node_metrics
        folds = out_of_fold_evidence(taught, params.detect, by_turns=by_turns, node_metrics=sees)
        learned = with_evidence(shown, folds, model)
        if by_turns or is_imitated:
            asked = within(taught, seen) if by_turns else taught
            evidence = evidence_of(asked, params.detect, node_metrics=sees)
            chosen_by = with_evidence(shown, evidence, model)
    train = known_graphs(training_alone(learned, blind.is_train), blind.is_train, blind.is_train & calm, model)
    validation = known_graphs(chosen_by, blind.is_validation, seen & calm, model)
    return Prepared(scales, inputs, calm, train, validation, is_imitated)


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
    stressed. What measured nothing is neither target nor predecessor, as in use. is_target, may_precede: (n,)."""
    measured = can_be_judged(inputs)
    beside = predecessors_of(inputs, may_precede & measured & (inputs.labels != STRESSED), model.graph.predecessors)
    return graphs_of(inputs, np.flatnonzero(is_target & measured), beside, least=least_predecessors(model))


def part_graphs(inputs: Inputs, is_part: Bools, model: ModelParams) -> GraphSet:
    """The paper's graphs: of the executions of one part of a split, each beside the last ones of the same part that are
    labelled unstressed; those with fewer than all are left out. is_part: (n,)."""
    measured = is_part & can_be_judged(inputs)
    beside = predecessors_of(inputs, measured & (inputs.labels == UNSTRESSED), model.graph.predecessors)
    return graphs_of(inputs, np.flatnonzero(measured), beside, least=model.graph.predecessors)


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
    silent = replace(inputs, columns=columns, x=inputs.x[:, kept], is_own=inputs.is_own[:, kept])
    return replace(graphs, inputs=replace(silent, is_directed=inputs.has_direction[kept]))
