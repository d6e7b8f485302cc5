"""Measures of verdicts, and figures over fits, by hand."""

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.evaluate.measures import (
    FIT_COLUMNS,
    FIT_MEASURES,
    MEASURES,
    Counts,
    LearnedResults,
    average_precision,
    counts_of,
    delays,
    learned_figures,
    measures_of,
    precision_recall,
    put_seeds,
)
from tasks.nodes.evaluate.splits import choose_threshold, mean_of_nearby

BOTH = np.array([True, False])


def truth(*marks):
    return np.array(marks, dtype=bool)


def test_both_f1_of_ten_executions():
    """3 hits, 1 false alarm, 2 misses, 4 quiet: 6/9; 8/11; (5 · 6/9 + 5 · 8/11) / 10; (3/5 + 4/5) / 2."""
    found = Counts(3, 1, 2, 4)
    assert found.f1_outlier == pytest.approx(6 / 9)
    assert found.f1_normal == pytest.approx(8 / 11)
    assert found.weighted_f1 == pytest.approx((6 / 9 + 8 / 11) / 2)
    assert found.balanced_accuracy == pytest.approx(0.7)
    assert counts_of(truth(1, 1, 0, 0, 1), truth(1, 0, 1, 0, 1)) == Counts(2, 1, 1, 1)


def test_f1_agrees_with_scikit_learn():
    from sklearn.metrics import balanced_accuracy_score, f1_score

    rng = np.random.default_rng(0)
    flagged, stressed = rng.random(200) < 0.3, rng.random(200) < 0.2
    found = counts_of(flagged, stressed)
    assert found.f1_outlier == pytest.approx(f1_score(stressed, flagged))
    assert found.weighted_f1 == pytest.approx(f1_score(stressed, flagged, average="weighted"))
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(stressed, flagged))


def test_the_area_under_precision_and_recall_of_four_executions():
    """Ranked stressed, normal, stressed, normal: recall 1/2 at precision 1, 1 at 2/3: 1/2 + 1/2 · 2/3 = 5/6."""
    curve = precision_recall(np.array([0.9, 0.8, 0.7, 0.6]), truth(1, 0, 1, 0))
    assert curve["precision"].tolist() == pytest.approx([1, 1 / 2, 2 / 3, 1 / 2])
    assert curve["recall"].tolist() == [0.5, 0.5, 1, 1]
    assert average_precision(curve) == pytest.approx(5 / 6)


def test_equal_scores_are_one_point_whatever_their_order():
    for stressed in (truth(1, 0, 0, 1), truth(0, 1, 1, 0)):
        curve = precision_recall(np.ones(4), stressed)
        assert len(curve) == 1 and average_precision(curve) == 0.5


def test_the_area_agrees_with_scikit_learn():
    from sklearn.metrics import average_precision_score

    rng = np.random.default_rng(1)
    stressed = rng.random(300) < 0.2
    scores = np.round(rng.normal(size=300) + stressed, 1)
    assert average_precision(precision_recall(scores, stressed)) == pytest.approx(
        average_precision_score(stressed, scores)
    )


def test_delay_counts_executions_from_the_first_stressed_one_to_the_flag():
    """Episodes at 1-3, flagged at 2: one execution later; and at 5, never flagged."""
    found = delays(np.zeros(6), truth(0, 1, 1, 1, 0, 1), truth(0, 0, 1, 0, 0, 0))
    assert found[0] == 1 and np.isnan(found[1])


def test_episodes_are_those_of_one_node_and_type():
    """Two series in turn: each has one episode of two; of the second only its second execution is flagged."""
    found = delays(np.array([0, 1, 0, 1]), truth(1, 1, 1, 1), truth(1, 0, 0, 1))
    assert found.tolist() == [0, 1]


def test_a_flag_before_the_episode_is_a_false_alarm_and_no_detection():
    found = delays(np.zeros(4), truth(0, 0, 1, 1), truth(0, 1, 0, 0))
    assert np.isnan(found).tolist() == [True]


def test_two_of_eight_normal_executions_flagged_are_250_in_a_thousand():
    stressed = truth(0, 0, 0, 0, 0, 0, 0, 0, 1, 1)
    flagged = truth(1, 1, 0, 0, 0, 0, 0, 0, 1, 0)
    found = measures_of(flagged.astype(float), flagged, stressed, np.zeros(10))
    assert found["false_alarms_per_1000"] == 250
    assert found["precision"] == pytest.approx(1 / 3) and found["recall"] == 0.5
    assert found["delay_executions"] == 0 and found["missed_episodes"] == 0
    assert set(found) == set(MEASURES)


def test_one_class_alone_has_no_measure():
    found = measures_of(np.zeros(3), truth(0, 0, 0), truth(0, 0, 0), np.zeros(3))
    assert set(found.values()) == {None}


def test_the_threshold_lies_between_the_scores_that_it_parts():
    scores = np.array([0.1, 0.2, 0.3, 0.8, 0.9])
    assert choose_threshold(scores, truth(0, 0, 1, 1, 1), 0.01) == pytest.approx(0.25)
    assert choose_threshold(scores, truth(0, 0, 0, 1, 1), 0.01) == pytest.approx(0.55)


def test_the_threshold_has_the_best_f1():
    """Flagging 0.9, 0.8, 0.7 hits both stressed ones: 4/5; the first alone 2/3; all five 4/7."""
    found = choose_threshold(np.array([0.9, 0.8, 0.7, 0.6, 0.5]), truth(1, 0, 1, 0, 0), 0.01)
    assert found == pytest.approx(0.65)


def test_equal_scores_fall_on_one_side_of_the_threshold():
    found = choose_threshold(np.array([0.5, 0.5, 0.5, 0.1]), truth(1, 0, 0, 0), 0.01)
    assert found == pytest.approx(0.3)
    all_alike = choose_threshold(np.full(4, 0.5), truth(1, 1, 1, 0), 0.01)
    assert all_alike < 0.5 and all_alike == pytest.approx(0.5)  # all are flagged


def test_without_stress_in_validation_a_stated_share_is_flagged():
    scores = np.arange(100.0)
    assert (scores > choose_threshold(scores, np.zeros(100, dtype=bool), 0.05)).sum() == 5
    assert choose_threshold(np.zeros(0), np.zeros(0, dtype=bool), 0.05) == np.inf


def test_a_threshold_is_judged_by_those_nearby_as_well_in_all_but_small_sets():
    assert mean_of_nearby(np.array([1.0, 2.0, 6.0]), 1).tolist() == [1.5, 3, 4]
    assert mean_of_nearby(np.array([1.0, 2.0, 6.0]), 0).tolist() == [1, 2, 6]
    assert mean_of_nearby(np.array([1.0, 2.0, 6.0]), 9).tolist() == [3, 3, 3]


def fits_of(*rows):
    return pd.DataFrame([dict(zip(FIT_COLUMNS, [*row, *[np.nan] * 20], strict=False)) for row in rows])


def test_the_interval_of_three_fits():
    """1, 2, 3: mean 2, deviation 1; Student's t of two degrees at 97.5 % is 4.30265: 2 ± 4.30265 / √3."""
    figures = {}
    put_seeds(figures, "a", [1.0, None, 2.0, np.nan, 3.0])
    assert figures["a"] == 2 and figures["a.deviation"] == 1
    assert figures["a.low"] == pytest.approx(2 - 2.484138, abs=1e-6)
    assert figures["a.high"] == pytest.approx(2 + 2.484138, abs=1e-6)


def test_one_fit_has_no_interval_and_none_has_a_reason():
    figures = {}
    put_seeds(figures, "one", [0.5])
    put_seeds(figures, "none", [], "nobody knows")
    assert figures == {"one": 0.5, "none": None, "none.reason": "nobody knows"}


def test_every_measure_of_every_variant_and_protocol_has_a_key():
    reasons = {(protocol, name): "no label" for protocol in ("chronological", "paper") for name in ("model", "paper")}
    figures = learned_figures(LearnedResults(pd.DataFrame(), pd.DataFrame(columns=FIT_COLUMNS), reasons))
    for template in FIT_MEASURES.values():
        for name in ("model", "paper"):
            for suffix in ("", ".paper"):
                assert figures[template.format(name=name) + suffix] is None
                assert figures[template.format(name=name) + suffix + ".reason"] == "no label"
    assert figures["fit.rounds.paper"] is None and figures["fit.rounds.paper.reason"] == "no label"
