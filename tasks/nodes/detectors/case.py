"""What a detector is given."""

from dataclasses import dataclass
from functools import cached_property

from tasks.nodes.detectors.spreads import Normal, learn_normal
from tasks.nodes.history import History
from tasks.nodes.type_tables import Bools, NodeTables, TypeTable


@dataclass(frozen=True)
class Case:
    """history: all executions, in time order. tables: theirs, preprocessed with what the training executions taught.

    is_train: (n_executions,) executions that may be learned from. is_normal: (n_executions,) those of them that nothing
    is known against: completed, not stressed, not disturbed. is_validation: executions that a threshold may be
    chosen on. seed: of anything drawn."""

    history: History
    tables: NodeTables
    is_train: Bools
    is_normal: Bools
    is_validation: Bools
    seed: int = 0

    def normal_rows(self, table: TypeTable) -> Bools:
        """The rows of a table that are what normal is learned from: (n,)."""
        return self.is_normal[table.executions]

    @cached_property
    def normals(self) -> tuple[Normal, ...]:
        """What the normal training executions of each table are like; learned once, for all that ask."""
        n_nodes = len(self.tables.nodes)
        return tuple(
            learn_normal(table.natural, table.nodes, self.normal_rows(table), n_nodes) for table in self.tables.tables
        )
