"""Campaigns of a stand-in that records nothing: what is left, who may record, and kills at every stage."""

import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import BadSetting
from tasks.machine import only_recorder
from tasks.record.campaign import Ledger, alone_in, digest_of, mixed, recording, sigterm_unwinds
from tasks.record.parts import SPOOL, Parts

TOP = Path(__file__).parents[2]
WAIT_S = 120.0
N_RUNS = 6
# records runs 1 to 6, three of them a part; waits at a stage, told by a file, until it is killed
RECORDER = """
import sys, time
from datetime import datetime
from pathlib import Path
import pyarrow as pa
from tasks import machine
from tasks.record import parts as module
from tasks.record.campaign import recording
from tasks.record.parts import Parts
out, stage, lock = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def wait_at(name):
    if name == stage and n >= 3:
        (out / "there").touch()
        time.sleep(60)

def held(name, function):
    def wrapped(*args, **kwargs):
        wait_at(f"before {name}")
        result = function(*args, **kwargs)
        wait_at(f"after {name}")
        return result
    return wrapped

Path.replace, Path.unlink = held("replace", Path.replace), held("unlink", Path.unlink)
module.pq.write_table = held("write", module.pq.write_table)
machine.LOCK = lock
with recording("test", out):
    parts = Parts(out, ("runs", "flagged"), most_waiting=3)
    recorded = {one for _, table, _ in parts.recorded() for one in table["run_id"].to_pylist()}
    try:
        for n in range(1, 7):
            if f"run{n}" in recorded:
                continue
            wait_at("run")
            table = pa.table({"run_id": [f"run{n}"], "started_at": [datetime(2026, 1, n)]})
            parts.keep(f"run{n}", table, {"runs": {f"run{n}": {"status": "clean"}}})
    finally:
        stage = ""
        parts.close()
"""
STAGES = ["run", *(f"{when} {what}" for what in ("write", "replace", "unlink") for when in ("before", "after"))]


@dataclass(frozen=True)
class Run:
    name: str
    repetition: int = 0

    def again(self, n):
        return replace(self, repetition=n)

    @property
    def run_id(self):
        return f"{self.name}.again{self.repetition}" if self.repetition else self.name


A, B, C = Run("a"), Run("b"), Run("c")


@pytest.fixture
def ledger_of(tmp_path):
    def make(statuses=(), repeats=2):
        ledger = Ledger(Parts(tmp_path, ("runs", "flagged")), [[A, B], [C]], lambda run: run.run_id, repeats=repeats)
        ledger.begin(dict(statuses))
        return ledger

    return make


def test_what_was_recorded_disturbed_or_not_or_failed_in_this_call_is_not_left(ledger_of):
    ledger = ledger_of({"a": "disturbed"})
    ledger.errors["c"] = "no disk"
    assert ledger.left(ledger.runs) == [B]


def test_disturbed_runs_are_repeated_until_they_are_clean_when_all_others_have_run(ledger_of):
    ledger, order = ledger_of({"a": "disturbed"}), []
    fates = {"b": "clean", "c": "disturbed", "a.again1": "disturbed", "c.again1": "clean", "a.again2": "clean"}
    for runs in ledger.todo():
        for run in runs:
            order.append(run.run_id)
            ledger.statuses[run.run_id] = fates[run.run_id]
    assert order == list(fates)
    assert ledger.n_clean == 3
    assert ledger.recorded == {"clean": 3, "disturbed": 2}
    assert ledger_of(ledger.statuses).recorded == {}


def test_a_run_that_failed_is_repeated(ledger_of):
    ledger = ledger_of({"a": "clean", "b": "clean"}, repeats=1)
    rounds = ledger.todo()
    assert (next(rounds), next(rounds)) == ([], [C])
    ledger.errors["c"] = "it fell over"
    assert list(rounds) == [[C.again(1)]]


def test_what_an_earlier_call_with_more_repetitions_made_clean_stays_clean(ledger_of):
    ledger = ledger_of({"a": "disturbed", "a.again5": "clean", "b": "disturbed"})
    assert ledger.n_clean == 1
    assert ledger.repetition(1) == [B.again(1), C.again(1)]


def start(out, stage, lock):
    return subprocess.Popen([sys.executable, "-c", RECORDER, str(out), stage, lock], cwd=TOP)


def ids(folder):
    return sorted(i for path in folder.glob("*.parquet") for i in pq.read_table(path)["run_id"].to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("stage", STAGES)
def test_a_kill_at_any_stage_loses_no_finished_run_and_doubles_none(tmp_path, lock, stage, number):
    out = tmp_path / "out"
    killed = start(out, stage, lock)
    while not (out / "there").exists():  # it waits there, and ends some time later if it is not killed
        assert killed.poll() is None
    killed.send_signal(number)
    status = killed.wait(WAIT_S)
    known = set(ids(out)) | {path.stem for path in (out / SPOOL).glob("*.parquet")}
    assert {"run1", "run2"} <= known
    if number == signal.SIGTERM:
        assert status == 128 + signal.SIGTERM
        assert not (out / SPOOL).exists()  # all that had ended is in parts
    assert start(out, "", lock).wait(WAIT_S) == 0
    assert ids(out) == [f"run{n}" for n in range(1, N_RUNS + 1)]
    assert {path.suffix for path in out.iterdir()} - {""} == {".parquet"}


def test_sigterm_unwinds_and_is_what_it_was_afterwards():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, sigterm_unwinds():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(WAIT_S)
    assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before


def test_two_recordings_at_a_time_are_refused(tmp_path, lock):
    with only_recorder("nodes"), pytest.raises(BadSetting, match=r"jobs: another recording is at work \(process"):
        with recording("jobs", tmp_path / "out"):
            pytest.fail("recorded")


def test_two_recordings_do_not_write_into_one_folder(tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        told = r": another recording is at work here; wait for its end, or use another folder"
        with pytest.raises(BadSetting, match=told), alone_in(tmp_path):
            pytest.fail("recorded")
    finally:
        os.close(handle)


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(0, 99))
def test_a_mixed_order_holds_every_case_and_repeats_a_subject_only_where_there_is_no_other_way(names, seed):
    cases = list(enumerate(names))
    order = mixed(cases, itemgetter(1), random.Random(seed))
    assert sorted(order) == cases
    repeats = sum(a[1] == b[1] for a, b in pairwise(order))
    most = max((names.count(name) for name in names), default=0)
    assert repeats == max(0, most - (len(names) - most) - 1)


def test_what_ran_before_does_not_come_first_and_a_seed_decides_the_rest():
    cases = list("aabbcc")
    orders = {tuple(mixed(cases, str, random.Random(seed), "a")) for seed in range(20)}
    assert len(orders) > 5
    assert {order[0] for order in orders} == {"b", "c"}
    assert mixed(cases, str, random.Random(3)) == mixed(cases, str, random.Random(3))


def test_a_digest_is_the_first_sixteen_digits_of_sha_256():
    assert digest_of("abc") == "ba7816bf8f01cfea"  # FIPS 180-2, B.1
