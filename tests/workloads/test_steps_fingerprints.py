"""The steps of fingerprints: every run once, only what has changed again, and nothing lost between two steps."""

from pathlib import Path

import numpy as np
import pytest

from tasks.errors import BadInput, NotFound
from tasks.warehouse.connection import fetch
from tasks.warehouse.copies import hash_tables
from tasks.workloads import fingerprint_steps, steps
from tasks.workloads.identify.phases import STATISTICS, cut_run, fingerprints_of
from tasks.workloads.intake import fetch_runs
from tasks.workloads.params import FanOutParams, ReadParams

SMALL = FanOutParams(runs_per_part=7)


def plan(warehouse, fan_out=SMALL):
    return fingerprint_steps.plan_fingerprints(warehouse, "log", fan_out)


def cut_and_keep(warehouse, planned):
    """How many runs were cut."""
    return sum(
        fingerprint_steps.keep_phases(warehouse, "log", fingerprint_steps.cut_phases(part)) for part in planned["parts"]
    )


def put(warehouse, path):
    steps.ingest_batch(warehouse, steps.land_telemetry(warehouse, str(path), "log", "", ReadParams()))


def phases(warehouse):
    return [one.hash for one in hash_tables(warehouse) if one.table in ("workloads.phases", "workloads.run_phases")]


def test_the_phases_in_the_warehouse_are_those_of_the_fingerprint(workloads_log):
    cut_and_keep(workloads_log, plan(workloads_log))
    runs = fetch_runs(workloads_log, "log")
    counters = runs[0].counters  # by name, and none gives the session away
    found = fetch(workloads_log, "SELECT * FROM workloads.phases ORDER BY run_id, counter, phase")
    made = fingerprints_of(runs, counters)
    assert found["adf"].isna().any()
    expected = np.concatenate([summary for one in made for summary in one.summaries])
    assert np.allclose(found[list(STATISTICS)].fillna(0).to_numpy(), expected)
    starts = np.concatenate([bounds[:-1] for one in made for bounds in one.bounds])
    assert found["start_sample"].to_list() == starts.tolist()
    is_first = found["phase"] == 1
    assert found.loc[is_first, "probability"].isna().all()
    assert found.loc[~is_first, "probability"].between(0, 1).all()
    whole = fetch(workloads_log, "SELECT start_sample FROM workloads.run_phases ORDER BY run_id, phase")
    bounds = [cut_run(run, counters).workload_bounds[:-1] for run in runs]
    assert whole["start_sample"].to_list() == np.concatenate(bounds).tolist()
    for table, by, n in (("phases", "run_id, counter", 24 * 9), ("run_phases", "run_id", 24)):  # they cover the run
        sums = f"SELECT sum(end_sample - start_sample) AS covered FROM workloads.{table} GROUP BY {by}"
        assert fetch(workloads_log, sums)["covered"].to_list() == [30] * n


def test_the_second_time_nothing_is_left_to_do(workloads_log):
    planned = plan(workloads_log)
    assert (len(planned["parts"]), planned["n_runs"], planned["n_done"]) == (4, 24, 0)
    assert len(plan(workloads_log, fan_out=FanOutParams())["parts"]) == 1
    assert cut_and_keep(workloads_log, plan(workloads_log)) == 24
    before = phases(workloads_log)
    again = plan(workloads_log)
    assert (again["parts"], again["n_done"]) == ([], 24)
    assert cut_and_keep(workloads_log, again) == 0
    assert phases(workloads_log) == before


def test_only_a_run_whose_samples_have_changed_is_cut_again(workloads_log, drawn_telemetry):
    cut_and_keep(workloads_log, plan(workloads_log))
    put(workloads_log, drawn_telemetry("again", workloads="a", n_runs=1, seed=2))
    put(workloads_log, drawn_telemetry("new", workloads="ab", n_runs=1, seed=3, prefix="new-"))
    planned = plan(workloads_log)
    assert (len(planned["parts"]), planned["n_done"]) == (1, 23)
    assert cut_and_keep(workloads_log, planned) == 3
    with pytest.raises(NotFound, match="'other' has no runs of workloads"):
        fingerprint_steps.plan_fingerprints(workloads_log, "other", SMALL)


@pytest.mark.slow
def test_phases_of_a_run_that_is_gone_go_as_well(workloads_log, drawn_telemetry):
    extra = drawn_telemetry("extra", workloads="a", n_runs=1, seed=4, prefix="extra-")
    put(workloads_log, extra)
    cut_and_keep(workloads_log, plan(workloads_log))
    renamed = ReadParams(columns={"run_id": "machine"})  # the same file now gives a run of another name
    steps.ingest_batch(workloads_log, steps.land_telemetry(workloads_log, str(extra), "log", "", renamed))
    cut_and_keep(workloads_log, plan(workloads_log))
    found = fetch(workloads_log, "SELECT DISTINCT run_id FROM workloads.phases")["run_id"].to_list()
    assert "node" in found
    assert not [run_id for run_id in found if run_id.startswith("extra")]


def test_runs_with_fewer_counters_are_cut_on_those_that_they_have(workloads_log, drawn_telemetry, quick_identify):
    put(workloads_log, drawn_telemetry("bare", workloads="a", n_runs=1, machine_only=True, prefix="bare-"))
    cut_and_keep(workloads_log, plan(workloads_log))
    found = fetch(workloads_log, "SELECT DISTINCT counter FROM workloads.phases WHERE run_id LIKE 'bare-%'")
    assert len(found) == 6


def test_a_part_that_was_cut_is_not_cut_again(workloads_log, monkeypatch):
    planned = plan(workloads_log)
    paths = [fingerprint_steps.cut_phases(part) for part in planned["parts"]]

    def refuse(*_args):
        raise AssertionError("cut again")

    monkeypatch.setattr("tasks.workloads.fingerprint_steps.phases_of", refuse)
    assert [fingerprint_steps.cut_phases(part) for part in planned["parts"]] == paths


@pytest.mark.parametrize("n_done", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2)), 3])
def test_whatever_was_done_before_a_kill_the_next_run_ends_as_an_undisturbed_one(workloads_log, n_done):
    planned = plan(workloads_log)
    for part in planned["parts"][:n_done]:
        fingerprint_steps.keep_phases(workloads_log, "log", fingerprint_steps.cut_phases(part))
    fingerprint_steps.cut_phases(planned["parts"][n_done])  # and here it was killed
    again = plan(workloads_log)
    assert len(again["parts"]) == 4 - n_done
    assert again["parts"] == planned["parts"][n_done:]
    cut_and_keep(workloads_log, again)
    found = fetch(workloads_log, "SELECT count(DISTINCT run_id) AS n FROM workloads.phases")
    assert found["n"].to_list() == [24]


def test_part_files_go_once_their_phases_are_kept(workloads_log):
    planned = plan(workloads_log)
    cut_and_keep(workloads_log, planned)
    assert fingerprint_steps.clear_parts(planned["parts"]) == 8
    assert fingerprint_steps.clear_parts(planned["parts"]) == 0
    with pytest.raises(BadInput, match=r"part-.*\.parquet: cannot be read"):
        fingerprint_steps.cut_phases(planned["parts"][0])


def test_a_damaged_part_is_told_of_in_one_line(workloads_log):
    [part, *_] = plan(workloads_log)["parts"]
    with Path(part).open("r+b") as file:
        file.truncate(100)
    with pytest.raises(BadInput, match="cannot be read") as raised:
        fingerprint_steps.cut_phases(part)
    assert "\n" not in str(raised.value)
    assert cut_and_keep(workloads_log, plan(workloads_log)) == 24  # planned again, it is made again


def test_parts_that_a_killed_run_left_behind_go_with_the_next_plan(workloads_log):
    planned = plan(workloads_log)
    cut_and_keep(workloads_log, planned)  # and here it was killed
    folder = Path(planned["parts"][0]).parent
    assert len(list(folder.iterdir())) == 8
    plan(workloads_log)
    assert list(folder.iterdir()) == []
