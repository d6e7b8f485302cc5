"""What is known of the executions of a file from outside of it: folder and name, --label-from, a manifest."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from tasks.errors import BadInput
from tasks.nodes.cells import flag_of
from tasks.nodes.dose_words import is_dose
from tasks.nodes.reading_params import ReadParams
from tasks.nodes.template_hashes import template_hash
from tasks.path_labels import named_column, path_label, path_stem
from tasks.times import time_of
from tasks.workloads import labels as telemetry_labels
from tasks.workloads.labels import absolute

ENDINGS = (".gz", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".log", ".out", ".db", ".sqlite", ".sqlite3")
TEXTS = ("execution_id", "benchmark", "node", "machine_type", "dose", "template", "template_hash", "campaign", "region")
TIMES = ("started_at", "ended_at")
FLAGS = ("is_stressed", "stress_wanted", "is_contaminated", "is_emulated", "is_simulated")
NUMBERS = ("duration_s", "dose_level")
LABELS = (*TEXTS, *TIMES, *FLAGS, *NUMBERS)
DOSES = ("dose", "dose_level")
START = ("node", "benchmark", "started_at")  # what a log is called after
EXPECTED = "the column path and some of " + ", ".join(LABELS)
HOW_TO_NAME = "name it: --label-from stem|parent, or a manifest with the columns path and node"


@dataclass(frozen=True)
class Manifest:
    """The entries of a manifest by the absolute path of their file, in its order. has_dose: some entry has a dose."""

    path: str = ""
    entries: Mapping[str, list[dict[str, str]]] = field(default_factory=dict)
    zone: str = "UTC"
    has_dose: bool = False

    def facts(self, path: str) -> dict[str, Any]:
        """What it says of the only execution of a file, in the types of nodes.executions; the last entry counts."""
        told = self.all_facts(path)
        return told[-1] if told else {}

    def all_facts(self, path: str) -> list[dict[str, Any]]:
        """What each of its entries says of the executions of a file, in its order."""
        return [self._facts(path, entry) for entry in self.entries.get(absolute(path), [])]

    def _facts(self, path: str, entry: Mapping[str, str]) -> dict[str, Any]:
        facts = _converted(self.path, path, entry, self.zone)
        if self.has_dose and "is_stressed" not in facts:  # a dose is what was really applied
            facts["is_stressed"] = any(is_dose(facts.get(name)) for name in DOSES)
        return facts

    def shares_start(self, path: str) -> bool:
        """Whether another file has the same node, benchmark and start in it, so that these name no execution."""
        own = self.entries.get(absolute(path), [])
        return bool(own and own[-1].get("started_at")) and self._starts[_start_of(own)] > 1

    @cached_property
    def _starts(self) -> Counter[tuple[str, ...]]:
        return Counter(_start_of(own) for own in self.entries.values())

    def machine_types(self, path: str) -> tuple[dict[str, str], str]:
        """Of the nodes of a file: those that entries name, and the one of all others (empty: not told)."""
        told = [one for one in self.entries.get(absolute(path), []) if one.get("machine_type")]
        by_node = {one["node"]: one["machine_type"] for one in told if one.get("node")}
        return by_node, next((one["machine_type"] for one in reversed(told) if not one.get("node")), "")


def read_manifest(params: ReadParams) -> Manifest:
    """The manifest that was asked for, an empty one if none was. Raises BadInput for one that cannot be used."""
    if not params.manifest:
        return Manifest()
    try:
        found = telemetry_labels.manifest(params.manifest)
    except BadInput as error:
        raise BadInput(error.where, error.problem, EXPECTED, error.fix) from error
    entries: dict[str, list[dict[str, str]]] = {}
    for one in found:
        entries.setdefault(one["path"], []).append(one)
    has_dose = any(name in one for one in found for name in DOSES)
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
    found = []
    for path in paths:
        others = {one for other in paths if absolute(other) != absolute(path) for one in names[other]}
        found.append(next((name for name in names[path] if name not in others), names[path][-1]))
    return found


def _start_of(entries: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    return tuple(entries[-1].get(name, "") for name in START)


def _converted(manifest: str, path: str, entry: Mapping[str, str], zone: str) -> dict[str, Any]:
    facts: dict[str, Any] = {name: entry[name] for name in TEXTS if entry.get(name)}
    for name in (*TIMES, *FLAGS, *NUMBERS):
        if not (text := entry.get(name, "").strip()):
            continue
        value = _value(name, text, zone)
        if value is None:
            expected = "a time in ISO 8601" if name in TIMES else "true or false" if name in FLAGS else "a number"
            raise BadInput(manifest, f"{name} {text!r} of {path} cannot be read", expected, "mend the line")
        facts[name] = value
    if hashed := template_hash(facts.get("template"), facts.get("template_hash")):
        facts["template_hash"] = hashed
    return facts


def _value(name: str, text: str, zone: str) -> datetime | bool | float | None:
    if name in TIMES:
        return time_of(text, zone)
    if name in FLAGS:
        return flag_of(text)
    try:
        return int(text) if name == "dose_level" else float(text)
    except ValueError:
        return None
