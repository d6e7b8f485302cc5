"""From samples as a file has them to runs that can be used: in order, as rates, on a grid, cut at gaps, long enough.

What cannot be used is refused with its reason, row by row: rows of the file are either behind a run or refused."""

from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.intake.files import all_refusals, refusals
from tasks.times import LAST_S
from tasks.workloads.labels import FileLabels
from tasks.workloads.reading_params import RegularParams
from tasks.workloads.regular import Grid, cut_at_gaps, nominal_interval, to_grid
from tasks.workloads.sampled import Reading, Sampled
from tasks.workloads.telemetry import FloatArray, Telemetry
from tasks.workloads.totals import as_rates, rate_of

MOST = 1e30  # of a value: beyond it sums over a run may overflow
SAME_TIME_S = 1e-9


@dataclass(frozen=True)
class Prepared:
    """A run that can be used, and what was done to it (see RUN_COLUMNS and COUNTER_COLUMNS)."""

    telemetry: Telemetry
    is_constant: NDArray[np.bool_]
    running_pct: NDArray[np.float64]
    n_rows: int
    n_missed: int
    n_resets: int
    is_resampled: bool
    refused: tuple[str, ...]
    is_simulated: bool
    place: int


def prepare(reading: Reading, about: FileLabels, params: RegularParams) -> tuple[list[Prepared], pd.DataFrame]:
    """The runs of a file that can be used, and all its refused rows in their order."""
    runs: list[Prepared] = []
    refused = [reading.refused]
    for sampled in reading.runs:
        kept, bad = _prepare_one(sampled, about, params)
        runs += kept
        refused += bad
    return runs, all_refusals(refused)


def _prepare_one(
    sampled: Sampled, about: FileLabels, params: RegularParams
) -> tuple[list[Prepared], list[pd.DataFrame]]:
    possible, impossible = _possible(sampled)
    if not len(possible.at_s):
        return [], impossible
    ordered, refused = _in_order(possible)
    refused = impossible + refused
    ordered, resets = _without_totals(ordered)
    interval_s = nominal_interval(ordered.at_s, params)
    pieces = cut_at_gaps(ordered.at_s, interval_s, params)
    whole_id = _run_id(ordered, about)
    kept = []
    for number, piece in enumerate(pieces, 1):
        run_id = f"{whole_id}+{number}" if len(pieces) > 1 else whole_id
        grid = to_grid(ordered.at_s[piece], ordered.values[piece], interval_s)  # noqa: PD011
        rows = ordered.places[(ordered.sample_of >= piece.start) & (ordered.sample_of < piece.stop)]
        if reason := _fault(grid, params):
            refused.append(refusals(rows, f"run {run_id}: {reason}", [""] * len(rows)))
        else:
            shift_s = float(grid.at_s[0]) if piece.start else 0.0
            kept.append(_run(ordered, grid, run_id, about.of(whole_id), rows, int(resets[piece].sum()), shift_s))
    return kept, refused


def _run_id(sampled: Sampled, about: FileLabels) -> str:
    if sampled.is_id:
        return sampled.part
    return f"{about.run_id}/{sampled.part}" if sampled.part else about.run_id


def _fault(grid: Grid, params: RegularParams) -> str:
    if len(grid.at_s) < params.min_samples:
        return f"{len(grid.at_s)} samples; expected at least {params.min_samples}"
    return "no value in it; expected numbers" if np.isnan(grid.values).all() else ""


def _in_order(sampled: Sampled) -> tuple[Sampled, list[pd.DataFrame]]:
    """The samples by time, the first of several at one time; the rows of the others are refused."""
    order = np.argsort(sampled.at_s, kind="stable")
    times = sampled.at_s[order]
    is_first = np.diff(times, prepend=-np.inf) > SAME_TIME_S
    if is_first.all() and (order == np.arange(len(order))).all():
        return sampled, []
    return _chosen(sampled, order[is_first], "a second sample at the same time; the first counts")


def _possible(sampled: Sampled) -> tuple[Sampled, list[pd.DataFrame]]:
    """The samples without those that lie outside of all calendars, or hold values that no counter reaches."""
    with np.errstate(invalid="ignore"):
        is_time = np.abs(sampled.at_s) <= LAST_S  # false for what is no number
        is_far = (np.abs(sampled.values) > MOST).any(axis=1)
    if (is_time & ~is_far).all():
        return sampled, []
    reason = f"a time beyond the year 9999, or a value beyond {MOST:g}; expected a sample of a counter"
    return _chosen(sampled, np.flatnonzero(is_time & ~is_far), reason)


def _chosen(sampled: Sampled, chosen: NDArray[np.int64], reason: str) -> tuple[Sampled, list[pd.DataFrame]]:
    """Some of the samples in this order; the rows of the others are refused."""
    position = np.full(len(sampled.at_s), -1)
    position[chosen] = np.arange(len(chosen))
    sample_of = position[sampled.sample_of]
    bad = sampled.places[sample_of < 0]
    refused = [refusals(bad, reason, [""] * len(bad))] if len(bad) else []
    ordered = replace(
        sampled,
        at_s=sampled.at_s[chosen],
        values=sampled.values[chosen],  # noqa: PD011
        places=sampled.places[sample_of >= 0],
        sample_of=sample_of[sample_of >= 0],
    )
    return ordered, refused


def _without_totals(sampled: Sampled) -> tuple[Sampled, NDArray[np.int64]]:
    """Running totals as rates, and how many values of each sample were lost to a reset.

    Where all counters are totals, the first sample has served its purpose with the second, and its rows count there."""
    is_total = sampled.is_total
    if not is_total.any():
        return sampled, np.zeros(len(sampled.at_s), dtype=np.int64)
    values = sampled.values.copy()  # noqa: PD011
    values[:, is_total], resets = as_rates(sampled.at_s, sampled.values[:, is_total])  # noqa: PD011
    counters = tuple(
        rate_of(one) if total else one for one, total in zip(sampled.counters, is_total.tolist(), strict=True)
    )
    first = int(len(values) > 1 and np.isnan(values[0]).all())
    sample_of = np.maximum(sampled.sample_of - first, 0)
    rates = replace(sampled, values=values[first:], counters=counters, at_s=sampled.at_s[first:], sample_of=sample_of)
    return rates, resets[first:]


def _run(
    sampled: Sampled,
    grid: Grid,
    run_id: str,
    labels: dict[str, str],
    rows: NDArray[np.int64],
    n_resets: int,
    shift_s: float,
) -> Prepared:
    """One piece as a run of its own; shift_s: its first sample, which a later piece counts from."""
    has_value = np.asarray((~np.isnan(grid.values)).any(axis=0))
    names = [counter.name for counter in sampled.counters]
    columns = [at for at in sorted(range(len(names)), key=names.__getitem__) if has_value[at]]
    empty = tuple(f"{names[at]}: no value in it" for at in np.flatnonzero(~has_value).tolist())
    values, told, started_at = grid.values[:, columns], sampled.labels | labels, sampled.started_at  # noqa: PD011
    telemetry = Telemetry(
        run_id=run_id,
        counters=tuple(sampled.counters[at] for at in columns),
        at_s=grid.at_s - shift_s,
        values=values,
        workload=told.get("workload"),
        input=told.get("input"),
        round=told.get("round"),
        machine=told.get("machine"),
        started_at=started_at + timedelta(seconds=shift_s) if started_at else None,
        interval_s=grid.interval_s,
        conditions=sampled.conditions,
    )
    return Prepared(
        telemetry=telemetry,
        is_constant=_are_constant(values),
        running_pct=sampled.running_pct[columns],
        n_rows=len(rows),
        n_missed=grid.n_missed,
        n_resets=n_resets,
        is_resampled=grid.is_resampled,
        refused=sampled.refused + empty,
        is_simulated=sampled.is_simulated,
        place=int(rows.min()),
    )


def _are_constant(values: FloatArray) -> NDArray[np.bool_]:
    """Which columns hold one value only, missing ones apart."""
    lowest: FloatArray = np.nanmin(values, axis=0)
    highest: FloatArray = np.nanmax(values, axis=0)
    return np.equal(lowest, highest)
