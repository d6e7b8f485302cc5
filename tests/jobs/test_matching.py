"""One job against two shapes: likelihoods worked out by hand, and the posterior that the characterisation wrote."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadSetting, NotFound
from tasks.jobs import steps
from tasks.jobs.matching import are_shapes_fresh, compare_with_shapes, job_against_shapes
from tasks.jobs.normalisation import Bins
from tasks.jobs.shapes import ShapeSet
from tasks.report.jobs_variation import likelihood_figure
from tasks.warehouse.connection import fetch

RATIO = Bins(kind="ratio", low=0, high=10, n_bins=12)
POSTERIORS = "SELECT kind, group_key, n_runs, posterior FROM jobs.group_shapes WHERE part = 'all' ORDER BY ALL"


def shapes(bins, *rows):
    centres = np.array(rows, dtype=float)
    k = len(centres)
    return ShapeSet(bins, centres / centres.sum(axis=1, keepdims=True), np.full(k, 30), 1.0)


def test_the_two_shapes_shown_are_the_most_likely_ones_with_their_likelihoods():
    found = shapes(RATIO, np.r_[0, 8, 1, [0] * 9], np.r_[0, 1, 8, [0] * 9], np.r_[[0] * 9, 1, 1, 1])
    counts = np.r_[0, 1, 3, [0] * 9]
    job = compare_with_shapes("job", counts, found)
    assert job.numbers == (1, 0)
    assert job.log_likelihoods[1] == pytest.approx(np.log(1 / 9) + 3 * np.log(8 / 9), rel=2e-3)
    assert job.posteriors[1] == pytest.approx(64 / 65, rel=2e-3)  # 8³ against 8, the third is ruled out
    assert "here shape 1" in likelihood_figure(job).words
    assert compare_with_shapes("job", counts, found, (2, 0)).numbers == (2, 0)


def test_a_wrong_number_of_a_shape_is_refused():
    found = shapes(RATIO, [1] * 12, [1] * 12)
    for numbers in ((0, 2), (-1, 0), (1, 1)):
        with pytest.raises(BadSetting, match=r"expected two different ones of the 2 shapes, from 0 to 1"):
            compare_with_shapes("job", np.ones(12), found, numbers)
    with pytest.raises(BadSetting, match="there is only one"):
        compare_with_shapes("job", np.ones(12), shapes(RATIO, [1] * 12))


@pytest.fixture(scope="module")
def log(job_log_at, tmp_path_factory):
    """A function that puts runs into the warehouse of these tests."""
    return job_log_at(tmp_path_factory.mktemp("matched") / "home")


@pytest.fixture(scope="module")
def characterised(log, quick_training):
    """A log of 6 jobs from its first part on and one that began later, its shapes, and what they were made with."""
    rng, number = np.random.default_rng(3), np.arange(420) % 6
    runtimes = (10.0 + number) * np.exp(rng.normal(0, np.where(number % 2, 0.6, 0.05)))
    keys = [f"job{i:02}#{i:08x}" for i in number]
    keys[300::10] = ["late#00000009"] * len(keys[300::10])
    params = quick_training.predict.characterise
    warehouse = log(pd.DataFrame({"group_key": keys, "runtime_s": runtimes}))
    steps.characterise(warehouse, "log", params)
    return warehouse, params


def test_the_posterior_of_every_job_is_that_of_the_characterisation(characterised):
    warehouse, _ = characterised
    rows = fetch(warehouse, POSTERIORS, {})
    assert "late#00000009" in set(rows["group_key"])  # its medians are those of its runs before
    for row in rows.groupby("kind").tail(3).itertuples():
        found = job_against_shapes(warehouse, "log", row.group_key, row.kind)
        assert found.n_runs == row.n_runs
        assert found.posteriors.tolist() == pytest.approx(list(row.posterior), rel=1e-9, abs=1e-12)


def test_a_job_or_a_source_without_anything_to_compare_is_said_in_one_line(characterised):
    warehouse, _ = characterised
    with pytest.raises(NotFound, match=r"job 'nobody' of source 'log': no finished run has a median"):
        job_against_shapes(warehouse, "log", "nobody", "ratio")
    with pytest.raises(NotFound, match="has no shapes yet"):
        job_against_shapes(warehouse, "other", "nobody", "ratio")


def test_shapes_are_fresh_until_files_or_parameters_change(characterised, log):
    warehouse, params = characterised
    assert are_shapes_fresh(warehouse, "log", params)
    assert not are_shapes_fresh(warehouse, "other", params)
    other = params.shapes.model_copy(update={"k": 7})
    assert not are_shapes_fresh(warehouse, "log", params.model_copy(update={"shapes": other}))
    assert are_shapes_fresh(warehouse, "log", params.model_copy(update={"batch_runs": 7}))
    log([{"runtime_s": 1.0}])
    assert not are_shapes_fresh(warehouse, "log", params)
