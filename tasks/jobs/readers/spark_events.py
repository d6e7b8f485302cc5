"""The events of a Spark application, taken one by one: what is kept does not grow with the number of tasks."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.jobs.readers.spark_plan import count_operators, operator_tree
from tasks.jobs.readers.spark_tokens import Tokens

Event = Mapping[str, Any]
PREFIX = '{"Event":"'
LOG_START, APP_START = "SparkListenerLogStart", "SparkListenerApplicationStart"
SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
MAX_VERTICES = 20_000  # more (stages times hosts) are not kept
SHOWN_CHARS = 60
NS = 1e9
KEPT_PROPERTIES = (
    "spark.app.submitTime",
    "spark.cores.max",
    "spark.dynamicAllocation.enabled",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.kubernetes.namespace",
    "spark.master",
    "spark.task.cpus",
    "spark.yarn.queue",
)


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
    """What the events so far say. place: line of the first of them."""

    place: int
    id: str | None = None
    attempt: str | None = None
    name: str | None = None
    user: str | None = None
    started_ms: float | None = None
    ended_ms: float | None = None
    exit_code: float | None = None
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
    n_tasks: int = 0
    n_left_out: int = 0
    cpu_s: float = 0.0
    input_bytes: float = 0.0
    read_bytes: float = 0.0
    temp_bytes: float = 0.0

    def take(self, name: str, event: Event) -> None:
        """Add one event. Raises ValueError if it lacks what such an event has."""
        HANDLERS[name](self, event)

    def vertex(self, event: Event, info: Event) -> Vertex | None:
        """The vertex of a task; None beyond MAX_VERTICES."""
        stage = f"{_number(event, 'Stage ID'):.0f}.{_number(event, 'Stage Attempt ID', 0):.0f}"
        host = _text(info, "Host")
        known = self.vertices.get((stage, host))
        if known is None and len(self.vertices) < MAX_VERTICES:
            known = Vertex(stage, host, self.profiles.get(_text(info, "Executor ID"), ""))
            self.vertices[stage, host] = known
        self.n_left_out += known is None
        return known

    @property
    def cpus_per_task(self) -> float:
        """Tokens that a task holds: spark.task.cpus."""
        text = self.properties.get("spark.task.cpus", "1")
        return float(text) if text.isdigit() else 1.0


def parse_event(line: str) -> tuple[str, Event] | None:
    """Name and content of an event, or None for one that says nothing about the run.

    Raises ValueError if the line is no event; events that are not needed are not parsed."""
    if line.startswith(PREFIX):
        name = line[len(PREFIX) : line.find('"', len(PREFIX))]
        if name not in HANDLERS and name != LOG_START:
            if not line.rstrip().endswith("}"):
                raise ValueError(f"{_short(name)} '{line[-SHOWN_CHARS:]}' is cut off; expected a whole line of JSON")
            return None
    event = _parse(line)
    told = event.get("Event")
    if not isinstance(told, str):
        raise ValueError("a line of JSON without an 'Event'; expected an event of Spark")
    return (told, event) if told in HANDLERS or told == LOG_START else None


def _parse(line: str) -> Event:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a whole line of JSON ({getattr(error, 'msg', type(error).__name__)})") from error
    if not isinstance(event, dict):
        raise ValueError("a line of JSON without an 'Event'; expected an event of Spark")
    return event


def _short(name: str) -> str:
    return name.rpartition(".")[2].removeprefix("SparkListener")


def _part(event: Event, key: str) -> Event:
    part = event.get(key)
    if not isinstance(part, dict):
        raise ValueError(f"{_short(str(event.get('Event', 'event')))} lacks '{key}'")
    return part


def _number(event: Event, key: str, default: float | None = None) -> float:
    value = event.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} '{str(value)[:SHOWN_CHARS]}' is not a number")
    if not 0 <= value < 1e18:
        raise ValueError(f"{key} '{value}' is negative or too large; expected 0 or more")
    return float(value)


def _text(event: Event, key: str) -> str:
    value = event.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} '{str(value)[:SHOWN_CHARS]}' is not a text")
    return value


def _app_start(app: Application, event: Event) -> None:
    if app.id is not None:
        raise ValueError(f"a second {APP_START} in one log; expected one, or a {LOG_START} before it")
    app.started_ms = _number(event, "Timestamp")
    app.id, app.name = _text(event, "App ID"), _text(event, "App Name")
    app.attempt = event.get("App Attempt ID")
    app.user = event.get("User")


def _app_end(app: Application, event: Event) -> None:
    app.ended_ms = _number(event, "Timestamp")
    app.exit_code = _number(event, "ExitCode", 0) if event.get("ExitCode") is not None else None


def _environment(app: Application, event: Event) -> None:
    properties = _part(event, "Spark Properties")
    app.properties = {key: str(properties[key]) for key in KEPT_PROPERTIES if key in properties}


def _executor(app: Application, event: Event) -> None:
    info, executor = _part(event, "Executor Info"), _text(event, "Executor ID")
    app.cores[executor] = _number(info, "Total Cores")
    app.profiles[executor] = str(info.get("Resource Profile Id") or "")


def _task_start(app: Application, event: Event) -> None:
    info = _part(event, "Task Info")
    at_ms, vertex = _number(info, "Launch Time"), app.vertex(event, info)
    app.tokens.change(at_ms, app.cpus_per_task)
    if vertex:
        vertex.tokens.change(at_ms, app.cpus_per_task)


def _task_end(app: Application, event: Event) -> None:
    info = _part(event, "Task Info")
    at_ms, vertex = _number(info, "Finish Time"), app.vertex(event, info)
    measured = _measured(event)
    app.n_tasks += 1
    app.tokens.change(at_ms, -app.cpus_per_task)
    app.cpu_s += measured["cpu_s"]
    app.read_bytes += measured["read_bytes"]
    app.temp_bytes += measured["temp_bytes"]
    if not (info.get("Failed") or info.get("Killed")):
        app.input_bytes += measured["input_bytes"]
    executor = _text(info, "Executor ID")
    app.peak_memory[executor] = max(app.peak_memory.get(executor, 0.0), measured["memory_bytes"])
    if vertex:
        vertex.tokens.change(at_ms, -app.cpus_per_task)
        vertex.cpu_s += measured["cpu_s"]
        vertex.read_bytes += measured["read_bytes"]
        vertex.temp_bytes += measured["temp_bytes"]


def _measured(event: Event) -> dict[str, float]:
    """The metrics of a task that we use; a task that was lost has none."""
    metrics, memory = event.get("Task Metrics") or {}, event.get("Task Executor Metrics") or {}
    shuffle = metrics.get("Shuffle Read Metrics") or {}
    input_bytes = _number(metrics.get("Input Metrics") or {}, "Bytes Read", 0)
    shuffled = _number(shuffle, "Remote Bytes Read", 0) + _number(shuffle, "Local Bytes Read", 0)
    cpu_ns = _number(metrics, "Executor CPU Time", 0) + _number(metrics, "Executor Deserialize CPU Time", 0)
    return {
        "cpu_s": cpu_ns / NS,
        "input_bytes": input_bytes,
        "read_bytes": input_bytes + shuffled,
        "temp_bytes": _number(metrics, "Disk Bytes Spilled", 0),
        "memory_bytes": _number(memory, "JVMHeapMemory", 0) + _number(memory, "JVMOffHeapMemory", 0),
    }


def _job_end(app: Application, event: Event) -> None:
    result = _part(event, "Job Result")
    app.has_failed = result.get("Result") != "JobSucceeded"
    reason = str((result.get("Exception") or {}).get("Message", ""))
    app.is_cancelled = app.has_failed and "cancelled" in reason


def _sql_start(app: Application, event: Event) -> None:
    root = event.get("rootExecutionId")
    if root is not None and root != event.get("executionId"):
        return  # a command runs its query as an execution of its own: the plan has been counted
    tree = operator_tree(event.get("sparkPlanInfo"))
    app.trees.add(tree)
    app.operators.update(count_operators(tree))


def _sql_end(app: Application, event: Event) -> None:
    if event.get("errorMessage"):
        app.has_failed = True


HANDLERS: dict[str, Callable[[Application, Event], None]] = {
    APP_START: _app_start,
    "SparkListenerApplicationEnd": _app_end,
    "SparkListenerEnvironmentUpdate": _environment,
    "SparkListenerExecutorAdded": _executor,
    "SparkListenerTaskStart": _task_start,
    "SparkListenerTaskEnd": _task_end,
    "SparkListenerJobEnd": _job_end,
    f"{SQL}ExecutionStart": _sql_start,
    f"{SQL}ExecutionEnd": _sql_end,
}
