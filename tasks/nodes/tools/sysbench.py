"""The text of sysbench cpu and memory, 0.4, 0.5, 1.0 and 1.1: lines with a label, a colon and one or two values.

A line with a known label and without a number that can be used is a fault. A last line without a line break counts as
cut off, unless its decimals are all there (sysbench prints four for times, two for deviations). Several logs in one
text: the first of the benchmark is read, each other is a fault. Without an event nothing was measured: zeros are
missing then."""

import re
from functools import partial

from tasks.nodes.tools.facts import MetricFacts, Of
from tasks.nodes.tools.parsing import CUT, NUMBER, VALUE_SHOWN, Line, Log, Parser, in_binary

TOOL = "sysbench"
STEP, TIME_STEP, MIB = 0.01, 0.0001, 2**20  # of rates, sizes and deviations; of seconds and means
LATENCY_STEP_S = 0.01e-3
ROUNDED = "printed in steps of 0.01 ms: 0.00 is less than that, not nothing"
EVENTS, TIME = "events (avg/stddev)", "execution time (avg/stddev)"
RATES = {"events per second": "/sec", "events/s (eps)": "/sec"}
LIMITS = ("prime numbers limit", "primer numbers limit", "maximum prime number checked in cpu test")  # 1.0, 0.5, 0.4
OPERATIONS = ("total operations", "operations performed")  # 1.0; 0.4 and 0.5, as the second of each pair below
MOVED = "transferred"  # what a line says behind its first value, where others have a label before it
TEXTS = {  # settings that are words
    "operation": "operation", "memory operations type": "operation", "scope": "scope", "memory scope type": "scope",
}  # fmt: skip


def _shared(of: Of, *, is_latency_headline: bool) -> dict[str, MetricFacts]:
    """What every test has. is_latency_headline: whether an event takes longer than what is rounded away."""
    over = "total_time"
    return {
        over: of.neither(
            "s", "time that the test ran", at={"total time": "s", "time elapsed": "s"}, resolution=TIME_STEP
        ),
        "total_number_of_events": of.more("", "events of all threads", over, at={"total number of events": ""}),
        "latency_min": of.less("s", f"shortest event; {ROUNDED}", at={"min": "ms"}, resolution=LATENCY_STEP_S),
        "latency_avg": of.less(
            "s", f"mean event; {ROUNDED}", at={"avg": "ms"}, is_headline=is_latency_headline, resolution=LATENCY_STEP_S
        ),
        "latency_max": of.less("s", f"longest event; {ROUNDED}", at={"max": "ms"}, resolution=LATENCY_STEP_S),
        "latency_95p": of.less(
            "s",
            f"95th percentile of the events; {ROUNDED}",
            at={"95th percentile": "ms", "approx. 95 percentile": "ms"},
            is_headline=is_latency_headline,
            resolution=LATENCY_STEP_S,
        ),
        "latency_sum": of.neither(
            "s",
            "time of all events, added up over the threads",
            over,
            at={"sum": "ms", "total time taken by event execution": "s"},  # 0.4 without a unit, 0.5 with s
            resolution=LATENCY_STEP_S,
        ),
        "fairness_events_avg": of.more(
            "", "events of a thread, on average", over, at={EVENTS: ""}, resolution=TIME_STEP
        ),
        "fairness_events_stddev": of.less(
            "", "standard deviation of the threads' events", over, at={EVENTS: ""}, resolution=STEP
        ),
        "fairness_exctime_avg": of.neither(
            "s", "time that a thread spent in events, on average", over, at={TIME: "s"}, resolution=TIME_STEP
        ),
        "fairness_exctime_stddev": of.less(
            "s", "standard deviation of the threads' time in events", at={TIME: "s"}, resolution=STEP
        ),
    }


CPU, MEMORY = Of("cpu"), Of("memory")
CPU_METRICS: dict[str, MetricFacts] = {
    "num_threads": CPU.neither("", "setting: threads", at={"number of threads": ""}),
    "prime_numbers_limit": CPU.neither(
        "", "setting: primes up to this number are looked for in each event", at=dict.fromkeys(LIMITS, "")
    ),
    "events_per_second": CPU.more(
        "1/s", "events of all threads a second; not printed before 1.0", at=RATES, is_headline=True, resolution=STEP
    ),
    **_shared(CPU, is_latency_headline=True),
}
MEMORY_METRICS: dict[str, MetricFacts] = {
    "number_of_threads": MEMORY.neither("", "setting: threads", at={"number of threads": ""}),
    "block_size": MEMORY.neither("B", "setting: size of a block", at={"block size": "", "memory block size": ""}),
    "total_size": MEMORY.neither(
        "B", "setting: most that is transferred", at={"total size": "", "memory transfer size": ""}
    ),
    "total_operations": MEMORY.more("", "blocks transferred", "total_time", at=dict.fromkeys(OPERATIONS, "")),
    "operations_per_second": MEMORY.more(
        "1/s", "blocks transferred a second", at=dict.fromkeys(OPERATIONS, "/sec"), is_headline=True, resolution=STEP
    ),
    "transfer_size": MEMORY.more("B", "bytes transferred", "total_time", at={MOVED: ""}, resolution=STEP * MIB),
    "transfer_rate": MEMORY.more(
        "B/s", "bytes transferred a second", at={MOVED: ""}, is_headline=True, resolution=STEP * MIB
    ),
    **_shared(MEMORY, is_latency_headline=False),
}

STARTS = (
    re.compile(r"^sysbench v?([0-9][0-9A-Za-z.\-]*)"),
    re.compile(r"^Running the test with following options"),
)
ERRORS = re.compile(r"^\s*(FATAL|ALERT|CRITICAL|error|sysbench: )\b", re.IGNORECASE)
CPU_SIGNS = re.compile(
    r"^(Primer? numbers limit:|CPU speed:|Doing CPU (performance|speed) (benchmark|test)|Maximum prime number checked)",
    re.MULTILINE,
)
MEMORY_SIGNS = re.compile(
    r"^(Running memory speed test|Doing memory operations speed test|Operations performed:|Total operations:)",
    re.MULTILINE,
)
MOVED_LINE = re.compile(rf"^({NUMBER} \S+) {MOVED} (\(.*)$")
OTHER_PERCENTILE = re.compile(r"^(?:approx\.\s+)?([0-9]+)(?:th)? percentile$")
ONE = re.compile(rf"({NUMBER})\s*([A-Za-z/]*)")
TWO = re.compile(rf"({NUMBER}) ?([A-Za-z]*)(?:/| ?\(\s*)({NUMBER}) ?(per second|ops/sec|[A-Za-z/]*)\)?")
PER_SECOND = {"per second": "/sec", "ops/sec": "/sec"}
WHOLE_LAST = re.compile(r"[0-9]\.[0-9]{4}/[0-9]+\.[0-9]{2}$")
WITHOUT_EVENTS = ("total_time", "total_number_of_events")  # what is known of a run without an event


def _read(log: Log, *, signs: re.Pattern[str], what: str) -> None:
    part = log.part(STARTS, ERRORS, signs=signs, what=what)
    if any(signs.search(line.text) for line in part):
        _read_labels(log, part)
    if log.value("total_number_of_events") == 0:
        log.drop(name for name, fact in log.metrics.items() if not (fact.is_setting or name in WITHOUT_EVENTS))
        reason = "no event was counted: nothing is known of rates and times"
        log.fault(part[-1].place, reason, part[-1].text, is_failure=True)


def _read_labels(log: Log, lines: list[Line]) -> None:
    table: dict[str, list[tuple[str, str]]] = {}  # label: metrics with the unit where the line has none
    for metric, facts in log.metrics.items():
        for label, unit in facts.at.items():
            table.setdefault(label, []).append((metric, unit))
    has_end, label_of = False, dict[str, str]()
    for line in lines:
        label, colon, rest = MOVED_LINE.sub(rf"{MOVED}:\1 \2", line.text.strip()).partition(":")
        label, rest = " ".join(label.split()).lower(), rest.strip()
        if line.is_cut and not has_end and not (label == TIME and WHOLE_LAST.search(rest)):
            log.fault(line.place, CUT, line.text)
            return
        if colon and label in table:
            has_end |= label == TIME
            metric = table[label][0][0]
            if label_of.setdefault(metric, label) == label or metric not in log:  # 1.1 repeats a rate in other words
                _take(log, table[label], rest, line)
        elif colon and label in TEXTS and "block_size" in log.metrics and not line.is_cut:
            log.setting(TEXTS[label], rest)
        elif colon and (other := OTHER_PERCENTILE.match(label)):
            log.fault(line.place, f"percentile {other[1]} is not kept; run with --percentile=95", line.text)
    if not has_end:
        log.fault(lines[-1].place, f"the log is cut off: no {TIME!r} at its end", lines[-1].text)


def _take(log: Log, cells: list[tuple[str, str]], rest: str, line: Line) -> None:
    match = (ONE if len(cells) == 1 else TWO).fullmatch(rest)
    if not match:
        names = " and ".join(metric for metric, _ in cells)
        log.fault(line.place, f"{names} ({rest[:VALUE_SHOWN]}) is no number", line.text)
        return
    for at, (metric, unit) in enumerate(cells):
        number, printed = match[2 * at + 1], match[2 * at + 2]
        log.take(metric, number, PER_SECOND.get(printed) or in_binary(printed) or unit, line)  # 0.4: MB is 1,024² bytes


PARSERS = (
    Parser("cpu-sysbench", TOOL, "cpu", CPU_METRICS, partial(_read, signs=CPU_SIGNS, what="sysbench cpu"), CPU_SIGNS),
    Parser(
        "memory-sysbench",
        TOOL,
        "memory",
        MEMORY_METRICS,
        partial(_read, signs=MEMORY_SIGNS, what="sysbench memory"),
        MEMORY_SIGNS,
    ),
)
