"""The next run of one job on the terminal: prediction and plain history beside each other."""

from typing import TYPE_CHECKING, Any

from flows.shown import count, moment
from flows.tables import Column, show_facts, show_table
from tasks.quantities import duration, number, share

if TYPE_CHECKING:
    from tasks.jobs.outlook import PredictedChance
    from tasks.jobs.predict.predicting import (
        JobOutlook,
        ShapeChance,
    )
    from tasks.settings import Settings

MOST_SHAPES = 3
LIKELY = 0.01  # a shape less likely is not worth a line
LIMITS = (
    Column("level", "stays under, with", kind="name"),
    Column("predicted_s", "predicted", duration, kind="number"),
    Column("own", "its own runs", kind="number"),
)


def show_outlook(settings: "Settings", source: str, job: str, exceeds: float | None, *, as_json: bool) -> None:
    """Print, or give as JSON, what the next run of one job will be like."""
    from tasks.jobs.predict.predicting import job_outlook

    times_s = () if exceeds is None else (exceeds,)
    found = job_outlook(settings.warehouse, source, job, settings.jobs.outlook, times_s=times_s)
    if as_json:
        from flows.machine_output import plain, show_json

        show_json({"source": source, **plain(found)})
        return
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
