"""What is known of the executions of a file from outside of it: folder and name, --label-from, a manifest.

An entry of a manifest belongs to the executions of its file that it does not contradict, by id, node, benchmark and
start; their other columns it fills where the file says nothing. Where a file says something, the file counts. Entries
that fit no execution are said."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import BadInput, quoted
from tasks.intake.cells import flag_of, time_of
from tasks.intake.files import MISSING, Chunk
from tasks.intake.labels import absolute, manifest, named_column, path_label, path_stem
from tasks.nodes.execution import EXECUTIONS_SCHEMA, framed, tabled
from tasks.nodes.params import ReadParams
from tasks.nodes.readers.vetting import FLAGS, TIMES, slug, template_hash

NONE = frozenset({*MISSING, "no", "false", "off"})
ENDINGS = (".gz", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".log", ".out", ".db", ".sqlite", ".sqlite3")
TEXTS = ("execution_id", "benchmark", "node", "machine_type", "dose", "template", "template_hash", "campaign", "region")
NUMBERS = ("duration_s", "dose_level")
LABELS = (*TEXTS, *TIMES, *FLAGS, *NUMBERS)
DOSES = ("dose", "dose_level")
START = ("node", "benchmark", "started_at")  # what a log is called after
EXPECTED = "the column path and some of " + ", ".join(LABELS)
HOW_TO_NAME = "name it: --label-from stem|parent, or a manifest with the columns path and node"
IDENTITY = ("execution_id", "node", "benchmark", "started_at")
DRAWN = "is_simulated"  # readers say false for what nobody says
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Manifest:
    """The entries of a manifest by the absolute path of their file, in its order. has_dose: some entry has a dose."""

    path: str = ""
    entries: Mapping[str, list[dict[str, str]]] = field(default_factory=dict)
    zone: str = "UTC"
    has_dose: bool = False

    def facts(self, path: str) -> dict[str, Any]:
        """What it says of the only execution of a file, in the types of nodes.executions; the last entry counts."""
        return (self.all_facts(path) or [{}])[-1]

    def all_facts(self, path: str) -> list[dict[str, Any]]:
        """What each of its entries says of the executions of a file, in its order."""
        converted = [_converted(self.path, path, entry, self.zone) for entry in self.entries.get(absolute(path), [])]
        for facts in converted if self.has_dose else ():  # a dose is what was really applied
            facts.setdefault("is_stressed", any(is_dose(facts.get(name)) for name in DOSES))
        return converted

    def shares_start(self, path: str) -> bool:
        """Whether another file has the same node, benchmark and start in it, so that these name no execution."""
        entries = self.entries.get(absolute(path), [])
        return bool(entries and entries[-1].get("started_at")) and self._starts[_start_of(entries)] > 1

    @cached_property
    def _starts(self) -> Counter[tuple[str, ...]]:
        return Counter(_start_of(entries) for entries in self.entries.values())

    def machine_types(self, path: str) -> tuple[dict[str, str], str]:
        """Of the nodes of a file: those that entries name, and the one of all others (empty: not told)."""
        named = [entry for entry in self.entries.get(absolute(path), []) if entry.get("machine_type")]
        by_node = {entry["node"]: entry["machine_type"] for entry in named if entry.get("node")}
        return by_node, next((entry["machine_type"] for entry in reversed(named) if not entry.get("node")), "")


def read_manifest(params: ReadParams) -> Manifest:
    """The manifest that was asked for, an empty one if none was. Raises BadInput for one that cannot be used."""
    if not params.manifest:
        return Manifest()
    rows = manifest(params.manifest, EXPECTED)
    entries: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        entries.setdefault(row["path"], []).append(row)
    has_dose = any(name in row for row in rows for name in DOSES)
    return Manifest(params.manifest, entries, params.time_zone, has_dose)


def node_of(path: str, params: ReadParams) -> str:
    """The node that --label-from makes of a path; empty where it does not.

    Raises BadSetting for another --label-from."""
    return path_label(absolute(path), params.label_from, ENDINGS) or ""


def label_column(params: ReadParams) -> str:
    """The column that --label-from names, or empty."""
    return named_column(params.label_from)


def stem_of(path: str) -> str:
    """The name of a file without its endings."""
    return path_stem(absolute(path), ENDINGS)


def short_names(path: str) -> list[str]:
    """What a file may be called, from short to long: its stem, folder/stem and so on, at last the whole path."""
    parts, stem = PurePosixPath(absolute(path)).parent.parts, stem_of(path)
    folders = [part for part in parts if part.strip("/")]
    tails = ["/".join([*folders[len(folders) - n :], stem]) for n in range(len(folders) + 1)]
    return [*tails, absolute(path)]


def names_apart(paths: Sequence[str]) -> list[str]:
    """Of each file the shortest of its names that no other file has; a file that stands there twice has one name."""
    names = {path: short_names(path) for path in paths}
    shortest = []
    for path in paths:
        others = {taken_name for other in paths if absolute(other) != absolute(path) for taken_name in names[other]}
        shortest.append(next((name for name in names[path] if name not in others), names[path][-1]))
    return shortest


def is_dose(text: object) -> bool:
    """Whether a dose names a stress: not for nothing, none, no, false, off, a dash, or any form of 0."""
    word = "" if text is None else str(text).strip().lower()
    if word in NONE:
        return False
    try:
        return float(word.removesuffix("%")) != 0
    except ValueError:
        return True


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
        yield replace(chunk, rows=_as_before(chunk.rows, rows))
    idle = [entry for entry, n in zip(entries, n_fitting, strict=True) if not n]
    if n_executions and idle:
        shown = "; ".join(_entry_text(entry) for entry in idle[:3])
        if len(idle) == len(entries):
            problem = f"what it says of {path} fits none of its {n_executions:,} executions ({quoted(shown)})"
            raise BadInput(manifest.path, problem, "node, benchmark and start as the file has them", "mend the lines")
        logger.warning("%s: %d entries fit no execution of %s: %s", manifest.path, len(idle), path, quoted(shown))


def _start_of(entries: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    return tuple(entries[-1].get(name, "") for name in START)


def _converted(manifest: str, path: str, entry: Mapping[str, str], zone: str) -> dict[str, Any]:
    facts: dict[str, Any] = {name: entry[name] for name in TEXTS if entry.get(name)}
    for name in (*TIMES, *FLAGS, *NUMBERS):
        if not (text := entry.get(name, "").strip()):
            continue
        expected = "a time in ISO 8601" if name in TIMES else "true or false" if name in FLAGS else "a number"
        try:
            value = time_of(text, zone) if name in TIMES else flag_of(text) if name in FLAGS else float(text)
            value = int(text) if name == "dose_level" else value
        except ValueError:
            value = None
        if value is None:
            raise BadInput(manifest, f"{name} {quoted(text)} of {path} cannot be read", expected, "mend the line")
        facts[name] = value
    if hashed := template_hash(facts.get("template"), facts.get("template_hash")):
        facts["template_hash"] = hashed
    return facts


def _fitting(rows: pa.Table, entry: Mapping[str, Any]) -> pa.ChunkedArray | pa.Array:
    """Which executions an entry does not contradict; (n,)."""
    fits: Any = pa.array([True] * len(rows))
    for name in IDENTITY:
        if name in entry:
            accepted = [entry[name], slug(entry[name])] if name == "benchmark" else [entry[name]]
            is_match = pc.is_in(rows[name], pa.array(accepted, rows[name].type))
            fits = pc.and_(fits, pc.or_(is_match, pc.is_null(rows[name])))
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


def _entry_text(entry: Mapping[str, Any]) -> str:
    shown = {name: entry[name] for name in IDENTITY if name in entry}
    return ", ".join(
        f"{name} {value.isoformat() if isinstance(value, datetime) else value}" for name, value in shown.items()
    )
