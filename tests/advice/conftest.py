"""Clusters and jobs with known truth, for the tests of advice."""

from collections.abc import Callable

import numpy as np
import pytest

from tasks.advice.machines import Configurations, MachineType, configurations

TYPES = (
    MachineType("c.small", 2, 4, 0.1),
    MachineType("c.large", 8, 16, 0.4),
    MachineType("m.small", 2, 16, 0.14),
    MachineType("m.large", 8, 64, 0.56),
)


@pytest.fixture
def clusters() -> Configurations:
    """Four machine types with 2, 4, 8 and 16 nodes each."""
    return configurations([(kind, n) for kind in TYPES for n in (2, 4, 8, 16)])


@pytest.fixture
def spilling() -> Callable[[Configurations, float], np.ndarray]:
    """A function: log cost on each cluster of a job that takes three times as long where its memory does not fit."""

    def log_cost(clusters: Configurations, need_gb: float) -> np.ndarray:
        runtime_s = 3_600 * (0.1 + 8 / clusters.total_vcpu)
        return np.log(clusters.cost(np.where(clusters.total_memory_gb < need_gb, 3 * runtime_s, runtime_s)))

    return log_cost
