"""Questions to a trained model over a log whose truth is known: spare tokens and fast machines shorten runs."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput, NotFound
from tasks.jobs.control.answering import (
    answer_figures,
    describe_placement,
    fit_placement,
    likely_shares,
    make_ground,
    most_helped,
    recorded_as,
    write_answer,
)
from tasks.jobs.control.effects import MAX_ROWS
from tasks.jobs.control.scenarios import apply, parse_scenario
from tasks.jobs.evaluate import evaluate_runs
from tasks.jobs.params import WhatIfParams
from tasks.jobs.predict.predicting import predict_rows
from tasks.jobs.predict.training import trained_of
from tasks.warehouse.connection import fetch

PARAMS = WhatIfParams()
MINUTE = np.timedelta64(1, "m")
N_JOBS, N_RUNS, N_PAIRS = 8, 960, 60
NO_SPARE, ALL_FAST = 0.5, -0.6  # log runtime without spare tokens, and with all vertices on gen5


def log_rows(rng, number, *, spare=None, only_fast=None):
    """Runs of `number` (job by job in turn); spare, only_fast: (n,), drawn if None. 4 vertices, fast ones on gen5."""
    n = len(number)
    spare = rng.integers(0, 2, n) * 3.0 if spare is None else spare
    only_fast = np.zeros(n, dtype=bool) if only_fast is None else only_fast
    fast = np.where(only_fast, 4, rng.binomial(4, 0.4, n))
    log = np.log(5.0 + number) + NO_SPARE * (spare == 0) + ALL_FAST * fast / 4 + 0.1 * rng.standard_normal(n)
    return pd.DataFrame(
        {
            "group_key": [f"job-{job}" for job in number], "runtime_s": np.exp(log), "requested_cpus": 2.0,
            "spare_tokens_available": spare, "spare_tokens_used": spare / 2, "load_mean": rng.uniform(0.2, 0.8, n),
            "load_sd": rng.uniform(0.05, 0.3, n), "offered_gen3": np.where(only_fast, 0.0, 1.0), "offered_gen5": 1.0,
            "vertices_gen3": 4.0 - fast, "vertices_gen5": fast.astype(float), "n_vertices": 4.0,
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def runs():
    """The log, then each of its last runs repeated unchanged, without spare tokens, and on gen5 only."""
    rng = np.random.default_rng(3)
    log = log_rows(rng, np.arange(N_RUNS) % N_JOBS).assign(run_id=[f"r{i:04}" for i in range(N_RUNS)])
    number = np.arange(N_PAIRS) % N_JOBS
    ids = [f"r{N_RUNS - N_PAIRS + i:04}" for i in range(N_PAIRS)]
    has_spare = np.full(N_PAIRS, 3.0)
    parts = [log]
    for kind, changed in (
        ("baseline", {"spare": has_spare}),
        ("no_spare", {"spare": has_spare * 0}),
        ("newest_sku", {"spare": has_spare, "only_fast": np.ones(N_PAIRS, dtype=bool)}),
    ):
        named = {"what_if": kind, "run_id": [f"{one}-{kind}" for one in ids]}
        partner = ids if kind == "baseline" else [f"{one}-baseline" for one in ids]
        parts.append(log_rows(rng, number, **changed).assign(**named, matched_run_id=partner))
    frame = pd.concat(parts, ignore_index=True)
    submitted_at = pd.Timestamp("2026-01-01") + np.arange(len(frame)) * MINUTE
    frame = frame.assign(submitted_at=submitted_at, started_at=submitted_at, is_simulated=True)
    ends = frame["submitted_at"] + pd.to_timedelta(frame["runtime_s"], unit="s")
    return frame.assign(ended_at=ends.astype("datetime64[us]"), submitted_at=submitted_at.astype("datetime64[us]"))


@pytest.fixture(scope="module")
def trained(runs, quick_training):
    """A model of a few small trees of the log without the runs that were done again."""
    log = runs[runs["what_if"].isna()].reset_index(drop=True)
    return trained_of(evaluate_runs(log, quick_training), quick_training)


@pytest.fixture(scope="module")
def ground(runs, trained):
    return make_ground(trained, runs)


def ask(ground, **words):
    return ground.answer(parse_scenario(**words), PARAMS)


def test_an_unchanged_run_is_predicted_as_the_model_predicts_it(ground, trained):
    """The earlier runs of a job count in an answer as they do without a question."""
    asked = ground.subjects
    told, plainly = asked.predict(asked.features), predict_rows(trained, asked.runs, ground.past)
    assert told.quantile(0.9) == pytest.approx(plainly.quantile(0.9))


def test_only_held_out_runs_of_the_log_are_asked_about(ground, trained):
    ids = set(ground.subjects.runs["run_id"])
    assert len(ids) == MAX_ROWS or ids.isdisjoint(trained.seen["run_id"])
    assert not any("-" in one for one in ids)


def test_without_spare_tokens_runs_take_as_much_longer_as_was_measured(ground):
    found = ask(ground, scenario="no_spare")
    score = found.measured.score
    assert (score.n, score.n_groups) == (N_PAIRS, N_JOBS)
    assert score.mean_measured == pytest.approx(NO_SPARE, abs=0.1)
    assert score.mean_predicted == pytest.approx(NO_SPARE, abs=0.25)  # a few small trees learn it in part
    assert score.directions.share > 0.9
    assert score.mae < 0.6 * score.mae_no_change
    assert found.outcome.changes.loc["median_s", "low"] > 0
    assert any(line.startswith("Predicted:") for line in found.claims.can)


def test_moving_all_vertices_helps_though_the_model_knows_only_where_earlier_runs_worked(ground):
    found = ask(ground, scenario="newest_sku")
    score = found.measured.score
    assert score.mean_measured == pytest.approx(0.6 * ALL_FAST, abs=0.1)
    assert score.mean_predicted == pytest.approx(0.6 * ALL_FAST, abs=0.15)
    assert score.directions.share > 0.8
    assert any("with all vertices on gen5 than with all on gen3" in line for line in found.claims.can)


def test_the_same_change_in_other_words_is_measured_by_the_same_pairs(ground):
    free = ask(ground, sets=["spare_multiplier=0"])
    assert recorded_as(free.scenario) == "no_spare"
    assert free.measured.score == ask(ground, scenario="no_spare").measured.score


def test_a_change_that_was_never_made_says_so(ground):
    found = ask(ground, sets=["spare_multiplier=1"])
    assert found.measured is None
    assert found.reason == "runs were done again with no_spare, newest_sku, steady_load only, if at all"
    assert found.claims.cannot[0].startswith("Nothing measured stands behind it")
    assert ask(ground, scenario="steady_load").reason == "no run was done again with steady_load"


def test_a_question_that_the_log_cannot_answer_is_one_line(ground):
    with pytest.raises(BadInput, match=r"^what-if shift-sku gen9:gen3: the log has no SKU 'gen9'; expected one of"):
        ask(ground, shifts=["gen9:gen3"])


def test_what_never_varied_is_refused_and_not_told_to_change_nothing_for_sure(ground):
    with pytest.raises(BadInput, match="cpus was 2 in all runs that the model learnt from"):
        ask(ground, sets=["cpus=x2"])


def test_of_one_job_the_next_run_is_asked_under_the_conditions_of_its_last_runs(runs, trained):
    ground = make_ground(trained, runs, job="job-3")
    assert ground.subjects.runs["group_key"].unique().tolist() == ["job-3"]
    assert (ground.subjects.runs["submitted_at"] > ground.past["ended_at"].max()).all()
    found = ask(ground, scenario="no_spare")
    assert found.measured.score.n_groups == 1
    assert not any("do not bear it out" in line for line in found.claims.cannot)  # one job is no evidence against it
    with pytest.raises(NotFound, match=r"^job 'job-99': no finished run with a runtime"):
        make_ground(trained, runs, job="job-99")


def test_a_log_without_runs_beyond_the_training_is_refused(runs, trained):
    seen = runs[runs["run_id"].isin(trained.seen["run_id"])].reset_index(drop=True)
    with pytest.raises(BadInput, match="no run of the last part of the log that the model did not learn from"):
        make_ground(trained, seen)


def test_the_jobs_that_gain_most_come_first(ground):
    found = ask(ground, scenario="newest_sku")
    rows = most_helped(found.outcome)
    gains = [row["p95_s"] for row in rows]
    assert gains == sorted(gains)
    assert gains[0] < 0
    assert len(rows) == N_JOBS


def test_the_same_question_gets_the_same_figures_and_they_are_plain(ground):
    first, again = (answer_figures(ask(ground, scenario="newest_sku"), PARAMS) for _ in range(2))
    assert first == again
    assert first["changes"]["money"]["words"].startswith("price")
    assert first["moves"]["ratio"]["runs"]["n"] == first["n_runs"]


def test_an_answer_is_written_whole_and_twice_changes_nothing(ground, job_log):
    warehouse = job_log([{"runtime_s": 1.0}])
    named, free = ask(ground, scenario="no_spare"), ask(ground, sets=["spare_multiplier=1"])
    for found in (named, named, free):
        write_answer(warehouse, "log", "model-1", found, PARAMS)
    changes, pairs, moves, claims = (
        fetch(warehouse, f"SELECT * FROM jobs.{name} WHERE source = 'log' ORDER BY scenario", {})
        for name in ("what_ifs", "what_if_pairs", "what_if_moves", "what_if_claims")
    )
    one = changes[changes["scenario"] == "no_spare"].set_index("measure")
    assert set(one["edits"]) == {"spare_multiplier=0"} and set(one["model_id"]) == {"model-1"}
    expected = named.outcome.changes["change"]
    assert one["change"].reindex(expected.index).to_numpy() == pytest.approx(expected.to_numpy())
    assert moves.loc[(moves["scenario"] == "no_spare") & (moves["kind"] == "ratio"), "n_runs"].sum() == len(
        named.outcome.before
    )
    assert list(pairs["scenario"]) == ["no_spare", "spare_multiplier=1"]
    assert list(pairs["n_pairs"].fillna(0)) == [N_PAIRS, 0]
    assert pairs["right_share"].iloc[0] == named.measured.score.directions.share
    of_cannot = claims[(claims["scenario"] == "no_spare") & (claims["about"] == "cannot")].sort_values("place")
    assert list(of_cannot["claim"]) == list(named.claims.cannot)
    assert "only, if at all" in pairs["reason"].iloc[1]


EFFECTS = {"gen3": 0.0, "gen4": -0.3, "gen5": -0.6}


def placed_runs(n=900, *, job_levels=True, rng_seed=2):
    """Runs of 9 jobs of 4 vertices that land at random; jobs that run on fast machines may be slow ones."""
    rng = np.random.default_rng(rng_seed)
    jobs = np.arange(n) % 9
    fast = 0.2 + 0.6 * (jobs / 8)
    on = np.stack([rng.multinomial(4, [(1 - p) / 2, (1 - p) / 2, p]) for p in fast])
    log = on / 4 @ np.array(list(EFFECTS.values())) + (2.0 * fast if job_levels else 0.0)
    frame = pd.DataFrame(on, columns=[f"vertices_{sku}" for sku in EFFECTS]).astype(float)
    return frame.assign(n_vertices=4.0, group_key=[f"job-{job}" for job in jobs]), log


def test_the_effect_of_a_sku_is_that_within_jobs_whatever_jobs_it_serves():
    found = fit_placement(*placed_runs())
    assert found.effects["gen5"] - found.effects["gen3"] == pytest.approx(-0.6, abs=0.06)
    assert found.effects["gen4"] - found.effects["gen3"] == pytest.approx(-0.3, abs=0.05)
    assert (found.n_runs, found.n_groups, found.reason) == (900, 9, None)


def test_a_few_runs_tell_nothing_and_more_of_them_more():
    frame, log = placed_runs()
    assert fit_placement(frame[:29], log[:29]).reason == "fewer than 30 runs say where their vertices worked"
    few, many = (fit_placement(frame[:n], log[:n]).effects for n in (60, 900))
    assert 0 > few["gen5"] > many["gen5"]


def test_a_log_with_one_sku_or_none_moves_nothing():
    frame, log = placed_runs()
    for less in (frame[["group_key", "n_vertices", "vertices_gen3"]], frame[["group_key"]]):
        found = fit_placement(less, log)
        assert found.effects == {}
        assert found.log_shift(frame, frame).tolist() == [0.0] * len(frame)
        assert describe_placement(found, features()) == []


def features():
    """On both, offered gen5 only, offered a SKU that earlier runs were never on, a job without earlier runs."""
    nan = np.nan
    return pd.DataFrame(
        {
            "offered_gen3": [1.0, 0.0, 0.0, 1.0],
            "offered_gen5": [1.0, 1.0, 1.0, 1.0],
            "vertex_share_gen3_mean": [0.75, 0.75, 1.0, nan],
            "vertex_share_gen5_mean": [0.25, 0.25, 0.0, nan],
        }
    )


def test_vertices_are_expected_where_earlier_ones_were_as_far_as_it_is_offered():
    found = likely_shares(features(), ["gen3", "gen5"])
    assert found[:3].tolist() == [[0.75, 0.25], [0.0, 1.0], [0.0, 1.0]]
    assert np.isnan(found[3]).all()


def test_moving_to_the_faster_sku_helps_runs_by_as_much_as_was_elsewhere():
    before = features()
    after = apply(parse_scenario(shifts=["gen3:gen5"]), before)
    found = fit_placement(*placed_runs())
    gain = found.effects["gen5"] - found.effects["gen3"]
    assert found.log_shift(before, after) == pytest.approx([0.75 * gain, 0.0, 0.0, 0.0])
    told = describe_placement(found, before)
    assert len(told) == 1
    assert "44 % less with all vertices on gen5 than with all on gen3, by 900 runs of 9 jobs" in told[0]
