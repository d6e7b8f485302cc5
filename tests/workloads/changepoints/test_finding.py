"""find_changepoints: known truth, what must not matter, and series that are hardly series."""

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.changepoints.finding import ChangePointParams, find_changepoints, find_changepoints_each
from tasks.workloads.changepoints.online import PriorParams

METHODS = ["bayes", "pelt", "kernel", "binseg"]


@pytest.fixture
def steps() -> np.ndarray:
    """Levels 0, 6, 1 with noise of deviation 1, changing at 40 and 90."""
    return np.repeat([0.0, 6.0, 1.0], [40, 50, 40]) + np.random.default_rng(3).normal(size=130)


def test_planted_changes_are_found_with_their_probabilities(steps):
    found = find_changepoints(steps)
    assert found.indices.tolist() == [40, 90]
    assert (found.probabilities > 0.99).all()
    assert found.segments() == [(0, 40), (40, 90), (90, 130)]
    assert found.at_each.argmax() in (40, 90)


def test_a_change_of_spread_alone_is_found():
    values = np.random.default_rng(0).normal(size=200) * np.repeat([1, 6], 100)
    assert find_changepoints(values).indices.tolist() == pytest.approx([100], abs=3)


def test_a_steady_rise_holds_no_change_and_a_bend_holds_one():
    time, noise = np.arange(120), np.random.default_rng(0).normal(size=120)
    assert find_changepoints(0.2 * time + noise).indices.tolist() == []
    levels = ChangePointParams(prior=PriorParams(trend_share=0.0))  # which break a rise into pieces
    assert len(find_changepoints(0.2 * time + noise, levels).indices) > 1
    assert find_changepoints(0.2 * np.minimum(time, 120 - time) + noise).indices.tolist() == pytest.approx([60], abs=5)


@pytest.mark.parametrize("method", METHODS)
def test_neither_unit_nor_origin_matters(steps, method):
    params = ChangePointParams(method=method)
    plain = find_changepoints(steps, params)
    assert np.isnan(plain.probabilities).all() == (method != "bayes")
    for moved in (1e9 * steps - 3e9, steps * 2e306):  # near the largest float
        found = find_changepoints(moved, params)
        assert found.indices.tolist() == plain.indices.tolist() == [40, 90]
        assert found.probabilities == pytest.approx(plain.probabilities, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("method", METHODS)
def test_missing_samples_keep_their_rows(steps, method):
    params = ChangePointParams(method=method)
    gappy = np.insert(steps, [0, 20, 60, 130], np.nan)
    assert find_changepoints(gappy, params).indices.tolist() == [42, 93]
    assert find_changepoints(gappy, params).n_samples == 134


def test_a_shared_change_is_found_though_no_counter_shows_it_alone():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(60, 40)) + 1.2 * (np.arange(60) >= 25)[:, None]
    alone = [found.indices.tolist() for found in find_changepoints_each(values)]
    assert sum(indices == [25] for indices in alone) < 10
    assert find_changepoints(values).indices.tolist() == [25]


def test_the_order_of_counters_does_not_matter(steps):
    values = np.column_stack([steps, np.random.default_rng(1).normal(size=130), -steps])
    one, other = find_changepoints(values), find_changepoints(values[:, [2, 0, 1]])
    assert one.indices.tolist() == other.indices.tolist()
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-8)


def test_each_counter_has_its_own_changes(steps):
    values = np.column_stack([steps, steps[::-1], np.ones(130)])
    assert [found.indices.tolist() for found in find_changepoints_each(values)] == [[40, 90], [40, 90], []]


def test_a_counter_missing_in_some_rows_leaves_the_others_their_say(steps):
    other = steps.copy()
    other[::3] = np.nan
    silent = np.full((50, 130), 7.0)  # which never vary, and do not hold against a change
    assert find_changepoints(np.column_stack([steps, other, *silent])).indices.tolist() == [40, 90]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "values",
    [[], [1.0], [1.0, 9.0], [np.nan] * 5, [np.nan, 3.0], [4.0] * 50, [0.0] * 50, np.ones((30, 3)), np.zeros((0, 4))],
    ids=["none", "one", "two", "missing", "one and missing", "constant", "zero", "constants", "no rows"],
)
def test_a_series_that_tells_nothing_has_no_change(values, method):
    found = find_changepoints(values, ChangePointParams(method=method))
    assert found.indices.tolist() == []
    assert found.n_samples == len(values)
    assert found.segments() == ([(0, len(values))] if len(values) else [])


@pytest.mark.parametrize("size", [1e3, 1e9, 1e300])
def test_one_huge_outlier_hides_no_change_and_makes_none(steps, size):
    steps[65] = size
    assert find_changepoints(steps).indices.tolist() == [40, 90]
    noise = np.random.default_rng(0).normal(size=100)
    noise[50] = -size
    assert find_changepoints(noise).indices.tolist() == []


def test_three_far_samples_are_a_phase_and_no_outlier():
    values = np.random.default_rng(0).normal(size=60)
    values[30:34] += 40
    assert find_changepoints(values).indices.tolist() == [30, 34]


def test_the_smallest_segment_is_kept(steps):
    for least in (2, 30, 60):
        found = find_changepoints(steps, ChangePointParams(min_segment=least))
        assert min(end - start for start, end in found.segments()) >= least


def test_rarer_changes_are_expected_of_a_longer_run_length():
    values = np.random.default_rng(8).normal(size=200) + 1.1 * (np.arange(200) >= 100)
    n_found = [len(find_changepoints(values, ChangePointParams(expected_run_length=e)).indices) for e in (2, 300, 1e9)]
    assert n_found == sorted(n_found, reverse=True)
    assert n_found[0] > n_found[2]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, np.inf], "series, row 1, counter 0: is inf; expected finite numbers"),
        ([[1.0, 2.0], [1.0, -np.inf]], "series, row 1, counter 1: is -inf"),
        (["a", "b"], "holds something that is no number"),
        (np.zeros((2, 2, 2)), "has 3 dimensions"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(values, words):
    with pytest.raises(BadInput, match=words.replace("(", r"\(")) as fault:
        find_changepoints(values)
    assert "\n" not in str(fault.value)


def test_the_series_given_is_not_changed(steps):
    steps[65] = 1e9
    before = steps.copy()
    find_changepoints(steps)
    find_changepoints_each(steps[:, None])
    assert (steps == before).all()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_all_counters_together(steps, method):
    values = np.column_stack([steps, steps + 1, np.random.default_rng(1).normal(size=130)])
    assert find_changepoints(values, ChangePointParams(method=method)).indices.tolist() == [40, 90]


def test_a_season_is_told_by_the_samples_after_which_it_repeats():
    swings = 5 * np.sin(2 * np.pi * np.arange(600) / 31) + np.random.default_rng(1).normal(0, 0.5, 600)
    found = find_changepoints(swings)
    assert [model.period for model in found.models] == [31], "six of its swings repeat as well"
    assert found.indices.tolist() == []


def test_among_days_and_weekends_a_shift_of_level_alone_is_a_change():
    hour = np.arange(9, 681)  # from nine in the morning, four weeks
    rhythm = 10 * np.sin(2 * np.pi * hour / 24) - 8 * (hour // 24 % 7 >= 5) + 6 * (hour >= 409)
    found = find_changepoints(rhythm + np.random.default_rng(0).normal(0, 1.5, 672))
    assert [model.period for model in found.models] == [168]
    assert found.indices.tolist() == [400]
