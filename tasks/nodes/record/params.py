"""The parameters of a recording of benchmarks, as a flow form and conf/nodes.yaml show them."""

from typing import Literal

from pydantic import Field

from tasks.nodes.record.doses import Dose
from tasks.nodes.record.ladder import SHIPPED
from tasks.nodes.record.templates import PAPER, SHORT, SLUG, BenchmarkTemplate
from tasks.params import Params

MOST_PART_MINUTES = 30


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
        name="emulated-b",
        machine_type="emulated-one-core",
        cpu_percent=100,
        memory_mib=4096,
        disk_mb_per_s=100,
        network_mbit_per_s=1000,
    ),
    NodeParams(
        name="emulated-c",
        machine_type="emulated-half-core",
        cpu_percent=50,
        memory_mib=2048,
        disk_mb_per_s=20,
        network_mbit_per_s=200,
        delay_ms=5,
    ),
)


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
        120, gt=0, le=2880, description="How long this call starts executions, in minutes; the next call goes on"
    )
    seed: int = Field(7, ge=0, le=2**31, description="Decides the order of a campaign, and what is stressed")
    campaign: str = Field(
        "",
        max_length=40,
        pattern=r"^([a-z0-9]+(-[a-z0-9]+)*)?$",
        description="What its name begins with; the time of its begin follows",
    )
    place: Literal["local", "emulated"] = Field(
        "local", description="local: this machine as it is; emulated: the nodes below, one after another on it"
    )
    node: str = Field("", max_length=60, description="Name of this machine as a node; empty: its host name")
    machine_type: str = Field("", max_length=60, description="Its machine type; empty: its processor")
    benchmarks: tuple[str, ...] = Field((), description="Benchmarks to run, by name; empty: all of the profile")
    profile: Literal["short", "paper"] = Field("short", description="short: about 2 s a benchmark; paper: 30 s")
    runs: int = Field(
        0,
        ge=0,
        le=10_000,
        description="Executions of each benchmark on each node in a campaign; 0: no campaign, but what the node lacks, "
        "and then what is doubtful or stalest",
    )
    executions: int = Field(6, ge=1, le=10_000, description="Executions of this call where there is no campaign")
    stressed_ratio: float = Field(0.2, ge=0, le=0.5, description="Share of a campaign's executions under stress")
    interval_s: float = Field(1, ge=0.05, le=60, description="Time between two samples of a node's metrics, in seconds")
    margin_s: float = Field(
        1, ge=0, le=600, description="Metrics are kept from this long before an execution until this long after it"
    )
    foreign_limit_ratio: float = Field(
        0.1, gt=0, le=1, description="An execution is repeated if others used more than this ratio of the cores"
    )
    repeats: int = Field(2, ge=0, le=100, description="How often flagged executions are repeated, at the end")
    part_minutes: float = Field(
        20, gt=0, le=MOST_PART_MINUTES, description="Longest time between two part files, in minutes"
    )
    cpu_weight: int = Field(
        800, ge=1, le=10_000, description="CPU weight of the nodes against the rest of the machine; 100 is usual"
    )
    isolation: Literal["auto", "none"] = Field(
        "auto", description="auto: control groups and network namespaces where the system lets us; none: neither"
    )
    lock_wait_s: float = Field(
        0, ge=0, le=86_400, description="How long to wait for another recording on this machine, in seconds"
    )
    scratch: str = Field("", description="Folder on the disk that is measured; empty: one in /var/tmp")
    emulated: tuple[NodeParams, ...] = Field(EMULATED, description="Emulated nodes")
    short: tuple[BenchmarkTemplate, ...] = Field(SHORT, description="Benchmarks of the short profile")
    paper: tuple[BenchmarkTemplate, ...] = Field(PAPER, description="Benchmarks of the paper's profile")
    doses: tuple[Dose, ...] = Field(
        SHIPPED, description="Stress, three levels a benchmark; several doses of a level are dealt in turn"
    )
    lowered: tuple[LoweredLimit, ...] = Field((), description="Limits that are lowered for good during a campaign")
