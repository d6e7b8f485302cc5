"""A log made ready to learn from: its runs as one frame, with a column for each SKU; periods D1, D2 and D3, historic
medians, shapes of the history, features."""

import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from tasks.errors import BadInput
from tasks.jobs.columns import FLAT_COLUMNS
from tasks.jobs.normalisation import bins_of, histogram, historic_medians, normalise
from tasks.jobs.params import CharacteriseParams, Kind, SplitParams
from tasks.jobs.predict.features import OPERATOR, OWN, HistoricShapes, make_features
from tasks.jobs.shapes import ShapeSet, fit_shapes, largest_k, rank_by_runs
from tasks.jobs.summary import refuse_mixture
from tasks.quantities import counted
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse

ROWS = Path(__file__).with_name("rows.sql")
BY_SKU = Path(__file__).with_name("rows_by_sku.sql")
LISTS = {  # of jobs.runs, and what is known of each SKU by them: the state of an offered one, and its vertices
    "skus": "1.0::DOUBLE AS offered, avg(one.load_mean) AS sku_load_mean, avg(one.load_sd) AS sku_load_sd, "
    "sum(one.free_tokens) AS sku_free_tokens",
    "vertices": "count(*)::DOUBLE AS vertices",
}
FINISHED = ("completed", "unknown")
IS_READ = """source = $source
    AND (runtime_s IS NOT NULL OR status IN ('running', 'pending'))
    AND ($group_key IS NULL OR group_key = $group_key)
    AND list_contains($statuses, status)
    AND (what_if IS NULL OR $with_what_ifs)
    AND coalesce(submitted_at, started_at) IS NOT NULL"""
COUNTED = ("offered", "vertices")  # 0 for a SKU that a run does not list


def read_runs(
    warehouse: Warehouse,
    source: str,
    *,
    statuses: Sequence[str] = FINISHED,
    with_what_ifs: bool = False,
    group_key: str | None = None,
) -> pd.DataFrame:
    """Finished runs with a runtime and a submission, by submitted_at and run_id: one row a run, index 0 … n - 1.

    Columns: those of jobs.runs but the nested ones; and, where the log has them, for each SKU `offered_<sku>` (0 or
    1), `sku_load_mean_<sku>`, `sku_load_sd_<sku>`, `sku_free_tokens_<sku>` (missing where it was not offered),
    `vertices_<sku>` (how many ran on it), `n_vertices`, for each operator of the plan `op_<operator>` (count), and for
    each further column of the table `own_<column>` (numbers; texts where one is no number).
    A start stands in for a missing submission. Of statuses running and pending the runtime is missing. group_key: only
    the runs of that job, with the SKUs and operators that they name. Raises NotFound for a source without runs,
    BadInput if it mixes simulated with measured runs."""
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        return fetch_runs(connection, source, statuses=statuses, with_what_ifs=with_what_ifs, group_key=group_key)


def fetch_runs(
    connection: Connection,
    source: str,
    *,
    statuses: Sequence[str] = FINISHED,
    with_what_ifs: bool = False,
    group_key: str | None = None,
) -> pd.DataFrame:
    """The same over a connection that is open already."""
    parameters = {
        "source": source, "statuses": list(statuses), "with_what_ifs": with_what_ifs, "group_key": group_key
    }  # fmt: skip
    columns = ", ".join(name for name in FLAT_COLUMNS if name not in ("submitted_at", "operators"))
    runs = connection.execute(ROWS.read_text().format(columns=columns, is_read=IS_READ), parameters).df()
    lists = [BY_SKU.read_text().format(list=name, figures=LISTS[name], is_read=IS_READ) for name in LISTS]
    operators, table_columns = _operators(runs.pop("operators")), _table_columns(runs.pop("features"))
    wide = [_wide(connection.sql(sql, params=parameters).to_arrow_table(), len(runs)) for sql in lists]
    return pd.concat([runs, *wide, operators, table_columns], axis=1)


def _wide(long: pa.Table, n_runs: int) -> pd.DataFrame:
    """One column for each figure and SKU: long has place, sku and the figures, one row a run and SKU.

    Counts of a SKU that a run does not list are 0; a run for which the log lists no SKU at all has none of them."""
    place, skus = long["place"].to_numpy(), long["sku"].combine_chunks().dictionary_encode()
    codes, names = skus.indices.to_numpy(), skus.dictionary.to_pylist()
    figures = {name: long[name].to_numpy() for name in long.column_names if name not in ("place", "sku")}
    absent = np.full(n_runs, np.nan)
    absent_count = absent.copy()
    absent_count[place] = 0.0
    wide: dict[str, NDArray[np.float64]] = {}
    for sku, code in sorted(zip(names, range(len(names)), strict=True)):
        is_sku = codes == code
        at = place[is_sku]
        for figure, values in figures.items():
            column = (absent_count if figure in COUNTED else absent).copy()
            column[at] = values[is_sku]
            wide[f"{figure}_{sku}"] = column
    vertices = [values for name, values in wide.items() if name.startswith("vertices_")]
    if vertices:
        wide["n_vertices"] = np.sum(vertices, axis=0)
    return pd.DataFrame(wide, index=pd.RangeIndex(n_runs))


def _operators(texts: pd.Series) -> pd.DataFrame:
    """A column of counts for each operator."""
    counts, codes = _unpacked(texts, OPERATOR)
    return counts.fillna(0.0).astype(float).reindex(codes).reset_index(drop=True)  # -1, no plan, is missing


def _table_columns(texts: pd.Series) -> pd.DataFrame:
    """A column for each further column of the table that was read."""
    columns, codes = _unpacked(texts, OWN)
    is_text = [columns[name].map(lambda value: isinstance(value, str)).any() for name in columns]
    kinds = {name: object if text else float for name, text in zip(columns, is_text, strict=True)}
    return columns.astype(kinds).reindex(codes).reset_index(drop=True)  # -1, nothing further, is missing


def _unpacked(texts: pd.Series, prefix: str) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """JSON objects as columns, a row for each that differs, and the number of each text's, -1 for none."""
    codes, objects = pd.factorize(texts)
    rows = pd.DataFrame([json.loads(content) for content in objects])
    return rows.sort_index(axis=1).add_prefix(prefix), codes


def named_columns(connection: Connection, source: str) -> set[str]:
    """The further columns that were asked for by name when the files of a source were read, not as one of all."""
    read = connection.execute(
        "SELECT options FROM ops.files WHERE word = 'jobs' AND source = $source", {"source": source}
    ).fetchall()
    return {str(name) for (options,) in read for name in json.loads(options or "{}").get("features", ())} - {"all"}


ENDS = Path(__file__).with_name("log_end.sql")


def log_end(connection: Connection, source: str) -> pd.Timestamp:
    """The moment just after the last submission, start or end of any run of a source that has some, UTC."""
    ((at,),) = connection.execute(ENDS.read_text(), {"source": source}).fetchall()
    return pd.Timestamp(at)


Period = Literal["D1", "D2", "D3"]
PERIODS: tuple[Period, ...] = ("D1", "D2", "D3")


def assign_periods(runs: pd.DataFrame, params: SplitParams) -> pd.Series:
    """D1 (history), D2 (training) or D3 (test) for each run, a categorical on the index of `runs`.

    runs: submitted_at, period. The periods of a recording are taken as they are if there are at least three, the
    first three in the order of their first submissions, later ones counting as D3; a run without one is given its
    place by its time. Otherwise the runs are split by submission, and runs submitted at the same moment stay together.
    Raises BadInput for fewer than three distinct times of submission. Source: Zhu et al. 2023, Table 1."""
    times = runs["submitted_at"]
    if "period" in runs and runs["period"].nunique() >= len(PERIODS):
        starts = times.groupby(runs["period"]).min().sort_values(kind="stable")
        codes = np.searchsorted(starts.to_numpy()[: len(PERIODS)], times.to_numpy(), side="right") - 1
        codes = np.maximum(codes, 0)  # before the first period is history, too
        named = runs["period"].map({name: min(place, 2) for place, name in enumerate(starts.index)})
        codes = np.where(named.notna(), named.fillna(0), codes).astype(int)
    else:
        distinct = np.sort(times.unique())
        if len(distinct) < len(PERIODS):
            raise too_few_times(len(distinct))
        shares = np.array([params.history_share, params.history_share + params.training_share])
        at = np.sort(times.to_numpy())[np.minimum((shares * len(times)).astype(int), len(times) - 1)]
        # each period has at least one time of submission, however uneven the log
        first = min(max(int(np.searchsorted(distinct, at[0])), 1), len(distinct) - 2)
        second = min(max(int(np.searchsorted(distinct, at[1])), first + 1), len(distinct) - 1)
        codes = np.searchsorted(distinct[[first, second]], times.to_numpy(), side="right")
    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(PERIODS)), index=runs.index, name="part")


def too_few_times(n: int) -> BadInput:
    """What is said of a log whose runs have n different times of submission."""
    problem, expected = f"runs of {n} different times of submission", "at least three, for history, training and test"
    return BadInput("job log", problem, expected, "give more of the log")


logger = logging.getLogger(__name__)
KINDS: tuple[Kind, ...] = ("ratio", "delta")
RESULT = re.compile(  # how a run went, in the name of a column
    r"(?:^|_)(?:end(?:ed|s)?|finish(?:ed)?|stop(?:ped)?|completed?|status|state|exit(?:_?code)?|results?|outcome"
    r"|conclusion|success|fail(?:ed|ure)?|errors?|duration|runtime|elapsed|wall_?(?:time|clock)|cpu_?time)(?:_|$)"
)
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")  # where a word begins in exitCode
NEAR, SAME_SHARE, SAME_RANK = 0.01, 0.9, 0.99
LEAST_COMPARED = 10  # runs with a value
MOST_CATEGORIES = 200  # of a column of texts, the most frequent
SUPPORTS = (20, 10, 5, 3, 2, 1)  # what is tried where no job has as many runs as asked for


@dataclass(frozen=True)
class PreparedLog:
    """runs: of read_runs in order of submission, with part (D1, D2, D3), ended_at filled, median_s and median_source;
    history_s: median of each group of D1 by group_key, seconds; shapes: by kind, of D1, as far as it has any; features:
    (n, p); tables: Table 2 of the shapes, by kind; categories: as History has them; left_out: own columns that are no
    features, and why."""

    runs: pd.DataFrame
    history_s: pd.Series
    shapes: Mapping[Kind, ShapeSet]
    features: pd.DataFrame
    tables: Mapping[Kind, pd.DataFrame] = field(default_factory=dict)
    categories: Mapping[str, list[str]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def is_part(self, *parts: str) -> NDArray[np.bool_]:
        """Which runs belong to these parts: (n,)."""
        return np.asarray(self.runs["part"].isin(parts))


def prepare(
    runs: pd.DataFrame, params: CharacteriseParams, *, named: Collection[str] = (), known_before: Collection[str] = ()
) -> PreparedLog:
    """Split, normalise and describe the runs of a log; runs: of read_runs, index 0 … n - 1.

    named, known_before: own columns that may be features, as leaks takes them; others are left out.

    Where the median of every job of D1 is 0 s, there are no shapes of ratios. Raises BadInput for a log with fewer than
    three times of submission."""
    runs = with_ends(runs.assign(part=assign_periods(runs, params.split)))
    old = runs[runs["part"] != "D3"]
    left_out = leaks(old, named, known_before)
    kept = sorted(str(name).removeprefix(OWN) for name in old if str(name).startswith(OWN))
    if unknown := sorted(set(known_before) - set(kept)):
        there = ", ".join(kept) or "none; --features of ingest keeps them"
        logger.warning("known before: no column %s; own columns: %s", ", ".join(unknown), there)
    runs = runs.drop(columns=[OWN + name for name in left_out])
    texts = [str(name) for name in runs if str(name).startswith(OWN) and not is_numeric_dtype(runs[name])]
    categories = {name: old[name].value_counts().index[:MOST_CATEGORIES].astype(str).tolist() for name in texts}
    history_s = runs[runs["part"] == "D1"].groupby("group_key")["runtime_s"].median()
    medians = historic_medians(runs, history_s)
    runs = runs.assign(median_s=medians["median_s"], median_source=medians["median_source"])
    history = runs[runs["part"] == "D1"]
    values = {kind: normalise(history["runtime_s"], history["median_s"], kind) for kind in KINDS}
    fitted = {kind: _shapes(history, kind, values[kind], params) for kind in KINDS if np.isfinite(values[kind]).any()}
    shapes = {kind: shape_set for kind, (shape_set, _) in fitted.items()}
    tables = {kind: table for kind, (_, table) in fitted.items()}
    known = HistoricShapes(shapes, history_s, categories)
    return PreparedLog(runs, history_s, shapes, make_features(runs, runs, known), tables, categories, left_out)


def leaks(old: pd.DataFrame, named: Collection[str], known_before: Collection[str]) -> dict[str, str]:
    """The own columns that must not be features, by name, with the reason: they tell of the run's outcome, or may.

    old: runs before the test. Columns of known_before are features whatever they look like. Others have to be named,
    must not be called like an outcome, and must not nearly be the runtime: within NEAR of it in SAME_SHARE of the
    runs, or with a rank correlation of at least SAME_RANK."""
    reasons: dict[str, str] = {}
    for column in [str(name) for name in old if str(name).startswith(OWN)]:
        name = column.removeprefix(OWN)
        if name in known_before:
            continue
        if same := _is_runtime(old[column], old["runtime_s"]):
            reasons[name] = same
        elif RESULT.search(re.sub(r"[^a-z]+", "_", CAPITAL.sub("_", name).lower())):
            reasons[name] = "is called like a result of the run"
        elif name not in named:
            reasons[name] = "is not said to be known before the run"
    return reasons


def _is_runtime(values: pd.Series, runtime_s: pd.Series) -> str:
    """In which respect a column nearly is the runtime; empty for none. Units do not matter."""
    numbers = pd.to_numeric(values, errors="coerce")
    is_known = (numbers.notna() & (numbers > 0) & (runtime_s > 0)).to_numpy()
    if is_known.sum() < LEAST_COMPARED:
        return ""
    x, y = numbers.to_numpy(dtype=float)[is_known], runtime_s.to_numpy(dtype=float)[is_known]
    ratio = x / y
    share = float((np.abs(ratio / np.median(ratio) - 1) <= NEAR).mean())
    if share >= SAME_SHARE:
        return f"is the runtime in {share:.1%} of the runs"
    rank = float(pd.Series(x).rank().corr(pd.Series(y).rank())) if np.ptp(x) and np.ptp(y) else 0.0
    return f"rises with the runtime (rank correlation {rank:.3f})" if abs(rank) >= SAME_RANK else ""


def with_ends(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs whose log tells no end end after their runtime."""
    if runs["ended_at"].notna().all():
        return runs
    starts = runs["started_at"].fillna(runs["submitted_at"])
    ends = starts + pd.to_timedelta(runs["runtime_s"], unit="s").dt.round("us")
    return runs.assign(ended_at=runs["ended_at"].fillna(ends).astype("datetime64[us]"))


def _shapes(
    history: pd.DataFrame, kind: Kind, values: NDArray[np.float64], params: CharacteriseParams
) -> tuple[ShapeSet, pd.DataFrame]:
    """The shapes of the jobs of a history, and their Table 2; fewer, or of shorter ones, where the log has no more.

    values: (n,) normalised runtimes of its rows."""
    numbers, keys = pd.factorize(history["group_key"])
    sizes = np.bincount(numbers[np.isfinite(values)], minlength=len(keys))
    # the support asked for, or the next lower one that at least k jobs have, or any has
    lower = (support for support in SUPPORTS if support < params.shapes.min_support)
    enough = (least for least in (params.shapes.min_support, *lower) if (sizes >= least).sum() >= params.shapes.k)
    support = next(enough, 1)
    bins = bins_of(kind, params.bins, values[sizes[numbers] >= support])
    counts = histogram(values, numbers, len(keys), bins)
    shape_params = params.shapes.model_copy(update={"min_support": support})
    k = min(params.shapes.k, largest_k(counts, bins, shape_params))
    if (k, support) != (params.shapes.k, params.shapes.min_support):
        shapes, of_runs = counted(k, "shape"), counted(support, "run")
        logger.warning("%s: %s, of jobs with at least %s: this log has no more", kind, shapes, of_runs)
    fit = fit_shapes(counts, bins, shape_params.model_copy(update={"k": k}))
    ranked, table = rank_by_runs(fit, values, numbers)
    return ranked.shapes, table
