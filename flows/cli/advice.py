"""`whorl advice`: which machines and cluster sizes should I use?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from flows.cli.invocation import (
    Invocation,
    Json,
    Renamed,
    Seed,
    Source,
    absolute_paths,
    given,
    invocation_of,
    one_source,
    progress_bar,
    renamed_columns,
)
from flows.cli.output import show_described, show_json

if TYPE_CHECKING:
    from tasks.advice.steps import Answered
    from tasks.report.result import Result

EXAMPLE = "job=workload"
Machines = Annotated[
    str | None,
    Option(metavar="FILE", help="Machine types with vCPU, memory and price; without it those of the settings"),
]
Out = Annotated[Path | None, Option(metavar="DIR", help="Write a page with figures, and tables, there")]


def search(
    context: typer.Context,
    history: Annotated[Path, Option(metavar="FILE", help="Runs so far: job, machine_type, nodes, runtime_s, status")],
    machines: Machines = None,
    job: Annotated[str | None, Option(help="The job; not needed while the table has only one")] = None,
    nodes: Annotated[str | None, Option(metavar="N,N…", help="Numbers of nodes to consider, such as 4,8,16")] = None,
    max_vcpu: Annotated[int | None, Option(help="Largest cluster to consider, in vCPU")] = None,
    memory_gb: Annotated[float | None, Option(min=0, help="Memory that the job needs over all nodes, in GB")] = None,
    profile: Annotated[
        str | None,
        Option(metavar="FILE", help="Runs with smaller inputs (job, input_bytes, peak_bytes) that say how much memory"),
    ] = None,
    input_gb: Annotated[float | None, Option(help="Size of the whole input, for --profile")] = None,
    peaks_of: Annotated[
        str | None, Option(metavar="SOURCE", help="Source of job runs whose recorded peaks say how much memory")
    ] = None,
    max_runtime: Annotated[
        str | None, Option(metavar="TIME", help="Longest runtime that will do, such as 30min")
    ] = None,
    ran: Annotated[
        str | None, Option(metavar="TYPE:NODES", help="Add a run to the history first, such as m4.xlarge:8")
    ] = None,
    took: Annotated[str | None, Option(metavar="TIME", help="How long that run took")] = None,
    status: Annotated[Literal["completed", "failed", "killed"], Option(help="How that run ended")] = "completed",
    renamed: Renamed = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Say on which configuration to run next, and when to stop.

    Ask, run it, and tell what came of it with --ran and --took: the table of runs is all that is remembered, and asking
    again with the same table gives the same answer."""
    from tasks.advice import steps

    invocation = invocation_of(context)
    asked = given(nodes=whole_numbers(nodes), max_vcpu=max_vcpu)
    flags = {"advice": {"search": asked}}
    settings = invocation.resolved(flags).settings
    columns = renamed_columns(renamed, EXAMPLE)
    if ran is not None:
        machine_type, n = parse_configuration(ran)
        run = (machine_type, n, seconds("--took", took), status)
        steps.tell(str(history.absolute()), job, machines, settings.advice.search, run, columns)
    found = steps.search(
        str(history.absolute()),
        job,
        machines,
        settings.advice.search,
        {
            "memory_gb": memory_gb,
            "profile": profile,
            "input_gb": input_gb,
            "recorded": peaks_of,
            "warehouse": settings.warehouse if peaks_of else None,
        },
        None if max_runtime is None else seconds("--max-runtime", max_runtime),
        columns,
    )
    tell(invocation, found, as_json=as_json, out=out)


def evaluate(
    context: typer.Context,
    runs: Annotated[str, Argument(metavar="RUNS", help="Table of jobs with a run on each of many configurations")],
    machines: Machines = None,
    needs: Annotated[
        str | None, Option(metavar="FILE", help="Memory needs: job, need_gb (0: any will do, empty: not clear)")
    ] = None,
    scores: Annotated[
        str | None, Option(metavar="FILE", help="Scores of machine types: machine_type, aspect, score")
    ] = None,
    searches: Annotated[int | None, Option(help="Searches of each method for each job")] = None,
    seed: Seed = None,
    renamed: Renamed = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Replay every search method on a table of runs, and say what each would have found.

    With --out the searches are kept there, and a call that was interrupted goes on."""
    from tasks.advice import steps

    invocation = invocation_of(context)
    asked = given(searches=searches, seed=seed)
    flags = {"advice": {"evaluate": asked}}
    settings = invocation.resolved(flags).settings
    [path], columns = absolute_paths([runs]), renamed_columns(renamed, EXAMPLE)
    folder = None if out is None else str(out.absolute())
    with progress_bar(invocation):
        found = steps.evaluate(
            path, machines, needs, scores, settings.advice.search, settings.advice.evaluate, columns, folder
        )
    tell(invocation, found, as_json=as_json, out=out)


def estimate(
    context: typer.Context,
    onto: Annotated[str, Option(metavar="MACHINE", help="The machine, or machine type, to estimate for")],
    traces: Annotated[
        list[str] | None,
        Option(metavar="PATH", help="Trace of a workflow (Nextflow's trace.txt, or a table); repeatable"),
    ] = None,
    job: Annotated[str | None, Option(help="A recurring job of `whorl jobs` in place of traces")] = None,
    source: Source = None,
    start: Annotated[
        str | None, Option("--from", metavar="MACHINE", help="The machine that runs are taken from")
    ] = None,
    scores: Annotated[
        str | None, Option(metavar="FILE", help="Scores of machines: machine_type, aspect, score")
    ] = None,
    scores_of: Annotated[
        str | None, Option(metavar="SOURCE", help="Source of `whorl nodes` whose benchmarks say the scores")
    ] = None,
    machine: Annotated[
        str | None, Option(help="Where traces ran that do not say it; else the name of their folder")
    ] = None,
    size_ratio: Annotated[float, Option(help="Size of the input, over the largest that has run")] = 1.0,
    deadline: Annotated[str | None, Option(metavar="TIME", help="With --job: how often it would be late")] = None,
    renamed: Renamed = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Say how long tasks or a recurring job take on a machine that was not tried, and how sure that is.

    Tasks: from their runs on one machine, and scores of both. A job: from its stages, and what other jobs met there."""
    from tasks.advice import steps

    if bool(traces) == (job is not None):
        raise typer.BadParameter("expected --traces PATH or --job JOB, one of them")
    invocation = invocation_of(context)
    settings = invocation.resolved().settings
    if job is not None:
        deadline_s = None if deadline is None else seconds("--deadline", deadline)
        params, named = settings.advice.estimate, one_source(settings.warehouse, source)
        found = steps.estimate_job(
            settings.warehouse, named, job, onto, params, start=start or "", deadline_s=deadline_s
        )
    else:
        columns = renamed_columns(renamed, "size=rchar")
        found = steps.estimate_traces(
            absolute_paths(traces),
            onto,
            steps.scores_for(scores, settings.warehouse, scores_of, columns),
            settings.advice.estimate,
            start=start or "",
            machine=machine or "",
            size_ratio=size_ratio,
            renamed=columns,
        )
    tell(invocation, found, as_json=as_json, out=out)


def choose(
    context: typer.Context,
    history: Annotated[
        Path | None, Option(metavar="FILE", help="Runs on one type: job, machine_type, runtime_s, cpu_s, read_bytes, …")
    ] = None,
    machines: Annotated[
        str | None, Option(metavar="FILE", help="Types to choose from: their vCPU, memory_gb and price_per_h")
    ] = None,
    scores: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Scores of all types: machine_type, aspect (cpu_one_thread, cpu_all_threads, disk), score",
        ),
    ] = None,
    job: Annotated[str | None, Option(help="The job; not needed while the table has only one")] = None,
    deadline: Annotated[str | None, Option(metavar="TIME", help="What takes longer is late, such as 30s")] = None,
    late_share: Annotated[float | None, Option(help="Share of runs that may be late")] = None,
    source: Annotated[
        str | None, Option(metavar="TYPE", help="The type to go by where the job has run on several")
    ] = None,
    recording: Annotated[
        Path | None,
        Option(metavar="DIR", help="A recording of advice record: answers, checked with what was held back"),
    ] = None,
    renamed: Renamed = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Say which machine type is the cheapest on which a job is rarely late, from its runs on one type.

    With scores of all types it says how sure that is, why, and which run would tell most."""
    from tasks.advice import steps
    from tasks.report.advice import story_result

    invocation = invocation_of(context)
    asked = {"choose": {"late_share": late_share}} if late_share is not None else {}
    params = invocation.resolved({"advice": asked}).settings.advice.choose
    if recording is not None:
        if history or machines or scores or deadline:
            raise typer.BadParameter("--recording has its own tables and deadlines; expected it alone, or with --job")
        told = steps.recorded_story(str(recording.absolute()), params, job)
        result = story_result(told, recording.name, f"whorl advice choose --recording {recording}", job)
        found = steps.Answered("advice-story", steps.story_figures(told), result)
    else:
        if history is None or machines is None:
            raise typer.BadParameter("expected --history and --machines with --deadline, or --recording")
        limit_s = seconds("--deadline", deadline)
        columns = renamed_columns(renamed, EXAMPLE)
        [table, kinds] = absolute_paths([str(history), machines])
        found = steps.choose(table, job, kinds, scores, limit_s, params, columns, source)
    tell(invocation, found, as_json=as_json, out=out)


def record(
    context: typer.Context,
    minutes: Annotated[
        float | None, Option(help="How long runs are started; the next call with the same folder goes on")
    ] = None,
    seed: Annotated[int | None, Option(help="Decides inputs, parameters and the order of runs")] = None,
    blocks: Annotated[int | None, Option(help="Stretches, each with every job on every type")] = None,
    repeats: Annotated[int | None, Option(help="How often disturbed runs are repeated, at the end")] = None,
    out: Annotated[Path | None, Option(help="Its folder; otherwise <home>/recordings/advice")] = None,
    as_json: Json = False,
) -> None:
    """Run recurring jobs and benchmarks on machine types that this machine emulates, and record them.

    Needs root for control groups, and sysbench, fio and ioping. Prices are invented."""
    from flows.cli.invocation import run_flow
    from tasks.advice.record.plan import RecordParams

    invocation = invocation_of(context)
    asked = given(minutes=minutes, seed=seed, blocks=blocks, repeats=repeats)
    params = RecordParams(**asked)
    settings = invocation.resolved({}).settings
    folder = out.absolute() if out else settings.warehouse.home / "recordings" / "advice"
    found = run_flow(invocation, "advice-record", settings, folder=str(folder), record=params)
    if as_json:
        return show_json(found)
    print(found["folder"])
    invocation.note(f"{found['n_done']:,} of {found['n_planned']:,} runs so far, {found['n_clean']:,} undisturbed")
    invocation.note(f"next: whorl advice choose --recording {found['folder']}")


def groups(
    context: typer.Context,
    scores: Annotated[
        Path | None,
        Option(metavar="FILE", help="Scores of machines: machine, aspect, score, low, high; without it those of nodes"),
    ] = None,
    source: Source = None,
    aspects: Annotated[
        str | None, Option(metavar="A,A…", help="Aspects that count; of a wide table, its columns")
    ] = None,
    traces: Annotated[
        Path | None, Option(metavar="FILE", help="Resource trace of a workflow, whose tasks are assigned")
    ] = None,
    kubectl: Annotated[
        Path | None, Option(metavar="FILE", help="Write a script there that labels the nodes of a cluster")
    ] = None,
    seed: Seed = None,
    renamed: Renamed = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Say which machines are alike, which differ by more than their scores vary, and which tasks belong where."""
    from tasks.advice import steps

    invocation = invocation_of(context)
    flags = {"advice": {"groups": {"seed": seed}}} if seed is not None else {}
    settings = invocation.resolved(flags).settings
    if scores is None:
        source = one_source(settings.warehouse, source, "nodes")
    found = steps.groups(
        None if scores is None else str(scores.absolute()),
        source,
        settings.warehouse,
        [part.strip() for part in aspects.split(",")] if aspects else [],
        None if traces is None else str(traces.absolute()),
        settings.advice.groups,
        renamed_columns(renamed, "machine=host"),
        kubectl,
    )
    if kubectl is not None:
        invocation.note(f"script: {kubectl}")
    tell(invocation, found, as_json=as_json, out=out)


def tell(invocation: Invocation, found: "Answered", *, as_json: bool, out: Path | None) -> None:
    """Print an answer for people, or its figures as JSON; out: a folder for its page."""
    if out is not None:
        invocation.note(f"page: {found.page(out.absolute())['report']}")
    if as_json:
        show_json(found.figures)
    else:
        show_result(found.result)


def show_result(result: "Result") -> None:
    """Print a result: the answer, how sure, why, then its tables."""
    print(result.answer)
    if result.certainty:
        print(result.certainty)
    for reason in result.reasons:
        print(f"- {reason}")
    for table in result.tables:
        if table.rows:
            print(f"\n{table.title}")
            show_described(table)
    if result.made_of:
        print(f"\n{result.made_of}")


def whole_numbers(text: str | None) -> list[int] | None:
    """Numbers of nodes from 4,8,16. Raises BadParameter."""
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(f"--nodes {text!r}: expected whole numbers such as 4,8,16") from error
    if min(numbers) < 1:
        raise typer.BadParameter(f"--nodes {text!r}: expected numbers from 1")
    return numbers


def parse_configuration(text: str) -> tuple[str, int]:
    """Machine type and number of nodes from m4.xlarge:8. Raises BadParameter."""
    machine_type, _, n = text.rpartition(":")
    if not machine_type or not n.isdecimal() or int(n) < 1:
        raise typer.BadParameter(f"--ran {text!r}: expected TYPE:NODES, such as m4.xlarge:8")
    return machine_type, int(n)


def seconds(option: str, text: str | None) -> float:
    """A time from 90s, 30min or 1.5h; a bare number is seconds. Raises BadParameter."""
    import re

    from tasks.quantities import factor_of

    matched = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*", text or "")
    factor = factor_of({"": "s", "m": "min"}.get(matched[2], matched[2]), "s") if matched else None
    if matched is None or factor is None or float(matched[1]) <= 0:
        raise typer.BadParameter(f"{option} {text!r}: expected a time above 0, such as 90s, 30min or 1.5h")
    return float(matched[1]) * factor
