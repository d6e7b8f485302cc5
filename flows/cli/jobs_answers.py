"""`whorl jobs predict`, `explain`, `whatif`: how the next run will vary, why, and what would reduce it."""

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from flows.cli.invocation import (
    Invocation,
    Json,
    Normalisation,
    Out,
    Source,
    invocation_of,
    offered_job_keys,
    one_source,
    progress_bar,
    shape_numbers,
    write_drawing,
)
from flows.cli.output import moment, plain, records, show_described, show_facts, show_json, show_table
from tasks.choices import SORTED, Named, Risk
from tasks.quantities import counted, duration, number, ratio, share
from tasks.report.result import Column, columns, count, extra

if TYPE_CHECKING:
    from tasks.jobs.control.answering import Answer, Ground
    from tasks.jobs.explain.reasons import Explanation, RunReasons
    from tasks.jobs.explain.whole_source import Explained
    from tasks.jobs.outlook import PredictedChance
    from tasks.jobs.params import ExplainParams, Kind
    from tasks.jobs.predict.predicting import JobOutlook, ShapeChance
    from tasks.settings import Settings

MOST_SHAPES = 3
LIKELY = 0.01  # a shape less likely is not worth a line
LIMITS = columns(
    ("level", "stays under, with", "name"), ("predicted_s", "predicted", duration),
    ("own", "its own runs", "number"),
)  # fmt: skip


def show_outlook(settings: "Settings", source: str, job: str, exceeds: float | None, *, as_json: bool) -> None:
    """Print, or give as JSON, what the next run of one job will be like."""
    from tasks.jobs.predict.predicting import job_outlook

    times_s = () if exceeds is None else (exceeds,)
    found = job_outlook(settings.warehouse, source, job, settings.jobs.outlook, times_s=times_s)
    if as_json:
        return show_json({"source": source, **plain(found)})
    show_facts(_facts(found))
    print()
    show_table([_limit(one) for one in found.limits], LIMITS)
    if found.chances:
        print()
        which = "longer than" if found.ending is None else "all runs, longer than"
        show_facts({f"{which} {duration(one.time_s)}": _chance(one) for one in found.chances})


def _facts(found: "JobOutlook") -> dict[str, str]:
    facts = {
        "job": found.group_key,
        "finished runs": f"{count(found.n_before)}, usually {duration(found.usual_s)}, the last submitted at "
        f"{moment(found.last_at)} UTC",
    }
    for kind, shapes in found.shapes.items():
        likely = [one for one in shapes[:MOST_SHAPES] if one.share >= LIKELY]
        facts[f"shape ({kind})"] = "; ".join(_shape(kind, one) for one in likely)
    if found.ending is not None:
        facts["ends"] = (
            f"completes with {share(found.ending.completes)}; is stopped at its limit with "
            f"{share(found.ending.at_limit)}, before it with {share(found.ending.before_limit)}"
        )
    return facts | {"model": f"{found.model_id}, as of {moment(found.predicted_at)} UTC"}


def _shape(kind: str, one: "ShapeChance") -> str:
    low, high = (number(value) if kind == "ratio" else _signed(value) for value in (one.p25, one.p75))
    end = " or more" if one.is_open else ""
    half = f"{low} to {high}{end} times the median" if kind == "ratio" else f"median {low} to {high}{end}"
    return f"{one.shape} with {share(one.share)}, half of whose runs take {half}"


def _signed(seconds: float) -> str:
    return f"{'−' if seconds < 0 else '+'} {duration(abs(seconds))}"


def _limit(one: Any) -> dict[str, Any]:
    own = one.own
    known = f"needs {count(own.n_needed)} runs" if own.time_s is None else duration(own.time_s)
    return {"level": f"{100 * one.level:g} %", "predicted_s": one.predicted_s, "own": known}


def _chance(one: "PredictedChance") -> str:
    past = one.history
    told = (
        ""
        if past is None
        else (
            f"; {count(past.k)} of its {count(past.n)} runs did ({share(past.share)}, "
            f"90 % interval {share(past.low)} to {share(past.high)})"
        )
    )
    return f"{share(one.predicted)} predicted{told}"


DAY_S = 86_400.0
COSTS = columns(
    ("group_key", "job", "key"), ("n_runs", "runs", count), ("runs_per_day", "a day", number),
    ("median_s", "median", duration), ("above_median_s", "beyond it, a run", duration),
    ("cost_s_per_day", "cost a day", duration), *extra(("interval", "90 % interval", "number")),
    ("share_of_all", "of all", share), ("predicted_cost_s_per_day", "expected a day", duration),
)  # fmt: skip


def show_running(
    invocation: Invocation, settings: "Settings", source: str, within_s: float | None, *, as_json: bool
) -> None:
    """Print, or give as JSON, how long each run that goes on still takes."""
    from tasks.jobs.predict.predicting import runs_going_on

    found = runs_going_on(settings.warehouse, source, settings.jobs.outlook, within_s=within_s)
    rows = [{**row, "exceeds": 1 - row["chance_in_time"]} for row in records(found.runs)]
    if as_json:
        return show_json(
            {"source": source, "model_id": found.model_id, "as_of": found.as_of.to_pydatetime(), "runs": rows}
        )
    as_of = f"as of {moment(found.as_of)} UTC, the last moment in the log"
    if not rows:
        invocation.note(f"no run goes on {as_of}")
        return
    left = [str(name) for name in found.runs if str(name).startswith("left_")]
    chance = [Column("exceeds", f"longer than {duration(within_s)}", share, kind="number")] if within_s else []
    show_table(
        rows,
        (
            Column("group_key", "job", kind="key"),
            Column("run_id", "run", kind="key"),
            Column("elapsed_s", "runs since", duration, kind="number"),
            Column("chance_so_long", "as long or longer", share, kind="number"),
            *(Column(name, f"{name.split('_')[1]} % done in", duration, kind="number") for name in left),
            *chance,
        ),
    )
    invocation.note(f"{counted(len(rows), 'run')} {as_of}, the most unusual first; predicted by {found.model_id}")
    if found.runs["is_beyond"].any():
        invocation.note("a run beyond all that was expected: how long it still takes is a rule of thumb")


def show_costliest(invocation: Invocation, settings: "Settings", source: str, *, as_json: bool) -> None:
    """Print, or give as JSON, the jobs whose variation costs the most waiting."""
    from tasks.jobs.predict.predicting import costs_of_source

    found = costs_of_source(settings.warehouse, source, settings.jobs.cost)
    rows = records(found.jobs)
    if as_json:
        return show_json({"source": source, "model_id": found.model_id, "days": found.days, "jobs": rows})
    show_table([{**row, "interval": _interval(row)} for row in rows], COSTS)
    invocation.note(
        f"time beyond the median of each job, over the {duration(found.days * DAY_S)} of the log; expected: by "
        f"{found.model_id}, if the jobs run as often"
    )


def _interval(row: dict[str, Any]) -> str:
    return f"{duration(row['low_s_per_day'])} to {duration(row['high_s_per_day'])}"


ANSWERED = 3  # next runs that are answered for in a sentence before the table
PREDICTED = columns(
    ("group_key", "job", "key"), ("n_before", "runs", count), ("usual_s", "usual", duration),
    ("p50_s", "predicted median", duration), *extra(("p90_s", "90 % under", duration)),
    ("p95_s", "95 % under", duration), ("p99_s", "99 % under", duration),
    ("exceeds_2x_share", "twice usual", share), ("expected_excess_s", "expected beyond", duration),
    *extra(("shape_ratio", "shape (ratio)", count), ("last_at", "last (UTC)", moment)),
)  # fmt: skip


def predict(
    context: typer.Context,
    source: Source = None,
    job: Annotated[
        str | None, Option(metavar="KEY", help="One job: its key or a part of it", autocompletion=offered_job_keys)
    ] = None,
    exceeds: Annotated[
        float | None,
        Option(metavar="SECONDS", min=0, help="With --job or --running: chance that a run takes longer than this"),
    ] = None,
    running: Annotated[bool, Option("--running", help="The runs that go on: how long each still takes")] = False,
    costliest: Annotated[
        bool, Option("--costliest", help="The jobs that cost the most waiting through variation")
    ] = False,
    by: Annotated[Risk, Option(help="What comes first")] = "chance",
    top: Annotated[int, Option(min=1, help="How many jobs")] = 20,
    every: Annotated[bool, Option("--all", help="Every job, also those that ran too seldom")] = False,
    as_json: Json = False,
) -> None:
    """Predict how long the next runs take, the riskiest jobs first: how likely each is late, and what that costs.

    With --job: one job, its limits and chances beside what its own runs say. 'whorl jobs train' makes the model."""
    if sum([job is not None, running, costliest]) > 1:
        raise typer.BadParameter("ask for one of them at a time", param_hint="--job, --running, --costliest")
    if exceeds is not None and job is None and not running:
        raise typer.BadParameter("say which job with --job KEY, or use --running", param_hint="--exceeds")
    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_source(settings.warehouse, source)
    if job is not None:
        show_outlook(settings, chosen, job, exceeds, as_json=as_json)
    elif running:
        show_running(invocation, settings, chosen, exceeds, as_json=as_json)
    elif costliest:
        show_costliest(invocation, settings, chosen, as_json=as_json)
    else:
        _show_all(invocation, settings, chosen, by, None if every else top, as_json=as_json)


def _show_all(
    invocation: Invocation, settings: "Settings", source: str, by: Risk, top: int | None, *, as_json: bool
) -> None:
    from tasks.jobs.outlook import with_answers
    from tasks.jobs.predict.predicting import read_predictions

    model_id = _up_to_date(settings, source)
    least = settings.jobs.summary.min_support if top is not None else 0
    found = read_predictions(settings.warehouse, source, by=by, min_before=least)
    found = with_answers(settings.warehouse, source, found)
    n_idle = int(found["is_idle"].sum()) if len(found) and top is not None else 0
    found = found[~found["is_idle"]] if n_idle else found
    rows = records(found.head(top if top is not None else len(found)))
    if as_json:
        return show_json({"source": source, "model_id": model_id, "n_jobs": len(found), "jobs": rows})
    if not rows:
        invocation.note(f"no job has at least {least} finished runs (jobs.summary.min_support); --all shows every job")
        return
    for row in rows[:ANSWERED]:
        print(row["answer"])
    print()
    show_table(rows, PREDICTED)
    which = "jobs" if top is None else f"jobs with at least {least} finished runs"
    invocation.note(f"{count(len(rows))} of {count(len(found))} {which}, {SORTED[by]} (--by, --top, --all)")
    if n_idle:
        invocation.note(f"{counted(n_idle, 'job')} left out that stood idle far beyond their rhythm; --all shows them")
    if all(row["reason"] is None for row in rows[:ANSWERED]):
        invocation.note("why, and what would help: whorl jobs explain, whorl jobs whatif")
    invocation.note(f"usual: median so far; predicted by {model_id} as of {moment(rows[0]['predicted_at'])} UTC")


def _up_to_date(settings: "Settings", source: str) -> str:
    """Predict anew where model or files have changed since; returns the model's id."""
    from tasks.errors import NotFound
    from tasks.jobs import steps
    from tasks.jobs.predict.predicting import are_fresh
    from tasks.jobs.predict.trained import KIND, WORD, no_model
    from tasks.warehouse.registry import champion

    card = champion(settings.warehouse.models, WORD, source, KIND)
    if card is None:
        raise NotFound(no_model(source))
    if not are_fresh(settings.warehouse, source, card.model_id):
        steps.predict(settings.warehouse, source)
    return card.model_id


NOT_CAUSES = "These are reasons of the prediction, which need not be causes of the runtime."


def draw_source(invocation: Invocation, source: str, kind: "Kind", numbers: tuple[int, ...], out: Path) -> None:
    """Draw what speaks for each of these shapes, and between two; by default the steadiest and the most variable.

    Raises BadSetting for a shape that the model in use does not know."""
    from tasks.jobs.explain.reasons import load_explainer
    from tasks.jobs.explain.shape_reasons import find_shape_reasons
    from tasks.report.jobs_reasons import shape_reason_figures

    with progress_bar(invocation, first="drawing reasons"):
        reasons = find_shape_reasons(load_explainer(invocation.warehouse, source), kind)
        chosen = [str(number) for number in numbers or reasons.ends]
        words = (
            f"What speaks for shapes: {source}",
            f"Of the {count(len(reasons.features))} held-out runs of source {source}. {NOT_CAUSES}",
        )
        figures, name = (
            shape_reason_figures(reasons, numbers or reasons.ends),
            "-".join(["jobs", source, "reasons", kind, *chosen]),
        )
        command = ("explain", "--source", source, "--shapes", ",".join(chosen), "--normalisation", kind)
        write_drawing(invocation, out, name, words, figures, f"model {reasons.model_id}", command)


def draw_run(invocation: Invocation, found: "RunReasons", out: Path) -> None:
    """Draw the reasons of one run, or of the next run of a job."""
    from tasks.report.jobs_reasons import run_reason_figure

    which = ("--job", found.group_key) if found.run_id is None else (found.run_id,)
    name, what = f"reasons-{found.run_id or found.group_key}", found.run_id or found.group_key
    words = (f"Why this long: {what}", f"A run of job {found.group_key} of source {found.source}. {NOT_CAUSES}")
    command = ("explain", *which, "--source", found.source)
    write_drawing(invocation, out, name, words, [run_reason_figure(found, name)], f"model {found.model_id}", command)


UNEXPLAINED = 2  # times the expected time, from which it is said how much the reasons leave open
NOT_CAUSES_NOTE = "these are reasons of the prediction, which need not be causes of the runtime"
ORDERS = {
    "random": "a random order",
    "importance": "importance over all runs",
    "frequency": "how often each cause was recorded before",
}


def explain(
    context: typer.Context,
    run_id: Annotated[str | None, Argument(metavar="[RUN_ID]", help="A run: its id in the log")] = None,
    job: Annotated[
        str | None,
        Option(
            metavar="KEY", help="The next run of this job: its key or a part of it", autocompletion=offered_job_keys
        ),
    ] = None,
    source: Source = None,
    shapes: Annotated[
        str | None, Option(metavar="A[,B]", help="With --out: what speaks for shape A, for B, and between both")
    ] = None,
    normalisation: Normalisation = "ratio",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Say why a run is expected to take long, and why its job varies.

    Without a run or job: what makes the runs of the source long, and which insights of the paper hold there. With
    --out: figures, also of what speaks for each shape."""
    numbers = shape_numbers(shapes)
    if numbers and (out is None or run_id is not None or job is not None):
        raise typer.BadParameter("it needs --out DIR, and neither a run nor a job", param_hint="--shapes")
    if run_id is not None and job is not None:
        raise typer.BadParameter("either a run or a job, not both", param_hint="--job")
    invocation = invocation_of(context)
    warehouse = invocation.settings.warehouse
    chosen, params = one_source(warehouse, source), invocation.settings.jobs.explain
    if run_id is None and job is None:
        if out is not None:
            draw_source(invocation, chosen, normalisation, numbers, out)
        found = _fresh(invocation, chosen, params)
        show_json(_as_json(found)) if as_json else _show_source(invocation, found)
        return
    reasons = _of_one(invocation, chosen, run_id, job, params)
    if out is not None:
        draw_run(invocation, reasons, out)
    if as_json:
        show_json(reasons)
    else:
        show_reasons(reasons)
        invocation.note(NOT_CAUSES_NOTE)


def _of_one(
    invocation: Invocation, source: str, run_id: str | None, job: str | None, params: "ExplainParams"
) -> "RunReasons":
    from tasks.jobs.explain.reasons import explain_next_of, explain_run_of
    from tasks.jobs.summary import find_group

    warehouse = invocation.settings.warehouse
    if run_id is not None:
        return explain_run_of(warehouse, source, run_id, params)
    group_key = find_group(warehouse, source, job or "")
    return explain_next_of(warehouse, source, group_key, params)


def show_reasons(found: "RunReasons") -> None:
    """Print why one run takes as long as it is expected to, longer first, and why its job varies."""
    against = f"the {count(found.n_usual)} runs of the job before" if found.n_usual else "all runs: the job is new"
    if found.run_id is None:
        against += f", as if it came under the conditions of its last {count(found.n_conditions)}"
    facts = {"run": found.run_id or "the next one", "job": found.group_key}
    facts |= {"submitted": moment(found.submitted_at)} if found.run_id else {}
    facts |= {"took": _took(found.runtime_s, found.expected_s)} if found.runtime_s is not None else {}
    facts |= {"usual": duration(found.usual_s), "expected": _expected(found), "compared with": against}
    show_facts(facts)
    _show_side("longer because of", found.runtime, is_up=True)
    _show_side("shorter because of", found.runtime, is_up=False)
    if not found.runtime.reasons:
        factor = math.exp(found.runtime.rest)
        print(f"\nno cause by itself changes it much; together they make it {factor:.2f} times as long as usual")
    if found.variation is None or found.chance is None:
        return
    from tasks.jobs.explain.contributions import variable_shapes

    variable, last = variable_shapes(found.k), found.k - 1
    which = f"{variable[0]} to {last}" if len(variable) > 1 else f"{last}"
    print(
        f"\nthe job has one of the more variable shapes, {which} of 0 (the steadiest) to {last}, "
        f"with probability {share(found.chance)}"
    )
    _show_side("more variable because of", found.variation, is_up=True)
    _show_side("steadier because of", found.variation, is_up=False)


def _took(runtime_s: float, expected_s: float) -> str:
    """How long a run took; a note where the reasons cannot be the whole story."""
    if runtime_s < UNEXPLAINED * expected_s:
        return duration(runtime_s)
    return f"{duration(runtime_s)}, {number(runtime_s / expected_s)} times what could be expected at submission"


def _expected(found: "RunReasons") -> str:
    if math.isnan(found.usual_s) or found.usual_s <= 0:
        return duration(found.expected_s)
    return f"{duration(found.expected_s)}, {number(found.expected_s / found.usual_s)} times the usual time"


def _show_side(title: str, explanation: "Explanation", *, is_up: bool) -> None:
    reasons = [one for one in explanation.reasons if (one.contribution > 0) == is_up]
    if reasons:
        print(f"\n{title}")
        show_facts({one.family: one.text for one in reasons})


def _fresh(invocation: Invocation, source: str, params: "ExplainParams") -> "Explained":
    """The tables of a source as its files and its model have them now; made where they are not."""
    from tasks.errors import NotFound
    from tasks.jobs import steps
    from tasks.jobs.explain.whole_source import read_source
    from tasks.jobs.predict.trained import KIND, WORD
    from tasks.warehouse.registry import champion

    warehouse = invocation.settings.warehouse
    card = champion(warehouse.models, WORD, source, KIND)
    found = read_source(warehouse, source, card.model_id) if card else None
    if found is None:
        invocation.note("explaining the held-out runs; the answer is kept for the next time")
        model_id = steps.explain_source(warehouse, source, params)
        found = read_source(warehouse, source, model_id)
    if found is None:
        raise NotFound(f"source {source!r}: its files or its model changed meanwhile; ask again")
    return found


def _show_source(invocation: Invocation, found: "Explained") -> None:
    from tasks.jobs.explain.reasons import KIND
    from tasks.report.jobs import families_table, insights_table

    of_runtime = found.families[found.families["question"] == "runtime"]
    facts = {
        "source": found.source,
        "model": found.model_id,
        "runs": f"{count(of_runtime['n_runs'].max())} that the model did not learn from, "
        f"{count(of_runtime['n_long'].max())} of them at least twice as long as usual",
    }
    show_facts(facts | _checked(found))
    print()
    show_described(families_table(found.families))
    insights = found.insights[found.insights["kind"] == KIND]
    if len(insights):
        print()
        show_described(insights_table(insights))
    invocation.note(f"{NOT_CAUSES}; one run: {shlex.join(['whorl', 'jobs', 'explain', '-s', found.source])} RUN_ID")


def _checked(found: "Explained") -> dict[str, str]:

    checks = {row["order_name"]: row for row in records(found.checks) if row["cause"] == "all"}
    if "reasons" not in checks:
        return {}
    ours = checks["reasons"]
    others = [f"{words} {ratio(checks[name]['mrr'])}" for name, words in ORDERS.items() if name in checks]
    return {
        "recorded causes": f"mean reciprocal rank {ratio(ours['mrr'])} among the reasons of {count(ours['n'])} runs "
        f"(95 % interval {ratio(ours['low'])} to {ratio(ours['high'])}; {', '.join(others)})"
    }


def _as_json(found: "Explained") -> dict[str, Any]:

    tables = {"families": found.families, "checks": found.checks, "insights": found.insights}
    same = ["source", "model_id"]
    return {
        "source": found.source,
        "model_id": found.model_id,
        "data_version": found.data_version,
        **{name: records(table.drop(columns=same)) for name, table in tables.items()},
    }


def whatif(
    context: typer.Context,
    scenario: Annotated[Named | None, Option(help="A change of the paper")] = None,
    sets: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="Give a cause, such as tokens, a value or xFACTOR; repeatable"),
    ] = None,
    shifts: Annotated[
        list[str] | None, Option("--shift-sku", metavar="A:B", help="Run on SKU B what ran on A; repeatable")
    ] = None,
    stds: Annotated[
        list[str] | None,
        Option("--set-std", metavar="NAME=0", help="Set a standard deviation, such as cpu_load; repeatable"),
    ] = None,
    job: Annotated[
        str | None,
        Option(metavar="KEY", help="Only the next run of this job: its key or a part", autocompletion=offered_job_keys),
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
        from tasks.jobs.control.answering import answer_figures, most_helped

        told = {"source": chosen, "model_id": asked.model_id, "job": asked.job, **answer_figures(found, params)}
        return show_json(told | {"jobs": most_helped(found.outcome)})
    _show(invocation, found, {"model": asked.model_id, **({"job": asked.job} if asked.job else {})})


def _draw(invocation: Invocation, asked: "Ground", found: "Answer", flags: list[str], out: Path) -> None:
    from tasks.report.jobs_reasons import what_if_figures
    from tasks.report.result import Section

    n_runs, n_jobs = len(found.outcome.before), int(found.outcome.changes["n_groups"].max())
    words = (
        f"What if: {found.scenario}",
        f"Tried on {counted(n_runs, 'run')} of {counted(n_jobs, 'job')} of source {asked.source}.",
    )
    sections = (
        Section("What the figures support", lines=tuple(found.claims.can), nothing="Nothing.", is_open=True),
        Section("What they do not", lines=tuple(found.claims.cannot), nothing="Nothing.", is_open=True),
    )
    name = f"jobs-{asked.source}-what-if-{found.scenario}" + (f"-{asked.job}" if asked.job else "")
    command = ("whatif", "--source", asked.source, *flags)
    made_of = f"model {asked.model_id}"
    write_drawing(invocation, out, name, words, what_if_figures(found), made_of, command, sections)


def _show(invocation: Invocation, found: "Answer", facts: dict[str, str]) -> None:
    from tasks.report.jobs import changes_table

    outcome = found.outcome
    n_runs, n_jobs = len(outcome.before), int(outcome.changes["n_groups"].max())
    facts |= {"change": str(found.scenario), "tried on": f"{counted(n_runs, 'run')} of {counted(n_jobs, 'job')}"}
    facts |= _moved(found) | _measured(found)
    show_facts(facts)
    print()
    show_described(changes_table(outcome.changes))
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
