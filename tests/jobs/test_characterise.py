"""Counting, clustering and writing shapes: against plain pandas, planted shapes, and what is refused."""

import logging

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput, NotFound
from tasks.jobs.characterise import (
    KINDS,
    PARTS,
    bin_sql,
    characterise,
    count_groups,
    lowered,
    read_characterised,
    split_runs,
)
from tasks.jobs.normalisation import Bins, derived_bins, histogram, historic_medians, normalise
from tasks.jobs.params import BinParams, CharacteriseParams, ShapeParams, SplitParams
from tasks.jobs.predict.preparation import assign_periods, read_runs
from tasks.jobs.shapes import fit_shapes, log_posterior, rank_by_runs
from tasks.warehouse.connection import fetch, reading
from tests.jobs.synthetic import SimulatedJob, simulate_runs

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
    return runs.assign(median_s=historic_medians(runs, history)["median_s"]), history


@pytest.mark.parametrize("batch_values", [10**6, 300, 1])
def test_medians_and_histograms_are_those_of_the_pure_functions(log, monkeypatch, batch_values):
    monkeypatch.setattr("tasks.jobs.characterise.BATCH_VALUES", batch_values)
    params = CharacteriseParams()
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
    found = counts.log_posteriors("ratio", centres)
    for part in range(len(PARTS)):
        dense = counts.dense("ratio", np.arange(counts.n_groups), part)
        expected = log_posterior(dense, centres)
        np.testing.assert_allclose(found[:, part], expected, rtol=1e-9, atol=1e-9)


BINS = [
    Bins(kind="ratio", low=0, high=10), Bins(kind="delta", low=-900, high=900),
    Bins(kind="delta", low=-0.1, high=0.1, n_bins=3), Bins(kind="delta", low=-900, high=900, n_bins=500),
    Bins(kind="ratio", low=0, high=1.1, n_bins=77), Bins(kind="ratio", low=0, high=1 / 3, n_bins=10_000),
]  # fmt: skip


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


@pytest.mark.parametrize("kind", ["ratio", "delta"])
def test_ranges_from_the_data_are_the_derived_ones_of_the_history(job_log, kind):
    rng = np.random.default_rng(3)
    runs = pd.DataFrame({
        "group_key": [f"job {i % 10}" for i in range(1000)] + [f"rare {i}" for i in range(50)],
        "runtime_s": np.r_[rng.lognormal(3, 1, 1000), rng.lognormal(9, 1, 50)],
    })  # fmt: skip
    runs["submitted_at"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.permutation(1050), unit="min")
    params = BinParams(ranges="data")
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
def test_a_split_by_time_is_that_of_assign_periods(job_log, seconds):
    times = FIRST + pd.to_timedelta(np.asarray(seconds, dtype=float).round(6), unit="s")
    warehouse = log_of(job_log, times)
    for history_share, training_share in ((0.5, 0.3), (0.01, 0.01), (0.9, 0.09)):
        params = SplitParams(history_share=history_share, training_share=training_share)
        found, expected = parts_of(warehouse, params)
        assert found == expected, params
        assert set(found) == {0, 1, 2}


@pytest.mark.parametrize("names", [["D1", "D2", "D3"], ["z", "y", "x", "w"], ["a", "b"]])
def test_recorded_periods_are_those_of_assign_periods(job_log, names):
    periods = np.repeat(names, 10).astype(object)
    periods[::7] = None
    periods[12] = names[0]  # late for its period
    times = FIRST + pd.to_timedelta(np.arange(len(periods)) % 10 + np.arange(len(periods)) // 10 * 5, unit="h")
    found, expected = parts_of(log_of(job_log, times, period=periods), SplitParams())
    assert found == expected


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


SHAPES = ShapeParams(k=2)
PARAMS = CharacteriseParams(shapes=SHAPES)


def planted(n_jobs=12, n_runs=80):
    """Steady jobs (even) and restless ones (odd), their runs mixed over time."""
    jobs = [
        SimulatedJob(name=f"{i:02}", n_runs=n_runs, median_s=20.0 + i, log_deviation=(0.05, 0.5)[i % 2])
        for i in range(n_jobs)
    ]
    runs = simulate_runs(jobs, np.random.default_rng(1)).sample(frac=1, random_state=2)
    times = START + pd.to_timedelta(np.arange(len(runs)), unit="min")
    return pd.DataFrame({"group_key": runs["group_key"], "runtime_s": runs["runtime_s"], "submitted_at": times})


def table(warehouse, name, source="log"):
    return fetch(warehouse, f"SELECT * FROM jobs.{name} WHERE source = $source ORDER BY ALL", {"source": source})


def test_planted_shapes_are_found_and_every_job_gets_its_own(job_log):
    warehouse = job_log(planted())
    found = characterise(warehouse, "log", PARAMS)
    assert (found["n_groups"], found["k"]) == (12, {"ratio": 2, "delta": 2})
    labels = table(warehouse, "group_shapes").query("kind == 'ratio'").pivot_table("label", "group_key", "part")
    assert labels.columns.tolist() == ["D1", "D2", "D3", "all"]
    assert (labels.to_numpy() == (np.arange(12) % 2)[:, None]).all()  # the narrow shape comes first
    curve = table(warehouse, "shape_curve").query("kind == 'ratio'")
    assert curve[curve["is_elbow"]]["k"].tolist() == [2]


def test_table_2_is_that_of_the_pure_functions(job_log):
    warehouse = job_log(planted())
    characterise(warehouse, "log", PARAMS)
    runs = read_runs(warehouse, "log")
    history = runs[assign_periods(runs, PARAMS.split) == "D1"]
    medians = history.groupby("group_key")["runtime_s"].transform("median")
    codes = pd.factorize(history["group_key"], sort=True)[0]
    for kind, one in read_characterised(warehouse, "log").items():
        shapes = one.shapes
        values = normalise(history["runtime_s"], medians, kind)
        fit = fit_shapes(histogram(values, codes, 12, shapes.bins), shapes.bins, SHAPES)
        ranked, expected = rank_by_runs(fit, values, codes)
        found = table(warehouse, "shapes").query("kind == @kind").sort_values("shape").reset_index(drop=True)
        pd.testing.assert_frame_equal(found[expected.columns], expected, rtol=1e-9)
        np.testing.assert_allclose(shapes.centres, ranked.shapes.centres, atol=1e-12)
        assert shapes.n_groups.tolist() == ranked.shapes.n_groups.tolist()
        assert shapes.inertia == pytest.approx(ranked.shapes.inertia)


def test_a_label_needs_its_support_and_the_median_tells_its_source(job_log):
    runs = planted(n_jobs=4)
    runs = pd.concat(
        [runs, pd.DataFrame({"group_key": "new", "runtime_s": 30.0, "submitted_at": runs[-3:]["submitted_at"]})]
    )
    warehouse = job_log(runs)
    characterise(warehouse, "log", CharacteriseParams(shapes=SHAPES))
    new = table(warehouse, "group_shapes").query("group_key == 'new' and kind == 'delta'")
    assert new["part"].tolist() == ["D3", "all"]
    assert new["n_runs"].tolist() == [2, 2]  # the first has nothing before it
    assert new["median_source"].tolist() == ["before", "before"]
    assert new["median_s"].isna().all()
    assert new["label"].isna().all()
    assert np.stack(new["posterior"]).sum(axis=1) == pytest.approx([1, 1])


def test_nothing_stays_of_a_source_that_is_characterised_anew_with_fewer_shapes(job_log):
    warehouse = job_log(planted())
    for k in (3, 1):
        characterise(warehouse, "log", CharacteriseParams(shapes=SHAPES.model_copy(update={"k": k})))
    shapes = table(warehouse, "shapes")
    assert shapes["shape"].tolist() == [0, 0]
    assert [len(centre) for centre in shapes["centre"]] == [200, 200]


@pytest.mark.parametrize(
    ("runs", "k", "told"),
    [
        (planted(n_jobs=1), {"ratio": 1, "delta": 1}, "k 2 for 1 jobs with 1 different distributions"),
        (
            pd.DataFrame({"group_key": np.repeat(["a", "b"], 50), "runtime_s": 5.0}),
            {"ratio": 1, "delta": 1},
            "k 2 for 2 jobs with 1 different distributions",
        ),
        (pd.DataFrame({"group_key": "zero", "runtime_s": [0.0] * 60}), {"delta": 1}, "no ratio shapes: no run in"),
        (planted(n_jobs=6, n_runs=8), {"ratio": 2, "delta": 2}, "no job has 20 runs in the history; min_support "),
        (planted(n_jobs=30, n_runs=1), {"ratio": 1, "delta": 1}, "min_support 1, which 15 jobs have"),
    ],
    ids=["one job", "constant runtimes", "no time", "little support", "each job once"],
)
def test_a_log_with_too_little_gets_what_it_allows_and_is_told(job_log, caplog, runs, k, told):
    warehouse = job_log(runs.sample(frac=1, random_state=0) if "submitted_at" not in runs else runs)
    with caplog.at_level(logging.WARNING):
        assert characterise(warehouse, "log", PARAMS)["k"] == k
    assert told in caplog.text


def test_the_lowered_support_is_that_of_the_kth_job_but_enough_for_a_label():
    support = np.array([9, 7, 5, 2, 0])
    found = [lowered(support, ShapeParams(k=k)).min_support for k in (1, 2, 3, 4, 100)]
    assert found == [9, 7, 5, 3, 3]
    assert lowered(np.array([2, 1]), ShapeParams(k=1)).min_support == 2
    assert lowered(np.array([20, 1]), ShapeParams(k=8)) == ShapeParams(k=8)


def test_what_is_refused_is_said_in_one_line(job_log):
    warehouse = job_log([{"runtime_s": 1.0}])
    with pytest.raises(NotFound, match=r"^source 'nothing' has no job runs"):
        characterise(warehouse, "nothing", PARAMS)
    with pytest.raises(NotFound, match=r"^source 'log' has no shapes yet"):
        read_characterised(warehouse, "log")
