"""One reader for each format of benchmark results, and which of them fits a file or folder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tasks.intake import readers
from tasks.intake.files import Chunk, input_faults, read_head
from tasks.intake.readers import Folder, unknown_format
from tasks.intake.tables import column_names
from tasks.nodes.params import ReadParams
from tasks.nodes.readers import azure, logs, long_table, perona, recorded, sparecores
from tasks.params import ReadLimits


@dataclass(frozen=True)
class Reader(readers.Reader[ReadParams, Iterator[Chunk]]):
    """Reads one format: executions with their place, metrics, telemetry and logs (Chunk.tables), and what was refused.

    Rows of a file are behind an execution (n_rows) or refused; single values that cannot be used are refused at the
    place of their execution. has_local_nodes: whether names of nodes say nothing beyond their file: the same name in
    two files are two machines."""

    has_local_nodes: bool = False


LONG = "tables of results, a row or a column a metric"
SPARECORES = "folders of SpareCores' inspector (<vendor>/<instance>/<benchmark>/meta.json)"
_ALL = (
    Reader("perona-sqlite", 2, "databases of Perona's operator", perona.ENDINGS, perona.sniff, perona.read, True),
    Reader("recorded", 1, "whorl's own recordings, executions-NNNN", (".parquet",), recorded.sniff, recorded.read),
    Reader("azure-vm-noise", 2, "tables of Azure's VM noise study", (".parquet", ".csv"), azure.sniff, azure.read),
    Reader("long", 7, LONG, long_table.ENDINGS, long_table.sniff, long_table.read),
    Reader("logs", 7, "raw logs of tools (fio, iperf3, sysbench, stress-ng, …)", logs.ENDINGS, logs.sniff, logs.read),
    Reader("sparecores", 2, SPARECORES, (), sparecores.sniff, sparecores.read),
)
READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}
OWN_COLUMNS = {"azure-vm-noise": azure.OWN_COLUMNS, "long": long_table.OWN_NAMES}


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
    raise unknown_format(path, head, _ALL, "results of benchmarks")
