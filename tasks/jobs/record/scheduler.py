"""Gives tokens to jobs and slots to vertices: promised tokens first come first served, spare ones if there is room.

Source: Zhu et al. 2023, 3.2 (guaranteed tokens, preemptive spare tokens, their cap); Boutin et al. 2014."""

import shutil
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tasks.jobs.params import TOKENS_OF_A_CORE, Campaign
from tasks.jobs.record.cluster import MiniatureCluster, set_tokens
from tasks.jobs.record.plan import PlannedRun
from tasks.jobs.record.pool import OrderResult, WorkerPool
from tasks.jobs.record.templates import Order, PlannerEstimate, Template
from tasks.machine import ControlGroup

PATIENCE_S = 10.0  # after that nobody may overtake the first in the queue
MOST_VERTICES = 8
THREAD_TOKENS = 3  # without control groups: tokens that one thread stands for
Stage = Literal["extract", "merge"]


@dataclass(frozen=True)
class Step:
    """What a job, or a vertex, held from at_s seconds after the job's start until the next step."""

    at_s: float
    tokens: int


@dataclass(frozen=True)
class SkuNow:
    """An SKU offered to a run, just before its submission. Loads are usage over quota in the last ten seconds."""

    sku: str
    tokens: float
    free_tokens: float
    load_mean: float
    load_sd: float


@dataclass(frozen=True)
class Submission:
    """A run in the queue, and what was known then. submitted_at: Unix seconds; planned: None until it is planned."""

    run: PlannedRun
    submitted_at: float
    queue_length: int
    spare_tokens_available: float
    skus: tuple[SkuNow, ...]
    load_mean: float
    load_sd: float
    surroundings: dict[str, float | str | int | None]
    planned: PlannerEstimate | None = None


@dataclass
class Vertex:
    """One process of a job. parts: first part of the input and number of parts; none for the merge. slot, sku: where it
    is at work; steps: its skyline, in seconds after its job's start; answer: its worker's, when it has ended."""

    number: int
    stage: Stage
    parts: tuple[int, int] | None
    slot: str = ""
    sku: str = ""
    steps: list[Step] = field(default_factory=list)
    answer: OrderResult = field(init=False, repr=False, compare=False)


@dataclass
class RunningJob:
    """A job that holds tokens. promised: tokens by SKU, until the job ends."""

    submission: Submission
    promised: dict[str, int]
    waiting: deque[Vertex]
    started_at: float = field(default_factory=time.time)
    at_work: dict[str, Vertex] = field(default_factory=dict)
    done: list[Vertex] = field(default_factory=list)
    skyline: list[Step] = field(default_factory=list)
    spare: list[Step] = field(default_factory=list)
    error: str = ""
    is_late: bool = False

    @property
    def run_id(self) -> str:
        """Id of its run."""
        return self.submission.run.run_id

    def next_stage(self) -> Stage | None:
        """The stage whose vertices may start now; None while the merge has to wait for the rest."""
        if not self.waiting or self.error:
            return None
        stage = self.waiting[0].stage
        return None if stage == "merge" and self.at_work else stage

    @property
    def is_over(self) -> bool:
        """Nothing of it is at work, and nothing will be."""
        return not self.at_work and (not self.waiting or bool(self.error))

    def note_tokens(self, tokens: dict[str, int], spare: int, now: float) -> None:
        """Add a step to the skylines where something has changed. tokens: by vertex; now: Unix seconds."""
        if not self.at_work:  # its next vertex takes over what the last one held
            return
        at_s = now - self.started_at
        for vertex_id, work in self.at_work.items():
            _step(work.steps, at_s, tokens[vertex_id])
        _step(self.skyline, at_s, sum(tokens[vertex_id] for vertex_id in self.at_work))
        _step(self.spare, at_s, spare)


class Scheduler:
    """Jobs at work on a cluster. slots: name -> control group of each worker."""

    def __init__(
        self,
        params: Campaign,
        cluster: MiniatureCluster,
        pool: WorkerPool,
        slots: dict[str, ControlGroup | None],
        folder: Path,
    ) -> None:
        self.params, self.cluster, self.pool, self.slots, self.folder = params, cluster, pool, slots, folder
        self.jobs: dict[str, RunningJob] = {}
        self._set: dict[str, int] = {}  # tokens that each slot has now

    def start_jobs(self, queue: deque[Submission]) -> None:
        """Start what fits, in order; a job that does not fit yet may be overtaken for a while."""
        now = time.time()
        for submission in list(queue):
            promised = self._promise(submission)
            if promised is not None:
                queue.remove(submission)
                job = RunningJob(submission, promised, deque(self._vertices(submission)))
                self.jobs[job.run_id] = job
                for sku, tokens in promised.items():
                    self.cluster.skus[sku].promised[job.run_id] = tokens
                (self.folder / job.run_id).mkdir(parents=True, exist_ok=True)
            elif now - submission.submitted_at > PATIENCE_S:
                return

    def _vertices(self, submission: Submission) -> list[Vertex]:
        run = submission.run
        return cut(run.job.template, run.parts, run.job.parts_per_vertex, most=MOST_VERTICES)

    def _promise(self, submission: Submission) -> dict[str, int] | None:
        run = submission.run
        offered = {name: self.cluster.skus[name] for name in run.skus}
        free = {name: state.free_tokens for name, state in offered.items() if state.free_tokens > 0}
        n_reading = sum(vertex.stage == "extract" for vertex in self._vertices(submission))
        most = sum(sorted((state.sku.tokens for state in offered.values()), reverse=True)[:n_reading])
        return promise(min(run.tokens, most), free, n_reading)

    def advance(self) -> None:
        """Start every vertex that may start now, and share out tokens anew."""
        for job in self.jobs.values():
            while (stage := job.next_stage()) and (place := self._place(job)):
                vertex = job.waiting.popleft()
                vertex.sku, vertex.slot = place
                order = self._order(job, vertex)
                job.at_work[order.vertex_id] = vertex
                self._set.pop(vertex.slot, None)  # its worker may be a new one, which connects without a quota
                self.share_tokens()  # the quota is there before the work
                self.pool.give(vertex.slot, order)
                if stage == "merge":
                    break
        self.share_tokens()

    def _place(self, job: RunningJob) -> tuple[str, str] | None:
        """An SKU where the job has a token to start a vertex with, that with most, and an idle slot there."""
        room = {
            sku: tokens - sum(work.sku == sku for work in job.at_work.values()) for sku, tokens in job.promised.items()
        }
        for sku in sorted(room, key=lambda name: -room[name]):
            taken = {work.slot for other in self.jobs.values() for work in other.at_work.values()}
            idle = (slot for slot in self.cluster.skus[sku].slots if slot not in taken and self.pool.is_idle(slot))
            if room[sku] > 0 and (slot := next(idle, None)):
                return sku, slot
        return None

    def _order(self, job: RunningJob, vertex: Vertex) -> Order:
        run, place = job.submission.run, self.folder / job.run_id
        template, is_merge = run.job.template, vertex.stage == "merge"
        sku = self.cluster.skus[vertex.sku].sku
        n_threads = max(1, job.promised[sku.name] // THREAD_TOKENS) if self.slots[vertex.slot] is None else 1
        return template.order(
            f"{job.run_id}/{vertex.number}",
            run.merge if is_merge else run.sql,
            vertex.parts,
            partials=tuple(done.answer.order.result for done in job.done if done.answer.order.result)
            if is_merge
            else (),
            result=None if is_merge or template.writes else str(place / f"{vertex.number}.data"),
            threads=n_threads,
            memory_mb=round(run.job.memory_mb * sku.memory_ratio),
            is_cold=run.is_cold and not is_merge,
        )

    def share_tokens(self) -> None:
        """Set the quota of every slot at work: promised tokens, and spare ones where the SKU has room for them."""
        now = time.time()
        tokens = self._promised_tokens()
        runs = {job.run_id: job.submission.run for job in self.jobs.values()}
        allowance = {
            run_id: int(self.params.spare_multiple * run.tokens * run.takes_spare) for run_id, run in runs.items()
        }
        spare = dict.fromkeys(self.jobs, 0)
        for name, state in self.cluster.skus.items():
            holders = [
                Holder(vertex_id, job.run_id, tokens[vertex_id], min(TOKENS_OF_A_CORE, state.sku.tokens))
                for job in self.jobs.values()
                for vertex_id, work in job.at_work.items()
                if work.sku == name
            ]
            room = state.sku.tokens - state.load_tokens - sum(holder.promised for holder in holders)
            granted = grant_spare(holders, room, allowance)
            for holder in holders:
                more = granted.get(holder.vertex, 0)
                tokens[holder.vertex] += more
                allowance[holder.job] -= more
                spare[holder.job] += more
        for job in self.jobs.values():
            for vertex_id, work in job.at_work.items():
                if self._set.get(work.slot) != tokens[vertex_id]:
                    self._set[work.slot] = tokens[vertex_id]
                    set_tokens(self.slots[work.slot], self.cluster.skus[work.sku].sku, tokens[vertex_id])
            job.note_tokens(tokens, spare[job.run_id], now)

    def _promised_tokens(self) -> dict[str, int]:
        tokens: dict[str, int] = {}
        for job in self.jobs.values():
            for sku, promised in job.promised.items():
                ids = [vertex_id for vertex_id, work in job.at_work.items() if work.sku == sku]
                for vertex_id, share in zip(ids, split(promised, len(ids)), strict=True):
                    tokens[vertex_id] = min(share, TOKENS_OF_A_CORE)
        return tokens

    def finish_vertex(self, answer: OrderResult) -> RunningJob | None:
        """Note the end of a vertex; returns its job if that is over now, with its tokens given back."""
        job = self.jobs[answer.order.vertex_id.rpartition("/")[0]]
        vertex = job.at_work.pop(answer.order.vertex_id)
        vertex.answer = answer
        job.done.append(vertex)
        error = answer.error or (answer.measured or {}).get("error", "")
        if error and not job.error:
            job.error = str(error)
            for work in job.at_work.values():
                self.pool.kill(work.slot)
        if not job.is_over:
            return None
        del self.jobs[job.run_id]
        for sku in job.promised:
            del self.cluster.skus[sku].promised[job.run_id]
        return job

    def clear(self, job: RunningJob) -> None:
        """Remove what a job's vertices left for each other."""
        shutil.rmtree(self.folder / job.run_id, ignore_errors=True)

    def end_late_jobs(self) -> None:
        """Kill the vertices of every job that is over its time limit."""
        now = time.time()
        for job in self.jobs.values():
            is_over_limit = now - job.started_at > job.submission.run.job.time_limit_s
            if is_over_limit and job.at_work and not job.is_late:  # between two vertices there is nothing to end
                job.is_late, job.error = True, "killed at its time limit"
                for work in job.at_work.values():
                    self.pool.kill(work.slot)

    def spare_available(self, skus: tuple[str, ...]) -> float:
        """Tokens that nobody uses on these SKUs now."""
        tokens = self._promised_tokens()
        used = dict.fromkeys(skus, 0)
        for job in self.jobs.values():
            for vertex_id, work in job.at_work.items():
                if work.sku in used:
                    used[work.sku] += tokens[vertex_id]
        states = self.cluster.skus
        return float(sum(max(0, states[sku].sku.tokens - states[sku].load_tokens - used[sku]) for sku in skus))


@dataclass(frozen=True)
class Holder:
    """A vertex at work: its job, the tokens promised to it there, and how many it may hold in all."""

    vertex: str
    job: str
    promised: int
    most: int


def promise(tokens: int, free: Mapping[str, int], n_vertices: int) -> dict[str, int] | None:
    """Spread a request over SKUs; None while they have too few.

    free: tokens not promised to anybody, by SKU offered. No more SKUs than vertices; those with most room first,
    token by token, so that the mix follows the room. A request beyond n_vertices is spread all the same."""
    left = {sku: free[sku] for sku in sorted(free, key=lambda sku: -free[sku])[:n_vertices]}
    if sum(left.values()) < tokens:
        return None
    given: Counter[str] = Counter()
    for _ in range(tokens):
        sku = max(left, key=lambda name: left[name])
        given[sku] += 1
        left[sku] -= 1
    return dict(given)


def split(tokens: int, n_vertices: int) -> list[int]:
    """A job's tokens on one SKU, shared by its vertices at work there: as equal as whole tokens can be."""
    least, more = divmod(tokens, max(1, n_vertices))
    return [least + (place < more) for place in range(n_vertices)]


def grant_spare(holders: Sequence[Holder], room: int, allowance: Mapping[str, int]) -> dict[str, int]:
    """Spare tokens for each vertex on one SKU: one each, in turn, while there is room.

    room: tokens of the SKU that nobody uses; allowance: spare tokens that each job may still take. Returns only
    what was granted: a vertex that is not in it has to give back what it had (preemption)."""
    granted: Counter[str] = Counter()
    left = dict(allowance)
    in_turn = list(holders)
    while room > 0 and in_turn:
        still = []
        for holder in in_turn:
            fits = holder.promised + granted[holder.vertex] < holder.most
            if room > 0 and fits and left.get(holder.job, 0) > 0:
                granted[holder.vertex] += 1
                left[holder.job] -= 1
                room -= 1
                still.append(holder)
        in_turn = still
    return dict(granted)


def cut(template: Template, parts: tuple[int, int], parts_per_vertex: int, *, most: int) -> list[Vertex]:
    """The vertices of a run, in order: at most `most` that read, as equal as whole parts allow, then the merge.

    A template that writes a database has one vertex, since one process at a time may write."""
    first, count = parts
    n_vertices = 1 if template.writes else min(most, -(-count // parts_per_vertex))
    least, more = divmod(count, n_vertices)
    made, start = [], first
    for number in range(n_vertices):
        size = least + (number < more)
        made.append(Vertex(number, "extract", (start, size)))
        start += size
    return [*made, Vertex(n_vertices, "merge", None)] if template.merge else made


def mean_tokens(steps: list[Step], ends_s: float) -> float:
    """Mean over time of a step function, from its first step to ends_s; its first value where no time passed.

    Steps after ends_s do not count: a vertex holds its tokens until the recorder hears that it has ended."""
    if not steps or ends_s <= steps[0].at_s:
        return float(steps[0].tokens) if steps else 0.0
    ends = [min(step.at_s, ends_s) for step in steps[1:]] + [ends_s]
    held = sum(step.tokens * (end - min(step.at_s, ends_s)) for step, end in zip(steps, ends, strict=True))
    return held / (ends_s - steps[0].at_s)


def _step(steps: list[Step], at_s: float, tokens: int) -> None:
    if not steps or steps[-1].tokens != tokens:
        steps.append(Step(round(at_s, 4), tokens))
