"""What a call of the recorder sets up on the machine, and takes down however it ends."""

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.machine_groups import ROOT, Group, campaign_group
from tasks.machine_scratch import scratch_folder
from tasks.nodes.record.doses import Dose
from tasks.nodes.record.limits import CONTROLLERS, PREFIX, end_abandoned
from tasks.nodes.record.local import machine_facts, nodes_of
from tasks.nodes.record.namespaces import remove_abandoned
from tasks.nodes.record.node_metrics import NodeReader
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.place import Place, make_place
from tasks.nodes.record.sampler import NodeSampler
from tasks.nodes.record.surroundings import REGISTER
from tasks.nodes.record.templates import BenchmarkTemplate
from tasks.workloads.record.programs.session import end_registered

ON_DISK = Path("/var/tmp")
KEPT_S = 60.0  # samples are kept this much longer than the two longest executions
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stage:
    """What is set up. places: by node, prepared; templates: those that can run on all of them; unavailable: what of a
    node does not work here."""

    group: Group | None
    places: Mapping[str, Place]
    templates: tuple[BenchmarkTemplate, ...]
    unavailable: Mapping[str, tuple[str, ...]]
    sampler: NodeSampler

    @property
    def isolation(self) -> str:
        """cgroups, or none."""
        return "cgroups" if self.group else "none"

    def facts(self) -> dict[str, Any]:
        """For the record of each part."""
        return {
            "machine": machine_facts(),
            "isolation": self.isolation,
            "unavailable": {name: list(told) for name, told in self.unavailable.items()},
            "namespaces": [name for name, place in self.places.items() if place.link],
        }


@contextlib.contextmanager
def staged(
    params: RecordParams, templates: Sequence[BenchmarkTemplate], doses: Sequence[Dose], campaign: str
) -> Iterator[Stage]:
    """Everything that the nodes need for these benchmarks and doses. What a killed recorder has left is ended first.

    campaign: what tells its data from that of others. Raises MissingTool, NotPrepared."""
    shared = ON_DISK if os.access(ON_DISK, os.W_OK) else Path(tempfile.gettempdir())
    scratch = scratch_folder("nodes", campaign, place=params.scratch, shared=shared)
    end_leftovers(scratch)
    with _group(params) as group, _places(params, templates, scratch, group) as places:
        possible = tuple(one for one in templates if not any(_is_open(one, place) for place in places.values()))
        unavailable = {name: (*place.faults, *_open_faults(templates, place)) for name, place in places.items()}
        told = {name: faults for name, faults in unavailable.items() if faults}
        for place in places.values():
            place.prepare(possible, doses)
        with _sampled(params, templates, places, scratch) as sampler:
            yield Stage(group, places, possible, told, sampler)


def end_leftovers(scratch: Path) -> None:
    """End what a recorder that was killed has left: its processes, groups and namespaces."""
    n = end_registered(scratch / REGISTER, scratch)
    groups, namespaces = end_abandoned(ROOT), remove_abandoned()
    if n or groups or namespaces:
        logger.warning("ended what a killed recorder had left: %s", ", ".join((*groups, *namespaces)) or "processes")


def _is_open(template: BenchmarkTemplate, place: Place) -> bool:
    """Whether its server would listen to everybody: it cannot be bound to an address, and has no namespace."""
    return template.is_network and "{server}" not in template.server and place.link is None


def _open_faults(templates: Sequence[BenchmarkTemplate], place: Place) -> list[str]:
    return [
        f"{one.benchmark}: not run, its server would listen on every address of this machine; needs a network namespace"
        for one in templates
        if _is_open(one, place)
    ]


@contextlib.contextmanager
def _group(params: RecordParams) -> Iterator[Group | None]:
    if params.isolation == "none":
        yield None
        return
    with campaign_group(weight=params.cpu_weight, prefix=PREFIX, controllers=CONTROLLERS) as group:
        if group is None:
            logger.warning("no control groups here: nodes have no limits, and what others use is only estimated")
        yield group


@contextlib.contextmanager
def _places(
    params: RecordParams, templates: Sequence[BenchmarkTemplate], scratch: Path, group: Group | None
) -> Iterator[dict[str, Place]]:
    """A place for each node, removed afterwards."""
    has_network = params.isolation != "none" and any(one.is_network for one in templates)
    places: dict[str, Place] = {}
    try:
        for number, node in enumerate(nodes_of(params), start=1):
            places[node.name] = make_place(
                node, number, scratch, group, is_emulated=params.place == "emulated", has_network=has_network
            )
        yield places
    finally:
        for place in places.values():
            place.remove()
        (scratch / REGISTER).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            scratch.rmdir()


@contextlib.contextmanager
def _sampled(
    params: RecordParams, templates: Sequence[BenchmarkTemplate], places: Mapping[str, Place], scratch: Path
) -> Iterator[NodeSampler]:
    keeps_s = 2 * max((one.limit_s for one in templates), default=0.0) + 2 * params.margin_s + KEPT_S
    readers = {name: NodeReader(place) for name, place in places.items()}
    sampler = NodeSampler(readers, scratch, interval_s=params.interval_s, keeps_s=keeps_s)
    try:
        sampler.start()
        yield sampler
    finally:
        sampler.stop()
