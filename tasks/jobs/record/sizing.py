"""How much a run reads: factors on the job's everyday size, of six kinds that real jobs show."""

import math

import numpy as np

from tasks.jobs.record.catalogue import Job
from tasks.jobs.record.datasets import PARTS

STEADY_SIGMA, SPREAD_SIGMA = 0.08, 0.55
WEEKEND_FACTOR, WEEK = 3.0, 7
GROWTH = 4.0
BACKFILL_SHARE, BACKFILL_FACTORS = 0.04, (10, 50)
WIDEST = 50


def size_factor(job: Job, at_days: float, progress: float, rng: np.random.Generator) -> float:
    """Input of one run as a multiple of the everyday input; progress: 0 at the campaign's start, 1 at its end."""
    match job.sizing:
        case "spread":
            return float(rng.lognormal(0, SPREAD_SIGMA))
        case "weekly":
            factor = WEEKEND_FACTOR if int(at_days) % WEEK >= WEEK - 2 else 1.0
            return factor * float(rng.lognormal(0, STEADY_SIGMA))
        case "growing":
            return float(GROWTH**progress)
        case "backfill" if rng.random() < BACKFILL_SHARE:
            return float(rng.uniform(*BACKFILL_FACTORS))
        case "wide":
            return math.exp(rng.uniform(0, math.log(WIDEST)))
    return float(rng.lognormal(0, STEADY_SIGMA))


def usual_parts(job: Job) -> float:
    """Parts that a run of the job reads in the middle of all its runs."""
    middle = {"wide": math.sqrt(WIDEST), "growing": math.sqrt(GROWTH)}.get(job.sizing, 1.0)
    return job.typical_parts * middle


def draw_parts(job: Job, at_days: float, progress: float, rng: np.random.Generator) -> tuple[int, int]:
    """First part and number of parts (1 to 64) that a run reads. A table's range must not wrap around."""
    count = round(job.typical_parts * size_factor(job, at_days, progress, rng))
    count = min(PARTS, max(1, count))
    last_start = PARTS - count if job.template.source == "table" else PARTS - 1
    return int(rng.integers(0, last_start + 1)), count
