"""Executions on disk: whole, self-explaining, and none of them lost or doubled by a kill."""

from datetime import datetime, timedelta

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput, BadSetting
from tasks.nodes.execution import Execution, Measured, Sampled, record_of
from tasks.nodes.record.bench import Outcome
from tasks.nodes.record.campaign import planned
from tasks.nodes.record.ledger import Ledger, part_paths, spooled_paths

START = datetime(2026, 11, 21, 12)
CPU = Sampled("cpu_busy", "%", np.array([-0.5, 0.5, 1.5]), np.array([1.0, np.nan, 3.0]))


@pytest.fixture
def plan(quick):
    return planned(quick)


@pytest.fixture
def ledger_of(tmp_path, quick, plan):
    def make(**changes):
        return Ledger(tmp_path, quick.model_copy(update=changes), plan, {"machine": {"cores": 2}})

    return make


def outcome_of(ledger, one, status="clean"):
    facts = {
        "execution_id": one.id_in(ledger.campaign),
        "node": one.node,
        "benchmark": one.benchmark,
        "template_hash": one.template_hash,
        "started_at": START + timedelta(seconds=one.number),
        "ended_at": START + timedelta(seconds=one.number + 2),
        "status": "completed" if status in ("clean", "contaminated") else status,
        "is_contaminated": status == "contaminated",
    }
    execution = Execution(facts, (Measured("speed", 5.25, "MB/s"),), ("lost",), tool="stand-in", log="the log")
    return Outcome(one, status, 0.0, 2.0, execution, {"status": status})


def keep(ledger, one, status="clean"):
    ledger.keep(outcome_of(ledger, one, status), [CPU])


def recorded_ids(folder):
    return [i for path in part_paths(folder) for i in pq.read_table(path)["execution_id"].to_pylist()]


def test_a_part_holds_an_execution_a_row_with_metrics_telemetry_and_log(tmp_path, ledger_of, plan):
    ledger = ledger_of()
    keep(ledger, plan.executions[0])
    ledger.close()
    table = pq.read_table(tmp_path / "executions-0001.parquet")
    [row] = table.to_pylist()
    assert row["metrics"] == [{"metric": "speed", "value": 5.25, "unit": "MB/s"}]
    assert row["missing_metrics"] == ["lost"]
    assert row["telemetry"][0]["at_s"] == [-0.5, 0.5, 1.5]
    assert row["telemetry"][0]["samples"][0::2] == [1.0, 3.0]
    assert np.isnan(row["telemetry"][0]["samples"][1] or np.nan)  # missing stays missing
    assert (row["log"], row["started_at"]) == ("the log", START + timedelta(seconds=1))
    record = record_of(table.schema)
    assert record["executions"][row["execution_id"]] == {"status": "clean"}
    assert record["params"]["interval_s"] == 0.05
    assert record["machine"] == {"cores": 2}
    assert (record["plan"], record["campaign"]) == (plan.digest(), ledger.campaign)
    assert not (tmp_path / "finished").exists()


def test_flagged_executions_are_kept_apart(tmp_path, ledger_of, plan):
    ledger = ledger_of()
    for one, status in zip(plan.executions, ("clean", "contaminated", "timeout", "unstressed"), strict=False):
        keep(ledger, one, status)
    ledger.close()
    assert pq.read_table(tmp_path / "executions-0001.parquet").num_rows == 1
    assert pq.read_table(tmp_path / "flagged-0001.parquet").num_rows == 3


def test_a_finished_execution_outlives_a_kill_before_its_part_was_written(ledger_of, plan):
    first = ledger_of()
    keep(first, plan.executions[0])
    again = ledger_of()  # nothing was closed in between
    assert again.campaign == first.campaign
    assert again.left(plan.executions) == list(plan.executions[1:])
    assert again.has_clean(plan.executions[0])


def test_a_kill_between_part_and_tidying_doubles_nothing(tmp_path, ledger_of, plan, monkeypatch):
    ledger = ledger_of()
    keep(ledger, plan.executions[0])
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.unlink", lambda path, **_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ledger.write_parts()
    again = ledger_of()
    keep(again, plan.executions[1])
    again.write_parts()
    assert sorted(recorded_ids(tmp_path)) == sorted(one.id_in(again.campaign) for one in plan.executions[:2])
    assert spooled_paths(tmp_path) == []


def test_a_kill_while_a_part_is_written_leaves_nothing_that_could_be_mistaken_for_one(
    tmp_path, ledger_of, plan, monkeypatch
):
    ledger = ledger_of()
    keep(ledger, plan.executions[0])
    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ledger.write_parts()
    assert part_paths(tmp_path) == []
    ledger_of().close()
    assert len(recorded_ids(tmp_path)) == 1


def test_an_old_part_is_written_when_it_is_due_and_not_before(tmp_path, ledger_of, plan):
    ledger = ledger_of()
    keep(ledger, plan.executions[0])
    assert part_paths(tmp_path) == []
    ledger.part_due_s = 0.0
    keep(ledger, plan.executions[1])
    assert [path.name for path in part_paths(tmp_path)] == ["executions-0001.parquet"]


def test_a_flagged_execution_is_repeated_until_it_is_clean(ledger_of, plan):
    ledger = ledger_of(repeats=2)
    first, second, third = plan.executions[:3]
    for one in plan.executions[3:]:
        keep(ledger, one)
    keep(ledger, first)
    keep(ledger, second, "contaminated")
    keep(ledger, third, "failed")
    assert ledger.repetition(1) == [second.again(1), third.again(1)]
    keep(ledger, second.again(1))
    assert ledger.repetition(2) == [third.again(2)]


def test_what_an_earlier_call_with_more_repetitions_made_clean_stays_clean(ledger_of, plan):
    first = plan.executions[0]
    patient = ledger_of(repeats=5)
    keep(patient, first, "contaminated")
    keep(patient, first.again(5))
    assert ledger_of(repeats=2).has_clean(first)
    assert not ledger_of(repeats=2).has_clean(plan.executions[1])


def test_a_folder_of_another_campaign_is_refused_by_its_parts_and_by_what_waits_for_one(ledger_of, plan):
    ledger = ledger_of()
    keep(ledger, plan.executions[0])
    with pytest.raises(BadSetting, match=r"campaign\.json: belongs to a campaign with other parameters \(interval_s\)"):
        ledger_of(interval_s=9)
    ledger.close()
    with pytest.raises(BadSetting, match=r"executions-0001\.parquet: .* other parameters \(interval_s\)"):
        ledger_of(interval_s=9)
    ledger_of(minutes=3)  # how long a call goes on is no part of the campaign


def test_parts_beyond_the_9999th_are_seen_in_order_and_not_written_over(tmp_path, ledger_of, plan):
    ledger = ledger_of()
    for one in plan.executions[:3]:
        keep(ledger, one)
        ledger.write_parts()
        if one.number == 1:
            (tmp_path / "executions-0001.parquet").rename(tmp_path / "executions-9999.parquet")
    names = [path.name for path in part_paths(tmp_path)]
    assert names == ["executions-9999.parquet", "executions-10000.parquet", "executions-10001.parquet"]
    assert recorded_ids(tmp_path) == [one.id_in(ledger.campaign) for one in plan.executions[:3]]


def test_what_a_killed_call_without_a_plan_has_left_is_kept_and_does_not_stop_a_campaign(
    tmp_path, quick, ledger_of, plan
):
    steady = Ledger(tmp_path, quick, None, {"machine": {"cores": 2}})
    keep(steady, plan.executions[0])
    ledger = ledger_of(interval_s=9)
    assert ledger.left(plan.executions) == list(plan.executions)
    told = record_of(pq.read_schema(tmp_path / "executions-0001.parquet"))
    assert (told["plan"], told["campaign"], told["machine"]) == ("steady", steady.campaign, {"cores": 2})


def test_what_a_killed_campaign_has_left_does_not_stop_a_call_without_a_plan(tmp_path, quick, ledger_of, plan):
    first = ledger_of()
    keep(first, plan.executions[0])
    steady = Ledger(tmp_path, quick, None, {})
    assert [one.benchmark for one in steady.past(plan.executions[0].node)] == [plan.executions[0].benchmark]
    steady.close()
    again = ledger_of()
    assert again.campaign == first.campaign
    assert again.left(plan.executions) == list(plan.executions[1:])


@pytest.mark.parametrize("name", ["executions-0001.parquet", "finished/x.execution.parquet", "finished/campaign.json"])
def test_a_damaged_file_is_named(tmp_path, ledger_of, plan, name):
    keep(ledger_of(), plan.executions[0])
    (tmp_path / name).write_bytes(b"PAR1 and nothing else")
    with pytest.raises(BadInput, match=rf"{name.rpartition('/')[2]}: cannot be read"):
        ledger_of()
