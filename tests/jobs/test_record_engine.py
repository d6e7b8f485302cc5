"""The engine under test: every template runs, locks are real, errors and deaths are results."""

import fcntl
import os
import signal
from dataclasses import replace

import psutil
import pytest

from tasks.jobs.record import engine
from tasks.jobs.record.catalogue import TEMPLATES
from tasks.jobs.record.orders import Order
from tasks.jobs.record.params import RecordParams
from tasks.jobs.record.plan import make_plan
from tasks.jobs.record.pool import RecorderFailed, WorkerPool
from tasks.jobs.record.session import order_of

ONE_OF_EACH = {run.job.template.name: run for run in make_plan(RecordParams(minutes=5, seed=1)).runs}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    engine.build_data(path, 0.002, 1)
    return path


@pytest.fixture
def pool(folder):
    with WorkerPool(1, folder) as workers:
        yield workers


def _order(template, **changes):
    return replace(order_of(ONE_OF_EACH[template]), is_cold=False, **changes)


def _run(order: Order, folder):
    temp = folder / "temp"
    temp.mkdir(exist_ok=True)
    return engine.run_query(engine.connect(order, temp), order, folder, temp)


def _give(pool, order):
    while (worker := pool.idle()) is None:
        assert list(pool.collect(30)) == []
    pool.give(worker, order)
    return worker


def _answer(pool):
    for _ in range(30):
        for answer in pool.collect(2):
            return answer
    raise AssertionError("the pool never answered")


@pytest.mark.parametrize("template", [template.name for template in TEMPLATES])
def test_every_template_runs_and_reports_its_plan_and_rows(folder, template):
    order = _order(template)
    engine.drop_from_cache(engine.input_files(order, folder))
    measured = _run(order, folder)
    assert measured.error == ""
    assert measured.signature and sum(measured.operators.values()) > 1
    assert 0 < measured.query_s < measured.runtime_s
    assert measured.read_bytes > 0


def test_data_are_the_same_for_the_same_seed(folder, tmp_path):
    engine.build_data(tmp_path, 0.002, 1)
    for name in ("orders/part-0063.parquet", "weblog/part-0000.csv"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_an_error_of_the_engine_is_a_result(folder):
    measured = _run(_order("funnel", sql="SELECT nothing FROM {input}"), folder)
    assert "nothing" in measured.error and measured.signature is None


def test_a_reader_waits_for_a_writers_lock_until_its_time_limit(pool, folder):
    order = _order("segment_orders", run_id="waits", time_limit_s=0.5)
    with (folder / "sales.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        _give(pool, order)
        answer = _answer(pool)
    assert (answer["run_id"], answer["status"]) == ("waits", "timeout")
    _give(pool, replace(order, time_limit_s=60))
    assert _answer(pool)["status"] == "completed"


def test_readers_share_a_lock(pool, folder):
    with (folder / "sales.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        _give(pool, _order("segment_orders"))
        assert _answer(pool)["status"] == "completed"


def _child_of(pid):
    parent = psutil.Process(pid)
    while not (children := parent.children()):
        assert parent.is_running()
    return children[0].pid


def test_a_killed_job_is_a_failed_run_and_its_worker_lives_on(pool, folder):
    with (folder / "sales.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        worker = _give(pool, _order("segment_orders"))
        os.kill(_child_of(worker.process.pid), signal.SIGKILL)
        answer = _answer(pool)
    assert (answer["status"], answer["error"]) == ("failed", "job process ended: SIGKILL")
    assert pool.pids == [worker.process.pid]


def test_a_killed_worker_takes_its_job_along_and_is_replaced(pool, folder):
    with (folder / "sales.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        worker = _give(pool, _order("segment_orders", run_id="lost"))
        job = psutil.Process(_child_of(worker.process.pid))
        worker.process.kill()
        answer = _answer(pool)
        job.wait(10)
    assert (answer["run_id"], answer["status"]) == ("lost", "failed")
    assert answer["error"] == "worker process ended with status -9"
    _give(pool, _order("segment_orders"))
    assert _answer(pool)["status"] == "completed"


def test_a_worker_that_cannot_start_is_said_once_and_not_tried_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "tasks.jobs.record.pool.worker_command", lambda *_: ["python3", "-c", "raise SystemExit('no way')"]
    )
    with WorkerPool(1, tmp_path) as pool, pytest.raises(RecorderFailed, match=r"ended with status 1 before .*no way"):
        list(pool.collect(30))
