"""The page of what comes next in a source: every flow that changes what stands on it writes it anew."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from flows.policies import step
from tasks.jobs.params import ReportParams
from tasks.markdown import plain
from tasks.settings import load_settings
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)


@step
def report_predictions(warehouse: Warehouse, source: str, page: ReportParams, after: str) -> str:
    """Write the page of shapes, predictions, reasons and what-ifs of a source; returns its path, "" without any.

    after: what it shows now; a continued run that found something else writes it again."""
    from tasks.report.predictions_data import has_predictions  # matplotlib: a second that other steps need not pay
    from tasks.report.predictions_page import render_predictions

    if not has_predictions(warehouse, source):
        logger.info("source %s has neither shapes nor predictions yet, so there is no page of them", source)
        return ""
    logger.debug("drawing what comes next in %s after %s", source, after)
    return str(render_predictions(warehouse, source, page))


def fresh_page(warehouse: Warehouse, source: str, found: Mapping[str, Any], page: ReportParams | None = None) -> str:
    """The path of that page, written after a flow has found this; "" while there is nothing to stand on it.

    page: how it is drawn; a flow whose form does not ask draws it as the settings of its machine say."""
    page = page or load_settings().settings.jobs.report
    return report_predictions(warehouse, source, page, json.dumps(found, sort_keys=True))


def page_part(*paths: str) -> str:
    """The line of an artifact that says where the pages are; a browser opens no file from Prefect's UI, so no links."""
    return f"On the worker's machine as pages: {', '.join(plain(path) for path in paths if path)}"
