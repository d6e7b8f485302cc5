"""`whorl jobs train` and `whorl jobs characterise`: what they print; once for real, each with its own server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli import jobs
from tasks.jobs import steps
from tasks.jobs.predict.params import EvaluateParams
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards

Whorl = Callable[..., Any]
ROOT = Path(__file__).parents[3]
LIMIT_S = 300


def run_whorl(home: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run the program in a process of its own, away from the checkout, with small forests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("WHORL_", "PREFECT_"))}
    small = {"WHORL_JOBS__EVALUATE__WITH_RIVALS": "false", "WHORL_JOBS__EVALUATE__FOREST_TREES": "5"}
    command = [sys.executable, "-c", "from flows.cli import main; main()", *map(str, arguments)]
    return subprocess.run(
        command,
        cwd=home.parent,
        env=environment | small | {"WHORL_HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.fixture
def without_flows(monkeypatch: pytest.MonkeyPatch, quick_training: EvaluateParams) -> None:
    """The steps alone, without a flow around them."""
    monkeypatch.setattr(
        jobs,
        "_trained",
        lambda _, settings, source: {
            **steps.train(settings.warehouse, source, quick_training, "r"),
            "report": "/reports/next.html",
        },
    )
    params = quick_training.predict.characterise
    monkeypatch.setattr(
        jobs,
        "_written",
        lambda _, settings, source: steps.characterise(settings.warehouse, source, params),
    )


def test_a_training_shows_model_shapes_and_baselines(whorl: Whorl, trained_log: Warehouse, without_flows: None) -> None:
    first = cards(trained_log.models)[0]
    ended = whorl("jobs", "train")
    assert ended.code == 0
    assert f"{first.model_id}: no worse on the same runs, so it stays in use" in ended.out
    assert "144 later runs, which the figures below are of" in ended.out
    rows = [line.split("  ")[0] for line in ended.out.splitlines()]
    assert rows[-1] == "report: /reports/next.html"
    assert rows[rows.index("predictor") + 1 : -1] == [
        "model",
        "the job's own runs",
        "boosted quantiles",
        "random forest",
        "one shape for all",
        "paper: hard label, ratio",
        "paper: hard label, delta",
    ]
    assert ended.err == "next: whorl jobs predict --source log\n"
    found = json.loads(whorl("jobs", "train", "--json").out)
    assert found["champion_id"] == first.model_id
    assert found["figures"]["predict.crps.model"] == found["crps"]


def test_shapes_are_told_as_table_2(
    whorl: Whorl, job_log: Callable[..., Any], varied_runs: Callable[..., Any], without_flows: None
) -> None:
    job_log(varied_runs())
    ended = whorl("jobs", "characterise")
    assert ended.code == 0
    first, header, *_ = ended.out.splitlines()
    assert first.startswith("2 shapes (ratio) of 12 jobs with at least 10 runs in the history; the curve of inertia")
    assert header.split()[:4] == ["shape", "jobs", "runs", "outliers"]
    found = json.loads(whorl("jobs", "characterise", "--json").out)
    assert [row["n_groups"] for row in found["ratio"]["shapes"]] == [6, 6]
    assert set(found["ratio"]["inertia"]) == {"1", "2", "3", "4"} or found["ratio"]["k"] == 2
    assert {row["n_bins"] for row in found["delta"]["bins"]} == {50, 100, 200, 500}


def test_a_list_of_models_shows_the_first_of_their_figures(whorl: Whorl, trained_log: Warehouse) -> None:
    shown = whorl("models", "list").out.splitlines()[1]
    assert "predict.crps.model" in shown
    assert len(shown) < 400


def test_a_source_that_is_none_is_told_before_prefect_starts(whorl: Whorl, trained_log: Warehouse) -> None:
    for verb in ("train", "characterise"):
        ended = whorl("jobs", verb, "--source", " x")
        assert ended.code == 2
        assert "not a name that everyone can type" in ended.err


@pytest.mark.slow
def test_a_log_is_trained_on_and_its_next_runs_are_predicted(tmp_path: Path, varied_runs: Callable[..., Any]) -> None:
    import pandas as pd

    home, file = tmp_path / "home", tmp_path / "log.csv"
    runs = varied_runs(360)
    starts = pd.Timestamp("2026-01-01") + pd.to_timedelta(range(len(runs)), unit="min")
    runs.assign(run_id=range(len(runs)), started_at=starts).to_csv(file, index=False)
    assert run_whorl(home, "jobs", "ingest", file).returncode == 0
    unknown = run_whorl(home, "jobs", "train", "--source", "nowhere")
    assert unknown.returncode == 4
    assert [line for line in unknown.stderr.splitlines() if line.startswith("whorl: ")] == [
        "whorl: source 'nowhere' has no job runs; sources that have some: 'main'; fill it with 'whorl jobs ingest FILE'"
    ]
    trained = run_whorl(home, "jobs", "train", "--json")
    assert trained.returncode == 0, trained.stderr
    found = json.loads(trained.stdout)
    assert found["model_id"] == found["champion_id"]
    shapes = run_whorl(home, "jobs", "characterise", "--json")
    assert json.loads(shapes.stdout)["n_groups"] == 12
    predicted = json.loads(run_whorl(home, "jobs", "predict", "--json").stdout)
    assert (predicted["model_id"], predicted["n_jobs"]) == (found["model_id"], 12)
