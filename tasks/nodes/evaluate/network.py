"""Perona's network in a split: what it is given, fitted to and selected by, and what it says of all executions.

Nothing of what is tested is given but its features, and those in time order: labels are hidden outside training and
validation before anything is made of the history. Predecessors are those that the network itself did not flag, as
nobody knows labels in use; the threshold of that is chosen on validation executions."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from tasks.nodes.detect.plain import Case
from tasks.nodes.evaluate.applications import spearman
from tasks.nodes.evaluate.params import EvaluateParams, LearnedParams
from tasks.nodes.evaluate.splits import blinded, choose_threshold
from tasks.nodes.perona.fingerprints import fingerprints_of
from tasks.nodes.perona.graph import GraphSet, graphs_of, least_predecessors, predecessors_of
from tasks.nodes.perona.inputs import (
    NO_TYPE,
    STRESSED,
    UNKNOWN,
    UNSTRESSED,
    Inputs,
    InputScales,
    inputs_of,
    learn_inputs,
)
from tasks.nodes.perona.judging import can_be_judged, is_metric, judge, probability_of, targets_of, undisturbed
from tasks.nodes.perona.network import PeronaNetwork
from tasks.nodes.perona.params import FingerprintParams, ModelParams
from tasks.nodes.perona.training import FittedNetwork, fit_network
from tasks.nodes.type_tables import (
    SD_OF_MAD,
    Bools,
    Floats,
    Ints,
)

LEAST_GRAPHS = 10  # to fit to
DRAWS = 7  # stream of the seed: which training executions are drawn
LARGEST_LOGIT = 30.0  # of a threshold: beyond 36 its probability is 1, and nothing would ever be flagged
FIRST_GUESS = 0.5  # probability by which predecessors are chosen before there is a threshold
NO_STRESS = "no training execution is known to be stressed, so the network learns no verdicts"


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


@dataclass(frozen=True)
class FittedModel:
    """What scores executions: the scales of its inputs, the network, and the probability above which it flags."""

    scales: InputScales
    network: PeronaNetwork
    threshold: float


def prepare_case(case: Case, model: ModelParams, params: EvaluateParams) -> Prepared:
    """What a fit in this split is given.

    An execution of which nobody says whether it was stressed counts as unstressed among the predecessors."""
    blind = replace(case, history=blinded(case.history, case.is_train | case.is_validation))
    scales = learn_inputs(blind.history, blind.is_train, model, params.preprocess, params.score)
    inputs, calm = inputs_of(blind.history, scales, model), undisturbed(blind.history.executions)
    train = known_graphs(training_alone(inputs, blind.is_train), blind.is_train, blind.is_train & calm, model)
    seen = blind.is_train | blind.is_validation
    return Prepared(scales, inputs, calm, train, known_graphs(inputs, blind.is_validation, seen & calm, model))


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


def without_one_hot(graphs: GraphSet) -> GraphSet:
    """The graphs of a network that is not told the types of executions."""
    inputs = graphs.inputs
    kept = is_metric(inputs)
    columns = tuple(name for name, is_kept in zip(inputs.columns, kept, strict=True) if is_kept)
    silent = replace(inputs, columns=columns, x=inputs.x[:, kept], is_own=inputs.is_own[:, kept])
    return replace(graphs, inputs=replace(silent, is_directed=inputs.has_direction[kept]))


def n_drawn(n_graphs: int, share: float, most: int) -> int:
    """How many of the graphs are drawn."""
    return min(max(1, round(share * n_graphs)), most)


def drawn_graphs(graphs: GraphSet, share: float, most: int, rng: np.random.Generator) -> GraphSet:
    """A drawn share of the graphs, at most so many, in their order; the rest stay as predecessors."""
    count = n_drawn(len(graphs), share, most)
    if count >= len(graphs):
        return graphs
    return graphs.of(np.sort(rng.choice(len(graphs), size=count, replace=False)))


def why_not(prepared: Prepared) -> str:
    """Why a network cannot be fitted; empty where it can."""
    if len(prepared.train) < LEAST_GRAPHS:
        return f"{len(prepared.train)} executions to learn from; at least {LEAST_GRAPHS} are needed"
    if not len(prepared.validation):
        return "no execution to choose the best epoch by"
    if (prepared.train.inputs.labels[prepared.train.targets] == STRESSED).all():
        return "all training executions are stressed"
    return ""


def fit_prepared(prepared: Prepared, model: ModelParams, params: LearnedParams) -> FittedNetwork:
    """A network fitted to a drawn share of the training graphs, and selected on validation graphs.

    Where none of them is known to be stressed it has no loss of detection, and gives no verdicts."""
    rng = np.random.default_rng([DRAWS, model.fit.seed])
    train = drawn_graphs(prepared.train, params.share, params.most_graphs, rng)
    if not (train.inputs.labels[train.targets] == STRESSED).any():
        model = model.model_copy(update={"loss": model.loss.model_copy(update={"detection": False})})
    return fit_network(train, drawn_graphs(prepared.validation, 1.0, params.most_graphs, rng), model)


def judged_by(
    network: PeronaNetwork, prepared: Prepared, is_validation: Bools, params: EvaluateParams
) -> tuple[Floats, float]:
    """The logit of each execution, NaN where nothing can be said, and the probability that parts them.

    All are judged by a first guess, which gives the validation executions that a threshold is chosen on; then again by
    that."""
    inputs, calm = prepared.inputs, prepared.undisturbed
    guessed = judge(inputs, network, FingerprintParams(threshold=FIRST_GUESS), may_precede=calm).logit
    limit = logit_threshold(guessed, inputs, is_validation, params)
    threshold = float(probability_of(np.array([limit]))[0])
    return judge(inputs, network, FingerprintParams(threshold=threshold), may_precede=calm).logit, threshold


def logit_threshold(logits: Floats, inputs: Inputs, is_validation: Bools, params: EvaluateParams) -> float:
    """The logit from which executions are flagged, chosen on validation executions whose label is known, or on all of
    them where none is."""
    chosen = is_validation & np.isfinite(logits)
    if (inputs.labels[chosen] != UNKNOWN).any():
        chosen &= inputs.labels != UNKNOWN
    limit = choose_threshold(logits[chosen], inputs.labels[chosen] == STRESSED, params.false_alarm_share)
    return min(limit, LARGEST_LOGIT) if np.isfinite(limit) else limit


def graph_logits(network: PeronaNetwork, graphs: GraphSet) -> Floats:
    """The logits of the targets of given graphs: (n,), NaN for all others."""
    logits = np.full(len(graphs.inputs), np.nan)
    at_once = FingerprintParams().graphs_at_once
    for part in targets_of(graphs.inputs, network, graphs.targets, graphs.predecessors, at_once):
        logits[part.rows] = part.logit
    return logits


def known_labels(case: Case) -> np.ndarray:
    """1 stressed, 0 not, -1 nobody says, of all executions: what the paper's protocol is allowed to see. (n,)"""
    stress = case.history.executions["is_stressed"].astype("boolean")
    known = np.where(stress.fillna(False).to_numpy(dtype=bool), STRESSED, UNSTRESSED)
    return np.where(stress.isna().to_numpy(), UNKNOWN, known).astype(np.int8)


AT_ONCE = 65_536  # executions


@dataclass(frozen=True)
class Scale:
    """What errors are measured by, from training executions alone.

    ranges: (f,) greatest less least measured value of each column, 1 where it does not vary. means: (n_types, f) mean
    of each column over the executions of a type, those of all for a type without any."""

    ranges: Floats
    means: Floats


def learn_scale(inputs: Inputs, is_train: Bools) -> Scale:
    """Learn from the executions of the mask (n,)."""
    x, is_own = inputs.x[is_train].astype(np.float64), inputs.is_own[is_train]
    is_known = is_own.any(axis=0)
    most = np.where(is_own, x, -np.inf).max(axis=0, initial=-np.inf)
    least = np.where(is_own, x, np.inf).min(axis=0, initial=np.inf)
    ranges = np.subtract(most, least, out=np.ones(x.shape[1]), where=is_known)
    means = np.tile(x.mean(axis=0) if len(x) else np.zeros(x.shape[1]), (len(inputs.types), 1))
    for number in range(len(inputs.types)):
        own = x[inputs.type_of[is_train] == number]
        if len(own):
            means[number] = own.mean(axis=0)
    return Scale(np.where(ranges > 0, ranges, 1.0), means)


def measures_of(inputs: Inputs, network: PeronaNetwork, is_train: Bools, is_tested: Bools) -> dict[str, float]:
    """The measures of learned_figures.MEASURES that a network has, over tested executions; NaN where there are none.

    Squared errors are in squares of the training range of the column: over all columns, as in the paper, and over the
    metrics that the execution itself measured, each beside the prediction of the type's training mean. Norms are
    compared with measured performance within types: Spearman's correlation, median over types, and the robust deviation
    of their ratio in natural logarithms, 0 where a score twice as large is a machine twice as fast."""
    rows = np.flatnonzero(is_tested & can_be_judged(inputs))
    scale = learn_scale(inputs, is_train)
    decoded, types = rebuilt(inputs.x[rows], network)
    own = inputs.is_own[rows] & is_metric(inputs)
    found: dict[str, float] = {}
    for name, predicted in (("", decoded), ("_mean_predictor", scale.means[inputs.type_of[rows]])):
        squares = ((predicted - inputs.x[rows]) / scale.ranges) ** 2
        found[f"mse{name}"] = _mean(squares)
        found[f"mse_own{name}"] = _mean(squares[own])
    found["type_accuracy"] = accuracy(types, inputs.type_of[rows])
    return found | scores_follow(inputs, network, rows)


def type_accuracy(inputs: Inputs, network: PeronaNetwork, is_tested: Bools) -> float:
    """Share of the tested executions whose type the network tells."""
    rows = np.flatnonzero(is_tested & can_be_judged(inputs))
    return accuracy(rebuilt(inputs.x[rows], network)[1], inputs.type_of[rows])


def accuracy(told: Ints, true: Ints) -> float:
    """Share of equal ones, types that training did not have aside; NaN without any."""
    is_known = true != NO_TYPE
    return _mean((told == true)[is_known].astype(np.float64))


def rebuilt(x: np.ndarray, network: PeronaNetwork) -> tuple[Floats, Ints]:
    """What the network makes of executions by themselves: decoded inputs (n, f) and numbers of types (n,)."""
    decoded, types = [np.empty((0, x.shape[1]))], [np.empty(0, dtype=np.int64)]
    was_training = network.training
    network.eval()
    with torch.no_grad():
        for first in range(0, len(x), AT_ONCE):
            codes = network.encode(torch.from_numpy(np.array(x[first : first + AT_ONCE], dtype=np.float32)))
            decoded.append(network.decoder(codes).double().numpy())
            types.append(network.classifier(codes).argmax(dim=1).numpy())
    network.train(was_training)
    return np.concatenate(decoded), np.concatenate(types)


def scores_follow(inputs: Inputs, network: PeronaNetwork, rows: Ints) -> dict[str, float]:
    """score_spearman and score_deviation of these rows."""
    log_norm, performance = fingerprints_of(inputs, network).log_norm, inputs.performance.astype(np.float64)
    known = rows[np.isfinite(log_norm[rows]) & np.isfinite(performance[rows])]
    correlations, apart = [], []
    for number in np.unique(inputs.type_of[known]):
        own = known[inputs.type_of[known] == number]
        correlations.append(float(spearman(log_norm[own], performance[own, None])[0]))
        surplus = log_norm[own] - performance[own]
        apart.append(surplus - np.median(surplus))
    correlations = [one for one in correlations if np.isfinite(one)]
    return {
        "score_spearman": float(np.median(correlations)) if correlations else np.nan,
        "score_deviation": float(SD_OF_MAD * np.median(np.abs(np.concatenate(apart)))) if apart else np.nan,
    }


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else np.nan
