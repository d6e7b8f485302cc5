"""Known runs that are near: the best way to name a workload that has the machine to itself.

The distance is L1 between logarithms of means and deviations, whitened by what runs of one workload differ by among
each other: counters that go together, as those of many cores do, count once, and what differs from session to session
counts little. Runs are kept one by one, as a workload may be in many states, which no mean of them shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tasks.workloads.identify.counters import floors_of
from tasks.workloads.telemetry import FloatArray

N_NEAREST = 3  # runs of a workload that decide together how near it is
MOST_RUNS = 120  # of a workload, an even sample
LEAST_DISTANCE = 1e-3
DRIFT = 2.0  # of a later session, in deviations of a held-out stretch from the rest of its trace
HALF = 0.5  # a counter, added to each side of the odds
SHRINKAGE = 0.3  # of the covariance within workloads, towards its diagonal
LEAST_VARIANCE = 0.01  # of a logarithm, within workloads


class Near(NamedTuple):
    """A known workload beside a run. distance: mean absolute whitened difference to its nearest runs. gaps: (m,), of
    the logarithm of each mean and deviation from theirs."""

    distance: float
    gaps: FloatArray


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

    def near(self, seen: FloatArray) -> dict[str, Near]:
        """How far each workload is, the nearest first. seen: (m,), means and deviations; NaN is no difference."""
        apart = np.nan_to_num(np.log(np.abs(seen) + self.floor) - self.logs)
        each = np.abs(apart @ self.whitening).mean(axis=1)
        names = np.asarray(self.workloads)
        found = {}
        for name in self.names:
            of_name = np.flatnonzero(names == name)
            nearest = of_name[np.argsort(each[of_name], kind="stable")[:N_NEAREST]]
            found[name] = Near(float(each[nearest].mean()), np.abs(apart[nearest].mean(axis=0)))
        return dict(sorted(found.items(), key=lambda item: (item[1].distance, item[0])))

    def drifted(self, seen: FloatArray, workload: str) -> FloatArray:
        """What a later session may show of a run: farther from the known runs of its workload, by DRIFT times as much
        as it is already, on every counter. seen: (m,), means and deviations."""
        logs = np.log(np.abs(seen) + self.floor)
        centre = self.logs[np.asarray(self.workloads) == workload].mean(axis=0)
        return np.asarray(np.maximum(np.exp(logs + DRIFT * (logs - centre)) - self.floor, 0.0))

    def strangeness(self, near: Mapping[str, Near]) -> tuple[float, float, float]:
        """How far the nearest workload is, as logarithms of ratios: to what is usual for it, and to the next workload;
        and the log odds that a counter, taken by itself, is nearer to it than to the next.

        The last two hold where a later session has moved every run away from every known one. near: nearest first."""
        if not near:
            return 0.0, 0.0, 0.0
        (name, first), *others = near.items()
        distance = max(first.distance, LEAST_DISTANCE)
        usual = max(float(self.usual[self.names.index(name)]), LEAST_DISTANCE)
        if not others:
            return float(np.log(distance / usual)), 0.0, 0.0
        second = others[0][1]
        wins, losses = (float(one.sum()) for one in (first.gaps < second.gaps, first.gaps > second.gaps))
        ratio = float(np.log(distance / max(second.distance, LEAST_DISTANCE)))
        return float(np.log(distance / usual)), ratio, float(np.log((wins + HALF) / (losses + HALF)))


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
