"""Changes that could be made to jobs, one by one, and the scenarios of the paper.

Source: Zhu et al. 2023, 7.1 to 7.3; even_load and single changes are ours."""

from dataclasses import dataclass
from typing import get_args

from tasks.errors import BadInput
from tasks.jobs.control.named import Named
from tasks.jobs.control.params import WhatIfParams

NAMED: tuple[Named, ...] = get_args(Named)
CPU_LOAD = "cpu_load"


@dataclass(frozen=True)
class SetFeature:
    """One feature gets a value in every row, or is multiplied by it."""

    name: str
    value: float
    is_factor: bool = False

    def __str__(self) -> str:
        return f"{self.name}={'x' if self.is_factor else ''}{self.value:g}"


@dataclass(frozen=True)
class CapSpare:
    """Spare tokens beyond the request are at most `multiple` times the tokens requested; 0 switches them off.

    It means what `spare_multiple` means to the recorder: with 2, a job that requests 66 tokens holds up to 198."""

    multiple: float

    def __str__(self) -> str:
        return f"spare_multiplier={self.multiple:g}"


@dataclass(frozen=True)
class ShiftSku:
    """What ran on SKU `source` runs on `target`: vertices, their shares, and the offer."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"shift-sku {self.source}:{self.target}"


@dataclass(frozen=True)
class ShiftAll:
    """The same from every other SKU of the log; an empty target is the last SKU in order of names."""

    target: str = ""

    def __str__(self) -> str:
        return f"shift-sku all:{self.target or 'newest'}"


@dataclass(frozen=True)
class SetStd:
    """The standard deviation of what `word` names; cpu_load: of the load, over all and on each SKU."""

    word: str
    value: float

    def __str__(self) -> str:
        return f"set-std {self.word}={self.value:g}"


@dataclass(frozen=True)
class EvenLoad:
    """Every SKU has, at all times, the mean load of all rows, without deviation."""

    def __str__(self) -> str:
        return "even load"


Edit = SetFeature | CapSpare | ShiftSku | ShiftAll | SetStd | EvenLoad


@dataclass(frozen=True)
class Scenario:
    """Changes made one after the other. Printed as they were asked for."""

    name: str
    edits: tuple[Edit, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.edits))


def named_scenario(name: str, params: WhatIfParams) -> Scenario:
    """A scenario of the paper, or even_load. Raises BadInput for another name.

    no_spare: no spare tokens (7.1). newest_sku: all vertices on the newest SKU, params.newest_sku (7.2). steady_load:
    no deviation of the load (7.3), each SKU keeping its mean. even_load: also the same load on all SKUs."""
    edits: dict[str, Edit] = {
        "no_spare": CapSpare(0),
        "newest_sku": ShiftAll(params.newest_sku),
        "steady_load": SetStd(CPU_LOAD, 0),
        "even_load": EvenLoad(),
    }
    if name not in edits:
        raise BadInput(f"scenario {name!r}", "not a scenario", f"one of {', '.join(NAMED)}")
    return Scenario(name, (edits[name],))
