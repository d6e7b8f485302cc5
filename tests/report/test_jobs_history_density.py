"""Hexagons counted in SQL: nothing is lost, and each point lies in the hexagon that counts it."""

import numpy as np
import pytest

from tasks.report.jobs_history import fetch_density
from tasks.warehouse.connection import reading

POINTS = "SELECT runtime_s AS x, wait_s AS y FROM jobs.runs WHERE source = $source"
LOG = {"source": "log"}


@pytest.fixture
def fetched(job_log):
    def fetch(x, y, max_points):
        warehouse = job_log([{"runtime_s": float(a), "wait_s": float(b)} for a, b in zip(x, y, strict=True)])
        with reading(warehouse) as connection:
            return fetch_density(connection, POINTS, LOG, max_points)

    return fetch


def test_few_points_are_kept_as_they_are(fetched):
    density = fetched([1, 10, 100], [10, 10, 1], 3)
    assert density.hexagon is None
    assert (density.n_points, density.log_x.tolist(), density.log_y.tolist()) == (3, [0, 1, 2], [1, 1, 0])


def test_hexagons_count_every_point_once(fetched):
    rng = np.random.default_rng(6)
    density = fetched(np.exp(rng.normal(size=500)), np.exp(rng.normal(size=500)), 10)
    assert density.n.sum() == density.n_points == 500
    assert len(density.n) < 500


def test_values_that_a_logarithm_cannot_show_are_left_out(fetched):
    assert fetched([0, 1, 1], [1, 0, 1], 10).n_points == 1


def test_without_a_value_to_show_there_is_no_density(fetched):
    assert fetched([0, 0], [1, 1], 10) is None


def test_one_point_and_equal_points_still_have_an_axis(fetched):
    density = fetched([5, 5, 5], [5, 5, 5], 1)
    assert density.x_limits[0] < 5 < density.x_limits[1]
    assert density.n.tolist() == [3]
