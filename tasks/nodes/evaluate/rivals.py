"""Ways to make one number of a node's microbenchmarks, learned from some nodes and asked of others."""

import numpy as np

from tasks.nodes.evaluate.correlation import spearman, typical
from tasks.nodes.first_component import LIMIT, fit_first_component
from tasks.nodes.group_medians import robust_deviation
from tasks.nodes.scores import Levels
from tasks.nodes.type_tables import Floats

COMMON = 0.5  # share of the nodes that must have run a type which is to rank them


def geometric_mean(train: Floats, test: Floats, levels: Levels) -> Floats:
    """The score of each test node, natural logarithm, the training nodes' medians being the reference: (n_test,).

    train, test: (n, n_types) log scores by type."""
    return levels.overall(test - _medians(train))


def standardised_mean(train: Floats, test: Floats, levels: Levels) -> Floats:
    """As the score, with each type in robust deviations of the training nodes, cut at LIMIT: (n_test,).

    Types that vary much then say no more than those that vary little. Types without spread say nothing."""
    scale = robust_deviation(train)
    scale = np.where(scale > 0, scale, np.nan)
    return levels.overall(np.clip((test - _medians(train)) / scale, -LIMIT, LIMIT))


def first_component(train: Floats, test: Floats) -> Floats:
    """The first principal component of the training nodes' types, asked of the test nodes: (n_test,)."""
    return fit_first_component(train).score(test)


def best_single(types: Floats, applications: Floats) -> int:
    """The type with the largest median absolute correlation with the applications, of those that half the nodes ran.

    types: (n, n_types). applications: (n, n_series). Raises ValueError if no type has a correlation with any."""
    is_common = (~np.isnan(types)).mean(axis=0) >= COMMON
    strength = np.array([typical(spearman(column, applications)) for column in types.T])
    strength = np.where(is_common, strength, np.nan)
    if np.isnan(strength).all():
        raise ValueError("no microbenchmark varies beside an application")
    return int(np.nanargmax(strength))


def _medians(values: Floats) -> Floats:
    """Of each column, NaN without a value."""
    return np.array([np.median(own) if len(own := column[~np.isnan(column)]) else np.nan for column in values.T])
