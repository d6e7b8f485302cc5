"""Where the phases of a run begin: found in the run alone, so that it does not depend on which others are known.

Change points are looked for in the logarithm of rates and the plain value of gauges, or in the values of equation 7
or z-scores where these are the normalisation. Detection sets each counter on its own scale, so a scale learned over
training runs would move nothing: a run is cut once, whatever it is compared with later."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.workloads.changepoints.finding import find_changepoints
from tasks.workloads.identify.params import FingerprintParams
from tasks.workloads.normalisation import columns_of, logarithm_of_rates, normalise
from tasks.workloads.phases import Bounds, bounds_of, shared_bounds
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry


@dataclass(frozen=True)
class Cut:
    """The phases of a run. bounds: of each counter where its phases begin, and the end; workload_bounds: of the run."""

    run_id: str
    counters: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    workload_bounds: Bounds


def cut_run(run: Telemetry, counters: Sequence[Counter], params: FingerprintParams) -> Cut:
    """The phases of a run on these counters; a counter that it lacks has one. Raises ValueError without a sample."""
    names = tuple(one.name for one in counters)
    values = columns_of(run, names)
    if params.normalisation.normalisation == "training":
        ready = logarithm_of_rates(values, [one.is_rate for one in counters])
    else:
        ready = normalise(values, params.normalisation)
    if params.phases.mode == "shared":
        shared = bounds_of(find_changepoints(ready, params.changepoints).indices, run.n_samples)
        return Cut(run.run_id, names, (shared,) * len(names), shared)
    bounds = tuple(_bounds(column, params) for column in ready.T)
    return Cut(run.run_id, names, bounds, shared_bounds(bounds, params.phases))


def _bounds(column: FloatArray, params: FingerprintParams) -> Bounds:
    found = column[np.isfinite(column)]
    if len(found) < 2 or (found == found[0]).all():
        return bounds_of([], len(column))
    return bounds_of(find_changepoints(column[:, None], params.changepoints).indices, len(column))


def narrowed(cut: Cut, counters: Sequence[Counter], params: FingerprintParams) -> Cut | None:
    """The same cut on some of its counters; None where it must be made anew.

    That is where a counter is new, and with shared phases, which depend on all counters together."""
    names = tuple(one.name for one in counters)
    if names == cut.counters:
        return cut
    place = {name: at for at, name in enumerate(cut.counters)}
    if params.phases.mode == "shared" or not set(names) <= place.keys():
        return None
    bounds = tuple(cut.bounds[place[name]] for name in names)
    return Cut(cut.run_id, names, bounds, shared_bounds(bounds, params.phases))
