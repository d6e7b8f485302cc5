"""The preprocessing of metrics (Perona, III-B): learned from training executions, applied, told, and kept as JSON.

Imputation and scaling: every kept metric on one scale, the larger the better.

    z = s · ln(x / median) / spread      log_ratio: an equal share is an equal step on a slow node and on a fast one
    z = s · (x - median) / spread        robust; also for metrics that reach 0 or below
    z = (x - min) / (max - min)          min_max, the paper's; mirrored, (max - x) / (max - min), where less is better

with s = 1 where more is better and -1 where less is, and spread = interquartile range / 1.349. The first two are then
drawn in smoothly beyond clip_from: bounded, so that an outlier moves nothing else, and still rising, so that a machine
faster than all that was seen stays ahead of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError

from tasks.errors import BadInput
from tasks.nodes.aspects import is_stressed
from tasks.nodes.history import History
from tasks.nodes.preprocess.params import Imputation, PreprocessParams, Scaling
from tasks.nodes.preprocess.selection import (
    NORMAL_WIDTH,
    TAILS,
    Orientation,
    Sign,
    Spread,
    orient,
    spread_of,
    why_dropped,
)
from tasks.nodes.preprocess.unification import (
    Bools,
    Facts,
    Floats,
    Ints,
    Recorded,
    Unified,
    as_rates,
    choose_columns,
    declared_facts,
    divisors,
    in_base_units,
    per_second,
    recorded,
)
from tasks.nodes.tools.facts import MetricFacts
from tasks.params import Params

NORMAL_QUARTILES = 1.3489795003  # interquartile range of a normal distribution, in standard deviations


class Scale(Params):
    """Of one metric. centre: what becomes 0, in base units. fill: what stands for a missing value, in base units."""

    is_logarithmic: bool
    centre: float
    spread: float
    fill: float


def learn_scale(values: Floats, spread: Spread, sign: Sign, scaling: Scaling, imputation: Imputation) -> Scale:
    """The scale of a metric from its training values (n,), of which two at least differ, and their spread.

    Values of a logarithmic scale are never negative and at most 5 % are 0; where that does not hold it is `robust`."""
    fill = spread.mean if imputation == "mean" else spread.median
    if scaling == "min_max":
        centre = spread.least if sign > 0 else spread.greatest
        return Scale(is_logarithmic=False, centre=centre, spread=spread.greatest - spread.least, fill=fill)
    if scaling == "log_ratio" and spread.least >= 0 and spread.low > 0:
        width = robust_width(np.log(values[values > 0]))
        if width > 0:
            return Scale(is_logarithmic=True, centre=spread.median, spread=width, fill=fill)
    return Scale(is_logarithmic=False, centre=spread.median, spread=robust_width(values), fill=fill)


def robust_width(values: Floats) -> float:
    """Interquartile range as a standard deviation; where it is 0 the width between the tails, then the deviation."""
    ordered = np.sort(values)
    low, first, third, high = np.quantile(ordered, [TAILS[0], 0.25, 0.75, TAILS[1]])
    widths = ((third - first) / NORMAL_QUARTILES, (high - low) / NORMAL_WIDTH, ordered.std())
    return float(next((width for width in widths if width > 0), 0.0))


def scaled(values: Floats, sign: Floats, is_logarithmic: Bools, centre: Floats, spread: Floats) -> Floats:
    """z of each value by the scale beside it, all (n,), before it is drawn in; a logarithm of 0 is -inf · s."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.log(np.where(values > 0, values, 0) / np.where(is_logarithmic, centre, 1))
    return np.asarray(sign * np.where(is_logarithmic, logarithm, values - centre) / spread)


def softly_clipped(z: Floats, start: float, limit: float) -> Floats:
    """z as it is up to `start`, beyond it drawn in: start + (limit - start) · u / (1 + u), u = (|z| - start) / (limit -
    start). Continuous with its slope, strictly rising, within ± limit."""
    beyond = np.maximum(np.abs(z) - start, 0) / (limit - start)
    drawn_in = start + (limit - start) * (1 - 1 / (1 + beyond))
    return np.asarray(np.where(np.abs(z) <= start, z, np.sign(z) * drawn_in))


class FittedMetric(Params):
    """One metric of one benchmark type.

    units: as written. base_as_read: what they become; base: that of the values, per second if it is divided_by a time.
    n_apart: training values in no column, for the reason in note. spread: None without a usable value. why: what
    it is dropped for, empty if it is kept. scale: None for a dropped one."""

    type: str
    benchmark: str
    metric: str
    units: tuple[str, ...]
    base_as_read: str
    base: str
    divided_by: str
    n_apart: int
    note: str
    spread: Spread | None
    why: str
    orientation: Orientation
    scale: Scale | None

    @property
    def name(self) -> str:
        """Of its column."""
        return f"{self.type}/{self.metric}"

    @property
    def is_kept(self) -> bool:
        """Whether it is in the vectors."""
        return self.scale is not None


class Preprocessor(Params):
    """types: benchmark types of the training executions, ordered. metrics: all recorded ones, by type and name."""

    params: PreprocessParams
    n_executions: int
    types: tuple[str, ...]
    metrics: tuple[FittedMetric, ...]

    @property
    def kept(self) -> tuple[FittedMetric, ...]:
        """The metrics of the vectors, in the order of their columns."""
        return tuple(metric for metric in self.metrics if metric.is_kept)

    def columns(self) -> pd.DataFrame:
        """One row a recorded metric; base: as read; place: among the kept ones, -1 for a dropped one."""
        place = np.cumsum([metric.is_kept for metric in self.metrics]) - 1
        return pd.DataFrame(
            {
                "type": [metric.type for metric in self.metrics],
                "benchmark": [metric.benchmark for metric in self.metrics],
                "metric": [metric.metric for metric in self.metrics],
                "base": [metric.base_as_read for metric in self.metrics],
                "divided_by": [metric.divided_by for metric in self.metrics],
                "place": np.where([metric.is_kept for metric in self.metrics], place, -1).astype(np.int64),
            }
        )


def fit(history: History, params: PreprocessParams, *, facts: Facts | None = None) -> Preprocessor:
    """Learn units, selection, orientation and scales of every metric from training executions.

    facts: what is declared of metrics, by benchmark and metric; None: what the tools declare. Executions whose label
    is missing count as unstressed. Without executions nothing is kept. Raises ValueError for a value that is not
    finite. Source: Perona, III-B."""
    declared = declared_facts() if facts is None else facts
    found = recorded(history)
    columns = choose_columns(found, declared)
    divided_by = divisors(columns, declared)
    read = in_base_units(found, columns)
    unified = as_rates(read, columns, divided_by, durations(history.executions))
    without_time = np.diff(read.edges) - np.diff(unified.edges)
    stressed = is_stressed(history.executions).to_numpy(dtype=bool)
    metrics = []
    for at, column in enumerate(_with_lost(columns.assign(divided_by=divided_by), without_time).to_dict("records")):
        rows = unified.of(at)
        fact = declared.get(column["benchmark"], {}).get(column["metric"])
        metrics.append(_learn(column, unified.value[rows], ~stressed[unified.execution[rows]], fact, params))
    types = tuple(sorted({str(name) for name in found.types}))
    return Preprocessor(params=params, n_executions=len(found.types), types=types, metrics=tuple(metrics))


def durations(executions: pd.DataFrame) -> Floats:
    """duration_s of each execution, (n_executions,); NaN where it is missing."""
    return np.asarray(pd.to_numeric(executions["duration_s"]).to_numpy(dtype=np.float64, na_value=np.nan))


def _with_lost(columns: pd.DataFrame, n_lost: Ints) -> pd.DataFrame:
    """The columns with the totals that no time could be found for, in n_apart and note."""
    told = [
        "; ".join([*([note] if note else []), *([f"{lost} values without {over}: apart"] if lost else [])])
        for note, lost, over in zip(columns["note"], n_lost, columns["divided_by"], strict=True)
    ]
    return columns.assign(n_apart=columns["n_apart"].to_numpy(dtype=np.int64) + n_lost, note=told)


def _learn(
    column: dict[Any, Any], values: Floats, is_calm: Bools, fact: MetricFacts | None, params: PreprocessParams
) -> FittedMetric:
    """One metric. values: (n_values,) in base units; is_calm: which of them no known stress moved."""
    read = dict(column)
    as_read = read.pop("base")
    base = per_second(as_read) if read["divided_by"] else as_read
    spread = spread_of(values)
    orientation = orient(read["metric"], base, fact, spread, spread_of(values[is_calm]), params)
    why = why_dropped(read["benchmark"], read["metric"], base, spread, fact, params)
    scale = None
    if spread is not None and not why:
        scale = learn_scale(values, spread, orientation.sign, params.scales, params.imputes)
    return FittedMetric(
        **read, base_as_read=as_read, base=base, spread=spread, why=why, orientation=orientation, scale=scale
    )


@dataclass(frozen=True)
class LeftOut:
    """What had no place. types: executions of each type that training did not have. metrics: values of each metric that
    training did not have, by column name. units: values whose unit cannot become that of their column."""

    types: Mapping[str, int]
    metrics: Mapping[str, int]
    units: Mapping[str, int]


@dataclass(frozen=True)
class Prepared:
    """Executions as vectors of the kept metrics.

    executions: the rows of the history. columns: (m,) names, `<benchmark type>/<metric>`; these two as column_types and
    metrics; units: base units, (m,).
    natural: (n, m) in base units, NaN where not measured. orientation: (m,) 1 where more is better, -1 where less is.
    scaled: (n, m), larger is better, missing values filled in. types: (k,) of training. one_hot: (n, k), all 0 for a
    type that is not among them. mirrored_about: (m,), the oriented value of x is mirrored_about - x where less is
    better: 0, or least + greatest with the paper's scaling."""

    executions: pd.DataFrame
    columns: tuple[str, ...]
    column_types: tuple[str, ...]
    metrics: tuple[str, ...]
    units: tuple[str, ...]
    natural: Floats
    orientation: Ints
    scaled: Floats
    types: tuple[str, ...]
    one_hot: Floats
    mirrored_about: Floats
    left_out: LeftOut

    @property
    def is_own(self) -> Bools:
        """Which values were measured, (n, m); the others of `scaled` are filled in."""
        return ~np.isnan(self.natural)

    @property
    def oriented(self) -> Floats:
        """Natural values with the larger the better, (n, m); NaN where not measured."""
        return np.where(self.orientation > 0, self.natural, self.mirrored_about - self.natural)


def transform(preprocessor: Preprocessor, history: History) -> Prepared:
    """The vectors of executions, training ones or others. Metrics and types that training lacked are counted.

    Raises ValueError for a value that is not finite."""
    found = recorded(history)
    columns = preprocessor.columns()
    divided_by = columns["divided_by"].tolist()
    unified = as_rates(in_base_units(found, columns), columns, divided_by, durations(history.executions))
    kept = preprocessor.kept
    place = columns["place"].to_numpy(dtype=np.int64)[unified.column]
    is_kept = place >= 0
    execution, place, value = unified.execution[is_kept], place[is_kept], unified.value[is_kept]
    natural = np.full((len(found.types), len(kept)), np.nan)
    natural[execution, place] = value
    orientation = np.array([metric.orientation.sign for metric in kept], dtype=np.int64)
    return Prepared(
        executions=history.executions,
        columns=tuple(metric.name for metric in kept),
        column_types=tuple(metric.type for metric in kept),
        metrics=tuple(metric.metric for metric in kept),
        units=tuple(metric.base for metric in kept),
        natural=natural,
        orientation=orientation,
        scaled=_scaled(preprocessor, natural.shape, execution, place, value),
        types=preprocessor.types,
        one_hot=_one_hot(found.types, preprocessor.types),
        mirrored_about=_mirrors(preprocessor),
        left_out=_left_out(preprocessor, found, unified),
    )


def _scaled(preprocessor: Preprocessor, shape: tuple[int, ...], execution: Ints, place: Ints, value: Floats) -> Floats:
    """(n, m): the measured values scaled one by one, the fill of each column everywhere else."""
    kept, params = preprocessor.kept, preprocessor.params
    scales = [metric.scale for metric in kept if metric.scale is not None]
    sign = np.array([metric.orientation.sign for metric in kept], dtype=np.float64)
    is_logarithmic = np.array([one.is_logarithmic for one in scales], dtype=bool)
    centre, spread = np.array([one.centre for one in scales]), np.array([one.spread for one in scales])

    def on_scale(values: Floats, of: Ints) -> Floats:
        z = scaled(values, sign[of], is_logarithmic[of], centre[of], spread[of])
        return z if params.scales == "min_max" else softly_clipped(z, params.clip_from, params.clip_at)

    fill = on_scale(np.array([one.fill for one in scales]), np.arange(len(scales)))
    found = np.tile(fill, (shape[0], 1))
    found[execution, place] = on_scale(value, place)
    return found


def _one_hot(names: NDArray[np.object_], types: tuple[str, ...]) -> Floats:
    of = pd.Index(types, dtype=object).get_indexer(pd.Index(names, dtype=object))
    found = np.zeros((len(names), len(types)))
    known = np.flatnonzero(of >= 0)
    found[known, of[known]] = 1
    return found


def _mirrors(preprocessor: Preprocessor) -> Floats:
    if preprocessor.params.scales != "min_max":
        return np.zeros(len(preprocessor.kept))
    spreads = [metric.spread for metric in preprocessor.kept if metric.spread is not None]
    return np.array([one.least + one.greatest for one in spreads])


def _left_out(preprocessor: Preprocessor, found: Recorded, unified: Unified) -> LeftOut:
    kinds = pd.Series(found.types, dtype=object).value_counts(sort=False)
    unseen = {str(name): int(count) for name, count in kinds.items() if name not in preprocessor.types}
    apart = unified.apart[unified.apart["type"].isin(preprocessor.types)]
    names = apart["type"] + "/" + apart["metric"]
    counts = {
        reason: apart["n_values"].groupby(names[apart["reason"] == reason]).sum() for reason in ("metric", "unit")
    }
    return LeftOut(unseen, _as_counts(counts["metric"]), _as_counts(counts["unit"]))


def _as_counts(counts: pd.Series) -> dict[str, int]:
    return {str(name): int(count) for name, count in counts.items()}


PAPER_RECORDED, PAPER_KEPT = 153, 54  # Perona, IV-B


@dataclass(frozen=True)
class MetricCounts:
    """Metrics of all types together; a metric that two types have counts twice."""

    recorded: int
    kept: int
    paper_recorded: int = PAPER_RECORDED
    paper_kept: int = PAPER_KEPT


def count_metrics(preprocessor: Preprocessor) -> MetricCounts:
    """How many metrics training recorded and how many are kept, beside the paper's 153 and 54."""
    return MetricCounts(recorded=len(preprocessor.metrics), kept=len(preprocessor.kept))


def decisions(preprocessor: Preprocessor) -> pd.DataFrame:
    """One row a recorded metric, in order of type and name.

    type, metric; unit_written (all spellings), unit (base), divided_by (time that a total is divided by), n_values,
    n_apart (training values in no column) and note why; n_distinct, dispersion (robust coefficient of variation),
    deviation (standard); is_kept, why (it is dropped); orientation (1 or -1), orientation_from, is_directed (false:
    neither is better, the orientation is a guess); rule_with_stressed and rule_without_stressed (the paper's), agrees
    (the first of these with what is declared; missing where one is silent)."""
    table = pd.DataFrame([_row(metric) for metric in preprocessor.metrics], columns=list(COLUMNS))
    return table.astype(COLUMNS)


COLUMNS = {
    "type": "str",
    "metric": "str",
    "unit_written": "str",
    "unit": "str",
    "divided_by": "str",
    "n_values": "int64",
    "n_apart": "int64",
    "note": "str",
    "n_distinct": "int64",
    "dispersion": "float64",
    "deviation": "float64",
    "is_kept": "bool",
    "why": "str",
    "orientation": "int64",
    "orientation_from": "str",
    "is_directed": "bool",
    "rule_with_stressed": "Int64",
    "rule_without_stressed": "Int64",
    "agrees": "boolean",
}


def _row(metric: FittedMetric) -> dict[str, object]:
    spread, orientation = metric.spread, metric.orientation
    return {
        "type": metric.type,
        "metric": metric.metric,
        "unit_written": ", ".join(metric.units),
        "unit": metric.base,
        "divided_by": metric.divided_by,
        "n_values": spread.n_values if spread else 0,
        "n_apart": metric.n_apart,
        "note": metric.note,
        "n_distinct": spread.n_distinct if spread else 0,
        "dispersion": spread.dispersion if spread else float("nan"),
        "deviation": spread.deviation if spread else float("nan"),
        "is_kept": metric.is_kept,
        "why": metric.why,
        "orientation": orientation.sign,
        "orientation_from": orientation.origin,
        "is_directed": orientation.is_directed,
        "rule_with_stressed": orientation.rule_with_stressed,
        "rule_without_stressed": orientation.rule_without_stressed,
        "agrees": orientation.agrees,
    }


FORMAT, VERSION = "whorl.nodes.preprocess", 1


def save_preprocessor(preprocessor: Preprocessor, file: Path) -> None:
    """Write a preprocessor into a file; its folder is made if it is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    main = {"format": FORMAT, "version": VERSION, **preprocessor.model_dump()}
    file.write_text(json.dumps(main, indent=1), encoding="utf-8")


def load_preprocessor(file: Path) -> Preprocessor:
    """What save_preprocessor wrote. Raises BadInput if the file is missing, damaged or foreign."""
    try:
        main = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(main, dict) or main.pop("format", None) != FORMAT:
            raise ValueError(f"not of the format {FORMAT}")
        if (version := main.pop("version", None)) != VERSION:
            raise ValueError(f"version {version} of the format, this whorl reads {VERSION}")
        return Preprocessor.model_validate(main)
    except (OSError, ValueError, ValidationError) as error:
        problem = f"no preprocessing of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(file, problem, "what 'whorl nodes preprocess' wrote", "preprocess again") from error
