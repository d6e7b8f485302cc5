"""Part files of a recording: whole or absent, numbered, tied to their campaign's parameters."""

import contextlib
import json
import math
from collections import deque
from dataclasses import asdict, replace
from datetime import datetime, timedelta

import pyarrow.parquet as pq
import pytest

from tasks.errors import BadSetting
from tasks.intake.tables import RECORD_KEY
from tasks.jobs.columns import RUNS_SCHEMA
from tasks.jobs.params import Campaign, Sku
from tasks.jobs.record.plan import Plan
from tasks.jobs.record.pool import OrderResult
from tasks.jobs.record.run_rows import (
    EXTRA_COLUMNS,
    KINDS,
    SCHEMA,
    RunLedger,
    VertexTimes,
    cause_shares,
    kept_waiting_s,
    make_row,
    recorded_cause,
)
from tasks.jobs.record.scheduler import RunningJob, SkuNow, Step, Vertex
from tasks.jobs.record.templates import MeasuredVertex, Order, PlannerEstimate
from tasks.record.parts import Parts
from tasks.record.parts import part_paths as paths_of

SKUS = {"old": Sku(name="old", tokens=6, speed=0.5), "new": Sku(name="new", tokens=6)}
EPOCH = datetime(1970, 1, 1)
# two readers for 4 s and 2 s, then a merge for 1 s; none kept waiting for half of the run
READ = MeasuredVertex(
    runtime_s=4.0, query_s=4.0, cpu_s=0.4, read_bytes=100, written_bytes=7, temp_bytes=0, peak_memory_bytes=50,
    input_rows=10, disk_read_bytes=512,
)  # fmt: skip
# ten seconds in which its tokens promised 4 s of CPU, of which it used all: as fast as promised
STEADY = VertexTimes(query_s=10.0, lock_wait_s=0.0, cpu_s=4.0, promised_s=4.0, is_cold=False, temp_bytes=0)
SLOW = replace(STEADY, cpu_s=2.0)  # 2 s of CPU would have taken 5 s at 0.4 cores: 5 s too long


def _at(unix_s):
    return EPOCH + timedelta(seconds=unix_s)


def _done(vertex, sku, steps, times, told, error=""):
    vertex.slot, vertex.sku, vertex.steps = f"{sku}-0", sku, steps
    order = Order(f"r/{vertex.number}", "", "orders", vertex.parts, "parquet", ())
    vertex.answer = OrderResult(order, vertex.slot, *times, measured=asdict(told) if told else None, error=error)
    return vertex


def measured(vertex, told):
    """The same vertex, as if its worker had measured this."""
    vertex.answer = replace(vertex.answer, measured=told and asdict(told))


@pytest.fixture
def job(submission_of):
    """Submitted at 1000 s, tokens from 1002 s on, at work from 1002.5 to 1007.5 s."""
    submission = replace(
        submission_of(tokens=4),
        submitted_at=1000.0,
        queue_length=3,
        spare_tokens_available=5.0,
        skus=(SkuNow("old", 6.0, 4.0, 0.5, 0.1), SkuNow("new", 6.0, 2.0, 0.25, 0.0)),
        load_mean=0.3754,
        load_sd=0.1,
        surroundings={"running_jobs": 2},
        planned=PlannerEstimate("ab12", {"HASH_JOIN": 1}, 10.0, 40.0),
    )
    made = RunningJob(submission, {"old": 2, "new": 2}, deque(), started_at=1002.0)
    made.skyline = [Step(0.0, 4), Step(2.5, 6), Step(4.5, 2)]
    made.spare = [Step(0.0, 0), Step(2.5, 2), Step(4.5, 0)]
    quick = replace(READ, query_s=2.0, cpu_s=0.1, lock_wait_s=0.5, temp_bytes=30, peak_memory_bytes=80)
    made.done = [
        _done(Vertex(1, "extract", (2, 2)), "new", [Step(0.0, 2)], (1002.5, 1004.5), quick),
        _done(Vertex(0, "extract", (0, 2)), "old", [Step(0.0, 2), Step(2.5, 4)], (1002.5, 1006.5), READ),
        _done(
            Vertex(2, "merge", None),
            "new",
            [Step(4.5, 2)],
            (1006.5, 1007.5),
            replace(READ, query_s=1.0, cpu_s=0.2),
        ),
    ]
    return made


def test_times_run_from_the_first_vertex_to_the_last(job):
    row = make_row(job, 1e6, SKUS)
    assert (row["submitted_at"], row["started_at"], row["ended_at"]) == (_at(1000), _at(1002.5), _at(1007.5))
    assert (row["wait_s"], row["runtime_s"], row["status"]) == (2.5, 5.0, "completed")


def test_tokens_are_means_over_the_time_in_which_they_were_held(job):
    row = make_row(job, 1e6, SKUS)
    assert (row["requested_cpus"], row["min_tokens"], row["peak_tokens"]) == (4.0, 2.0, 6.0)
    assert row["used_cpus"] == 4.4  # the run began 0.5 s after the promise: (4·2 + 6·2 + 2·1) / 5
    assert row["spare_tokens_used"] == 0.8  # 2·2 / 5
    assert row["skyline"] == [
        {"at_s": 0.0, "tokens": 4.0, "guaranteed": 4.0},
        {"at_s": 2.0, "tokens": 6.0, "guaranteed": 4.0},
        {"at_s": 4.0, "tokens": 2.0, "guaranteed": 4.0},
    ]


def test_vertices_stand_in_order_with_their_sku_times_and_tokens(job):
    first, second, merge = make_row(job, 1e6, SKUS)["vertices"]
    assert [v["vertex"] for v in (first, second, merge)] == [0, 1, 2]
    assert [v["sku"] for v in (first, second, merge)] == ["old", "new", "new"]
    assert (first["started_at"], first["ended_at"]) == (_at(1002.5), _at(1006.5))
    # (2·2.5 + 4·2) / 4.5
    assert (first["min_tokens"], first["mean_tokens"], first["peak_tokens"]) == (2.0, 2.889, 4.0)
    assert (merge["stage"], merge["mean_tokens"], merge["cpu_s"]) == ("merge", 2.0, 0.2)


def test_sums_and_peaks_over_the_vertices(job):
    row = make_row(job, 1e6, SKUS)
    assert row["cpu_s"] == pytest.approx(0.7)
    assert (row["read_bytes"], row["written_bytes"], row["input_rows"], row["disk_read_bytes"]) == (300, 21, 30, 1536)
    assert (row["temp_bytes"], row["peak_memory_bytes"], row["lock_wait_s"]) == (30, 80, 0.5)
    assert row["input_bytes"] == 1e6


def test_what_was_known_before_is_kept_as_it_was(job):
    row = make_row(job, 1e6, SKUS)
    assert (row["queue_length"], row["spare_tokens_available"], row["running_jobs"]) == (3.0, 5.0, 2)
    assert (row["load_mean"], row["load_sd"]) == (0.375, 0.1)
    assert row["skus"][0] == {"sku": "old", "tokens": 6.0, "free_tokens": 4.0, "load_mean": 0.5, "load_sd": 0.1}
    assert (row["plan_signature"], row["operators"], row["estimated_cost"]) == ("ab12", '{"HASH_JOIN": 1}', 40.0)
    assert (row["requested_memory_bytes"], row["requested_runtime_s"], row["is_simulated"]) == (256e6, 60.0, False)


def test_the_cause_is_looked_for_on_the_longest_path_with_the_worth_of_its_skus(job):
    assert make_row(job, 1e6, SKUS)["recorded_cause"] == "none"
    # the reader on the old SKU held 2.889 tokens at half speed: 0.144 cores. 0.1 s of CPU are 0.7 s of 4 s
    slow = replace(READ, cpu_s=0.1)
    measured(job.done[1], slow)
    assert make_row(job, 1e6, SKUS)["recorded_cause"] == "load"  # 3.3 s of 5 s
    # the vertex that ended early is not on the path, however long it was kept waiting
    measured(job.done[1], READ)
    measured(job.done[0], replace(READ, cpu_s=0.0))
    assert make_row(job, 1e6, SKUS)["recorded_cause"] == "none"


def test_tokens_that_were_shared_out_after_the_end_were_never_held(job):
    job.skyline.append(Step(5.6, 9))  # the recorder had not heard of the end, half a second after the promise and 5 s
    row = make_row(job, 1e6, SKUS)
    assert (row["peak_tokens"], row["used_cpus"], len(row["skyline"])) == (6.0, 4.4, 3)


def test_vertices_that_had_to_wait_for_others_are_on_the_longest_path(job):
    # one after the other on one token: each was kept waiting for 1.5 of 2 s, together 3 of 5 s
    slow = replace(READ, query_s=2.0, cpu_s=0.05)
    waves = [((1002.5, 1004.5), 0), ((1004.5, 1006.5), 1)]
    job.done[:2] = [_done(Vertex(n, "extract", (n, 1)), "new", [Step(0.0, 1)], times, slow) for times, n in waves]
    assert make_row(job, 1e6, SKUS)["recorded_cause"] == "load"


def test_a_run_that_read_what_others_had_thrown_out_of_the_cache_was_cold(job):
    slow = replace(READ, cpu_s=0.1, disk_read_bytes=200_000_000)  # 2 s at 100 MB/s, of 3.3 s that it was kept waiting
    measured(job.done[1], slow)
    assert make_row(job, 1e6, SKUS)["recorded_cause"] == "cold_cache"


def test_loads_that_nobody_knew_yet_are_missing(job):
    first = (SkuNow("old", 6.0, 6.0, math.nan, math.nan),)
    job.submission = replace(job.submission, load_mean=math.nan, load_sd=math.nan, skus=first)
    row = make_row(job, 1e6, SKUS)
    assert (row["load_mean"], row["skus"][0]["load_sd"], row["skus"][0]["tokens"]) == (None, None, 6.0)


def test_a_failed_run_keeps_its_error_and_tells_no_sums_that_it_does_not_know(job):
    job.error = "Binder Error: no such column"
    killed = _done(Vertex(2, "merge", None), "new", [Step(4.5, 2)], (1006.5, 1007.5), None, "worker process ended")
    job.done[2] = killed
    row = make_row(job, 1e6, SKUS)
    assert (row["status"], row["error"]) == ("failed", "Binder Error: no such column")
    assert row["recorded_cause"] == "not_measured"
    assert not {"cpu_s", "read_bytes", "peak_memory_bytes"} & row.keys()
    assert row["vertices"][2]["cpu_s"] is None
    assert (row["runtime_s"], row["used_cpus"]) == (5.0, 4.4)


def test_a_run_that_could_not_be_planned_has_no_plan(job):
    job.submission = replace(job.submission, planned=PlannerEstimate(error="Binder Error"))
    assert "plan_signature" not in make_row(job, 1e6, SKUS)
    job.submission = replace(job.submission, planned=None)
    assert "plan_signature" not in make_row(job, 1e6, SKUS)


def _cause(*path, runtime_s=10.0, parts=1.0, tokens=1.0):
    return recorded_cause(cause_shares(path, runtime_s, parts_ratio=parts, tokens_ratio=tokens))


def test_the_time_that_a_query_was_kept_waiting():
    assert kept_waiting_s(STEADY) == 0.0
    assert kept_waiting_s(SLOW) == pytest.approx(5.0)
    assert kept_waiting_s(replace(STEADY, cpu_s=9.0)) == 0.0  # more than promised: nobody kept it waiting
    assert kept_waiting_s(replace(STEADY, query_s=0.0)) == 0.0
    assert kept_waiting_s(replace(STEADY, promised_s=0.0)) == 0.0


WAITED = replace(STEADY, query_s=2.0, cpu_s=0.8, promised_s=0.8, lock_wait_s=3.0)
CAUSES = {
    "as fast as its tokens promised": ([STEADY], {}, "none"),
    "as fast, whatever was done to it": ([replace(STEADY, is_cold=True, temp_bytes=1_000_000)], {}, "none"),
    "5 s of 10 s kept waiting": ([SLOW], {}, "load"),
    "5 s of 10.1 s": ([SLOW], {"runtime_s": 10.1}, "none"),
    "cold": ([replace(SLOW, is_cold=True)], {}, "cold_cache"),
    "spilled": ([replace(SLOW, temp_bytes=1_000_000)], {}, "spill"),
    "cold and spilled": ([replace(SLOW, is_cold=True, temp_bytes=1_000_000)], {}, "spill"),
    "a lock for 3 s and 3 s of 10 s": ([WAITED, WAITED], {}, "lock"),
    "three quarters beyond the usual input": ([STEADY], {"parts": 4.0}, "big_input"),
    "1 - 1/1.9 = 0.47": ([STEADY], {"parts": 1.9}, "none"),
    "less than the usual input": ([STEADY], {"parts": 0.2}, "none"),
    "a quarter of the usual tokens": ([STEADY], {"tokens": 0.25}, "few_tokens"),
    "0.6 of the usual tokens": ([STEADY], {"tokens": 0.6}, "none"),
    "more than the usual tokens": ([STEADY], {"tokens": 3.0}, "none"),
}


@pytest.mark.parametrize(("path", "how", "cause"), CAUSES.values(), ids=CAUSES)
def test_the_cause_is_what_explains_half_of_the_run_or_more(path, how, cause):
    assert _cause(*path, **how) == cause


def test_shares_of_a_path_of_two_vertices_worked_out_by_hand():
    merge = replace(STEADY, query_s=2.0, cpu_s=0.4, promised_s=0.8, lock_wait_s=1.0)  # 1 s too long
    shares = cause_shares([replace(SLOW, is_cold=True), merge], 20.0, parts_ratio=2.0, tokens_ratio=0.5)
    # 12 s of queries less 6 s of waiting: 6 s of work, of which half beyond the usual input, half for want of tokens
    assert shares == pytest.approx(
        {"lock": 0.05, "big_input": 0.15, "few_tokens": 0.15, "load": 0.05, "cold_cache": 0.25, "spill": 0.0}
    )


PARAMS = Campaign(minutes=1, seed=5)
NO_PLAN = Plan((), ())


def _row(run_id, what_if=None):
    return {
        "run_id": run_id, "name": "n", "started_at": EPOCH, "runtime_s": 1.5, "status": "completed",
        "is_simulated": False, "what_if": what_if, "matched_run_id": "5-000001" if what_if else None,
    }  # fmt: skip


def _names(paths):
    return [path.name for path in paths]


def _recorded(folder, rows, **changes):
    with RunLedger(folder, PARAMS.model_copy(update=changes), NO_PLAN) as ledger:
        for row in rows:
            ledger.keep(row)
    return ledger


def test_what_ifs_lie_in_parts_of_their_own_and_all_runs_are_known_again(tmp_path):
    rows = [_row("5-000001"), _row("5-000001-no_spare", "no_spare"), _row("5-000002")]
    _recorded(tmp_path, rows)
    _recorded(tmp_path, [_row("5-000003-no_spare", "no_spare")])
    paths = paths_of(tmp_path, KINDS)
    assert _names(paths) == ["runs-0001.parquet", "pairs-0001.parquet", "pairs-0002.parquet"]
    assert pq.read_table(tmp_path / "runs-0001.parquet")["run_id"].to_pylist() == ["5-000001", "5-000002"]
    assert len(RunLedger(tmp_path, PARAMS, NO_PLAN).finished) == 4
    schema = pq.read_schema(paths[0])
    assert schema.names == SCHEMA.names
    assert json.loads(schema.metadata[RECORD_KEY])["plan"] == NO_PLAN.digest()


def test_what_could_not_be_written_is_tried_again_with_the_next_run_and_nothing_is_written_twice(tmp_path, monkeypatch):
    written, failing = Parts.keep, [OSError("no space")]

    def keep(parts, name, table, record):
        if failing:
            raise failing.pop()
        written(parts, name, table, record)

    monkeypatch.setattr(Parts, "keep", keep)
    with contextlib.suppress(OSError), RunLedger(tmp_path, PARAMS, NO_PLAN) as ledger:
        ledger.keep(_row("5-000001"))
        ledger.keep(_row("5-000002"))  # told of it, if the thread has failed by now
    ids = pq.read_table(tmp_path / "runs-0001.parquet")["run_id"].to_pylist()
    assert sorted(ids) == ["5-000001", "5-000002"]


def test_a_disk_that_stays_full_is_told_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(Parts, "keep", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"), RunLedger(tmp_path, PARAMS, NO_PLAN) as ledger:
        ledger.keep(_row("5-000001"))


def test_a_campaign_with_other_parameters_is_not_continued_and_a_longer_call_is_the_same_one(tmp_path):
    _recorded(tmp_path, [_row("5-000001")])
    with pytest.raises(BadSetting, match=r"other parameters \(jobs, pairs\); expected"):
        _recorded(tmp_path, [], jobs=9, pairs=1)
    _recorded(tmp_path, [], scratch=str(tmp_path), minutes=99.0, part_minutes=1.0)


def test_columns_of_the_recorder_do_not_hide_those_of_the_log():
    names = {field.name for field in RUNS_SCHEMA}
    assert not names & EXTRA_COLUMNS.keys()
    assert len(set(SCHEMA.names)) == len(SCHEMA.names)
