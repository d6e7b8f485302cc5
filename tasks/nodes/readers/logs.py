"""Raw logs of the tools whose parsers stand in tasks/nodes/tools: each log in a file is an execution, as is each job of
a run of fio; a folder holds many files.

A log says what was measured, not where. The node comes from --label-from stem|parent or from a manifest, which may
also say benchmark, machine_type, started_at, is_stressed, dose, …; without a node a log is refused. Without started_at
the start is the time in the file's name (20260131T120000), else that which the tool wrote (fio, iperf3, ioping's JSON),
else missing: the time of a file may be that of its last copy. An execution is called node/benchmark/start, and where
that is not enough (no start, or another log with the same) by its file as well, and by its job or number in there. Its
template are the settings that the log tells, unless the manifest says one. The rows of this format are logs; values
that cannot be used are refused on their own, with file and line."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, Literal

from tasks.errors import BadInput
from tasks.intake.cells import time_of
from tasks.intake.files import Chunk, open_checked, refused_rows
from tasks.intake.labels import absolute
from tasks.intake.readers import Folder
from tasks.intake.tables import MAGIC
from tasks.nodes.execution import Execution, Fault, ParsedLog, as_chunk
from tasks.nodes.params import FUTURE_SLACK_S, ReadParams
from tasks.nodes.readers.labels import HOW_TO_NAME, node_of, read_manifest, stem_of
from tasks.nodes.readers.vetting import NoExecution, aspect_of, hash_of, slug, vetted_facts
from tasks.nodes.tools import PARSERS, detect, logs_in
from tasks.nodes.tools.parsing import Metrics, in_base, template_of, unreadable
from tasks.quantities import counted

ENDINGS = (".log", ".txt", ".out", ".json", ".log.gz", ".txt.gz", ".out.gz", ".json.gz")
HEAD_SHOWN = 40
LONG_LOG = 64 * 2**20
IN_NAME = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})[T_-](\d{2})[:-]?(\d{2})[:-]?(\d{2})Z?(?!\d)")
NO_TOOL = "no known tool wrote it (it begins with {!r}); known are " + ", ".join(
    dict.fromkeys(p.tool for p in PARSERS.values())
)
NO_PARSER = "no parser for {}; expected one of " + ", ".join(PARSERS)
NO_RESULT = "no result in it, at most settings; expected the results of a benchmark"
NO_NODE = "nobody says on which node it ran"
SLACK = timedelta(seconds=FUTURE_SLACK_S)
Refusal = tuple[int, str, str]
Teller = Literal["name", "tool", "clock", "nobody"]  # clock: the tool, by a clock whose zone it does not tell


def sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """Text in which a known tool's log begins: no half of a Parquet file that holds one."""
    return bool(head) and not head.startswith(MAGIC) and detect(head.decode("utf-8", "replace")) is not None


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """As Reader.read says. Raises BadInput if nothing says on which node any of the logs was written."""
    folder, manifest = Folder(path), read_manifest(params)
    whole = PurePosixPath(absolute(path))
    files = [("/".join(whole.parts[-2:]), path)]
    if folder.is_folder:
        files = [(f"{whole.name}/{name}", folder.address(name)) for name in log_names(folder, params)]
    of_all = manifest.facts(path) if folder.is_folder else {}
    executions: list[Execution] = []
    unnamed: dict[int, str] = {}  # places of logs that nobody gave an id, and their files
    bad: list[Refusal] = []
    tellers: Counter[tuple[Teller, str]] = Counter()
    place = 0
    for name, file in files:
        facts, short, faults = of_all | manifest.facts(file), PurePosixPath(file).name, list[Fault]()
        try:
            logs = _logs(file, facts, params, faults)
        except NoExecution as reason:
            logs = []
            bad.append((place + 1, f"{short}: {reason}", ""))
        bad += [(place + 1, f"{short}, line {fault.place}: {fault.reason}", fault.raw) for fault in faults]
        n_named = Counter(log.name for _, log in logs)
        for at, (benchmark, log) in enumerate(logs, 1):
            part = f"/{log.name if n_named[log.name] == 1 and log.name else at}" if len(logs) > 1 else ""
            try:
                execution = _execution(file, facts, benchmark, log, place + at, params, tellers)
            except NoExecution as reason:
                bad.append((place + at, f"{short}: {reason}", ""))
                continue
            if "execution_id" not in facts:
                unnamed[place + at] = name + part
                execution = _called(execution, name + part, is_shared=manifest.shares_start(file))
            elif part:
                execution = replace(execution, facts={**execution.facts, "execution_id": execution.execution_id + part})
            executions.append(execution)
        place += max(len(logs), 1)
    if files and not executions and all(NO_NODE in reason for _, reason, _ in bad):
        problem = NO_NODE if len(files) == 1 else f"{NO_NODE}: {len(files)} logs"
        raise BadInput(path, problem, "the name of a node for each log", HOW_TO_NAME)
    refused = refused_rows(bad)
    chunk = as_chunk(_named_by_file(executions, unnamed), refused)
    yield replace(chunk, understood=tuple(start_lines(tellers, params.time_zone)))


def log_names(folder: Folder, params: ReadParams) -> tuple[str, ...]:
    """The files of a folder that are logs by their names, without the manifest."""
    manifest_path = absolute(params.manifest) if params.manifest else ""
    logs = (name for name in folder.names() if name.lower().endswith(ENDINGS))
    return tuple(name for name in logs if not manifest_path or absolute(folder.address(name)) != manifest_path)


def start_lines(tellers: Mapping[tuple[Teller, str], int], zone: str) -> list[str]:
    """Who tells the start of how many logs. tellers: number of logs by who tells it, and tool."""
    words = {
        "tool": "start as the tool wrote it",
        "clock": f"start as the tool wrote it, by the clock of its machine, read as {zone} (--time-zone)",
        "nobody": "start not told",
    }
    lines = []
    for teller, line in words.items():
        counts = {tool: n for (who, tool), n in sorted(tellers.items()) if who == teller}
        if counts:
            lines.append(f"{line}: {counted(sum(counts.values()), 'log')} of {', '.join(counts)}")
    return lines


def _logs(file: str, labels: Mapping[str, Any], params: ReadParams, faults: list[Fault]) -> list[tuple[str, ParsedLog]]:
    """The logs of a file that hold results, with their benchmarks; what cannot be used of any goes to `faults`.

    labels: facts from a manifest. Raises NoExecution with the reason if there is none."""
    text = _text(file, params)
    label, logs = slug(labels.get("benchmark") or ""), list(logs_in(text))
    if not any(benchmark for benchmark, _ in logs) and label in PARSERS:
        logs = [(label, PARSERS[label].parse(text))]
    known = [(benchmark, log) for benchmark, log in logs if benchmark and (label not in PARSERS or benchmark == label)]
    if not known:
        raise NoExecution(NO_PARSER.format(label) if label else NO_TOOL.format(text[:HEAD_SHOWN]))
    if not (labels.get("node") or node_of(file, params)):
        raise NoExecution(f"{NO_NODE}; {HOW_TO_NAME}")
    with_result = []
    for benchmark, log in logs:
        if benchmark and label in PARSERS and benchmark != label:
            faults.append(Fault(log.place, f"a log of {benchmark}; the manifest says {label}", ""))
            continue
        metrics = PARSERS[benchmark].metrics if benchmark else {}
        if any(metrics[value.metric].higher_is_better is not None for value in log.measured):
            with_result.append((benchmark, log))
        elif len(logs) > 1:
            faults.append(Fault(log.place, NO_RESULT if benchmark else NO_TOOL.format(log.text[:HEAD_SHOWN]), ""))
        faults += log.faults
    faults += unreadable(text, faults)
    if not with_result:
        raise NoExecution(NO_RESULT)
    return with_result


def _execution(
    file: str,
    labels: dict[str, Any],
    benchmark: str,
    log: ParsedLog,
    place: int,
    params: ReadParams,
    tellers: Counter[tuple[Teller, str]],
) -> Execution:
    """The execution of one log, called after its file unless labels, facts from a manifest, say an id.

    tellers: counts who tells starts. Raises NoExecution with the reason for facts that cannot be."""
    started_at, teller = _start(log, file, params.time_zone)
    aspect, took_s = PARSERS[benchmark].aspect, _took_s(log, PARSERS[benchmark].metrics)
    if aspect == "unknown":  # a tool that measures many things: each is a benchmark
        benchmark = f"{benchmark}-{log.name}"
        aspect = aspect_of(benchmark)
    facts: dict[str, Any] = {
        "aspect": aspect,
        "tool_version": log.version or None,
        "status": "failed" if log.has_failed else "completed",
        "started_at": started_at,
        "duration_s": took_s,
        "execution_id": file,
        "node": node_of(file, params),
        "benchmark": benchmark,
        **_template(log, labels),
        **labels,
    }
    facts["benchmark"] = slug(facts["benchmark"])
    if "started_at" not in labels:
        tellers[teller, log.tool] += 1
    return Execution(vetted_facts(facts), log.measured, log.missing, (), log.tool, log.text, place)


def _took_s(log: ParsedLog, metrics: Metrics) -> float | None:
    """The longest time that a log tells of its run, in seconds; None where it tells none."""
    times_s = [
        in_base(value.value, value.unit)
        for value in log.measured
        if (facts := metrics[value.metric]).unit == "s"
        and (facts.higher_is_better, facts.is_cumulative_over, facts.is_setting) == (None, None, False)
    ]
    return max(times_s, default=None)


def _start(log: ParsedLog, file: str, zone: str) -> tuple[datetime | None, Teller]:
    """When a log began, in UTC, and who tells it. What a clock that is ahead of ours told is no start."""
    if named := _time_in_name(file, zone):
        return named, "name"
    started_at = time_of(log.started_at.isoformat(), zone) if log.started_at else None
    if log.started_at is None or started_at is None or started_at > datetime.now(UTC).replace(tzinfo=None) + SLACK:
        return None, "nobody"
    return started_at, "tool" if log.started_at.tzinfo else "clock"


def _template(log: ParsedLog, labels: dict[str, Any]) -> dict[str, str]:
    """The settings of a log as its template, unless labels name one."""
    if "template_hash" in labels or not log.settings:
        return {}
    template = template_of(log.settings)
    return {"template": template, "template_hash": hash_of(template)}


def _called(execution: Execution, name: str, *, is_shared: bool) -> Execution:
    """The execution with its name: node, benchmark and start; by its file alone where nobody knows its start.

    is_shared: another log has the same start, as where only the day is known: by both."""
    node, benchmark, start = (execution.facts[fact] for fact in ("node", "benchmark", "started_at"))
    called = f"{node}/{benchmark}/{start.isoformat()}" if start else ""
    parts = [called, name] if is_shared else [called or name]
    return replace(execution, facts={**execution.facts, "execution_id": "/".join(part for part in parts if part)})


def _named_by_file(executions: Sequence[Execution], names: Mapping[int, str]) -> list[Execution]:
    """The executions of a folder, those of one name by their files as well. names: the files by place."""
    n_called = Counter(execution.execution_id for execution in executions)
    return [
        _called(execution, names[execution.place], is_shared=True)
        if execution.place in names and n_called[execution.execution_id] > 1
        else execution
        for execution in executions
    ]


def _text(file: str, params: ReadParams) -> str:
    try:
        with open_checked(file, params.limits) as stream:
            data = stream.read(LONG_LOG + 1)
    except BadInput as error:
        raise NoExecution(f"{error.problem}; expected {error.expected}") from error
    if len(data) > LONG_LOG:
        raise NoExecution(f"more than {LONG_LOG:,} bytes; expected the log of one execution")
    return data.decode("utf-8", "replace")


def _time_in_name(file: str, zone: str) -> datetime | None:
    match = IN_NAME.search(stem_of(file))
    return time_of("{}-{}-{}T{}:{}:{}".format(*match.groups()), zone) if match else None
