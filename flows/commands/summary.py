"""`whorl jobs summary`: how the runs of each recurring job vary, and what one job's next run will be like."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.commands import completion
from flows.commands.file_results import recurrence_facts
from flows.commands.options import Json, Source, one_source
from flows.commands.summaries import fresh_summary
from flows.invocation import Invocation, invocation_of
from flows.shown import count, counted, moment
from flows.tables import Column, show_facts, show_table
from tasks.quantities import duration, number, ratio, share

if TYPE_CHECKING:
    from tasks.jobs.outlook import NextRun

Sort = Literal["support", "cov", "p95", "waiting"]
SORTED = {
    "support": "most runs first",
    "cov": "most variable first",
    "p95": "longest first",
    "waiting": "most time lost to variation first",
}
COLUMNS = (
    Column("group_key", "job", kind="key"),
    Column("n_finished", "runs", count, kind="number"),
    Column("median_s", "median", duration, kind="number"),
    Column("cov", "COV", ratio, kind="number"),
    Column("p05_s", "5 %", duration, kind="number"),
    Column("p95_s", "95 %", duration, kind="number"),
    Column("outlier_share_ratio", "outliers", share, kind="number"),
    Column("excess_s", "lost", duration, kind="number", is_extra=True),
    Column("max_s", "longest", duration, kind="number", is_extra=True),
    Column("n_failed", "failed", count, kind="number", is_extra=True),
    Column("last_at", "last (UTC)", moment, kind="number", is_extra=True),
)


def summary(
    context: typer.Context,
    source: Source = None,
    job: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="One job: its key or a part of it", autocompletion=completion.job_keys),
    ] = None,
    exceeds: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="With --job: chance that its next run takes longer")
    ] = None,
    sort: Annotated[Sort, typer.Option(help="What comes first")] = "support",
    top: Annotated[int, typer.Option(min=1, help="How many jobs")] = 20,
    every: Annotated[bool, typer.Option("--all", help="Every job, also those that ran too seldom")] = False,
    as_json: Json = False,
) -> None:
    """Show how the runtimes of recurring jobs vary.

    With --job: what the next run of that job will be like, from its own runs."""
    from flows.machine_output import plain, show_json

    if exceeds is not None and job is None:
        raise typer.BadParameter("say which job with --job KEY", param_hint="--exceeds")
    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_source(settings.warehouse, source)
    if job is not None:
        from tasks.jobs.outlook import next_run

        found = next_run(settings.warehouse, chosen, job, settings.jobs.summary, time_s=exceeds)
        if as_json:
            show_json({"source": chosen, **plain(found)})
        else:
            show_next_run(found)
        return
    totals = fresh_summary(settings.warehouse, chosen, settings.jobs.summary)
    most = None if every else top
    if as_json:
        show_json({**totals, "jobs": _jobs(invocation, totals, sort=sort, top=most)})
        return
    show_facts(_totals(totals))
    print()
    show_jobs(invocation, totals, sort=sort, top=most)


def show_jobs(invocation: Invocation, totals: dict[str, Any], *, sort: Sort, top: int | None) -> None:
    """Print the jobs of a source; top: None for all, also those below the minimum support."""
    jobs = _jobs(invocation, totals, sort=sort, top=top)
    least = totals["parameters"]["min_support"]
    if not jobs:
        invocation.note(f"no job has at least {least} finished runs (jobs.summary.min_support); --all shows every job")
        return
    show_table(jobs, COLUMNS)
    n_jobs = count(totals["n_groups"] if top is None else totals["n_supported_groups"])
    which = "jobs" if top is None else f"jobs with at least {least} finished runs"
    invocation.note(f"{count(len(jobs))} of {n_jobs} {which}, {SORTED[sort]} (--sort, --top, --all)")


def _jobs(invocation: Invocation, totals: dict[str, Any], *, sort: Sort, top: int | None) -> list[dict[str, Any]]:
    from flows.machine_output import records
    from tasks.jobs.summary import read_groups

    least = 0 if top is None else None
    return records(read_groups(invocation.warehouse, totals["source"], order=sort, min_support=least, limit=top))


def _totals(totals: dict[str, Any]) -> dict[str, str]:
    asked = totals["parameters"]
    times, longer = number(asked["outlier_ratio"]), duration(asked["outlier_delta_s"])
    n_finished, n_failed, n_ongoing = (count(totals[f"n_{what}"]) for what in ("finished", "failed", "ongoing"))
    return {
        **recurrence_facts(totals),
        "finished": f"{n_finished} runs; {n_failed} failed, {n_ongoing} have not ended",
        "variation": f"median COV {ratio(totals['median_cov'])} over {count(totals['n_supported_groups'])} jobs "
        f"with at least {asked['min_support']} finished runs",
        "outliers": f"{share(totals['outlier_share_ratio'])} of their runs take at least {times} times the median "
        f"of their job{_left_out(totals)}, {share(totals['outlier_share_delta'])} more than {longer} beyond it",
        "lost": f"{duration(totals['excess_s'])} of waiting beyond the medians",
        "data version": str(totals["data_version"]),
    }


def _left_out(totals: dict[str, Any]) -> str:
    n_jobs = totals["n_zero_median_groups"]
    if not n_jobs:
        return ""
    are, n_runs = "is" if n_jobs == 1 else "are", totals["n_zero_median_runs"]
    return f" ({counted(n_jobs, 'job')} with a median of 0 s {are} left out: {counted(n_runs, 'run')})"


def show_next_run(found: "NextRun") -> None:
    """Print what the runs of one job say of its next run."""
    facts = {"job": found.group_key, "finished runs": count(found.n)}
    quantiles = found.quantiles_s.items()
    facts["quantiles"] = ", ".join(f"{100 * level:g} % {duration(time_s)}" for level, time_s in quantiles)
    for bound in found.bounds:
        missing = f"not known: needs {count(bound.n_needed)} finished runs"
        facts[f"{100 * bound.level:g} % stay under"] = missing if bound.time_s is None else duration(bound.time_s)
    if found.chance:
        chance = found.chance
        facts[f"longer than {duration(chance.time_s)}"] = (
            f"{share(chance.share)} ({count(chance.k)} of {count(chance.n)} runs; "
            f"90 % interval {share(chance.low)} to {share(chance.high)})"
        )
    show_facts(facts)
