"""The known cause of a long run: what was done to it, weighed by what it measured. For checking explanations only."""

from dataclasses import dataclass
from typing import Literal

from tasks.jobs.record.orders import Measured

Cause = Literal["none", "lock", "load", "big_input", "spill", "cold_cache", "not_measured"]
FLOOR = 0.5  # what takes half of a run has doubled it


@dataclass(frozen=True)
class Conditions:
    """What the recorder knows of a run beside its measurements. cores: of the machine."""

    parts: int
    typical_parts: int
    threads: int
    cores: int
    is_cold: bool


def _load_s(measured: Measured, cpu_s: float, conditions: Conditions) -> float:
    """Seconds that others cost: the query's share of time in the run queue beyond what its own threads cause."""
    ready_s = measured.cpu_wait_s + cpu_s
    queued = measured.cpu_wait_s / ready_s if ready_s > 0 else 0.0
    own = max(0.0, 1 - conditions.cores / conditions.threads)
    return measured.query_s * max(0.0, queued - own)


def recorded_cause(measured: Measured | None, cpu_s: float, conditions: Conditions) -> Cause:
    """The cause with the largest share of the run, if that is half of it or more.

    Shares: lock: waiting for a writer's lock; load: waiting for a processor that others had; big_input: the part
    of the query's own time that goes beyond the everyday input. A big input that spilled is `spill`. A run without
    any of them that found its input out of the cache is `cold_cache`; the rest is `none`.
    """
    if measured is None or measured.runtime_s <= 0:
        return "not_measured"
    load_s = _load_s(measured, cpu_s, conditions)
    surplus = max(0.0, 1 - conditions.typical_parts / conditions.parts)
    shares: dict[Cause, float] = {
        "lock": measured.lock_wait_s / measured.runtime_s,
        "load": load_s / measured.runtime_s,
        "big_input": surplus * (measured.query_s - load_s) / measured.runtime_s,
    }
    largest = max(shares, key=lambda cause: shares[cause])
    if shares[largest] >= FLOOR:
        return "spill" if largest == "big_input" and measured.temp_bytes else largest
    if measured.temp_bytes:
        return "spill"
    return "cold_cache" if conditions.is_cold else "none"
