"""A recorder that is killed at any stage: the next call loses nothing that was finished and finds nothing running."""

import signal
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tasks.nodes.record.campaign import parts_in, record_nodes

KILLED = """
import sys
from pathlib import Path
from tasks import machine
from stand_ins import PARSERS
from tasks.nodes.record import campaign
from tasks.nodes.record.params import RecordParams
campaign.PARSERS = PARSERS
params, out = RecordParams.model_validate_json(sys.argv[1]), Path(sys.argv[2])
machine.LOCK = sys.argv[3]
campaign.record_nodes(params, out, lambda done, _: print(done, flush=True))
"""
WAIT_S = 30


@pytest.fixture
def child(quick, killable):
    """A recorder in a process of its own, and its parameters."""

    def begin(**changes):
        params = quick.model_copy(update=changes)
        return killable(KILLED, params, Path(__file__).with_name("conftest.py")), params

    return begin


def wait_until(is_so):
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def recorded_ids(folder):
    return [i for path in parts_in(folder).paths() for i in pq.read_table(path)["execution_id"].to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["prepare", "stress", "benchmark"])
def test_a_kill_at_any_stage_is_made_good_by_the_next_call(
    child, stand_ins, tmp_path, lock, parsers, scratch, stage, processes_below
):
    stand_ins.hold(stage)
    process, params = child(stressed_ratio=0.5)
    wait_until(lambda: stand_ins.is_held(stage))
    process.send_signal(signal.SIGKILL)
    process.wait()
    stand_ins.let_go(stage)
    found = record_nodes(params, tmp_path / "out")
    assert found.clean == found.planned == 12
    ids = recorded_ids(tmp_path / "out")
    assert len(ids) == len(set(ids)) == 12
    assert processes_below(scratch) == []
    assert not scratch.exists()


@pytest.mark.slow
def test_servers_of_a_killed_recorder_are_ended_by_the_next_call(
    child, quick, tmp_path, lock, parsers, scratch, processes_below
):
    process, params = child(benchmarks=("network-fake",), runs=200)
    assert process.stdout.readline() == "1\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = record_nodes(params.model_copy(update={"minutes": 1e-9}), tmp_path / "out")
    assert found.clean >= 1
    assert processes_below(scratch) == []
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["executions-0001.parquet"]
