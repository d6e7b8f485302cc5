"""What a campaign leaves in its folder: whole parts, each run once, nothing of the held-back ones with the rest."""

from datetime import datetime
from pathlib import Path

import pytest

from tasks.advice.record.parts import (
    RunLedger,
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
PLAN = make_plan(PARAMS)


@pytest.fixture
def ledger(tmp_path):
    return RunLedger(tmp_path, PARAMS, PLAN, {"machine": {"cores": 2}})


def keep(ledger, planned, *, is_disturbed=False, **more):
    row = {
        "run_id": planned.run_id, "attempt": planned.attempt, "job": planned.job,
        "machine_type": planned.machine_type, "role": planned.role, "run": planned.number, "block": planned.block,
        "started_at": datetime(2026, 11, 22, 17, 0, 0, 500_000), "runtime_s": float(planned.number),
        "status": "completed", "reason": None, "is_disturbed": is_disturbed,
    }  # fmt: skip
    ledger.keep(planned, row | more)


def test_runs_stand_in_parts_of_their_role_and_are_known_again_after_a_kill(ledger, tmp_path):
    seen = next(run for run in PLAN.runs if run.role == "history")
    hidden = next(run for run in PLAN.runs if run.role == "held_back")
    for run in (seen, hidden):
        keep(ledger, run)
    again = RunLedger(tmp_path, PARAMS, PLAN, {})  # nothing was closed in between
    assert (again.n_done, again.n_clean) == (2, 2)
    assert len(again.left(PLAN.runs)) == len(PLAN.runs) - 2
    again.parts.close()
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == [
        "held-back-0001.parquet",
        "history-0001.parquet",
    ]
    assert [row["run_id"] for row in read_rows(tmp_path, "history")] == [seen.run_id]
    assert [row["run_id"] for row in read_rows(tmp_path, "held_back")] == [hidden.run_id]
    assert str(read_rows(tmp_path, "history")[0]["started_at"]) == "2026-11-22 17:00:00.500000"


def test_a_run_is_read_once_its_undisturbed_attempt_first(ledger, tmp_path):
    first, second = [run for run in PLAN.runs if run.role == "history"][:2]
    keep(ledger, first, is_disturbed=True, runtime_s=9.0)
    keep(ledger, first.again(1), runtime_s=1.0)
    keep(ledger, second, is_disturbed=True, runtime_s=2.0)
    keep(ledger, second.again(1), is_disturbed=True, runtime_s=8.0)
    assert ledger.n_clean == 1
    assert second.again(2) in ledger.repetition(2) and first.again(2) not in ledger.repetition(2)
    ledger.parts.close()
    runs = read_runs(tmp_path, "history").set_index("run_id")
    assert runs["runtime_s"].to_dict() == {first.run_id: 1.0, second.run_id: 2.0}


def test_a_campaign_is_written_down_before_it_runs_and_no_other_one_continues_it(ledger, tmp_path):
    RunLedger(tmp_path, PARAMS.model_copy(update={"minutes": 1.0}), PLAN, {})  # how long is not what
    other = PARAMS.model_copy(update={"seed": 3})
    with pytest.raises(BadSetting, match=r"belongs to a campaign with other parameters \(seed\)"):
        RunLedger(tmp_path, other, make_plan(other), {})
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
