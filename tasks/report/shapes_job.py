"""One job against the shapes of its source: its runs are counted anew from the warehouse, as a characterisation did."""

import json

import numpy as np

from tasks.errors import NotFound
from tasks.jobs.characterise import (
    Characterisation,
    read_characterised,
)
from tasks.jobs.normalisation import (
    Bins,
    Counts,
    historic_medians,
    normalise,
)
from tasks.jobs.predict.rows import fetch_runs
from tasks.jobs.shape_params import (
    CharacteriseParams,
    Kind,
)
from tasks.jobs.shapes import prior_weights
from tasks.report.shapes_likelihood import JobAgainstShapes, compare_with_shapes
from tasks.warehouse.connection import Connection, fetch, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

ASKED = "SELECT parameters, data_version FROM jobs.shapes WHERE source = $source LIMIT 1"
MEDIAN = """SELECT median_s FROM jobs.group_shapes
    WHERE source = $source AND kind = $kind AND group_key = $job AND part = 'all'"""


def are_shapes_fresh(warehouse: Warehouse, source: str, params: CharacteriseParams) -> bool:
    """Whether the source has shapes that were made of its files of now, with these parameters."""
    with reading(warehouse) as connection:
        found = connection.execute(ASKED, {"source": source}).fetchone()
        if found is None:
            return False
        version = data_version(connection, "jobs", source)
    return bool(json.loads(found[0]) == params.model_dump(mode="json") and found[1] == version)


def job_against_shapes(
    warehouse: Warehouse, source: str, job: str, kind: Kind, numbers: tuple[int, int] | None = None
) -> JobAgainstShapes:
    """All finished runs of a job against two shapes of its source, by default the two most likely.

    Raises NotFound without shapes of this kind, or a job without a run that has a median; BadSetting for a number
    that is no shape. Source: Zhu et al. 2023, equations 1 to 8 and Figure 6."""
    found = _of_kind(warehouse, source, kind)
    text = fetch(warehouse, ASKED, {"source": source})["parameters"].iloc[0]
    params = CharacteriseParams.model_validate_json(str(text))
    with reading(warehouse) as connection:
        counts = _counts(connection, source, job, found.shapes.bins, params)
    against = None
    if counts is not None:
        against = compare_with_shapes(
            job,
            counts,
            found.shapes,
            empty_bin_prior=params.posterior.empty_bin_prior,
            prior=prior_weights(params.posterior.prior, found.shapes.n_groups),
            numbers=numbers,
        )
    if against is None:
        raise NotFound(f"job {job!r} of source {source!r}: no finished run has a median to be compared with ({kind})")
    return against


def _of_kind(warehouse: Warehouse, source: str, kind: Kind) -> Characterisation:
    found = read_characterised(warehouse, source).get(kind)
    if found is None:
        raise NotFound(f"source {source!r} has no {kind} shapes; ask for the other normalisation")
    return found


def _counts(connection: Connection, source: str, job: str, bins: Bins, params: CharacteriseParams) -> Counts | None:
    """Runs of the job in each bin, (n_bins,); None if the characterisation knows no run of it with a median."""
    row = connection.execute(MEDIAN, {"source": source, "kind": bins.kind, "job": job}).fetchone()
    if row is None:
        return None
    history = {} if row[0] is None else {job: float(row[0])}
    runs = fetch_runs(connection, source, group_key=job)
    medians = historic_medians(runs, history, params.normalisation)
    index = bins.index(normalise(runs["runtime_s"], medians["median_s"], bins.kind))
    return np.bincount(index[index >= 0], minlength=bins.n_bins).astype(np.int64)
