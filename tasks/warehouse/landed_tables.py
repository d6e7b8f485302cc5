"""The tables that landed files fill: their keys, and which of two rows with one key counts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LandedTable:
    """A table whose rows come from landing files.

    key: columns that name a row within its source. settled: SQL that is true for a row that is final; a final row
    is never replaced by one that is not (a finished run by an older export of it). columns: in landing order.
    n_rows: SQL for the number of rows of the file that a row was made of. parts: further tables of the word whose rows
    belong to a row of this one (key and place are the same) and come and go with it. has_machines: its column `node`
    names machines, which ops.machines then lists. refuses_values: readers list single values of landed rows among what
    they refuse, at the place of their row; they are in ops.quarantine, and no rows of the file for ops.files."""

    word: str
    name: str
    key: str
    settled: str
    label: str
    n_rows: str = "1"
    parts: tuple[str, ...] = ()
    has_machines: bool = False
    refuses_values: bool = False

    @property
    def qualified(self) -> str:
        """Schema and name."""
        return f"{self.word}.{self.name}"

    @property
    def qualified_parts(self) -> tuple[str, ...]:
        """Schema and name of each of the parts."""
        return tuple(f"{self.word}.{part}" for part in self.parts)


RUNS = LandedTable("jobs", "runs", "run_id", "status NOT IN ('running', 'pending')", "run id")
TELEMETRY = LandedTable("workloads", "runs", "run_id", "true", "run id", n_rows="n_rows", parts=("counters",))
EXECUTIONS = LandedTable(
    "nodes",
    "executions",
    "execution_id",
    "true",
    "execution id",
    n_rows="n_rows",
    parts=("metrics", "telemetry", "logs"),
    has_machines=True,
    refuses_values=True,
)
MAIN_TABLES = {table.word: table for table in [RUNS, TELEMETRY, EXECUTIONS]}
