"""The first principal component as a plain answer beside the score: it looks at all benchmark types alike."""

import numpy as np

from tasks.nodes.first_component import fit_first_component
from tasks.nodes.scores import NodeScores
from tasks.nodes.type_tables import Floats


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
