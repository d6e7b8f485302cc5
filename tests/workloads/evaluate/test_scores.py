import pytest

from tasks.workloads.evaluate.figures import put, put_summary
from tasks.workloads.evaluate.scores import confusion_of, score_of, summary_of


def test_scores_by_hand():
    """redis: 2 of 2 right, told 3 times; mysql: 1 of 2 right, told once; nginx is told once and never true."""
    found = score_of(["redis", "redis", "mysql", "mysql", "mysql"], ["redis", "redis", "mysql", "redis", "nginx"])
    assert found.accuracy == 3 / 5
    assert found.precision == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert found.recall == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert found.macro_f1 == pytest.approx((4 / 5 + 2 / 4 + 0) / 3)


def test_scores_are_those_of_scikit_learn():
    from sklearn.metrics import f1_score, precision_score, recall_score

    truth, told = list("aabbccdd"), list("abbbccae")
    found = score_of(truth, told)
    for value, score in ((found.macro_f1, f1_score), (found.precision, precision_score), (found.recall, recall_score)):
        assert value == pytest.approx(score(truth, told, average="macro", zero_division=0))


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
        "a": 0.0,
        "b": None,
        "b.reason": "not a number",
        "c": None,
        "c.reason": "one round only",
        "d": 1.0,
        "d.deviation": 0.0,
    }
