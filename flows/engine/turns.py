"""Network benchmarks take turns: of all nodes that record at the same time, one has the network to itself.

Order comes from a global concurrency limit of the Prefect server that the nodes share. A process that is killed while
it has its turn keeps it until its lease ends. A server that lives and dies with its recorder forgets leases, but not
that a turn was taken: there the next recorder takes it back, as one machine records one benchmark at a time anyway."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate, GlobalConcurrencyLimitUpdate
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound

from flows.engine.shared_server import is_shared
from tasks.errors import WhorlError
from tasks.nodes.record.params import BenchmarkTemplate

LIMIT = "whorl-network-benchmark"
LEASE_S = 60  # the shortest that the server takes; it is renewed while the benchmark runs
logger = logging.getLogger(__name__)


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
        problem = f"the Prefect server gives no turn for the network ({_told(error)})"
        raise NoTurn(f"{template.benchmark}: {problem}; see that it answers and record again, which goes on") from error
    try:
        yield
    finally:
        try:
            turn.__exit__(*sys.exc_info())
        except Exception as error:
            logger.warning("the turn for the network ends in %d s: cannot be given back (%s)", LEASE_S, _told(error))


def _told(error: Exception) -> str:
    """The first line of what has gone wrong: of the cause, where Prefect has only wrapped it."""
    cause = error.__cause__ or error
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
