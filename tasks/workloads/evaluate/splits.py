"""What is learned from and what is tested: at random, by time, by round, by input, by machine.

Runs that depend on each other are on one side: the pieces of a trace always, its windows but for the split by time,
where those that reach over the border are on neither."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.evaluate.params import EvaluateParams
from tasks.workloads.evaluate.windows import Item

Slice = Literal["random", "by_time", "by_round", "by_input", "by_machine"]
SLICES: tuple[Slice, ...] = get_args(Slice)
Positions = NDArray[np.int64]
Key = TypeVar("Key", str, tuple[str, bool])
EDGE_S = 1e-6  # against rounding where a window ends


@dataclass(frozen=True)
class Split:
    """Positions of the items to learn from and to test, rising. name: such as `repeat 3` or `round 2`."""

    name: str
    train: Positions
    test: Positions


@dataclass(frozen=True)
class Splits:
    """The splits of one slice; none, and why."""

    splits: list[Split]
    reason: str = ""


def splits_of(items: Sequence[Item], kind: Slice, params: EvaluateParams) -> Splits:
    """All splits of a slice. items: labelled."""
    found = _KINDS[kind](items, params)
    n_most = params.sample.repeats if kind == "random" else params.sample.max_slices
    kept = np.unique(np.linspace(0, len(found.splits) - 1, n_most).astype(int)) if len(found.splits) > n_most else None
    return found if kept is None else Splits([found.splits[at] for at in kept])


def base_splits(items: Sequence[Item], params: EvaluateParams) -> tuple[Slice, Splits]:
    """The splits that unknown workloads, thresholds, windows and pairs are measured on: at random; where traces are
    cut into windows, by time."""
    kind: Slice = "by_time" if any(item.is_window for item in items) else "random"
    return kind, splits_of(items, kind, params)


def _random(items: Sequence[Item], params: EvaluateParams) -> Splits:
    """Of each workload with each input a share of the traces, drawn again for each repeat."""
    if any(item.is_window for item in items):
        return Splits([], "windows of a trace depend on each other and are split by time; see by_time")
    traces: dict[str, list[int]] = {}
    for at, item in enumerate(items):
        traces.setdefault(item.trace, []).append(at)
    strata = _strata(items, traces)
    if all(len(own) < 2 for own in strata):
        return Splits([], "no workload has two runs; at least one to learn from and one to test are needed")
    splits = []
    for repeat in range(params.sample.repeats):
        rng = np.random.default_rng([params.seed, repeat])
        chosen: set[str] = set()
        for own in strata:
            n_train = _n_first(len(own), params.training_share)
            chosen |= {own[at] for at in rng.permutation(len(own))[:n_train]}
        is_train = np.array([item.trace in chosen for item in items])
        splits.append(_split(f"repeat {repeat + 1}", is_train, ~is_train))
    return Splits(splits)


def _strata(items: Sequence[Item], traces: dict[str, list[int]]) -> list[list[str]]:
    """The traces of each workload by input; inputs that ran once are one stratum."""
    by_input: dict[tuple[str, str | None], list[str]] = {}
    for trace, positions in traces.items():
        first = items[positions[0]]
        by_input.setdefault((first.workload, first.run.input), []).append(trace)
    strata: dict[tuple[str, str | None], list[str]] = {}
    for (workload, given), own in by_input.items():
        strata.setdefault((workload, given if len(own) > 1 else None), []).extend(own)
    return list(strata.values())


def _n_first(n: int, share: float) -> int:
    """How many of n to learn from: one is never tested, two and more are on both sides."""
    return 1 if n == 1 else min(max(round(share * n), 1), n - 1)


def _by_time(items: Sequence[Item], params: EvaluateParams) -> Splits:
    """The earlier part of each trace that was cut, and the earlier runs of each workload otherwise."""
    whole = [item for item in items if not item.is_window]
    untimed = sum(item.run.started_at is None for item in whole)
    if untimed:
        return Splits([], f"{untimed} of {len(whole)} runs do not say when they started (started_at)")
    is_train, is_test = np.zeros(len(items), dtype=bool), np.zeros(len(items), dtype=bool)
    for (_, is_cut), own in _grouped(items, _unit_of_time).items():
        part = _part_by_border if is_cut else _part_by_order
        is_train[own], is_test[own] = part([items[at] for at in own], params.earlier_share)
    if not is_test.any():
        return Splits([], "no workload has two runs; at least one to learn from and a later one are needed")
    return Splits([_split("by time", is_train, is_test)])


def _unit_of_time(item: Item) -> tuple[str, bool]:
    """What is parted by time: a trace that was cut, or all runs of a workload."""
    return (item.trace, True) if item.is_window else (item.workload, False)


def _part_by_border(windows: Sequence[Item], share: float) -> tuple[list[bool], list[bool]]:
    """Windows of a trace that end before the border are to learn from, those that begin after it are tested."""
    border = _border(windows, share)
    return [one.to_s <= border + EDGE_S for one in windows], [one.from_s >= border - EDGE_S for one in windows]


def _border(windows: Sequence[Item], share: float) -> float:
    """When that share of what was measured is over, in seconds: gaps in a trace do not count."""
    stretches, reached = [], -math.inf
    for one in sorted(windows, key=lambda window: window.from_s):
        begins = max(one.from_s, reached)
        reached = max(one.to_s, reached)
        stretches.append((begins, reached - begins))
    left_s = share * sum(length_s for _, length_s in stretches)
    for begins, length_s in stretches:
        if left_s <= length_s:
            return begins + left_s
        left_s -= length_s
    return reached


def _part_by_order(runs: Sequence[Item], share: float) -> tuple[list[bool], list[bool]]:
    """Runs of a workload by the start of their traces."""
    starts: dict[str, datetime] = {}
    for one in runs:
        if (begins := one.run.started_at) is not None:
            starts[one.trace] = min(begins, starts.get(one.trace, begins))
    ordered = sorted(starts, key=lambda trace: (starts[trace], trace))
    earlier = set(ordered[: _n_first(len(ordered), share)])
    return [one.trace in earlier for one in runs], [one.trace not in earlier for one in runs]


def _by_label(items: Sequence[Item], label: Literal["round", "machine"]) -> Splits:
    """Each round, or machine, left out in turn; runs that name none are in no split."""
    names = [getattr(item.run, label) for item in items]
    known = sorted({str(name) for name in names if name is not None}, key=lambda name: (len(name), name))
    if len(known) < 2:
        told = f"all runs are of {label} {known[0]!r}" if known else f"no run names its {label}"
        return Splits([], f"{told}; at least two are needed")
    is_named = np.array([name is not None for name in names])
    splits = []
    for left_out in known:
        is_test = np.array([str(name) == left_out for name in names]) & is_named
        splits.append(_split(f"{label} {left_out}", ~is_test & is_named, is_test))
    return Splits(splits)


def _by_round(items: Sequence[Item], _: EvaluateParams) -> Splits:
    return _by_label(items, "round")


def _by_machine(items: Sequence[Item], _: EvaluateParams) -> Splits:
    return _by_label(items, "machine")


def _by_input(items: Sequence[Item], _: EvaluateParams) -> Splits:
    """One input of each workload left out in turn: of two, trained on one and tested on the other.

    A workload with one input is to learn from in every split, and tested in none."""
    inputs: dict[str, list[str]] = {}
    for workload, own in _grouped(items, lambda item: item.workload).items():
        inputs[workload] = sorted({str(items[at].run.input) for at in own if items[at].run.input is not None})
    n_most = max(len(own) for own in inputs.values())
    if n_most < 2:
        return Splits([], "no workload has two inputs; one to learn from and one to test are needed")
    splits = []
    for turn in range(n_most):
        left_out = {workload: own[turn] for workload, own in inputs.items() if len(own) > max(1, turn)}
        is_test = np.array([str(item.run.input) == left_out.get(item.workload) for item in items])
        splits.append(_split(f"input {turn + 1}", ~is_test, is_test))
    return Splits(splits)


def _grouped(items: Sequence[Item], key: Callable[[Item], Key]) -> dict[Key, list[int]]:
    groups: dict[Key, list[int]] = {}
    for at, item in enumerate(items):
        groups.setdefault(key(item), []).append(at)
    return groups


def _split(name: str, is_train: NDArray[np.bool_], is_test: NDArray[np.bool_]) -> Split:
    return Split(name, np.flatnonzero(is_train), np.flatnonzero(is_test))


_KINDS: dict[Slice, Callable[[Sequence[Item], EvaluateParams], Splits]] = {
    "random": _random,
    "by_time": _by_time,
    "by_round": _by_round,
    "by_input": _by_input,
    "by_machine": _by_machine,
}
