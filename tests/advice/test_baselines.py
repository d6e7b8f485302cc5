"""The methods that ours is measured against."""

import warnings
from dataclasses import replace

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from tasks.advice.baselines import (
    JITTER,
    arrow,
    by_scores,
    cherrypick,
    cherrypick_with,
    features,
    likeliest_length,
    portfolio,
    portfolio_order,
    ruya,
    unweighted,
)
from tasks.advice.machines import Configurations
from tasks.advice.memory import stated_need
from tasks.advice.search import Outcome, Problem, search


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
    outcome = Outcome(np.log(clusters.total_memory_gb), np.ones(len(clusters), dtype=bool))
    problem = Problem(clusters, stated_need(200))
    n = int(problem.is_promising.sum())
    by_need = search(problem, outcome, n, ruya, np.random.default_rng(0))
    assert problem.is_promising[by_need].all()
    assert not problem.is_promising[search(problem, outcome, n, cherrypick, np.random.default_rng(0))].all()


def test_cherrypick_ends_with_the_cheapest_of_a_smooth_surface(clusters: Configurations) -> None:
    outcome = Outcome(np.log(clusters.total_vcpu), np.ones(len(clusters), dtype=bool))
    found = [
        outcome.log_cost[search(Problem(clusters), outcome, 8, cherrypick, np.random.default_rng(seed))].min()
        for seed in range(10)
    ]
    assert np.median(found) == outcome.log_cost.min()


def test_cherrypick_goes_on_where_every_run_failed(clusters: Configurations) -> None:
    outcome = Outcome(np.zeros(len(clusters)), np.zeros(len(clusters), dtype=bool))
    assert len(set(search(Problem(clusters), outcome, 16, cherrypick, np.random.default_rng(0)).tolist())) == 16


def test_a_portfolio_takes_what_serves_all_jobs_and_then_what_the_worst_one_lacks() -> None:
    jobs = [np.array([1.0, 1.3, 4.0]), np.array([3.0, 1.3, 1.0])]
    assert portfolio_order(jobs, 2) == [
        1,
        0,
    ]  # 1.3 on both; then 1 for the first (or the second: the first comes first)
    assert portfolio_order([np.array([1.0, np.inf])], 2) == [0, 1]


def test_a_portfolio_is_run_in_its_order_and_the_rest_at_random(clusters: Configurations) -> None:
    outcome = Outcome(np.zeros(len(clusters)), np.ones(len(clusters), dtype=bool))
    problem = replace(Problem(clusters))
    tried = search(problem, outcome, 5, portfolio([3, 1]), np.random.default_rng(0))
    assert tried[:2].tolist() == [3, 1]
    assert len(set(tried.tolist())) == 5


SCORES = {"cpu": {"c.small": 1.0, "c.large": 4.0, "m.small": 1.0, "m.large": 2.0}}


def test_the_best_scored_machine_comes_second_and_third_in_any_size(clusters: Configurations) -> None:
    outcome = Outcome(np.zeros(len(clusters)), np.ones(len(clusters), dtype=bool))
    sizes = set()
    for seed in range(8):
        tried = search(Problem(clusters), outcome, 3, cherrypick_with(by_scores(SCORES)), np.random.default_rng(seed))
        assert [clusters.machine_type[at] for at in tried[1:]] == ["c.large", "c.large"]
        sizes |= set(clusters.nodes[tried[1:]].tolist())
    assert sizes == {2, 4, 8, 16}


def test_without_scores_an_acquisition_stays_as_it_is_and_the_unit_of_scores_does_not_matter(
    clusters: Configurations,
) -> None:
    worth = np.linspace(0, 1, len(clusters))
    assert unweighted(clusters, worth, 2) is worth
    thousands = {"cpu": {name: 1_000 * score for name, score in SCORES["cpu"].items()}}
    assert np.allclose(by_scores(SCORES)(clusters, worth, 2), by_scores(thousands)(clusters, worth, 2))


def test_arrow_runs_each_candidate_once_and_learns_which_are_cheap(clusters: Configurations) -> None:
    outcome = Outcome(np.log(clusters.total_vcpu), np.ones(len(clusters), dtype=bool))
    for scores in (None, SCORES):
        tried = search(Problem(clusters), outcome, 16, arrow(scores), np.random.default_rng(0))
        assert sorted(tried) == list(range(16))
        assert outcome.log_cost[tried[3:7]].mean() < outcome.log_cost.mean()
