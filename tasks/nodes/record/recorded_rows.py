"""The executions of all parts of a recording, with what matters of how far doses moved them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput
from tasks.nodes.intake import FLAGGED
from tasks.nodes.landed import PART_SCHEMA
from tasks.nodes.preprocess.units import conversion_of
from tasks.nodes.record.ladder import WATCHED
from tasks.nodes.record.parts import part_paths

ALWAYS = ("execution_id", "node", "benchmark")
COLUMNS = [*ALWAYS, "template_hash", "status", "is_stressed", "dose", "dose_level", "metrics"]
EXPECTED = "parts of whorl's recorder (executions-0001.parquet)"


@dataclass(frozen=True)
class Recorded:
    """What matters here of one execution. template: its hash; level: 0 without a dose; value: of the watched metric in
    base units, None where it was not measured or is_flagged."""

    node: str
    benchmark: str
    template: str
    dose: str
    level: int
    is_stressed: bool
    is_flagged: bool
    value: float | None


def read_recorded(folder: Path) -> list[Recorded]:
    """The executions of all parts of a folder, each once. Raises BadInput where there is no part, a broken one, or
    a benchmark with several templates: their results are never compared."""
    paths = part_paths(folder)
    if not paths:
        raise BadInput(folder, "no parts of a recording", EXPECTED, "name the folder that holds them")
    found: dict[str, Recorded] = {}
    for path in paths:
        for row in _rows(path):
            found.setdefault(row["execution_id"], _recorded(row, is_flagged=bool(FLAGGED.search(path.name))))
    _check_templates(folder, found.values())
    return list(found.values())


def _check_templates(folder: Path, recorded: Iterable[Recorded]) -> None:
    templates: dict[str, set[str]] = {}
    for one in recorded:
        templates.setdefault(one.benchmark, set()).add(one.template)
    for benchmark, hashes in sorted(templates.items()):
        if len(hashes) > 1:
            told = f"{benchmark} has {len(hashes)} templates ({', '.join(sorted(one[:8] or 'none' for one in hashes))})"
            raise BadInput(folder, told, "one template a benchmark", "move the parts of other templates away")


def _rows(path: Path) -> list[dict[str, Any]]:
    ours = pa.schema([PART_SCHEMA.field(name) for name in COLUMNS])
    try:
        rows: list[dict[str, Any]] = pq.read_table(path, columns=COLUMNS).select(COLUMNS).cast(ours).to_pylist()
    except (pa.ArrowException, OSError, KeyError, ValueError) as problem:
        told = " ".join(str(problem).split())
        raise BadInput(path, f"cannot be read ({told})", EXPECTED, "move it away") from problem
    if lacking := [name for name in ALWAYS if any(row[name] is None for row in rows)]:
        raise BadInput(path, f"a row without {' and without '.join(lacking)}", EXPECTED, "move it away")
    return rows


def _recorded(row: dict[str, Any], *, is_flagged: bool) -> Recorded:
    value = None if is_flagged or row["status"] != "completed" else _watched(row["benchmark"], row["metrics"] or ())
    level, is_stressed = int(row["dose_level"] or 0), bool(row["is_stressed"])
    about = (row["node"], row["benchmark"], row["template_hash"] or "", row["dose"] or "")
    return Recorded(*about, level, is_stressed, is_flagged, value)


def _watched(benchmark: str, metrics: Iterable[dict[str, Any]]) -> float | None:
    for one in metrics:
        if one["metric"] == WATCHED.get(benchmark) and one["value"] is not None and math.isfinite(one["value"]):
            return float(one["value"]) * conversion_of(one["unit"] or "", benchmark).factor
    return None
