import numpy as np
import pytest

from tasks.workloads.evaluate.scores import auroc, confusion_of, false_known, score_of


def test_scores_by_hand():
    """redis: 2 of 2 right, told 3 times; mysql: 1 of 2 right, told once; nginx is told once and never true."""
    found = score_of(["redis", "redis", "mysql", "mysql", "mysql"], ["redis", "redis", "mysql", "redis", "nginx"])
    assert found.accuracy == 3 / 5
    assert found.precision == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert found.recall == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert found.macro_f1 == pytest.approx((4 / 5 + 2 / 4 + 0) / 3)


def test_the_confusion_counts_every_run():
    found = confusion_of(list("aab"), list("aba"))
    assert found.to_dict("records") == [
        {"actual": "a", "predicted": "a", "n": 1},
        {"actual": "a", "predicted": "b", "n": 1},
        {"actual": "b", "predicted": "a", "n": 1},
    ]


def test_auroc_by_hand():
    """Of 2 × 3 pairs the unknown run has the higher score in 4, and one is a tie."""
    assert auroc(np.array([1.0, 3.0]), np.array([2.0, 3.0, 4.0])) == pytest.approx(4.5 / 6)
    assert auroc(np.array([0.0, 1.0]), np.array([2.0])) == 1
    assert auroc(np.array([1.0]), np.array([1.0, 1.0])) == 0.5


def test_the_false_known_rate_is_taken_where_enough_known_runs_are_known():
    known = np.arange(1.0, 21.0)  # 19 of 20 are at or below 19
    assert false_known(known, np.array([18.0, 19.0, 19.5, 30.0]), 0.95) == 0.5
    assert false_known(known, np.array([20.0, 21.0]), 1.0) == 0.5
