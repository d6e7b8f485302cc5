"""`whorl jobs explain`: why runs take long and jobs vary: over a source, for one run, or for the next run of a job."""

import math
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands import completion
from flows.commands.explain_out import draw_run, draw_source
from flows.commands.options import Json, Source, one_source
from flows.commands.shape_options import Normalisation, Out, shape_numbers
from flows.invocation import Invocation, invocation_of
from flows.shown import count, moment
from flows.tables import Column, show_facts, show_table
from tasks.quantities import duration, number, ratio, share

if TYPE_CHECKING:
    from tasks.jobs.explain.explaining import RunReasons
    from tasks.jobs.explain.params import ExplainParams
    from tasks.jobs.explain.reasons import Explanation
    from tasks.jobs.explain.tables import Explained

UNEXPLAINED = 2  # times the expected time, from which it is said how much the reasons leave open
NOT_CAUSES = "these are reasons of the prediction, which need not be causes of the runtime"
FAMILIES = (
    Column("family", "reason", kind="name"),
    Column("share", "share", share, kind="number"),
    Column("typical_factor", "on average", lambda factor: f"{ratio(factor)} ×", kind="number"),
    Column("first_share", "first reason of long runs", share, kind="number"),
    Column("ratio", "of variation (ratio)", share, kind="number"),
    Column("delta", "of variation (delta)", share, kind="number"),
)
INSIGHTS = (
    Column("words", "insight of the paper"),
    Column("verdict", "by the model", kind="name"),
    Column("rho", "rho", ratio, kind="number"),
    Column("interval", "95 % interval", kind="number"),
    Column("measured_verdict", "as measured", kind="name"),
    Column("measured_rho", "rho", ratio, kind="number", is_extra=True),
    Column("reason", "because", is_extra=True),
)
ORDERS = {
    "random": "a random order",
    "importance": "importance over all runs",
    "frequency": "how often each cause was recorded before",
}


def explain(
    context: typer.Context,
    run_id: Annotated[
        str | None,
        typer.Argument(metavar="[RUN_ID]", help="A run: its id in the log", show_default=False),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="The next run of this job: its key or a part of it", autocompletion=completion.job_keys
        ),
    ] = None,
    source: Source = None,
    shapes: Annotated[
        str | None,
        typer.Option(
            metavar="A[,B]", help="With --out: what speaks for shape A, for B, and between both", show_default=False
        ),
    ] = None,
    normalisation: Normalisation = "ratio",
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Say why a run is expected to take long, and why its job varies.

    Without a run or job: what makes the runs of the source long, and which insights of the paper hold there. With
    --out: figures, also of what speaks for each shape."""
    from flows.machine_output import show_json

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
        invocation.note(NOT_CAUSES)


def _of_one(
    invocation: Invocation, source: str, run_id: str | None, job: str | None, params: "ExplainParams"
) -> "RunReasons":
    from tasks.jobs.explain.explaining import explain_next_of, explain_run_of
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
    from tasks.jobs.explain.tables import read_source
    from tasks.jobs.predict.trained import (
        KIND,
        WORD,
    )
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
    from flows.machine_output import records
    from tasks.jobs.explain.explaining import KIND

    of_runtime = found.families[found.families["question"] == "runtime"]
    facts = {
        "source": found.source,
        "model": found.model_id,
        "runs": f"{count(of_runtime['n_runs'].max())} that the model did not learn from, "
        f"{count(of_runtime['n_long'].max())} of them at least twice as long as usual",
    }
    show_facts(facts | _checked(found))
    print()
    show_table(_families(found), FAMILIES)
    insights = found.insights[found.insights["kind"] == KIND]
    if len(insights):
        print()
        show_table([{**row, "interval": _interval(row)} for row in records(insights)], INSIGHTS)
    invocation.note(f"{NOT_CAUSES}; one run: {shlex.join(['whorl', 'jobs', 'explain', '-s', found.source])} RUN_ID")


def _checked(found: "Explained") -> dict[str, str]:
    from flows.machine_output import records

    checks = {row["order_name"]: row for row in records(found.checks) if row["cause"] == "all"}
    if "reasons" not in checks:
        return {}
    ours = checks["reasons"]
    others = [f"{words} {ratio(checks[name]['mrr'])}" for name, words in ORDERS.items() if name in checks]
    return {
        "recorded causes": f"mean reciprocal rank {ratio(ours['mrr'])} among the reasons of {count(ours['n'])} runs "
        f"(95 % interval {ratio(ours['low'])} to {ratio(ours['high'])}; {', '.join(others)})"
    }


def _families(found: "Explained") -> list[dict[str, Any]]:
    """A row for each family, by its share in the runtimes, with its shares in the variation."""
    shares = found.families.pivot_table(index="family", columns="question", values="share")
    of_runtime = found.families[found.families["question"] == "runtime"].set_index("family")
    of_runtime = of_runtime.drop(columns="share").join(shares, how="outer").rename(columns={"runtime": "share"})
    ordered = of_runtime.sort_values("share", ascending=False, kind="stable", na_position="last").reset_index()
    return [{str(key): value for key, value in row.items()} for row in ordered.to_dict("records")]


def _interval(row: dict[str, Any]) -> str:
    return "" if row["low"] is None or row["low"] != row["low"] else f"{ratio(row['low'])} to {ratio(row['high'])}"


def _as_json(found: "Explained") -> dict[str, Any]:
    from flows.machine_output import records

    tables = {"families": found.families, "checks": found.checks, "insights": found.insights}
    same = ["source", "model_id"]
    return {
        "source": found.source,
        "model_id": found.model_id,
        "data_version": found.data_version,
        **{name: records(table.drop(columns=same)) for name, table in tables.items()},
    }
