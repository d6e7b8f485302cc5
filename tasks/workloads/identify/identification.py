"""What a run is: a known workload, or an unknown one and what it is most like, how sure, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tasks.workloads.fingerprints import Fingerprint
from tasks.workloads.identify.counters import comparable
from tasks.workloads.identify.cutting import Cut
from tasks.workloads.identify.model import Described, Model, describe
from tasks.workloads.identify.reasons import why
from tasks.workloads.similarity.subsequence import distances_between
from tasks.workloads.telemetry import FloatArray, Telemetry

N_NEAREST = 3


class Nearest(NamedTuple):
    """A known workload near a run. distance: to its nearest run, in multiples of what is usual between its own runs."""

    workload: str
    distance: float
    run_id: str


@dataclass(frozen=True)
class Identification:
    """What is said of a run.

    Attributes:
        run_id: The run.
        workload: What ran; None: no known workload.
        confidence: Probability of what is said, 0 to 1: that it is this workload, or that it is unknown.
        is_known: False: unknown, and `nearest` says what it is like.
        unknown_score: How likely it is of no known workload, 0 to 1.
        nearest: The nearest workloads, each by its nearest run.
        reasons: Which counters in which phases matched best and worst, in words.
        proxy: For an unknown run the known workload that may stand for it; None for a known one.
        probabilities: What the trees give each known workload.
        missing: Counters of the model that the run lacks.
    """

    run_id: str
    workload: str | None
    confidence: float
    is_known: bool
    unknown_score: float
    nearest: tuple[Nearest, ...]
    reasons: tuple[str, ...]
    proxy: str | None
    probabilities: dict[str, float]
    missing: tuple[str, ...] = ()


def identify(run: Telemetry, model: Model, *, cuts: Mapping[str, Cut] | None = None) -> Identification:
    """Say what a run is. Raises BadInput if it lacks too many counters of the model, ValueError without a sample."""
    return identify_all([run], model, cuts=cuts)[0]


def identify_all(
    runs: Sequence[Telemetry],
    model: Model,
    *,
    cuts: Mapping[str, Cut] | None = None,
    with_reasons: bool = True,
) -> list[Identification]:
    """Say what each run is; none depends on the others. Raises as `identify` does."""
    if not runs:
        return []
    least = model.params.fingerprint.least_common
    missing = [comparable(run, model.maker.counters, least) for run in runs]
    described = describe(runs, model, cuts=cuts)
    between = fingerprint_distances(described, model)
    judgement = model.judge.judge(described.features, described.points, between)
    scores = model.open_set.scores(judgement.evidence)
    found = []
    for at, run in enumerate(runs):
        nearest = _nearest(judgement.gaps[at], model)
        one = _verdict(run, judgement.probabilities[at], float(scores[at]), nearest, missing[at], model)
        one = _with_reasons(one, run, described.fingerprints[at], model) if with_reasons else one
        found.append(replace(one, nearest=one.nearest[:N_NEAREST]))
    return found


def fingerprint_distances(described: Described, model: Model) -> FloatArray:
    """Distance of each run's phases to those of each known run, at the best offset (V-D): (n, n_known)."""
    phases = [one.workload_phases for one in described.fingerprints]
    return distances_between(phases, [one.workload_phases for one in model.known], model.params.similarity)


def _nearest(gaps: FloatArray, model: Model) -> tuple[Nearest, ...]:
    """The nearest run of each workload, nearest first. gaps: (n_known,)."""
    labels = np.asarray(model.judge.labels)
    found = []
    for workload, usual in zip(model.workloads, model.judge.usual, strict=True):
        own = np.flatnonzero(labels == workload)
        best = own[gaps[own].argmin()]
        found.append(Nearest(workload, float(gaps[best] / usual), model.known[best].run_id))
    return tuple(sorted(found, key=lambda one: (one.distance, one.workload)))


def _verdict(
    run: Telemetry,
    probabilities: FloatArray,
    score: float,
    nearest: tuple[Nearest, ...],
    missing: tuple[str, ...],
    model: Model,
) -> Identification:
    best = int(probabilities.argmax())
    is_known = score <= model.open_set.limit
    return Identification(
        run_id=run.run_id,
        workload=model.workloads[best] if is_known else None,
        confidence=float(probabilities[best]) * (1 - score) if is_known else score,
        is_known=is_known,
        unknown_score=score,
        nearest=nearest,
        reasons=(),
        proxy=None if is_known else nearest[0].workload,
        probabilities=dict(zip(model.workloads, probabilities.tolist(), strict=True)),
        missing=missing,
    )


def _with_reasons(one: Identification, run: Telemetry, seen: Fingerprint, model: Model) -> Identification:
    """Against the nearest run of the named workload, or of all if it is unknown."""
    near = next((near for near in one.nearest if near.workload == one.workload), one.nearest[0])
    return replace(one, reasons=why(run, seen, model, near.run_id, is_known=one.is_known))
