"""Boosted quantiles: a step with its noise, levels in between, files that come back, and damaged ones."""

import json

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.predict.boosted import BOOSTED, Boosted, fit_boosted
from tasks.jobs.predict.pool import LEVELS, N_LEVELS

SD = 0.2


@pytest.fixture(scope="module")
def step():
    """Boosted quantiles of 1 below 0.5 and 3 above, each with noise."""
    rng = np.random.default_rng(0)
    x = rng.random(3000)
    values = np.where(x > 0.5, 3.0, 1.0) + rng.normal(0, SD, 3000)
    return fit_boosted(pd.DataFrame({"x": x}), values, np.arange(1, 20) / 20, n_trees=150, seed=0)


def test_quantiles_are_ordered_and_find_a_step_with_its_noise(step):
    told = step.quantiles(pd.DataFrame({"x": [0.25, 0.75]}))
    assert told.shape == (2, N_LEVELS)
    assert (np.diff(told, axis=1) >= 0).all()
    assert told[:, 49:51].mean(axis=1) == pytest.approx([1, 3], abs=0.06)
    assert told[:, 94] - told[:, 5] == pytest.approx(np.full(2, 2 * 1.6 * SD), abs=0.25)


class Constant:
    def __init__(self, value):
        self.predict = lambda rows, num_threads: np.full(len(rows), value)


def test_between_levels_quantiles_are_interpolated_and_the_ends_go_on():
    told = Boosted(np.array([0.25, 0.75]), (Constant(4.0), Constant(2.0))).quantiles(pd.DataFrame({"x": [0.0]}))
    np.testing.assert_allclose(told[0], 2 + (LEVELS - 0.25) / 0.5 * 2)  # crossed ones are put in order


def test_no_row_has_no_quantile_and_no_training_row_is_refused(step):
    assert step.quantiles(pd.DataFrame({"x": []})).shape == (0, N_LEVELS)
    with pytest.raises(BadInput, match="training rows: none"):
        fit_boosted(pd.DataFrame({"x": []}), np.zeros(0), np.array([0.5]), n_trees=1, seed=0)


def test_models_come_back_from_their_file_with_the_same_numbers(step, tmp_path):
    step.save(tmp_path)
    asked = pd.DataFrame({"x": np.linspace(0, 1, 50)})
    np.testing.assert_array_equal(Boosted.load(tmp_path, 1).quantiles(asked), step.quantiles(asked))
    with pytest.raises(BadInput, match="1 features beside the names of 2"):
        Boosted.load(tmp_path, 2)


@pytest.mark.parametrize("change", [dict, lambda models: list(models), lambda models: {"2": models["0.5"], "3": ""}])
def test_damaged_files_are_refused(step, tmp_path, change):
    step.save(tmp_path)
    models = json.loads((tmp_path / BOOSTED).read_text())
    (tmp_path / BOOSTED).write_text(json.dumps(change(models) if change is not dict else {}))
    with pytest.raises((ValueError, AttributeError)):
        Boosted.load(tmp_path, 1)
