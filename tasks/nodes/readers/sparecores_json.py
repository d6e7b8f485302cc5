"""Outputs of benchmarks that are JSON."""

import json
import math
from collections.abc import Iterator
from typing import Any

from tasks.nodes.readers.perona_metrics import spelled
from tasks.nodes.readers.sparecores_printed import Printed

PERCENTILES = ("avg", "p50", "p95", "p99")


def stress_suite(text: str) -> Printed:
    """Stressors with one worker and with as many as processors: bogo operations a second; metrics cpu_1, cpu_n."""
    printed = Printed()
    for name, by_workers in _items(_object(text, printed).get("stressors")):
        rates = {workers: _number(_within(told, "bogo_ops_per_sec")) for workers, told in _items(by_workers)}
        counts = sorted((one for one in rates if one.isdigit()), key=int)
        for workers in counts:
            shown = "n" if len(counts) > 1 and workers == counts[-1] else workers
            printed.add(f"{spelled(name)}_{shown}", rates[workers], "/sec")
    return printed


def compression(text: str) -> Printed:
    """Algorithms by level, threads and block size: bytes a second, and the size left in percent."""
    printed = Printed()
    for algorithm, levels in _items(_object(text, printed)):
        for level, runs in _items(levels):
            for run in runs if isinstance(runs, list) else []:
                extra = "".join(f"_{spelled(name)}_{value}" for name, value in _items(_within(run, "extra_args")))
                name = f"{spelled(algorithm)}_{level}_threads_{_within(run, 'threads')}{extra}"
                for what, unit in (("compress", "B/s"), ("decompress", "B/s"), ("ratio", "%")):
                    printed.add(f"{name}_{what}", _number(_within(run, what)), unit)
    return printed


def pgbench(text: str) -> Printed:
    """The score of pgbench in transactions a minute, and its latencies."""
    printed = Printed()
    told = _object(text, printed)
    printed.add("score", _number(told.get("score")), str(told.get("score_unit") or ""))
    for name in PERCENTILES:
        printed.add(f"latency_{name}", _number(_within(told.get("latency_ms"), name)), "ms")
    printed.add("latency_stddev", _number(told.get("latency_stddev_ms")), "ms")
    return printed


def geekbench(text: str) -> Printed:
    """The scores of single-core and multi-core tests; metrics single_core_clang, multi_core_score."""
    printed = Printed()
    for table, tests in _items(_object(text, printed)):
        prefix = spelled(table).removesuffix("_performance")
        for name, told in _items(tests):
            printed.add(f"{prefix}_{spelled(name)}", _number(_within(told, "score")))
    return printed


def llm(text: str) -> Printed:
    """JSON lines of llama-bench: tokens a second by model, prompt length and generated length."""
    printed = Printed()
    for place, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        told = _object(line, printed, place)
        model = spelled(str(told.get("model_filename") or "").rpartition("/")[2].removesuffix(".gguf"))
        kind = f"prompt_{told.get('n_prompt')}" if told.get("n_prompt") else f"generate_{told.get('n_gen')}"
        if model:
            printed.add(f"{model}_{kind}", _number(told.get("avg_ts")), "tokens/sec")
    return printed


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _object(text: str, printed: Printed, place: int = 1) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError as error:
        printed.fault(place, f"malformed JSON ({error})", text)
        return {}
    return told if isinstance(told, dict) else {}


def _within(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _items(value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((str(name), inner) for name, inner in value.items())
