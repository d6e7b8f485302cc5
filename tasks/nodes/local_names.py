"""Names of nodes and executions that say nothing beyond their file: told apart by the name of the file."""

from collections.abc import Iterator, Sequence

import pandas as pd
import pyarrow as pa

from tasks.nodes.labels import short_names
from tasks.reading import Chunk
from tasks.warehouse.landing import Batch
from tasks.workloads.labels import absolute

NODES_OF = "nodes_of"  # option of a batch: what its names begin with
LOCAL = ("node", "execution_id")


def name_in_source(batches: Sequence[Batch], source: str, path: str, sha256: str) -> str:
    """What the names of a file begin with in a source; empty for the first file of a source.

    batches: that are landed, in their order. The same bytes, and the same path with other bytes (a later export), keep
    the name that they had. Another file gets the shortest end of its path that no other file of the source has."""
    known = [one for one in batches if one.origin.source == source]
    same = [one for one in known if one.origin.sha256 == sha256]
    same = same or [one for one in known if absolute(one.origin.path) == absolute(path)]
    if same:
        return str(same[-1].origin.options.get(NODES_OF, ""))
    if not known:
        return ""
    used = {name for one in known for name in short_names(one.origin.path)}
    names = short_names(path)
    return next((name for name in names if name not in used), names[-1])


def told_apart(chunks: Iterator[Chunk], name: str) -> Iterator[Chunk]:
    """The chunks with nodes and execution ids that begin with a name."""
    for chunk in chunks:
        tables = {table: _named(rows, name) for table, rows in chunk.tables.items()}
        yield Chunk(_named(chunk.rows, name), chunk.refused, tables)


def _named(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    told = {}
    for column in LOCAL:
        if column in rows:
            named = pa.array([f"{name}/{text}" for text in rows[column]], pa.string())
            told[column] = pd.arrays.ArrowExtensionArray(pa.chunked_array([named]))
    return rows.assign(**told) if told else rows
