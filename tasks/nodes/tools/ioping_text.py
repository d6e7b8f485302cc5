"""The statistics that ioping prints last: two or three lines."""

import re
from collections.abc import Sequence

from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.lines import Line
from tasks.nodes.tools.numbers import NUMBER
from tasks.nodes.tools.parser import CUT
from tasks.nodes.tools.units import COUNT_PREFIXES, TIMES_S

STATISTICS = re.compile(r"^--- .* ioping statistics ---")
COUNT = rf"({NUMBER}) ?([kKMGTP]?)"
AMOUNT = rf"({NUMBER}) ?([A-Za-z]+)"
REQUESTS = re.compile(
    rf"^{COUNT} requests completed in {AMOUNT},(?: {AMOUNT}(?: read| written|), )? ?{COUNT} iops, {AMOUNT}/s$"
)
GENERATED = re.compile(
    rf"generated {COUNT} requests in {AMOUNT}, {AMOUNT}, {COUNT} iops, {AMOUNT}/s$"
)  # behind "3 too fast, 1 too slow, "
LATENCIES = re.compile(r"^min/avg/max/mdev = (.*)$")
NAMES = ("latency_min", "latency_avg", "latency_max", "latency_mdev")
TIME = re.compile(rf"({NUMBER}) ?([A-Za-z]*)")
BINARY = {"b": "B", "kb": "KiB", "mb": "MiB", "gb": "GiB", "tb": "TiB"}  # before 0.9 in lower case


def read_text(found: Gathering, lines: Sequence[Line]) -> None:
    """The values of the first statistics; each further one is a fault."""
    heads = [at for at, line in enumerate(lines) if STATISTICS.search(line.text)]
    for at in heads[1:]:
        found.fault(lines[at].place, "another log begins here; only the first of ioping is read", lines[at].text)
    end = heads[1] if len(heads) > 1 else len(lines)
    body = lines[heads[0] + 1 : end]
    has_latencies = False
    has_load = any("generated " in line.text for line in body)
    for line in body:
        text = line.text.strip()
        if "requests completed in" in text:
            _read_requests(found, text, line, has_load=has_load)
        elif "generated " in text and " requests in " in text:
            _read_generated(found, text, line)
        elif latencies := LATENCIES.match(text):
            has_latencies = True
            _read_latencies(found, latencies[1], line)
    if not has_latencies:
        found.fault(lines[end - 1].place, "the log is cut off: no min/avg/max/mdev", lines[end - 1].text)


def _read_requests(found: Gathering, text: str, line: Line, *, has_load: bool) -> None:
    match = REQUESTS.match(text)
    if not match:
        found.fault(line.place, "no number of requests, time, iops and speed here", line.text)
        return
    number, prefix, time, time_unit, size, size_unit, iops, iops_prefix, speed, speed_unit = match.groups()
    found.text("number_of_requests", number, "", line, times=COUNT_PREFIXES[prefix])
    is_sum = has_load or size is not None  # before 1.0 the time from first to last request
    found.text("total_duration" if is_sum else "generated_duration", time, time_unit, line)
    if size is not None:
        found.text("transfer_size", size, _binary(size_unit), line)
    found.text("iops", iops, "iops", line, times=COUNT_PREFIXES[iops_prefix])
    found.text("transfer_bitrate", speed, f"{_binary(speed_unit)}/s", line)


def _read_generated(found: Gathering, text: str, line: Line) -> None:
    match = GENERATED.search(text)
    if not match:
        found.fault(line.place, "no number of generated requests, time, size, iops and speed here", line.text)
        return
    number, prefix, time, time_unit, size, size_unit, iops, iops_prefix, speed, speed_unit = match.groups()
    found.text("generated_requests", number, "", line, times=COUNT_PREFIXES[prefix])
    found.text("generated_duration", time, time_unit, line)
    found.text("generated_size", size, _binary(size_unit), line)
    found.text("generated_iops", iops, "iops", line, times=COUNT_PREFIXES[iops_prefix])
    found.text("generated_bitrate", speed, f"{_binary(speed_unit)}/s", line)


def _read_latencies(found: Gathering, text: str, line: Line) -> None:
    """`119.7 us / 187.3 us / 341.2 us / 57.5 us`, or before 0.8 `0.2/2.8/12.7/5.0 ms`: one unit for all."""
    pieces = [TIME.fullmatch(piece.strip()) for piece in text.split("/")]
    last = pieces[-1]
    if line.is_cut and not (len(pieces) == len(NAMES) and last and last[2] in TIMES_S):
        found.fault(line.place, CUT, line.text)
        return
    if len(pieces) != len(NAMES):
        found.fault(line.place, "expected four latencies: min/avg/max/mdev", line.text)
        return
    for name, piece in zip(NAMES, pieces, strict=True):
        if piece is None:
            found.fault(line.place, f"{name} is no number with a unit", line.text)
        else:
            found.text(name, piece[1], piece[2] or (last[2] if last else ""), line)


def _binary(unit: str) -> str:
    return BINARY.get(unit, unit)
