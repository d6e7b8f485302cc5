"""The items of an evaluation with what does not depend on a split: common counters, and where their phases begin."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tasks.progress import report_progress
from tasks.workloads.evaluate.windows import Item
from tasks.workloads.identify.counters import common_counters
from tasks.workloads.identify.cutting import Cut, cut_run
from tasks.workloads.identify.params import FingerprintParams
from tasks.workloads.normalisation import columns_of
from tasks.workloads.telemetry import Counter, Telemetry

Labels = NDArray[np.str_]


@dataclass(frozen=True)
class Cohort:
    """items and their labels, in the same order; counters: those that all have; cuts: phases by run id.

    Change points are found in each run alone and on a scale of its own, so they serve every split; the scale of the
    fingerprints is learned from the training runs of each split."""

    items: list[Item]
    labels: Labels
    counters: tuple[Counter, ...]
    cuts: dict[str, Cut]

    def runs(self, positions: Sequence[int] | NDArray[np.int64]) -> list[Telemetry]:
        """The runs at these positions."""
        return [self.items[at].run for at in positions]


def cohort_of(items: Sequence[Item], params: FingerprintParams, counters: Sequence[Counter] = ()) -> Cohort:
    """Leave each run its common counters alone, and find its phases, once.

    counters: those to use; otherwise those that all runs have. Raises BadInput if there are none."""
    used = tuple(counters) or common_counters([item.run for item in items], params)
    kept = [replace(item, run=narrowed_run(item.run, used)) for item in items]
    cuts = {}
    for done, item in enumerate(kept):
        report_progress("finding phases", done, len(kept))
        cuts[item.run.run_id] = cut_run(item.run, used, params)
    return Cohort(kept, np.array([item.workload for item in kept]), used, cuts)


def narrowed_run(run: Telemetry, counters: tuple[Counter, ...]) -> Telemetry:
    """The run with these counters alone, in this order."""
    return replace(run, counters=counters, values=columns_of(run, [counter.name for counter in counters]))


def sampled(items: Sequence[Item], max_items: int, seed: int) -> list[Item]:
    """At most so many items, drawn from each workload alike; a workload with fewer than its share gives the rest to
    the others. They keep their order."""
    if len(items) <= max_items:
        return list(items)
    labels = np.array([item.workload for item in items])
    rng = np.random.default_rng([seed, len(items)])
    kept: list[int] = []
    sizes = {str(workload): int((labels == workload).sum()) for workload in np.unique(labels)}
    for turn, workload in enumerate(sorted(sizes, key=lambda one: (sizes[one], one))):
        quota = (max_items - len(kept)) // (len(sizes) - turn)
        own = np.flatnonzero(labels == workload)
        kept += rng.permutation(own)[: max(1, quota)].tolist()
    return [items[at] for at in sorted(kept)]
