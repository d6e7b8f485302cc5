"""Labels of jobs in a period: by hand, by property; and of what is known while a period goes on."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.labels.targets import (
    count_runs,
    known_so_far,
    label_groups,
    label_instances,
    posterior_instances,
    posteriors_in,
)
from tasks.jobs.normalisation import Bins, histogram
from tasks.jobs.shape_params import PosteriorParams
from tasks.jobs.shapes import ShapeSet, log_posterior

BINS = Bins(kind="ratio", low=0, high=2, n_bins=4)  # none, below the median, above it, twice as long or more
FAST, SLOW = [0, 0.75, 0.25, 0], [0, 0.25, 0.75, 0]
SHAPES = ShapeSet(BINS, np.array([FAST, SLOW]), np.array([0.5, 0.5]), np.array([3, 1]), 0.0)
POSTERIOR, LABELS = PosteriorParams(empty_bin_prior=1e-6), 3


def runs_of(**ratios: list[float]) -> pd.DataFrame:
    """Runs of jobs with a median of 10 s, by their ratios."""
    rows = [(key, 10 * ratio, 10.0, "history") for key, values in ratios.items() for ratio in values]
    return pd.DataFrame(rows, columns=["group_key", "runtime_s", "median_s", "median_source"])


def test_two_fast_runs_and_a_slow_one_make_a_job_three_to_one_fast():
    table = label_groups(runs_of(a=[0.5, 0.5, 1.5]), SHAPES, LABELS, POSTERIOR)
    # 0.75 * 0.75 * 0.25 against 0.25 * 0.25 * 0.75
    assert table.loc["a", "label"] == 0
    assert table.loc["a", ["posterior_0", "posterior_1"]].to_numpy(dtype=float) == pytest.approx([0.75, 0.25], abs=1e-5)
    assert table.loc["a", "n_runs"] == 3


def test_a_prior_by_size_decides_where_the_runs_do_not():
    runs = runs_of(a=[0.5, 0.5, 1.5, 1.5])
    by_size = PosteriorParams(empty_bin_prior=1e-6, prior="size")
    table = label_groups(runs, SHAPES, LABELS, by_size)
    assert table.loc["a", ["posterior_0", "posterior_1"]].to_numpy(dtype=float) == pytest.approx([0.75, 0.25], abs=1e-5)


def test_a_job_with_two_runs_has_a_posterior_but_no_label():
    table = label_groups(runs_of(a=[0.5, 0.5], b=[1.5] * 3), SHAPES, LABELS, POSTERIOR)
    assert table["label"].tolist() == [-1, 1]
    assert posteriors_in(table).sum(axis=1) == pytest.approx([1, 1])
    assert posteriors_in(table)[0] == pytest.approx([0.9, 0.1], abs=1e-5)


def test_a_run_without_a_median_counts_nowhere_and_still_has_the_label_of_its_job():
    runs = runs_of(a=[0.5] * 3)
    unknown = runs.iloc[[0]].assign(median_s=np.nan, median_source="none")
    both = pd.concat([runs, unknown, unknown.assign(group_key="new")], ignore_index=True)
    table = label_groups(both, SHAPES, LABELS, POSTERIOR)
    assert table["n_runs"].to_dict() == {"a": 3, "new": 0}
    assert label_instances(both["group_key"], table).tolist() == [0, 0, 0, 0, -1]


def test_runs_of_a_job_that_has_no_row_have_no_label_and_no_posterior():
    table = label_groups(runs_of(a=[0.5] * 3), SHAPES, LABELS, POSTERIOR)
    keys = pd.Series(["b", "a"])
    assert label_instances(keys, table).tolist() == [-1, 0]
    found = posterior_instances(keys, table)
    assert np.isnan(found[0]).all()
    assert found[1].sum() == pytest.approx(1)


def test_the_order_of_the_runs_changes_no_label():
    rng = np.random.default_rng(1)
    runs = runs_of(a=list(rng.uniform(0, 3, 20)), b=list(rng.uniform(0, 2, 9)), c=[1.0])
    shuffled = runs.sample(frac=1, random_state=2)
    one, other = (label_groups(r, SHAPES, LABELS, POSTERIOR) for r in (runs, shuffled))
    pd.testing.assert_frame_equal(one, other)


def test_deltas_are_counted_where_the_shapes_are_of_deltas():
    bins = Bins(kind="delta", low=-5, high=5, n_bins=4)
    shapes = ShapeSet(bins, SHAPES.centres, SHAPES.prior, SHAPES.n_groups, 0.0)
    _, counts = count_runs(runs_of(a=[0.0, 0.8, 1.2, 2.0]), shapes)  # -10, -2, 2, 10 s
    assert counts.tolist() == [[1, 1, 1, 1]]


def test_counts_are_given_for_the_jobs_asked_for_in_their_order():
    keys, counts = count_runs(runs_of(a=[0.5] * 2, b=[1.5], c=[0.5]), SHAPES, pd.Index(["b", "new", "a"]))
    assert list(keys) == ["b", "new", "a"]
    assert counts.sum(axis=1).tolist() == [1, 0, 2]


def test_no_runs_give_an_empty_table():
    table = label_groups(runs_of(), SHAPES, LABELS, POSTERIOR)
    assert len(table) == 0
    assert {"n_runs", "label", "posterior_1"} <= set(table)


def test_runs_without_a_median_column_are_refused_in_one_line():
    with pytest.raises(BadInput, match=r"runs: no column median_s; expected a frame with group_key"):
        label_groups(runs_of(a=[1.0]).drop(columns="median_s"), SHAPES, LABELS, POSTERIOR)


WIDE = Bins(kind="ratio", low=0, high=3, n_bins=5)
FIVE = np.array([[0.1, 0.4, 0.3, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.6]])
OF_FIVE = ShapeSet(WIDE, FIVE, np.array([0.75, 0.25]), np.array([3, 1]), 0.0)
SURE = PosteriorParams(empty_bin_prior=0.01)


@pytest.fixture
def log(log_of):
    """Nine runs of one job, three in each part, against a median of 10 s."""
    runs = log_of([5.0, 12, 31, 45, 9, 35, 50, 8, 33])
    return runs.assign(median_s=10.0, part=np.repeat(["D1", "D2", "D3"], 3))


def posterior_by_hand(runtimes_s, prior=None):
    counts = histogram(np.array(runtimes_s) / 10, np.zeros(len(runtimes_s), int), 1, WIDE)
    return np.exp(log_posterior(counts, FIVE, empty_bin_prior=0.01, prior=prior))[0]


def test_it_is_the_posterior_of_the_earlier_runs_of_the_same_period(log):
    found = known_so_far(log, OF_FIVE, SURE)
    assert found.n_known.tolist() == [0, 1, 2] * 3
    for first in (0, 3, 6):
        for n in range(3):
            runtimes = log["runtime_s"].iloc[first : first + n]
            assert found.probabilities[first + n] == pytest.approx(posterior_by_hand(runtimes))


def test_a_run_that_goes_on_at_the_submission_is_not_known(log):
    late = log.assign(ended_at=log["ended_at"].where(log.index != 3, log["submitted_at"].iloc[5]))
    assert known_so_far(late, OF_FIVE, SURE).n_known.tolist() == [0, 1, 2, 0, 0, 1, 0, 1, 2]


def test_a_run_changes_nothing_for_those_before_it_and_in_other_periods(log):
    other = log.assign(runtime_s=log["runtime_s"].where(log.index != 4, 39.0))
    one, changed = known_so_far(log, OF_FIVE, SURE), known_so_far(other, OF_FIVE, SURE)
    is_same = (one.probabilities == changed.probabilities).all(axis=1)
    assert is_same.tolist() == [True] * 5 + [False] + [True] * 3


def test_jobs_do_not_mix_and_a_run_without_a_median_says_nothing(log):
    runs = log.assign(
        group_key=np.where(log.index == 7, "other", "job"), median_s=np.where(log.index == 3, np.nan, 10.0)
    )
    assert known_so_far(runs, OF_FIVE, SURE).n_known.tolist() == [0, 1, 2, 0, 0, 1, 0, 0, 1]


def test_the_prior_is_that_of_the_labels(log):
    found = known_so_far(log, OF_FIVE, SURE.model_copy(update={"prior": "size"}))
    assert found.probabilities[3] == pytest.approx([0.75, 0.25])
    assert found.probabilities[4] == pytest.approx(posterior_by_hand([45.0], prior=[3, 1]))
