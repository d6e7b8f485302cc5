"""Outputs of benchmarks that are lines of text: numbers behind words, tables, CSV."""

import re
from collections.abc import Mapping

from tasks.nodes.readers.perona_metrics import spelled
from tasks.nodes.readers.sparecores_printed import Printed, csv_rows, number_of

BOGO = re.compile(r"^stress-ng: metrc: \[\d+\] (\S+)\s+(\d+)((?:\s+[\d.]+){5,})\s*$")
ROW = re.compile(r"^stress-ng: metrc: \[\d+\] \S+\s+\d+(\s+[-+.\w]+){5,}\s*$")
BOGO_REAL_S, BOGO_CPU_S = 3, 4  # columns behind the count: rate over real time, over CPU time
SIZES = re.compile(r"^\+H:([\d:]+)\s*$|^Got: \+H:([\d:]+) from")
SPEEDS = re.compile(r"^\+F:\d+:([^:]+):([\d.:]+)\s*$")
RESULTS, OUTSIDE = "Results:", re.compile(r"^\S")
NO_SCORE = ("numtestprocesses", "results_complete")


def bw_mem(text: str) -> Printed:
    """`rd 16.00 53947.66`: operation, size in MB, bandwidth in MB/s; metric rd_16."""
    printed = Printed()
    for place, line in _lines(text):
        fields = line.split()
        if len(fields) != 3 or None in (number_of(fields[1]), number_of(fields[2])):
            printed.fault(place, "no operation with size and bandwidth", line)
        else:
            name = f"{spelled(fields[0])}_{_size(fields[1])}"
            printed.add(name, fields[2], "MB/s", place=place, raw=line)
    return printed


def pairs(text: str) -> Printed:
    """`4,5833.64`: workers and their operations a second, together; metric bogo_ops_4, and the most of all."""
    printed = Printed()
    for place, line in _lines(text):
        workers, _, rate = line.partition(",")
        if not workers.strip().isdigit() or number_of(rate) is None:
            printed.fault(place, "no number of workers with their operations a second", line)
        else:
            printed.add(f"bogo_ops_{workers.strip()}", rate, "/sec", place=place, raw=line)
    printed.add_most("bogo_ops_most", "", "bogo_ops_")
    return printed


def stress_ng(text: str) -> Printed:
    """The table of stress-ng --metrics: for each stressor its rates over real and over CPU time."""
    printed = Printed()
    for place, line in _lines(text):
        if told := BOGO.match(line):
            numbers = told[3].split()
            for name, at in (("bogo_ops", BOGO_REAL_S), ("bogo_ops_cpu_time", BOGO_CPU_S)):
                printed.add(f"{spelled(told[1])}_{name}", numbers[at], "/sec", place=place, raw=line)
        elif ROW.match(line):
            printed.fault(place, "a row of the table without its numbers", line)
    return printed


def passmark(text: str) -> Printed:
    """The lines below `Results:`. A score of 0 stands for instructions that the processor lacks: no value."""
    printed, is_inside = Printed(), False
    for place, line in _lines(text):
        if OUTSIDE.match(line):
            is_inside = line.strip() == RESULTS
        elif is_inside:
            name, _, told = line.partition(":")
            if spelled(name) in NO_SCORE:
                continue
            printed.add(spelled(name), told.strip(), place=place, raw=line)
    return printed


def openssl(text: str) -> Printed:
    """`openssl speed -mr -multi`: the last line of each algorithm is the sum over its processes, in bytes a second."""
    printed = Printed()
    sizes: list[str] = []
    for place, line in _lines(text):
        if told := SIZES.match(line):
            sizes = (told[1] or told[2]).split(":")
        elif told := SPEEDS.match(line):
            values = told[2].split(":")
            if len(values) != len(sizes):
                printed.fault(place, f"{len(values)} speeds for {len(sizes)} sizes", line)
                continue
            for size, value in zip(sizes, values, strict=True):
                printed.add(f"{spelled(told[1])}_{size}", value, "B/s", place=place, raw=line)
        elif line.startswith("+F:"):
            printed.fault(place, "no algorithm with its speeds", line)
    return printed


def membench(text: str) -> Printed:
    """CSV: read, write and copy of buffers of size_kb in MB/s, and latencies in ns; 0 stands where a column is none."""
    printed = Printed()
    for place, row in csv_rows(text, ("size_kb", "bandwidth_mb_s", "latency_ns"), printed):
        operation = row.get("operation", "")
        name = f"{spelled(operation)}_{_size(row['size_kb'])}"
        if operation == "latency":
            printed.add(name, row["latency_ns"], "ns", place=place)
        else:
            printed.add(name, row["bandwidth_mb_s"], "MB/s", place=place)
    return printed


def redis(text: str) -> Printed:
    """CSV of memtier: requests a second and latency (ms) by operation and pipeline, and the most requests of all."""
    printed = Printed()
    for place, row in csv_rows(text, ("rps", "latency"), printed):
        name = f"{spelled(row.get('operation', ''))}_pipeline_{row.get('pipeline', '')}"
        _add_rate(printed, row, name, "ms", place)
    printed.add_most("rps_most", "_rps")
    return printed


def web(text: str) -> Printed:
    """CSV of wrk: requests a second and latency (s) by size, threads and connections, and the most of each size.

    Threads and connections follow the processors of a machine: only the most can be compared between types."""
    printed = Printed()
    sizes: dict[str, None] = {}
    for place, row in csv_rows(text, ("rps", "latency"), printed):
        size = spelled(row.get("size", ""))
        sizes[size] = None
        name = f"{size}_threads_{row.get('threads', '')}_connections_{row.get('connections', '')}"
        _add_rate(printed, row, name, "s", place)
    for size in sizes:
        printed.add_most(f"{size}_rps_most", "_rps", f"{size}_threads_")
    return printed


def _lines(text: str) -> list[tuple[int, str]]:
    return [(place, line) for place, line in enumerate(text.splitlines(), 1) if line.strip()]


def _add_rate(printed: Printed, row: Mapping[str, str], name: str, unit: str, place: int) -> None:
    printed.add(f"{name}_rps", row["rps"], "/sec", place=place)
    printed.add(f"{name}_latency", row["latency"], unit, place=place)


def _size(text: str) -> str:
    """16.00 is 16, 0.016384 is 0_016384."""
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace(".", "_")
