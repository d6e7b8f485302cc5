"""The summary that a question is answered from: made anew where files or parameters have changed since."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.jobs.params import SummaryParams
    from tasks.warehouse.place import Warehouse


def fresh_summary(warehouse: "Warehouse", source: str, params: "SummaryParams") -> dict[str, Any]:
    """The totals of a source as its files and these parameters have them now.

    Raises NotFound if the source has no runs."""
    from tasks.errors import NotFound
    from tasks.jobs import steps
    from tasks.jobs.summary import read_summary

    try:
        totals = read_summary(warehouse, source)
        if not totals["is_stale"] and totals["parameters"] == params.model_dump(mode="json"):
            return totals
    except NotFound:
        pass  # no summary yet; without runs the step says so
    steps.summarise(warehouse, source, params)
    return read_summary(warehouse, source)
