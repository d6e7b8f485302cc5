"""What ran on a machine, look after look, against what should have run: the same deviation going on is one episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Kind = Literal["as-expected", "unexpected-workload", "unknown-workload"]


@dataclass(frozen=True)
class Look:
    """One identified run on a machine. workload: None where it was unknown, or too unsure to count.

    label: what it says of itself, None for a run that was only looked at."""

    run_id: str
    started_at: datetime | None
    workload: str | None
    label: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What a look means. expected: what may run, empty if nobody could say. since: first look of the same episode."""

    look: Look
    kind: Kind
    expected: tuple[str, ...]
    since: Look


def verdicts_of(looks: Sequence[Look], expected: Sequence[str]) -> list[Verdict]:
    """Judge the looks at one machine, in their order.

    expected: workloads that may run. If empty, a run with a label should be of it, and any other of what the last look
    found that was known and had no label: a change is told once and then counts as usual. An unknown workload is always
    an episode, which goes on until something known runs."""
    found: list[Verdict] = []
    confirmed: str | None = None
    for look in looks:
        usual = look.label or confirmed
        may_run = tuple(expected) or ((usual,) if usual is not None else ())
        kind = _kind(look, may_run)
        before = found[-1] if found else None
        goes_on = before is not None and (before.kind, before.look.workload) == (kind, look.workload)
        found.append(Verdict(look, kind, may_run, before.since if before is not None and goes_on else look))
        if look.label is None:
            confirmed = look.workload or confirmed
    return found


def _kind(look: Look, may_run: Sequence[str]) -> Kind:
    if look.workload is None:
        return "unknown-workload"
    return "as-expected" if not may_run or look.workload in may_run else "unexpected-workload"
