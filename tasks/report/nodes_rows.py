"""Tables of pages about nodes: rows of cells, each a value with what is said below it. Light: no figures."""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.quantities import MISSING


@dataclass(frozen=True)
class Cell:
    """A value, and lines in small below it. is_marked: it stands out."""

    text: str
    notes: tuple[str, ...] = ()
    is_marked: bool = False

    @property
    def line(self) -> str:
        """The cell on one line, where there is nothing small."""
        return f"{self.text} ({'; '.join(self.notes)})" if self.notes else self.text


NOTHING = Cell(MISSING)


@dataclass(frozen=True)
class Row:
    """A name, what stands in small below it, and a cell a column."""

    name: str
    cells: tuple[Cell, ...]
    below: str = ""


@dataclass(frozen=True)
class Table:
    """first: what the names are. heads: of the columns. title, words: above the table. of_words: columns, from 0, that
    hold words and no numbers."""

    first: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    title: str = ""
    words: str = ""
    of_words: frozenset[int] = frozenset()

    @property
    def lines(self) -> list[list[str]]:
        """The rows as texts, their names first."""
        return [
            [f"{row.name}, {row.below}" if row.below else row.name, *(cell.line for cell in row.cells)]
            for row in self.rows
        ]


def plain_cells(values: Sequence[str]) -> tuple[Cell, ...]:
    """Values with nothing below them."""
    return tuple(Cell(value) for value in values)
