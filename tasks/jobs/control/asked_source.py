"""Where the rows are: a what-if question to the model in use for a source."""

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.jobs.control.answering import Answer, Ground, answer, make_ground
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.scenarios import Scenario
from tasks.jobs.predict.champions import needed_champion
from tasks.jobs.predict.rows import read_runs
from tasks.jobs.summary import find_group
from tasks.warehouse.place import Warehouse

SEED = 0  # of the resamples and the samples of rows


@dataclass(frozen=True)
class Asked:
    """ground: what questions to the source have in common; job: its key, None for all jobs."""

    source: str
    model_id: str
    ground: Ground
    job: str | None

    def answer(self, scenario: Scenario, params: WhatIfParams) -> Answer:
        """What follows from a change; the same question gets the same answer. Raises BadInput if the log does not have
        what is changed."""
        with threadpool_limits(1):
            return answer(self.ground, scenario, params, np.random.default_rng(SEED))


def ask_source(warehouse: Warehouse, source: str, params: WhatIfParams, *, job: str | None = None) -> Asked:
    """Load the model in use and the rows that changes are tried on; job: a key or a unique part of it.

    Raises NoWarehouse, NotFound without a model, such a source or such a job, BadInput without held-out runs."""
    card, trained = needed_champion(warehouse, source)
    key = None if job is None else find_group(warehouse, source, job)
    runs = read_runs(warehouse, source, with_what_ifs=True)
    with threadpool_limits(1):
        return Asked(source, card.model_id, make_ground(trained, runs, params, job=key), key)
