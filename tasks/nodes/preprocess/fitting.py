"""The preprocessing of metrics (Perona, III-B): learned from training executions, applied, told, and kept as JSON.

Scaling: every kept metric on one scale, the larger the better, with s = 1 where more is better and -1 where less is.

    z = s · ln(x / median) / spread      ours: an equal share is an equal step on a slow node and on a fast one
    z = s · (x - median) / spread        ours, of metrics that reach 0 or below
    z = (x - min) / (max - min)          the paper's; mirrored, (max - x) / (max - min), where less is better

spread = interquartile range / 1.349. Ours are then drawn in smoothly beyond CLIP_FROM: bounded, so that an outlier
moves nothing else, and still rising, so that a machine faster than all that was seen stays ahead of them. A missing
value becomes the median in ours and the mean in the paper's."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ValidationError

from tasks.errors import BadInput
from tasks.nodes.history import History
from tasks.nodes.params import PreprocessParams
from tasks.nodes.preprocess.selection import (
    NORMAL_WIDTH,
    RESULT,
    TAILS,
    Orientation,
    Sign,
    ValueSpread,
    orient,
    spread_of,
    why_dropped,
)
from tasks.nodes.preprocess.unification import (
    Facts,
    Recorded,
    Unified,
    as_rates,
    choose_columns,
    declared_facts,
    divisors,
    in_base_units,
    per_second,
)
from tasks.nodes.tools.parsing import MetricFacts
from tasks.nodes.type_tables import Bools, Floats, Ints, NodeTables, TypeTable, is_stressed, type_names
from tasks.params import Params

NORMAL_QUARTILES = 1.3489795003  # interquartile range of a normal distribution, in standard deviations
CLIP_FROM, CLIP_AT = 4.0, 10.0  # in spreads: up to the first values stay, those beyond are drawn towards the second


class MetricScale(Params):
    """Of one metric. centre: what becomes 0, in base units. fill: what stands for a missing value, in base units."""

    is_logarithmic: bool
    centre: float
    spread: float
    fill: float


def learn_scale(values: Floats, spread: ValueSpread, sign: Sign, *, is_paper: bool = False) -> MetricScale:
    """The scale of a metric from its training values (n,), of which two at least differ, and their spread.

    Values of a logarithmic scale are never negative and at most 5 % are 0."""
    if is_paper:
        centre = spread.least if sign > 0 else spread.greatest
        return MetricScale(is_logarithmic=False, centre=centre, spread=spread.greatest - spread.least, fill=spread.mean)
    if spread.least >= 0 and spread.low > 0 and (width := robust_width(np.log(values[values > 0]))) > 0:
        return MetricScale(is_logarithmic=True, centre=spread.median, spread=width, fill=spread.median)
    return MetricScale(is_logarithmic=False, centre=spread.median, spread=robust_width(values), fill=spread.median)


def robust_width(values: Floats) -> float:
    """Interquartile range as a standard deviation; where it is 0 the width between the tails, then the deviation."""
    ordered = np.sort(values)
    low, first, third, high = np.quantile(ordered, [TAILS[0], 0.25, 0.75, TAILS[1]])
    widths = ((third - first) / NORMAL_QUARTILES, (high - low) / NORMAL_WIDTH, ordered.std())
    return float(next((width for width in widths if width > 0), 0.0))


def scaled(values: Floats, sign: Sign, scale: MetricScale) -> Floats:
    """z of each value (n,), before it is drawn in; a logarithm of 0 is -inf · s."""
    if not scale.is_logarithmic:
        return np.asarray(sign * (values - scale.centre) / scale.spread)
    with np.errstate(divide="ignore"):
        return np.asarray(sign * np.log(np.maximum(values, 0) / scale.centre) / scale.spread)


def softly_clipped(z: Floats) -> Floats:
    """z as it is up to CLIP_FROM, beyond it drawn in: CLIP_FROM + span · u / (1 + u), u = (|z| - CLIP_FROM) / span.

    span = CLIP_AT - CLIP_FROM. Continuous with its slope, strictly rising, within ± CLIP_AT."""
    span = CLIP_AT - CLIP_FROM
    beyond = np.maximum(np.abs(z) - CLIP_FROM, 0) / span
    return np.asarray(np.where(np.abs(z) <= CLIP_FROM, z, np.sign(z) * (CLIP_FROM + span * (1 - 1 / (1 + beyond)))))


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
    spread: ValueSpread | None
    why: str
    orientation: Orientation
    scale: MetricScale | None

    @property
    def name(self) -> str:
        """Of its column."""
        return f"{self.type}/{self.metric}"

    @property
    def is_kept(self) -> bool:
        """Whether it is in the vectors."""
        return self.scale is not None


class Preprocessor(Params):
    """types: benchmark types of the training executions, ordered. metrics: all recorded ones, by type and name; one
    that two types have counts twice (the paper recorded 153 and kept 54, IV-B)."""

    params: PreprocessParams
    n_executions: int
    types: tuple[str, ...]
    metrics: tuple[FittedMetric, ...]

    @property
    def kept(self) -> tuple[FittedMetric, ...]:
        """The metrics of the vectors, in the order of their columns."""
        return tuple(metric for metric in self.metrics if metric.is_kept)

    def columns(self) -> pd.DataFrame:
        """One row a recorded metric; base: as read."""
        names = ("type", "benchmark", "metric", "base_as_read", "divided_by")
        rows = [[getattr(metric, name) for name in names] for metric in self.metrics]
        return pd.DataFrame(rows, columns=list(names)).rename(columns={"base_as_read": "base"})


def recorded(history: History) -> Recorded:
    """The metric rows of a history. Raises ValueError for a value that is not finite: readers refuse those."""
    value = history.metrics["value"].to_numpy(dtype=np.float64)
    execution = history.metrics["execution"].to_numpy(dtype=np.int64)
    if not np.isfinite(value).all():
        row = int(np.flatnonzero(~np.isfinite(value))[0])
        raise ValueError(
            f"metric {history.metrics['metric'].iloc[row]!r} of execution {execution[row]} has the value {value[row]}; "
            f"expected finite numbers (readers put others into quarantine)"
        )
    names = type_names(history.executions).to_numpy(dtype=object)
    rows = history.metrics[["metric", "unit"]].assign(type=names[execution]).fillna({"unit": ""})
    grouped = rows.groupby(["type", "metric", "unit"], sort=True)
    triples = grouped.size().rename("n_values").reset_index()
    benchmark = dict(zip(names, history.executions["benchmark"], strict=True))
    triples = triples.assign(benchmark=triples["type"].map(benchmark).astype(object))
    return Recorded(triples, execution, np.asarray(grouped.ngroup(), dtype=np.int64), value, names)


def fit(history: History, params: PreprocessParams, *, facts: Facts | None = None) -> Preprocessor:
    """Learn units, selection, orientation and scales of every metric from training executions.

    facts: what is declared of metrics, by benchmark and metric; None: what the tools declare. Executions whose label
    is missing count as unstressed. Without executions nothing is kept. Raises ValueError for a value that is not
    finite. Source: Perona, III-B."""
    declared = declared_facts() if facts is None else facts
    entries = recorded(history)
    columns = choose_columns(entries, declared)
    divided_by = divisors(columns, declared)
    read = in_base_units(entries, columns)
    unified = as_rates(read, columns, divided_by, durations(history.executions))
    n_lost = np.diff(read.edges) - np.diff(unified.edges)  # totals that no time could be found for
    columns = columns.assign(
        divided_by=divided_by,
        n_apart=columns["n_apart"].to_numpy(dtype=np.int64) + n_lost,
        note=[
            "; ".join(filter(None, [note, f"{lost} values without {over}: apart" if lost else ""]))
            for note, lost, over in zip(columns["note"], n_lost, divided_by, strict=True)
        ],
    )
    stressed = is_stressed(history.executions).to_numpy(dtype=bool)
    metrics = []
    for at, column in enumerate(columns.to_dict("records")):
        rows = unified.of(at)
        fact = declared.get(column["benchmark"], {}).get(column["metric"])
        metrics.append(_learn(column, unified.value[rows], ~stressed[unified.execution[rows]], fact, params))
    types = tuple(sorted({str(name) for name in entries.types}))
    return Preprocessor(params=params, n_executions=len(entries.types), types=types, metrics=tuple(metrics))


def durations(executions: pd.DataFrame) -> Floats:
    """duration_s of each execution, (n_executions,); NaN where it is missing."""
    return np.asarray(pd.to_numeric(executions["duration_s"]).to_numpy(dtype=np.float64, na_value=np.nan))


def _learn(
    column: dict[Any, Any], values: Floats, is_calm: Bools, fact: MetricFacts | None, params: PreprocessParams
) -> FittedMetric:
    """One metric. values: (n_values,) in base units; is_calm: which of them no known stress moved."""
    read = dict(column)
    as_read = read.pop("base")
    base = per_second(as_read) if read["divided_by"] else as_read
    spread = spread_of(values)
    named = read["benchmark"] if read["metric"] == RESULT else read["metric"]
    orientation = orient(named, base, fact, spread, spread_of(values[is_calm]), params)
    why = why_dropped(read["benchmark"], read["metric"], base, spread, fact, params)
    scale = None
    if spread is not None and not why:
        scale = learn_scale(values, spread, orientation.sign, is_paper=params.is_paper)
    return FittedMetric(
        **read, base_as_read=as_read, base=base, spread=spread, why=why, orientation=orientation, scale=scale
    )


def learn_tables(history: History, is_train: Bools, params: PreprocessParams) -> NodeTables:
    """Tables of all executions, preprocessed with what those of the mask (n_executions,) taught."""
    return tables_of(history, fit(history if is_train.all() else history.where(is_train), params))


def tables_of(history: History, preprocessor: Preprocessor) -> NodeTables:
    """The kept metrics of all executions by type. An execution without a value of them is in no table.

    What training did not have (types, metrics, units) is left out; executions that have nothing else are counted."""
    executions = history.executions
    columns = preprocessor.columns()
    entries = recorded(history)
    read = in_base_units(entries, columns)
    unified = as_rates(read, columns, columns["divided_by"].tolist(), durations(executions))
    aspects = executions["aspect"].fillna("unknown").astype(str).groupby(type_names(executions)).first()
    node_of, nodes = pd.factorize(executions["node"].astype(str), sort=True)
    of_type: dict[str, list[int]] = {}
    for at, metric in enumerate(preprocessor.metrics):
        if metric.is_kept:
            of_type.setdefault(metric.type, []).append(at)
    tables = [
        _table(name, str(aspects.get(name, "unknown")), places, unified, preprocessor, node_of.astype(np.int64))
        for name, places in sorted(of_type.items())
    ]
    is_measured, is_known = np.zeros((2, len(executions)), dtype=bool)
    is_measured[entries.execution] = True
    is_known[read.execution] = True  # a metric of training, in a unit that can become that of its column
    return NodeTables(
        tuple(str(node) for node in nodes),
        _machine_types(executions, node_of, len(nodes)),
        tuple(table for table in tables if len(table.executions)),
        len(executions),
        int((is_measured & ~is_known).sum()),
    )


def _machine_types(executions: pd.DataFrame, node_of: np.ndarray, n_nodes: int) -> tuple[str, ...]:
    """Of each node, as the first of its executions that says any; empty if none does."""
    stated = pd.Series(executions["machine_type"].fillna("").astype(str).to_numpy(dtype=object))
    first = stated[stated != ""].groupby(node_of[(stated != "").to_numpy()]).first()
    return tuple(str(machine_type) for machine_type in first.reindex(range(n_nodes), fill_value=""))


def _table(
    name: str, aspect: str, places: list[int], unified: Unified, preprocessor: Preprocessor, node_of: Ints
) -> TypeTable:
    metrics = [preprocessor.metrics[place] for place in places]
    parts = [unified.of(place) for place in places]
    rows = np.unique(np.concatenate([unified.execution[part] for part in parts]))
    values, on_scale = (np.full((len(rows), len(places)), np.nan) for _ in range(2))
    for at, (metric, part) in enumerate(zip(metrics, parts, strict=True)):
        positions = np.searchsorted(rows, unified.execution[part])
        values[positions, at] = unified.value[part]
        on_scale[positions, at] = _on_scale(metric, unified.value[part], preprocessor.params)
    return TypeTable(
        name=name,
        aspect=aspect,
        executions=rows.astype(np.int64),
        nodes=node_of[rows],
        metrics=tuple(metric.metric for metric in metrics),
        units=tuple(metric.base for metric in metrics),
        natural=values,
        orientation=np.array([metric.orientation.sign for metric in metrics], dtype=np.float64),
        scaled=on_scale,
        is_directed=np.array([metric.orientation.is_directed for metric in metrics], dtype=bool),
    )


def _on_scale(metric: FittedMetric, values: Floats, params: PreprocessParams) -> Floats:
    """The values of one kept metric on its scale."""
    if metric.scale is None:
        raise ValueError(f"{metric.name} is not kept, so it has no scale")
    z = scaled(values, metric.orientation.sign, metric.scale)
    return z if params.is_paper else softly_clipped(z)


@dataclass(frozen=True)
class PreparedVectors:
    """Executions as vectors of the kept metrics of all types, as a network sees them.

    columns: (m,) names, `<benchmark type>/<metric>`. scaled: (n, m), larger is better, missing values filled in.
    is_own: (n, m) whether measured. types: (k,) of training. one_hot: (n, k), all 0 for a type not among them."""

    columns: tuple[str, ...]
    scaled: Floats
    is_own: Bools
    types: tuple[str, ...]
    one_hot: Floats


def transform(preprocessor: Preprocessor, history: History) -> PreparedVectors:
    """The vectors of executions, training ones or others. Raises ValueError for a value that is not finite."""
    kept = preprocessor.kept
    columns = tuple(metric.name for metric in kept)
    fill = [_on_scale(metric, np.array([metric.scale.fill]), preprocessor.params)[0] for metric in kept if metric.scale]
    filled = np.tile(np.array(fill, dtype=np.float64), (len(history.executions), 1))
    is_own = np.zeros(filled.shape, dtype=bool)
    for table in tables_of(history, preprocessor).tables:
        places = [columns.index(f"{table.name}/{metric}") for metric in table.metrics]
        at = np.ix_(table.executions, np.array(places, dtype=np.int64))
        is_own[at] = ~np.isnan(table.scaled)
        filled[at] = np.where(is_own[at], table.scaled, filled[at])
    names = type_names(history.executions).to_numpy(dtype=object)
    one_hot = (names[:, None] == np.array(preprocessor.types, dtype=object)).astype(np.float64)
    return PreparedVectors(columns, filled, is_own, preprocessor.types, one_hot)


def decisions(preprocessor: Preprocessor) -> pd.DataFrame:
    """One row a recorded metric, in order of type and name.

    type, metric; unit_written (all spellings), unit (base), divided_by (time that a total is divided by), n_values,
    n_apart (training values in no column) and note why; n_distinct, dispersion (robust coefficient of variation),
    deviation (standard); is_kept, why (it is dropped); orientation (1 or -1), orientation_from, is_directed (false:
    neither is better, the orientation is a guess); rule_with_stressed and rule_without_stressed (the paper's), agrees
    (the first of these with what is declared; missing where one is silent)."""
    rows = []
    for metric in preprocessor.metrics:
        spread, orientation = metric.spread, metric.orientation
        row = {name: getattr(metric, name) for name in ("type", "metric", "divided_by", "n_apart", "note", "why")}
        row |= {"unit_written": ", ".join(metric.units), "unit": metric.base, "is_kept": metric.is_kept}
        for name in ("n_values", "n_distinct", "dispersion", "deviation"):
            row[name] = getattr(spread, name) if spread else COLUMN_WITHOUT_VALUES[name]
        for name in ("is_directed", "rule_with_stressed", "rule_without_stressed", "agrees"):
            row[name] = getattr(orientation, name)
        row |= {"orientation": orientation.sign, "orientation_from": orientation.origin}
        rows.append(row)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


COLUMN_WITHOUT_VALUES = {"n_values": 0, "n_distinct": 0, "dispersion": np.nan, "deviation": np.nan}
COLUMNS = {
    "type": "str", "metric": "str", "unit_written": "str", "unit": "str", "divided_by": "str", "n_values": "int64",
    "n_apart": "int64", "note": "str", "n_distinct": "int64", "dispersion": "float64", "deviation": "float64",
    "is_kept": "bool", "why": "str", "orientation": "int64", "orientation_from": "str", "is_directed": "bool",
    "rule_with_stressed": "Int64", "rule_without_stressed": "Int64", "agrees": "boolean",
}  # fmt: skip


FORMAT, VERSION = "whorl.nodes.preprocess", 2


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
        if isinstance(main.get("params"), dict):
            main["params"].pop("min_dispersion", None)  # was a setting once
        return Preprocessor.model_validate(main)
    except (OSError, ValueError, ValidationError) as error:
        problem = f"no preprocessing of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(file, problem, "what 'whorl nodes preprocess' wrote", "preprocess again") from error
