"""Samples all nodes of a campaign once a second, from its first execution to its last, in a thread of its own."""

import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tasks.nodes.execution import Sampled
from tasks.nodes.record.node_metrics import METRICS, NodeReader, Reading, machine_reading
from tasks.workloads.record.sampler import first_in_line

DIGITS = 5  # of a sample: more than its meaning, and small in a file


class NodeSampler(threading.Thread):
    """Readings of each node on a fixed grid of the monotonic clock, the last `keeps_s` seconds of them."""

    def __init__(self, readers: Mapping[str, NodeReader], folder: Path, *, interval_s: float, keeps_s: float) -> None:
        super().__init__(name="node metrics", daemon=True)
        self.readers, self.folder, self.interval_s = readers, folder, interval_s
        self.taken: deque[tuple[float, dict[str, Reading]]] = deque(maxlen=2 + round(keeps_s / interval_s))
        self.aside: list[tuple[float, dict[str, Reading]]] = []
        self.aside_until_s = 0.0
        self.cpu_s = 0.0
        self.began_s = time.monotonic()
        self.missed = 0
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    def run(self) -> None:
        """Sample until stopped. A sample that is late is taken; those that it made impossible are counted."""
        with first_in_line():
            due_s = time.monotonic()
            while not self._stopping.wait(max(0.0, due_s - time.monotonic())):
                self.take()
                due_s += self.interval_s
                while due_s <= time.monotonic():
                    self.missed += 1
                    due_s += self.interval_s
        self.cpu_s = time.thread_time()

    def take(self) -> None:
        """Read every node once."""
        at_s = time.monotonic()
        machine = machine_reading(self.folder)
        readings = {node: reader.read(machine) for node, reader in self.readers.items()}
        with self._lock:
            self.taken.append((at_s, readings))
            if self.aside and self.aside[-1][0] < self.aside_until_s:
                self.aside.append((at_s, readings))
        if threading.current_thread() is self:
            self.cpu_s = time.thread_time()

    def stop(self) -> None:
        """End the thread and close its files."""
        self._stopping.set()
        if self.ident is not None:
            self.join()
        for reader in self.readers.values():
            reader.close()

    @property
    def cores(self) -> float:
        """Its own cost so far: CPU time over time."""
        return self.cpu_s / max(time.monotonic() - self.began_s, self.interval_s)

    def covers(self, end_s: float) -> bool:
        """Whether a sample was taken at this time or later."""
        with self._lock:
            return bool(self.taken) and self.taken[-1][0] >= end_s

    def put_aside(self, since_s: float, until_s: float) -> None:
        """Keep what was sampled from since_s on, two samples before it, and what will be until until_s, however much
        later it is asked for; what was put aside before goes on being kept from then on."""
        with self._lock:
            kept = sorted((dict(self.aside) | dict(self.taken)).items())
            first = sum(at_s < since_s for at_s, _ in kept)
            self.aside, self.aside_until_s = kept[max(0, first - 2) :], until_s

    def between(self, node: str, begin_s: float, end_s: float, zero_s: float) -> tuple[Sampled, ...]:
        """The node's metrics at the samples from begin_s to end_s, and one beyond each end. zero_s: where at_s is 0.

        A metric that no sample has is left out; one that some lack is NaN there."""
        with self._lock:
            kept = dict(self.aside) | dict(self.taken)  # by time: what was put aside is as old as the rest, or older
            taken = [(at_s, readings[node]) for at_s, readings in kept.items() if node in readings]
        inside = [place for place, (at_s, _) in enumerate(taken) if begin_s <= at_s <= end_s]
        first = max(1, (inside[0] if inside else len(taken)) - 1)
        last = min(len(taken), (inside[-1] + 2) if inside else 0)
        pairs = [(taken[place - 1], taken[place]) for place in range(first, last)]
        at_s = np.array([after_s - zero_s for _, (after_s, _) in pairs]).round(3)
        series = []
        for metric in METRICS:
            values = np.array([metric.of(a, b, b_s - a_s) for (a_s, a), (b_s, b) in pairs], dtype=float)
            if len(values) and not np.isnan(values).all():
                series.append(Sampled(metric.name, metric.unit, at_s, _short(values)))
        return tuple(series)


def _short(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Rounded to a few digits that count."""
    return np.array([float(f"{value:.{DIGITS}g}") for value in values])
