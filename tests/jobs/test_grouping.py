"""Group keys, readable, stable and the same for the runs of one job; and names without what changes from run to run."""

import hashlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.jobs.grouping import group_keys, normalise_names
from tasks.jobs.params import GroupParams, KeyPart, ReadParams
from tasks.jobs.readers import READERS

RECORDED = sorted((Path(__file__).parents[2] / "data" / "recorded" / "jobs").glob("runs-*.parquet"))[:3]
RUN: dict[str, Any] = {
    "name": "backup.sh", "plan_signature": None, "user_name": "alice", "requested_cpus": 16.0, "used_cpus": 8.0,
}  # fmt: skip


def normalise_name(name: str, params: GroupParams | None = None) -> str:
    return normalise_names([name], params or GroupParams())[0]


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


@pytest.mark.skipif(not RECORDED, reason="data/recorded/jobs holds no recording")
def test_the_recorded_jobs_are_found_again_from_the_names_they_were_submitted_under() -> None:
    names = pd.concat([chunk.rows for path in RECORDED for chunk in READERS["table"].read(str(path), ReadParams())])
    jobs = pd.concat([pd.read_parquet(path, columns=["job"]) for path in RECORDED])["job"]
    found = group_keys(names.assign(plan_signature=None, user_name=None, requested_cpus=np.nan, used_cpus=np.nan))
    pairs = pd.DataFrame({"job": jobs.to_numpy(), "found": found.to_numpy()}).drop_duplicates()
    assert len(names) == len(jobs)
    assert len(pairs) == pairs["job"].nunique() == pairs["found"].nunique()


UUID = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
SHA256 = "290d9b6f43193179d47f2f1cb082f821919af94f4e32d1795427a020c5839ba6"

DATES = {
    "etl-2026-11-21": "etl-{date}", "20261121_load": "{date}_load", "sales2026_11_21": "sales{date}",
    "21.11.2026 close": "{date} close", "report_21Nov2026": "report_{date}", "report Nov 2026": "report {date}",
    "q4_2026": "{date}", "kpi-2026-Q4": "kpi-{date}", "kpi_2026W47": "kpi_{date}", "month_202611": "month_{date}",
    "x.20261121T0312": "x.{date}", "x_20261121031500": "x_{date}",
    "scheduled__2026-11-21T00:00:00+00:00": "scheduled__{date}",
    "manual__2026-11-21T03:12:00.123456Z": "manual__{date}", "sync 2026-11-21 05:30:00": "sync {date}",
    "05:30 sync": "{time} sync",
}  # fmt: skip
IDS_AND_COUNTERS = {
    "job.1234567": "job.{id}", "attempt_1479712345678_0012_m_000003_0": "attempt_{id}_m_{n}",
    "application_1479712345678_0012": "application_{id}", f"run-{UUID}": "run-{id}", "name-0a1b2c3d4e5f": "name-{id}",
    "name-ab20261121cd": "name-{id}",  # the date in it is none
    "sha256:" + SHA256: "sha256:{hash}", "web-7d4b9c6f5-x2x8z": "web-{id}", "upload_x7f3k9q2": "upload_{id}",
    "node 10.0.0.12": "node {id}", "case 1.2": "case {n}", "run 5 of 10": "run {n} of {n}", "run7": "run{n}",
    "daily_r0042": "daily_r{n}", "daily_r7": "daily_r{n}", "part-0007": "part-{n}", "123_4": "{n}",
    "train --lr 0.001": "train --lr {n}",
    "SELECT * FROM t WHERE id = 42 AND d > '2026-11-21'": "SELECT * FROM t WHERE id = {n} AND d > '{date}'",
}  # fmt: skip
RUNS_OF_COUNTERS = {  # a counter must not leave its group where its digits happen to look like a time or a day
    "etl_20261121_0007": "etl_{date}",
    "etl_20261121_0099": "etl_{date}",
    "etl_20261121_10007": "etl_{date}",
}
PATHS = {
    "/data/in/part-0007.parquet": "{path}",
    "/home/bob/bin/../mc_gen": "mc_gen",
    "/opt/jobs/20261121/plots": "plots",
    "load /data/in/a.parquet /data/in/b.parquet": "load {path}",
    "distcp s3://bucket/2026/11/21 hdfs://nn:8020/b": "distcp {path}",
    "load --input=/data/x,~/y": "load --input={path}",
    "load in/2026/11/21/x.csv": "load {path}",
    r"copy C:\data\in\x.csv": "copy {path}",
    "x[2026/11/21] s3://lake/h=03/part-1": "x[{date}] {path}",
}
PROGRAMS = {  # a program is what runs, not what it reads
    "/usr/bin/python3 /home/alice/train_20261121.py --input /data/x": "python3 train_{date}.py --input {path}",
    "./backup.sh": "backup.sh",
    "backup.sh": "backup.sh",
}
STAYS = [
    "Q17", "tpch_q17", "tpch query 17", "query_01", "tpcds/q9", "stage-2",
    "load_v2", "load_v2.1.3", "spark-3.5.1-etl", "python3.11 x", "s3_sync", "10min_agg", "us-east-1a",
    "app 3", "app 20261121", "app -3",
    "team/etl", "wordcount", "deadbeef", "décembre", "{date} {n}",
    SHA256, UUID, "0a1b2c3d4e5f",
]  # fmt: skip
CHANGED = {**DATES, **IDS_AND_COUNTERS, **RUNS_OF_COUNTERS, **PATHS, **PROGRAMS}


@pytest.mark.parametrize(("name", "expected"), CHANGED.items(), ids=list(CHANGED))
def test_what_changes_from_run_to_run_leaves_a_placeholder(name: str, expected: str) -> None:
    assert normalise_name(name) == expected


@pytest.mark.parametrize("name", STAYS)
def test_what_says_which_job_it_is_stays(name: str) -> None:
    assert normalise_name(name) == name


def test_which_words_keep_and_lose_their_number_can_be_set() -> None:
    params = GroupParams(kept_after=["Shift"], counted_after=["lap"])
    assert normalise_name("shift 2 lap12 query 7", params) == "shift 2 lap{n} query {n}"


def test_every_counter_of_one_width_gives_one_name() -> None:
    for template in ("load_{:04}", "load {}", "run{}", "x_20261121_{:06}", "id-{:08}"):
        rng = random.Random(template)
        names = {normalise_name(template.format(rng.randrange(1000, 9999))) for _ in range(500)}
        assert len(names) == 1, (template, names)


def test_random_hexadecimal_ids_give_one_name_but_for_one_in_a_hundred() -> None:
    rng = random.Random(7)
    for n_bytes in (4, 6, 8, 16, 20, 32):
        names = [normalise_name(f"etl-{rng.randbytes(n_bytes).hex()}") for _ in range(1000)]
        common = max(set(names), key=names.count)
        assert names.count(common) > 985, (n_bytes, set(names))


PIECES = [
    "2026", "11", "21", "-", "_", ".", "/", ":", " ", "T", "Z", "q", "v", "run", "{n}", "{id}", "{date}", "{path}", "{",
    "}", "#", "=", "+", "0", "7", "0042", "1234567", "a1b2c3d4", "dead", "nov", "Q4", "s3://", "/data/in", ".parquet",
    ".sh", "bin", "C:\\", "é", "日", "\n", "x2x8z", "03:15", "app ", "(", "~", "$", "10.0.0.1", UUID, "%20", ",",
]  # fmt: skip
NAMES = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=30)


@settings(max_examples=10, deadline=None)
@given(st.lists(NAMES, max_size=20))
def test_many_names_at_once_give_what_each_gives_alone(names: list[str]) -> None:
    assert normalise_names(names) == [normalise_name(name) for name in names]


BY = {
    "user, cpus, limit": (["user", "cpus", "limit"], "alice · 16 cpus · limit 4:00:00"),
    "normalised name": (["name"], "etl_{date}"),
    "plan and queue": (["plan", "queue"], "#1a2b3c4d · night"),
    "what is missing is left out": (["account", "user", "qos"], "alice"),
    "nothing there": (["partition"], "(no name)"),
}


@pytest.mark.parametrize(("by", "key"), BY.values(), ids=BY)
def test_a_key_is_made_of_the_columns_that_were_named(by: list[KeyPart], key: str) -> None:
    run = {"name": "etl_2026-11-21", "plan_signature": "1a2b3c4d5e", "queue": "night", "account": None}
    rows = pd.DataFrame([RUN | run | {"group_key": "of the log", "requested_runtime_s": 14_400.0}])
    assert group_keys(rows, GroupParams(by=by)).to_list() == [key]
