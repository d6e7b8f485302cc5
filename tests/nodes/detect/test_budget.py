"""The threshold of verdicts from a budget: by hand, in order, and kept on executions that are drawn anew."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.detect.alarms import follow
from tasks.nodes.detect.budget import LARGEST_SHARE, pace, threshold_of_alarms, threshold_of_share
from tasks.nodes.detect.params import AlarmParams, BudgetParams

RULES = AlarmParams()
N_SERIES, LENGTH = 60, 500


def calm_fleet(seed, *, memory=0.0, row=1.0, n_series=N_SERIES):
    """Scores of calm executions of many nodes, one an hour each.

    memory: correlation of one with the one before it. row: executions that have the same score, on average."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((LENGTH, n_series))
    stays = rng.random((LENGTH, n_series)) < 1 - 1 / row
    for at in range(1, LENGTH):
        drawn = memory * noise[at - 1] + np.sqrt(1 - memory**2) * noise[at]
        noise[at] = np.where(stays[at], noise[at - 1], drawn)
    nodes = np.tile(np.arange(n_series), LENGTH)
    executions = pd.DataFrame({"node": nodes.astype(str), "aspect": "cpu"})
    return executions, noise.ravel(), np.repeat(np.arange(LENGTH), n_series).astype(np.float64)


def chosen(fleet, **asked):
    executions, scores, at_h = fleet
    calm = np.ones(len(scores), dtype=bool)
    return threshold_of_alarms(executions, scores, calm, at_h, BudgetParams(**asked), RULES)


def alarms_per_day(fleet, threshold):
    """Over N_SERIES nodes, by the rules written once more: 3 of the last 5 raise an alarm, 3 clean ones clear it."""
    flags = (fleet[1] > threshold).reshape(LENGTH, -1)
    n_series = flags.shape[1]
    goes_on, n_clean, window = np.zeros(n_series, bool), np.zeros(n_series, int), np.zeros((RULES.last, n_series), bool)
    n_alarms = 0
    for at, flagged in enumerate(flags):
        n_clean = np.where(flagged, 0, n_clean + 1)
        window[at % RULES.last] = flagged
        raised = ~goes_on & flagged & (window.sum(axis=0) >= RULES.flagged) & (at + 1 >= RULES.min_executions)
        cleared = goes_on & (n_clean >= RULES.clear)
        window[:, cleared] = False
        goes_on = (goes_on | raised) & ~cleared
        n_alarms += int(raised.sum())
    return n_alarms / n_series * N_SERIES / (LENGTH - 1) * 24


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


def test_the_rules_of_this_test_are_those_of_alarms():
    fleet = calm_fleet(3)
    flags, times = (one.reshape(LENGTH, N_SERIES) for one in (fleet[1] > 1.2, fleet[2] * 3600))
    n_alarms = sum(len(follow(flags[:, at], times[:, at], RULES).episodes) for at in range(N_SERIES))
    assert n_alarms > 30 and alarms_per_day(fleet, 1.2) == pytest.approx(n_alarms / (LENGTH - 1) * 24)


@pytest.mark.parametrize(("memory", "row"), [(0.0, 1.0), (0.5, 1.0), (0.0, 3.0)])
def test_a_budget_is_kept_two_sided_whether_flags_come_alone_or_in_rows(memory, row):
    """20 days of 60 nodes teach the threshold; at 0.2 a day they show four alarms. 700 days of others tell the rate."""
    how = {"memory": memory, "row": row}
    later = calm_fleet(100, **how, n_series=2000)
    for budget in (0.2, 0.5, 1.0, 3.0):
        stated = [chosen(calm_fleet(seed, **how), alarms_per_day=budget) for seed in range(2)]
        assert [one.alarms_per_day for one in stated] == pytest.approx([budget] * 2, rel=0.01)
        ratio = np.mean([alarms_per_day(later, one.threshold) for one in stated]) / budget
        assert 0.67 < ratio < 1.5, (budget, ratio)


def test_without_an_alarm_in_training_flags_count_as_nearly_independent():
    """Ten executions have raised none; p^3 · 6 is about the rate of three of five; that of none in ten is less."""
    executions = pd.DataFrame({"node": ["a"] * 10, "aspect": "cpu"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = np.arange(10.0), np.ones(10, dtype=bool), np.arange(10.0)
        found = threshold_of_alarms(executions, *given, BudgetParams(alarms_per_day=0.01), RULES)
    assert 6 * found.flagged_share**3 * found.executions_per_day == pytest.approx(0.02, rel=0.5)


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
