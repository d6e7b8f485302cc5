"""`whorl jobs whatif`: what would follow from a change, by the model in use; nothing is written."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands import completion
from flows.commands.options import Json, Source, one_source
from flows.commands.shape_options import Out
from flows.invocation import Invocation, invocation_of
from flows.shown import as_command, count, counted
from flows.tables import Column, show_facts, show_table
from tasks.jobs.offered_names import Named
from tasks.quantities import number, share

if TYPE_CHECKING:
    from tasks.jobs.control.answering import Answer, Ground

COLUMNS = (
    Column("measure", "mean over the runs", kind="name"),
    *(Column(key, key, kind="number") for key in ("before", "after", "change", "interval")),
)


def whatif(
    context: typer.Context,
    scenario: Annotated[Named | None, typer.Option(help="A change of the paper", show_default=False)] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Give a cause, such as tokens, a value or xFACTOR; repeatable"
        ),
    ] = None,
    shifts: Annotated[
        list[str] | None,
        typer.Option("--shift-sku", metavar="A:B", help="Run on SKU B what ran on A; repeatable"),
    ] = None,
    stds: Annotated[
        list[str] | None,
        typer.Option("--set-std", metavar="NAME=0", help="Set a standard deviation, such as cpu_load; repeatable"),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Only the next run of this job: its key or a part", autocompletion=completion.job_keys
        ),
    ] = None,
    source: Source = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Say what a change would do to runtimes and their variation.

    The change is made in what is known of held-out runs, and the model in use predicts them again. Where the log has
    runs that were done again with the change, the prediction is held against them."""
    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_source(settings.warehouse, source)
    from tasks.jobs.control.scenarios import parse_scenario

    params = settings.jobs.whatif
    question = parse_scenario(scenario=scenario, sets=sets or [], shifts=shifts or [], stds=stds or [])
    from flows.progress_bar import progress_bar
    from tasks.jobs.control.answering import ask_source

    with progress_bar(invocation, first="changing runs"):
        asked = ask_source(settings.warehouse, chosen, job=job)
        found = asked.answer(question, params)
        if out is not None:
            flags = ["--scenario", scenario] if scenario else []
            named = (("--set", sets), ("--shift-sku", shifts), ("--set-std", stds), ("--job", [job] if job else []))
            flags += [word for flag, values in named for value in values or [] for word in (flag, value)]
            _draw(invocation, asked, found, flags, out)
    if as_json:
        from flows.machine_output import show_json
        from tasks.jobs.control.answer_rows import answer_figures, most_helped

        told = {"source": chosen, "model_id": asked.model_id, "job": asked.job, **answer_figures(found, params)}
        show_json(told | {"jobs": most_helped(found.outcome)})
        return
    _show(invocation, found, {"model": asked.model_id, **({"job": asked.job} if asked.job else {})})


def _draw(invocation: Invocation, asked: "Ground", found: "Answer", flags: list[str], out: Path) -> None:
    from tasks.report.jobs_reasons import what_if_figures
    from tasks.report.jobs_shapes import METHOD
    from tasks.report.page import write_figures
    from tasks.report.result import Result, Section

    home = invocation.warehouse.home
    again = as_command("whorl", "jobs", "whatif", "--home", home, "--source", asked.source, *flags, "--out", out)
    n_runs, n_jobs = len(found.outcome.before), int(found.outcome.changes["n_groups"].max())
    result = Result(
        f"What if: {found.scenario}",
        f"Tried on {counted(n_runs, 'run')} of {counted(n_jobs, 'job')} of source {asked.source}.",
        figures=tuple(what_if_figures(found)),
        sections=(
            Section("What the figures support", lines=tuple(found.claims.can), nothing="Nothing.", is_open=True),
            Section("What they do not", lines=tuple(found.claims.cannot), nothing="Nothing.", is_open=True),
        ),
        made_of=f"model {asked.model_id}",
        again=again,
        method=METHOD,
    )
    name = f"jobs-{asked.source}-what-if-{found.scenario}" + (f"-{asked.job}" if asked.job else "")
    for path in write_figures(out, name, result):
        invocation.note(f"written: {path}")


def _show(invocation: Invocation, found: "Answer", facts: dict[str, str]) -> None:
    from tasks.report.jobs import change_rows

    outcome = found.outcome
    n_runs, n_jobs = len(outcome.before), int(outcome.changes["n_groups"].max())
    facts |= {"change": str(found.scenario), "tried on": f"{counted(n_runs, 'run')} of {counted(n_jobs, 'job')}"}
    facts |= _moved(found) | _measured(found)
    show_facts(facts)
    print()
    show_table(change_rows(outcome.changes), COLUMNS)
    _lines("Moves between shapes", [f"{kind}: {line}" for kind, one in outcome.moves.items() for line in one.words])
    _lines("What the figures support", found.claims.can)
    _lines("What they do not", found.claims.cannot)
    if found.reason:
        invocation.note(f"not measured: {found.reason}")


def _moved(found: "Answer") -> dict[str, str]:
    facts = {}
    for kind, one in found.outcome.moves.items():
        runs, jobs = share(one.runs.share_moved), share(one.groups.share_moved)
        facts[f"other shape ({kind})"] = f"{runs} of the runs, {jobs} of the jobs"
    return facts


def _measured(found: "Answer") -> dict[str, str]:
    if found.measured is None:
        return {}
    score = found.measured.comparison.score
    right = score.directions
    facts = {"measured": f"{count(score.n)} pairs of runs, done again without and with the change"}
    if right is not None and right.share is not None:
        facts["right direction"] = f"{share(right.share)} ({share(right.low)} to {share(right.high)})"
    errors = f"{number(score.mae)}; {number(score.mae_no_change)} for no change"
    if score.mae_mean_change is not None:
        errors += f", {number(score.mae_mean_change)} for the mean change of other jobs"
    return facts | {"error of the log ratio": errors}


def _lines(title: str, lines: list[str]) -> None:
    """Sentences below a title."""
    if lines:
        print()
        show_table([{"line": f"- {line}"} for line in lines], (Column("line", title),))
