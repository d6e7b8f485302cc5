"""What is known of one Spark application, and the tokens that its tasks hold."""

from collections import Counter
from dataclasses import dataclass, field
from math import inf

from tasks.jobs.readers.spark_fields import Event, count, number
from tasks.jobs.readers.spark_tokens import Tokens

MAX_VERTICES = 20_000  # more (stages times hosts) are not kept
SLACK_MS = 60_000.0  # a clock may be set back while an application runs


@dataclass
class Vertex:
    """One stage on one host."""

    stage: str
    host: str
    profile: str
    tokens: Tokens = field(default_factory=Tokens)
    cpu_s: float = 0.0
    read_bytes: float = 0.0
    temp_bytes: float = 0.0


@dataclass
class Application:
    """What the events so far say. place: line of the first of them; latest_ms: no task can be later."""

    place: int
    latest_ms: float = inf
    id: str | None = None
    attempt: str | None = None
    name: str | None = None
    user: str | None = None
    started_ms: float | None = None
    ended_ms: float | None = None
    exit_code: int | None = None
    has_failed: bool = False
    is_cancelled: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    trees: set[str] = field(default_factory=set)
    operators: Counter[str] = field(default_factory=Counter)
    cores: dict[str, float] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    peak_memory: dict[str, float] = field(default_factory=dict)
    tokens: Tokens = field(default_factory=lambda: Tokens(has_steps=True))
    vertices: dict[tuple[str, str], Vertex] = field(default_factory=dict)
    held: dict[tuple[str, str], float] = field(default_factory=dict)  # tokens by stage and host
    n_tasks: int = 0
    n_left_out: int = 0
    cpu_s: float = 0.0
    input_bytes: float = 0.0
    read_bytes: float = 0.0
    temp_bytes: float = 0.0

    def task_time(self, event: Event, key: str) -> float:
        """A time of a task, ms. Raises ValueError before the application's start, or later than any task can be."""
        at_ms = number(event, key)
        if self.started_ms is None:
            raise ValueError(
                "a task without an application that has started; expected its SparkListenerApplicationStart"
            )
        if not self.started_ms - SLACK_MS <= at_ms <= self.latest_ms:
            raise ValueError(f"{key} {at_ms:.0f} is no time of this run; expected ms from its start on, up to now")
        return max(at_ms, self.started_ms)

    def vertex(self, stage: str, host: str, executor: str) -> Vertex | None:
        """The vertex of a task; None beyond MAX_VERTICES."""
        known = self.vertices.get((stage, host))
        if known is None and len(self.vertices) < MAX_VERTICES:
            known = Vertex(stage, host, self.profiles.get(executor, ""))
            self.vertices[stage, host] = known
        self.n_left_out += known is None
        return known

    def hold(self, at_ms: float, stage: str, host: str, executor: str) -> None:
        """A task begins and takes its tokens."""
        self.vertex(stage, host, executor)
        self.held[stage, host] = self.held.get((stage, host), 0.0) + self.cpus_per_task
        self._change(at_ms, stage, host, self.cpus_per_task)

    def release(self, at_ms: float, stage: str, host: str, tokens: float) -> None:
        """A task ends and gives back its tokens, as far as they have not been given back at the end of its stage."""
        held = self.held.pop((stage, host), 0.0)
        if held > tokens:
            self.held[stage, host] = held - tokens
        self._change(at_ms, stage, host, -min(held, tokens))

    def release_all(self, at_ms: float, stage: str = "") -> None:
        """What the tasks of a stage (or all tasks) still hold is given back."""
        for of_stage, host in list(self.held):
            if stage in ("", of_stage):
                self.release(at_ms, of_stage, host, self.held[of_stage, host])

    def _change(self, at_ms: float, stage: str, host: str, tokens: float) -> None:
        self.tokens.change(at_ms, tokens)
        vertex = self.vertices.get((stage, host))
        if vertex:
            vertex.tokens.change(at_ms, tokens)

    @property
    def outruns_its_end(self) -> bool:
        """Whether a task ends long after the application has ended."""
        has_span = self.ended_ms is not None and self.started_ms is not None and self.ended_ms >= self.started_ms
        return has_span and self.tokens.last_ms > (self.ended_ms or 0) + SLACK_MS

    @property
    def cpus_per_task(self) -> float:
        """Tokens that a task holds: spark.task.cpus."""
        return count(self.properties.get("spark.task.cpus")) or 1.0
