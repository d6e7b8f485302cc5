"""One sample a second on a fixed grid of the monotonic clock: open files are read, and understood only afterwards."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from tasks.workloads.record.counters import Readings, Source, values_of
from tasks.workloads.record.perf import PerfChild
from tasks.workloads.telemetry import Counter, FloatArray

NAP_S = 0.25


@dataclass(frozen=True)
class Sampled:
    """Samples of one stretch of time. at_s: shape (n,), seconds after its start; values: shape (n, counters).

    own_cpu_s: CPU time of the sampler and its perf; missed: samples of the grid that came too late to be taken;
    is_whole: false if it was ended early."""

    counters: tuple[Counter, ...]
    at_s: FloatArray
    values: FloatArray
    started_at: datetime
    own_cpu_s: float
    missed: int
    is_whole: bool


@contextlib.contextmanager
def first_in_line() -> Iterator[None]:
    """This thread before all others whenever it wakes, where the system allows it: a busy machine delays no sample."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    raised = False
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        raised = True
    try:
        yield
    finally:
        if raised:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, before[0] & ~os.SCHED_RESET_ON_FORK, before[1])


def sample(
    sources: Sequence[Source],
    n_samples: int,
    interval_s: float,
    *,
    perf: PerfChild | None = None,
    on_start: Callable[[], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Sampled:
    """Read the open sources once as a base, call on_start, and then n_samples times.

    should_stop is asked a few times a second; when it says so the samples so far are returned."""
    perf_before_s = perf.cpu_s() if perf else 0.0
    cpu_before_s, started_at = time.thread_time(), datetime.now(UTC).replace(tzinfo=None)
    readings, missed, is_whole = Readings(), 0, True
    with first_in_line():
        start_s = time.monotonic()
        for n in range(n_samples + 1):
            if not _wait_until(start_s + n * interval_s, should_stop):
                is_whole = False
                break
            if n and time.monotonic() >= start_s + (n + 1) * interval_s:
                missed += 1
                continue
            _take(sources, readings, start_s)
            if perf:
                perf.drain()
            if n == 0 and on_start:
                on_start()
    perf_cpu_s = perf.cpu_s() - perf_before_s if perf else 0.0
    at_s, values = readings.at_s, values_of(sources, readings)
    counters = [measure.counter for source in sources for measure in source.measures]
    if perf:
        perf.stop()
        counters += perf.counters
        rates = np.array(perf.rates(at_s), dtype=float).reshape(len(at_s), perf.n_events)
        values = np.concatenate([values, rates], axis=1)
    own_cpu_s = time.thread_time() - cpu_before_s + perf_cpu_s
    return Sampled(tuple(counters), at_s, values, started_at, own_cpu_s, missed, is_whole)


def _wait_until(due_s: float, should_stop: Callable[[], bool] | None) -> bool:
    while (left_s := due_s - time.monotonic()) > 0:
        if should_stop and should_stop():
            return False
        time.sleep(min(left_s, NAP_S))
    return True


def _take(sources: Sequence[Source], readings: Readings, start_s: float) -> None:
    taken_s, raw = [], []
    for source in sources:
        taken_s.append(time.monotonic() - start_s)
        raw.append(source.read())
    readings.taken_s.append(taken_s)
    readings.raw.append(raw)
