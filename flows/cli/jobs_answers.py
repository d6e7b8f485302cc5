"""`whorl jobs predict`, `explain`, `whatif`: how the next run will vary, why, and what would reduce it."""

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from flows.cli.invocation import Invocation, Output, progress_bar, shape_numbers, source_with_rows, write_drawing
from flows.cli.output import moment, plain, say, show_described, show_facts, show_lines, show_table
from tasks.choices import RISKS, SORTED, Named, Risk
from tasks.quantities import counted, duration, number, share
from tasks.report.result import Column, columns, count, extra, records

if TYPE_CHECKING:
    from tasks.jobs.control.answering import ChangeAnswer, Ground
    from tasks.jobs.explain.reasons import Explanation, RunReasons
    from tasks.jobs.explain.whole_source import SourceReasons
    from tasks.jobs.outlook import PredictedChance
    from tasks.jobs.params import ExplainParams, Kind
    from tasks.jobs.predict.predicting import JobOutlook, ShapeChance
    from tasks.settings import Settings

MOST_SHAPES = 3
LIKELY = 0.01  # a shape less likely is not worth a line
LIMITS = columns(
    Column("level", "stays under, with", lambda level: f"{100 * level:g} %", kind="name"),
    ("predicted_s", "predicted", duration),
    Column("own", "its own runs", lambda own: duration(own.time_s) if own.time_s is not None
           else f"needs {count(own.n_needed)} runs", kind="number"),
)  # fmt: skip


def show_outlook(call: Invocation, source: str, job: str, exceeds: float | None) -> Output:
    """Print, or give as JSON, what the next run of one job will be like."""
    from tasks.jobs.predict.predicting import job_outlook

    times_s = () if exceeds is None else (exceeds,)
    outlook = job_outlook(call.warehouse, source, job, call.settings.jobs.outlook, times_s=times_s)
    row = _next_run(call, source, outlook.group_key)
    yield {"source": source, "next_run": row, **plain(outlook)}
    if row:
        say(row["answer"])
        print()
    show_facts(_facts(outlook))
    print()
    show_table([vars(limit) for limit in outlook.limits], LIMITS)
    if outlook.chances:
        print()
        which = "longer than" if outlook.ending is None else "all runs, longer than"
        show_facts({f"{which} {duration(chance.time_s)}": _chance(chance) for chance in outlook.chances})


def _next_run(call: Invocation, source: str, key: str) -> dict[str, Any] | None:
    """The row of one job as among those of all: how likely it is late, why, and which change would help."""
    from tasks.jobs.control.lateness import with_answers, with_costs
    from tasks.jobs.predict.predicting import read_predictions

    _up_to_date(call.settings, source)
    predictions = with_costs(call.warehouse, source, read_predictions(call.warehouse, source, min_before=0))
    rows = records(with_answers(call.warehouse, source, predictions[predictions["group_key"] == key], most=1))
    return rows[0] if rows else None


def _facts(outlook: "JobOutlook") -> dict[str, str]:
    facts = {
        "job": outlook.group_key,
        "finished runs": f"{count(outlook.n_before)}, usually {duration(outlook.usual_s)}, the last submitted at "
        f"{moment(outlook.last_at)} UTC",
    }
    for kind, shapes in outlook.shapes.items():
        likely = [chance for chance in shapes[:MOST_SHAPES] if chance.share >= LIKELY]
        facts[f"shape ({kind})"] = "; ".join(_shape(kind, chance) for chance in likely)
    if outlook.ending is not None:
        facts["ends"] = (
            f"completes with {share(outlook.ending.completes)}; is stopped at its limit with "
            f"{share(outlook.ending.at_limit)}, before it with {share(outlook.ending.before_limit)}"
        )
    return facts | {"model": f"{outlook.model_id}, as of {moment(outlook.predicted_at)} UTC"}


def _shape(kind: str, chance: "ShapeChance") -> str:
    if kind == "ratio":
        low, high = number(chance.p25), number(chance.p75)
    else:
        low, high = (f"{'−' if value < 0 else '+'} {duration(abs(value))}" for value in (chance.p25, chance.p75))
    end = " or more" if chance.is_open else ""
    half = f"{low} to {high}{end} times the median" if kind == "ratio" else f"median {low} to {high}{end}"
    return f"{chance.shape} with {share(chance.share)}, half of whose runs take {half}"


def _chance(chance: "PredictedChance") -> str:
    past = chance.history
    did = f"{count(past.k)} of its {count(past.n)} runs did ({share(past.share)}"
    return f"{share(chance.predicted)} predicted; {did}, 90 % interval {share(past.low)} to {share(past.high)})"


RUNNING = columns(
    ("group_key", "job", "key"), ("run_id", "run", "key"), ("elapsed_s", "runs since", duration),
    ("chance_so_long", "as long or longer", share),
)  # fmt: skip


def show_running(call: Invocation, source: str, within_s: float | None) -> Output:
    """Print, or give as JSON, how long each run that goes on still takes."""
    from tasks.jobs.predict.predicting import runs_going_on

    running = runs_going_on(call.warehouse, source, call.settings.jobs.outlook, within_s=within_s)
    rows = [{**row, "exceeds": 1 - row["chance_in_time"]} for row in records(running.runs)]
    yield {"source": source, "model_id": running.model_id, "as_of": running.as_of.to_pydatetime(), "runs": rows}
    as_of = f"as of {moment(running.as_of)} UTC, the last moment in the log"
    if not rows:
        call.note(f"no run goes on {as_of}")
        return
    left = [str(name) for name in running.runs if str(name).startswith("left_")]
    longer = [] if within_s is None else [Column("exceeds", f"longer than {duration(within_s)}", share, kind="number")]
    ends = [Column(name, f"{name.split('_')[1]} % done in", duration, kind="number") for name in left]
    show_table(rows, [*RUNNING, *longer, *ends])  # what was asked for first: of a narrow terminal the last are left out
    call.note(f"{counted(len(rows), 'run')} {as_of}, the most unusual first; predicted by {running.model_id}")
    if running.runs["is_beyond"].any():
        call.note("a run beyond all that was expected: how long it still takes is a rule of thumb")
    if n_late := int(running.runs["is_past_limit"].sum()):
        call.note(f"{counted(n_late, 'run')} past a time limit that runs of this log keep: has the log lost an end?")


ANSWERED = 3  # next runs that are answered for in a sentence before the table
MOST_ANSWERED = 20  # and as JSON
PREDICTED = columns(
    ("group_key", "job", "key"), ("n_before", "runs", count), ("usual_s", "usual", duration),
    ("p50_s", "predicted median", duration), *extra(("p90_s", "90 % under", duration)),
    ("p95_s", "95 % under", duration), ("p99_s", "99 % under", duration),
    ("exceeds_2x_share", "twice usual", share), ("expected_excess_s", "expected beyond", duration),
    ("cost_s_per_day", "a day", duration),
    *extra(("shape_ratio", "shape (ratio)", count), ("last_at", "last (UTC)", moment)),
)  # fmt: skip


def predict(
    call: Invocation,
    source: str | None = None,
    job: str | None = None,
    exceeds: float | None = None,
    running: bool = False,
    by: Risk = "chance",
    top: int = 20,
    every: bool = False,
) -> Output:
    """Predict how long the next runs take, the riskiest jobs first: how likely each is late, and what that costs.

    With --job: one job: late or not, why, what would help, and its limits and chances beside what its own runs say.
    'whorl jobs train' makes the model.

    --source
    --job KEY: One job: its key or a part of it
    --exceeds SECONDS (0..): With --job or --running: chance that a run takes longer than this
    --running: The runs that go on: how long each still takes
    --by: What comes first
    --top (1..): How many jobs
    --all: Every job, also those that ran too seldom"""
    if job is not None and running:
        raise typer.BadParameter("ask for one of them at a time", param_hint="--job, --running")
    if exceeds is not None and job is None and not running:
        raise typer.BadParameter("say which job with --job KEY, or use --running", param_hint="--exceeds")
    source_name = source_with_rows(call.warehouse, source)
    if job is not None:
        yield from show_outlook(call, source_name, job, exceeds)
    elif running:
        yield from show_running(call, source_name, exceeds)
    else:
        yield from _show_all(call, source_name, by, None if every else top)


def _show_all(call: Invocation, source: str, by: Risk, top: int | None) -> Output:
    from tasks.jobs.control.lateness import with_answers, with_costs
    from tasks.jobs.predict.predicting import read_predictions

    model_id = _up_to_date(call.settings, source)
    least = call.settings.jobs.summary.min_support if top is not None else 0
    predictions = with_costs(call.warehouse, source, read_predictions(call.warehouse, source, min_before=least))
    n_idle = 0
    if len(predictions):
        predictions = predictions.sort_values(RISKS[by], ascending=False, kind="stable")
        n_idle = int(predictions["is_idle"].sum()) if top is not None else 0
        predictions = predictions[~predictions["is_idle"]] if n_idle else predictions
    shown = predictions if top is None else predictions.head(top)
    most = MOST_ANSWERED if call.as_json else ANSWERED
    rows = records(with_answers(call.warehouse, source, shown, most=most))
    yield {"source": source, "model_id": model_id, "n_jobs": len(predictions), "jobs": rows}
    if not rows:
        call.note(f"no job has at least {least} finished runs (jobs.summary.min_support); --all shows every job")
        return
    say(*(row["answer"] for row in rows[:ANSWERED]))
    print()
    show_table(rows, PREDICTED)
    which = "" if top is None else f" with at least {least} finished runs"
    call.note(f"{count(len(rows))} of {counted(len(predictions), 'job')}{which}, {SORTED[by]} (--by, --top, --all)")
    if n_idle:
        call.note(f"{counted(n_idle, 'job')} left out, idle far beyond the usual gap; --all shows every job")
    call.note("all reasons, and what a change would do: whorl jobs explain --job KEY, whorl jobs whatif --job KEY")
    call.note(f"usual: median so far; predicted by {model_id} as of {moment(rows[0]['predicted_at'])} UTC")


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


def draw_source(call: Invocation, source: str, kind: "Kind", numbers: tuple[int, ...], out: Path) -> None:
    """Draw what speaks for each of these shapes, and between two; by default the steadiest and the most variable.

    Raises BadSetting for a shape that the model in use does not know."""
    from tasks.jobs.explain.reasons import load_explainer
    from tasks.jobs.explain.shape_reasons import find_shape_reasons
    from tasks.report.jobs_reasons import shape_reason_figures

    with progress_bar(call, first="drawing reasons"):
        reasons = find_shape_reasons(load_explainer(call.warehouse, source), kind)
        shown = numbers or reasons.ends
        shapes = [str(number) for number in shown]
        n_runs = count(len(reasons.features))
        words = (f"What speaks for shapes: {source}", f"Of the {n_runs} held-out runs of source {source}.")
        name = "-".join(["jobs", source, "reasons", kind, *shapes])
        write_drawing(call, out, name, words, shape_reason_figures(reasons, shown), f"model {reasons.model_id}")


def draw_run(call: Invocation, reasons: "RunReasons", out: Path) -> None:
    """Draw the reasons of one run, or of the next run of a job."""
    from tasks.report.jobs_reasons import run_reason_figure

    what = reasons.run_id or reasons.group_key
    words = (f"Why this long: {what}", f"A run of job {reasons.group_key} of source {reasons.source}.")
    figure = run_reason_figure(reasons, f"reasons-{what}")
    write_drawing(call, out, f"reasons-{what}", words, [figure], f"model {reasons.model_id}")


NOTABLE_SHARE = 0.05  # of all that moves predictions: what is worth a word
AS_USUAL = 0.05  # what differs by less is as usual
UNEXPLAINED = 2  # times the expected time, from which it is said how much the reasons leave open
NOT_CAUSES = "these are reasons of the prediction, which need not be causes of the runtime"


def explain(
    call: Invocation,
    run_id: str | None = None,
    job: str | None = None,
    source: str | None = None,
    shapes: str | None = None,
    normalisation: Literal["ratio", "delta"] = "ratio",
    out: Path | None = None,
) -> Output:
    """Say why a run is expected to take long, and why its job varies.

    Without a run or job: what makes the runs of the source long, and which insights of the paper hold there. With
    --out: figures, also of what speaks for each shape.

    [RUN_ID]: A run: its id in the log
    --job KEY: The next run of this job: its key or a part of it
    --source
    --shapes A[,B]: With --out: what speaks for shape A, for B, and between both
    --normalisation, --out"""
    numbers = shape_numbers(shapes)
    if numbers and (out is None or run_id is not None or job is not None):
        raise typer.BadParameter("it needs --out DIR, and neither a run nor a job", param_hint="--shapes")
    if run_id is not None and job is not None:
        raise typer.BadParameter("either a run or a job, not both", param_hint="--job")
    warehouse = call.warehouse
    source_name = source_with_rows(warehouse, source)
    if run_id is None and job is None:
        if out is not None:
            draw_source(call, source_name, normalisation, numbers, out)
        explanation = _fresh(call, source_name, call.settings.jobs.explain)
        tables = {"families": explanation.families, "insights": explanation.insights}
        rows = {name: records(table.drop(columns=["source", "model_id"])) for name, table in tables.items()}
        yield {key: getattr(explanation, key) for key in ("source", "model_id", "data_version")} | rows
        return _show_source(call, explanation)
    from tasks.jobs.explain.reasons import explain_next_of, explain_run_of
    from tasks.jobs.summary import find_group

    if run_id is not None:
        reasons = explain_run_of(warehouse, source_name, run_id)
    else:
        reasons = explain_next_of(warehouse, source_name, find_group(warehouse, source_name, job or ""))
    if out is not None:
        draw_run(call, reasons, out)
    yield reasons
    show_reasons(reasons)
    call.note(NOT_CAUSES)


def show_reasons(reasons: "RunReasons") -> None:
    """Print why one run takes as long as it is expected to, longer first, and why its job varies."""
    from tasks.jobs.control.lateness import reason_of, without_reason

    against = f"the {count(reasons.n_usual)} runs of the job before" if reasons.n_usual else "all runs: the job is new"
    if reasons.run_id is None:
        against += f", as if it came under the conditions of its last {count(reasons.n_conditions)}"
    facts = {"run": reasons.run_id or "the next one", "job": reasons.group_key}
    facts |= {"submitted": moment(reasons.submitted_at)} if reasons.run_id else {}
    took = ""
    if reasons.runtime_s is not None:
        ratio = reasons.runtime_s / reasons.expected_s  # far from 1 the reasons cannot be the whole story
        beyond = f", {number(ratio)} times what could be expected at submission" if ratio >= UNEXPLAINED else ""
        took = f"took {duration(reasons.runtime_s)}{beyond}; "
    expected, why = duration(reasons.expected_s), reason_of(reasons) or without_reason(reasons)
    if reasons.usual_s > 0:  # and known
        ratio, usual = reasons.expected_s / reasons.usual_s, duration(reasons.usual_s)
        expected += ", as usual" if abs(ratio - 1) < AS_USUAL else f", {number(ratio)} times the usual {usual}"
    say(f"{reasons.group_key}, {reasons.run_id or 'next run'}: {took}expected to take {expected}; why: {why}", "")
    show_facts(facts | {"compared with": against})
    longest_s = max(reasons.usual_s, reasons.last_s)  # of a job that has changed the last runs
    if reasons.n_usual and (of_those_s := math.exp(reasons.runtime.base)) > UNEXPLAINED * longest_s > 0:
        say("", f"of those {count(reasons.n_usual)} runs {duration(of_those_s)} was expected, too: others count more")
    _show_side("longer because of", reasons.runtime, is_up=True)
    _show_side("shorter because of", reasons.runtime, is_up=False)
    if reasons.variation is None or reasons.chance is None:
        return
    from tasks.jobs.explain.contributions import variable_shapes

    variable, last = variable_shapes(reasons.k), reasons.k - 1
    which = f"shapes {variable[0]} to" if len(variable) > 1 else "shape"
    shapes = f"{which} {last} of 0, the steadiest, to {last}"
    say("", f"its runtimes vary widely with a chance of {share(reasons.chance)} ({shapes})")
    _show_side("more variable because of", reasons.variation, is_up=True)
    _show_side("steadier because of", reasons.variation, is_up=False)


def _show_side(title: str, explanation: "Explanation", *, is_up: bool) -> None:
    from tasks.jobs.params import FAMILY_WORDS

    reasons = [reason for reason in explanation.reasons if (reason.contribution > 0) == is_up]
    if reasons:
        print(f"\n{title}")
        show_facts({FAMILY_WORDS.get(reason.family, reason.family): reason.text for reason in reasons})


def _fresh(call: Invocation, source: str, params: "ExplainParams") -> "SourceReasons":
    """The tables of a source as its files and its model have them now; made where they are not."""
    from tasks.errors import NotFound
    from tasks.jobs import steps
    from tasks.jobs.explain.whole_source import read_source
    from tasks.jobs.predict.trained import KIND, WORD
    from tasks.warehouse.registry import champion

    warehouse = call.warehouse
    card = champion(warehouse.models, WORD, source, KIND)
    explanation = read_source(warehouse, source, card.model_id) if card else None
    if explanation is None:
        if card:
            call.note("explaining the held-out runs; the answer is kept for the next time")
        model_id = steps.explain_source(warehouse, source, params)
        explanation = read_source(warehouse, source, model_id)
    if explanation is None:
        raise NotFound(f"source {source!r}: its files or its model changed meanwhile; ask again")
    return explanation


def _show_source(call: Invocation, explanation: "SourceReasons") -> None:
    from tasks.jobs.explain.reasons import KIND
    from tasks.jobs.params import FAMILY_WORDS
    from tasks.report.jobs import families_table, insights_table, lacking_columns

    of_runtime = explanation.families[explanation.families["question"] == "runtime"].sort_values("rank")
    notable = records(of_runtime[of_runtime["share"] >= NOTABLE_SHARE])
    moves = ", ".join(f"{FAMILY_WORDS.get(row['family'], row['family'])} ({share(row['share'])})" for row in notable)
    say(f"What moves predicted runtimes of {explanation.source} from their job's usual: {moves or 'nothing'}.", "")
    facts = {
        "model": explanation.model_id,
        "runs": f"{count(of_runtime['n_runs'].max())} that the model did not learn from, "
        f"{count(of_runtime['n_long'].max())} of them at least twice as long as usual",
    }
    show_facts(facts)
    print()
    show_described(families_table(explanation.families))
    insights = explanation.insights[explanation.insights["kind"] == KIND]
    if len(insights):
        print()
        show_described(insights_table(insights))
        if lacking := lacking_columns(insights):
            call.note(f"not tested, for want of these columns of jobs.runs: {', '.join(lacking)}")
    call.note(f"{NOT_CAUSES}; one run: {shlex.join(['whorl', 'jobs', 'explain', '-s', explanation.source])} RUN_ID")


def whatif(
    call: Invocation,
    scenario: Named | None = None,
    sets: list[str] | None = None,
    shifts: list[str] | None = None,
    stds: list[str] | None = None,
    job: str | None = None,
    source: str | None = None,
    out: Path | None = None,
) -> Output:
    """Say what a change would do to runtimes and their variation.

    The change is made in what is known of held-out runs, and the model in use predicts them again. Where the log has
    runs that were done again with the change, the prediction is held against them.

    --scenario: A change of the paper
    --set NAME=VALUE: Give a cause, such as tokens, a value or xFACTOR; repeatable
    --shift-sku A:B: Run on SKU B what ran on A; repeatable
    --set-std NAME=0: Set a standard deviation, such as cpu_load; repeatable
    --job KEY: Only the next run of this job: its key or a part
    --source, --out"""
    source_name = source_with_rows(call.warehouse, source)
    from tasks.jobs.control.scenarios import parse_scenario

    params = call.settings.jobs.whatif
    question = parse_scenario(scenario=scenario, sets=sets or [], shifts=shifts or [], stds=stds or [])
    from tasks.jobs.control.answering import answer_figures, ask_source, most_helped

    with progress_bar(call, first="changing runs"):
        ground = ask_source(call.warehouse, source_name, job=job)
        answer = ground.answer(question, params)
        if out is not None:
            _draw(call, ground, answer, out)
    figures = {"source": source_name, "model_id": ground.model_id, "job": ground.job, **answer_figures(answer, params)}
    yield figures | {"jobs": most_helped(answer.outcome)}
    _show(call, answer, {"model": ground.model_id, **({"job": ground.job} if ground.job else {})})


def _draw(call: Invocation, ground: "Ground", answer: "ChangeAnswer", out: Path) -> None:
    from tasks.report.jobs_reasons import what_if_figures
    from tasks.report.result import Section

    n_runs, n_jobs = len(answer.outcome.before), int(answer.outcome.changes["n_groups"].max())
    words = (
        f"What if: {answer.scenario}",
        f"Tried on {counted(n_runs, 'run')} of {counted(n_jobs, 'job')} of source {ground.source}.",
    )
    sections = (
        Section("What the figures support", lines=tuple(answer.claims.can), nothing="Nothing.", is_open=True),
        Section("What they do not", lines=tuple(answer.claims.cannot), nothing="Nothing.", is_open=True),
    )
    name = f"jobs-{ground.source}-what-if-{answer.scenario}" + (f"-{ground.job}" if ground.job else "")
    write_drawing(call, out, name, words, what_if_figures(answer), f"model {ground.model_id}", sections)


def _show(call: Invocation, answer: "ChangeAnswer", facts: dict[str, str]) -> None:
    from tasks.report.jobs import changes_table

    outcome = answer.outcome
    n_runs, n_jobs = len(outcome.before), int(outcome.changes["n_groups"].max())
    facts |= {"change": str(answer.scenario), "tried on": f"{counted(n_runs, 'run')} of {counted(n_jobs, 'job')}"}
    for kind, moved in outcome.moves.items():
        runs, jobs = share(moved.runs.share_moved), share(moved.groups.share_moved)
        facts[f"other shape ({kind})"] = f"{runs} of the runs, {jobs} of the jobs"
    if answer.measured is not None:
        facts |= _measured(answer.measured.score)
    shown = changes_table(outcome.changes)
    say(_answer(answer, {str(row["measure"]): row for row in shown.rows}), "")
    show_facts(facts)
    print()
    show_described(shown)
    moves = [f"{kind}: {line}" for kind, moved in outcome.moves.items() for line in moved.words]
    show_lines("Moves between shapes", moves)
    show_lines("What the figures support", answer.claims.can)
    show_lines("What they do not", answer.claims.cannot)
    if answer.reason:
        call.note(f"not measured: {answer.reason}")


def _answer(answer: "ChangeAnswer", rows: dict[str, Any]) -> str:
    """What a change would do, and how sure that is, in one sentence. rows: of the table of changes, by measure."""
    from tasks.jobs.params import MEASURES

    changes = [
        f"{words} {row['before']} → {row['after']} ({row['change']}, 95 % interval {row['interval']})"
        for name, words in (("median_s", "median"), ("p95_s", "95 % under"))
        if (row := rows.get(MEASURES[name]))
    ]
    sure = "measured beside it" if answer.measured is not None else "by the model alone, nothing was measured"
    beyond = answer.outcome.support.share
    if beyond:
        sure += f"; {share(beyond)} of the changed runs are unlike those that it learnt from"
    return f"{answer.scenario}: {'; '.join([*changes, sure])}"


def _measured(score: Any) -> dict[str, str]:
    """How the predicted effect of a change compares with runs that were done again with it."""
    facts = {"measured": f"{count(score.n)} pairs of runs, done again without and with the change"}
    right = score.directions
    if right is not None and right.share is not None:
        facts["right direction"] = f"{share(right.share)} ({share(right.low)} to {share(right.high)})"
    errors = f"{number(score.mae)}; {number(score.mae_no_change)} for no change"
    if score.mae_mean_change is not None:
        errors += f", {number(score.mae_mean_change)} for the mean change of other jobs"
    return facts | {"error of the log ratio": errors}
