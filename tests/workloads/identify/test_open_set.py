from dataclasses import replace

import numpy as np
import pytest

from tasks.workloads.identify.calibration import fit_calibration
from tasks.workloads.identify.identification import identify_all
from tasks.workloads.identify.model import fit_model
from tasks.workloads.identify.params import OpenSetParams
from tasks.workloads.identify.synthetic import draw_runs, draw_workload

N_COUNTERS = 15  # of the runs of `case`


def auroc(known, unknown):
    known, unknown = np.array(known), np.array(unknown)
    return float((unknown[:, None] > known).mean() + 0.5 * (unknown[:, None] == known).mean())


def scores(runs, model):
    return [one.unknown_score for one in identify_all(runs, model, with_reasons=False)]


def test_more_evidence_never_makes_a_run_less_suspicious():
    rng = np.random.default_rng(0)
    is_unknown = np.arange(60) % 2 == 0
    evidence = rng.normal(size=(60, 3))
    evidence[:, 0] += 2 * is_unknown
    evidence[:, 1] -= 2 * is_unknown  # speaks the wrong way round: must not be believed
    found = fit_calibration(evidence, is_unknown, 0.01)
    assert found.weights[0] > 0.5 and found.weights[1] == 0
    for column in range(3):
        more = evidence.copy()
        more[:, column] += 1
        assert (found.scores(more) >= found.scores(evidence)).all()


def test_scores_are_calibrated_where_known_and_unknown_are_as_frequent():
    rng = np.random.default_rng(1)
    is_unknown = rng.random(4000) < 0.2
    evidence = (rng.normal(size=4000) + 1.5 * is_unknown)[:, None]
    score = fit_calibration(evidence, is_unknown, 1e-6).scores(evidence)
    near = (score > 0.4) & (score < 0.6)
    share = is_unknown[near].mean() / (is_unknown[near].mean() + (1 - is_unknown[near].mean()) * 0.25)
    assert share == pytest.approx(0.5, abs=0.1)


def test_without_an_unknown_run_all_evidence_weighs_the_same():
    found = fit_calibration(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([False, False]), 0.1)
    assert not found.is_learned and found.weights.tolist() == [0.5, 0.5]


def test_strangers_score_above_runs_of_known_workloads(case):
    assert auroc(scores(case.test, case.model), scores(case.strangers, case.model)) > 0.98


def test_kin_of_a_known_workload_do_not_pass_for_it(case):
    assert auroc(scores(case.test, case.model), scores(case.kin, case.model)) > 0.9


def test_the_score_is_learned_without_the_runs_that_it_judges(case, quick):
    """A calibration that had seen its own training runs as known would call held-out ones unknown."""
    found = [one.is_known for one in identify_all(case.test, case.model, with_reasons=False)]
    assert np.mean(found) >= 0.75


def test_a_higher_recall_of_known_runs_raises_the_limit(case, quick):
    limits = [
        fit_model(case.train, quick.model_copy(update={"open_set": OpenSetParams(known_recall=recall)})).open_set.limit
        for recall in (0.5, 0.99)
    ]
    assert limits[0] < limits[1]


def test_a_run_that_is_more_likely_unknown_is_never_called_known(case):
    found = identify_all([*case.test, *case.strangers, *case.kin], case.model, with_reasons=False)
    assert case.model.open_set.limit <= 0.5
    assert all(one.is_known == (one.unknown_score <= case.model.open_set.limit) for one in found)


def test_whitened_distances_tell_strangers_too(case, quick):
    model = fit_model(case.train, quick.model_copy(update={"open_set": OpenSetParams(metric="whitened")}))
    assert auroc(scores(case.test, model), scores(case.strangers, model)) > 0.98


def test_one_known_workload_is_enough_to_call_another_one_unknown(case, quick):
    redis = [run for run in case.train if run.workload == "redis"]
    model = fit_model(redis, quick)
    own = [run for run in case.test if run.workload == "redis"]
    assert auroc(scores(own, model), scores(case.strangers, model)) == 1
    assert not any(one.is_known for one in identify_all(case.strangers, model))


def test_mislabelled_runs_do_not_raise_the_limit_above_even_odds(case, quick):
    """Held out, a run of each workload is like nothing that was learned, yet is said to be known."""
    rng, known = np.random.default_rng(5), sorted({run.workload for run in case.train})
    strangers = draw_runs([draw_workload(f"x-{one}", N_COUNTERS, 3, rng) for one in known], 1, rng)
    wrong = [replace(run, workload=run.workload.removeprefix("x-")) for run in strangers]
    model = fit_model([*case.train, *wrong], quick.model_copy(update={"open_set": OpenSetParams(known_recall=0.999)}))
    assert model.open_set.calibration.is_learned
    assert model.open_set.limit == 0.5


def test_where_no_workload_can_be_left_out_the_limit_is_that_of_the_held_out_runs(case, quick):
    redis = [run for run in case.train if run.workload == "redis"]
    wrong = [replace(one, run_id=f"{one.run_id}-wrong", workload="redis") for one in case.strangers[:2]]
    model = fit_model([*redis, *wrong], quick.model_copy(update={"open_set": OpenSetParams(known_recall=0.999)}))
    assert not model.open_set.calibration.is_learned
    assert model.open_set.limit > 0.5


def test_two_workloads_are_enough_to_leave_one_out(case, quick):
    two = [run for run in case.train if run.workload in ("redis", "nginx")]
    assert fit_model(two, quick).open_set.calibration.is_learned
