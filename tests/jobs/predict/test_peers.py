"""What a submission knows of its peers: by hand, from logs that lack columns, and nothing of the future."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.jobs.predict.peers import (
    JOB,
    LEAST_RUNTIME_S,
    LOG,
    MOST_OF_JOB,
    REQUEST,
    USER,
    USER_REQUEST,
    earlier_runs,
    histories,
    peer_features,
    peers_of,
    quantiles_of,
)

START = pd.Timestamp("2026-01-01")


def log(*rows):
    """(group, submitted, ended, x), times in seconds after the start; the runtime is what lies between."""
    frame = pd.DataFrame(rows, columns=["group_key", "submitted_at", "ended_at", "x"])
    frame = frame.assign(runtime_s=(frame["ended_at"] - frame["submitted_at"]).astype(float))
    for column in ("submitted_at", "ended_at"):
        frame[column] = START + pd.to_timedelta(frame[column].astype(float), unit="s")
    return frame


def known(runs, past, place):
    """The rows of `past` that row `place` may know, by the rule itself, in the order of their ends."""
    row = runs.iloc[place]
    is_known = (past["group_key"] == row["group_key"]) & (past["ended_at"] < row["submitted_at"])
    return past[is_known].sort_values(["ended_at", "runtime_s", "submitted_at"], kind="stable")


logs = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 20), st.integers(0, 8), st.integers(-3, 3) | st.none()),
    min_size=1,
    max_size=25,
).map(lambda rows: log(*[(g, at, at + runtime, np.nan if x is None else x) for g, at, runtime, x in rows]))


def test_a_run_that_ends_at_the_submission_is_not_known_yet():
    past = log(("a", 0, 10, 1.0), ("a", 1, 10, 2.0), ("a", 2, 9, 4.0), ("b", 0, 1, 8.0))
    rows = log(("a", 9, 99, 0), ("a", 10, 99, 0), ("a", 11, 99, 0), ("c", 99, 100, 0))
    earlier = earlier_runs(rows, past)
    assert earlier.n.tolist() == [0, 1, 3, 0]
    assert earlier.sums(earlier.values("x")[:, None])[:, 0].tolist() == [0, 4, 7, 0]


def test_of_runs_that_end_together_all_are_known_and_the_longest_is_the_last():
    past = log(("a", 2, 9, 7.0), ("a", 0, 9, 9.0), ("a", 5, 9, 4.0))
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        earlier = earlier_runs(log(("a", 10, 11, 0)), past.iloc[order])
        assert earlier.n.tolist() == [3]
        assert earlier.at_last(earlier.values("x")).tolist() == [9]


def test_a_run_whose_end_stands_before_its_submission_does_not_know_itself():
    runs = log(("a", 50, 40, 1.0))
    runs["runtime_s"] = 10.0
    assert earlier_runs(runs, runs).n.tolist() == [0]


def test_runs_without_an_end_or_a_runtime_and_rows_without_a_submission_or_a_job_count_for_nothing():
    past = log(("a", 0, 1, 1.0), ("a", 0, 1, 1.0), ("a", 0, 1, 1.0), (None, 0, 1, 1.0))
    past.loc[0, "ended_at"] = pd.NaT
    past.loc[1, "runtime_s"] = np.nan
    rows = log(("a", 5, 6, 0), ("a", 5, 6, 0), (None, 5, 6, 0))
    rows.loc[1, "submitted_at"] = pd.NaT
    earlier = earlier_runs(rows, past)
    assert earlier.n.tolist() == [1, 0, 0]
    assert earlier.last.tolist() == [0, -1, -1]


@settings(max_examples=20, deadline=None)
@given(logs, logs, st.integers(1, 4))
def test_every_figure_is_that_of_the_known_runs_alone(runs, past, window):
    earlier = earlier_runs(runs, past)
    x = earlier.values("x")
    mean, sd = earlier.mean_sd(x)
    median = earlier.quantile(x, 0.5, window=window)
    quartile = earlier.quantile(earlier.values("runtime_s"), 0.25, window=window)
    last_sum = earlier.sums_and_recent(np.nan_to_num(x)[:, None], window)[1][:, 0]
    for place in range(len(runs)):
        mine = known(runs, past, place)
        assert earlier.n[place] == len(mine)
        np.testing.assert_allclose(mean[place], mine["x"].mean(), atol=1e-12)
        np.testing.assert_allclose(sd[place], mine["x"].std(), atol=1e-9)
        np.testing.assert_allclose(quartile[place], mine["runtime_s"].tail(window).quantile(0.25))
        if not mine.duplicated(["ended_at", "runtime_s", "submitted_at"]).any():  # else the last ones are not defined
            np.testing.assert_allclose(median[place], mine["x"].tail(window).median())
            np.testing.assert_allclose(last_sum[place], mine["x"].tail(window).sum(), atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(logs, st.sampled_from([0.3, 1.0, 7.0]))
def test_the_recent_mean_is_the_exponentially_weighted_mean_of_pandas(past, half_life):
    rows = log(("a", 99, 100, 0), ("b", 99, 100, 0))
    earlier = earlier_runs(rows, past)
    found = earlier.recent_mean(earlier.values("runtime_s"), half_life=half_life)
    for place in range(2):
        mine = known(rows, past, place)["runtime_s"]
        expected = mine.ewm(halflife=half_life).mean().iloc[-1] if len(mine) else np.nan
        np.testing.assert_allclose(found[place], expected)


def test_the_recent_mean_of_a_long_history_still_ends_at_its_last_runs():
    runs = log(*[("a", i, i + (1 if i < 5000 else 3), 0.0) for i in range(5200)])
    earlier = earlier_runs(log(("a", 9999, 10_000, 0)), runs)
    assert earlier.recent_mean(earlier.values("runtime_s"), half_life=10.0)[0] == pytest.approx(3, abs=1e-5)


def test_small_differences_between_large_numbers_keep_their_spread():
    runs = log(*[("a", i, i + 1, 1e15 + i % 2) for i in range(1000)])
    _, sd = (earlier := earlier_runs(log(("a", 9999, 10_000, 0)), runs)).mean_sd(earlier.values("x"))
    assert sd[0] == pytest.approx(0.5002502, rel=1e-6)


BY_JOB_ALONE = {JOB, LOG}


def peer_log(*rows, **columns):
    """(job, submitted, runtime), in seconds after the start; runs start when they are submitted."""
    frame = pd.DataFrame(rows, columns=["group_key", "at", "runtime_s"]).astype({"runtime_s": float})
    submitted_at = START + pd.to_timedelta(frame.pop("at").astype(float), unit="s")
    ended_at = submitted_at + pd.to_timedelta(frame["runtime_s"], unit="s")
    return frame.assign(submitted_at=submitted_at, ended_at=ended_at, **columns)


def requests(n):
    """Columns of users and requests, some of them missing."""
    return {
        "user_name": [("ann", "bob", None)[i % 3] for i in range(n)],
        "requested_cpus": [(1.0, 2.0, np.nan, 1.0)[i % 4] for i in range(n)],
        "requested_runtime_s": [(60.0, np.nan)[i % 2] for i in range(n)],
        "queue": [("short", None)[i % 2] for i in range(n)],
        "input_bytes": [(10.0, np.nan, 0.0)[i % 3] for i in range(n)],
    }


def test_the_figures_of_a_job_are_those_of_its_runs_that_had_ended():
    runs = peer_log(("a", 0, 1), ("b", 1, 90), ("a", 2, 4), ("a", 3, 16), ("a", 10, 5), ("a", 100, 7))
    features = peer_features(runs, peers_of(runs, runs))
    known = np.log([4.0, 1.0])  # at 10 s the run of 16 s goes on: it ends at 19 s
    assert features["job_runs"][4] == pytest.approx(np.log(3))
    assert features["job_last"][4] == pytest.approx(known[0])
    assert features["job_before_last"][4] == pytest.approx(known[1])
    assert features["job_median"][4] == features["job_median10"][4] == pytest.approx(known.mean())
    assert features["job_mean5"][4] == pytest.approx(known.mean())
    assert features["job_q10"][4] == pytest.approx(0.1 * np.log(4))
    assert features["job_q90"][4] == pytest.approx(0.9 * np.log(4))
    assert features["job_since"][4] == pytest.approx(np.log1p(10 - 6))
    assert features["log_runs"][5] == pytest.approx(np.log1p(5))
    assert features["log_last"][5] == pytest.approx(np.log(5))  # the last submitted, not the one that ended at 91 s


def test_the_share_of_the_limit_and_the_usual_time_for_an_input_are_medians_over_the_job():
    runs = peer_log(("a", 0, 10), ("a", 20, 40), ("a", 100, 1))
    runs = runs.assign(requested_runtime_s=[100.0, 100.0, 100.0], input_bytes=[9.0, 19.0, 39.0])
    features = peer_features(runs, peers_of(runs, runs))
    assert features["job_limit_share"][2] == pytest.approx(np.log([0.1, 0.4]).mean())
    rates = np.log(10) - np.log(10), np.log(40) - np.log(20)
    assert features["input_usual"][2] == pytest.approx(np.mean(rates) + np.log(40))


def test_histories_stand_with_the_newest_run_first_and_no_more_than_the_last_200():
    runs = peer_log(*[("a", 10 * i, 1 + i % 7) for i in range(MOST_OF_JOB + 12)])
    known = histories(peers_of(runs, runs)).log_s[JOB]
    assert known.shape == (MOST_OF_JOB + 12, MOST_OF_JOB)
    np.testing.assert_allclose(known[3, :3], np.log([3, 2, 1]))
    assert np.isnan(known[3, 3:]).all()
    np.testing.assert_allclose(known[-1], np.log(runs["runtime_s"].to_numpy()[-2 : -MOST_OF_JOB - 2 : -1]))


def test_some_rows_and_longer_runtimes_are_those_of_the_same_histories():
    runs = peer_log(("a", 0, 1), ("a", 10, 2), ("a", 20, 3))
    known = histories(peers_of(runs, runs))
    np.testing.assert_array_equal(known.rows(slice(2, 3)).log_s[JOB], known.log_s[JOB][2:])
    np.testing.assert_allclose(known.shifted(np.array([0, 0, np.log(2)])).log_s[JOB][2, :2], np.log([4, 2]))


def test_peers_share_what_they_are_named_after_and_a_run_without_it_has_none():
    runs = peer_log(*[("abcdefg"[i], 10 * i, 1 + i) for i in range(7)])
    runs["user_name"] = ["ann", "bob", "ann", None, None, "ann", "ann"]
    runs["requested_cpus"] = [1, 1, 2, 1, 1, 1, np.nan]
    runs["requested_runtime_s"] = [60.0, 60, 60, 60, 60, 60, np.nan]
    runs["queue"] = ["short", "short", "short", "short", "long", "short", "short"]
    n = {peers: earlier.n.tolist() for peers, earlier in peers_of(runs, runs).items()}
    assert n[JOB] == [0] * 7
    assert n[USER] == [0, 0, 1, 0, 0, 2, 3]
    assert n[USER_REQUEST] == [0, 0, 0, 0, 0, 1, 0]
    assert n[REQUEST] == [0, 1, 0, 2, 0, 3, 0]
    assert n[LOG] == [0, 1, 2, 3, 4, 5, 6]


def test_values_that_only_read_alike_one_after_the_other_make_no_peers():
    past = peer_log(("a", 0, 1), user_name="u1", requested_cpus=2.0)
    row = peer_log(("a", 5, 1), user_name="u", requested_cpus=12.0)
    assert peers_of(row, past)[USER_REQUEST].n.tolist() == [0]


def test_a_number_or_a_missing_name_written_otherwise_makes_no_other_peers():
    past = peer_log(("a", 0, 1), user_name="ann", requested_cpus=[4.0], requested_runtime_s=[np.nan], queue=[None])
    row = peer_log(("a", 5, 1), user_name="ann", requested_cpus=[4], queue=[np.nan])
    n = {peers: earlier.n.tolist() for peers, earlier in peers_of(row, past).items()}
    assert n == {peers: [1] for peers in (JOB, USER, USER_REQUEST, REQUEST, LOG)}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, BY_JOB_ALONE),
        ({"user_name": "ann"}, BY_JOB_ALONE | {USER, USER_REQUEST}),
        ({"requested_cpus": 4}, BY_JOB_ALONE | {REQUEST}),
        ({"user_name": None, "requested_cpus": np.nan, "queue": "short"}, BY_JOB_ALONE),
    ],
)
def test_a_log_has_the_peers_that_it_tells_apart(columns, expected):
    runs = peer_log(("a", 0, 1), ("a", 10, 2), **columns)
    assert set(peers_of(runs, runs)) == expected
    assert set(histories(peers_of(runs, runs)).log_s) == expected - {USER, REQUEST}
    assert all(len(values) == 2 for values in peer_features(runs, peers_of(runs, runs)).values())


def test_a_run_alone_knows_nothing_and_one_of_no_length_has_a_logarithm():
    one = peer_log(("a", 0, 0))
    features = peer_features(one, peers_of(one, one))
    assert features["job_runs"].tolist() == features["log_runs"].tolist() == [0]
    assert np.isnan(features["job_last"]).all()
    later = peer_features(row := peer_log(("a", 5, 1)), peers_of(row, one))
    assert later["job_last"].tolist() == [np.log(LEAST_RUNTIME_S)]


def test_quantiles_are_those_of_numpy_over_what_is_there():
    latest = np.array([[3.0, 1, 2, np.nan], [5, np.nan, np.nan, np.nan], [np.nan] * 4, [4, 1, 2, 9]])
    quantiles = quantiles_of(latest, (0.1, 0.5, 0.9))
    for row in (0, 1, 3):
        np.testing.assert_allclose(quantiles[row], np.nanquantile(latest[row], (0.1, 0.5, 0.9)))
    assert np.isnan(quantiles[2]).all()


rows_of_logs = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 12)), min_size=2, max_size=25
)


@settings(max_examples=10, deadline=None)
@given(rows_of_logs, st.randoms(use_true_random=False))
def test_nothing_of_a_run_that_ends_at_or_after_a_submission_is_known_to_it(rows, random):
    runs = peer_log(*rows, **requests(len(rows)))
    row = runs.iloc[[random.randrange(len(runs))]]
    at = row["submitted_at"].iloc[0]
    is_known = runs["ended_at"] < at
    changed = runs.copy()
    later = np.flatnonzero(~is_known)
    # what is not known may last however long, be anyone's, or not be there: it ends after the submission all the same
    changed.loc[~is_known, "runtime_s"] = [random.choice([0.0, 5.0, 1e9]) for _ in later]
    changed.loc[~is_known, "ended_at"] = [at + pd.Timedelta(seconds=random.randrange(50)) for _ in later]
    changed.loc[~is_known, "group_key"] = [random.choice("ab") for _ in later]
    changed.loc[~is_known, "user_name"] = [random.choice(["ann", "bob"]) for _ in later]
    changed = changed.sample(frac=1, random_state=random.randrange(1000))
    for past in (changed, runs[is_known]):
        before, after = peer_features(row, peers_of(row, runs)), peer_features(row, peers_of(row, past))
        for name in before.keys() & after.keys():
            np.testing.assert_array_equal(before[name], after[name], err_msg=name)
        known, still = histories(peers_of(row, runs)).log_s, histories(peers_of(row, past)).log_s
        for peers in known.keys() & still.keys():
            np.testing.assert_array_equal(known[peers], still[peers], err_msg=peers)
