"""Executions of benchmarks with known truth, for tests: nodes of known quality, stress of known effect, drift.

Each execution has a performance p, in natural logarithm: log(quality of its node in the aspect), less the stress, less
the drift, plus noise of NOISE. A metric is level · exp(reaction · (p + own noise)): reaction 1 for throughputs, −1 for
latencies, 0 for settings. Nothing here is measured, and nothing drawn here belongs beside measurements."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.nodes.history import History

NOISE = 0.04  # deviation of the logarithm of an execution's performance
METRIC_NOISE = 0.01  # and of each of its metrics, beside that
DOSE_SD = (0.0, 1.0, 3.0, 10.0)  # how far each dose level pushes the performance down, in NOISE
NEXT_NODE = 0.8  # quality of a node as a multiple of the one before it
FIRST = pd.Timestamp("2026-01-05")
INTERVAL_S, DURATION_S, MEGA = 30.0, 2.0, 1e6

Floats = NDArray[np.float64]


RATE, COST, SETTING = 1.0, -1.0, 0.0
# a metric: name, unit as the tool would write it, level, reaction (the power with which it follows the performance); a
# bandwidth is written in GB/sec where it is that large
DRAWN = {
    "cpu-sysbench": [("events_per_second", "/sec", 900.0, RATE), ("latency_avg", "ms", 17.0, COST),
                     ("latency_95p", "ms", 30.0, COST), ("num_threads", "", 16.0, SETTING)],
    "memory-sysbench": [("transfer_rate", "MiB/sec", 4000.0, RATE), ("latency_avg", "ms", 0.004, COST),
                        ("number_of_threads", "", 16.0, SETTING)],
    "disk-fio": [("read_bw_avg", "KiB/s", 300_000.0, RATE), ("read_iops_avg", "iops", 75.0, RATE),
                 ("read_clat_95p", "nsec", 9e6, COST), ("write_clat_95p", "usec", 12_000.0, COST)],
    "disk-ioping": [("iops", "k iops", 1.5, RATE), ("latency_avg", "us", 600.0, COST)],
    "network-qperf": [("tcp_bw_bandwidth", "MB/sec", 1000.0, RATE), ("tcp_bw_send_cost", "ms/GB", 400.0, COST),
                      ("tcp_lat_latency", "us", 30.0, COST)],
    "network-iperf3": [("tx_c_transfer_bitrate_receiver", "Gbits/sec", 9.0, RATE),
                       ("tx_c_rtt_mean", "usec", 90.0, COST)],
}  # fmt: skip


def known_quality(nodes: int) -> dict[str, dict[str, float]]:
    """The quality of node-1, node-2, … by aspect, where none is asked for: 1, 0.8, 0.64, …, each aspect led by another.

    The best node is node-1 for the CPU, node-2 for memory, and so on, round and round."""
    aspects = list(dict.fromkeys(name.partition("-")[0] for name in DRAWN))
    return {
        f"node-{node + 1}": {aspect: NEXT_NODE ** ((node - at) % nodes) for at, aspect in enumerate(aspects)}
        for node in range(nodes)
    }


def synthetic_history(
    *,
    nodes: int = 3,
    types: int = 6,
    runs: int = 100,
    stressed: float = 0.2,
    seed: int = 0,
    quality: Mapping[str, Mapping[str, float]] | None = None,
    drift: float = 0.0,
) -> History:
    """`runs` executions of each type on each node, is_simulated, in time order, without telemetry.

    types: the six benchmarks; from the seventh on the same ones with another template. stressed: share of the
    executions of each node and type, dose levels 1, 2, 3 in turn. quality: by node name (node-1, …) and aspect, 1 where
    it says nothing; None: known_quality. drift: natural logarithm that the last node loses from the middle of the
    campaign to its end. Raises ValueError for a node that there is not."""
    rng = np.random.default_rng(seed)
    truth = known_quality(nodes) if quality is None else quality
    names = [f"node-{node + 1}" for node in range(nodes)]
    if unknown := sorted(set(truth) - set(names)):
        raise ValueError(f"quality of {unknown[0]}, which is not among the {nodes} nodes; expected node-1, node-2, …")
    executions = _executions(names, types, runs, stressed, rng)
    performance = _performance(executions, truth, names, drift, rng)
    metrics = [
        _metrics_of(np.flatnonzero(executions["type"] == number), performance, number, rng) for number in range(types)
    ]
    rows = pd.concat([*metrics, _no_metrics()], ignore_index=True)
    rows = rows.sort_values("execution", kind="stable", ignore_index=True).astype({"execution": "int64"})
    n_metrics = np.bincount(rows["execution"], minlength=len(executions)).astype(np.int64)
    counted = executions.drop(columns="type").assign(n_metrics=n_metrics, n_rows=n_metrics)
    return History(counted, rows, no_telemetry())


def no_telemetry() -> pd.DataFrame:
    """The telemetry of a history that has none."""
    return pd.DataFrame({"execution": np.empty(0, dtype=np.int64)}).reindex(
        columns=["execution", "metric", "unit", "at_s", "samples"]
    )


def _no_metrics() -> pd.DataFrame:
    rows = {"execution": np.empty(0, dtype=np.int64), "metric": [], "value": np.empty(0), "unit": []}
    return pd.DataFrame(rows).astype({"metric": "str", "unit": "str"})


def _executions(names: Sequence[str], types: int, runs: int, stressed: float, rng: np.random.Generator) -> pd.DataFrame:
    """One row an execution, ordered; `type` is its number."""
    nodes, run, kind = (grid.ravel() for grid in np.indices((len(names), runs, types)))
    places = np.argsort(rng.random((len(names), runs, types)), axis=2).ravel()  # each round has an order of its own
    started_s = (run * types + places) * INTERVAL_S + nodes * INTERVAL_S / max(len(names), 1)
    level = _dose_levels(len(names), runs, types, stressed, rng)
    benchmarks = list(DRAWN)
    benchmark = [benchmarks[number % len(benchmarks)] for number in range(types)]
    template = [
        "standard" if number < len(benchmarks) else f"other-{number // len(benchmarks)}" for number in range(types)
    ]
    hashes = [f"{number + 1:08x}".ljust(64, "0") for number in range(types)]
    started_at = FIRST + pd.to_timedelta(started_s, unit="s")
    found = pd.DataFrame(
        {
            "source": "synthetic",
            "execution_id": [f"{n:05}-{t:02}-{r:05}" for n, r, t in zip(nodes, run, kind, strict=True)],
            "node": np.array(names, dtype=object)[nodes],
            "machine_type": "drawn",
            "benchmark": np.array(benchmark, dtype=object)[kind],
            "aspect": np.array([one.partition("-")[0] for one in benchmark], dtype=object)[kind],
            "template": np.array(template, dtype=object)[kind],
            "template_hash": np.array(hashes, dtype=object)[kind],
            "tool_version": "0",
            "started_at": started_at,
            "ended_at": started_at + pd.Timedelta(seconds=DURATION_S),
            "duration_s": DURATION_S,
            "status": "completed",
            "is_stressed": level > 0,
            "stress_wanted": level > 0,
            "dose": np.array(["", "drawn-1", "drawn-2", "drawn-3"], dtype=object)[level],
            "dose_level": level,
            "is_contaminated": False,
            "foreign_cores": 0.0,
            "steal_cores": 0.0,
            "load_1m": 0.0,
            "is_emulated": False,
            "campaign": "drawn",
            "region": None,
            "missing_metrics": [[] for _ in range(len(kind))],
            "is_simulated": True,
            "batch_id": "drawn",
            "type": kind,
        }
    )
    return found.sort_values(["started_at", "execution_id"], ignore_index=True)


def _dose_levels(nodes: int, runs: int, types: int, stressed: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Dose level of each execution in the order of np.indices((nodes, runs, types)): exact shares, drawn places."""
    n_stressed = round(stressed * runs)
    rank = np.argsort(np.argsort(rng.random((nodes, runs, types)), axis=1), axis=1).ravel()
    return np.where(rank < n_stressed, 1 + rank % (len(DOSE_SD) - 1), 0).astype(np.int64)


def _performance(
    executions: pd.DataFrame,
    truth: Mapping[str, Mapping[str, float]],
    names: Sequence[str],
    drift: float,
    rng: np.random.Generator,
) -> Floats:
    """(n_executions,), natural logarithm."""
    if executions.empty:
        return np.empty(0)
    keys = zip(executions["node"], executions["aspect"], strict=True)
    quality = np.array([truth.get(node, {}).get(aspect, 1.0) for node, aspect in keys])
    dose = np.array(DOSE_SD)[executions["dose_level"].to_numpy()] * NOISE
    elapsed = (executions["started_at"] - executions["started_at"].min()).dt.total_seconds().to_numpy()
    late = np.clip(2 * elapsed / max(elapsed.max(), 1.0) - 1, 0, 1)  # 0 until the middle, 1 at the end
    lost = drift * late * (executions["node"] == names[-1]).to_numpy()
    return np.asarray(np.log(quality) - dose - lost + rng.normal(0, NOISE, len(executions)))


def _metrics_of(rows: NDArray[np.int64], performance: Floats, number: int, rng: np.random.Generator) -> pd.DataFrame:
    """The metrics of the executions of one type, in rows of (execution, metric, value, unit)."""
    found = [_no_metrics()]
    for name, unit, level, reaction in list(DRAWN.values())[number % len(DRAWN)]:
        value = level * np.exp(reaction * (performance[rows] + rng.normal(0, METRIC_NOISE, len(rows))))
        is_giga = np.full(len(rows), unit == "MB/sec") & (value >= 1e9 / MEGA)
        units = {"value": np.where(is_giga, value / 1e3, value), "unit": np.where(is_giga, "GB/sec", unit)}
        found.append(pd.DataFrame({"execution": rows, "metric": name, **units}))
    return pd.concat(found, ignore_index=True)
