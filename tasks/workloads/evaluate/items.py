"""The rows of an evaluation: labelled runs, long traces in windows, and which are learned from and which are tested.

Runs that depend on each other are on one side of a split: the pieces of a trace always, its windows but for the split
by time, where those that reach over the border are on neither."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.params import EvaluateParams, WindowParams
from tasks.workloads.telemetry import Telemetry

Slice = Literal["random", "by_time", "by_round", "by_input", "by_machine"]
SLICES: tuple[Slice, ...] = get_args(Slice)
Positions = NDArray[np.int64]
Key = TypeVar("Key", str, tuple[str, bool])

PIECE = re.compile(r"\+(\d+)$")  # the reader calls the pieces of a run that a gap cuts id+1, id+2, …
EDGE = 1e-6  # of an interval or in seconds, against rounding where a window ends
LEAST_SAMPLES = 2
LONG_WINDOWS = 3.0  # traces longer than so many windows are cut, shorter ones are runs
MIN_MEASURED = 0.5  # windows with values in a smaller share of their samples are left out
TRAINING_SHARE = 0.7  # of a workload's runs to learn from (RQ1)
EARLIER_SHARE = 0.6  # of a trace's time, or of a workload's runs by their start, to learn from
MAX_SLICES = 20  # rounds, inputs or machines that are left out in turn; of more, an even sample


@dataclass(frozen=True)
class Item:
    """A run, or a window of a long trace.

    run: its samples, counted from its own start. trace: the run that it is all or a part of. from_s, to_s: where it
    lies in that trace. is_window: whether the trace was cut."""

    run: Telemetry
    trace: str
    from_s: float
    to_s: float
    is_window: bool

    @property
    def workload(self) -> str:
        """Its label; items are made of labelled runs."""
        return str(self.run.workload)


@dataclass(frozen=True)
class Cutting:
    """items: in the order of the runs. n_left_over: samples of long traces that are in no window."""

    items: list[Item]
    n_left_over: int


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


def cut(runs: Sequence[Telemetry], params: WindowParams) -> Cutting:
    """Traces of more than LONG_WINDOWS windows as windows, shorter ones whole.

    A window is left out where less than MIN_MEASURED of its samples have a value, and so is the rest at the end
    of a piece that fills no window."""
    by_trace: dict[str, list[Telemetry]] = {}
    for run in runs:
        by_trace.setdefault(trace_of(run.run_id), []).append(run)
    items: list[Item] = []
    n_left_over = 0
    for trace, parts in by_trace.items():
        is_long = sum(piece.duration_s for piece in parts) > LONG_WINDOWS * params.width_s
        for piece, offset_s in _placed(parts):
            if not is_long:
                items.append(Item(piece, trace, offset_s, offset_s + piece.duration_s, is_window=False))
                continue
            windows, rest = _windows(piece, trace, offset_s, params)
            items += windows
            n_left_over += rest
    return Cutting(items, n_left_over)


def trace_of(run_id: str) -> str:
    """The run that a piece `id+1`, `id+2`, … was cut from; the id itself for a whole run."""
    return PIECE.sub("", run_id)


def part_of(run: Telemetry, first: int, last: int) -> Telemetry:
    """Some samples of a run, counted from their own start."""
    at_s = run.at_s[first:last]
    since_s = at_s - (at_s[0] - run.at_s[0]) if len(at_s) else at_s
    return replace(run, at_s=since_s, values=run.values[first:last])


def sampled(items: Sequence[Item], max_items: int, seed: int) -> list[Item]:
    """At most so many items, drawn from each workload alike; a workload with fewer than its share gives the rest to
    the others. They keep their order."""
    if len(items) <= max_items:
        return list(items)
    labels = np.array([item.workload for item in items])
    rng = np.random.default_rng([seed, len(items)])
    kept: list[int] = []
    sizes = {str(workload): int((labels == workload).sum()) for workload in np.unique(labels)}
    for turn, workload in enumerate(sorted(sizes, key=lambda name: (sizes[name], name))):
        quota = (max_items - len(kept)) // (len(sizes) - turn)
        places = np.flatnonzero(labels == workload)
        kept += rng.permutation(places)[: max(1, quota)].tolist()
    return [items[at] for at in sorted(kept)]


def splits_of(
    items: Sequence[Item], kind: Slice, params: EvaluateParams, *, earlier_share: float = EARLIER_SHARE
) -> Splits:
    """All splits of a slice. items: labelled. earlier_share: what is learned from where it is split by time."""
    if kind == "random":
        return _random(items, params)
    if kind == "by_time":
        return _by_time(items, earlier_share)
    splits = _by_input(items) if kind == "by_input" else _by_label(items, "round" if kind == "by_round" else "machine")
    if len(splits.splits) <= MAX_SLICES:
        return splits
    kept = np.unique(np.linspace(0, len(splits.splits) - 1, MAX_SLICES).astype(int))
    return Splits([splits.splits[at] for at in kept])


def base_splits(items: Sequence[Item], params: EvaluateParams) -> tuple[Slice, Splits]:
    """The splits that unknown workloads, thresholds, windows and pairs are measured on: at random; where traces are
    cut into windows, by time."""
    kind: Slice = "by_time" if any(item.is_window for item in items) else "random"
    return kind, splits_of(items, kind, params)


def _placed(parts: Sequence[Telemetry]) -> list[tuple[Telemetry, float]]:
    """Each piece of a trace and where it begins in it, in seconds: by its start, else one after the other."""
    ordered = sorted(parts, key=_number)
    starts = [piece.started_at for piece in ordered]
    if starts[0] is not None and all(start is not None for start in starts):
        first = min(start for start in starts if start is not None)
        return [(piece, (piece.started_at - first).total_seconds()) for piece in ordered if piece.started_at]
    placed, offset_s = [], 0.0
    for piece in ordered:
        placed.append((piece, offset_s))
        offset_s += piece.duration_s
    return placed


def _number(piece: Telemetry) -> int:
    number = PIECE.search(piece.run_id)
    return int(number.group(1)) if number else 0


def _windows(piece: Telemetry, trace: str, offset_s: float, params: WindowParams) -> tuple[list[Item], int]:
    """The windows of a piece, and how many of its samples are in none."""
    interval_s = piece.interval_s or 0.0
    width_s, step_s = params.width_s, max(params.step_s or params.width_s, interval_s or EDGE)
    at_s = piece.at_s - piece.at_s[0]
    n_windows = max(0, int(np.floor((piece.duration_s - width_s) / step_s + EDGE)) + 1)
    is_used = np.zeros(len(at_s), dtype=bool)
    items = []
    for start_s in step_s * np.arange(n_windows):
        inside = (at_s >= start_s - EDGE * interval_s) & (at_s < start_s + width_s - EDGE * interval_s)
        n_measured = int((~np.isnan(piece.values[inside])).any(axis=1).sum())
        n_expected = width_s / piece.interval_s if piece.interval_s else int(inside.sum())
        if n_measured < max(LEAST_SAMPLES, MIN_MEASURED * n_expected):
            continue
        is_used |= inside
        run = _window(piece, inside, float(start_s))
        items.append(Item(run, trace, offset_s + float(start_s), offset_s + float(start_s) + width_s, is_window=True))
    return items, int((~is_used).sum())


def _window(piece: Telemetry, inside: NDArray[np.bool_], start_s: float) -> Telemetry:
    at_s = piece.at_s[inside]
    begins = float(piece.at_s[0]) + start_s
    return replace(
        piece,
        run_id=f"{piece.run_id}@{start_s:g}s",
        at_s=at_s - begins,
        values=piece.values[inside],
        started_at=piece.started_at + timedelta(seconds=begins) if piece.started_at else None,
    )


def _random(items: Sequence[Item], params: EvaluateParams) -> Splits:
    """Of each workload with each input a share of the traces, drawn again for each repeat."""
    if any(item.is_window for item in items):
        return Splits([], "windows of a trace depend on each other and are split by time; see by_time")
    traces = _grouped(items, lambda item: item.trace)
    strata = _strata(items, traces)
    if all(len(names) < 2 for names in strata):
        return Splits([], "no workload has two runs; at least one to learn from and one to test are needed")
    splits = []
    for repeat in range(params.repeats):
        rng = np.random.default_rng([params.seed, repeat])
        drawn: set[str] = set()
        for names in strata:
            n_train = _n_first(len(names), TRAINING_SHARE)
            drawn |= {names[at] for at in rng.permutation(len(names))[:n_train]}
        is_train = np.array([item.trace in drawn for item in items])
        splits.append(_split(f"repeat {repeat + 1}", is_train, ~is_train))
    return Splits(splits)


def _strata(items: Sequence[Item], traces: dict[str, list[int]]) -> list[list[str]]:
    """The traces of each workload by input; inputs that ran once are one stratum."""
    by_input: dict[tuple[str, str | None], list[str]] = {}
    for trace, positions in traces.items():
        first = items[positions[0]]
        by_input.setdefault((first.workload, first.run.input), []).append(trace)
    strata: dict[tuple[str, str | None], list[str]] = {}
    for (workload, given), names in by_input.items():
        strata.setdefault((workload, given if len(names) > 1 else None), []).extend(names)
    return list(strata.values())


def _n_first(n: int, share: float) -> int:
    """How many of n to learn from: one is never tested, two and more are on both sides."""
    return 1 if n == 1 else min(max(round(share * n), 1), n - 1)


def _by_time(items: Sequence[Item], share: float) -> Splits:
    """The earlier part of each trace that was cut, and the earlier runs of each workload otherwise."""
    whole = [item for item in items if not item.is_window]
    untimed = sum(item.run.started_at is None for item in whole)
    if untimed:
        return Splits([], f"{untimed} of {len(whole)} runs do not say when they started (started_at)")
    is_train, is_test = np.zeros(len(items), dtype=bool), np.zeros(len(items), dtype=bool)
    # a trace that was cut is parted by itself, and all runs of a workload together
    units = _grouped(items, lambda item: (item.trace, True) if item.is_window else (item.workload, False))
    for (_, is_cut), places in units.items():
        part = _part_by_border if is_cut else _part_by_order
        is_train[places], is_test[places] = part([items[at] for at in places], share)
    if not is_test.any():
        return Splits([], "no workload has two runs; at least one to learn from and a later one are needed")
    return Splits([_split("by time", is_train, is_test)])


def _part_by_border(windows: Sequence[Item], share: float) -> tuple[list[bool], list[bool]]:
    """Windows of a trace that end before the border are to learn from, those that begin after it are tested."""
    border = _border(windows, share)
    return [window.to_s <= border + EDGE for window in windows], [window.from_s >= border - EDGE for window in windows]


def _border(windows: Sequence[Item], share: float) -> float:
    """When that share of what was measured is over, in seconds: gaps in a trace do not count."""
    stretches, reached = [], -math.inf
    for window in sorted(windows, key=lambda each: each.from_s):
        begins = max(window.from_s, reached)
        reached = max(window.to_s, reached)
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
    for item in runs:
        if (begins := item.run.started_at) is not None:
            starts[item.trace] = min(begins, starts.get(item.trace, begins))
    ordered = sorted(starts, key=lambda trace: (starts[trace], trace))
    earlier = set(ordered[: _n_first(len(ordered), share)])
    return [item.trace in earlier for item in runs], [item.trace not in earlier for item in runs]


def _by_label(items: Sequence[Item], label: Literal["round", "machine"]) -> Splits:
    """Each round, or machine, left out in turn; runs that name none are in no split."""
    names = [getattr(item.run, label) for item in items]
    known = sorted({str(name) for name in names if name is not None}, key=lambda name: (len(name), name))
    if len(known) < 2:
        reason = f"all runs are of {label} {known[0]!r}" if known else f"no run names its {label}"
        return Splits([], f"{reason}; at least two are needed")
    is_named = np.array([name is not None for name in names])
    splits = []
    for left_out in known:
        is_test = np.array([str(name) == left_out for name in names]) & is_named
        splits.append(_split(f"{label} {left_out}", ~is_test & is_named, is_test))
    return Splits(splits)


def _by_input(items: Sequence[Item]) -> Splits:
    """One input of each workload left out in turn: of two, trained on one and tested on the other.

    A workload with one input is to learn from in every split, and tested in none."""
    inputs: dict[str, list[str]] = {}
    for workload, places in _grouped(items, lambda item: item.workload).items():
        inputs[workload] = sorted({str(items[at].run.input) for at in places if items[at].run.input is not None})
    n_most = max(len(names) for names in inputs.values())
    if n_most < 2:
        return Splits([], "no workload has two inputs; one to learn from and one to test are needed")
    splits = []
    for turn in range(n_most):
        left_out = {workload: names[turn] for workload, names in inputs.items() if len(names) > max(1, turn)}
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
