"""ioping: the text of 0.4 to 1.3, its line of raw statistics (-B, -q -p) and its JSON (-J).

Before 1.0 "completed in" is the time with the pauses between requests, which later versions print as generated; it is
read as generated_duration there. Statistics of nothing (no request counted) are missing, not zero. Of periods (-p)
the total that follows them is read; those that were cut off after their first line cannot be told from a total.

The JSON is a list of requests and statistics; the last statistics are of the whole run, and say when it ended. The raw
line has eight numbers (before 0.9), or ten, of which the last two are of the load; its times are in us before 1.0 and
in ns since: which of them, the line itself says, since requests per second are requests by their time. With periods
there are several lines; the last is the total if it holds all those before it.

Settings: size and way stand in each request; a quiet log (-q) says them by its totals, which are rounded, so that a
size there counts where it comes close to a power of two."""

import math
import re
from collections.abc import Sequence

from tasks.nodes.tools.parsing import (
    CUT,
    NUMBER,
    TIMES_S,
    Document,
    Log,
    LogLine,
    Parser,
    as_number,
    at_path,
    checked,
    facts_of,
    in_base,
    looks_like_json,
    mapping,
    spelled,
    unix_time,
)

TOOL = "ioping"
METRICS = facts_of(  # with the paths of the JSON below the statistics
    "disk",
    """
    number_of_requests | + 1 per total_duration | stat/count= | requests that count (the first is a warm-up)
    total_duration | = s | stat/time=ns | time of these requests, added up
    transfer_size | + B per total_duration | stat/size=B | bytes of these requests
    iops | +! 1/s | stat/iops=iops | requests a second of their own time
    transfer_bitrate | +! B/s | stat/bps=B/s | bytes a second of the requests' own time
    latency_min | - s | stat/min=ns | shortest request
    latency_avg | -! s | stat/avg=ns | mean request
    latency_max | - s | stat/max=ns | longest request
    latency_mdev | - s | stat/mdev=ns | standard deviation of the requests
    generated_requests | = 1 per generated_duration | load/count= | requests made, warm-up included
    generated_duration | = s | load/time=ns | time from the first to the last request, with the intervals between
    generated_size | = B per generated_duration | load/size=B | bytes of the requests made
    generated_iops | = 1/s | load/iops=iops | requests made a second: set by the interval, unless the disk is slower
    generated_bitrate | = B/s | load/bps=B/s | bytes a second of the requests made: set by the interval too
    """,
)
MEASURED = tuple(name for name in METRICS if not name.startswith("generated") and name != "number_of_requests")
IN_RAW = tuple(
    name for name in METRICS if not name.endswith("_size") and name not in ("generated_iops", "generated_bitrate")
)


def _count(name: str) -> str:
    return rf"(?P<{name}>{NUMBER}) ?(?P<{name}_prefix>[kKMGTP]?)"


def _amount(name: str) -> str:
    return rf"(?P<{name}>{NUMBER}) ?(?P<{name}_unit>[A-Za-z]+)"


def _speed(name: str) -> str:
    return rf"(?P<{name}>{NUMBER}) ?(?P<{name}_unit>[A-Za-z]+/s)"


STATISTICS = re.compile(r"^--- .* ioping statistics ---")
REQUESTS = re.compile(
    rf"^{_count('number_of_requests')} requests completed in {_amount('total_duration')},"
    rf"(?: {_amount('transfer_size')}(?: read| written|), )? ?{_count('iops')} iops, {_speed('transfer_bitrate')}$"
)
GENERATED = re.compile(  # behind "3 too fast, 1 too slow, "
    rf"generated {_count('generated_requests')} requests in {_amount('generated_duration')}, "
    rf"{_amount('generated_size')}, {_count('generated_iops')} iops, {_speed('generated_bitrate')}$"
)
LATENCIES = re.compile(r"^min/avg/max/mdev = (.*)$")
LATENCY_NAMES = ("latency_min", "latency_avg", "latency_max", "latency_mdev")
TIME = re.compile(rf"({NUMBER}) ?([A-Za-z]*)")
RAW = re.compile(r"^[0-9]{1,20}( [0-9]{1,20}){7}( [0-9]{1,20} [0-9]{1,20})?$")
PER_SECOND = {"us": 1e6, "ns": 1e9}
ROUNDING = 2.0  # requests per second are printed without decimals there: about one, that much off
ERRORS = re.compile(r"^\s*ioping: ")
REQUEST = re.compile(rf"^({NUMBER}) ?(bytes|[KMGT]?i?B) (from|to|<<<|>>>) .*request=[0-9]")
SIGNS = re.compile(
    rf'{STATISTICS.pattern}|^[0-9.]+ ?(bytes|[KMGT]?i?B) (from|to|<<<|>>>) .*request=[0-9]|"mdev":|{ERRORS.pattern}'
    rf"|{RAW.pattern}",
    re.MULTILINE,
)
WAYS = {"from": "read", "<<<": "read", "to": "write", ">>>": "write"}
MOVED = re.compile(rf"requests completed in [^,]+, {NUMBER} ?[KMGT]?i?B( read| written)?, ")
MOVED_WAYS = {" read": "read", " written": "write", None: "read+write"}
RATIOS = (
    ("transfer_size", "number_of_requests"),
    ("generated_size", "generated_requests"),
    ("transfer_bitrate", "iops"),
)
NEAR = 0.03  # of a power of two


def _read(log: Log) -> None:
    _split(log)
    lines, document = log.lines, None
    log.fault_lines(lines, ERRORS)
    if any(STATISTICS.search(line.text) for line in lines):
        _read_text(log)
    elif looks_like_json(log.text):
        if document := log.document(lambda content: any({"stat", "io"} & entry.keys() for entry in _entries(content))):
            _read_json(log, document)
    elif raw := [line for line in lines if RAW.match(line.text.strip())]:
        _read_raw(log, raw)
    elif any(REQUEST.match(line.text) for line in lines):
        log.fault(lines[-1].place, "the log is cut off: requests without statistics at the end", lines[-1].text)
    if log.value("number_of_requests") == 0:
        log.drop(MEASURED)
        reason = "no request was counted: nothing is known of their time"
        log.fault(lines[-1].place, reason, lines[-1].text, is_failure=True)
    _read_settings(log, document)


def _split(log: Log) -> None:
    """A further log begins with its requests, or where it is quiet with its statistics."""
    heads, has_ended = [log.place], False
    for line in log.lines:
        is_end = bool(STATISTICS.search(line.text))
        if has_ended and (is_end or REQUEST.match(line.text)):
            heads.append(line.place)
            has_ended = False
        has_ended |= is_end
    log.split(heads)


def _read_text(log: Log) -> None:
    lines = log.lines
    first = next(at for at, line in enumerate(lines) if STATISTICS.search(line.text))
    body = lines[first + 1 :]
    has_latencies, has_load = False, any("generated " in line.text for line in body)
    for line in body:
        text = line.text.strip()
        if "requests completed in" in text:
            _read_requests(log, line, has_load=has_load)
        elif "generated " in text and " requests in " in text:
            if match := GENERATED.search(text):
                log.take_groups(match, line)
            else:
                log.fault(line.place, "no number of generated requests, time, size, iops and speed here", line.text)
        elif latencies := LATENCIES.match(text):
            has_latencies = True
            _read_latencies(log, latencies[1], line)
    if not has_latencies:
        last = body[-1] if body else lines[first]
        log.fault(last.place, "the log is cut off: no min/avg/max/mdev", last.text)


def _read_requests(log: Log, line: LogLine, *, has_load: bool) -> None:
    match = REQUESTS.match(line.text.strip())
    if not match:
        log.fault(line.place, "no number of requests, time, iops and speed here", line.text)
        return
    # before 1.0 the time from the first to the last request
    is_sum = has_load or match["transfer_size"] is not None
    log.take_groups(match, line, lambda name: name if is_sum else name.replace("total_", "generated_"))


def _read_latencies(log: Log, text: str, line: LogLine) -> None:
    """`119.7 us / 187.3 us / 341.2 us / 57.5 us`, or before 0.8 `0.2/2.8/12.7/5.0 ms`: one unit for all."""
    matches = [TIME.fullmatch(piece.strip()) for piece in text.split("/")]
    last = matches[-1]
    if line.is_cut and not (len(matches) == len(LATENCY_NAMES) and last and last[2] in TIMES_S):
        log.fault(line.place, CUT, line.text)
        return
    if len(matches) != len(LATENCY_NAMES):
        log.fault(line.place, "expected four latencies: min/avg/max/mdev", line.text)
        return
    for name, piece in zip(LATENCY_NAMES, matches, strict=True):
        if piece is None:
            log.fault(line.place, f"{name} is no number with a unit", line.text)
        else:
            log.take(name, piece[1], piece[2] or (last[2] if last else ""), line)


def _read_json(log: Log, document: Document) -> None:
    statistics = [entry for entry in _entries(document.content) if "stat" in entry]
    if not statistics:
        log.fault(document.place, "the log has requests, but no statistics")
    for entry in statistics[-1:]:
        log.take_paths(Document(document.place, entry), METRICS)
        log.ended(unix_time(entry.get("timestamp")), ("generated_duration",))


def _entries(content: object) -> list[dict[str, object]]:
    return [dict(mapping(entry)) for entry in (content if isinstance(content, list) else [content])]


def _read_raw(log: Log, lines: Sequence[LogLine]) -> None:
    *periods, total = [[int(word) for word in line.text.split()] for line in lines]
    line, words = lines[-1], lines[-1].text.split()
    if periods and not _is_total(total, periods):
        log.fault(line.place, "several lines of raw statistics, and the last is not their total", line.text)
        return
    if line.is_cut:
        words.pop()  # the last number may have had more digits
        log.fault(line.place, CUT, line.text)
    time_unit = _time_unit(total)
    if not time_unit and total[0]:
        log.fault(line.place, "requests, time and requests per second do not fit: neither ns nor us", line.text)
        return
    for name, text in zip(IN_RAW, words, strict=False):
        ((_, unit),) = METRICS[name].at.items()
        log.take(name, text, time_unit or "ns" if unit == "ns" else unit, line)


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


def _read_settings(log: Log, document: Document | None) -> None:
    """Settings request_size (bytes) and operation (read, write or read+write), where the log says them."""
    requests = [match for line in log.lines if (match := REQUEST.match(line.text))]
    listed = [
        mapping(section)
        for entry in _entries(document.content if document else None)
        if (section := at_path(entry, "io"))
    ]
    ways = {WAYS[match[3]] for match in requests} | {
        str(section["operation"]) for section in listed if "operation" in section
    }
    if not ways:
        ways = {MOVED_WAYS[match[1]] for line in log.lines if (match := MOVED.search(line.text))}
    size: float | str = ""
    if requests and not isinstance(number := as_number(requests[0][1]), str):
        size = in_base(number, requests[0][2])
    elif listed:
        size = next((size for section in listed if not isinstance(size := checked(section.get("size")), str)), "")
    if size_b := size if isinstance(size, float) else _size_by_totals(log):
        log.setting("request_size", spelled(size_b))
    log.setting("operation", "+".join(sorted(ways)))


def _size_by_totals(log: Log) -> float:
    """The power of two that bytes over requests come close to; 0 for none."""
    for size, count in RATIOS:
        total, number = log.base(size), log.value(count)
        if total and number:
            nearest = 2.0 ** round(math.log2(total / number))
            return nearest if abs(total / number / nearest - 1) <= NEAR else 0.0
    return 0.0


PARSER = Parser("disk-ioping", TOOL, "disk", METRICS, _read, SIGNS)
