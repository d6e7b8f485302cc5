"""How much the metrics of normal executions vary: within nodes, and of each node alone."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.group_medians import SD_OF_MAD, group_medians, robust_deviation, within_deviation
from tasks.nodes.type_tables import Bools, Floats, Ints

TINY = 1e-9  # of the largest magnitude: a metric that varies less is constant, and what varies is rounding


@dataclass(frozen=True)
class Normal:
    """What the normal training executions of one type are like, for each of its metrics.

    n: (n_nodes,) executions of each node. centres, deviations: (n_nodes, m) of each node alone. centre, around: (m,)
    median and robust deviation of the whole fleet. within: (m,) robust deviation around the medians of the nodes."""

    n: Ints
    centres: Floats
    deviations: Floats
    centre: Floats
    around: Floats
    within: Floats


def learn_normal(values: Floats, nodes: Ints, is_normal: Bools, n_nodes: int) -> Normal:
    """Learn from the rows of the mask (n,). values: (n, m). No spread is 0: it is at least rounding."""
    own, of = values[is_normal], nodes[is_normal]
    centres = group_medians(own, of, n_nodes)
    deviations = SD_OF_MAD * group_medians(np.abs(own - centres[of]), of, n_nodes)
    floor = TINY * np.nanmax(np.abs(own), axis=0, initial=0.0) + np.finfo(float).tiny if len(own) else 1.0
    around = np.maximum(_filled(robust_deviation(own), 0.0), floor)
    within = np.maximum(_filled(within_deviation(own, of, n_nodes), around), floor)
    centre = pd.DataFrame(own).median().to_numpy(dtype=np.float64)
    return Normal(np.bincount(of, minlength=n_nodes), centres, deviations, centre, around, within)


def _filled(values: Floats, instead: Floats | float) -> Floats:
    return np.asarray(np.where(np.isnan(values), instead, values))
