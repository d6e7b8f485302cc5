"""Change points: how far a node's score fell a few executions ago, times the probability that it did."""

import numpy as np
import pandas as pd

from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.node_rows import rows_of_nodes
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.detectors.run_lengths import recent_change
from tasks.nodes.detectors.spreads import learn_normal
from tasks.nodes.reference_fleet import learn_reference
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.scores import execution_scores
from tasks.nodes.type_tables import Floats

FARTHEST = 1e12  # deviations: of scores that never varied in training a fall may be beyond the largest number


def change_point_scores(case: Case, params: DetectorParams) -> Floats:
    """The recent fall to be expected in the scores of a node and type, in deviations: (n_executions,).

    The series of each node is the logarithm of its score over the deviation of the normal training executions. NaN
    without a table."""
    scoring = ScoreParams(left_out_aspects=[])
    reference = learn_reference(case.tables, case.is_normal, scoring)
    n_nodes = len(case.tables.nodes)
    found = []
    for table in case.tables.tables:
        scores = execution_scores(table, reference, scoring)
        within = learn_normal(scores[:, None], table.nodes, case.normal_rows(table), n_nodes).within[0]
        with np.errstate(over="ignore"):
            series = np.clip(scores / within, -FARTHEST, FARTHEST)
        told = np.zeros(len(scores))
        for own in rows_of_nodes(table.nodes):
            told[own] = expected_fall(series[own], params)
        found.append(told)
    return case.tables.in_place(found)


def expected_fall(series: Floats, params: DetectorParams) -> Floats:
    """Probability of a recent change times how far the sample lies below those before it, at least 0: (n,).

    series: (n,) in deviations of its noise, NaN where nothing was measured. Below: than the median of the samples
    before it, of the last params.compared."""
    is_there = ~np.isnan(series)
    if not is_there.any():
        return np.zeros(len(series))
    earlier = pd.Series(series).rolling(params.compared, min_periods=1).median().shift(1).to_numpy()
    below = np.clip(np.nan_to_num(earlier - series, nan=0.0), 0.0, params.largest)
    from_first = series - series[is_there][0]  # the prior believes in levels around 0
    return np.asarray(recent_change(from_first, params.expected_run_length, params.recent) * below)
