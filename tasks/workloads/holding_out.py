"""Which runs a training learns from and which it is measured on: the last round, or the later part of each workload."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.errors import BadInput
from tasks.workloads.evaluate.params import EvaluateParams
from tasks.workloads.evaluate.splits import Split, Splits, splits_of
from tasks.workloads.evaluate.windows import Item, cut
from tasks.workloads.telemetry import Telemetry
from tasks.workloads.training_params import TrainParams


@dataclass(frozen=True)
class HeldOut:
    """Runs, or windows of long traces, to learn from and to be measured on. name: of the split, such as `round 5`.

    n_windows: windows among train; is_window: of each of test."""

    train: list[Telemetry]
    test: list[Telemetry]
    name: str
    n_windows: int
    is_window: list[bool]


def hold_out(runs: Sequence[Telemetry], params: TrainParams) -> HeldOut:
    """Split labelled runs; long traces are cut into windows first.

    Raises BadInput where nothing can be held out: then nobody could say how good a model is."""
    items = thinned(cut(runs, params.windows).items, params.max_windows)
    found, reasons = _split(items, params)
    if found is None:
        raise BadInput(
            f"{len(runs)} labelled runs",
            f"none can be held out: {'; '.join(reasons)}",
            "two rounds, or runs of each workload that say when they started",
            "record or ingest more runs, or choose another train.hold_out",
        )
    train, test = ([items[at] for at in part] for part in (found.train, found.test))
    n_windows, is_window = sum(item.is_window for item in train), [item.is_window for item in test]
    return HeldOut([item.run for item in train], [item.run for item in test], found.name, n_windows, is_window)


def thinned(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many windows of each trace, evenly spread over it; whole runs stay."""
    windows: dict[str, list[int]] = {}
    for at, item in enumerate(items):
        if item.is_window:
            windows.setdefault(item.trace, []).append(at)
    left_out: set[int] = set()
    for own in windows.values():
        if len(own) > most:
            left_out |= set(own) - {own[place] for place in np.linspace(0, len(own) - 1, most).astype(int)}
    return [item for at, item in enumerate(items) if at not in left_out]


def _split(items: Sequence[Item], params: TrainParams) -> tuple[Split | None, list[str]]:
    protocol = EvaluateParams(earlier_share=1 - params.held_out_share)
    has_windows = any(item.is_window for item in items)
    reasons = []
    if params.hold_out != "time" and not (has_windows and params.hold_out == "auto"):
        by_round = splits_of(items, "by_round", protocol)
        if last := _usable(by_round):
            return last, []
        reasons.append(by_round.reason or "the last round holds no run of a workload that another round has")
    if params.hold_out != "round":
        by_time = splits_of(items, "by_time", protocol)
        if last := _usable(by_time):
            return last, []
        reasons.append(by_time.reason)
    return None, reasons


def _usable(found: Splits) -> Split | None:
    """The last split, if it has something on both sides."""
    last = found.splits[-1] if found.splits else None
    return last if last and len(last.train) and len(last.test) else None
