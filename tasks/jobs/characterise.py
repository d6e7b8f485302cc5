"""The typical runtime distributions of a log and the shape of each of its jobs: found, written, and read back."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa

from tasks.errors import BadInput, NotFound, WarehouseBusy
from tasks.jobs.group_counts import (
    KINDS,
    PARTS,
    GroupCounts,
    Ints,
    count_groups,
    describe_shapes,
    halve_groups,
    put_groups,
)
from tasks.jobs.pmf import Bins, Floats
from tasks.jobs.posterior import hard_labels, prior_weights
from tasks.jobs.shape_params import (
    CharacteriseParams,
    Kind,
    ShapeParams,
)
from tasks.jobs.shapes import (
    COMPARED_N_BINS,
    NO_LABEL,
    SEED,
    Clustering,
    InertiaCurve,
    ShapeFit,
    ShapeSet,
    compare_halves,
    fit_shapes,
    in_order,
    inertia_curve,
    largest_k,
    rival_clusterings,
)
from tasks.jobs.summary import refuse_mixture
from tasks.warehouse.connection import Connection, reading, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

logger = logging.getLogger(__name__)
TABLES = ("shapes", "group_shapes", "shape_curve", "shape_rivals", "bin_comparisons")


@dataclass(frozen=True)
class Characterised:
    """What was written: the files that it saw, the jobs of the log, and the number of shapes of each kind."""

    data_version: str
    n_groups: int
    k: dict[Kind, int]


@dataclass(frozen=True)
class Characterisation:
    """The shapes of one normalisation. table: Table 2, a row a shape, with all columns of jobs.shapes; rivals: share of
    the jobs in the largest cluster of other methods; bins: how well numbers of bins do."""

    shapes: ShapeSet
    table: pd.DataFrame
    curve: InertiaCurve
    rivals: pd.DataFrame
    bins: pd.DataFrame


@dataclass(frozen=True)
class _Clustered:
    """fit: labels (n_groups,) of all jobs of the log; params: as they were used."""

    fit: ShapeFit
    params: ShapeParams
    curve: InertiaCurve
    rivals: list[Clustering]


@dataclass(frozen=True)
class _Described:
    """table: Table 2, in the order of the shapes; posterior: (n_groups, N_PARTS, K)."""

    clustered: _Clustered
    table: pd.DataFrame
    posterior: Floats
    comparison: pd.DataFrame


def characterise(warehouse: Warehouse, source: str, params: CharacteriseParams) -> Characterised:
    """Write the shapes of one source and those of its jobs anew, in one transaction; twice changes nothing.

    Nobody holds the warehouse while shapes are clustered. Raises NotFound if the source has no runs, BadInput if it
    mixes simulated with measured runs, has fewer than three times of submission or no median, WarehouseBusy if other
    files of the source came in meanwhile. Source: Zhu et al. 2023, sections 4.2 and 5.2."""
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        version = data_version(connection, "jobs", source)
        counts = count_groups(connection, source, params)
    clustered = {kind: _cluster(counts, kind, params) for kind in KINDS}
    kinds = {
        kind: _describe(warehouse, source, params, version, counts, one)
        for kind, one in clustered.items()
        if one is not None
    }
    if not kinds:
        raise BadInput(f"source {source!r}", "no run has a historic median", "finished runs with a runtime")
    with writing(warehouse) as connection, transaction(connection):
        _refuse_change(connection, source, version)
        _write(connection, source, version, params, counts, kinds)
    k = {kind: one.clustered.params.k for kind, one in kinds.items()}
    logger.info("characterised %d jobs of source %s: shapes %s", counts.n_groups, source, k)
    return Characterised(version, counts.n_groups, k)


def read_characterised(warehouse: Warehouse, source: str) -> dict[Kind, Characterisation]:
    """By kind, ratio first. Raises NotFound if the source has not been characterised."""
    with reading(warehouse) as connection:
        found = {kind: fetch_shapes(connection, source, kind) for kind in KINDS}
    kinds = {kind: one for kind, one in found.items() if one is not None}
    if not kinds:
        raise NotFound(f"source {source!r} has no shapes yet; make them with 'whorl jobs characterise'")
    return kinds


def fetch_shapes(connection: Connection, source: str, kind: Kind) -> Characterisation | None:
    """One normalisation over an open connection; None if the source has no shapes of it."""
    rows, curve, rivals, bins = (
        connection.execute(
            f"""SELECT * EXCLUDE (source, kind) FROM jobs.{table}
            WHERE source = $source AND kind = $kind ORDER BY {order}""",
            {"source": source, "kind": kind},
        ).df()
        for table, order in (
            ("shapes", "shape"),
            ("shape_curve", "k"),
            ("shape_rivals", "method"),
            ("bin_comparisons", "n_bins"),
        )
    )
    if rows.empty:
        return None
    one, n_groups = rows.iloc[0], rows["n_groups"].to_numpy(dtype=np.int64)
    cut = Bins(kind=kind, low=one["bins_low"], high=one["bins_high"], n_bins=int(one["n_bins"]))
    centres = np.stack([np.asarray(centre, dtype=float) for centre in rows["centre"]])
    shapes = ShapeSet(cut, centres, n_groups / n_groups.sum(), n_groups, float(one["inertia"]))
    bends = curve[curve["is_elbow"]]["k"].tolist()
    points = InertiaCurve(curve["k"].tolist(), curve["inertia"].tolist(), bends[0] if bends else None)
    return Characterisation(shapes, rows, points, rivals, bins)


def shape_words(kind: Kind, found: Characterisation) -> str:
    """How many shapes of how many jobs there are, and where the curve of inertia bends, as one sentence."""
    k, n_jobs = len(found.table), int(found.table["n_groups"].sum())
    bend = "has no elbow" if found.curve.elbow is None else f"bends most at {found.curve.elbow}"
    least = int(found.table["min_support"].iloc[0])
    return (
        f"{k} shapes ({kind}) of {n_jobs:,} jobs with at least {least:,} runs in the history; "
        f"the curve of inertia {bend}"
    )


def lowered(support: Ints, params: ShapeParams, *, label_support: int) -> ShapeParams:
    """The same, with a min_support that some job has: that of the k-th job by runs, but at least label_support.

    support: (n_groups,) runs in D1, not all 0."""
    most = int(support.max())
    if most >= params.min_support:
        return params
    kth = int(np.sort(support)[::-1][: params.k][-1])
    return params.model_copy(update={"min_support": min(most, max(kth, label_support))})


def _cluster(counts: GroupCounts, kind: Kind, params: CharacteriseParams) -> _Clustered | None:
    """Shapes, inertia curve and rival clusterings of one kind; None, with a line in the log, if no run is normalised.

    Without a job of min_support runs in D1 it is lowered to what the k-th job has, or the first; with fewer different
    distributions than k, there are as many shapes. The log says so."""
    support, bins, asked = counts.support(kind), counts.bins[kind], params.shapes
    if not support.any():
        logger.warning("no %s shapes: no run in the history has a median above 0", kind)
        return None
    used = lowered(support, asked, label_support=params.label_support)
    groups = np.flatnonzero(support >= used.min_support)
    history = counts.dense(kind, groups)
    k = min(used.k, largest_k(history, bins, used))
    if used.min_support < asked.min_support:
        words = "%s shapes: no job has %d runs in the history; min_support %d, which %d jobs have"
        logger.warning(words, kind, asked.min_support, used.min_support, len(groups))
    if k < asked.k:
        words = "%s shapes: k %d for %d jobs with %d different distributions; as many shapes"
        logger.warning(words, kind, asked.k, len(groups), k)
    used = used.model_copy(update={"k": k})
    fit = fit_shapes(history, bins, used)
    labels = np.full(counts.n_groups, NO_LABEL, dtype=np.intp)
    labels[groups] = fit.labels
    curve, rivals = inertia_curve(history, bins, used), rival_clusterings(history, bins, used)
    return _Clustered(ShapeFit(fit.shapes, labels), used, curve, rivals)


def _describe(
    warehouse: Warehouse, source: str, params: CharacteriseParams, version: str, counts: GroupCounts, one: _Clustered
) -> _Described:
    """The shapes of one kind by the exact gap of their members' runs, their table, posterior and numbers of bins."""
    old, rng = one.fit.shapes, np.random.default_rng(SEED)
    with reading(warehouse) as connection:
        _refuse_change(connection, source, version)
        put_groups(connection, source, params.split, counts, one.fit.labels)
        table = describe_shapes(connection, old.bins, one.fit.labels, one.params.k)
        halves = halve_groups(connection, old.bins, COMPARED_N_BINS, rng)
    order = table["p25_p75"].to_numpy().argsort(kind="stable")
    fit = in_order(one.fit, order)
    log_p = counts.log_posteriors(
        old.bins.kind,
        fit.shapes.centres,
        empty_bin_prior=params.posterior.empty_bin_prior,
        prior=prior_weights(params.posterior.prior, fit.shapes.n_groups),
    )
    comparison = compare_halves(halves, old.bins, one.params, params.posterior)
    return _Described(replace(one, fit=fit), table.iloc[order].reset_index(drop=True), np.exp(log_p), comparison)


def _refuse_change(connection: Connection, source: str, version: str) -> None:
    if data_version(connection, "jobs", source) != version:
        raise WarehouseBusy(f"source {source!r}: other files came in while its shapes were made; make them again")


def _write(
    connection: Connection,
    source: str,
    version: str,
    params: CharacteriseParams,
    counts: GroupCounts,
    kinds: Mapping[Kind, _Described],
) -> None:
    """Replace all rows of a source in TABLES; the caller opens the transaction."""
    parameters = json.dumps(params.model_dump(mode="json"), sort_keys=True)
    for name in TABLES:
        connection.execute(f"DELETE FROM jobs.{name} WHERE source = $source", {"source": source})
    for kind, one in kinds.items():
        curve, rivals = one.clustered.curve, one.clustered.rivals
        rows = {
            "shapes": pa.Table.from_pandas(
                _shape_rows(one).assign(data_version=version, parameters=parameters), preserve_index=False
            ),
            "group_shapes": _group_rows(counts, kind, one, params.label_support),
            "shape_curve": pa.table(
                {"k": curve.ks, "inertia": curve.inertias, "is_elbow": [k == curve.elbow for k in curve.ks]}
            ),
            "shape_rivals": pa.table(
                {
                    "method": [rival.method for rival in rivals],
                    "largest_share": [rival.largest_share for rival in rivals],
                    "n_groups": [int((rival.labels >= 0).sum()) for rival in rivals],
                }
            ),
            "bin_comparisons": pa.Table.from_pandas(one.comparison, preserve_index=False),
        }
        for name, table in rows.items():
            connection.register("new_rows", table)
            constants = {"source": source, "kind": kind}
            sql = f"INSERT INTO jobs.{name} BY NAME SELECT $source AS source, $kind AS kind, * FROM new_rows"
            connection.execute(sql, constants).fetchall()
            connection.unregister("new_rows")


def _shape_rows(one: _Described) -> pd.DataFrame:
    shapes, bins = one.clustered.fit.shapes, one.clustered.fit.shapes.bins
    return one.table.assign(
        shape=range(len(one.table)),
        centre=list(shapes.centres),
        bins_low=bins.low,
        bins_high=bins.high,
        n_bins=bins.n_bins,
        inertia=shapes.inertia,
        min_support=one.clustered.params.min_support,
    )


def _group_rows(counts: GroupCounts, kind: Kind, one: _Described, label_support: int) -> pa.Table:
    """A row for each job and part with runs, by job."""
    n_runs = np.stack([counts.support(kind, part) for part in range(len(PARTS))], axis=1)  # (n_groups, N_PARTS)
    group, part = np.nonzero(n_runs)
    posterior, n = one.posterior[group, part], n_runs[group, part]
    medians = counts.medians_s[group]
    offsets = pa.array(np.arange(0, posterior.size + 1, posterior.shape[1]), pa.int32())
    return pa.table(
        {
            "group_key": pa.array(counts.keys).take(pa.array(group)),
            "part": pa.array(np.array(PARTS, dtype=object)[part], pa.string()),
            "n_runs": n,
            "median_s": pa.array(medians, from_pandas=True),
            "median_source": pa.array(np.where(np.isnan(medians), "before", "history"), pa.string()),
            "label": pa.array(hard_labels(posterior), pa.int32(), mask=n < label_support),
            "posterior": pa.ListArray.from_arrays(offsets, pa.array(posterior.ravel())),
        }
    )
