"""The typical runtime distributions of a log and the shape of each of its jobs: counted, found, written.

What has a row for each run stays in DuckDB, which spills what does not fit; only what has a row for each job, or for
each bin of a job, comes to Python. DuckDB does not spill median() and quantile(): medians are taken of batches of
jobs, and quantiles of many jobs together from a fine histogram and the values of the cells that hold them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tasks.errors import BadInput, NotFound, WarehouseBusy
from tasks.jobs.normalisation import TAIL_SHARE, Bins, Counts, Floats, bins_of, derived_bins
from tasks.jobs.params import LABEL_SUPPORT, CharacteriseParams, Kind, ShapeParams, SplitParams
from tasks.jobs.predict.preparation import FINISHED, PERIODS, too_few_times
from tasks.jobs.shapes import (
    NO_LABEL,
    InertiaCurve,
    Labels,
    ShapeFit,
    ShapeSet,
    fit_shapes,
    hard_labels,
    in_order,
    inertia_curve,
    largest_k,
    log_shapes,
    posterior_of,
)
from tasks.jobs.summary import refuse_mixture
from tasks.warehouse.connection import Connection, reading, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import data_version, insert_rows, json_of

Ints = NDArray[np.int64]
KINDS: tuple[Kind, ...] = ("ratio", "delta")
PARTS = (*PERIODS, "all")
HISTORY, EVERYTHING, N_PARTS = 0, len(PERIODS), len(PARTS)
BATCH_VALUES = 16_000_000  # whose medians are taken together: at most 30 bytes of memory each
VALUES_OF_JOB = 16  # what a job costs beside its values
DIGITS = 12  # of a deviation: the order in which threads add up moves the last three of the sixteen
NORMALISED: dict[Kind, str] = {"ratio": "runtime_s / nullif(median_s, 0)", "delta": "runtime_s - median_s"}
VARIABLES = {
    **{"source": "TEXT", "statuses": "TEXT[]", "first_name": "TEXT", "second_name": "TEXT"},
    **{"second_at": "TIMESTAMP", "third_at": "TIMESTAMP"},
}
# Recorded periods go by name; a run without one, or a log without periods, by time.
RUNS = """CREATE OR REPLACE TEMP VIEW finished AS
SELECT
    group_key, runtime_s, ended_at, period, submitted_at,
    coalesce(submitted_at, started_at) AS queued_at,
    CASE
        WHEN period = getvariable('first_name') THEN 0
        WHEN period = getvariable('second_name') THEN 1
        WHEN getvariable('first_name') IS NOT NULL AND period IS NOT NULL THEN 2
        WHEN queued_at < getvariable('second_at') THEN 0
        WHEN queued_at < getvariable('third_at') THEN 1
        ELSE 2
    END::UTINYINT AS part
FROM jobs.runs
WHERE source = getvariable('source')
    AND isfinite(runtime_s)
    AND list_contains(getvariable('statuses'), status)
    AND what_if IS NULL
    AND coalesce(submitted_at, started_at) IS NOT NULL"""
HOURS = """SELECT epoch_us(queued_at) // 3_600_000_000 AS hour, count(*), min(queued_at), max(queued_at)
FROM temp.finished GROUP BY hour ORDER BY hour"""
STARTS = """SELECT period, min(queued_at) FROM temp.finished WHERE period IS NOT NULL GROUP BY period ORDER BY 2, 1"""
JOBS = """SELECT group_key, count(*) AS n_runs, count(*) FILTER (part = 0) AS n_history
FROM temp.finished GROUP BY group_key ORDER BY group_key"""
MEDIANS = """SELECT group_key, median(runtime_s) AS median_s FROM temp.finished
WHERE part = 0 {of_batch} GROUP BY group_key ORDER BY group_key"""
OF_BATCH = "AND group_key BETWEEN $first AND $last"
# Of jobs that the history knows, against their median of it
KNOWN = """SELECT group_number, part, runtime_s, median_s FROM temp.finished JOIN temp.groups USING (group_key)
    WHERE median_s IS NOT NULL"""
# Of the others, against the median of the runs of the job that had ended before the submission
UNKNOWN = """SELECT unknown.group_number, part, runtime_s, past.median_s
    FROM (SELECT * EXCLUDE (median_s) FROM temp.finished JOIN temp.groups USING (group_key) WHERE median_s IS NULL)
        AS unknown
    ASOF JOIN (
        SELECT group_number, ended_at, median(runtime_s) OVER so_far AS median_s
        FROM (SELECT * EXCLUDE (median_s) FROM temp.finished JOIN temp.groups USING (group_key) WHERE median_s IS NULL)
        WHERE ended_at IS NOT NULL
        WINDOW so_far AS (PARTITION BY group_number ORDER BY ended_at RANGE UNBOUNDED PRECEDING)
    ) AS past ON unknown.group_number = past.group_number AND unknown.queued_at > past.ended_at"""
NORMALISED_RUNS = """SELECT group_number::BIGINT * {n_parts} + part AS row, {ratio} AS ratio, {delta} AS delta
FROM ({runs})"""
MEMBERS = """SELECT group_number, n_history, label, {value} AS value
FROM temp.finished JOIN temp.groups USING (group_key) WHERE part = 0 AND value IS NOT NULL"""
# The square root is rounded correctly, so that cells keep the order of values; it is far cheaper than a logarithm.
QUANTILES = """WITH members AS ({values}),
counted AS (
    SELECT
        label, floor(1024 * sign(value) * sqrt(sqrt(abs(value)))) AS cell,
        count(*) AS n, min(value) AS low, max(value) AS high
    FROM members GROUP BY ALL
),
so_far AS (
    SELECT
        *, (sum(n) OVER (PARTITION BY label ORDER BY cell) - n)::BIGINT AS n_before,
        (sum(n) OVER (PARTITION BY label))::BIGINT AS n_all
    FROM counted
),
spans AS (
    SELECT
        label, level, (n_all - 1) * level AS position,
        min(n_before) AS n_before, min(low) AS low, max(high) AS high
    FROM so_far, (SELECT unnest($levels::DOUBLE[]) AS level)
    WHERE n_before <= ceil(position) AND n_before + n > floor(position)
    GROUP BY label, level, position
),
ranked AS (
    SELECT
        label, level, position, value,
        n_before + row_number() OVER (PARTITION BY label, level ORDER BY value) - 1 AS rank
    FROM members JOIN spans USING (label) WHERE value BETWEEN low AND high
)
SELECT label, level, min(value) + (max(value) - min(value)) * (position - floor(position)) AS value
FROM ranked WHERE rank IN (floor(position), ceil(position)) GROUP BY label, level, position ORDER BY label, level"""


@dataclass(frozen=True)
class GroupCounts:
    """keys: (n_groups,) sorted; medians_s: (n_groups,) of D1, missing without one; n_history, n_runs: (n_groups,).

    rows: (n_cells,) ascending, job times N_PARTS plus part; cell_bins: (n_cells,) by kind, -1 for a run without a
    ratio; n_in_cell: (n_cells,). Runs without a median are in no cell."""

    keys: NDArray[np.object_]
    medians_s: Floats
    n_history: Ints
    n_runs: Ints
    bins: dict[Kind, Bins]
    rows: Ints
    cell_bins: dict[Kind, Ints]
    n_in_cell: Ints

    @property
    def n_groups(self) -> int:
        """Jobs with at least one finished run."""
        return len(self.keys)

    def dense(self, kind: Kind, groups: Ints, part: int = HISTORY) -> Counts:
        """n_h, the runs of some jobs, by number, in each bin, in one of PARTS, the last being all: (n, n_bins)."""
        places, n_bins = np.full(self.n_groups, -1), self.bins[kind].n_bins
        places[groups] = np.arange(len(groups))
        cells = self._cells(kind, part)
        place = places[self.rows[cells] // N_PARTS]
        cells, place = cells[place >= 0], place[place >= 0]
        weights = self.n_in_cell[cells]
        counts = np.bincount(place * n_bins + self.cell_bins[kind][cells], weights, minlength=len(groups) * n_bins)
        return counts.astype(np.int64).reshape(len(groups), n_bins)  # exact below 2^53

    def support(self, kind: Kind, part: int = HISTORY) -> Ints:
        """Normalised runs of each job in one of PARTS: (n_groups,)."""
        cells = self._cells(kind, part)
        n_runs = np.bincount(self.rows[cells] // N_PARTS, self.n_in_cell[cells], minlength=self.n_groups)
        return n_runs.astype(np.int64)

    def log_posteriors(self, kind: Kind, centres: Floats) -> Floats:
        """log_posterior of each job in each of PARTS: (n_groups, N_PARTS, K); with no run there all are alike."""
        from scipy.sparse import csr_array

        cells = self._cells(kind, EVERYTHING)
        shape, n_h = (self.n_groups * N_PARTS, self.bins[kind].n_bins), self.n_in_cell[cells].astype(float)
        starts = np.searchsorted(self.rows[cells], np.arange(shape[0] + 1))
        counts = csr_array((n_h, self.cell_bins[kind][cells], starts), shape=shape)
        log_likelihoods = counts @ log_shapes(centres).T  # equation 8: (n_groups * N_PARTS, K)
        by_part = log_likelihoods.reshape(self.n_groups, N_PARTS, -1)
        by_part[:, EVERYTHING] = by_part.sum(axis=1)
        return posterior_of(by_part.reshape(shape[0], -1)).reshape(by_part.shape)

    def _cells(self, kind: Kind, part: int) -> Ints:
        """Places of the cells of one of PARTS that have a bin."""
        is_there = self.cell_bins[kind] >= 0
        return np.flatnonzero(is_there if part == EVERYTHING else is_there & (self.rows % N_PARTS == part))


def count_groups(connection: Connection, source: str, params: CharacteriseParams) -> GroupCounts:
    """Medians of D1, and histograms of both kinds in every part of the log.

    Raises BadInput for a log with fewer than three times of submission, or no run for ranges from the data.
    Source: Zhu et al. 2023, section 4.2."""
    split_runs(connection, source, params.split)
    jobs = connection.sql(JOBS).to_arrow_table()
    n_runs, n_history = (jobs[name].to_numpy() for name in ("n_runs", "n_history"))
    keys = jobs["group_key"].to_numpy()
    medians_s = _medians(connection, keys, n_history)
    _put_groups(connection, keys, n_history, medians_s)
    bins = _bins(connection, n_history, params)
    runs = KNOWN
    if np.isnan(medians_s).any():
        runs += f"\n    UNION ALL {UNKNOWN}"
    ratio, delta = (bin_sql(kind, bins[kind]) for kind in KINDS)
    normalised = NORMALISED_RUNS.format(n_parts=N_PARTS, runs=runs, **NORMALISED)
    sql = f"SELECT row, {ratio} AS ratio_bin, {delta} AS delta_bin, count(*) AS n FROM ({normalised}) GROUP BY ALL"
    cells = connection.sql(sql).fetchnumpy()
    rows, ratio_bins, delta_bins = (cells[name].astype(np.int64) for name in ("row", "ratio_bin", "delta_bin"))
    order = np.argsort((rows * (bins["ratio"].n_bins + 1) + ratio_bins) * (bins["delta"].n_bins + 1) + delta_bins)
    cell_bins: dict[Kind, Ints] = {"ratio": ratio_bins[order], "delta": delta_bins[order]}
    return GroupCounts(keys, medians_s, n_history, n_runs, bins, rows[order], cell_bins, cells["n"][order])


def bin_sql(value: str, bins: Bins) -> str:
    """The bin h(x) of the SQL expression `value`, a DOUBLE; -1 for a missing one.

    That of Bins.index for every value: the same operations in the same order on the same doubles."""
    low, high, n_inside = (f"'{float(number)!r}'::DOUBLE" for number in (bins.low, bins.high, bins.n_inside))
    first, last = ("<=", ">=") if bins.kind == "ratio" else ("<", ">")
    inside = f"trunc(({value} - {low}) * {n_inside} / ({high} - {low}))::SMALLINT + 1::SMALLINT"
    outlier, missing, most = (f"{number}::SMALLINT" for number in (bins.n_bins - 1, -1, bins.n_inside))
    return (  # narrow integers are grouped fastest
        f"CASE WHEN {value} {last} {high} THEN {outlier} WHEN {value} {first} {low} THEN 0::SMALLINT "
        f"WHEN {value} IS NULL THEN {missing} ELSE least({inside}, {most}) END"
    )


def split_runs(connection: Connection, source: str, params: SplitParams) -> None:
    """Leave temp.finished on the connection: the finished runs of a source, with the part that each is in.

    Its parts (0, 1, 2) are those of assign_periods, found in bounded memory. Raises BadInput for fewer than three
    distinct times of submission. Source: Zhu et al. 2023, Table 1."""
    _set(connection, **dict.fromkeys(VARIABLES) | {"source": source, "statuses": list(FINISHED)})
    connection.execute(RUNS)
    starts = connection.execute(STARTS).fetchall()
    if len(starts) >= len(PERIODS):  # recorded periods
        (first, _), (second, second_at), (_, third_at) = starts[: len(PERIODS)]
        _set(connection, second_at=second_at, third_at=third_at, first_name=first, second_name=second)
    else:
        _set(connection, **_by_time(connection, params))


def _set(connection: Connection, **values: Any) -> None:
    """Values stand in variables of the connection: a view takes no parameters."""
    for name, value in values.items():
        connection.execute(f"SET VARIABLE {name} = $value::{VARIABLES[name]}", {"value": value})


def _by_time(connection: Connection, params: SplitParams) -> dict[str, Any]:
    hours = connection.execute(HOURS).fetchall()
    n_upto = np.cumsum([n for _, n, _, _ in hours], dtype=np.int64)
    if not len(hours):
        raise too_few_times(0)
    shares = np.array([params.history_share, params.history_share + params.training_share])
    ranks = np.minimum((shares * n_upto[-1]).astype(int), n_upto[-1] - 1)
    second_at, third_at = (_ranked(connection, hours, n_upto, int(rank)) for rank in ranks)
    second_at = _inside(connection, second_at, hours[0][2], hours[-1][3])
    if third_at <= second_at:  # D2 has at least one time of submission, and D3 what comes after it
        later = "SELECT min(queued_at) FROM temp.finished WHERE queued_at > $at"
        ((third_at,),) = connection.execute(later, {"at": second_at}).fetchall()
    return {"second_at": second_at, "third_at": third_at}


def _ranked(connection: Connection, hours: Sequence[Any], n_upto: Ints, rank: int) -> datetime:
    """The submission that `rank` others come before; only its hour is sorted."""
    place = int(np.searchsorted(n_upto, rank, side="right"))
    _, n, low, high = hours[place]
    # the second condition says nothing new, but by it DuckDB skips blocks of other hours: queued_at is computed
    sql = """SELECT queued_at FROM temp.finished
        WHERE queued_at BETWEEN $low AND $high AND (submitted_at IS NULL OR submitted_at BETWEEN $low AND $high)
        ORDER BY queued_at LIMIT 1 OFFSET $n_before"""
    parameters = {"low": low, "high": high, "n_before": rank - int(n_upto[place] - n)}
    ((at,),) = connection.execute(sql, parameters).fetchall()
    return datetime.fromisoformat(str(at))


def _inside(connection: Connection, at: datetime, low: datetime, high: datetime) -> datetime:
    """The nearest time of submission that leaves one before it and one after it; low, high: the first and the last."""
    if low < at < high:
        return at
    between = "SELECT min(queued_at), max(queued_at) FROM temp.finished WHERE queued_at > $low AND queued_at < $high"
    ((second, last_but_one),) = connection.execute(between, {"low": low, "high": high}).fetchall()
    if second is None:
        raise too_few_times(1 if low == high else 2)
    return datetime.fromisoformat(str(second if at == low else last_but_one))


def _medians(connection: Connection, keys: NDArray[np.object_], n_history: Ints) -> Floats:
    """The median of each job over its runs in D1: (n_groups,), missing without one. Source: section 4.2."""
    medians_s = np.full(len(keys), np.nan)
    batch_of = np.cumsum(n_history + VALUES_OF_JOB) // BATCH_VALUES
    for number in np.unique(batch_of):
        batch = np.flatnonzero(batch_of == number)
        is_all = len(batch) == len(keys)
        parameters = {} if is_all else {"first": keys[batch[0]], "last": keys[batch[-1]]}
        rows = connection.execute(MEDIANS.format(of_batch="" if is_all else OF_BATCH), parameters).fetchnumpy()
        medians_s[batch[n_history[batch] > 0]] = rows["median_s"]
    return medians_s


def _put_groups(
    connection: Connection, keys: NDArray[np.object_], n_history: Ints, medians_s: Floats, labels: Labels | None = None
) -> None:
    """temp.groups: a row for each job, numbered from 0 in the order of keys."""
    labels = np.full(len(keys), NO_LABEL) if labels is None else labels
    groups = pa.table(
        {
            "group_number": pa.array(range(len(keys)), pa.int32()),
            "group_key": pa.array(keys, pa.string()),
            "n_history": n_history,
            "median_s": pa.array(medians_s, from_pandas=True),
            "label": pa.array(labels, pa.int32(), mask=labels == NO_LABEL),
        }
    )
    connection.register("rows_to_put", groups)
    connection.execute("CREATE OR REPLACE TEMP TABLE groups AS SELECT * FROM rows_to_put")
    connection.unregister("rows_to_put")


def _bins(connection: Connection, n_history: Ints, params: CharacteriseParams) -> dict[Kind, Bins]:
    """Those that are set, or the range of the runs in D1 of jobs with enough of them there.

    A job that ran once is its own median, and says nothing of how far bins must reach."""
    if params.bins.ranges != "data":
        return {kind: bins_of(kind, params.bins) for kind in KINDS}
    enough = params.shapes.min_support if (n_history >= params.shapes.min_support).any() else 1
    bins = {}
    for kind in KINDS:
        values = f"SELECT 0 AS label, value FROM ({MEMBERS.format(value=NORMALISED[kind])}) WHERE n_history >= {enough}"
        tail = _quantiles(connection, values, (1 - TAIL_SHARE,))
        bins[kind] = derived_bins(kind, tail.to_numpy(), params.bins)
    return bins


def _quantiles(connection: Connection, values: str, levels: Sequence[float]) -> pd.DataFrame:
    """Exact quantiles, linear between two values: a row a label, a column a level. values: SQL of label and value."""
    rows = connection.execute(QUANTILES.format(values=values), {"levels": list(levels)}).df()
    return rows.pivot_table(index="label", columns="level", values="value")


logger = logging.getLogger(__name__)
TABLES = ("shapes", "group_shapes", "shape_curve")


class Characterised(TypedDict):
    """What stands in jobs.shapes and its sisters: the files that it saw, the jobs of the log, k shapes of each kind."""

    data_version: str
    n_groups: int
    k: dict[Kind, int]


@dataclass(frozen=True)
class Characterisation:
    """The shapes of one normalisation. table: Table 2, a row a shape, with all columns of jobs.shapes."""

    shapes: ShapeSet
    table: pd.DataFrame
    curve: InertiaCurve


def characterise(warehouse: Warehouse, source: str, params: CharacteriseParams) -> Characterised:
    """Write the shapes of one source and those of its jobs anew, in one transaction; twice changes nothing.

    Nobody holds the warehouse while shapes are clustered. Raises NotFound if the source has no runs, BadInput if it
    mixes simulated with measured runs, has fewer than three times of submission or no median, WarehouseBusy if other
    files of the source came in meanwhile. Source: Zhu et al. 2023, sections 4.2 and 5.2."""
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        version = data_version(connection, "jobs", source)
        counts = count_groups(connection, source, params)
    clustered = {kind: fit for kind in KINDS if (fit := _cluster(counts, kind, params)) is not None}
    if not clustered:
        raise BadInput(f"source {source!r}", "no run has a historic median", "finished runs with a runtime")
    rows = {kind: _rows(warehouse, source, params, version, counts, *fit) for kind, fit in clustered.items()}
    with writing(warehouse) as connection, transaction(connection):
        _refuse_change(connection, source, version)
        for name in TABLES:
            connection.execute(f"DELETE FROM jobs.{name} WHERE source = $source", {"source": source})
            for kind in rows:
                insert_rows(connection, f"jobs.{name}", rows[kind][name], {"source": source, "kind": kind})
    k = {kind: used.k for kind, (_, used, _) in clustered.items()}
    logger.info("characterised %d jobs of source %s: shapes %s", counts.n_groups, source, k)
    return Characterised(data_version=version, n_groups=counts.n_groups, k=k)


def read_characterised(warehouse: Warehouse, source: str) -> dict[Kind, Characterisation]:
    """By kind, ratio first. Raises NotFound if the source has not been characterised."""
    with reading(warehouse) as connection:
        by_kind = {kind: fetch_shapes(connection, source, kind) for kind in KINDS}
    kinds = {kind: characterisation for kind, characterisation in by_kind.items() if characterisation is not None}
    if not kinds:
        raise NotFound(f"source {source!r} has no shapes yet; make them with 'whorl jobs characterise'")
    return kinds


def fetch_shapes(connection: Connection, source: str, kind: Kind) -> Characterisation | None:
    """One normalisation over an open connection; None if the source has no shapes of it."""
    rows, curve = (
        connection.execute(
            f"""SELECT * EXCLUDE (source, kind) FROM jobs.{table}
            WHERE source = $source AND kind = $kind ORDER BY {order}""",
            {"source": source, "kind": kind},
        ).df()
        for table, order in (("shapes", "shape"), ("shape_curve", "k"))
    )
    if rows.empty:
        return None
    first, n_groups = rows.iloc[0], rows["n_groups"].to_numpy(dtype=np.int64)
    cut = Bins(kind=kind, low=first["bins_low"], high=first["bins_high"], n_bins=int(first["n_bins"]))
    centres = np.stack([np.asarray(centre, dtype=float) for centre in rows["centre"]])
    shapes = ShapeSet(cut, centres, n_groups, float(first["inertia"]))
    bends = curve[curve["is_elbow"]]["k"].tolist()
    points = InertiaCurve(curve["k"].tolist(), curve["inertia"].tolist(), bends[0] if bends else None)
    return Characterisation(shapes, rows, points)


def shape_words(kind: Kind, characterisation: Characterisation) -> str:
    """How many shapes of how many jobs there are, and where the curve of inertia bends, as one sentence."""
    k, n_jobs = len(characterisation.table), int(characterisation.table["n_groups"].sum())
    bend = "has no elbow" if characterisation.curve.elbow is None else f"bends most at {characterisation.curve.elbow}"
    least = int(characterisation.table["min_support"].iloc[0])
    return (
        f"{k} shapes ({kind}) of {n_jobs:,} jobs with at least {least:,} runs in the history; "
        f"the curve of inertia {bend}"
    )


def lowered(support: Ints, params: ShapeParams) -> ShapeParams:
    """The same, with a min_support that some job has: that of the k-th job by runs, but at least LABEL_SUPPORT.

    support: (n_groups,) runs in D1, not all 0."""
    most = int(support.max())
    if most >= params.min_support:
        return params
    kth = int(np.sort(support)[::-1][: params.k][-1])
    return params.model_copy(update={"min_support": min(most, max(kth, LABEL_SUPPORT))})


def _cluster(
    counts: GroupCounts, kind: Kind, params: CharacteriseParams
) -> tuple[ShapeFit, ShapeParams, InertiaCurve] | None:
    """Shapes, the parameters as used, and inertia curve of one kind; None, with a line in the log, if no run is
    normalised.

    Without a job of min_support runs in D1 it is lowered to what the k-th job has, or the first; with fewer different
    distributions than k, there are as many shapes. The log says so."""
    support, bins, configured = counts.support(kind), counts.bins[kind], params.shapes
    if not support.any():
        logger.warning("no %s shapes: no run in the history has a median above 0", kind)
        return None
    used = lowered(support, configured)
    groups = np.flatnonzero(support >= used.min_support)
    history = counts.dense(kind, groups)
    k = min(used.k, largest_k(history, bins, used))
    if used.min_support < configured.min_support:
        words = "%s shapes: no job has %d runs in the history; min_support %d, which %d jobs have"
        logger.warning(words, kind, configured.min_support, used.min_support, len(groups))
    if k < configured.k:
        words = "%s shapes: k %d for %d jobs with %d different distributions; as many shapes"
        logger.warning(words, kind, configured.k, len(groups), k)
    used = used.model_copy(update={"k": k})
    fit = fit_shapes(history, bins, used)
    labels = np.full(counts.n_groups, NO_LABEL, dtype=np.intp)
    labels[groups] = fit.labels
    return ShapeFit(fit.shapes, labels), used, inertia_curve(history, bins, used)


def _rows(
    warehouse: Warehouse,
    source: str,
    params: CharacteriseParams,
    version: str,
    counts: GroupCounts,
    fit: ShapeFit,
    used: ShapeParams,
    curve: InertiaCurve,
) -> dict[str, pa.Table]:
    """The rows of TABLES of one kind: its shapes by the exact gap of their members' runs, with Table 2 over the runs in
    D1, std to 12 digits; the posterior of each job; and the curve."""
    bins, labels = fit.shapes.bins, fit.labels
    members = MEMBERS.format(value=NORMALISED[bins.kind]) + " AND label IS NOT NULL"
    with reading(warehouse) as connection:
        _refuse_change(connection, source, version)
        split_runs(connection, source, params.split)
        _put_groups(connection, counts.keys, counts.n_history, counts.medians_s, labels)
        quantiles = _quantiles(connection, members, (0.25, 0.75, 0.95)).reindex(range(used.k))
        table = connection.execute(
            f"""SELECT label, count(*) AS n_runs, stddev_samp(value) AS std,
                100 * avg(({bin_sql("value", bins)} = {bins.n_bins - 1})::INTEGER) AS outlier_percent
            FROM ({members}) GROUP BY label"""
        ).df()
    table = table.set_index("label").reindex(range(used.k))
    table["std"] = [float(f"{std:.{DIGITS}g}") for std in table["std"]]
    table["n_groups"] = np.bincount(labels[labels != NO_LABEL], minlength=used.k)
    table["n_runs"] = table["n_runs"].fillna(0).astype(np.int64)
    table["p25_p75"], table["p95"] = quantiles[0.75] - quantiles[0.25], quantiles[0.95]
    order = table["p25_p75"].to_numpy().argsort(kind="stable")
    shapes = in_order(fit, order).shapes
    described = table.iloc[order].assign(
        shape=range(used.k), centre=list(shapes.centres), inertia=shapes.inertia, min_support=used.min_support,
        bins_low=bins.low, bins_high=bins.high, n_bins=bins.n_bins, data_version=version,
        parameters=json_of(params.model_dump(mode="json")),
    )  # fmt: skip
    is_elbow = [k == curve.elbow for k in curve.ks]
    return {
        "shapes": pa.Table.from_pandas(described, preserve_index=False),
        "group_shapes": _group_rows(counts, np.exp(counts.log_posteriors(bins.kind, shapes.centres)), bins.kind),
        "shape_curve": pa.table({"k": curve.ks, "inertia": curve.inertias, "is_elbow": is_elbow}),
    }


def _refuse_change(connection: Connection, source: str, version: str) -> None:
    if data_version(connection, "jobs", source) != version:
        raise WarehouseBusy(f"source {source!r}: other files came in while its shapes were made; make them again")


def _group_rows(counts: GroupCounts, posteriors: Floats, kind: Kind) -> pa.Table:
    """A row for each job and part with runs, by job. posteriors: (n_groups, N_PARTS, K)."""
    n_runs = np.stack([counts.support(kind, part) for part in range(len(PARTS))], axis=1)  # (n_groups, N_PARTS)
    group, part = np.nonzero(n_runs)
    posterior, n = posteriors[group, part], n_runs[group, part]
    medians = counts.medians_s[group]
    offsets = pa.array(np.arange(0, posterior.size + 1, posterior.shape[1]), pa.int32())
    return pa.table(
        {
            "group_key": pa.array(counts.keys).take(pa.array(group)),
            "part": pa.array(np.array(PARTS, dtype=object)[part], pa.string()),
            "n_runs": n,
            "median_s": pa.array(medians, from_pandas=True),
            "median_source": pa.array(np.where(np.isnan(medians), "before", "history"), pa.string()),
            "label": pa.array(hard_labels(posterior), pa.int32(), mask=n < LABEL_SUPPORT),
            "posterior": pa.ListArray.from_arrays(offsets, pa.array(posterior.ravel())),
        }
    )
