"""The workloads that can be recorded, by name."""

from collections.abc import Iterable

from tasks.workloads.record.programs.companions import COMPANIONS_LISTED
from tasks.workloads.record.programs.program import Program, lacks
from tasks.workloads.record.programs.stores import (
    Bayes,
    Cnn,
    Compilation,
    Compress,
    MariaDb,
    Memcached,
    PostgreSql,
    Redis,
)
from tasks.workloads.record.programs.web import Nginx, WordPress

_ALL: tuple[Program, ...] = (
    Redis(),
    MariaDb(),
    PostgreSql(),
    WordPress(),
    Bayes(),
    Cnn(),
    Memcached(),
    Nginx(),
    Compilation(),
    Compress(),
)
COMPANIONS: dict[str, Program] = {program.name: program for program in COMPANIONS_LISTED}
PROGRAMS: dict[str, Program] = {program.name: program for program in _ALL}


def missing_needs(programs: Iterable[Program]) -> list[str]:
    """One line for each thing that these workloads lack on this machine, with the package that has it."""
    return [f"{program.name}: {lack}" for program in programs for lack in lacks(program.needs)]
