"""Runs of telemetry as figures show them: counters over time with their change points, phases side by side, and two
runs at their best offset (Hossain et al., Figures 2 and 4, V-D)."""

import re
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import NotFound
from tasks.quantities import number
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Figure, figure
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version
from tasks.workloads.evaluate.distances import Measure, match_phases
from tasks.workloads.identify.phases import STATISTICS, Bounds, Fingerprint
from tasks.workloads.telemetry import OWN_PREFIX, FloatArray

N_ROWS, PER_FAMILY = 14, 3  # counters of phases side by side, and of one family
ALIGNED_ROWS, ALIGNED_PER_FAMILY = 10, 2
MOST_PAIRS = 6
PER_SECOND = {"core-seconds": "cores", "s": "s a second", "": "a second"}
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
NO_PHASES = "No run has been cut into phases yet"
SIGNED = (
    "Levels count from the mean over all runs that were learned from, in their deviations: orange above, blue below, "
    "stronger the further away, empty where it is as usual"
)
UNSIGNED = (
    "Levels are distances from the counter's own mean over its run, in its deviations (equation 7): orange far from "
    "it, stronger the further, empty near it"
)
FAMILY = re.compile(r"[._]")


def family_of(name: str) -> str:
    """What a counter is about: cpu, disk, net; that of the workload's own group is of the same family."""
    return FAMILY.split(name.removeprefix(OWN_PREFIX), maxsplit=1)[0]


def movement(levels: Sequence[FloatArray], bounds: Sequence[Bounds]) -> FloatArray:
    """How far the phases of each counter lie apart: the deviation of their levels, weighed by samples: (n_counters,).

    levels: of each counter (n_phases,), all on one scale; bounds: where its phases begin, and the end."""
    return np.array([_deviation(one, np.diff(edges)) for one, edges in zip(levels, bounds, strict=True)])


def _deviation(levels: FloatArray, weights: FloatArray) -> float:
    there = np.isfinite(levels)
    if not there.any():
        return 0.0
    mean = np.average(levels[there], weights=weights[there])
    return float(np.sqrt(np.average((levels[there] - mean) ** 2, weights=weights[there])))


def pick_counters(names: Sequence[str], moved: FloatArray, n: int, *, per_family: int = 1) -> list[int]:
    """Places of the n counters that moved most, at most so many of a family; then the rest of those that moved.

    Ties go to the name. Returns them with the most moved first; fewer than n where fewer moved."""
    order = sorted((place for place in range(len(names)) if moved[place] > 0), key=lambda p: (-moved[p], names[p]))
    taken: Tally[str] = Tally()
    first: list[int] = []
    others: list[int] = []
    for place in order:
        family = family_of(names[place])
        taken[family] += 1
        (first if taken[family] <= per_family else others).append(place)
    chosen = (first + others)[:n]
    return sorted(chosen, key=lambda place: (-moved[place], names[place]))


MEAN = STATISTICS.index("mean")


@dataclass(frozen=True)
class AboutRun:
    """What a run was of. interval_s: seconds between samples, None where nobody says."""

    run_id: str
    workload: str | None
    input: str | None
    interval_s: float | None


@dataclass(frozen=True)
class RunPhases:
    """One run. bounds, levels: of each counter where its phases begin (samples), and their means on the learned scale.

    workload_bounds, workload_levels: phases of the workload (V-D), and the level of every counter in each,
    (n_phases, n_counters). vectors: what distances between phases are computed of, (n_phases, d)."""

    run_id: str
    workload: str | None
    input: str | None
    interval_s: float
    counters: tuple[str, ...]
    bounds: tuple[Bounds, ...]
    levels: tuple[FloatArray, ...]
    workload_bounds: Bounds
    workload_levels: FloatArray
    vectors: FloatArray

    @property
    def name(self) -> str:
        """What ran, on what input; the run itself where nobody says."""
        return " · ".join(part for part in (self.workload, self.input) if part) or self.run_id

    @property
    def n_samples(self) -> int:
        """Samples of the run."""
        return int(self.workload_bounds[-1])

    @property
    def duration_s(self) -> float:
        """Seconds that the samples span."""
        return self.n_samples * self.interval_s


def phases_of_fingerprint(
    found: Fingerprint, interval_s: float | None, *, input_name: str | None = None, workload: str | None = None
) -> RunPhases:
    """The phases of a fingerprint; workload: what to call it, where its label does not say."""
    table = found.workload_phases.reshape(len(found.workload_bounds) - 1, len(found.counters), len(STATISTICS))
    return RunPhases(
        found.run_id,
        found.workload or workload,
        input_name,
        interval_s or 1.0,
        found.counters,
        found.bounds,
        tuple(one[:, MEAN] for one in found.summaries),
        found.workload_bounds,
        table[:, :, MEAN],
        found.workload_phases,
    )


def phases_of_rows(about: AboutRun, rows: pd.DataFrame, of_workload: pd.DataFrame) -> RunPhases:
    """The phases of a run from its rows of workloads.phases (counter, start_sample, end_sample, mean), at least one,
    and of workloads.run_phases (start_sample, end_sample).

    A counter's level in a phase of the workload is the mean of its own phases there, each for the samples it covers."""
    ordered = rows.sort_values(["counter", "start_sample"], kind="stable")
    parts = {str(name): part for name, part in ordered.groupby("counter", sort=True)}
    bounds = tuple(_bounds(part) for part in parts.values())
    levels = tuple(part["mean"].to_numpy(dtype=float) for part in parts.values())
    shared = _bounds(of_workload.sort_values("start_sample", kind="stable"))
    over = np.column_stack([_means(edges, one, shared) for edges, one in zip(bounds, levels, strict=True)])
    interval_s = about.interval_s or 1.0
    return RunPhases(
        about.run_id, about.workload, about.input, interval_s, tuple(parts), bounds, levels, shared, over, over
    )


def _bounds(part: pd.DataFrame) -> Bounds:
    return np.append(part["start_sample"].to_numpy(), part["end_sample"].iloc[-1]).astype(np.int64)


def _means(edges: Bounds, levels: FloatArray, shared: Bounds) -> FloatArray:
    """Mean of a step function between the shared bounds: (n_phases,)."""
    samples = np.repeat(levels, np.diff(edges))
    return np.array([samples[start:end].mean() for start, end in pairwise(shared)])


def on_counters(run: RunPhases, names: Sequence[str]) -> RunPhases:
    """The run with these counters only, which it must have, in this order; phases of the workload stay."""
    places = [run.counters.index(name) for name in names]
    k = run.vectors.shape[1] // len(run.counters)
    table = run.vectors.reshape(len(run.vectors), len(run.counters), k)[:, places]
    return RunPhases(
        run.run_id,
        run.workload,
        run.input,
        run.interval_s,
        tuple(names),
        tuple(run.bounds[place] for place in places),
        tuple(run.levels[place] for place in places),
        run.workload_bounds,
        run.workload_levels[:, places],
        table.reshape(len(run.vectors), -1),
    )


RECENT = 50  # runs of a workload, the latest, that the typical one is chosen among
# The typical run: its mean levels are nearest to the medians over runs of its workload, summed over counters.
TYPICAL = """
WITH chosen AS (
    SELECT run_id, coalesce(workload, '') AS workload FROM workloads.runs WHERE source = $source
    QUALIFY row_number() OVER (PARTITION BY workload ORDER BY started_at DESC NULLS LAST, run_id DESC) <= $recent
),
levels AS (
    SELECT workload, run_id, counter,
        sum(mean * (end_sample - start_sample)) / sum(end_sample - start_sample) AS level
    FROM workloads.phases JOIN chosen USING (run_id) WHERE source = $source
    GROUP BY workload, run_id, counter
),
centres AS (SELECT workload, counter, median(level) AS centre FROM levels GROUP BY workload, counter),
gaps AS (
    SELECT workload, run_id, sum(abs(level - centre)) AS gap
    FROM levels JOIN centres USING (workload, counter) GROUP BY workload, run_id
),
final AS (
    SELECT workload, arg_min(run_id, (gap, run_id)) AS run_id, count(*) AS n_runs FROM gaps GROUP BY workload
)
SELECT workload, run_id FROM final ORDER BY n_runs DESC, workload LIMIT $most
"""
# Another run of the workload: with the same input if there is one, with another number of phases, the latest.
PARTNER = """
WITH counted AS (
    SELECT run_id, count(*) AS n_phases FROM workloads.run_phases WHERE source = $source GROUP BY run_id
),
labelled AS (SELECT * FROM workloads.runs JOIN counted USING (run_id) WHERE source = $source),
wanted AS (SELECT workload, input, n_phases FROM labelled WHERE run_id = $run_id),
final AS (
    SELECT run_id,
        labelled.input IS NOT DISTINCT FROM wanted.input AS has_same_input,
        labelled.n_phases <> wanted.n_phases AS has_other_number,
        started_at
    FROM labelled JOIN wanted ON labelled.workload = coalesce($workload, wanted.workload)
    WHERE run_id <> $run_id
)
SELECT run_id FROM final
ORDER BY has_same_input DESC, has_other_number DESC, started_at DESC NULLS LAST, run_id LIMIT 1
"""
ABOUT = """
SELECT run_id, workload, input, interval_s FROM workloads.runs
WHERE source = $source AND list_contains($run_ids, run_id)
"""
PHASES = """
SELECT run_id, counter, start_sample, end_sample, mean, probability FROM workloads.phases
WHERE source = $source AND list_contains($run_ids, run_id) ORDER BY run_id, counter, start_sample
"""
RUN_PHASES = """
SELECT run_id, start_sample, end_sample FROM workloads.run_phases
WHERE source = $source AND list_contains($run_ids, run_id) ORDER BY run_id, start_sample
"""


@dataclass(frozen=True)
class CutRuns:
    """Runs with their phases, and the rows of workloads.phases that they were made of."""

    runs: list[RunPhases]
    rows: pd.DataFrame


def typical_runs(connection: Connection, source: str, most: int) -> list[str]:
    """Run ids, one a workload that has fingerprints, those of the most runs first, at most so many.

    Runs without a label count as one workload."""
    found = connection.execute(TYPICAL, {"source": source, "recent": RECENT, "most": most}).fetchall()
    return [str(run_id) for _, run_id in found]


def partner_of(connection: Connection, source: str, run_id: str, workload: str | None = None) -> str | None:
    """Another run with phases, of that workload or of the run's own; None if there is none."""
    values = {"source": source, "run_id": run_id, "workload": workload}
    found = connection.execute(PARTNER, values).fetchone()
    return None if found is None else str(found[0])


def fetch_cut_runs(connection: Connection, source: str, run_ids: list[str]) -> CutRuns:
    """The named runs that have phases, in the order of the names."""
    values = {"source": source, "run_ids": run_ids}
    about = {
        str(row[0]): AboutRun(*row) for row in connection.execute(ABOUT, values).fetchall()
    }  # run_id, workload, input, interval_s
    rows, shared = (connection.execute(sql, values).df() for sql in (PHASES, RUN_PHASES))
    of_run, of_workload = dict(list(rows.groupby("run_id"))), dict(list(shared.groupby("run_id")))
    there = [run_id for run_id in run_ids if run_id in of_run and run_id in of_workload]
    return CutRuns([phases_of_rows(about[one], of_run[one], of_workload[one]) for one in there], rows)


MOST_POINTS = 400


@dataclass(frozen=True)
class CounterSeries:
    """One counter. values: (n,), NaN missing; changes: (k,) rows of the first sample after each change.

    probabilities: (k,) that there is a change so near; NaN from a method that gives none. unit: of the values."""

    name: str
    unit: str
    values: FloatArray
    changes: NDArray[np.int64]
    probabilities: FloatArray


@dataclass(frozen=True)
class RunSeries:
    """Some counters of one run. at_s: (n,) seconds after the start; n_counters: that the run has in all."""

    run: str
    at_s: FloatArray
    counters: Sequence[CounterSeries]
    n_counters: int

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n, shown = len(self.at_s), len(self.counters)
        return f"n = {n:,} samples of one run; {shown} of {self.n_counters:,} counters"


SAMPLES = """
SELECT counter, unit, is_rate, samples FROM workloads.counters
WHERE source = $source AND run_id = $run_id AND list_contains($names, counter) ORDER BY counter
"""
TIMES = """
SELECT at_s, (SELECT count(*) FROM workloads.counters WHERE source = $source AND run_id = $run_id) AS n_counters
FROM workloads.runs WHERE source = $source AND run_id = $run_id
"""


def fetch_series(
    connection: Connection, source: str, run: RunPhases, rows: pd.DataFrame, counters: int | Sequence[str]
) -> RunSeries:
    """Samples and change points of a run. rows: of workloads.phases, of this run at least.

    counters: their names, or how many of those that moved most, at most one of each family."""
    names = list(counters) if not isinstance(counters, int) else _moved_most(run, counters)
    values = {"source": source, "run_id": run.run_id, "names": names}
    found = {row["counter"]: row for row in connection.execute(SAMPLES, values).df().to_dict("records")}
    told = connection.execute(TIMES, {"source": source, "run_id": run.run_id}).fetchone()
    at_s, n_counters = told if told else ([], 0)
    own = rows[(rows["run_id"] == run.run_id) & (rows["start_sample"] > 0)]
    series = [_counter_series(name, found[name], own[own["counter"] == name]) for name in names if name in found]
    title = f"{run.name} ({run.run_id})" if run.name != run.run_id else run.run_id
    return RunSeries(title, np.asarray(at_s, dtype=float), series, int(n_counters))


def _moved_most(run: RunPhases, n: int) -> list[str]:
    places = pick_counters(run.counters, movement(run.levels, run.bounds), n)
    return [run.counters[place] for place in places] or list(run.counters[:n])


def _counter_series(name: str, about: Mapping[Any, Any], changes: pd.DataFrame) -> CounterSeries:
    values: FloatArray = np.ma.asarray(about["samples"], dtype=float).filled(np.nan)  # missing samples come masked
    return CounterSeries(
        name,
        unit_words(str(about["unit"]), is_rate=bool(about["is_rate"])),
        values,
        changes["start_sample"].to_numpy(dtype=np.int64),
        changes["probability"].to_numpy(dtype=float),
    )


N_ROWS, PER_FAMILY = 14, 3


@dataclass(frozen=True)
class PhasesOfRuns:
    """runs: with the same counters, those that are drawn; n_counters: that were compared to choose them."""

    runs: tuple[RunPhases, ...]
    n_counters: int

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n = len(self.runs)
        shown = len(self.runs[0].counters) if self.runs else 0
        return f"n = {n} run{'' if n == 1 else 's'}; {shown} of {self.n_counters:,} counters, those that differ most"


def phases_of_runs(runs: Sequence[RunPhases], n_rows: int = N_ROWS) -> PhasesOfRuns:
    """The runs on those of their common counters whose levels lie furthest apart over all their phases."""
    names = sorted(set.intersection(*(set(run.counters) for run in runs))) if runs else []
    common = [on_counters(run, names) for run in runs]
    levels = [np.concatenate([run.levels[c] for run in common]) for c in range(len(names))]
    edges = [_end_to_end([np.diff(run.bounds[c]) for run in common]) for c in range(len(names))]
    places = pick_counters(names, movement(levels, edges), n_rows, per_family=PER_FAMILY)
    shown = sorted((names[place] for place in places), key=_in_order)
    return PhasesOfRuns(tuple(on_counters(run, shown) for run in common), len(names))


def _end_to_end(lengths: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.concatenate(lengths))])


def _in_order(name: str) -> tuple[str, bool]:
    """Counters of one family together, that of the workload's own group after that of the machine."""
    return name.removeprefix(OWN_PREFIX), name.startswith(OWN_PREFIX)


WORDS: dict[Measure, str] = {"ed": "Euclidean", "dtw": "DTW, manhattan cost", "dtw_squared": "DTW, squared cost"}


@dataclass(frozen=True)
class Alignment:
    """offset: phases of the longer run before the shorter one begins; distances: (n_compared,) phase by phase.

    distance: of the runs, by `measure`, on all counters; the figure shows those that differ most over both."""

    longer: RunPhases
    shorter: RunPhases
    offset: int
    distances: FloatArray
    distance: float
    measure: str

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n, of = len(self.distances), len(self.longer.workload_bounds) - 1
        return f"n = {n} of {of} phase{'' if of == 1 else 's'} compared on {len(self.longer.counters):,} counters"


def align(one: RunPhases, other: RunPhases, measure: Measure = "dtw") -> Alignment | None:
    """Both runs on their common counters, at the offset with the smallest distance; None without a common one."""
    names = sorted(set(one.counters) & set(other.counters))
    if not names:
        return None
    one, other = on_counters(one, names), on_counters(other, names)
    longer, shorter = (one, other) if len(one.vectors) >= len(other.vectors) else (other, one)
    match = match_phases(longer.vectors, shorter.vectors, measure)
    return Alignment(longer, shorter, match.offset, match.phases, match.distance, WORDS[measure])


def _shown_counters(data: Alignment) -> list[str]:
    """Those whose levels lie furthest apart over the phases of both runs."""
    names = data.longer.counters
    levels = np.concatenate([data.longer.workload_levels, data.shorter.workload_levels])
    moved = movement(list(levels.T), [np.arange(len(levels) + 1, dtype=np.int64)] * len(names))
    places = pick_counters(names, moved, ALIGNED_ROWS, per_family=ALIGNED_PER_FAMILY)
    return sorted((names[place] for place in places), key=lambda name: (name.removeprefix(OWN_PREFIX), name))


def short_number(value: float) -> str:
    """About three significant digits with a prefix: 950, 12.3 k, 4.5 M; never an exponent."""
    for size, prefix in PREFIXES:
        if abs(value) >= size:
            return f"{number(value / size)} {prefix}"
    return number(value)


def unit_words(unit: str, *, is_rate: bool) -> str:
    """The unit of the values: B of a rate is B/s, core-seconds a second are cores; a gauge without one has none."""
    if not is_rate:
        return unit
    return PER_SECOND.get(unit, f"{unit}/s")


def series_figure(run: RunSeries | None, name: str = "series", more: str = "") -> Figure:
    """Figure 2: a run over time with its change points."""
    words = (
        "Dots are samples, the line the mean of each phase. A dashed line is a change point; the numbers of the "
        "chart say how probable it is. Shown are the counters that moved most, of each family one before a second."
    )
    if run is None or not run.counters or not len(run.at_s):
        return figure(name, "When a run changes", words, "", None, f"{NO_PHASES}.")
    return Figure(
        name, "When a run changes", f"{words} {more}".strip(), f"{run.run}; {run.evidence}", partial(_draw_series, run)
    )


def _draw_series(run: RunSeries) -> charts.Chart:
    parts = []
    for one in run.counters:
        values = np.asarray(one.values, dtype=float)
        edges = np.r_[0, one.changes, len(values)].astype(int)
        levels = np.concatenate([np.full(b - a, _mean(values[a:b])) for a, b in pairwise(edges)])
        keep, seen = _thinned_places(values, MOST_POINTS // max(len(run.counters) // 2, 1)), {}
        for at, probability in zip(one.changes, one.probabilities, strict=True):
            seen[int(keep[np.abs(keep - at).argmin()])] = (run.at_s[int(at)], probability)
        changes = [seen.get(int(place), (np.nan, np.nan)) for place in keep]
        unit = f", {one.unit}" if one.unit else ""
        parts.append(
            pd.DataFrame(
                {
                    "counter": f"{one.name}{unit}",
                    "second": run.at_s[keep],
                    "value": values[keep],
                    "phase_mean": levels[keep],
                }
            ).assign(change=[at for at, _ in changes], probability=[p for _, p in changes])
        )
    rows = pd.concat(parts, ignore_index=True)
    return charts.strips(rows, Axis("second", "seconds after the start"), Axis("value", "", "count"), "counter",
                         level="phase_mean", change="change")  # fmt: skip


def _mean(values: FloatArray) -> float:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else float("nan")


def _thinned_places(values: FloatArray, most: int) -> NDArray[np.int64]:
    """Places of at most `most` samples that look the same: of each slice of time its lowest and highest one."""
    if len(values) <= most:
        return np.arange(len(values))
    keep: list[int] = []
    for part in np.array_split(np.arange(len(values)), most // 2):
        there = part[np.isfinite(values[part])]
        ends = (
            {int(there[values[there].argmin()]), int(there[values[there].argmax()])} if len(there) else {int(part[0])}
        )
        keep += sorted(ends)
    return np.array(keep)


def phases_figure(phases: PhasesOfRuns | None, name: str = "phases", more: str = "") -> Figure:
    """Figure 4: phases of runs beneath each other."""
    has_signs = phases is not None and any((level < 0).any() for run in phases.runs for level in run.levels)
    words = (
        "Each row is a counter, each bar one of its phases, as long as it lasted. "
        f"{SIGNED if has_signs else UNSIGNED}. Shown are the counters that differ most. {more}"
    )
    if phases is None or not phases.runs:
        return figure(name, "Phases side by side", words, "", None, f"{NO_PHASES}.")
    if not phases.runs[0].counters:
        return figure(name, "Phases side by side", words, "", None, "The runs have no counter in common that varies.")
    return Figure(name, "Phases side by side", words.strip(), phases.evidence, partial(_draw_phases, phases))


def _draw_phases(phases: PhasesOfRuns) -> charts.Chart:
    rows = [
        {
            "run": _title(run),
            "counter": name,
            "second": start * run.interval_s,
            "end": stop * run.interval_s,
            "level": level,
        }
        for run in phases.runs
        for name, bounds, levels in zip(run.counters, run.bounds, run.levels, strict=True)
        for (start, stop), level in zip(pairwise(bounds), levels, strict=True)
    ]
    seconds = Axis("second", "seconds after the start")
    return charts.spans(_most_told(pd.DataFrame(rows)), seconds, "counter", level="level", panel="run", row_px=15)


def _most_told(rows: pd.DataFrame, most: int = 1_200) -> pd.DataFrame:
    """Of too many phases those that last longest."""
    if len(rows) <= most:
        return rows
    return rows.loc[(rows["end"] - rows["second"]).nlargest(most).index.sort_values()]


def _title(run: RunPhases) -> str:
    return run.name if run.name == run.run_id else f"{run.name} ({run.run_id})"


def alignment_figure(pair: Alignment | None, name: str = "alignment", more: str = "") -> Figure:
    """Two runs at their best offset."""
    words = (
        "Two runs phase by phase: the one with fewer phases lies where it fits best in the other. Of each counter the "
        "longer run stands above the shorter; where the colours agree the runs are alike. Beneath them the distances "
        f"of the phases that meet. {more}"
    )
    title, nothing = "How alike two runs are", "There are no two runs with phases to compare."
    if pair is None or _is_alike(pair):
        return figure(name, title, words, "", None, nothing)
    words += f" Distance {short_number(pair.distance)} ({pair.measure}), offset {pair.offset}."
    return Figure(name, title, " ".join(words.split()), pair.evidence, partial(_draw_alignment, pair))


def _is_alike(pair: Alignment) -> bool:
    """Whether no counter differs between the phases of both runs."""
    levels = [*pair.longer.workload_levels, *pair.shorter.workload_levels]
    return all((one == levels[0]).all() for one in levels)


def _draw_alignment(pair: Alignment) -> charts.Chart:
    rows = []
    for run, first, which in ((pair.longer, 0, "longer"), (pair.shorter, pair.offset, "shorter")):
        for name in _shown_counters(pair):
            at = run.counters.index(name)
            for phase, level in enumerate(run.workload_levels[:, at]):
                row = {"counter": f"{name} · {which}", "phase": first + phase, "end": first + phase + 1, "level": level}
                rows.append(row | {"run": _title(run)})
    order = [f"{name} · {which}" for name in _shown_counters(pair) for which in ("longer", "shorter")]
    frame = pd.DataFrame(rows).sort_values("counter", key=lambda names: names.map(order.index), kind="stable")
    along = Axis("phase", "phase of the longer run")
    meet = pd.DataFrame(
        {"phase": [f"phase {pair.offset + at}" for at in range(len(pair.distances))], "distance": pair.distances}
    )
    return charts.beneath(
        charts.spans(_most_told(frame.rename(columns={"phase": "second"})).rename(columns={"second": "phase"}), along,
                     "counter", level="level", row_px=14),
        charts.bars(meet.head(N_ROWS), Axis("distance", "distance of the phases that meet", "count"), "phase"),
    )  # fmt: skip


def run_figures(
    warehouse: Warehouse, source: str, run_ids: Sequence[str], counters: Sequence[str], n_counters: int
) -> tuple[list[Figure], str]:
    """Each run over time, all of them beneath each other, and each two at their best offset; and the data version.

    counters: over time; none: the n_counters that moved most. Raises NotFound for a run that is not there or has not
    been cut into phases, or a counter that a run lacks."""
    with reading(warehouse) as connection:
        cut = fetch_cut_runs(connection, source, list(run_ids))
        there = {run.run_id for run in cut.runs}
        if missing := [run_id for run_id in run_ids if run_id not in there]:
            raise NotFound(
                f"run {missing[0]!r} of source {source!r}: not there, or not cut into phases yet; "
                f"run 'whorl workloads fingerprint --source {source}' first"
            )
        series = [fetch_series(connection, source, run, cut.rows, counters or n_counters) for run in cut.runs]
        version = data_version(connection, "workloads", source)
    for run, one in zip(cut.runs, series, strict=True):
        if lacking := set(counters) - {counter.name for counter in one.counters}:
            raise NotFound(f"run {run.run_id!r} has no counter {sorted(lacking)[0]!r}; see workloads.counters")
    figures = [series_figure(one, f"series-{place + 1}") for place, one in enumerate(series)]
    figures.append(phases_figure(phases_of_runs(cut.runs)))
    for place, pair in enumerate(list(combinations(cut.runs, 2))[:MOST_PAIRS]):
        figures.append(alignment_figure(align(*pair), f"alignment-{place + 1}"))
    return figures, version
