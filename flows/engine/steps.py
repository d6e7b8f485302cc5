"""How every step runs as a Prefect task: when it is tried again, what a continued run skips, how results are kept."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import INPUTS, RUN_ID, CachePolicy
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import TaskRunContext
from prefect.runtime import deployment
from prefect.tasks import exponential_backoff

import tasks
from tasks.errors import WarehouseBusy
from tasks.progress import report_progress
from tasks.warehouse.versions import CODE_SUFFIXES, contents_hash

P = ParamSpec("P")
R = TypeVar("R")

RETRIES = 3
FIRST_DELAY_S = 2  # then 4 and 8, each with jitter
JITTER = 0.5
FOR_GOOD = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError)


@dataclass
class SameCode(CachePolicy):
    """A key of the step and the whole source of tasks/: Prefect's own TASK_SOURCE does not see the functions that a
    step calls. Without the step's name two steps with the same inputs would share one result."""

    def compute_key(self, task_ctx: TaskRunContext, *_: Any, **__: Any) -> str:
        """The name of the step's function, and the hash of every Python and SQL file of tasks/."""
        function = task_ctx.task.fn
        return f"{function.__module__}.{function.__qualname__}-{code_hash()}"


CONTINUE_RUN = INPUTS + RUN_ID + SameCode()
"""A flow run that is run again skips the steps that it finished with the same inputs and code; a new run skips none."""


@functools.cache
def code_hash() -> str:
    """SHA-256 over the source of tasks/, as this process found it first."""
    return contents_hash(Path(tasks.__file__).parent, suffixes=CODE_SUFFIXES)


def is_io_error(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether trying again may help: the disk or the network failed, or, with nobody waiting, the warehouse was busy.

    A missing file, a wrong value or an error in the code stays wrong, and is not tried again."""
    error = state.data
    if isinstance(error, WarehouseBusy):
        return deployment.id is not None  # at a terminal the stated wait is the whole wait
    return isinstance(error, OSError) and not isinstance(error, FOR_GOOD)


def step(function: Callable[P, R]) -> Task[P, R]:
    """The task of a step of tasks/: retried on I/O errors only, its key kept as JSON, skipped by a continued run."""
    words = f"{function.__module__.split('.')[1]}: {function.__name__.replace('_', ' ')}"

    @functools.wraps(function)
    def shown(*args: P.args, **kwargs: P.kwargs) -> R:
        report_progress(words, 0)
        return function(*args, **kwargs)

    made = task(
        name=function.__name__.replace("_", "-"),
        retries=RETRIES,
        retry_delay_seconds=exponential_backoff(FIRST_DELAY_S),
        retry_jitter_factor=JITTER,
        retry_condition_fn=is_io_error,
        cache_policy=CONTINUE_RUN,
        persist_result=True,
        result_serializer="json",
    )
    return made(shown)
