"""What a story's campaign runs: emulated machine types with invented prices, recurring jobs, runs in mixed blocks.

Every block holds each job the same number of times on each type, in a drawn order, so that whatever drifts in the
course of a campaign (the machine, its other users) falls on all types alike. Deadlines, inputs and which runs are held
back are decided here, before anything runs."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import count, product
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from tasks.jobs.record.templates import PARTS, Template, composite, draw, templates
from tasks.nodes.record.params import PAPER, SHORT, SLUG, BenchmarkTemplate, NodeParams
from tasks.nodes.record.plan import PlannedExecution
from tasks.params import Params
from tasks.record.campaign import AGAIN, digest_of

Role = Literal["history", "held_back"]
PERCENT = 100
MIB_PER_MB = 1e6 / 2**20
NETWORK = "network"  # jobs of a campaign use none, and no type limits it
SECONDS_SHORT, SECONDS_PAPER = 2, 30


class EmulatedType(Params):
    """An emulated machine type: this machine within limits, at a price that is invented."""

    name: str = Field(pattern=SLUG, max_length=40, description="Name of the type")
    cores: float = Field(gt=0, le=1024, description="Processors, as a CPU quota")
    memory_mb: float = Field(ge=64, le=1e7, description="Memory of the control group, in MB")
    disk_mb_per_s: float = Field(gt=0, le=1e6, description="Reads and writes of the disk, each, in MB/s")
    price_per_hour: float = Field(gt=0, le=1e6, description="Invented price of an hour, in invented units")

    @property
    def threads(self) -> int:
        """Of a job that runs there: one for each processor that is begun."""
        return math.ceil(self.cores)

    def as_node(self) -> NodeParams:
        """The limits as the recorder of nodes sets them."""
        return NodeParams(
            name=self.name,
            machine_type=self.name,
            cpu_percent=self.cores * PERCENT,
            memory_mib=self.memory_mb * MIB_PER_MB,
            disk_mb_per_s=self.disk_mb_per_s,
        )


class RecurringJob(Params):
    """One recurring job of a campaign: a template of the recorder of jobs at a size of its own."""

    template: str = Field(description="Name of a template of tasks/jobs/record")
    parts: int = Field(ge=1, le=PARTS, description="Parts of the data set that a median run reads")
    spread: float = Field(0.15, ge=0, le=1, description="Standard deviation of the log of the number of parts")
    deadline_multiple: float = Field(gt=0, le=100, description="Deadline, as a multiple of the median runtime on A")


TYPES = (
    EmulatedType(name="standard", cores=1, memory_mb=256, disk_mb_per_s=60, price_per_hour=0.100),
    EmulatedType(name="small", cores=0.5, memory_mb=160, disk_mb_per_s=40, price_per_hour=0.044),
    EmulatedType(name="compute", cores=2, memory_mb=160, disk_mb_per_s=60, price_per_hour=0.165),
    EmulatedType(name="memory", cores=1, memory_mb=640, disk_mb_per_s=60, price_per_hour=0.130),
    EmulatedType(name="storage", cores=1, memory_mb=256, disk_mb_per_s=150, price_per_hour=0.160),
    EmulatedType(name="large", cores=2, memory_mb=640, disk_mb_per_s=150, price_per_hour=0.270),
)


JOBS = (  # template, parts, spread, deadline over the median: tight and loose ones for jobs of every kind
    RecurringJob(template="sorted_export", parts=18, spread=0.15, deadline_multiple=2),
    RecurringJob(template="deduplicate", parts=16, spread=0.15, deadline_multiple=1.5),
    RecurringJob(template="full_orders", parts=16, spread=0.15, deadline_multiple=3),
    RecurringJob(template="log_to_parquet", parts=20, spread=0.15, deadline_multiple=2),
    RecurringJob(template="duplicate_comments", parts=40, spread=0.15, deadline_multiple=1.5),
    RecurringJob(template="unique_users", parts=30, spread=0.15, deadline_multiple=3),
    RecurringJob(template="first_lines", parts=28, spread=0.15, deadline_multiple=2),
    RecurringJob(template="basket_pairs", parts=28, spread=0.15, deadline_multiple=3),
    RecurringJob(template="running_totals", parts=26, spread=0.15, deadline_multiple=1.2),
    RecurringJob(template="tag_counts", parts=18, spread=0.15, deadline_multiple=1.5),
    RecurringJob(template="median_order", parts=50, spread=0.1, deadline_multiple=3),
    RecurringJob(template="hour_to_hour", parts=22, spread=0.15, deadline_multiple=1.5),
    RecurringJob(template="retention", parts=20, spread=0.15, deadline_multiple=2),
    RecurringJob(template="worst_readings", parts=26, spread=0.2, deadline_multiple=1.2),
    RecurringJob(template="key_overlap", parts=44, spread=0.1, deadline_multiple=3),
    RecurringJob(template="pricing_summary", parts=44, spread=0.15, deadline_multiple=2),
    RecurringJob(template="latency_by_system", parts=20, spread=0.15, deadline_multiple=1.2),
    RecurringJob(template="csv_export", parts=14, spread=0.15, deadline_multiple=3),
    RecurringJob(template="spikes", parts=12, spread=0.2, deadline_multiple=1.5),
    RecurringJob(template="comment_search", parts=40, spread=0.15, deadline_multiple=1.2),
)


class RecordParams(Params):
    """Which jobs run how often on which emulated machine types, and what decides their deadlines."""

    minutes: float = Field(75, gt=0, le=2880, description="How long this call starts runs; the next call goes on")
    seed: int = Field(19, ge=0, le=2**31, description="Decides data, inputs, parameters and the order of runs")
    types: tuple[EmulatedType, ...] = Field(TYPES, min_length=2, description="Machine types; the first is type A")
    jobs: tuple[RecurringJob, ...] = Field(JOBS, min_length=1, description="Recurring jobs")
    blocks: int = Field(10, ge=1, le=1000, description="Stretches of the campaign, each with every job on every type")
    history_runs: int = Field(2, ge=1, le=100, description="Runs of a job on type A in a block that an answer may see")
    held_back_runs: int = Field(1, ge=1, le=100, description="Runs of a job on every type in a block for the check")
    benchmark_blocks: int = Field(2, ge=1, le=1000, description="Every benchmark runs on every type once in so many")
    engine_memory_ratio: float = Field(0.7, gt=0, le=1, description="Share of a type's memory that the engine may use")
    time_limit_s: float = Field(20, gt=0, le=86_400, description="A run that takes longer is killed")
    foreign_limit_ratio: float = Field(
        0.1, gt=0, le=1, description="A run is flagged and repeated if others used more than this ratio of the cores"
    )
    repeats: int = Field(2, ge=0, le=100, description="How often flagged runs are repeated, at the end")
    part_minutes: float = Field(4, gt=0, le=30, description="Longest time between two part files, in minutes")
    cpu_weight: int = Field(
        10_000, ge=1, le=10_000, description="CPU weight of the types against the rest of the machine; 100 is usual"
    )
    data_scale: float = Field(1.6, gt=0, le=100, description="Size of the data sets; 1 is about 0.9 GB on disk")
    profile: Literal["short", "paper"] = Field("short", description="Benchmarks of 2 s, or of 30 s")
    lock_wait_s: float = Field(0, ge=0, le=86_400, description="How long to wait for another recording's end")
    scratch: str = Field("", description="Folder on the disk that is limited; empty: one in /var/tmp")

    @model_validator(mode="after")
    def _names_are_known(self) -> "RecordParams":
        for what, names in (
            ("types", [kind.name for kind in self.types]),
            ("jobs", [job.template for job in self.jobs]),
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"{what}: names that differ")
        unknown = [job.template for job in self.jobs if job.template not in job_templates()]
        if unknown:
            raise ValueError(f"jobs: no template {unknown[0]}; expected one that loads no tables")
        return self


@cache
def job_templates() -> dict[str, Template]:
    """The recorder's templates by name, without those that write a database: these lock each other out."""
    return {template.name: template for template in templates() if not template.writes}


@dataclass(frozen=True)
class PlannedRun:
    """One run of a job. number: from 1, of this job on this type and in this role; parts: first part and number of
    parts; sql: with its parameters; attempt: 0, or which repetition of a flagged run it is."""

    job: str
    machine_type: str
    role: Role
    number: int
    block: int
    parts: tuple[int, int]
    sql: str
    attempt: int = 0

    @property
    def run_id(self) -> str:
        """Unique in a campaign, one for all attempts."""
        return f"{self.job}.{self.machine_type}.{self.role}.{self.number:03d}"

    @property
    def attempt_id(self) -> str:
        """Unique, one for each attempt."""
        return attempt_id(self.run_id, self.attempt)

    def again(self, n: int) -> "PlannedRun":
        """The n-th repetition of this run."""
        return replace(self, attempt=n)


def attempt_id(run_id: str, attempt: int) -> str:
    """The id of one attempt of a run."""
    return f"{run_id}{AGAIN}{attempt}" if attempt else run_id


@dataclass(frozen=True)
class Plan:
    """Runs of jobs and executions of benchmarks, block by block, in order."""

    blocks: tuple[tuple[PlannedRun | PlannedExecution, ...], ...]

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """All runs of jobs, in order."""
        return tuple(planned for block in self.blocks for planned in block if isinstance(planned, PlannedRun))

    @property
    def executions(self) -> tuple[PlannedExecution, ...]:
        """All executions of benchmarks, in order."""
        return tuple(planned for block in self.blocks for planned in block if isinstance(planned, PlannedExecution))

    def digest(self) -> str:
        """A short hash of all that the plan says."""
        text = json.dumps([[asdict(planned) for planned in block] for block in self.blocks], sort_keys=True)
        return digest_of(text)


def benchmarks_of(params: RecordParams) -> tuple[BenchmarkTemplate, ...]:
    """The benchmarks of nodes without those of the network, and the processor's also with one thread."""
    seconds, templates = (SECONDS_PAPER, PAPER) if params.profile == "paper" else (SECONDS_SHORT, SHORT)
    command = f"sysbench cpu --threads=1 --time={seconds} run"
    one_thread = BenchmarkTemplate(benchmark="cpu-sysbench-one", aspect="cpu", command=command)
    return (*(template for template in templates if template.aspect != NETWORK), one_thread)


def make_plan(params: RecordParams) -> Plan:
    """Every job on every type held_back_runs times in a block, on the first type history_runs times more, mixed.

    Inputs and parameters of a run are drawn from its job's distribution, which is the same on all types."""
    number, blocks = count(1), []
    for block in range(params.blocks):
        planned: list[PlannedRun | PlannedExecution] = list(_runs_of_block(params, block))
        if block % params.benchmark_blocks == 0:
            planned += [
                PlannedExecution(next(number), kind.name, template.benchmark, template.template_hash, False)
                for kind, template in product(params.types, benchmarks_of(params))
            ]
        order = np.random.default_rng([params.seed, block]).permutation(len(planned))
        blocks.append(tuple(planned[place] for place in order))
    return Plan(tuple(blocks))


def _runs_of_block(params: RecordParams, block: int) -> Iterator[PlannedRun]:
    roles: tuple[tuple[Role, int], ...] = (("history", params.history_runs), ("held_back", params.held_back_runs))
    cases = product(enumerate(params.jobs), enumerate(params.types), enumerate(roles))
    for (at_job, job), (at_type, kind), (at_role, (role, n)) in cases:
        if role == "history" and at_type > 0:
            continue
        for number in range(block * n + 1, (block + 1) * n + 1):
            rng = np.random.default_rng([params.seed, at_job, at_type, at_role, number])
            yield _drawn(job, kind.name, role, number, block, rng)


def _drawn(
    job: RecurringJob, machine_type: str, role: Role, number: int, block: int, rng: np.random.Generator
) -> PlannedRun:
    template = job_templates()[job.template]
    n_parts = int(np.clip(round(job.parts * math.exp(rng.normal(0, job.spread))), 1, PARTS))
    first = int(rng.integers(PARTS - n_parts + 1))  # a table is read as one range, so nothing wraps around
    sql = composite(template.sql, template.merge)
    for name, values in template.parameters.items():
        sql = sql.replace(f"{{{name}}}", str(draw(values, rng)))
    return PlannedRun(job.template, machine_type, role, number, block, (first, n_parts), sql)
