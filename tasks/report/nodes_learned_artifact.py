"""What a trained model says of the nodes of a source, as markdown with its figure: for the run that asked it."""

from tasks.report.nodes_figures import plane_figure
from tasks.report.nodes_learned_data import LearnedNodes, fetch_learned
from tasks.report.nodes_learned_tables import agreement_words, aspects_table, flagged_table, known_words
from tasks.report.nodes_params import NodesReportParams
from tasks.report.nodes_rows import Table
from tasks.report.nodes_watching import cost_words, excluded_nodes
from tasks.report.workloads_artifact import figure_part, table
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse


def fingerprints_artifact(warehouse: Warehouse, source: str, params: NodesReportParams) -> str:
    """Figure 4, both rankings by aspect, and flagged executions with their reasons; empty before a fingerprinting."""
    with reading(warehouse) as connection:
        learned = fetch_learned(connection, source, params.n_rows)
    return fingerprints_markdown(learned, params.n_rows) if learned else ""


def fingerprints_markdown(learned: LearnedNodes, n_rows: int) -> str:
    """The same from data that were fetched."""
    parts = [figure_part(plane_figure(learned.plane), made_of(learned))]
    aspects = aspects_table(learned, n_rows)
    if aspects.heads:
        parts += ["## By fingerprint, beside the plain ranking", agreement_words(learned), markdown_table(aspects)]
    flagged = flagged_table(learned)
    if flagged.rows:
        count = f"{learned.n_flagged:,} of {learned.n_fingerprints:,}, the latest first. {known_words(learned)}"
        parts += ["## Flagged executions, and why", count, markdown_table(flagged)]
    return "\n\n".join(part for part in parts if part)


def watching_lines(learned: LearnedNodes) -> list[str]:
    """Which nodes are to be left out, and what watching costs; none before the first watch."""
    if learned.states.empty:
        return []
    return [f"To be left out: {'; '.join(excluded_nodes(learned.states)) or 'none'}.", cost_words(learned.states)]


def made_of(learned: LearnedNodes) -> str:
    """What the figure rests on."""
    return f"model {learned.model_id}, data version {learned.data_version}"


def markdown_table(of: Table) -> str:
    """A table in markdown; what is small on a page stands in brackets."""
    return table([of.first, *of.heads], of.lines)
