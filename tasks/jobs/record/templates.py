"""Kinds of job: SQL templates, and the orders that workers get when a run of one is cut into vertices."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tasks.jobs.record.datasets import PARTS

FILE = Path(__file__).with_suffix(".yaml")
LINE_START = "\n" + 8 * " "  # within a statement: recordings know their plan by a hash over the text of its statements

Source = Literal["parquet", "csv", "table"]
Options = tuple[int, int] | tuple[str, ...]  # ends of whole numbers, both included; or texts to choose from


@dataclass(frozen=True)
class Template:
    """A kind of job.

    sql: what one vertex does, with the fields {input} (a relation over the vertex's own parts), {out} (a file of
    its own) and the template's parameters. merge: what the last vertex does, over {partials} (a relation over the
    results of the others); none where each vertex writes its own {out}, or where one vertex changes a database.
    is_exact: whether the parts may be shared out in any way without changing the result; windows that look from
    row to row do not see across the border between two vertices.
    typical_parts: parts of `data_set` that an everyday run reads. databases: read and locked shared;
    writes: the database that is locked alone and changed. memory_mb: limits that jobs may have; small ones spill.
    """

    name: str
    data_set: str
    typical_parts: int
    sql: str
    parameters: Mapping[str, Options] = field(default_factory=dict)
    source: Source = "parquet"
    databases: tuple[str, ...] = ()
    writes: str | None = None
    memory_mb: tuple[int, ...] = (512,)
    merge: str = ""
    is_exact: bool = True


@cache
def templates() -> tuple[Template, ...]:
    """The shipped templates in their order, with distinct names."""
    import yaml  # here, since workers need none

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(_template(fields) for fields in yaml.load(FILE.read_text(encoding="utf-8"), loader))


def _template(fields: dict[str, Any]) -> Template:
    parameters = {name: tuple(options) for name, options in fields.pop("parameters", {}).items()}
    texts = {key: fields.pop(key).replace("\n", LINE_START) for key in ("sql", "merge") if key in fields}
    lists = {key: tuple(fields.pop(key)) for key in ("databases", "memory_mb") if key in fields}
    return Template(**(fields | texts | lists | {"parameters": parameters}))


def draw(options: Options, rng: np.random.Generator) -> int | str:
    """One value of a parameter, each equally likely."""
    first, last = options[0], options[-1]
    if isinstance(first, int) and isinstance(last, int):
        return int(rng.integers(first, last + 1))
    return options[int(rng.integers(len(options)))]


def composite(sql: str, merge: str) -> str:
    """The merge over the vertices' query in place of {partials}; the query itself where nothing is merged.

    {input} and the parameters stay as they are, so that the caller puts in the whole input of the job.
    """
    return merge.replace("{partials}", f"({sql})") if merge else sql


@dataclass(frozen=True)
class Order:
    """One vertex to run, or one job to plan (`is_explain`).

    parts: first part of the data set and number of parts, wrapping around; none for a merge.
    partials: results of earlier vertices that it reads; result: the file that it writes, if any.
    """

    vertex_id: str
    sql: str
    data_set: str
    parts: tuple[int, int] | None
    source: Source
    databases: tuple[str, ...]
    writes: str | None = None
    partials: tuple[str, ...] = ()
    result: str | None = None
    threads: int = 1
    memory_mb: int = 256
    is_cold: bool = False
    is_explain: bool = False

    def part_numbers(self) -> list[int]:
        """The parts in reading order."""
        if self.parts is None:
            return []
        first, count = self.parts
        return [(first + step) % PARTS for step in range(count)]


@dataclass(frozen=True)
class Measured:
    """What a vertex saw. Times in seconds; bytes as bytes. buffer_bytes: the most that the engine held in buffers."""

    runtime_s: float
    lock_wait_s: float = 0.0
    query_s: float = 0.0
    cpu_s: float = 0.0
    temp_bytes: int = 0
    input_rows: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    disk_read_bytes: int = 0
    peak_memory_bytes: int = 0
    buffer_bytes: int = 0
    error: str = ""


@dataclass(frozen=True)
class Planned:
    """What the engine's planner says of a whole job before it runs."""

    signature: str | None = None
    operators: dict[str, int] = field(default_factory=dict)
    estimated_rows: float = 0.0
    estimated_cost: float = 0.0
    error: str = ""
