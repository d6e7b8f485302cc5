"""Runtime Variation in Big Data Analytics (Zhu et al. 2023), section 3.1: job groups, worked out by hand."""

import os
from pathlib import Path

import pandas as pd
import pytest

from tasks.jobs.grouping import group_keys
from tasks.jobs.params import ReadParams
from tasks.jobs.readers import READERS

NASA = Path(os.environ.get("WHORL_DATASETS", "")) / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz"

SUBMISSIONS = [  # name as submitted, plan
    ("daily_revenue_2026-11-19 /data/orders/part-0001", "1a2b3c4d"),
    ("daily_revenue_2026-11-20 /data/orders/part-0007", "1a2b3c4d"),
    ("daily_revenue_2026-11-21 s3://lake/orders/2026", "1a2b3c4d"),
    ("daily_revenue_2026-11-22 /data/orders/part-0009", "99999999"),  # compiled to another plan
    ("daily_costs_2026-11-22 /data/orders/part-0009", "1a2b3c4d"),  # another job with an equal plan
    ("weekly_costs_20261122_r17", "5e6f7a8b"),
    ("weekly_costs_20261129_r18", "5e6f7a8b"),
]


def submissions():
    return pd.DataFrame(SUBMISSIONS, columns=["name", "plan_signature"])


def test_a_group_is_a_normalised_name_and_a_plan():
    assert group_keys(submissions()).to_list() == [
        *["daily_revenue_{date} {path}#1a2b3c4d"] * 3,
        "daily_revenue_{date} {path}#99999999",
        "daily_costs_{date} {path}#1a2b3c4d",
        *["weekly_costs_{date}_r{n}#5e6f7a8b"] * 2,
    ]


def test_support_is_the_number_of_instances_in_a_group():
    assert sorted(group_keys(submissions()).value_counts()) == [1, 1, 2, 3]


@pytest.mark.skipif(not NASA.is_file(), reason="WHORL_DATASETS names no folder with swf/NASA-iPSC-1993-3.1-cln.swf.gz")
def test_most_jobs_of_the_nasa_log_recur_as_feitelson_and_nitzberg_reported():
    rows = pd.concat([chunk.rows for chunk in READERS["swf"].read(str(NASA), ReadParams())])
    keys = group_keys(rows)
    support = keys.value_counts()
    assert (support.sum(), len(support)) == (18_239, 1_256)
    assert round(support[support >= 2].sum() / support.sum(), 4) == 0.9757
    assert round(support[support >= 20].sum() / support.sum(), 4) == 0.7854
    support = keys[rows["runtime_s"] > 0].value_counts()
    assert (support >= 20).sum() == 162
