"""The ladder of doses that is shipped, chosen with `measure_doses` on two cores, and what that tries."""

from tasks.nodes.record.doses import Dose

CPU = "stress-ng --cpu 16 --temp-path {folder} --timeout {limit_s}s"
FILE = "fio --name=stress --filename={{laid}}/for-stress --size=256M --rw=randread --direct=1 --bs={block}"
IPERF = "iperf3 -c {server} -p {stress_port} -t {limit_s} --bidir -b {rate_mbit}M"


def _throttle(level: int, left: float) -> Dose:
    # nothing else slows sysbench memory: what strains memory leaves it alone
    return Dose(benchmark="memory-sysbench", level=level, name=f"throttle-{left:g}", throttle_ratio=left)


def _cpu(level: int, share: float) -> Dose:
    return Dose(benchmark="cpu-sysbench", level=level, name=f"cpu-{share:g}", command=CPU, cpu_ratio=share)


def _reads(benchmark: str, level: int, share: float, block: str = "64k") -> Dose:
    # a competitor for the node's disk rate: one random read after another, at this share of it; 1: as many as it can
    rate = " --rate={disk_bytes}" if share < 1 else ""
    command = f"{FILE.format(block=block)} --time_based=1 --runtime={{limit_s}}{rate}"
    prepare = f"{FILE.format(block='1m')} --create_only=1"
    name = f"read-{block}-{share:g}"
    return Dose(benchmark=benchmark, level=level, name=name, command=command, prepare=prepare, disk_ratio=min(share, 1))


def _iperf(benchmark: str, level: int, share: float) -> Dose:
    return Dose(benchmark=benchmark, level=level, name=f"iperf-{share:g}", command=IPERF, link_ratio=share)


SHIPPED = (
    *(_cpu(level, share) for level, share in ((1, 0.02), (2, 0.1), (3, 0.22))),
    *(_throttle(level, left) for level, left in ((1, 0.8), (2, 0.65), (3, 0.1))),
    _reads("disk-fio", 1, 0.2),
    _reads("disk-fio", 2, 0.5),
    _reads("disk-fio", 3, 1, "512k"),
    *(_reads("disk-ioping", level, share) for level, share in ((1, 0.05), (2, 0.12), (3, 0.25))),
    *(
        _iperf(benchmark, level, share)
        for benchmark in ("network-qperf", "network-iperf3")
        for level, share in ((1, 0.005), (2, 0.015), (3, 0.05))
    ),
)

# what `measure_doses` tries: shares that lie far enough apart to tell them from each other
SHARES = (0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.0)
LEFT = (0.95, 0.9, 0.8, 0.65, 0.5, 0.3, 0.1)
WATCHED = {
    "cpu-sysbench": "events_per_second",
    "memory-sysbench": "transfer_rate",
    "disk-fio": "read_clat_avg",
    "disk-ioping": "latency_avg",
    "network-qperf": "tcp_bw_bandwidth",
    "network-iperf3": "tx_c_transfer_bitrate_receiver",
}
DISK_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0)
LINK_SHARES = (0.005, 0.01, 0.015, 0.03, 0.05, 0.1, 0.3)


def candidates_for(benchmark: str) -> tuple[Dose, ...]:
    """The doses that are tried for a benchmark, weakest first; none for one that is not ours. All have level 1."""
    if benchmark == "cpu-sysbench":
        return tuple(_cpu(1, share) for share in SHARES)
    if benchmark == "memory-sysbench":
        return tuple(_throttle(1, left) for left in LEFT)
    if benchmark in ("disk-fio", "disk-ioping"):
        small = tuple(_reads(benchmark, 1, share) for share in DISK_SHARES)
        return (*small, _reads(benchmark, 1, 1, "512k")) if benchmark == "disk-fio" else small
    if benchmark in ("network-qperf", "network-iperf3"):
        return tuple(_iperf(benchmark, 1, share) for share in LINK_SHARES)
    return ()
