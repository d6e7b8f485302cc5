"""Runtimes held by job and part, their exact medians, and ranges from their upper tail: against plain numpy."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs import characterise_held, characterise_tails
from tasks.jobs.characterise_cells import cells_of, historic_medians_of
from tasks.jobs.characterise_counts import count_groups
from tasks.jobs.characterise_held import HeldRuns, batch_bounds, hold_runs, list_jobs, put_by_stretch
from tasks.jobs.characterise_medians import medians_of
from tasks.jobs.characterise_periods import split_runs
from tasks.jobs.characterise_tails import UpperTail
from tasks.jobs.group_counts import CellNumbers, merge_cells
from tasks.jobs.pmf import Bins
from tasks.jobs.predict.split_params import SplitParams
from tasks.jobs.shape_params import CharacteriseParams
from tasks.warehouse.connection import reading


@pytest.fixture
def log(job_log):
    rng = np.random.default_rng(3)
    keys = [f"job {i}" for i in rng.integers(0, 40, 3000)]
    return job_log(pd.DataFrame({"group_key": keys, "runtime_s": rng.lognormal(3, 1, 3000)}))


def held_of(warehouse, batch_runs):
    """The jobs; and by batch the numbers of its jobs and the sorted runtimes of each stretch."""
    with reading(warehouse) as connection:
        split_runs(connection, "log", SplitParams())
        jobs = list_jobs(connection)
        batches = list(hold_runs(connection, jobs, batch_runs))
        rows = connection.execute("SELECT group_key, part, runtime_s FROM temp.finished").fetchall()
    stretches = [np.sort(one).tolist() for held in batches for one in np.split(held.runtime_s, held.starts[1:-1])]
    return jobs, batches, stretches, pd.DataFrame(rows, columns=["group_key", "part", "runtime_s"])


@pytest.mark.parametrize("batch_runs", [10**6, 1000, 1])
def test_every_run_is_held_once_with_its_job_and_part(log, batch_runs):
    jobs, batches, stretches, runs = held_of(log, batch_runs)
    assert jobs.keys.tolist() == sorted(set(runs["group_key"]))
    expected = {key: sorted(of_part) for key, of_part in runs.groupby(["group_key", "part"])["runtime_s"]}
    places = [(key, part) for key in jobs.keys for part in range(3)]
    assert dict(zip(places, stretches, strict=True)) == {place: expected.get(place, []) for place in places}
    assert [held.first for held in batches] == batch_bounds(jobs.n_runs, batch_runs)[:-1]
    assert len(batches) == {10**6: 1, 1000: 3, 1: 40}[batch_runs]


def test_jobs_whose_keys_share_a_hash_stay_apart(log, monkeypatch):
    _, _, expected, _ = held_of(log, 10**6)
    monkeypatch.setattr(characterise_held, "HASH", "length(group_key)")
    monkeypatch.setattr(characterise_held, "BY_HASH", "length(group_key) = key_hash")
    jobs, _, found, _ = held_of(log, 10**6)
    assert jobs.is_same_job == characterise_held.BY_KEY
    assert found == expected


@pytest.mark.parametrize("n_stretches", [1, 7, 2**17])
def test_values_are_put_behind_one_another_in_their_stretch_across_calls(n_stretches):
    rng = np.random.default_rng(1)
    stretches = rng.integers(0, n_stretches, 50_000).astype(np.uint32)  # 17 and 16 bits: more than 32 together
    values = rng.random(len(stretches))
    sizes = np.bincount(stretches, minlength=n_stretches)
    starts = np.cumsum(sizes) - sizes
    held, free = np.full(len(values), np.nan), starts.copy()
    for at in (slice(0, 1), slice(1, 1), slice(1, 40_000), slice(40_000, None)):
        put_by_stretch(held, free, stretches[at], values[at])
    assert (free == starts + sizes).all()
    assert (held == values[np.argsort(stretches, kind="stable")]).all()  # in the order in which they came


def test_batches_are_of_whole_jobs_and_alike_in_runs():
    n_runs = np.array([5, 1, 1, 1, 900, 2, 3, 90])
    bounds = batch_bounds(n_runs, 300)
    assert (bounds[0], bounds[-1]) == (0, len(n_runs))
    assert (np.diff(bounds) > 0).all()
    assert batch_bounds(np.ones(10, dtype=int), 5) == [0, 5, 10]
    assert batch_bounds(np.array([7]), 2) == [0, 1]


def test_medians_of_stretches_are_those_of_pandas_to_the_bit(monkeypatch):
    monkeypatch.setattr("tasks.jobs.characterise_medians.AT_ONCE", 64)
    rng = np.random.default_rng(2)
    sizes = np.r_[rng.integers(0, 9, 300), 100, 0, 63]
    starts = np.cumsum(sizes) - sizes
    values = rng.lognormal(5, 2, int(sizes.sum()))
    before = values.copy()
    number = np.repeat(np.arange(len(sizes)), sizes)
    expected = pd.Series(values).groupby(number).median().reindex(range(len(sizes)))
    np.testing.assert_array_equal(medians_of(values, starts, sizes), expected)
    assert (values == before).all()


def test_cells_of_a_hand_worked_batch():
    # job 4: D1 1 3 5 (median 3), D2 9; job 5: no D1, so in no cell; job 6: D1 0 0 (median 0: no ratio), D3 2
    starts = np.array([0, 3, 4, 4, 4, 5, 5, 7, 7, 8])
    held = HeldRuns(4, starts, np.array([5.0, 1, 3, 9, 7, 0, 0, 2]))
    medians = historic_medians_of(held)
    assert medians.tolist()[::2] == [3, 0]
    assert np.isnan(medians[1])
    bins = {"ratio": Bins(kind="ratio", low=0, high=4, n_bins=6), "delta": Bins(kind="delta", low=-2, high=2, n_bins=4)}
    cells, n = merge_cells(list(cells_of(held, medians, bins)))
    rows, found = CellNumbers(6, 4).read(cells)
    # ratios 1/3, 1, 5/3 and 3 in bins of width 1 from 0; deltas -2, 0, 2 and 6 in bins of width 2 from -2
    assert rows.tolist() == [16, 16, 17, 24, 26]
    assert found["ratio"].tolist() == [1, 2, 4, -1, -1]
    assert found["delta"].tolist() == [1, 2, 3, 2, 2]
    assert n.tolist() == [1, 2, 1, 2, 1]


def test_pieces_of_any_length_hold_the_same_runs(log, monkeypatch):
    with reading(log) as connection:
        expected = count_groups(connection, "log", CharacteriseParams())
    monkeypatch.setattr(characterise_held, "AT_ONCE", 37)
    with reading(log) as connection:
        found = count_groups(connection, "log", CharacteriseParams())
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.n_in_cell.tolist() == expected.n_in_cell.tolist()
    assert found.cell_bins["ratio"].tolist() == expected.cell_bins["ratio"].tolist()
    np.testing.assert_array_equal(found.medians_s, expected.medians_s)


@pytest.mark.parametrize("n", [0, 1, 2, 99, 5000])
@pytest.mark.parametrize("tail_share", [0.01, 0.3])
def test_the_upper_tail_knows_the_quantile_of_all_values(monkeypatch, n, tail_share):
    monkeypatch.setattr(characterise_tails, "SPARE_VALUES", 10)
    values = np.random.default_rng(n).lognormal(0, 2, n)
    tail = UpperTail(5000, tail_share)
    for at in range(0, n, 70):
        tail.add(np.r_[values[at : at + 70], np.nan])
    expected = [np.quantile(values, 1 - tail_share)] if n else []
    assert tail.quantile() == pytest.approx(expected, rel=1e-12)
