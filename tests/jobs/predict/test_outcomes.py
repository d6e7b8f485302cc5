"""The chances that a run completes, is stopped or still runs: by hand, and in logs with a known truth."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.distribution import gather_history
from tasks.jobs.predict.outcomes import (
    COMPLETES,
    MAIN,
    REACHES,
    EventModel,
    Outcomes,
    evaluate_outcomes,
    fit_outcomes,
    outcome_features,
)

LIMIT_S = 100.0


@pytest.fixture
def limited(log_of):
    """A function: runs of a limit of 100 s, out of shares of it and statuses."""

    def made(shares, statuses, jobs="job", **columns):
        statuses = [statuses] * len(shares) if isinstance(statuses, str) else statuses
        known = {"requested_runtime_s": LIMIT_S, "requested_cpus": 1, "user_name": "user", "queue": "q"} | columns
        return log_of(LIMIT_S * np.asarray(shares), jobs, status=statuses, **known)

    return made


@pytest.fixture
def mixed(limited):
    """600 runs of ten jobs; job i is stopped at its limit with a chance of i / 10, and completes half way otherwise."""
    rng = np.random.default_rng(0)
    jobs = np.arange(600) % 10
    is_stopped = rng.random(600) < jobs / 10
    shares, statuses = np.where(is_stopped, 1.0, 0.5), np.where(is_stopped, "timeout", "completed")
    return limited(shares, statuses, [f"job{job}" for job in jobs], user_name=[f"user{job}" for job in jobs])


@dataclass
class Read:
    """A chance that stands in the features."""

    column: str

    def predict(self, features):
        return features[self.column].to_numpy()


def by_hand(completes, reaches, early=(0.5,), late=(1.0,)):
    """Outcomes that read both chances from the features, and those of one run with a limit of 100 s."""
    chances = {REACHES: Read("r"), COMPLETES: Read("c")}
    features = pd.DataFrame({"r": [reaches], "c": [completes], "requested_runtime_s": [LIMIT_S]})
    return Outcomes(chances, np.array(early), np.array(late)), features


def tens():
    """10, 20 … 100 s alike."""
    return gather_history(np.arange(10.0, 101.0, 10.0), np.zeros(10, dtype=int))


def test_the_chance_to_go_on_is_the_one_worked_out_by_hand():
    outcomes, features = by_hand(completes=0.8, reaches=0.18)
    # 0.8 * 0.1 of those that complete reach 95 s, so 0.1 of the 0.2 that are stopped: half of them, the others at 50 s
    # completed by 9, 50, 95, 100 s: 0, 0.4, 0.72, 0.8; stopped by then: 0, 0.1, 0.1, 0.2
    goes_on = outcomes.goes_on(features, tens(), [[9.0, 50.0, 95.0, 100.0]])
    assert goes_on == pytest.approx(np.array([[1.0, 0.5, 0.18, 0.0]]))


def test_how_a_run_ends_sooner_or_later_is_worked_out_by_hand():
    outcomes, features = by_hand(completes=0.8, reaches=0.18)
    ends = outcomes.endings(features, tens())
    assert ends.iloc[0].tolist() == pytest.approx([0.8, 0.1, 0.1])
    unlimited = outcomes.endings(features.assign(requested_runtime_s=np.nan), tens())
    assert unlimited.isna().all(axis=None)


@pytest.mark.parametrize(("completes", "reaches"), [(0.8, 0.01), (0.8, 0.99), (1.0, 0.5), (0.0, 0.5), (0.0, 0.0)])
def test_the_chance_to_go_on_falls_from_one_to_none(completes, reaches):
    outcomes, features = by_hand(completes, reaches)
    goes_on = outcomes.goes_on(features, tens(), np.linspace(0, 300, 61)[None, :])[0]
    assert goes_on[0] == 1 and (np.diff(goes_on) <= 1e-12).all() and goes_on[-1] == pytest.approx(0)


def test_a_run_without_a_limit_has_no_answer():
    outcomes, features = by_hand(0.8, 0.1)
    assert np.isnan(outcomes.goes_on(features.assign(requested_runtime_s=np.nan), tens(), [[50.0]])).all()
    assert np.isnan(outcomes.reaches(features.assign(requested_runtime_s=0.0))).all()


def test_features_are_rates_among_the_runs_that_had_ended(limited):
    runs = limited([0.95, 0.2, 1.0, 0.1], ["failed", "completed", "timeout", "completed"], requested_cpus=[1, 1, 2, 1])
    # one run a minute, the second ends at 80 s, the first at 95 s, the third at 220 s: the others know the first two
    features = outcome_features(runs, runs)
    last = features.iloc[3]
    assert last["reaches_job_last"] == 0 and last["reaches_job_5"] == pytest.approx(1.5 / 3)
    assert last["completes_user_20"] == pytest.approx(1.5 / 3) and last["limit_share_job"] == pytest.approx(
        np.log(0.95)
    )
    assert features["reaches_job_rate"].tolist() == pytest.approx([0.5, 0.5, 1.5 / 3, 1.5 / 3])


class Always:
    """Trees that say one chance of every row."""

    def predict(self, rows, **_):
        return np.full(len(rows), 0.2)


def test_trees_stand_for_a_number_of_runs_beside_those_of_the_job():
    features = pd.DataFrame({"hour": [1.0, 2.0], "reaches_known": [5.0, 0.0], "reaches_job_50": [3.5 / 6, 0.5]})
    chance = EventModel(REACHES, Always(), ("hour",), 8.0)
    assert chance.predict(features).tolist() == pytest.approx([(3 + 8 * 0.2) / 13, 0.2])  # 3 of 5, and a new job


def test_a_job_that_runs_into_its_limit_half_the_time_is_foretold_so_among_jobs_that_do_not(limited):
    rng = np.random.default_rng(5)
    jobs = np.arange(480) % 8
    shares = np.where((jobs == 0) & (rng.random(480) < 0.5), 1.0, rng.uniform(0.2, 0.5, 480))
    runs = limited(shares, np.where(shares == 1, "timeout", "completed"), [f"job{job}" for job in jobs])
    features = outcome_features(runs, runs)
    reaches = fit_outcomes(features.iloc[:400], runs.iloc[:400]).reaches(features.iloc[400:])
    assert reaches[jobs[400:] == 0].mean() == pytest.approx(0.5, abs=0.12)
    assert reaches[jobs[400:] != 0].mean() < 0.03


def test_later_runs_change_nothing(mixed):
    changed = mixed.copy()
    changed.loc[400:, ["runtime_s", "status"]] = [3.0, "failed"]
    before, after = (outcome_features(runs, runs).iloc[:400] for runs in (mixed, changed))
    pd.testing.assert_frame_equal(before, after)
    told = [fit_outcomes(each.iloc[:300], mixed.iloc[:300]).reaches(each.iloc[300:]) for each in (before, after)]
    assert np.array_equal(*told)


def test_the_model_comes_near_the_rate_of_the_job_in_a_log_where_that_is_all(mixed):
    figures, _ = evaluate_outcomes(mixed)
    assert figures["outcome.n"] == 120 and 0.3 < figures["outcome.base_rate"] < 0.6
    assert figures["outcome.brier.limit95.model"] < 1.05 * figures["outcome.brier.limit95.history"]
    assert figures["outcome.brier.limit95.model"] < figures["outcome.brier.limit95.lightgbm"]
    assert figures["outcome.brier.limit95.model"] < figures["outcome.brier.limit95.base"]
    assert figures["outcome.difference_low.limit95.history"] < figures["outcome.difference_high.limit95.history"]


@pytest.mark.parametrize(
    ("share", "status", "chance"), [(1.0, "timeout", 0.0), (0.5, "completed", 1.0), (0.1, "failed", 0.0)]
)
def test_a_log_of_one_outcome_foretells_it(limited, share, status, chance):
    runs = limited([share] * 300, status)
    features = outcome_features(runs, runs)
    outcomes = fit_outcomes(features, runs)
    assert outcomes.completes(features)[-1] == pytest.approx(chance, abs=0.02)
    assert outcomes.reaches(features)[-1] == pytest.approx(float(share == 1.0), abs=0.02)
    goes_on = outcomes.goes_on(features.iloc[[-1]], tens(), [[99.0]])
    assert goes_on[0, 0] == pytest.approx(float(share == 1.0) + 0.1 * chance, abs=0.02)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_few_runs_have_chances(limited, n):
    runs = limited(np.linspace(0.5, 1.0, n), ["completed" if i % 2 else "failed" for i in range(n)])
    features = outcome_features(runs, runs)
    outcomes = fit_outcomes(features, runs)
    for chance in (outcomes.reaches(features), outcomes.completes(features)):
        assert ((chance >= 0) & (chance <= 1)).all()


def test_without_limits_there_is_a_reason_in_place_of_a_figure(mixed):
    for runs in (mixed.drop(columns="requested_runtime_s"), mixed.assign(requested_runtime_s=0.0), mixed.iloc[:0]):
        figures, _ = evaluate_outcomes(runs)
        assert figures["outcome.n"] == 0 and figures["outcome.brier.limit95.model"] is None
        assert "no time limits" in figures["outcome.brier.limit95.model.reason"]


def test_a_log_without_users_is_told_by_job_and_request(mixed):
    figures, _ = evaluate_outcomes(mixed.drop(columns="user_name"))
    assert figures["outcome.brier.limit95.model"] < figures["outcome.brier.limit95.base"]
    assert "outcome.brier.limit95.user_request" not in figures


def test_what_was_saved_predicts_the_same(mixed, tmp_path):
    features = outcome_features(mixed, mixed)
    outcomes = fit_outcomes(features, mixed)
    outcomes.save(tmp_path)
    again = Outcomes.load(tmp_path)
    assert np.array_equal(again.reaches(features), outcomes.reaches(features))
    one = features.iloc[[-1]]
    assert again.goes_on(one, tens(), [[99.0]]) == outcomes.goes_on(one, tens(), [[99.0]])
    text = (tmp_path / MAIN).read_text()
    (tmp_path / MAIN).write_text(text.replace('"hour",', ""))
    with pytest.raises(BadInput, match="features"):
        Outcomes.load(tmp_path)
