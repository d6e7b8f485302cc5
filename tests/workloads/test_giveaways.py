"""Which counters give the session away: by their names, for anybody's telemetry."""

import pytest

from tasks.workloads.counter_names import described
from tasks.workloads.giveaways import giveaways_among
from tasks.workloads.telemetry import Counter

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


@pytest.mark.parametrize("name", AWAY)
def test_levels_of_memory_and_disk_time_and_totals_give_the_session_away(name):
    assert giveaways_among([described(name)])


@pytest.mark.parametrize("name", STAYS)
def test_what_the_workload_does_stays(name):
    assert not giveaways_among([described(name)])


def test_a_rate_never_gives_the_session_away():
    assert not giveaways_among([Counter("node_memory_free_bytes", is_rate=True)])
