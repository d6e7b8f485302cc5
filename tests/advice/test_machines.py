"""Clusters: what they hold in all, and what a run on them costs."""

import numpy as np
import pytest

from tasks.advice.machines import MachineType, configurations

PAIR = [(MachineType("a", 4, 16, 0.2), 3), (MachineType("b", 2, 4, 0.1), 5)]


def test_a_cluster_holds_and_costs_its_nodes_together() -> None:
    clusters = configurations(PAIR)
    assert clusters.total_vcpu.tolist() == [12, 10]
    assert clusters.total_memory_gb.tolist() == [48, 20]
    assert clusters.rate_per_h.tolist() == pytest.approx([0.6, 0.5])
    assert clusters.cost(np.array([1_800.0, 7_200.0])).tolist() == pytest.approx([0.3, 1.0])


def test_a_configuration_is_known_by_machine_type_and_nodes() -> None:
    clusters = configurations(PAIR)
    assert clusters.index("b", 5) == 1
    assert clusters.index("b", 3) is None
    assert clusters.name(0) == "3 × a"
    assert clusters.subset(np.array([1])).machine_type == ("b",)
