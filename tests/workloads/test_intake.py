"""From files into the warehouse and back: the same runs, each once, counts that add up, parts with their run."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tasks.params import ReadLimits
from tasks.record.parts import write_table
from tasks.warehouse.connection import fetch
from tasks.workloads import steps
from tasks.workloads.intake import fetch_runs, find_files, read_telemetry
from tasks.workloads.params import ReadParams, RegularParams
from tasks.workloads.record.parts import table_of
from tasks.workloads.telemetry import Conditions

FIXTURES = Path(__file__).parent / "readers" / "fixtures"
RECORDED = Path(__file__).parents[2] / "data" / "recorded" / "workloads-programs"
LENIENT = ReadLimits(max_refused_share=1)
READ = ReadParams(regular=RegularParams(min_samples=2), label_from="stem", limits=LENIENT)


def put(warehouse, path, source="log", reader="", read=READ):
    return steps.ingest_batch(warehouse, steps.land_telemetry(warehouse, str(path), source, reader, read))


def table(tmp_path, name, *rows):
    path = tmp_path / "set" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("run_id,at_s,a,b\n" + "".join(f"{row}\n" for row in rows))
    return path


def counts(warehouse):
    return (
        fetch(
            warehouse,
            "SELECT n_read, n_kept, n_quarantined, (SELECT count(*) FROM ops.quarantine AS bad "
            "WHERE bad.batch_id = files.batch_id) AS n_listed FROM ops.files AS files ORDER BY ordered_at",
        )
        .to_numpy()
        .tolist()
    )


def same(one, other):
    return (
        (one.run_id, one.counters, one.workload, one.started_at, one.interval_s)
        == (other.run_id, other.counters, other.workload, other.started_at, other.interval_s)
        and np.array_equal(one.values, other.values, equal_nan=True)
        and np.array_equal(one.at_s, other.at_s)
    )


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir()))
def test_a_run_comes_back_as_it_was_read_and_the_counts_add_up(warehouse, name):
    put(warehouse, FIXTURES / name)
    (stored,), (direct,) = fetch_runs(warehouse, "log"), read_telemetry([str(FIXTURES / name)], READ).runs
    assert same(stored, direct)
    ((n_read, n_kept, n_quarantined, n_listed),) = counts(warehouse)
    assert (n_read, n_quarantined) == (n_kept + n_quarantined, n_listed)
    headings = ("#", "\n", "procs", " r ")
    n_lines = sum(not line.startswith(headings) for line in (FIXTURES / name).read_text().splitlines(keepends=True))
    assert n_read == n_lines


def test_the_programs_of_a_recorded_run_come_back_but_for_pseudonyms(warehouse):
    path = RECORDED / "runs-0002.parquet"
    read = read_telemetry([str(path)], READ).runs
    put(warehouse, path)
    put(warehouse, path, source="other", read=READ.model_copy(update={"pseudonymise": True}))
    shares = {run.run_id: run.processes for run in read}
    assert {run.run_id: run.processes for run in fetch_runs(warehouse, "log")} == shares
    assert all(0.9 < sum(one.values()) < 1.001 for one in shares.values())
    assert not any("processes" in one for run in read for one in run.names)
    assert not any(run.processes for run in fetch_runs(warehouse, "other"))


def test_the_conditions_of_a_recorded_run_come_back_and_name_nothing_under_pseudonyms(warehouse):
    path = RECORDED.with_name("workloads-shared") / "runs-0008.parquet"
    read = {run.run_id: run.conditions for run in read_telemetry([str(path)], READ).runs}
    put(warehouse, path)
    put(warehouse, path, source="other", read=READ.model_copy(update={"pseudonymise": True}))
    assert {run.run_id: run.conditions for run in fetch_runs(warehouse, "log")} == read
    assert len({conditions.condition for conditions in read.values()}) > 1
    hidden = sorted(map(repr, (run.conditions for run in fetch_runs(warehouse, "other"))))
    assert hidden == sorted(repr(replace(one, recording="")) for one in read.values())


def test_groups_of_a_machine_stay_apart_under_pseudonyms(warehouse, tmp_path):
    telemetry = read_telemetry([str(RECORDED / "runs-0002.parquet")], READ).runs[0]
    for at, subject in enumerate(("system.slice/a.service", "system.slice/b.service", "system.slice/a.service", None)):
        conditions = Conditions("now", "live", subject=subject)
        run = replace(telemetry, run_id=f"r{at}", workload=None, conditions=conditions)
        write_table(tmp_path / f"{at}.parquet", table_of(run), {})
        put(warehouse, tmp_path / f"{at}.parquet", read=READ.model_copy(update={"pseudonymise": True}))
    hidden = Counter(run.conditions.subject for run in fetch_runs(warehouse, "log"))
    assert sorted(hidden.values()) == [1, 1, 2] and hidden[None] == 1
    assert not any("service" in subject for subject in hidden if subject)


def test_single_runs_can_be_asked_for_in_the_order_of_their_ids(warehouse, tmp_path):
    put(warehouse, table(tmp_path, "1.csv", *(f"r{run},{at},{run},1" for run in (3, 1, 2) for at in (0, 1))))
    assert [run.run_id for run in fetch_runs(warehouse, "log")] == ["r1", "r2", "r3"]
    assert [run.run_id for run in fetch_runs(warehouse, "log", ["r3", "r1"])] == ["r1", "r3"]
    assert fetch_runs(warehouse, "other") == []


def test_a_run_that_is_too_short_is_quarantined_row_by_row(warehouse, tmp_path):
    put(warehouse, table(tmp_path, "1.csv", "short,0,1,1", "long,0,1,1", "long,1,1,1"))
    found = fetch(warehouse, "SELECT place, reason FROM ops.quarantine").to_numpy().tolist()
    assert found == [[2, "run short: 1 samples; expected at least 2"]]
    assert counts(warehouse) == [[3, 2, 1, 1]]


def test_missing_samples_are_null_in_the_long_view(warehouse, tmp_path):
    put(warehouse, table(tmp_path, "1.csv", "r,0,1,", *(f"r,{at},2,7" for at in (1, 2, 3, 4, 5, 7))))
    found = fetch(warehouse, "SELECT sample, at_s, value FROM workloads.samples WHERE counter = 'b' ORDER BY sample")
    assert found["value"].isna().to_list() == [True, False, False, False, False, False, True, False]
    assert found["at_s"].to_list() == list(range(8))


def test_two_files_with_the_same_run_id_stay_two_runs_in_memory(tmp_path):
    files = [table(tmp_path, "1.csv", "r,0,1,2", "r,1,1,2"), table(tmp_path, "2.csv", "r,0,3,4", "r,1,3,4")]
    runs = read_telemetry([str(path) for path in files], READ).runs
    assert [run.run_id for run in runs] == ["r", f"{files[1]}/r"]


def test_a_folder_of_a_recording_stands_for_its_undisturbed_runs(tmp_path):
    for name in ("runs-0001.parquet", "flagged-0001.parquet"):
        (tmp_path / name).touch()
    assert [Path(one).name for one in find_files([str(tmp_path)])] == ["runs-0001.parquet"]
    named = str(tmp_path / "flagged-0001.parquet")
    assert find_files([named]) == [named]
    (tmp_path / "runs-0001.parquet").unlink()
    assert [Path(one).name for one in find_files([str(tmp_path)])] == ["flagged-0001.parquet"]
