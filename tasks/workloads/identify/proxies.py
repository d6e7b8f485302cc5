"""A public workload that may stand for a private one: the most similar, with its distance (CWD, I)."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tasks.errors import NotFound
from tasks.workloads.identify.model import Model, describe
from tasks.workloads.identify.neighbours import distances, nearest_mean
from tasks.workloads.telemetry import Telemetry

CLOSE = 2.0  # times the usual distance between runs of the public workload


@dataclass(frozen=True)
class Proxy:
    """A public workload beside a private run. distance: mean distance to its nearest runs, in multiples of what is
    usual between its own. is_close: so near that it can hardly be told from a run of the public workload itself."""

    workload: str
    distance: float
    is_close: bool


def find_proxies(run: Telemetry, model: Model, public: Collection[str] = ()) -> list[Proxy]:
    """The public workloads, the most similar first. public: their names; empty: all that the model knows.

    Raises NotFound for a name that the model does not know."""
    unknown = sorted(set(public) - set(model.workloads))
    if unknown:
        raise NotFound(f"workload {', '.join(unknown)}: not in the model; it knows {', '.join(model.workloads)}")
    judge = model.judge
    gaps = distances(describe([run], model).points, judge.points, judge.metric)
    means = nearest_mean(gaps, judge.labels, judge.classes, judge.neighbours)[0]
    order = np.argsort(means / judge.usual, kind="stable")
    found = [(judge.classes[at], float(means[at] / judge.usual[at])) for at in order]
    return [Proxy(name, far, far <= CLOSE) for name, far in found if not public or name in public]
