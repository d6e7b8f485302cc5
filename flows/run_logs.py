"""The log of a flow run: what the steps say with their numbers, and a user's mistake as one line."""

import logging

from tasks.errors import WhorlError

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
