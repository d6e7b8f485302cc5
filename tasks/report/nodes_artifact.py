"""Nodes as markdown with figures inside: what Prefect shows under the runs of flows."""

from tasks.markdown import plain
from tasks.nodes.node_words import left_out
from tasks.report.nodes_data import NodesData, fetch_nodes_data
from tasks.report.nodes_figures import plane_figure, ranking_figure, reruns_figure
from tasks.report.nodes_learned import made_of, watching_lines
from tasks.report.nodes_params import NodesReportParams
from tasks.report.workloads_artifact import figure_part
from tasks.warehouse.place import Warehouse

DEFAULTS = NodesReportParams()


def nodes_artifact(warehouse: Warehouse, source: str, params: NodesReportParams = DEFAULTS) -> str:
    """The markdown for one source: ranking, repeatability, and fingerprints where there are any.

    Raises NotFound if the source has no executions, BadInput if it mixes simulated with measured ones."""
    return nodes_markdown(fetch_nodes_data(warehouse, source, params))


def nodes_markdown(data: NodesData) -> str:
    """The same from data that were fetched."""
    n_executions, n_nodes = int(data.nodes["n_executions"].sum()), len(data.nodes)
    parts = [f"# Nodes: {plain(data.source)}", f"{n_executions:,} executions on {n_nodes:,} nodes."]
    if data.is_simulated:
        parts.append("**Simulated:** these executions were drawn, not measured.")
    if n_emulated := int(data.nodes["is_emulated"].sum()):
        parts.append(f"**Emulated:** {n_emulated:,} of the nodes are made of limits on a larger machine.")
    if data.is_outdated:
        told = f"of data version {data.ranked_version}, the source has {data.data_version}"
        parts.append(f"**Older data:** the answers are {told}; rank again.")
    if line := left_out(data.n_left_out, data.source):
        parts.append(f"**Left out:** {plain(line)}.")
    if data.learned:
        parts += [plain(line) for line in watching_lines(data.learned)]
    figures = [ranking_figure(data.ranking), reruns_figure(data.reruns)]
    parts += [figure_part(figure, f"data version {data.ranked_version or data.data_version}") for figure in figures]
    if data.learned and data.learned.prints:
        parts += [figure_part(plane_figure(data.learned.prints.plane), made_of(data.learned.prints))]
    return "\n\n".join(parts) + "\n"
