"""A network fitted to some executions of a history, selected by others, and measured on the rest.

What is neither learned nor chosen by has no part in a fit: scales come from training executions, labels of the others
are hidden, and a graph holds executions of its own part of the history alone, or earlier ones."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from tasks.errors import BadInput
from tasks.nodes.aspects import is_contaminated
from tasks.nodes.history import History
from tasks.nodes.perona.fingerprints import fingerprints_of
from tasks.nodes.perona.graph import GraphSet, graphs_of, predecessors_of
from tasks.nodes.perona.inputs import NO_TYPE, STRESSED, UNKNOWN, Inputs, InputScales, inputs_of, learn_inputs
from tasks.nodes.perona.network import Encoder
from tasks.nodes.perona.params import ModelParams, Term
from tasks.nodes.perona.training import FittedNetwork, fit_network
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.type_tables import SD_OF_MAD, Bools, Floats, Ints

LEAST_GRAPHS = 10  # to fit to
DRAWS = 7  # stream of the seed: which training executions are drawn
AT_ONCE = 65_536  # executions
LEAST_PAIRS = 4  # of norm and performance, from which a correlation is told
WITHOUT_STRESS: tuple[Term, ...] = (
    "reconstruction",
    "clustering",
    "classification",
    "ranking",
)  # terms that need no stressed execution


@dataclass(frozen=True)
class Prepared:
    """scales: learned from the training executions. inputs: of all executions; labels of those that train or validate
    alone. is_calm: (n,) completed and undisturbed, so that it may stand beside later ones. train, validation: graphs to
    fit to; in the training graphs nothing is seen but training executions."""

    scales: InputScales
    inputs: Inputs
    is_calm: Bools
    train: GraphSet
    validation: GraphSet


def prepare(
    history: History,
    is_train: Bools,
    is_validation: Bools,
    model: ModelParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
) -> Prepared:
    """What a fit is given: training and validation executions by mask, (n,) each.

    An execution of which nobody says whether it was stressed counts as unstressed among the predecessors."""
    scales = learn_inputs(history, is_train, model, preprocess, score)
    inputs, seen = inputs_of(history, scales, model), is_train | is_validation
    inputs = replace(inputs, labels=np.where(seen, inputs.labels, UNKNOWN).astype(inputs.labels.dtype))
    completed = (history.executions["status"] == "completed").to_numpy(dtype=bool)
    calm = completed & ~is_contaminated(history.executions).to_numpy(dtype=bool)
    hidden = replace(inputs, labels=np.where(is_train, inputs.labels, UNKNOWN).astype(inputs.labels.dtype))
    train = known_graphs(hidden, is_train, is_train & calm, model)
    return Prepared(scales, inputs, calm, train, known_graphs(inputs, is_validation, seen & calm, model))


def known_graphs(inputs: Inputs, is_target: Bools, may_precede: Bools, model: ModelParams) -> GraphSet:
    """The graphs of some executions, each beside the latest earlier ones that may precede and are not known to be
    stressed. What measured nothing is neither target nor predecessor. is_target, may_precede: (n,)."""
    is_beside = may_precede & inputs.is_measured & (inputs.labels != STRESSED)
    beside = predecessors_of(inputs, is_beside, model.n_predecessors)
    return graphs_of(inputs, np.flatnonzero(is_target & inputs.is_measured), beside)


def fit_prepared(prepared: Prepared, model: ModelParams, most_graphs: int) -> FittedNetwork:
    """A network fitted to the training graphs, of more than so many to a draw, and selected on validation graphs.

    Where no training execution is known to be stressed the paper's has no loss of detection, and gives no verdicts.
    Raises BadInput where there is too little to learn from or to choose by, Diverged as fit_network."""
    train, validation = prepared.train, prepared.validation
    if len(train) < LEAST_GRAPHS:
        raise BadInput("training", f"{len(train)} executions to learn from", f"at least {LEAST_GRAPHS}", "record more")
    rng = np.random.default_rng([DRAWS, model.fit.seed])
    train = train.drawn(most_graphs, rng)
    if not (train.inputs.labels[train.targets] == STRESSED).any():
        model = model.with_terms(*WITHOUT_STRESS)
    return fit_network(train, validation.drawn(most_graphs, rng), model)


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


def measures_of(inputs: Inputs, network: Encoder, is_train: Bools, is_tested: Bools) -> dict[str, float]:
    """What a fit is worth on tested executions; NaN where there are none.

    mse, mse_own: squared errors in squares of the training range of the column, over all columns as in the paper, and
    over the metrics that the execution itself measured; with _mean_predictor that of the type's training mean.
    type_accuracy: share of types told rightly. score_spearman: correlation of norm and measured performance within
    types, median over types; score_deviation: robust deviation of their ratio in natural logarithms, 0 where a score
    twice as large is a machine twice as fast."""
    rows = np.flatnonzero(is_tested & inputs.is_measured)
    scale = learn_scale(inputs, is_train)
    decoded, types = rebuilt(inputs.x[rows], network)
    own = inputs.is_own[rows] & inputs.is_metric
    found: dict[str, float] = {}
    for name, predicted in (("", decoded), ("_mean_predictor", scale.means[inputs.type_of[rows]])):
        squares = ((predicted - inputs.x[rows]) / scale.ranges) ** 2
        found[f"mse{name}"] = _mean(squares)
        found[f"mse_own{name}"] = _mean(squares[own])
    true = inputs.type_of[rows]
    found["type_accuracy"] = _mean((types == true)[true != NO_TYPE].astype(np.float64))
    return found | scores_follow(inputs, network, rows)


def rebuilt(x: np.ndarray, network: Encoder) -> tuple[Floats, Ints]:
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


def scores_follow(inputs: Inputs, network: Encoder, rows: Ints) -> dict[str, float]:
    """score_spearman and score_deviation of these rows."""
    log_norm, performance = fingerprints_of(inputs, network).log_norm, inputs.performance.astype(np.float64)
    known = rows[np.isfinite(log_norm[rows]) & np.isfinite(performance[rows])]
    correlations, apart = [], []
    for number in np.unique(inputs.type_of[known]):
        own = known[inputs.type_of[known] == number]
        if len(own) >= LEAST_PAIRS:
            correlations.append(_rank_correlation(log_norm[own], performance[own]))
        surplus = log_norm[own] - performance[own]
        apart.append(surplus - np.median(surplus))
    correlations = [one for one in correlations if np.isfinite(one)]
    return {
        "score_spearman": float(np.median(correlations)) if correlations else np.nan,
        "score_deviation": float(SD_OF_MAD * np.median(np.abs(np.concatenate(apart)))) if apart else np.nan,
    }


def _rank_correlation(one: Floats, other: Floats) -> float:
    return float(pd.Series(one).corr(pd.Series(other), method="spearman"))


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else np.nan
