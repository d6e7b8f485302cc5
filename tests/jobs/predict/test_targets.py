"""Labels of jobs in a period: by hand, by property, and for the rehearsal of a test."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.pmf import Bins
from tasks.jobs.predict.classifier_params import LabelParams
from tasks.jobs.predict.targets import (
    count_runs,
    label_groups,
    label_instances,
    labels_by_part,
    posterior_instances,
    posterior_of,
)
from tasks.jobs.shape_params import PosteriorParams
from tasks.jobs.shapes import ShapeSet

BINS = Bins(kind="ratio", low=0, high=2, n_bins=4)  # none, below the median, above it, twice as long or more
FAST, SLOW = [0, 0.75, 0.25, 0], [0, 0.25, 0.75, 0]
SHAPES = ShapeSet(BINS, np.array([FAST, SLOW]), np.array([0.5, 0.5]), np.array([3, 1]), 0.0)
POSTERIOR, LABELS = PosteriorParams(empty_bin_prior=1e-6), LabelParams()


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
    assert posterior_of(table).sum(axis=1) == pytest.approx([1, 1])
    assert posterior_of(table)[0] == pytest.approx([0.9, 0.1], abs=1e-5)


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


def test_a_job_is_reported_under_the_source_of_most_of_its_medians():
    runs = runs_of(a=[1.0] * 3, b=[1.0] * 3, c=[1.0] * 2)
    sources = ["history", "before", "before", "before", "history", "history", "history", "before"]
    table = label_groups(runs.assign(median_source=sources), SHAPES, LABELS, POSTERIOR)
    assert table["median_source"].tolist() == ["before", "history", "history"]  # of equally many the first
    assert label_groups(runs.drop(columns="median_source"), SHAPES, LABELS, POSTERIOR)["median_source"].isna().all()


def test_deltas_are_counted_where_the_shapes_are_of_deltas():
    bins = Bins(kind="delta", low=-5, high=5, n_bins=4)
    shapes = ShapeSet(bins, SHAPES.centres, SHAPES.prior, SHAPES.n_groups, 0.0)
    _, counts = count_runs(runs_of(a=[0.0, 0.8, 1.2, 2.0]), shapes)  # -10, -2, 2, 10 s
    assert counts.tolist() == [[1, 1, 1, 1]]


def test_counts_are_given_for_the_jobs_asked_for_in_their_order():
    keys, counts = count_runs(runs_of(a=[0.5] * 2, b=[1.5], c=[0.5]), SHAPES, pd.Index(["b", "new", "a"]))
    assert list(keys) == ["b", "new", "a"]
    assert counts.sum(axis=1).tolist() == [1, 0, 2]


def test_a_later_run_does_not_reach_the_label_of_earlier_ones():
    runs = runs_of(a=[0.5] * 4 + [1.5] * 5)
    is_later = np.arange(9) >= 4
    found = labels_by_part(runs, is_later, SHAPES, LABELS, POSTERIOR)
    assert found.tolist() == [0] * 4 + [1] * 5
    assert label_instances(runs["group_key"], label_groups(runs, SHAPES, LABELS, POSTERIOR)).tolist() == [1] * 9


def test_no_runs_give_an_empty_table():
    table = label_groups(runs_of(), SHAPES, LABELS, POSTERIOR)
    assert len(table) == 0
    assert {"n_runs", "label", "posterior_1"} <= set(table)


def test_runs_without_a_median_column_are_refused_in_one_line():
    with pytest.raises(BadInput, match=r"runs: no column median_s; expected a frame with group_key"):
        label_groups(runs_of(a=[1.0]).drop(columns="median_s"), SHAPES, LABELS, POSTERIOR)
