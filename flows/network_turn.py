"""Network benchmarks take turns: of all nodes that record at the same time, one has the network to itself.

Order comes from a global concurrency limit of the Prefect server that the nodes share. A process that is killed while
it has its turn keeps it until its lease ends."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound

from tasks.nodes.record.templates import BenchmarkTemplate

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


@contextmanager
def network_turn(template: BenchmarkTemplate) -> Iterator[None]:
    """A block that has the network to itself if the benchmark needs it, and waits until it has."""
    if not template.is_network:
        yield
        return
    with concurrency(LIMIT, occupy=1, lease_duration=LEASE_S, strict=True, raise_on_lease_renewal_failure=False):
        yield
