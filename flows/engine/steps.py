"""How every step runs as a Prefect task: when it is tried again, what a continued run skips, how results are kept.

Beside it what steps share: the files that a flow reads, and turns that nodes take on the network."""

import functools
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import INPUTS, RUN_ID, CachePolicy
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate, GlobalConcurrencyLimitUpdate
from prefect.client.schemas.objects import State, TaskRun
from prefect.concurrency.sync import concurrency
from prefect.context import TaskRunContext
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.runtime import deployment
from prefect.tasks import exponential_backoff

import tasks
from flows.engine.shared_server import is_shared
from tasks.errors import BadInput, NotAllRead, WarehouseBusy, WhorlError, report_progress
from tasks.nodes.record.params import BenchmarkTemplate
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import CODE_SUFFIXES, contents_hash

P = ParamSpec("P")
R = TypeVar("R")
Result = TypeVar("Result", bound=Mapping[str, Any])

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


logger = logging.getLogger(__name__)


def files_or_inbox(
    warehouse: Warehouse, inbox_name: str, paths: list[str], *, is_named: bool, find: Callable[[list[str]], list[str]]
) -> list[str]:
    """The files behind the paths, else in the inbox; one that nobody has put anything into is no error on a schedule.

    is_named: whether paths, or a manifest, say what to read; find: the files behind paths."""
    if is_named:
        return find(paths)
    inbox = warehouse.home / inbox_name
    if not inbox.exists() or not any(inbox.iterdir()):
        logger.info("nothing to read: %s is empty", inbox)
        return []
    return find([str(inbox)])


def load_each(files: list[str], load: Callable[[str], str]) -> tuple[list[str], list[BadInput]]:
    """What load makes of each file, such as the id of its batch, and why others could not be read."""
    loaded: list[str] = []
    refused: list[BadInput] = []
    for path in files:
        try:
            loaded.append(load(path))
        except BadInput as error:
            refused.append(error)
    return loaded, refused


def unless_refused(result: Result, refused: list[BadInput], n_files: int, expected: str) -> Result:
    """The result of a flow that read all its files. Raises NotAllRead, with the result, where some could not be read.

    expected: what the files should have been."""
    if not refused:
        return result
    n_loaded, first = n_files - len(refused), refused[0]
    rest = f"the other {n_loaded} of {n_files} files are loaded" if n_loaded else ""
    if len(refused) == 1:
        error = NotAllRead(first.where, first.problem, first.expected, "; ".join(filter(None, (first.fix, rest))))
    else:
        where = f"{len(refused)} of {n_files} files"
        error = NotAllRead(where, f"could not be read, the first: {first}", expected, rest)
    error.result, error.refused = result, [str(refusal) for refusal in refused]
    raise error


LIMIT = "whorl-network-benchmark"
LEASE_S = 60  # the shortest that the server takes; it is renewed while the benchmark runs


def make_limit() -> bool:
    """Make the limit on the server if it lacks it; returns whether it was made. One that is there stays as it is."""
    with get_client(sync_client=True) as client:
        try:
            client.read_global_concurrency_limit_by_name(LIMIT)
        except ObjectNotFound:
            with suppress(ObjectAlreadyExists):  # another node was faster
                client.create_global_concurrency_limit(GlobalConcurrencyLimitCreate(name=LIMIT, limit=1))
                return True
    return False


def take_back_turns() -> int:
    """Give back the turns that killed recorders hold on a server of this process's own; returns how many.

    A shared server does so by itself when a lease ends, and there a turn may be another node's: nothing is touched."""
    if not is_shared():
        return 0
    with get_client(sync_client=True) as client:
        taken = client.read_global_concurrency_limit_by_name(LIMIT).active_slots
        if taken:
            client.update_global_concurrency_limit(LIMIT, GlobalConcurrencyLimitUpdate(active_slots=0))
            logger.info("a killed recorder had the turn for the network: taken back")
    return int(taken)


class NoTurn(WhorlError):
    """The Prefect server gives no turn; the message says why."""


@contextmanager
def network_turn(template: BenchmarkTemplate) -> Iterator[None]:
    """A block that has the network to itself if the benchmark needs it, and waits until it has.

    Raises NoTurn before the block; a turn that cannot be given back after it ends with its lease."""
    if not template.is_network:
        yield
        return
    turn = concurrency(LIMIT, occupy=1, lease_duration=LEASE_S, strict=True, raise_on_lease_renewal_failure=False)
    try:
        turn.__enter__()
    except Exception as error:  # Prefect's client raises whatever it meets
        problem = f"the Prefect server gives no turn for the network ({_cause_line(error)})"
        raise NoTurn(f"{template.benchmark}: {problem}; see that it answers and record again, which goes on") from error
    try:
        yield
    finally:
        try:
            turn.__exit__(*sys.exc_info())
        except Exception as error:
            logger.warning(
                "the turn for the network ends in %d s: cannot be given back (%s)", LEASE_S, _cause_line(error)
            )


def _cause_line(error: Exception) -> str:
    """The first line of what has gone wrong: of the cause, where Prefect has only wrapped it."""
    cause = error.__cause__ or error
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
