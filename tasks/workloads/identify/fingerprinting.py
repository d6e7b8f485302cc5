"""Fingerprints of many runs on one scale, learned from those to train on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.workloads.changepoints.finding import find_changepoints
from tasks.workloads.fingerprints import Fingerprint, Fingerprinting
from tasks.workloads.identify.counters import common_counters
from tasks.workloads.identify.cutting import Cut, cut_run, narrowed
from tasks.workloads.identify.params import FingerprintParams
from tasks.workloads.identify.summarising import summarise_all
from tasks.workloads.normalisation import Scale, columns_of, learn_scale, normalise_both
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry


@dataclass(frozen=True)
class FingerprintMaker:
    """What turns runs into fingerprints: the counters, how they are normalised and cut, and the learned scale."""

    counters: tuple[Counter, ...]
    params: FingerprintParams
    scale: Scale | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the counters, in the order of the fingerprint."""
        return tuple(one.name for one in self.counters)

    def one_by_one(self) -> Fingerprinting:
        """The same for `fingerprints.fingerprint`, which makes one fingerprint, phase by phase."""
        asked = self.params.changepoints

        def find_changes(values: FloatArray) -> list[int]:
            return [int(place) for place in find_changepoints(values, asked).indices]

        return Fingerprinting(self.names, self.params.normalisation, self.params.phases, find_changes, self.scale)


def learn_fingerprinting(runs: Sequence[Telemetry], params: FingerprintParams) -> FingerprintMaker:
    """The counters that all runs share, and their scale. Raises BadInput without a run or a common counter."""
    counters = common_counters(runs, params)
    is_learned = "training" in (params.normalisation.normalisation, params.normalisation.distances)
    return FingerprintMaker(counters, params, learn_scale(runs, counters) if is_learned else None)


def fingerprints_of(
    runs: Sequence[Telemetry], how: FingerprintMaker, *, cuts: Mapping[str, Cut] | None = None
) -> list[Fingerprint]:
    """The fingerprint of each run. cuts: phases found before, by run id; the others are looked for.

    Raises ValueError for a run without samples."""
    return [_fingerprint(run, how, cut) for run, cut in zip(runs, cuts_of(runs, how, cuts=cuts), strict=True)]


def cuts_of(runs: Sequence[Telemetry], how: FingerprintMaker, *, cuts: Mapping[str, Cut] | None = None) -> list[Cut]:
    """The phases of each run on the counters of `how`; those of `cuts` are taken from there where they serve."""
    found = []
    for run in runs:
        before = (cuts or {}).get(run.run_id)
        ready = narrowed(before, how.counters, how.params) if before is not None else None
        found.append(ready or cut_run(run, how.counters, how.params))
    return found


def _fingerprint(run: Telemetry, how: FingerprintMaker, cut: Cut) -> Fingerprint:
    values, compared = normalise_both(columns_of(run, how.names), how.params.normalisation, how.scale)
    phases = how.params.phases
    summaries = tuple(summarise_all(values, cut.bounds, phases))
    over_workload = summarise_all(compared, (cut.workload_bounds,) * len(how.counters), phases)
    return Fingerprint(
        run_id=run.run_id,
        workload=run.workload,
        counters=how.names,
        bounds=cut.bounds,
        summaries=summaries,
        workload_bounds=cut.workload_bounds,
        workload_phases=np.concatenate(over_workload, axis=1),
    )
