"""Where the rows are: the typical runtime distributions of a log and the shape of each of its jobs."""

import json
import logging
from dataclasses import dataclass, replace

import numpy as np

from tasks.errors import BadInput, WarehouseBusy
from tasks.jobs.characterise_counts import KINDS, count_groups, put_groups
from tasks.jobs.characterise_halves import halve_groups
from tasks.jobs.characterise_periods import split_runs
from tasks.jobs.characterise_rows import KindRows, write_rows
from tasks.jobs.characterise_shapes import FoundShapes, find_shapes
from tasks.jobs.characterise_table import describe_shapes
from tasks.jobs.group_counts import GroupCounts
from tasks.jobs.posterior import prior_weights
from tasks.jobs.shape_params import CharacteriseParams, Kind
from tasks.jobs.shapes import compare_halves, in_order
from tasks.jobs.summary import refuse_mixture
from tasks.warehouse.connection import Connection, reading, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Characterised:
    """What was written: the files that it saw, the jobs of the log, and the number of shapes of each kind."""

    data_version: str
    n_groups: int
    k: dict[Kind, int]


def characterise(warehouse: Warehouse, source: str, params: CharacteriseParams) -> Characterised:
    """Write the shapes of one source and those of its jobs anew, in one transaction; twice changes nothing.

    Nobody holds the warehouse while shapes are clustered. Raises NotFound if the source has no runs, BadInput if it
    mixes simulated with measured runs, has fewer than three times of submission or no median, WarehouseBusy if other
    files of the source came in meanwhile. Source: Zhu et al. 2023, sections 4.2 and 5.2."""
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        version = data_version(connection, "jobs", source)
        counts = count_groups(connection, source, params)
    found = {kind: find_shapes(counts, kind, params.shapes, label_support=params.label_support) for kind in KINDS}
    shapes = {kind: one for kind, one in found.items() if one is not None}
    if not shapes:
        raise BadInput(f"source {source!r}", "no run has a historic median", "finished runs with a runtime")
    kinds = {kind: _described(warehouse, source, params, version, counts, one) for kind, one in shapes.items()}
    text = json.dumps(params.model_dump(mode="json"), sort_keys=True)
    with writing(warehouse) as connection, transaction(connection):
        _refuse_change(connection, source, version)
        write_rows(
            connection,
            source,
            counts,
            kinds,
            data_version=version,
            parameters=text,
            label_support=params.label_support,
        )
    k = {kind: one.found.params.k for kind, one in kinds.items()}
    logger.info("characterised %d jobs of source %s: shapes %s", counts.n_groups, source, k)
    return Characterised(version, counts.n_groups, k)


def _described(
    warehouse: Warehouse, source: str, params: CharacteriseParams, version: str, counts: GroupCounts, one: FoundShapes
) -> KindRows:
    """The shapes of one kind by the exact gap of their members' runs, and what is told of them."""
    old, rng = one.fit.shapes, np.random.default_rng(params.shapes.seed)
    with reading(warehouse) as connection:
        _refuse_change(connection, source, version)
        split_runs(connection, source, params.split)
        put_groups(connection, counts)
        table = describe_shapes(connection, old.bins, one.fit.labels, one.params.k)
        halves = halve_groups(connection, old.bins, one.groups, params.shapes.compared_n_bins, rng)
    order = table["p25_p75"].to_numpy().argsort(kind="stable")
    fit = in_order(one.fit, order)
    prior = prior_weights(params.posterior.prior, fit.shapes.n_groups)
    empty_bin_prior = params.posterior.empty_bin_prior
    log_p = counts.log_posteriors(old.bins.kind, fit.shapes.centres, empty_bin_prior=empty_bin_prior, prior=prior)
    comparison = compare_halves(halves, old.bins, one.params, params.posterior)
    return KindRows(replace(one, fit=fit), table.iloc[order].reset_index(drop=True), np.exp(log_p), comparison)


def _refuse_change(connection: Connection, source: str, version: str) -> None:
    if data_version(connection, "jobs", source) != version:
        raise WarehouseBusy(f"source {source!r}: other files came in while its shapes were made; make them again")
