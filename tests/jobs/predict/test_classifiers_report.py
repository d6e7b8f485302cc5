"""The report on a classifier by hand, and beside its references on cases with known truth."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.pmf import Bins
from tasks.jobs.predict.classifier_params import ClassifierParams, LabelParams
from tasks.jobs.predict.classifier_report import by_occurrences, by_source, importances, report_classifier
from tasks.jobs.predict.classifiers import Frequencies, fit_classifier
from tasks.jobs.predict.references import ceiling, history_baseline, summarise
from tasks.jobs.predict.targets import count_runs, label_groups, label_instances
from tasks.jobs.shape_params import PosteriorParams
from tasks.jobs.shapes import ShapeSet

P = np.array([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9], [0.5, 0.5]])


def test_a_report_by_hand():
    found = report_classifier(P, [0, 1, 1, 1, -1], ["a", "b", "b", "b", "a"])
    assert (found.n, found.n_groups, found.accuracy) == (4, 2, 0.75)
    assert found.accuracy_group == pytest.approx((1 + 2 / 3) / 2)
    assert found.confusion.tolist() == [[1, 0], [1, 2]]
    assert found.row_shares[1] == pytest.approx([1 / 3, 2 / 3])
    assert found.log_loss == pytest.approx(-np.log([0.8, 0.4, 0.7, 0.9]).mean())


def test_a_shape_called_impossible_costs_a_stated_loss_and_no_infinity():
    assert report_classifier([[1.0, 0.0]], [1], ["a"]).log_loss == pytest.approx(-np.log(1e-6))


def test_without_a_labelled_run_there_are_no_figures():
    found = report_classifier(P, [-1] * 5, list("aabbc"))
    assert (found.n, found.accuracy, found.log_loss) == (0, None, None)
    assert np.isnan(found.row_shares).all()


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


def test_accuracy_is_reported_by_the_source_of_the_median():
    table = pd.DataFrame({"n_runs": [3, 9], "hit": [1.0, 0.0]}, index=["a", "b"])
    found = by_source({"accuracy": table}, pd.Series({"a": "history", "b": "before"})).set_index("slice")
    assert found["accuracy"].to_dict() == {"history": 1.0, "before": 0.0}


@pytest.mark.parametrize(("method", "kind"), [("lightgbm", "gain"), ("forest", "gini")])
def test_the_feature_that_tells_is_the_most_important(method, kind):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    frame = pd.DataFrame({"noise": rng.normal(0, 1, 200), "load": labels + rng.normal(0, 0.3, 200)})
    params = ClassifierParams(method=method, n_rounds=10, forest_trees=10, min_leaf=5)
    found = importances(fit_classifier(frame, labels, 2, params))
    assert found["feature"].tolist() == ["load", "noise"]
    assert found["importance"].sum() == pytest.approx(1)
    assert set(found["kind"]) == {kind}


def test_shares_of_shapes_have_no_importances():
    assert importances(Frequencies(np.array([1.0, 0.0]))).empty


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
    posterior, labels = PosteriorParams(), LabelParams(oracle_draws=200)
    parts = {part: runs[runs["part"] == part] for part in ("D1", "D2", "D3")}
    by_part = {part: label_groups(rows, SHAPES, labels, posterior) for part, rows in parts.items()}
    told = {
        part: rows.assign(switch=rows["switch"] if with_switch else rng.random(len(rows)))[["switch"]]
        for part, rows in parts.items()
    }
    params = ClassifierParams(n_rounds=20, min_leaf=20)
    training = label_instances(parts["D2"]["group_key"], by_part["D2"])
    fitted = fit_classifier(told["D2"], training, 2, params)
    truth = label_instances(parts["D3"]["group_key"], by_part["D3"])
    report = report_classifier(fitted.predict_proba(told["D3"]), truth, parts["D3"]["group_key"])
    before = label_groups(runs[runs["part"] != "D3"], SHAPES, labels, posterior)
    _, counts = count_runs(parts["D3"], SHAPES, by_part["D3"].index)
    return {
        "model": report.accuracy or 0.0,
        "history": summarise(history_baseline(by_part["D3"], before, labels)).by_run or 0.0,
        "ceiling": summarise(ceiling(by_part["D3"], counts * 1000, SHAPES, labels, posterior)).by_run or 0.0,
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
