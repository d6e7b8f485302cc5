"""What the benchmark types of nodes have in common: one number a node, learned without any application.

The first principal component looks at all types alike. Microbenchmarks of one tool run right after one another and
share the noise of the moment; what several tools see alike belongs to the node. So for the shared component of each
tool the combination is sought that agrees best with those of the others: generalised canonical correlation (MAXVAR;
Kettenring 1971, Biometrika 58), of normal scores, as results have long tails."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtri

from tasks.nodes.ranking.scores import NodeScores
from tasks.nodes.type_tables import Floats, robust_deviation

LIMIT = 5.0  # robust deviations at which a value is cut: one odd node must not be the component
COMMON = 0.5  # share of the nodes that must have run a type which is to rank them
LEAST_NODES = 10  # of a machine type, for its nodes to be ranked by what is shared
LEAST_TOOLS = 2  # that so many of these nodes ran
RIDGE = 0.1  # added to each type's variance, which is about 1; beside it types over nodes, as few nodes tell little
NOT_IN_A_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class FirstComponent:
    """centre, scale: (m,) medians and robust deviations of the training nodes. loadings: (m,) of length 1, their sum
    not negative: more of an oriented metric is better."""

    centre: Floats
    scale: Floats
    loadings: Floats

    def score(self, values: Floats) -> Floats:
        """Place of each row on the component: (n,). values: (n, m) oriented; what is missing counts as the centre."""
        return np.asarray(_ready(values, self.centre, self.scale) @ self.loadings)


def fit_first_component(values: Floats) -> FirstComponent:
    """The direction in which the rows differ most, each column by its median and robust deviation.

    values: (n, m) oriented so that more is better, NaN where missing; columns without spread have loading 0. Raises
    ValueError if there is no column with spread."""
    centre = pd.DataFrame(values).median().fillna(0.0).to_numpy(dtype=np.float64)
    scale = np.nan_to_num(robust_deviation(values))
    if not (scale > 0).any():
        raise ValueError(f"{values.shape[1]} metrics of {len(values)} nodes, none of which varies")
    ready = _ready(values, centre, scale)
    ready = ready - ready.mean(axis=0)
    loadings = np.linalg.svd(ready, full_matrices=False)[2][0]
    # orientation fixes the sign, which a singular vector does not have; a sum of 0 is left to its first column
    sign = np.sign(loadings.sum()) or np.sign(loadings[np.flatnonzero(loadings)[0]])
    return FirstComponent(centre, scale, loadings * sign)


def _ready(values: Floats, centre: Floats, scale: Floats) -> Floats:
    apart = np.divide(values - centre, scale, out=np.zeros_like(values), where=scale > 0)
    return np.asarray(np.clip(np.nan_to_num(apart, nan=0.0), -LIMIT, LIMIT))


def component_scores(found: NodeScores) -> Floats:
    """The place of each node on the first principal component of its types' scores: (n_nodes,), more is better.

    0 is the middle of these very nodes, so a node that joins moves the others: unlike a score it is no ratio to a
    frozen reference. NaN for a node without any type, and for all where nothing varies."""
    nothing = np.isnan(found.log_scores).all(axis=1)
    if nothing.all():
        return np.full(len(found.nodes), np.nan)
    try:
        fitted = fit_first_component(found.log_scores[~nothing])
    except ValueError:  # no type varies
        return np.full(len(found.nodes), np.nan)
    return np.where(nothing, np.nan, fitted.score(found.log_scores))


@dataclass(frozen=True)
class SharedComponent:
    """training: of each type the values of the training nodes, ordered. weights: (n_types,) of the types' normal
    scores, 0 for a type that says nothing."""

    training: tuple[Floats, ...]
    weights: Floats

    def score(self, values: Floats) -> Floats:
        """The number of each node: (n,), 0 for the middle of the training nodes. values: (n, n_types)."""
        return np.asarray(normal_scores(values, self.training) @ self.weights)


def shared_components(scores: NodeScores, machine_types: Sequence[str]) -> dict[str, SharedComponent]:
    """The component of each machine type of which LEAST_NODES nodes or more ran LEAST_TOOLS tools or more.

    machine_types: (n_nodes,). Between machine types nothing is shared but their size, which the score tells better."""
    found = {}
    for machine_type in dict.fromkeys(machine_types):
        values = scores.log_scores[np.array([one == machine_type for one in machine_types])]
        is_common = (~np.isnan(values)).sum(axis=0) >= LEAST_NODES
        tools = {tool_of(name) for name, is_its in zip(scores.levels.types, is_common, strict=True) if is_its}
        if len(tools) >= LEAST_TOOLS:
            with suppress(ValueError):  # no type varies
                found[machine_type] = fit_shared_component(values, scores.levels.types)
    return found


def fit_shared_component(values: Floats, types: Sequence[str]) -> SharedComponent:
    """Weights of the types. values: (n, n_types), NaN where missing, which counts as the middle.

    A type that fewer than half of the nodes ran has weight 0. More is better: the component rises with the mean of all
    types. Raises ValueError if no type varies."""
    training = tuple(np.sort(column[~np.isnan(column)]) for column in values.T)
    found = normal_scores(values, training)
    is_used = ((~np.isnan(values)).mean(axis=0) >= COMMON) & (np.ptp(found, axis=0) > 0)
    if not is_used.any():
        raise ValueError(f"{values.shape[1]} types of {len(values)} nodes, none of which varies on enough of them")
    used = np.array(types, dtype=object)[is_used]
    tools = np.array([tool_of(name) for name in used], dtype=object)
    groups = tools if len(set(tools)) > 1 else used  # each type alone where there is one tool
    own, weights = found[:, is_used], np.zeros(values.shape[1])
    weights[is_used] = _weights(own - own.mean(axis=0), groups)
    return SharedComponent(training, weights)


def normal_scores(values: Floats, training: Sequence[Floats]) -> Floats:
    """Φ⁻¹(p), p being the place of each value among the training nodes: (n, n_types); 0 where there is none.

    p = (values below + half of the equal ones + 1/2) / (n + 1). training: of each type the ordered values (n,)."""
    found = np.zeros(values.shape)
    for at, known in enumerate(training):
        below = np.searchsorted(known, values[:, at], side="left")
        below_or_equal = np.searchsorted(known, values[:, at], side="right")
        place = (below + below_or_equal + 1) / (2 * (len(known) + 1))
        found[:, at] = np.where(np.isnan(values[:, at]), 0.0, ndtri(place))
    return found


def tool_of(benchmark_type: str) -> str:
    """The first word of a type's name."""
    return NOT_IN_A_WORD.split(benchmark_type, maxsplit=1)[0]


def _weights(scores: Floats, groups: np.ndarray) -> Floats:
    """The direction in which the whitened groups differ most together: (n_types,). scores: (n, n_types), mean 0.

    In whitened groups every direction of a group has the same variance; what stands out is what groups share."""
    n_nodes, n_types = scores.shape
    ridge = RIDGE + n_types / n_nodes
    whitening = np.zeros((n_types, n_types))
    for group in dict.fromkeys(groups):  # (C + ridge · 1)^(-1/2), C being the covariance of the group
        at = np.flatnonzero(groups == group)
        own = scores[:, at]
        variances, axes = np.linalg.eigh(own.T @ own / n_nodes + ridge * np.eye(len(at)))
        whitening[np.ix_(at, at)] = axes / np.sqrt(variances) @ axes.T
    _, _, directions = np.linalg.svd(scores @ whitening, full_matrices=False)
    weights = whitening @ directions[0]
    return np.asarray(-weights if (scores @ weights) @ scores.mean(axis=1) < 0 else weights)
