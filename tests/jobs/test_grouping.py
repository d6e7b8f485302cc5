"""Group keys: readable, stable, and the same for the runs of one job."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.grouping import Recurrence, group_keys, recurrence, recurrence_of
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers.own import OwnReader

RECORDED = sorted((Path(__file__).parents[2] / "data" / "recorded" / "jobs").glob("runs-*.parquet"))
RUN: dict[str, Any] = {
    "name": "backup.sh",
    "plan_signature": None,
    "user_name": "alice",
    "requested_cpus": 16.0,
    "used_cpus": 8.0,
}


def key_of(**changes: Any) -> str:
    return str(group_keys(pd.DataFrame([RUN | changes]).astype({"name": "str", "plan_signature": "str"})).iloc[0])


KEYS = {
    "name, user, size": ({}, "backup.sh · alice · 16 cpus"),
    "one processor": ({"requested_cpus": 1.0}, "backup.sh · alice · 1 cpu"),
    "part of a processor": ({"requested_cpus": 0.5}, "backup.sh · alice · 0.5 cpus"),
    "many processors": ({"requested_cpus": 1e6}, "backup.sh · alice · 1000000 cpus"),
    "what was used, where nothing was asked": ({"requested_cpus": np.nan}, "backup.sh · alice · 8 cpus"),
    "no size": ({"requested_cpus": np.nan, "used_cpus": np.nan}, "backup.sh · alice"),
    "no user": ({"user_name": None}, "backup.sh · 16 cpus"),
    "an empty user": ({"user_name": ""}, "backup.sh · 16 cpus"),
    "no name": ({"name": None}, "(no name) · alice · 16 cpus"),
    "only a plan": ({"name": None, "plan_signature": "1a2b3c4d"}, "(no name)#1a2b3c4d"),
    "a plan, which makes user and size superfluous": (
        {"name": "daily_revenue_2026-11-21 /data/in", "plan_signature": "1a2b3c4d5e6f"},
        "daily_revenue_{date} {path}#1a2b3c4d",
    ),
    "a plan that is no hash": (
        {"plan_signature": "SCAN>FILTER"},
        "backup.sh#" + hashlib.sha256(b"SCAN>FILTER").hexdigest()[:8],
    ),
    "a key that the log gives": ({"group_key": "mine 7", "plan_signature": "1a2b3c4d"}, "mine 7"),
}


@pytest.mark.parametrize(("changes", "expected"), KEYS.values(), ids=KEYS)
def test_the_key_is_name_and_plan_or_else_name_user_and_size(changes: dict[str, Any], expected: str) -> None:
    assert key_of(**changes) == expected


def test_plans_that_begin_alike_but_are_no_hashes_are_told_apart() -> None:
    assert key_of(plan_signature="SCAN orders>FILTER") != key_of(plan_signature="SCAN orders>SORT")


def test_long_names_are_cut_but_stay_apart() -> None:
    first, second = key_of(name="select " + "a, " * 200 + "b"), key_of(name="select " + "a, " * 200 + "c")
    assert first != second
    assert max(len(first), len(second)) == 200


def test_each_row_gets_its_own_key_whatever_its_index_and_its_neighbours() -> None:
    rows = pd.DataFrame(
        [RUN, RUN | {"user_name": "bob"}, RUN | {"name": "x_7"}, RUN | {"name": "x_8"}, RUN], index=[9, 9, 3, 2, 1]
    )
    keys = group_keys(rows)
    assert keys.to_list() == [key_of(), key_of(user_name="bob"), key_of(name="x_7"), key_of(name="x_7"), key_of()]
    assert keys.index.to_list() == [9, 9, 3, 2, 1]


def test_rows_with_nothing_to_go_by_still_have_a_key() -> None:
    assert group_keys(pd.DataFrame({"run_id": ["1", "2"]})).to_list() == ["(no name)", "(no name)"]
    assert group_keys(pd.DataFrame({"name": pd.Series(dtype="str")})).to_list() == []


def test_the_parameters_reach_the_names() -> None:
    keys = group_keys(pd.DataFrame([RUN | {"name": "shift 2"}]), GroupParams(kept_after=["shift"]))
    assert keys.to_list() == ["shift 2 · alice · 16 cpus"]


def test_recurrence_counts_runs_whose_group_has_two_three_and_twenty() -> None:
    keys = ["a"] * 20 + ["b"] * 3 + ["c"] * 2 + ["d"] * 15 + ["e"] * 0 + [f"once {i}" for i in range(10)]
    expected = Recurrence(50, 14, recurring_share=40 / 50, support_3_share=38 / 50, support_20_share=20 / 50)
    assert recurrence(pd.DataFrame({"group_key": keys})) == expected


def test_recurrence_of_parts_adds_up_to_that_of_the_whole() -> None:
    parts = [pd.Series(["a", "a", "b"]), pd.Series(["a", "c"])]
    support = parts[0].value_counts().add(parts[1].value_counts(), fill_value=0)
    assert recurrence_of(support) == recurrence(pd.DataFrame({"group_key": pd.concat(parts)}))


def test_recurrence_of_nothing_is_not_a_number() -> None:
    found = recurrence(pd.DataFrame({"group_key": pd.Series(dtype="str")}))
    assert (found.n_runs, found.n_groups, np.isnan(found.recurring_share)) == (0, 0, True)


@pytest.mark.skipif(not RECORDED, reason="data/recorded/jobs holds no recording")
def test_the_recorded_jobs_are_found_again_from_the_names_they_were_submitted_under() -> None:
    names = pd.concat([chunk.rows for path in RECORDED for chunk in OwnReader().read(str(path), ReadParams())])
    jobs = pd.concat([pd.read_parquet(path, columns=["job"]) for path in RECORDED])["job"]
    found = group_keys(names.assign(plan_signature=None, user_name=None, requested_cpus=np.nan, used_cpus=np.nan))
    pairs = pd.DataFrame({"job": jobs.to_numpy(), "found": found.to_numpy()}).drop_duplicates()
    assert len(names) == len(jobs)
    assert len(pairs) == pairs["job"].nunique() == pairs["found"].nunique()
