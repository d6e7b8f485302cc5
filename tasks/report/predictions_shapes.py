"""The shapes of a source for pages: one normalisation with its inertia, numbers of bins and rival clusterings."""

from dataclasses import dataclass

from tasks.jobs import characterise
from tasks.jobs.characterise import Characterisation
from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import TABLE_COLUMNS
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.shapes_bins import BinComparison
from tasks.report.shapes_figures import bins_figure, inertia_figure, rivals_figure, shapes_figure
from tasks.report.shapes_inertia import InertiaChoice
from tasks.report.shapes_panels import ShapePanels
from tasks.report.shapes_rivals import RivalClusterings
from tasks.warehouse.connection import Connection

# Shares of jobs that have a label both in the history and in the last part of the log.
STAYED = """
    SELECT count(*) AS n_jobs, avg((before.label = after.label)::DOUBLE) AS same_share
    FROM jobs.group_shapes AS before JOIN jobs.group_shapes AS after USING (source, kind, group_key)
    WHERE source = $source AND kind = $kind AND before.part = 'D1' AND after.part = 'D3'
        AND before.label IS NOT NULL AND after.label IS NOT NULL
"""


@dataclass(frozen=True)
class KindOfShapes:
    """The shapes of one normalisation. n_jobs: with a shape in the history and in the last part of the log;
    same_share: of those, with the same; None without any."""

    found: Characterisation
    n_jobs: int
    same_share: float | None

    @property
    def data_version(self) -> str:
        """Of the files that the shapes were made from."""
        return str(self.found.table["data_version"].iloc[0])


def fetch_shapes(connection: Connection, source: str, kind: Kind) -> KindOfShapes | None:
    """One normalisation over an open connection; None if the source has no shapes of it."""
    found = characterise.fetch_shapes(connection, source, kind)
    if found is None:
        return None
    n_jobs, same_share = connection.execute(STAYED, {"source": source, "kind": kind}).fetchone() or (0, None)
    return KindOfShapes(found, int(n_jobs), same_share)


def figures_of_shapes(kind: Kind, found: Characterisation) -> list[FigureOfPage]:
    """Shapes, their number, the number of bins, and other clusterings, in the order of a page."""
    table = found.table[TABLE_COLUMNS]
    curve = InertiaChoice(found.curve, len(table), int(table["n_groups"].sum())) if found.curve.ks else None
    return [
        shapes_figure(ShapePanels(found.shapes, table), kind),
        inertia_figure(curve, kind),
        bins_figure(BinComparison(found.bins, found.shapes.bins.n_bins), kind),
        rivals_figure(RivalClusterings(found.rivals, len(table)), kind),
    ]
