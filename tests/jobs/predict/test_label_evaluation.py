"""Shapes predicted as labels: on jobs with planted shapes that the features tell, or do not tell."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.predict import leaning
from tasks.jobs.predict.classifier_params import ClassifierParams, LabelParams, SearchParams, SelectionParams
from tasks.jobs.predict.evaluation_params import EvaluateParams, PredictParams
from tasks.jobs.predict.label_evaluation import evaluate_labels
from tasks.jobs.predict.preparation import prepare
from tasks.jobs.predict.split_params import SplitParams
from tasks.jobs.shape_params import (
    BinParams,
    CharacteriseParams,
    ShapeParams,
)


def params_of(*, split=None, **changes):
    predict = PredictParams(
        characterise=CharacteriseParams(
            split=split or SplitParams(), bins=BinParams(ranges="data", n_bins=40), shapes=ShapeParams(k=2)
        ),
        labels=LabelParams(oracle_draws=20, half_draws=2),
        selection=SelectionParams(n_epochs=2, n_rounds=1),
        classifier=ClassifierParams(n_rounds=15, learning_rate=0.2, min_leaf=5, forest_trees=5, boosting_trees=3),
    )
    return EvaluateParams(predict=predict, with_rivals=False, **changes)


@pytest.fixture
def planted_log(log_of):
    """A function: jobs that vary by 5 % and, every other one, by 50 %; the wide ones ask for more tokens."""

    def draw(n_runs=1200, n_jobs=12, *, seed=2):
        rng = np.random.default_rng(seed)
        job = np.arange(n_runs) % n_jobs
        is_wide = job % 2 == 1
        runtimes = 10 * np.exp(rng.normal(0, np.where(is_wide, 0.5, 0.05)))
        return log_of(runtimes, [f"j{i:02}" for i in job], requested_cpus=np.where(is_wide, 9.0, 1.0))

    return draw


def evaluated(runs, params, kind="ratio"):
    prepared = prepare(runs, params.predict.characterise, params.predict.features)
    return prepared, evaluate_labels(prepared, kind, params)


@pytest.mark.parametrize("kind", ["ratio", "delta"])
def test_shapes_that_the_features_tell_are_found_in_the_test(planted_log, kind):
    _, found = evaluated(planted_log(), params_of(), kind)
    assert found.report.accuracy > 0.95
    assert found.report.n == 240
    assert found.report.confusion.sum(axis=1).tolist() == [120, 120]
    assert found.probabilities.shape == (1200, 2)
    assert found.probabilities.sum(axis=1) == pytest.approx(np.ones(1200))
    assert list(found.references) == ["model", "so_far", "ceiling", "split_half", "history_baseline"]
    assert found.references["model"].by_run == pytest.approx(found.report.accuracy)
    assert found.references["ceiling"].by_run >= 0.95
    assert found.references["history_baseline"].by_run == 1
    assert found.occurrences["n_groups"].sum() == 12
    assert found.sources["slice"].tolist() == ["history"]
    assert found.rivals == {}


def test_a_job_that_changes_its_shape_is_scored_by_what_it_became(planted_log):
    runs = planted_log()
    calm = (runs["group_key"] == "j00") & (runs.index >= 960)
    wild = 10 * np.exp(np.random.default_rng(0).normal(0, 0.5, int(calm.sum())))
    runs.loc[calm, "runtime_s"] = wild
    runs["ended_at"] = runs["started_at"] + pd.to_timedelta(runs["runtime_s"], unit="s")
    _, found = evaluated(runs, params_of())
    assert found.references["history_baseline"].by_run == pytest.approx(11 / 12)
    assert found.report.by_group["hit"].drop("j00").min() > 0.9
    assert found.report.by_group.loc["j00", "hit"] < 1


def test_a_period_that_is_under_way_tells_more_than_the_classifier_and_its_start_less(planted_log):
    runs = planted_log()
    is_swapped = (runs["group_key"] < "j06") & (runs.index >= 960)  # in the test, half of the jobs change sides
    is_wide = runs["requested_cpus"].eq(1) & is_swapped
    noise = np.random.default_rng(0).normal(0, 1, len(runs)) * np.where(is_wide, 0.5, 0.05)
    runs["runtime_s"] = runs["runtime_s"].where(~is_swapped, 10 * np.exp(noise))
    runs["ended_at"] = runs["started_at"] + pd.to_timedelta(runs["runtime_s"], unit="s")
    _, found = evaluated(runs, params_of())
    assert found.report.n == found.so_far.n == 240
    assert found.so_far.accuracy > found.report.accuracy + 0.05
    assert found.so_far.log_loss < found.report.log_loss
    assert found.start.n == 12
    assert found.start.accuracy <= 0.6 < found.report.accuracy
    assert found.occurrences["so_far"].iloc[0] == pytest.approx(found.so_far.accuracy)


def test_labels_of_the_training_know_nothing_of_the_test(planted_log):
    params = params_of(split=SplitParams(history_share=0.3, training_share=0.15))  # most runs are the test
    runs = planted_log()
    changed = runs.copy()
    changed.loc[540:, "runtime_s"] = np.tile([4.0, 20.0, 30.0], 220)  # no job is calm any more
    one, other = (evaluated(log, params)[1] for log in (runs, changed))
    assert other.references["history_baseline"].by_run < 0.6
    assert one.selection.kept == other.selection.kept
    assert one.probabilities[:540].tobytes() == other.probabilities[:540].tobytes()


def with_search(params):
    search = SearchParams(n_trials=2, warm_up_trials=1, max_rounds=12)
    return params.model_copy(
        update={"with_search": True, "predict": params.predict.model_copy(update={"search": search})}
    )


def test_a_search_among_the_training_runs_sets_the_classifier_and_knows_nothing_of_the_test(planted_log):
    runs = planted_log()
    changed = runs.assign(runtime_s=runs["runtime_s"].where(runs.index < 960, 30.0))
    plain = evaluated(runs, params_of())[1]
    one, other = (evaluated(log, with_search(params_of()))[1] for log in (runs, changed))
    assert one.report.accuracy > 0.95
    assert one.fitted.booster.num_trees() <= 12 * 2 < plain.fitted.booster.num_trees()
    assert one.fitted.to_texts() == other.fitted.to_texts()


def test_where_a_search_has_no_label_to_score_on_the_settings_stay_and_it_is_told(log_of, caplog):
    log = log_of(np.exp(np.random.default_rng(0).normal(size=100)), np.tile(["a", "b", "c", "d"], 25))
    params = params_of(split=SplitParams(history_share=0.6, training_share=0.12))  # three training runs of each job
    _, found = evaluated(log, with_search(params))
    assert "no search, settings as they are" in caplog.text
    assert found.report.n == 28


def test_of_many_training_runs_the_latest_are_learnt_from(planted_log, monkeypatch):
    asked = []
    fit = leaning.fit_classifier

    def spy(frame, *rest, **named):
        asked.append(frame.index)
        return fit(frame, *rest, **named)

    monkeypatch.setattr(leaning, "fit_classifier", spy)
    evaluated(planted_log(), params_of(max_training_runs=100))
    assert asked[0].tolist() == list(range(860, 960))


def test_rivals_are_scored_on_the_same_runs_and_the_forest_tells_its_importances(planted_log):
    params = params_of().model_copy(update={"with_rivals": True})
    _, found = evaluated(planted_log(600, 6), params)
    assert set(found.rivals) == {"forest", "ensemble"}
    assert min(found.rivals.values()) > 0.9
    assert set(found.gini["feature"]) == set(found.selection.kept)
    assert found.gini["importance"].sum() == pytest.approx(1)


def test_a_log_without_a_job_that_can_be_labelled_says_so(log_of):
    rng = np.random.default_rng(0)
    runs = log_of(np.exp(rng.normal(size=90)), ["a"] * 45 + [f"new{i}" for i in range(45)])
    with pytest.raises(BadInput, match="0 rows with a label"):
        evaluated(runs, params_of())


def test_one_shape_for_all_is_always_right(log_of):
    prepared, found = evaluated(log_of(np.full(120, 5.0), np.tile(["a", "b"], 60)), params_of())
    assert len(prepared.shapes["ratio"].centres) == 1
    assert found.report.accuracy == 1
    assert (found.probabilities == 1).all()
