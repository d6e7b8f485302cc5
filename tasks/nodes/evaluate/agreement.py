"""Is there anything to rank: do two halves of the microbenchmarks order the nodes alike?"""

from dataclasses import replace

import numpy as np

from tasks.nodes.evaluate.correlation import signed_interval, spearman
from tasks.nodes.scores import Levels
from tasks.nodes.type_tables import Floats

HALVINGS = 20
LEAST_TYPES = 4


def half_scores(micro: Floats, levels: Levels, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The log scores of all nodes from a drawn half of the types, and from the others: (n_nodes,) each.

    micro: (n_nodes, n_types). Types of each aspect go to either half in turn, so that both hold each aspect."""
    order = rng.permutation(micro.shape[1])
    order = order[np.argsort(levels.aspect_of[order], kind="stable")]
    return _scored(micro, levels, order[::2]), _scored(micro, levels, order[1::2])


def _scored(micro: Floats, levels: Levels, chosen: np.ndarray) -> Floats:
    own = replace(levels, types=tuple(levels.types[at] for at in chosen), aspect_of=levels.aspect_of[chosen])
    return own.overall(micro[:, chosen])


def agreement_of(
    micro: Floats, levels: Levels, n_resamples: int, confidence: float, seed: int
) -> tuple[float, float, float] | None:
    """Spearman's correlation of the scores of two halves, mean over 20 halvings, with the interval over resampled
    nodes of the halving in the middle; None for fewer than 4 types.

    About 0 where differences between nodes are noise; it needs no application to tell."""
    if micro.shape[1] < LEAST_TYPES:
        return None
    found = []
    for number in range(HALVINGS):
        one, other = half_scores(micro, levels, np.random.default_rng([seed, number]))
        found.append((float(spearman(one, other[:, None])[0]), one, other))
    values = np.array([value for value, _, _ in found])
    if np.isnan(values).all():
        return None
    _, one, other = found[int(np.nanargmin(np.abs(values - np.nanmedian(values))))]
    middle, low, high = signed_interval(one, other[:, None], n_resamples, confidence, np.random.default_rng(seed))
    mean = float(np.nanmean(values))
    return mean, mean + low - middle, mean + high - middle
