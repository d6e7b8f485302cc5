"""One reader for each job-log format, and which of them fits a file."""

from collections.abc import Iterator

from tasks.intake import readers
from tasks.intake.files import Chunk, read_head
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.accounting import GridEngineReader, PbsReader
from tasks.jobs.readers.airflow import AirflowReader
from tasks.jobs.readers.prefect_api import PrefectApiReader
from tasks.jobs.readers.slurm import SlurmReader
from tasks.jobs.readers.spark import SparkReader, unpacked_head
from tasks.jobs.readers.swf import SwfReader
from tasks.jobs.readers.table import TableReader
from tasks.params import ReadLimits

Reader = readers.Reader[ReadParams, Iterator[Chunk]]  # chunks of at most about 100,000 rows
_ALL: tuple[Reader, ...] = (
    SwfReader(), SlurmReader(), PbsReader(), GridEngineReader(), SparkReader(), AirflowReader(), PrefectApiReader(),
    TableReader(),
)  # fmt: skip
READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}


def detect(path: str, limits: ReadLimits) -> Reader:
    """The reader that a file is for. Raises BadInput if none fits, or if the file cannot be opened."""
    return readers.reader_for(path, _ALL, lambda: unpacked_head(path, limits) or read_head(path, limits), "job log")
