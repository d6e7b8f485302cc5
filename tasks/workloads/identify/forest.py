"""The plain baseline: a random forest on the mean and the deviation of each counter over a run."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.workloads.identify.levels import LEVELS, LevelScale, filled, learn_levels, levels_of
from tasks.workloads.telemetry import Counter, Telemetry

PLAIN = [LEVELS.index("mean"), LEVELS.index("deviation")]
N_TREES = 300


class Forest:
    """A fitted forest; it has no format without code, so it is asked and dropped, never kept."""

    def __init__(self, scale: LevelScale, trees: Any) -> None:
        self._scale, self._trees = scale, trees

    def workloads(self, runs: Sequence[Telemetry]) -> list[str]:
        """The workload that each run is most like."""
        if not runs:
            return []
        return [str(one) for one in self._trees.predict(_features(runs, self._scale))]


def fit_forest(runs: Sequence[Telemetry], counters: Sequence[Counter], seed: int) -> Forest:
    """Fit the baseline on labelled runs, with scikit-learn's own defaults apart from the number of trees."""
    from sklearn.ensemble import RandomForestClassifier  # type: ignore[import-untyped, unused-ignore]

    ordered = sorted(runs, key=lambda run: (str(run.workload), run.run_id))
    scale = learn_levels(ordered, counters)
    trees = RandomForestClassifier(N_TREES, random_state=seed, n_jobs=1)
    trees.fit(_features(ordered, scale), [str(run.workload) for run in ordered])
    return Forest(scale, trees)


def _features(runs: Sequence[Telemetry], scale: LevelScale) -> Any:
    """Trees only see the order of values, so the scale of levels changes nothing for them."""
    table = filled(levels_of(runs, scale), scale).reshape(len(runs), len(scale.counters), len(LEVELS))
    return np.ascontiguousarray(table[:, :, PLAIN].reshape(len(runs), -1))
