"""The counters that runs can be compared on."""

from collections.abc import Sequence

from tasks.errors import BadInput
from tasks.workloads.giveaways import giveaway_of
from tasks.workloads.identify.params import FingerprintParams, ScopeChoice
from tasks.workloads.telemetry import Counter, Telemetry

NAMED = 8  # missing counters that a message names


def common_counters(runs: Sequence[Telemetry], params: FingerprintParams) -> tuple[Counter, ...]:
    """The counters that every run has, without those that give the session away, in the chosen scope, by name.

    Raises BadInput without a run, and if no counter is left."""
    if not runs:
        raise BadInput("runs", "none", "at least one run to learn from", "record or ingest some")
    shared = set(runs[0].names).intersection(*(run.names for run in runs[1:]))
    chosen = [one for one in runs[0].counters if one.name in shared and _is_in(one, params.scope)]
    found = tuple(sorted((one for one in chosen if not giveaway_of(one)), key=lambda one: one.name))
    if not found:
        problem = f"no counter in common ({len(shared)} with give-aways and of any scope, scope: {params.scope})"
        raise BadInput(f"{len(runs)} runs", problem, "runs sampled in the same way", "leave out those that differ")
    return found


def comparable(run: Telemetry, counters: Sequence[Counter], least_share: float = 1.0) -> tuple[str, ...]:
    """The names of the counters that a run lacks, if it has at least `least_share` of them.

    Raises BadInput otherwise, naming what is missing."""
    present = set(run.names)
    missing = tuple(one.name for one in counters if one.name not in present)
    if len(missing) > (1 - least_share) * len(counters) + 1e-9:
        told = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
        raise BadInput(
            f"run {run.run_id}",
            f"lacks {len(missing)} of {len(counters)} counters: {told}",
            "the counters that the model was trained on",
            "record them, or train on the counters that both have",
        )
    return missing


def _is_in(counter: Counter, scope: ScopeChoice) -> bool:
    return scope == "both" or counter.scope == scope
