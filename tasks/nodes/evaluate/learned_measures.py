"""How well a fitted network rebuilds inputs, knows types, and puts performance into norms."""

from dataclasses import dataclass

import numpy as np
import torch

from tasks.nodes.evaluate.correlation import spearman
from tasks.nodes.fingerprint.fingerprints import fingerprints_of
from tasks.nodes.fingerprint.judging import can_be_judged, is_metric
from tasks.nodes.group_medians import SD_OF_MAD
from tasks.nodes.perona.inputs import NO_TYPE, Inputs
from tasks.nodes.perona.network import PeronaNetwork
from tasks.nodes.type_tables import Bools, Floats, Ints

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
