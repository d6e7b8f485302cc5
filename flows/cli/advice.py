"""`whorl advice`: which machines and cluster sizes should I use?"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from flows.cli.invocation import Invocation, Output, given, progress_bar, source_with_rows
from flows.cli.options import absolute, pairs
from flows.cli.output import say, show_described

if TYPE_CHECKING:
    from tasks.advice.steps import Answered

EXAMPLE = "job=workload"


def search(
    call: Invocation,
    history: Path,
    machines: str | None = None,
    job: str | None = None,
    nodes: str | None = None,
    memory_gb: float | None = None,
    profile: str | None = None,
    input_gb: float | None = None,
    peaks_of: str | None = None,
    max_runtime: str | None = None,
    ran: str | None = None,
    took: str | None = None,
    status: Literal["completed", "failed", "killed", "out-of-memory"] = "completed",
    renamed: list[str] | None = None,
    out: Path | None = None,
) -> Output:
    """Say on which configuration to run next, and when to stop.

    Ask, run it, and tell what came of it with --ran and --took: the table of runs is all that is remembered, and asking
    again with the same table gives the same answer.

    --history FILE: Runs so far: job, machine_type, nodes, runtime_s, status
    --machines FILE: Machine types with vCPU, memory and price; without it those of the settings
    --job: The job; not needed while the table has only one
    --nodes N,N…: Numbers of nodes to consider, such as 4,8,16
    --max-vcpu (int .search.max_vcpu): Largest cluster to consider, in vCPU
    --memory-gb (0..): Memory that the job needs over all nodes, in GB
    --profile FILE: Runs with smaller inputs (job, input_bytes, peak_bytes) that say how much memory
    --input-gb: Size of the whole input, for --profile
    --peaks-of SOURCE: Source of job runs whose recorded peaks say how much memory
    --max-runtime TIME: Longest runtime that will do, such as 30min
    --ran TYPE:NODES: Add a run to the history first, such as m4.xlarge:8
    --took TIME: How long that run took; of one that did not complete it may be left out
    --status: How that run ended
    --map OURS=THEIRS: Column of a table that has another name; repeatable
    --out DIR: Write a page with figures, and tables, there"""
    from tasks.advice import steps

    if nodes is not None:
        call = call.having({"advice": {"search": {"nodes": whole_numbers(nodes)}}})
    columns = pairs(renamed, "--map", EXAMPLE)
    if ran is not None:
        machine_type, n = parse_configuration(ran)
        took_s = None if took is None and status != "completed" else seconds("--took", took)
        run = (machine_type, n, took_s, status)
        steps.add_to_history(str(history.absolute()), job, machines, call.settings.advice.search, run, columns)
    need = {
        "memory_gb": memory_gb,
        "profile": profile,
        "input_gb": input_gb,
        "recorded": peaks_of,
        "warehouse": call.warehouse if peaks_of else None,
    }
    most_s = None if max_runtime is None else seconds("--max-runtime", max_runtime)
    answer = steps.search(str(history.absolute()), job, machines, call.settings.advice.search, need, most_s, columns)
    yield from print_answer(call, answer, out)


def evaluate(
    call: Invocation,
    runs: str,
    machines: str | None = None,
    needs: str | None = None,
    scores: str | None = None,
    renamed: list[str] | None = None,
    out: Path | None = None,
) -> Output:
    """Replay every search method on a table of runs, and say what each would have found.

    With --out the searches are kept there, and a call that was interrupted goes on.

    RUNS: Table of jobs with a run on each of many configurations
    --machines FILE: Machine types with vCPU, memory and price; without it those of the settings
    --needs FILE: Memory needs: job, need_gb (0: any will do, empty: not clear)
    --scores FILE: Scores of machine types: machine_type, aspect, score
    --searches (int .evaluate.searches): Searches of each method for each job
    --seed (0..2147483647, int .evaluate.seed): Seed of everything random
    --map OURS=THEIRS: Column of a table that has another name; repeatable
    --out DIR: Write a page with figures, and tables, there"""
    from tasks.advice import steps

    columns = pairs(renamed, "--map", EXAMPLE)
    folder = None if out is None else str(out.absolute())
    with progress_bar(call):
        answer = steps.evaluate(
            runs, machines, needs, scores, call.settings.advice.search, call.settings.advice.evaluate, columns, folder
        )
    yield from print_answer(call, answer, out)


def estimate(
    call: Invocation,
    onto: str,
    traces: list[str] = [],
    job: str | None = None,
    source: str | None = None,
    start: str | None = None,
    scores: str | None = None,
    scores_of: str | None = None,
    machine: str | None = None,
    size_ratio: float = 1.0,
    deadline: str | None = None,
    renamed: list[str] | None = None,
    out: Path | None = None,
) -> Output:
    """Say how long tasks or a recurring job take on a machine that was not tried, and how sure that is.

    Tasks: from their runs on one machine, and scores of both. A job: from its stages, and what other jobs met there.

    --onto MACHINE: The machine, or machine type, to estimate for
    --traces PATH: Trace of a workflow (Nextflow's trace.txt, or a table); repeatable
    --job: A recurring job of `whorl jobs` in place of traces
    --source
    --from MACHINE: The machine that runs are taken from
    --scores FILE: Scores of machines: machine_type, aspect, score
    --scores-of SOURCE: Source of `whorl nodes` whose benchmarks say the scores
    --machine: Where traces ran that do not say it; else the name of their folder
    --size-ratio: Size of the input, over the largest that has run
    --deadline TIME: With --job: how often it would be late
    --map OURS=THEIRS: Column of a table that has another name; repeatable
    --out DIR: Write a page with figures, and tables, there"""
    from tasks.advice import steps

    if bool(traces) == (job is not None):
        raise typer.BadParameter("expected --traces PATH or --job JOB, one of them")
    if job is not None:
        deadline_s = None if deadline is None else seconds("--deadline", deadline)
        params, named = call.settings.advice.estimate, source_with_rows(call.warehouse, source)
        answer = steps.estimate_job(call.warehouse, named, job, onto, params, start=start or "", deadline_s=deadline_s)
    else:
        columns = pairs(renamed, "--map", "size=rchar")
        answer = steps.estimate_traces(
            traces,
            onto,
            scores,
            call.warehouse,
            scores_of,
            call.settings.advice.estimate,
            start=start or "",
            machine=machine or "",
            size_ratio=size_ratio,
            renamed=columns,
        )
    yield from print_answer(call, answer, out)


def choose(
    call: Invocation,
    history: Path | None = None,
    machines: str | None = None,
    scores: str | None = None,
    job: str | None = None,
    deadline: str | None = None,
    source: str | None = None,
    recording: Path | None = None,
    renamed: list[str] | None = None,
    out: Path | None = None,
) -> Output:
    """Say which machine type is the cheapest on which a job is rarely late, from its runs on one type.

    With scores of all types it says how sure that is, why, and which run would tell most.

    --history FILE: Runs on one type: job, machine_type, runtime_s, cpu_s, read_bytes, …
    --machines FILE: Types to choose from: their vCPU, memory_gb and price_per_h
    --scores FILE: Scores of all types: machine_type, aspect (cpu_one_thread, cpu_all_threads, disk), score
    --job: The job; not needed while the table has only one
    --deadline TIME: What takes longer is late, such as 30s
    --late-share (float .choose.late_share): Share of runs that may be late
    --source TYPE: The type to go by where the job has run on several
    --recording DIR: A recording of advice record: answers, checked with what was held back
    --map OURS=THEIRS: Column of a table that has another name; repeatable
    --out DIR: Write a page with figures, and tables, there"""
    from tasks.advice import steps
    from tasks.report.advice import story_result

    params = call.settings.advice.choose
    if recording is not None:
        if history or machines or scores or deadline:
            raise typer.BadParameter("--recording has its own tables and deadlines; expected it alone, or with --job")
        folder, share = str(recording.absolute()), steps.set_otherwise(params, "late_share")
        story = steps.recorded_story(folder, params, job)
        again = steps.asking("choose", renamed={}, recording=folder, job=job, **share)
        result = story_result(story, recording.name, again, job)
        answer = steps.Answered("advice-story", steps.story_figures(story), result)
    else:
        if history is None or machines is None:
            raise typer.BadParameter("expected --history and --machines with --deadline, or --recording")
        limit_s = seconds("--deadline", deadline)
        columns = pairs(renamed, "--map", EXAMPLE)
        [table, kinds] = absolute([str(history), machines])
        answer = steps.choose(table, job, kinds, scores, limit_s, params, columns, source)
    yield from print_answer(call, answer, out)


def record(
    call: Invocation,
    minutes: float | None = None,
    seed: int | None = None,
    blocks: int | None = None,
    repeats: int | None = None,
    out: Path | None = None,
) -> Output:
    """Run recurring jobs and benchmarks on machine types that this machine emulates, and record them.

    Needs root for control groups, and sysbench, fio and ioping. Prices are invented.

    --minutes: How long runs are started; the next call with the same folder goes on
    --seed: Decides inputs, parameters and the order of runs
    --blocks: Stretches, each with every job on every type
    --repeats: How often disturbed runs are repeated, at the end
    --out: Its folder; otherwise <home>/recordings/advice"""
    from flows.cli.invocation import run_flow
    from tasks.advice.record.plan import RecordParams

    params = RecordParams(**given(minutes=minutes, seed=seed, blocks=blocks, repeats=repeats))
    folder = out.absolute() if out else call.warehouse.home / "recordings" / "advice"
    recording = run_flow(call, "advice-record", folder=str(folder), record=params)
    yield recording
    print(recording["folder"])
    call.note(
        f"{recording['n_done']:,} of {recording['n_planned']:,} runs so far, {recording['n_clean']:,} undisturbed"
    )
    call.note(f"next: whorl advice choose --recording {recording['folder']}")


def groups(
    call: Invocation,
    scores: Path | None = None,
    source: str | None = None,
    aspects: str | None = None,
    traces: Path | None = None,
    kubectl: Path | None = None,
    renamed: list[str] | None = None,
    out: Path | None = None,
) -> Output:
    """Say which machines are alike, which differ by more than their scores vary, and which tasks belong where.

    --scores FILE: Scores of machines: machine, aspect, score, low, high; without it those of nodes
    --source
    --aspects A,A…: Aspects that count; of a wide table, its columns
    --traces FILE: Resource trace of a workflow, whose tasks are assigned
    --kubectl FILE: Write a script there that labels the nodes of a cluster
    --seed (0..2147483647, int .groups.seed): Seed of everything random
    --map OURS=THEIRS: Column of a table that has another name; repeatable
    --out DIR: Write a page with figures, and tables, there"""
    from tasks.advice import steps

    if scores is None:
        source = source_with_rows(call.warehouse, source, "nodes")
    answer = steps.groups(
        None if scores is None else str(scores.absolute()),
        source,
        call.warehouse,
        [part.strip() for part in aspects.split(",")] if aspects else [],
        None if traces is None else str(traces.absolute()),
        call.settings.advice.groups,
        pairs(renamed, "--map", "machine=host"),
        kubectl,
    )
    if kubectl is not None:
        call.note(f"script: {kubectl}")
    yield from print_answer(call, answer, out)


def print_answer(call: Invocation, answer: "Answered", out: Path | None) -> Output:
    """Print an answer for people, or its figures as JSON; out: a folder for its page."""
    if out is not None:
        call.note(f"page: {answer.page(out.absolute())['report']}")
    yield answer.figures
    result = answer.result
    say(result.answer, *([result.certainty] if result.certainty else []), *(f"- {reason}" for reason in result.reasons))
    for table in result.tables:
        if table.rows:
            say("", table.title)
            show_described(table)
    if result.made_of:
        say("", result.made_of)


def whole_numbers(text: str) -> list[int]:
    """Numbers of nodes from 4,8,16. Raises BadParameter."""
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
    from tasks.intake.aliases import duration_s
    from tasks.intake.files import number_of

    value = number_of(text) if number_of(text) is not None else duration_s(text or "")
    if value is None or not 0 < value < math.inf:
        named = option if text is None else f"{option} {text!r}"
        raise typer.BadParameter(f"{named}: expected a time above 0, such as 90s, 30min or 1.5h")
    return value
