"""Which counters are compared, and which give the session away."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.identify.counters import (
    common_counters,
    giveaway_of,
    means_of,
    missing_counters,
    moments_of,
    shapes_of,
    unfit,
)
from tasks.workloads.telemetry import Counter, Telemetry, described

AWAY = (
    "timestamp", "powerWatts", "disk_free", "disk_total", "part_max_used", "mem_buffers", "mem_cached", "mem_free",
    "mem_shared", "mem_total", "swap_free", "uptime", "memory.free_bytes", "sar.kbmemfree", "sar.pct_memused",
    "node_memory_MemFree_bytes", "node_filesystem_avail_bytes.device_vda", "node_boot_time_seconds",
    "process_start_time_seconds", "node_time_seconds", "forks_total",
)  # fmt: skip
STAYS = (
    "cpu-cycles", "MEMORY_REQUESTS", "swap_in", "page_out", "interrupts", "disk.read_bytes", "own.memory.free_bytes",
    "cpu.user_cores", "LLC-loads", "read_time", "memory.anonymous_bytes", "memory bandwidth read (MB/sec)", "runtime",
)  # fmt: skip


def test_levels_of_memory_and_disk_time_and_totals_give_the_session_away_and_no_rate_does():
    assert [name for name in (*AWAY, *STAYS) if giveaway_of(described(name))] == [*AWAY]
    assert not giveaway_of(Counter("node_memory_free_bytes", is_rate=True))


def run(*counters):
    return Telemetry("r1", tuple(counters), np.arange(3.0), np.zeros((3, len(counters))))


SWITCHES = Counter("cpu.context_switches", is_rate=True)
OWN = Counter("own.cpu.user_cores", is_rate=True, scope="workload")
FREE = Counter("memory.free_bytes")
FLUSHES = Counter("disk.flushes", is_rate=True)


def test_only_counters_of_all_runs_are_compared_by_name():
    found = common_counters([run(SWITCHES, OWN, FLUSHES), run(FLUSHES, SWITCHES)], "machine")
    assert found == (SWITCHES, FLUSHES)
    assert common_counters([run(SWITCHES), run(FLUSHES)], "machine") == ()
    views = {view: common_counters([run(OWN, SWITCHES)], view) for view in ("machine", "own")}
    assert views == {"machine": (SWITCHES,), "own": (OWN,)}


def test_counters_of_single_cores_are_compared_only_where_none_is_of_all():
    usual, first, second, softnet = (
        Counter(f"cpu.{name}") for name in ("all.pct_usr", "0.pct_usr", "1.pct_usr", "0.total")
    )
    assert common_counters([run(usual, first, second, softnet)], "machine") == (softnet, usual)
    assert common_counters([run(usual, first), run(first)], "machine") == (first,)


def test_a_counter_that_some_machine_does_not_give_stays_where_enough_runs_of_each_workload_have_it():
    redis = [replace(run(OWN, SWITCHES), workload="redis"), replace(run(SWITCHES), workload="redis")]
    nginx = replace(run(OWN, SWITCHES), workload="nginx")
    assert common_counters([*redis, nginx], "own", 0.5) == (OWN,)
    assert common_counters([*redis, nginx], "own", 0.6) == ()
    assert common_counters([nginx, redis[1]], "own", 0.5) == ()


def test_what_others_leave_take_or_hold_says_nothing_about_a_workload_and_what_it_does_is_compared():
    own = ("own.pressure.cpu_some", "own.cpu.throttled_s", "own.perf.cpu_migrations")
    others = [FREE, Counter("memory.anonymous_bytes"), *(Counter(name, is_rate=True, scope="workload") for name in own)]
    others += [Counter("cpu.idle_cores", is_rate=True), Counter("cpu.steal_cores", is_rate=True)]
    assert all(unfit(counter) for counter in others)
    told = (SWITCHES, OWN, Counter("own.memory.anonymous_bytes", scope="workload"))
    assert not any(unfit(counter) for counter in told)


def test_there_is_nothing_to_compare_without_a_run():
    with pytest.raises(BadInput, match="runs: none"):
        common_counters([], "machine")


def test_a_run_that_lacks_counters_is_refused_and_told_which():
    with pytest.raises(BadInput, match=r"run r1: lacks 2 of 3 counters: disk.flushes, own.cpu.user_cores"):
        missing_counters(run(SWITCHES), [SWITCHES, FLUSHES, OWN], np.ones(3), 0.9)
    with pytest.raises(BadInput, match="c7 and 2 more"):
        missing_counters(run(SWITCHES), [Counter(f"c{at}") for at in range(10)], np.ones(10), 0.9)


def test_a_few_counters_may_be_missing_where_that_is_allowed():
    assert missing_counters(run(SWITCHES, OWN), [SWITCHES, FLUSHES, OWN], np.ones(3), 0.6) == ("disk.flushes",)
    assert missing_counters(run(SWITCHES, OWN, FREE), [SWITCHES, OWN], np.ones(2), 1) == ()
    told = np.array([1.0, 0.0, 0.0])  # a counter that tells nothing may be missing
    assert missing_counters(run(SWITCHES), [SWITCHES, FLUSHES, OWN], told, 1) == ("disk.flushes", OWN.name)


def test_means_leave_out_what_was_not_measured():
    values = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    one = Telemetry("r1", (SWITCHES, FLUSHES), np.arange(3.0), values)
    np.testing.assert_array_equal(means_of([one], [FLUSHES, SWITCHES, OWN]), [[np.nan, 2, np.nan]])


def test_means_come_before_deviations_and_no_runs_have_none():
    found = moments_of([Telemetry("r1", (SWITCHES,), np.arange(2.0), np.array([[1.0], [5.0]]))], [SWITCHES, FREE])
    assert np.array_equal(found, [[3, np.nan, 2, np.nan]], equal_nan=True)
    assert moments_of([], [FREE]).shape == (0, 2)


def test_a_shape_is_the_way_of_a_counter_whatever_its_level_and_deviation():
    """In deviations −1, −1, 1, 1: quantiles, autocorrelation (1 − 1 + 1) / 4, halves 2 apart, 1 from the mean."""
    values = np.array([[0.0, 7.0], [0.0, 7.0], [4.0, 7.0], [4.0, 7.0]])
    found = [
        shapes_of([Telemetry("r1", (SWITCHES, FLUSHES), np.arange(4.0), scale * values + 3)], [SWITCHES, FLUSHES, OWN])
        for scale in (1, 100)
    ]
    expected = [-1, -1, 0, 1, 1, 0.25, 2, 1]
    for shapes in found:
        by_counter = shapes.reshape(8, 3).T
        np.testing.assert_allclose(by_counter, [expected, [0] * 8, [np.nan] * 8], atol=1e-12)


def test_a_missing_sample_leaves_the_shape_of_the_others():
    def shape(values):
        return shapes_of(
            [Telemetry("r1", (SWITCHES,), np.arange(float(len(values))), np.array(values)[:, None])], [SWITCHES]
        )[0]

    assert np.isnan(shape([np.nan, np.nan])).all() and not shape([5.0]).any()
    assert shape([1.0, np.nan, 3.0])[[0, 2, 4]] == pytest.approx([-0.9, 0, 0.9])
