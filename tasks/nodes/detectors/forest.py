"""Isolation forest: one for each benchmark type, on its own metrics as the preprocessing scales them."""

import numpy as np

from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.isolation_trees import grow_forest, isolation_scores
from tasks.nodes.detectors.levelling import levelled
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.type_tables import Bools, Floats, TypeTable

LEAST = 8  # normal executions to grow a forest from
LARGEST = 1e30  # scaled values are cut here: a span of them is still a number in float32


def forest_scores(case: Case, params: DetectorParams) -> Floats:
    """How short the paths of each execution are, levelled by type: (n_executions,), NaN without a table.

    A type with fewer than 8 normal training executions has scores of 0."""
    found = []
    for number, table in enumerate(case.tables.tables):
        is_normal = case.normal_rows(table)
        found.append(levelled(_of_type(table, is_normal, params, [case.seed, params.seed, number]), is_normal))
    return case.tables.in_place(found)


def _of_type(table: TypeTable, is_normal: Bools, params: DetectorParams, seed: list[int]) -> Floats:
    if is_normal.sum() < LEAST or not table.scaled.shape[1]:
        return np.zeros(len(table.executions))
    filled = np.nan_to_num(table.scaled, nan=0.0)  # 0 is the middle of the scale
    ready = np.clip(filled, -LARGEST, LARGEST).astype(np.float32)
    state = int(np.random.default_rng(seed).integers(2**31))
    return isolation_scores(grow_forest(ready[is_normal], params.trees, state), ready)
