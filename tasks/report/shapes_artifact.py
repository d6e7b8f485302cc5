"""The shapes of a source as markdown with its figures inside: what Prefect shows under a characterisation."""

from tasks.jobs.characterise import (
    Characterisation,
    read_characterised,
    shape_words,
)
from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import TABLE_COLUMNS
from tasks.markdown import plain
from tasks.quantities import duration, number, share
from tasks.report.images import data_uri, to_png
from tasks.report.shapes_figures import inertia_figure, shapes_figure
from tasks.report.shapes_inertia import InertiaChoice
from tasks.report.shapes_panels import ShapePanels
from tasks.report.style import WIDE_IN
from tasks.warehouse.place import Warehouse

MAX_PNG_BYTES = 100_000  # Prefect's page grows slow above


def shapes_artifact(warehouse: Warehouse, source: str) -> str:
    """Table 2 and the elbow for both normalisations. Raises NotFound if the source has not been characterised."""
    found = read_characterised(warehouse, source)
    version = next(iter(found.values())).table["data_version"].iloc[0]
    parts = [f"# The typical runtime distributions of source {plain(source)}"]
    for kind, one in found.items():
        parts += _kind(kind, one)
    return "\n\n".join([*parts, f"*data version {version}*"]) + "\n"


def _kind(kind: Kind, found: Characterisation) -> list[str]:
    table = found.table[TABLE_COLUMNS]
    choice = InertiaChoice(found.curve, len(table), int(table["n_groups"].sum()))
    parts = [f"## {kind.capitalize()}", f"{shape_words(kind, found)}.", _table_2(kind, found)]
    for figure in (shapes_figure(ShapePanels(found.shapes, table), kind), inertia_figure(choice, kind)):
        parts.append(f"### {figure.title}\n\n{figure.words}")
        png = to_png(figure.draw(WIDE_IN)) if figure.draw else b""
        if 0 < len(png) < MAX_PNG_BYTES:
            parts.append(f"![{figure.title}]({data_uri(png)})")
    worst = ", ".join(f"{row['method']} {share(row['largest_share'])}" for row in found.rivals.to_dict("records"))
    parts.append(f"Share of the jobs in the largest cluster of other methods: {plain(worst)}.")
    return parts


def _table_2(kind: Kind, found: Characterisation) -> str:
    value = number if kind == "ratio" else duration
    lines = ["| shape | jobs | runs | outliers | 25–75 % gap | 95 % | std |", "|---:|---:|---:|---:|---:|---:|---:|"]
    for row in found.table.to_dict("records"):
        cells = [
            f"{row['shape']}",
            f"{row['n_groups']:,}",
            f"{row['n_runs']:,}",
            share(row["outlier_percent"] / 100),
            value(row["p25_p75"]),
            value(row["p95"]),
            value(row["std"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
