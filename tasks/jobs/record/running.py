"""A job from submission to its end: its tokens, its vertices, and the skyline of what it held."""

import time
from collections import deque
from dataclasses import dataclass, field

from tasks.jobs.record.orders import Planned
from tasks.jobs.record.plan import PlannedRun
from tasks.jobs.record.pool import Answer
from tasks.jobs.record.vertices import Stage, Vertex


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
    planned: Planned | None = None


@dataclass(frozen=True)
class Step:
    """What a job, or a vertex, held from at_s seconds after the job's start until the next step."""

    at_s: float
    tokens: int


def mean_tokens(steps: list[Step], ends_s: float) -> float:
    """Mean over time of a step function, from its first step to ends_s; its first value where no time passed.

    Steps after ends_s do not count: a vertex holds its tokens until the recorder hears that it has ended."""
    if not steps or ends_s <= steps[0].at_s:
        return float(steps[0].tokens) if steps else 0.0
    ends = [min(step.at_s, ends_s) for step in steps[1:]] + [ends_s]
    held = sum(step.tokens * (end - min(step.at_s, ends_s)) for step, end in zip(steps, ends, strict=True))
    return held / (ends_s - steps[0].at_s)


@dataclass
class VertexAtWork:
    """A vertex in its slot; `steps` is its skyline, in seconds after its job's start."""

    vertex: Vertex
    slot: str
    sku: str
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True)
class VertexDone:
    """A vertex that has ended, with the worker's answer."""

    work: VertexAtWork
    answer: Answer


@dataclass
class RunningJob:
    """A job that holds tokens. promised: tokens by SKU, until the job ends."""

    submission: Submission
    promised: dict[str, int]
    waiting: deque[Vertex]
    started_at: float = field(default_factory=time.time)
    at_work: dict[str, VertexAtWork] = field(default_factory=dict)
    done: list[VertexDone] = field(default_factory=list)
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


def _step(steps: list[Step], at_s: float, tokens: int) -> None:
    if not steps or steps[-1].tokens != tokens:
        steps.append(Step(round(at_s, 4), tokens))
