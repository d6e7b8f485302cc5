import numpy as np
import pytest

from tasks.workloads.evaluate.cohort import cohort_of
from tasks.workloads.evaluate.params import EvaluateParams, SampleParams, WindowParams
from tasks.workloads.evaluate.splits import splits_of
from tasks.workloads.evaluate.unknown import auroc, false_known, held_out_pairs, unknown_tables
from tasks.workloads.evaluate.windows import cut
from tasks.workloads.identify.identification import identify_all
from tasks.workloads.identify.model import fit_model
from tasks.workloads.identify.params import IdentifyParams, TreeParams


def test_auroc_by_hand():
    """Of 2 × 3 pairs the unknown run has the higher score in 4, and one is a tie."""
    assert auroc(np.array([1.0, 3.0]), np.array([2.0, 3.0, 4.0])) == pytest.approx(4.5 / 6)
    assert auroc(np.array([0.0, 1.0]), np.array([2.0])) == 1
    assert auroc(np.array([1.0]), np.array([1.0, 1.0])) == 0.5


def test_auroc_is_that_of_scikit_learn():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    known, unknown = rng.normal(size=40).round(1), rng.normal(1, size=30).round(1)
    expected = roc_auc_score([0] * 40 + [1] * 30, np.concatenate([known, unknown]))
    assert auroc(known, unknown) == pytest.approx(expected)


def test_the_false_known_rate_is_taken_where_enough_known_runs_are_known():
    known = np.arange(1.0, 21.0)  # 19 of 20 are at or below 19
    assert false_known(known, np.array([18.0, 19.0, 19.5, 30.0]), 0.95) == 0.5
    assert false_known(known, np.array([20.0, 21.0]), 1.0) == 0.5


def test_every_pair_is_held_out_and_of_too_many_a_sample():
    assert held_out_pairs(["c", "a", "b", "a"], 10, 0) == [("a", "b"), ("a", "c"), ("b", "c")]
    some = held_out_pairs([f"{at:02}" for at in range(20)], 7, 3)
    assert len(some) == len(set(some)) == 7 and some == sorted(some)


def test_the_scores_are_those_of_identify(campaign):
    params = EvaluateParams(
        identify=IdentifyParams(trees=TreeParams(rounds=5, seeds=1)), sample=SampleParams(repeats=1)
    )
    cohort = cohort_of(cut(campaign(), WindowParams()).items, params.identify.fingerprint)
    splits = splits_of(cohort.items, "random", params).splits
    found = unknown_tables(cohort, splits, [("mysql", "redis")], params.identify, 0.95)
    train = [at for at in splits[0].train if cohort.labels[at] == "nginx"]
    model = fit_model(cohort.runs(train), params.identify)
    runs = {item.run.run_id: item.run for item in cohort.items}
    told = identify_all([runs[run_id] for run_id in found.scores["run_id"]], model, with_reasons=False)
    np.testing.assert_allclose(found.scores["score"], [one.unknown_score for one in told])
    is_unknown = found.scores["is_unknown"].to_numpy()
    assert found.pairs["said_known"][0] == np.mean([one.is_known for one in np.array(told, dtype=object)[is_unknown]])
