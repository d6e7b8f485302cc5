"""The known cause of a long run: what was done to it, weighed by what it measured. For checking explanations only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Cause = Literal["none", "lock", "load", "big_input", "few_tokens", "spill", "cold_cache", "not_measured"]
FLOOR = 0.5  # what takes half of a run has doubled it


@dataclass(frozen=True)
class VertexTimes:
    """Where the time of a vertex on the job's longest path went, in seconds. promised_s: CPU time of its tokens;
    disk_s: what the disk needs at its SKU's rate for the bytes that were not in the cache."""

    query_s: float
    lock_wait_s: float
    cpu_s: float
    promised_s: float
    is_cold: bool
    temp_bytes: float
    disk_s: float = 0.0


@dataclass(frozen=True)
class Usual:
    """What the run had, over what is usual for its job: parts of input, and tokens."""

    parts_ratio: float
    tokens_ratio: float


def kept_waiting_s(vertex: VertexTimes) -> float:
    """Seconds that a query took beyond those in which its tokens would have given it the CPU time that it used."""
    promised_rate = vertex.promised_s / vertex.query_s if vertex.query_s > 0 else 0.0
    return max(0.0, vertex.query_s - vertex.cpu_s / promised_rate) if promised_rate > 0 else 0.0


def cause_shares(path: Sequence[VertexTimes], runtime_s: float, usual: Usual) -> dict[Cause, float]:
    """Share of the runtime that each cause explains; they may overlap.

    lock: waiting for a writer's lock. load, cold_cache, spill: seconds in which a query went slower than its tokens
    promised, by what was known of it: a spill, an input out of the cache (its own doing or another's), or else others'
    load. big_input: what goes beyond the usual input. few_tokens: what goes beyond the time with the usual tokens."""
    slow: dict[Cause, float] = {"load": 0.0, "cold_cache": 0.0, "spill": 0.0}
    for vertex in path:
        slow_s = kept_waiting_s(vertex)
        is_cold = vertex.is_cold or vertex.disk_s >= slow_s * FLOOR
        slow["spill" if vertex.temp_bytes else "cold_cache" if is_cold else "load"] += slow_s
    working_s = sum(vertex.query_s for vertex in path) - sum(slow.values())
    shares: dict[Cause, float] = {
        "lock": sum(vertex.lock_wait_s for vertex in path),
        "big_input": working_s * max(0.0, 1 - 1 / usual.parts_ratio),
        "few_tokens": working_s * max(0.0, 1 - usual.tokens_ratio),
        **slow,
    }
    return {cause: seconds / runtime_s for cause, seconds in shares.items()}


def recorded_cause(shares: Mapping[Cause, float] | None) -> Cause:
    """The cause with the largest share, if that is half of the run or more; `none` otherwise."""
    if shares is None:
        return "not_measured"
    largest = max(shares, key=lambda cause: shares[cause])
    return largest if shares[largest] >= FLOOR else "none"
