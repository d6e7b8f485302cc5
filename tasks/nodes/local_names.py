"""Names of nodes and executions that say nothing beyond their file: told apart by the name of the file."""

from collections.abc import Collection, Iterator, Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput
from tasks.nodes.labels import short_names
from tasks.reading import Chunk
from tasks.warehouse.landing import Batch, local_file
from tasks.workloads.labels import absolute

NODES_OF = "nodes_of"  # option of a batch: what its names begin with
LOCAL = ("node", "execution_id")
TABLE = "executions"


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


def not_shared(
    chunks: Iterator[Chunk], path: str, folder: str, batches: Sequence[Batch], local: Collection[str]
) -> Iterator[Chunk]:
    """The chunks of a file whose names hold beyond it, as they are; none may be of a file whose names do not.

    batches: landed in this folder, of the source of the file. local: readers whose names say nothing beyond their file.
    Names that files of both kinds gave already stay one. Raises BadInput for a node or id that only the local have: it
    cannot begin with the file's name instead, since a later file calls the same one the same."""
    theirs = [one for one in batches if one.origin.reader in local]
    others = [one for one in batches if one.origin.reader not in local]
    taken = {column: _given(folder, theirs, column) for column in LOCAL}
    for chunk in chunks:
        for column in LOCAL if len(chunk.rows) else ():
            shared = taken[column].keys() & set(chunk.rows[column])
            if shared and (new := sorted(shared.difference(_given(folder, others, column)))):
                raise _clash(path, column, new, taken[column][new[0]])
        yield chunk


def _given(folder: str, batches: Sequence[Batch], column: str) -> dict[str, str]:
    """The names that batches gave, and the path of the last one that did."""
    found: dict[str, str] = {}
    for batch in batches:
        with local_file(folder, batch, TABLE) as file:
            names = pq.read_table(file, columns=[column])[column].unique().to_pylist()
        found |= dict.fromkeys(names, batch.origin.path)
    return found


def _clash(path: str, column: str, names: Sequence[str], owner: str) -> BadInput:
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    what = column.replace("_", " ")
    problem = f"{what} {names[0]!r}{more} is in this source already, of {owner}, whose names say nothing beyond it"
    fix = "read it into a source of its own (--source NAME), or both at once into a new one"
    return BadInput(path, problem, f"another {what}", fix)


def _named(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    told = {}
    for column in LOCAL:
        if column in rows:
            named = pa.array([f"{name}/{text}" for text in rows[column]], pa.string())
            told[column] = pd.arrays.ArrowExtensionArray(pa.chunked_array([named]))
    return rows.assign(**told) if told else rows
