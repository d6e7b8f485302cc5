"""The learned model as a detector like the plain ones: fitted to a split's training executions, asked of all.

Predecessors are chosen by predicted labels throughout, as nobody knows others in use. The threshold by which they are
predicted is chosen on validation executions."""

from dataclasses import dataclass

import numpy as np

from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.detectors.registry import Detector
from tasks.nodes.evaluate.learned_inputs import Prepared, blind_case, drawn_graphs, prepare_case, told_of
from tasks.nodes.evaluate.learned_params import LearnedParams
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.thresholds import choose_threshold, guarded
from tasks.nodes.fingerprint.asking import targets_of
from tasks.nodes.fingerprint.fingerprint_params import FingerprintParams
from tasks.nodes.fingerprint.judging import judge, probability_of, undisturbed
from tasks.nodes.perona.graph import GraphSet
from tasks.nodes.perona.inputs import STRESSED, UNKNOWN, UNSTRESSED, Inputs, InputScales
from tasks.nodes.perona.network import PeronaNetwork
from tasks.nodes.perona.params import ModelParams
from tasks.nodes.perona.training import FittedNetwork, fit_network
from tasks.nodes.type_tables import Bools, Floats

LEAST_GRAPHS = 10  # to fit to
DRAWS = 7  # stream of the seed: which training executions are drawn
LARGEST_LOGIT = 30.0  # of a threshold: beyond 36 its probability is 1, and nothing would ever be flagged
FIRST_GUESS = 0.5  # probability by which predecessors are chosen before there is a threshold


@dataclass(frozen=True)
class FittedModel:
    """What scores executions: the scales of its inputs, the network, and the probability above which it flags.

    is_imitated: whether it was taught by imitated stress, because none was known."""

    scales: InputScales
    network: PeronaNetwork
    threshold: float
    is_imitated: bool = False


def learned_detector(model: ModelParams, params: EvaluateParams) -> Detector:
    """A detector that fits the model anew to the training executions of each case.

    It raises ValueError with a reason where it cannot be fitted (see why_not)."""

    def scores(case: Case, detect: DetectorParams) -> Floats:
        asked = params.model_copy(update={"detect": detect})
        prepared = prepare_case(case, model, asked)
        if reason := why_not(prepared, model):
            raise ValueError(reason)
        network = fit_prepared(prepared, model, params.learned).network
        return judged_by(network, prepared, case.is_validation, params)[0]

    return scores


def why_not(prepared: Prepared, model: ModelParams) -> str:
    """Why a model cannot be fitted; empty where it can."""
    labels = prepared.train.inputs.labels[prepared.train.targets]
    if len(prepared.train) < LEAST_GRAPHS:
        return f"{len(prepared.train)} executions to learn from; at least {LEAST_GRAPHS} are needed"
    if not len(prepared.validation):
        return "no execution to choose the best epoch by"
    if not (labels != STRESSED).any():
        return "all training executions are stressed"
    if model.loss.detection and not (labels == STRESSED).any():
        return "no training execution is known to be stressed"
    return ""


def fit_prepared(prepared: Prepared, model: ModelParams, params: LearnedParams) -> FittedNetwork:
    """A network fitted to a drawn share of the training graphs, and selected on validation graphs."""
    rng = np.random.default_rng([DRAWS, model.fit.seed])
    train = drawn_graphs(prepared.train, params.share, params.most_graphs, rng)
    return fit_network(train, drawn_graphs(prepared.validation, 1.0, params.most_graphs, rng), model)


def judged_by(
    network: PeronaNetwork, prepared: Prepared, is_validation: Bools, params: EvaluateParams
) -> tuple[Floats, float]:
    """The logit of each execution, NaN where nothing can be said, and the probability that parts them.

    All are judged by a first guess, which gives the validation executions that a threshold is chosen on; then again by
    that."""
    inputs, calm = prepared.inputs, prepared.undisturbed
    guessed = judge(inputs, network, FingerprintParams(threshold=FIRST_GUESS), may_precede=calm).logit
    limit = guarded_threshold(guessed, network, prepared, is_validation, params)
    threshold = float(probability_of(np.array([limit]))[0])
    return judge(inputs, network, FingerprintParams(threshold=threshold), may_precede=calm).logit, threshold


def guarded_threshold(
    logits: Floats, network: PeronaNetwork, prepared: Prepared, is_validation: Bools, params: EvaluateParams
) -> float:
    """The logit from which executions are flagged, chosen on those of validation, whose logits (n,) are given.

    It is guarded by what the network says of the executions of training and validation that are known to be calm: of
    the training ones detectors speak that did not learn them (prepared.train), as of later ones in use. Where stress is
    imitated it is the logit that a share of the validation executions exceeds that look normal."""
    if prepared.is_imitated:
        limit = _imitated_threshold(network, prepared.validation, params)
    else:
        seen = np.where(is_validation, logits, graph_logits(network, prepared.train))
        is_calm = prepared.undisturbed & (prepared.inputs.labels == UNSTRESSED)
        limit = guarded(logit_threshold(logits, prepared.inputs, is_validation, params), seen[is_calm])
    return min(limit, LARGEST_LOGIT) if np.isfinite(limit) else limit


def _imitated_threshold(network: PeronaNetwork, graphs: GraphSet, params: EvaluateParams) -> float:
    """The logit that a share of the calm among some graphs exceeds: neither imitations nor what looks stressed."""
    calm = graphs.of(graphs.inputs.labels[graphs.targets] == UNSTRESSED)
    said = graph_logits(network, calm)[calm.targets]
    return choose_threshold(said, np.zeros(len(said), dtype=bool), params.false_alarm_share)


def logit_threshold(logits: Floats, inputs: Inputs, is_validation: Bools, params: EvaluateParams) -> float:
    """The logit from which executions are flagged, chosen on validation executions whose label is known, or on all of
    them where none is."""
    chosen = is_validation & np.isfinite(logits)
    if (inputs.labels[chosen] != UNKNOWN).any():
        chosen &= inputs.labels != UNKNOWN
    return choose_threshold(logits[chosen], inputs.labels[chosen] == STRESSED, params.false_alarm_share)


def graph_logits(network: PeronaNetwork, graphs: GraphSet) -> Floats:
    """The logits of the targets of given graphs: (n,), NaN for all others."""
    logits = np.full(len(graphs.inputs), np.nan)
    at_once = FingerprintParams().graphs_at_once
    for part in targets_of(graphs.inputs, network, graphs.targets, graphs.predecessors, at_once):
        logits[part.rows] = part.logit
    return logits


def fit_model(case: Case, model: ModelParams, params: EvaluateParams) -> FittedModel:
    """Fitted to the training executions of a case, to be asked of others. Raises ValueError as learned_detector."""
    prepared = prepare_case(case, model, params)
    if reason := why_not(prepared, model):
        raise ValueError(reason)
    network = fit_prepared(prepared, model, params.learned).network
    _, threshold = judged_by(network, prepared, case.is_validation, params)
    return FittedModel(prepared.scales, network, threshold, prepared.is_imitated)


def ask_model(fitted: FittedModel, case: Case, params: EvaluateParams) -> Floats:
    """The logits of all executions of a case, whatever is learned in it, by a model that was fitted before."""
    blind = blind_case(case)
    network = fitted.network
    inputs = told_of(blind, fitted.scales, network.params, params.detect, is_imitated=fitted.is_imitated)
    asked = FingerprintParams(threshold=fitted.threshold)
    return judge(inputs, network, asked, may_precede=undisturbed(blind.history.executions)).logit


def known_labels(case: Case) -> np.ndarray:
    """1 stressed, 0 not, -1 nobody says, of all executions: what the paper's protocol is allowed to see. (n,)"""
    stress = case.history.executions["is_stressed"].astype("boolean")
    known = np.where(stress.fillna(False).to_numpy(dtype=bool), STRESSED, UNSTRESSED)
    return np.where(stress.isna().to_numpy(), UNKNOWN, known).astype(np.int8)
