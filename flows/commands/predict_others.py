"""Runs that go on, and jobs that cost the most waiting, on the terminal."""

from typing import TYPE_CHECKING, Any

from flows.invocation import Invocation
from flows.shown import count, counted, moment
from flows.tables import Column, show_table
from tasks.quantities import duration, number, share

if TYPE_CHECKING:
    from tasks.settings import Settings

DAY_S = 86_400.0
COSTS = (
    Column("group_key", "job", kind="key"),
    Column("n_runs", "runs", count, kind="number"),
    Column("runs_per_day", "a day", number, kind="number"),
    Column("median_s", "median", duration, kind="number"),
    Column("above_median_s", "beyond it, a run", duration, kind="number"),
    Column("cost_s_per_day", "cost a day", duration, kind="number"),
    Column("interval", "90 % interval", kind="number", is_extra=True),
    Column("share_of_all", "of all", share, kind="number"),
    Column("predicted_cost_s_per_day", "expected a day", duration, kind="number"),
)


def show_running(
    invocation: Invocation, settings: "Settings", source: str, within_s: float | None, *, as_json: bool
) -> None:
    """Print, or give as JSON, how long each run that goes on still takes."""
    from flows.machine_output import records, show_json
    from tasks.jobs.predict.predicting import runs_going_on

    found = runs_going_on(settings.warehouse, source, settings.jobs.outlook, within_s=within_s)
    rows = [{**row, "exceeds": 1 - row["chance_in_time"]} for row in records(found.runs)]
    if as_json:
        show_json({"source": source, "model_id": found.model_id, "as_of": found.as_of.to_pydatetime(), "runs": rows})
        return
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
    from flows.machine_output import records, show_json
    from tasks.jobs.predict.predicting import costs_of_source

    found = costs_of_source(settings.warehouse, source, settings.jobs.cost)
    rows = records(found.jobs)
    if as_json:
        show_json({"source": source, "model_id": found.model_id, "days": found.days, "jobs": rows})
        return
    show_table([{**row, "interval": _interval(row)} for row in rows], COSTS)
    invocation.note(
        f"time beyond the median of each job, over the {duration(found.days * DAY_S)} of the log; expected: by "
        f"{found.model_id}, if the jobs run as often"
    )


def _interval(row: dict[str, Any]) -> str:
    return f"{duration(row['low_s_per_day'])} to {duration(row['high_s_per_day'])}"
