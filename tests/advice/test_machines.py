"""What a cluster holds and costs, and how much memory a job needs."""

import numpy as np
import pytest

from tasks.advice.machines import (
    Configurations,
    MachineType,
    MemoryNeed,
    configurations,
    memory_need,
    need_of_peaks,
    promising,
    stated_need,
)
from tasks.errors import BadInput

PAIR = [(MachineType("a", 4, 16, 0.2), 3), (MachineType("b", 2, 4, 0.1), 5)]


def test_a_cluster_holds_and_costs_its_nodes_together() -> None:
    clusters = configurations(PAIR)
    assert clusters.total_vcpu.tolist() == [12, 10]
    assert clusters.total_memory_gb.tolist() == [48, 20]
    assert clusters.rate_per_h.tolist() == pytest.approx([0.6, 0.5])
    assert clusters.cost(np.array([1_800.0, 7_200.0])).tolist() == pytest.approx([0.3, 1.0])


def test_a_configuration_is_known_by_machine_type_and_nodes() -> None:
    clusters = configurations(PAIR)
    assert clusters.places["b", 5] == 1
    assert clusters.places.get(("b", 3)) is None
    assert clusters.name(0) == "3 × a"
    assert clusters.subset(np.array([1])).machine_type == ("b",)


INPUTS = np.array([1e9, 2e9, 3e9, 4e9])


def test_a_peak_that_grows_on_a_line_is_read_off_at_full_size() -> None:
    need = memory_need(INPUTS, 1e9 + 2 * INPUTS, 50e9)
    assert need.pattern == "linear"
    assert need.need_gb == pytest.approx(101)  # 1 GB and 2 GB a GB


@pytest.mark.parametrize(
    ("peaks", "pattern"),
    [([2e9, 2e9, 2e9, 2e9], "flat"), ([2.0e9, 2.1e9, 2.1e9, 2.0e9], "flat"), ([1e9, 5e9, 2e9, 6e9], "unclear")],
)
def test_a_peak_that_stays_is_flat_and_one_that_jumps_is_unclear(peaks: list[float], pattern: str) -> None:
    assert memory_need(INPUTS, np.array(peaks), 50e9).pattern == pattern


def test_a_peak_that_falls_on_a_line_is_no_need() -> None:
    assert memory_need(INPUTS, 9e9 - INPUTS, 50e9).pattern == "unclear"


@pytest.mark.parametrize("inputs", [INPUTS[:3], np.full(4, 1e9)])
def test_too_few_runs_or_inputs_of_one_size_say_nothing(inputs: np.ndarray) -> None:
    with pytest.raises(BadInput, match="at least 4 runs with different inputs"):
        memory_need(inputs, inputs, 50e9)


def test_the_highest_recorded_peak_is_the_need() -> None:
    assert need_of_peaks(np.array([3e9, 7e9, 5e9])).need_gb == 7


def test_clusters_that_hold_the_need_beside_two_gb_a_node_are_promising(clusters: Configurations) -> None:
    fits = promising(clusters, stated_need(100))
    expected = 100 + 2 * clusters.nodes < 1.1 * clusters.total_memory_gb
    assert fits.tolist() == expected.tolist()
    assert not fits[clusters.places["m.small", 4]]  # 64 GB
    assert fits[clusters.places["m.small", 8]]  # 128 GB


def test_the_ten_smallest_are_promising_where_more_memory_is_of_no_use(clusters: Configurations) -> None:
    fits = promising(clusters, stated_need(0))
    assert fits.sum() == 10
    assert clusters.total_memory_gb[fits].max() <= clusters.total_memory_gb[~fits].min()


def test_the_ends_are_promising_where_nothing_holds_the_need(clusters: Configurations) -> None:
    fits = promising(clusters, stated_need(1e6))
    assert fits.sum() == 10
    assert fits[clusters.places["m.large", 16]]
    assert fits[clusters.places["c.small", 2]]


@pytest.mark.parametrize("need", [None, MemoryNeed("unclear", float("nan"), "")])
def test_everything_is_promising_where_the_need_is_not_known(clusters: Configurations, need: MemoryNeed | None) -> None:
    assert promising(clusters, need).all()


def test_what_somebody_states_is_flat_linear_or_unclear() -> None:
    assert [stated_need(gb).pattern for gb in (0.0, 3.0, float("nan"))] == ["flat", "linear", "unclear"]
