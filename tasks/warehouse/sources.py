"""The sources that a word has rows of, and the one that is meant where none is named."""

from contextlib import suppress

from tasks.choices import checked_source
from tasks.errors import BadInput, NotFound, WhorlError
from tasks.warehouse.connection import Connection, fetch, require
from tasks.warehouse.place import Warehouse

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


def kinds_of(connection: Connection, table: str, source: str, *, where: str = "TRUE", fix: str = "") -> tuple[int, int]:
    """How many rows of a source are simulated and measured. table: such as jobs.runs; where: of the rows that count.

    Raises BadInput if some are simulated and some measured; fix: what to do then, where it is not the usual."""
    asked = KINDS.format(table=table)
    n_simulated, n_measured = connection.execute(f"{asked} AND {where}", {"source": source}).fetchone() or (0, 0)
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
