"""Telemetry without labels: kinds of runs, what sets them apart, what is new, and when a trace changed."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.clusters import clusters_of, partition_of
from tasks.workloads.params import WindowParams
from tasks.workloads.telemetry import Counter, Telemetry

COUNTERS = (
    Counter("disk.read_bytes", "B", "software", is_rate=True),
    Counter("cpu.user_cores", "core-seconds", "software", is_rate=True),
    Counter("net.sent_packets", "packets", "software", is_rate=True),
)
KINDS = {"scan": (4e8, 1.0, 10.0), "serve": (1e3, 1.0, 2e5), "compute": (1e3, 30.0, 10.0)}
WINDOWS = WindowParams(width_s=30)
DAY = datetime(2026, 3, 1)


def run_of(kind, run_id, rng, *, n_samples=30, started_at=DAY):
    values = np.array(KINDS[kind]) * np.exp(rng.normal(0, 0.1, (n_samples, len(COUNTERS))))
    return Telemetry(run_id, COUNTERS, np.arange(1.0, n_samples + 1), values, interval_s=1.0, started_at=started_at)


@pytest.fixture
def runs():
    rng = np.random.default_rng(3)
    return [run_of(kind, f"{kind}-{at}", rng) for at in range(6) for kind in KINDS]


def test_runs_of_a_kind_are_one_cluster_and_none_needs_a_label(runs):
    found = clusters_of(runs, WINDOWS)
    kinds = [{run_id.partition("-")[0] for run_id in one.run_ids} for one in found.clusters]
    assert sorted(map(sorted, kinds)) == [["compute"], ["scan"], ["serve"]]
    assert all(one.medoid in one.run_ids for one in found.clusters)
    [scan] = [one for one in found.clusters if one.medoid.startswith("scan")]
    assert scan.telling[0].startswith("disk read bytes: ")  # it says which counters set it apart
    assert "MB a second, elsewhere" in scan.telling[0]


def test_a_counter_that_never_wavers_does_not_decide_alone():
    rng = np.random.default_rng(5)
    shared = Counter("memory.shared_bytes", "B", "software", is_rate=True)
    drawn = [
        replace(run, counters=(*COUNTERS, shared), values=np.column_stack([run.values * factors, np.full(30, level)]))
        for name, level, factors in (("a", 1.0, (1, 1, 1)), ("b", 1.0, (1, 3, 1)), ("c", 1e12, (1, 1, 3)))
        for run in (run_of("serve", f"{name}-{at}", rng) for at in range(6))
    ]
    found = clusters_of(drawn, WINDOWS)
    assert sorted({run_id[0] for run_id in one.run_ids} for one in found.clusters) == [{"a"}, {"b"}, {"c"}]


def test_labels_and_the_order_of_runs_change_nothing(runs):
    plain = {frozenset(one.run_ids) for one in clusters_of(runs, WINDOWS).clusters}
    labelled = [replace(run, workload="the same") for run in runs[::-1]]
    found = clusters_of(labelled, WINDOWS)
    assert {frozenset(one.run_ids) for one in found.clusters} == plain
    assert {one.labels for one in found.clusters} == {("the same",)}


def test_what_began_in_the_last_week_is_new_and_nothing_is_where_all_is_young(runs):
    rng = np.random.default_rng(4)
    later = [run_of("serve", f"late-{at}", rng, started_at=DAY + timedelta(days=9)) for at in range(3)]
    old = [run for run in runs if not run.run_id.startswith("serve")]
    found = clusters_of([*old, *later], WINDOWS)
    is_new = {one.run_ids[0].partition("-")[0]: one.is_new for one in found.clusters}
    assert is_new == {"scan": False, "compute": False, "late": True}
    assert not any(one.is_new for one in clusters_of(runs, WINDOWS).clusters)


def test_a_trace_that_changes_says_when_and_a_single_odd_window_is_no_change():
    rng = np.random.default_rng(5)
    parts = [run_of(kind, "", rng).values for kind in ("scan",) * 5 + ("serve",) * 5 + ("scan",) + ("serve",) * 4]
    values = np.concatenate(parts)
    trace = Telemetry("m", COUNTERS, np.arange(1.0, len(values) + 1), values, interval_s=1.0, started_at=DAY)
    [change] = clusters_of([trace], WINDOWS).changes
    assert (change.trace, change.at_s) == ("m", 150.0)
    assert change.at == DAY + timedelta(seconds=151)
    assert change.before != change.after


def test_points_without_structure_are_one_cluster():
    assert set(partition_of(np.random.default_rng(6).normal(size=(60, 40))).tolist()) == {0}


def test_one_run_is_a_cluster(runs):
    [only] = clusters_of(runs[:1], WINDOWS).clusters
    assert (only.run_ids, only.medoid, only.telling) == (("scan-0",), "scan-0", ())


def test_a_run_that_shares_no_counter_with_the_others_is_left_out_by_name(runs):
    other = replace(runs[0], run_id="other", counters=tuple(replace(one, name=f"x.{one.name}") for one in COUNTERS))
    found = clusters_of([other, *runs], WINDOWS)
    assert found.left_out == ("other",)
    assert found.clusters == clusters_of(runs, WINDOWS).clusters


def test_no_run_and_runs_of_give_aways_alone_are_refused(runs):
    with pytest.raises(BadInput, match="none; expected at least one run"):
        clusters_of([], WINDOWS)
    levels = (Counter("memory.free_bytes", "B"), Counter("uptime"), Counter("disk_total"))
    with pytest.raises(BadInput, match="no counter that does not give the session away"):
        clusters_of([replace(runs[0], counters=levels)], WINDOWS)
