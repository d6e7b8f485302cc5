"""`whorl workloads`: what is running on this machine, known or unknown?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer import Argument, Option

from flows.cli.files import alarm_rows, ingested, not_loaded, read_results, show_read
from flows.cli.invocation import (
    DryRun,
    Invocation,
    Json,
    KeptUnder,
    MaxRefusedShare,
    Pseudonymise,
    Renamed,
    Seed,
    Source,
    TablesOut,
    TimeZone,
    absolute_paths,
    given,
    intake_flags,
    invocation_of,
    labelled_read_flags,
    one_source,
    progress_bar,
    run_flow,
)
from flows.cli.output import as_command, clean, runs_or_windows, show_described, show_facts, show_json, show_table
from tasks.choices import (
    AUTO,
    DEFAULT_SOURCE,
    ChangePointMethod,
    HoldOut,
    TelemetryReader,
    checked_source,
    reader_asked_for,
    said,
)
from tasks.quantities import counted, number, share
from tasks.report.result import Column, columns, count, extra

if TYPE_CHECKING:
    from tasks.settings import Settings
    from tasks.warehouse.place import Warehouse
    from tasks.workloads.changepoints.finding import ChangePoints
    from tasks.workloads.clusters import Cluster
    from tasks.workloads.identifications import Identified
    from tasks.workloads.params import RecordParams
    from tasks.workloads.telemetry import Telemetry

LabelFrom = Annotated[
    str | None, Option(metavar="stem|parent|column:NAME", help="Where the workload of a file is written")
]
Manifest = Annotated[
    Path | None, Option(metavar="FILE", help="CSV or JSONL with path, workload, input, round, machine of each file")
]


def read_flags(
    label_from: str | None,
    manifest: Path | None,
    renamed: list[str] | None,
    time_zone: str | None = None,
    *,
    example: str = "at_s=elapsed",
) -> dict[str, Any]:
    """Flags of the command line as settings of workloads.read. Raises BadParameter for a --map that is none."""
    return labelled_read_flags(label_from, manifest, renamed, time_zone, example=example)


def one_source_with_telemetry(warehouse: "Warehouse", source: str | None) -> str:
    """As one_source; it must have runs, so that this is told before Prefect is started."""
    from tasks.workloads.steps import newest

    chosen = one_source(warehouse, source, "workloads")
    newest(warehouse, chosen, 1)
    return chosen


def source_with_model(warehouse: "Warehouse", source: str | None) -> str:
    """The named source, or the only one with a model of workloads. Raises BadSetting, NotFound."""
    from tasks.errors import NotFound
    from tasks.warehouse.sources import only
    from tasks.workloads.models import no_model, sources_with_model

    if source is not None:
        if checked_source(source) not in sources_with_model(warehouse):
            raise NotFound(no_model(source))
        return source
    none = f"{warehouse.models}: no model of workloads yet; make one with 'whorl workloads train'"
    return only(sources_with_model(warehouse), none)


def ingest(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        Argument(metavar="PATH", help="Telemetry: files, folders, or the address of a Prometheus server"),
    ] = None,
    source: KeptUnder = DEFAULT_SOURCE,
    reader: Annotated[TelemetryReader, Option(help="Format; auto looks into each file")] = AUTO,
    label_from: LabelFrom = None,
    manifest: Manifest = None,
    renamed: Renamed = None,
    time_zone: TimeZone = None,
    max_refused_share: MaxRefusedShare = None,
    pseudonymise: Pseudonymise = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Read telemetry into the warehouse.

    The same file twice adds nothing. Labels come from the columns of the files, from --label-from, or from a manifest,
    which may also name the files."""
    from tasks.workloads.intake import Intake, begin_telemetry, find_files, preview_telemetry

    invocation, source = invocation_of(context), checked_source(source)
    if not paths and manifest is None:
        raise typer.BadParameter("name files, folders or an address, or a --manifest that does", param_hint="PATH...")
    asked = intake_flags(max_refused_share, pseudonymise=pseudonymise)
    read = read_flags(label_from, manifest, renamed, time_zone) | asked
    settings = invocation.resolved({"workloads": {"read": read}}).settings
    absolute = absolute_paths(paths)
    files = find_files(absolute, settings.workloads.read.manifest)
    intake, home = Intake(source, reader_asked_for(reader), settings.workloads.read), settings.warehouse.home
    ended = ingested(
        invocation,
        files,
        lambda: run_flow(invocation, "workloads-ingest", settings, telemetry=absolute, source=source, reader=reader),
        begin=lambda path: begin_telemetry(path, intake),
        preview=lambda path: preview_telemetry(home, path, intake),
        max_refused_share=intake.read.limits.max_refused_share,
        dry_run=dry_run,
        as_json=as_json,
    )
    if ended is None:
        return
    found, failed = ended
    result = _results(settings.warehouse, source, found) | not_loaded(failed)
    if as_json:
        show_json(result)
    elif result["files"]:
        show_read(result)
        print(f"{counted(result['n_runs'], 'run')} in source {source}, {result['n_labelled']:,} with a label")
        invocation.note(f"next: {_next(settings.warehouse, source, result['n_labelled'])}")
    if failed:
        raise failed


def _next(warehouse: "Warehouse", source: str, n_labelled: int) -> str:
    """The command to go on with: runs without a label teach nothing, but may be alike, or what is known."""
    if n_labelled:
        return as_command("whorl", "workloads", "train", "--source", source)
    from tasks.workloads.models import sources_with_model

    models = sources_with_model(warehouse)
    if source in models:
        return as_command("whorl", "workloads", "identify", "RUN", "--source", source)
    others = [as_command("whorl", "workloads", "identify", "FILE", "--source", one) for one in models[:1]]
    return " or ".join([as_command("whorl", "workloads", "clusters", "--source", source), *others])


def _results(warehouse: "Warehouse", source: str, found: dict[str, Any]) -> dict[str, Any]:
    """Files and most frequent reasons of refusal of this ingest, and how many runs the whole source has."""
    from tasks.warehouse.connection import fetch

    if not found["batches"]:
        return read_results(warehouse, source, []) | {"n_runs": 0, "n_labelled": 0}
    totals = fetch(
        warehouse,
        "SELECT count(*) AS n_runs, count(workload) AS n_labelled FROM workloads.runs WHERE source = $source",
        {"source": source},
    )
    return read_results(warehouse, source, found["batches"]) | {
        "n_runs": int(totals["n_runs"].iloc[0]),
        "n_labelled": int(totals["n_labelled"].iloc[0]),
    }


def fingerprint(
    context: typer.Context,
    source: Source = None,
    ray: Annotated[
        str | None, Option(metavar="ADDRESS", help="Ray that does it, such as ray://head:10001, or local")
    ] = None,
    as_json: Json = False,
) -> None:
    """Cut every run of a source into phases and summarise them.

    A run whose samples and settings have not changed is not done again."""
    from tasks.workloads.models import sources_with_model

    invocation = invocation_of(context)
    flags = {} if ray is None else {"workloads": {"fan_out": {"ray_address": ray}}}
    settings = invocation.resolved(flags).settings
    chosen = one_source_with_telemetry(settings.warehouse, source)
    found = run_flow(invocation, "workloads-fingerprint", settings, source=chosen)
    if as_json:
        return show_json({**found, "source": chosen})
    show_facts(
        {
            "source": chosen,
            "runs": f"{found['n_runs']:,}",
            "cut now": f"{found['n_new']:,}",
            "had their phases": f"{found['n_done']:,}",
        }
    )
    print(f"report: {found['report']}")
    if chosen in sources_with_model(settings.warehouse):
        invocation.note(f"next: {as_command('whorl', 'workloads', 'identify', 'RUN', '--source', chosen)}")


SHARES = {
    "held_out.accuracy": "identified",
    "held_out.macro_f1": "macro F1",
    "held_out.false_unknown": "called unknown",
}


def train(
    context: typer.Context,
    source: Source = None,
    hold_out: Annotated[HoldOut | None, Option(help="What is held out: the last round, or the later part")] = None,
    leave_out: Annotated[
        list[str] | None, Option(metavar="RUN", help="Id of a run that it must not see; repeatable")
    ] = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Train a model that identifies workloads.

    It learns from labelled runs, is measured on those held out, and is put into use if it is better than the model
    before. 'whorl models list' shows all, 'whorl models rollback' brings the former one back."""
    from tasks.workloads.models import read_figures

    invocation = invocation_of(context)
    flags: dict[str, Any] = {} if seed is None else {"identify": {"seed": seed}}
    flags |= {} if hold_out is None else {"train": {"hold_out": hold_out}}
    settings = invocation.resolved({"workloads": flags}).settings
    chosen = one_source_with_telemetry(settings.warehouse, source)
    found = run_flow(invocation, "workloads-train", settings, source=chosen, left_out=leave_out or [])
    figures = read_figures(settings.warehouse, chosen, found["model_id"])
    if as_json:
        return show_json({**found, "source": chosen, "figures": figures})
    show_facts(_training_facts(found, figures))
    print(f"report: {found['report']}")
    invocation.note(f"next: {as_command('whorl', 'workloads', 'identify', '--live', '--source', chosen)}")


def _training_facts(found: dict[str, Any], figures: dict[str, Any]) -> dict[str, str]:
    learned, held_out = (
        runs_or_windows(figures[f"{part}.n"], figures.get(f"{part}.n_windows")) for part in ("trained", "held_out")
    )
    champion = found["champion_id"]
    in_use = "this model" if champion == found["model_id"] else f"{champion}: no worse on the same runs, so it stays"
    return {
        "model": found["model_id"],
        "in use": in_use,
        "learned": f"{learned} of {count(figures['trained.classes'])} workloads",
        "held out": f"{held_out} ({found['held_out']}), which the figures below are of",
        **{words: share(figures[key]) for key, words in SHARES.items()},
        "data version": found["data_version"],
    }


MANY = columns(
    ("run_id", "run", "key"), ("said", "what", "name"), ("confidence", "sure", share),
    ("view", "by the counters of", "name"),
    Column("nearest", "nearest", lambda nearest: nearest[0]["workload"], kind="name"),
    *extra(("label", "label", "name")),
)  # fmt: skip
N_NEAREST = 3
VIEWS = {"own": "its own group", "machine": "the machine"}
EACH_GROUP = columns(
    ("run_id", "control group", "key"),
    Column("own_share", "of the machine", lambda own: "" if own is None else share(own), kind="number"),
    ("said", "what", "name"),
    Column("confidence", "sure", lambda sure: "" if sure is None else share(sure), kind="number"),
    Column("nearest", "nearest", lambda nearest: nearest[0]["workload"] if nearest else "", kind="name"),
)  # fmt: skip


def as_records(found: "Identified", runs: "Sequence[Telemetry]", public: Sequence[str] | None) -> list[dict[str, Any]]:
    """One record a run, in their order. public: workloads that may stand for it; given, those among the nearest.

    Raises NotFound for a public workload that the model does not know."""
    by_id = {run.run_id: run for run in runs}
    records = []
    for one in found.found:
        nearest = [near._asdict() for near in one.nearest]
        record: dict[str, Any] = {
            "run_id": one.run_id,
            "label": by_id[one.run_id].workload,
            "statement": one.statement,
            "workload": one.workload,
            "is_known": one.is_known,
            "confidence": one.confidence,
            "unknown_score": one.unknown_score,
            "present": [part._asdict() for part in one.present],
            "nearest": nearest[:N_NEAREST],
            "reasons": list(one.reasons),
            "proxy": one.proxy,
            "view": one.view,
            "own_share": conditions.own_share if (conditions := by_id[one.run_id].conditions) else None,
            "foreign_share": one.foreign_share,
            "stolen_share": one.stolen_share,
            "surer": list(one.surer),
            "missing": list(one.missing),
            "model_id": found.model_id,
        }
        if public:
            unknown = sorted(set(public) - {near["workload"] for near in nearest})
            if unknown:
                from tasks.errors import NotFound

                known = ", ".join(sorted(near["workload"] for near in nearest))
                raise NotFound(f"workload {', '.join(unknown)}: not in the model; it knows {known}")
            record["proxies"] = [near for near in nearest if near["workload"] in public]
        records.append(record)
    return records


def show_found(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one run with its reasons, or a table of several."""
    if len(rows) != 1:
        shown = [{**row, "said": said(row), "view": VIEWS[row["view"]]} for row in rows]
        show_table(shown, MANY)
        return
    [row] = rows
    show_facts(_run_facts(row))
    if row["reasons"]:
        print()
        for reason in row["reasons"]:
            print(f"- {clean(reason)}")


def _run_facts(row: Mapping[str, Any]) -> dict[str, str]:
    """Each percentage belongs to what stands beside it."""
    facts = {"run": row["run_id"], "workload": f"{said(row)} ({share(row['confidence'])} sure)"}
    if len(row["present"]) > 1:
        facts["at once"] = ", ".join(
            f"{part['workload']} {share(part['share'])} of the known part ({share(part['probability'])} sure)"
            for part in row["present"]
        )
    if row["statement"] == "known and something unknown":
        facts["something unknown besides"] = f"{share(row['unknown_score'])} sure"
    facts["by the counters of"] = VIEWS[row["view"]]
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
    if row["surer"]:
        facts["what would make it surer"] = "; ".join(row["surer"])
    if row["missing"]:
        facts["counters it lacks"] = ", ".join(row["missing"])
    return facts | {"model": row["model_id"]}


def _near(near: Mapping[str, Any]) -> str:
    """A known workload, and how far: mean squared deviation from it, 1 being what its own runs differ by."""
    return f"{near['workload']} at distance {number(near['distance'])}"


MATCHING = """
    SELECT run_id FROM workloads.runs WHERE source = $source AND starts_with(run_id, $text)
    ORDER BY run_id <> $text, run_id
"""
N_NAMED = 5  # ids that an error message names


def identify(
    context: typer.Context,
    what: Annotated[
        str | None, Argument(metavar="RUN|FILE", help="Id of a run, or the beginning of it; or a file")
    ] = None,
    live: Annotated[bool, Option("--live", help="Record what runs now, and identify that")] = False,
    each: Annotated[
        bool, Option("--each", help="With --live: what runs in each control group, with its share of the cores")
    ] = False,
    seconds: Annotated[float, Option(min=5, max=3600, help="With --live: how long is recorded")] = 30,
    subject: Annotated[
        str,
        Option(
            metavar="machine|PID|GROUP",
            help="With --live: beside the machine, whose counters: of a process, or of a control group by its path, "
            "unit, container or pod",
        ),
    ] = "machine",
    public: Annotated[
        list[str] | None,
        Option("--public", metavar="WORKLOAD", help="Public workload that may stand for it; repeatable"),
    ] = None,
    source: Source = None,
    reader: Annotated[TelemetryReader, Option(help="Format of a file; auto looks into it")] = AUTO,
    label_from: LabelFrom = None,
    renamed: Renamed = None,
    as_json: Json = False,
) -> None:
    """Say which workload it is, how sure that is, and why; an unknown one is told with what it is nearest to.

    By the model in use of the source. Nothing is kept; the flow workloads-identify keeps what it finds."""
    from tasks.workloads.identifications import identify_each
    from tasks.workloads.models import model_in_use

    if (what is None) == (not live):
        raise typer.BadParameter("name a run or a file, or use --live, not both", param_hint="RUN|FILE")
    if each and (not live or subject != "machine"):
        raise typer.BadParameter("goes with --live, and without --subject", param_hint="--each")
    invocation = invocation_of(context)
    settings = invocation.resolved({"workloads": {"read": read_flags(label_from, None, renamed)}}).settings
    chosen = source_with_model(settings.warehouse, source)
    card, model = model_in_use(settings.warehouse, chosen)  # before anything is recorded for it
    if each:
        runs = _live_groups(invocation, settings, seconds)
    elif live:
        runs = [_live(invocation, settings, subject, seconds)]
    else:
        runs = _runs(settings, chosen, str(what), reader_asked_for(reader))
    found = identify_each(runs, card, model)
    if found.refused and not found.found:
        raise found.refused[0]
    rows = as_records(found, runs, public)
    if as_json:
        refused = [str(error) for error in found.refused]
        return show_json({"source": chosen, "model_id": found.model_id, "runs": rows, "refused": refused})
    if each:
        by_share = sorted(rows, key=lambda row: (-(row["own_share"] or 0.0), row["run_id"]))
        show_table([{**row, "said": said(row)} for row in by_share], EACH_GROUP)
    else:
        show_found(rows)
    for error in found.refused:
        invocation.note(f"not identified: {error}")


def _live_groups(invocation: Invocation, settings: "Settings", seconds: float) -> "list[Telemetry]":
    from tasks.workloads.record.bench import record_each

    invocation.note(f"recording each control group for {seconds:g} s")
    return record_each(seconds, settings.workloads.record)


def _live(invocation: Invocation, settings: "Settings", subject: str, seconds: float) -> "Telemetry":
    from tasks.workloads.record.bench import record_live

    invocation.note(f"recording {subject} for {seconds:g} s")
    return record_live(subject, seconds, settings.workloads.record)


def _runs(settings: "Settings", source: str, what: str, reader: str) -> "list[Telemetry]":
    """The runs of a file or an address, or the run of the warehouse that is called so. Raises NotFound, BadInput."""
    from pathlib import Path

    from tasks.workloads.intake import read_telemetry
    from tasks.workloads.landed import fetch_runs

    if "://" in what or Path(what).exists():
        path = what if "://" in what else str(Path(what).absolute())
        runs = read_telemetry([path], settings.workloads.read, reader)
        if not runs:
            from tasks.errors import BadInput

            raise BadInput(path, "no run in it that can be used", "telemetry", "read.regular says what is too short")
        return runs
    return fetch_runs(settings.warehouse, source, [one_telemetry_run(settings, source, what)])


def one_telemetry_run(settings: "Settings", source: str, text: str) -> str:
    """The id of the one run of a source that is called so or begins so. Raises NotFound."""
    from tasks.errors import NotFound
    from tasks.warehouse.connection import fetch

    found: list[Any] = fetch(settings.warehouse, MATCHING, {"source": source, "text": text})["run_id"].to_list()
    if not found:
        raise NotFound(f"{text}: no file, and no run of source {source!r} begins so")
    if len(found) > 1 and found[0] != text:
        rest = f" and {len(found) - N_NAMED:,} more" if len(found) > N_NAMED else ""
        names = ", ".join(found[:N_NAMED])
        raise NotFound(f"run {text!r}: {len(found):,} runs begin so: {names}{rest}; give more of the id")
    return str(found[0])


CLUSTERS = columns(
    ("number", "cluster", count), ("n_runs", "runs", count), ("medoid", "like", "key"),
    Column("labels", "labels", ", ".join, kind="name"), ("seen", "seen", "name"),
    Column("telling", "what sets it apart", "; ".join, kind="name"),
)  # fmt: skip
CHANGES = columns(
    ("trace", "trace", "key"), ("when", "when", "name"), ("before", "from cluster", count),
    ("after", "to cluster", count),
)  # fmt: skip


def clusters(
    context: typer.Context,
    paths: Annotated[
        list[str] | None, Argument(metavar="PATH", help="Telemetry: files or folders; none: the runs of the source")
    ] = None,
    source: Source = None,
    reader: Annotated[TelemetryReader, Option(help="Format of files; auto looks into each")] = AUTO,
    label_from: LabelFrom = None,
    renamed: Renamed = None,
    window: Annotated[
        float | None, Option(metavar="SECONDS", help="Windows that long traces are cut into", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which runs are alike, what sets each kind apart, what is new since a week, and when a trace changed.

    Needs no label and no model; nothing is kept."""
    from tasks.workloads.clusters import clusters_of
    from tasks.workloads.intake import read_telemetry
    from tasks.workloads.landed import fetch_runs

    invocation = invocation_of(context)
    windows = {} if window is None else {"train": {"windows": {"width_s": window}}}
    asked = {"read": read_flags(label_from, None, renamed), **windows}
    settings = invocation.resolved({"workloads": asked}).settings
    if paths:
        read = settings.workloads.read
        runs = read_telemetry(absolute_paths(paths), read, reader_asked_for(reader))
    else:
        runs = fetch_runs(settings.warehouse, one_source_with_telemetry(settings.warehouse, source))
    found = clusters_of(runs, settings.workloads.train.windows)
    if as_json:
        return show_json(asdict(found))
    show_table([{**vars(one), "n_runs": len(one.run_ids), "seen": _seen(one)} for one in found.clusters], CLUSTERS)
    if found.changes:
        print()
        show_table([{**vars(one), "when": _when(one.at, one.at_s)} for one in found.changes], CHANGES)
    n_runs = sum(len(one.run_ids) for one in found.clusters)
    invocation.note(f"compared {counted(n_runs, 'run')} on {counted(found.n_counters, 'counter')}")


def _seen(cluster: "Cluster") -> str:
    """New, or from when to when."""
    if cluster.first_at is None or cluster.last_at is None:
        return ""
    words = f"{cluster.first_at:%Y-%m-%d %H:%M} to {cluster.last_at:%Y-%m-%d %H:%M}"
    return f"new: {words}" if cluster.is_new else words


def _when(at: datetime | None, at_s: float) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}" if at else f"after {at_s:g} s"


ALARMS = columns(("message", "what runs and should not"))


def watch(
    context: typer.Context,
    source: Source = None,
    expect: Annotated[
        list[str] | None, Option(metavar="WORKLOAD", help="Workload that may run; repeatable; otherwise what ran last")
    ] = None,
    newest: Annotated[
        int | None, Option(min=1, metavar="N", help="Look at the latest runs of the source, instead of recording")
    ] = None,
    seconds: Annotated[float | None, Option(min=5, max=3600, help="How long is recorded")] = None,
    subject: Annotated[
        str | None,
        Option(
            metavar="machine|PID|GROUP",
            help="Beside the machine, whose counters: of a process, or of a control group by its path, unit, container "
            "or pod",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at what runs, and raise an alarm where it should not, or is unknown; the same going on is told once.

    What runs now is recorded and kept in the source, or its latest runs are looked at."""
    invocation = invocation_of(context)
    flags = given(expected=expect or None, newest=newest, seconds=seconds, subject=subject)
    flags |= {} if newest is None else {"look_at": "newest"}
    settings = invocation.resolved({"workloads": {"watch": flags}} if flags else {}).settings
    chosen = source_with_model(settings.warehouse, source)
    found = run_flow(invocation, "workloads-watch", settings, source=chosen)
    alarms = alarm_rows(settings.warehouse, found["alarms"])
    if as_json:
        return show_json({**found, "source": chosen, "alarms": alarms})
    if alarms:
        show_table(alarms, ALARMS)
    new = counted(len(alarms), "new alarm") if alarms else "no new alarm"
    invocation.note(f"looked at {counted(len(found['run_ids']), 'run')}: {new}")


CHANGE_COLUMNS = columns(
    ("counter", "column", "name"), ("row", "row", count), ("at", "at", "name"),
    ("probability", "probability", share), ("mean_before", "before", number), ("mean_after", "after", number),
)  # fmt: skip


def changepoints(
    context: typer.Context,
    file: Annotated[str, Argument(metavar="FILE", help="CSV with a header line, a column a counter")],
    column: Annotated[
        list[str] | None, Option("--column", metavar="NAME", help="Only this one; may be repeated")
    ] = None,
    method: Annotated[
        ChangePointMethod, Option(help="bayes: season and noise by evidence; pelt, kernel, binseg: by ruptures")
    ] = "bayes",
    each: Annotated[bool, Option("--each", help="Of each column on its own; otherwise those that all share")] = False,
    as_json: Json = False,
) -> None:
    """Find where a series changes.

    A row is the zero-based number of the first sample after a change; its probability is that of a change near it. An
    empty cell, and an empty line, is a missing sample and keeps its row. A column called date, time, timestamp or alike
    holds the times of the rows."""
    from tasks.workloads.changepoints.finding import changes_of, find_changepoints, find_changepoints_each
    from tasks.workloads.changepoints.series import ChangePointParams
    from tasks.workloads.readers.tables import read_series

    invocation = invocation_of(context)
    params = ChangePointParams(method=method)
    series = read_series(file, invocation.resolved({}).settings.workloads.read.limits, column or ())
    is_alone = each or len(series.names) == 1
    if is_alone:
        found = dict(zip(series.names, find_changepoints_each(series.values, params), strict=True))
    else:
        found = {"": find_changepoints(series.values, params)}
    if as_json:
        told = {name: _told(one) for name, one in found.items()}
        return show_json({"counters": told} if each else next(iter(told.values())))
    for name, one in found.items():
        for seen in dict.fromkeys(words for model in one.models for words in model.said()):
            invocation.note(f"{f'{name}: ' if each else ''}{seen}")
    rows: list[dict[str, Any]] = []
    for name, one in found.items():
        at = series.names.index(name) if is_alone else 0
        rows += [
            asdict(change) | {"counter": name, "at": series.times[change.row] if series.times else ""}
            for change in changes_of(series.values[:, at], one)
        ]
    if rows:
        left_out = [
            *([] if each else ["counter"]),
            *([] if series.times else ["at"]),
            *([] if is_alone else ["mean_before", "mean_after"]),
        ]
        show_table(rows, tuple(one for one in CHANGE_COLUMNS if one.key not in left_out))
    else:
        invocation.note(f"no change in {len(series.values):,} samples")


def _told(found: "ChangePoints") -> dict[str, Any]:
    """A method that gives no probabilities has null in their places."""
    return {"changepoints": found.indices.tolist(), "probabilities": found.probabilities.tolist()}


def evaluate(
    context: typer.Context,
    paths: Annotated[
        list[str] | None,
        Argument(metavar="PATH", help="Labelled telemetry: files or folders; not needed with --manifest"),
    ] = None,
    reader: Annotated[TelemetryReader, Option(help="Format; auto looks into each file")] = AUTO,
    label_from: Annotated[
        str | None, Option(help="Workload of a file: stem (its name), parent (its folder), column:NAME")
    ] = None,
    manifest: Annotated[
        Path | None, Option(metavar="FILE", help="CSV or JSONL: path, workload, input, round, machine")
    ] = None,
    renamed: Renamed = None,
    window: Annotated[float | None, Option(metavar="SECONDS", help="Windows that long traces are cut into")] = None,
    step: Annotated[
        float | None, Option(metavar="SECONDS", help="From one window to the next; otherwise its length")
    ] = None,
    seed: Seed = None,
    out: TablesOut = None,
    as_json: Json = False,
) -> None:
    """Measure on labelled telemetry how well workloads are identified, known and unknown.

    Only the paths are read, into memory; nothing is kept."""
    invocation = invocation_of(context)
    read = read_flags(label_from, manifest, renamed, example="run_id=trace")
    windows = given(width_s=window, step_s=step)
    seeds = {"seed": seed} if seed is not None else {}
    asked = {"evaluate": {**({"windows": windows} if windows else {}), **seeds}, "identify": seeds}
    settings = invocation.resolved({"workloads": {"read": read, **asked}}).settings.workloads
    if not paths and not settings.read.manifest:
        raise typer.BadParameter("name telemetry, or a --manifest of it", param_hint="PATH")
    from tasks.workloads.evaluate.protocol import evaluate_read
    from tasks.workloads.steps import write_evaluation

    absolute = absolute_paths(paths)
    with progress_bar(invocation, first="reading telemetry"):
        evaluated = evaluate_read(
            absolute, settings.read, settings.evaluate, settings.identify, reader_asked_for(reader)
        )
        found = evaluated.evaluation
        if out is not None:
            name = ", ".join(Path(path).name for path in absolute[:3]) or "telemetry"
            page = write_evaluation(found, name, str(out))
    if out is not None:
        invocation.note(f"tables: {out}; page: {page}")
    if as_json:
        return show_json(found.figures)
    from tasks.report.workloads_evaluation import known_table, shared_table

    show_facts(_evaluation_facts(found.figures))
    print()
    show_described(known_table(found.figures))
    if (shared := shared_table(found.tables["shared"])).rows:
        print()
        show_described(shared)


def _evaluation_facts(figures: dict[str, Any]) -> dict[str, str]:
    """What was evaluated, and what is not in the table of known workloads."""

    def told(key: str, *, as_share: bool = True) -> str:
        value = figures[key]
        return figures[f"{key}.reason"] if value is None else share(value) if as_share else number(value)

    n_given, n_odd = figures["counters.giveaways"], figures["counters.not_common"]
    evaluated = runs_or_windows(figures["n"], figures["n_windows"])
    n_pairs = counted(figures["unknown.pairs"], "pair")
    return {
        "evaluated": f"{evaluated} of {counted(figures['classes'], 'workload')}",
        "counters": f"{figures['counters.n']:,}; left out: {n_given:,} give-aways, {n_odd:,} not in every run",
        "unknown": f"AUROC {told('unknown.auroc', as_share=False)}, {n_pairs} of workloads held out",
        "threshold": f"rejects {told('threshold.false_reject')} of a workload's own runs, "
        f"accepts {told('threshold.false_accept')} of others'",
    }


def record(
    context: typer.Context,
    minutes: Annotated[
        float | None, Option(help="How long runs are started; the next call with the same folder goes on")
    ] = None,
    workload: Annotated[
        list[str] | None, Option("--workload", "-w", metavar="NAME", help="Only this one; may be repeated")
    ] = None,
    rounds: Annotated[int | None, Option(help="Rounds, with a full stop in between")] = None,
    runs: Annotated[int | None, Option(help="Runs of each workload with each input, in all")] = None,
    conditions: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="Record under conditions instead: pair, pair_unlearned, load, limit, unlearned, input, idle, alone, "
            "or all; may be repeated",
        ),
    ] = None,
    seed: Annotated[int | None, Option(help="Decides the order of the runs")] = None,
    perf: Annotated[str | None, Option(help="none, light or syscalls: events that perf counts")] = None,
    out: Annotated[
        Path | None, Option(help="Folder for the recording; otherwise a new one in <home>/recordings")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only say what would run, and for how long")] = False,
    as_json: Json = False,
) -> None:
    """Run real workloads on this machine and sample it meanwhile.

    Prints the folder of the recording; what the sampler itself took is said beside it. Needs root for control groups
    and perf, and an otherwise idle machine."""
    from tasks.workloads.params import Condition
    from tasks.workloads.record.campaign import runnable

    invocation = invocation_of(context)
    asked = given(minutes=minutes, workloads=workload, rounds=rounds, runs=runs, seed=seed, perf=perf)
    if conditions:
        asked["conditions"] = get_args(Condition) if "all" in conditions else conditions
    flags = {"workloads": {"record": asked}}
    settings = invocation.resolved(flags).settings
    if dry_run:
        show_plan(invocation, settings.workloads.record, as_json=as_json)
        return
    runnable(settings.workloads.record)
    folder = out.absolute() if out else settings.warehouse.home / "recordings" / "workloads-{run}"
    found = run_flow(invocation, "workloads-record", settings, folder=str(folder))
    if as_json:
        return show_json(found)
    print(found["folder"])
    invocation.note(
        f"recorded {counted(found['n_new'], 'run')}, {found['n_clean']:,} of {found['n_planned']:,} undisturbed so far"
    )
    invocation.note(f"the sampler itself took {share(found['sampler_cores'])} of one core")
    if found["n_failed"]:
        invocation.note(f"{counted(found['n_failed'], 'run')} failed; -v says why")


def show_plan(invocation: Invocation, params: "RecordParams", *, as_json: bool) -> None:
    """Print the runs in order, and about how long they take."""
    from tasks.workloads.record.campaign import planned

    plan = planned(params)
    minutes = plan.duration_s(params) / 60
    if as_json:
        rows = [{"run_id": r.run_id, "round": r.round, "workload": r.workload, "input": r.input} for r in plan.runs]
        return show_json({"n_runs": len(rows), "minutes": minutes, "runs": rows})
    for run in plan.runs:
        print(run.run_id)
    n_runs, n_rounds = counted(len(plan.runs), "run"), counted(params.rounds, "round")
    invocation.note(f"{n_runs} in {n_rounds}, about {minutes:.0f} minutes")
