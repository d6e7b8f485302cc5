"""Clusters of machine types: what they hold in all, what a run on them costs, and which suit a memory need."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import linregress

from tasks.errors import BadInput
from tasks.quantities import number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SECONDS_PER_HOUR = 3_600


@dataclass(frozen=True)
class MachineType:
    """A kind of machine: memory (in GB as its vendor says) and price of an hour, of one of them."""

    name: str
    vcpu: float
    memory_gb: float
    price_per_h: float


@dataclass(frozen=True)
class Configurations:
    """Cluster configurations to choose among, in a fixed order: (n,) values of one machine of each, and its nodes."""

    machine_type: tuple[str, ...]
    nodes: Ints
    vcpu: Floats
    memory_gb: Floats
    price_per_h: Floats

    def __len__(self) -> int:
        return len(self.machine_type)

    @cached_property
    def total_memory_gb(self) -> Floats:
        """Memory of the whole cluster, (n,)."""
        return self.nodes * self.memory_gb

    @cached_property
    def total_vcpu(self) -> Floats:
        """Virtual processors of the whole cluster, (n,)."""
        return self.nodes * self.vcpu

    @cached_property
    def rate_per_h(self) -> Floats:
        """Price of an hour of the whole cluster, (n,)."""
        return self.nodes * self.price_per_h

    def name(self, at: int) -> str:
        """A configuration in words, such as 8 × m4.xlarge."""
        return f"{int(self.nodes[at])} × {self.machine_type[at]}"

    @cached_property
    def places(self) -> dict[tuple[str, int], int]:
        """The place of each, by machine type and nodes, in order."""
        return {pair: i for i, pair in enumerate(zip(self.machine_type, self.nodes.tolist(), strict=True))}

    def subset(self, rows: Ints) -> "Configurations":
        """Some of them, in the order of rows."""
        names = tuple(self.machine_type[i] for i in rows)
        per_node = (self.vcpu[rows], self.memory_gb[rows], self.price_per_h[rows])
        return Configurations(names, self.nodes[rows], *per_node)

    def cost(self, runtime_s: Floats) -> Floats:
        """Price of a run on each, from its runtimes in seconds."""
        return self.rate_per_h * runtime_s / SECONDS_PER_HOUR


def configurations(pairs: Sequence[tuple[MachineType, int]]) -> Configurations:
    """Configurations from machine types with their numbers of nodes."""
    facts = [(kind.vcpu, kind.memory_gb, kind.price_per_h) for kind, _ in pairs]
    nodes = np.array([n for _, n in pairs], dtype=np.int64)
    return Configurations(tuple(kind.name for kind, _ in pairs), nodes, *np.array(facts, dtype=float).reshape(-1, 3).T)


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
    line = linregress(input_bytes, peak_bytes)
    determination = line.rvalue**2
    if line.slope > 0 and determination > LINEAR_FROM:
        need_gb = float(line.slope * full_input_bytes + line.intercept) / BYTES_PER_GB
        return MemoryNeed("linear", need_gb, f"{number(need_gb)} GB: its peak grows with the input on a line")
    if determination > UNCLEAR_FROM:
        return MemoryNeed("unclear", float("nan"), "not clear: its peak grows with the input, but on no line")
    return MemoryNeed("flat", 0.0, "no more for more input: its peak stays the same")


def need_of_peaks(peak_bytes: Floats) -> MemoryNeed:
    """The need from peaks of whole runs, (n,) > 0 runs, over all their processes: the largest of them."""
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
