"""Characterising a log: planted shapes are found and written, twice the same; odd logs get an answer or one line."""

import logging

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput, NotFound
from tasks.jobs.characterise import characterise, lowered, read_characterised
from tasks.jobs.normalisation import normalise
from tasks.jobs.pmf import histogram
from tasks.jobs.predict.preparation import assign_periods
from tasks.jobs.predict.rows import read_runs
from tasks.jobs.shape_params import (
    CharacteriseParams,
    ShapeParams,
)
from tasks.jobs.shapes import (
    fit_shapes,
    rank_by_runs,
)
from tasks.jobs.synthetic import SimulatedJob, simulate_runs
from tasks.warehouse.connection import fetch
from tasks.warehouse.hashes import hash_tables

SHAPES = ShapeParams(k=2)
PARAMS = CharacteriseParams(shapes=SHAPES)
START = pd.Timestamp("2026-01-01")


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
    assert (found.n_groups, found.k) == (12, {"ratio": 2, "delta": 2})
    labels = table(warehouse, "group_shapes").query("kind == 'ratio'").pivot_table("label", "group_key", "part")
    assert labels.columns.tolist() == ["D1", "D2", "D3", "all"]
    assert (labels.to_numpy() == (np.arange(12) % 2)[:, None]).all()  # the narrow shape comes first
    curve = table(warehouse, "shape_curve").query("kind == 'ratio'")
    assert curve[curve["is_elbow"]]["k"].tolist() == [2]
    assert table(warehouse, "shape_rivals")["n_groups"].tolist() == [12] * 6
    assert table(warehouse, "bin_comparisons").query("kind == 'ratio'")["stability"].tolist()[2] == 1


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


@pytest.mark.slow
def test_characterising_twice_changes_no_table_and_leaves_other_sources_alone(job_log):
    job_log(planted(n_jobs=4), source="other")
    warehouse = job_log(planted())
    other = characterise(warehouse, "other", PARAMS)
    first = characterise(warehouse, "log", PARAMS)
    before = hash_tables(warehouse)
    assert characterise(warehouse, "log", PARAMS) == first
    assert hash_tables(warehouse) == before
    assert table(warehouse, "group_shapes", "other")["group_key"].nunique() == other.n_groups == 4


def test_a_label_needs_its_support_and_the_median_tells_its_source(job_log):
    runs = planted(n_jobs=4)
    runs = pd.concat(
        [runs, pd.DataFrame({"group_key": "new", "runtime_s": 30.0, "submitted_at": runs[-5:]["submitted_at"]})]
    )
    warehouse = job_log(runs)
    characterise(warehouse, "log", CharacteriseParams(shapes=SHAPES, label_support=5))
    new = table(warehouse, "group_shapes").query("group_key == 'new' and kind == 'delta'")
    assert new["part"].tolist() == ["D3", "all"]
    assert new["n_runs"].tolist() == [4, 4]  # the first has nothing before it
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
        assert characterise(warehouse, "log", PARAMS).k == k
    assert told in caplog.text


def test_the_lowered_support_is_that_of_the_kth_job_but_enough_for_a_label():
    support = np.array([9, 7, 5, 2, 0])
    found = [lowered(support, ShapeParams(k=k), label_support=3).min_support for k in (1, 2, 3, 4, 100)]
    assert found == [9, 7, 5, 3, 3]
    assert lowered(np.array([2, 1]), ShapeParams(k=1), label_support=3).min_support == 2
    assert lowered(np.array([20, 1]), ShapeParams(k=8), label_support=3) == ShapeParams(k=8)


def test_what_is_refused_is_said_in_one_line(job_log):
    warehouse = job_log([{"runtime_s": 1.0}])
    with pytest.raises(NotFound, match=r"^source 'nothing' has no job runs"):
        characterise(warehouse, "nothing", PARAMS)
    with pytest.raises(BadInput, match=r"^job log: runs of 1 different times of submission; expected at least three"):
        characterise(warehouse, "log", PARAMS)
    with pytest.raises(NotFound, match=r"^source 'log' has no shapes yet"):
        read_characterised(warehouse, "log")


@pytest.mark.slow
def test_a_hundred_thousand_jobs_of_three_runs_get_shapes(job_log):
    rng = np.random.default_rng(0)
    n = 300_000
    keys = rng.permutation(np.repeat([f"job {i}" for i in range(n // 3)], 3))
    times = START + pd.to_timedelta(np.arange(n), unit="s")
    runs = pd.DataFrame({"group_key": keys, "runtime_s": rng.lognormal(3, 0.5, n).round(2), "submitted_at": times})
    shapes = ShapeParams()
    found = characterise(job_log(runs), "log", CharacteriseParams(shapes=shapes))
    assert (found.n_groups, found.k) == (100_000, {"ratio": 8, "delta": 8})
