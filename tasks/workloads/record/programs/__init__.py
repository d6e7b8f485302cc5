"""The workloads that can be recorded, by name."""

from collections.abc import Iterable

from tasks.workloads.record.programs.bayes import Bayes
from tasks.workloads.record.programs.cnn import Cnn
from tasks.workloads.record.programs.companions import COMPANIONS_LISTED
from tasks.workloads.record.programs.compilation import Compilation
from tasks.workloads.record.programs.compress import Compress
from tasks.workloads.record.programs.mariadb import MariaDb
from tasks.workloads.record.programs.memcached import Memcached
from tasks.workloads.record.programs.need import lacks
from tasks.workloads.record.programs.nginx import Nginx
from tasks.workloads.record.programs.postgresql import PostgreSql
from tasks.workloads.record.programs.program import Program
from tasks.workloads.record.programs.redis import Redis
from tasks.workloads.record.programs.wordpress_site import WordPress

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
