"""Periods, medians, bins and histograms made where the rows are: those of the pure functions over the same rows."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.group_counts import KINDS, PARTS, bin_sql, count_groups, halve_groups, put_groups, split_runs
from tasks.jobs.normalisation import (
    historic_medians,
    normalise,
)
from tasks.jobs.pmf import Bins, derived_bins, histogram
from tasks.jobs.posterior import log_posterior
from tasks.jobs.predict.preparation import assign_periods
from tasks.jobs.predict.rows import read_runs
from tasks.jobs.shape_params import (
    BinParams,
    CharacteriseParams,
    NormalisationParams,
    ShapeParams,
    SplitParams,
)
from tasks.warehouse.connection import reading

START = pd.Timestamp("2026-01-01")


@pytest.fixture
def log(job_log):
    """A log with jobs in all parts, in D1 only, in D3 only, of no time, with outliers, and with overlapping runs."""
    rng = np.random.default_rng(5)
    n = 1200
    jobs = np.array([f"job {i}" for i in range(12)])[rng.integers(0, 12, n)]
    at = np.sort(rng.uniform(0, 1e6, n)).round()
    jobs[-200:] = np.where(rng.random(200) < 0.3, "new", jobs[-200:])
    jobs[-1], jobs[5] = "newest", "old"
    runtimes = rng.lognormal(4, 1.5, n).round(2)
    runtimes[jobs == "job 3"] = np.where(rng.random((jobs == "job 3").sum()) < 0.7, 0.0, 5.0)
    runs = pd.DataFrame(
        {"group_key": jobs, "runtime_s": runtimes, "submitted_at": START + pd.to_timedelta(at, unit="s")}
    )
    return job_log(runs.sample(frac=1, random_state=1))


def expected_of(warehouse, params):
    """Runs with their parts and medians, by the pure functions."""
    runs = read_runs(warehouse, "log")
    runs["part"] = assign_periods(runs, params.split)
    history = runs[runs["part"] == "D1"].groupby("group_key")["runtime_s"].median()
    return runs.assign(median_s=historic_medians(runs, history, params.normalisation)["median_s"]), history


@pytest.mark.parametrize("batch_values", [10**6, 300, 1])
@pytest.mark.parametrize("min_before", [1, 4])
def test_medians_and_histograms_are_those_of_the_pure_functions(log, monkeypatch, batch_values, min_before):
    monkeypatch.setattr("tasks.jobs.group_counts.BATCH_VALUES", batch_values)
    params = CharacteriseParams(normalisation=NormalisationParams(min_before=min_before))
    with reading(log) as connection:
        counts = count_groups(connection, "log", params)
    runs, history = expected_of(log, params)
    assert counts.keys.tolist() == sorted(runs["group_key"].unique())
    medians = history.reindex(counts.keys)
    np.testing.assert_array_equal(counts.medians_s, medians)
    assert np.isnan(medians[["new", "newest"]]).all()
    numbers = pd.Index(counts.keys).get_indexer(runs["group_key"])
    everyone = np.arange(counts.n_groups)
    for kind in KINDS:
        values = normalise(runs["runtime_s"], runs["median_s"], kind)
        for part, name in enumerate(PARTS):
            is_in = np.ones(len(runs), dtype=bool) if name == "all" else (runs["part"] == name).to_numpy()
            expected = histogram(values[is_in], numbers[is_in], counts.n_groups, counts.bins[kind])
            assert (counts.dense(kind, everyone, part) == expected).all(), (kind, name)
            assert (counts.support(kind, part) == expected.sum(axis=1)).all()
    assert counts.dense("delta", np.array([3, 1])).tolist() == counts.dense("delta", everyone)[[3, 1]].tolist()


def test_posteriors_are_those_of_the_dense_counts(log):
    with reading(log) as connection:
        counts = count_groups(connection, "log", CharacteriseParams())
    centres = np.random.default_rng(0).dirichlet(np.ones(200), 3)
    prior = np.array([0.5, 0.3, 0.2])
    found = counts.log_posteriors("ratio", centres, empty_bin_prior=0.001, prior=prior)
    for part in range(len(PARTS)):
        dense = counts.dense("ratio", np.arange(counts.n_groups), part)
        expected = log_posterior(dense, centres, empty_bin_prior=0.001, prior=prior)
        np.testing.assert_allclose(found[:, part], expected, rtol=1e-9, atol=1e-9)


def test_halves_of_the_runs_are_whole_for_every_number_of_bins_and_drawn_at_random(log):
    params = CharacteriseParams()
    with reading(log) as connection:
        counts = count_groups(connection, "log", params)
        is_chosen = counts.support("delta") >= 20
        chosen, bins = np.flatnonzero(is_chosen), counts.bins["delta"]
        put_groups(connection, "log", params.split, counts, np.where(is_chosen, 0, -1))
        halves, again, others = (
            halve_groups(connection, bins, (50, 200), np.random.default_rng(seed)) for seed in (1, 1, 2)
        )
        many = halve_groups(connection, bins, (50, 200, *range(900, 908)), np.random.default_rng(1))
    whole = counts.dense("delta", chosen)
    for found in (halves, again, others, many):
        first, second = found[200]
        assert (first + second == whole).all()
        assert (first.sum(axis=1) - second.sum(axis=1) == whole.sum(axis=1) % 2).all()
    assert (halves[200][0] == again[200][0]).all()
    assert (halves[200][0] != others[200][0]).any()
    # the outliers are the same runs, however the inside is cut
    assert (halves[50][0][:, [0, -1]] == halves[200][0][:, [0, -1]]).all()


BINS = [
    Bins(kind="ratio", low=0, high=10),
    Bins(kind="delta", low=-900, high=900),
    Bins(kind="delta", low=-0.1, high=0.1, n_bins=3),
    Bins(kind="delta", low=-900, high=900, n_bins=500),
    Bins(kind="ratio", low=0, high=1.1, n_bins=77),
    Bins(kind="ratio", low=0, high=1 / 3, n_bins=10_000),
]


@pytest.mark.parametrize("bins", BINS, ids=str)
def test_a_value_has_the_same_bin_in_sql(job_log, bins):
    rng = np.random.default_rng(0)
    edges = bins.edges[1:-1]
    near = [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)]
    tiny = [0.0, -0.0, 5e-324, -5e-324, 1e300, -1e300, np.inf, -np.inf]
    values = np.concatenate([*near, tiny, bins.low + (bins.high - bins.low) * rng.uniform(-0.1, 1.1, 10_000)])
    rows = pd.DataFrame({"value": values, "place": range(len(values))})
    with reading(job_log([{"runtime_s": 1.0}])) as connection:
        connection.register("rows_to_bin", rows)
        sql = f"SELECT {bin_sql('value', bins)} FROM rows_to_bin ORDER BY place"
        found = [bin_ for (bin_,) in connection.execute(sql).fetchall()]
        missing = connection.execute(f"SELECT {bin_sql('NULL::DOUBLE', bins)}").fetchall()
    assert found == bins.index(values).tolist()
    assert missing == [(-1,)]


@pytest.mark.parametrize("tail_share", [0.01, 0.2])
@pytest.mark.parametrize("kind", ["ratio", "delta"])
def test_ranges_from_the_data_are_the_derived_ones_of_the_history(job_log, kind, tail_share):
    rng = np.random.default_rng(3)
    runs = pd.DataFrame({
        "group_key": [f"job {i % 10}" for i in range(1000)] + [f"rare {i}" for i in range(50)],
        "runtime_s": np.r_[rng.lognormal(3, 1, 1000), rng.lognormal(9, 1, 50)],
    })  # fmt: skip
    runs["submitted_at"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.permutation(1050), unit="min")
    params = BinParams(ranges="data", tail_share=tail_share)
    with reading(job_log(runs)) as connection:
        counts = count_groups(connection, "log", CharacteriseParams(bins=params, shapes=ShapeParams(min_support=5)))
    history = runs.sort_values("submitted_at")[:525]
    history = history[history["group_key"].str.startswith("job")]
    medians = history.groupby("group_key")["runtime_s"].transform("median")
    assert counts.bins[kind] == derived_bins(kind, normalise(history["runtime_s"], medians, kind), params)


def test_ranges_of_no_run_are_refused(job_log):
    params = CharacteriseParams(bins=BinParams(ranges="data"))
    with reading(job_log([{"runtime_s": 0.0}] * 9)) as connection:
        with pytest.raises(BadInput, match=r"^normalised runs: none to derive a range from"):
            count_groups(connection, "log", params)


FIRST = pd.Timestamp("2026-01-01")


def parts_of(warehouse, params, source="log"):
    """The part of each run by SQL and by assign_periods, in one order."""
    with reading(warehouse) as connection:
        split_runs(connection, source, params)
        found = connection.execute("SELECT runtime_s, part FROM temp.finished ORDER BY runtime_s").fetchall()
    runs = read_runs(warehouse, source)
    expected = assign_periods(runs, params).cat.codes[runs["runtime_s"].argsort()].tolist()
    return [part for _, part in found], expected


def log_of(job_log, times, **columns):
    """A run at each time, its runtime being its number."""
    runs = pd.DataFrame({"submitted_at": times, "runtime_s": np.arange(len(times), dtype=float), **columns})
    return job_log(runs)


@pytest.mark.parametrize(
    "seconds",
    [
        np.arange(100.0),
        np.random.default_rng(0).integers(0, 40, 300),  # many at the same moment
        np.random.default_rng(1).lognormal(8, 3, 301),  # over years, uneven
        np.r_[0, 1, np.full(50, 2)],  # one moment holds nearly all
        np.r_[np.full(50, 0), 1, 2],
        np.r_[np.full(9, 0), np.full(9, 7200), np.full(2, 7201)],
        [0, 1, 2],
        [5, 5, 5, 4, 4, 3],
    ],
)
@pytest.mark.parametrize("shares", [(0.5, 0.3), (0.01, 0.01), (0.9, 0.09)])
def test_a_split_by_time_is_that_of_assign_periods(job_log, seconds, shares):
    times = FIRST + pd.to_timedelta(np.asarray(seconds, dtype=float).round(6), unit="s")
    params = SplitParams(history_share=shares[0], training_share=shares[1])
    found, expected = parts_of(log_of(job_log, times), params)
    assert found == expected
    assert set(found) == {0, 1, 2}


@pytest.mark.parametrize("use_periods", [True, False])
@pytest.mark.parametrize("names", [["D1", "D2", "D3"], ["z", "y", "x", "w"], ["a", "b"]])
def test_recorded_periods_are_those_of_assign_periods(job_log, names, use_periods):
    periods = np.repeat(names, 10).astype(object)
    periods[::7] = None
    periods[12] = names[0]  # late for its period
    times = FIRST + pd.to_timedelta(np.arange(len(periods)) % 10 + np.arange(len(periods)) // 10 * 5, unit="h")
    found, expected = parts_of(log_of(job_log, times, period=periods), SplitParams(use_periods=use_periods))
    assert found == expected


def test_a_run_before_all_recorded_periods_is_history(job_log):
    times = FIRST + pd.to_timedelta(np.arange(7), unit="h")
    found, expected = parts_of(log_of(job_log, times, period=[None, "a", "a", "b", None, "c", None]), SplitParams())
    assert found == expected == [0, 0, 0, 1, 1, 2, 2]


def test_runs_that_are_not_finished_or_what_ifs_move_no_bound(job_log):
    times = FIRST + pd.to_timedelta(np.arange(30), unit="h")
    status = np.where(np.arange(30) < 10, "failed", "completed")
    what_if = np.where(np.arange(30) >= 25, "no_spare", None)
    found, expected = parts_of(log_of(job_log, times, status=status, what_if=what_if), SplitParams())
    assert found == expected
    assert len(found) == 15


@pytest.mark.parametrize(("seconds", "n_times"), [([0, 0], 1), ([0, 0, 1], 2)])
def test_too_few_times_are_refused_as_assign_periods_refuses_them(job_log, seconds, n_times):
    warehouse = log_of(job_log, FIRST + pd.to_timedelta(seconds, unit="s"))
    with pytest.raises(BadInput, match=f"^job log: runs of {n_times} different times of submission") as told:
        parts_of(warehouse, SplitParams())
    with pytest.raises(BadInput) as expected:
        assign_periods(read_runs(warehouse, "log"), SplitParams())
    assert str(told.value) == str(expected.value)
