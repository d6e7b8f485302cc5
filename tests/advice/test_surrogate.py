"""The Gaussian process on log cost: its kernel and posterior by hand, failed runs, chances, and what is learned."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from tasks.advice.machines import Configurations, MachineType, configurations
from tasks.advice.surrogate import (
    FIXED,
    LEVEL,
    Posterior,
    Prior,
    SurrogateParams,
    TrialRuns,
    completion,
    expected_improvement,
    in_time,
    kernel,
    learned,
    posterior,
    prior_after,
)

MATERN_AT_1 = (1 + 5**0.5 + 5 / 3) * np.exp(-(5**0.5))  # Rasmussen and Williams, equation 4.17
CORES = SurrogateParams(weights=(0.0, 0.0, 0.0, 1.0))
NOISE = 0.05


def pair() -> Configurations:
    """Two clusters whose total cores differ by the factor e."""
    kinds = [MachineType("a", 1, 1, 1), MachineType("b", float(np.e), 1, 1)]
    return configurations([(kind, 1) for kind in kinds])


def ran(candidates: list[int], log_cost: list[float], completed: list[bool] | None = None) -> TrialRuns:
    done = np.ones(len(candidates), dtype=bool) if completed is None else np.array(completed)
    return TrialRuns(np.array(candidates, dtype=np.int64), np.array(log_cost), done)


def prior_of(clusters: Configurations) -> Prior:
    return Prior(np.zeros(len(clusters)), kernel(clusters, FIXED))


def test_the_kernel_of_two_clusters_by_hand() -> None:
    half = (1 - MATERN_AT_1) / 2  # J [[1, k], [k, 1]] J
    assert kernel(pair(), CORES) == pytest.approx(np.array([[half, -half], [-half, half]]))


def test_the_kernel_is_centred_symmetric_and_no_variance_is_negative(clusters: Configurations) -> None:
    covariance = kernel(clusters, FIXED)
    assert covariance.sum(0) == pytest.approx(np.zeros(len(clusters)), abs=1e-12)
    assert covariance == pytest.approx(covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > -1e-12


def test_the_posterior_of_one_run_by_hand() -> None:
    half = (1 - MATERN_AT_1) / 2
    belief = posterior(Prior(np.zeros(2), kernel(pair(), CORES)), ran([0], [3.0]), NOISE)
    assert belief.mean == pytest.approx([3.0, 3.0])  # the level is all that one run tells
    expected = half + LEVEL - (LEVEL - half) ** 2 / (half + LEVEL + NOISE)
    assert belief.variance[1] == pytest.approx(expected)


def test_costs_that_are_a_constant_higher_give_a_belief_that_is_as_much_higher(clusters: Configurations) -> None:
    low = posterior(prior_of(clusters), ran([0, 5, 9], [0.0, 0.4, 0.2]), NOISE)
    high = posterior(prior_of(clusters), ran([0, 5, 9], [7.0, 7.4, 7.2]), NOISE)
    assert high.mean == pytest.approx(low.mean + 7)
    assert high.variance == pytest.approx(low.variance)


def test_a_failed_run_makes_its_neighbourhood_dearer_and_never_cheaper(clusters: Configurations) -> None:
    done = posterior(prior_of(clusters), ran([0, 5], [0.0, 0.4]), NOISE)
    with_failed = posterior(prior_of(clusters), ran([0, 5, 9], [0.0, 0.4, 2.0], [True, True, False]), NOISE)
    assert with_failed.mean[9] > done.mean[9] + 0.3
    assert with_failed.mean[8] > done.mean[8]


@pytest.mark.parametrize("log_cost", [-20.0, -np.inf])  # it ended early, or nobody knows when
def test_a_failed_run_that_cost_nothing_or_who_knows_what_says_nothing_of_the_cost(
    clusters: Configurations, log_cost: float
) -> None:
    done = posterior(prior_of(clusters), ran([0, 5], [0.0, 0.4]), NOISE)
    with_failed = posterior(prior_of(clusters), ran([0, 5, 9], [0.0, 0.4, log_cost], [True, True, False]), NOISE)
    assert with_failed.mean == pytest.approx(done.mean)
    alone = posterior(prior_of(clusters), ran([9], [-np.inf], [False]), NOISE)
    assert alone.mean.tolist() == prior_of(clusters).mean.tolist()


def test_failed_runs_alone_leave_a_belief(clusters: Configurations) -> None:
    belief = posterior(prior_of(clusters), ran([3], [1.0], [False]), NOISE)
    assert np.isfinite(belief.mean).all()
    assert belief.mean[3] > 1


def test_expected_improvement_by_hand() -> None:
    worth = expected_improvement(np.array([1.0, 0.0, 9.0]), np.array([1.0, 1e-6, 1.0]), 1.0)
    assert worth[0] == pytest.approx(norm.pdf(0))  # as good as the best, uncertain by 1
    assert worth[1] == pytest.approx(1.0)  # cheaper by 1 for sure
    assert worth[2] == pytest.approx(0, abs=1e-10)


def test_chance_to_complete_starts_at_what_is_known_and_falls_by_a_ninth_with_a_failure_of_its_twin(
    clusters: Configurations,
) -> None:
    covariance, params = kernel(clusters, FIXED), replace(FIXED, completion=(0.0, 0.0, 0.0, 0.0))
    assert completion(clusters, covariance, ran([], []), params) == pytest.approx(np.full(len(clusters), 0.5))
    after = completion(clusters, covariance, ran([4], [0.0], [False]), params)
    assert after[4] == pytest.approx(8 * 0.5 / 9)
    assert after.min() == after[4]


def test_chance_to_be_in_time_by_hand() -> None:
    clusters = pair()  # 1 an hour: cost 1 is an hour
    belief = Posterior(np.zeros(2), np.full(2, 0.5), np.zeros((2, 2)))
    assert in_time(belief, clusters, 3_600, 0.5) == pytest.approx([0.5, 0.5])
    assert in_time(belief, clusters, 3_600 * np.e, 0.5) == pytest.approx(np.full(2, norm.cdf(1)))


def test_runs_with_another_input_say_where_it_is_cheap(clusters: Configurations) -> None:
    log_cost = np.log(clusters.total_memory_gb)
    other = TrialRuns(np.arange(len(clusters)), log_cost + 5, np.ones(len(clusters), dtype=bool))
    prior = prior_after(kernel(clusters, FIXED), [other], 0.8, NOISE)
    assert np.corrcoef(prior.mean, log_cost)[0, 1] > 0.9
    assert (np.diag(prior.covariance) <= np.diag(kernel(clusters, FIXED)) + 1e-12).all()
    assert prior_after(kernel(clusters, FIXED), [], 0.8, NOISE).mean.tolist() == [0.0] * len(clusters)


def test_jobs_that_depend_on_memory_alone_teach_that_cores_do_not_matter(clusters: Configurations) -> None:
    every, done = np.arange(len(clusters)), np.ones(len(clusters), dtype=bool)
    waves = [np.sin(phase + 2 * np.log(clusters.total_memory_gb)) for phase in range(4)]
    params = learned([(clusters, TrialRuns(every, wave, done)) for wave in waves], prior_precision=1.0)
    memory, cores = params.weights[1], params.weights[3]
    assert memory > 3 * cores
    assert params.noise >= 0.03
    assert params.completion == FIXED.completion  # nothing failed


def test_failures_of_small_clusters_teach_that_nodes_help_to_complete(clusters: Configurations) -> None:
    done = clusters.nodes > 2
    params = learned([(clusters, TrialRuns(np.arange(len(done)), np.zeros(len(done)), done))] * 3, n_steps=1)
    chance = completion(clusters, kernel(clusters, params), ran([], []), params)
    assert chance[clusters.nodes == 2].max() < chance[clusters.nodes == 16].min()
