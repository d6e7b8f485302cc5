"""Families of features that mean the same, and whether the reasons name the cause that was recorded."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions
from tasks.jobs.scores import (
    RESAMPLES,
    Difference,
    bootstrap_difference,
)

Family = Literal[
    "input",
    "tokens",
    "spare tokens",
    "SKU",
    "load",
    "queue",
    "plan",
    "history",
    "calendar",
    "memory",
    "requested time",
    "other",
]
FAMILIES: tuple[Family, ...] = get_args(Family)

# The first pattern that fits, from the start of the name. Within the jobs of a recording, estimated cost follows the
# input (Spearman 0.93), since the plan of a job is the same; free tokens of a SKU follow the spare tokens on offer
# (0.45 to 0.56) rather than its load (-0.12 to -0.18).
PATTERNS: tuple[tuple[str, Family], ...] = (
    (r"input_|read_bytes|estimated_|cost_ratio", "input"),
    (r"spare_tokens|sku_free_tokens", "spare tokens"),
    (r"(requested_|min_|mean_|peak_)?tokens|(requested|used)_cpus", "tokens"),
    (r"(sku_)?load_", "load"),
    (r"offered_|vertices_|vertex_share_", "SKU"),
    (r"queue_|wait_", "queue"),
    (r"op_|n_operators|n_vertices", "plan"),
    (r"hour_of_day|day_of_week", "calendar"),
    (r"requested_memory|peak_memory|temp_bytes", "memory"),
    (r"requested_runtime", "requested time"),
    (r"n_before|last_|ewma_|p25_p75|outlier_share|hours_since|shape_|recent_shape_", "history"),
    (r"(job|user|user_request|request|log)_", "history"),
)

# What a recorded cause is called here (record/cause.py). None: nothing known before a run tells of it.
RECORDED: dict[str, Family | None] = {
    "big_input": "input",
    "few_tokens": "tokens",
    "load": "load",
    "spill": "memory",
    "lock": None,
    "cold_cache": None,
}


def family_of(feature: str) -> Family:
    """The family of a feature by its name; `other` for a name that no pattern fits."""
    for pattern, family in PATTERNS:
        if re.match(pattern, feature):
            return family
    return "other"


def families_of(features: Sequence[str]) -> tuple[Family, ...]:
    """The families that the features have, in the order of FAMILIES."""
    found = {family_of(feature) for feature in features}
    return tuple(family for family in FAMILIES if family in found)


def by_family(parts: Contributions) -> tuple[Floats, tuple[Family, ...]]:
    """Contributions of one score summed within families, (n, number of families), and the families."""
    families = families_of(parts.features)
    place = {family: number for number, family in enumerate(families)}
    member = np.zeros((len(parts.features), len(families)))
    member[np.arange(len(parts.features)), [place[family_of(feature)] for feature in parts.features]] = 1.0
    summed: Floats = parts.single @ member
    return summed, families


UNEXPLAINED = ("none", "not_measured")


@dataclass(frozen=True)
class CauseRank:
    """Runs with one recorded cause. mrr: mean of 1 / rank of its family; first: share where it is the first reason;
    random, importance: mean of 1 / rank in these orders."""

    cause: str
    family: Family
    n_runs: int
    n_groups: int
    mrr: float
    first: float
    random: float
    importance: float


@dataclass(frozen=True)
class CausesCheck:
    """mrr: mean of 1 / rank over n_runs runs whose cause can be known before, other None; 1 is perfect.

    random: exact expectation of a random order. importance: one order for all runs, by mean absolute contribution.
    frequency: one order, by how often each cause was recorded among other runs (or among these very runs, which
    nobody knows before: see check_causes).
    even: mean over causes of their mrr, so that a frequent cause counts no more than a rare one, and the same for the
    order by frequency. not_shown: runs by recorded cause of which no feature can tell (lock, cold cache, or a log
    without such features), left out. families: those that are ranked. reason: why there is no figure, if so."""

    mrr: Difference
    random: float | None
    importance: Difference
    frequency: Difference
    even: float | None
    even_frequency: float | None
    by_cause: tuple[CauseRank, ...]
    not_shown: dict[str, int]
    families: tuple[Family, ...]
    n_runs: int
    reason: str | None = None


def check_causes(
    parts: Contributions,
    recorded: Sequence[str | None],
    groups: Any,
    rng: np.random.Generator,
    *,
    importance_of: Contributions | None = None,
    frequency_of: Sequence[str | None] | None = None,
    n_resamples: int = RESAMPLES,
) -> CausesCheck:
    """Rank of each recorded cause among the families of features, by what they add to one score, largest first.

    parts: one score (n, p, 1) that grows with the runtime. recorded: (n,) causes as in record/cause.py, None and
    `none` for runs without one. groups: (n,), for the intervals: `mrr` is beside 0, `importance` and `frequency` are
    the differences to these orders. importance_of: the runs that give the order by importance, all of `parts` if None.
    frequency_of: recorded causes of the runs that give the order by frequency, such as those of the training; the
    same runs if None. Equal contributions share their ranks. Raises ValueError for lengths that differ."""
    causes = _named(recorded)
    keys = np.asarray(groups)
    sums, families = by_family(parts)
    if not len(causes) == len(keys) == len(sums):
        raise ValueError(f"recorded causes: {len(causes)} for {len(sums)} runs of {len(keys)} groups; expected as many")
    place = _places(causes, families)
    has_cause = ~np.isin(causes, UNEXPLAINED)
    names, counts = np.unique(causes[has_cause & (place < 0)].astype(str), return_counts=True)
    is_used = has_cause & (place >= 0)
    place, keys, causes = place[is_used], keys[is_used], causes[is_used].astype(str)
    weight = np.abs(sums if importance_of is None else by_family(importance_of)[0]).mean(axis=0)
    ours = reciprocal_ranks(sums[is_used], place)
    important = reciprocal_ranks(np.broadcast_to(weight, sums[is_used].shape), place)
    often = _frequencies(place if frequency_of is None else _places(_named(frequency_of), families), families)
    frequent = reciprocal_ranks(np.broadcast_to(often, sums[is_used].shape), place)
    n, random = len(place), float((1 / np.arange(1, len(families) + 1)).mean()) if families else 0.0

    def beside(other: Floats) -> Difference:
        return bootstrap_difference(ours, other, keys, rng, n_resamples=n_resamples)

    each = [(cause, causes == cause) for cause in np.unique(causes)]
    return CausesCheck(
        beside(np.zeros(n)),
        random if n else None,
        beside(important),
        beside(frequent),
        float(np.mean([ours[mine].mean() for _, mine in each])) if n else None,
        float(np.mean([frequent[mine].mean() for _, mine in each])) if n else None,
        tuple(_of_cause(str(cause), ours[mine], important[mine], keys[mine], random) for cause, mine in each),
        dict(zip(names.tolist(), counts.tolist(), strict=True)),
        families,
        n,
        None if n else "no run has a recorded cause of which the features can tell",
    )


def reciprocal_ranks(scores: Floats, place: Any) -> Floats:
    """1 / rank of scores[i, place[i]] in row i, rank 1 being the largest; scores: (n, m), returns (n,).

    Ties: the mean of 1 / rank over the ranks that the equal scores share, as if drawn at random."""
    own = scores[np.arange(len(scores)), place][:, None]
    above, tied = (scores > own).sum(axis=1), (scores == own).sum(axis=1)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, scores.shape[1] + 1))])
    mean: Floats = (harmonic[above + tied] - harmonic[above]) / tied
    return mean


def _named(recorded: Sequence[str | None]) -> NDArray[np.object_]:
    return np.array(["none" if cause is None or cause != cause else cause for cause in recorded], dtype=object)


def _places(causes: NDArray[np.object_], families: tuple[Family, ...]) -> NDArray[np.int64]:
    """Number of the family that each recorded cause belongs to, -1 if no feature tells of it."""
    found = [RECORDED.get(str(cause)) for cause in causes]
    return np.array([families.index(family) if family in families else -1 for family in found], dtype=np.int64)


def _frequencies(place: NDArray[np.int64], families: tuple[Family, ...]) -> Floats:
    """How often the cause of each family was recorded: (number of families,)."""
    return np.bincount(place[place >= 0], minlength=len(families)).astype(np.float64)


def _of_cause(cause: str, ours: Floats, important: Floats, keys: Any, random: float) -> CauseRank:
    family = RECORDED[cause]
    assert family is not None
    n_groups = len(np.unique(keys))
    return CauseRank(
        cause,
        family,
        len(ours),
        n_groups,
        float(ours.mean()),
        float((ours == 1).mean()),
        random,
        float(important.mean()),
    )
