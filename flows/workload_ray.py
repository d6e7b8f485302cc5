"""Parts of a fan-out on Ray, where an address is set; without one they are done here, one after the other."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from prefect import Task

from tasks.errors import MissingTool
from tasks.workloads.fan_out_params import FanOutParams

LOCAL = "local"
QUIET: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
OBJECT_STORE_BYTES = 200 * 2**20  # parts are handed over as paths


def fanned_out(work: Task[[str], str], parts: Sequence[str], fan_out: FanOutParams) -> Iterator[str]:
    """What the task gives for each part, in their order, as soon as it is there.

    Each part is a task run of its own: retried on its own, and skipped by a continued run. The machines of Ray must
    reach the landing folder, Prefect's server and its results. Raises MissingTool if prefect-ray is not installed."""
    if not fan_out.ray_address or not parts:
        yield from (work(part) for part in parts)
        return
    with _runner(fan_out.ray_address) as runner:
        futures = [runner.submit(work, parameters={"part": part}) for part in parts]
        try:
            yield from (future.result() for future in futures)
        finally:
            _wait(futures)


def _runner(address: str) -> Any:
    try:
        from prefect_ray import RayTaskRunner  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise MissingTool(
            f"workloads.fan_out.ray_address is {address!r}, and the Python package prefect-ray is not installed; "
            "install it in the checkout (pip install -c constraints.txt '.[ray]'), or leave the address empty"
        ) from error
    if address == LOCAL:
        return RayTaskRunner(init_kwargs=QUIET | {"object_store_memory": OBJECT_STORE_BYTES})
    return RayTaskRunner(address=address, init_kwargs={"log_to_driver": False})


def _wait(futures: Sequence[Any]) -> None:
    """Let all parts end before Ray goes, also when one has failed: what they made is kept."""
    for future in futures:
        wait: Callable[[], None] = future.wait
        with suppress(Exception):
            wait()
