"""How `whorl demo` ends: the riskiest job, the reason, and what would help."""

from typing import TYPE_CHECKING

from flows.shown import clean
from flows.tables import show_facts
from tasks.errors import BadInput
from tasks.quantities import duration, share

if TYPE_CHECKING:
    from tasks.settings import Settings

CHANGES = {
    "newest_sku": "running it on the newest machines",
    "no_spare": "giving it no spare tokens",
    "steady_load": "steadier load",
}
MEASURE = "p95_s"


def show_riskiest(settings: "Settings", source: str) -> None:
    """Print which job is most likely to take twice its usual time, why, and which of three changes would help most."""
    from tasks.jobs.predict.prediction_rows import read_predictions

    least = settings.jobs.summary.min_support
    riskiest = read_predictions(settings.warehouse, source, min_before=least, limit=1)
    for job in riskiest.to_dict("records"):
        key = str(job["group_key"])
        chance = share(job["exceeds_2x_share"])
        show_facts(
            {
                "riskiest job": key,
                "next run": f"takes more than twice the usual {duration(job['usual_s'])} with probability {chance}; "
                f"95 % under {duration(job['p95_s'])}",
                "because": _reason(settings, source, key),
                "would help": _help(settings, source, key),
            }
        )


def _reason(settings: "Settings", source: str, key: str) -> str:
    from tasks.jobs.explain.explaining import explain_next_of

    found = explain_next_of(settings.warehouse, source, key, settings.jobs.explain)
    sides = [found.runtime, found.variation]
    reasons = [one for side in sides if side for one in side.reasons if one.contribution > 0]
    told = [one.text for one in reasons if one.family != "history"]
    return clean(told[0]) if told else "its earlier runs varied as much, and nothing else sets the next one apart"


def _help(settings: "Settings", source: str, key: str) -> str:
    from tasks.jobs.control.asked_source import ask_source
    from tasks.jobs.control.scenarios import named_scenario

    params = settings.jobs.whatif
    asked = ask_source(settings.warehouse, source, params, job=key)
    found: dict[str, tuple[float, float]] = {}
    for name in CHANGES:
        try:
            changes = asked.answer(named_scenario(name, params), params).outcome.changes
        except BadInput:  # the log does not have what is changed
            continue
        before, after = changes.loc[[MEASURE], ["before", "after"]].to_numpy(dtype=float)[0].tolist()
        found[name] = (before, after)
    if not found:
        return "not known: the log tells nothing of machines, spare tokens or load"
    best = min(found, key=lambda name: found[name][1] - found[name][0])
    before, after = found[best]
    if after >= before:
        return "none of the changes that were tried, by the model"
    return f"{CHANGES[best]}: 95 % under {duration(after)} in place of {duration(before)}, by the model"
