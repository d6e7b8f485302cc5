"""The parameters of a recording, as a flow form and conf/nodes.yaml show them: nodes, benchmarks, doses of stress."""

import hashlib
import json
import platform
import shlex
from collections.abc import Sequence
from pathlib import Path
from string import Formatter
from typing import Any, Literal

from pydantic import Field, field_validator

from tasks.machine import machine_name, slug
from tasks.params import Params

Aspect = Literal["cpu", "memory", "disk", "network"]
PLACEHOLDERS = ("folder", "laid", "server", "port", "stress_port", "rate_mbit", "disk_bytes", "limit_s")
SLUG = r"^[a-z0-9]+(-[a-z0-9]+)*$"
NAMES = "folder: of the node on its disk; server, port: of its peer"
FIO = "fio --name=randwrite --iodepth=1 --readwrite=randrw --blocksize=4m --size={size} --directory={{folder}}"
QPERF = "qperf {{server}} --listen_port {{port}} --verbose_more --time {seconds} --access_recv 1 tcp_bw tcp_lat"
LEVELS = (1, 2, 3)
CPU = "stress-ng --cpu 16 --temp-path {folder} --timeout {limit_s}s"
FILE = "fio --name=stress --filename={{laid}}/for-stress --size=256M --rw=randread --direct=1 --bs={block}"
IPERF = "iperf3 -c {server} -p {stress_port} -t {limit_s} --bidir -b {rate_mbit}M"


def checked_command(text: str) -> str:
    """A command line whose words in braces are ones that the recorder fills in. Raises ValueError."""
    shlex.split(text)
    unknown = [name for _, name, _, _ in Formatter().parse(text) if name is not None and name not in PLACEHOLDERS]
    if unknown:
        raise ValueError(f"no {{{unknown[0]}}} to fill in; expected some of {', '.join(PLACEHOLDERS)}")
    return text


class BenchmarkTemplate(Params):
    """One benchmark as it is run, the same on every node."""

    benchmark: str = Field(pattern=SLUG, max_length=100, description="Name")
    aspect: Aspect = Field(description="Resource that it measures")
    command: str = Field(min_length=1, max_length=1000, description=f"Command; filled in are {NAMES}")
    prepare: str = Field("", max_length=1000, description="Runs once on each node, beforehand and without its limits")
    server: str = Field("", max_length=1000, description="Runs beside it at its peer, for network benchmarks")
    limit_s: float = Field(20, gt=0, le=86_400, description="Longest time that it may take, in seconds")

    _commands = field_validator("command", "prepare", "server")(checked_command)

    @property
    def tool(self) -> str:
        """The name of its program."""
        return Path(shlex.split(self.command)[0]).name

    @property
    def is_network(self) -> bool:
        """Whether it needs a server: one at a time over all nodes."""
        return bool(self.server)

    @property
    def template_hash(self) -> str:
        """SHA-256 of what is run: with the benchmark's name, this is its type."""
        content = {key: getattr(self, key) for key in ("benchmark", "command", "prepare", "server")}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _templates(seconds: int, fio_size: str, ioping: str, limit_s: float) -> tuple[BenchmarkTemplate, ...]:
    sysbench, fio = f"--threads=16 --time={seconds}", FIO.format(size=fio_size)
    laid, timed = f"{fio} --create_only=1", f"{fio} --runtime={seconds} --time_based=1 --output-format=json"
    iperf = f"iperf3 -c {{server}} -p {{port}} -t {seconds} --bidir -J"
    rows: tuple[tuple[Aspect, str, str, str, str], ...] = (
        ("cpu", "sysbench", f"sysbench cpu {sysbench} run", "", ""),
        ("memory", "sysbench", f"sysbench memory {sysbench} --memory-total-size=1000G run", "", ""),
        ("disk", "fio", timed, laid, ""),
        ("disk", "ioping", ioping, "", ""),
        ("network", "qperf", QPERF.format(seconds=seconds), "", "qperf --listen_port {port}"),
        ("network", "iperf3", iperf, "", "iperf3 -s -B {server} -p {port}"),
    )
    return tuple(
        BenchmarkTemplate(
            benchmark=f"{aspect}-{tool}", aspect=aspect, command=command, prepare=prepare, server=server,
            limit_s=limit_s + seconds * (tool == "qperf"),  # it measures twice
        )
        for aspect, tool, command, prepare, server in rows
    )  # fmt: skip


# ioping without pauses: with them a short run asks for less than the disk gives, and tells nothing of its rate
SHORT = _templates(2, "512M", "ioping -w 2 -G -L -i 0 -q -J {folder}", 20)
PAPER = _templates(30, "4096M", "ioping -w 30 -G -L -J {folder}", 90)  # Perona, III-A, and its published options


class Dose(Params):
    """One rung of the ladder of one benchmark."""

    benchmark: str = Field(pattern=SLUG, max_length=100, description="Benchmark that it is meant for")
    node: str = Field("", max_length=60, description="Node that it is meant for; empty: all")
    level: int = Field(ge=1, le=3, description="1, 2, 3: about 1, 3, 10 standard deviations of the benchmark")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=60, description="Name, as it stands in the label")
    command: str = Field(
        "", max_length=1000, description="Stressor on the same node, in a control group of its own; empty: none"
    )
    prepare: str = Field(
        "", max_length=1000, description="Runs once on each node, beforehand and without its limits, in {laid}"
    )
    cpu_ratio: float = Field(
        1, gt=0, le=1, description="Share of the node's processors that the stressor may have at most"
    )
    throttle_ratio: float = Field(
        1, gt=0, le=1, description="Share of the node's processors that is left to the benchmark"
    )
    link_ratio: float = Field(
        0, ge=0, le=1, description="Share of the node's link that {rate_mbit} in the command stands for"
    )
    disk_ratio: float = Field(
        0, ge=0, le=1, description="Share of the node's disk rate that {disk_bytes} in the command stands for, a second"
    )
    delay_ms: float = Field(0, ge=0, le=10_000, description="Delay added to the node's link, each way, in milliseconds")

    _commands = field_validator("command", "prepare")(checked_command)


def doses_of(doses: Sequence[Dose], benchmark: str, level: int, node: str = "") -> list[Dose]:
    """The doses of this level for a benchmark, in their order. node: those meant for it, too; empty: of any node."""
    ours = [dose for dose in doses if (dose.benchmark, dose.level) == (benchmark, level)]
    return [dose for dose in ours if not node or dose.node in ("", node)]


def _reads(benchmark: str, level: int, share: float, block: str = "64k") -> Dose:
    # a competitor for the node's disk rate: one random read after another, at this share of it; 1: as many as it can
    rate = " --rate={disk_bytes}" if share < 1 else ""
    command = f"{FILE.format(block=block)} --time_based=1 --runtime={{limit_s}}{rate}"
    prepare = f"{FILE.format(block='1m')} --create_only=1"
    name = f"read-{block}-{share:g}"
    return Dose(benchmark=benchmark, level=level, name=name, command=command, prepare=prepare, disk_ratio=min(share, 1))


def _dose(benchmark: str, level: int, kind: str, share: float, **how: Any) -> Dose:
    return Dose(benchmark=benchmark, level=level, name=f"{kind}-{share:g}", **how)


SHIPPED = (
    *(
        _dose("cpu-sysbench", level, "cpu", share, command=CPU, cpu_ratio=share)
        for level, share in ((1, 0.02), (2, 0.1), (3, 0.22))
    ),
    *(  # nothing else slows sysbench memory: what strains memory leaves it alone
        _dose("memory-sysbench", level, "throttle", left, throttle_ratio=left)
        for level, left in ((1, 0.8), (2, 0.65), (3, 0.1))
    ),
    _reads("disk-fio", 1, 0.2),
    _reads("disk-fio", 2, 0.5),
    _reads("disk-fio", 3, 1, "512k"),
    *(_reads("disk-ioping", level, share) for level, share in ((1, 0.05), (2, 0.12), (3, 0.25))),
    *(
        _dose(benchmark, level, "iperf", share, command=IPERF, link_ratio=share)
        for benchmark in ("network-qperf", "network-iperf3")
        for level, share in ((1, 0.005), (2, 0.015), (3, 0.05))
    ),
)


class NodeParams(Params):
    """An emulated node: this machine with limits; 0 means none."""

    name: str = Field(pattern=SLUG, max_length=60, description="Name of the node")
    machine_type: str = Field(max_length=60, description="Its machine type")
    cores: tuple[int, ...] = Field((), description="Processors that it may run on, by number; empty: all")
    cpu_percent: float = Field(0, ge=0, le=100_000, description="CPU quota; 100 is one processor")
    memory_mib: float = Field(0, ge=0, le=1e9, description="Memory that it may use")
    disk_mb_per_s: float = Field(0, ge=0, le=1e6, description="Reads and writes of its disk, each, in MB/s")
    network_mbit_per_s: float = Field(0, ge=0, le=1e6, description="Rate of its link, each way, in Mbit/s")
    delay_ms: float = Field(0, ge=0, le=10_000, description="Delay of its link, each way, in milliseconds")


EMULATED = (
    NodeParams(name="emulated-a", machine_type="emulated-two-cores", disk_mb_per_s=200, network_mbit_per_s=2000),
    NodeParams(
        name="emulated-b", machine_type="emulated-one-core", cpu_percent=100, memory_mib=4096, disk_mb_per_s=100,
        network_mbit_per_s=1000,
    ),
    NodeParams(
        name="emulated-c", machine_type="emulated-half-core", cpu_percent=50, memory_mib=2048, disk_mb_per_s=20,
        network_mbit_per_s=200, delay_ms=5,
    ),
)  # fmt: skip


class LoweredLimit(Params):
    """A limit that an emulated node has from some time of a campaign on; 0 means that it stays as it was."""

    node: str = Field(pattern=SLUG, max_length=60, description="Name of the node")
    after_ratio: float = Field(0.5, ge=0, le=1, description="Share of the plan that runs before")
    cpu_percent: float = Field(0, ge=0, le=100_000, description="CPU quota from then on; 100 is one processor")
    disk_mb_per_s: float = Field(0, ge=0, le=1e6, description="Reads and writes of its disk from then on, in MB/s")

    @property
    def name(self) -> str:
        """As it stands in the label of executions: lowered-cpu-80."""
        limits = (("cpu", self.cpu_percent), ("disk", self.disk_mb_per_s))
        return "-".join(["lowered", *(f"{what}-{limit:g}" for what, limit in limits if limit)])


class RecordParams(Params):
    """Which benchmarks run on which nodes, how often, in which order, and under which stress."""

    minutes: float = Field(
        120,
        gt=0,
        le=2880,
        description="How long this call starts executions, in minutes; the next call goes on. As long as the node "
        "can be spared",
    )
    seed: int = Field(
        7,
        ge=0,
        le=2**31,
        description="Decides the order of a campaign, and what is stressed. Another for a second, independent campaign",
    )
    place: Literal["local", "emulated"] = Field(
        "local",
        description="local: this machine as it is; emulated: the nodes below, one after another on it. Emulated "
        "for who has no fleet at hand",
    )
    node: str = Field(
        "", max_length=60, description="Name of this machine as a node; empty: its host name. Where host names change"
    )
    machine_type: str = Field(
        "",
        max_length=60,
        description="Its machine type; empty: its processor. Where equal processors are rented as different machines",
    )
    benchmarks: tuple[str, ...] = Field(
        (), description="Benchmarks to run, by name; empty: all of the profile. Fewer where a tool is not installed"
    )
    profile: Literal["short", "paper"] = Field(
        "short", description="short: about 2 s a benchmark; paper: 30 s. Paper to compare with its figures"
    )
    runs: int = Field(
        0,
        ge=0,
        le=10_000,
        description="Executions of each benchmark on each node in a campaign; 0: no campaign, but what the node "
        "lacks, and then what is doubtful or stalest. For who measures what the detector is worth",
    )
    executions: int = Field(
        6,
        ge=1,
        le=10_000,
        description="Executions of this call where there is no campaign. As many as there is time for between two "
        "looks",
    )
    stressed_ratio: float = Field(
        0.2, ge=0, le=0.5, description="Share of a campaign's executions under stress. More for more known truth"
    )
    interval_s: float = Field(
        1,
        ge=0.05,
        le=60,
        description="Time between two samples of a node's metrics, in seconds. Shorter for benchmarks of a second "
        "or two",
    )
    foreign_limit_ratio: float = Field(
        0.1,
        gt=0,
        le=1,
        description="An execution is repeated if others used more than this ratio of the cores. More on nodes "
        "that are never quiet",
    )
    repeats: int = Field(
        2, ge=0, le=100, description="How often flagged executions are repeated, at the end. None where time is short"
    )
    isolation: Literal["auto", "none"] = Field(
        "auto",
        description="auto: control groups and network namespaces where the system lets us; none: neither. None in "
        "a container without rights",
    )
    scratch: str = Field(
        "", description="Folder on the disk that is measured; empty: one in /var/tmp. The disk that jobs use"
    )
    emulated: tuple[NodeParams, ...] = Field(EMULATED, description="Emulated nodes")
    short: tuple[BenchmarkTemplate, ...] = Field(SHORT, description="Benchmarks of the short profile")
    doses: tuple[Dose, ...] = Field(
        SHIPPED, description="Stress, three levels a benchmark; several doses of a level are dealt in turn"
    )
    lowered: tuple[LoweredLimit, ...] = Field((), description="Limits that are lowered for good during a campaign")


def nodes_of(params: RecordParams) -> tuple[NodeParams, ...]:
    """The nodes that are recorded: this machine without limits, or the emulated ones."""
    if params.place == "emulated":
        return params.emulated
    name = node_name(params.node or platform.node()) or "local"
    return (NodeParams(name=name, machine_type=params.machine_type or machine_name()),)


def node_name(text: str) -> str:
    """A name as executions carry it: lower-case words and dashes, at most 60 characters."""
    return slug(text)[:60].strip("-")
