"""How far stress moves a benchmark, and which doses make a ladder."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.nodes.record.doses import LEVELS, TARGETS_SD, Dose

FEWEST = 3  # executions: unstressed for a spread, with a dose for a rung
LEAST_SD = 0.1  # below this a dose does nothing, and its logarithm says too much


@dataclass(frozen=True)
class Rung:
    """One dose as it was measured. sd: the stressed mean less the unstressed mean, in standard deviations of the
    unstressed (sample, over nodes the median); ratio: of the means; n_applied: executions it was really applied in."""

    dose: Dose
    sd: float
    ratio: float
    n: int
    n_applied: int


def distance_sd(stressed: Sequence[float], unstressed: Sequence[float]) -> float:
    """Distance of the means in sample standard deviations of the unstressed; NaN where there are too few, or no spread.

    Cohen's d with the control group's deviation (Glass's Δ): the stress may change the spread too."""
    if len(unstressed) < FEWEST or not stressed:
        return math.nan
    spread = float(np.std(unstressed, ddof=1))
    return float((np.mean(stressed) - np.mean(unstressed)) / spread) if spread > 0 else math.nan


def chosen_ladder(rungs: Sequence[Rung], *, higher_is_better: bool) -> tuple[Dose, ...]:
    """For each level the dose that comes nearest to its target, by ratio; each level a stronger one than that below.

    rungs: of one benchmark, in any order; higher_is_better: of its watched metric. A dose counts if it makes it worse,
    and ran often enough and was really applied each time; none are chosen if there are fewer of these than levels."""
    worse = -1 if higher_is_better else 1
    strong = [(worse * rung.sd, rung) for rung in rungs if rung.n_applied == rung.n >= FEWEST and worse * rung.sd > 0]
    ladders = itertools.combinations(sorted(strong, key=lambda one: one[0]), len(LEVELS))
    best = min(ladders, key=lambda ladder: _off([sd for sd, _ in ladder]), default=())
    return tuple(rung.dose.model_copy(update={"level": level}) for level, (_, rung) in zip(LEVELS, best, strict=False))


def _off(distances_sd: Sequence[float]) -> float:
    """How far a ladder's rungs are from what its levels are meant to be."""
    pairs = zip(LEVELS, distances_sd, strict=True)
    return sum(abs(math.log(max(sd, LEAST_SD) / TARGETS_SD[level])) for level, sd in pairs)


def rungs_of(
    doses: Sequence[Dose],
    stressed: Mapping[tuple[str, str], Sequence[float]],
    unstressed: Mapping[str, Sequence[float]],
    applied: Mapping[str, tuple[int, int]],
) -> list[Rung]:
    """The doses of one benchmark with their distances. stressed: by node and dose; unstressed: by node; applied: by
    dose, executions and those in which it was really applied."""
    found = []
    for dose in doses:
        pairs = [(stressed.get((node, dose.name), ()), values) for node, values in unstressed.items()]
        distances = [distance_sd(values, calm) for values, calm in pairs]
        ratios = [float(np.mean(values) / np.mean(calm)) for values, calm in pairs if values and calm]
        known = [one for one in distances if one == one]
        n, n_applied = applied.get(dose.name, (0, 0))
        sd, ratio = (float(np.median(known)) if known else math.nan), (float(np.median(ratios)) if ratios else math.nan)
        found.append(Rung(dose, sd, ratio, n, n_applied))
    return found
