"""Where the training data end: outside a range, in unknown values, and in combinations never seen."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.control.claims import make_claims
from tasks.jobs.control.outcomes import MEASURES
from tasks.jobs.control.support import (
    COLUMNS,
    find_companions,
    likeness,
    support_of,
)


def frame(**columns):
    return pd.DataFrame({name: np.asarray(values, dtype=float) for name, values in columns.items()})


def grid(features):
    """Leaves of two trees, each of which cuts one feature at whole numbers, and of one that cuts both."""
    cells = np.floor(features.to_numpy()).astype(int)
    return np.column_stack([cells[:, 0], cells[:, 1], cells[:, 0] * 100 + cells[:, 1]])


def supported(before, after, training, **more):
    return support_of(before, after, training, np.random.default_rng(1), **more)


def test_a_value_beyond_the_training_values_is_extrapolated_and_named():
    before = frame(load=[1, 1, 1, 1], tokens=[2, 2, 2, 2])
    after = before.assign(load=[0.5, 1.5, 3.0, 1.0])
    found = supported(before, after, frame(load=[1, 2], tokens=[2, 2]))
    assert found.is_extrapolated.tolist() == [True, False, True, False]
    assert found.n_changed == 3
    assert found.share == pytest.approx(2 / 3)
    assert found.outside == {"load": pytest.approx(2 / 3)}
    assert found.share_unlike is None
    assert found.reason == "no leaves were given: only the range of each feature was looked at"


def test_an_unchanged_row_outside_the_range_is_not_the_fault_of_the_change():
    before = frame(load=[9.0, 1.0], tokens=[1, 1])
    found = supported(before, before.assign(tokens=[2.0, 1.0]), frame(load=[1, 2], tokens=[1, 2]))
    assert found.is_extrapolated.tolist() == [False, False]
    other = before.assign(tokens=[2.0, 1.0], load=[9.0, 2.0])  # the load is changed in another row
    assert not supported(before, other, frame(load=[1, 2], tokens=[1, 2])).is_extrapolated.any()


def test_unknown_is_outside_unless_training_rows_were_unknown_too():
    before = frame(load=[1.0], tokens=[1.0])
    after = before.assign(load=[np.nan])
    assert supported(before, after, frame(load=[1.0, 2.0], tokens=[1, 1])).share == 1
    assert supported(before, after, frame(load=[1.0, np.nan], tokens=[1, 1])).share == 0
    assert supported(before, before.assign(load=[1.5]), frame(load=[np.nan] * 2, tokens=[1, 1])).share == 1


def test_values_common_one_by_one_but_never_met_together_are_found_by_leaves():
    rng = np.random.default_rng(2)
    a = rng.uniform(0, 3, 300)
    training = frame(a=a, b=a)  # b always goes with a
    before = training.iloc[:100].reset_index(drop=True)
    apart = before.assign(b=(2.9 - before["a"]).clip(a.min(), a.max()))
    assert supported(before, apart, training).share == 0  # each within its range
    found = supported(before, apart, training, leaves=grid)
    is_together = np.floor(apart["a"]) == np.floor(apart["b"])
    assert found.is_extrapolated.tolist() == (~is_together).tolist()
    assert found.share_unlike == pytest.approx((~is_together).mean())
    assert found.share_outside == 0


def test_rows_that_stay_in_their_leaves_are_supported():
    training = frame(a=np.linspace(0, 2.9, 50), b=np.linspace(0, 2.9, 50))
    before = training.iloc[:20].reset_index(drop=True)
    assert supported(before, before.assign(a=np.floor(before["a"])), training, leaves=grid).share == 0


def test_no_change_has_no_share():
    before = frame(a=[1.0, np.nan])
    found = supported(before, before.copy(), frame(a=[1.0]), leaves=grid)
    assert (found.n_changed, found.share, found.share_outside, found.share_unlike) == (0, None, None, None)
    assert not found.is_extrapolated.any()


def test_likeness_is_the_share_of_trees_with_the_nearest_training_row():
    found = likeness(np.array([[1, 2, 3, 4], [9, 9, 9, 9]]), np.array([[1, 2, 0, 0], [0, 0, 0, 4]]))
    assert found.tolist() == [0.5, 0]
    rng = np.random.default_rng(1)
    many = rng.integers(0, 5, (200, 7))  # more than one block
    assert likeness(many, many).tolist() == [1.0] * 200


def test_many_training_rows_are_sampled():
    training = frame(a=np.arange(3000) % 3, b=np.arange(3000) % 3)
    seen = []

    def counting(features):
        seen.append(len(features))
        return grid(features)

    before = training.iloc[:5].reset_index(drop=True)
    support_of(
        before,
        before.assign(a=1.0),
        training,
        np.random.default_rng(1),
        leaves=counting,
    )
    assert seen[0] == 2000


def training(n=1000):
    """Where the load does not vary, machines are full; the hour has nothing to do with it."""
    rng = np.random.default_rng(1)
    load = rng.uniform(0, 1, n)
    return pd.DataFrame({"load_mean": load, "load_sd": 0.5 * (1 - load), "hour_of_day": rng.uniform(0, 24, n)})


def test_a_load_without_deviation_is_a_full_one_in_the_log():
    before = pd.DataFrame({"load_mean": [0.5] * 4, "load_sd": [0.25] * 4, "hour_of_day": [1.0, 2, 3, 4]})
    found = find_companions(before, before.assign(load_sd=0.0), training())
    assert list(found) == COLUMNS
    assert found["companion"].tolist() == ["load_mean"]
    row = found.iloc[0]
    assert (row["feature"], row["value"]) == ("load_sd", 0)
    assert abs(row["mean_there"] - 0.975) < 0.01  # the fullest twentieth
    assert abs(row["mean_in_all"] - 0.5) < 0.03
    assert abs(row["distance"] - 0.475 * np.sqrt(12)) < 0.1


def test_a_feature_that_is_changed_as_well_is_no_companion():
    before = pd.DataFrame({"load_mean": [0.5], "load_sd": [0.25], "hour_of_day": [1.0]})
    assert find_companions(before, before.assign(load_sd=0.0, load_mean=0.9), training()).empty


def test_no_change_constant_features_and_unknown_values_have_no_companion():
    before = pd.DataFrame({"load_mean": [0.5], "load_sd": [0.25], "hour_of_day": [1.0]})
    assert find_companions(before, before, training()).empty
    assert find_companions(before, before.assign(load_sd=np.nan), training()).empty
    alike = training().assign(load_mean=1.0, hour_of_day=np.nan)
    assert find_companions(before, before.assign(load_sd=0.0), alike).empty


def test_the_report_names_the_companion_with_its_figures():
    before = pd.DataFrame({"load_mean": [0.5], "load_sd": [0.25], "hour_of_day": [1.0]})
    found = find_companions(before, before.assign(load_sd=0.0), training())
    changes = pd.DataFrame({"n_runs": 0}, index=list(MEASURES))
    line = make_claims(changes, companions=found).cannot[-1]
    assert line.startswith("Where the training data have load_sd near 0, load_mean is 0.9")
