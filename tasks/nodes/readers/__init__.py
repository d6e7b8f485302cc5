"""One reader for each format of benchmark results, and which of them fits a file or folder."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from tasks.errors import BadInput
from tasks.nodes.params import ReadParams
from tasks.nodes.readers.azure import OWN_COLUMNS as AZURE_COLUMNS
from tasks.nodes.readers.azure import AzureReader
from tasks.nodes.readers.files import Folder, column_names
from tasks.nodes.readers.logs import LogsReader
from tasks.nodes.readers.long_table import OWN_NAMES as LONG_COLUMNS
from tasks.nodes.readers.long_table import LongReader
from tasks.nodes.readers.perona import PeronaReader
from tasks.nodes.readers.recorded import RecordedReader
from tasks.nodes.readers.sparecores import SpareCoresReader
from tasks.read_limits import ReadLimits
from tasks.reading import Chunk, input_faults, read_head

HEAD_SHOWN = 40


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
        """How names of its files end, in lower case; none for a format of folders."""

    @property
    def has_local_nodes(self) -> bool:
        """Whether names of nodes say nothing beyond their file: the same name in two files are two machines."""

    def sniff(self, head: bytes, path: str) -> bool:
        """Whether the first 64 KiB (unpacked) look like this format; without them, whether the path does."""

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """Executions with their place, metrics, telemetry and logs (Chunk.tables), and what was refused.

        Rows of the file are either behind an execution (n_rows) or refused; single values that cannot be used are
        refused at the place of their execution. Raises BadInput for a file that is wrong as a whole."""


_ALL: tuple[Reader, ...] = (
    PeronaReader(), RecordedReader(), AzureReader(), LongReader(), LogsReader(), SpareCoresReader(),
)  # fmt: skip
READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}
OWN_COLUMNS = {"azure-vm-noise": AZURE_COLUMNS, "long": LONG_COLUMNS}


def detect(path: str, limits: ReadLimits, renamed: Mapping[str, str] | None = None) -> Reader:
    """The reader that a path is for: a folder by what stands in it, a file by its content, else a table by its ending.

    renamed: columns of tables, our names to theirs: a table with a column of theirs has ours. Raises BadInput if none
    fits, or if the file cannot be opened."""
    with input_faults(path):
        if Folder(path).is_folder:
            return next((reader for reader in _ALL if reader.sniff(b"", path)), READERS["logs"])
        head = read_head(path, limits)
        for reader in _ALL:
            if reader.sniff(head, path):
                return reader
        names = set(column_names(head, path))
    names |= {ours for ours, theirs in (renamed or {}).items() if theirs in names}
    for reader in (READERS["azure-vm-noise"], READERS["long"]):
        if names >= OWN_COLUMNS[reader.name]:
            return reader
    if path.lower().endswith(READERS["long"].endings):
        return READERS["long"]  # it says what the table lacks
    shown = head[:HEAD_SHOWN].decode("utf-8", "replace")
    raise BadInput(
        path,
        f"no known results of benchmarks (it begins with {shown!r})",
        "; ".join(reader.title for reader in _ALL),
        f"name the reader: --reader {'|'.join(READERS)}",
    )
