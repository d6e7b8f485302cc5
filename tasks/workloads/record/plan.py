"""The plan of a campaign: which workload runs with which input, under which conditions, in which round and order.

Without conditions each workload runs alone, with its usual inputs. With them a round holds a fixed share of each
condition, spread evenly over its length, and the cases of a condition are dealt out in turn over the rounds: a
recording that stops early is balanced over conditions and workloads all the same.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from itertools import combinations, cycle, product
from operator import itemgetter
from typing import Any

from tasks.errors import BadSetting
from tasks.record.campaign import AGAIN, digest_of, mixed
from tasks.workloads.params import Condition, RecordParams
from tasks.workloads.record.counters import Unavailable
from tasks.workloads.record.programs.program import N_USUAL, Program
from tasks.workloads.telemetry import Telemetry

LOADS = "load-"  # begins the names of programs that only disturb
N_PLAIN = 5  # fields of a run without conditions
BETWEEN_RUNS_S = 2.0  # beyond the rest: servers stop, data is written back; measured, like the next, on two cores
PREPARE_S = 4.0  # the data of one workload, once a round, mean


@dataclass(frozen=True)
class PlannedRun:
    """One run. seed: of all that is random in it; the rest says under what it runs.

    beside: a workload or a load that runs at the same time, in a group of its own, with beside_input."""

    run_id: str
    round: str
    workload: str
    input: str
    seed: int
    condition: str = ""
    beside: str = ""
    beside_input: str = ""
    limit_cores: float | None = None

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of what runs."""
        return (self.workload, self.beside) if self.beside else (self.workload,)

    @property
    def recording(self) -> str:
        """What all runs of the same time share: round and place in it."""
        return "-".join(self.run_id.split("-")[:2])

    @property
    def load(self) -> str:
        """The kind of load beside it, empty where there is none."""
        return self.beside.removeprefix(LOADS) if self.beside.startswith(LOADS) else ""

    @property
    def load_level(self) -> float | None:
        """Share of each core that the load asks for; None where it asks for none."""
        return float(self.beside_input) / 100 if self.load == "cpu" else None

    @property
    def partner(self) -> str:
        """The workload beside it, empty where there is none."""
        return "" if self.load else self.beside

    def again(self, n: int) -> "PlannedRun":
        """The n-th repetition of this run, in a round of its own."""
        return PlannedRun(f"{self.run_id}{AGAIN}{n}", f"again{n}", self.workload, self.input, self.seed)


@dataclass(frozen=True)
class Outcome:
    """What became of a run. telemetry: none if it failed, two if a partner ran at the same time; facts: kept in the
    record of its file."""

    run: PlannedRun
    status: str
    telemetry: tuple[Telemetry, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    unavailable: tuple[Unavailable, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Plan:
    """The runs of each round, in order."""

    rounds: tuple[tuple[PlannedRun, ...], ...]

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """All runs, in order."""
        return tuple(run for round_runs in self.rounds for run in round_runs)

    def digest(self) -> str:
        """A short hash of all that the plan says."""
        return digest_of("\n".join(repr(astuple(run)[: None if run.condition else N_PLAIN]) for run in self.runs))

    def duration_s(self, params: RecordParams) -> float:
        """About how long the campaign takes, repeated runs not counted."""
        run_s = params.samples * params.interval_s + params.pause_s + BETWEEN_RUNS_S
        prepared = sum(len({run.workload for run in round_runs}) for round_runs in self.rounds)
        return len(self.runs) * run_s + prepared * PREPARE_S


def named_programs(programs: Mapping[str, Program], names: Sequence[str]) -> dict[str, Program]:
    """The programs of these names, or all. Raises BadSetting for an unknown one."""
    learned = [name for name in programs if programs[name].role == "workload"]
    unknown = [name for name in names if name not in learned]
    if unknown:
        raise BadSetting(
            f"workloads.record.workloads: no workload {', '.join(unknown)}; expected some of {', '.join(learned)}"
        )
    return {name: programs[name] for name in programs if not names or name in names or name not in learned}


def make_plan(params: RecordParams, programs: Mapping[str, Program]) -> Plan:
    """Each workload with each input params.runs times, spread evenly over the rounds, shuffled within each.

    With params.conditions: runs under those."""
    if params.conditions:
        return Plan(tuple(_condition_rounds(params, programs)))
    cases = [(name, input) for name, program in programs.items() for input in _usual(program)]
    rounds, seed = [], 0
    for n in range(params.rounds):
        label, dice = f"round{n + 1}", random.Random(f"{params.seed} {n}")
        todo = [case for place, case in enumerate(cases) for _ in range(_share(params, n, place))]
        planned = []
        for place, (workload, input) in enumerate(mixed(todo, itemgetter(0), dice)):
            seed += 1
            run_id = f"{label}-{place + 1:03d}-{workload}-{input}"
            planned.append(PlannedRun(run_id, label, workload, input, params.seed + seed))
        rounds.append(tuple(planned))
    return Plan(tuple(rounds))


def _usual(program: Program) -> list[str]:
    return list(program.inputs)[:N_USUAL]


def _share(params: RecordParams, round: int, case: int) -> int:
    """Runs of a case in a round; the rounds that get one more differ from case to case."""
    base, more = divmod(params.runs, params.rounds)
    return base + ((round + case) % params.rounds < more)


def _condition_rounds(params: RecordParams, programs: Mapping[str, Program]) -> Iterator[tuple[PlannedRun, ...]]:
    dice = random.Random(f"{params.seed} conditions")
    dealt = [(cycle(cases), n) for name, cases, n in _conditions(programs, dice) if name in params.conditions]
    seed = params.seed
    for n_round in range(params.rounds):
        label = f"shared{n_round + 1}"
        placed = [((place + dice.random()) / n, next(cases)) for cases, n in dealt for place in range(n)]
        runs = []
        for place, (_, case) in enumerate(sorted(placed, key=lambda case: case[0])):
            seed += 2
            run = _drawn(case, programs, dice)
            run_id = f"{label}-{place + 1:03d}-{run.workload}-{run.input}"
            run_id += f".with.{run.beside}-{run.beside_input}" if run.beside else ""
            run_id += f".at.{run.limit_cores:g}" if run.limit_cores is not None else ""
            runs.append(replace(run, run_id=run_id, round=label, seed=seed))
        yield tuple(runs)


def _conditions(
    programs: Mapping[str, Program], dice: random.Random
) -> Iterator[tuple[Condition, list[PlannedRun], int]]:
    """Each condition with its cases, in the order in which they are dealt out, and how many a round has."""
    by_role: dict[str, list[str]] = {}
    for name, program in programs.items():
        by_role.setdefault(program.role, []).append(name)
    known, unlearned = by_role.get("workload", []), by_role.get("unlearned", [])
    yield "pair", [_case("pair", workload, beside=other) for workload, other in _apart(combinations(known, 2), dice)], 8
    mixed = _apart(product(known, unlearned), dice)
    yield "pair_unlearned", [_case("pair_unlearned", workload, beside=other) for workload, other in mixed], 8
    for beside, level, n in (
        ("load-cpu", "60", 6), ("load-cpu", "30", 6), ("load-cpu", "10", 6),
        ("load-memory", "2g", 2), ("load-disk", "1", 2), ("load-network", "1g", 2),
    ):  # fmt: skip
        alone = _alone("load", known, programs, dice)
        yield "load", [replace(case, beside=beside, beside_input=level) for case in alone], n
    for cores, n in ((0.5, 6), (1.0, 2)):
        yield "limit", [replace(case, limit_cores=cores) for case in _alone("limit", known, programs, dice)], n
    yield "unlearned", _alone("unlearned", unlearned, programs, dice), 6
    yield "input", _alone("input", known, programs, dice, others=True), 6
    yield "idle", [_case("idle", name) for name in by_role.get("idle", [])], 3
    yield "alone", _alone("alone", known, programs, dice), 3


def _case(condition: Condition, workload: str, input: str = "", beside: str = "") -> PlannedRun:
    """A run without its place in the plan; inputs that are empty are drawn."""
    return PlannedRun("", "", workload, input, 0, condition, beside)


def _alone(
    condition: Condition,
    names: Iterable[str],
    programs: Mapping[str, Program],
    dice: random.Random,
    *,
    others: bool = False,
) -> list[PlannedRun]:
    """Each workload with each input: all workloads once, in shuffled order, before one comes again."""
    cases = []
    left = {name: list(programs[name].inputs)[N_USUAL:] if others else _usual(programs[name]) for name in names}
    for inputs in left.values():
        dice.shuffle(inputs)
    while any(left.values()):
        order = [name for name, inputs in left.items() if inputs]
        dice.shuffle(order)
        cases += [_case(condition, name, left[name].pop()) for name in order]
    return cases


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


def _drawn(case: PlannedRun, programs: Mapping[str, Program], dice: random.Random) -> PlannedRun:
    input = case.input or dice.choice(_usual(programs[case.workload]))
    if not case.beside or case.beside_input:
        return replace(case, input=input)
    return replace(case, input=input, beside_input=dice.choice(_usual(programs[case.beside])))
