"""Counters of the network: the loopback device and all others apart, and the segments of TCP."""

from pathlib import Path

from tasks.workloads.record.measures import Source, gauge, rate

FIELDS = {
    "received_bytes": 0,
    "received_packets": 1,
    "sent_bytes": 8,
    "sent_packets": 9,
}
DROPS = (2, 3, 10, 11)  # errors and drops, both ways
LOOPBACK = "lo"

DEVICES = (
    rate("net.loopback_bytes", "B", "bytes from this machine to itself", "lo.received_bytes"),
    rate("net.loopback_packets", "packets", "packets from this machine to itself", "lo.received_packets"),
    rate("net.received_bytes", "B", "bytes received by all other devices", "other.received_bytes"),
    rate("net.received_packets", "packets", "packets received by all other devices", "other.received_packets"),
    rate("net.sent_bytes", "B", "bytes sent by all other devices", "other.sent_bytes"),
    rate("net.sent_packets", "packets", "packets sent by all other devices", "other.sent_packets"),
    rate("net.dropped_packets", "packets", "packets lost or broken, all devices", "lo.drops", "other.drops"),
)
PROTOCOLS = (
    rate("tcp.received_segments", "segments", "TCP segments received", "Tcp.InSegs"),
    rate("tcp.sent_segments", "segments", "TCP segments sent", "Tcp.OutSegs"),
    rate("tcp.retransmitted_segments", "segments", "TCP segments sent again", "Tcp.RetransSegs"),
    rate("tcp.active_opens", "connections", "connections opened from here", "Tcp.ActiveOpens"),
    rate("tcp.passive_opens", "connections", "connections accepted here", "Tcp.PassiveOpens"),
    rate("tcp.resets", "connections", "connections cut off", "Tcp.EstabResets", "Tcp.OutRsts"),
    gauge("tcp.connections", "connections", "connections there are", "Tcp.CurrEstab"),
    rate("udp.datagrams", "datagrams", "UDP datagrams received or sent", "Udp.InDatagrams", "Udp.OutDatagrams"),
)
SOCKETS = (gauge("net.sockets", "sockets", "sockets in use", "sockets"),)


def parse_devices(text: str) -> dict[str, float]:
    """/proc/net/dev: the loopback device as `lo.`, the sum of all others as `other.`."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if not colon:
            continue
        fields = [float(text) for text in rest.split()]
        side = "lo" if name.strip() == LOOPBACK else "other"
        for key, place in FIELDS.items():
            found[f"{side}.{key}"] = found.get(f"{side}.{key}", 0.0) + fields[place]
        found[f"{side}.drops"] = found.get(f"{side}.drops", 0.0) + sum(fields[place] for place in DROPS)
    return found


def parse_snmp(text: str) -> dict[str, float]:
    """/proc/net/snmp: pairs of lines, names and values, each with the protocol before it."""
    lines = [line.split() for line in text.splitlines()]
    found: dict[str, float] = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        protocol = names[0]
        found |= {f"{protocol[:-1]}.{name}": float(value) for name, value in zip(names[1:], values[1:], strict=True)}
    return found


def parse_sockets(text: str) -> dict[str, float]:
    """/proc/net/sockstat: `sockets: used N` comes first."""
    return {"sockets": float(text.split()[2])}


def net_sources(proc: Path) -> list[Source]:
    """What /proc says of the network."""
    return [
        Source(proc / "net" / "dev", parse_devices, DEVICES),
        Source(proc / "net" / "snmp", parse_snmp, PROTOCOLS),
        Source(proc / "net" / "sockstat", parse_sockets, SOCKETS),
    ]
