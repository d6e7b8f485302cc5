"""The predicted distribution of a runtime: against history on drawn logs, by hand, and at the edges."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.predict.baselines import history_prediction
from tasks.jobs.predict.conditional import calibrated, fit_conditional, log_s
from tasks.jobs.predict.feature_params import FeatureParams
from tasks.jobs.predict.features import make_features
from tasks.jobs.predict.features_earlier import earlier_runs
from tasks.jobs.scores import coverage_of


def learnt(runs, n_training, params):
    """The model of the first runs, features of all, and the bins of all as an evaluation has them."""
    features = make_features(runs, runs, FeatureParams())
    model, seen = fit_conditional(features[:n_training], runs[:n_training], params)
    bins = model.residual_bins(features, runs["runtime_s"])
    bins[:n_training] = seen
    return model, features, bins


def told_of(model, features, bins, runs, rows):
    """Distributions of some rows, with what they may know of their jobs."""
    earlier = earlier_runs(runs.iloc[rows], runs)
    return model.predict(features.iloc[rows], model.own_runs(features.iloc[rows], earlier, bins)), earlier


def leaning(params, **changes):
    return params.model_copy(update={"lean": params.lean.model_copy(update=changes)})


def test_where_the_input_decides_the_model_beats_history_and_covers_as_much_as_it_says(drawn, tiny):
    runs = drawn()
    model, features, bins = learnt(runs, 900, tiny)
    told, earlier = told_of(model, features, bins, runs, np.arange(900, 1200))
    actual = runs["runtime_s"].to_numpy()[900:]
    history = history_prediction(earlier, runs["runtime_s"].to_numpy(), actual, most=500)
    assert told.crps(actual).mean() < 0.4 * history.crps(actual).mean()
    assert 0.84 < coverage_of(told, actual).share < 0.96
    # the noise is log-normal with 0.2: an interval cannot be much narrower than ± 1.645 × 0.2
    width = np.log(told.quantile(0.95) / told.quantile(0.05))
    assert 0.55 < np.median(width) < 1


def two_ways(log_of, n_runs=800, *, share=0.5):
    """Job `both` takes 1 s or 10 s by chance, `fast` always about 1 s; no feature tells when."""
    rng = np.random.default_rng(3)
    jobs = np.tile(["both", "fast"], n_runs // 2)
    is_slow = (jobs == "both") & (rng.random(n_runs) < share)
    return log_of(np.where(is_slow, 10.0, 1.0) * np.exp(rng.normal(0, 0.05, n_runs)), jobs)


def test_of_a_job_with_two_ways_the_prediction_comes_to_have_both_as_its_runs_gather(log_of, tiny):
    runs = two_ways(log_of)
    model, features, _ = learnt(runs, 600, tiny)
    row = features.iloc[[700]]  # of `both`
    ways = log_s([1.0, 10.0]) - model.expected_log_s(row)
    own = np.zeros((1, model.spread.grid.n_bins))
    shares = []
    for n_own in (0, 10, 100, 10_000):
        own[0, model.spread.grid.index(ways)] = 0.3 * n_own, 0.7 * n_own
        shares.append(float(model.predict(row, own).cdf(np.array([3.0]))[0]))
    away = np.abs(np.array(shares) - 0.3)
    assert (np.diff(away) < 0).all()
    assert away[-1] < 0.01
    assert away[0] > 0.05


def test_two_jobs_that_features_hardly_tell_apart_are_told_apart_by_their_own_runs(log_of, tiny):
    runs = two_ways(log_of)
    model, features, bins = learnt(runs, 600, tiny)
    told, _ = told_of(model, features[["log_median_before"]].reindex(columns=features.columns), bins, runs, [798, 799])
    slow = 1 - told.cdf(np.array([3.0, 3.0]))
    assert 0.3 < slow[0] < 0.7
    assert slow[1] < 0.1


def test_the_prediction_is_the_posterior_mean_of_own_runs_and_spread(drawn, tiny):
    params = tiny.model_copy(update={"spread": tiny.spread.model_copy(update={"smoothing_bins": 0.0})})
    runs = drawn(300)
    model, features, _ = learnt(runs, 300, params)
    own = np.zeros((2, 80))
    own[0, 7] = 60
    told = model.predict(features[:2], own).mass()
    spread = model.spread.masses(features[:2], params.spread)
    assert told[0] == pytest.approx((own[0] + 20 * spread[0]) / 80)
    assert told[1] == pytest.approx(spread[1])


def test_a_job_never_seen_is_predicted_by_its_features_alone(drawn, tiny):
    runs = drawn(600)
    runs.loc[599, "group_key"] = "new"
    model, features, bins = learnt(runs, 590, tiny)
    told, earlier = told_of(model, features, bins, runs, [599])
    assert earlier.n.tolist() == [0]
    alone = model.predict(features.iloc[[599]])
    assert told.mass().tobytes() == alone.mass().tobytes()
    assert 0.1 < told.quantile(0.5)[0] < 100


def test_the_same_inputs_give_the_same_bits(drawn, tiny):
    runs = drawn(300)
    one, other = (told_of(*learnt(runs, 200, tiny), runs, np.arange(200, 300))[0] for _ in range(2))
    assert one.mass().tobytes() == other.mass().tobytes()
    assert one.medians_s.tobytes() == other.medians_s.tobytes()


@pytest.mark.parametrize("way", ["residual", "runtime"])
def test_no_run_that_ends_after_a_submission_changes_its_prediction(drawn, tiny, way):
    runs = drawn(400)
    runs["ended_at"] = runs["submitted_at"] + pd.to_timedelta(40 * runs["runtime_s"], unit="s")  # runs overlap
    model, _, _ = learnt(runs, 300, leaning(tiny, ways=(way,)))
    assert model.lean_on == way
    at = runs["submitted_at"][350]
    is_later = (runs["ended_at"] >= at).to_numpy()
    assert is_later[:350].any()
    changed = runs.copy()
    changed.loc[is_later, "runtime_s"] *= 9
    changed.loc[is_later, "ended_at"] += pd.Timedelta("3h")
    changed.loc[is_later & (runs.index != 350), "input_bytes"] *= 5
    found = []
    for log in (runs, changed):
        features = make_features(log, log, FeatureParams())
        told, _ = told_of(model, features, model.residual_bins(features, log["runtime_s"]), log, [350])
        found.append((told.mass().tobytes(), told.medians_s.tobytes()))
    assert found[0] == found[1]


def test_bins_of_training_runs_are_against_models_that_did_not_see_them(log_of, tiny):
    rng = np.random.default_rng(0)
    runs = log_of(np.exp(rng.normal(0, 1, 300)), input_bytes=rng.random(300), requested_cpus=rng.random(300))
    features = make_features(runs, runs, FeatureParams())
    model, seen = fit_conditional(features, runs, tiny)
    middles = (model.spread.grid.log_edges[1:] + model.spread.grid.log_edges[:-1]) / 2
    in_sample = model.residual_bins(features, runs["runtime_s"].to_numpy())
    assert np.std(middles[seen]) > 1.1 * np.std(middles[in_sample])


def test_constant_runtimes_are_predicted_within_a_few_percent(log_of, tiny):
    runs = log_of([30.0] * 200)
    model, features, bins = learnt(runs, 150, tiny)
    told, _ = told_of(model, features, bins, runs, np.arange(150, 200))
    assert told.quantile(0.5) == pytest.approx(np.full(50, 30), rel=0.03)
    assert (told.quantile(0.95) < 32).all()
    assert (told.crps(np.full(50, 30.0)) < 1).all()


def test_runs_of_0_s_are_predicted_to_take_next_to_nothing(log_of, tiny):
    runs = log_of(np.zeros(100))
    model, features, bins = learnt(runs, 80, tiny)
    told, _ = told_of(model, features, bins, runs, np.arange(80, 100))
    assert (told.quantile(0.99) < 0.01).all()
    assert (told.crps(np.zeros(20)) < 0.01).all()


def test_some_runs_of_0_s_among_others_keep_their_share(log_of, tiny):
    runs = log_of(np.where(np.random.default_rng(0).random(400) < 0.25, 0.0, 5.0))
    model, features, bins = learnt(runs, 300, tiny)
    told, _ = told_of(model, features, bins, runs, np.arange(300, 400))
    assert told.cdf(np.full(100, 1.0)).mean() == pytest.approx(0.25, abs=0.06)


def test_one_feature_is_enough(drawn, tiny):
    runs = drawn(600)
    features = make_features(runs, runs, FeatureParams())[["input_ratio"]]
    model, _ = fit_conditional(features[:500], runs[:500], tiny)
    told = model.predict(features[500:])
    assert told.n == 100
    assert np.corrcoef(np.log(told.quantile(0.5)), np.log(runs["runtime_s"][500:]))[0, 1] > 0.7


@pytest.mark.parametrize("n", [1, 2, 10])
def test_a_handful_of_training_runs_gives_a_prediction(drawn, tiny, n):
    runs = drawn(n + 2)
    choosing = leaning(tiny, prior_runs=(5, 50), ways=("residual", "runtime"))
    told, _ = told_of(*learnt(runs, n, choosing), runs, [n, n + 1])
    assert np.isfinite(told.quantile(0.9)).all()


def test_no_rows_have_no_prediction(drawn, tiny):
    runs = drawn(100)
    model, features, bins = learnt(runs, 100, tiny)
    for way in ("residual", "runtime"):
        told, _ = told_of(replace(model, lean_on=way), features, bins, runs, np.arange(0))
        assert told.n == 0


def test_features_are_taken_by_their_names(drawn, tiny):
    runs = drawn(200)
    model, features, _ = learnt(runs, 200, tiny)
    turned = features[features.columns[::-1]].assign(other=1.0)
    assert model.predict(turned).mass().tobytes() == model.predict(features).mass().tobytes()
    assert model.expected_log_s(turned).tobytes() == model.expected_log_s(features).tobytes()


def test_own_runs_count_against_what_is_expected_now_where_runtimes_tell_more(log_of, tiny):
    runs = log_of([8.0] * 60)
    model, features, bins = learnt(runs, 50, tiny)
    by_runtime = replace(model, lean_on="runtime", prior_runs=0.01)
    earlier = earlier_runs(runs[59:], runs)
    moved = features[59:].assign(log_median_before=np.log(80.0))  # ten times as long is expected
    own = by_runtime.own_runs(moved, earlier, bins)
    assert own.sum() == earlier.n[0] == 59
    assert by_runtime.predict(moved, own).quantile(0.5) == pytest.approx([8], rel=0.25)  # bins are wide out there
    by_residual = replace(by_runtime, lean_on="residual")
    own = by_residual.own_runs(moved, earlier, bins)
    assert by_residual.predict(moved, own).quantile(0.5) == pytest.approx([80], rel=0.1)


def test_each_row_compares_the_runtimes_before_with_what_is_expected_of_itself(drawn, tiny):
    runs = drawn(100)
    model, features, bins = learnt(runs, 80, leaning(tiny, ways=("runtime",)))
    together = model.own_runs(features[80:], earlier_runs(runs[80:], runs), bins)
    alone = [model.own_runs(features[i : i + 1], earlier_runs(runs[i : i + 1], runs), bins) for i in range(80, 100)]
    assert (together == np.concatenate(alone)).all()
    first = runs[:80][runs["group_key"][:80] == runs["group_key"][80]]["runtime_s"]
    cells = model.spread.grid.index(log_s(first) - model.expected_log_s(features[80:81]))
    assert (together[0] == np.bincount(cells, minlength=80)).all()


def test_it_leans_hard_on_own_runs_where_they_differ_and_little_where_they_are_noise(log_of, drawn, tiny):
    rng = np.random.default_rng(5)
    jobs = np.arange(800) % 8
    differing = log_of(np.exp(rng.normal(0, np.array([0.02, 0.8])[jobs % 2])), [f"j{job}" for job in jobs])
    blind = make_features(differing, differing, FeatureParams())[["hour_of_day"]]
    choosing = leaning(tiny, prior_runs=(2, 5000))
    assert fit_conditional(blind, differing, choosing)[0].prior_runs == 2
    alike = drawn(400, 40, noise=0.3)  # ten runs a job, all of one spread
    features = make_features(alike, alike, FeatureParams())
    assert fit_conditional(features, alike, choosing)[0].prior_runs == 5000


def test_with_one_choice_nothing_is_rehearsed(drawn, tiny, monkeypatch):
    monkeypatch.setattr("tasks.jobs.predict.conditional._best_lean", None)
    runs = drawn(60)
    model, _, _ = learnt(runs, 60, leaning(tiny, prior_runs=(7,)))
    assert (model.prior_runs, model.lean_on) == (7, "residual")


@pytest.mark.parametrize("way", ["residual", "runtime"])
def test_rows_are_predicted_alike_in_blocks_and_in_one_call(drawn, tiny, monkeypatch, way):
    runs = drawn(200)
    model, features, bins = learnt(runs, 150, leaning(tiny, ways=(way,)))
    rows = np.arange(20, 200)
    whole, earlier = told_of(model, features, bins, runs, rows)
    monkeypatch.setattr("tasks.jobs.predict.conditional.BLOCK", 7)
    parts = model.predict_after(features.iloc[rows], earlier, bins)
    assert parts.mass() == pytest.approx(whole.mass(), rel=1e-12)
    assert parts.medians_s.tobytes() == whole.medians_s.tobytes()


@pytest.mark.parametrize(("noise", "expected"), [(0.1, (0.5, 0.75)), (0.2, (1,)), (0.4, (2,))])
def test_the_width_follows_the_noise_of_runs_that_the_model_did_not_learn_from(log_of, tiny, noise, expected):
    choosing = leaning(tiny, widths=(0.5, 0.75, 1, 1.5, 2), prior_runs=(1e6,))
    rng = np.random.default_rng(0)
    runs = log_of(np.exp(rng.normal(0, np.repeat([0.2, noise], 400))))
    features = make_features(runs, runs, FeatureParams())[["log_median_before"]]
    model = replace(fit_conditional(features[:400], runs[:400], choosing)[0], width=1.0)
    later = calibrated(model, features[400:], np.zeros((400, 80)), runs["runtime_s"].to_numpy()[400:])
    assert later.width in expected
    assert replace(later, width=1.0) == model
