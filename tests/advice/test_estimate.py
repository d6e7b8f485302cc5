"""Runtimes of tasks on machines where they have not run."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.advice.estimate import (
    LEAST_SPREAD,
    LEVELLING,
    LOTARU_MULTIPLES,
    MEDIAN,
    backtest,
    calibrate,
    conformal_quantile,
    errors_between,
    estimate,
    extrapolate,
    fit_power,
    lotaru_calibration,
    score_ratio,
    workflow_errors,
)
from tasks.advice.params import CPU_ONE_THREAD, EstimateParams
from tasks.errors import BadInput, BadSetting, NotFound
from tasks.nodes.answers import thread_scores_of
from tasks.nodes.history import read_results
from tasks.nodes.params import ReadParams
from tests.studies.lotaru import CLOUD, cases, errors_of, multiples, ours, read_executions, score_factor

SIZES = np.array([1.0, 2.0, 3.0])
PARAMS = EstimateParams()


def scores_of(**scores: float) -> pd.DataFrame:
    rows = [(name, CPU_ONE_THREAD, score) for name, score in scores.items()]
    return pd.DataFrame(rows, columns=["machine_type", "aspect", "score"])


def runs_of(task: str, machine: str, pairs: list[tuple[float, float]], workflow: str = "w") -> pd.DataFrame:
    frame = pd.DataFrame(pairs, columns=["size", "runtime_s"])
    return frame.assign(workflow=workflow, task=task, machine=machine)


LINEAR = runs_of("align", "here", [(1, 12), (2, 22), (4, 42), (8, 82), (16, 162)])  # 2 + 10 a unit
SCORES = scores_of(here=1.0, fast=2.0, slow=0.5)


# ---- worked out by hand


def test_a_line_and_the_deviation_of_a_new_run_are_those_of_the_textbook() -> None:
    """Slope 1.5 about (2, 7/3); residuals 1/6, -1/3, 1/6; leverage at 4: 1 + 1/3 + 4/2."""
    predicted, deviation = fit_power(SIZES, np.array([1.0, 2.0, 4.0]), 4.0, 1.0)
    assert predicted == pytest.approx(7 / 3 + 1.5 * 2)
    assert deviation == pytest.approx(np.sqrt(1 / 6 * (1 + 1 / 3 + 2)))


def test_a_square_root_is_followed_by_the_power_of_a_half() -> None:
    predicted, deviation = fit_power(np.array([1.0, 4.0, 9.0]), np.array([1.0, 2.0, 3.0]), 16.0, 0.5)
    assert (predicted, deviation) == (pytest.approx(4.0), pytest.approx(0.0, abs=1e-9))


def test_a_backtest_is_the_mean_error_on_the_largest_runs() -> None:
    """Three runs on the line 10·size say 40 of the fourth, which took 44; then all four say of the fifth, 50 taken:
    slope 11.2 and mean 26 at 2.5, so 54."""
    error = backtest(np.array([1.0, 2, 3, 4, 5]), np.array([10.0, 20, 30, 44, 50]), 1.0)
    assert error == pytest.approx(np.mean([np.log(44 / 40), np.log(54 / 50)]))


def test_conformal_quantiles_count_the_new_value_too() -> None:
    values = np.arange(1.0, 10.0)
    assert conformal_quantile(values, 0.9) == 9.0  # the ⌈10 · 0.9⌉-th
    assert conformal_quantile(values, 0.8) == 8.0
    assert conformal_quantile(values[:8], 0.9) == np.inf  # eight values cannot promise 90 %


def test_a_calibration_is_in_spreads() -> None:
    """Truths e^(k · 0.1) times the estimate, spread 0.1: off by 1 to 9 spreads."""
    errors = pd.DataFrame({"workflow": [f"w{k}" for k in range(1, 10)], "case": "", "runtime_s": 100.0, "spread": 0.1})
    errors["truth_s"] = 100 * np.exp(0.1 * np.arange(1, 10))
    told = calibrate(errors, 0.9, "nine")
    assert (told.task, told.workflow) == (pytest.approx(9), pytest.approx(9))


def test_tasks_of_a_workflow_are_added_up_by_case() -> None:
    rows = pd.DataFrame(
        {
            "workflow": ["a", "a", "a"], "case": ["x", "x", "y"], "runtime_s": [10.0, 30.0, 5.0],
            "spread": [0.1, 0.3, 0.2], "truth_s": [12.0, 30.0, 5.0],
        }
    )  # fmt: skip
    sums = workflow_errors(rows).set_index("case")
    assert sums.loc["x", "runtime_s"] == 40
    assert sums.loc["x", "truth_s"] == 42
    assert sums.loc["x", "spread"] == pytest.approx((10 * 0.1 + 30 * 0.3) / 40)


def test_a_ratio_of_scores_is_source_over_target() -> None:
    assert score_ratio(SCORES, "here", "fast") == pytest.approx(0.5)
    twice = pd.concat([SCORES, scores_of(fast=8.0)])  # two benchmarks of one machine: 2 and 8, so 4
    assert score_ratio(twice, "here", "fast") == pytest.approx(0.25)


# ---- shapes


def test_a_task_that_levels_off_is_not_continued_on_a_line() -> None:
    sizes = np.array([1.0, 2, 4, 8, 16, 32])
    told = extrapolate(sizes, 5 + 3 * np.sqrt(sizes), 64.0)
    assert told.shape == LEVELLING
    assert told.runtime_s == pytest.approx(5 + 3 * 8)


def test_runs_of_one_size_have_their_median() -> None:
    told = extrapolate(np.full(3, 7.0), np.array([10.0, 30.0, 20.0]), 70.0)
    assert (told.runtime_s, told.shape) == (20.0, MEDIAN)
    assert told.spread == pytest.approx(np.std(np.log([10, 20, 30]), ddof=1))


def test_a_task_that_would_take_less_than_nothing_has_its_median() -> None:
    told = extrapolate(SIZES, np.array([30.0, 20.0, 10.0]), 100.0)
    assert (told.runtime_s, told.shape) == (20.0, MEDIAN)


def test_two_runs_make_a_line_whose_spread_is_what_the_shapes_disagree_by() -> None:
    told = extrapolate(np.array([1.0, 4.0]), np.array([10.0, 40.0]), 16.0)
    assert told.runtime_s == pytest.approx(160)
    assert told.spread > np.log(160 / 100)  # the square root says -20 + 30·4 = 100


# ---- properties


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1, 1e6), st.floats(0.01, 1e5)), min_size=2, max_size=12),
    st.floats(0.1, 10),
    st.floats(1e-3, 1e3),
)
def test_another_unit_of_time_scales_estimates_and_nothing_else(
    pairs: list[tuple[float, float]], size_ratio: float, unit: float
) -> None:
    sizes, runtimes = (np.array(column) for column in zip(*pairs, strict=True))
    size = float(sizes.max() * size_ratio)
    first, second = extrapolate(sizes, runtimes, size), extrapolate(sizes, runtimes * unit, size)
    if first.shape == second.shape:  # at a tie rounding decides
        assert second.runtime_s == pytest.approx(first.runtime_s * unit, rel=1e-4, abs=1e-4 * runtimes.max() * unit)
    assert first.runtime_s > 0


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_faster_target_never_takes_longer(one: float, other: float) -> None:
    scores = scores_of(here=1.0, a=min(one, other), b=max(one, other))
    slower, faster = (estimate(LINEAR, scores, "here", name, PARAMS) for name in ("a", "b"))
    for column in ("runtime_s", "low_s", "high_s"):
        assert (faster.tasks[column] <= slower.tasks[column] * (1 + 1e-9)).all()
        assert (faster.workflows[column] <= slower.workflows[column] * (1 + 1e-9)).all()


# ---- answers


def test_tasks_and_workflow_are_answered_with_what_they_rest_on() -> None:
    runs = pd.concat([LINEAR, runs_of("call", "here", [(1, 6), (2, 6), (4, 6)])])
    told = estimate(runs, SCORES, "here", "fast", PARAMS, size_ratio=2)
    tasks = told.tasks.set_index("task")
    assert tasks.loc["align", "runtime_s"] == pytest.approx(322 / 2)
    assert tasks.loc["align", "size"] == 32
    assert tasks.loc["call", "runtime_s"] == pytest.approx(3)
    whole = told.workflows.iloc[0]
    assert whole["runtime_s"] == pytest.approx(164)
    assert whole["n_tasks"] == 2
    assert (told.tasks["low_s"] < told.tasks["runtime_s"]).all()
    assert (told.tasks["high_s"] > told.tasks["runtime_s"]).all()
    assert whole["low_s"] < 164 < whole["high_s"]
    assert told.rests_on.startswith("8 runs of 2 tasks on here, times 0.500: the score cpu_one_thread of here over")


def test_an_interval_is_so_many_spreads_wide() -> None:
    told = estimate(LINEAR, SCORES, "here", "fast", PARAMS)
    row = told.tasks.iloc[0]
    assert np.log(row["high_s"] / row["runtime_s"]) == pytest.approx(lotaru_calibration(0.9).task * LEAST_SPREAD)
    assert row["runtime_s"] ** 2 == pytest.approx(row["low_s"] * row["high_s"])


def test_runs_on_both_machines_calibrate_in_place_of_what_was_published() -> None:
    rng = np.random.default_rng(5)
    parts = []
    for at in range(30):
        parts.append(LINEAR.assign(task=f"t{at}"))
        parts.append(runs_of(f"t{at}", "fast", [(16, 81 * float(np.exp(rng.normal(0, 0.02))))]))
    told = estimate(pd.concat(parts), SCORES, "here", "fast", PARAMS)
    assert told.calibration.rests_on == "30 tasks that ran on both"
    assert told.calibration.task < 1
    assert (told.tasks["n_target_runs"] == 1).all()
    few = estimate(pd.concat(parts[:10]), SCORES, "here", "fast", PARAMS)
    assert "Lotaru" in few.calibration.rests_on
    assert len(errors_between(pd.concat(parts), "here", "fast", 0.5)) == 30


def test_intervals_hold_what_they_promise_where_errors_follow_the_spread() -> None:
    """300 estimates calibrate, 4,000 more are asked: 90 % within two points."""
    rng = np.random.default_rng(11)

    def drawn(n: int) -> pd.DataFrame:
        spread = rng.uniform(0.1, 0.6, n)
        truth = 50 * np.exp(spread * rng.normal(0, 1.3, n))
        names = [f"w{at}" for at in range(n)]
        return pd.DataFrame({"workflow": names, "case": "", "runtime_s": 50.0, "spread": spread, "truth_s": truth})

    known, later = calibrate(drawn(300), 0.9, "drawn"), drawn(4000)
    is_inside = np.abs(np.log(later["truth_s"] / 50)) <= known.task * later["spread"]
    assert is_inside.mean() == pytest.approx(0.9, abs=0.03)
    assert known.task == pytest.approx(1.3 * 1.645, rel=0.12)


# ---- what cannot be answered


ONCE = pd.concat([LINEAR, runs_of("call", "here", [(1, 6)])])


@pytest.mark.parametrize(
    ("runs", "source", "target", "ratio", "error", "said"),
    [
        (
            LINEAR,
            "here",
            "there",
            1,
            NotFound,
            "machine 'there' has no score of 'cpu_one_thread'; known: 'fast', 'here'",
        ),
        (ONCE, "here", "fast", 1, BadInput, "task 'call' of 'w' has 1 finished run on here; expected at least 2"),
        (LINEAR, "slow", "fast", 1, NotFound, "no run on machine 'slow'; the traces have runs on 'here'"),
        (LINEAR, "here", "fast", 0, BadSetting, "size ratio 0: expected a number above 0"),
    ],
)
def test_what_cannot_be_answered_is_named(
    runs: pd.DataFrame, source: str, target: str, ratio: float, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        estimate(runs, SCORES, source, target, PARAMS, size_ratio=ratio)


# ---- the published data


@pytest.mark.slow
def test_the_shipped_calibration_is_what_the_published_workflows_say() -> None:
    folder = Path(os.environ.get("WHORL_DATASETS", "-"))
    if not (folder / "lotaru").exists() or not (folder / "sparecores").exists():
        pytest.skip("needs lotaru/ and sparecores/ in the folder WHORL_DATASETS")
    scores = thread_scores_of(read_results([str(folder / "sparecores" / "gcp")], ReadParams()).history)
    factors = score_factor(scores, {name: f"{name}-standard-4" for name in CLOUD})
    executions = read_executions(str(folder / "lotaru" / "execution_reports"))
    each = [
        errors_of(cases(executions, source, [name for name in CLOUD if name != source]), ours, factors)
        for source in CLOUD
    ]
    told = multiples(pd.concat(each, ignore_index=True), [row[0] for row in LOTARU_MULTIPLES])
    assert [(one.confidence, one.task, one.workflow) for one in told] == [
        (at, pytest.approx(task, abs=5e-4), pytest.approx(workflow, abs=5e-4))
        for at, task, workflow in LOTARU_MULTIPLES
    ]
