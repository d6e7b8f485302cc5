"""Choices that forms and flags offer by name, and statements in words: light, where the rest imports arrays."""

from collections.abc import Mapping
from typing import Any, Literal

TelemetryReader = Literal["auto", "prometheus", "perf", "perfspect", "sadf", "wide"]
AUTO: TelemetryReader = "auto"


def reader_asked_for(name: TelemetryReader) -> str:
    """The reader's name for an intake: empty where the file decides."""
    return "" if name == AUTO else name


ChangePointMethod = Literal["bayes", "pelt", "kernel", "binseg"]
HoldOut = Literal["auto", "round", "time"]
Statement = Literal["known", "known and something unknown", "unknown", "idle"]
UNKNOWN = "unknown"


def said(row: Mapping[Any, Any]) -> str:
    """An identification in words: "redis", "redis + nginx, and something unknown", "unknown", "idle"."""
    if not row["is_known"]:
        return UNKNOWN
    present = row.get("present")  # missing where an older whorl said it
    names = [str(part["workload"]) for part in ([] if present is None else present)] or [str(row["workload"])]
    rest = f", and something {UNKNOWN}" if row.get("statement") == "known and something unknown" else ""
    return " + ".join(names) + rest
