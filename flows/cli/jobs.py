"""`whorl jobs`: recurring jobs read, recorded, summarised, characterised, learned, watched, evaluated."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from flows.cli.invocation import (
    Invocation,
    Output,
    progress_bar,
    run_flow,
    shape_numbers,
    source_with_rows,
    source_with_runs,
    write_drawing,
)
from flows.cli.output import clean, moment, plain, show_described, show_facts, show_table
from flows.cli.reading import (
    alarm_rows,
    file_results,
    ingesting,
    key_facts,
    read_results,
    recurrence_facts,
    show_files,
    show_read,
)
from tasks.choices import AUTO, DEFAULT_SOURCE, ReaderName, checked_source, intake_reader
from tasks.quantities import counted, duration, number, ratio, share
from tasks.report.result import Column, columns, count, extra, records

if TYPE_CHECKING:
    from tasks.jobs.outlook import NextRun
    from tasks.jobs.params import Kind, SummaryParams
    from tasks.warehouse.place import Warehouse


def ingest(
    call: Invocation, paths: list[str], source: str = DEFAULT_SOURCE, reader: ReaderName = AUTO, dry_run: bool = False
) -> Output:
    """Read job logs into the warehouse.

    What a job is in the source is decided by what predicts best, and stays; --group-by sets it for all of the source.
    Its recurring jobs are summarised afterwards. The same file twice adds nothing.

    PATH: Job logs: files, folders, or the address of a Prefect API
    --source, -s NAME: Name to keep the rows under; different sources never mix
    --reader: Format; auto looks into each file
    --time-zone ZONE (str .read.time_zone): Time zone of logs that name none, such as Europe/Berlin
    --map, --map-value, --unit, --features, --group-by, --max-refused-share, --pseudonymise, --dry-run"""
    from tasks.jobs.intake import Intake, begin_log, find_logs, preview_log

    source, params = checked_source(source), call.settings.jobs
    intake, logs = Intake(source, intake_reader(reader), params.read, params.group), find_logs(paths)
    if dry_run:
        from tasks.jobs.job_keys import in_use

        intake = replace(intake, group=in_use(call.warehouse, source, params.group))
    if dry_run and any("://" in log for log in logs):
        from flows.engine.servers import prepare

        prepare(call.warehouse.home)  # a server of this home wants to see its key
    parameters = {"paths": paths, "reader": reader, "dry_run": dry_run}
    with ingesting(call, "jobs-ingest", logs, intake, begin_log, preview_log, **parameters) as ingested:
        if ingested is None:
            return
        results = file_results if ingested["data_version"] else read_results
        result = results(call.warehouse, source, ingested["batches"])
        shown = ("understood", "not_loaded", "group_by", "key", "better", "data_version", "report")
        result |= {key: ingested[key] for key in shown}
        yield result
        if not ingested["data_version"]:
            show_read(result)
        else:
            show_files(result)
            call.go_on("jobs", "summary", source=source, report=ingested["report"])


def fresh_summary(warehouse: "Warehouse", source: str, params: "SummaryParams") -> dict[str, Any]:
    """The totals of a source as its files and these parameters have them now.

    Raises NotFound if the source has no runs."""
    from tasks.errors import NotFound
    from tasks.jobs import steps
    from tasks.jobs.summary import read_summary

    try:
        totals = read_summary(warehouse, source)
        if not totals["is_stale"] and totals["parameters"] == params.model_dump(mode="json"):
            return totals
    except NotFound:
        pass  # no summary yet; without runs the step says so
    steps.summarise(warehouse, source, params)
    return read_summary(warehouse, source)


Sort = Literal["support", "cov", "p95", "waiting"]
SORTED = {
    "support": "most runs first",
    "cov": "most variable first",
    "p95": "longest first",
    "waiting": "most time lost to variation first",
}
JOBS = columns(
    ("group_key", "job", "key"), ("n_finished", "runs", count), ("median_s", "median", duration),
    ("cov", "COV", ratio), ("p05_s", "5 %", duration), ("p95_s", "95 %", duration),
    ("outlier_share_ratio", "outliers", share),
    *extra(("excess_s", "lost", duration), ("max_s", "longest", duration), ("n_failed", "failed", count),
        ("last_at", "last (UTC)", moment)),
)  # fmt: skip


def summary(
    call: Invocation,
    source: str | None = None,
    job: str | None = None,
    exceeds: float | None = None,
    sort: Sort = "support",
    top: int = 20,
    every: bool = False,
) -> Output:
    """Show how the runtimes of recurring jobs vary.

    With --job: what the next run of that job will be like, from its own runs.

    --source
    --job KEY: One job: its key or a part of it
    --exceeds SECONDS (0..): With --job: chance that its next run takes longer
    --sort: What comes first
    --top (1..): How many jobs
    --all: Every job, also those that ran too seldom"""
    if exceeds is not None and job is None:
        raise typer.BadParameter("say which job with --job KEY", param_hint="--exceeds")
    source_name = source_with_rows(call.warehouse, source)
    if job is not None:
        from tasks.jobs.outlook import next_run

        outlook = next_run(call.warehouse, source_name, job, call.settings.jobs.summary, time_s=exceeds)
        yield {"source": source_name, **plain(outlook)}
        show_next_run(outlook)
        return
    from tasks.jobs.summary import read_groups

    totals = fresh_summary(call.warehouse, source_name, call.settings.jobs.summary)
    least_of_all, most = (0, None) if every else (None, top)
    jobs = records(read_groups(call.warehouse, source_name, order=sort, min_support=least_of_all, limit=most))
    yield {**totals, "jobs": jobs}
    show_facts(_totals(totals))
    print()
    least = totals["parameters"]["min_support"]
    if not jobs:
        call.note(f"no job has at least {least} finished runs (jobs.summary.min_support); --all shows every job")
        if totals["n_failed"] and not totals["n_finished"]:
            call.note(
                "all runs that ended have failed; where the log's status says something else, or nothing, ingest it "
                "with --map-value status:THEIRS=completed"
            )
        return
    show_table(jobs, JOBS)
    n_jobs = counted(totals["n_groups"] if every else totals["n_supported_groups"], "job")
    which = "" if every else f" with at least {least} finished runs"
    call.note(f"{count(len(jobs))} of {n_jobs}{which}, {SORTED[sort]} (--sort, --top, --all)")


def _totals(totals: dict[str, Any]) -> dict[str, str]:
    parameters = totals["parameters"]
    times, longer = number(parameters["outlier_ratio"]), duration(parameters["outlier_delta_s"])
    n_finished, n_failed, n_ongoing = (count(totals[f"n_{what}"]) for what in ("finished", "failed", "ongoing"))
    apart = () if {"failed", "timeout"} & set(parameters["statuses"]) else ("failed",)  # else among the finished
    n_others = totals["n_runs"] - sum(totals[f"n_{what}"] for what in ("finished", "ongoing", *apart))
    others = f", {count(n_others)} were cancelled or lack a status or runtime" if n_others > 0 else ""
    left_out, n_jobs = "", totals["n_zero_median_groups"]
    if n_jobs:
        are, runs = "is" if n_jobs == 1 else "are", counted(totals["n_zero_median_runs"], "run")
        left_out = f" ({counted(n_jobs, 'job')} with a median of 0 s {are} left out: {runs})"
    return {
        **recurrence_facts(totals),
        **key_facts(totals),
        "finished": f"{n_finished} runs; {n_failed} failed or ran into their limit{others}, {n_ongoing} have not ended",
        "variation": f"standard deviation over mean (COV) {ratio(totals['median_cov'])}, the median of "
        f"{counted(totals['n_supported_groups'], 'job')} with at least {parameters['min_support']} finished runs",
        "outliers": f"{share(totals['outlier_share_ratio'])} of their runs take at least {times} times the median "
        f"of their job{left_out}, {share(totals['outlier_share_delta'])} more than {longer} beyond it",
        "lost": f"{duration(totals['excess_s'])} of waiting beyond the medians",
        "data version": str(totals["data_version"]),
    }


def show_next_run(next_run: "NextRun") -> None:
    """Print what the runs of one job say of its next run."""
    facts = {"job": next_run.group_key, "finished runs": count(next_run.n)}
    quantiles = next_run.quantiles_s.items()
    facts["quantiles"] = ", ".join(f"{100 * level:g} % {duration(time_s)}" for level, time_s in quantiles)
    for bound in next_run.bounds:
        missing = f"not known: needs {count(bound.n_needed)} finished runs"
        facts[f"{100 * bound.level:g} % stay under"] = missing if bound.time_s is None else duration(bound.time_s)
    if next_run.chance:
        chance, n_stopped = next_run.chance, next_run.chance.n_stopped
        stopped = f", {count(n_stopped)} of them stopped later by their limit" if n_stopped else ""
        facts[f"longer than {duration(chance.time_s)}"] = (
            f"{share(chance.share)} ({count(chance.k)} of {count(chance.n)} runs{stopped}; "
            f"90 % interval {share(chance.low)} to {share(chance.high)})"
        )
    show_facts(facts)


MOST_SHOWN = 10
FINISHED_RUNS = """SELECT count(*) AS n FROM jobs.runs
    WHERE source = $source AND status IN ('completed', 'unknown') AND runtime_s IS NOT NULL"""
ALL_ALARMS = "SELECT raised_at, message FROM ops.alarms"
ALARMS = columns(("message", "slow, stopped or drifted"))


def watch(call: Invocation, source: str | None = None) -> Output:
    """Raise an alarm for every slow run, stopped job and drifting job, once.

    --source"""
    from tasks.warehouse.connection import fetch

    source_name = source_with_runs(call.warehouse, source)
    alarms = alarm_rows(call.warehouse, run_flow(call, "jobs-watch", source=source_name)["alarms"])
    yield {"alarms": alarms}
    if not alarms:
        n_runs = int(fetch(call.warehouse, FINISHED_RUNS, {"source": source_name})["n"].iloc[0])
        days = f"{call.settings.jobs.watch.look_back_days:g}"
        looked = (
            f"of {counted(n_runs, 'finished run')} those of the log's last {days} days were looked at; beyond what was "
            "told before, none is slower than its prediction allows, no job has stopped, none has drifted"
        )
        nothing = f"source {source_name} has no finished run with a runtime, so that none can be judged"
        call.note(f"no new alarm: {looked if n_runs else nothing}")
        return
    show_table(alarms[:MOST_SHOWN], ALARMS)
    more = f"; all: whorl query --limit 0 '{ALL_ALARMS}'" if len(alarms) > MOST_SHOWN else ""
    call.note(f"{counted(len(alarms), 'new alarm')}{more}")


LIKELIHOODS = columns(
    ("shape", "shape", "number"),
    Column("log_likelihood", "log-likelihood", lambda value: f"{value:,.1f}", kind="number"),
    ("posterior", "posterior", share),
)  # fmt: skip


def show_job(
    call: Invocation, source: str, job: str, *, kind: "Kind", numbers: tuple[int, ...], out: Path | None
) -> Output:
    """Print how likely the runs of a job are under each shape; with `out` draw them against two shapes.

    job: its whole key; numbers: of two shapes, or none for the two most likely."""
    from tasks.jobs.matching import job_against_shapes
    from tasks.report.jobs_variation import likelihood_figure

    fit = job_against_shapes(call.warehouse, source, job, kind, (numbers[0], numbers[1]) if numbers else None)
    if out is not None:
        first, second = fit.numbers
        words = (
            f"Shapes {first} and {second} for {job}",
            f"The runs of one job of source {source} against two of its shapes ({kind}).",
        )
        name = f"{kind}-{first}-{second}-{job}"
        write_drawing(call, out, name, words, [likelihood_figure(fit, name)], f"source {source}")
    pairs = zip(fit.log_likelihoods, fit.posteriors, strict=True)
    rows = [{"shape": k, "log_likelihood": float(log), "posterior": float(p)} for k, (log, p) in enumerate(pairs)]
    yield {"source": source, "job": job, "normalisation": kind, "n_runs": fit.n_runs, "shapes": rows}
    best = max(rows, key=lambda row: row["log_likelihood"])["shape"]
    show_facts({"job": clean(job), "runs": count(fit.n_runs), "most likely": f"shape {best} ({kind})"})
    print()
    show_table(rows, LIKELIHOODS)


def characterise(
    call: Invocation,
    source: str | None = None,
    job: str | None = None,
    shapes: str | None = None,
    normalisation: Literal["ratio", "delta"] = "ratio",
    out: Path | None = None,
) -> Output:
    """Find the few typical runtime distributions that the jobs of a source follow.

    They are taken from the first part of the log, for runtimes over the historic median of the job (ratio) and minus
    it (delta), and ranked by the gap between the 25 % and the 75 % quantile. With --job: how likely each shape makes
    the runs of one job, and with --out the figure.

    --source
    --job KEY: Only how one job fits the shapes: its key or a part
    --shapes A,B: With --job: draw it against these two; by default the most likely two
    --normalisation, --out"""
    if shapes is not None and job is None:
        raise typer.BadParameter("say which job with --job KEY", param_hint="--shapes")
    numbers = shape_numbers(shapes, least=2)
    source_name = source_with_runs(call.warehouse, source)
    if job is None:
        yield from _show_all(call, source_name, out)
        return
    from tasks.jobs.matching import are_shapes_fresh
    from tasks.jobs.summary import find_group

    key = find_group(call.warehouse, source_name, job)
    if not are_shapes_fresh(call.warehouse, source_name, call.settings.jobs.evaluate.predict.characterise):
        call.note("finding the shapes of the source; they are kept for the next time")
        run_flow(call, "jobs-characterise", source=source_name)
    yield from show_job(call, source_name, key, kind=normalisation, numbers=numbers, out=out)


def _show_all(call: Invocation, source: str, out: Path | None) -> Output:
    from tasks.jobs.characterise import read_characterised, shape_words
    from tasks.report.jobs_variation import shapes_table

    written = run_flow(call, "jobs-characterise", source=source)
    by_kind = read_characterised(call.warehouse, source)
    if out is not None:
        from tasks.report.jobs_variation import shapes_result

        sections = shapes_result(source, by_kind).sections
        words = (f"Shapes of {source}", "The typical runtime distributions of the jobs of this source.")
        write_drawing(call, out, f"jobs-{source}-shapes", words, [], f"source {source}", sections)
    shown = ["shape", "n_groups", "n_runs", "outlier_percent", "p25_p75", "p95", "std"]
    figures = {
        kind: {
            "k": len(shapes.table),
            "elbow": shapes.curve.elbow,
            "inertia": dict(zip(map(str, shapes.curve.ks), shapes.curve.inertias, strict=True)),
            "shapes": records(shapes.table[shown]),
        }
        for kind, shapes in by_kind.items()
    }
    yield {**written, "source": source, **figures}
    for place, (kind, shapes) in enumerate(by_kind.items()):
        print(("\n" if place else "") + shape_words(kind, shapes))
        show_described(shapes_table(shapes.table, kind))
    call.note("the shape of each job: whorl query 'SELECT * FROM jobs.group_shapes'; of one: --job KEY")


def train(call: Invocation, source: str | None = None) -> Output:
    """Train a model that predicts how long the next runs take.

    It learns from the earlier runs, is measured on the later ones, and is put into use if it is better than the model
    before. 'whorl models list' shows all, 'whorl models rollback' brings the former one back. --group-by changes what
    a job is in this source.

    --source, --known-before, --group-by
    --seed (0..2147483647, int .evaluate.seed): Seed of everything random"""
    source_name = source_with_runs(call.warehouse, source)
    training = run_flow(call, "jobs-train", source=source_name)
    from flows.jobs import training_facts
    from tasks.jobs.predict.training import read_figures  # not before: it imports seconds

    figures = read_figures(call.warehouse, source_name, training["model_id"])
    yield {**training, "source": source_name, "figures": figures}
    show_facts(training_facts(training, figures))
    print()
    from tasks.report.jobs_evaluation import SIDE_BY_SIDE, predictors_table

    show_described(predictors_table(figures))
    call.note(SIDE_BY_SIDE)
    call.go_on("jobs", "predict", source=source_name, report=training["report"])


def evaluate(call: Invocation, paths: list[str], reader: ReaderName = AUTO, out: Path | None = None) -> Output:
    """Measure on a job log how well runtimes are predicted.

    Only the paths are read, into a temporary warehouse; nothing is kept.

    PATH: Job logs: files or folders
    --reader: Format; auto looks into each file
    --time-zone ZONE (str .read.time_zone): Time zone of logs that name none, such as Europe/Berlin
    --map, --map-value, --unit, --features, --known-before, --group-by, --max-refused-share
    --seed (0..2147483647, int .evaluate.seed): Seed of everything random
    --out DIR: Write tables as Parquet, and a page with figures, there"""
    settings = call.settings
    from tasks.jobs.evaluate import SOURCE, evaluate_logs
    from tasks.jobs.intake import Intake

    intake = Intake(SOURCE, intake_reader(reader), settings.jobs.read, settings.jobs.group)
    with progress_bar(call):
        evaluation = evaluate_logs(paths, intake, settings.jobs.evaluate, settings.whorl.memory_mb)
    if out is not None:
        from tasks.jobs.steps import write_evaluation

        page = write_evaluation(evaluation, ", ".join(Path(path).name for path in paths[:3]), str(out))
        call.note(f"tables: {out}; page: {page}")
    yield evaluation.figures
    from tasks.report.evaluation import missing_lines
    from tasks.report.jobs_evaluation import labels_table, predictors_table

    show_facts(_evaluation_facts(evaluation.figures))
    for shown in (predictors_table(evaluation.figures), labels_table(evaluation.figures)):
        if shown.rows:
            print()
            show_described(shown)
    for line in missing_lines(evaluation.figures, "label.accuracy."):
        call.note(line)


def _evaluation_facts(figures: dict[str, Any]) -> dict[str, str]:
    from tasks.jobs.job_keys import AS_SET
    from tasks.report.jobs_evaluation import own_facts

    facts = {
        "runs": f"{figures['n']:,} of {figures['groups']:,} jobs; {figures['split.n.D3']:,} later ones are predicted",
        "recurring": f"{share(figures['recurring_share'])} of the runs are of a job that ran at least twice",
    }
    if "group.by" in figures:
        by, reason = figures["group.by"], figures["group.reason"]
        facts["a job"] = f"{by}, {reason}" if reason == AS_SET else reason
    return facts | own_facts(figures)


NOTHING_RAN = "none"


def record(call: Invocation, out: Path | None = None) -> Output:
    """Run and record real jobs on this machine.

    Prints the folder of the recording, for 'whorl jobs ingest'; what held the jobs to their tokens, and what the
    recorder itself took, is said beside it.

    --minutes (float .record.minutes): How long jobs are submitted; the next call with the same folder goes on
    --jobs (int .record.jobs): Number of recurring jobs
    --seed (int .record.seed): Decides data, jobs and submit times
    --isolation (str .record.isolation): auto, cgroups (need root) or threads: what holds jobs to their tokens
    --out: Folder for the recording; otherwise a new one in <home>/recordings"""
    from tasks.jobs.record.cluster import check_needs

    check_needs(call.settings.jobs.record)
    folder = out.absolute() if out else call.warehouse.home / "recordings" / "jobs-{run}"
    recording = run_flow(call, "jobs-record", folder=str(folder))
    yield recording
    print(recording["folder"])
    if recording["isolation"] == NOTHING_RAN:
        call.note("every run was recorded already")
        return
    runs, cost = counted(recording["n_runs"], "run"), share(recording["own_cores_ratio"])
    call.note(f"recorded {runs}, held to their tokens by {recording['isolation']}")
    call.note(f"the recorder itself took {cost} of one core")
