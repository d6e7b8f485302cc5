"""Worker processes: they answer, share no fate with a vertex that dies, and are replaced."""

import fcntl
import json
import time
from dataclasses import asdict, replace

import psutil
import pytest

from tasks.jobs.record import pool as module
from tasks.jobs.record.engine import read_order
from tasks.jobs.record.pool import RecorderFailed, WorkerPool, build_data
from tasks.jobs.record.templates import Order

COUNT = Order("r/0", "SELECT region, count(*) AS n FROM {input} GROUP BY ALL", "orders", (0, 4), "parquet", ())
LOCKED = replace(COUNT, vertex_id="waits/0", databases=("sales",))
LIMIT_S = 60


@pytest.fixture(scope="module")
def pool(data_folder):
    with WorkerPool({"one": None, "two": None}, data_folder) as workers:
        yield workers


def _answer(pool, *, n=1):
    """The next answers, by vertex."""
    answers, until = {}, time.monotonic() + LIMIT_S
    while len(answers) < n:
        assert time.monotonic() < until, "the pool never answered"
        answers |= {answer.order.vertex_id: answer for answer in pool.collect(1)}
    return answers if n > 1 else next(iter(answers.values()))


def _until_idle(pool, slot):
    until = time.monotonic() + LIMIT_S
    while not pool.is_idle(slot):
        assert time.monotonic() < until, "the worker was not replaced"
        assert list(pool.collect(1)) == []


def test_an_order_reaches_the_worker_as_it_was():
    order = replace(LOCKED, partials=("a", "b"), is_cold=True, memory_mb=77)
    assert read_order(json.dumps(asdict(order)).encode()) == order


def test_vertices_and_a_merge_go_through_workers(pool, tmp_path):
    results = {slot: str(tmp_path / slot) for slot in ("one", "two")}
    for slot, first in (("one", 0), ("two", 4)):
        pool.give(slot, replace(COUNT, vertex_id=f"r/{first}", parts=(first, 4), result=results[slot]))
    assert not pool.is_idle("one")
    answers = _answer(pool, n=2)
    assert [answers[name].measured["input_rows"] for name in ("r/0", "r/4")] == [200, 200]
    merge = replace(COUNT, parts=None, sql="SELECT sum(n) FROM {partials}", partials=tuple(results.values()))
    pool.give("two", merge)
    answer = _answer(pool)
    assert (answer.slot, answer.error, answer.measured["error"]) == ("two", "", "")
    assert answer.measured["query_s"] <= answer.measured["runtime_s"] <= answer.ended_at - answer.started_at
    assert pool.is_idle("one")
    assert pool.is_idle("two")


def test_an_error_of_the_engine_is_an_answer_of_a_living_worker(pool):
    pids = pool.pids
    pool.give("one", replace(COUNT, sql="SELECT nothing FROM {input}"))
    answer = _answer(pool)
    assert "nothing" in answer.measured["error"]
    assert pool.pids == pids


def test_a_vertex_can_be_planned_while_a_writer_holds_the_lock(pool, data_folder):
    with (data_folder / "sales.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        pool.give("one", LOCKED)
        pool.give("two", replace(LOCKED, vertex_id="plan", source="table", is_explain=True))
        answer = _answer(pool)
        assert (answer.order.vertex_id, answer.measured["error"]) == ("plan", "")
        assert not pool.is_idle("one")
        fcntl.flock(held, fcntl.LOCK_UN)
        assert _answer(pool).measured["lock_wait_s"] > 0


def test_a_killed_worker_is_the_answer_to_its_order_and_is_replaced(pool, data_folder):
    worker = psutil.Process(pool.workers["one"].process.pid)
    with (data_folder / "sales.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        pool.give("one", LOCKED)
        pool.kill("one")
        answer = _answer(pool)
    assert (answer.order.vertex_id, answer.slot, answer.measured) == ("waits/0", "one", None)
    assert answer.error == "worker process ended with status -9"
    assert answer.started_at <= answer.ended_at
    assert not worker.is_running()
    _until_idle(pool, "one")
    pool.give("one", COUNT)
    assert _answer(pool).measured["error"] == ""


def test_a_worker_that_was_killed_when_it_had_just_answered_gets_no_new_order(pool):
    pool.give("two", COUNT)
    assert _answer(pool).error == ""
    pool.kill("two")
    assert not pool.is_idle("two")  # an order to it would fail for another job's sake
    _until_idle(pool, "two")


def test_a_worker_that_cannot_start_is_said_once_and_not_tried_for_ever(tmp_path, monkeypatch):
    before = psutil.Process().children()
    monkeypatch.setattr(module, "worker_command", lambda *_: ["python3", "-c", "raise SystemExit('no way')"])
    with (
        pytest.raises(RecorderFailed, match=r"a worker ended with status 1 before it was ready: no way"),
        WorkerPool({"one": None, "two": None}, tmp_path),
    ):
        raise AssertionError("never ready")
    assert psutil.Process().children() == before


def test_data_sets_that_cannot_be_written_are_one_line_with_what_to_do(tmp_path):
    (tmp_path / "orders").write_text("a file where a folder has to be")
    with pytest.raises(RecorderFailed, match=r"data sets could not be written: .*; check free space and rights"):
        build_data(tmp_path, 0.001, 7)


def test_the_end_of_a_pool_is_the_end_of_its_workers(data_folder):
    with WorkerPool({"one": None}, data_folder) as workers:
        process = psutil.Process(workers.pids[0])
    assert not process.is_running()
