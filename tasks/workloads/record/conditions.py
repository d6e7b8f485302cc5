"""The hard cases of a recording: workloads two at once, under load, limited, with other inputs, never learned, idle.

A round holds a fixed share of each condition, spread evenly over its length, and the cells of a condition are dealt out
in turn over the rounds: a recording that stops early is balanced over conditions and workloads all the same.

    condition        what runs                                              recordings in a round
    pair             two workloads that are learned                         8
    pair_unlearned   a workload that is learned, and one that is not        8
    load             a workload beside a load: processor at 60, 30, 10 %    6 each
                     of each core; memory, disk, network                    2 each
    limit            a workload that has half a core; one core              6; 2
    unlearned        a workload that is never learned                       6
    input            a workload with one of its other inputs                6
    idle             nothing                                                3
    alone            a workload (`wild` where others take too much)         3
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, cycle, product

from tasks.workloads.record.params import Condition, RecordParams
from tasks.workloads.record.programs.program import Program

IDLE, LOADS = "idle", "load-"


@dataclass(frozen=True)
class Cell:
    """What runs under one condition; inputs that are empty are drawn."""

    condition: Condition
    workload: str
    input: str = ""
    beside: str = ""
    beside_input: str = ""
    limit_cores: float | None = None


def rounds_of_cells(params: RecordParams, programs: Mapping[str, Program]) -> Iterator[list[Cell]]:
    """The cells of each round, in order."""
    dice = random.Random(f"{params.seed} conditions")
    dealt = [(cycle(cells), n) for condition, cells, n in _conditions(programs, dice) if condition in params.conditions]
    for _ in range(params.rounds):
        placed = [((place + dice.random()) / n, next(cells)) for cells, n in dealt for place in range(n)]
        yield [_drawn(cell, programs, dice) for _, cell in sorted(placed, key=lambda one: one[0])]


def _conditions(programs: Mapping[str, Program], dice: random.Random) -> Iterator[tuple[Condition, list[Cell], int]]:
    """Each condition with its cells, in the order in which they are dealt out, and how many a round has."""
    by_role: dict[str, list[str]] = {}
    for name, program in programs.items():
        by_role.setdefault(program.role, []).append(name)
    known, unlearned = by_role.get("workload", []), by_role.get("unlearned", [])
    yield "pair", [Cell("pair", one, beside=other) for one, other in _apart(combinations(known, 2), dice)], 8
    mixed = _apart(product(known, unlearned), dice)
    yield "pair_unlearned", [Cell("pair_unlearned", one, beside=other) for one, other in mixed], 8
    for beside, level, n in (
        ("load-cpu", "60", 6), ("load-cpu", "30", 6), ("load-cpu", "10", 6),
        ("load-memory", "2g", 2), ("load-disk", "1", 2), ("load-network", "1g", 2),
    ):  # fmt: skip
        yield (
            "load",
            [replace(cell, beside=beside, beside_input=level) for cell in _alone("load", known, programs, dice)],
            n,
        )
    for cores, n in ((0.5, 6), (1.0, 2)):
        yield "limit", [replace(cell, limit_cores=cores) for cell in _alone("limit", known, programs, dice)], n
    yield "unlearned", _alone("unlearned", unlearned, programs, dice), 6
    yield "input", _alone("input", known, programs, dice, others=True), 6
    yield "idle", [Cell("idle", IDLE)], 3
    yield "alone", _alone("alone", known, programs, dice), 3


def _alone(
    condition: Condition,
    names: Iterable[str],
    programs: Mapping[str, Program],
    dice: random.Random,
    *,
    others: bool = False,
) -> list[Cell]:
    """Each workload with each input: all workloads once, in shuffled order, before one comes again."""
    cells = []
    left = {
        name: [one.name for one in (programs[name].other_inputs if others else programs[name].inputs)] for name in names
    }
    for inputs in left.values():
        dice.shuffle(inputs)
    while any(left.values()):
        order = [name for name, inputs in left.items() if inputs]
        dice.shuffle(order)
        cells += [Cell(condition, name, left[name].pop()) for name in order]
    return cells


def _apart(pairs: Iterable[tuple[str, str]], dice: random.Random) -> list[tuple[str, str]]:
    """Pairs in an order in which all names come about equally often in any prefix."""
    left, order, seen = list(pairs), [], dict[str, int]()
    dice.shuffle(left)
    while left:
        best = min(left, key=lambda pair: sorted((seen.get(name, 0) for name in pair), reverse=True))
        left.remove(best)
        order.append(best)
        for name in best:
            seen[name] = seen.get(name, 0) + 1
    return order


def _drawn(cell: Cell, programs: Mapping[str, Program], dice: random.Random) -> Cell:
    input = cell.input or dice.choice(programs[cell.workload].inputs).name
    if not cell.beside or cell.beside_input:
        return replace(cell, input=input)
    return replace(cell, input=input, beside_input=dice.choice(programs[cell.beside].inputs).name)
