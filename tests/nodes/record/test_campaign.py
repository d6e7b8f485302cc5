"""Campaigns from end to end with stand-ins for the tools: the whole plan, disturbed ones again, and what is on disk."""

import subprocess
import sys
from contextlib import contextmanager
from datetime import datetime, timedelta

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadSetting, MissingTool, WhorlError
from tasks.nodes.execution import Execution, MetricValue, SampledMetric, record_of
from tasks.nodes.record import campaign
from tasks.nodes.record.bench import Outcome
from tasks.nodes.record.campaign import ExecutionLedger, parts_in, planned
from tasks.nodes.record.params import LoweredLimit
from tasks.nodes.record.plan import plan_digest


def rows_of(folder):
    return [row for path in parts_in(folder).paths() for row in pq.read_table(path).to_pylist()]


def test_a_campaign_records_every_execution_with_its_labels_and_leaves_nothing_behind(record, tmp_path, scratch):
    seen = []
    found = record(lambda *told: seen.append(told))
    assert (found.planned, found.clean, found.recorded, found.errors) == (12, 12, {"clean": 12}, {})
    assert (found.isolation, found.more["nodes"], found.more["unavailable"]) == ("none", ["a", "b"], {})
    assert seen == [(n, 12) for n in range(1, 13)]
    rows = rows_of(tmp_path / "out")
    assert {(row["node"], row["machine_type"], row["benchmark"], row["aspect"]) for row in rows} == {
        (node, kind, f"{aspect}-fake", aspect)
        for node, kind in (("a", "small"), ("b", "large"))
        for aspect in ("cpu", "disk", "network")
    }
    assert all(row["is_emulated"] and not row["is_stressed"] and not row["is_contaminated"] for row in rows)
    assert all(row["ended_at"] > row["started_at"] and row["status"] == "completed" for row in rows)
    assert {row["log"] for row in rows} == {"speed 5 MB/s\n", "latency 2 ms\n", "rate 7 MB/s\n"}
    assert {len(row["metrics"]) for row in rows} == {1}
    assert {row["tool_version"] for row in rows} == {"1.0"}
    assert not scratch.exists()
    told = record_of(pq.read_schema(tmp_path / "out" / "executions-0001.parquet"))
    assert (told["isolation"], told["namespaces"]) == ("none", []) and told["machine"]["cores"] >= 1
    assert told["campaign"].startswith("20") and len(told["executions"]) == 12
    assert [one["benchmark"] for one in told["params"]["short"]] == ["cpu-fake", "disk-fake", "network-fake"]
    for row in rows:  # metrics of the node reach from before until after each execution
        series = {one["metric"]: one for one in row["telemetry"]}
        assert {"cpu_busy", "memory_used", "load_1m", "filesystem_util", "network_in_bytes"} <= set(series)
        at_s = series["cpu_busy"]["at_s"]
        assert at_s == sorted(at_s)
        assert at_s[-1] >= row["duration_s"]
        assert at_s[0] <= 0


def test_limits_that_need_control_groups_are_told_where_there_are_none(record, quick):
    slow = quick.emulated[0].model_copy(update={"cpu_percent": 50, "disk_mb_per_s": 20})
    found = record(emulated=(slow,), runs=1)
    assert found.more["unavailable"] == {
        "a": ["CPU quota of 50 %: no control groups here", "disk limit of 20 MB/s: no control groups here"]
    }


def test_a_server_that_would_listen_to_everybody_is_not_started(record, quick):
    *others, network = quick.short
    network = network.model_copy(update={"server": network.server.replace("{server}", "0.0.0.0")})
    found = record(short=(*others, network), runs=1)
    assert found.planned == 4
    assert "would listen on every address" in found.more["unavailable"]["a"][0]


def test_the_next_call_goes_on_and_one_after_the_last_does_nothing(record):
    assert record(minutes=1e-9).recorded == {}
    assert record().recorded == {"clean": 12}
    again = record()
    assert (again.recorded, again.clean) == ({}, 12)


def lasting(quick):
    """A benchmark that lasts many ticks of the clock that processor time is counted in."""
    return quick.short[0].model_copy(update={"command": f"sh -c 'sleep 0.2; {quick.short[0].command}'"})


def test_stress_is_labelled_by_what_was_applied(record, tmp_path, quick):
    found = record(short=(lasting(quick),), stressed_ratio=0.5, runs=6, emulated=quick.emulated[:1])
    assert found.recorded == {"clean": 6}
    rows = rows_of(tmp_path / "out")
    stressed = [row for row in rows if row["stress_wanted"]]
    assert sorted(row["dose"] for row in stressed) == ["burn-1", "burn-2", "burn-3"]
    assert {row["dose_level"] for row in stressed} == {1, 2, 3}
    assert all(row["is_stressed"] for row in stressed)
    assert {(row["dose"], row["dose_level"], row["is_stressed"]) for row in rows if not row["stress_wanted"]} == {
        ("", 0, False)
    }


def test_a_stressor_that_dies_leaves_an_execution_that_is_flagged_and_repeated(record, tmp_path, quick, stand_ins):
    script = stand_ins.script("dying", "exit 1")
    doses = tuple(dose.model_copy(update={"command": str(script)}) for dose in quick.doses)
    found = record(doses=doses, stressed_ratio=0.5, runs=2, repeats=1, benchmarks=("cpu-fake",))
    assert found.recorded == {"clean": 2, "unstressed": 4}
    assert found.clean == 2
    flagged = [row for row in rows_of(tmp_path / "out") if row["stress_wanted"]]
    assert len(flagged) == 4
    assert not any(row["is_stressed"] for row in flagged)


def test_what_a_stressor_works_on_is_laid_out_beforehand_and_once(record, quick, stand_ins, tmp_path):
    log = tmp_path / "laid"
    lay = stand_ins.script("lay-for-stress", f"echo laid >> {log}; touch $1/for-stress")
    burn = stand_ins.script("burn-if-laid", "[ -e $1/for-stress ] || exit 1; while :; do :; done")
    changes = {"command": f"{burn} {{laid}}", "prepare": f"{lay} {{laid}}"}
    doses = tuple(dose.model_copy(update=changes) for dose in quick.doses)
    found = record(doses=doses, stressed_ratio=0.5, short=(lasting(quick),))
    assert found.recorded == {"clean": 4}
    assert log.read_text() == "laid\n" * len(found.more["nodes"])


def test_a_fault_of_one_stressor_is_not_the_end_of_the_campaign(record, monkeypatch):
    def start(stressor):
        if stressor.dose.command:
            raise OSError("no disk")

    monkeypatch.setattr("tasks.nodes.record.bench.Stressor.start", start)
    found = record(stressed_ratio=0.5, runs=1)
    assert len(found.errors) == 3
    assert set(found.errors.values()) == {"no disk"}
    assert found.clean == 3


def test_doses_that_are_shares_of_a_node_need_control_groups(quick):
    weak = tuple(dose.model_copy(update={"cpu_ratio": 0.1}) for dose in quick.doses)
    params = quick.model_copy(update={"doses": weak, "stressed_ratio": 0.5})
    assert sum(one.stress_wanted for one in planned(params)) == 6
    assert not any(one.stress_wanted for one in planned(params, has_groups=False))


def test_a_failed_execution_is_kept_with_its_log_and_repeated(record, tmp_path, quick, stand_ins):
    flag = tmp_path / "failed-once"
    script = stand_ins.script(
        "flaky", f'[ -e {flag} ] || {{ touch {flag}; echo broken; exit 1; }}; echo "speed 5 MB/s"'
    )
    benchmark = quick.short[0].model_copy(update={"command": str(script)})
    found = record(short=(benchmark,), repeats=1)
    assert found.recorded == {"failed": 1, "clean": 4}
    assert found.clean == 4
    [failed] = pq.read_table(tmp_path / "out" / "flagged-0001.parquet").to_pylist()
    assert (failed["status"], failed["log"], failed["metrics"]) == ("failed", "broken\n", [])


def test_a_tool_that_never_ends_is_killed_at_its_limit(record, tmp_path, quick, stand_ins):
    script = stand_ins.script("endless", "sleep 60")
    benchmark = quick.short[0].model_copy(update={"command": str(script), "limit_s": 0.2})
    assert record(short=(benchmark,), runs=1).recorded == {"timeout": 2}
    assert {row["status"] for row in rows_of(tmp_path / "out")} == {"timeout"}


def test_foreign_work_flags_an_execution_and_has_it_repeated(record, quick):
    disturber = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    benchmark = quick.short[0].model_copy(update={"command": f"sh -c 'sleep 0.5; {quick.short[0].command}'"})
    try:
        found = record(short=(benchmark,), runs=1, emulated=quick.emulated[:1], foreign_limit_ratio=0.02, repeats=1)
    finally:
        disturber.kill()
        disturber.wait()
    assert found.recorded == {"contaminated": 2}
    assert found.clean == 0


def test_what_is_not_installed_is_told_before_anything_runs(record, quick, scratch):
    benchmark = quick.short[0].model_copy(update={"command": "/no/such/tool"})
    with pytest.raises(MissingTool, match="no/such/tool is not installed"):
        record(short=(benchmark,))
    assert not scratch.exists()


def test_without_a_plan_the_set_is_completed_and_then_the_stalest_repeated(record, tmp_path):
    steady = {"place": "local", "node": "here", "runs": 0}
    assert record(**steady, executions=2).recorded == {"clean": 2}
    assert record(**steady, executions=3).recorded == {"clean": 3}
    order = sorted(rows_of(tmp_path / "out"), key=lambda row: row["started_at"])
    names = ["cpu-fake", "disk-fake", "network-fake", "cpu-fake", "disk-fake"]
    assert [row["benchmark"] for row in order] == names
    assert len({row["execution_id"] for row in order}) == 5


def test_two_nodes_of_one_name_are_refused(quick):
    with pytest.raises(BadSetting, match="two nodes of the same name"):
        planned(quick.model_copy(update={"emulated": (quick.emulated[0],) * 2}))


def rows_in_time(folder):
    return sorted(rows_of(folder), key=lambda row: row["started_at"])


def without_groups(planned):
    """The plan where limits count as set though there are no control groups."""
    return lambda params, templates=None, has_groups=True: planned(params, templates)


def test_a_benchmark_that_cannot_be_run_does_not_hold_up_the_others(record, quick):
    *others, network = quick.short
    broken = network.model_copy(update={"server": "sh -c 'echo no such device; exit 1' {server}"})
    steady = {"place": "local", "node": "here", "runs": 0, "short": (*others, broken)}
    found = record(**steady, executions=4)
    assert (found.recorded, len(found.errors)) == ({"clean": 4}, 1)
    [told] = found.errors.values()
    assert "does not listen" in told and "no such device" in told
    later = record(**steady, executions=1)
    assert (later.recorded, len(later.errors)) == ({"clean": 1}, 1)


def test_every_execution_waits_for_its_turn_and_one_that_is_not_given_costs_that_execution_alone(record):
    turns = []

    @contextmanager
    def turn(template):
        turns.append(template.is_network)
        if template.is_network:
            raise WhorlError("the server does not answer")
        yield

    found = record(turn=turn, runs=1)
    assert found.recorded == {"clean": 4} and sorted(turns) == [False, False, False, False, True, True]
    assert list(found.errors.values()) == ["the server does not answer"] * 2
    assert record(runs=1).clean == 6


def test_ctrl_c_keeps_the_finished_executions_and_a_campaign_and_calls_without_one_share_a_folder(
    record, tmp_path, scratch
):
    def leave(done, _):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(leave)
    assert len(rows_of(tmp_path / "out")) >= 3 and not scratch.exists()
    assert record(runs=0, executions=1).recorded == {"clean": 2}
    seen = []
    found = record(lambda *told: seen.append(told))
    assert (found.planned, found.clean, seen[-1]) == (12, 12, (12, 12))
    rows = rows_in_time(tmp_path / "out")
    assert len({row["execution_id"] for row in rows}) == len(rows) == 14


def test_stress_that_cannot_be_applied_here_is_told_before_the_campaign_begins(record, tmp_path, quick, caplog):
    doses = tuple(
        one.model_copy(update={"cpu_ratio": 0.1} if one.benchmark == "cpu-fake" else {})
        for one in quick.doses
        if (one.benchmark, one.level) != ("disk-fake", 3)
    )
    told = []

    def tell(*_):
        told.append(list(caplog.messages))

    here = {"place": "local", "node": "here", "benchmarks": ("cpu-fake", "disk-fake")}
    record(tell, doses=doses, stressed_ratio=0.5, runs=6, **here)
    lines = (
        "cpu-fake is not stressed by burn-1, burn-2, burn-3 (no control groups here)",
        "disk-fake is not stressed at level 3 (none in nodes.record.doses)",
    )
    assert f"2 of the 12 executions will be stressed, and not 6: {'; '.join(lines)}" in told[0]
    record_told = record_of(pq.read_schema(tmp_path / "out" / "executions-0001.parquet"))
    assert record_told["unavailable"] == {"here": list(lines)}
    assert sum(row["stress_wanted"] for row in rows_in_time(tmp_path / "out")) == 2


@pytest.mark.parametrize(
    ("node", "message"), [("c", "no node c; expected some of a, b"), ("a", "no control groups here; take it out")]
)
def test_a_limit_that_cannot_be_lowered_is_refused_before_anything_runs(record, tmp_path, node, message):
    with pytest.raises(BadSetting, match=rf"nodes\.record\.lowered: {message}"):
        record(lowered=(LoweredLimit(node=node, cpu_percent=80),))
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_a_limit_is_lowered_from_its_share_of_the_plan_on_and_in_every_later_repetition(record, tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.nodes.record.campaign.planned", without_groups(campaign.planned))
    record(runs=2, lowered=(LoweredLimit(node="a", after_ratio=0.5, cpu_percent=80),))
    rows = rows_in_time(tmp_path / "out")
    lowered = [place >= len(rows) / 2 and row["node"] == "a" for place, row in enumerate(rows)]
    assert [row["dose"] for row in rows] == ["lowered-cpu-80" if is_lowered else "" for is_lowered in lowered]
    assert {(row["dose_level"], row["is_stressed"]) for row in rows} == {(0, False)}
    facts = record_of(pq.read_schema(tmp_path / "out" / "executions-0001.parquet"))["executions"]
    assert sum(one.get("lowered") == ["lowered-cpu-80"] for one in facts.values()) == 3


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
    keep(ledger, plan[0])
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
    assert (record["plan"], record["campaign"]) == (plan_digest(plan), ledger.campaign)
    assert not (tmp_path / "finished").exists()


def test_a_folder_of_another_campaign_is_refused_by_its_parts_and_by_what_waits_for_one(ledger_of, plan):
    ledger = ledger_of()
    keep(ledger, plan[0])
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
    keep(steady, plan[0])
    ledger = ledger_of(interval_s=9)
    assert ledger.left(plan) == [*plan]
    ledger.parts.close()
    told = record_of(pq.read_schema(tmp_path / "executions-0001.parquet"))
    assert (told["plan"], told["campaign"], told["machine"]) == ("steady", steady.campaign, {"cores": 2})


def test_what_a_killed_campaign_has_left_does_not_stop_a_call_without_a_plan(tmp_path, quick, ledger_of, plan):
    first = ledger_of()
    keep(first, plan[0])
    steady = ExecutionLedger(tmp_path, quick, None, {})
    assert [one.benchmark for one in steady.past(plan[0].node)] == [plan[0].benchmark]
    steady.parts.close()
    again = ledger_of()
    assert again.campaign == first.campaign
    assert again.left(plan) == list(plan[1:])


def test_calls_without_a_plan_that_begin_in_one_second_keep_what_both_recorded(tmp_path, quick, plan):
    for _ in range(3):  # no two of them can begin in the same microsecond: a folder has one recorder at a time
        ledger = ExecutionLedger(tmp_path, quick, None, {})
        keep(ledger, plan[0])
        ledger.parts.close()
    assert sum(pq.read_metadata(path).num_rows for path in ledger.parts.paths()) == 3
