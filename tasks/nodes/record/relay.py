"""A link with a delay: carries packets between a device in one network namespace and one in another, each some
milliseconds late. For kernels without netem. Run as a program of its own; it ends when it is killed.

    python -m tasks.nodes.record.relay NAMESPACE ADDRESS NAMESPACE ADDRESS FILE

FILE holds the delay in milliseconds; after SIGUSR1 it is read again.
"""

import fcntl
import os
import select
import signal
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

TUN = "/dev/net/tun"
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
MTU = 16_000  # few, large packets: each costs this program about the same
MOST_BYTES = 65_536
MOST_WAITING = 4000  # packets; a device's own queue drops what is more
AT_ONCE = 64
Now = Callable[[], float]


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


def open_device(namespace: str, address: str, name: str = "tun0") -> int:
    """Make a device in a namespace, up and with this address; returns its file. Moves the caller there. Raises."""
    from tasks.nodes.record.link import enter, ip

    enter(namespace)
    handle = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    ip("link", "set", name, "mtu", str(MTU), "txqueuelen", "1000")
    ip("address", "add", f"{address}/24", "dev", name)
    ip("link", "set", name, "up")
    return handle


def carry(
    one: int, other: int, there: Late, back: Late, *, now: Now = time.monotonic, turns: int | None = None
) -> None:
    """Carry packets between two files for ever, or for so many turns. there: those from one to other on their way."""
    ways = {one: (other, there), other: (one, back)}
    while turns is None or turns > 0:
        turns = turns - 1 if turns is not None else None
        dues = [due for _, late in ways.values() if (due := late.next_s()) is not None]
        timeout_s = max(0.0, min(dues) - now()) if dues else None
        asked = [file for file, (_, late) in ways.items() if not late.is_full]
        readable, _, _ = select.select(asked, [], [], timeout_s)
        for file in readable:
            _take(file, ways[file][1], now)
        for target, late in ways.values():
            for packet in late.due(now()):
                _give(target, packet)


def _take(file: int, late: Late, now: Now) -> None:
    for _ in range(AT_ONCE):
        try:
            late.put(os.read(file, MOST_BYTES), now())
        except BlockingIOError:
            return


def _give(file: int, packet: bytes) -> None:
    try:
        os.write(file, packet)
    except OSError:  # the device is down or full: a link loses packets
        return


def main(words: list[str]) -> None:
    """Make both devices and carry packets until killed."""
    node, node_address, peer, peer_address, file = words
    one = open_device(node, node_address)
    other = open_device(peer, peer_address)
    there, back = Late(0), Late(0)

    def read(*_: object) -> None:
        there.delay_s = back.delay_s = float(Path(file).read_text()) / 1000

    read()
    signal.signal(signal.SIGUSR1, read)
    print("ready", flush=True)
    carry(one, other, there, back)


if __name__ == "__main__":
    main(sys.argv[1:])
