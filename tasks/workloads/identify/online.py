"""Identification before a run has ended, and from a window in its middle (CWD, V-D).

The first seconds of a run are mostly start-up, so a model of whole runs does not know them: each duration has a model
of its own, learned from as many seconds of the same training runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tasks.errors import BadInput
from tasks.workloads.identify.identification import Identification, identify
from tasks.workloads.identify.model import Model, fit_model
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.telemetry import Telemetry

SECONDS = (5.0, 10.0, 15.0, 20.0, 30.0)
EDGE = 1e-6  # of an interval, against rounding


@dataclass(frozen=True)
class OnlineModel:
    """seconds: rising; models: one for each, learned from so many seconds of the training runs."""

    seconds: tuple[float, ...]
    models: tuple[Model, ...]


def window(run: Telemetry, start_s: float, seconds: float) -> Telemetry:
    """The samples after start_s and up to start_s + seconds, both from the start of the run; labels stay.

    A sample stands for the interval that ends at it. Its times begin anew. The run id says which part it is.
    Raises BadInput if there is no sample in it."""
    begins = _begins(run)
    edge = EDGE * (run.interval_s or 1.0)
    chosen = (run.at_s > begins + start_s + edge) & (run.at_s <= begins + start_s + seconds + edge)
    if not chosen.any():
        problem = f"no sample between {start_s:g} and {start_s + seconds:g} s"
        raise BadInput(f"run {run.run_id}", problem, f"a window within its {_lasts(run):.3g} s")
    return replace(
        run,
        run_id=f"{run.run_id}@{start_s:g}+{seconds:g}",
        at_s=run.at_s[chosen] - start_s,
        values=run.values[chosen],
    )


def prefix(run: Telemetry, seconds: float) -> Telemetry:
    """The first seconds of a run. Raises BadInput if there is no sample in them."""
    return window(run, 0.0, seconds)


def windows_of(run: Telemetry, seconds: float, step_s: float) -> list[Telemetry]:
    """Whole windows of a run, one every step_s; none where a run is shorter."""
    n_windows = int(np.floor((_lasts(run) - seconds) / step_s)) + 1
    return [window(run, at * step_s, seconds) for at in range(max(0, n_windows))]


def fit_online(runs: Sequence[Telemetry], params: IdentifyParams, seconds: Sequence[float] = SECONDS) -> OnlineModel:
    """Learn one model a duration from the same runs. Raises BadInput as `fit_model`, and for runs without samples."""
    ordered = tuple(sorted(set(seconds)))
    return OnlineModel(ordered, tuple(fit_model([prefix(run, one) for run in runs], params) for one in ordered))


def identify_so_far(run: Telemetry, online: OnlineModel) -> Identification:
    """Say what a run is from what there is of it, by the model of the longest duration that it has reached.

    A run that is shorter than all is judged by the first model."""
    reached = [at for at, one in enumerate(online.seconds) if one <= _lasts(run)]
    at = reached[-1] if reached else 0
    return replace(identify(prefix(run, online.seconds[at]), online.models[at]), run_id=run.run_id)


def identify_online(run: Telemetry, online: OnlineModel) -> list[tuple[float, Identification]]:
    """What is said of a run after each duration that it reaches, in order."""
    return [
        (one, replace(identify(prefix(run, one), model), run_id=run.run_id))
        for one, model in zip(online.seconds, online.models, strict=True)
        if one <= _lasts(run)
    ]


def _begins(run: Telemetry) -> float:
    """When a run began on the clock of at_s: the first sample stands for the interval that ends at it."""
    return float(run.at_s[0]) - (run.interval_s or 1.0) if run.n_samples else 0.0


def _lasts(run: Telemetry) -> float:
    """Seconds of a run that were sampled, with an allowance for rounding."""
    return float(run.at_s[-1]) - _begins(run) + EDGE * (run.interval_s or 1.0) if run.n_samples else 0.0
