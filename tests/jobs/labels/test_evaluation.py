"""Shapes predicted as labels: by hand, and on jobs with planted shapes that the features tell, or do not tell."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.labels.classifier import LabelledRows, fit_classifier
from tasks.jobs.labels.evaluation import AtStart, at_start, by_occurrences, evaluate_labels, report_classifier
from tasks.jobs.labels.references import ceiling, history_baseline, summarise
from tasks.jobs.labels.targets import count_runs, label_groups, label_instances, posterior_instances
from tasks.jobs.normalisation import Bins
from tasks.jobs.predict.params import EvaluateParams, PredictParams
from tasks.jobs.predict.preparation import prepare
from tasks.jobs.shape_params import BinParams, CharacteriseParams, PosteriorParams, ShapeParams, SplitParams
from tasks.jobs.shapes import ShapeSet

P = np.array([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9], [0.5, 0.5]])


def test_a_report_by_hand():
    found = report_classifier(P, [0, 1, 1, 1, -1], ["a", "b", "b", "b", "a"])
    assert (found.n, found.n_groups, found.accuracy) == (4, 2, 0.75)
    assert found.accuracy_group == pytest.approx((1 + 2 / 3) / 2)
    assert found.confusion.tolist() == [[1, 0], [1, 2]]
    assert found.log_loss == pytest.approx(-np.log([0.8, 0.4, 0.7, 0.9]).mean())


def test_a_shape_called_impossible_costs_a_stated_loss_and_no_infinity():
    assert report_classifier([[1.0, 0.0]], [1], ["a"]).log_loss == pytest.approx(-np.log(1e-6))


def test_without_a_labelled_run_there_are_no_figures():
    found = report_classifier(P, [-1] * 5, list("aabbc"))
    assert (found.n, found.accuracy, found.log_loss) == (0, None, None)


def test_accuracy_by_occurrences_cuts_where_the_figure_does():
    before = pd.Series([0, 1, 5, 6, 10, 11, 15, 16, 50, 51, 900], index=list("abcdefghijk"))
    table = pd.DataFrame({"n_runs": 2, "hit": np.arange(11) / 10}, index=before.index)
    found = by_occurrences({"accuracy": table}, before).set_index("slice")
    sizes = {"0": 1, "1-5": 2, "6-10": 2, "11-15": 2, "16-50": 2, "> 50": 2}
    assert found["n_groups"].to_dict() == sizes
    assert found.loc["16-50", "accuracy"] == pytest.approx(0.75)
    assert list(by_occurrences({"accuracy": table.iloc[[0]]}, before)["slice"]) == ["0"]


def test_references_stand_beside_the_accuracy_for_the_same_jobs():
    table = pd.DataFrame({"n_runs": [3, 9], "hit": [1.0, 0.0]}, index=["a", "b"])
    other = pd.DataFrame({"n_runs": [3, 9, 5], "hit": [0.5, 0.9, 0.1]}, index=["a", "b", "c"])
    found = by_occurrences({"accuracy": table, "ceiling": other}, pd.Series({"a": 3, "b": 4})).iloc[0]
    assert found["n_runs"] == 12
    assert found["accuracy"] == pytest.approx(3 / 12)
    assert found["ceiling"] == pytest.approx((0.5 * 3 + 0.9 * 9) / 12)
    assert found["ceiling_group"] == pytest.approx(0.7)


SHAPES = ShapeSet(
    Bins(kind="ratio", low=0, high=2, n_bins=4),
    np.array([[0, 0.75, 0.25, 0], [0, 0.25, 0.75, 0]]),
    np.array([0.5, 0.5]),
    np.array([1, 1]),
    0.0,
)


def jobs_that_change(n_runs: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """200 jobs that are fast or slow by a switch that is thrown anew between the periods, and their switches."""
    switches = rng.integers(0, 2, (3, 200))
    rows = [
        pd.DataFrame(
            {
                "part": f"D{period + 1}",
                "group_key": np.repeat(np.arange(200), n_runs),
                "runtime_s": np.where(rng.random(200 * n_runs) < np.repeat(slow_share, n_runs), 1.5, 0.5),
                "switch": np.repeat(switches[period], n_runs),
            }
        )
        for period, slow_share in enumerate(np.where(switches, 0.75, 0.25))
    ]
    return pd.concat(rows, ignore_index=True).assign(median_s=1.0), switches


def accuracies(n_runs: int, *, with_switch: bool) -> dict[str, float]:
    rng = np.random.default_rng(7)
    runs, _ = jobs_that_change(n_runs, rng)
    posterior = PosteriorParams()
    parts = {part: runs[runs["part"] == part] for part in ("D1", "D2", "D3")}
    by_part = {part: label_groups(rows, SHAPES, 3, posterior) for part, rows in parts.items()}
    told = {
        part: rows.assign(switch=rows["switch"] if with_switch else rng.random(len(rows)))[["switch"]]
        for part, rows in parts.items()
    }
    jobs = parts["D2"]["group_key"]
    data = LabelledRows(told["D2"], jobs.to_numpy(dtype=object), posterior_instances(jobs, by_part["D2"]))
    fitted, _ = fit_classifier(data, ["switch"], "ratio", n_rounds=20, seed=0)
    truth = label_instances(parts["D3"]["group_key"], by_part["D3"])
    report = report_classifier(fitted.predict_proba(told["D3"]), truth, parts["D3"]["group_key"])
    before = label_groups(runs[runs["part"] != "D3"], SHAPES, 3, posterior)
    _, counts = count_runs(parts["D3"], SHAPES, by_part["D3"].index)
    return {
        "model": report.accuracy or 0.0,
        "history": summarise(history_baseline(by_part["D3"], before)).by_run or 0.0,
        "ceiling": summarise(ceiling(by_part["D3"], counts * 1000, SHAPES, posterior)).by_run or 0.0,
    }


def test_a_classifier_beats_the_history_where_its_features_tell_and_only_there():
    told, untold = accuracies(15, with_switch=True), accuracies(15, with_switch=False)
    assert told["model"] > 0.9 > 0.65 > told["history"]
    assert untold["model"] < 0.65


def test_the_fewer_runs_a_label_rests_on_the_less_even_a_told_model_can_reach():
    few, many = accuracies(3, with_switch=True), accuracies(31, with_switch=True)
    assert few["model"] < 0.9 < many["model"]
    assert few["ceiling"] < many["ceiling"]
    assert many["ceiling"] > 0.95


def test_the_start_is_scored_beside_the_oracle_of_the_same_jobs():
    keys, ceiling = pd.Series(["a", "a", "b", "c"]), pd.DataFrame({"hit": [0.9, 0.5]}, index=["a", "b"])
    is_right, is_start = np.array([True, False, False, True]), np.array([True, False, True, False])
    assert at_start(is_right, is_start, keys, ceiling) == AtStart(2, 0.5, pytest.approx(0.7))
    assert at_start(is_right, is_start & False, keys, ceiling) == AtStart(0, None, None)
    assert at_start(is_right[3:], ~is_start[3:], keys[3:], ceiling) == AtStart(1, 1.0, None)


def params_of(*, split=None, **changes):
    characterise = CharacteriseParams(
        split=split or SplitParams(), bins=BinParams(ranges="data", n_bins=40), shapes=ShapeParams(k=2)
    )
    return EvaluateParams(predict=PredictParams(characterise=characterise, n_rounds=60), **changes)


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
    prepared = prepare(runs, params.predict.characterise)
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
    assert found.start.accuracy <= 0.6 < found.so_far.accuracy
    assert found.occurrences["so_far"].iloc[0] == pytest.approx(found.so_far.accuracy)


def test_labels_of_the_training_know_nothing_of_the_test(planted_log):
    params = params_of(split=SplitParams(history_share=0.3, training_share=0.15))  # most runs are the test
    runs = planted_log()
    changed = runs.copy()
    changed.loc[540:, "runtime_s"] = np.tile([4.0, 20.0, 30.0], 220)  # no job is calm any more
    one, other = (evaluated(log, params)[1] for log in (runs, changed))
    assert other.references["history_baseline"].by_run < 0.6
    assert one.probabilities[:540].tobytes() == other.probabilities[:540].tobytes()


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
