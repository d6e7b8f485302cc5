"""What the tests of the recorder share: hand-made templates, jobs, runs and submissions, and tiny data sets."""

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.jobs.params import Campaign, Sku
from tasks.jobs.record import engine
from tasks.jobs.record.cluster import BackgroundLoad, MiniatureCluster, SkuState
from tasks.jobs.record.plan import Plan, PlannedJob, PlannedRun, make_plan
from tasks.jobs.record.pool import OrderResult
from tasks.jobs.record.scheduler import Scheduler, Submission
from tasks.jobs.record.templates import MeasuredVertex, Template

TEMPLATE = Template("totals", "orders", 4, "SELECT 1 FROM {input}", merge="SELECT 2 FROM {partials}")
JOB = PlannedJob(
    name="totals_emea", template=TEMPLATE, user_name="mira", queue="reports", schedule="daily", hour=9.0,
    sizing="steady", typical_parts=4, tokens=2, has_varying_tokens=False, takes_spare=False, parts_per_vertex=2,
    is_newest_only=False, memory_mb=256, time_limit_s=60.0, cold_share=0.0, name_style=0,
)  # fmt: skip
RUN = PlannedRun(
    run_id="7-000-00001", period="D1", job=JOB, submit_s=0.0, name="totals_emea_2026-09-01", sql=TEMPLATE.sql,
    merge=TEMPLATE.merge, parts=(0, 4), tokens=2, takes_spare=False, skus=("old", "new"), is_cold=False,
)  # fmt: skip

# half the speed and half the memory on the old one
OLD, NEW = Sku(name="old", tokens=3, speed=0.5, memory_ratio=0.5), Sku(name="new", tokens=4)


class FakePool:
    """Keeps the orders that it was given; a test answers them."""

    def __init__(self):
        self.at_work, self.orders, self.killed = {}, {}, []

    def is_idle(self, slot):
        return slot not in self.at_work

    def give(self, slot, order):
        assert self.is_idle(slot)
        self.at_work[slot] = order
        self.orders[order.vertex_id] = order

    def kill(self, slot):
        self.killed.append(slot)

    def answer(self, vertex_id, *, told=True, error=""):
        """Its answer: what it measured, an error of the engine, or nothing if the worker died on it."""
        slot = next(slot for slot, order in self.at_work.items() if order.vertex_id == vertex_id)
        measured = vars(MeasuredVertex(1.0, query_s=1.0, cpu_s=0.1, error=error)) if told else None
        order, now = self.at_work.pop(slot), time.time()
        return OrderResult(order, slot, now, now, measured, "" if told else "worker process ended with status -9")


class Stage:
    """A cluster of two SKUs, its scheduler, its queue, and the pool."""

    def __init__(self, folder, groups=None):
        self.folder, self.pool, self.queue = folder, FakePool(), deque()
        states = {
            sku.name: SkuState(
                sku, BackgroundLoad("jobs", folder, None), tuple(f"{sku.name}-{n}" for n in range(sku.tokens)),
                groups, groups,
            )
            for sku in (OLD, NEW)
        }  # fmt: skip
        self.cluster = MiniatureCluster(states, "threads")
        slots = {slot: groups.child(slot) if groups else None for state in states.values() for slot in state.slots}
        settings = Campaign(skus=(OLD, NEW), spare_multiple=2)
        self.scheduler = Scheduler(settings, self.cluster, self.pool, slots, folder)

    def put(self, submission):
        self.queue.append(submission)

    def go(self):
        self.scheduler.start_jobs(self.queue)
        self.scheduler.advance()

    def end(self, vertex_id, **how):
        job = self.scheduler.finish_vertex(self.pool.answer(vertex_id, **how))
        self.go()
        return job

    @property
    def started(self):
        return list(self.scheduler.jobs)

    @property
    def waiting(self):
        return [submission.run.run_id for submission in self.queue]

    def tokens_of(self, run_id):
        job = self.scheduler.jobs[run_id]
        return {vertex_id: work.steps[-1].tokens for vertex_id, work in job.at_work.items()}

    def free(self):
        return {name: state.free_tokens for name, state in self.cluster.skus.items()}


@pytest.fixture(scope="session", autouse=True)
def _own_machine_lock() -> Iterator[None]:
    """Tests at the same time do not keep each other waiting, nor does a recording that is at work here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.machine.LOCK", f"whorl-test-{uuid.uuid4()}")
        yield


@pytest.fixture(scope="session")
def default_plan() -> Plan:
    """The plan of the default parameters."""
    return make_plan(Campaign())


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data sets of one thousandth of the usual size, made once; nobody may change them."""
    folder = tmp_path_factory.mktemp("data")
    engine.build_data(folder, 0.001, 7)
    return folder


@pytest.fixture
def run_of() -> Callable[..., PlannedRun]:
    """A function that makes a run; changes of its job and template go by their own names."""

    def make(
        *, template: dict[str, Any] | None = None, job: dict[str, Any] | None = None, **changes: Any
    ) -> PlannedRun:
        kind = replace(TEMPLATE, **(template or {}))
        return replace(RUN, job=replace(JOB, template=kind, **(job or {})), **changes)

    return make


@pytest.fixture
def submission_of(run_of: Callable[..., PlannedRun]) -> Callable[..., Submission]:
    """A function that puts a run into the queue, submitted `ago_s` seconds ago."""

    def make(*, ago_s: float = 0.0, **changes: Any) -> Submission:
        return Submission(
            run=run_of(**changes), submitted_at=time.time() - ago_s, queue_length=0, spare_tokens_available=0.0,
            skus=(), load_mean=0.0, load_sd=0.0, surroundings={},
        )  # fmt: skip

    return make


@pytest.fixture
def stage_of(tmp_path: Path) -> Callable[..., Stage]:
    """A function that makes a cluster of two SKUs with its scheduler, over a pool that a test answers for."""
    return lambda groups=None: Stage(tmp_path, groups)


@pytest.fixture
def stage(stage_of: Callable[..., Stage]) -> Stage:
    """The same without control groups."""
    return stage_of()


@pytest.fixture
def wide(submission_of: Callable[..., Submission]) -> Callable[..., Submission]:
    """A function that makes a run on the new SKU that asks for `tokens` and has `n` reading vertices."""

    def make(run_id: str, tokens: int, n: int = 1, **changes: Any) -> Submission:
        changes = {"skus": ("new",), "parts": (0, n), "job": {"parts_per_vertex": 1}} | changes
        return submission_of(run_id=run_id, tokens=tokens, **changes)

    return make
