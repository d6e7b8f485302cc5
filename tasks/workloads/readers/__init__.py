"""One reader for each format of telemetry, and which of them fits a file."""

from tasks.intake import readers
from tasks.intake.files import read_head
from tasks.params import ReadLimits
from tasks.workloads.params import ReadParams
from tasks.workloads.prepared import Reading
from tasks.workloads.readers.perf import PerfSpectReader, PerfStatReader
from tasks.workloads.readers.prometheus import PrometheusReader
from tasks.workloads.readers.sadf import SadfReader
from tasks.workloads.readers.vmstat import VmstatReader
from tasks.workloads.readers.wide import WideReader

# A file is held in memory as a whole, up to read.limits.max_bytes: a run is one thing and is not cut
Reader = readers.Reader[ReadParams, Reading]
_ALL: tuple[Reader, ...] = (
    PrometheusReader(), PerfStatReader(), PerfSpectReader(), SadfReader(), VmstatReader(), WideReader(),
)  # fmt: skip
READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}


def detect(path: str, limits: ReadLimits) -> Reader:
    """The reader that a file is for. Raises BadInput if none fits, or if the file cannot be opened."""
    return readers.reader_for(path, _ALL, lambda: read_head(path, limits), "telemetry")
