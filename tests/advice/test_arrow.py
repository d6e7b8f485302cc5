"""Arrow's trees on pairs, and Perona's weights, against values worked out by hand."""

import numpy as np
import pytest

from tasks.advice.arrow import arrow_proposal, scaled_scores, utilisation, weighted_acquisition
from tasks.errors import BadInput

GRID = np.array([[nodes, cores] for nodes in (4.0, 8.0, 16.0) for cores in (2.0, 4.0, 8.0)])
LOG_COST = np.log(GRID[:, 0]) + 0.1 * GRID[:, 1]
NO_METRICS = np.zeros((9, 0))


def proposal(profiled, metrics=NO_METRICS, seed=0, **more):
    at = np.array(profiled)
    return arrow_proposal(GRID, metrics, LOG_COST[at], at, np.random.default_rng(seed), **more)


def test_estimates_stay_within_what_was_seen():
    got = proposal([0, 4, 8])
    assert ((got.mean >= LOG_COST[0] - 1e-9) & (got.mean <= LOG_COST[8] + 1e-9)).all()
    assert (got.deviation > 0).all()


def test_the_scatter_of_the_sources_is_the_deviation():
    # one feature: config 0 or 1. Pairs: (0, 1) -> y1 = 3, (1, 0) -> y0 = 1. A tree splits on source (0: 3, 1: 1) or on
    # candidate (0: 1, 1: 3). With a share s of trees on the source: source 0, candidate 0: 3 s + (1 - s);
    # source 1, candidate 0: s + (1 - s) = 1. Mean 1 + s, sample deviation of the two 2 s / sqrt(2) = s sqrt(2)
    configurations = np.array([[0.0], [1.0]])
    got = arrow_proposal(
        configurations, np.zeros((2, 0)), np.array([1.0, 3.0]), np.array([0, 1]), np.random.default_rng(0)
    )
    share = got.mean[0] - 1
    assert 0.3 < share < 0.7
    assert got.deviation[0] == pytest.approx(share * np.sqrt(2), rel=1e-6)
    # candidate 1: source 0 gives 3, source 1 gives s + 3 (1 - s) = 3 - 2 s: mean 3 - s
    assert got.mean[1] == pytest.approx(3 - share)


def test_cheap_regions_are_predicted_cheaper_than_dear_ones():
    got = proposal([0, 2, 3, 5, 6, 8])
    assert got.mean[1] < got.mean[4] < got.mean[7]


def test_metrics_of_runs_that_did_not_happen_are_not_read_and_units_do_not_matter():
    profiled = [0, 4, 8]
    metrics = np.full((9, 2), np.nan)
    metrics[profiled] = [[10.0, 1.0], [50.0, 1.0], [90.0, 1.0]]  # the second never varies
    got, other = proposal(profiled, metrics), proposal(profiled, metrics * 1024.0)
    assert np.isfinite(got.mean).all()
    assert got.mean == pytest.approx(other.mean)


def test_the_same_seed_gives_the_same_proposal_and_fewer_trees_nearly_the_same():
    profiled = [0, 2, 5, 6, 7]
    assert proposal(profiled).mean.tolist() == proposal(profiled).mean.tolist()
    assert proposal(profiled, n_trees=31).mean == pytest.approx(proposal(profiled).mean, abs=0.25)


def test_one_run_makes_no_pair():
    with pytest.raises(BadInput, match="Arrow: 1 profiled run; expected at least 2"):
        proposal([3])


def test_utilisation_weighs_small_clusters_more():
    # nodes 4 and 8: e = 1, 2; u = (1 · .5 + .5 · .8²) / 1.5 = .82 / 1.5
    assert utilisation(np.array([[50.0], [80.0]]), np.array([4, 8])) == pytest.approx([0.82 / 1.5])


def test_scores_are_divided_by_the_largest_magnitude_of_their_column():
    assert scaled_scores(np.array([[1.0, -4.0], [2.0, 2.0]])).tolist() == [[0.5, -1.0], [1.0, 0.5]]


@pytest.mark.parametrize(
    ("n_profiled", "bonus"),
    [(1, 2.0 / 6), (2, 2.0 / 6), (3, 2.0 / 36), (5, 2.0 / 1296)],  # 6^max(1, n - 1): 6, 6, 36, 1296
)
def test_the_weight_of_scores_fades_with_the_runs(n_profiled, bonus):
    # S = .5 · (1 + 1) + 1 · 1 = 2 for the first candidate, 0 for the second
    scores = {"disk": np.array([[1.0, 1.0], [0.0, 0.0]]), "cpu": np.array([[1.0], [0.0]])}
    got = weighted_acquisition(np.array([0.19, 0.19]), {"disk": 0.5, "cpu": 1.0}, scores, n_profiled)
    assert got == pytest.approx([0.2 * (1 + bonus), 0.2])


def test_a_resource_that_is_used_needs_scores():
    with pytest.raises(BadInput, match="no scores of network"):
        weighted_acquisition(np.ones(1), {"network": 0.5}, {"cpu": np.ones((1, 1))}, 3)
