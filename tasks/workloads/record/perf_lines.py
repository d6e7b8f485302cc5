"""The lines that `perf stat -I 1000 -x';'` writes, as intervals: when each ended, and what each event counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

NAN = float("nan")
SEPARATOR = ";"
NO_VALUE = ("<not counted>", "<not supported>")
WITH_GROUP, PLAIN = 9, 8  # fields of a line


@dataclass
class Interval:
    """One interval: seconds since perf began at its end, and the counts in the order in which events were asked."""

    ended_s: float
    counts: list[float] = field(default_factory=list)


def parse_perf(lines: Iterable[str]) -> list[Interval]:
    """Intervals in their order. What perf could not count is NaN; lines that are no counts are passed over."""
    intervals: list[Interval] = []
    for line in lines:
        fields = line.split(SEPARATOR)
        if line.startswith("#") or len(fields) < 4:
            continue
        try:
            ended_s = float(fields[0])
            count = NAN if fields[1].strip() in NO_VALUE else float(fields[1])
        except ValueError:
            continue
        if not intervals or ended_s != intervals[-1].ended_s:
            intervals.append(Interval(ended_s))
        intervals[-1].counts.append(count)
    return intervals


def whole_intervals(intervals: Sequence[Interval], n_events: int, interval_s: float) -> list[Interval]:
    """Those that say something of every event and lasted as long as asked: the last one is cut off when perf ends."""
    whole, before_s = [], 0.0
    for interval in intervals:
        lasted_s, before_s = interval.ended_s - before_s, interval.ended_s
        if len(interval.counts) == n_events and lasted_s > interval_s * 0.9:
            whole.append(interval)
    return whole


def rates_at(
    intervals: Sequence[Interval], at_s: Sequence[float], n_events: int, interval_s: float, first_s: float
) -> list[list[float]]:
    """Counts per second of the interval that ended nearest to each sample, within half an interval; else NaN.

    first_s: perf's time at which the samples' clock began. Shape (samples, events)."""
    ends = {interval.ended_s: n for n, interval in enumerate(intervals)}
    rows = []
    for at in at_s:
        nearest = min(ends, key=lambda end: abs(end - first_s - at), default=None)
        n = ends[nearest] if nearest is not None and abs(nearest - first_s - at) <= interval_s / 2 else 0
        if n == 0:  # none, or the first whole one, whose beginning is before the samples'
            rows.append([NAN] * n_events)
            continue
        lasted_s = intervals[n].ended_s - intervals[n - 1].ended_s
        is_next = lasted_s < interval_s * 1.9
        rows.append([count / lasted_s if is_next else NAN for count in intervals[n].counts])
    return rows
