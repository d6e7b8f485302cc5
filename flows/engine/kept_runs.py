"""A flow run as people find it again: its row in ops.runs, its log, its name."""

import logging
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
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


RUN_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")
STEP_LOGGERS = ("tasks", "flows")


class OneLine(logging.Filter):
    """Replaces the traceback of an error that already says what is wrong and what to do by that line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record; shorten those of our own errors."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, WhorlError):
            record.msg, record.args, record.exc_info, record.exc_text = str(error), (), None, None
        return True


def show_errors_in_one_line() -> None:
    """Put the filter on the loggers of flow and task runs; twice is once."""
    for name in RUN_LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(present, OneLine) for present in logger.filters):
            logger.addFilter(OneLine())


def show_steps() -> None:
    """Let what steps log at INFO reach the run's log (Prefect listens to PREFECT_LOGGING_EXTRA_LOGGERS).

    What a terminal shows stays as it was: its handlers take over the level that their logger had."""
    root = logging.getLogger()
    for handler in root.handlers:
        handler.setLevel(max(handler.level, root.level))
    for name in STEP_LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(min(logger.level or logging.INFO, logging.INFO))


def of_source(verb: str) -> str:
    """The verb, and the source of the run."""
    return f"{verb} {flow_run.parameters['source'] or 'the only source'}"


def of_ingest(key: str, otherwise: str) -> str:
    """What is read into the source of the run. key: its parameter of paths; otherwise: what it reads without any."""
    return f"ingest {in_short(flow_run.parameters.get(key) or [otherwise])} into {flow_run.parameters['source']}"


def of_evaluation(key: str, called: str = "paths") -> str:
    """What is evaluated: see files_or_source."""
    return f"evaluate {files_or_source(key, called)}"


def files_or_source(key: str, called: str = "paths") -> str:
    """The files that the run reads, else its source. key: its parameter of paths; called: what many of them are."""
    paths = flow_run.parameters.get(key) or []
    return in_short(paths, called) if paths else str(flow_run.parameters["source"] or "the only source")


def in_short(paths: list[Any], called: str = "paths") -> str:
    """The name of the only path, or how many there are."""
    return Path(str(paths[0])).name or str(paths[0]) if len(paths) == 1 else f"{len(paths)} {called}"
