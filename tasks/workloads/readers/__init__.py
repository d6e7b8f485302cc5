"""One reader for each format of telemetry, and which of them fits a file."""

from typing import Protocol

from tasks.intake.files import read_head
from tasks.intake.limits import ReadLimits
from tasks.reader_choice import reader_for
from tasks.workloads.readers.perf_stat import PerfStatReader
from tasks.workloads.readers.perfspect import PerfSpectReader
from tasks.workloads.readers.prometheus import PrometheusReader
from tasks.workloads.readers.sadf import SadfReader
from tasks.workloads.readers.wide import WideReader
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.sampled import Reading


class Reader(Protocol):
    """Reads one format. `version` counts changes that alter the runs: a newer one replaces a file's runs.

    A file is held in memory as a whole, up to read.limits.max_bytes: a run is one thing and is not cut."""

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

    def read(self, path: str, params: ReadParams) -> Reading:
        """The runs of a file and its refused rows. Raises BadInput for a file that is wrong as a whole."""


_ALL: tuple[Reader, ...] = (
    PrometheusReader(), PerfStatReader(), PerfSpectReader(), SadfReader(), WideReader(),
)  # fmt: skip
READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}


def detect(path: str, limits: ReadLimits) -> Reader:
    """The reader that a file is for. Raises BadInput if none fits, or if the file cannot be opened."""
    return reader_for(path, _ALL, lambda: read_head(path, limits), "telemetry")
