"""What qperf measures with --verbose_more: tcp_bw and tcp_lat, 26 and 27 metrics as Perona has them, and errors."""

from tasks.nodes.tools.facts import MetricFacts, Of

NETWORK = Of("network")
CPU_USES = {
    "used": "all of it",
    "user": "user mode",
    "intr": "interrupts",
    "kernel": "kernel mode",
    "iowait": "waiting for disks",
}


def _settings(test: str) -> dict[str, MetricFacts]:
    return {
        f"{test}_msg_size": NETWORK.neither("B", "setting: size of a message"),
        f"{test}_time": NETWORK.neither("s", "setting: time to run"),
        f"{test}_timeout": NETWORK.neither("s", "setting: time to wait for the other side"),
    }


def _side(prefix: str, who: str) -> dict[str, MetricFacts]:
    over = f"{prefix}_real_time"
    uses = {
        f"{prefix}_cpus_{use}": NETWORK.neither("%", f"processors busy at {who}: {what}; nothing printed for 0")
        for use, what in CPU_USES.items()
    }
    return {
        **uses,
        f"{prefix}_real_time": NETWORK.neither("s", f"time that the test ran at {who}"),
        f"{prefix}_cpu_time": NETWORK.neither("s", f"processor time at {who}", over=over),
    }


def _moved(prefix: str, over: str, way: str, who: str) -> dict[str, MetricFacts]:
    names = {"bytes": "B", "msgs": ""}
    return {f"{prefix}_{name}": NETWORK.more(unit, f"{name} {way} at {who}", over=over) for name, unit in names.items()}


def _bandwidth() -> dict[str, MetricFacts]:
    found = {
        "tcp_bw_bandwidth": NETWORK.more("B/s", "bytes received a second", is_headline=True),
        "tcp_bw_msg_rate": NETWORK.more("1/s", "messages a second"),
        "tcp_bw_access_recv": NETWORK.neither("", "setting: 1 if received data are read once more"),
        **_settings("tcp_bw"),
        "tcp_bw_send_cost": NETWORK.less("s/GB", "processor time of the sender for a GB"),
        "tcp_bw_recv_cost": NETWORK.less("s/GB", "processor time of the receiver for a GB"),
    }
    for side, way in (("send", "sent"), ("recv", "received")):
        prefix, who = f"tcp_bw_{side}", "the sender" if side == "send" else "the receiver"
        found |= {**_side(prefix, who), **_moved(prefix, f"{prefix}_real_time", way, who)}
        found[f"{prefix}_errors"] = NETWORK.less(
            "", f"errors at {who}; nothing printed for 0", over=f"{prefix}_real_time"
        )
    return found


def _latency() -> dict[str, MetricFacts]:
    found = {
        "tcp_lat_latency": NETWORK.less("s", "time of a message one way: half of there and back", is_headline=True),
        "tcp_lat_msg_rate": NETWORK.more("1/s", "messages a second"),
        **_settings("tcp_lat"),
    }
    for side, who in (("loc", "the client"), ("rem", "the server")):
        prefix, over = f"tcp_lat_{side}", f"tcp_lat_{side}_real_time"
        found |= _side(prefix, who)
        for way, done in (("send", "sent"), ("recv", "received")):
            found |= _moved(f"{prefix}_{way}", over, done, who)
            found[f"{prefix}_{way}_errors"] = NETWORK.less("", f"errors at {who}; nothing printed for 0", over=over)
    return found


METRICS: dict[str, MetricFacts] = {**_bandwidth(), **_latency()}
