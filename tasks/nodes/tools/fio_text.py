"""The text of fio: 3.x (IOPS=, BW=, times in nsec, usec or msec) and 2.x (io=, bw=, iops=, runt=).

Percentiles may stand in several lines that begin with |, or, where a log was unwrapped, in one. fio writes 10.1k for
10,100. In 2.x KB is 1,024 bytes and becomes KiB. Percentiles of other times than clat are passed over."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.nodes.tools.fio_facts import PERCENTILES, percentile_name
from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.lines import Line
from tasks.nodes.tools.numbers import NUMBER
from tasks.nodes.tools.parser import CUT
from tasks.nodes.tools.units import COUNT_PREFIXES

JOB = re.compile(r"^(\S.*?): \(groupid=\d+, jobs=\d+\): err=\s*(\d+)")
STARTING = re.compile(r"^Starting [0-9]")
STARTED = re.compile(r"\b([0-9]{1,9}) (?:process|thread)")
RUN_STATUS = re.compile(r"^Run status group")
DISKS = re.compile(r"^Disk stats")
UTIL = re.compile(rf"util=({NUMBER})%")
DIRECTION = re.compile(r"^\s+(read|write|trim)\s*: (.*)$")
LATENCY = re.compile(r"^\s+(slat|clat|lat) \(([a-z]+)\)\s*: (min=.*)$")
PERCENTILES_OF = re.compile(r"^\s+([a-z]+) percentiles \(([a-z]+)\)\s*:(.*)$")
PERCENTILE = re.compile(r"\b([0-9]{1,3}(?:\.[0-9]{1,6})?)th=\[\s*([^\]]*?)\s*\]")
SAMPLES = re.compile(r"^\s+(?:(bw) \(\s*([KMGT]?i?B)\s*/s\)|(iops))\s*: (.*)$")
SYNC = re.compile(r"^\s+fsync/fdatasync")
CPU = re.compile(r"^\s+cpu\s*: (.*)$")
ISSUED = re.compile(r"^\s+issued(?: rwts?)?\s*: (.*)$")
PAIR = re.compile(r"\b([A-Za-z]+)=\s*(\S+?),?(?=\s|$)")  # a comma inside is a decimal point of another locale
AMOUNT = re.compile(rf"({NUMBER})([kKMGTP]?i?B)(?:/s)?")
COUNT = re.compile(rf"({NUMBER})([kKMGTP]?)%?")
SIZE_AND_TIME = re.compile(r"\(([^()/]*)/(-?[0-9][^()]*?)([a-z]+)\)")
WHOLE = re.compile(r"(util=[0-9.]+%|msec)\s*$")
ISSUES = {"total": "total_ios", "short": "short_ios", "dropped": "dropped_ios", "drop": "dropped_ios"}
MOMENTS = ("min", "max", "avg", "stdev")
NAMES = {percentile: percentile_name(percentile) for percentile in PERCENTILES}


@dataclass
class Reading:
    """Where the reader stands. direction: read, write, or empty; times: unit of percentiles, empty outside of them."""

    found: Gathering
    direction: str = ""
    times: str = ""
    n_jobs: int = 0
    is_old: bool = False
    has_status: bool = False
    in_disks: bool = False


def read_text(found: Gathering, lines: Sequence[Line]) -> None:
    """The values of one log: of its first job, the others are faults."""
    at = Reading(found)
    for line in lines:
        if line.is_cut and not WHOLE.search(line.text):
            found.fault(line.place, CUT, line.text)
        else:
            _read_line(at, line)
    if not at.has_status:
        told = "no 'Run status group' at its end" if at.n_jobs else "no job in it"
        found.fault(lines[-1].place, f"the log is cut off: {told}", lines[-1].text)


def _read_line(at: Reading, line: Line) -> None:
    text = line.text
    if job := JOB.match(text):
        _begin_job(at, job, line)
    elif RUN_STATUS.match(text):
        at.has_status, at.direction, at.times = True, "", ""
    elif DISKS.match(text):
        at.in_disks = True
    elif STARTING.match(text) and not at.n_jobs:
        at.found.text("number_of_processes", str(sum(map(int, STARTED.findall(text)))), "", line)
    elif at.in_disks and (util := UTIL.search(text)):
        at.in_disks = False
        at.found.text("disk_util", util[1], "%", line)
    elif at.n_jobs == 1 and not at.has_status:
        _read_job(at, line)


def _begin_job(at: Reading, job: re.Match[str], line: Line) -> None:
    at.n_jobs, at.direction, at.times = at.n_jobs + 1, "", ""
    if at.n_jobs > 1:
        at.found.fault(line.place, f"job {at.n_jobs} ({job[1]}) is not read; run with --group_reporting", line.text)
    elif job[2] != "0":
        at.found.fault(line.place, f"the job ended with error {job[2]}", line.text, is_failure=True)


def _read_job(at: Reading, line: Line) -> None:
    text = line.text
    if direction := DIRECTION.match(text):
        at.direction, at.times = direction[1] if direction[1] != "trim" else "", ""
        if at.direction:
            _read_totals(at, direction[2], line)
    elif head := PERCENTILES_OF.match(text):
        at.times = head[2] if head[1] == "clat" else "passed over"
        _read_percentiles(at, head[3], line)
    elif at.times and text.strip().startswith("|"):
        _read_percentiles(at, text, line)
    elif cpu := CPU.match(text):
        _read_cpu(at, cpu[1], line)
    elif issued := ISSUED.match(text):
        _read_issued(at, issued[1], line)
    elif at.direction and (latency := LATENCY.match(text)):
        _read_moments(at, latency[1], latency[2], latency[3], line)
    elif at.direction and (samples := SAMPLES.match(text)):
        unit = f"{_binary(samples[2], is_old=at.is_old)}/s" if samples[1] else "iops"
        _read_moments(at, samples[1] or samples[3], unit, samples[4], line)
    elif SYNC.match(text):
        at.direction = ""


def _read_totals(at: Reading, rest: str, line: Line) -> None:
    pairs = {name.lower(): value for name, value in PAIR.findall(rest)}
    at.is_old = "runt" in pairs
    name = at.direction
    _count(at, f"{name}_iops", pairs.get("iops"), "iops", line)
    _amount(at, f"{name}_bw", pairs.get("bw", "").partition("(")[0], "/s", line)
    if at.is_old:
        _amount(at, f"{name}_io_size", pairs.get("io", ""), "", line)
        size_and_time = re.fullmatch(r"(.*?)([a-z]+)", pairs["runt"])
        time, unit = size_and_time.groups() if size_and_time else (pairs["runt"], "")
    elif both := SIZE_AND_TIME.search(rest):
        _amount(at, f"{name}_io_size", both[1], "", line)
        time, unit = both[2], both[3]
    else:
        at.found.fault(line.place, f"{name}: no size and time in parentheses", line.text)
        return
    at.found.text(f"{name}_runtime", time, unit, line)


def _read_moments(at: Reading, kind: str, unit: str, rest: str, line: Line) -> None:
    pairs = dict(PAIR.findall(rest))
    for moment in MOMENTS:
        _count(at, f"{at.direction}_{kind}_{moment}", pairs.get(moment), unit, line)
    if "per" in pairs:
        _count(at, f"{at.direction}_{kind}_per", pairs["per"], "%", line)
    if "samples" in pairs:
        _count(at, f"{at.direction}_{kind}_samples", pairs["samples"], "", line)


def _read_percentiles(at: Reading, text: str, line: Line) -> None:
    if at.times == "passed over" or not at.direction:
        return
    for percentile, value in PERCENTILE.findall(text):
        name = NAMES.get(float(percentile))
        if name is None:
            at.found.fault(line.place, f"percentile {percentile} is not kept", line.text)
        else:
            at.found.text(f"{at.direction}_clat_{name}", value, at.times, line)


def _read_cpu(at: Reading, rest: str, line: Line) -> None:
    at.direction = ""
    pairs = dict(PAIR.findall(rest))
    for name in ("usr", "sys", "ctx", "majf", "minf"):
        _count(at, f"cpu_{name}", pairs.get(name), "%" if name in ("usr", "sys") else "", line)


def _read_issued(at: Reading, rest: str, line: Line) -> None:
    """`total=7680,7720,0,0 short=0,0,0,0 dropped=0,0,0,0`, or `total=r=7680/w=7720/d=0, short=r=0/w=0/d=0`."""
    for name, metric in ISSUES.items():
        match = re.search(rf"\b{name}=(?:r=)?([0-9]+)(?:,|/w=)([0-9]+)", rest)
        for direction, number in zip(("read", "write"), match.groups() if match else (), strict=False):
            if f"{direction}_runtime" in at.found:  # zeros of a direction that did not run are no values
                at.found.text(f"{direction}_{metric}", number, "", line)


def _count(at: Reading, metric: str, text: str | None, unit: str, line: Line) -> None:
    if text is None:
        at.found.fault(line.place, f"{metric} is not in its line", line.text)
    elif match := COUNT.fullmatch(text):
        at.found.text(metric, match[1], unit, line, times=COUNT_PREFIXES[match[2]])
    else:
        at.found.fault(line.place, f"{metric} ({text[:40]}) is no number", line.text)


def _amount(at: Reading, metric: str, text: str, per: str, line: Line) -> None:
    if match := AMOUNT.fullmatch(text):
        at.found.text(metric, match[1], f"{_binary(match[2], is_old=at.is_old)}{per}", line)
    else:
        at.found.fault(line.place, f"{metric} ({text[:40]}) is no number with a unit", line.text)


def _binary(unit: str, *, is_old: bool) -> str:
    return f"{unit[0]}iB" if is_old and len(unit) == 2 else unit
