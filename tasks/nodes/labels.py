"""What is known of the executions of a file from outside of it: folder and name, --label-from, a manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from tasks.errors import BadInput, BadSetting
from tasks.nodes.cells import flag_of, time_of
from tasks.nodes.reading_params import ReadParams
from tasks.workloads import labels as telemetry_labels
from tasks.workloads.labels import absolute

COLUMN = "column:"
ENDINGS = (".gz", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".log", ".out", ".db", ".sqlite", ".sqlite3")
TEXTS = ("execution_id", "benchmark", "node", "machine_type", "dose", "template", "template_hash", "campaign", "region")
TIMES = ("started_at", "ended_at")
FLAGS = ("is_stressed", "stress_wanted", "is_contaminated", "is_emulated", "is_simulated")
NUMBERS = ("duration_s", "dose_level")
LABELS = (*TEXTS, *TIMES, *FLAGS, *NUMBERS)
EXPECTED = "the column path and some of " + ", ".join(LABELS)
HOW_TO_NAME = "name it: --label-from stem|parent, or a manifest with the columns path and node"


@dataclass(frozen=True)
class Manifest:
    """The entries of a manifest by the absolute path of their file, in its order."""

    path: str = ""
    entries: Mapping[str, list[dict[str, str]]] = field(default_factory=dict)
    zone: str = "UTC"
    has_dose: bool = False

    def facts(self, path: str) -> dict[str, Any]:
        """What it says of the only execution of a file, in the types of nodes.executions; the last entry counts."""
        told = self.entries.get(absolute(path), [])
        if not told:
            return {}
        facts = _converted(self.path, path, told[-1], self.zone)
        if self.has_dose and "is_stressed" not in facts:  # a dose is what was really applied
            facts["is_stressed"] = bool(facts.get("dose"))
        return facts

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
    return Manifest(params.manifest, entries, params.time_zone, any("dose" in one for one in found))


def node_of(path: str, params: ReadParams) -> str:
    """The node that --label-from makes of a path; empty where it does not.

    Raises BadSetting for another --label-from."""
    if params.label_from == "stem":
        return stem_of(path)
    if params.label_from == "parent":
        return _parts(path).parent.name
    if params.label_from and not label_column(params):
        raise BadSetting(f"label_from {params.label_from!r}: expected stem, parent or column:NAME; mend --label-from")
    return ""


def label_column(params: ReadParams) -> str:
    """The column that --label-from names, or empty."""
    return params.label_from.removeprefix(COLUMN) if params.label_from.startswith(COLUMN) else ""


def stem_of(path: str) -> str:
    """The name of a file without its endings."""
    stem = _parts(path).name
    while stem.lower().endswith(ENDINGS) and stem.rpartition(".")[0]:
        stem = stem.rpartition(".")[0]
    return stem


def _parts(path: str) -> PurePosixPath:
    return PurePosixPath(absolute(path))


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
