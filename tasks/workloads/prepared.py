"""What a reader finds in a file, as runs: labelled, at a regular spacing, totals as rates, cut at long gaps.

The interval of a run is the median of its spacings. Spacings near whole intervals leave the samples as they are; a
spacing of several intervals stands for samples that were missed, which become rows without values. If a fifth of the
spacings are that long, the interval itself is long (its 90 % quantile), and the run is resampled. A resampled value is
the mean over its interval, each sample holding for the time since the one before; where less than half of an interval
was measured it is missing. A gap of more than ten intervals cuts the run. A running total becomes a rate per second; it
was reset where it falls. Labels of a manifest win over those of the file's name, and these over its columns."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.intake.cells import LAST_S
from tasks.intake.files import all_refusals, refusals
from tasks.intake.labels import absolute, manifest, path_label, path_stem
from tasks.workloads.params import ReadParams, RegularParams
from tasks.workloads.telemetry import Conditions, Counter, FloatArray, Telemetry

TIMESTAMP = pa.timestamp("us")  # UTC, without a time zone
VALUES = pa.list_(pa.float64())
NAMES = pa.list_(pa.string())
CONDITIONS = tuple(
    (field.name, pa.float64() if "float" in str(field.type) else pa.string()) for field in fields(Conditions)
)

RUN_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "run_id": (pa.string(), "name of the run within its source"),
    "workload": (pa.string(), "label: what ran; missing where nobody says"),
    "input": (pa.string(), "label: what it ran on"),
    "round": (pa.string(), "label: which repetition it was"),
    "machine": (pa.string(), "label: where it ran"),
    "started_at": (TIMESTAMP, "time that at_s counts from, UTC; missing where the file does not say"),
    "interval_s": (pa.float64(), "nominal seconds between two samples"),
    "n_samples": (pa.int64(), "samples of the run, missed ones included"),
    "duration_s": (pa.float64(), "seconds that the samples span, the interval of the first included"),
    "n_rows": (pa.int64(), "rows of the file that the samples were made of"),
    "n_missed": (pa.int64(), "samples that the file lacks: rows without a value that stand for them"),
    "n_resets": (pa.int64(), "values left out because a running total fell, over all counters"),
    "is_resampled": (pa.bool_(), "true where irregular samples were brought to a regular spacing"),
    "refused_columns": (NAMES, "columns of the file that are no counters of this run, each with the reason"),
    "at_s": (VALUES, "time of each sample, seconds after started_at, rising"),
    "is_simulated": (pa.bool_(), "true for samples that were drawn, not measured"),
    "processes": (
        pa.string(),
        "JSON object: shares of the processor time that the processes of its group took, by the name of their program; "
        "missing where nobody noted them",
    ),
    "conditions": (
        pa.struct(CONDITIONS),
        "what else was at work, and the shares of the cores; missing where nobody says",
    ),
}
COUNTER_COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "run_id": (pa.string(), "run that it belongs to (workloads.runs)"),
    "counter": (pa.string(), "name: group before a dot, unit at the end where it has one"),
    "unit": (pa.string(), "unit of the values; of a rate, what there is of it per second; empty where unknown"),
    "kind": (pa.string(), "hardware, software or unknown: what counted it"),
    "is_rate": (pa.bool_(), "true: per second over the interval that ended at the sample; false: read at the sample"),
    "scope": (pa.string(), "machine, or workload: its own control group"),
    "is_constant": (pa.bool_(), "true where all values of the run are equal: kept, and marked"),
    "running_pct": (pa.float64(), "share of the time that perf counted it (multiplexing), mean, in percent"),
    "samples": (VALUES, "its values, in the order of at_s of the run; missing ones stay missing"),
}
PLACE = pa.field("place", pa.int64())  # of the run in the file: its first row; travels with the rows until ingest
RUNS_SCHEMA = pa.schema([*((name, kind) for name, (kind, _) in RUN_COLUMNS.items()), PLACE])
COUNTERS_SCHEMA = pa.schema([*((name, kind) for name, (kind, _) in COUNTER_COLUMNS.items()), PLACE])
LABELS = ("workload", "input", "round", "machine")
KEY_COLUMNS = ("run_id", *LABELS, "started_at", "at_s", "timestamp")  # of a table of samples; all others are counters


EXPECTED = "the columns path and one of " + ", ".join(LABELS)
ENDINGS = (".gz", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".sys", ".log", ".out")
TOTAL = re.compile(r"_total(?=\.|$)")
RISING_SHARE = 0.95  # of the steps that change a total; the others are resets
LONG = 1.5  # intervals: a longer spacing may hide a missed sample
LONG_QUANTILE = 0.9
JITTER = 0.25  # of an interval: spacings so close to whole intervals are regular
IRREGULAR_SHARE = 0.05  # of the spacings: more that are not regular, and the run is resampled
MIXED_SHARE = 0.2  # of the spacings: more long ones, and the interval itself is long
LEAST_COVERED = 0.5  # of an interval: a resampled value of which less was measured is missing
EDGE = 1e-9  # of an interval, against rounding where a grid ends
MOST = 1e30  # of a value: beyond it sums over a run may overflow
SAME_TIME_S = 1e-9


@dataclass(frozen=True)
class FileRun:
    """One run as the file has it.

    part: what tells the run from others of the file, "" where there is one; is_id: part is the run's whole id.
    labels: those of workload, input, round and machine that the file gives.
    at_s: shape (n_samples,), seconds after started_at, in any order. values: (n_samples, n_counters), NaN: missing.
    is_total: (n_counters,), true for running totals, which are not rates yet.
    places: (n_rows,), the rows of the file from 1; sample_of: (n_rows,), the sample that each row is of.
    running_pct: (n_counters,), share of the time that perf counted, NaN elsewhere. refused: columns with reasons."""

    counters: tuple[Counter, ...]
    at_s: FloatArray
    values: FloatArray
    is_total: NDArray[np.bool_]
    places: NDArray[np.int64]
    sample_of: NDArray[np.int64]
    running_pct: FloatArray
    part: str = ""
    is_id: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    started_at: datetime | None = None
    refused: tuple[str, ...] = ()
    is_simulated: bool = False
    conditions: Conditions | None = None
    processes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """One file: its runs, and the rows that were refused (place, reason, raw); understood: of its columns, in words."""

    runs: list[FileRun]
    refused: pd.DataFrame
    understood: tuple[str, ...] = ()


def row_per_sample(counters: tuple[Counter, ...], at_s: FloatArray, values: FloatArray, **more: Any) -> FileRun:
    """A run of a table in which each sample is one row; `places` must be among the keywords."""
    n_samples, n_counters = values.shape
    given: dict[str, Any] = {
        "is_total": np.zeros(n_counters, dtype=bool),
        "sample_of": np.arange(n_samples, dtype=np.int64),
        "running_pct": np.full(n_counters, np.nan),
    }
    return FileRun(counters, at_s, values, **(given | more))


@dataclass(frozen=True)
class FileLabels:
    """What is known of the runs of a file from outside of it.

    run_id: for a file that names none. labels: of every run of the file; by_run: of single ones, by run id."""

    run_id: str
    labels: dict[str, str] = field(default_factory=dict)
    by_run: dict[str, dict[str, str]] = field(default_factory=dict)

    def of(self, run_id: str) -> dict[str, str]:
        """The labels of one run."""
        return self.labels | self.by_run.get(run_id, {})


def file_labels(path: str, params: ReadParams) -> FileLabels:
    """The run id and labels of a file: folder and name, --label-from, then the manifest, which wins.

    Raises BadSetting for another --label-from, BadInput for a manifest that cannot be used."""
    whole = absolute(path)
    workload = path_label(whole, params.label_from, ENDINGS)
    labels = {"workload": workload} if workload is not None else {}
    run_id = "/".join(filter(None, (PurePosixPath(whole).parent.name, path_stem(whole, ENDINGS))))
    if not params.manifest:
        return FileLabels(run_id, labels)
    entries = [entry for entry in manifest(params.manifest, EXPECTED) if entry["path"] == whole]
    by_run = {entry["run_id"]: _labels(entry) for entry in entries if entry.get("run_id")}
    of_all = [entry for entry in entries if not entry.get("run_id")]
    return FileLabels(run_id, labels | (_labels(of_all[-1]) if of_all else {}), by_run)


def _labels(entry: dict[str, str]) -> dict[str, str]:
    return {name: entry[name] for name in LABELS if entry.get(name)}


def are_totals(names: list[str], values: FloatArray) -> NDArray[np.bool_]:
    """Which columns are running totals: those called `…_total` that change, and rise in 95 % of the changes.

    values: (n_samples, n_counters). A constant `disk_total` is a size and no running total."""
    is_named = np.array([name.rpartition(".")[2].endswith("_total") for name in names], dtype=bool)
    if not is_named.any():
        return is_named
    steps = np.diff(values, axis=0)
    n_up, n_changed = (steps > 0).sum(axis=0), ((steps != 0) & ~np.isnan(steps)).sum(axis=0)
    return np.asarray(is_named & (n_changed > 0) & (n_up >= RISING_SHARE * n_changed))


def as_rates(at_s: FloatArray, values: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Rates per second over the interval that ended at each sample, and how many of each were lost to a reset (n,).

    at_s: (n,), strictly rising; values: (n, k), totals. The first sample has no rate; one whose total is below
    the one before (the program began again) has none either; nor has one beside a missing total."""
    rates, resets = np.full(values.shape, np.nan), np.zeros(len(at_s), dtype=np.int64)
    if len(at_s) < 2:
        return rates, resets
    steps = np.diff(values, axis=0)
    is_reset = steps < 0
    rates[1:] = np.where(is_reset, np.nan, steps / np.diff(at_s)[:, None])
    resets[1:] = is_reset.sum(axis=1)
    return rates, resets


def rate_of(counter: Counter) -> Counter:
    """The counter of the rate of a running total: the same name without `_total`."""
    return replace(counter, name=TOTAL.sub("", counter.name, count=1), is_rate=True)


@dataclass(frozen=True)
class Grid:
    """Samples at a regular spacing.

    at_s: (n,), rising; values: (n, k); n_missed: rows that stand for samples that were missed."""

    at_s: FloatArray
    values: FloatArray
    interval_s: float | None
    n_missed: int
    is_resampled: bool


def nominal_interval(at_s: FloatArray, params: RegularParams) -> float | None:
    """Seconds between samples as they were meant; None for a single sample. at_s: (n,), strictly rising."""
    if params.interval_s:
        return params.interval_s
    if len(at_s) < 2:
        return None
    spacing = np.diff(at_s)
    median = float(np.median(spacing))
    if (spacing > LONG * median).mean() > MIXED_SHARE:
        return float(np.quantile(spacing, LONG_QUANTILE))
    return median


def cut_at_gaps(at_s: FloatArray, interval_s: float | None, params: RegularParams) -> list[slice]:
    """The pieces of a run between gaps of more than max_gap_intervals, in order. at_s: (n,), strictly rising."""
    if interval_s is None or len(at_s) < 2:
        return [slice(0, len(at_s))]
    spacing = np.diff(at_s)
    usual_s = max(interval_s, float(np.median(spacing)))  # a shorter interval may have been asked for
    cuts = np.flatnonzero(spacing > (params.max_gap_intervals + 0.5) * usual_s) + 1
    edges = [0, *cuts.tolist(), len(at_s)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def to_grid(at_s: FloatArray, values: FloatArray, interval_s: float | None) -> Grid:
    """One piece of a run, without gaps that would cut it, at a regular spacing.

    at_s: (n,), strictly rising seconds; values: (n, k), NaN: missing. Left alone are samples whose spacings are near
    whole intervals, but for a share of IRREGULAR_SHARE; their times stay as measured."""
    if interval_s is None or len(at_s) < 2:
        return Grid(at_s, values, interval_s, 0, is_resampled=False)
    steps = np.diff(at_s) / interval_s
    whole = np.maximum(1, np.rint(steps)).astype(np.int64)
    is_off = np.abs(steps - whole) > JITTER
    is_mixed = (steps > LONG).mean() > MIXED_SHARE
    if is_off.mean() > IRREGULAR_SHARE or is_mixed:
        return _resampled(at_s, values, interval_s)
    return _with_missed(at_s, values, interval_s, np.where(is_off, 1, whole))


def _with_missed(at_s: FloatArray, values: FloatArray, interval_s: float, whole: NDArray[np.int64]) -> Grid:
    row_of = np.concatenate([[0], np.cumsum(whole)])
    n_rows = int(row_of[-1]) + 1
    if n_rows == len(at_s):
        return Grid(at_s, values, interval_s, 0, is_resampled=False)
    filled = np.full((n_rows, values.shape[1]), np.nan)
    filled[row_of] = values
    times = np.interp(np.arange(n_rows), row_of, at_s)
    return Grid(times, filled, interval_s, n_rows - len(at_s), is_resampled=False)


def _resampled(at_s: FloatArray, values: FloatArray, interval_s: float) -> Grid:
    """Means over intervals that end at at_s[0], at_s[0] + interval_s, …; each sample holds since the one before."""
    edges = np.concatenate([[at_s[0] - interval_s], at_s])
    held_s = np.diff(edges)
    n_rows = int(np.floor((at_s[-1] - at_s[0]) / interval_s + EDGE)) + 1
    grid = at_s[0] + interval_s * np.arange(-1, n_rows)
    resampled = np.empty((n_rows, values.shape[1]))
    for column in range(values.shape[1]):
        samples = values[:, column]
        is_known = ~np.isnan(samples)
        known_s = _integral(edges, np.where(is_known, held_s, 0.0), grid)
        area = _integral(edges, np.where(is_known, samples, 0.0) * held_s, grid)
        is_covered = known_s >= LEAST_COVERED * interval_s
        resampled[:, column] = np.where(is_covered, area / np.where(is_covered, known_s, 1.0), np.nan)
    is_missed = np.isnan(resampled).all(axis=1)
    return Grid(grid[1:], resampled, interval_s, int(is_missed.sum()), is_resampled=True)


def _integral(edges: FloatArray, parts: FloatArray, grid: FloatArray) -> FloatArray:
    """The integral over each interval of the grid of a function that is constant between the edges."""
    total = np.concatenate([[0.0], np.cumsum(parts)])
    return np.asarray(np.diff(np.interp(grid, edges, total)))


@dataclass(frozen=True)
class PreparedRun:
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


def prepare(reading: Reading, about: FileLabels, params: RegularParams) -> tuple[list[PreparedRun], pd.DataFrame]:
    """The runs of a file that can be used, and all its refused rows in their order."""
    runs: list[PreparedRun] = []
    refused = [reading.refused]
    for sampled in reading.runs:
        kept, bad = _prepare_run(sampled, about, params)
        runs += kept
        refused += bad
    return runs, all_refusals(refused)


def _prepare_run(
    sampled: FileRun, about: FileLabels, params: RegularParams
) -> tuple[list[PreparedRun], list[pd.DataFrame]]:
    possible, impossible = _possible(sampled)
    if not len(possible.at_s):
        return [], impossible
    ordered, refused = _in_order(possible)
    refused = impossible + refused
    ordered, resets = _without_totals(ordered)
    interval_s = nominal_interval(ordered.at_s, params)
    slices = cut_at_gaps(ordered.at_s, interval_s, params)
    whole_id = ordered.part if ordered.is_id else "/".join(filter(None, (about.run_id, ordered.part)))
    kept = []
    for number, piece in enumerate(slices, 1):
        run_id = f"{whole_id}+{number}" if len(slices) > 1 else whole_id
        grid = to_grid(ordered.at_s[piece], ordered.values[piece], interval_s)  # noqa: PD011
        rows = ordered.places[(ordered.sample_of >= piece.start) & (ordered.sample_of < piece.stop)]
        if reason := _fault(grid, params):
            refused.append(refusals(rows, f"run {run_id}: {reason}", [""] * len(rows)))
        else:
            shift_s = float(grid.at_s[0]) if piece.start else 0.0
            kept.append(_run(ordered, grid, run_id, about.of(whole_id), rows, int(resets[piece].sum()), shift_s))
    return kept, refused


def _fault(grid: Grid, params: RegularParams) -> str:
    if len(grid.at_s) < params.min_samples:
        return f"{len(grid.at_s)} samples; expected at least {params.min_samples}"
    return "no value in it; expected numbers" if np.isnan(grid.values).all() else ""


def _in_order(sampled: FileRun) -> tuple[FileRun, list[pd.DataFrame]]:
    """The samples by time, the first of several at one time; the rows of the others are refused."""
    order = np.argsort(sampled.at_s, kind="stable")
    times = sampled.at_s[order]
    is_first = np.diff(times, prepend=-np.inf) > SAME_TIME_S
    if is_first.all() and (order == np.arange(len(order))).all():
        return sampled, []
    reason = (
        "a second sample at the same time; the first counts (of several series: --map run_id=COLUMN tells them apart)"
    )
    return _keep_samples(sampled, order[is_first], reason)


def _possible(sampled: FileRun) -> tuple[FileRun, list[pd.DataFrame]]:
    """The samples without those that lie outside of all calendars, or hold values that no counter reaches."""
    with np.errstate(invalid="ignore"):
        is_time = np.abs(sampled.at_s) <= LAST_S  # false for what is no number
        is_far = (np.abs(sampled.values) > MOST).any(axis=1)
    if (is_time & ~is_far).all():
        return sampled, []
    reason = f"a time beyond the year 9999, or a value beyond {MOST:g}; expected a sample of a counter"
    return _keep_samples(sampled, np.flatnonzero(is_time & ~is_far), reason)


def _keep_samples(sampled: FileRun, kept: NDArray[np.int64], reason: str) -> tuple[FileRun, list[pd.DataFrame]]:
    """Some of the samples in this order; the rows of the others are refused."""
    position = np.full(len(sampled.at_s), -1)
    position[kept] = np.arange(len(kept))
    sample_of = position[sampled.sample_of]
    bad = sampled.places[sample_of < 0]
    refused = [refusals(bad, reason, [""] * len(bad))] if len(bad) else []
    ordered = replace(
        sampled,
        at_s=sampled.at_s[kept],
        values=sampled.values[kept],  # noqa: PD011
        places=sampled.places[sample_of >= 0],
        sample_of=sample_of[sample_of >= 0],
    )
    return ordered, refused


def _without_totals(sampled: FileRun) -> tuple[FileRun, NDArray[np.int64]]:
    """Running totals as rates, and how many values of each sample were lost to a reset.

    Where all counters are totals, the first sample has served its purpose with the second, and its rows count there."""
    is_total = sampled.is_total
    if not is_total.any():
        return sampled, np.zeros(len(sampled.at_s), dtype=np.int64)
    values = sampled.values.copy()  # noqa: PD011
    values[:, is_total], resets = as_rates(sampled.at_s, sampled.values[:, is_total])  # noqa: PD011
    counters = tuple(
        rate_of(counter) if total else counter
        for counter, total in zip(sampled.counters, is_total.tolist(), strict=True)
    )
    first = int(len(values) > 1 and np.isnan(values[0]).all())
    sample_of = np.maximum(sampled.sample_of - first, 0)
    rates = replace(sampled, values=values[first:], counters=counters, at_s=sampled.at_s[first:], sample_of=sample_of)
    return rates, resets[first:]


def _run(
    sampled: FileRun,
    grid: Grid,
    run_id: str,
    labels: dict[str, str],
    rows: NDArray[np.int64],
    n_resets: int,
    shift_s: float,
) -> PreparedRun:
    """One piece as a run of its own; shift_s: its first sample, which a later piece counts from."""
    has_value = np.asarray((~np.isnan(grid.values)).any(axis=0))
    names = [counter.name for counter in sampled.counters]
    columns = [at for at in sorted(range(len(names)), key=names.__getitem__) if has_value[at]]
    empty = tuple(f"{names[at]}: no value in it" for at in np.flatnonzero(~has_value).tolist())
    values, started_at = grid.values[:, columns], sampled.started_at  # noqa: PD011
    about: dict[str, Any] = {name: (sampled.labels | labels).get(name) for name in LABELS}
    telemetry = Telemetry(
        run_id=run_id,
        counters=tuple(sampled.counters[at] for at in columns),
        at_s=grid.at_s - shift_s,
        values=values,
        **about,
        started_at=started_at + timedelta(seconds=shift_s) if started_at else None,
        interval_s=grid.interval_s,
        conditions=sampled.conditions,
        processes=sampled.processes,
    )
    return PreparedRun(
        telemetry=telemetry,
        is_constant=np.equal(np.nanmin(values, axis=0), np.nanmax(values, axis=0)),
        running_pct=sampled.running_pct[columns],
        n_rows=len(rows),
        n_missed=grid.n_missed,
        n_resets=n_resets,
        is_resampled=grid.is_resampled,
        refused=sampled.refused + empty,
        is_simulated=sampled.is_simulated,
        place=int(rows.min()),
    )
