"""Each flow run in ops.runs, with what it was asked and what it found, so that runs can be compared."""

import logging
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from prefect.runtime import flow_run

from tasks.errors import WhorlError
from tasks.params import Params
from tasks.warehouse.place import Warehouse
from tasks.warehouse.runs import RunRecord, record_run

Result = TypeVar("Result", bound=Mapping[str, Any])
logger = logging.getLogger(__name__)
HIDDEN = "(pseudonymised)"
PATHS = ("paths", "telemetry", "results")  # what flows that read files call them


def kept(flow: str, params: Params, work: Callable[[], Result]) -> Result:
    """The result of the work, after the run was written down; so is a failed run, with its error.

    Parameters without a warehouse (a recording on another machine) leave no row. A run that is continued replaces
    its row. A row that cannot be written is a warning, since the work itself is done; an error that the work itself met
    is told once, by the work."""
    started_at = _now()
    try:
        result = work()
    except Exception as error:
        message = _without_paths(params, f"{type(error).__name__}: {error}")
        _write(flow, params, "failed", started_at, {"error": message}, told=error)
        raise
    _write(flow, params, "completed", started_at, dict(result))
    return result


def _write(
    flow: str,
    params: Params,
    status: Literal["completed", "failed"],
    started_at: datetime,
    figures: dict[str, Any],
    *,
    told: Exception | None = None,
) -> None:
    warehouse = getattr(params, "warehouse", None)
    if not isinstance(warehouse, Warehouse) or (status == "failed" and not warehouse.file.exists()):
        return  # a mistyped path must not leave an empty warehouse behind
    run = RunRecord(
        run_id=str(flow_run.id),
        flow=flow,
        word=flow.split("-")[0],
        source=getattr(params, "source", ""),
        status=status,
        started_at=started_at,
        ended_at=_now(),
        parameters=_parameters(params),
        figures=figures,
    )
    try:
        record_run(warehouse, run)
    except WhorlError as error:
        is_told = type(error) is type(told)
        logger.log(logging.DEBUG if is_told else logging.WARNING, "the run is missing in ops.runs: %s", error)


def _hidden_paths(params: Params) -> list[str]:
    """Paths of logs that are pseudonymised: files and folders may be called after users."""
    is_hidden = getattr(getattr(params, "read", None), "pseudonymise", False)
    return [path for name in PATHS for path in getattr(params, name, [])] if is_hidden else []


def _parameters(params: Params) -> dict[str, Any]:
    told = params.model_dump(mode="json")
    return told | (
        {name: [HIDDEN] * len(told[name]) for name in PATHS if told.get(name)} if _hidden_paths(params) else {}
    )


def _without_paths(params: Params, message: str) -> str:
    """The message without those paths, and what follows them up to a colon: files of a folder."""
    for path in sorted(_hidden_paths(params), key=len, reverse=True):
        message = re.sub(re.escape(path) + "[^:]*", HIDDEN, message)
    return message


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
