"""How much memory a job needs in all, and which clusters are promising for it.

After Ruya (Will et al. 2022): a few runs on one machine with down-sampled input tell whether the peak of memory grows
with the input (linear: the need at full size is read off the line), does not care (flat: the least memory is the
cheapest) or neither (unclear: no cluster is preferred)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.advice.machines import Configurations, Floats
from tasks.errors import BadInput
from tasks.quantities import number

Pattern = Literal["linear", "flat", "unclear"]
LEAST_RUNS = 4  # so many points tell a line from a curve
LINEAR_FROM, UNCLEAR_FROM = 0.99, 0.1  # coefficient of determination: as in Ruya's code
OVERHEAD_GB, SLACK = 2.0, 1.1  # of system and framework on each node, and what a cluster may fall short by: the same
N_FLAT, N_ENDS = 10, 5  # the same
BYTES_PER_GB = 1e9


@dataclass(frozen=True)
class MemoryNeed:
    """Memory that a job needs over all nodes. need_gb: in 1e9 bytes; 0 where flat, NaN where unclear."""

    pattern: Pattern
    need_gb: float
    reason: str


def stated_need(need_gb: float) -> MemoryNeed:
    """The need that somebody states: 0 is flat, NaN unclear."""
    if np.isnan(need_gb):
        return MemoryNeed("unclear", need_gb, "not clear, as stated")
    if need_gb == 0:
        return MemoryNeed("flat", 0.0, "no more for more input, as stated")
    return MemoryNeed("linear", need_gb, f"{number(need_gb)} GB, as stated")


def memory_need(input_bytes: Floats, peak_bytes: Floats, full_input_bytes: float) -> MemoryNeed:
    """The need at full size, from runs with smaller inputs: (n,) sizes and peaks of memory.

    Raises BadInput for fewer than four runs, or inputs of one size."""
    if len(input_bytes) < LEAST_RUNS or len(np.unique(input_bytes)) < 2:
        raise BadInput(
            "memory profile",
            f"{len(input_bytes)} runs with {len(np.unique(input_bytes))} sizes of input",
            f"at least {LEAST_RUNS} runs with different inputs",
            "run the job on smaller samples, or state the need with --memory-gb",
        )
    slope, level = np.polyfit(input_bytes, peak_bytes, 1)
    residuals = peak_bytes - (slope * input_bytes + level)
    spread = float(((peak_bytes - peak_bytes.mean()) ** 2).sum())
    determination = 1 - float((residuals**2).sum()) / spread if spread > 0 else 0.0
    if slope > 0 and determination > LINEAR_FROM:
        need_gb = (slope * full_input_bytes + level) / BYTES_PER_GB
        return MemoryNeed("linear", need_gb, f"{number(need_gb)} GB: its peak grows with the input on a line")
    if determination > UNCLEAR_FROM:
        return MemoryNeed("unclear", float("nan"), "not clear: its peak grows with the input, but on no line")
    return MemoryNeed("flat", 0.0, "no more for more input: its peak stays the same")


def need_of_peaks(peak_bytes: Floats) -> MemoryNeed:
    """The need from peaks of whole runs, (n,) over all their processes: the largest of them."""
    if not len(peak_bytes):
        raise BadInput("memory profile", "no recorded peak", "at least one run with a peak of memory", "--memory-gb")
    need_gb = float(peak_bytes.max()) / BYTES_PER_GB
    return MemoryNeed("linear", need_gb, f"{number(need_gb)} GB: the highest of {len(peak_bytes)} recorded peaks")


def promising(candidates: Configurations, need: MemoryNeed | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which clusters are tried first, (n,): those that hold the need; all of them where it is not known.

    flat: those of least total memory. Where none holds the need: those of the least and of the most (Ruya)."""
    everything = np.ones(len(candidates), dtype=bool)
    if need is None or need.pattern == "unclear":
        return everything
    by_memory = np.argsort(candidates.total_memory_gb, kind="stable")
    if need.pattern == "flat":
        first = by_memory[:N_FLAT]
    else:
        fits = need.need_gb + OVERHEAD_GB * candidates.nodes < SLACK * candidates.total_memory_gb
        if fits.any():
            return fits
        first = np.concatenate([by_memory[:N_ENDS], by_memory[-N_ENDS:]])
    return np.isin(np.arange(len(candidates)), first)
