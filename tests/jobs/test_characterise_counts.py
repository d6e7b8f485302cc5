"""Medians, histograms and posteriors made in SQL are those of the pure functions over the same rows."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.characterise_counts import KINDS, count_groups
from tasks.jobs.characterise_halves import halve_groups
from tasks.jobs.group_counts import PARTS, count_cells
from tasks.jobs.normalisation import (
    historic_medians,
    normalise,
)
from tasks.jobs.pmf import histogram
from tasks.jobs.posterior import log_posterior
from tasks.jobs.predict.periods import assign_periods
from tasks.jobs.predict.rows import read_runs
from tasks.jobs.shape_params import CharacteriseParams, NormalisationParams
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


@pytest.mark.parametrize("batch_runs", [10**6, 100])
@pytest.mark.parametrize("min_before", [1, 4])
def test_medians_and_histograms_are_those_of_the_pure_functions(log, batch_runs, min_before):
    params = CharacteriseParams(batch_runs=batch_runs, normalisation=NormalisationParams(min_before=min_before))
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
        chosen = np.flatnonzero(counts.support("delta") >= 20)
        bins = counts.bins["delta"]
        halves, again, others = (
            halve_groups(connection, bins, chosen, (50, 200), np.random.default_rng(seed)) for seed in (1, 1, 2)
        )
        apart = halve_groups(connection, bins, chosen, (50, 200, *range(900, 908)), np.random.default_rng(1))
    whole = counts.dense("delta", chosen)
    for found in (halves, again, others, apart):
        first, second = found[200]
        assert (first + second == whole).all()
        assert (first.sum(axis=1) - second.sum(axis=1) == whole.sum(axis=1) % 2).all()
    assert (halves[200][0] == again[200][0]).all()
    assert (halves[200][0] != others[200][0]).any()
    # the outliers are the same runs, however the inside is cut
    assert (halves[50][0][:, [0, -1]] == halves[200][0][:, [0, -1]]).all()


def test_cells_are_counted_right_across_many_batches(monkeypatch):
    monkeypatch.setattr("tasks.jobs.group_counts.SORTED_AT_ONCE", 50)
    monkeypatch.setattr("tasks.jobs.group_counts.MERGED_AT_ONCE", 60)
    cells = np.random.default_rng(0).integers(0, 90, 2000)
    found, n = count_cells(cells[at : at + 30].copy() for at in range(0, 2000, 30))
    expected, n_expected = np.unique(cells, return_counts=True)
    assert found.tolist() == expected.tolist()
    assert n.tolist() == n_expected.tolist()
    assert [len(one) for one in count_cells(iter([]))] == [0, 0]
