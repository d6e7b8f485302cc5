"""Ratio and delta, medians, bins, PMFs and quantiles: by hand, as properties, refusals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tasks.errors import BadInput
from tasks.jobs.normalisation import (
    Bins,
    bins_of,
    derived_bins,
    histogram,
    historic_medians,
    pmfs_of,
    quantiles,
    smooth,
)
from tasks.jobs.params import BinParams

START = pd.Timestamp("2026-01-01")


def runs(*rows):
    """(group, submitted, ended, runtime), times in seconds after the start."""
    frame = pd.DataFrame(rows, columns=["group_key", "submitted_at", "ended_at", "runtime_s"])
    for column in ("submitted_at", "ended_at"):
        frame[column] = START + pd.to_timedelta(frame[column].astype(float), unit="s")
    return frame


def test_the_median_of_the_period_before_wins_and_stays_as_it_is():
    found = historic_medians(runs(("a", 0, 5, 5.0), ("a", 10, 99, 89.0)), {"a": 7.0})
    assert found["median_s"].tolist() == [7, 7]
    assert found["median_source"].tolist() == ["history", "history"]


def test_a_new_job_takes_the_median_of_its_runs_that_had_ended():
    log = runs(
        ("a", 0, 10, 10.0),  # nothing before
        ("a", 10, 40, 30.0),  # submitted when the first ended, not after: still nothing
        ("a", 11, 31, 20.0),  # 10
        ("a", 35, 36, 1.0),  # 10 and 20 had ended: 15
        ("b", 50, 60, 10.0),  # another job
        ("a", 50, 60, 10.0),  # 10, 20, 1 and 30 had ended: 15
    )
    found = historic_medians(log, {})
    assert found["median_s"].fillna(-1).tolist() == [-1, -1, 10, 15, -1, 15]
    assert found["median_source"].tolist() == ["none", "none", "before", "before", "none", "before"]


def test_medians_that_no_runtime_can_have_count_as_absent():
    log = runs(("a", 0, 1, 1.0), ("b", 0, 1, 1.0), ("c", 0, 1, 1.0))
    found = historic_medians(log, {"a": np.nan, "b": -1.0, "c": np.inf})
    assert found["median_source"].tolist() == ["none"] * 3


def test_runs_without_end_runtime_or_submission_are_no_history_and_have_none():
    log = runs(("a", 0, np.nan, 1.0), ("a", 0, 1, np.nan), ("a", 0, 1, np.inf), ("a", 5, 6, 1.0), ("a", np.nan, 9, 1.0))
    assert historic_medians(log, {})["median_source"].tolist() == ["none"] * 5


def test_past_runs_may_come_from_another_frame():
    past = runs(("a", 0, 1, 4.0))
    asked = runs(("a", 2, 3, 9.0), ("b", 2, 3, 9.0))[["group_key", "submitted_at"]]
    assert historic_medians(asked, {}, past=past)["median_s"].fillna(-1).tolist() == [4, -1]


def test_no_runs_have_no_medians():
    assert historic_medians(runs(), {}).shape == (0, 2)


ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=25
)


@settings(max_examples=25, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_median_is_that_of_a_plain_loop_in_any_order_of_rows(rows, random):
    log = runs(*[(group, at, at + length, float(length + extra)) for group, at, length, extra in rows])
    for _ in range(2):
        expected = [
            log.loc[(log["group_key"] == run.group_key) & (log["ended_at"] < run.submitted_at), "runtime_s"].median()
            for run in log.itertuples()
        ]
        found = historic_medians(log, {})["median_s"]
        pd.testing.assert_series_equal(found, pd.Series(expected, log.index, dtype=float), check_names=False)
        order = list(range(len(log)))
        random.shuffle(order)
        log = log.iloc[order]


RATIO = Bins(kind="ratio", low=0, high=4, n_bins=6)  # inside: [0, 1) [1, 2) [2, 3) [3, 4)
DELTA = Bins(kind="delta", low=-2, high=2, n_bins=6)
COUNTS = arrays(np.int64, (3, 30), elements=st.integers(0, 50)).filter(lambda n: (n.sum(axis=1) > 0).all())
WIDE = Bins(kind="delta", low=-14, high=14, n_bins=30)


def test_bins_by_hand():
    assert RATIO.edges.tolist() == [-np.inf, 0, 1, 2, 3, 4, np.inf]
    assert RATIO.centres.tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    assert RATIO.index([0, 0.5, 1, 3.99, 4, 99, np.nan, np.inf]).tolist() == [0, 1, 2, 4, 5, 5, -1, 5]
    assert DELTA.index([-2.01, -2, -0.01, 0, 2, 2.01, -np.inf]).tolist() == [0, 1, 2, 3, 4, 5, 0]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e4, 1e4), max_size=20), st.sampled_from(["ratio", "delta"]), st.integers(3, 500))
def test_each_value_lies_between_the_edges_of_its_bin(values, kind, n_bins):
    bins = bins_of(kind, BinParams(n_bins=n_bins))
    index = bins.index(values)
    rounding = 1e-9
    assert (bins.edges[index] <= np.array(values) + rounding).all()
    assert (np.array(values) <= bins.edges[index + 1] + rounding).all()


def test_a_histogram_by_hand_leaves_out_what_is_missing():
    found = histogram([0.5, 1.5, 1.6, np.nan, 9, 2.5], [0, 2, 2, 0, 0, -1], 3, RATIO)
    assert found.tolist() == [[0, 1, 0, 0, 0, 1], [0] * 6, [0, 0, 2, 0, 0, 0]]
    assert pmfs_of(found)[[0, 2]].tolist() == [[0, 0.5, 0, 0, 0, 0.5], [0, 0, 1, 0, 0, 0]]
    assert np.isnan(pmfs_of(found)[1]).all()
    assert histogram([], [], 0, RATIO).shape == (0, 6)


@settings(max_examples=50, deadline=None)
@given(COUNTS, st.sampled_from([0.0, 1.0, 5.0, 40.0]), st.sampled_from([30, 200]))
def test_smoothing_keeps_the_mass_and_the_outliers(counts, smoothing_bins, scale):
    pmfs = pmfs_of(counts)
    smoothed = smooth(pmfs, WIDE, smoothing_bins * scale / 30)
    assert smoothed.sum(axis=1) == pytest.approx(np.ones(3))
    assert (smoothed[:, [0, -1]] == pmfs[:, [0, -1]]).all()
    assert (smoothed >= 0).all()


def test_the_same_smoothing_has_the_same_width_in_values_whatever_the_bins():
    def spread(n_bins):
        bins = Bins(kind="delta", low=-100, high=100, n_bins=n_bins)
        smoothed = smooth(pmfs_of(histogram([0.0], [0], 1, bins)), bins, 4)[0]
        return np.sqrt((smoothed * bins.centres**2).sum() - (smoothed * bins.centres).sum() ** 2)

    assert spread(500) == pytest.approx(spread(200), rel=0.05) == pytest.approx(4, rel=0.05)


def test_ranges_follow_the_data_of_any_length_of_job():
    short, long = np.linspace(-0.5, 0.5, 1001), np.linspace(-1e5, 1e5, 1001)
    data = BinParams(ranges="data")
    assert (bins_of("delta", data, short).low, bins_of("delta", data, short).high) == (-0.2, 0.2)  # 0.49
    assert bins_of("delta", data, long).high == 24 * 3600  # 98,000 s is 27 hours
    assert bins_of("ratio", data, [1, 1, 1]).high == 1.1
    assert bins_of("delta", data, [0, 0, np.nan]).high == 0.001


def test_what_is_refused_of_bins_is_said_in_one_line():
    with pytest.raises(BadInput, match=r"^normalised runs: none to derive a range from; expected runs with a median"):
        derived_bins("ratio", [np.nan, np.inf], BinParams())
    with pytest.raises(ValueError, match="low 2 is not below high 1"):
        Bins(kind="ratio", low=2, high=1)


def test_quantiles_by_hand():
    # 0.1 of no length, 0.4 in [0, 1), 0.3 in [1, 2), 0.2 outliers
    pmf = np.array([[0.1, 0.4, 0.3, 0, 0, 0.2]])
    assert quantiles(pmf, RATIO, [0.05, 0.3, 0.5, 0.65, 0.9])[0] == pytest.approx([0, 0.5, 1, 1.5, 4])
    assert np.isnan(quantiles(np.full((1, 6), np.nan), RATIO, [0.5])).all()
