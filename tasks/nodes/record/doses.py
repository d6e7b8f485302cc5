"""Stress beside a benchmark: a ladder of doses for each, weakest first."""

from collections.abc import Sequence

from pydantic import Field, field_validator

from tasks.nodes.record.templates import SLUG, checked_command
from tasks.params import Params

LEVELS = (1, 2, 3)
TARGETS_SD = {1: 1.0, 2: 3.0, 3: 10.0}  # what each level is meant to move the benchmark by


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
