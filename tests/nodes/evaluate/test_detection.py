"""Splits, thresholds, and figures of detection: by dose and kind, with intervals; labels that only measure."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.detect.plain import DETECTORS
from tasks.nodes.evaluate import detection
from tasks.nodes.evaluate.detection import (
    COLUMNS,
    PROTOCOLS,
    Detection,
    Split,
    case_of,
    choose_threshold,
    detect,
    detection_results,
    learning_curve,
    mean_of_nearby,
    splits_of,
    weighted_measures,
)
from tasks.nodes.params import EvaluateParams
from tests.nodes.synthetic import synthetic_history


@pytest.fixture
def measured():
    """A function of (dose, level, whether it was flagged): figures and tables of these beside two calm executions."""

    def results(*stressed):
        rows = [("none", None, False), ("", 0, False), *stressed]
        executions = pd.DataFrame(
            {
                "node": "n", "benchmark": "x", "aspect": "cpu", "template_hash": "",
                "is_stressed": [False] * 2 + [True] * len(stressed),
                "dose": [dose for dose, _, _ in rows],
                "dose_level": pd.array([level for _, level, _ in rows], dtype="Int64"),
            }
        )  # fmt: skip
        flags = np.array([is_flagged for _, _, is_flagged in rows])
        about = {"protocol": "chronological", "round": 0, "split": "all", "detector": "d"}
        told = {"execution": np.arange(len(rows)), "score": flags.astype(float), "threshold": 0.5, "is_flagged": flags}
        judged = pd.DataFrame(about | told)[COLUMNS]
        return detection_results(
            executions, Detection(judged, dict.fromkeys(PROTOCOLS, "")), ["d"], EvaluateParams(resamples=100)
        )

    return results


def test_a_dose_with_a_level_is_measured_by_it_and_one_without_by_its_name(measured):
    figures, tables = measured(
        ("cpu-2", 1, True), ("cpu-2", 1, False), ("1", None, True), ("CPU 16.5", None, True), ("disk-hdd", 0, False)
    )
    recalls = {key: value for key, value in figures.items() if key.startswith("detect.recall.d.dose_")}
    told = {key.removeprefix("detect.recall.d."): value for key, value in recalls.items() if "reason" not in key}
    assert told == {
        "dose_1": pytest.approx(2 / 3), "dose_2": None, "dose_3": None, "dose_cpu-16-5": 1, "dose_disk-hdd": 0,
    }  # fmt: skip
    assert figures["detect.recall.d.dose_2.reason"].startswith("no tested execution was stressed at this dose")
    assert "detect.doses_left_out" not in figures
    assert tables["detection"].set_index("dose")["n_stressed"].to_dict() == {
        "any": 5, "dose_1": 3, "dose_cpu-16-5": 1, "dose_disk-hdd": 1,
    }  # fmt: skip


def test_of_many_named_doses_the_most_frequent_are_measured_and_the_others_counted(measured):
    figures, _ = measured(*((f"d{at}", None, True) for at in range(25)), ("d24", None, True))
    named = [key for key in figures if key.startswith("detect.recall.d.dose_d") and not key.endswith("reason")]
    assert (len(named), figures["detect.doses_left_out"]) == (20, 5)
    assert "detect.recall.d.dose_d24" in named


FOUND = ["protocol", "round", "split", "detector", "execution", "score", "threshold", "is_flagged"]


def turned(history):
    """The history in which what was stressed was not, and the other way round."""
    stressed = history.executions["is_stressed"].astype(bool)
    return replace(history, executions=history.executions.assign(is_stressed=~stressed))


HIDDEN = EvaluateParams(resamples=100, repeats=1, without_labels=True)


@pytest.fixture
def _by_time_alone(monkeypatch):
    """Executions are split by time, and in no other way."""
    monkeypatch.setattr(detection, "PROTOCOLS", (detection.BY_TIME,))


@pytest.mark.usefixtures("_by_time_alone")
def test_plain_detectors_say_the_same_whatever_the_labels_are(history):
    one, other = (detect(given, DETECTORS, HIDDEN).judged[FOUND] for given in (history, turned(history)))
    assert len(one) and one.equals(other)
    seen = {"detector": DETECTORS["detector"]}
    told = detect(history, seen, HIDDEN.model_copy(update={"without_labels": False})).judged[FOUND]
    assert not told.equals(one[one["detector"] == "detector"].reset_index(drop=True))


@pytest.mark.usefixtures("_by_time_alone")
def test_thresholds_do_not_see_what_is_tested(history, multiplied):
    """The values of the last executions, which test, are changed: thresholds and what is judged before them stay."""
    is_late = np.arange(len(history.executions)) >= len(history.executions) - 10
    params = EvaluateParams()
    one, other = (detect(of, DETECTORS, params).judged for of in (history, multiplied(history, 5.0, is_late)))
    before = ~is_late[one["execution"].to_numpy(dtype=np.int64)]
    assert 0 < before.sum() < len(one)
    pd.testing.assert_frame_equal(one[before], other[before])


def test_stress_without_effect_is_not_found(monkeypatch):
    """A protocol that leaked its labels would find what is not there."""
    monkeypatch.setattr(detection, "PROTOCOLS", (detection.LEFT,))
    calm = synthetic_history(nodes=2, runs=60, types=3, stressed=0.0, seed=5)
    labels = pd.array(np.random.default_rng(0).random(len(calm.executions)) < 0.2, dtype="boolean")
    executions, params = calm.executions.assign(is_stressed=labels), EvaluateParams(resamples=100)
    found = detect(replace(calm, executions=executions), DETECTORS, params)
    figures, _ = detection_results(executions, found, list(DETECTORS), params)
    for name in DETECTORS:
        assert figures[f"detect.auprc.{name}.left_node"] < 0.35, name


def test_stress_is_measured_by_its_kind_where_the_name_of_the_dose_begins_with_one(measured):
    figures, _ = measured(("two-a", 1, True), ("two-a", 1, False), ("delay-b", 2, True), ("iperf-3", 3, True))
    recalls = {key: value for key, value in figures.items() if key.startswith("detect.recall.d.kind_")}
    assert recalls == {"detect.recall.d.kind_two": 0.5, "detect.recall.d.kind_delay": 1}


def test_the_first_five_executions_of_a_left_node_are_measured_apart():
    executions = pd.DataFrame({
        "node": "n", "benchmark": "x", "aspect": "cpu", "template_hash": "", "dose": "",
        "is_stressed": [True, False, False, False, False, True, False], "dose_level": pd.array([0] * 7, dtype="Int64"),
    })  # fmt: skip
    flags = np.array([False, False, True, False, False, True, False])
    told = {"execution": np.arange(7), "score": flags.astype(float), "threshold": 0.5, "is_flagged": flags}
    about = {"protocol": "left_node", "round": 0, "split": "n", "detector": "d"}
    judged = Detection(pd.DataFrame(about | told)[COLUMNS], {"left_node": ""})
    figures, _ = detection_results(executions, judged, ["d"], EvaluateParams(resamples=100))
    names = ("left_node", "left_node_cold", "left_node_warm")
    assert [figures[f"detect.recall.d.{name}"] for name in names] == [0.5, 0, 1]
    assert [figures[f"detect.n.{name}"] for name in names] == [7, 5, 2]


def test_measures_with_weights_are_those_of_executions_that_stand_there_as_often():
    scores, flags = np.array([4.0, 3.0, 3.0, 1.0]), np.array([True, True, False, False])
    stressed = np.array([True, False, True, False])
    once, twice = weighted_measures(scores, flags, stressed, np.array([[1.0, 1, 1, 1], [1, 2, 1, 0]]))
    # by hand: precision 1 at recall 1/2, then 2 of 3 (of 4 with the second one twice) at recall 1
    np.testing.assert_allclose(once, [2 / 4, 1 / 2 + 1 / 2 * 2 / 3, 500.0])
    np.testing.assert_allclose(twice, [2 / 5, 1 / 2 + 1 / 2 * 2 / 4, 1000.0])


SOME = {name: DETECTORS[name] for name in ("detector", "logistic", "headline")}


@pytest.fixture(scope="module")
def judged(longer):
    """A drawn history and what ours and the baseline come to on it."""
    params = EvaluateParams(resamples=100, repeats=1, budgets=(100.0,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detection, "ORIGINS", (0.5, 0.8))
        found = detect(longer, SOME, params)
    return found, detection_results(longer.executions, found, list(SOME), params)[0]


def test_what_needs_no_labels_has_a_threshold_that_no_label_chose(judged):
    found, figures = judged
    rows = found.judged
    assert set(rows.loc[rows["detector"] == "headline", "threshold"]) == {0.0}
    assert set(rows.loc[rows["protocol"] == "after_warm_up", "detector"]) == {"headline"}
    assert figures["detect.auprc.headline.after_warm_up"] > 0.7
    assert figures["detect.n.after_warm_up"] == 2 * 2 * 54  # of 60 the first six are what is usual


@pytest.mark.usefixtures("_by_time_alone")
def test_what_needs_no_labels_says_the_same_beside_labels_and_without(judged, longer):
    blind = detect(longer, {"headline": DETECTORS["headline"]}, HIDDEN).judged
    seen = judged[0].judged
    by_name = seen[(seen["detector"] == "headline") & (seen["protocol"] == "chronological")]
    assert len(blind) and np.array_equal(by_name["score"], blind["score"])


def test_an_interval_holds_its_figure_and_a_difference_is_that_of_the_figures(judged):
    figures = judged[1]
    for key in ("detect.auprc.detector", "detect.f1_outlier.logistic.left_node", "detect.auprc.detector.rolling"):
        assert figures[f"{key}.low"] <= figures[key] <= figures[f"{key}.high"]
    for protocol in ("", ".rolling"):
        gained = figures[f"detect.auprc.detector{protocol}.minus_logistic"]
        assert gained == pytest.approx(
            figures[f"detect.auprc.detector{protocol}"] - figures[f"detect.auprc.logistic{protocol}"]
        )


def test_what_is_learned_from_another_recording_tests_nothing_of_it(longer):
    taught = np.arange(len(longer.executions)) < 120
    params = EvaluateParams(resamples=100, budgets=(100.0,))
    found = detect(longer, SOME, params, taught)
    assert set(found.judged["protocol"]) == {"transfer"} and found.judged["execution"].min() == 120
    figures, _ = detection_results(longer.executions, found, list(SOME), params)
    assert figures["detect.n.transfer"] == 120 and figures["detect.auprc.detector.transfer"] > 0.6
    assert "detect.n" not in figures


def test_what_few_known_stressed_executions_teach_is_measured_from_none_on(longer, monkeypatch):
    """A fifth is stressed, a third of that by one deviation only: guessing would reach 0.2."""
    monkeypatch.setattr(detection, "CURVE_DRAWS", 1)
    figures = learning_curve(longer, EvaluateParams())
    assert figures["curve.auprc.20"] > 0.4
    assert {f"curve.auprc.{n}" for n in (0, 1, 2, 5, 10, 20)} <= set(figures)
    assert figures["curve.auprc.0"] == pytest.approx(figures["curve.auprc.0.logistic"])


PARAMS = EvaluateParams(repeats=3)


@pytest.fixture(scope="module")
def executions():
    """Ten executions of each of two types on each of three nodes; the last two of each are stressed."""
    rows = [
        {"node": node, "benchmark": kind, "template_hash": "", "run": run, "is_stressed": run >= 8}
        for run in range(10)
        for node in "abc"
        for kind in ("x", "y")
    ]
    return pd.DataFrame(rows).astype({"is_stressed": "boolean"})


def rounds_of(executions, protocol):
    return splits_of(executions, protocol, PARAMS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_execution_is_on_two_sides_and_each_is_on_one(executions, protocol):
    for splits in rounds_of(executions, protocol):
        for split in splits:
            sides = split.is_train.astype(int) + split.is_validation + split.is_test
            assert (sides <= 1).all() if protocol == "rolling" else (sides == 1).all()


def test_by_time_what_is_tested_comes_after_all_that_is_learned_from(executions):
    ((split,),) = rounds_of(executions, "chronological")
    runs = executions["run"].to_numpy()
    assert runs[split.is_train].max() < runs[split.is_validation].min()
    assert runs[split.is_validation].max() < runs[split.is_test].min()
    assert (split.is_train.sum(), split.is_validation.sum(), split.is_test.sum()) == (36, 12, 12)


def test_at_random_each_side_has_its_share_of_each_node_type_and_label(executions):
    rounds = rounds_of(executions, "random")
    assert len(rounds) == 3
    for (split,) in rounds:
        shares = executions.assign(train=split.is_train).groupby(["node", "benchmark", "is_stressed"])["train"].mean()
        assert ((shares >= 0.5) & (shares <= 1.0)).all()
        assert shares[:, :, False].tolist() == [0.625] * 6  # 5 of 8
    assert not np.array_equal(rounds[0][0].is_test, rounds[1][0].is_test)
    again = rounds_of(executions, "random")
    np.testing.assert_array_equal(rounds[2][0].is_test, again[2][0].is_test)


def test_a_left_node_is_tested_whole_and_teaches_nothing(executions):
    (splits,) = rounds_of(executions, "left_node")
    assert [split.name for split in splits] == ["a", "b", "c"]
    for split in splits:
        is_own = (executions["node"] == split.name).to_numpy()
        np.testing.assert_array_equal(split.is_test, is_own)
        runs = executions["run"].to_numpy()
        assert runs[split.is_train].max() < runs[split.is_validation].min()


@pytest.mark.parametrize(
    ("scores", "stressed", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.8, 0.9], (0, 0, 1, 1, 1), 0.25),  # between the scores that it parts
        ([0.1, 0.2, 0.3, 0.8, 0.9], (0, 0, 0, 1, 1), 0.55),
        # the best F1: flagging 0.9, 0.8, 0.7 hits both stressed ones: 4/5; the first alone 2/3; all five 4/7
        ([0.9, 0.8, 0.7, 0.6, 0.5], (1, 0, 1, 0, 0), 0.65),
        ([0.5, 0.5, 0.5, 0.1], (1, 0, 0, 0), 0.3),  # equal scores fall on one side
        ([0.5] * 4, (1, 1, 1, 0), 0.5),  # all are flagged
    ],
)
def test_a_threshold_has_the_best_f1(scores, stressed, expected):
    found = choose_threshold(np.array(scores), np.array(stressed, dtype=bool))
    assert found == pytest.approx(expected) and found not in scores


def test_without_stress_in_validation_a_stated_share_is_flagged():
    scores = np.arange(100.0)
    assert (scores > choose_threshold(scores, np.zeros(100, dtype=bool))).sum() == 1
    assert choose_threshold(np.zeros(0), np.zeros(0, dtype=bool)) == np.inf


def test_a_threshold_is_judged_by_those_nearby_as_well_in_all_but_small_sets():
    assert mean_of_nearby(np.array([1.0, 2.0, 6.0]), 1).tolist() == [1.5, 3, 4]
    assert mean_of_nearby(np.array([1.0, 2.0, 6.0]), 0).tolist() == [1, 2, 6]
    assert mean_of_nearby(np.array([1.0, 2.0, 6.0]), 9).tolist() == [3, 3, 3]


def spoiled(history):
    """The first execution failed, the second was disturbed, the third stressed."""
    n = len(history.executions)
    told = {
        "status": ["failed"] + ["completed"] * (n - 1),
        "is_contaminated": pd.array([False, True] + [pd.NA] * (n - 2), dtype="boolean"),
        "is_stressed": pd.array([False, False, True] + [pd.NA] * (n - 3), dtype="boolean"),
    }
    return replace(history, executions=history.executions.assign(**told))


def test_an_evaluation_learns_what_is_normal_from_what_nothing_is_known_against(campaign):
    history, _ = campaign(nodes=1, runs=6, types=1, stressed=0.0)
    everything, nothing = np.ones(6, dtype=bool), np.zeros(6, dtype=bool)
    split = Split("all", everything, nothing, nothing)
    case = case_of(spoiled(history), split, EvaluateParams())
    assert case.is_normal.tolist() == [False, False, False, True, True, True]
    assert case.is_train.all()
