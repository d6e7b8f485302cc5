"""The machine around the jobs: load, busy cores, and work that is not the recorder's."""

import math
import os

from tasks.jobs.record.cluster import Monitor


def test_the_monitor_tells_foreign_work_from_the_recorders_own():
    monitor = Monitor()
    assert math.isnan(monitor.state().busy_cores)
    monitor.sample([])
    sum(range(3_000_000))  # this process's own work
    monitor.sample([])
    state = monitor.state()
    assert 0 <= state.foreign_cores <= max(state.busy_cores, 0.0) <= (os.cpu_count() or 1) + 1
    assert state.load_1m >= 0
