"""Whose programs took the processor time of a group: the second kind of evidence on what runs in it, beside counters.

A program that learned runs of a workload ran, and other workloads did not, speaks for it as far as it took as much of
the time as there. An interpreter may run anything: it speaks for nothing, but against workloads that do not run it. A
program that no run of a workload ever ran speaks against it; one that was learned nowhere speaks against all. What
counters say is weighed with that in log odds, within bounds: a program may have another name than it had, and be asked
for something else."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.quantities import share
from tasks.workloads.identify.counters import IDLE
from tasks.workloads.telemetry import Telemetry

NUMBERED = re.compile(r"(?<=..)[-_.]?\d.*")  # python3.11 and php-fpm8.2 are python and php-fpm, cc1plus goes with cc1
STARTED_BY = "started by "  # of what has ended nobody knows which program it was: no evidence
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "busybox", "xargs", "env", "sudo", "timeout"})  # say nothing
INTERPRETERS = frozenset({"python", "java", "node", "perl", "ruby", "php", "php-fpm", "lua", "R", "dotnet", "beam.smp"})
LEAST_SHARE = 0.01  # of a run's time, of a program that is learned
SHOWN_SHARE = 0.1  # of a program that is named as a reason
PROVES, REFUTES = 8.0, 1.5  # log odds, where programs say it of all of the time
MOST_BY_COUNTERS = 4.0  # log odds: counters alone are no surer, whatever they say
LEAST_ODDS = 1e-12

Shares = Mapping[str, float]


def program_of(name: str) -> str:
    """The name of a program up to its first number."""
    return NUMBERED.sub("", name)


def shares_of_programs(processes: Shares) -> dict[str, float]:
    """Shares of the time by program, without that of shells and of what has ended."""
    shares: dict[str, float] = {}
    for name, of_time in processes.items():
        if not name.startswith(STARTED_BY) and (program := program_of(name)) not in SHELLS:
            shares[program] = shares.get(program, 0.0) + of_time
    return shares


@dataclass(frozen=True)
class ProgramEvidence:
    """What programs say of a workload. proves, refutes: shares of the time, 0 to 1, that speak for and against it."""

    proves: float = 0.0
    refutes: float = 0.0

    @property
    def log_odds(self) -> float:
        """Of the workload against something unknown."""
        return PROVES * self.proves - REFUTES * self.refutes


def learn_programs(runs: Sequence[Telemetry]) -> dict[str, dict[str, float]]:
    """Of each workload the largest share that a program had in a run of it; only of runs that say so of their group,
    not of a whole machine."""
    learned: dict[str, dict[str, float]] = {}
    for run in runs:
        has_group = any(counter.scope == "workload" for counter in run.counters)
        if has_group and run.workload not in (None, IDLE) and (shares := shares_of_programs(run.processes)):
            largest = learned.setdefault(str(run.workload), {})
            for program, of_time in shares.items():
                if of_time >= LEAST_SHARE:
                    largest[program] = max(of_time, largest.get(program, 0.0))
    return learned


def evidence_of(processes: Shares, learned: Mapping[str, Shares]) -> dict[str, ProgramEvidence]:
    """What the programs of a group say of each workload whose programs are known; nothing where they are not."""
    shares, evidence = shares_of_programs(processes), {}
    for workload, theirs in learned.items() if shares else ():
        common = {program: min(of_time, theirs[program]) for program, of_time in shares.items() if program in theirs}
        proves = sum(
            of_time * theirs[program] / sum(of_workload.get(program, 0.0) for of_workload in learned.values())
            for program, of_time in common.items()
            if program not in INTERPRETERS
        )
        evidence[workload] = ProgramEvidence(proves, sum(shares.values()) - sum(common.values()))
    return evidence


def weighed(unknown: float, limit: float, evidence: ProgramEvidence) -> float:
    """The probability of something unknown by counters and programs; even odds are where it is said.

    unknown: by counters alone, from limit on."""
    odds = [np.log(max(p, LEAST_ODDS) / max(1 - p, LEAST_ODDS)) for p in (unknown, limit)]
    by_counters = np.clip(odds[0] - odds[1], -MOST_BY_COUNTERS, MOST_BY_COUNTERS)
    return float(1 / (1 + np.exp(evidence.log_odds - by_counters)))


def reasons_of(processes: Shares, learned: Mapping[str, Shares]) -> tuple[str, ...]:
    """A line for each program that took much of the time: which workloads run it; none where no programs are known."""
    lines = []
    for name, of_time in processes.items() if learned else ():
        program = program_of(name)
        if of_time >= SHOWN_SHARE and program not in SHELLS and not name.startswith(STARTED_BY):
            users = sorted(workload for workload, theirs in learned.items() if program in theirs)
            use = f", as in {', '.join(users)}" if users else ": no learned run tells of it"
            anything = ", and may run anything" if program in INTERPRETERS else ""
            lines.append(f"{name} took {share(of_time)} of its processor time{use}{anything}")
    return tuple(lines)
