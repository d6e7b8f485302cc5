"""The paper's own answer, for comparison: the nearest fingerprint, and its workload's threshold alone (CWD, V-D)."""

from collections.abc import Mapping, Sequence

from tasks.workloads.identify.cutting import Cut
from tasks.workloads.identify.identification import fingerprint_distances
from tasks.workloads.identify.model import Model, describe
from tasks.workloads.similarity.nearest_workload import Verdicts, nearest_workloads
from tasks.workloads.similarity.params import Threshold
from tasks.workloads.telemetry import Telemetry


def threshold_verdicts(
    runs: Sequence[Telemetry], model: Model, threshold: Threshold, *, cuts: Mapping[str, Cut] | None = None
) -> Verdicts:
    """The nearest known run with as many phases, and whether its distance is within its workload's threshold.

    threshold: within mean ± deviation (V-D), the mean as a radius (VI-C), or one-sided. No trees and no score."""
    described = describe(runs, model, cuts=cuts)
    return nearest_workloads(
        fingerprint_distances(described, model),
        [len(one.workload_phases) for one in described.fingerprints],
        [len(one.workload_phases) for one in model.known],
        [one.workload for one in model.known],
        model.judge.spreads,
        model.params.similarity.model_copy(update={"threshold": threshold}),
    )
