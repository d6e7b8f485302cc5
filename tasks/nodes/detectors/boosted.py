"""Trees that learn from labels which deviations come with stress: what the network's detector sees of single metrics.

32 numbers for all types keep no change of a few per cent of one metric; trees look at each of them. The plain detectors
are not told labels, so this is none of them."""

import numpy as np
import pandas as pd

from tasks.boosters import matrix, train_booster
from tasks.nodes.aspects import is_stressed
from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.deviations import Deviations, deviations_told
from tasks.nodes.type_tables import Bools, Floats

TREES = 200
SHAPE = {
    "objective": "binary", "learning_rate": 0.05, "num_leaves": 15, "min_data_in_leaf": 5,
    "bagging_fraction": 0.8, "bagging_freq": 1, "feature_fraction": 0.5,
}  # fmt: skip


def boosted_scores(case: Case, deviations: Deviations, lesson: tuple[Case, Deviations] | None = None) -> Floats:
    """Log-odds of stress by trees fitted to the labels of training executions: (n_executions,).

    lesson: what the trees learn from, if it is not the case itself: the same executions, some under imitated stress.
    NaN outside the tables, and everywhere if training has not both calm and stressed executions."""
    found = np.full(case.tables.n_executions, np.nan)
    features, is_told = _features(case, deviations)
    taught = lesson[0] if lesson else case
    learned, is_known = _features(*lesson) if lesson else (features, is_told)
    stressed = is_stressed(taught.history.executions).to_numpy(dtype=bool)
    is_learned = is_known & taught.is_train & (stressed | taught.is_normal)
    if len(np.unique(stressed[is_learned])) < 2:
        return found
    trees = train_booster(learned[is_learned], stressed[is_learned].astype(np.float64), SHAPE, TREES, taught.seed)
    found[is_told] = trees.predict(matrix(features[is_told]), raw_score=True)
    return found


def _features(case: Case, deviations: Deviations) -> tuple[pd.DataFrame, Bools]:
    """Deviations of every metric of every type, and their summaries, NaN where not measured; and who has any."""
    n = case.tables.n_executions
    type_of, blocks = np.full(n, np.nan), []
    for number, (table, z) in enumerate(zip(case.tables.tables, deviations.own, strict=True)):
        block = np.full((n, z.shape[1]), np.nan)
        block[table.executions], type_of[table.executions] = z, number
        blocks.append(block)
    if deviations.of_node is not None:
        blocks.append(deviations.of_node)
    features = np.column_stack([type_of, *blocks, deviations_told(deviations)])
    return pd.DataFrame(features), np.asarray(~np.isnan(type_of))
