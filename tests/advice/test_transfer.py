"""Recurring jobs on a machine type on which they have not run: work and slowdown apart."""

import numpy as np
import pandas as pd
import pytest

from tasks.advice.params import EstimateParams
from tasks.advice.transfer import (
    LEAST_POOL,
    LEVEL_KEPT,
    N_QUANTILES,
    NO_HABIT,
    Basis,
    Habit,
    Pool,
    Widening,
    basis_of,
    habit_without,
    run_draws,
    runs_on,
    stage_interval,
    transfer_job,
    transfer_stage,
    widening_without,
    with_slowdowns,
)
from tasks.errors import BadInput, NotFound
from tests.studies.transfer import StageMinima, evaluate_runs, evaluate_stages, stage_figures

PARAMS = EstimateParams()
START = pd.Timestamp("2026-01-01")


def fleet(rng: np.random.Generator, *, n_jobs: int = 30, n_runs: int = 60, load: float = 0.4) -> pd.DataFrame:
    """Vertices of jobs with one stage, half of their runs on `old`, half on `new`, which is 1.5 times as fast, and
    less loaded: its slowdowns spread half as much."""
    rows = []
    for job in range(n_jobs):
        work = 0.05 * np.exp(rng.normal(0, 1))
        for run in range(n_runs):
            kind = ("old", "new")[run % 2]
            cpu_s = work * np.exp(rng.normal(0, 0.2))
            slowdown = (15, 10)[run % 2] * np.exp(abs(rng.normal(0, (load, load / 2)[run % 2])))
            at = START + pd.Timedelta(minutes=run * n_jobs + job)
            rows.append((f"{job}-{run}", f"job{job}", "map", kind, at, cpu_s / 2 * slowdown, cpu_s, 2.0))
    columns = ["run_id", "job", "stage", "machine_type", "submitted_at", "duration_s", "cpu_s", "tokens"]
    return pd.DataFrame(rows, columns=columns)


def runtimes_of(vertices: pd.DataFrame) -> pd.Series:
    return vertices.groupby("run_id")["duration_s"].sum()


@pytest.fixture(scope="module")
def vertices() -> pd.DataFrame:
    return fleet(np.random.default_rng(1))


def without_runs_on(vertices: pd.DataFrame, job: str, machine_type: str) -> pd.DataFrame:
    return vertices[(vertices["job"] != job) | (vertices["machine_type"] != machine_type)]


# ---- worked out by hand


def test_work_is_cpu_time_for_each_token_and_slowdown_is_the_rest() -> None:
    """6 CPU seconds with 3 tokens are 2 of work; 10 s are 5 times that."""
    rows = fleet(np.random.default_rng(0), n_jobs=1, n_runs=1).assign(cpu_s=6.0, tokens=3.0, duration_s=10.0)
    row = with_slowdowns(rows).iloc[0]
    assert np.exp(row["log_work"]) == pytest.approx(2)
    assert np.exp(row["log_slowdown"]) == pytest.approx(5)


def test_vertices_without_cpu_time_or_tokens_are_left_out() -> None:
    rows = fleet(np.random.default_rng(0), n_jobs=1, n_runs=4)
    rows.loc[0, "cpu_s"], rows.loc[1, "cpu_s"], rows.loc[2, "tokens"] = 0.0, np.nan, 0.0
    assert with_slowdowns(rows)["run_id"].tolist() == ["0-3"]


def test_slowdowns_leave_a_job_out() -> None:
    rows = with_slowdowns(fleet(np.random.default_rng(2), n_jobs=10, n_runs=100))
    strange = rows.assign(log_slowdown=rows["log_slowdown"].where(rows["job"] != "job3", 99.0))
    told = Pool(strange).without("job3")
    assert told.n == 900
    assert told.quantiles.max() < 99
    assert Pool(strange).without("job4").quantiles.max() == 99
    assert (np.diff(told.quantiles, axis=1) >= 0).all()


def test_slowdowns_are_the_quantiles_of_their_bin_of_work() -> None:
    n = 2 * LEAST_POOL
    small = np.arange(n) < LEAST_POOL
    rows = pd.DataFrame({"job": "a", "log_work": np.where(small, 0.0, 1.0), "log_slowdown": np.where(small, 3.0, 7.0)})
    told = Pool(rows).without("b")
    assert told.at(np.array([-1.0, 0.0, 1.0, 2.0]))[:, 0].tolist() == [3, 3, 7, 7]
    assert told.quantiles.shape == (2, N_QUANTILES)


def test_a_stage_takes_its_work_times_the_slowdown_there() -> None:
    n = LEAST_POOL
    vertices = pd.DataFrame({"job": "a", "log_work": np.zeros(n)})
    here, there = (Pool(vertices.assign(log_slowdown=np.log(slowdown))).without("") for slowdown in (10.0, 4.0))
    stage = pd.DataFrame({"log_work": np.log([2.0, 3.0]), "log_slowdown": np.log([20.0, 20.0])})
    assert transfer_stage(stage, here, there, NO_HABIT)[:, 0].tolist() == pytest.approx([8, 12])
    half = Habit(level=np.log(3), share=0.5)  # twice the others' slowdown here, so √2 of it there, and 3
    assert transfer_stage(stage, here, there, half)[0, 0] == pytest.approx(8 * 3 * np.sqrt(2))


def test_a_habit_is_the_line_through_other_jobs_stages() -> None:
    x = np.linspace(-1, 1, 30)
    stages = pd.DataFrame(
        {"job": [f"j{at}" for at in range(30)], "deviation": x, "residual": 0.2 + 0.7 * x, "weight": 5.0}
    )
    told = habit_without(pd.concat([stages, stages.assign(job="me", residual=50.0)]), "me")
    assert told.share == pytest.approx(0.7)
    assert told.level == pytest.approx(LEVEL_KEPT * 0.2)
    assert habit_without(stages.head(10), "me") == NO_HABIT


def test_a_run_is_longer_by_its_stages_longest_vertices() -> None:
    """Stages of 4 (beside 1) and 6 s, 10 s together; on the target 8 and 6, 14: a run of 20 s takes 28."""
    own = pd.DataFrame({"run_id": "r", "stage": ["a", "a", "b"], "duration_s": [1.0, 4.0, 6.0]})
    durations = np.array([[2.0, 2.0], [8.0, 16.0], [6.0, 6.0]])
    assert run_draws(own, durations, pd.Series({"r": 20.0})).tolist() == [28.0, 44.0]


def test_intervals_are_widened_by_what_other_jobs_missed() -> None:
    draws = np.arange(1.0, 101.0)
    low, high = stage_interval(draws, 0.9)
    assert stage_interval(draws, 0.9, np.log(2)) == (pytest.approx(low / 2), pytest.approx(high * 2))
    scores = pd.DataFrame(
        {"job": [f"j{at}" for at in range(20)], "stage": "s", "score": np.arange(20.0), "weight": 1.0, "median": 0.5}
    )
    strange = pd.DataFrame({"job": ["me"], "stage": ["s"], "score": [99.0], "weight": [1.0], "median": [9.0]})
    told = widening_without(pd.concat([scores, strange]), "me", 0.9)
    assert told == Widening(interval=18.0, median=0.5, n_stages=20)  # the 19th of 20: 19/21 is 0.9 at least


def test_only_runs_that_touched_one_machine_type_count() -> None:
    rows = pd.DataFrame({"run_id": ["a", "a", "b"], "job": "j", "machine_type": ["x", "y", "x"]})
    assert runs_on(rows, "j", "x")["run_id"].tolist() == ["b"]


# ---- synthetic, with known truth


def test_a_job_on_another_machine_type_takes_what_it_takes_there(vertices: pd.DataFrame) -> None:
    job = "job4"
    basis = basis_of(without_runs_on(vertices, job, "new"), "old", "new", PARAMS)
    told = transfer_job(basis, runtimes_of(vertices), job, PARAMS)
    truth = vertices[(vertices["job"] == job) & (vertices["machine_type"] == "new")]["duration_s"].to_numpy(float)
    assert np.median(told.draws) == pytest.approx(np.median(truth), rel=0.15)
    assert stage_figures(told.draws, truth, 0.9)["ks"] < 0.35
    assert told.stages["stage"].tolist() == ["map"]
    assert told.rests_on.startswith("30 runs on old; slowdowns of 870 vertices of other jobs there and of 870 on new")


def told_of_the_later_half(rows: pd.DataFrame) -> tuple[Basis, pd.DataFrame, pd.DataFrame]:
    """What the earlier half teaches, the later half, and how well it is told, by method."""
    middle = rows["submitted_at"].quantile(0.5)
    basis = basis_of(rows[rows["submitted_at"] <= middle], "old", "new", PARAMS)
    later = with_slowdowns(rows[rows["submitted_at"] > middle])
    told = evaluate_stages(basis, later, 1 / 1.5, PARAMS, StageMinima(10, 10, 10)).set_index("method")
    return basis, later, told


def test_load_that_differs_is_no_speed() -> None:
    """`new` is 1.5 times as fast, and less loaded: scaling by 1.5 leaves the load of `old` in."""
    rows = fleet(np.random.default_rng(3), n_runs=160, load=0.8)
    _, _, told = told_of_the_later_half(rows)
    assert told.loc["ours", "ks"] < told.loc["× speed", "ks"] < told.loc["as it is", "ks"]
    assert told.loc["ours", "risk_error"] < told.loc["× speed", "risk_error"]


def test_calibrated_intervals_hold_what_they_promise() -> None:
    """Many runs, so that shares are known within a point or two; a calibration on half of the history errs upwards."""
    rows = fleet(np.random.default_rng(7), n_jobs=40, n_runs=160)
    basis, later, told = told_of_the_later_half(rows)
    assert told.loc["ours, calibrated", "coverage"] == pytest.approx(0.9, abs=0.04)
    whole = evaluate_runs(basis, runtimes_of(rows), later, 1 / 1.5, PARAMS).set_index("method")
    assert whole.loc["ours, calibrated", "coverage"] == pytest.approx(0.9, abs=0.04)


# ---- properties


def test_a_faster_target_never_takes_longer(vertices: pd.DataFrame) -> None:
    is_new = vertices["machine_type"] == "new"
    faster = vertices.assign(duration_s=vertices["duration_s"] / np.where(is_new, 2.0, 1.0))
    slow, fast = (
        transfer_job(basis_of(rows, "old", "new", PARAMS), runtimes_of(vertices), "job2", PARAMS)
        for rows in (vertices, faster)
    )
    assert (fast.draws < slow.draws).all()
    assert fast.late_ratio(0.5)[0] <= slow.late_ratio(0.5)[0]


def test_the_jobs_own_runs_on_the_target_hardly_matter(vertices: pd.DataFrame) -> None:
    """The answer rests on other jobs; they in turn are measured against all others, of which this is one of 30."""
    is_own = (vertices["job"] == "job2") & (vertices["machine_type"] == "new")
    strange = vertices.assign(duration_s=vertices["duration_s"] * np.where(is_own, 5.0, 1.0))
    first, second = (
        transfer_job(basis_of(rows, "old", "new", PARAMS), runtimes_of(vertices), "job2", PARAMS)
        for rows in (vertices, strange)
    )
    assert second.draws == pytest.approx(first.draws, rel=0.03)


# ---- what cannot be answered


def test_machine_types_and_logs_that_say_nothing_are_refused(vertices: pd.DataFrame) -> None:
    with pytest.raises(NotFound, match="no vertex ran on machine type 'gen9'; known: 'new', 'old'"):
        basis_of(vertices, "old", "gen9", PARAMS)
    with pytest.raises(BadInput, match="runs on old are there already; expected another machine type; mend --onto"):
        basis_of(vertices, "old", "old", PARAMS)
    with pytest.raises(BadInput, match="no vertex has CPU seconds and tokens"):
        basis_of(vertices.assign(cpu_s=np.nan), "old", "new", PARAMS)


def test_an_unknown_job_and_one_with_few_runs_are_refused(vertices: pd.DataFrame) -> None:
    basis = basis_of(vertices, "old", "new", PARAMS)
    with pytest.raises(NotFound, match="job 'nobody' has no completed run"):
        transfer_job(basis, runtimes_of(vertices), "nobody", PARAMS)
    with pytest.raises(BadInput, match="job 'job2' has 9 completed runs on old alone; expected at least 10"):
        own = vertices[(vertices["job"] == "job2") & (vertices["machine_type"] == "old")]
        transfer_job(basis, runtimes_of(own).head(9), "job2", PARAMS)


def test_a_short_history_is_refused() -> None:
    rows = fleet(np.random.default_rng(0), n_jobs=4, n_runs=20)
    with pytest.raises(BadInput, match=f"on one of the machine types; expected at least {LEAST_POOL}"):
        transfer_job(basis_of(rows, "old", "new", PARAMS), runtimes_of(rows), "job1", PARAMS)


def test_too_few_jobs_calibrate_nothing() -> None:
    rows = fleet(np.random.default_rng(0), n_jobs=8, n_runs=200)
    with pytest.raises(BadInput, match="stages of other jobs ran on both machine types often enough"):
        transfer_job(basis_of(rows, "old", "new", PARAMS), runtimes_of(rows), "job1", PARAMS)
