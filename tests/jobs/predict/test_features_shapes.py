"""The probability of each shape after the earlier runs of a job, against the posterior of their counts."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.normalisation import (
    historic_medians,
    normalise,
)
from tasks.jobs.pmf import Bins, histogram
from tasks.jobs.posterior import log_posterior
from tasks.jobs.predict.feature_params import FeatureParams
from tasks.jobs.predict.features import make_features
from tasks.jobs.predict.features_shapes import HistoricShapes
from tasks.jobs.shape_params import NormalisationParams
from tasks.jobs.shapes import ShapeSet

START = pd.Timestamp("2026-01-01")
BINS = Bins(kind="ratio", low=0, high=3, n_bins=5)  # up to 0, to 1, to 2, to 3, from 3
CENTRES = np.array([[0.1, 0.4, 0.3, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.6]])
PRIOR = 0.01


def shapes(medians_s):
    return {"ratio": HistoricShapes(ShapeSet(BINS, CENTRES, np.ones(2) / 2, np.ones(2, int), 0.0), medians_s, PRIOR)}


def runs(runtimes_s, group="a"):
    submitted_at = START + pd.to_timedelta(np.arange(len(runtimes_s)) * 1000, unit="s")
    frame = pd.DataFrame({"group_key": group, "submitted_at": submitted_at, "runtime_s": np.array(runtimes_s, float)})
    return frame.assign(ended_at=submitted_at + pd.to_timedelta(frame["runtime_s"], unit="s"))


def posterior(ratios):
    counts = histogram(ratios, np.zeros(len(ratios), int), 1, BINS)
    return np.exp(log_posterior(counts, CENTRES, empty_bin_prior=PRIOR))[0]


def test_it_is_the_posterior_of_the_runs_before_with_the_median_of_the_period_before():
    log = runs([5, 12, 31, 45, 9])
    found = make_features(log, log, FeatureParams(), shapes=shapes({"a": 10.0}))[["shape_ratio_0", "shape_ratio_1"]]
    assert found.iloc[0].isna().all()
    for n in range(1, 5):
        assert found.iloc[n].to_numpy() == pytest.approx(posterior(log["runtime_s"].head(n) / 10))


def test_a_new_job_is_compared_with_the_median_that_each_run_had_then():
    log = runs([5, 12, 31, 45, 9])
    found = make_features(log, log, FeatureParams(), shapes=shapes({}))[["shape_ratio_0", "shape_ratio_1"]]
    medians = historic_medians(log, {}, NormalisationParams())["median_s"]
    ratios = normalise(log["runtime_s"], medians, "ratio")
    assert found.iloc[1].isna().all()  # the one run before had no median yet
    assert found.iloc[4].to_numpy() == pytest.approx(posterior(ratios[:4]))


def test_only_the_last_runs_count_where_so_many_are_asked_for():
    log = runs([5, 12, 31, 45, 9])
    found = make_features(log, log, FeatureParams(evidence_runs=2), shapes=shapes({"a": 10.0}))
    assert found[["shape_ratio_0", "shape_ratio_1"]].iloc[4].to_numpy() == pytest.approx(posterior([3.1, 4.5]))


def test_ten_thousand_runs_of_one_shape_make_it_certain_and_stay_a_probability():
    log = runs([50] * 10_000)
    found = make_features(log.tail(1), log, FeatureParams(), shapes=shapes({"a": 10.0})).iloc[0]
    assert found["shape_ratio_1"] == 1
    assert found["shape_ratio_0"] == pytest.approx(0, abs=1e-300)
