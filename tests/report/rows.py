"""Rows of the warehouse that pages are tested with: jobs, workloads and nodes, with names that are hostile."""

from datetime import datetime
from itertools import pairwise

import numpy as np
import pandas as pd

HOSTILE = "<script>alert('x')</script> <img src=x> $x$"
MODEL = "runtime-1-a"

SHAPES = [
    {
        "shape": shape, "kind": kind, "n_groups": 4 + shape, "n_runs": 100, "outlier_percent": 1.0, "p25_p75": 0.1,
        "p95": 2.0, "std": 0.5, "centre": [0.1, 0.4 + 0.1 * shape, 0.4 - 0.1 * shape, 0.1],
        "bins_low": 0.0 if kind == "ratio" else -10.0, "bins_high": 10.0, "n_bins": 4, "inertia": 1.0,
        "min_support": 3, "data_version": "older", "parameters": "{}",
    }
    for kind in ("ratio", "delta")
    for shape in range(2)
]  # fmt: skip
CURVE = [
    {"kind": kind, "k": k, "inertia": 4.0 / k, "is_elbow": k == 2} for kind in ("ratio", "delta") for k in range(1, 5)
]
QUANTILES = {f"p{level:02}_s": float(level) for level in (5, 25, 50, 75, 90, 95, 99)}


def next_run(job, *, twice, beyond, n_before=10):
    at = pd.Timestamp("2026-01-02")
    return {
        "group_key": job, "model_id": MODEL, "predicted_at": at, "last_at": at, "data_version": "older",
        "n_before": n_before, "usual_s": 50.0, "exceeds_2x_share": twice, "expected_excess_s": beyond, **QUANTILES,
        "shape_ratio": None,
    }  # fmt: skip


def figures(**values):
    return [{"model_id": MODEL, "key": key.replace("__", "."), "value": value} for key, value in values.items()]


def reason(job, run_id, words, *, rank=1, factor=2.0, question="runtime"):
    return {
        "group_key": job, "run_id": run_id, "model_id": MODEL, "family": "input", "feature": "input_bytes",
        "compared_with": "the job", "question": question, "rank": rank, "factor": factor, "words": words,
        "runtime_s": 90.0 if run_id else None, "usual_s": 10.0, "expected_s": 30.0,
    }  # fmt: skip


def family(question, name, share, rank=1):
    counts = {"n_runs": 40, "n_long": 5, "typical_factor": 1.3, "first_share": None}
    return {"question": question, "family": name, "rank": rank, "share": share, "model_id": MODEL, **counts}


def insight(words, *, reason=None):
    return {
        "kind": "ratio", "insight": "inputs", "rank": 1, "verdict": "cannot be told" if reason else "holds",
        "rho": None if reason else 0.4, "measured_verdict": "does not hold", "measured_rho": -0.2, "n_runs": 40,
        "reason": reason, "words": words, "model_id": MODEL,
    }  # fmt: skip


def what_if(name):
    same = {"scenario": name, "model_id": MODEL}
    counts = {"n_runs": 200, "n_jobs": 8}
    change = {"measure": "p95_s", "edits": "spare_multiplier=0", "before": 2.0, "after": 3.0, "change": 1.0}
    pairs = {"n_pairs": 9, "n_jobs": 3, "mean_measured": 0.0, "mean_predicted": 0.5, "right_share": 0.75}
    moves = [(0, 0, 7), (0, 1, 3), (1, 1, 10)]
    return {
        "what_ifs": [{**same, **counts, **change, "low": 0.5, "high": 1.5, "parameters": "{}"}],
        "what_if_pairs": [{**same, **pairs, "reason": None}],
        "what_if_moves": [
            {**same, "kind": "ratio", "from_shape": a, "to_shape": b, "n_runs": n, "n_jobs": 1} for a, b, n in moves
        ],
        "what_if_claims": [
            {**same, "about": "can", "place": 0, "claim": f"it supports {name}"},
            {**same, "about": "cannot", "place": 0, "claim": f"it does not prove {name}"},
            {**same, "about": "move_delta", "place": 0, "claim": f"{name} moves 3 runs"},
        ],
    }


NOON = datetime(2026, 3, 1, 12)
COUNTERS = ("cpu.user_cores", "disk.written_bytes", "net.sent_bytes", "own.cpu.user_cores")
HELD_OUT = {"held_out.accuracy": 0.987, "held_out.macro_f1": 0.98, "held_out.n": 7.0, "held_out.n_new": None}


def telemetry(*, n_runs=6, simulated=False):
    """Rows of files, runs, counters: runs in turn of two workloads, each with two inputs."""
    rng, n_samples = np.random.default_rng(1), 30
    runs, counters = [], []
    for number in range(n_runs):
        run_id = f"round-{number % 3}/{number:03}"
        workload = "redis" if number % 2 else "nginx"
        runs.append(
            {
                "run_id": run_id, "workload": workload, "input": f"input {number % 4 // 2}", "round": str(number % 3),
                "machine": "box", "started_at": NOON + pd.Timedelta(number, "min"), "interval_s": 1.0,
                "n_samples": n_samples, "duration_s": float(n_samples), "n_rows": n_samples, "n_missed": 1,
                "n_resets": 0, "is_resampled": False, "refused_columns": [],
                "at_s": np.arange(float(n_samples)).tolist(), "is_simulated": simulated, "batch_id": "batch",
            }
        )  # fmt: skip
        for at, counter in enumerate(COUNTERS):
            level = np.where(np.arange(n_samples) < 9 + number, 1.0, 5.0 + at) * (1 + number % 2)
            samples = [float(value) for value in level + rng.normal(0, 0.1, n_samples)]
            samples[4] = None
            counters.append(
                {
                    "run_id": run_id, "counter": counter, "unit": "B", "kind": "software", "is_rate": True,
                    "scope": "machine", "is_constant": False, "running_pct": None, "samples": samples,
                    "batch_id": "batch",
                }
            )  # fmt: skip
    file = {
        "batch_id": "batch", "word": "workloads", "reader": "wide", "reader_version": "1", "options": "{}",
        "origin": "/in/part-1.parquet", "origin_sha256": "0", "ordered_at": NOON, "n_read": n_runs * n_samples,
        "n_kept": n_runs * n_samples, "n_quarantined": 0, "landed_at": NOON,
    }  # fmt: skip
    return {"files": [file], "runs": runs, "counters": counters}


def phases(runs):
    """Rows of phases and run_phases: each counter changes once, at a sample of its own."""
    phases, whole = [], []
    for number, run in enumerate(runs):
        middle, end = 9 + number, run["n_samples"]
        for at, counter in enumerate(COUNTERS):
            for phase, (start, stop, level) in enumerate(((0, middle, -2.0), (middle, end, 2.0 + at + number % 2)), 1):
                phases.append(
                    {
                        "run_id": run["run_id"], "key": "k", "counter": counter, "phase": phase, "start_sample": start,
                        "end_sample": stop, "probability": 0.97 if phase == 2 else None, "mean": level, "median": level,
                        "variance": 0.1, "adf": -3.0 if stop - start >= 20 else None, "q10": level, "q25": level,
                        "q75": level, "q90": level,
                    }
                )  # fmt: skip
        edges = (0, middle, end) if number % 3 else (0, middle // 2, middle, end)
        for phase, (start, stop) in enumerate(pairwise(edges), 1):
            whole.append(
                {"run_id": run["run_id"], "key": "k", "phase": phase, "start_sample": start, "end_sample": stop}
            )
    return {"phases": phases, "run_phases": whole}


def identified(runs):
    """Rows of identifications, confusions and figures of a model."""
    reason = "cpu.user_cores in phase 2 matches best: 5.1 against 5.0"
    rows = [
        {
            "run_id": run["run_id"], "model_id": "m1", "identified_at": NOON + pd.Timedelta(number, "h"),
            "workload": run["workload"] if number else None, "is_known": bool(number), "confidence": 0.9712,
            "unknown_score": 0.03, "nearest": run["workload"], "nearest_distance": 1.2, "reasons": [reason, "second"],
            "proxy": None if number else "redis",
        }
        for number, run in enumerate(runs)
    ]  # fmt: skip
    confusions = [
        {"model_id": "m1", "workload": "redis", "identified_as": "redis", "n_runs": 9},
        {"model_id": "m1", "workload": "nginx", "identified_as": "", "n_runs": 1},
    ]
    figures = [
        {"model_id": "m1", "key": key, "value": value, "reason": None if value is not None else "all were learned from"}
        for key, value in HELD_OUT.items()
    ]
    return {"identifications": rows, "confusions": confusions, "model_figures": figures}


ASPECTS = ("all", "cpu", "disk", "memory", "network")
ABOUT = {"source": "log", "model_id": "model-1"}
NOW = pd.Timestamp("2026-01-06 12:00")
STATES = {"node-1": "healthy", "node-2": "suspected", "node-3": "confirmed"}  # of the disk


def node_fingerprints(executions):
    """A fingerprint of each; stressed ones have smaller norms."""
    number = executions["benchmark"].astype("category").cat.codes.to_numpy(dtype=float)
    is_stressed = executions["is_stressed"].to_numpy(dtype=bool)
    found = executions[["execution_id"]].assign(score=1.0 - 0.5 * is_stressed)
    return found.assign(log_norm=number - 0.7 * is_stressed, encoding=[[1.0, 2.0]] * len(found))


def verdicts(executions):
    """Stressed ones are flagged."""
    is_flagged = executions["is_stressed"].to_numpy(dtype=bool)
    told = {"is_flagged": is_flagged, "is_cold": False, "by_labels": True}
    return executions[["execution_id"]].assign(probability=np.where(is_flagged, 0.9, 0.1), **told)


def verdict_reasons(flagged):
    """Two metrics for each flagged execution but the latest."""
    rate = {"place": 1, "metric": "rate", "unit": "B/s", "value": 4e6, "deviation": 8.5}
    late = {"place": 2, "metric": "latency", "unit": "s", "value": 0.012, "deviation": 3.0}
    rate |= {"usual_low": 9e6, "usual_high": 1e7}
    late |= {"usual_low": 0.009, "usual_high": 0.011}
    rows = [
        {"execution_id": execution, **reason}
        for execution in flagged["execution_id"].iloc[:-1]
        for reason in (rate, late)
    ]
    return pd.DataFrame(rows)


def node_scores(order):
    """A ranking of three nodes by aspect, the best first."""
    rows = [
        {"aspect": aspect, "node": node, "machine_type": "drawn", "score": 1.2 - 0.2 * at, "low": 1.1 - 0.2 * at}
        | {"high": 1.3 - 0.2 * at, "rank": at + 1, "is_tied": False, "n_executions": 96, "n_types": 6}
        for aspect in ASPECTS
        for at, node in enumerate(order)
    ]
    return pd.DataFrame(rows)


def node_states():
    """One node of each state in the disk, the others healthy; watching takes 2, 4 and 6 % of their time."""
    rows = [
        {"node": node, "aspect": aspect, "state": state if aspect == "disk" else "healthy", "since_execution": "e"}
        | {"is_excluded": state == "confirmed", "asks_for_benchmark": state == "suspected" and aspect == "disk"}
        | {"cost_share": 0.02 * at, "n_executions": 40, "n_recent_flagged": at, "n_left_out": 1}
        for at, (node, state) in enumerate(STATES.items(), 1)
        for aspect in ASPECTS[1:]
    ]
    found = pd.DataFrame(rows)
    since = found["state"].map(lambda state: pd.NaT if state == "healthy" else NOW)
    return found.assign(since=pd.to_datetime(since), last_at=NOW, watched_at=NOW)
