"""What iperf3 measures: by direction, tx_c (the client sends) and rx_c (the client receives), as [TX-C] and [RX-C]."""

from tasks.nodes.tools.facts import MetricFacts, Of

NETWORK = Of("network")
DIRECTIONS = {"tx_c": "from client to server", "rx_c": "from server to client"}
ENDS = ("sender", "receiver")
ROUND_TRIP_STEP_S, PERCENT_STEP = 1e-6, 0.1
MODES = {"": "all", "_user": "user mode", "_system": "kernel mode"}


def _direction(prefix: str, way: str) -> dict[str, MetricFacts]:
    found: dict[str, MetricFacts] = {}
    for end in ENDS:
        found |= {
            f"{prefix}_time_{end}": NETWORK.neither("s", f"time {way}, of the {end}"),
            f"{prefix}_transfer_size_{end}": NETWORK.more(
                "B", f"bytes {way}, counted by the {end}", over=f"{prefix}_time_{end}"
            ),
            f"{prefix}_transfer_bitrate_{end}": NETWORK.more(
                "B/s", f"speed {way}, counted by the {end}", is_headline=True
            ),
        }
    found[f"{prefix}_transfer_retr_sender"] = NETWORK.less(
        "", f"segments sent again {way}; Linux and FreeBSD only", over=f"{prefix}_time_sender"
    )
    for end in ENDS:
        for mode, what in MODES.items():
            found[f"{prefix}_cpu_util_{end}{mode}"] = NETWORK.neither(
                "%", f"processor use of the {end} {way}: {what}", resolution=PERCENT_STEP
            )
    return found


METRICS: dict[str, MetricFacts] = {
    **{name: facts for prefix, way in DIRECTIONS.items() for name, facts in _direction(prefix, way).items()},
    # the kernel of the sending side knows these, so they are missing where that is the server
    "tx_c_rtt_min": NETWORK.less(
        "s", "shortest round trip, as the client's kernel sees it; JSON only", resolution=ROUND_TRIP_STEP_S
    ),
    "tx_c_rtt_mean": NETWORK.less(
        "s", "mean round trip, as the client's kernel sees it; JSON only", resolution=ROUND_TRIP_STEP_S
    ),
    "tx_c_rtt_max": NETWORK.less(
        "s", "longest round trip, as the client's kernel sees it; JSON only", resolution=ROUND_TRIP_STEP_S
    ),
    "tx_c_max_snd_cwnd": NETWORK.neither("B", "largest congestion window of the client; JSON only"),
}
