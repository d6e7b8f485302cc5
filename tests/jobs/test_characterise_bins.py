"""Bins in SQL: at every value, edges above all, the bin that Bins.index gives."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.characterise_bins import bin_sql
from tasks.jobs.characterise_counts import count_groups
from tasks.jobs.normalisation import normalise
from tasks.jobs.pmf import Bins, derived_bins
from tasks.jobs.shape_params import (
    BinParams,
    CharacteriseParams,
    ShapeParams,
)
from tasks.warehouse.connection import reading

BINS = [
    Bins(kind="ratio", low=0, high=10),
    Bins(kind="delta", low=-900, high=900),
    Bins(kind="delta", low=-0.1, high=0.1, n_bins=3),
    Bins(kind="delta", low=-900, high=900, n_bins=500),
    Bins(kind="ratio", low=0, high=1.1, n_bins=77),
    Bins(kind="ratio", low=0, high=1 / 3, n_bins=10_000),
]


@pytest.mark.parametrize("bins", BINS, ids=str)
def test_a_value_has_the_same_bin_in_sql(job_log, bins):
    rng = np.random.default_rng(0)
    edges = bins.edges[1:-1]
    near = [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)]
    tiny = [0.0, -0.0, 5e-324, -5e-324, 1e300, -1e300, np.inf, -np.inf]
    values = np.concatenate([*near, tiny, bins.low + (bins.high - bins.low) * rng.uniform(-0.1, 1.1, 10_000)])
    rows = pd.DataFrame({"value": values, "place": range(len(values))})
    with reading(job_log([{"runtime_s": 1.0}])) as connection:
        connection.register("rows_to_bin", rows)
        sql = f"SELECT {bin_sql('value', bins)} FROM rows_to_bin ORDER BY place"
        found = [bin_ for (bin_,) in connection.execute(sql).fetchall()]
        missing = connection.execute(f"SELECT {bin_sql('NULL::DOUBLE', bins)}").fetchall()
    assert found == bins.index(values).tolist()
    assert missing == [(None,)]


@pytest.mark.parametrize("tail_share", [0.01, 0.2])
@pytest.mark.parametrize("kind", ["ratio", "delta"])
def test_ranges_from_the_data_are_the_derived_ones_of_the_history(job_log, kind, tail_share):
    rng = np.random.default_rng(3)
    runs = pd.DataFrame({
        "group_key": [f"job {i % 10}" for i in range(1000)] + [f"rare {i}" for i in range(50)],
        "runtime_s": np.r_[rng.lognormal(3, 1, 1000), rng.lognormal(9, 1, 50)],
    })  # fmt: skip
    runs["submitted_at"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.permutation(1050), unit="min")
    params = BinParams(ranges="data", tail_share=tail_share)
    with reading(job_log(runs)) as connection:
        counts = count_groups(connection, "log", CharacteriseParams(bins=params, shapes=ShapeParams(min_support=5)))
    history = runs.sort_values("submitted_at")[:525]
    history = history[history["group_key"].str.startswith("job")]
    medians = history.groupby("group_key")["runtime_s"].transform("median")
    assert counts.bins[kind] == derived_bins(kind, normalise(history["runtime_s"], medians, kind), params)


def test_ranges_of_no_run_are_refused(job_log):
    params = CharacteriseParams(bins=BinParams(ranges="data"))
    with reading(job_log([{"runtime_s": 0.0}] * 9)) as connection:
        with pytest.raises(BadInput, match=r"^normalised runs: none to derive a range from"):
            count_groups(connection, "log", params)
