"""The protocol on telemetry whose truth is known, and on telemetry that is hard: figures, or one clear line."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.report.evaluation import write_tables
from tasks.workloads.evaluate.known import METHODS
from tasks.workloads.evaluate.protocol import evaluate_read, evaluate_runs
from tasks.workloads.params import EvaluateParams, IdentifyParams, ReadParams, WindowParams

QUICK, PARAMS = EvaluateParams(repeats=1), IdentifyParams()


@pytest.fixture(scope="module")
def evaluated(campaign):
    """The evaluation of three rounds of three workloads with two inputs."""
    return evaluate_runs(campaign(rounds=3), QUICK, PARAMS)


def are_explained(figures):
    """Each missing figure has a reason, and no figure is not a number."""
    missing = [key for key, value in figures.items() if value is None]
    json.dumps(figures, allow_nan=False)
    return [key for key in missing if not figures.get(f"{key}.reason")] == []


@pytest.mark.slow
def test_workloads_that_differ_are_told_apart_by_every_method(campaign):
    figures = evaluate_runs([replace(run, machine=run.round) for run in campaign(rounds=5)], QUICK, PARAMS).figures
    assert are_explained(figures)
    assert figures["n"] == figures["runs"] == 30 and figures["classes"] == 3 and figures["n_windows"] == 0
    for slice_ in ("random", "by_time", "by_round", "by_input", "by_machine"):
        for method in METHODS:
            by_shape = method in ("ed", "dtw")  # equation 7 leaves these two the shape of a run alone
            least = 0.85 if by_shape else 1
            assert figures[f"known.accuracy.{slice_}.{method}"] >= least, (slice_, method)
            assert figures[f"known.macro_f1.{slice_}.{method}"] >= least
    assert figures["known.accuracy"] == figures["known.accuracy.random"] == 1
    assert figures["shared.right.alone.machine.model"] >= 0.9
    assert figures["known.splits.by_round"] == 5 and figures["known.splits.random"] == 1


@pytest.mark.slow
def test_workloads_that_are_the_same_cannot_be_told_apart(campaign):
    """A protocol that leaked would find what is not there."""
    twins = [
        replace(run, workload=f"{run.workload}-{at % 2}", run_id=f"{run.run_id}{at % 7}")
        for at, run in enumerate(campaign(("redis",), rounds=40, inputs=("one",), noise=0.3))
    ]
    figures = evaluate_runs(twins, QUICK.model_copy(update={"repeats": 5}), PARAMS).figures
    for method in METHODS:
        assert 0.2 < figures[f"known.accuracy.random.{method}"] < 0.8, method


def test_long_traces_are_cut_and_split_by_time(draw):
    runs = [draw(name, name, n_samples=200) for name in ("redis", "mysql", "nginx")]
    figures = evaluate_runs(runs, QUICK.model_copy(update={"windows": WindowParams(width_s=10)}), PARAMS).figures
    assert are_explained(figures)
    assert figures["n"] == figures["n_windows"] == 60 and figures["traces"] == 3
    assert figures["known.accuracy.random.trees"] is None
    assert "by_time" in figures["known.accuracy.random.trees.reason"]
    assert figures["known.base"] == "by_time" and figures["known.accuracy"] == figures["known.accuracy.by_time.model"]
    assert figures["known.n.by_time"] == 24
    assert figures["online.accuracy.5s"] is not None
    assert "no run lasts 30 s" in figures["online.accuracy.30s.reason"]


def test_one_workload_leaves_nothing_to_tell_and_says_so(campaign):
    figures = evaluate_runs(campaign(("redis",)), QUICK, PARAMS).figures
    assert are_explained(figures)
    assert figures["classes"] == 1 and figures["known.accuracy"] is None
    assert "one workload" in figures["known.accuracy.reason"]
    assert figures["distance.mean.dtw.redis"] > 0


def test_one_run_of_each_workload_leaves_nothing_to_test_and_says_so(draw):
    figures = evaluate_runs([draw(name, name) for name in ("redis", "mysql", "nginx")], QUICK, PARAMS).figures
    assert are_explained(figures)
    assert "two runs" in figures["known.accuracy.random.trees.reason"]
    assert figures["unknown.auroc"] is None and figures["threshold.false_reject"] is None


@pytest.mark.slow
def test_a_round_without_a_workload_is_scored_on_the_others(campaign):
    runs = [run for run in campaign(rounds=3) if (run.workload, run.round) != ("nginx", "1")]
    runs = [run for run in runs if run.workload != "mysql" or run.round == "2"]
    figures = evaluate_runs(runs, QUICK, PARAMS).figures
    assert are_explained(figures)
    assert figures["known.splits.by_round"] == 3
    assert figures["known.n_unseen.by_round"] == 2  # mysql ran in one round only
    assert figures["known.n.by_round"] == len(runs) - 2


@pytest.mark.slow
def test_a_counter_that_is_never_measured_in_some_runs_does_no_harm(campaign):
    runs = campaign(rounds=4)
    gappy = np.array(runs[0].values)
    gappy[:, 2], gappy[5:9] = np.nan, np.nan
    figures = evaluate_runs([replace(runs[0], values=gappy), *runs[1:]], QUICK, PARAMS).figures
    assert are_explained(figures) and figures["known.accuracy.random.trees"] == 1


@pytest.mark.slow
def test_the_same_runs_give_the_same_figures(campaign, evaluated):
    assert evaluate_runs(campaign(rounds=3), QUICK, PARAMS).figures == evaluated.figures


def test_tables_are_written_as_parquet(evaluated, tmp_path):
    written = write_tables(evaluated.tables, tmp_path / "out")
    names = {path.stem for path in written}
    assert {"scores", "predictions", "confusion", "thresholds", "online", "table_iv", "unknown", "counters"} <= names
    scores = pd.read_parquet(tmp_path / "out" / "scores.parquet")
    assert set(scores["method"]) == set(METHODS)
    told = pd.read_parquet(tmp_path / "out" / "predictions.parquet")
    assert len(told[told["slice"] == "by_round"]) == evaluated.figures["known.n.by_round"] == 18


def test_the_page_shows_what_the_tables_hold(evaluated):
    from tasks.report.workloads_evaluation import evaluation_result

    shown = {one.name: one for part in evaluation_result(evaluated, "drawn").sections for one in part.figures}
    assert evaluated.figures["known.accuracy.random.model"] == 1
    assert "100.0 % right" in shown["confusion"].evidence
    assert f"{3 * 12} of unknown ones" in shown["open-set"].evidence
    assert {name for name, one in shown.items() if one.chart} == {"confusion", "open-set", "online"}


def wide_file(folder, name, runs):
    """Runs in one wide CSV."""
    frames = [
        pd.DataFrame(run.values, columns=run.names).assign(run_id=run.run_id, at_s=run.at_s, job=run.workload)
        for run in runs
    ]
    pd.concat(frames).to_csv(folder / name, index=False)
    return str(folder / name)


def test_files_are_evaluated_with_the_labels_that_are_asked_for(campaign, tmp_path):
    path = wide_file(tmp_path, "runs.csv", campaign(rounds=2))
    figures = evaluate_read([path], ReadParams(label_from="column:job"), QUICK, PARAMS).figures
    assert figures["runs"] == 12 and figures["classes"] == 3 and figures["n_unlabelled"] == 0
    assert figures["rows.kept"] == 12 * 30 and figures["rows.refused"] == 0
    assert len(figures["data_sha256"]) == 64 and figures["version"]
    assert figures["known.accuracy.random.trees"] == 1


def test_files_without_a_label_are_one_clear_line(campaign, tmp_path):
    path = wide_file(tmp_path, "runs.csv", campaign(rounds=1))
    Path(path).write_text(Path(path).read_text().replace("job", "colour", 1))  # a column that nobody takes for a label
    with pytest.raises(BadInput, match=r"none of 6 runs has a label; expected .* --label-from"):
        evaluate_read([path], ReadParams(), QUICK, PARAMS)
