"""The filter and what is read from it, against every segmentation weighed one by one, and against bayescd."""

from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
import pytest
from bayesian_changepoint_detection.hazard_functions import constant_hazard
from bayesian_changepoint_detection.online_likelihoods import StudentT
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_t

from tasks.workloads.changepoints.finding import ChangePointParams, find_changepoints
from tasks.workloads.changepoints.online import PriorParams, filter_run_lengths, predictive_tables, probability_near
from tests.studies.change_points import PLAIN, plain_run_lengths

AS_IT_IS = ChangePointParams(prior=PriorParams(), is_scaled=False, outlier_deviations=0, expected_run_length=4, near=0)
STEP = np.repeat([0.0, 5.0, -3.0], 100)


def regression_evidence(y: np.ndarray, times: np.ndarray, prior: PriorParams, *, is_line: bool) -> float:
    """Log evidence of a level or a line with normal-inverse-gamma prior, in closed form."""
    design = np.column_stack([np.ones(len(y)), times])[:, : 1 + is_line]
    precision = np.diag([prior.kappa, prior.trend_span**-2][: 1 + is_line])
    mean = np.array([prior.mean, 0.0])[: 1 + is_line]
    after = precision + design.T @ design
    centre = np.linalg.solve(after, precision @ mean + design.T @ y)
    rest = y @ y + mean @ precision @ mean - centre @ after @ centre
    a, b = prior.alpha, prior.alpha * prior.noise
    a_n, b_n = a + len(y) / 2, b + rest / 2
    return (
        0.5 * (np.linalg.slogdet(precision)[1] - np.linalg.slogdet(after)[1])
        - len(y) / 2 * np.log(2 * np.pi)
        + a * np.log(b)
        - a_n * np.log(b_n)
        + gammaln(a_n)
        - gammaln(a)
    )


def segment_evidence(values: np.ndarray, n_all: int, prior: PriorParams) -> float:
    """Of all counters of a segment: levels and lines mixed, missing samples left out."""
    total = 0.0
    for column in values.T:
        y = column[~np.isnan(column)]
        times = np.arange(len(y)) / n_all
        parts = [np.log1p(-prior.trend_share) + regression_evidence(y, times, prior, is_line=False)]
        if prior.trend_share:
            parts.append(np.log(prior.trend_share) + regression_evidence(y, times, prior, is_line=True))
        total += logsumexp(parts)
    return total


def segmentations(n: int) -> Iterator[tuple[int, ...]]:
    for n_changes in range(n):
        yield from combinations(range(1, n), n_changes)


def weigh(values: np.ndarray, params: ChangePointParams) -> dict[tuple[int, ...], float]:
    """Log joint probability of samples and each segmentation whose segments, but the last, are long enough."""
    n, hazard, least = len(values), 1 / params.expected_run_length, params.min_segment
    found = {}
    for changes in segmentations(n):
        edges = [0, *changes, n]
        lengths = np.diff(edges)
        if (lengths[:-1] < least).any():
            continue
        stayed = sum(max(length - least, 0) for length in lengths)  # a short segment cannot end: no choice, no factor
        log_prior = len(changes) * np.log(hazard) + stayed * np.log1p(-hazard)
        parts = pairwise(edges)
        found[changes] = log_prior + sum(segment_evidence(values[s:e], n, params.prior) for s, e in parts)
    return found


@pytest.mark.parametrize("trend_share", [0.0, 0.5])
@pytest.mark.parametrize("min_segment", [1, 2, 3])
@pytest.mark.parametrize("n_counters", [1, 2])
def test_the_posterior_is_that_of_all_segmentations(n_counters: int, min_segment: int, trend_share: float) -> None:
    rng = np.random.default_rng(min_segment)
    values = rng.normal(size=(8, n_counters)) + 4 * (np.arange(8) >= 4)[:, None]
    if n_counters == 2:
        values[2, 1] = np.nan
    prior = PriorParams(trend_share=trend_share, trend_span=3, kappa=0.5)
    params = AS_IT_IS.model_copy(update={"prior": prior, "min_segment": min_segment})
    weights = weigh(values, params)
    log_total = logsumexp(list(weights.values()))
    found = find_changepoints(values, params)
    assert found.log_evidence == pytest.approx(log_total, abs=1e-10)
    at_each = [sum(np.exp(w - log_total) for changes, w in weights.items() if row in changes) for row in range(8)]
    assert found.at_each == pytest.approx(np.array(at_each), abs=1e-6)
    whole = {changes: w for changes, w in weights.items() if not changes or 8 - changes[-1] >= min_segment}
    assert tuple(found.indices) == max(whole, key=whole.__getitem__)


def filtered(values: np.ndarray, *, nats: float = 30, cap: int = 256) -> tuple[np.ndarray, int]:
    """Log evidence after each sample and the number of predictives computed, with the default prior."""
    tables = predictive_tables(PriorParams(), len(values))
    hazard = np.log([1 / 1000, 1 - 1 / 1000])
    evidence, *_, n_predictives = filter_run_lengths(values[:, None], tables, hazard, 2, nats, cap)
    return evidence, n_predictives


def test_pruning_at_30_nats_changes_log_evidence_by_less_than_a_billionth() -> None:
    values = STEP + np.random.default_rng(1).normal(size=300)
    pruned, n_pruned = filtered(values, cap=10_000)
    whole, n_whole = filtered(values, nats=1e6, cap=10_000)
    assert n_pruned < 0.7 * n_whole
    assert np.abs(pruned - whole).max() < 1e-9


def test_the_cap_on_run_lengths_changes_log_evidence_little() -> None:
    values = np.random.default_rng(1).normal(size=1500)  # nothing changes: no run length is ever improbable
    capped, n_capped = filtered(values)
    whole, n_whole = filtered(values, cap=10_000)
    assert n_capped < 0.4 * n_whole
    assert np.abs(capped - whole).max() < 0.2  # of 2,155 nats


def test_the_evidence_of_autocorrelated_noise_is_that_of_its_covariance() -> None:
    y, prior, correlation = np.array([0.3, -1.0, 2.0, 1.5, 0.2]), PriorParams(kappa=0.5, trend_share=0.0), 0.7
    tables = predictive_tables(prior, len(y), correlation)
    evidence, *_ = filter_run_lengths(y[:, None], tables, np.array([-1e9, 0.0]), 1, 1e6, 100)
    # y is a multivariate t: freedom 2a, location the mean of levels, shape that of level and noise together
    lags = np.abs(np.subtract.outer(range(5), range(5)))
    stationary = prior.noise * (correlation**lags + 1 / prior.kappa)
    assert evidence[-1] == pytest.approx(multivariate_t(np.zeros(5), stationary, df=2 * prior.alpha).logpdf(y))


@pytest.mark.parametrize(("near", "expected"), [(0, [0.05, 0.5]), (1, [0.07, 0.64]), (9, [0.8, 0.8])])
def test_a_change_counts_what_lies_as_near_on_either_side_of_it(near: int, expected: list[float]) -> None:
    probabilities = np.array([0.05, 0.02, 0.04, 0.08, 0.5, 0.06, 0.05])  # 0.08 + 0.5 + 0.06 around the fifth
    assert probability_near(np.array([0, 4]), probabilities, near) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("seed", range(2))
def test_run_lengths_are_those_of_bayescd_at_every_step(seed: int) -> None:
    models = pytest.importorskip("bayesian_changepoint_detection.bayesian_models")
    values = STEP + np.random.default_rng(seed).normal(size=300)
    posterior, _ = models.online_changepoint_detection(
        values, lambda lengths: constant_hazard(100, lengths), StudentT(alpha=1, beta=1, kappa=1, mu=0)
    )
    # its run length 0 after a sample is a segment that starts with the next one: ours starts counting at that one
    theirs = posterior[1:, 1:].argmax(axis=0) + 1
    assert plain_run_lengths(values, PLAIN)[:, 0].tolist() == theirs.tolist()
