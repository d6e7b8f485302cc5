"""Executions on disk: whole, self-explaining, and none of them lost or doubled by a kill."""

from datetime import datetime, timedelta

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadSetting
from tasks.nodes.execution import Execution, MetricValue, SampledMetric, record_of
from tasks.nodes.record.bench import Outcome
from tasks.nodes.record.campaign import ExecutionLedger, planned

START = datetime(2026, 11, 21, 12)
CPU = SampledMetric("cpu_busy", "%", np.array([-0.5, 0.5, 1.5]), np.array([1.0, np.nan, 3.0]))


@pytest.fixture
def plan(quick):
    return planned(quick)


@pytest.fixture
def ledger_of(tmp_path, quick, plan):
    def make(**changes):
        return ExecutionLedger(tmp_path, quick.model_copy(update=changes), plan, {"machine": {"cores": 2}})

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
    execution = Execution(facts, (MetricValue("speed", 5.25, "MB/s"),), ("lost",), tool="stand-in", log="the log")
    return Outcome(one, status, 0.0, 2.0, execution, {"status": status})


def keep(ledger, one, status="clean"):
    ledger.keep(outcome_of(ledger, one, status), [CPU])


def test_a_part_holds_an_execution_a_row_with_metrics_telemetry_and_log(tmp_path, ledger_of, plan):
    ledger = ledger_of()
    keep(ledger, plan.executions[0])
    ledger.parts.close()
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


def test_a_finished_execution_outlives_a_kill_before_its_part_was_written(ledger_of, plan):
    first = ledger_of()
    keep(first, plan.executions[0])
    again = ledger_of()  # nothing was closed in between
    assert again.campaign == first.campaign
    assert again.left(plan.executions) == list(plan.executions[1:])
    assert again.n_clean == 1


def test_a_folder_of_another_campaign_is_refused_by_its_parts_and_by_what_waits_for_one(ledger_of, plan):
    ledger = ledger_of()
    keep(ledger, plan.executions[0])
    with pytest.raises(BadSetting, match=r"\.parquet: belongs to a campaign with other parameters \(interval_s\)"):
        ledger_of(interval_s=9)
    ledger.parts.close()
    with pytest.raises(BadSetting, match=r"executions-0001\.parquet: .* other parameters \(interval_s\)"):
        ledger_of(interval_s=9)
    ledger_of(minutes=3)  # how long a call goes on is no part of the campaign


def test_what_a_killed_call_without_a_plan_has_left_is_kept_and_does_not_stop_a_campaign(
    tmp_path, quick, ledger_of, plan
):
    steady = ExecutionLedger(tmp_path, quick, None, {"machine": {"cores": 2}})
    keep(steady, plan.executions[0])
    ledger = ledger_of(interval_s=9)
    assert ledger.left(plan.executions) == list(plan.executions)
    ledger.parts.close()
    told = record_of(pq.read_schema(tmp_path / "executions-0001.parquet"))
    assert (told["plan"], told["campaign"], told["machine"]) == ("steady", steady.campaign, {"cores": 2})


def test_what_a_killed_campaign_has_left_does_not_stop_a_call_without_a_plan(tmp_path, quick, ledger_of, plan):
    first = ledger_of()
    keep(first, plan.executions[0])
    steady = ExecutionLedger(tmp_path, quick, None, {})
    assert [one.benchmark for one in steady.past(plan.executions[0].node)] == [plan.executions[0].benchmark]
    steady.parts.close()
    again = ledger_of()
    assert again.campaign == first.campaign
    assert again.left(plan.executions) == list(plan.executions[1:])


def test_calls_without_a_plan_that_begin_in_one_second_keep_what_both_recorded(tmp_path, quick, plan):
    for _ in range(3):  # no two of them can begin in the same microsecond: a folder has one recorder at a time
        ledger = ExecutionLedger(tmp_path, quick, None, {})
        keep(ledger, plan.executions[0])
        ledger.parts.close()
    assert sum(pq.read_metadata(path).num_rows for path in ledger.parts.paths()) == 3
