"""Orientation (Perona, III-B 3): whether more or less of a metric is better.

Declared by the tool, else told by name or unit, else by the paper's rule:

    L = median - min, R = max - median: maximise if R ≤ L, else minimise.

The rule wants stress in the training data and turns with one outlier, so it is the last word and not the first; it is
computed for every metric all the same, and where it disagrees that is listed."""

import re
from typing import Literal

from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.spread import SAME, Spread
from tasks.nodes.preprocess.telling_words import BETTER, TROUBLE, WORSE
from tasks.nodes.tools.facts import MetricFacts
from tasks.params import Params

Sign = Literal[1, -1]
Origin = Literal["declared", "name", "unit", "rule", "override", "none"]

BY_UNIT: dict[str, Sign] = {"1/s": 1, "B/s": 1, "s": -1, "s/B": -1}
WORDS = re.compile(r"[^a-z0-9]+")
PAPER_OVERRIDES: tuple[tuple[str, Sign], ...] = (("msg_rate", 1), ("stdev", -1), ("stddev", -1))  # the authors' code


class Orientation(Params):
    """sign: 1 where more is better, -1 where less is. origin: what says so; none: nothing does, and 1 stands.

    rule_with_stressed, rule_without_stressed: what the paper's rule says; None where the values do not differ.
    is_directed: false where the tool declares that neither is better: the sign is a guess, and counts in no score."""

    sign: Sign
    origin: Origin
    rule_with_stressed: Sign | None
    rule_without_stressed: Sign | None
    is_directed: bool = True

    @property
    def agrees(self) -> bool | None:
        """Whether the paper's rule, on all executions, says the same as what is declared; None where one is silent."""
        if self.rule_with_stressed is None or self.origin in ("rule", "none"):
            return None
        return self.rule_with_stressed == self.sign


def rule_of(spread: Spread | None) -> Sign | None:
    """What the paper's rule says; None without two distinct values."""
    if spread is None or spread.n_distinct < 2:
        return None
    left, right = spread.median - spread.least, spread.greatest - spread.median
    return 1 if right <= left + SAME * (left + right) else -1


def orient(
    metric: str,
    base: str,
    fact: MetricFacts | None,
    spread: Spread | None,
    unstressed: Spread | None,
    params: PreprocessParams,
) -> Orientation:
    """The orientation of a metric. spread: of all its training values; unstressed: of those without known stress."""
    rule = rule_of(spread)
    sign, origin = _overridden(metric) if params.variant == "paper" else _told(metric, base, fact)
    if sign is None:
        sign, origin = (1, "none") if rule is None else (rule, "rule")
    return Orientation(
        sign=sign,
        origin=origin,
        rule_with_stressed=rule,
        rule_without_stressed=rule_of(unstressed),
        is_directed=params.variant == "paper" or fact is None or fact.higher_is_better is not None,
    )


def _told(metric: str, base: str, fact: MetricFacts | None) -> tuple[Sign | None, Origin]:
    if fact is not None:  # neither better nor worse: the rule, and no guess from the unit
        return (None if fact.higher_is_better is None else 1 if fact.higher_is_better else -1), "declared"
    words = set(WORDS.split(metric.lower()))
    if words & TROUBLE:
        return -1, "name"
    if base in BY_UNIT:
        return BY_UNIT[base], "unit"
    if words & WORSE:
        return -1, "name"
    return (1, "name") if words & BETTER else (None, "none")


def _overridden(metric: str) -> tuple[Sign | None, Origin]:
    return next(((sign, "override") for part, sign in PAPER_OVERRIDES if part in metric), (None, "none"))
