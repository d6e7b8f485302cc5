"""The check of what runs: verdicts, episodes and alarms."""

import json

import pandas as pd
import pyarrow as pa
import pytest

from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import transaction, writing
from tasks.workloads.identifications import Look, verdicts_of, watch_runs
from tasks.workloads.params import WatchParams


def told(ran, expected=(), labels=None):
    """Kind and first look of the episode of each look; `ran`: what was found, - for unknown."""
    labels = labels or [None] * len(ran)
    looks = [
        Look(str(at), None, None if name == "-" else name, label)
        for at, (name, label) in enumerate(zip(ran, labels, strict=True))
    ]
    short = {"as-expected": ".", "unexpected-workload": "!", "unknown-workload": "?"}
    return " ".join(f"{short[one.kind]}{one.since.run_id}" for one in verdicts_of(looks, list(expected)))


@pytest.mark.parametrize(
    ("ran", "expected", "verdicts"),
    [
        ("aaa", "a", ".0 .0 .0"),
        ("abba", "a", ".0 !1 !1 .3"),  # going on is the same episode
        ("abab", "a", ".0 !1 .2 !3"),  # coming back is another one
        ("abc", "a", ".0 !1 !2"),  # so is another workload in its place
        ("a--b", "ab", ".0 ?1 ?1 .3"),
        ("ba", "ab", ".0 .1"),
        ("", "a", ""),
        ("aabb", "", ".0 .0 !2 .3"),  # where nothing is, what ran before: a change is told once, then it is what runs
        ("a-a", "", ".0 ?1 .2"),  # something unknown does not become usual
        ("a--b", "", ".0 ?1 ?1 !3"),
        ("--", "", "?0 ?0"),  # nobody knows what should run, and still it is told
        ("b", "", ".0"),
    ],
)
def test_against_what_should_run(ran, expected, verdicts):
    assert told(ran, expected) == verdicts


def test_a_run_that_names_itself_should_be_what_it_says_and_does_not_become_usual():
    assert told("aabb", labels=[None, "a", "a", "b"]) == ".0 .0 !2 .3"
    assert told("aba", labels=[None, "b", None]) == ".0 .1 .2"


def test_what_was_expected_is_said():
    [_, second] = verdicts_of([Look("1", None, "a"), Look("2", None, "b")], [])
    assert second.expected == ("a",)
    [only] = verdicts_of([Look("1", None, None)], [])
    assert only.expected == ()


MIDNIGHT = pd.Timestamp("2026-01-01")
A = WatchParams(expected=["redis"])


def look(warehouse, run_id, workload, *, minute=0, confidence=0.9, machine="node", subject=None, model="m1", at=0):
    """Put one identified run there; workload None: unknown."""
    run = {
        "source": "log", "run_id": run_id, "machine": machine, "started_at": MIDNIGHT + pd.Timedelta(minutes=minute),
        "n_samples": 30, "n_rows": 30, "n_missed": 0, "n_resets": 0, "is_resampled": False, "at_s": [1.0],
        "is_simulated": True, "batch_id": "b", "conditions": subject and {"condition": "live", "subject": subject},
    }  # fmt: skip
    found = {
        "source": "log", "run_id": run_id, "model_id": model, "identified_at": MIDNIGHT + pd.Timedelta(days=at),
        "workload": workload, "is_known": workload is not None, "confidence": confidence, "unknown_score": 0.2,
        "nearest": workload or "nginx", "nearest_distance": 3.456, "reasons": ["cpu differs"], "proxy": None,
    }  # fmt: skip
    with writing(warehouse) as connection, transaction(connection):
        if not connection.execute("SELECT 1 FROM workloads.runs WHERE run_id = ?", [run_id]).fetchall():
            put(connection, "workloads.runs", run)
        put(connection, "workloads.identifications", found)


def put(connection, table, row):
    connection.register("new_rows", pa.Table.from_pylist([row]))
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM new_rows").fetchall()
    connection.unregister("new_rows")


def messages(warehouse):
    return [str(message) for message in read_alarms(warehouse)["message"]]


def test_another_workload_is_one_alarm_however_often_it_is_seen(warehouse):
    look(warehouse, "r1", "redis", minute=0)
    look(warehouse, "r2", "mariadb", minute=15)
    assert [watch_runs(warehouse, "log", ids, A) for ids in (["r1"], [])] == [[], []]  # of those looked at alone
    assert len(watch_runs(warehouse, "log", ["r2"], A)) == 1
    look(warehouse, "r3", "mariadb", minute=30)
    assert watch_runs(warehouse, "log", ["r3"], A) == []
    assert watch_runs(warehouse, "log", ["r1", "r2", "r3"], A) == []
    [message] = messages(warehouse)
    assert message == "mariadb runs on node, not redis: 90.0 % sure; since run r2 at 2026-01-01 00:15 UTC"
    for minute, workload in ((40, "redis"), (50, "mariadb")):  # when it was as expected in between it is told again
        look(warehouse, f"r{minute}", workload, minute=minute)
    assert len(watch_runs(warehouse, "log", ["r40", "r50"], A)) == 1


def test_an_unknown_workload_is_an_alarm_that_names_what_it_is_nearest_to(warehouse):
    look(warehouse, "r1", None, confidence=0.8)
    assert len(watch_runs(warehouse, "log", ["r1"], A)) == 1
    assert messages(warehouse) == [
        "an unknown workload runs on node, not redis: 80.0 % sure, nearest is nginx (distance 3.46); since run r1 "
        "at 2026-01-01 00:00 UTC"
    ]
    evidence = json.loads(read_alarms(warehouse)["evidence"].iloc[0])
    assert (evidence["nearest"], evidence["is_known"], evidence["reasons"]) == ("nginx", False, ["cpu differs"])
    assert (evidence["expected"], evidence["since_run_id"], evidence["model_id"]) == (["redis"], "r1", "m1")


def test_an_identification_that_is_not_sure_counts_as_unknown(warehouse):
    look(warehouse, "r1", "redis", confidence=0.4)
    assert len(watch_runs(warehouse, "log", ["r1"], A)) == 1
    told = "it is unsure what runs on node: most likely redis, 40.0 % sure; since run r1"
    assert messages(warehouse)[0].startswith(told)
    assert read_alarms(warehouse)["kind"].to_list() == ["unknown-workload"]


def test_machines_are_watched_apart(warehouse):
    look(warehouse, "r1", "redis", minute=0, machine="one")
    look(warehouse, "r2", "mariadb", minute=1, machine="two")
    look(warehouse, "r3", "redis", minute=2, machine="one")
    assert watch_runs(warehouse, "log", ["r1", "r2", "r3"], WatchParams()) == []


def test_groups_of_one_machine_are_watched_apart_and_named(warehouse):
    for minute, (subject, workload) in enumerate([("a", "redis"), ("b", "mariadb"), ("a", "redis"), ("b", "nginx")]):
        look(warehouse, f"r{minute}", workload, minute=minute, subject=subject)
    assert watch_runs(warehouse, "log", ["r0", "r1", "r2"], WatchParams()) == []
    assert len(watch_runs(warehouse, "log", ["r3"], WatchParams())) == 1
    assert messages(warehouse)[0].startswith("nginx runs in b on node, not mariadb: 90.0 % sure; since run r3")
    assert json.loads(read_alarms(warehouse)["evidence"].iloc[0])["subject"] == "b"


def test_what_was_said_last_of_a_run_counts(warehouse):
    look(warehouse, "r1", "mariadb", model="m1", at=0)
    look(warehouse, "r1", "redis", model="m2", at=1)
    assert watch_runs(warehouse, "log", ["r1"], A) == []
