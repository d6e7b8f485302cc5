"""A node at work: its folder, its control groups, its link and its servers; made once, used by every execution."""

import contextlib
import logging
import os
import shlex
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.errors import BadSetting, MissingTool, WhorlError
from tasks.machine import ControlGroup, find_tool, not_installed
from tasks.nodes.record.control_groups import (
    MB,
    REGISTER,
    NodeGroups,
    Running,
    Surroundings,
    make_groups,
    run,
    set_limits,
    start,
)
from tasks.nodes.record.link import Link, NoNamespace, make_link
from tasks.nodes.record.params import BenchmarkTemplate, Dose, LoweredLimit, NodeParams
from tasks.record.processes import LOOPBACK, free_port

READY_S, NAP_S = 5.0, 0.01
LISTENS = "0A"  # state of a socket in /proc/net/tcp
FIRST_PORT = 20_700  # in namespaces of our own nobody else has one
FAST_MBIT = 10_000  # what {rate_mbit} is a share of where the link has no rate of its own
FAST_MB_PER_S = 500  # the same for {disk_bytes} and the disk
PERCENT = 100
PREPARE_S = 600.0
STRESS = "stress"  # what competing traffic needs a server for
STRESS_SERVER = "iperf3 -s -B {server} -p {port}"
logger = logging.getLogger(__name__)


class NoBenchmarkServer(WhorlError):
    """A server of a benchmark that does not listen."""


def is_listening(pid: int, port: int) -> bool:
    """Whether somebody listens on a TCP port in the network namespace of a process."""
    wanted = f":{port:04X}"
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(wanted) and fields[3] == LISTENS:
                    return True
    return False


class NotPrepared(WhorlError):
    """A benchmark that cannot be run on this node; the message says why."""


@dataclass
class NodePlace:
    """Where one node's programs run. faults: what of the node does not work on this machine; lowered: names of the
    limits that are no longer those that it began with; ports, servers: of its peer, by what they are for."""

    params: NodeParams
    is_emulated: bool
    folder: Path
    groups: NodeGroups | None = None
    link: Link | None = None
    faults: list[str] = field(default_factory=list)
    lowered: list[str] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)
    servers: dict[str, Running] = field(default_factory=dict)

    @property
    def cpu_cores(self) -> float:
        """Processors that the node has at most."""
        n_cores = len(self.params.cores) or len(os.sched_getaffinity(0))
        return min(n_cores, self.params.cpu_percent / PERCENT) if self.params.cpu_percent else n_cores

    @property
    def server_address(self) -> str:
        """Where the node's peer listens: in a namespace of ours, or on this machine's loopback device."""
        return self.link.peer_address if self.link else LOOPBACK

    def around(self, group: ControlGroup | None) -> Surroundings:
        """Surroundings of the node."""
        namespace = self.link.node if self.link else ""
        return Surroundings(self.folder, group, namespace, self.params.cores, self.folder.parent / REGISTER)

    def around_peer(self) -> Surroundings:
        """Surroundings of its peer, which has no limits."""
        group, namespace = self.groups.peer if self.groups else None, self.link.peer if self.link else ""
        return Surroundings(self.folder, group, namespace, register=self.folder.parent / REGISTER, is_shared=True)

    def port_of(self, purpose: str) -> int:
        """The port that the server for this has, or will have."""
        if purpose not in self.ports:
            self.ports[purpose] = FIRST_PORT + len(self.ports) if self.link else free_port()
        return self.ports[purpose]

    def values(
        self, *, purpose: str = "", limit_s: float = 0.0, link_ratio: float = 0.0, disk_ratio: float = 0.0
    ) -> dict[str, str]:
        """What the placeholders of a command stand for. purpose: of the server whose port it is to have."""
        rate = (self.params.network_mbit_per_s or FAST_MBIT) * link_ratio
        disk_bytes = (self.params.disk_mb_per_s or FAST_MB_PER_S) * MB * disk_ratio
        return {
            "folder": str(self.folder),
            "laid": str(self.folder),
            "server": self.server_address,
            "port": str(self.port_of(purpose)) if purpose else "",
            "stress_port": str(self.port_of(STRESS)),
            "rate_mbit": f"{rate:g}",
            "disk_bytes": f"{disk_bytes:.0f}",
            "limit_s": f"{limit_s:.0f}",
        }

    def command(self, text: str, values: dict[str, str]) -> list[str]:
        """The words of a command, its program by its full path. Raises MissingTool."""
        tool, *rest = (word.format_map(values) for word in shlex.split(text))
        if path := find_tool(tool):
            return [path, *rest]
        raise MissingTool(not_installed(tool))

    def serve(self, purpose: str, command: str) -> None:
        """Have the server for this listen on its port. Raises NoBenchmarkServer, MissingTool."""
        if purpose in self.servers and self.servers[purpose].is_alive:
            return
        self.stop_server(purpose)
        words, port = self.command(command, self.values(purpose=purpose)), self.port_of(purpose)
        running = start(words, self.around_peer(), self.folder / f"server-{port}.log")
        self.servers[purpose] = running
        ends_s = time.monotonic() + READY_S
        while not is_listening(running.process.pid, port):
            if not running.is_alive or time.monotonic() > ends_s:
                reason = running.last_words()
                self.stop_server(purpose)
                raise NoBenchmarkServer(f"{words[0]}: does not listen on port {port} ({reason})")
            time.sleep(NAP_S)

    def stop_server(self, purpose: str) -> None:
        """Stop the server for this, if there is one."""
        if purpose in self.servers:
            self.servers.pop(purpose).end()

    def prepare(self, templates: Sequence[BenchmarkTemplate], doses: Iterable[Dose] = ()) -> None:
        """Lay out what benchmarks and stressors work on, without the node's limits. Raises NotPrepared."""
        commands = (*(load.prepare for load in templates), *(load.prepare for load in doses))
        for command in filter(None, dict.fromkeys(commands)):
            words = self.command(command, self.values())
            running, status = run(words, self.around_peer(), self.folder / "prepare.log", PREPARE_S)
            if status != 0:
                raise NotPrepared(f"{self.params.name}: {command}: {running.last_words()}")
        os.sync()

    def lower(self, limit: LoweredLimit) -> None:
        """Change limits of the node, which has control groups, from now on. Raises BadSetting where that fails."""
        changed = {"cpu_percent": limit.cpu_percent, "disk_mb_per_s": limit.disk_mb_per_s}
        self.params = self.params.model_copy(update={key: value for key, value in changed.items() if value})
        if self.groups and (faults := set_limits(self.groups.node, self.params, self.folder)):
            raise BadSetting(f"nodes.record.lowered: {limit.node}: {'; '.join(faults)}")
        self.lowered.append(limit.name)

    def remove(self) -> None:
        """End everything of the node and remove its data."""
        for purpose in list(self.servers):
            self.stop_server(purpose)
        if self.link:
            self.link.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


def make_place(
    params: NodeParams,
    number: int,
    scratch: Path,
    campaign: ControlGroup | None,
    *,
    is_emulated: bool,
    has_network: bool,
) -> NodePlace:
    """A place for a node; what it cannot have here is among its faults. campaign: the group of all nodes, if any."""
    folder = scratch / params.name
    folder.mkdir(parents=True, exist_ok=True)
    groups, faults = make_groups(campaign, params, folder)
    link = None
    if has_network:
        try:
            peer = Surroundings(folder, groups.peer if groups else None, register=scratch / REGISTER, is_shared=True)
            link = make_link(params, number, peer)
            faults += link.faults
        except NoNamespace as error:
            faults.append(f"network namespaces: {error}; client and server share the loopback device")
    for fault in faults:
        logger.warning("%s: %s", params.name, fault)
    return NodePlace(params, is_emulated, folder, groups, link, faults)


def check_tools(templates: Sequence[BenchmarkTemplate], doses: Iterable[Dose]) -> None:
    """Raises MissingTool that names all programs that are not installed. doses: those that are to be applied."""
    names = {template.benchmark for template in templates}
    commands = [text for load in templates for text in (load.command, load.prepare, load.server) if text]
    commands += [text for load in doses for text in (load.command, load.prepare) if text and load.benchmark in names]
    programs = dict.fromkeys(shlex.split(command)[0] for command in commands)
    if lacking := [not_installed(name) for name in programs if find_tool(name) is None]:
        raise MissingTool("; ".join(lacking))
