"""The stress that can be applied on this machine, and what of it cannot."""

from collections.abc import Sequence

from tasks.nodes.record.doses import LEVELS, Dose, doses_of
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.templates import BenchmarkTemplate

NO_GROUPS = "no control groups here"


def possible_doses(doses: Sequence[Dose], *, has_groups: bool) -> list[Dose]:
    """Those that can be applied here."""
    return [dose for dose in doses if has_groups or (dose.cpu_ratio >= 1 and dose.throttle_ratio >= 1)]


def lacking_stress(
    params: RecordParams, templates: Sequence[BenchmarkTemplate], *, has_groups: bool
) -> tuple[str, ...]:
    """A line for each benchmark that a campaign cannot stress at every level here: it runs unstressed instead."""
    if not params.runs or not params.stressed_ratio:
        return ()
    doses, possible = params.doses, possible_doses(params.doses, has_groups=has_groups)
    lines = []
    for benchmark in (one.benchmark for one in templates):
        lacking = [level for level in LEVELS if not doses_of(possible, benchmark, level)]
        lost = [dose.name for level in lacking for dose in doses_of(doses, benchmark, level)]
        levels = ", ".join(str(level) for level in lacking if not doses_of(doses, benchmark, level))
        reasons = [f"by {', '.join(lost)} ({NO_GROUPS})"] if lost else []
        reasons += [f"at level {levels} (none in nodes.record.doses)"] if levels else []
        if reasons:
            lines.append(f"{benchmark} is not stressed {', '.join(reasons)}")
    return tuple(lines)
