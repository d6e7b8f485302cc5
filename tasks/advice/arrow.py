"""Arrow: trees on pairs of runs, helped by what was measured inside them; and Perona's weights of an acquisition.

Arrow (Hsu et al. 2018) learns from each pair of profiled runs (i, j): from configuration i, what the run on it looked
like inside (metrics i), and configuration j, to the log cost of j. A candidate gets a prediction from every profiled
run; their mean is the estimate, their scatter the uncertainty. Perona (Scheinert et al. 2022, IV-D) multiplies any
acquisition by how well a machine scores in the resources that the job has used so far."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tasks.errors import BadInput

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

N_TREES, DEPTH = 101, 5  # the published settings
JITTER = 1e-8  # variance added to that of the sources
FEWEST_PROFILED = 2  # one ordered pair each way
SEEDS = 2**31 - 1
NODES_OF_UNIT = 4  # a run on so many nodes counts as one in a utilisation
PERCENT = 100.0
ACQUISITION_FLOOR = 0.01  # so that scores decide where nothing is to be gained
LARGEST_SUM = 6  # of scores: memory 1, processor 1, disk 2, network 2 benchmarks, each at most 1


@dataclass(frozen=True)
class PairPrediction:
    """Estimate of the log cost of each candidate from the profiled runs: (n,) mean and standard deviation."""

    mean: Floats
    deviation: Floats


def arrow_proposal(
    configurations: Floats,
    metrics: Floats,
    log_cost: Floats,
    profiled: Ints,
    rng: np.random.Generator,
    *,
    n_trees: int = N_TREES,
) -> PairPrediction:
    """Log cost of each candidate as trees on pairs of profiled runs see it.

    configurations: (n, d). metrics: (n, m), read at the profiled rows alone; m may be 0. log_cost: (k,) of the
    profiled. profiled: (k,) rows of the candidates that have run. n_trees: fewer are faster and a little noisier.
    The estimate is the mean over the k sources, the variance their sample variance plus a jitter: the diagonal of the
    published covariance, which is all that expected improvement of one candidate needs. Raises BadInput for k < 2."""
    from sklearn.tree import ExtraTreeRegressor  # type: ignore[import-untyped, unused-ignore]

    k = len(profiled)
    if k < FEWEST_PROFILED:
        raise BadInput("Arrow", f"{k} profiled run", f"at least {FEWEST_PROFILED}", "run two configurations first")
    sources = np.hstack([configurations[profiled], _minmax(metrics[profiled])])  # (k, d + m)
    first, second = np.nonzero(~np.eye(k, dtype=bool))
    inputs = np.hstack([sources[first], configurations[profiled][second]]).astype(np.float32)  # (k (k - 1), 2 d + m)
    targets = log_cost[second]
    n = len(configurations)
    queries = np.hstack([np.repeat(sources, n, axis=0), np.tile(configurations, (k, 1))]).astype(np.float32)
    total = np.zeros(k * n)
    for seed in rng.integers(SEEDS, size=n_trees):  # a forest of these, without what it costs to start one
        tree = ExtraTreeRegressor(max_depth=DEPTH, random_state=int(seed))
        total += tree.fit(inputs, targets, check_input=False).tree_.predict(queries)[:, 0]
    by_source = (total / n_trees).reshape(k, n)
    return PairPrediction(by_source.mean(axis=0), np.sqrt(by_source.var(axis=0, ddof=1) + JITTER))


def _minmax(metrics: Floats) -> Floats:
    """Each column from 0 to 1 over the rows; 0 where it does not vary."""
    low, high = metrics.min(axis=0, initial=np.inf), metrics.max(axis=0, initial=-np.inf)
    spread = np.where(high > low, high - low, 1.0)
    return np.asarray((metrics - low) / spread)


def scaled_scores(scores: Floats) -> Floats:
    """Scores of machine types by benchmark, (n_types, n_benchmarks), each column divided by its largest magnitude."""
    return np.asarray(scores / np.abs(scores).max(axis=0))


def utilisation(means_percent: Floats, node_counts: Ints) -> Floats:
    """How much a job uses each resource, from 0 to 1: (n_resources,).

        u = Σ_w (1/e_w) (mean_w / 100)^{e_w} / Σ_w (1/e_w),   e_w = nodes_w / 4

    means_percent: (k, n_resources), mean utilisation in each profiled run, 0 to 100. node_counts: (k,). Runs on few
    nodes count more. Source: Perona's published code."""
    exponent = node_counts[:, None] / NODES_OF_UNIT
    return np.asarray(((means_percent / PERCENT) ** exponent / exponent).sum(axis=0) / (1 / exponent).sum(axis=0))


def weighted_acquisition(
    acquisition: Floats,
    utilisation_of: Mapping[str, float],
    scores_of: Mapping[str, Floats],
    n_profiled: int,
) -> Floats:
    """An acquisition, weighted by the scores of each candidate's machine in what the job uses: (n,).

        a' = (a + 0.01) (1 + S / 6^max(1, n - 1)),   S = Σ_aspect u_aspect Σ_benchmark s_benchmark

    acquisition: (n,). utilisation_of: 0 to 1 by aspect. scores_of: (n, n_benchmarks) by aspect, scaled_scores of the
    machine of each candidate; published are 1 benchmark of memory and of processor, 2 of disk and of network.
    n_profiled: runs so far; the weight all but vanishes from the fifth on. Raises BadInput where
    an aspect has no scores."""
    missing = [aspect for aspect in utilisation_of if aspect not in scores_of]
    if missing:
        raise BadInput("weights of the acquisition", f"no scores of {', '.join(missing)}", "scores of each aspect used")
    score = np.zeros(len(acquisition))
    for aspect, used in utilisation_of.items():
        score += used * scores_of[aspect].sum(axis=1)
    return np.asarray((acquisition + ACQUISITION_FLOOR) * (1 + score / LARGEST_SUM ** max(1, n_profiled - 1)))
