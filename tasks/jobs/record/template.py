"""A template: one SQL statement with its data set, its parameters and what jobs made of it may look like."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Source = Literal["parquet", "csv", "table"]
Value = int | str


@dataclass(frozen=True)
class Span:
    """A whole number between `low` and `high`, both included."""

    low: int
    high: int

    def draw(self, rng: np.random.Generator) -> Value:
        """One value, each equally likely."""
        return int(rng.integers(self.low, self.high + 1))


@dataclass(frozen=True)
class Choice:
    """One of a few texts."""

    texts: tuple[str, ...]

    def draw(self, rng: np.random.Generator) -> Value:
        """One text, each equally likely."""
        return self.texts[int(rng.integers(len(self.texts)))]


Parameters = Mapping[str, Span | Choice]


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
    parameters: Parameters = field(default_factory=dict)
    source: Source = "parquet"
    databases: tuple[str, ...] = ()
    writes: str | None = None
    memory_mb: tuple[int, ...] = (512,)
    merge: str = ""
    is_exact: bool = True
