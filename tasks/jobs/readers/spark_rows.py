"""From what the events of an application said to one row of jobs.runs."""

import json
import re
from math import nan

import pandas as pd

from tasks.jobs.readers.spark_application import Application, Vertex
from tasks.jobs.readers.spark_fields import count
from tasks.jobs.readers.spark_plan import signature
from tasks.jobs.readers.spark_tokens import MS

MEMORY = re.compile(r"([0-9]{1,15})\s*([kmgtp]?)b?", re.IGNORECASE)
POWERS = "kmgtp"
MEBIBYTE_POWER = 2  # spark.executor.memory without a unit is in MiB
PROFILE = "profile "
LOCAL = re.compile(r"local(?:-cluster)?\[([^\]]*)\]")


def application_row(app: Application) -> dict[str, object]:
    """One row in the columns of jobs.runs, with `place`. Times are UTC without a zone."""
    has_ended = app.ended_ms is not None
    last_ms = app.ended_ms if app.ended_ms is not None else app.tokens.last_ms
    span_ms = last_ms - (app.started_ms or 0)
    plan, requested = signature(app.trees), requested_cpus(app)
    # without a plan the size would be a part of the group key, and a mean changes from run to run
    used = app.tokens.mean(span_ms) if plan or requested is not None else None
    return {
        "run_id": f"{app.id}_{app.attempt}" if app.attempt else app.id,
        "name": app.name,
        "user_name": app.user,
        "queue": app.properties.get("spark.yarn.queue") or app.properties.get("spark.kubernetes.namespace"),
        "plan_signature": plan,
        "operators": json.dumps(dict(sorted(app.operators.items()))) if app.operators else None,
        "submitted_at": _at(_submitted_ms(app)),
        "started_at": _at(app.started_ms),
        "ended_at": _at(app.ended_ms),
        "runtime_s": span_ms / MS if has_ended else nan,
        "status": _status(app),
        "requested_cpus": requested,
        "used_cpus": used,
        "requested_memory_bytes": _requested_memory(app),
        "cpu_s": app.cpu_s,
        "peak_memory_bytes": sum(app.peak_memory.values()) or nan,
        "input_bytes": app.input_bytes,
        "read_bytes": app.read_bytes,
        "temp_bytes": app.temp_bytes,
        "min_tokens": app.tokens.least,
        "peak_tokens": app.tokens.peak,
        "vertices": [_vertex(number, vertex) for number, vertex in enumerate(app.vertices.values())] or None,
        "skyline": _skyline(app, requested),
        "place": app.place,
    }


def requested_cpus(app: Application) -> float | None:
    """Cores that the application asked for; None where it left that open (dynamic allocation)."""
    properties = app.properties
    local = LOCAL.fullmatch(properties.get("spark.master", ""))
    if local:
        return _local_cores(local[1], app)
    if properties.get("spark.dynamicAllocation.enabled") == "true":
        return None
    instances, cores = (count(properties.get(f"spark.executor.{key}")) for key in ("instances", "cores"))
    if instances is None:
        return count(properties.get("spark.cores.max"))
    return instances * (cores or 1)


def _local_cores(text: str, app: Application) -> float | None:
    """local[4], local[4,2] (failures), local[*], and local-cluster[2,1,512] (workers, cores, memory)."""
    numbers = [count(part) for part in text.split(",")]
    if len(numbers) == len("wcm") and None not in numbers:
        return float(numbers[0] or 0) * float(numbers[1] or 0)
    return numbers[0] if numbers[0] is not None else sum(app.cores.values()) or None


def _requested_memory(app: Application) -> float | None:
    instances = count(app.properties.get("spark.executor.instances"))
    match = MEMORY.fullmatch(app.properties.get("spark.executor.memory", "").strip())
    if instances is None or match is None or app.properties.get("spark.dynamicAllocation.enabled") == "true":
        return None
    power = POWERS.index(match[2].lower()) + 1 if match[2] else MEBIBYTE_POWER
    return instances * float(match[1]) * 1024.0**power


def _submitted_ms(app: Application) -> float | None:
    submitted = count(app.properties.get("spark.app.submitTime"))
    return submitted if submitted is not None and submitted <= (app.started_ms or 0) else None


def _status(app: Application) -> str:
    if app.ended_ms is None:
        return "running"
    if app.is_cancelled:
        return "cancelled"
    return "failed" if app.has_failed or app.exit_code else "completed"


def _vertex(number: int, vertex: Vertex) -> dict[str, object]:
    """The SKU is the resource profile of the executor where there is more than the default one, else the host."""
    tokens = vertex.tokens
    return {
        "vertex": number,
        "stage": vertex.stage,
        "sku": f"{PROFILE}{vertex.profile}" if vertex.profile not in ("", "0") else vertex.host,
        "started_at": _microseconds(tokens.first_ms),
        "ended_at": _microseconds(tokens.last_ms if tokens.first_ms is not None else None),
        "cpu_s": vertex.cpu_s,
        "min_tokens": tokens.least,
        "mean_tokens": tokens.mean(tokens.last_ms - (tokens.first_ms or 0)),
        "peak_tokens": tokens.peak,
        "read_bytes": vertex.read_bytes,
        "temp_bytes": vertex.temp_bytes,
    }


def _skyline(app: Application, requested: float | None) -> list[dict[str, float | None]] | None:
    started = app.started_ms or 0
    steps = [
        {"at_s": max(0.0, at_ms - started) / MS, "tokens": tokens, "guaranteed": requested}
        for at_ms, tokens in app.tokens.steps
    ]
    return steps or None


def _microseconds(time_ms: float | None) -> int | None:
    """As Arrow keeps it: a timestamp in a list, beyond what pandas holds in nanoseconds, would be another one."""
    return int(time_ms) * MS if time_ms is not None else None


def _at(time_ms: float | None) -> pd.Timestamp | None:
    """UTC without a zone; None beyond the calendar, which the checks then report as a missing time."""
    if time_ms is None:
        return None
    try:
        return pd.Timestamp(int(time_ms), unit="ms").as_unit("us")
    except (ValueError, OverflowError):
        return None
