"""Known runs that are near: the best way to name a workload that has the machine to itself.

The distance is L1 between logarithms of means and deviations, whitened by what runs of one workload differ by among
each other: counters that go together, as those of many cores do, count once, and what differs from session to session
counts little. Runs are kept one by one, as a workload may be in many states, which no mean of them shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.workloads.identify.counters import floors_of
from tasks.workloads.telemetry import FloatArray

N_NEAREST = 3  # runs of a workload that decide together how near it is
MOST_RUNS = 120  # of a workload, an even sample
LEAST_DISTANCE = 1e-3
SHRINKAGE = 0.3  # of the covariance within workloads, towards its diagonal
LEAST_VARIANCE = 0.01  # of a logarithm, within workloads


@dataclass(frozen=True)
class Neighbours:
    """logs: (n, m) of known runs. workloads: of each. floor: (m,), added before the logarithm. whitening: (m, m), turns
    differences of logs into ones that each vary by 1 within a workload. usual: (n_workloads,), by name, median distance
    of runs that were held out to the others of their workload."""

    logs: FloatArray
    workloads: tuple[str, ...]
    floor: FloatArray
    whitening: FloatArray
    usual: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """The known workloads, sorted."""
        return tuple(sorted(set(self.workloads)))

    def distances(self, seen: FloatArray) -> dict[str, float]:
        """Mean absolute whitened difference to the nearest runs of each workload, the nearest workload first.

        seen: (m,), means and deviations; what is NaN counts as no difference."""
        apart = np.nan_to_num(np.log(np.abs(seen) + self.floor) - self.logs)
        each = np.abs(apart @ self.whitening).mean(axis=1)
        names = np.asarray(self.workloads)
        mean = {name: float(np.sort(each[names == name])[:N_NEAREST].mean()) for name in self.names}
        return dict(sorted(mean.items(), key=lambda item: (item[1], item[0])))

    def strangeness(self, distances: Mapping[str, float]) -> tuple[float, float]:
        """How far the nearest workload is, as logarithms of ratios: to what is usual for it, and to the next workload.

        Both hold where a later session has moved every run away from every known one."""
        if not distances:
            return 0.0, 0.0
        ordered = sorted((max(distance, LEAST_DISTANCE), name) for name, distance in distances.items())
        first, name = ordered[0]
        usual = max(float(self.usual[self.names.index(name)]), LEAST_DISTANCE)
        return float(np.log(first / usual)), float(np.log(first / ordered[1][0])) if len(ordered) > 1 else 0.0


def learn_neighbours(moments: FloatArray, workloads: Sequence[str]) -> Neighbours:
    """From means and deviations of training runs, (n, m), NaN: not measured, and the workload of each."""
    moments = np.abs(np.where(np.isfinite(moments), moments, np.nan_to_num(np.nanmedian(moments, axis=0))))
    floor = floors_of(moments)
    logs, names = np.log(moments + floor), np.asarray(workloads)
    groups = [np.flatnonzero(names == name) for name in sorted(set(workloads))]
    residuals = np.concatenate([logs[places] - logs[places].mean(axis=0) for places in groups])
    covariance = residuals.T @ residuals / max(1, len(residuals) - 1)
    shrunken = (1 - SHRINKAGE) * covariance + np.diag(SHRINKAGE * np.diag(covariance) + LEAST_VARIANCE)
    whitening = np.linalg.cholesky(np.linalg.inv(shrunken))
    kept = np.concatenate(
        [one[np.unique(np.linspace(0, len(one) - 1, min(len(one), MOST_RUNS)).astype(int))] for one in groups]
    )
    usual = np.ones(len(groups))
    return Neighbours(logs[kept], tuple(str(names[at]) for at in kept), floor, np.asarray(whitening), usual)
