"""ioping's line of raw statistics: eight numbers (before 0.9), or ten, of which the last two are of the load.

Times are in us before 1.0 and in ns since; which of them, the line itself says: requests per second are requests by
their time. With periods (-p) there are several lines; the last is the total if it holds all those before it."""

import re
from collections.abc import Sequence

from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.lines import Line
from tasks.nodes.tools.parser import CUT

RAW = re.compile(r"^[0-9]{1,20}( [0-9]{1,20}){7}( [0-9]{1,20} [0-9]{1,20})?$")
NAMES = (
    "number_of_requests", "total_duration", "iops", "transfer_bitrate", "latency_min", "latency_avg", "latency_max",
    "latency_mdev", "generated_requests", "generated_duration",
)  # fmt: skip
UNITS = ("", "time", "iops", "B/s", "time", "time", "time", "time", "", "time")
PER_SECOND = {"us": 1e6, "ns": 1e9}
ROUNDING = 2.0  # requests per second are printed without decimals: about one, that much off


def read_raw(found: Gathering, lines: Sequence[Line]) -> None:
    """The values of the total."""
    rows = [(line, [int(word) for word in line.text.split()]) for line in lines if RAW.match(line.text.strip())]
    line, numbers = rows[-1]
    if len(rows) > 1 and not _is_total(numbers, [row for _, row in rows[:-1]]):
        found.fault(line.place, "several lines of raw statistics, and the last is not their total", line.text)
        return
    words = line.text.split()
    if line.is_cut:
        words.pop()  # the last number may have had more digits
        found.fault(line.place, CUT, line.text)
    unit = _time_unit(numbers)
    if not unit and numbers[0]:
        found.fault(line.place, "requests, time and requests per second do not fit: neither ns nor us", line.text)
        return
    for name, kind, text in zip(NAMES, UNITS, words, strict=False):
        found.text(name, text, (unit or "ns") if kind == "time" else kind, line)


def _time_unit(numbers: Sequence[int]) -> str:
    """The unit that fits best; empty if neither does."""
    count, time, rate = numbers[:3]
    if not time:
        return ""
    off = {unit: (rate + 0.5) / (count * per_second / time + 0.5) for unit, per_second in PER_SECOND.items()}
    best = min(off, key=lambda unit: max(off[unit], 1 / off[unit]))
    return best if 1 / ROUNDING <= off[best] <= ROUNDING else ""


def _is_total(numbers: Sequence[int], periods: Sequence[Sequence[int]]) -> bool:
    """Whether counts and times add up to at most these, and extremes lie within these."""
    return (
        numbers[0] >= sum(row[0] for row in periods)
        and numbers[1] >= sum(row[1] for row in periods)
        and numbers[4] <= min(row[4] for row in periods)
        and numbers[6] >= max(row[6] for row in periods)
    )
