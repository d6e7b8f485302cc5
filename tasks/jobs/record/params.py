"""The parameters of a recording campaign: what an operator sets, and what no recording varied."""

from typing import Literal

from pydantic import Field, field_validator

from tasks.params import Params

PERIOD_US = 10_000
TOKEN_US = 1_000  # a tenth of a core: one of ten milliseconds, and the least that the kernel allows
TOKENS_OF_A_CORE = 10  # a vertex has one thread
LoadLevel = Literal["none", "cpu-20", "cpu-35", "cpu-40", "cpu-60", "cpu-80", "cpu-95", "memory-50", "disk-30"]
PAIRS, STEADY = "W", "S"  # periods of the matched pairs: under changing load, under steady load


class Period(Params):
    """A stretch of the jobs' schedule that is recorded as one data set."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=20, description="Name, such as D1: letters, digits, - and _"
    )
    days: int = Field(ge=1, le=10_000, description="Days of the jobs' schedule")


class RecordParams(Params):
    """How many recurring jobs run for how long, on which data and under which load."""

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
    isolation: Literal["auto", "cgroups", "threads"] = Field(
        "auto",
        description="What holds a vertex to its tokens: control groups (need root), threads only, or what there is",
    )
    data_scale: float = Field(
        1.6, gt=0, le=100, description="Size of the data sets; 1 is about 0.9 GB on disk, ratio to that"
    )
    load: Literal["auto", "stress-ng", "jobs"] = Field(
        "auto", description="Where load comes from: stress-ng, concurrent jobs only, or stress-ng where it is installed"
    )
    scratch: str = Field("", description="Folder for the jobs' data sets; empty: one in the system's temporary folder")

    @field_validator("periods")
    @classmethod
    def _names_differ(cls, periods: tuple[Period, ...]) -> tuple[Period, ...]:
        names = [period.name for period in periods] + [PAIRS, STEADY]
        if len(set(names)) < len(names):
            raise ValueError(f"names that differ, and none of {PAIRS}, {STEADY}")
        return periods


class Sku(Params):
    """A kind of machine that vertices run on.

    tokens: that can be promised, each a tenth of a core. speed: CPU time of a token, over that of the newest kind.
    memory_ratio: memory that a vertex gets, over what its job asks. read_mb_per_s: how fast its disk may be read."""

    name: str
    tokens: int
    speed: float = 1.0
    memory_ratio: float = 1.0
    read_mb_per_s: float = 100.0

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


class Campaign(RecordParams):
    """All that decides a campaign: what is set, and the cluster, its load and its pace.

    day_s: seconds that stand for a day of the jobs' schedules. most_waiting: the schedule stands still while more runs
    wait for tokens. skus: the newest last; together they leave a quarter of four cores free. spare_multiple: spare
    tokens that a job may hold, over those that it requested. part_minutes: between part files, of which a kill loses
    at most the last. time_limit_s: a job that runs longer is killed and recorded as timeout. load_ladder: levels that
    each SKU's load is drawn from. load_phase_s: mean length of a phase of one level."""

    day_s: float = 90
    most_waiting: int = 8
    skus: tuple[Sku, ...] = (
        Sku(name="gen3", tokens=6, speed=0.6, memory_ratio=0.75, read_mb_per_s=4),
        Sku(name="gen4", tokens=6, speed=0.8, memory_ratio=0.9, read_mb_per_s=8),
        Sku(name="gen5", tokens=6, speed=1.0, memory_ratio=1.0, read_mb_per_s=16),
    )
    spare_multiple: float = 2
    part_minutes: float = 5
    time_limit_s: float = 60
    load_ladder: tuple[LoadLevel, ...] = (
        *4 * ("none",), "cpu-40", "cpu-60", "cpu-80", "cpu-95", "memory-50", "disk-30",
    )  # fmt: skip
    load_phase_s: float = 40
