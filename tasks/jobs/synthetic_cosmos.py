"""Simulated runs of recurring jobs on Microsoft Cosmos, drawn from the published moments of each job.

The moments are those of microsoft/Peregrine (Sen et al., AutoToken, VLDB 2020): for each job 15 attributes with mean,
standard deviation (of the population), covariance (of the sample), which attributes depend on each other, and which
are whole numbers. Every row is marked as simulated; no report mixes them with measurements. What we decide:

- A varying attribute is log-normal, so that it is positive; mean and deviation are met exactly.
- Attributes that depend on each other have the logarithms' covariance ln(1 + cov / (mean mean)), which meets their
  covariance wherever such a distribution exists; where it does not, the nearest one is taken.
- Whole numbers are rounded up or down at random: the mean stays, the variance grows by at most 1/4."""

import csv
import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import BadInput

ATTRIBUTES = (
    "VC", "HT2", "HT3", "EstCardinality", "InputCardinality", "InputChildrenCardinality", "AvgRowLength", "EstCost",
    "EstExclusiveCost", "VertexCount", "RequestedTokens", "ActualMaxTokens", "SubmitOffset", "WaitTime", "RunTime",
)  # fmt: skip
FIELDS = 6  # signature, means, deviations, covariance, dependent attributes, whole attributes
LARGEST_FIELD_CHARS = 10**6
NOISE_RATIO = 1e-9  # a deviation below this share of the mean is rounding of the source
LEAST_RATIO = 1e-6  # of the mean square that a negative covariance leaves
FIRST_AT = pd.Timestamp("2019-01-01")  # the source counts from the start of its trace, whose date it does not give


@dataclass(frozen=True)
class JobMoments:
    """What is published of one job. means, deviations: (15,); covariance: (15, 15); dependent, whole: attributes."""

    signature: str
    means: Any
    deviations: Any
    covariance: Any
    dependent: tuple[int, ...]
    whole: tuple[int, ...]


def read_moments(path: Path) -> list[JobMoments]:
    """The jobs of one trace (cosmos/trace1_training.csv.gz). Raises BadInput for a line that is no job's moments."""
    csv.field_size_limit(LARGEST_FIELD_CHARS)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [_job(path, place, fields) for place, fields in enumerate(csv.reader(file), 1) if fields]


def draw_attributes(job: JobMoments, n_runs: int, rng: np.random.Generator) -> pd.DataFrame:
    """So many instances of a job: (n_runs, 15), columns ATTRIBUTES, in the units of the source."""
    varies = job.deviations > NOISE_RATIO * np.abs(job.means)
    scale = np.where(varies & (job.means > 0), job.means, 1.0)
    covariance = np.diag(np.where(varies, job.deviations, 0) ** 2)
    together = np.array([place for place in job.dependent if varies[place]], dtype=int)
    if len(together):
        n_source = _ratio_of_variances(job, together)
        block = np.ix_(together, together)
        off_diagonal = job.covariance[block] / n_source
        covariance[block] = np.where(np.eye(len(together)) > 0, covariance[block], off_diagonal)
    logs = np.log(np.maximum(1 + covariance / np.outer(scale, scale), LEAST_RATIO))
    normal = rng.standard_normal((n_runs, len(ATTRIBUTES))) @ _root(logs).T  # (n_runs, 15)
    values = np.where(varies, job.means * np.exp(normal - np.diag(logs) / 2), job.means)
    whole = [place for place in job.whole if varies[place]]
    values[:, whole] = np.floor(values[:, whole] + rng.random((n_runs, len(whole))))
    return pd.DataFrame(values, columns=list(ATTRIBUTES))


def simulate_cosmos_runs(jobs: list[JobMoments], n_runs: int, rng: np.random.Generator) -> pd.DataFrame:
    """So many runs of each job in the columns of jobs.runs, rows by job; all marked as simulated.

    requested_cpus and peak_tokens are tokens; estimated_cost is in the units of Cosmos' optimiser, not in rows."""
    return pd.concat([_runs(job, draw_attributes(job, n_runs, rng)) for job in jobs], ignore_index=True)


def _runs(job: JobMoments, drawn: pd.DataFrame) -> pd.DataFrame:
    submitted_at = FIRST_AT + pd.to_timedelta(drawn["SubmitOffset"].round(6), unit="s")
    started_at = submitted_at + pd.to_timedelta(drawn["WaitTime"].round(6), unit="s")
    columns: dict[str, Any] = {
        "run_id": [f"cosmos-{job.signature}-{run:06}" for run in range(len(drawn))],
        "group_key": f"cosmos {job.signature}",
        "name": f"cosmos {job.signature}",
        "queue": f"vc {job.means[0]:.0f}",
        "submitted_at": submitted_at,
        "started_at": started_at,
        "ended_at": started_at + pd.to_timedelta(drawn["RunTime"].round(6), unit="s"),
        "wait_s": drawn["WaitTime"],
        "runtime_s": drawn["RunTime"],
        "status": "completed",
        "requested_cpus": drawn["RequestedTokens"],
        "peak_tokens": drawn["ActualMaxTokens"],
        "estimated_rows": drawn["EstCardinality"],
        "estimated_cost": drawn["EstCost"],
        "input_bytes": drawn["InputCardinality"] * drawn["AvgRowLength"],
        "is_simulated": True,
    }
    return pd.DataFrame(columns)


def _job(path: Path, place: int, fields: list[str]) -> JobMoments:
    n = len(ATTRIBUTES)
    try:
        signature, means, deviations, covariance, dependent, whole = fields
        job = JobMoments(
            signature,
            np.array(json.loads(means), dtype=float),
            np.array(json.loads(deviations), dtype=float),
            np.array(json.loads(covariance), dtype=float),
            tuple(json.loads(dependent)),
            tuple(json.loads(whole)),
        )
    except (ValueError, TypeError) as error:
        raise _no_moments(path, place, f"{len(fields)} fields, or one that is no list of numbers") from error
    if (job.means.shape, job.deviations.shape, job.covariance.shape) != ((n,), (n,), (n, n)):
        raise _no_moments(path, place, f"not {n} attributes")
    if not all(np.isfinite(part).all() for part in (job.means, job.deviations, job.covariance)):
        raise _no_moments(path, place, "a number that is not finite")
    return job


def _no_moments(path: Path, place: int, problem: str) -> BadInput:
    return BadInput(f"{path}, line {place}", problem, f"{FIELDS} fields with the moments of a job", "fetch it again")


def _ratio_of_variances(job: JobMoments, places: Any) -> float:
    """Variance of the sample over that of the population, n / (n - 1): the median of the attributes."""
    return float(np.median(np.diag(job.covariance)[places] / job.deviations[places] ** 2))


def _root(covariance: Any) -> Any:
    """A matrix R with R R' = covariance; if that is none, its nearest one with the same variances."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    reached = np.sqrt((root**2).sum(axis=1))
    return root * (np.sqrt(np.diag(covariance)) / np.where(reached > 0, reached, 1))[:, None]
