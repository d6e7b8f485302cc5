"""The page of a source of telemetry, written anew by the flows that change what it shows."""

import logging

from flows.policies import step
from flows.publish import artifact_key, publish
from tasks.markdown import plain
from tasks.report.workloads_params import WorkloadsReportParams
from tasks.warehouse.place import Warehouse

WORD = "workloads"
logger = logging.getLogger(__name__)


@step
def write_report(warehouse: Warehouse, source: str, report: WorkloadsReportParams, after: str) -> str:
    """Write the page of a source; returns its path. after: what it rests on; with other data it is written again."""
    logger.debug("drawing %s after %s", source, after)
    from tasks.report.workloads_page import render_workloads  # matplotlib: a second of import

    return str(render_workloads(warehouse, source, report))


def publish_figures(warehouse: Warehouse, source: str, report: WorkloadsReportParams) -> None:
    """Show the figures of the page of a source as an artifact: a run over time, phases side by side, confusion."""
    from tasks.report.workloads_artifact import workloads_artifact

    text = workloads_artifact(warehouse, source, report)
    publish(artifact_key(WORD, source, "summary"), text, f"The workloads of source {source}")


def report_part(path: str) -> str:
    """Where the page is, for an artifact."""
    return f"The page of the source: {plain(path)}" if path else ""
