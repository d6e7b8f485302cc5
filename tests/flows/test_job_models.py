"""The flows about models and shapes of jobs, run here and now as the command line runs them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.jobs import (
    characterise_jobs,
    evaluate_jobs,
    predict_jobs,
    summarise_jobs,
    train_jobs,
)
from flows.parameters import (
    CharacteriseFlowParams,
    EvaluateFlowParams,
    PredictFlowParams,
    SummaryFlowParams,
    TrainFlowParams,
)
from tasks.errors import NotFound
from tasks.jobs.predict.params import EvaluateParams
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards
from tasks.warehouse.runs import compare_runs, list_runs, read_run

pytestmark = pytest.mark.usefixtures("prefect_server")


def artifact(key: str) -> str:
    """The latest artifact under a key."""
    from prefect.artifacts import Artifact

    found = Artifact.get(key)
    assert found is not None
    assert isinstance(found.data, str)
    return found.data


def test_a_training_names_its_shapes_and_shows_its_figures_beside_the_baselines(
    trained_log: Warehouse, quick_training: EvaluateParams
) -> None:
    first = cards(trained_log.models)[0]
    found = train_jobs(TrainFlowParams(source="log", evaluate=quick_training, warehouse=trained_log))
    assert found["champion_id"] == first.model_id != found["model_id"]
    assert [name.rsplit("-", 1)[0] for name in found["shapes"].values()] == ["ratio-2", "delta-2"]
    page = artifact("jobs-log-model")
    assert found["model_id"] in page
    assert f"{first.model_id} stays in use" in page
    assert "the job's own runs" in page and "one shape for all" in page
    assert "What was predicted, and what came" in page
    assert page.count("data:image/png;base64,") == 1
    assert found["report"] in page.replace("\\", "")
    assert "Predictors side by side" in Path(found["report"]).read_text()
    [run] = list_runs(trained_log).to_dict("records")
    kept = read_run(trained_log, run["run_id"])
    assert (kept["flow"], kept["figures"]["shapes"]) == ("jobs-train", found["shapes"])
    assert cards(trained_log.models)[-1].run_id == run["run_id"]


def test_predictions_are_written_and_the_riskiest_listed_first(trained_log: Warehouse) -> None:
    found = predict_jobs(PredictFlowParams(source="log", warehouse=trained_log))
    assert found["n_jobs"] == 12
    rows = fetch(trained_log, "SELECT * FROM jobs.predictions ORDER BY exceeds_2x_share DESC")
    assert set(rows["model_id"]) == {found["model_id"]}
    page = artifact("jobs-log-predictions").replace("\\", "")
    assert page.index(rows["group_key"].iloc[0]) < page.index(rows["group_key"].iloc[-1])
    assert "Of the 12 jobs with at least 3 finished runs" in page
    assert f"The job: {rows['group_key'].iloc[0]}. The last interval is that of the next run." in page
    assert "n = 12 predicted runs of one job" in page  # those that the model had not seen: a fifth of its 60
    assert page.count("data:image/png;base64,") == 1
    assert found["report"] in page
    assert found["model_id"] in Path(found["report"]).read_text()


def test_a_prediction_without_a_model_says_how_to_make_one(job_log: Callable[..., Warehouse]) -> None:
    warehouse = job_log([{"runtime_s": 1.0}])
    with pytest.raises(NotFound, match="no trained model yet; make one with whorl jobs train --source log"):
        predict_jobs(PredictFlowParams(source="log", warehouse=warehouse))


@pytest.mark.slow
def test_two_experiments_can_be_compared(trained_log: Warehouse, quick_training: EvaluateParams) -> None:
    longer = quick_training.model_copy(update={"baseline_trees": 10})
    for params in (quick_training, longer):
        figures = evaluate_jobs(EvaluateFlowParams(source="log", evaluate=params, warehouse=trained_log))
        assert figures["n"] == 720
        assert "predicted" in Path(figures["report"]).read_text()
    second, first = list_runs(trained_log)["run_id"]
    rows = compare_runs(trained_log, first, second).set_index("key")
    assert rows.loc["parameters.evaluate.baseline_trees", ["first", "second"]].tolist() == [5, 10]
    assert "figures.predict.crps.forest" in rows.index
    assert "figures.predict.crps.model" not in rows.index
    assert "How well the runtimes of source log are predicted" in artifact("jobs-log-evaluation")
    assert len(cards(trained_log.models)) == 1


@pytest.mark.slow
def test_logs_are_evaluated_without_being_kept(
    warehouse: Warehouse, tmp_path: Path, varied_runs: Callable[..., Any], quick_training: EvaluateParams
) -> None:
    import pandas as pd

    runs = varied_runs(240)
    starts = pd.Timestamp("2026-01-01") + pd.to_timedelta(range(len(runs)), unit="min")
    file = tmp_path / "night.csv"
    runs.assign(run_id=range(len(runs)), started_at=starts).to_csv(file, index=False)
    found = evaluate_jobs(EvaluateFlowParams(logs=[str(file)], evaluate=quick_training, warehouse=warehouse))
    assert (found["n"], found["groups"]) == (240, 12)
    assert "night.csv" in artifact("jobs-logs-evaluation").replace("\\", "")
    assert list_runs(warehouse)["flow"].to_list() == ["jobs-evaluate"]
    assert fetch(warehouse, "SELECT count(*) AS n FROM jobs.runs")["n"].to_list() == [0]


def test_a_characterisation_shows_table_2_and_the_elbow(
    job_log: Callable[..., Warehouse], varied_runs: Callable[..., Any], quick_training: EvaluateParams
) -> None:
    warehouse = job_log(varied_runs(), source="shaped")
    found = characterise_jobs(CharacteriseFlowParams(source="shaped", evaluate=quick_training, warehouse=warehouse))
    assert (found["n_groups"], found["k"]) == (12, {"ratio": 2, "delta": 2})
    page = artifact("jobs-shaped-shapes").replace("\\", "")
    assert "2 shapes (ratio) of 12 jobs with at least 10 runs in the history; the curve of inertia" in page
    assert "| shape | jobs | runs | outliers |" in page
    assert page.count("data:image/png;base64,") == 4
    assert len(page) < 1_000_000
    assert found["report"] in page
    assert Path(found["report"]).exists()


@pytest.mark.slow
def test_a_new_summary_writes_the_page_of_what_comes_next_anew_once_something_stands_on_it(
    trained_log: Warehouse,
) -> None:
    predicted = Path(predict_jobs(PredictFlowParams(source="log", warehouse=trained_log))["report"])
    predicted.write_text("of the files of then")
    found = summarise_jobs(SummaryFlowParams(source="log", warehouse=trained_log))
    assert found["report"] == str(predicted)
    assert found["data_version"] in predicted.read_text()


def test_a_source_of_which_nothing_is_predicted_has_a_page_too(job_log: Callable[..., Warehouse]) -> None:
    warehouse = job_log([{"runtime_s": float(i)} for i in range(1, 9)], source="plain")
    found = summarise_jobs(SummaryFlowParams(source="plain", warehouse=warehouse))
    assert found["report"] == str(warehouse.home / "reports" / "jobs-plain.html")
    assert Path(found["report"]).exists()


@pytest.mark.slow
def test_a_model_that_has_seen_all_runs_of_the_riskiest_job_is_shown_without_a_figure(trained_log: Warehouse) -> None:
    with writing(trained_log) as connection, transaction(connection):
        connection.execute("DELETE FROM jobs.runs WHERE submitted_at >= TIMESTAMP '2026-01-01 09:00:00'")
    predict_jobs(PredictFlowParams(source="log", warehouse=trained_log))
    page = artifact("jobs-log-predictions")
    assert "The next runs of source log" in page
    assert "data:image" not in page
