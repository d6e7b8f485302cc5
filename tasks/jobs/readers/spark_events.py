"""The events of a Spark application, taken one by one: what is kept does not grow with the number of tasks."""

import json
from collections.abc import Callable

from tasks.jobs.readers.spark_application import Application
from tasks.jobs.readers.spark_fields import (
    SHOWN_CHARS,
    Event,
    number,
    optional,
    optional_text,
    optional_whole,
    part,
    short,
    text,
)
from tasks.jobs.readers.spark_plan import count_operators, operator_tree

PREFIX = '{"Event":"'
LOG_START, APP_START = "SparkListenerLogStart", "SparkListenerApplicationStart"
ENVIRONMENT, EXECUTOR = "SparkListenerEnvironmentUpdate", "SparkListenerExecutorAdded"
BEFORE_START = (ENVIRONMENT, EXECUTOR)  # what Spark logs about an application before its start
SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
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


def take_event(app: Application, name: str, event: Event) -> None:
    """Add one event to its application. Raises ValueError if it lacks what such an event has; then nothing is added."""
    HANDLERS[name](app, event)


def parse_event(line: str) -> tuple[str, Event] | None:
    """Name and content of an event, or None for one that says nothing about the run.

    Raises ValueError if the line is no event; events that are not needed are not parsed."""
    if line.startswith(PREFIX):
        name = line[len(PREFIX) : line.find('"', len(PREFIX))]
        if name not in HANDLERS and name != LOG_START:
            if not line.rstrip().endswith("}"):
                raise ValueError(f"{short(name)} '{line[-SHOWN_CHARS:]}' is cut off; expected a whole line of JSON")
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


def _app_start(app: Application, event: Event) -> None:
    started_ms, app_id = number(event, "Timestamp"), text(event, "App ID")
    name, user = optional_text(event, "App Name"), optional_text(event, "User")
    attempt = optional_text(event, "App Attempt ID")
    app.started_ms, app.id, app.name, app.user, app.attempt = started_ms, app_id, name or app_id, user, attempt


def _app_end(app: Application, event: Event) -> None:
    ended_ms, exit_code = number(event, "Timestamp"), optional_whole(event, "ExitCode")
    app.release_all(ended_ms)
    app.ended_ms, app.exit_code = ended_ms, exit_code


def _environment(app: Application, event: Event) -> None:
    properties = part(event, "Spark Properties")
    found = {key: optional_text(properties, key) for key in KEPT_PROPERTIES}
    app.properties = {key: value for key, value in found.items() if value is not None}


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
    app.n_tasks += 1
    app.cpu_s += measured["cpu_s"]
    app.read_bytes += measured["read_bytes"]
    app.temp_bytes += measured["temp_bytes"]
    if not (info.get("Failed") or info.get("Killed")):
        app.input_bytes += measured["input_bytes"]
    app.peak_memory[executor] = max(app.peak_memory.get(executor, 0.0), measured["memory_bytes"])
    vertex = app.vertex(stage, host, executor)
    app.release(at_ms, stage, host, app.cpus_per_task)
    if vertex:
        vertex.cpu_s += measured["cpu_s"]
        vertex.read_bytes += measured["read_bytes"]
        vertex.temp_bytes += measured["temp_bytes"]


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
    app.operators.update(count_operators(tree))


def _sql_end(app: Application, event: Event) -> None:
    if event.get("errorMessage"):
        app.has_failed = True


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
