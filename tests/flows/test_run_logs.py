"""What the log of a run shows."""

import logging

from flows.engine.kept_runs import (
    OneLine,
    show_errors_in_one_line,
    show_steps,
)
from tasks.errors import BadInput


def record_of(error: Exception) -> logging.LogRecord:
    info = (type(error), error, None)
    return logging.LogRecord("prefect.flow_runs", logging.ERROR, __file__, 1, "Encountered %r", (error,), info)


def test_a_users_mistake_is_one_line_without_a_traceback() -> None:
    record = record_of(BadInput("x.csv", "is bad", "a good file", "export it again"))
    assert OneLine().filter(record)
    assert record.getMessage() == "x.csv: is bad; expected a good file; export it again"
    assert record.exc_info is None


def test_a_fault_in_the_code_keeps_its_traceback() -> None:
    record = record_of(ZeroDivisionError("division by zero"))
    assert OneLine().filter(record)
    assert record.exc_info is not None


def test_the_filter_is_set_once_however_often_flows_run() -> None:
    for _ in range(3):
        show_errors_in_one_line()
    filters = logging.getLogger("prefect.flow_runs").filters
    assert len([present for present in filters if isinstance(present, OneLine)]) == 1


def test_what_steps_log_reaches_the_run_but_not_a_quiet_terminal() -> None:
    root, steps = logging.getLogger(), logging.getLogger("tasks")
    handler = logging.StreamHandler()
    levels = {one: one.level for one in [*root.handlers, handler]}
    root.addHandler(handler)
    old_root, old_steps = root.level, steps.level
    try:
        root.setLevel(logging.WARNING)
        steps.setLevel(logging.NOTSET)
        show_steps()
        assert steps.isEnabledFor(logging.INFO)
        assert handler.level == logging.WARNING
    finally:
        root.removeHandler(handler)
        root.setLevel(old_root)
        steps.setLevel(old_steps)
        for one, level in levels.items():
            one.setLevel(level)
