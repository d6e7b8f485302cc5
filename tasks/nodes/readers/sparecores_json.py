"""Outputs of benchmarks that are JSON."""

from collections.abc import Iterator
from typing import Any

from tasks.nodes.readers.perona_metrics import spelled
from tasks.nodes.readers.sparecores_printed import Printed
from tasks.reading import json_of

PERCENTILES = ("avg", "p50", "p95", "p99")
SHOWN = 40


def stress_suite(text: str) -> Printed:
    """Stressors with one worker and with as many as processors: bogo operations a second; metrics cpu_1, cpu_n."""
    printed = Printed()
    for name, by_workers in _items(_object(text, printed).get("stressors"), "stressors", printed):
        told = dict(_items(by_workers, name, printed))
        counts = sorted((one for one in told if one.isdecimal()), key=int)
        for workers in [one for one in told if not one.isdecimal()]:
            printed.fault(1, f"{name}: {workers!r} is no number of workers", f"{name}: {by_workers}")
        for workers in counts:
            shown = "n" if len(counts) > 1 and workers == counts[-1] else workers
            _add(printed, f"{spelled(name)}_{shown}", told[workers], "bogo_ops_per_sec", "/sec")
    return printed


def compression(text: str) -> Printed:
    """Algorithms by level, threads and block size: bytes a second, and the size left in percent."""
    printed = Printed()
    for algorithm, levels in _items(_object(text, printed), "the output", printed):
        for level, runs in _items(levels, algorithm, printed):
            if not isinstance(runs, list):
                printed.fault(1, f"{algorithm}, level {level} holds no list of runs", f"{level}: {runs}")
                continue
            for run in runs:
                _add_run(printed, f"{spelled(algorithm)}_{level}", run)
    return printed


def pgbench(text: str) -> Printed:
    """The score of pgbench in transactions a minute, and its latencies."""
    printed = Printed()
    told = _object(text, printed)
    _add(printed, "score", told, "score", str(told.get("score_unit") or ""))
    latencies = dict(_items(told.get("latency_ms"), "latency_ms", printed))
    for name in PERCENTILES if latencies else ():
        _add(printed, f"latency_{name}", latencies, name, "ms")
    _add(printed, "latency_stddev", told, "latency_stddev_ms", "ms")
    return printed


def geekbench(text: str) -> Printed:
    """The scores of single-core and multi-core tests; metrics single_core_clang, multi_core_score."""
    printed = Printed()
    for table, tests in _object(text, printed).items():
        prefix = spelled(str(table)).removesuffix("_performance")
        if not isinstance(tests, dict) or not any("score" in one for one in tests.values() if isinstance(one, dict)):
            continue  # it describes the machine
        for name, told in tests.items():
            _add(printed, f"{prefix}_{spelled(str(name))}", told, "score")
    return printed


def llm(text: str) -> Printed:
    """JSON lines of llama-bench: tokens a second by model, prompt length and generated length."""
    printed = Printed()
    for place, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        n_faults = len(printed.faults)
        told = _object(line, printed, place)
        model = spelled(str(told.get("model_filename") or "").rpartition("/")[2].removesuffix(".gguf"))
        kind = f"prompt_{told.get('n_prompt')}" if told.get("n_prompt") else f"generate_{told.get('n_gen')}"
        if model:
            printed.add(f"{model}_{kind}", told.get("avg_ts"), "tokens/sec", place=place, raw=line)
        elif len(printed.faults) == n_faults:
            printed.fault(place, "no model_filename", line)
    return printed


def _add_run(printed: Printed, name: str, run: object) -> None:
    """One run of an algorithm at a level."""
    if not isinstance(run, dict):
        printed.fault(1, f"{name}: a run that is no object", str(run))
        return
    options = _items(run.get("extra_args"), f"{name}: extra_args", printed) if run.get("extra_args") else ()
    extra = "".join(f"_{spelled(option)}_{value}" for option, value in options)
    for what, unit in (("compress", "B/s"), ("decompress", "B/s"), ("ratio", "%")):
        if what in run:
            _add(printed, f"{name}_threads_{run.get('threads')}{extra}_{what}", run, what, unit)


def _add(printed: Printed, metric: str, told: object, key: str, unit: str = "") -> None:
    """The value under a key of an object; the metric is missing where either is null; anything else is a fault."""
    if told is None:
        printed.add(metric, None, unit)
    elif not isinstance(told, dict):
        printed.fault(1, f"{metric} ({str(told)[:SHOWN]}) is no object with {key}", f"{metric}: {told}")
    else:
        printed.add(metric, told.get(key), unit, raw=f"{metric}: {told}")


def _object(text: str, printed: Printed, place: int = 1) -> dict[str, Any]:
    try:
        told = json_of(text)
    except ValueError as error:
        printed.fault(place, f"malformed JSON ({error})", text)
        return {}
    if not isinstance(told, dict):
        printed.fault(place, "JSON that holds no object", text)
        return {}
    return told


def _items(value: object, what: str, printed: Printed) -> Iterator[tuple[str, Any]]:
    """The entries of an object; a fault for what is none, nothing for what is not there."""
    if isinstance(value, dict):
        yield from ((str(name), inner) for name, inner in value.items())
    elif value is not None:
        printed.fault(1, f"{what} holds no object", f"{what}: {value}")
