"""Companions: what goes with a value in the log and is left as it is by the change."""

import numpy as np
import pandas as pd

from tasks.jobs.control.claims import make_claims
from tasks.jobs.control.companions import COLUMNS, find_companions
from tasks.jobs.control.measures import MEASURES
from tasks.jobs.control.params import WhatIfParams

PARAMS = WhatIfParams(near_share=0.2)


def training(n=1000):
    """Where the load does not vary, machines are full; the hour has nothing to do with it."""
    rng = np.random.default_rng(1)
    load = rng.uniform(0, 1, n)
    return pd.DataFrame({"load_mean": load, "load_sd": 0.5 * (1 - load), "hour_of_day": rng.uniform(0, 24, n)})


def test_a_load_without_deviation_is_a_full_one_in_the_log():
    before = pd.DataFrame({"load_mean": [0.5] * 4, "load_sd": [0.25] * 4, "hour_of_day": [1.0, 2, 3, 4]})
    found = find_companions(before, before.assign(load_sd=0.0), training(), PARAMS)
    assert list(found) == COLUMNS
    assert found["companion"].tolist() == ["load_mean"]
    row = found.iloc[0]
    assert (row["feature"], row["value"]) == ("load_sd", 0)
    assert abs(row["mean_there"] - 0.9) < 0.02  # the fullest fifth
    assert abs(row["mean_in_all"] - 0.5) < 0.03
    assert abs(row["distance"] - 0.4 * np.sqrt(12)) < 0.1


def test_a_feature_that_is_changed_as_well_is_no_companion():
    before = pd.DataFrame({"load_mean": [0.5], "load_sd": [0.25], "hour_of_day": [1.0]})
    assert find_companions(before, before.assign(load_sd=0.0, load_mean=0.9), training(), PARAMS).empty


def test_no_change_constant_features_and_unknown_values_have_no_companion():
    before = pd.DataFrame({"load_mean": [0.5], "load_sd": [0.25], "hour_of_day": [1.0]})
    assert find_companions(before, before, training(), PARAMS).empty
    assert find_companions(before, before.assign(load_sd=np.nan), training(), PARAMS).empty
    alike = training().assign(load_mean=1.0, hour_of_day=np.nan)
    assert find_companions(before, before.assign(load_sd=0.0), alike, PARAMS).empty


def test_the_report_names_the_companion_with_its_figures():
    before = pd.DataFrame({"load_mean": [0.5], "load_sd": [0.25], "hour_of_day": [1.0]})
    found = find_companions(before, before.assign(load_sd=0.0), training(), PARAMS)
    changes = pd.DataFrame({"n_runs": 0}, index=list(MEASURES))
    line = make_claims(changes, PARAMS, companions=found).cannot[-1]
    assert line.startswith("Where the training data have load_sd near 0, load_mean is 0.9")
