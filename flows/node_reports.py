"""The page of a source of benchmark executions, written anew by the flows that change what it shows."""

import logging

from flows.policies import step
from flows.publish import artifact_key, publish
from tasks.markdown import plain
from tasks.report.nodes_params import NodesReportParams
from tasks.warehouse.place import Warehouse

WORD = "nodes"
logger = logging.getLogger(__name__)


@step
def write_report(warehouse: Warehouse, source: str, report: NodesReportParams, after: str) -> str:
    """Write the page of a source; returns its path. after: what it rests on; with other data it is written again."""
    logger.debug("drawing %s after %s", source, after)
    from tasks.report.nodes_page import render_nodes  # matplotlib: a second of import

    return str(render_nodes(warehouse, source, report))


def publish_figures(warehouse: Warehouse, source: str, report: NodesReportParams) -> None:
    """Show the figures of the page of a source as an artifact: ranking, repeatability, fingerprints."""
    from tasks.report.nodes_artifact import nodes_artifact

    text = nodes_artifact(warehouse, source, report)
    publish(artifact_key(WORD, source, "summary"), text, f"The nodes of source {source}")


def report_part(path: str) -> str:
    """Where the page is, for an artifact."""
    return f"The page of the source: {plain(path)}" if path else ""


def fingerprints_part(warehouse: Warehouse, source: str, report: NodesReportParams) -> str:
    """For an artifact: fingerprints as a figure, both rankings beside each other, flagged executions with reasons."""
    from tasks.report.nodes_learned import fingerprints_artifact

    return fingerprints_artifact(warehouse, source, report)
