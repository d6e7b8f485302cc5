"""The workload `bayes`: chains of Markov chain Monte Carlo that never end by themselves."""

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
LEAPFROG_STEPS, HMC_STEP = 12, 0.004
WALK_STEP = 0.01


def hierarchy(groups: int, rows: int, rng: np.random.Generator) -> Callable[[Vector], tuple[float, Vector]]:
    """A hierarchical normal model: log posterior and gradient of (group effects, overall mean, log spread)."""
    group = rng.integers(0, groups, rows)
    seen = rng.normal(2.0, 1.0, groups)[group] + rng.normal(0.0, 1.0, rows)

    def posterior(at: Vector) -> tuple[float, Vector]:
        effects, mean, log_spread = at[:groups], at[groups], at[groups + 1]
        spread = np.exp(log_spread)
        misses = seen - effects[group]  # (rows,)
        apart = (effects - mean) / spread  # (groups,)
        log_density = -0.5 * (misses @ misses + apart @ apart + mean**2 + log_spread**2) - groups * log_spread
        slope = np.empty_like(at)
        slope[:groups] = np.bincount(group, misses, groups) - apart / spread
        slope[groups] = apart.sum() / spread - mean
        slope[groups + 1] = apart @ apart - groups - log_spread
        return float(log_density), slope

    return posterior


def hamiltonian(options: dict[str, Any], rng: np.random.Generator) -> None:
    """One chain of Hamiltonian Monte Carlo."""
    groups = int(options["groups"])
    posterior = hierarchy(groups, int(options["rows"]), rng)
    at = np.zeros(groups + 2)
    log_density, slope = posterior(at)
    while True:
        momentum = rng.normal(size=at.size)
        energy = log_density - 0.5 * momentum @ momentum
        to, to_density, to_slope = at, log_density, slope
        for _ in range(LEAPFROG_STEPS):
            momentum = momentum + 0.5 * HMC_STEP * to_slope
            to = to + HMC_STEP * momentum
            to_density, to_slope = posterior(to)
            momentum = momentum + 0.5 * HMC_STEP * to_slope
        if np.log(rng.random()) < to_density - 0.5 * momentum @ momentum - energy:
            at, log_density, slope = to, to_density, to_slope


def metropolis(options: dict[str, Any], rng: np.random.Generator) -> None:
    """One chain of random-walk Metropolis on a logistic regression."""
    rows, columns = int(options["rows"]), int(options["columns"])
    design = rng.normal(size=(rows, columns))
    seen = rng.random(rows) < 1 / (1 + np.exp(-design @ rng.normal(size=columns)))
    sign = np.where(seen, -1.0, 1.0)
    at, log_density = np.zeros(columns), -np.inf
    while True:
        to = at + WALK_STEP * rng.normal(size=columns)
        to_density = float(-np.logaddexp(0.0, sign * (design @ to)).sum() - 0.5 * to @ to)
        if np.log(rng.random()) < to_density - log_density:
            at, log_density = to, to_density


def main(options: dict[str, Any]) -> None:
    """Run the chains side by side until killed."""
    chain = hamiltonian if options["model"] == "hierarchy" else metropolis
    seeds = np.random.SeedSequence(int(options["seed"])).spawn(int(options["chains"]))
    chains = [threading.Thread(target=chain, args=(options, np.random.default_rng(seed))) for seed in seeds]
    for one in chains:
        one.start()
    for one in chains:
        one.join()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
