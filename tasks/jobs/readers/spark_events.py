"""The events of a Spark application, taken one by one: what is kept does not grow with the number of tasks."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any

PREFIX = '{"Event":"'
LOG_START, APP_START = "SparkListenerLogStart", "SparkListenerApplicationStart"
ENVIRONMENT, EXECUTOR = "SparkListenerEnvironmentUpdate", "SparkListenerExecutorAdded"
BEFORE_START = (ENVIRONMENT, EXECUTOR)  # what Spark logs about an application before its start
SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
NS = 1e9
KEPT_PROPERTIES = (
    "spark.app.submitTime", "spark.cores.max", "spark.dynamicAllocation.enabled", "spark.executor.cores",
    "spark.executor.instances", "spark.executor.memory", "spark.kubernetes.namespace", "spark.master",
    "spark.task.cpus", "spark.yarn.queue",
)  # fmt: skip
MAX_VERTICES = 20_000  # more (stages times hosts) are not kept
SLACK_MS = 60_000.0  # a clock may be set back while an application runs
Event = Mapping[str, Any]
SHOWN_CHARS = 60
COUNT = re.compile(r"[0-9]{1,15}")  # longer ones are no count of anything
NO_OPERATORS = ("WholeStageCodegen", "InputAdapter", "AdaptiveSparkPlan", "ResultQueryStage", "ShuffleQueryStage")
WITH_A_KIND = ("Scan", "Execute")  # Scan parquet, Execute InsertIntoHadoopFsRelationCommand
WORD = re.compile(r"[A-Za-z][\w.-]*")
MAX_DEPTH = 500  # a plan that is nested more deeply is refused
MAX_STEPS = 1000  # of a skyline; beyond twice as many, neighbours become one step with their mean
MS = 1000
Step = tuple[float, float]  # from (ms since 1970), tokens until the next step


class Tokens:
    """Tokens held by a run or a vertex. Events come in the order of time, or nearly: time never runs back here."""

    def __init__(self, *, has_steps: bool = False) -> None:
        self.now, self.peak, self.area_ms = 0.0, 0.0, 0.0
        self.first_ms: float | None = None
        self.last_ms = 0.0
        self.lowest: float | None = None
        self.has_steps = has_steps
        self.steps: list[Step] = []

    def change(self, at_ms: float, tokens: float) -> None:
        """So many tokens more (or fewer) are in use from this moment on."""
        if self.first_ms is None:
            self.first_ms = self.last_ms = at_ms
        if at_ms > self.last_ms:
            self.area_ms += self.now * (at_ms - self.last_ms)
            self.lowest = self.now if self.lowest is None else min(self.lowest, self.now)
            self.last_ms = at_ms
        self.now = max(0.0, self.now + tokens)
        self.peak = max(self.peak, self.now)
        if self.has_steps:
            self._step()

    def mean(self, span_ms: float) -> float | None:
        """Tokens in use, mean over so many milliseconds; None if there are none."""
        return self.area_ms / span_ms if span_ms > 0 else None

    @property
    def least(self) -> float | None:
        """Smallest number of tokens between the first start and the last end; None if nothing ran."""
        return self.peak if self.lowest is None and self.first_ms is not None else self.lowest

    def _step(self) -> None:
        if self.steps and self.steps[-1][0] == self.last_ms:
            self.steps.pop()
        self.steps.append((self.last_ms, self.now))
        if len(self.steps) >= 2 * MAX_STEPS:
            self.steps = _thinned(self.steps)


@dataclass
class SparkVertex:
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
    vertices: dict[tuple[str, str], SparkVertex] = field(default_factory=dict)
    held: dict[tuple[str, str], float] = field(default_factory=dict)  # tokens by stage and host
    n_left_out: int = 0
    cpu_s: float = 0.0
    input_bytes: float = 0.0
    read_bytes: float = 0.0
    temp_bytes: float = 0.0

    def task_time(self, event: Event, key: str) -> float:
        """A time of a task, ms. Raises ValueError before the application's start, or later than any task can be."""
        at_ms = number(event, key)
        if self.started_ms is None:
            raise ValueError("a task without an application that has started; expected its " + APP_START)
        if not self.started_ms - SLACK_MS <= at_ms <= self.latest_ms:
            raise ValueError(f"{key} {at_ms:.0f} is no time of this run; expected ms from its start on, up to now")
        return max(at_ms, self.started_ms)

    def vertex(self, stage: str, host: str, executor: str) -> SparkVertex | None:
        """The vertex of a task; None beyond MAX_VERTICES."""
        known = self.vertices.get((stage, host))
        if known is None and len(self.vertices) < MAX_VERTICES:
            known = SparkVertex(stage, host, self.profiles.get(executor, ""))
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
        if vertex := self.vertices.get((stage, host)):
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


def parse_event(line: str) -> tuple[str, Event] | None:
    """Name and content of an event, or None for one that says nothing about the run.

    Raises ValueError if the line is no event; events that are not needed are not parsed."""
    if line.startswith(PREFIX):
        name = line[len(PREFIX) : line.find('"', len(PREFIX))]
        if name not in HANDLERS and name != LOG_START:
            if not line.rstrip().endswith("}"):
                raise ValueError(f"{short(name)} '{line[-SHOWN_CHARS:]}' is cut off; expected a whole line of JSON")
            return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a whole line of JSON ({getattr(error, 'msg', type(error).__name__)})") from error
    event_name = event.get("Event") if isinstance(event, dict) else None
    if not isinstance(event_name, str):
        raise ValueError("a line of JSON without an 'Event'; expected an event of Spark")
    return (event_name, event) if event_name in HANDLERS or event_name == LOG_START else None


def _app_start(app: Application, event: Event) -> None:
    started_ms, app_id = number(event, "Timestamp"), text(event, "App ID")
    name, user = optional_text(event, "App Name"), optional_text(event, "User")
    attempt = optional_text(event, "App Attempt ID")
    app.started_ms, app.id, app.name, app.user, app.attempt = started_ms, app_id, name or app_id, user, attempt


def _app_end(app: Application, event: Event) -> None:
    ended_ms, exit_code = number(event, "Timestamp"), event.get("ExitCode")
    if exit_code is not None and type(exit_code) is not int:
        raise ValueError(f"ExitCode '{str(exit_code)[:SHOWN_CHARS]}' is not a whole number")
    app.release_all(ended_ms)
    app.ended_ms, app.exit_code = ended_ms, exit_code


def _environment(app: Application, event: Event) -> None:
    properties = part(event, "Spark Properties")
    kept = {key: optional_text(properties, key) for key in KEPT_PROPERTIES}
    app.properties = {key: value for key, value in kept.items() if value is not None}


def _executor(app: Application, event: Event) -> None:
    info, executor = part(event, "Executor Info"), text(event, "Executor ID")
    cores, profile = number(info, "Total Cores"), number(info, "Resource Profile Id", 0)
    app.cores[executor] = cores
    app.profiles[executor] = f"{profile:.0f}"


def _stage_end(app: Application, event: Event) -> None:
    """Free what its tasks still hold: their ends were refused, or Spark dropped them.

    Tasks of a stage that failed may run on, and end later."""
    info = part(event, "Stage Info")
    if app.started_ms is not None and not info.get("Failure Reason"):
        app.release_all(app.task_time(info, "Completion Time"), _stage(info))


def _task_start(app: Application, event: Event) -> None:
    info = part(event, "Task Info")
    app.hold(app.task_time(info, "Launch Time"), _stage(event), text(info, "Host"), text(info, "Executor ID"))


def _task_end(app: Application, event: Event) -> None:
    info = part(event, "Task Info")
    at_ms, stage = app.task_time(info, "Finish Time"), _stage(event)
    host, executor = text(info, "Host"), text(info, "Executor ID")
    measured = _measured(event)
    if not (info.get("Failed") or info.get("Killed")):
        app.input_bytes += measured["input_bytes"]
    app.peak_memory[executor] = max(app.peak_memory.get(executor, 0.0), measured["memory_bytes"])
    vertex = app.vertex(stage, host, executor)
    app.release(at_ms, stage, host, app.cpus_per_task)
    for total in (app, vertex) if vertex else (app,):
        total.cpu_s += measured["cpu_s"]
        total.read_bytes += measured["read_bytes"]
        total.temp_bytes += measured["temp_bytes"]


def _stage(event: Event) -> str:
    return f"{number(event, 'Stage ID'):.0f}.{number(event, 'Stage Attempt ID', 0):.0f}"


def _measured(event: Event) -> dict[str, float]:
    """The metrics of a task that we use; a task that was lost has none."""
    metrics, memory = optional(event, "Task Metrics"), optional(event, "Task Executor Metrics")
    shuffle = optional(metrics, "Shuffle Read Metrics")
    input_bytes = number(optional(metrics, "Input Metrics"), "Bytes Read", 0)
    shuffled = number(shuffle, "Remote Bytes Read", 0) + number(shuffle, "Local Bytes Read", 0)
    cpu_ns = number(metrics, "Executor CPU Time", 0) + number(metrics, "Executor Deserialize CPU Time", 0)
    return {
        "cpu_s": cpu_ns / NS,
        "input_bytes": input_bytes,
        "read_bytes": input_bytes + shuffled,
        "temp_bytes": number(metrics, "Disk Bytes Spilled", 0),
        "memory_bytes": number(memory, "JVMHeapMemory", 0) + number(memory, "JVMOffHeapMemory", 0),
    }


def _job_end(app: Application, event: Event) -> None:
    result = part(event, "Job Result")
    reason = str(optional(result, "Exception").get("Message", ""))
    app.has_failed = result.get("Result") != "JobSucceeded"
    app.is_cancelled = app.has_failed and "cancelled" in reason


def _sql_start(app: Application, event: Event) -> None:
    root = event.get("rootExecutionId")
    if root is not None and root != event.get("executionId"):
        return  # a command runs its query as an execution of its own: the plan has been counted
    tree = operator_tree(event.get("sparkPlanInfo"))
    app.trees.add(tree)
    app.operators.update(re.findall(r"([^(),]+?)\(", tree.replace(", ", ",")))


def _sql_end(app: Application, event: Event) -> None:
    if event.get("errorMessage"):
        app.has_failed = True


def short(name: str) -> str:
    """The name of an event without what all of them begin with."""
    return name.rpartition(".")[2].removeprefix("SparkListener")


def part(event: Event, key: str) -> Event:
    """An object that has to be there. Raises ValueError if it is missing or no object."""
    if event.get(key) is None:
        raise ValueError(f"{short(str(event.get('Event', 'event')))} lacks '{key}'")
    return optional(event, key)


def optional(event: Event, key: str) -> Event:
    """An object, empty if it is missing. Raises ValueError if it is no object."""
    value = event.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{key} '{str(value)[:SHOWN_CHARS]}' is not an object")
    return value


def number(event: Event, key: str, default: float | None = None) -> float:
    """A number from 0. Raises ValueError for any other, and for a missing one without a default."""
    value = event.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} '{str(value)[:SHOWN_CHARS]}' is not a number")
    if not 0 <= value < 1e18:
        raise ValueError(f"{key} '{str(value)[:SHOWN_CHARS]}' is negative or too large; expected 0 or more")
    return float(value)


def text(event: Event, key: str) -> str:
    """A text that is not empty. Raises ValueError for anything else."""
    content = optional_text(event, key)
    if not content:
        raise ValueError(f"{key} '{str(event.get(key))[:SHOWN_CHARS]}' is not a text")
    return content


def optional_text(event: Event, key: str) -> str | None:
    """A text, None if it is missing. Raises ValueError if it is none, or holds a surrogate without its partner."""
    value = event.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{key} '{str(value)[:SHOWN_CHARS]}' is not a text")
    if value and any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError(f"{key} {value[:SHOWN_CHARS]!a} holds half a character; expected whole ones")
    return value


def count(given: str | None) -> float | None:
    """A count as Spark's properties write it; None for what is no count."""
    match = COUNT.fullmatch(given.strip()) if given else None
    return float(match[0]) if match else None


def operator_tree(plan: Any, depth: int = 0) -> str:
    """A plan as text, `Sort(Exchange(Scan parquet()))`; wrappers of code generation are left out.

    plan: sparkPlanInfo of a log. Raises ValueError if it is no plan."""
    if not isinstance(plan, dict) or not isinstance(plan.get("nodeName"), str) or depth > MAX_DEPTH:
        raise ValueError("sparkPlanInfo is not a plan of nodes with names")
    children = plan.get("children") or []
    if not isinstance(children, list):
        raise ValueError("sparkPlanInfo is not a plan of nodes with names")
    inner = ", ".join(operator_tree(child, depth + 1) for child in children)
    words = WORD.findall(plan["nodeName"]) or ["unnamed"]
    name = " ".join(words[: 2 if words[0] in WITH_A_KIND else 1])
    return inner if name in NO_OPERATORS else f"{name}({inner})"


def signature(trees: set[str]) -> str | None:
    """A hash over the distinct plans of an application, in any order; None without a plan.

    A plan that is run once or ten times counts once: how often a loop turns is not which job it is."""
    if not trees:
        return None
    return hashlib.sha256("\n".join(sorted(trees)).encode()).hexdigest()[:16]


def _thinned(steps: list[Step]) -> list[Step]:
    """Half as many steps: two neighbours become one with their mean over time, so the area stays the same."""
    pairs = pairwise([*steps[:-1:2], steps[-1]])
    thin = []
    for index, ((start, first), (end, _)) in enumerate(pairs):
        middle, second = steps[min(2 * index + 1, len(steps) - 1)]
        middle = min(middle, end)
        thin.append((start, (first * (middle - start) + second * (end - middle)) / (end - start)))
    return [*thin, steps[-1]]


# Each adds one event to its application. Raises ValueError if it lacks what such an event has; then nothing is added
HANDLERS: dict[str, Callable[[Application, Event], None]] = {
    APP_START: _app_start,
    "SparkListenerApplicationEnd": _app_end,
    ENVIRONMENT: _environment,
    EXECUTOR: _executor,
    "SparkListenerStageCompleted": _stage_end,
    "SparkListenerTaskStart": _task_start,
    "SparkListenerTaskEnd": _task_end,
    "SparkListenerJobEnd": _job_end,
    f"{SQL}ExecutionStart": _sql_start,
    f"{SQL}ExecutionEnd": _sql_end,
}
