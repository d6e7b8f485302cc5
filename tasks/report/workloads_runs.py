"""Runs of telemetry as figures show them: counters over time with their change points, phases side by side, and two
runs at their best offset (Hossain et al., Figures 2 and 4, V-D)."""

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import NotFound
from tasks.quantities import number
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Figure, plot, records
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import data_version
from tasks.workloads.cut_runs import RunPhases, fetch_cut_runs, movement, pick_counters
from tasks.workloads.evaluate.distances import match_phases
from tasks.workloads.telemetry import OWN_PREFIX, FloatArray

SHOWN, PER_FAMILY = 14, 3  # counters of phases side by side, and of one family
ALIGNED, ALIGNED_PER_FAMILY = 10, 2  # the same of two runs at their best offset
MOST_PAIRS, MOST_POINTS, MOST_PHASES = 6, 400, 1_200
PER_SECOND = {"core-seconds": "cores", "s": "s a second", "": "a second"}
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
NO_PHASES = "No run has been cut into phases yet."
SERIES_WORDS = (
    "Dots are samples, the line the mean of each phase. A dashed line is a change point; the numbers of the "
    "chart say how probable it is. Shown are the counters that moved most, of each family one before a second."
)
SIGNED = (
    "Levels count from the mean over all runs that were learned from, in their deviations: orange above, blue below, "
    "stronger the further away, empty where it is as usual"
)
UNSIGNED = (
    "Levels are distances from the counter's own mean over its run, in its deviations (equation 7): orange far from "
    "it, stronger the further, empty near it"
)
ALIGNED_WORDS = (
    "Two runs phase by phase: the one with fewer phases lies where it fits best in the other. Of each counter the "
    "longer run stands above the shorter; where the colours agree the runs are alike."
)
SAMPLES = """
SELECT counter, unit, is_rate, samples FROM workloads.counters
WHERE source = $source AND run_id = $run_id AND list_contains($names, counter) ORDER BY counter
"""


def _by_family(names: Sequence[str]) -> list[str]:
    """Counters of one family together, that of the workload's own group after that of the machine."""
    return sorted(names, key=lambda name: (name.removeprefix(OWN_PREFIX), name.startswith(OWN_PREFIX)))


def short_number(value: float) -> str:
    """About three significant digits with a prefix: 950, 12.3 k, 4.5 M; never an exponent; a dash for a missing one."""
    for size, prefix in PREFIXES:
        if abs(value) >= size:
            return f"{number(value / size)} {prefix}"
    return number(value)


def unit_words(unit: str, *, is_rate: bool) -> str:
    """The unit of the values: B of a rate is B/s, core-seconds a second are cores; a gauge without one has none."""
    return PER_SECOND.get(unit, f"{unit}/s") if is_rate else unit


def series_figure(
    connection: Connection, source: str, run: RunPhases, counters: int | Sequence[str], name: str = "series"
) -> Figure:
    """Figure 2: a run over time with its change points; counters: their names, or how many of those that moved most,
    at most one of each family. Raises NotFound for a counter that the run lacks."""
    names = list(counters) if not isinstance(counters, int) else (
        pick_counters(run.counters, movement(run.levels, run.bounds), counters) or list(run.counters[:counters])
    )  # fmt: skip
    values = {"source": source, "run_id": run.run_id, "names": names}
    by_counter = {str(row["counter"]): row for row in records(connection.execute(SAMPLES, values).df())}
    if not isinstance(counters, int) and (lacking := set(names) - set(by_counter)):
        raise NotFound(f"run {run.run_id!r} has no counter {sorted(lacking)[0]!r}; see workloads.counters")
    at_s = np.asarray(run.about["at_s"], dtype=float)
    drawn = [
        _series(by_counter[counter], run, at_s, MOST_POINTS // max(len(names) // 2, 1))
        for counter in names
        if counter in by_counter
    ]
    n_counters = int(run.about["n_counters"])
    evidence = f"{run.title}; n = {len(at_s):,} samples of one run; {len(drawn)} of {n_counters:,} counters"
    rows = pd.concat(drawn, ignore_index=True) if drawn and len(at_s) else None
    axes = Axis("second", "seconds after the start"), Axis("value", "", "count")
    return plot(name, "When a run changes", SERIES_WORDS, evidence, charts.strips, rows, *axes, "counter",
                level="phase_mean", change="change", nothing=NO_PHASES)  # fmt: skip


def _series(about: Mapping[str, Any], run: RunPhases, at_s: FloatArray, most: int) -> pd.DataFrame:
    """At most so many samples of a counter with the means of their phases, and at each change its time."""
    values: FloatArray = np.ma.asarray(about["samples"], dtype=float).filled(np.nan)  # missing samples come masked
    changes = run.rows[(run.rows["counter"] == about["counter"]) & (run.rows["start_sample"] > 0)]
    starts = changes["start_sample"].to_numpy(dtype=np.int64)
    edges = np.r_[0, starts, len(values)].astype(int)
    levels = np.concatenate([np.full(b - a, _mean(values[a:b])) for a, b in pairwise(edges)])
    kept, seen = thinned(values, most), {}
    for at, probability in zip(starts, changes["probability"].to_numpy(dtype=float), strict=True):
        seen[int(kept[np.abs(kept - at).argmin()])] = (at_s[int(at)], probability)
    marks = [seen.get(int(place), (np.nan, np.nan)) for place in kept]
    unit = unit_words(str(about["unit"]), is_rate=bool(about["is_rate"]))
    rows = pd.DataFrame({"counter": f"{about['counter']}{f', {unit}' if unit else ''}", "second": at_s[kept]})
    rows = rows.assign(value=values[kept], phase_mean=levels[kept])
    return rows.assign(change=[at for at, _ in marks], probability=[p for _, p in marks])


def _mean(values: FloatArray) -> float:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else float("nan")


def thinned(values: FloatArray, most: int) -> NDArray[np.int64]:
    """Places of at most `most` samples that look the same: of each slice of time its lowest and highest one."""
    if len(values) <= most:
        return np.arange(len(values))
    keep: list[int] = []
    for part in np.array_split(np.arange(len(values)), most // 2):
        there = part[np.isfinite(values[part])]
        ends = (there[values[there].argmin()], there[values[there].argmax()]) if len(there) else (part[0],)
        keep += sorted({int(place) for place in ends})
    return np.array(keep)


def phases_figure(runs: Sequence[RunPhases], n_rows: int = SHOWN) -> Figure:
    """Figure 4: phases of runs beneath each other, by those of their common counters whose levels lie furthest apart
    over all their phases."""
    if not runs:
        return Figure("phases", "Phases side by side", NO_PHASES, "n = 0")
    names = sorted(set.intersection(*(set(run.counters) for run in runs)))
    common = [run.on(names) for run in runs]
    levels = [np.concatenate([run.levels[at] for run in common]) for at in range(len(names))]
    lengths = [np.concatenate([np.diff(run.bounds[at]) for run in common]) for at in range(len(names))]
    moved = movement(levels, [np.r_[0, np.cumsum(length)] for length in lengths])
    shown = _by_family(pick_counters(names, moved, n_rows, per_family=PER_FAMILY))
    drawn = [run.on(shown) for run in common]
    rows = [
        {"run": run.title, "counter": name, "second": start * run.interval_s, "end": stop * run.interval_s,
         "level": level}
        for run in drawn
        for name, bounds, run_levels in zip(run.counters, run.bounds, run.levels, strict=True)
        for (start, stop), level in zip(pairwise(bounds), run_levels, strict=True)
    ]  # fmt: skip
    scale = SIGNED if any((level < 0).any() for run in drawn for level in run.levels) else UNSIGNED
    lasting = pd.DataFrame(rows)
    if len(lasting) > MOST_PHASES:  # those that last longest
        lasting = lasting.loc[(lasting["end"] - lasting["second"]).nlargest(MOST_PHASES).index.sort_values()]
    words = f"Each row is a counter, each bar one of its phases, as long as it lasted. {scale}. Shown are the counters "
    n = f"n = {len(runs)} run{'' if len(runs) == 1 else 's'}"
    return plot(
        "phases", "Phases side by side", f"{words}that differ most.",
        f"{n}; {len(shown)} of {len(names):,} counters, those that differ most", charts.spans,
        lasting, Axis("second", "seconds after the start"), "counter", level="level", panel="run",
        row_px=15, nothing="The runs have no counter in common that varies.",
    )  # fmt: skip


def alignment_figure(first_run: RunPhases, other: RunPhases | None, name: str = "alignment") -> Figure:
    """Two runs on their common counters, at the offset with the smallest distance."""
    names = sorted(set(first_run.counters) & set(other.counters)) if other else []
    nothing = Figure(name, "How alike two runs are", "There are no two runs with phases to compare.", "n = 0")
    if other is None or not names:
        return nothing
    longer, shorter = sorted((first_run.on(names), other.on(names)), key=lambda run: -len(run.over))
    levels = np.concatenate([longer.over, shorter.over])
    match = match_phases(longer.over, shorter.over, "dtw")
    moved = movement(list(levels.T), [np.arange(len(levels) + 1)] * len(names))
    shown = _by_family(pick_counters(names, moved, ALIGNED, per_family=ALIGNED_PER_FAMILY))
    if not shown:
        return nothing
    rows = [
        {"counter": f"{counter} · {which}", "phase": first + phase, "end": first + phase + 1, "level": level,
         "run": run.title}
        for counter in shown
        for run, first, which in ((longer, 0, "longer"), (shorter, match.offset, "shorter"))
        for phase, level in enumerate(run.over[:, names.index(counter)])
    ]  # fmt: skip
    words = f"{ALIGNED_WORDS} Distance {short_number(match.distance)} (DTW, manhattan cost), offset {match.offset}."
    n = len(longer.shared) - 1
    met = f"n = {len(match.phases)} of {n} phase{'' if n == 1 else 's'} compared on {len(names):,} counters"
    return plot(name, "How alike two runs are", words, met, charts.spans, pd.DataFrame(rows).head(MOST_PHASES),
                Axis("phase", "phase of the longer run"), "counter", level="level", row_px=14)  # fmt: skip


def run_figures(
    warehouse: Warehouse, source: str, run_ids: Sequence[str], counters: Sequence[str], n_counters: int
) -> tuple[list[Figure], str]:
    """Each run over time, all of them beneath each other, and each two at their best offset; and the data version.

    counters: over time; none: the n_counters that moved most. Raises NotFound for a run that is not there or has not
    been cut into phases, or a counter that a run lacks."""
    with reading(warehouse) as connection:
        runs = fetch_cut_runs(connection, source, run_ids)
        if missing := [run_id for run_id in run_ids if run_id not in {run.run_id for run in runs}]:
            raise NotFound(
                f"run {missing[0]!r} of source {source!r}: not there, or not cut into phases yet; "
                f"run 'whorl workloads fingerprint --source {source}' first"
            )
        figures = [
            series_figure(connection, source, run, counters or n_counters, f"series-{at}")
            for at, run in enumerate(runs, 1)
        ]
        version = data_version(connection, "workloads", source)
    pairs = list(combinations(runs, 2))[:MOST_PAIRS]
    figures += [phases_figure(runs), *(alignment_figure(*pair, f"alignment-{at}") for at, pair in enumerate(pairs, 1))]
    return figures, version
