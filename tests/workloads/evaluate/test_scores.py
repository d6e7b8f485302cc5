import numpy as np
import pytest

from tasks.workloads.evaluate.scores import auroc, confusion_of, false_known, put, put_summary, score_of, summary_of


def test_scores_are_those_of_scikit_learn():
    """Also where a workload is told once and never true."""
    from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

    truth, told = list("aabbccdd"), list("abbbccae")
    found, kinds = score_of(truth, told), {"average": "macro", "zero_division": 0}
    assert found.accuracy == accuracy_score(truth, told)
    for value, score in ((found.macro_f1, f1_score), (found.precision, precision_score), (found.recall, recall_score)):
        assert value == pytest.approx(score(truth, told, **kinds))


def test_a_summary_is_mean_and_deviation_over_splits():
    found = summary_of([0.5, 1.0])
    assert found.mean == 0.75 and found.deviation == pytest.approx(0.125**0.5) and found.n_splits == 2
    assert summary_of([1.0]).deviation is None and summary_of([]) is None


def test_the_confusion_counts_every_run():
    found = confusion_of(list("aab"), list("aba"))
    assert found.to_dict("records") == [
        {"actual": "a", "predicted": "a", "n": 1},
        {"actual": "a", "predicted": "b", "n": 1},
        {"actual": "b", "predicted": "a", "n": 1},
    ]


def test_a_missing_figure_is_none_with_its_reason():
    figures = {}
    put(figures, "a", 0.0)
    put(figures, "b", float("nan"))
    put_summary(figures, "c", None, "one round only")
    put_summary(figures, "d", summary_of([1.0, 1.0]))
    assert figures == {
        "a": 0.0, "b": None, "b.reason": "not a number", "c": None, "c.reason": "one round only", "d": 1.0,
        "d.deviation": 0.0,
    }  # fmt: skip


def test_auroc_by_hand():
    """Of 2 × 3 pairs the unknown run has the higher score in 4, and one is a tie."""
    assert auroc(np.array([1.0, 3.0]), np.array([2.0, 3.0, 4.0])) == pytest.approx(4.5 / 6)
    assert auroc(np.array([0.0, 1.0]), np.array([2.0])) == 1
    assert auroc(np.array([1.0]), np.array([1.0, 1.0])) == 0.5


def test_the_false_known_rate_is_taken_where_enough_known_runs_are_known():
    known = np.arange(1.0, 21.0)  # 19 of 20 are at or below 19
    assert false_known(known, np.array([18.0, 19.0, 19.5, 30.0]), 0.95) == 0.5
    assert false_known(known, np.array([20.0, 21.0]), 1.0) == 0.5
