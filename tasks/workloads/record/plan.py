"""The plan of a campaign: which workload runs with which input, in which round, in which order."""

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

from tasks.errors import BadSetting
from tasks.workloads.record.conditions import LOADS, rounds_of_cells
from tasks.workloads.record.params import RecordParams
from tasks.workloads.record.programs.program import Program

DIGEST_DIGITS = 16
N_PLAIN = 5  # fields of a run without conditions
AGAIN = ".again"
BETWEEN_RUNS_S = 2.0  # beyond the rest: servers stop, data is written back; measured, like the next, on two cores
PREPARE_S = 4.0  # the data of one workload, once a round, mean


@dataclass(frozen=True)
class PlannedRun:
    """One run. seed: of all that is random in it; the rest says under what it runs, see `conditions`.

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
class Plan:
    """The runs of each round, in order."""

    rounds: tuple[tuple[PlannedRun, ...], ...]

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """All runs, in order."""
        return tuple(run for one in self.rounds for run in one)

    def digest(self) -> str:
        """A short hash of all that the plan says."""
        text = "\n".join(repr(astuple(run)[: None if run.condition else N_PLAIN]) for run in self.runs)
        return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]

    def duration_s(self, params: RecordParams) -> float:
        """About how long the campaign takes, repeated runs not counted."""
        run_s = params.samples * params.interval_s + params.pause_s + BETWEEN_RUNS_S
        prepared = sum(len({run.workload for run in one}) for one in self.rounds)
        return len(self.runs) * run_s + prepared * PREPARE_S


def chosen(programs: Mapping[str, Program], names: Sequence[str]) -> dict[str, Program]:
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

    With params.conditions: runs under those, see `conditions`."""
    if params.conditions:
        return Plan(tuple(condition_rounds(params, programs)))
    cases = [(program.name, input.name) for program in programs.values() for input in program.inputs]
    rounds, seed = [], 0
    for n in range(params.rounds):
        label, dice = f"round{n + 1}", random.Random(f"{params.seed} {n}")
        todo = [case for place, case in enumerate(cases) for _ in range(_share(params, n, place))]
        planned = []
        for place, (workload, input) in enumerate(_mixed(todo, dice)):
            seed += 1
            run_id = f"{label}-{place + 1:03d}-{workload}-{input}"
            planned.append(PlannedRun(run_id, label, workload, input, params.seed + seed))
        rounds.append(tuple(planned))
    return Plan(tuple(rounds))


def condition_rounds(params: RecordParams, programs: Mapping[str, Program]) -> Iterator[tuple[PlannedRun, ...]]:
    """The runs under params.conditions, in rounds."""
    seed = params.seed
    for n, cells in enumerate(rounds_of_cells(params, programs)):
        label = f"shared{n + 1}"
        runs = []
        for place, cell in enumerate(cells):
            seed += 2
            name = f"{label}-{place + 1:03d}-{cell.workload}-{cell.input}"
            if cell.beside:
                name += f".with.{cell.beside}-{cell.beside_input}"
            if cell.limit_cores is not None:
                name += f".at.{cell.limit_cores:g}"
            runs.append(
                PlannedRun(
                    name, label, cell.workload, cell.input, seed,
                    cell.condition, cell.beside, cell.beside_input, cell.limit_cores,
                )
            )  # fmt: skip
        yield tuple(runs)


def _share(params: RecordParams, round: int, case: int) -> int:
    """Runs of a case in a round; the rounds that get one more differ from case to case."""
    base, more = divmod(params.runs, params.rounds)
    return base + ((round + case) % params.rounds < more)


def _mixed(cases: Sequence[tuple[str, str]], dice: random.Random) -> list[tuple[str, str]]:
    """Shuffled, and the same workload never twice in a row as long as there is another way."""
    left, order = list(cases), []
    last = ""
    while left:
        counts = Counter(workload for workload, _ in left)
        most, n = counts.most_common(1)[0]
        others = [case for case in left if case[0] != last] or left
        if most != last and 2 * n > len(left):  # or it would be left over
            others = [case for case in left if case[0] == most]
        order.append(dice.choice(others))
        left.remove(order[-1])
        last = order[-1][0]
    return order
