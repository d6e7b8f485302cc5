"""The methods that ours is measured against."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from tasks.advice.baselines import (
    JITTER,
    arrow,
    arrow_proposal,
    cherrypick,
    cherrypick_with,
    features,
    likeliest_length,
    portfolio,
    ruya,
    weighted_acquisition,
)
from tasks.advice.machines import Configurations, stated_need
from tasks.advice.search import CandidateOutcomes, Problem, portfolio_order, search


def test_the_length_scale_is_the_one_that_scikit_learn_fits(clusters: Configurations) -> None:
    points = features(clusters)[::2]
    values = np.sin(points[:, 0] / 20) + points[:, 1] / 100
    standard = (values - values.mean()) / values.std()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = GaussianProcessRegressor(Matern(), alpha=JITTER, n_restarts_optimizer=5, random_state=0)
        fitted.fit(points, standard)
    ours = fitted.log_marginal_likelihood(np.log([likeliest_length(points, standard)]))
    assert ours > fitted.log_marginal_likelihood_value_ - 0.05


def test_ruya_tries_what_is_promising_first_and_cherrypick_anything(clusters: Configurations) -> None:
    outcome = CandidateOutcomes(np.log(clusters.total_memory_gb), np.ones(len(clusters), dtype=bool))
    problem = Problem(clusters, stated_need(200))
    n = int(problem.is_promising.sum())
    by_need = search(problem, outcome, n, ruya, np.random.default_rng(0))
    assert problem.is_promising[by_need].all()
    assert not problem.is_promising[search(problem, outcome, n, cherrypick, np.random.default_rng(0))].all()


def test_cherrypick_goes_on_where_every_run_failed(clusters: Configurations) -> None:
    outcome = CandidateOutcomes(np.zeros(len(clusters)), np.zeros(len(clusters), dtype=bool))
    assert len(set(search(Problem(clusters), outcome, 16, cherrypick, np.random.default_rng(0)).tolist())) == 16


def test_a_portfolio_takes_what_serves_all_jobs_and_then_what_the_worst_one_lacks() -> None:
    jobs = [np.array([1.0, 1.3, 4.0]), np.array([3.0, 1.3, 1.0])]
    assert portfolio_order(jobs, 2) == [
        1,
        0,
    ]  # 1.3 on both; then 1 for the first (or the second: the first comes first)
    assert portfolio_order([np.array([1.0, np.inf])], 2) == [0, 1]
    assert portfolio_order([np.array([np.inf, np.inf])], 2) == []  # nobody knows


def test_a_portfolio_is_run_in_its_order_and_the_rest_at_random(clusters: Configurations) -> None:
    outcome = CandidateOutcomes(np.zeros(len(clusters)), np.ones(len(clusters), dtype=bool))
    problem = replace(Problem(clusters))
    tried = search(problem, outcome, 5, portfolio([3, 1]), np.random.default_rng(0))
    assert tried[:2].tolist() == [3, 1]
    assert len(set(tried.tolist())) == 5


SCORES = {"cpu": {"c.small": 1.0, "c.large": 4.0, "m.small": 1.0, "m.large": 2.0}}


def test_the_best_scored_machine_comes_second_and_third_in_any_size(clusters: Configurations) -> None:
    outcome = CandidateOutcomes(np.zeros(len(clusters)), np.ones(len(clusters), dtype=bool))
    sizes = set()
    for seed in range(8):
        tried = search(Problem(clusters), outcome, 3, cherrypick_with(SCORES), np.random.default_rng(seed))
        assert [clusters.machine_type[at] for at in tried[1:]] == ["c.large", "c.large"]
        sizes |= set(clusters.nodes[tried[1:]].tolist())
    assert sizes == {2, 4, 8, 16}


def test_arrow_runs_each_candidate_once_and_learns_which_are_cheap(clusters: Configurations) -> None:
    outcome = CandidateOutcomes(np.log(clusters.total_vcpu), np.ones(len(clusters), dtype=bool))
    for scores in (None, SCORES):
        tried = search(Problem(clusters), outcome, 16, arrow(scores), np.random.default_rng(0))
        assert sorted(tried) == list(range(16))
        assert outcome.log_cost[tried[3:7]].mean() < outcome.log_cost.mean()


GRID = np.array([[nodes, cores] for nodes in (4.0, 8.0, 16.0) for cores in (2.0, 4.0, 8.0)])
LOG_COST = np.log(GRID[:, 0]) + 0.1 * GRID[:, 1]
NO_METRICS = np.zeros((9, 0))


def proposal(profiled, metrics=NO_METRICS, seed=0, **more):
    at = np.array(profiled)
    return arrow_proposal(GRID, metrics, LOG_COST[at], at, np.random.default_rng(seed), **more)


def test_the_scatter_of_the_sources_is_the_deviation():
    # one feature: config 0 or 1. Pairs: (0, 1) -> y1 = 3, (1, 0) -> y0 = 1. A tree splits on source (0: 3, 1: 1) or on
    # candidate (0: 1, 1: 3). With a share s of trees on the source: source 0, candidate 0: 3 s + (1 - s);
    # source 1, candidate 0: s + (1 - s) = 1. Mean 1 + s, sample deviation of the two 2 s / sqrt(2) = s sqrt(2)
    configurations = np.array([[0.0], [1.0]])
    mean, deviation = arrow_proposal(
        configurations, np.zeros((2, 0)), np.array([1.0, 3.0]), np.array([0, 1]), np.random.default_rng(0)
    )
    share = mean[0] - 1
    assert 0.3 < share < 0.7
    assert deviation[0] == pytest.approx(share * np.sqrt(2), rel=1e-6)
    # candidate 1: source 0 gives 3, source 1 gives s + 3 (1 - s) = 3 - 2 s: mean 3 - s
    assert mean[1] == pytest.approx(3 - share)


def test_metrics_of_runs_that_did_not_happen_are_not_read_and_units_do_not_matter():
    profiled = [0, 4, 8]
    metrics = np.full((9, 2), np.nan)
    metrics[profiled] = [[10.0, 1.0], [50.0, 1.0], [90.0, 1.0]]  # the second never varies
    (mean, _), (other, _) = proposal(profiled, metrics), proposal(profiled, metrics * 1024.0)
    assert np.isfinite(mean).all()
    assert mean == pytest.approx(other)


@pytest.mark.parametrize(
    ("n_profiled", "bonus"),
    [(1, 2.0 / 6), (2, 2.0 / 6), (3, 2.0 / 36), (5, 2.0 / 1296)],  # 6^max(1, n - 1): 6, 6, 36, 1296
)
def test_the_weight_of_scores_fades_with_the_runs(n_profiled, bonus):
    # S = .5 · (1 + 1) + 1 · 1 = 2 for the first candidate, 0 for the second
    scores = {"disk": np.array([[1.0, 1.0], [0.0, 0.0]]), "cpu": np.array([[1.0], [0.0]])}
    got = weighted_acquisition(np.array([0.19, 0.19]), {"disk": 0.5, "cpu": 1.0}, scores, n_profiled)
    assert got == pytest.approx([0.2 * (1 + bonus), 0.2])
