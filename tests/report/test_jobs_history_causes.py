"""The token skyline and the causes of variation: which runs they are of, and where nothing is shown."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.params import SummaryParams
from tasks.report.jobs_history import causes_of, fetch_skyline, fetch_variance, sku_shares
from tasks.warehouse.connection import reading

PARAMS = SummaryParams()
NOON = datetime(2026, 1, 1, 12)
WORDS = ("Tokens of a run over time", "What explains the variation inside jobs", "Causes of variation in numbers")


def steps(*tokens, guaranteed=4.0):
    return [{"at_s": float(i), "tokens": float(n), "guaranteed": guaranteed} for i, n in enumerate(tokens)]


def run(run_id, runtime_s, *tokens, **others):
    return {"run_id": run_id, "runtime_s": runtime_s, "group_key": "job", "skyline": steps(*tokens), **others}


def skyline_of(warehouse):
    with reading(warehouse) as connection:
        return fetch_skyline(connection, "log", PARAMS)


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
        rows.append(run(f"r{i:03}", runtime_s, 4, 8, 2, **others, input_bytes=1e6) | {"group_key": f"job {level}"})
    return rows


def test_of_the_longer_runs_the_one_with_the_largest_peak_over_its_allocation_is_shown(summarised):
    rows = [
        run("short", 1.0, 4, 40),
        run("long", 9.0, 4, 12, 2),
        run("as often", 9.0, 2, 6) | {"skyline": steps(2, 6, guaranteed=2.0)},
        run("allocated", 9.0, 4, 20, 2) | {"skyline": steps(4, 20, guaranteed=10.0)},
        run("what if", 9.0, 4, 80, what_if="no_spare"),
        run("failed", 9.0, 4, 80, status="failed"),
        *(run(f"usual {i}", 3.0, 4, 5) for i in range(20)),
    ]
    found = skyline_of(summarised(rows))
    assert (found.run_id, found.peak_tokens, found.allocation, found.n_finished) == ("long", 12.0, 4.0, 24)
    assert found.steps[["at_s", "tokens"]].to_numpy().tolist() == [[0, 4], [1, 12], [2, 2]]


def test_a_job_with_few_runs_gives_the_skyline_only_where_there_is_no_better(summarised):
    rare = [run(f"rare {i}", 9.0, 4, 80) | {"group_key": "rare"} for i in range(3)]
    usual = [run(f"usual {i}", 9.0, 4, 5) for i in range(20)]
    assert skyline_of(summarised([*rare, *usual])).group_key == "job"
    assert skyline_of(summarised(rare, source="log")).group_key == "job"


def test_the_shares_are_those_that_the_runs_were_made_with(summarised, caused_runs):
    with reading(summarised(caused_runs)) as connection:
        shares = fetch_variance(connection, "log", PARAMS)
    alone = {one.cause: one.alone for one in shares.causes}
    assert set(alone) == {"load", "SKU"}  # neither input nor tokens differ within a job
    total = 1 + 0.25 * 0.25 + 0.01  # load, a coin of height 0.5, noise
    assert alone["load"] == pytest.approx(1 / total, abs=0.05)
    assert alone["SKU"] == pytest.approx(0.0625 / total, abs=0.05)
    assert shares.together == pytest.approx(1 - 0.01 / total, abs=0.01)
    assert (shares.n_runs, shares.n_groups) == (300, 20)


def test_runs_that_were_changed_on_purpose_do_not_count(summarised, caused_runs):
    changed = [
        row | {"run_id": f"w{i}", "runtime_s": 1e6, "what_if": "steady_load"} for i, row in enumerate(caused_runs)
    ]
    with reading(summarised([*caused_runs, *changed])) as connection:
        assert fetch_variance(connection, "log", PARAMS).n_runs == 300


def test_the_load_of_the_skus_that_a_run_was_on_counts_beside_that_of_all(summarised):
    """The mean over the SKUs offered is always the same; the runtime follows the load of the one that was used."""
    rng = np.random.default_rng(2)
    rows = []
    for i in range(200):
        load, mine, other = float(rng.uniform(0, 1)), *rng.permutation(["a", "b"])
        skus = [{"sku": mine, "load_mean": load}, {"sku": other, "load_mean": 1 - load}]
        others = {"vertices": vertices({mine: 1.0}), "skus": skus, "load_mean": 0.5}
        rows.append({"run_id": f"{i}", "group_key": f"job {i % 4}", "runtime_s": float(np.exp(load)), **others})
    with reading(summarised(rows)) as connection:
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
