"""What explains the variation inside jobs: worked out by hand, and where the truth is known."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.explain.variance import causes_of, explain_variance, fetch_variance, sku_shares
from tasks.jobs.params import SummaryParams
from tasks.warehouse.connection import reading

PARAMS = SummaryParams()
NOON = datetime(2026, 1, 1, 12)


def frame(**columns):
    return pd.DataFrame(columns)


def test_two_jobs_of_two_runs_worked_out_by_hand():
    """Within a: y = -1, 1 and x = -1, 1, so b = 1; within b: y = -3, 3 and x = -1, 1, so b = 3.

    a fitted on b is left with 2² + 2² = 8, b fitted on a the same; sum y² = 20: R² = 1 - 16 / 20."""
    runtimes = np.exp([1.0, 3.0, 7.0, 13.0])
    found = explain_variance(runtimes, ["a", "a", "b", "b"], {"size": frame(x=[0.0, 2.0, 5.0, 7.0])})
    assert found is not None
    assert (found.n_runs, found.n_groups, found.n_folds) == (4, 2, 2)
    assert found.together == pytest.approx(0.2)
    assert [(one.cause, one.alone, one.unique) for one in found.causes] == [
        ("size", pytest.approx(0.2), pytest.approx(0.2))
    ]


def known(n_groups=60, n_runs=30, seed=5):
    """log runtime = its job's level + 0.8 a + 0.6 b + noise of 0.5, with a and b independent of deviation 1.

    So a explains 0.64 / 1.25 and b 0.36 / 1.25 of the variance within jobs."""
    rng = np.random.default_rng(seed)
    n = n_groups * n_runs
    groups = np.repeat([f"job {i}" for i in range(n_groups)], n_runs)
    level = np.repeat(rng.normal(0, 5, n_groups), n_runs)
    a, b, noise = rng.normal(0, 1, n), rng.normal(0, 1, n), rng.normal(0, 0.5, n)
    # each job has a level of its own in a as well, which says nothing about the variation inside it
    return np.exp(level + 0.8 * a + 0.6 * b + noise), groups, a + 3 * level, b, rng


def test_causes_that_are_independent_are_told_apart():
    runtimes, groups, a, b, _ = known()
    found = explain_variance(runtimes, groups, {"a": frame(x=a), "b": frame(x=b)})
    assert found.together == pytest.approx(1 / 1.25, abs=0.03)
    assert [one.alone for one in found.causes] == [pytest.approx(0.512, abs=0.04), pytest.approx(0.288, abs=0.04)]
    assert [one.unique for one in found.causes] == [pytest.approx(0.512, abs=0.04), pytest.approx(0.288, abs=0.04)]


def test_a_copy_of_a_cause_leaves_it_nothing_of_its_own():
    runtimes, groups, a, _, _ = known()
    found = explain_variance(runtimes, groups, {"a": frame(x=a), "copy": frame(x=2 * a + 1)})
    assert [one.alone for one in found.causes] == [pytest.approx(0.512, abs=0.04)] * 2
    assert [one.unique for one in found.causes] == [pytest.approx(0, abs=1e-9)] * 2


def test_many_columns_that_mean_nothing_explain_nothing():
    """In sample, 100 columns of noise would explain a third of 300 runs."""
    runtimes, groups, _, _, rng = known(n_groups=10)
    noise = pd.DataFrame(rng.normal(0, 1, (len(runtimes), 100)))
    found = explain_variance(runtimes, groups, {"noise": noise})
    assert found.together < 0.02


def test_missing_values_are_at_the_mean_of_their_job():
    runtimes, groups, a, _, _ = known()
    gaps = np.where(np.arange(len(a)) % 2 == 0, a, np.nan)
    found = explain_variance(runtimes, groups, {"a": frame(x=gaps, never=np.full(len(a), np.nan))})
    assert found.together == pytest.approx(0.512 / 2, abs=0.04)


def test_a_cause_that_differs_between_jobs_only_is_left_out():
    runtimes, groups, a, _, _ = known(n_groups=10)
    by_job = frame(x=pd.factorize(groups)[0].astype(float))
    found = explain_variance(
        runtimes, groups, {"a": frame(x=a), "by job": by_job, "empty": pd.DataFrame(index=by_job.index)}
    )
    assert [one.cause for one in found.causes] == ["a"]


def test_where_there_is_nothing_to_explain_there_is_no_answer():
    two = frame(x=[1.0, 2.0])
    assert explain_variance([1.0, 2.0], ["a", "a"], {"x": two}) is None  # one job only
    assert explain_variance([1.0, 2.0], ["a", "b"], {"x": two}) is None  # no job twice
    four = frame(x=[1.0, 2.0, 3.0, 4.0])
    assert explain_variance([5.0, 5.0, 7.0, 7.0], ["a", "a", "b", "b"], {"x": four}) is None
    assert explain_variance([5.0, 6.0, 7.0, 8.0], ["a", "a", "b", "b"], {}) is None


def vertices(seconds):
    """One vertex on each SKU for so long."""
    return [
        {"vertex": i, "sku": sku, "started_at": NOON, "ended_at": NOON + timedelta(seconds=s)}
        for i, (sku, s) in enumerate(seconds.items())
    ]


@pytest.fixture
def caused_runs():
    """20 jobs of 15 runs; log runtime = 1.0 load + 0.5 share of the old SKU (as 0 or 1) + 0.1 noise."""
    rng = np.random.default_rng(11)
    rows = []
    for i in range(300):
        load, is_old, level = rng.normal(), float(rng.random() < 0.5), i % 20
        runtime_s = float(np.exp(level / 5 + load + 0.5 * is_old + rng.normal(0, 0.1)))
        others = {"load_mean": load + 10, "vertices": vertices({"old" if is_old else "new": runtime_s})}
        rows.append(
            {"run_id": f"r{i:03}", "group_key": f"job {level}", "runtime_s": runtime_s, "input_bytes": 1e6, **others}
        )
    return rows


def test_the_shares_are_those_that_the_runs_were_made_with(job_log, caused_runs):
    with reading(job_log(caused_runs, source="log")) as connection:
        shares = fetch_variance(connection, "log", PARAMS)
    alone = {one.cause: one.alone for one in shares.causes}
    assert set(alone) == {"load", "SKU"}  # neither input nor tokens differ within a job
    total = 1 + 0.25 * 0.25 + 0.01  # load, a coin of height 0.5, noise
    assert alone["load"] == pytest.approx(1 / total, abs=0.05)
    assert alone["SKU"] == pytest.approx(0.0625 / total, abs=0.05)
    assert shares.together == pytest.approx(1 - 0.01 / total, abs=0.01)
    assert (shares.n_runs, shares.n_groups) == (300, 20)


def test_runs_that_were_changed_on_purpose_do_not_count(job_log, caused_runs):
    changed = [
        row | {"run_id": f"w{i}", "runtime_s": 1e6, "what_if": "steady_load"} for i, row in enumerate(caused_runs)
    ]
    with reading(job_log([*caused_runs, *changed], source="log")) as connection:
        assert fetch_variance(connection, "log", PARAMS).n_runs == 300


def test_the_load_of_the_skus_that_a_run_was_on_counts_beside_that_of_all(job_log):
    """The mean over the SKUs offered is always the same; the runtime follows the load of the one that was used."""
    rng = np.random.default_rng(2)
    rows = []
    for i in range(200):
        load, mine, other = float(rng.uniform(0, 1)), *rng.permutation(["a", "b"])
        skus = [{"sku": mine, "load_mean": load}, {"sku": other, "load_mean": 1 - load}]
        others = {"vertices": vertices({mine: 1.0}), "skus": skus, "load_mean": 0.5}
        rows.append({"run_id": f"{i}", "group_key": f"job {i % 4}", "runtime_s": float(np.exp(load)), **others})
    with reading(job_log(rows, source="log")) as connection:
        shares = fetch_variance(connection, "log", PARAMS)
    assert {one.cause: one.alone for one in shares.causes}["load"] == pytest.approx(1)


def test_vertex_time_is_shared_out_by_sku():
    times = pd.DataFrame({"run_id": ["1", "1", "2"], "sku": ["a", "b", "b"], "seconds": [3.0, 1.0, 5.0]})
    shares = sku_shares(pd.Series(["2", "none", "1"]), times)
    assert shares.columns.to_list() == ["a", "b"]
    assert shares.to_numpy().tolist()[0] == [0.0, 1.0]
    assert shares.iloc[1].isna().all()
    assert shares.to_numpy().tolist()[2] == [0.75, 0.25]


def test_a_log_without_vertices_has_no_sku_columns():
    runs = pd.DataFrame({"run_id": ["1"], "input_bytes": [1.0], "requested_cpus": [None]})
    runs = runs.assign(spare_tokens_available=1.0, spare_tokens_used=None, load_mean=0.1, load_sd=0.1)
    runs = runs.assign(used_load_mean=None, used_load_sd=None)
    found = causes_of(runs, pd.DataFrame({"run_id": [], "sku": [], "seconds": []}))
    assert found["SKU"].shape == (1, 0)
