"""The workloads that can be recorded, by name, and what runs only under conditions."""

from tasks.workloads.record.programs.companions import COMPANIONS_LISTED
from tasks.workloads.record.programs.program import Program
from tasks.workloads.record.programs.stores import (
    BAYES,
    CNN,
    MEMCACHED_PROGRAM,
    REDIS_PROGRAM,
    Compilation,
    Compress,
    MariaDb,
    PostgreSql,
)
from tasks.workloads.record.programs.web import Nginx, WordPress

COMPANIONS: dict[str, Program] = {program.name: program for program in COMPANIONS_LISTED}
_LEARNED: tuple[Program, ...] = (
    REDIS_PROGRAM,
    MariaDb(),
    PostgreSql(),
    WordPress(),
    BAYES,
    CNN,
    MEMCACHED_PROGRAM,
    Nginx(),
    Compilation(),
    Compress(),
)
PROGRAMS: dict[str, Program] = {program.name: program for program in _LEARNED}
