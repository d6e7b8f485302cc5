"""Telemetry whose truth is known: workloads with levels, phases and inputs of their own, drawn round by round."""

from datetime import datetime, timedelta

import numpy as np
import pytest

from tasks.workloads.telemetry import Counter, Telemetry

START = datetime(2026, 1, 1)
COUNTERS = tuple(Counter(f"group.counter_{at}", "ops", "software", is_rate=at % 2 == 0) for at in range(6))


def draw_run(workload, run_id, *, seed=0, n_samples=30, noise=0.05, interval_s=1.0, level=0.0, **labels):
    """A run whose counters have levels of the workload's own, and a change at a place of its own.

    level: added to all, as another input does."""
    own, rng = np.random.default_rng(sum(map(ord, workload))), np.random.default_rng([seed, sum(map(ord, run_id))])
    means, steps = own.uniform(2, 6, len(COUNTERS)), own.uniform(-1.5, 1.5, len(COUNTERS))
    place = int(own.integers(n_samples // 4, 3 * n_samples // 4))
    shape = means + level + np.where(np.arange(n_samples)[:, None] >= place, steps, 0.0)
    values = np.exp(shape + rng.normal(0, noise, shape.shape))
    at_s = interval_s * np.arange(n_samples, dtype=float)
    return Telemetry(run_id, COUNTERS, at_s, values, workload, interval_s=interval_s, **labels)


@pytest.fixture(scope="session")
def draw():
    """draw_run."""
    return draw_run


@pytest.fixture(scope="session")
def campaign():
    """A function that draws rounds of runs of some workloads, each with two inputs, one a minute."""

    def drawn(workloads=("redis", "mysql", "nginx"), *, rounds=4, inputs=("small", "large"), **more):
        runs = []
        for round_ in range(rounds):
            for workload in workloads:
                for place, given in enumerate(inputs):
                    started = START + timedelta(minutes=len(runs))
                    run_id = f"{round_}-{workload}-{given}"
                    labels = {"input": given, "round": str(round_), "started_at": started}
                    runs.append(draw_run(workload, run_id, level=0.1 * place, **labels, **more))
        return runs

    return drawn


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    """Forests of 20 trees: no claim here is about forests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.workloads.evaluate.known.N_TREES", 20)
        yield
