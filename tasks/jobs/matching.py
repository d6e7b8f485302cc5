"""How one job is matched with a shape: its runs against the shapes of its source (Zhu et al., equations 1 to 8 and
Figure 6)."""

import json
from dataclasses import dataclass

import numpy as np

from tasks.errors import BadSetting, NotFound
from tasks.jobs.characterise import read_characterised
from tasks.jobs.normalisation import Counts, Floats, historic_medians, normalise
from tasks.jobs.params import CharacteriseParams, Kind
from tasks.jobs.predict.preparation import fetch_runs
from tasks.jobs.shapes import ShapeSet, log_likelihood, log_posterior
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import data_version

MADE_WITH = "SELECT parameters, data_version FROM jobs.shapes WHERE source = $source LIMIT 1"
MEDIAN = """SELECT median_s FROM jobs.group_shapes
    WHERE source = $source AND kind = $kind AND group_key = $job AND part = 'all'"""


@dataclass(frozen=True)
class JobAgainstShapes:
    """counts: (n_bins,) runs of the job in each bin. numbers: of the two shapes compared.

    log_likelihoods, posteriors: (k,) of every shape (equation 8)."""

    group_key: str
    shapes: ShapeSet
    counts: Counts
    numbers: tuple[int, int]
    log_likelihoods: Floats
    posteriors: Floats

    @property
    def n_runs(self) -> int:
        """Runs of the job."""
        return int(self.counts.sum())


def compare_with_shapes(
    group_key: str, counts: Counts, shapes: ShapeSet, numbers: tuple[int, int] | None = None
) -> JobAgainstShapes:
    """The job against two shapes, by default the most likely and the second.

    counts: (n_bins,). Raises BadSetting for a number that is no shape, or only one shape."""
    k = len(shapes.n_groups)
    if k < 2:
        raise BadSetting("shapes: there is only one, and so no two to compare")
    if numbers is not None and not (len(set(numbers)) == 2 and all(0 <= number < k for number in numbers)):
        shown = " and ".join(str(number) for number in numbers)
        raise BadSetting(f"shapes {shown}: expected two different ones of the {k} shapes, from 0 to {k - 1}")
    likelihoods = log_likelihood(counts, shapes.centres)[0]
    posteriors = np.exp(log_posterior(counts, shapes.centres))[0]
    if numbers is None:
        best, second = np.argsort(-likelihoods, kind="stable")[:2]
        numbers = (int(best), int(second))
    return JobAgainstShapes(group_key, shapes, np.asarray(counts), numbers, likelihoods, posteriors)


def are_shapes_fresh(warehouse: Warehouse, source: str, params: CharacteriseParams) -> bool:
    """Whether the source has shapes that were made of its files of now, with these parameters."""
    with reading(warehouse) as connection:
        made_with = connection.execute(MADE_WITH, {"source": source}).fetchone()
        if made_with is None:
            return False
        version = data_version(connection, "jobs", source)
    return bool(json.loads(made_with[0]) == params.model_dump(mode="json") and made_with[1] == version)


def job_against_shapes(
    warehouse: Warehouse, source: str, job: str, kind: Kind, numbers: tuple[int, int] | None = None
) -> JobAgainstShapes:
    """All finished runs of a job against two shapes of its source, by default the two most likely.

    Raises NotFound without shapes of this kind, or a job without a run that has a median; BadSetting for a number
    that is no shape. Source: Zhu et al. 2023, equations 1 to 8 and Figure 6."""
    characterisation = read_characterised(warehouse, source).get(kind)
    if characterisation is None:
        raise NotFound(f"source {source!r} has no {kind} shapes; ask for the other normalisation")
    bins = characterisation.shapes.bins
    counts = np.zeros(bins.n_bins, dtype=np.int64)
    with reading(warehouse) as connection:
        row = connection.execute(MEDIAN, {"source": source, "kind": kind, "job": job}).fetchone()
        runs = fetch_runs(connection, source, group_key=job) if row else None
    if row and runs is not None:  # the characterisation knows a run of it with a median
        medians = historic_medians(runs, {} if row[0] is None else {job: float(row[0])})
        index = bins.index(normalise(runs["runtime_s"], medians["median_s"], kind))
        counts = np.bincount(index[index >= 0], minlength=bins.n_bins).astype(np.int64)
    if not counts.any():
        raise NotFound(f"job {job!r} of source {source!r}: no finished run has a median to be compared with ({kind})")
    return compare_with_shapes(job, counts, characterisation.shapes, numbers)
