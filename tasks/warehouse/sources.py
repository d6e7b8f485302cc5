"""The sources of a word: which there are, the version of the data of each, and rows that hold an answer about one.

Answers are written as a whole in the place of those before, with what they rest on, so that they can be made again."""

import functools
import hashlib
import json
import math
import subprocess
import uuid
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.choices import checked_source
from tasks.errors import BadInput, NotFound, WhorlError, quoted
from tasks.warehouse.connection import Connection, fetch, require, transaction, writing
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SOURCES = "SELECT DISTINCT source FROM ops.files WHERE word = $word ORDER BY source"
KINDS = "SELECT count(*) FILTER (is_simulated), count(*) FILTER (NOT is_simulated) FROM {table} WHERE source = $source"
NOTHING_YET = {
    "jobs": "no job runs yet; read some with 'whorl jobs ingest PATH'",
    "workloads": "no telemetry yet; read some with 'whorl workloads ingest PATH'",
    "nodes": "no executions of benchmarks yet; read some with 'whorl nodes ingest PATH'",
}


def known_sources(warehouse: Warehouse, word: str) -> list[str]:
    """The sources that the word has rows of, by name; none without a warehouse, or while it cannot be read."""
    with suppress(WhorlError):
        return [str(name) for name in fetch(warehouse, SOURCES, {"word": word})["source"]]
    return []


def source_of(warehouse: Warehouse, word: str, named: str | None = None) -> str:
    """The named source, or the only one that the word has rows of.

    Raises BadSetting for what can be no name, NoWarehouse, NotFound for no source, or several to choose from."""
    if named is not None:
        return checked_source(named)
    require(warehouse, word)
    names = [str(name) for name in fetch(warehouse, SOURCES, {"word": word})["source"]]
    return only(names, f"{warehouse.file}: {NOTHING_YET[word]}")


def require_sources(warehouse: Warehouse, words: Sequence[str], names: Iterable[str]) -> None:
    """Raise NotFound for a name under which none of the words has rows, with those that there are."""
    if strange := sorted(set(names) - {source for word in words for source in known_sources(warehouse, word)}):
        there = quoted(sorted({source for word in NOTHING_YET for source in known_sources(warehouse, word)}))
        raise NotFound(
            f"source {quoted(strange)}: no rows of {', '.join(words)}; there are: {there or 'none'}; "
            f"fill one with 'whorl {words[0]} ingest PATH'"
        )


def kinds_of(connection: Connection, table: str, source: str, *, where: str = "TRUE", fix: str = "") -> tuple[int, int]:
    """How many rows of a source are simulated and measured. table: such as jobs.runs; where: of the rows that count.

    Raises BadInput if some are simulated and some measured; fix: what to do then, where it is not the usual."""
    query = KINDS.format(table=table)
    n_simulated, n_measured = connection.execute(f"{query} AND {where}", {"source": source}).fetchone() or (0, 0)
    if n_simulated and n_measured:
        rows = table.partition(".")[2]
        problem = f"{n_simulated:,} simulated {rows} stand among {n_measured:,} measured ones"
        fix = fix or f"ingest the simulated {rows} under a source of their own"
        raise BadInput(f"source {source!r}", problem, "one kind only, so that no figure mixes them", fix)
    return n_simulated, n_measured


def only(names: list[str], none: str) -> str:
    """The only source among the names. Raises NotFound: `none` if there is no name, else with those to choose from."""
    if not names:
        raise NotFound(none)
    if len(names) > 1:
        several = f"there are {len(names)} sources: {', '.join(names)}"
        raise NotFound(f"{several}; choose one with --source, or in the field source of a form")
    return names[0]


VERSION_CHARS = 12
ROOT = Path(__file__).parents[2]
GIT_WAIT_S = 5
CODE_SUFFIXES = {".py", ".sql"}


def data_version(connection: Connection, word: str, source: str) -> str:
    """Hash over the files of a source in their order: the same files read in the same way give the same version; "" for
    none, such as of a run of all sources."""
    row = connection.execute(
        """SELECT left(sha256(string_agg(batch_id, ',' ORDER BY ordered_at, batch_id)), $n_chars)
        FROM ops.files WHERE word = $word AND source = $source HAVING count(*) > 0""",
        {"word": word, "source": source, "n_chars": VERSION_CHARS},
    ).fetchone()
    return str(row[0]) if row else ""


@functools.cache
def code_version() -> str:
    """Version of whorl and, in a checkout, the commit: `0.1.0+1a2b3c4d5e6f`, as this process found it first."""
    try:
        version = metadata.version("whorl")
    except metadata.PackageNotFoundError:
        version = "0"  # run from a checkout that is not installed
    command = ["git", "-C", str(ROOT), "rev-parse", f"--short={VERSION_CHARS}", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_WAIT_S).stdout
    except (OSError, subprocess.SubprocessError):
        return version
    return f"{version}+{commit.strip()}"


def contents_hash(*paths: Path, suffixes: Container[str] | None = None) -> str:
    """SHA-256 over names and contents of files and of all below folders, those with these suffixes; order counts.

    A path that is missing counts as an empty folder. Raises OSError for a file that cannot be read."""
    digest = hashlib.sha256()
    for path in paths:
        below = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in below:
            if file.is_file() and (suffixes is None or file.suffix in suffixes):
                digest.update(file.relative_to(path).as_posix().encode() + b"\0")
                digest.update(hashlib.sha256(file.read_bytes()).digest())
        digest.update(b"\0\0")
    return digest.hexdigest()


def key_of(*rests_on: object) -> str:
    """A key of what an answer rests on, this code included: the same key, the same answer."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{rests_on}{code_version()}").hex


def now() -> datetime:
    """UTC, without a time zone, as tables have times."""
    return datetime.now(UTC).replace(tzinfo=None)


def read_row(warehouse: Warehouse, table: str, source: str) -> dict[str, Any] | None:
    """The row of a source in a table (`word.name`) that has one a source; None where there is none."""
    rows = fetch(warehouse, f"SELECT * FROM {table} WHERE source = $source", {"source": source})
    return {str(key): value for key, value in rows.iloc[0].items()} if len(rows) else None


def replace_rows(
    warehouse: Warehouse,
    word: str,
    about: Mapping[str, Any],
    frames: "Mapping[str, pd.DataFrame]",
    within: Sequence[str] = ("source",),
    unless: str = "",
) -> bool:
    """Put rows into tables of a word in the place of those before, all tables or none; returns whether it did.

    frames: by table. about: columns of all rows, beside their own; rows that have the same of `within` are replaced.
    unless: SQL of what may stand in the first table by now, written by another process, that must stay."""
    same, of = " AND ".join(f"{name} = ${name}" for name in within), {name: about[name] for name in within}
    with writing(warehouse) as connection, transaction(connection):
        first = f"SELECT 1 FROM {word}.{next(iter(frames))} WHERE {same} AND ({unless})"
        if unless and connection.execute(first, of).fetchone():
            return False
        for name, frame in frames.items():
            connection.execute(f"DELETE FROM {word}.{name} WHERE {same}", of).fetchall()
            insert_rows(connection, f"{word}.{name}", frame, about)
    return True


def insert_row(connection: Connection, table: str, row: Mapping[str, Any]) -> None:
    """Append one row, its values by column."""
    values = ", ".join(f"${name} AS {name}" for name in row)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT {values}", dict(row))


def json_of(values: Mapping[str, Any]) -> str:
    """JSON of figures or parameters, with null for what is not a finite number, which JSON does not know."""
    return json.dumps(_finite(values), sort_keys=True, default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def insert_rows(connection: Connection, table: str, rows: "pd.DataFrame | pa.Table", about: Mapping[str, Any]) -> None:
    """Append rows to a table, each with the columns of `about` beside its own; none is nothing to do.

    A machine_type of which nobody knows anything ("") becomes NULL."""
    if not len(rows):
        return
    import pandas as pd
    import pyarrow as pa

    if isinstance(rows, pd.DataFrame):
        if "machine_type" in rows:
            rows = rows.assign(machine_type=rows["machine_type"].replace("", None))
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    connection.register("new_rows", rows)
    columns = ", ".join(f"${name} AS {name}" for name in about)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT {columns}, * FROM new_rows", dict(about)).fetchall()
    connection.unregister("new_rows")
