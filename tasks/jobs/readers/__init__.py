"""One reader for each job-log format, and which of them fits a file."""

from collections.abc import Iterator
from typing import Protocol

from tasks.intake.files import Chunk, read_head
from tasks.intake.limits import ReadLimits
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.airflow import AirflowReader
from tasks.jobs.readers.prefect_api import PrefectApiReader
from tasks.jobs.readers.slurm import SlurmReader
from tasks.jobs.readers.spark import SparkReader
from tasks.jobs.readers.spark_files import unpacked_head
from tasks.jobs.readers.swf import SwfReader
from tasks.jobs.readers.table import TableReader
from tasks.reader_choice import reader_for


class Reader(Protocol):
    """Reads one format. `version` counts changes that alter the rows: a newer one replaces a file's rows."""

    @property
    def name(self) -> str:
        """What --reader calls it."""

    @property
    def version(self) -> int:
        """From 1."""

    @property
    def title(self) -> str:
        """What it reads, in a few words."""

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of its files end, in lower case."""

    def sniff(self, head: bytes, path: str) -> bool:
        """Whether the first 64 KiB (unpacked) look like this format; without them, whether the path does."""

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """Chunks of at most about 100,000 rows. Raises BadInput for a file that is wrong as a whole."""


_ALL: tuple[Reader, ...] = (
    SwfReader(), SlurmReader(), SparkReader(), AirflowReader(), PrefectApiReader(), TableReader(),
)  # fmt: skip
READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}


def detect(path: str, limits: ReadLimits) -> Reader:
    """The reader that a file is for. Raises BadInput if none fits, or if the file cannot be opened."""
    return reader_for(path, _ALL, lambda: unpacked_head(path, limits) or read_head(path, limits), "job log")
