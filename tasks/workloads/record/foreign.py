"""Work that was not the workload's: what the machine used, less the workload's own group and the sampler."""

from dataclasses import dataclass

import numpy as np

from tasks.workloads.telemetry import Telemetry

BUSY = tuple(f"cpu.{kind}_cores" for kind in ("user", "nice", "system", "irq", "softirq"))
OWN = ("own.cpu.user_cores", "own.cpu.system_cores")
STEAL, LOAD = "cpu.steal_cores", "load.one_minute"
NAN = float("nan")


@dataclass(frozen=True)
class Disturbance:
    """Means over a run, in cores; NaN where the machine does not say. load_1m: at its first sample.

    A kernel that accounts interrupts apart (CONFIG_IRQ_TIME_ACCOUNTING) charges them to nobody: there they count as
    foreign. Others charge them to the task that was interrupted."""

    busy_cores: float
    own_cores: float
    foreign_cores: float
    steal_cores: float
    load_1m: float

    def exceeds(self, limit_ratio: float, cores: int) -> bool:
        """Whether others, or the hypervisor, took more than this ratio of the cores. What is not known does not."""
        return any(taken > limit_ratio * cores for taken in (self.foreign_cores, self.steal_cores))


def disturbance_of(telemetry: Telemetry, sampler_cores: float) -> Disturbance:
    """What disturbed a run. sampler_cores: CPU time of the sampler over the time of the run."""
    means = {name: _mean(telemetry, place) for place, name in enumerate(telemetry.names)}
    busy = _sum([means.get(name, NAN) for name in BUSY])
    own = _sum([means.get(name, NAN) for name in OWN])
    load = [telemetry.values[0, place] for place, name in enumerate(telemetry.names) if name == LOAD]
    return Disturbance(
        busy_cores=busy,
        own_cores=own,
        foreign_cores=max(0.0, busy - own - sampler_cores) if busy - own == busy - own else NAN,
        steal_cores=means.get(STEAL, NAN),
        load_1m=float(load[0]) if load else NAN,
    )


def _mean(telemetry: Telemetry, place: int) -> float:
    known = telemetry.values[:, place]
    known = known[~np.isnan(known)]
    return float(known.mean()) if known.size else NAN


def _sum(parts: list[float]) -> float:
    known = [part for part in parts if part == part]
    return sum(known) if known else NAN
