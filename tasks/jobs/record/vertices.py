"""How a job is cut into vertices: shares of its input, and a last one that merges their results."""

from dataclasses import dataclass
from typing import Literal

from tasks.jobs.record.template import Template

Stage = Literal["extract", "merge"]


@dataclass(frozen=True)
class Vertex:
    """One process of a job. parts: first part of the input and number of parts; none for the merge."""

    number: int
    stage: Stage
    parts: tuple[int, int] | None


def cut(template: Template, parts: tuple[int, int], parts_per_vertex: int, *, most: int) -> list[Vertex]:
    """The vertices of a run, in order: at most `most` that read, as equal as whole parts allow, then the merge.

    A template that writes a database has one vertex, since one process at a time may write."""
    first, count = parts
    n_vertices = 1 if template.writes else min(most, -(-count // parts_per_vertex))
    least, more = divmod(count, n_vertices)
    made, start = [], first
    for number in range(n_vertices):
        size = least + (number < more)
        made.append(Vertex(number, "extract", (start, size)))
        start += size
    return [*made, Vertex(n_vertices, "merge", None)] if template.merge else made
