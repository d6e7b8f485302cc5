"""The threshold of verdicts from a budget: by hand, in order, and kept on executions that are drawn anew."""

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.detect.alarms import follow
from tasks.nodes.detect.budget import LARGEST_SHARE, pace, threshold_of_alarms, threshold_of_share
from tasks.nodes.detect.params import AlarmParams, BudgetParams

RULES = AlarmParams()
N_SERIES, LENGTH = 60, 500


def calm_fleet(seed, *, memory=0.0):
    """Scores of calm executions of many nodes, one an hour each; memory: correlation of one with the one before it."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((LENGTH, N_SERIES))
    for at in range(1, LENGTH):
        noise[at] = memory * noise[at - 1] + np.sqrt(1 - memory**2) * noise[at]
    nodes = np.tile(np.arange(N_SERIES), LENGTH)
    executions = pd.DataFrame({"node": nodes.astype(str), "aspect": "cpu"})
    return executions, noise.ravel(), np.repeat(np.arange(LENGTH), N_SERIES).astype(np.float64)


def chosen(fleet, **asked):
    executions, scores, at_h = fleet
    calm = np.ones(len(scores), dtype=bool)
    return threshold_of_alarms(executions, scores, calm, at_h, BudgetParams(**asked), RULES)


def alarms_of(fleet, threshold):
    """Alarms a day."""
    _, scores, at_h = fleet
    flags = (scores > threshold).reshape(LENGTH, N_SERIES)
    times = at_h.reshape(LENGTH, N_SERIES) * 3600
    n = sum(len(follow(flags[:, at], times[:, at], RULES).episodes) for at in range(N_SERIES))
    return n, n / (LENGTH - 1) * 24


def test_the_pace_is_executions_a_day():
    assert pace(np.array([0.0, 6.0, 12.0])) == pytest.approx(3 / 12 * 24)
    assert pace(np.array([np.nan, 3.0])) == 2.0  # one day, where nobody knows


def test_a_larger_budget_has_a_lower_threshold_and_more_flags():
    found = [chosen(calm_fleet(0), alarms_per_day=budget) for budget in (0.1, 1.0, 10.0)]
    assert np.all(np.diff([one.threshold for one in found]) < 0)
    assert np.all(np.diff([one.flagged_share for one in found]) > 0)
    assert [one.alarms_per_day for one in found] == pytest.approx([0.1, 1.0, 10.0])
    assert found[0].executions_per_day == pytest.approx(N_SERIES * 24, rel=0.01)


def test_however_large_the_budget_few_calm_executions_are_flagged():
    found = chosen(calm_fleet(0), alarms_per_day=10_000)
    assert found.flagged_share == LARGEST_SHARE and found.alarms_per_day < 10_000


def test_independent_flags_make_alarms_as_often_as_the_rule_says():
    """Three of five with the newest among them: about p^3, and less where many are flagged, as an alarm goes on."""
    few, many = (chosen(calm_fleet(1), alarms_per_day=budget) for budget in (1.0, 8.0))
    slope = np.log(8.0) / np.log(many.flagged_share / few.flagged_share)
    assert slope == pytest.approx(RULES.flagged, abs=1.0)


@pytest.mark.parametrize("memory", [0.0, 0.5])
def test_the_budget_is_kept_on_executions_that_were_drawn_anew(memory):
    stated = chosen(calm_fleet(0, memory=memory), alarms_per_day=2.0)
    counts, rates = zip(*(alarms_of(calm_fleet(seed, memory=memory), stated.threshold) for seed in (1, 2)), strict=True)
    assert sum(counts) >= 30
    assert 0.67 < np.mean(rates) / stated.alarms_per_day < 1.5


def test_without_a_calm_execution_there_is_no_threshold():
    executions, scores, at_h = calm_fleet(0)
    with pytest.raises(ValueError, match="no calm execution has a score"):
        threshold_of_alarms(executions, scores, np.zeros(len(scores), dtype=bool), at_h, BudgetParams(), RULES)


@pytest.mark.parametrize(
    ("by", "wanted", "expected"),
    [("recall", 1.0, 1.5), ("recall", 0.5, 3.5), ("precision", 0.9, 3.5), ("precision", 0.6, 1.5)],
)
def test_a_threshold_by_precision_or_recall_lies_between_two_scores(by, wanted, expected):
    """Of scores 4, 3, 2, 1 the first and the third are stressed: precision 1, 1/2, 2/3, 1/2; recall 1/2, 1/2, 1, 1."""
    scores, stressed = np.array([1.0, 3.0, 4.0, 2.0]), np.array([False, False, True, True])
    assert threshold_of_share(scores, stressed, by, wanted) == expected


def test_without_known_stress_there_is_neither():
    with pytest.raises(ValueError, match="a threshold by recall is chosen on these"):
        threshold_of_share(np.ones(3), np.zeros(3, dtype=bool), "recall", 0.9)
