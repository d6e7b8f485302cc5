"""The steps of `jobs-explain`: keys in, keys out. The command line calls them where a table is not fresh."""

import logging

from tasks.jobs.explain.params import ExplainParams
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)


def explain_source(warehouse: Warehouse, source: str, explain: ExplainParams) -> str:
    """Write jobs.cause_families, jobs.cause_checks and jobs.insights of a source anew; returns the id of the model.

    Raises NotFound for a source without runs or model, BadInput where the model has seen all runs."""
    from tasks.jobs.explain.explaining import load_explainer
    from tasks.jobs.explain.tables import write_source
    from tasks.jobs.explain.whole_source import explain_source as explained

    found = explained(load_explainer(warehouse, source))
    write_source(warehouse, source, found, explain)
    n_runs = int(found.families["n_runs"].max())
    logger.info("explained %d held-out runs of source %s by model %s", n_runs, source, found.model_id)
    return found.model_id


def explain_runs(warehouse: Warehouse, source: str, explain: ExplainParams, after: str = "") -> int:
    """Write jobs.reasons of a source anew: of its longest recent runs and of the next runs of its riskiest jobs.

    Returns the number of rows. after: key of what this rests on (the model): a continued run with another key does
    the step again. Raises NotFound for a source without runs or model."""
    from tasks.jobs.explain.explaining import explain_chosen, load_explainer
    from tasks.jobs.explain.tables import write_reasons

    logger.debug("reasons of %s after %s", source, after)
    found = explain_chosen(load_explainer(warehouse, source), explain)
    n_rows = write_reasons(warehouse, source, found)
    logger.info("wrote %d reasons of %d runs of source %s", n_rows, len(found), source)
    return n_rows
