"""The parameters of a recording of workloads, as a flow form and conf/workloads.yaml show them."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

Condition = Literal["pair", "pair_unlearned", "load", "limit", "unlearned", "input", "idle", "alone"]


class RecordParams(Params):
    """Which workloads run how often, and how they are sampled."""

    minutes: float = Field(
        150, gt=0, le=2880, description="How long this call starts runs, in minutes; the next call goes on"
    )
    seed: int = Field(7, ge=0, le=2**31, description="Decides the order of the runs and all that is random in them")
    workloads: tuple[str, ...] = Field((), description="Workloads to record, by name; empty: all there are")
    rounds: int = Field(5, ge=1, le=100, description="Rounds, with a full stop and fresh data in between; 3 or more")
    runs: int = Field(10, ge=1, le=10_000, description="Runs of each workload with each input, over all rounds")
    conditions: tuple[Condition, ...] = Field(
        (), description="Record under these conditions, in shares of their own, instead of each workload alone"
    )
    samples: int = Field(30, ge=2, le=86_400, description="Samples of a run")
    interval_s: float = Field(1, ge=0.1, le=3600, description="Time between two samples, in seconds")
    pause_s: float = Field(
        3, ge=0, le=600, description="Rest between two runs, after the disks are in step, in seconds"
    )
    perf: Literal["none", "light", "syscalls"] = Field(
        "light", description="Events that perf counts; syscalls: system calls as well, which slows each of them down"
    )
    foreign_limit_ratio: float = Field(
        0.1, gt=0, le=1, description="A run is repeated if others used more than this ratio of the machine's cores"
    )
    repeats: int = Field(2, ge=0, le=100, description="How often runs that were disturbed or failed are repeated")
    machine: str = Field("", max_length=100, description="Name of this machine in the recording; empty: its processor")
    scratch: str = Field("", description="Folder for the workloads' data; empty: one in the system's temporary folder")
