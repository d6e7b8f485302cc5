"""The text of sysbench cpu and memory, 0.4, 0.5, 1.0 and 1.1, and of fileio, 1.0: a label, a colon, one or two values.

A line with a known label and without a number that can be used is a fault. A last line without a line break counts as
cut off, unless its decimals are all there (sysbench prints four for times, two for deviations). Without an event
nothing was measured: zeros are missing then."""

import re
from functools import partial

from tasks.nodes.tools.parsing import CUT, NUMBER, VALUE_SHOWN, Log, LogLine, Parser, facts_of, in_binary

TOOL = "sysbench"
TIME = "execution time (avg/stddev)"
MOVED = "transferred"  # what a line says behind its first value, where others have a label before it
TEXTS = {  # settings that are words
    "operation": "operation", "memory operations type": "operation", "scope": "scope", "memory scope type": "scope",
}  # fmt: skip
# with the labels of the lines and the units that hold where the line has none. Latencies are printed in steps of
# 0.01 ms: 0.00 is less than that, not nothing; they are no headline where events are shorter. Of two values in a line
# both have its label, in their order.
SHARED = f"""
    total_time | = s ~1e-4 | total time=s; time elapsed=s | time that the test ran
    total_number_of_events | + 1 per total_time | total number of events= | events of all threads
    latency_min | - s ~1e-5 | min=ms | shortest event
    latency_avg | -{{latency}} s ~1e-5 | avg=ms | mean event
    latency_max | - s ~1e-5 | max=ms | longest event
    latency_95p | -{{latency}} s ~1e-5 | 95th percentile=ms; approx. 95 percentile=ms | 95th percentile of the events
    latency_sum | = s per total_time ~1e-5 | sum=ms; total time taken by event execution=s | time of all events
    fairness_events_avg | + 1 per total_time ~1e-4 | events (avg/stddev)= | events of a thread, on average
    fairness_events_stddev | - 1 per total_time ~0.01 | events (avg/stddev)= | standard deviation of the threads' events
    fairness_exctime_avg | = s per total_time ~1e-4 | {TIME}=s | time that a thread spent in events, on average
    fairness_exctime_stddev | - s ~0.01 | {TIME}=s | standard deviation of the threads' time in events
    """
CPU = """
    num_threads | = 1 | number of threads= | setting: threads
    prime_numbers_limit | = 1 | prime numbers limit=; primer numbers limit=; \
        maximum prime number checked in cpu test= | setting: an event looks for primes up to it
    events_per_second | +! 1/s ~0.01 | events per second=/sec; events/s (eps)=/sec | not printed before 1.0
    """
MEMORY = f"""
    number_of_threads | = 1 | number of threads= | setting: threads
    block_size | = B | block size=; memory block size= | setting: size of a block
    total_size | = B | total size=; memory transfer size= | setting: most that is transferred
    total_operations | + 1 per total_time | total operations=; operations performed= | blocks transferred
    operations_per_second | +! 1/s ~0.01 | total operations=/sec; operations performed=/sec | blocks a second
    transfer_size | + B per total_time ~{0.01 * 2**20} | {MOVED}= | bytes transferred
    transfer_rate | +! B/s ~{0.01 * 2**20} | {MOVED}= | bytes transferred a second
    """
FILES = """
    number_of_threads | = 1 | number of threads= | setting: threads
    read_iops | +! 1/s ~0.01 | reads/s=/sec | reads a second
    write_iops | +! 1/s ~0.01 | writes/s=/sec | writes a second
    fsync_rate | + 1/s ~0.01 | fsyncs/s=/sec | calls of fsync a second
    read_bw | +! B/s ~1e4 | read, mib/s=MiB/s | bytes read a second
    write_bw | +! B/s ~1e4 | written, mib/s=MiB/s | bytes written a second
    """
MODE = re.compile(r"^(?:Doing (?P<mode>.+) test|(?P<size>\S+) total file size|Block size (?P<block_size>\S+))$")
CPU_METRICS = facts_of("cpu", CPU + SHARED.format(latency="!"))
MEMORY_METRICS = facts_of("memory", MEMORY + SHARED.format(latency=""))
FILE_METRICS = facts_of("disk", FILES + SHARED.format(latency="!"))

STARTS = (re.compile(r"^sysbench v?([0-9][0-9A-Za-z.\-]*)"), re.compile(r"^Running the test with following options"))
ERRORS = re.compile(r"^\s*(FATAL|ALERT|CRITICAL|error|sysbench: )\b", re.IGNORECASE)
CPU_SIGNS = re.compile(
    r"^(Primer? numbers limit:|CPU speed:|Doing CPU (performance|speed) (benchmark|test)|Maximum prime number checked)",
    re.MULTILINE,
)
MEMORY_SIGNS = re.compile(
    r"^(Running memory speed test|Doing memory operations speed test|Operations performed:|Total operations:)",
    re.MULTILINE,
)
FILE_SIGNS = re.compile(r"^(Extra file open flags:|File operations:)", re.MULTILINE)
MOVED_LINE = re.compile(rf"^({NUMBER} \S+) {MOVED} (\(.*)$")
OTHER_PERCENTILE = re.compile(r"^(?:approx\.\s+)?([0-9]+)(?:th)? percentile$")
ONE = re.compile(rf"({NUMBER})\s*([A-Za-z/]*)")
TWO = re.compile(rf"({NUMBER}) ?([A-Za-z]*)(?:/| ?\(\s*)({NUMBER}) ?(per second|ops/sec|[A-Za-z/]*)\)?")
PER_SECOND = {"per second": "/sec", "ops/sec": "/sec"}
WHOLE_LAST = re.compile(r"[0-9]\.[0-9]{4}/[0-9]+\.[0-9]{2}$")
WAYS = ("read_", "write_", "fsync_")
WITHOUT_EVENTS = ("total_time", "total_number_of_events")  # what is known of a run without an event


def _read(log: Log, *, signs: re.Pattern[str]) -> None:
    part = log.part(STARTS, ERRORS, signs=signs)
    if any(signs.search(line.text) for line in part):
        _read_labels(log, part)
    if log.value("total_number_of_events") == 0:
        log.drop(name for name, fact in log.metrics.items() if not (fact.is_setting or name in WITHOUT_EVENTS))
        reason = "no event was counted: nothing is known of rates and times"
        log.fault(part[-1].place, reason, part[-1].text, is_failure=True)

    log.drop(metric for metric in FILE_METRICS if metric.startswith(WAYS) and not log.value(metric))  # not asked for


def _read_labels(log: Log, lines: list[LogLine]) -> None:
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
        elif "read_bw" in log.metrics and (match := MODE.match(line.text.strip())):
            for name, text in match.groupdict(default="").items():
                log.setting(name, text)
        elif colon and (other := OTHER_PERCENTILE.match(label)):
            log.fault(line.place, f"percentile {other[1]} is not kept; run with --percentile=95", line.text)
    if not has_end:
        log.fault(lines[-1].place, f"the log is cut off: no {TIME!r} at its end", lines[-1].text)


def _take(log: Log, cells: list[tuple[str, str]], rest: str, line: LogLine) -> None:
    match = (ONE if len(cells) == 1 else TWO).fullmatch(rest)
    if not match:
        names = " and ".join(metric for metric, _ in cells)
        log.fault(line.place, f"{names} ({rest[:VALUE_SHOWN]}) is no number", line.text)
        return
    for at, (metric, unit) in enumerate(cells):
        number, printed = match[2 * at + 1], match[2 * at + 2]
        log.take(metric, number, PER_SECOND.get(printed) or in_binary(printed) or unit, line)  # 0.4: MB is 1,024² bytes


SIGNS = (CPU_SIGNS, MEMORY_SIGNS, FILE_SIGNS)
HEADS = re.compile("|".join(signs.pattern for signs in (STARTS[0], *SIGNS)), re.MULTILINE)
READ_CPU, READ_MEMORY, READ_FILES = (partial(_read, signs=signs) for signs in SIGNS)
PARSERS = (
    Parser("cpu-sysbench", TOOL, "cpu", CPU_METRICS, READ_CPU, CPU_SIGNS, HEADS),
    Parser("memory-sysbench", TOOL, "memory", MEMORY_METRICS, READ_MEMORY, MEMORY_SIGNS, HEADS),
    Parser("disk-sysbench", TOOL, "disk", FILE_METRICS, READ_FILES, FILE_SIGNS, HEADS),
)
