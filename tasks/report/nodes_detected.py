"""How well each detector tells stressed executions, read from the keys of an evaluation, and who is ahead of whom.

Keys are `detect.<measure>.<detector>[.<protocol>][.<dose>]`, with `.low` and `.high` beside those of several fits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.report.nodes_evaluation_words import ANY, DOSES, LEARNED, PROTOCOLS, STRONG, VERDICTS

PART = "detect"
ENDS = ("low", "high")
DECIMALS = 2  # what is equal in so many is level

Place = tuple[str, str, str]  # protocol, dose, detector


@dataclass(frozen=True)
class Told:
    """A figure, and its 95 % interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Comparison:
    """The detector and one simpler one, in one way of splitting and at one dose."""

    protocol: str
    dose: str
    rival: str
    ours: Told
    theirs: Told

    @property
    def gap(self) -> float:
        """How far the detector is ahead, as it is shown: negative where it is behind, 0 where both are level."""
        return gap_of(self.ours, self.theirs)

    @property
    def is_sure(self) -> bool:
        """Whether the detector is ahead with its whole interval."""
        return self.ours.low is not None and self.ours.low > self.theirs.value


def gap_of(ours: Told, theirs: Told) -> float:
    """The difference in so many decimals as are shown."""
    return round(ours.value - theirs.value, DECIMALS) or 0.0


def told_of(figures: Mapping[str, Any], measure: str) -> dict[Place, Told]:
    """All that is known of a measure, by protocol (empty: later executions), dose (`any`: all) and detector."""
    found: dict[Place, dict[str, float]] = {}
    for key, value in figures.items():
        words = key.split(".")
        if words[:2] != [PART, measure] or len(words) < 3 or value is None:
            continue
        place = _place(words[3:])
        if place is not None:
            protocol, dose, end = place
            found.setdefault((protocol, dose, words[2]), {})[end] = float(value)
    return {place: Told(**ends) for place, ends in found.items() if "value" in ends}


def _place(words: list[str]) -> tuple[str, str, str] | None:
    """Protocol, dose, and which end of an interval (`value`: none) the last words of a key are of; None for others."""
    rest = list(words)
    end = rest.pop() if rest and rest[-1] in ENDS else "value"
    protocol = rest.pop(0) if rest and rest[0] in PROTOCOLS else ""
    dose = rest.pop(0) if rest and rest[0].startswith(DOSES) else ANY
    return None if rest else (protocol, dose, end)


def of_protocol(told: Mapping[Place, Told], protocol: str) -> dict[tuple[str, str], Told]:
    """The figures of a protocol, by dose and detector."""
    return {(dose, name): value for (of, dose, name), value in told.items() if of == protocol}


def in_order(doses: Iterable[str]) -> list[str]:
    """Each dose once: all together, the strong ones together, then by level and name."""
    return sorted(set(doses), key=lambda dose: (dose != ANY, not dose.startswith(STRONG), dose))


def comparisons(figures: Mapping[str, Any], measure: str) -> list[Comparison]:
    """The detector with each simpler one, wherever both have a figure; in the order of protocols and doses."""
    told = told_of(figures, measure)
    found = []
    for protocol in PROTOCOLS:
        values = of_protocol(told, protocol)
        for dose in in_order(of for of, _ in values):
            ours = values.get((dose, VERDICTS))
            others = {VERDICTS, *LEARNED}
            rivals = [(name, value) for (of, name), value in values.items() if of == dose and name not in others]
            if ours is not None:
                found += [Comparison(protocol, dose, name, ours, theirs) for name, theirs in rivals]
    return found
