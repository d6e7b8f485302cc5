"""The link between a node and its peer: two network namespaces, joined, shaped, and delayed where that is asked for."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tasks.nodes.record.namespaces import PREFIX, NoNamespace, ip, make_namespace, remove_namespace, tc
from tasks.nodes.record.params import NodeParams
from tasks.nodes.record.surroundings import Running, Surroundings, start

DEVICE = "eth0"
RELAY_DEVICE = "tun0"
RELAY = "tasks.nodes.record.relay"
ROOT = Path(__file__).parents[3]  # the recorder may have been started anywhere
READY, READY_S, NAP_S = "ready", 10.0, 0.02
MBIT = 1_000_000
LEAST_BURST = 262_144  # bytes; four of the largest packets that a device hands over at once
BURST_S = 0.005  # what a timer tick of 250 Hz lets through
LATENCY = "50ms"  # how long tbf lets a packet wait before it drops it


@dataclass
class Link:
    """A node's namespace and its peer's. Addresses exist in these two alone. device: the same name in both."""

    node: str
    peer: str
    node_address: str
    peer_address: str
    device: str = DEVICE
    relay: Running | None = None
    faults: list[str] = field(default_factory=list)

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
    link = Link(f"{name}-node", f"{name}-peer", f"10.203.{number}.1", f"10.203.{number}.2")
    try:
        make_namespace(link.node)
        make_namespace(link.peer)
        if not (params.delay_ms and _relayed(link, params.delay_ms, around)):
            _joined(link)
        for namespace in (link.node, link.peer):
            if params.network_mbit_per_s:
                _shape(link, namespace, params.network_mbit_per_s)
    except BaseException:
        link.remove()
        raise
    return link


def _joined(link: Link) -> None:
    """Two ends of a virtual cable."""
    link.device = DEVICE
    ip("link", "add", DEVICE, "netns", link.node, "type", "veth", "peer", "name", DEVICE, "netns", link.peer)
    for namespace, address in ((link.node, link.node_address), (link.peer, link.peer_address)):
        ip("-n", namespace, "address", "add", f"{address}/24", "dev", DEVICE)
        ip("-n", namespace, "link", "set", DEVICE, "up")


def _relayed(link: Link, delay_ms: float, around: Surroundings) -> bool:
    """Two devices whose packets a program carries over, late; false, with a fault, where that does not work."""
    ends = [link.node, link.node_address, link.peer, link.peer_address]
    words = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", RELAY, *ends, str(delay_ms)]
    link.relay = start(words, around, around.folder / "relay.log")
    left_s = READY_S
    while left_s > 0 and link.relay.is_alive:
        if READY in link.relay.said():
            link.device = RELAY_DEVICE
            return True
        link.relay.wait(NAP_S)
        left_s -= NAP_S
    link.faults.append(f"delay of {delay_ms:g} ms: {link.relay.last_words()}")
    link.relay.end()
    link.relay = None
    return False


def _shape(link: Link, namespace: str, mbit_per_s: float) -> None:
    rate, burst = f"{mbit_per_s:g}mbit", str(max(LEAST_BURST, round(mbit_per_s * MBIT / 8 * BURST_S)))
    add = ("qdisc", "add", "dev", link.device, "root")
    try:
        tc(namespace, *add, "tbf", "rate", rate, "burst", burst, "latency", LATENCY)
    except NoNamespace as bucket:
        try:
            tc(namespace, *add, "handle", "1:", "htb", "default", "1")
            tc(namespace, "class", "add", "dev", link.device, "parent", "1:", "classid", "1:1", "htb", "rate", rate)
        except NoNamespace as tree:
            link.faults.append(f"rate of {mbit_per_s:g} Mbit/s: {bucket}; {tree}")
