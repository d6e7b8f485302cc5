"""The plan of a campaign: which workload runs with which input, in which round, in which order."""

import hashlib
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

from tasks.errors import BadSetting
from tasks.workloads.record.params import RecordParams
from tasks.workloads.record.programs.program import Program

DIGEST_DIGITS = 16
AGAIN = ".again"
BETWEEN_RUNS_S = 2.0  # beyond the rest: servers stop, data is written back; measured, like the next, on two cores
PREPARE_S = 4.0  # the data of one workload, once a round, mean


@dataclass(frozen=True)
class PlannedRun:
    """One run. seed: of all that is random in it."""

    run_id: str
    round: str
    workload: str
    input: str
    seed: int

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
        text = "\n".join(repr(astuple(run)) for run in self.runs)
        return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]

    def duration_s(self, params: RecordParams) -> float:
        """About how long the campaign takes, repeated runs not counted."""
        run_s = params.samples * params.interval_s + params.pause_s + BETWEEN_RUNS_S
        prepared = sum(len({run.workload for run in one}) for one in self.rounds)
        return len(self.runs) * run_s + prepared * PREPARE_S


def chosen(programs: Mapping[str, Program], names: Sequence[str]) -> dict[str, Program]:
    """The programs of these names, or all. Raises BadSetting for an unknown one."""
    unknown = [name for name in names if name not in programs]
    if unknown:
        raise BadSetting(
            f"workloads.record.workloads: no workload {', '.join(unknown)}; expected some of {', '.join(programs)}"
        )
    return {name: programs[name] for name in programs if not names or name in names}


def make_plan(params: RecordParams, programs: Mapping[str, Program]) -> Plan:
    """Each workload with each input params.runs times, spread evenly over the rounds, shuffled within each."""
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
