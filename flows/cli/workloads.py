"""`whorl workloads`: what is running on this machine, known or unknown?"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import typer

from flows.cli.invocation import Invocation, Output, progress_bar, run_flow, source_with_rows
from flows.cli.output import as_command, runs_or_windows, say, show_described, show_facts, show_table
from flows.cli.reading import alarm_rows, ingesting, read_results, show_read, totals
from tasks.choices import (
    AUTO,
    DEFAULT_SOURCE,
    ChangePointMethod,
    TelemetryReader,
    checked_source,
    identification_words,
    intake_reader,
)
from tasks.errors import NotFound
from tasks.quantities import counted, number, share
from tasks.report.result import Column, columns, count, extra

if TYPE_CHECKING:
    from tasks.settings import Settings
    from tasks.warehouse.place import Warehouse
    from tasks.workloads.identifications import Identified
    from tasks.workloads.params import RecordParams
    from tasks.workloads.telemetry import Telemetry


def source_with_telemetry(warehouse: "Warehouse", source: str | None) -> str:
    """As source_with_rows; it must have runs, so that this is told before Prefect is started."""
    from tasks.workloads.steps import newest

    source_name = source_with_rows(warehouse, source, "workloads")
    newest(warehouse, source_name, 1)
    return source_name


def source_with_model(warehouse: "Warehouse", source: str | None) -> str:
    """The named source, or the only one with a model of workloads. Raises BadSetting, NotFound."""
    from tasks.warehouse.sources import only
    from tasks.workloads.models import no_model, sources_with_model

    if source is not None:
        if checked_source(source) not in sources_with_model(warehouse):
            raise NotFound(no_model(source))
        return source
    none = f"{warehouse.models}: no model of workloads yet; make one with 'whorl workloads train'"
    return only(sources_with_model(warehouse), none)


TOTALS = """
SELECT count(*) AS n_runs, count(workload) AS n_labelled, count(DISTINCT workload) AS n_workloads,
    count(DISTINCT regexp_replace(workload, '[-_. ]+[0-9]+$', '')) AS n_names
FROM workloads.runs WHERE source = $source
"""
OURS = """
SELECT count(*) AS n_ours FROM workloads.counters WHERE source = $source AND counter = 'cpu.user_cores'
"""  # a counter of whorl's own recorder: what runs now can be compared with such runs alone
NUMBERED = (
    "of which some are called alike but for a number at the end; where redis-1 and redis-2 are one workload, read the "
    "files again with --label-from name, which leaves the number out, or say what ran in a --manifest"
)


def ingest(
    call: Invocation,
    paths: list[str] = [],
    source: str = DEFAULT_SOURCE,
    reader: TelemetryReader = AUTO,
    dry_run: bool = False,
) -> Output:
    """Read telemetry into the warehouse.

    The same file twice adds nothing. Labels come from the columns of the files, from --label-from, or from a manifest,
    which may also name the files.

    PATH: Telemetry: files, folders, or the address of a Prometheus server
    --source, -s NAME: Name to keep the rows under; different sources never mix
    --reader: Format; auto looks into each file
    --label-from stem|name|parent|column:NAME (str .read.label_from): Where the workload of a file is written
    --manifest FILE (path .read.manifest): CSV or JSONL with path, workload, input, round, machine of each file
    --map, --time-zone, --max-refused-share, --pseudonymise, --dry-run"""
    from tasks.workloads.intake import Intake, begin_telemetry, find_files, preview_telemetry

    source = checked_source(source)
    read = call.settings.workloads.read
    if not paths and not read.manifest:
        raise typer.BadParameter("name files, folders or an address, or a --manifest that does", param_hint="PATH...")
    files, intake = find_files(paths, read.manifest), Intake(source, intake_reader(reader), read)
    parameters = {"telemetry": paths, "reader": reader, "dry_run": dry_run}
    with ingesting(
        call, "workloads-ingest", files, intake, begin_telemetry, preview_telemetry, **parameters
    ) as ingested:
        if ingested is None:
            return
        result = read_results(call.warehouse, source, ingested["batches"]) | totals(call.warehouse, TOTALS, source)
        result |= {"not_loaded": ingested["not_loaded"]}
        yield result
        if result["files"]:
            show_read(result)
            print(f"{counted(result['n_runs'], 'run')} in source {source}, {result['n_labelled']:,} with a label")
            if result["n_names"] < result["n_workloads"]:
                call.note(f"{counted(result['n_workloads'], 'workload')}, {NUMBERED}")
            call.note(f"next: {_next(call.warehouse, source, result['n_labelled'])}")


def _next(warehouse: "Warehouse", source: str, n_labelled: int) -> str:
    """The command to go on with: runs without a label teach nothing, but may be alike, or what is known."""
    if n_labelled:
        return as_command("whorl", "workloads", "train", "--source", source)
    from tasks.workloads.models import sources_with_model

    models = sources_with_model(warehouse)
    if source in models:
        return as_command("whorl", "workloads", "identify", "RUN", "--source", source)
    clusters = as_command("whorl", "workloads", "clusters", "--source", source)
    if len(models) != 1:  # of several models nobody knows yet which counts the same
        return clusters
    return f"{clusters} or {as_command('whorl', 'workloads', 'identify', 'FILE', '--source', models[0])}"


def fingerprint(call: Invocation, source: str | None = None) -> Output:
    """Cut every run of a source into phases and summarise them.

    A run whose samples and settings have not changed is not done again.

    --source
    --ray ADDRESS (str .fan_out.ray_address): Ray that does it, such as ray://head:10001, or local"""
    from tasks.workloads.models import sources_with_model

    source_name = source_with_telemetry(call.warehouse, source)
    fingerprinted = run_flow(call, "workloads-fingerprint", source=source_name)
    yield {**fingerprinted, "source": source_name}
    counts = {
        "runs": fingerprinted["n_runs"],
        "cut now": fingerprinted["n_new"],
        "had their phases": fingerprinted["n_done"],
    }
    show_facts({"source": source_name, **{name: f"{n:,}" for name, n in counts.items()}})
    print(f"report: {fingerprinted['report']}")
    if source_name in sources_with_model(call.warehouse):
        call.go_on("workloads", "identify", "RUN", source=source_name)


def train(call: Invocation, source: str | None = None, leave_out: list[str] | None = None) -> Output:
    """Train a model that identifies workloads.

    It is measured on labelled runs that are held out, learns them as well in the end, and is put into use if it is
    better than the model before. 'whorl models list' shows all, 'whorl models rollback' brings the former one back.

    --source
    --hold-out (HoldOut .train.hold_out): What is held out: the last round, or the later part
    --leave-out RUN: Id of a run that it must not see; repeatable
    --seed (0..2147483647, int .identify.seed): Seed of everything random"""
    from tasks.workloads.models import read_figures

    source_name = source_with_telemetry(call.warehouse, source)
    training = run_flow(call, "workloads-train", source=source_name, left_out=leave_out or [])
    figures = read_figures(call.warehouse, source_name, training["model_id"])
    yield {**training, "source": source_name, "figures": figures}
    from flows.workloads import training_facts

    show_facts(training_facts(training, figures))
    is_ours = totals(call.warehouse, OURS, source_name)["n_ours"] > 0
    call.go_on("workloads", "identify", "--live" if is_ours else "FILE", source=source_name, report=training["report"])


MANY = columns(
    ("run_id", "run", "key"), ("said", "what", "name"), Column("sure", "sure", kind="number"),
    ("view", "by the counters of", "name"),
    Column("nearest", "nearest", lambda nearest: nearest[0]["workload"], kind="name"),
    *extra(("label", "label", "name")),
)  # fmt: skip
N_NEAREST = 3
NO_TRACEPOINT = "no tracepoint"
VIEWS = {"own": "its own group", "machine": "the machine"}
CONTAINER = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")  # the id of a container, of which its first digits are said
EACH_GROUP = columns(
    Column("run_id", "control group", lambda name: CONTAINER.sub(r"\1", name), kind="key"),
    Column("own_share", "of the machine", lambda cores: "" if cores is None else share(cores), kind="number"),
    ("said", "what", "name"),
    Column("confidence", "sure", lambda sure: "" if sure is None else share(sure), kind="number"),
    ("like", "nearest", "name"), ("processes", "its processes", "name"),
)  # fmt: skip
LEAST_SHOWN = 0.01  # of the processor time: of a program that is named


def as_records(
    identified: "Identified", runs: "Sequence[Telemetry]", public: Sequence[str] | None
) -> list[dict[str, Any]]:
    """One record a run, in their order. public: workloads that may stand for it; given, those among the nearest.

    Raises NotFound for a public workload that the model does not know."""
    from tasks.workloads.telemetry import GROUP_COUNTERS

    by_id = {run.run_id: run for run in runs}
    records = []
    for identification in identified.identifications:
        run, nearest = by_id[identification.run_id], [near._asdict() for near in identification.nearest]
        because = dict(line.partition(": ")[::2] for line in run.missing)
        record: dict[str, Any] = {
            **identification.record(),
            "label": run.workload,
            "nearest": nearest[:N_NEAREST],
            "own_share": run.conditions.own_share if run.conditions else None,
            "view_reason": because.get(GROUP_COUNTERS) if identification.view == "machine" else None,
            "missing": list(identification.missing),
            "reasons_missing": {name: because[name] for name in identification.missing if name in because},
            "model_id": identified.model_id,
        }
        if run.processes:
            record["processes"] = [{"program": name, "share": part} for name, part in run.processes.items()]
        if public:
            known = sorted(near["workload"] for near in nearest)
            if unknown := sorted(set(public) - set(known)):
                raise NotFound(f"workload {', '.join(unknown)}: not in the model; it knows {', '.join(known)}")
            record["proxies"] = [near for near in nearest if near["workload"] in public]
        records.append(record)
    return records


def show_identifications(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one run with its reasons, or a table of several."""
    if len(rows) != 1:
        shown = [
            {
                **row,
                "said": identification_words(row),
                "view": VIEWS[row["view"]],
                "sure": " + ".join(map(share, [part["probability"] for part in row["present"]] or [row["confidence"]])),
            }
            for row in rows
        ]
        show_table(shown, MANY)
        return
    [row] = rows
    show_facts(_run_facts(row))
    if row["reasons"]:
        print()
        for reason in row["reasons"]:
            say(f"- {reason}")


def _run_facts(row: Mapping[str, Any]) -> dict[str, str]:
    """Each percentage belongs to what stands beside it."""
    facts = {"run": row["run_id"], "workload": identification_words(row, how_sure=True)}
    if len(row["present"]) > 1:
        shares = ", ".join(f"{part['workload']} {share(part['share'])}" for part in row["present"])
        facts["at once"] = f"{shares} of what these do together"
    facts["by the counters of"] = VIEWS[row["view"]] + (f": {why}" if (why := row.get("view_reason")) else "")
    facts["nearest"] = ", ".join(_near(near) for near in row["nearest"])
    if row["label"]:
        facts["label"] = row["label"]
    if row["proxy"]:
        facts["may stand for it"] = row["proxy"]
    if row.get("proxies"):
        facts["public workloads"] = ", ".join(_near(near) for near in row["proxies"])
    for key, words in (("foreign_share", "others took"), ("stolen_share", "the hypervisor took")):
        if row[key] is not None:
            facts[words] = f"{share(row[key])} of the machine"
    if processes := _processes(row):
        facts["its processes"] = f"{processes} of its processor time"
    if row["surer"]:
        facts["what would make it surer"] = "; ".join(row["surer"])
    if row["missing"]:
        facts["counters it lacks"] = _lacking(row["missing"], row.get("reasons_missing", {}))
    return facts | {"model": row["model_id"]}


def _lacking(names: Sequence[str], reasons: Mapping[str, str]) -> str:
    """Each counter once, those of one reason together: a counter is called like its tracepoint."""
    by_reason: dict[str, list[str]] = {}
    for name in names:
        reason = reasons.get(name, "")
        by_reason.setdefault(NO_TRACEPOINT if reason.startswith(NO_TRACEPOINT) else reason, []).append(name)
    return "; ".join(", ".join(some) + (f" ({reason})" if reason else "") for reason, some in by_reason.items())


def _processes(row: Mapping[str, Any]) -> str:
    """The programs that took most of what runs now."""
    taken = row.get("processes", [])[:N_NEAREST]
    return ", ".join(
        f"{process['program']} {share(process['share'])}" for process in taken if process["share"] >= LEAST_SHOWN
    )


def _near(near: Mapping[str, Any]) -> str:
    """A known workload, and how far: mean squared deviation from it, 1 being what its own runs differ by."""
    return f"{near['workload']} at distance {number(near['distance'])}"


MATCHING = """
    SELECT run_id FROM workloads.runs WHERE source = $source AND starts_with(run_id, $text)
    ORDER BY run_id <> $text, run_id
"""


def identify(
    call: Invocation,
    what: str | None = None,
    live: bool = False,
    each: bool = False,
    seconds: float = 30,
    subject: str = "machine",
    public: list[str] | None = None,
    source: str | None = None,
    reader: TelemetryReader = AUTO,
) -> Output:
    """Say which workload it is, how sure that is, and why; an unknown one is told with what it is nearest to.

    By the model in use of the source. Nothing is kept; the flow workloads-identify keeps what it finds.

    RUN|FILE: Id of a run, or the beginning of it; or a file
    --live: Record what runs now, and identify that
    --each: With --live: what runs in each control group, with its share of the cores
    --seconds (5..3600): With --live: how long is recorded
    --subject machine|PID|GROUP: With --live: beside the machine, whose counters: of a process, or of a control
        group by its path, unit, container or pod
    --public WORKLOAD: Public workload that may stand for it; repeatable
    --source
    --reader: Format of a file; auto looks into it
    --label-from stem|name|parent|column:NAME (str .read.label_from): Where the workload of a file is written
    --map"""
    from tasks.workloads.identifications import identify_each
    from tasks.workloads.models import model_in_use

    if (what is None) == (not live):
        raise typer.BadParameter("name a run or a file, or use --live, not both", param_hint="RUN|FILE")
    if each and (not live or subject != "machine"):
        raise typer.BadParameter("goes with --live, and without --subject", param_hint="--each")
    settings = call.settings
    source_name = source_with_model(settings.warehouse, source)
    card, model = model_in_use(settings.warehouse, source_name)  # before anything is recorded for it
    if live:
        from tasks.workloads.record.bench import record_each, record_live

        call.note(f"recording {'each control group' if each else subject} for {seconds:g} s")
        params = settings.workloads.record
        runs = record_each(seconds, params) if each else [record_live(subject, seconds, params)]
    else:
        runs = _runs(settings, source_name, str(what), intake_reader(reader))
    identified = identify_each(runs, card, model)
    if identified.refused and not identified.identifications:
        raise identified.refused[0]
    rows = as_records(identified, runs, public)
    right, n_held_out = (card.metrics[f"held_out.{key}"] for key in ("accuracy", "n"))
    yield {
        "source": source_name,
        "model_id": identified.model_id,
        "held_out_accuracy": right,
        "runs": rows,
        "refused": [*map(str, identified.refused)],
    }
    if each:
        by_share = sorted(rows, key=lambda row: (-(row["own_share"] or 0.0), row["run_id"]))
        shown = [
            {**row, "said": identification_words(row), "processes": _processes(row)}
            | {"like": "" if row["statement"] == "idle" else row["nearest"][0]["workload"]}
            for row in by_share
        ]
        show_table(shown, EACH_GROUP)
        call.note(_outside(runs))
    else:
        show_identifications(rows)
    call.note(f"in training the model called {share(right)} of {counted(int(n_held_out), 'held-out run')} right")
    for error in identified.refused:
        call.note(f"not identified: {error}")


def _outside(groups: "Sequence[Telemetry]") -> str:
    """What was taken of the machine beside all groups: what others than one of them took, less the other groups."""
    conditions = [group.conditions for group in groups if group.conditions]
    first, of_groups = conditions[0], sum(each.own_share or 0.0 for each in conditions)
    if first.own_share is None or first.foreign_share is None or first.stolen_share is None:
        return "what was taken outside of these groups is not known"
    outside = max(0.0, first.own_share + first.foreign_share - of_groups)
    stolen = share(first.stolen_share)
    return f"outside of these groups {share(outside)} of the machine was taken, by the hypervisor {stolen}"


def _runs(settings: "Settings", source: str, what: str, reader: str) -> "list[Telemetry]":
    """The runs of a file or an address, or the run of the warehouse that is called so. Raises NotFound, BadInput."""
    from tasks.warehouse.connection import fetch
    from tasks.warehouse.runs import only_id
    from tasks.workloads.intake import fetch_runs, read_telemetry

    if "://" in what or Path(what).exists():
        path = what if "://" in what else str(Path(what).absolute())
        return read_telemetry([path], settings.workloads.read, reader).runs
    run_ids = fetch(settings.warehouse, MATCHING, {"source": source, "text": what})["run_id"].to_list()
    run_id = only_id(run_ids, what, f"{what}: no file, and no run of source {source!r} begins so")
    return fetch_runs(settings.warehouse, source, [run_id])


N_LEFT_OUT = 5  # runs that are named
CHANGES = columns(
    ("trace", "trace", "key"), ("when", "when", "name"), ("before", "from kind", count),
    ("after", "to kind", count),
)  # fmt: skip


def clusters(
    call: Invocation, paths: list[str] = [], source: str | None = None, reader: TelemetryReader = AUTO
) -> Output:
    """Say which runs are alike, what sets each kind apart, what is new since a week, and when a trace changed.

    Needs no label and no model; nothing is kept.

    PATH: Telemetry: files or folders; none: the runs of the source
    --source
    --reader: Format of files; auto looks into each
    --label-from stem|name|parent|column:NAME (str .read.label_from): Where the workload of a file is written
    --map
    --window SECONDS (float .train.windows.width_s): Windows that long traces are cut into"""
    from tasks.workloads.clusters import clusters_of
    from tasks.workloads.intake import fetch_runs, read_telemetry

    settings = call.settings
    if paths:
        read = settings.workloads.read
        runs = read_telemetry(paths, read, intake_reader(reader)).runs
    else:
        source = source_with_telemetry(settings.warehouse, source)
        runs = fetch_runs(settings.warehouse, source)
    clustering = clusters_of(runs, settings.workloads.train.windows)
    yield asdict(clustering)
    from tasks.report.workloads import clusters_table

    show_described(clusters_table(clustering))
    if clustering.changes:
        print()
        when = [f"{change.at:%F %T}" if change.at else f"after {change.at_s:g} s" for change in clustering.changes]
        rows = [vars(change) | {"when": at} for change, at in zip(clustering.changes, when, strict=True)]
        show_table(rows, CHANGES)
    n_runs = sum(len(cluster.run_ids) for cluster in clustering.clusters)
    call.note(f"compared {counted(n_runs, 'run')} on {counted(clustering.n_counters, 'counter')}")
    if clustering.left_out:
        call.note(f"left out, without a counter in common: {', '.join(clustering.left_out[:N_LEFT_OUT])}")
    nameless = [cluster for cluster in clustering.clusters if not cluster.labels]
    if any(cluster.n_windows for cluster in nameless):
        stretch = "a manifest names whole runs; give each stretch of a trace a run_id and a workload in columns"
        call.note(f"next: {stretch}, or a file of its own")
    if any(cluster.n_windows < len(cluster.run_ids) for cluster in nameless):
        command = as_command("whorl", "workloads", "ingest", "--manifest", "FILE", "--source", source or DEFAULT_SOURCE)
        call.note(f"next: name a run of each in a manifest (path, run_id, workload): {command}")


def watch(call: Invocation, source: str | None = None, newest: int | None = None) -> Output:
    """Look at what runs, and raise an alarm where it should not, or is unknown; the same going on is told once.

    What runs now is recorded and kept in the source, or its latest runs are looked at.

    --source
    --expect WORKLOAD (strs .watch.expected): Workload that may run; repeatable; otherwise what ran last
    --newest N (1..): Look at the latest runs of the source, instead of recording
    --seconds (5..3600, float .watch.seconds): How long is recorded
    --subject machine|PID|GROUP (str .watch.subject): Beside the machine, whose counters: of a process, or of a
        control group by its path, unit, container or pod"""
    if newest is not None:
        call = call.having({"workloads": {"watch": {"newest": newest, "look_at": "newest"}}})
    source_name = source_with_model(call.warehouse, source)
    watched = run_flow(call, "workloads-watch", source=source_name)
    alarms = alarm_rows(call.warehouse, watched["alarms"])
    yield {**watched, "source": source_name, "alarms": alarms}
    say(*(f"- {alarm['message']}" for alarm in alarms))
    new = counted(len(alarms), "new alarm") if alarms else "no new alarm"
    call.note(f"looked at {counted(len(watched['run_ids']), 'run')}: {new}")


CHANGE_COLUMNS = columns(
    ("counter", "column", "name"), ("row", "row", count), ("at", "at", "name"),
    ("probability", "probability", share), ("mean_before", "before", number), ("mean_after", "after", number),
    ("moved", "moved most", "name"),
)  # fmt: skip


ISO_DATE = re.compile(r"\d{4}-\d\d")  # whose texts are in the order of the times


def changepoints(
    call: Invocation,
    file: str,
    column: list[str] | None = None,
    method: ChangePointMethod = "bayes",
    each: bool = False,
) -> Output:
    """Find where a series changes.

    A row is the zero-based number of the first sample after a change; its probability is that of a change near it. An
    empty cell, and an empty line, is a missing sample and keeps its row. A column of dates, or called date, time,
    timestamp or alike, holds the times of the rows. Cells may carry a unit: 45 %, 10 ms, 3 MB/s.

    FILE: CSV with a header line, a column a counter; or one run of telemetry, as sar, vmstat or perf print it, in JSON
        or Parquet
    --column NAME: Only this one; may be repeated
    --method: bayes: season and noise by evidence; pelt, kernel, binseg: by ruptures
    --each: Of each column on its own; otherwise those that all share"""
    from tasks.workloads.changepoints.finding import (
        ChangePointParams,
        changes_of,
        find_changepoints,
        find_changepoints_each,
        most_moved,
    )
    from tasks.workloads.changepoints.series import series_of

    params = ChangePointParams(method=method)
    series = series_of(file, call.settings.workloads.read, column or ())
    is_alone = each or len(series.names) == 1
    if is_alone:
        by_counter = dict(zip(series.names, find_changepoints_each(series.values, params), strict=True))
    else:
        by_counter = {"": find_changepoints(series.values, params)}
    figures = {
        name: {"changepoints": changes.indices.tolist(), "probabilities": changes.probabilities.tolist()}
        for name, changes in by_counter.items()
    }  # a method that gives no probabilities has null in their places
    units = {name: unit for name, unit in zip(series.names, series.units, strict=True) if unit and is_alone}
    for name, unit in units.items():
        figures[name]["unit"] = unit
    yield {"counters": figures} if each else next(iter(figures.values()))
    for name, changes in by_counter.items() if is_alone else ():
        for seen in dict.fromkeys(words for model in changes.models for words in model.in_words()):
            call.note(f"{f'{name}: ' if each else ''}{seen}")
    rows: list[dict[str, Any]] = [
        change
        | {"counter": f"{name} ({units[name]})" if name in units else name}
        | {"at": series.times[int(change["row"])] if series.times else ""}
        for at, (name, changes) in enumerate(by_counter.items())
        for change in changes_of(series.values[:, at], changes)
    ]
    if not is_alone:
        for row, moved in zip(rows, most_moved(series.values, by_counter[""]), strict=True):
            words = (f"{series.names[at]} {number(old)} → {number(new)}" for at, old, new in moved)
            row["moved"] = ", ".join(words)
    if rows:
        is_shown = {"counter": each, "at": series.times, "moved": not is_alone}
        is_shown |= dict.fromkeys(("mean_before", "mean_after"), is_alone)
        unit = "" if each else "".join(f" ({unit})" for unit in units.values())
        shown = (replace(one, title=one.title + unit) if "mean" in one.key else one for one in CHANGE_COLUMNS)
        show_table(rows, tuple(column for column in shown if is_shown.get(column.key, True)))
        if ISO_DATE.match("".join(series.times[:1])) and series.times[0] > series.times[-1]:
            call.note("the times fall: a row is before another one in the file, and after it in time")
    else:
        call.note(f"no change in {len(series.values):,} samples")


def evaluate(
    call: Invocation,
    paths: list[str] = [],
    reader: TelemetryReader = AUTO,
    seed: int | None = None,
    out: Path | None = None,
) -> Output:
    """Measure on labelled telemetry how well workloads are identified, known and unknown.

    Only the paths are read, into memory; nothing is kept.

    PATH: Labelled telemetry: files or folders; not needed with --manifest
    --reader: Format; auto looks into each file
    --label-from stem|name|parent|column:NAME (str .read.label_from): Where the workload of a file is written
    --manifest FILE (path .read.manifest): CSV or JSONL: path, workload, input, round, machine
    --map
    --window SECONDS (float .evaluate.windows.width_s): Windows that long traces are cut into
    --step SECONDS (float .evaluate.windows.step_s): From one window to the next; otherwise its length
    --seed
    --out DIR: Write tables as Parquet, and a page with figures, there"""
    if seed is not None:
        call = call.having({"workloads": {"evaluate": {"seed": seed}, "identify": {"seed": seed}}})
    settings = call.settings.workloads
    if not paths and not settings.read.manifest:
        raise typer.BadParameter("name telemetry, or a --manifest of it", param_hint="PATH")
    from tasks.workloads.evaluate.protocol import evaluate_read
    from tasks.workloads.steps import write_evaluation

    with progress_bar(call, first="reading telemetry"):
        evaluation = evaluate_read(paths, settings.read, settings.evaluate, settings.identify, intake_reader(reader))
        if out is not None:
            name = ", ".join(Path(path).name for path in paths[:3]) or "telemetry"
            page = write_evaluation(evaluation, name, str(out))
    if out is not None:
        call.note(f"tables: {out}; page: {page}")
    yield evaluation.figures
    from tasks.report.evaluation import list_table
    from tasks.report.workloads_evaluation import OTHERS, known_table, shared_table

    figures = evaluation.figures
    n_given, n_odd = figures["counters.giveaways"], figures["counters.not_common"]
    of = counted(figures["classes"], "workload")
    facts = {
        "evaluated": f"{runs_or_windows(figures['n'], figures['n_windows'])} of {of}",
        "counters": f"{figures['counters.n']:,}; left out: {n_given:,} give-aways, {n_odd:,} not in every run",
    }
    show_facts(facts)
    for shown in (known_table(figures), list_table(figures, OTHERS), shared_table(evaluation.tables["shared"])):
        if shown.rows:
            print()
            show_described(shown)


def record(
    call: Invocation, conditions: list[str] | None = None, out: Path | None = None, dry_run: bool = False
) -> Output:
    """Run real workloads on this machine and sample it meanwhile.

    Prints the folder of the recording; what the sampler itself took is said beside it. Needs root for control groups
    and perf, and an otherwise idle machine.

    --minutes (float .record.minutes): How long runs are started; the next call with the same folder goes on
    --workload, -w NAME (strs .record.workloads): Only this one; may be repeated
    --rounds (int .record.rounds): Rounds, with a full stop in between
    --runs (int .record.runs): Runs of each workload with each input, in all
    --conditions NAME: Record under conditions instead: pair, pair_unlearned, load, limit, unlearned, input, idle,
        alone, or all; may be repeated
    --seed (int .record.seed): Decides the order of the runs
    --perf (str .record.perf): none, light or syscalls: events that perf counts
    --out: Folder for the recording; otherwise a new one in <home>/recordings
    --dry-run: Only say what would run, and for how long"""
    from tasks.workloads.params import Condition
    from tasks.workloads.record.campaign import runnable

    if conditions:
        condition_names = get_args(Condition) if "all" in conditions else conditions
        call = call.having({"workloads": {"record": {"conditions": condition_names}}})
    settings = call.settings
    if dry_run:
        yield from show_plan(call, settings.workloads.record)
        return
    runnable(settings.workloads.record)
    folder = out.absolute() if out else settings.warehouse.home / "recordings" / "workloads-{run}"
    recording = run_flow(call, "workloads-record", folder=str(folder))
    yield recording
    print(recording["folder"])
    call.note(
        f"recorded {counted(recording['n_new'], 'run')}, "
        f"{recording['n_clean']:,} of {recording['n_planned']:,} undisturbed so far"
    )
    call.note(f"the sampler itself took {share(recording['sampler_cores'])} of one core")
    if recording["n_failed"]:
        call.note(f"{counted(recording['n_failed'], 'run')} failed; -v says why")


def show_plan(call: Invocation, params: "RecordParams") -> Output:
    """Print the runs in order, and about how long they take."""
    from tasks.workloads.record.campaign import planned

    plan = planned(params)
    minutes = plan.duration_s(params) / 60
    rows = [{"run_id": r.run_id, "round": r.round, "workload": r.workload, "input": r.input} for r in plan.runs]
    yield {"n_runs": len(rows), "minutes": minutes, "runs": rows}
    for run in plan.runs:
        print(run.run_id)
    n_runs, n_rounds = counted(len(plan.runs), "run"), counted(params.rounds, "round")
    call.note(f"{n_runs} in {n_rounds}, about {minutes:.0f} minutes")
