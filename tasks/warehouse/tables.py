"""The tables that landed files fill: their keys, and which of two rows with one key counts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LandedTable:
    """A table whose rows come from landing files.

    key: columns that name a row within its source. settled: SQL that is true for a row that is final; a final row
    is never replaced by one that is not (a finished run by an older export of it). columns: in landing order."""

    word: str
    name: str
    key: str
    settled: str
    label: str

    @property
    def qualified(self) -> str:
        """Schema and name."""
        return f"{self.word}.{self.name}"


RUNS = LandedTable("jobs", "runs", "run_id", "status NOT IN ('running', 'pending')", "run id")
MAIN_TABLES = {table.word: table for table in [RUNS]}
