"""The figures of changes with their words: who moves to which shape, and prediction beside measurement."""

from tasks.report.figure_of import figure_of
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.whatif_migration import MigrationMap, draw_migration
from tasks.report.whatif_pairs import PairChanges, draw_pairs


def migration_figure(migration: MigrationMap | None, name: str = "migration") -> FigureOfPage:
    """Who moves where."""
    words = (
        "Percent of those predicted to have the shape of the row that would have that of the column after the change. "
        "The orange frame is the move that most make. Lower numbers are steadier shapes. What the change does to "
        "other jobs, and so to the load, is not in it."
    )
    empty = migration is None or not migration.n
    title = f"What would change: {migration.scenario}" if migration else "What would change"
    evidence = migration.evidence if migration else ""
    nothing = "No run has a predicted shape both before and after the change."
    return figure_of(name, title, words, evidence, draw_migration, migration, nothing=nothing, is_empty=empty)


def pairs_figure(pairs: PairChanges | None, name: str = "pairs") -> FigureOfPage:
    """Prediction beside measurement."""
    words = (
        "Each dot is a run that was done twice, as it was and with the change: by how much its runtime was predicted "
        "to change, and by how much it did. On the dashed line the prediction was right; the level line is what "
        "predicting no change would say. Black: median and middle half of pairs predicted alike."
    )
    empty = pairs is None or not pairs.n
    title = f"Predicted and measured: {pairs.scenario}" if pairs else "Predicted and measured change"
    evidence = pairs.evidence if pairs else ""
    nothing = "No run was done again with this change, so nothing was measured."
    return figure_of(name, title, words, evidence, draw_pairs, pairs, nothing=nothing, is_empty=empty)
