"""Cluster configurations: so many nodes of a machine type, what they hold and what an hour of them costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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

    def index(self, machine_type: str, nodes: int) -> int | None:
        """The place of a configuration, None if it is not among these."""
        at = [i for i, name in enumerate(self.machine_type) if name == machine_type and self.nodes[i] == nodes]
        return at[0] if at else None

    def places(self, others: "Configurations") -> list[int | None]:
        """Where each of the others stands among these, None where it does not."""
        at = {pair: i for i, pair in enumerate(zip(self.machine_type, self.nodes.tolist(), strict=True))}
        return [at.get(pair) for pair in zip(others.machine_type, others.nodes.tolist(), strict=True)]

    def subset(self, rows: Ints) -> "Configurations":
        """Some of them, in the order of rows."""
        names = tuple(self.machine_type[i] for i in rows)
        of_one = (self.vcpu[rows], self.memory_gb[rows], self.price_per_h[rows])
        return Configurations(names, self.nodes[rows], *of_one)

    def cost(self, runtime_s: Floats) -> Floats:
        """Price of a run on each, from its runtimes in seconds."""
        return self.rate_per_h * runtime_s / SECONDS_PER_HOUR


def configurations(pairs: Sequence[tuple[MachineType, int]]) -> Configurations:
    """Configurations from machine types with their numbers of nodes."""
    types, nodes = [kind for kind, _ in pairs], [n for _, n in pairs]
    return Configurations(
        tuple(kind.name for kind in types),
        np.array(nodes, dtype=np.int64),
        np.array([kind.vcpu for kind in types], dtype=float),
        np.array([kind.memory_gb for kind in types], dtype=float),
        np.array([kind.price_per_h for kind in types], dtype=float),
    )
