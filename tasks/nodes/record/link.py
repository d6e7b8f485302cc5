"""The link between a node and its peer: two network namespaces, joined, shaped, and delayed where that is asked for.

For kernels without netem a delay is a program of its own, which carries packets between a device in one namespace and
one in another, each some milliseconds late, until it is killed:

    python -m tasks.nodes.record.link NAMESPACE ADDRESS NAMESPACE ADDRESS FILE

FILE holds the delay in milliseconds; after SIGUSR1 it is read again."""

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tasks.errors import WhorlError
from tasks.machine import find_tool, not_installed, was_there
from tasks.nodes.record.control_groups import Running, Surroundings, start
from tasks.nodes.record.params import NodeParams

TUN = "/dev/net/tun"
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
MTU = 16_000  # few, large packets: each costs this program about the same
MOST_BYTES = 65_536
MOST_WAITING = 4000  # packets; a device's own queue drops what is more
AT_ONCE = 64
PREFIX = "whorl-"  # and the recorder's process id
FOLDER = Path("/run/netns")
CLONE_NEWNET = 0x40000000
ASK_TIMEOUT_S = 10.0
DEVICE = "eth0"
RELAY_DEVICE = "tun0"
RELAY, DELAY_FILE = "tasks.nodes.record.link", "relay.delay"
NETWORK, DETOUR = "10.203.", "10.204."  # and the node's number
SAME_PAYLOAD = (1448 / 1514) / (15_948 / 16_000)  # a detour's packets are larger: they have fewer headers
READY, READY_S, NAP_S = "ready", 10.0, 0.02
MBIT = 1_000_000
LEAST_BURST = 262_144  # bytes; four of the largest packets that a device hands over at once
BURST_S = 0.005  # what a timer tick of 250 Hz lets through
LATENCY = "50ms"  # how long tbf lets a packet wait before it drops it


class NoNamespace(WhorlError):
    """A network namespace, a device in it or a limit on it that cannot be had here."""


def ask(command: str) -> str:
    """Run a command of iproute2 (ip or tc); returns what it says. Raises NoNamespace."""
    tool, *words = command.split()
    path = find_tool(tool)
    if path is None:
        raise NoNamespace(not_installed(tool, "iproute2"))
    try:
        answer = subprocess.run(
            [path, *words], capture_output=True, text=True, timeout=ASK_TIMEOUT_S, stdin=subprocess.DEVNULL, check=True
        )
    except subprocess.CalledProcessError as error:
        raise NoNamespace(f"{command}: {error.stderr.strip() or error.returncode}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoNamespace(f"{command}: {error}") from error
    return answer.stdout


def remove_namespace(name: str) -> None:
    """Remove a namespace with its devices; nothing if there is none."""
    with contextlib.suppress(NoNamespace):
        ask(f"ip netns del {name}")


def enter(name: str) -> None:
    """Move the calling thread, and it alone, into a namespace. Raises OSError."""
    with (FOLDER / name).open() as handle:
        if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the network namespace {name}")


def remove_abandoned(folder: Path = FOLDER) -> list[str]:
    """End what a killed recorder has left in its namespaces, and remove them; returns their names."""
    gone = []
    for path in sorted(folder.glob(f"{PREFIX}[0-9]*-*")) if folder.is_dir() else ():
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        if not pid.isdigit() or was_there(int(pid), path.stat().st_mtime):
            continue
        with contextlib.suppress(NoNamespace):
            for inside in ask(f"ip netns pids {path.name}").split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(inside), signal.SIGKILL)
        remove_namespace(path.name)
        gone.append(path.name)
    return gone


ROOT = Path(__file__).parents[3]  # the recorder may have been started anywhere


@dataclass
class Link:
    """A node's namespace and its peer's. Addresses exist in these two alone. device: the same name in both; around: of
    the relay's process; added_ms: delay beyond the link's own."""

    node: str
    peer: str
    node_address: str
    peer_address: str
    params: NodeParams
    around: Surroundings
    device: str = DEVICE
    relay: Running | None = None
    added_ms: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def is_delayed(self) -> bool:
        """Whether packets are late by more than the link's own delay."""
        return self.added_ms > 0 and self.relay is not None and self.relay.is_alive

    def delay(self, added_ms: float) -> None:
        """Have packets come later by this than they did at first, each way; 0: as they did. Raises NoNamespace.

        A link without a delay of its own gets a detour through a relay, which carries as much, while it lasts."""
        if self.params.delay_ms:
            _set_delay(self, self.params.delay_ms + added_ms)
        elif added_ms:
            self._open_detour()
            _set_delay(self, added_ms)
            self._lead("add")
        elif self.added_ms:
            self._lead("del")
        self.added_ms = added_ms

    def _open_detour(self) -> None:
        if self.relay and self.relay.is_alive:
            return
        addresses = [address.replace(NETWORK, DETOUR) for address in (self.node_address, self.peer_address)]
        if not _relayed(self, addresses, 0):
            raise NoNamespace(self.faults.pop())
        for namespace in (self.node, self.peer):
            if self.params.network_mbit_per_s:
                _shape(self, namespace, RELAY_DEVICE, self.params.network_mbit_per_s * SAME_PAYLOAD)

    def _lead(self, verb: Literal["add", "del"]) -> None:
        ways = [(self.node, self.node_address, self.peer_address), (self.peer, self.peer_address, self.node_address)]
        for namespace, source, target in ways:
            ask(f"ip -n {namespace} route {verb} {target}/32 dev {RELAY_DEVICE} src {source}")

    def remove(self) -> None:
        """End the relay and remove both namespaces."""
        if self.relay:
            self.relay.end()
        remove_namespace(self.node)
        remove_namespace(self.peer)


def make_link(params: NodeParams, number: int, around: Surroundings) -> Link:
    """A link for the number-th node. around: of the relay's process. Raises NoNamespace where there can be none.

    What of its shape does not work is among its faults."""
    name = f"{PREFIX}{os.getpid()}-{number}"
    addresses = (f"{NETWORK}{number}.1", f"{NETWORK}{number}.2")
    link = Link(f"{name}-node", f"{name}-peer", *addresses, params, around)
    try:
        for namespace in (link.node, link.peer):
            ask(f"ip netns add {namespace}")
            ask(f"ip -n {namespace} link set lo up")
        if params.delay_ms and _relayed(link, addresses, params.delay_ms):
            link.device = RELAY_DEVICE
        else:
            _joined(link)
        for namespace in (link.node, link.peer):
            if params.network_mbit_per_s:
                _shape(link, namespace, link.device, params.network_mbit_per_s)
    except BaseException:
        link.remove()
        raise
    return link


def _joined(link: Link) -> None:
    """Two ends of a virtual cable."""
    link.device = DEVICE
    ask(f"ip link add {DEVICE} netns {link.node} type veth peer name {DEVICE} netns {link.peer}")
    for namespace, address in ((link.node, link.node_address), (link.peer, link.peer_address)):
        ask(f"ip -n {namespace} address add {address}/24 dev {DEVICE}")
        ask(f"ip -n {namespace} link set {DEVICE} up")


def _relayed(link: Link, addresses: Sequence[str], delay_ms: float) -> bool:
    """Two devices whose packets a program carries over, late; false, with a fault, where that does not work."""
    file = link.around.folder / DELAY_FILE
    file.write_text(f"{delay_ms:g}")
    ends = [link.node, addresses[0], link.peer, addresses[1]]
    words = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", RELAY, *ends, str(file)]
    link.relay = start(words, link.around, link.around.folder / "relay.log")
    left_s = READY_S
    while left_s > 0 and link.relay.is_alive:
        if READY in link.relay.output():
            return True
        link.relay.wait(NAP_S)
        left_s -= NAP_S
    link.faults.append(f"delay of {delay_ms:g} ms: {link.relay.last_words()}")
    link.relay.end()
    link.relay = None
    return False


def _set_delay(link: Link, delay_ms: float) -> None:
    if link.relay:
        (link.around.folder / DELAY_FILE).write_text(f"{delay_ms:g}")
        os.kill(link.relay.process.pid, signal.SIGUSR1)


def _shape(link: Link, namespace: str, device: str, mbit_per_s: float) -> None:
    rate, burst = f"{mbit_per_s:g}mbit", max(LEAST_BURST, round(mbit_per_s * MBIT / 8 * BURST_S))
    try:
        ask(f"tc -n {namespace} qdisc add dev {device} root tbf rate {rate} burst {burst} latency {LATENCY}")
    except NoNamespace as bucket:
        try:
            ask(f"tc -n {namespace} qdisc add dev {device} root handle 1: htb default 1")
            ask(f"tc -n {namespace} class add dev {device} parent 1: classid 1:1 htb rate {rate}")
        except NoNamespace as tree:
            link.faults.append(f"rate of {mbit_per_s:g} Mbit/s: {bucket}; {tree}")


class Late:
    """Packets on their way, each due delay_s after it came, and never before one that came earlier."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self._waiting: deque[tuple[float, bytes]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether no more should be read for now."""
        return len(self._waiting) >= MOST_WAITING

    def put(self, packet: bytes, now_s: float) -> None:
        """A packet has come."""
        self._waiting.append((now_s + self.delay_s, packet))

    def due(self, now_s: float) -> list[bytes]:
        """The packets whose time has come, in their order."""
        ready = []
        while self._waiting and self._waiting[0][0] <= now_s:
            ready.append(self._waiting.popleft()[1])
        return ready

    def next_s(self) -> float | None:
        """When the next one is due; None if there is none."""
        return self._waiting[0][0] if self._waiting else None


def open_device(namespace: str, address: str) -> int:
    """Make a device in a namespace, up and with this address; returns its file. Moves the caller there. Raises."""
    enter(namespace)
    handle = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH", RELAY_DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    ask(f"ip link set {RELAY_DEVICE} mtu {MTU} txqueuelen 1000")
    ask(f"ip address add {address}/24 dev {RELAY_DEVICE}")
    ask(f"ip link set {RELAY_DEVICE} up")
    return handle


def carry(ways: Mapping[int, tuple[int, Late]]) -> None:
    """Wait for the next packet, take what has come, pass on what is due. ways: from a file to another, with those on
    their way."""
    dues = [due for _, late in ways.values() if (due := late.next_s()) is not None]
    timeout_s = max(0.0, min(dues) - time.monotonic()) if dues else None
    polled = [file for file, (_, late) in ways.items() if not late.is_full]
    readable, _, _ = select.select(polled, [], [], timeout_s)
    for file in readable:
        with contextlib.suppress(BlockingIOError):
            for _ in range(AT_ONCE):
                ways[file][1].put(os.read(file, MOST_BYTES), time.monotonic())
    for target, late in ways.values():
        for packet in late.due(time.monotonic()):
            with contextlib.suppress(OSError):  # the device is down or full: a link loses packets
                os.write(target, packet)


def main(words: list[str]) -> None:
    """Make both devices and carry packets until killed."""
    node, node_address, peer, peer_address, file = words
    first, other = open_device(node, node_address), open_device(peer, peer_address)
    there, back = Late(0), Late(0)

    def read(*_: object) -> None:
        there.delay_s = back.delay_s = float(Path(file).read_text()) / 1000

    read()
    signal.signal(signal.SIGUSR1, read)
    print(READY, flush=True)
    while True:
        carry({first: (other, there), other: (first, back)})


if __name__ == "__main__":
    main(sys.argv[1:])
