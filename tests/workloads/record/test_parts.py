"""Files of recorded runs: whole, self-explaining, and none of them lost or doubled by a kill."""

import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadSetting
from tasks.record.parts import read_table
from tasks.workloads.params import RecordParams
from tasks.workloads.record.bench import Outcome
from tasks.workloads.record.campaign import planned
from tasks.workloads.record.counters import Unavailable
from tasks.workloads.record.parts import RunLedger
from tasks.workloads.record.plan import make_plan
from tasks.workloads.telemetry import Counter, Telemetry

USER = Counter("cpu.user_cores", "core-seconds", "software", is_rate=True)
OWN = Counter("own.memory.used_bytes", "B", "software", is_rate=False, scope="workload")


def telemetry_of(run_id, counters=(USER, OWN), n=3):
    return Telemetry(
        run_id,
        counters,
        np.arange(1.0, n + 1),
        np.arange(float(n * len(counters))).reshape(n, len(counters)),
        workload="busy",
        input="one",
        round="round1",
        machine="m",
        started_at=datetime(2026, 11, 21, 12),
        interval_s=1.0,
    )


@pytest.fixture
def plan(busy, quick):
    return make_plan(quick.model_copy(update={"runs": 3}), {"busy": busy()})


@pytest.fixture
def ledger_of(tmp_path, quick, plan):
    def make(**changes):
        return RunLedger(tmp_path, quick.model_copy(update=changes), plan, {"cores": 2})

    return make


def outcome_of(run, status="clean", **more):
    facts = {"status": status, "sampler_cores": 0.002}
    missing = (Unavailable("perf.cycles", "no unit"),)
    return Outcome(run, status, (telemetry_of(run.run_id, **more),), facts, missing)


def test_a_file_has_a_row_a_sample_and_says_what_its_columns_are(tmp_path, ledger_of, plan):
    ledger = ledger_of()
    ledger.keep(outcome_of(plan.runs[0]))
    ledger.parts.write()
    table = pq.read_table(tmp_path / "runs-0001.parquet")
    names = ["run_id", "workload", "input", "round", "machine", "started_at", "at_s"]
    assert table.column_names == [*names, "cpu.user_cores", "own.memory.used_bytes"]
    assert table["at_s"].to_pylist() == [1.0, 2.0, 3.0]
    assert set(table["workload"].to_pylist()) == {"busy"}
    told = {"unit": "core-seconds", "kind": "software", "is_rate": "true", "scope": "machine"}
    assert table.schema.field("cpu.user_cores").metadata == {k.encode(): v.encode() for k, v in told.items()}
    assert table.schema.field("own.memory.used_bytes").metadata[b"is_rate"] == b"false"
    record = json.loads(table.schema.metadata[b"whorl.record"])
    assert record["unavailable"] == [{"counter": "perf.cycles", "reason": "no unit"}]
    assert record["runs"][plan.runs[0].run_id]["status"] == "clean"
    assert record["params"]["samples"] == 4
    assert record["machine"] == {"cores": 2}
    assert record["cost"] == {"mean_cores": 0.002, "most_cores": 0.002}
    assert "memory.free_bytes" in record["giveaways"]


def test_a_folder_of_another_campaign_is_refused(ledger_of, plan):
    ledger_of().keep(outcome_of(plan.runs[0]))
    with pytest.raises(BadSetting, match=r"other parameters \(samples\)"):
        ledger_of(samples=9)
    ledger_of(minutes=3)  # how long a call goes on is no part of the campaign


@pytest.mark.parametrize(("name", "n_left"), [("workloads", 0), ("workloads-shared", 242)])
def test_the_recordings_of_the_project_can_be_continued(name, n_left):
    folder = Path(__file__).parents[3] / "data" / "recorded" / name
    _, record = read_table(folder / "runs-0001.parquet", ["run_id"])
    params = RecordParams.model_validate(record["params"])
    ledger = RunLedger(folder, params, planned(params), {})
    assert len(ledger.left(ledger.runs)) == n_left
