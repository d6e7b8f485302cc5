"""Replayed searches: by hand on a small table, resumed, and on scout beside what was published."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.advice.machines import MachineType, stated_need
from tasks.advice.params import ReplayParams
from tasks.advice.replay import METHODS, WAYS, LearnableRuns, figures_of, jobs_of, parts_of, replay, replay_all
from tasks.advice.tables import read_machines, read_runs
from tasks.errors import BadInput

MACHINES = {"a": MachineType("a", 2, 4, 1.0), "b": MachineType("b", 4, 8, 2.0)}
SMALL = ReplayParams(searches=40, runs=4, target_percentiles=(50,))
SCOUT = Path(os.environ.get("WHORL_DATASETS", "")) / "scout" / "runs.csv"
NEEDS = {  # of the ten workloads that Ruya's authors published, as their code infers them
    "join_huge_spark": 0,
    "kmeans_bigdata_spark15": 503,
    "lr_bigdata_spark": np.nan,
    "lr_huge_spark": np.nan,
    "naive-bayes_huge_spark15": 395,
    "pagerank_bigdata_hadoop": 0,
    "pagerank_huge_hadoop": 0,
    "pagerank_huge_spark": 42,
    "regression_huge_spark15": np.nan,
    "terasort_bigdata_hadoop": 0,
}


def table(*, failed: tuple[str, int] | None = None) -> pd.DataFrame:
    """Two applications with two inputs each on four configurations; costs 1 to 4 in the order of the rows."""
    rows = []
    for job, scale in (("sort_small", 1.0), ("sort_big", 3.0), ("join_small", 1.0), ("join_big", 2.0)):
        for cost, (kind, n) in enumerate([("a", 1), ("a", 2), ("b", 1), ("b", 2)], 1):
            runtime_s = scale * cost * 3_600 / (n * MACHINES[kind].price_per_h)
            rows.append((job, kind, n, runtime_s, (kind, n) != failed))
    runs = pd.DataFrame(rows, columns=["job", "machine_type", "nodes", "runtime_s", "completed"])
    return runs.assign(application=runs["job"].str.split("_").str[0], family=runs["job"].str.split("_").str[0])


def test_random_search_costs_what_chance_says() -> None:
    jobs = jobs_of(table(), MACHINES, {})
    params = SMALL.model_copy(update={"searches": 2_000, "target_percentiles": ()})
    found = replay(jobs[0], LearnableRuns(jobs), "random", "completed", params)
    means = found.groupby("run")["ratio"].mean()
    assert means[1] == pytest.approx(2.5, abs=0.1)  # 1, 2, 3 or 4
    assert means[2] == pytest.approx(10 / 6, abs=0.06)  # the least of two of them: 3, 2, 1 pairs
    assert means[4] == 1
    assert found.groupby("run")["spent"].mean()[4] == pytest.approx(10)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_ends_with_the_optimum_and_never_gets_dearer(method: str) -> None:
    jobs = jobs_of(table(failed=("a", 1)), MACHINES, {job: stated_need(0) for job in set(table()["job"])})
    few = SMALL.model_copy(update={"searches": 10})
    for candidates in ("completed", "all"):
        found = replay(jobs[0], LearnableRuns(jobs), method, candidates, few)  # type: ignore[arg-type]
        for _, one in found.groupby(["percentile", "seed"], dropna=False):
            assert one["ratio"].is_monotonic_decreasing
            assert one["ratio"].iloc[-1] == 1


def test_a_search_that_has_found_nothing_valid_counts_as_such() -> None:
    jobs = jobs_of(table(failed=("a", 1)), MACHINES, {})
    found = replay(jobs[0], LearnableRuns(jobs), "random", "all", SMALL)
    first = found[(found["run"] == 1) & found["percentile"].isna()]
    assert np.isinf(first["ratio"]).equals(first["is_failed"])
    figures = figures_of(found, SMALL)
    assert figures["all.random.mean.1"] is None
    assert "had found nothing valid" in figures["all.random.mean.1.reason"]
    assert figures["all.random.valid.1"] == pytest.approx(1 - first["is_failed"].mean())


def test_a_failed_run_of_unknown_time_is_not_one_that_cost_nothing() -> None:
    runs = table(failed=("a", 1))
    runs["runtime_s"] = runs["runtime_s"].where(runs["completed"])
    jobs = jobs_of(runs, MACHINES, {})
    found = replay(jobs[0], LearnableRuns(jobs), "random", "all", SMALL)
    has_failed = found["is_failed"].groupby([found["percentile"], found["seed"]], dropna=False).cummax()
    assert found["spent"].isna().equals(has_failed)
    figures = figures_of(found, SMALL)
    assert figures["all.random.spent.3"] is None
    assert "of the searches had failed runs of unknown time" in figures["all.random.spent.3.reason"]
    assert figures_of(found[~has_failed], SMALL)["all.random.spent.1"] >= 1


def test_a_figure_after_more_runs_than_there_are_configurations_is_null_with_the_reason() -> None:
    jobs = jobs_of(table(), MACHINES, {})
    longer = SMALL.model_copy(update={"runs": 6})
    figures = figures_of(replay(jobs[0], LearnableRuns(jobs), "random", "completed", longer), longer)
    for measure in ("mean", "median", "hit", "valid", "spent"):
        assert figures[f"completed.random.{measure}.6"] is None
        assert figures[f"completed.random.{measure}.6.reason"] == "no job has so many configurations"


def test_a_target_makes_slow_runs_invalid() -> None:
    jobs = jobs_of(table(), MACHINES, {})
    found = replay(jobs[0], LearnableRuns(jobs), "random", "completed", SMALL)
    with_target = found[found["percentile"] == 50]
    assert with_target["is_late"].mean() == 0.25  # 1, 1, 1.5 and 1 hours
    figures = figures_of(found, SMALL)
    assert figures["completed.target.random.late"] == 0.25
    assert figures["completed.random.late"] == 0


def test_the_interval_of_a_difference_holds_it_and_ours_has_none() -> None:
    jobs = jobs_of(table(), MACHINES, {})
    figures = figures_of(replay_all(jobs, SMALL, methods=("random", "learned")), SMALL)
    key = "completed.random.minus_ours.3"
    assert figures[f"{key}.low"] <= figures[key] <= figures[f"{key}.high"]
    assert "completed.learned.minus_ours.3" not in figures


def test_what_is_done_is_not_searched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = jobs_of(table(), MACHINES, {})
    first = replay_all(jobs, SMALL, tmp_path, ("random", "fixed"))
    (tmp_path / "completed-fixed-sort_big.parquet").unlink()
    monkeypatch.setitem(WAYS, "random", replace(WAYS["random"], method=None))  # type: ignore[arg-type]
    again = replay_all(jobs, SMALL, tmp_path, ("random", "fixed"))
    columns = ["method", "job", "percentile", "seed", "run", "ratio"]
    one, other = (part[columns].sort_values(columns).reset_index(drop=True) for part in (first, again))
    pd.testing.assert_frame_equal(one, other)


def test_methods_that_need_what_a_job_lacks_are_left_out() -> None:
    jobs = jobs_of(table(), MACHINES, {"sort_big": stated_need(3)})
    parts = parts_of(jobs, list(METHODS))
    assert {part.job for part in parts if part.method == "ruya"} == {"sort_big"}
    alone = [job for job in jobs if job.name == "sort_big"]
    assert not [part for part in parts_of(alone, list(METHODS)) if part.method.startswith("other_inputs")]


def test_an_application_is_learned_from_others_alone() -> None:
    jobs = jobs_of(table(), MACHINES, {})
    training = LearnableRuns(jobs)
    assert training.kernel("sort") == LearnableRuns([job for job in jobs if job.application == "join"]).kernel("sort")
    assert [len(runs.candidate) for runs in training.other_inputs(jobs[0])] == [4]


def test_repeats_count_by_their_median_and_one_that_completed_by_that() -> None:
    runs = table()
    more = (
        runs[runs["job"] == "sort_small"]
        .iloc[[0, 0, 0]]
        .assign(runtime_s=[5.0, 7.0, 1e6], completed=[True, True, False])
    )
    jobs = jobs_of(pd.concat([runs[runs["job"] == "sort_small"].iloc[1:], more]), MACHINES, {})
    at = jobs[0].candidates.places["a", 1]
    assert jobs[0].runtime_s[at] == 6
    assert jobs[0].is_completed[at]


def test_runs_that_nothing_can_be_learned_from_are_refused() -> None:
    with pytest.raises(BadInput, match="nothing about b"):
        jobs_of(table(), {"a": MACHINES["a"]}, {})
    with pytest.raises(BadInput, match="no job with two configurations that completed"):
        jobs_of(table().assign(completed=False), MACHINES, {})


def test_a_job_that_hardly_ever_completed_is_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    runs = table()
    runs.loc[runs["job"] == "join_big", "completed"] = False
    assert [job.name for job in jobs_of(runs, MACHINES, {})] == ["join_small", "sort_big", "sort_small"]
    assert "job join_big is left out" in caplog.text


@pytest.fixture(scope="module")
def scout() -> list:  # type: ignore[type-arg]
    if not SCOUT.is_file():
        pytest.skip("scout is not in WHORL_DATASETS")
    machines = read_machines(str(Path(__file__).parents[2] / "conf" / "machines.csv"), {}).types
    return jobs_of(read_runs(str(SCOUT), {}), machines, {job: stated_need(gb) for job, gb in NEEDS.items()})


@pytest.mark.parametrize(
    ("method", "after_3", "after_6"),
    [("cherrypick", (1.394, 1.735), (1.169, 1.347)), ("ruya", (1.122, 1.421), (1.0, 1.162))],
)
def test_cherrypick_and_ruya_find_what_was_published_of_them(
    scout: list,
    method: str,
    after_3: tuple[float, float],
    after_6: tuple[float, float],  # type: ignore[type-arg]
) -> None:
    params = ReplayParams(searches=25, runs=6, target_percentiles=())
    published = [job for job in scout if job.name in NEEDS]
    figures = figures_of(
        pd.concat(replay(job, LearnableRuns(scout), method, "completed", params) for job in published), params
    )
    for n, (median, mean) in ((3, after_3), (6, after_6)):
        assert figures[f"completed.{method}.median.{n}"] == pytest.approx(median, abs=0.06)
        assert figures[f"completed.{method}.mean.{n}"] == pytest.approx(mean, abs=0.12)


@pytest.mark.slow
def test_ours_is_cheaper_than_cherrypick_and_ruya_on_scout(scout: list) -> None:  # type: ignore[type-arg]
    params = ReplayParams(searches=10, runs=6, target_percentiles=())
    published = [job for job in scout if job.name in NEEDS]
    training = LearnableRuns(scout)
    methods = ("cherrypick", "ruya", "learned", "learned_memory")
    figures = figures_of(
        pd.concat(replay(job, training, one, "completed", params) for job in published for one in methods), params
    )
    assert figures["completed.learned.mean.6"] < 1.13
    assert figures["completed.learned_memory.mean.6"] < 1.1
    assert figures["completed.cherrypick.minus_ours.6.low"] > 0
    assert figures["completed.ruya.minus_ours.6.low"] > 0


def test_scores_bring_the_methods_that_use_them() -> None:
    jobs = jobs_of(table(), MACHINES, {})
    quick = SMALL.model_copy(update={"searches": 3, "target_percentiles": ()})
    found = replay_all(jobs, quick, methods=("learned",), scores={"cpu_one_thread": {"a": 1.0, "b": 2.0}})
    assert set(found["method"]) == {"learned", "cherrypick_scores", "arrow_scores"}
