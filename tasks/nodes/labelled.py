"""What a manifest says of executions, put where their file says nothing.

An entry stands for the executions of its file that it does not contradict: those of its node, benchmark, start and id,
as far as it names them. What the file itself says of an execution counts; of two entries the later one."""

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import BadInput, quoted
from tasks.nodes.benchmark_names import slug
from tasks.nodes.columns import EXECUTIONS_SCHEMA
from tasks.nodes.labels import Manifest
from tasks.nodes.landed import framed, tabled
from tasks.reading import Chunk

IDENTITY = ("execution_id", "node", "benchmark", "started_at")
DRAWN = "is_simulated"  # readers say false for what nobody says
logger = logging.getLogger(__name__)


def labelled(chunks: Iterator[Chunk], path: str, manifest: Manifest) -> Iterator[Chunk]:
    """The chunks of a file with what the manifest says of it.

    Raises BadInput at the end if there are executions and no entry fits any of them; an entry that fits none beside
    others that do is logged."""
    entries = manifest.all_facts(path)
    n_executions, n_fitting = 0, [0] * len(entries)
    for chunk in chunks:
        if not entries or not len(chunk.rows):
            yield chunk
            continue
        rows = tabled(chunk.rows, EXECUTIONS_SCHEMA)
        for at in reversed(range(len(entries))):  # what is there stays: the last entry goes first
            fits = _fitting(rows, entries[at])
            n_fitting[at] += int(pc.sum(fits).as_py() or 0)
            rows = _filled(rows, fits, entries[at])
        n_executions += len(rows)
        yield Chunk(_as_before(chunk.rows, rows), chunk.refused, chunk.tables)
    idle = [entry for entry, n in zip(entries, n_fitting, strict=True) if not n]
    if n_executions and idle:
        told = "; ".join(_told(entry) for entry in idle[:3])
        if len(idle) == len(entries):
            problem = f"what it says of {path} fits none of its {n_executions:,} executions ({quoted(told)})"
            raise BadInput(manifest.path, problem, "node, benchmark and start as the file has them", "mend the lines")
        logger.warning("%s: %d entries fit no execution of %s: %s", manifest.path, len(idle), path, quoted(told))


def _fitting(rows: pa.Table, entry: Mapping[str, Any]) -> pa.ChunkedArray | pa.Array:
    """Which executions an entry does not contradict; (n,)."""
    fits: Any = pa.array([True] * len(rows))
    for name in IDENTITY:
        if name in entry:
            told = [entry[name], slug(entry[name])] if name == "benchmark" else [entry[name]]
            is_told = pc.is_in(rows[name], pa.array(told, rows[name].type))
            fits = pc.and_(fits, pc.or_(is_told, pc.is_null(rows[name])))
    return fits


def _filled(rows: pa.Table, fits: Any, entry: Mapping[str, Any]) -> pa.Table:
    """The rows with the facts of an entry where they fit and nothing is told."""
    for name, value in entry.items():
        column = rows[name]
        is_open = pc.is_null(column)
        if pa.types.is_string(column.type) and name != "dose":  # an empty dose says that there was none
            is_open = pc.or_(is_open, pc.fill_null(pc.equal(column, ""), False))
        if name == DRAWN:
            is_open = pc.or_(is_open, pc.invert(pc.fill_null(column, False)))
        given = pc.if_else(pc.and_(fits, is_open), pa.scalar(value, column.type), column)
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), given)
    return rows


def _as_before(before: pd.DataFrame, rows: pa.Table) -> pd.DataFrame:
    """The rows as a frame with all columns of a landed table, and whatever else the frame had."""
    frame = framed(rows)
    further = [name for name in before.columns if name not in frame.columns]
    return frame.assign(**{name: before[name].to_numpy() for name in further}) if further else frame


def _told(entry: Mapping[str, Any]) -> str:
    shown = {name: entry[name] for name in IDENTITY if name in entry}
    return ", ".join(f"{name} {one.isoformat() if isinstance(one, datetime) else one}" for name, one in shown.items())
