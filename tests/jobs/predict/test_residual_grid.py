"""Bins of runtime over expected runtime: their edges, what lies in them, and their smoothing."""

import numpy as np
import pytest

from tasks.jobs.predict.predictor_params import SpreadParams
from tasks.jobs.predict.residual_grid import ResidualGrid, make_grid

GRID = make_grid(SpreadParams(n_bins=40, finest_log=0.05, reach_log=3))


def test_edges_are_symmetric_reach_as_far_as_asked_and_widen_outwards():
    edges = GRID.log_edges
    assert len(edges) == 41
    assert edges == pytest.approx(-edges[::-1])
    assert (edges[0], edges[-1]) == pytest.approx((-3, 3))
    assert (np.diff(np.diff(edges[20:])) > 0).all()


def test_bins_near_1_are_as_fine_as_asked():
    step = np.arcsinh(3 / 0.05) / 20
    assert GRID.log_edges[21] == pytest.approx(0.05 * np.sinh(step))


def test_edges_as_ratios_begin_at_0_so_that_a_run_of_no_time_has_a_bin():
    assert GRID.edges[0] == 0
    assert GRID.edges[1:] == pytest.approx(np.exp(GRID.log_edges[1:]))
    assert GRID.log_edges[0] == pytest.approx(-3)  # what was asked for stays


def test_a_bin_holds_its_lower_edge_and_the_outer_ones_all_beyond():
    grid = ResidualGrid(np.array([-2.0, -1.0, 0.0, 1.0, 2.0]))
    assert grid.index([-9, -2, -1.5, -1, -0.1, 0, 0.99, 1, 2, 9]).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]
    assert grid.index(np.zeros(0)).shape == (0,)


def test_every_bin_is_found_by_its_own_middle():
    middles = (GRID.log_edges[1:] + GRID.log_edges[:-1]) / 2
    assert GRID.index(middles).tolist() == list(range(40))


def test_smoothing_shares_with_neighbours_and_keeps_the_sums_even_at_the_ends():
    masses = np.zeros((3, 40))
    masses[0, 20], masses[1, 0], masses[2, 39] = 1, 2, 3
    found = GRID.smoothed(masses, 1.5)
    assert found.sum(axis=1) == pytest.approx([1, 2, 3])
    assert found[0, 19] == pytest.approx(found[0, 21])
    assert 0 < found[0, 21] < found[0, 20] < 1
    assert found[1].argmax() == 0


def test_no_smoothing_leaves_the_masses_and_none_are_smoothed_to_none():
    masses = np.eye(40)
    assert (GRID.smoothed(masses, 0) == masses).all()
    assert GRID.smoothed(np.zeros((0, 40)), 1.5).shape == (0, 40)


def test_widening_moves_each_deviation_by_its_power_and_keeps_the_sums():
    masses = np.zeros((2, 40))
    masses[0, GRID.index(0.5)], masses[1, GRID.index(-2.0)] = 1, 3
    middles = (GRID.log_edges[1:] + GRID.log_edges[:-1]) / 2
    for width in (0.5, 1.2):
        found = GRID.widened(masses, width)
        assert found.sum(axis=1) == pytest.approx([1, 3])
        assert (found >= 0).all()
        means = found @ middles / found.sum(axis=1)
        assert means == pytest.approx(width * (masses @ middles) / [1, 3], rel=0.1)


def test_widening_by_1_changes_nothing_and_deviations_beyond_the_bins_stay_in_the_outer_ones():
    masses = np.eye(40)
    assert (GRID.widened(masses, 1) == masses).all()
    found = GRID.widened(masses, 1.5)
    assert found[[0, -1], [0, -1]] == pytest.approx([1, 1])
    assert found.sum(axis=1) == pytest.approx(np.ones(40))
    assert GRID.widened(np.zeros((0, 40)), 1.5).shape == (0, 40)
