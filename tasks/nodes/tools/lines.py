"""Tools that print a result a line, as a table says: stress-ng, openssl speed, STREAM, CoreMark, UnixBench.

A place is a line, word by word: $ is the value, @ what was run (a stressor, an algorithm), # a number, * a word, ~ the
rest of the line. Each that was run is a log, with its name among its settings. A value of 0 was not measured."""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from tasks.nodes.tools.parsing import CUT, NUMBER, Log, LogLine, Metrics, Parser, facts_of, unix_time
from tasks.nodes.type_tables import Aspect

SIGNS = {
    "$": rf"(?P<value>{NUMBER})", "@": r"(?P<run>[^\s:#]\S*(?: +(?![0-9.]+[ks]\s)\S+)*?)", "#": r"[0-9.]+", "*": r"\S+",
    "~": r"(?P<rest>\S.*)",
}  # fmt: skip
BEGUN = "%a %b %d %Y %H:%M:%S"
STRESS = """
    bogo_ops_rate | +! 1/s ~0.01 | stress-ng: * * @ # # # # $=/sec; bogo-ops-per-second-real-time: $=/sec | \
        operations a second
    bogo_ops_cpu_rate | + 1/s ~0.01 | stress-ng: * * @ # # # # # $=/sec; bogo-ops-per-second-usr-sys-time: $=/sec | \
        operations in a second of processor time
    run_time | = s ~0.01 | stress-ng: * * @ # $ # # # #=s; wall-clock-time: $=s | time that it ran
    """
SIZES = (16, 64, 256, 1024, 8192, 16384)
CIPHERS = "\n".join(
    f"bytes_{size} | +! B/s ~10 | @ {'#k ' * at}$k=kB/s | bytes a second, in blocks of {size}"
    for at, size in enumerate(SIZES)
)
KEYS = """
    sign_rate | +! 1/s ~0.1 | @ #s #s $=/sec; @ #s #s #s #s $=/sec | signatures a second
    verify_rate | +! 1/s ~0.1 | @ #s #s # $=/sec; @ #s #s #s #s # $=/sec | signatures verified a second
    exchange_rate | +! 1/s ~0.1 | @ #s $=/sec | keys agreed on a second
    """
STREAM = "\n".join(
    f"""{kernel.lower()}_rate | +! B/s ~1e5 | {kernel}: $=MB/s | bytes a second, the best pass
    {kernel.lower()}_time | - s ~1e-6 | {kernel}: # $=sec | mean time of a pass"""
    for kernel in ("Copy", "Scale", "Add", "Triad")
)
STREAM += """
    array_size | = 1 | Array size = $= | setting: elements of an array
    threads | = 1 | Number of Threads counted = $= | setting: threads
    """
COREMARK = """
    iterations_rate | +! 1/s ~1e-6 | Iterations/Sec : $=/sec | iterations a second
    total_time | = s ~1e-6 | Total time (secs): $=s | time that it ran
    size | = 1 | CoreMark Size : $= | setting: size of its data
    threads | = 1 | Parallel PThreads : $=; Parallel Fork : $= | setting: threads
    """
UNIXBENCH = """
    dhrystone | +! 1/s | Dhrystone 2 using register variables $ lps=/sec | loops on integers and strings
    whetstone | +! 1 | Double-Precision Whetstone $ MWIPS= | million Whetstone instructions a second
    execl | +! 1/s | Execl Throughput $ lps=/sec | images of processes replaced
    file_copy_256 | +! B/s | File Copy 256 bufsize 500 maxblocks $ KBps=KiB/s | bytes copied in buffers of 256
    file_copy_1024 | +! B/s | File Copy 1024 bufsize 2000 maxblocks $ KBps=KiB/s | in buffers of 1,024
    file_copy_4096 | +! B/s | File Copy 4096 bufsize 8000 maxblocks $ KBps=KiB/s | in buffers of 4,096
    pipe | +! 1/s | Pipe Throughput $ lps=/sec | messages through a pipe
    context_switching | +! 1/s | Pipe-based Context Switching $ lps=/sec | numbers passed between two processes
    process_creation | +! 1/s | Process Creation $ lps=/sec | processes made and ended
    shell_1 | +! 1 | Shell Scripts (1 concurrent) $ lpm= | scripts a minute
    shell_8 | +! 1 | Shell Scripts (8 concurrent) $ lpm= | scripts a minute, eight at a time
    system_calls | +! 1/s | System Call Overhead $ lps=/sec | system calls
    index | + 1 | System Benchmarks Index Score $= | mean of ratios to an old machine
    """


@dataclass(frozen=True)
class Printout:
    """What of a log is in no table: where one begins, and where the version stands.

    runs: names what was run, where no value does; run: what that is. settings: by name. begun, ended: a time."""

    starts: tuple[str, ...]
    version: str = ""
    runs: str = ""
    run: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    begun: str = ""
    ended: str = ""
    errors: str = "(?!)"


def pattern_of(place: str) -> re.Pattern[str]:
    """The lines that a place stands for."""
    words = ("".join(SIGNS.get(sign) or re.escape(sign) for sign in word) for word in place.split())
    return re.compile(r"^\s*" + r"\s+".join(words) + r"(?=\s|$)")


def _read(log: Log, *, printout: Printout, signs: re.Pattern[str]) -> None:
    lines = log.part(
        [re.compile(f"()(?:{start})") for start in printout.starts], re.compile(printout.errors), signs=signs
    )
    places = [(name, unit, pattern_of(at)) for name, fact in log.metrics.items() for at, unit in fact.at.items()]
    texts = {name: pattern_of(place) for name, place in printout.settings.items()}
    runs: dict[str, Log] = {}
    current, settings, begun, ended = log, dict[str, str](), "", ""
    for line in lines:
        log.version = log.version or _rest(printout.version, line).partition(" ")[0]
        begun, ended = begun or _rest(printout.begun, line), ended or _rest(printout.ended, line)
        settings |= {name: match["rest"] for name, place in texts.items() if (match := place.match(line.text))}
        if printout.runs and (match := pattern_of(printout.runs).match(line.text)):
            current = _of_run(log, runs, match["run"], printout.run, line)
        for metric, unit, place in places:
            if not (match := place.match(line.text)):
                continue
            if line.is_cut and match.end() == len(line.text):
                log.fault(line.place, CUT, line.text)
                break
            if "run" in match.groupdict():
                current = _of_run(log, runs, match["run"], printout.run, line)
            if match["value"].strip("0.,") or current.metrics[metric].is_setting:
                current.take(metric, match["value"], unit, line)
    for part in (log, *log.jobs):
        part.version = log.version
        for name, text in settings.items():
            part.setting(name, text)
        part.ended(unix_time(float(ended)) if ended.isdecimal() else None, ("run_time",) if ended else ())
        with suppress(ValueError):
            part.started_at = datetime.strptime(" ".join(begun.split()[:5]), BEGUN) if begun else part.started_at


def _rest(place: str, line: LogLine) -> str:
    """What stands at a place; empty for no such line."""
    match = pattern_of(place).match(line.text) if place else None
    return match["rest"] if match else ""


def _of_run(log: Log, runs: dict[str, Log], name: str, what: str, line: LogLine) -> Log:
    """The log of what was run; the first is that of the text."""
    name = " ".join(name.split())
    if name not in runs:
        runs[name] = log.job(name, line.place) if runs else log
        runs[name].name = name
        runs[name].setting(what, name)
    return runs[name]


def _parser(benchmark: str, tool: str, aspect: Aspect, table: str, signs: str, printout: Printout) -> Parser:
    metrics: Metrics = facts_of(aspect, table)
    has_signs, heads = re.compile(signs, re.MULTILINE), re.compile("|".join((*printout.starts, signs)), re.MULTILINE)
    return Parser(
        benchmark, tool, aspect, metrics, partial(_read, printout=printout, signs=has_signs), has_signs, heads
    )


OPENSSL = Printout((r"^type\s+16 bytes|^\s+(?:sign\s+verify|op\s+op/s)",), version="version: ~", run="algorithm")
PARSERS = (
    _parser(
        "stress-ng", "stress-ng", "unknown", STRESS, r"^stress-ng: |^\s+stress-ng-version:",
        Printout(
            (r"^stress-ng: \S+\s+\[\d+\] dispatching hogs:|^system-info:",), "stress-ng-version: ~", "- stressor: @",
            "stressor", {"beside": "stress-ng: * * dispatching hogs: ~"}, ended="epoch-secs: ~",
            errors=r"^stress-ng: (?:fail|error):|unsuccessful run",
        ),
    ),
    _parser("cpu-openssl", "openssl", "cpu", CIPHERS, r"^type\s+16 bytes\s+64 bytes", OPENSSL),
    _parser("cpu-opensslkeys", "openssl", "cpu", KEYS, r"^\s+(?:sign\s+verify|op\s+op/s)", OPENSSL),
    _parser(
        "memory-stream", "STREAM", "memory", STREAM, r"^STREAM version|^Function\s+(?:Best )?Rate",
        Printout((r"^STREAM version",), version="STREAM version * ~", errors="^Failed Validation"),
    ),
    _parser(
        "cpu-coremark", "CoreMark", "cpu", COREMARK, r"^CoreMark Size",
        Printout(
            (r"^2K (?:performance|validation) run",),
            settings={"compiler": "Compiler version : ~", "flags": "Compiler flags : ~"}, errors=r"^ERROR|^Errors det",
        ),
    ),
    _parser(
        "system-unixbench", "UnixBench", "system", UNIXBENCH, r"running \d+ parallel cop",
        Printout(
            (r"^Benchmark Run:",), runs="# CPUs in system; running @ parallel", run="copies",
            begun="Benchmark Run: ~",
        ),
    ),
)  # fmt: skip
