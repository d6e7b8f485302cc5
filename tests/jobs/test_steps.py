"""The steps of shapes and models: what they write and return."""

import json

import numpy as np
import pytest

from tasks.errors import BadInput, NotFound
from tasks.jobs import steps
from tasks.jobs.predict import training
from tasks.jobs.predict.predicting import are_fresh, read_predictions
from tasks.jobs.predict.trained import champion_of, shape_names
from tasks.jobs.predict.training import read_figures, write_figures
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.copies import hash_tables
from tasks.warehouse.registry import cards, decisions


def worse(params):
    """Parameters of a model that learns from next to nothing."""
    return params.model_copy(update={"max_training_runs": 10})


def test_a_training_leaves_model_champion_and_figures_behind(trained_log):
    (card,) = cards(trained_log.models)
    found, trained = champion_of(trained_log, "log")
    assert found == card
    assert (card.word, card.source, card.run_id) == ("jobs", "log", "first-run")
    figures = read_figures(trained_log, "log", card.model_id)
    assert figures["predict.crps.model"] == card.metrics["predict.crps.model"]
    assert figures["predict.crps.model"] < figures["predict.crps.global"]
    assert next(iter(card.metrics)) == "predict.crps.model"  # what a list of models shows first
    assert len(trained.shapes["ratio"].centres) == 2


def test_a_training_of_the_same_run_and_data_is_done_once(trained_log, quick_training):
    before = hash_tables(trained_log)
    found = steps.train(trained_log, "log", quick_training, "first-run")
    assert found["model_id"] == found["champion_id"] == cards(trained_log.models)[0].model_id
    assert (len(cards(trained_log.models)), len(decisions(trained_log.models, "jobs"))) == (1, 1)
    assert hash_tables(trained_log) == before


def test_a_second_training_on_the_same_data_is_no_better_and_the_first_stays(trained_log, quick_training):
    first = cards(trained_log.models)[0]
    found = steps.train(trained_log, "log", quick_training, "second-run")
    assert found["champion_id"] == first.model_id != found["model_id"]
    assert found["crps"] == pytest.approx(first.metrics["predict.crps.model"], rel=1e-9)
    assert found["shapes"] == shape_names(champion_of(trained_log, "log")[1].shapes)


def test_a_worse_model_does_not_replace_the_champion_and_a_better_one_does(job_log, varied_runs, quick_training):
    warehouse = job_log(varied_runs())
    poor = steps.train(warehouse, "log", worse(quick_training), "poor")
    good = steps.train(warehouse, "log", quick_training, "good")
    assert good["crps"] < poor["crps"]
    assert good["champion_id"] == good["model_id"]
    again = steps.train(warehouse, "log", worse(quick_training), "poor-again")
    assert again["champion_id"] == good["model_id"]
    last = decisions(warehouse.models, "jobs")[-1]
    assert poor["model_id"] in last.reason and last.reason.endswith("s on the same runs")


def test_models_are_compared_on_the_runs_that_the_newer_one_held_out(trained_log, quick_training):
    first = cards(trained_log.models)[0]
    slower = "UPDATE jobs.runs SET runtime_s = 10 * runtime_s * pow(1e6 / input_bytes, 3)"
    with writing(trained_log) as connection, transaction(connection):  # and more input now makes runs shorter
        connection.execute(slower)
        connection.execute("UPDATE ops.files SET batch_id = 'batch-001'")
    found = steps.train(trained_log, "log", quick_training, "slower")
    assert found["crps"] > first.metrics["predict.crps.model"]  # worse than what the first had on other runs
    assert found["champion_id"] == found["model_id"]


def test_a_training_killed_before_the_promotion_is_finished_by_the_next_attempt(
    job_log, varied_runs, quick_training, monkeypatch
):
    warehouse = job_log(varied_runs())

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training, "promote", killed)
        with pytest.raises(KeyboardInterrupt):
            steps.train(warehouse, "log", quick_training, "run")
    (card,) = cards(warehouse.models)
    assert champion_of(warehouse, "log") is None
    found = steps.train(warehouse, "log", quick_training, "run")
    assert found["model_id"] == found["champion_id"] == card.model_id
    assert cards(warehouse.models) == [card]
    assert read_figures(warehouse, "log", card.model_id)


def test_a_champion_that_cannot_be_read_does_not_keep_a_new_model_out(trained_log, quick_training, caplog):
    old = cards(trained_log.models)[0]
    (trained_log.models / "jobs" / old.model_id / "boosted.json").unlink()
    found = steps.train(trained_log, "log", quick_training, "mending")
    assert found["champion_id"] == found["model_id"]
    assert "the model in use before cannot be read" in caplog.text
    assert champion_of(trained_log, "log") is not None


def test_predictions_are_written_as_a_whole_and_twice_changes_nothing(trained_log):
    first = steps.predict(trained_log, "log")
    before = hash_tables(trained_log)
    assert steps.predict(trained_log, "log") == first
    assert hash_tables(trained_log) == before
    assert first["n_jobs"] == 12
    rows = read_predictions(trained_log, "log")
    quantiles = rows[["p05_s", "p25_s", "p50_s", "p75_s", "p90_s", "p95_s", "p99_s"]].to_numpy()
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert rows["exceeds_2x_share"].between(0, 1).all()
    assert rows["exceeds_2x_share"].is_monotonic_decreasing
    assert set(rows["shape_ratio"]) <= {0, 1}
    assert (rows["expected_excess_s"] > 0).all()


def test_predictions_are_stale_once_files_or_model_have_changed(trained_log):
    model_id = steps.predict(trained_log, "log")["model_id"]
    assert are_fresh(trained_log, "log", model_id)
    assert not are_fresh(trained_log, "log", "another")
    with writing(trained_log) as connection:
        connection.execute("UPDATE ops.files SET batch_id = 'other'")
    assert not are_fresh(trained_log, "log", model_id)


def test_a_prediction_of_another_source_stays(trained_log):
    steps.predict(trained_log, "log")
    with writing(trained_log) as connection:
        connection.execute("UPDATE jobs.predictions SET source = 'other'")
    steps.predict(trained_log, "log")
    counts = fetch(trained_log, "SELECT source, count(*) AS n FROM jobs.predictions GROUP BY source ORDER BY source")
    assert counts.to_dict("list") == {"source": ["log", "other"], "n": [12, 12]}


def test_a_log_too_short_to_train_on_is_one_line_and_leaves_no_model(job_log, quick_training):
    warehouse = job_log([{"runtime_s": 1.0}])
    with pytest.raises(BadInput, match="1 different times of submission; expected at least three"):
        steps.train(warehouse, "log", quick_training, "run")
    with pytest.raises(NotFound, match="source 'lag' has no job runs; sources that have some: 'log'"):
        steps.train(warehouse, "lag", quick_training, "run")
    assert cards(warehouse.models) == []


@pytest.mark.slow
def test_an_evaluation_of_a_source_keeps_no_model_and_gives_the_figures_of_a_training(
    trained_log, quick_training, tmp_path
):
    figures = steps.evaluate_source(trained_log, "log", quick_training, str(tmp_path / "page"))
    assert figures["report"] == str(tmp_path / "page" / "jobs-evaluation.html")
    assert (tmp_path / "page" / "predictors.parquet").exists()
    card = cards(trained_log.models)[0]
    assert len(cards(trained_log.models)) == 1
    assert figures["predict.crps.model"] == pytest.approx(card.metrics["predict.crps.model"], rel=1e-9)
    assert figures["data_sha256"] == card.data_version
    json.dumps(figures, allow_nan=False)


def test_a_figure_that_cannot_be_had_keeps_its_reason(trained_log):
    figures = {"predict.crps.model": 1.5, "unseen.crps.model": None, "unseen.crps.model.reason": "none", "version": "1"}
    for _ in range(2):
        write_figures(trained_log, "log", "other", figures)
    del figures["version"]
    assert read_figures(trained_log, "log", "other") == figures
    assert read_figures(trained_log, "log", "unknown") == {}
