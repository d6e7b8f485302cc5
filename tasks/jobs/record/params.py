"""The parameters of a recording campaign, as a flow form and conf/jobs.yaml show them."""

from typing import Literal

from pydantic import Field, field_validator

from tasks.params import Params

PERIOD_US = 10_000
TOKEN_US = 1_000  # a tenth of a core: one of ten milliseconds, and the least that the kernel allows
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
TOKENS_OF_A_CORE = 10  # a vertex has one thread
LoadLevel = Literal["none", "cpu-20", "cpu-35", "cpu-40", "cpu-60", "cpu-80", "cpu-95", "memory-50", "disk-30"]
RESERVED = ("W", "S", "load", "planner")  # periods of the matched pairs, and groups beside the SKUs


class Sku(Params):
    """One kind of machine: how many tokens it has, how much each is worth, and its memory and disk."""

    name: str = Field(pattern=NAME, max_length=40, description="Name, such as gen5: letters, digits, - and _")
    tokens: int = Field(ge=1, le=10_000, description="Tokens that can be promised, each a tenth of a core")
    speed: float = Field(1.0, ge=0.01, le=1, description="CPU time of a token, ratio to that of the newest kind")
    memory_ratio: float = Field(1.0, gt=0, le=1, description="Memory that a vertex gets, ratio to what its job asks")
    read_mb_per_s: float = Field(100, gt=0, le=100_000, description="How fast its disk may be read, in MB/s")

    @property
    def period_us(self) -> int:
        """Period of the quota of a vertex: longer where a token is worth less."""
        return round(PERIOD_US / self.speed)

    @property
    def cores(self) -> float:
        """What all its tokens are worth together, in cores."""
        return self.tokens * self.speed / TOKENS_OF_A_CORE

    def token_s(self, tokens: float, duration_s: float) -> float:
        """CPU seconds that so many tokens promise in so many seconds."""
        return tokens * self.speed * duration_s / TOKENS_OF_A_CORE


class Period(Params):
    """A stretch of the jobs' schedule that is recorded as one data set."""

    name: str = Field(pattern=NAME, max_length=20, description="Name, such as D1: letters, digits, - and _")
    days: int = Field(ge=1, le=10_000, description="Days of the jobs' schedule")


class RecordParams(Params):
    """How many recurring jobs run for how long, on which miniature cluster and under which load."""

    minutes: float = Field(
        5,
        gt=0,
        le=1440,
        description="How long this call submits runs, in minutes; the next call with the same settings goes on",
    )
    seed: int = Field(7, ge=0, le=2**31, description="Decides data, jobs, sizes, parameters and submit times")
    jobs: int = Field(210, ge=1, le=700, description="Number of recurring jobs; the templates take turns")
    periods: tuple[Period, ...] = Field(
        (Period(name="D1", days=28), Period(name="D2", days=13), Period(name="D3", days=9)),
        min_length=1,
        description="Data sets to record, one after the other; a job runs about twice in a day of its schedule",
    )
    pairs: int = Field(
        1050, ge=0, le=100_000, description="Runs of the last period that are repeated with each change (what-if)"
    )
    day_s: float = Field(
        90, gt=0, le=86_400, description="Seconds of the campaign that stand for one day of the jobs' schedules"
    )
    most_waiting: int = Field(
        8, ge=1, le=100_000, description="The schedule stands still while more runs than this wait for tokens"
    )
    skus: tuple[Sku, ...] = Field(
        (
            Sku(name="gen3", tokens=6, speed=0.6, memory_ratio=0.75, read_mb_per_s=4),
            Sku(name="gen4", tokens=6, speed=0.8, memory_ratio=0.9, read_mb_per_s=8),
            Sku(name="gen5", tokens=6, speed=1.0, memory_ratio=1.0, read_mb_per_s=16),
        ),
        min_length=1,
        description="Kinds of machine, the newest last; together they should leave a quarter of the real cores free",
    )
    spare_multiple: float = Field(
        2, ge=0, le=100, description="Spare tokens that a job may hold, as a multiple of those it requested"
    )
    isolation: Literal["auto", "cgroups", "threads"] = Field(
        "auto",
        description="What holds a vertex to its tokens: control groups (need root), threads only, or what there is",
    )
    data_scale: float = Field(
        1.6, gt=0, le=100, description="Size of the data sets; 1 is about 0.9 GB on disk, ratio to that"
    )
    part_minutes: float = Field(
        5, gt=0, le=120, description="Minutes between part files; a kill loses at most the last ones"
    )
    time_limit_s: float = Field(
        60, gt=0, le=86_400, description="A job that runs longer is killed and recorded as timeout, in seconds"
    )
    load: Literal["auto", "stress-ng", "jobs"] = Field(
        "auto",
        description="Where load comes from: stress-ng, concurrent jobs only, or stress-ng where it is installed",
    )
    load_ladder: tuple[LoadLevel, ...] = Field(
        ("none", "none", "none", "none", "cpu-40", "cpu-60", "cpu-80", "cpu-95", "memory-50", "disk-30"),
        min_length=1,
        description="Levels that each SKU's load is drawn from: kind, and percent of the SKU; repeat for weight",
    )
    load_phase_s: float = Field(40, ge=1, le=86_400, description="Mean length of a phase of one load level, in seconds")
    scratch: str = Field("", description="Folder for the jobs' data sets; empty: one in the system's temporary folder")

    @field_validator("skus", "periods")
    @classmethod
    def _names_differ(cls, items: tuple[Sku | Period, ...]) -> tuple[Sku | Period, ...]:
        names = [item.name for item in items] + [*RESERVED]
        if len(set(names)) < len(names):
            raise ValueError(f"names that differ, and none of {', '.join(RESERVED)}")
        return items
