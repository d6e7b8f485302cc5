"""The Turing Change Point Dataset: series and what annotators marked in them.

Source: van den Burg and Williams 2020, https://github.com/alan-turing-institute/TCPD."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.errors import BadInput, NotFound


@dataclass(frozen=True)
class AnnotatedSeries:
    """One series: values (n, d), NaN where missing, and for each annotator the rows at which segments begin."""

    name: str
    values: NDArray[np.float64]
    annotations: tuple[tuple[int, ...], ...]


def read_annotated(folder: Path) -> list[AnnotatedSeries]:
    """The annotated series of a folder with annotations.json and series/*.json, by name; others are left out.

    Raises NotFound when there is no such file, BadInput when one is not as the data set's are."""
    marks = folder / "annotations.json"
    if not marks.is_file():
        raise NotFound(f"{marks}: no annotations of change points; expected the folder tcpd of the reference data")
    annotations = _json_of(marks)
    found = []
    for path in sorted((folder / "series").glob("*.json")):
        content = _json_of(path)
        try:
            name = str(content["name"])
            columns = [[np.nan if value is None else value for value in one["raw"]] for one in content["series"]]
            values = np.array(columns, dtype=np.float64).T
            by_annotator = annotations.get(name, {}).values()
            marked = tuple(tuple(sorted(int(row) for row in rows)) for rows in by_annotator)
        except (AttributeError, KeyError, TypeError, ValueError) as fault:
            raise BadInput(path, f"is no series of TCPD ({fault!r})", "name and series with raw values") from None
        if marked:
            found.append(AnnotatedSeries(name, values, marked))
    return found


def _json_of(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except ValueError as fault:
        raise BadInput(path, f"is no JSON ({fault})", "a file of TCPD") from None
    if not isinstance(content, dict):
        raise BadInput(path, "holds no JSON object", "a file of TCPD")
    return content
