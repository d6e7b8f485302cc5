"""What a campaign leaves in its folder: whole parts, each run once, nothing of the held-back ones with the rest."""

import json
from pathlib import Path

import pytest

from tasks.advice.record.parts import (
    SPOOL,
    Ledger,
    begin,
    deadline_multiples,
    machines_of,
    read_campaign,
    read_executions,
    read_rows,
    read_runs,
)
from tasks.advice.record.plan import RecordParams, make_plan
from tasks.errors import BadInput, BadSetting

PARAMS = RecordParams(blocks=1)


def row(number, *, attempt=0, role="history", is_disturbed=False, **more):
    return {
        "run_id": f"j.a.{role}.{number:03d}",
        "attempt": attempt,
        "job": "j",
        "machine_type": "a",
        "role": role,
        "run": number,
        "block": 0,
        "started_at": "2026-11-22T17:00:00.5",
        "runtime_s": float(number),
        "status": "completed",
        "reason": None,
        "is_disturbed": is_disturbed,
    } | more


def test_a_run_is_kept_at_once_and_stands_in_one_part_of_its_role(tmp_path):
    ledger = Ledger(tmp_path, {"plan": "x"})
    for one in (row(1), row(2, role="held_back"), row(3)):
        ledger.keep(one)
    assert len((tmp_path / SPOOL).read_text().splitlines()) == 3
    ledger.write_parts()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held-back-0001.parquet", "history-0001.parquet"]
    ledger.keep(row(4))
    ledger.write_parts()
    assert [one["run"] for one in read_rows(tmp_path, "history")] == [1, 3, 4]
    assert [one["run"] for one in read_rows(tmp_path, "held_back")] == [2]
    assert str(read_rows(tmp_path, "history")[0]["started_at"]) == "2026-11-22 17:00:00.500000"


def test_after_a_kill_finished_runs_are_there_and_a_torn_line_is_a_run_that_did_not_finish(tmp_path):
    first = Ledger(tmp_path, {})
    first.keep(row(1))
    first.keep(row(2, is_disturbed=True))
    with (tmp_path / SPOOL).open("a") as file:
        file.write('{"run_id": "j.a.hist')
    again = Ledger(tmp_path, {})
    assert again.done == {("j.a.history.001", 0), ("j.a.history.002", 0)}
    assert again.clean == {"j.a.history.001"}
    again.keep(row(3))
    again.write_parts()
    assert [one["run"] for one in read_rows(tmp_path, "history")] == [1, 2, 3]


def test_a_kill_between_part_and_spool_doubles_no_run(tmp_path):
    ledger = Ledger(tmp_path, {})
    ledger.keep(row(1))
    spool = (tmp_path / SPOOL).read_text()
    ledger.write_parts()
    (tmp_path / SPOOL).write_text(spool)
    Ledger(tmp_path, {}).write_parts()
    assert len(read_rows(tmp_path, "history")) == 1


def test_a_run_is_read_once_its_undisturbed_attempt_first(tmp_path):
    ledger = Ledger(tmp_path, {})
    for one in (
        row(1, is_disturbed=True, runtime_s=9.0),
        row(1, attempt=1, runtime_s=1.0),
        row(2, is_disturbed=True, runtime_s=2.0),
        row(2, attempt=1, is_disturbed=True, runtime_s=8.0),
    ):
        ledger.keep(one)
    ledger.write_parts()
    runs = read_runs(tmp_path, "history")
    assert runs["runtime_s"].tolist() == [1.0, 2.0]
    assert runs["is_disturbed"].tolist() == [False, True]


def test_a_campaign_is_written_down_before_it_runs_and_no_other_one_continues_it(tmp_path):
    begin(tmp_path, PARAMS, make_plan(PARAMS), {"machine": {"cores": 2}})
    begin(tmp_path, PARAMS.model_copy(update={"minutes": 1.0}), make_plan(PARAMS), {})  # how long is not what
    other = PARAMS.model_copy(update={"seed": 3})
    with pytest.raises(BadSetting, match=r"belongs to a campaign with other parameters \(seed\)"):
        begin(tmp_path, other, make_plan(other), {})
    campaign = read_campaign(tmp_path)
    assert campaign["machine"] == {"cores": 2}
    assert machines_of(campaign).iloc[0].to_dict() == {
        "machine_type": "standard", "vcpu": 1.0, "memory_gb": 0.256, "price_per_h": 0.1,
    }  # fmt: skip
    assert set(deadline_multiples(campaign)) == {job.template for job in PARAMS.jobs}


def test_the_recording_of_the_project_is_complete_and_of_the_shipped_plan():
    folder = Path(__file__).parents[3] / "data/recorded/advice"
    assert read_campaign(folder)["plan"] == make_plan(RecordParams()).digest()
    history, held_back = read_runs(folder, "history"), read_runs(folder, "held_back")
    assert set(history.groupby(["job", "machine_type"]).size()) == {20}
    assert set(held_back.groupby(["job", "machine_type"]).size()) == {10}
    assert (len(history), len(held_back), history["job"].nunique()) == (400, 1200, 20)
    assert set(history["machine_type"]) == {"standard"} and held_back["machine_type"].nunique() == 6
    executions = (
        read_executions(folder, with_flagged=True).groupby(["machine_type", "benchmark"])["started_at"].nunique()
    )
    assert len(executions) == 30 and executions.min() >= 5
    assert sum(path.stat().st_size for path in folder.rglob("*.parquet")) < 2_000_000


def test_what_cannot_be_read_is_named_in_one_line(tmp_path):
    with pytest.raises(BadInput, match=r"campaign.json: cannot be read"):
        read_campaign(tmp_path)
    with pytest.raises(BadInput, match=r"no history-NNNN.parquet; expected parts of `whorl advice record`"):
        read_runs(tmp_path, "history")
    with pytest.raises(BadInput, match="nodes: no executions"):
        read_executions(tmp_path)
    (tmp_path / "history-0001.parquet").write_text("none")
    with pytest.raises(BadInput, match=r"history-0001.parquet: cannot be read") as told:
        read_rows(tmp_path, "history")
    assert "\n" not in str(told.value)
    (tmp_path / SPOOL).write_text(json.dumps(row(1)) + "\nno json\n")
    (tmp_path / "history-0001.parquet").unlink()
    with pytest.raises(BadInput, match="a line is no JSON"):
        Ledger(tmp_path, {})
