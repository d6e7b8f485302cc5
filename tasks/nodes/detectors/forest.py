"""Isolation forest: one for each benchmark type, on its own metrics as the preprocessing scales them."""

import numpy as np

from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.levelling import levelled
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.type_tables import Bools, Floats, TypeTable

LEAST = 8  # normal executions to grow a forest from


def forest_scores(case: Case, params: DetectorParams) -> Floats:
    """How short the paths of each execution are, levelled by type: (n_executions,), NaN without a table.

    A type with fewer than 8 normal training executions has scores of 0."""
    found = []
    for number, table in enumerate(case.tables.tables):
        is_normal = case.normal_rows(table)
        found.append(levelled(_of_type(table, is_normal, params, [case.seed, params.seed, number]), is_normal))
    return case.tables.in_place(found)


def _of_type(table: TypeTable, is_normal: Bools, params: DetectorParams, seed: list[int]) -> Floats:
    from sklearn.ensemble import IsolationForest  # type: ignore[import-untyped, unused-ignore]

    if is_normal.sum() < LEAST:
        return np.zeros(len(table.executions))
    ready = np.nan_to_num(table.scaled, nan=0.0)  # 0 is the middle of the scale
    state = int(np.random.default_rng(seed).integers(2**31))
    forest = IsolationForest(n_estimators=params.trees, random_state=state, n_jobs=1).fit(ready[is_normal])
    return np.asarray(-forest.score_samples(ready))
