"""Long traces cut into windows: the rows of an evaluation, each knowing which trace it is from and when.

Windows of one trace depend on each other, so they are told apart by time and never at random."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.evaluate.params import WindowParams
from tasks.workloads.telemetry import Telemetry

PIECE = re.compile(r"\+(\d+)$")  # the reader calls the pieces of a run that a gap cuts id+1, id+2, …
EDGE = 1e-6  # of an interval, against rounding where a window ends
LEAST_SAMPLES = 2


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


def trace_of(run_id: str) -> str:
    """The run that a piece `id+1`, `id+2`, … was cut from; the id itself for a whole run."""
    return PIECE.sub("", run_id)


def span_s(run: Telemetry) -> float:
    """Seconds that the samples stand for, the interval of the first included."""
    return float(run.at_s[-1] - run.at_s[0]) + (run.interval_s or 0.0)


def cut(runs: Sequence[Telemetry], params: WindowParams) -> Cutting:
    """Traces of more than `long_windows` windows as windows, shorter ones whole.

    A window is left out where less than `min_measured` of its samples have a value, and so is the rest at the end
    of a piece that fills no window."""
    pieces: dict[str, list[Telemetry]] = {}
    for run in runs:
        pieces.setdefault(trace_of(run.run_id), []).append(run)
    items: list[Item] = []
    n_left_over = 0
    for trace, own in pieces.items():
        is_long = sum(span_s(piece) for piece in own) > params.long_windows * params.width_s
        for piece, offset_s in _placed(own):
            if not is_long:
                items.append(Item(piece, trace, offset_s, offset_s + span_s(piece), is_window=False))
                continue
            found, rest = _windows(piece, trace, offset_s, params)
            items += found
            n_left_over += rest
    return Cutting(items, n_left_over)


def _placed(pieces: Sequence[Telemetry]) -> list[tuple[Telemetry, float]]:
    """Each piece of a trace and where it begins in it, in seconds: by its start, else one after the other."""
    ordered = sorted(pieces, key=_number)
    starts = [piece.started_at for piece in ordered]
    if starts[0] is not None and all(start is not None for start in starts):
        first = min(start for start in starts if start is not None)
        return [(piece, (piece.started_at - first).total_seconds()) for piece in ordered if piece.started_at]
    placed, offset_s = [], 0.0
    for piece in ordered:
        placed.append((piece, offset_s))
        offset_s += span_s(piece)
    return placed


def _number(piece: Telemetry) -> int:
    found = PIECE.search(piece.run_id)
    return int(found.group(1)) if found else 0


def _windows(piece: Telemetry, trace: str, offset_s: float, params: WindowParams) -> tuple[list[Item], int]:
    """The windows of a piece, and how many of its samples are in none."""
    interval_s = piece.interval_s or 0.0
    width_s, step_s = params.width_s, max(params.step_s or params.width_s, interval_s or EDGE)
    at_s = piece.at_s - piece.at_s[0]
    n_windows = max(0, int(np.floor((span_s(piece) - width_s) / step_s + EDGE)) + 1)
    is_used = np.zeros(len(at_s), dtype=bool)
    items = []
    for start_s in step_s * np.arange(n_windows):
        inside = (at_s >= start_s - EDGE * interval_s) & (at_s < start_s + width_s - EDGE * interval_s)
        if not _is_measured(piece, inside, width_s, params):
            continue
        is_used |= inside
        run = _window(piece, inside, float(start_s))
        items.append(Item(run, trace, offset_s + float(start_s), offset_s + float(start_s) + width_s, is_window=True))
    return items, int((~is_used).sum())


def _is_measured(piece: Telemetry, inside: NDArray[np.bool_], width_s: float, params: WindowParams) -> bool:
    n_measured = int((~np.isnan(piece.values[inside])).any(axis=1).sum())
    n_expected = width_s / piece.interval_s if piece.interval_s else int(inside.sum())
    return n_measured >= max(LEAST_SAMPLES, params.min_measured * n_expected)


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
