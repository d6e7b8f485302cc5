"""Raw results of SpareCores' inspector: folders <vendor>/<instance>/<benchmark> with meta.json and what was printed.

A folder of a benchmark is one execution on the node <vendor>/<instance>. What only describes a machine (lscpu, …), has
not ended, printed nothing or prints what no parser here knows is refused with the reason. A benchmark that failed is
kept as failed, with the values that can be read. A manifest may name all, an instance, or a folder of a benchmark."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from tasks.errors import BadInput
from tasks.intake.cells import time_of
from tasks.intake.files import NO_BENCHMARK, RAW_CHARS, Chunk, csv_fields, encodable, json_of, refused_rows
from tasks.intake.readers import Folder
from tasks.nodes.execution import Execution, Fault, MetricValue, as_chunk
from tasks.nodes.params import ReadParams
from tasks.nodes.readers.labels import IDENTITY, Manifest, read_manifest
from tasks.nodes.readers.vetting import NoExecution, metric_name, slug, vetted_facts
from tasks.nodes.tools.parsing import unreadable
from tasks.nodes.type_tables import Aspect

PERCENTILES = ("avg", "p50", "p95", "p99")
SHOWN = 40
BOGO = re.compile(r"^stress-ng: metrc: \[\d+\] (\S+)\s+(\d+)((?:\s+[\d.]+){5,})\s*$")
ROW = re.compile(r"^stress-ng: metrc: \[\d+\] \S+\s+\d+(\s+[-+.\w]+){5,}\s*$")
BOGO_REAL_S, BOGO_CPU_S = 3, 4  # columns behind the count: rate over real time, over CPU time
SIZES = re.compile(r"^\+H:([\d:]+)\s*$|^Got: \+H:([\d:]+) from")
SPEEDS = re.compile(r"^\+F:\d+:([^:]+):([\d.:]+)\s*$")
RESULTS, OUTSIDE = "Results:", re.compile(r"^\S")
NO_SCORE = ("numtestprocesses", "results_complete")
PRINTED = ("stdout",)


@dataclass
class Printed:
    """Values in the order of the output, metrics that it gave no value, and what could not be used, by line."""

    measured: list[MetricValue] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)

    def add(self, metric: str, value: object, unit: str = "", *, place: int = 1, raw: str = "") -> None:
        """A value that was told, a number or its text; None and 0 are missing: a rate or a latency of nothing is a test
        that did not run. Anything else that is no finite number above 0 is a fault at that line."""
        metric = encodable(metric)
        number, shown, raw = _number_of(value), f"{metric} ({str(value)[:SHOWN]})", raw or f"{metric}: {value}"
        if value is None or number == 0:
            self.missing.append(metric)
        elif number is None:
            self.fault(place, f"{shown} is no finite number", raw)
        elif number < 0:
            self.fault(place, f"{shown} is negative", raw)
        elif metric in self._known:
            self.fault(place, f"{shown} stands there twice; the first counts", raw)
        else:
            self._known.add(metric)
            self.measured.append(MetricValue(metric, number, unit))

    def add_most(self, metric: str, ending: str, start: str = "") -> None:
        """The largest of the values whose names begin and end so: it compares machines of different sizes."""
        matching = [
            value for value in self.measured if value.metric.endswith(ending) and value.metric.startswith(start)
        ]
        if matching:
            self.measured.append(MetricValue(metric, max(value.value for value in matching), matching[0].unit))

    def fault(self, place: int, reason: str, raw: str) -> None:
        """A line that could not be used."""
        self.faults.append(Fault(place, reason, raw[:RAW_CHARS]))

    def lacking(self) -> tuple[str, ...]:
        """The metrics without a value, each once."""
        known = {value.metric for value in self.measured}
        return tuple(dict.fromkeys(metric for metric in self.missing if metric not in known))


def _number_of(value: object) -> float | None:
    """A finite number, or None. value: a number or its text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _csv_rows(text: str, needed: tuple[str, ...], printed: Printed) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The rows of a CSV text with their lines; needed: columns of numbers.

    A row with another number of fields, or no number where one is needed, becomes a fault."""
    names: list[str] = []
    for place, line in _lines(text):
        try:
            fields = csv_fields(line)
        except ValueError as error:
            printed.fault(place, f"not a line of CSV ({error})", line)
            continue
        if not names:
            names = fields
            if lacking := [name for name in needed if name not in names]:
                printed.fault(place, f"no column {lacking[0]}", line)
                return
            continue
        if len(fields) != len(names):
            printed.fault(place, f"{len(fields)} fields; the header has {len(names)}", line)
            continue
        row = dict(zip(names, fields, strict=True))
        if wrong := [name for name in needed if _number_of(row[name]) is None]:
            printed.fault(place, f"{wrong[0]} is no finite number", line)
            continue
        yield place, row


def stress_suite(text: str, printed: Printed) -> None:
    """Stressors with one worker and with as many as processors: bogo operations a second; metrics cpu_1, cpu_n."""
    for name, by_workers in _items(_object(text, printed).get("stressors"), "stressors", printed):
        results = dict(_items(by_workers, name, printed))
        counts = sorted((count for count in results if count.isdecimal()), key=int)
        for workers in [count for count in results if not count.isdecimal()]:
            printed.fault(1, f"{name}: {workers!r} is no number of workers", f"{name}: {by_workers}")
        for workers in counts:
            shown = "n" if len(counts) > 1 and workers == counts[-1] else workers
            _add(printed, f"{metric_name(name)}_{shown}", results[workers], "bogo_ops_per_sec", "/sec")


def compression(text: str, printed: Printed) -> None:
    """Algorithms by level, threads and block size: bytes a second, and the size left in percent."""
    for algorithm, levels in _items(_object(text, printed), "the output", printed):
        for level, runs in _items(levels, algorithm, printed):
            if not isinstance(runs, list):
                printed.fault(1, f"{algorithm}, level {level} holds no list of runs", f"{level}: {runs}")
                continue
            for run in runs:
                _add_run(printed, f"{metric_name(algorithm)}_{level}", run)


def pgbench(text: str, printed: Printed) -> None:
    """The score of pgbench in transactions a minute, and its latencies."""
    content = _object(text, printed)
    _add(printed, "score", content, "score", str(content.get("score_unit") or ""))
    latencies = dict(_items(content.get("latency_ms"), "latency_ms", printed))
    for name in PERCENTILES if latencies else ():
        _add(printed, f"latency_{name}", latencies, name, "ms")
    _add(printed, "latency_stddev", content, "latency_stddev_ms", "ms")


def geekbench(text: str, printed: Printed) -> None:
    """The scores of single-core and multi-core tests; metrics single_core_clang, multi_core_score."""
    for table, tests in _object(text, printed).items():
        prefix = metric_name(str(table)).removesuffix("_performance")
        if not isinstance(tests, dict) or not any("score" in test for test in tests.values() if isinstance(test, dict)):
            continue  # it describes the machine
        for name, result in tests.items():
            _add(printed, f"{prefix}_{metric_name(str(name))}", result, "score")


def llm(text: str, printed: Printed) -> None:
    """JSON lines of llama-bench: tokens a second by model, prompt length and generated length."""
    for place, line in _lines(text):
        n_faults = len(printed.faults)
        content = _object(line, printed, place)
        model = metric_name(str(content.get("model_filename") or "").rpartition("/")[2].removesuffix(".gguf"))
        kind = f"prompt_{content.get('n_prompt')}" if content.get("n_prompt") else f"generate_{content.get('n_gen')}"
        if model:
            printed.add(f"{model}_{kind}", content.get("avg_ts"), "tokens/sec", place=place, raw=line)
        elif len(printed.faults) == n_faults:
            printed.fault(place, "no model_filename", line)


def _add_run(printed: Printed, name: str, run: object) -> None:
    """One run of an algorithm at a level."""
    if not isinstance(run, dict):
        printed.fault(1, f"{name}: a run that is no object", str(run))
        return
    options = _items(run.get("extra_args"), f"{name}: extra_args", printed) if run.get("extra_args") else ()
    extra = "".join(f"_{metric_name(option)}_{value}" for option, value in options)
    for what, unit in (("compress", "B/s"), ("decompress", "B/s"), ("ratio", "%")):
        if what in run:
            _add(printed, f"{name}_threads_{run.get('threads')}{extra}_{what}", run, what, unit)


def _add(printed: Printed, metric: str, content: object, key: str, unit: str = "") -> None:
    """The value under a key of an object; the metric is missing where either is null; anything else is a fault."""
    if content is None:
        printed.add(metric, None, unit)
    elif not isinstance(content, dict):
        printed.fault(1, f"{metric} ({str(content)[:SHOWN]}) is no object with {key}", f"{metric}: {content}")
    else:
        printed.add(metric, content.get(key), unit, raw=f"{metric}: {content}")


def _object(text: str, printed: Printed, place: int = 1) -> dict[str, Any]:
    try:
        content = json_of(text)
    except ValueError as error:
        printed.fault(place, f"malformed JSON ({error})", text)
        return {}
    if not isinstance(content, dict):
        printed.fault(place, "JSON that holds no object", text)
        return {}
    return content


def _items(value: object, what: str, printed: Printed) -> Iterator[tuple[str, Any]]:
    """The entries of an object; a fault for what is none, nothing for what is not there."""
    if isinstance(value, dict):
        yield from ((str(name), inner) for name, inner in value.items())
    elif value is not None:
        printed.fault(1, f"{what} holds no object", f"{what}: {value}")


def bw_mem(text: str, printed: Printed) -> None:
    """`rd 16.00 53947.66`: operation, size in MB, bandwidth in MB/s; metric rd_16."""
    for place, line in _lines(text):
        fields = line.split()
        if len(fields) != 3 or None in (_number_of(fields[1]), _number_of(fields[2])):
            printed.fault(place, "no operation with size and bandwidth", line)
        else:
            name = f"{metric_name(fields[0])}_{_size(fields[1])}"
            printed.add(name, fields[2], "MB/s", place=place, raw=line)


def pairs(text: str, printed: Printed) -> None:
    """`4,5833.64`: workers and their operations a second, together; metric bogo_ops_4, and the most of all."""
    for place, line in _lines(text):
        workers, _, rate = line.partition(",")
        if not workers.strip().isdigit() or _number_of(rate) is None:
            printed.fault(place, "no number of workers with their operations a second", line)
        else:
            printed.add(f"bogo_ops_{workers.strip()}", rate, "/sec", place=place, raw=line)
    printed.add_most("bogo_ops_most", "", "bogo_ops_")


def stress_ng(text: str, printed: Printed) -> None:
    """The table of stress-ng --metrics: for each stressor its rates over real and over CPU time."""
    for place, line in _lines(text):
        if match := BOGO.match(line):
            numbers = match[3].split()
            for name, at in (("bogo_ops", BOGO_REAL_S), ("bogo_ops_cpu_time", BOGO_CPU_S)):
                printed.add(f"{metric_name(match[1])}_{name}", numbers[at], "/sec", place=place, raw=line)
        elif ROW.match(line):
            printed.fault(place, "a row of the table without its numbers", line)


def passmark(text: str, printed: Printed) -> None:
    """The lines below `Results:`. A score of 0 stands for instructions that the processor lacks: no value."""
    is_inside = False
    for place, line in _lines(text):
        if OUTSIDE.match(line):
            is_inside = line.strip() == RESULTS
        elif is_inside:
            name, _, score = line.partition(":")
            if metric_name(name) in NO_SCORE:
                continue
            printed.add(metric_name(name), score.strip(), place=place, raw=line)


def openssl(text: str, printed: Printed) -> None:
    """`openssl speed -mr -multi`: the last line of each algorithm is the sum over its processes, in bytes a second."""
    sizes: list[str] = []
    for place, line in _lines(text):
        if match := SIZES.match(line):
            sizes = (match[1] or match[2]).split(":")
        elif match := SPEEDS.match(line):
            values = match[2].split(":")
            if len(values) != len(sizes):
                printed.fault(place, f"{len(values)} speeds for {len(sizes)} sizes", line)
                continue
            for size, value in zip(sizes, values, strict=True):
                printed.add(f"{metric_name(match[1])}_{size}", value, "B/s", place=place, raw=line)
        elif line.startswith("+F:"):
            printed.fault(place, "no algorithm with its speeds", line)


def membench(text: str, printed: Printed) -> None:
    """CSV: read, write and copy of buffers of size_kb in MB/s, and latencies in ns; 0 stands where a column is none."""
    for place, row in _csv_rows(text, ("size_kb", "bandwidth_mb_s", "latency_ns"), printed):
        operation = row.get("operation", "")
        name = f"{metric_name(operation)}_{_size(row['size_kb'])}"
        if operation == "latency":
            printed.add(name, row["latency_ns"], "ns", place=place)
        else:
            printed.add(name, row["bandwidth_mb_s"], "MB/s", place=place)


def redis(text: str, printed: Printed) -> None:
    """CSV of memtier: requests a second and latency (ms) by operation and pipeline, and the most requests of all."""
    for place, row in _csv_rows(text, ("rps", "latency"), printed):
        name = f"{metric_name(row.get('operation', ''))}_pipeline_{row.get('pipeline', '')}"
        printed.add(f"{name}_rps", row["rps"], "/sec", place=place)
        printed.add(f"{name}_latency", row["latency"], "ms", place=place)
    printed.add_most("rps_most", "_rps")


def web(text: str, printed: Printed) -> None:
    """CSV of wrk: requests a second and latency (s) by size, threads and connections, and the most of each size.

    Threads and connections follow the processors of a machine: only the most can be compared between types."""
    sizes: dict[str, None] = {}
    for place, row in _csv_rows(text, ("rps", "latency"), printed):
        size = metric_name(row.get("size", ""))
        sizes[size] = None
        name = f"{size}_threads_{row.get('threads', '')}_connections_{row.get('connections', '')}"
        printed.add(f"{name}_rps", row["rps"], "/sec", place=place)
        printed.add(f"{name}_latency", row["latency"], "s", place=place)
    for size in sizes:
        printed.add_most(f"{size}_rps_most", "_rps", f"{size}_threads_")


def _lines(text: str) -> list[tuple[int, str]]:
    return [(place, line) for place, line in enumerate(text.splitlines(), 1) if line.strip()]


def _size(text: str) -> str:
    """16.00 is 16, 0.016384 is 0_016384."""
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace(".", "_")


@dataclass(frozen=True)
class Output:
    """names: of benchmarks, those that end in * stand for all that begin so. parse: values of an output, and
    lines that cannot be read. files: where it stands, the first that there is."""

    names: tuple[str, ...]
    aspect: Aspect
    parse: Callable[[str, Printed], None]
    files: tuple[str, ...] = PRINTED

    def fits(self, benchmark: str) -> bool:
        """Whether a benchmark is one of these."""
        return any(benchmark.startswith(name[:-1]) if name.endswith("*") else benchmark == name for name in self.names)


OUTPUTS = (
    Output(("bw_mem",), "memory", bw_mem),
    Output(("membench",), "memory", membench),
    Output(("stressng", "stressngsinglecore"), "cpu", stress_ng),
    Output(("stressngfull",), "cpu", pairs),
    Output(("stressng_benchmarks",), "system", stress_suite),
    Output(("passmark",), "system", passmark),
    Output(("geekbench",), "system", geekbench, ("results.json", "stdout")),
    Output(("openssl",), "cpu", openssl),
    Output(("compression_text",), "cpu", compression),
    Output(("redis", "redis_*"), "application", redis),
    Output(("static_web",), "application", web),
    Output(("pgbench_*",), "application", pgbench),
    Output(("llm", "llm_*"), "application", llm),
)


META, MARK = "meta.json", '"exit_code"'
LOOKED_AT = 20  # files that tell whether a folder is one of the inspector's
DESCRIBES = {
    "lscpu", "lshw", "dmidecode", "nvidia_smi", "virtualization", "hwloc", "inxi", "lspci", "cpuid", "dmesg", "sysfs",
}  # fmt: skip
EXPECTED = "a folder with <vendor>/<instance>/<benchmark>/meta.json"
VENDOR, INSTANCE, BENCHMARK = -4, -3, -2  # of the path of meta.json
LONG_OUTPUT = 64 * 2**20


def sniff(head: bytes, path: str) -> bool:
    """A folder with a meta.json of the inspector in it, however deep."""
    if head:
        return False
    folder = Folder(path)
    return any(MARK in folder.text(name, LONG_OUTPUT) for name in _metas(folder)[:LOOKED_AT])


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """As Reader.read says. Raises BadInput for a path without a meta.json."""
    folder, manifest = Folder(path), read_manifest(params)
    metas = _metas(folder)
    if not metas:
        raise BadInput(path, f"no {META} in it", EXPECTED, "name the folder that holds them")
    executions: list[Execution] = []
    bad: list[tuple[int, str, str]] = []
    for place, meta in enumerate(metas, 1):
        printed = Printed()
        try:
            labels = _labels_of(folder, meta, manifest)
            executions.append(_execution(folder, meta, labels, place, params, printed))
        except NoExecution as reason:
            bad.append((place, f"{_short(folder, meta)}: {reason}", meta))
        bad += [
            (place, f"{_short(folder, meta)}, line {fault.place}: {fault.reason}", fault.raw)
            for fault in printed.faults
        ]
    refused = refused_rows(bad)
    yield as_chunk(executions, refused)


def _metas(folder: Folder) -> list[str]:
    return [name for name in folder.names() if PurePosixPath(name).name == META]


def _execution(
    folder: Folder, meta: str, labels: dict[str, Any], place: int, params: ReadParams, printed: Printed
) -> Execution:
    """The execution of one folder; lines of its output that cannot be used go to `printed`. labels: from a manifest.

    Raises NoExecution with the reason if there is none."""
    parts = PurePosixPath(folder.absolute(meta)).parts
    if len(parts) <= -VENDOR:
        raise NoExecution("no vendor and instance above it; expected <vendor>/<instance>/<benchmark>")
    benchmark, node = parts[BENCHMARK], f"{parts[VENDOR]}/{parts[INSTANCE]}"
    if benchmark in DESCRIBES:
        raise NoExecution(NO_BENCHMARK)
    about = _meta(folder, meta)
    output = next((candidate for candidate in OUTPUTS if candidate.fits(benchmark)), None)
    if output is None:
        raise NoExecution(f"no parser for the output of {benchmark!r}")
    facts = _facts(about, benchmark, node, output, params.time_zone) | labels
    if facts["started_at"] is None:
        raise NoExecution("start is no time; expected ISO 8601")
    facts = vetted_facts(facts)
    text = _text(folder, meta, output)
    if text.strip():
        output.parse(text, printed)
        printed.faults += unreadable(text, printed.faults)
    if not printed.measured and facts["status"] == "completed":
        raise NoExecution("no value in its output" if text.strip() else "printed nothing")
    return Execution(facts, tuple(printed.measured), printed.lacking(), tool=benchmark, log=text, place=place)


def _labels_of(folder: Folder, meta: str, manifest: Manifest) -> dict[str, Any]:
    """What a manifest says of the folder of a benchmark, or of one above it; not what it is called after."""
    above = [str(parent) for parent in reversed(PurePosixPath(meta).parents) if str(parent) != "."]
    facts: dict[str, Any] = {}
    for path in (*above, meta):
        facts |= manifest.facts(folder.address(path))
    return {name: value for name, value in facts.items() if name not in IDENTITY}


def _meta(folder: Folder, meta: str) -> dict[str, Any]:
    try:
        about = json_of(folder.text(meta, LONG_OUTPUT))
    except ValueError as error:
        raise NoExecution(f"{META} is malformed ({error})") from error
    if not isinstance(about, dict):
        raise NoExecution(f"{META} holds no object")
    if about.get("exit_code") is None:
        raise NoExecution("has not ended (no exit_code)")
    return about


def _text(folder: Folder, meta: str, output: Output) -> str:
    """What was printed: the first of the files that there is and holds something."""
    for name in output.files:
        path = str(PurePosixPath(meta).with_name(name))
        if folder.holds(path) and (text := folder.text(path, LONG_OUTPUT)).strip():
            return text
    return ""


def _facts(about: dict[str, Any], benchmark: str, node: str, output: Output, zone: str) -> dict[str, Any]:
    started, ended = (time_of(str(about.get(name) or ""), zone) for name in ("start", "end"))
    version, start = about.get("version"), started.isoformat() if started else "no-start"
    return {
        "execution_id": f"{node}/{benchmark}/{start}",
        "node": node,
        "machine_type": node.partition("/")[2],
        "benchmark": slug(benchmark),
        "aspect": output.aspect,
        "tool_version": str(version) if version and version != "n/a" else None,
        "started_at": started,
        "ended_at": ended,
        "status": "completed" if about["exit_code"] == 0 else "failed",
    }


def _short(folder: Folder, meta: str) -> str:
    return "/".join(PurePosixPath(folder.absolute(meta)).parts[VENDOR:-1])
