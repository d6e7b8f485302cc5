"""The width of predictions as time goes on: set by what had ended before each block, and by nothing later."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.predict.conditional import fit_conditional
from tasks.jobs.predict.feature_params import FeatureParams
from tasks.jobs.predict.features import make_features
from tasks.jobs.predict.in_time import calibrated_at_end, predict_in_time
from tasks.jobs.scores import coverage_of

N, FIRST_NEW = 600, 300
ROWS = np.arange(FIRST_NEW, N)


@pytest.fixture
def params(tiny):
    changes = {"widths": (0.5, 1.0, 2.0, 4.0), "calibration_runs": 60, "min_calibration_runs": 20, "block_runs": 50}
    return tiny.model_copy(update={"lean": tiny.lean.model_copy(update={**changes, "prior_runs": (1e6,)})})


@pytest.fixture
def wilder(log_of):
    """Runs of one job that vary by 10 %, and by 40 % from the first that the model did not learn from."""
    noise = np.where(np.arange(N) < FIRST_NEW, 0.1, 0.4)
    return log_of(np.exp(np.random.default_rng(0).normal(0, noise)))


def foretold(runs, params, rows=ROWS):
    features = make_features(runs, runs, FeatureParams())[["log_median_before", "log_ratio_sd"]]
    model, seen = fit_conditional(features[:FIRST_NEW], runs[:FIRST_NEW], params)
    model = replace(model, width=1.0)
    bins = model.residual_bins(features, runs["runtime_s"].to_numpy())
    bins[:FIRST_NEW] = seen
    told = predict_in_time(model, features, runs, bins, rows, FIRST_NEW, params)
    return told, calibrated_at_end(model, features, runs, bins, FIRST_NEW, params), model


def test_when_runs_come_to_vary_more_intervals_widen_after_the_first_block(wilder, params):
    told, at_end, model = foretold(wilder, params)
    actual = wilder["runtime_s"].to_numpy()[ROWS]
    assert model.width == 1
    assert coverage_of(told.rows(np.arange(50)), actual[:50]).share < 0.6
    assert coverage_of(told.rows(np.arange(50, 300)), actual[50:]).share > 0.8
    assert at_end.width >= 2


def test_no_run_that_ends_after_a_block_begins_sets_its_width(wilder, params):
    changed = wilder.copy()
    changed.loc[450:, "runtime_s"] *= 5
    changed["ended_at"] = changed["started_at"] + pd.to_timedelta(changed["runtime_s"], unit="s")
    one, other = (foretold(runs, params)[0] for runs in (wilder, changed))
    until = np.arange(151)  # the block that begins with run 450 does not know it yet
    assert one.rows(until).mass().tobytes() == other.rows(until).mass().tobytes()
    assert one.mass()[250:].tobytes() != other.mass()[250:].tobytes()


def test_too_few_runs_leave_the_width_of_the_training(wilder, params):
    few = params.model_copy(update={"lean": params.lean.model_copy(update={"min_calibration_runs": 1000})})
    told, at_end, model = foretold(wilder, few)
    assert at_end is model
    assert told.n == len(ROWS)


def test_at_the_end_the_last_runs_that_the_model_did_not_learn_from_set_its_width(log_of, params):
    noise = np.where((np.arange(N) >= FIRST_NEW) & (np.arange(N) < N - 60), 0.4, 0.1)
    calmer = log_of(np.exp(np.random.default_rng(0).normal(0, noise)))
    assert foretold(calmer, params)[1].width == 1


@pytest.mark.parametrize(("least", "is_set"), [(N - FIRST_NEW, True), (N - FIRST_NEW + 1, False)])
def test_so_many_runs_are_just_enough_and_those_learned_from_do_not_count(wilder, params, least, is_set):
    changes = {"calibration_runs": 400, "min_calibration_runs": least}
    changed = params.model_copy(update={"lean": params.lean.model_copy(update=changes)})
    assert (foretold(wilder, changed)[1].width > 1) == is_set
