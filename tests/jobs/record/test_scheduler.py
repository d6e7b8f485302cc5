"""The scheduler over a pool that a test answers for: who starts when, with which tokens, and how jobs end."""

from collections import deque
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.jobs.params import Sku
from tasks.jobs.record import scheduler as module
from tasks.jobs.record.run_rows import make_row
from tasks.jobs.record.scheduler import (
    MOST_VERTICES,
    PATIENCE_S,
    THREAD_TOKENS,
    Holder,
    RunningJob,
    Step,
    Vertex,
    cut,
    grant_spare,
    mean_tokens,
    promise,
    split,
)
from tasks.jobs.record.templates import Template
from tasks.machine import ControlGroup

LONG_AGO_S = PATIENCE_S + 5
NEW = Sku(name="new", tokens=4)
FREE = st.dictionaries(st.sampled_from(["gen3", "gen4", "gen5"]), st.integers(0, 9), min_size=1)
MERGED = Template("t", "orders", 4, "", merge="SELECT 1 FROM {partials}")
WRITER = Template("t", "orders", 4, "", writes="sales")
FIRST, SECOND, MERGE = (
    Vertex(0, "extract", (0, 2)),
    Vertex(1, "extract", (2, 2)),
    Vertex(2, "merge", None),
)


def test_jobs_start_first_come_first_served_and_one_that_fits_may_overtake(stage, wide):
    for submission in (wide("a", 3), wide("b", 3), wide("c", 1), wide("d", 1)):
        stage.put(submission)
    stage.go()
    assert (stage.started, stage.waiting) == (["a", "c"], ["b", "d"])
    assert stage.free() == {"old": 3, "new": 0}


def test_nobody_overtakes_one_that_has_waited_too_long(stage, wide):
    for submission in (wide("a", 3), wide("b", 3, ago_s=LONG_AGO_S), wide("c", 1)):
        stage.put(submission)
    stage.go()
    assert (stage.started, stage.waiting) == (["a"], ["b", "c"])


def test_tokens_come_back_at_the_end_and_the_next_one_takes_them(stage, wide):
    stage.put(wide("a", 3))
    stage.put(wide("b", 3))
    stage.go()
    assert stage.end("a/0") is None  # the merge is still to come, and keeps the tokens
    assert (stage.started, stage.free()["new"]) == (["a"], 1)
    ended = stage.end("a/1")
    assert ended.run_id == "a"
    assert (stage.started, stage.waiting, stage.free()["new"]) == (["b"], [], 1)


def test_a_request_beyond_the_cluster_gets_what_there_is(stage, wide):
    stage.put(wide("a", 12, n=3, skus=("old", "new")))
    stage.go()
    assert stage.scheduler.jobs["a"].promised == {"new": 4, "old": 3}
    stage.end("a/0")
    stage.put(wide("b", 12, skus=("old", "new")))  # one vertex: one SKU, the larger
    for vertex in (1, 2, 3):
        stage.end(f"a/{vertex}")
    assert stage.scheduler.jobs["b"].promised == {"new": 4}


def test_only_offered_skus_are_used(stage, wide):
    stage.put(wide("a", 3, n=2, skus=("old",)))
    stage.go()
    assert set(stage.pool.at_work) <= set(stage.cluster.skus["old"].slots)
    assert stage.free() == {"old": 0, "new": 4}


def test_vertices_that_have_no_token_wait_for_the_others(stage, wide):
    stage.put(wide("a", 2, n=5))
    stage.go()
    assert sorted(stage.pool.orders) == ["a/0", "a/1"]
    stage.end("a/1")
    assert sorted(stage.pool.orders) == ["a/0", "a/1", "a/2"]


def test_the_merge_starts_after_all_readers_and_reads_their_results(stage, wide):
    stage.put(wide("a", 2, n=2))
    stage.go()
    stage.end("a/1")
    assert "a/2" not in stage.pool.orders
    stage.end("a/0")
    merge = stage.pool.orders["a/2"]
    assert (merge.parts, merge.result, merge.is_cold) == (None, None, False)
    assert sorted(merge.partials) == sorted(stage.pool.orders[f"a/{n}"].result for n in (0, 1))
    assert stage.end("a/2").is_over


def test_a_big_job_has_no_more_vertices_than_the_most(stage, wide):
    stage.put(wide("a", 1, n=60))
    stage.go()
    assert len(stage.scheduler.jobs["a"].waiting) == MOST_VERTICES  # one at work, the merge waits as well


def test_an_order_says_what_its_vertex_is_to_do(stage, submission_of):
    stage.put(
        submission_of(
            run_id="a", skus=("old",), parts=(5, 2), is_cold=True, sql="SELECT 3 FROM {input}",
            template={"source": "table", "databases": ("sales",), "merge": ""}, merge="", job={"memory_mb": 300},
        )
    )  # fmt: skip
    stage.go()
    (order,) = stage.pool.orders.values()
    assert (order.vertex_id, order.sql, order.parts) == ("a/0", "SELECT 3 FROM {input}", (5, 2))
    assert (order.source, order.databases, order.is_cold, order.is_explain) == ("table", ("sales",), True, False)
    assert order.memory_mb == 150  # half on this SKU
    assert (order.result, (stage.folder / "a").is_dir()) == (str(stage.folder / "a/0.data"), True)
    stage.scheduler.clear(stage.end("a/0"))
    assert not (stage.folder / "a").exists()


def test_a_writer_leaves_no_result_file(stage, submission_of):
    stage.put(submission_of(run_id="a", template={"writes": "sales", "merge": ""}, parts=(0, 9)))
    stage.go()
    (order,) = stage.pool.orders.values()
    assert (order.writes, order.result, order.parts) == ("sales", None, (0, 9))


def test_without_control_groups_promised_tokens_become_threads(stage, wide):
    stage.put(wide("a", 1))
    stage.put(wide("b", THREAD_TOKENS))
    stage.go()
    assert [stage.pool.orders[vertex].threads for vertex in ("a/0", "b/0")] == [1, 1]
    for vertex in ("a/0", "a/1", "b/0", "b/1"):
        stage.end(vertex)
    many = Sku(name="new", tokens=2 * THREAD_TOKENS)
    stage.cluster.skus["new"].sku = many
    stage.put(wide("c", 2 * THREAD_TOKENS))
    stage.go()
    assert stage.pool.orders["c/0"].threads == 2


def test_spare_tokens_go_to_who_takes_them_and_are_taken_back_when_they_are_promised(stage, wide):
    stage.put(wide("a", 1, takes_spare=True))
    stage.go()
    assert stage.tokens_of("a") == {"a/0": 3}  # one promised, twice that at most
    stage.put(wide("b", 3))
    stage.go()
    assert (stage.tokens_of("a"), stage.tokens_of("b")) == ({"a/0": 1}, {"b/0": 3})
    assert [step.tokens for step in stage.scheduler.jobs["a"].spare][-2:] == [2, 0]


def test_background_load_takes_its_tokens_from_the_spare_ones(stage, wide):
    stage.cluster.skus["new"].load_used.samples.extend([(0.0, 0.0), (1.0, 0.2)])  # two tokens' worth
    stage.put(wide("a", 1, takes_spare=True))
    stage.go()
    assert stage.tokens_of("a") == {"a/0": 2}
    assert stage.scheduler.spare_available(("new",)) == 1.0  # 4 less 2 of the load less 1 promised
    assert stage.scheduler.spare_available(("old", "new")) == 4.0


def test_an_error_in_one_vertex_ends_the_others_and_is_one_failed_run(stage, wide):
    stage.put(wide("a", 3, n=3))
    stage.go()
    slots = {order.vertex_id: slot for slot, order in stage.pool.at_work.items()}
    assert stage.end("a/1", error="Binder Error: no column") is None
    assert sorted(stage.pool.killed) == sorted([slots["a/0"], slots["a/2"]])
    assert stage.end("a/0", told=False) is None
    ended = stage.end("a/2", told=False)
    assert (ended.error, ended.is_over) == ("Binder Error: no column", True)  # the first error, not what it led to
    assert "a/3" not in stage.pool.orders
    assert (stage.started, stage.free()["new"]) == ([], 4)
    row = make_row(ended, 0.0, {"new": NEW})
    assert (row["status"], row["error"], len(row["vertices"])) == ("failed", "Binder Error: no column", 3)


def test_a_worker_that_dies_fails_its_run(stage, wide):
    stage.put(wide("a", 1))
    stage.go()
    assert stage.end("a/0", told=False).error == "worker process ended with status -9"


def test_a_job_past_its_time_limit_is_killed_and_a_timeout(stage, wide):
    stage.put(wide("a", 2, n=2))
    stage.put(wide("b", 1))
    stage.go()
    stage.scheduler.jobs["a"].started_at -= 61
    stage.scheduler.end_late_jobs()
    assert len(stage.pool.killed) == 2
    stage.scheduler.end_late_jobs()
    assert len(stage.pool.killed) == 2  # once
    stage.end("a/0", told=False)
    row = make_row(stage.end("a/1", told=False), 0.0, {"new": NEW})
    assert (row["status"], row["error"]) == ("timeout", "killed at its time limit")
    assert stage.started == ["b"]


def test_a_late_job_between_two_vertices_ends_with_the_next_one_and_not_never(stage, wide):
    stage.put(wide("a", 1, n=2))
    stage.go()
    answer = stage.pool.answer("a/0")
    stage.scheduler.finish_vertex(answer)
    stage.scheduler.jobs["a"].started_at -= 61
    stage.scheduler.end_late_jobs()
    stage.go()
    assert stage.pool.killed == []
    stage.scheduler.end_late_jobs()
    assert len(stage.pool.killed) == 1
    assert stage.end("a/1", told=False).is_late


def test_a_quota_is_set_before_the_work_and_anew_for_a_slot_whose_worker_may_be_new(
    stage_of, wide, tmp_path, monkeypatch
):
    stage = stage_of(ControlGroup(2, {"cpu": tmp_path}))
    seen = []
    monkeypatch.setattr(
        module, "set_tokens", lambda group, sku, tokens: seen.append((group.folders["cpu"].name, tokens))
    )
    give = stage.pool.give
    monkeypatch.setattr(stage.pool, "give", lambda slot, order: (seen.append((slot, "work")), give(slot, order)))
    stage.put(wide("a", 2))
    stage.go()
    (slot,) = stage.pool.at_work
    stage.end("a/0")
    # the same slot, the same tokens: set again, since its worker could have been replaced
    assert seen == [(slot, 2), (slot, "work"), (slot, 2), (slot, "work")]
    assert stage.pool.orders["a/0"].threads == 1


def test_a_promise_follows_the_room_token_by_token():
    # 5 and 2 free: three from the first until both have 2, then one more of it, then one of the second
    assert promise(3, {"old": 2, "new": 5}, 2) == {"new": 3}
    assert promise(5, {"old": 2, "new": 5}, 2) == {"new": 4, "old": 1}


@given(tokens=st.integers(1, 20), free=FREE, n_vertices=st.integers(1, 5))
def test_a_promise_is_whole_and_never_over_the_room(tokens, free, n_vertices):
    before = dict(free)
    given_tokens = promise(tokens, free, n_vertices)
    assert free == before
    largest = sorted(free.values(), reverse=True)[:n_vertices]
    assert (given_tokens is None) == (sum(largest) < tokens)
    if given_tokens is not None:
        assert sum(given_tokens.values()) == tokens
        assert len(given_tokens) <= n_vertices
        assert all(0 < n <= free[sku] for sku, n in given_tokens.items())


@given(tokens=st.integers(0, 100), n_vertices=st.integers(1, 20))
def test_shares_add_up_and_differ_by_one_token_at_most(tokens, n_vertices):
    shares = split(tokens, n_vertices)
    assert (len(shares), sum(shares)) == (n_vertices, tokens)
    assert max(shares) - min(shares) <= 1


def _holder(vertex, job, promised=1, most=10):
    return Holder(vertex, job, promised, most)


def test_spare_tokens_are_given_in_turn_until_the_room_ends():
    holders = [_holder("a/0", "a"), _holder("a/1", "a"), _holder("b/0", "b")]
    assert grant_spare(holders, 5, {"a": 9, "b": 9}) == {"a/0": 2, "a/1": 2, "b/0": 1}


def test_a_job_takes_no_more_spare_tokens_than_it_may_and_a_vertex_no_more_than_a_core():
    # a may take 2: one for each of its vertices; b/0 holds 8 of 10 and takes 2; the rest of the room stays
    holders = [_holder("a/0", "a"), _holder("a/1", "a"), _holder("b/0", "b", promised=8)]
    assert grant_spare(holders, 9, {"a": 2, "b": 9}) == {"a/0": 1, "a/1": 1, "b/0": 2}


def test_shares_are_as_equal_as_whole_parts_allow_and_the_merge_comes_last():
    # seven parts, two a vertex: four vertices of 2, 2, 2 and 1
    assert cut(MERGED, (3, 7), 2, most=8) == [
        Vertex(0, "extract", (3, 2)), Vertex(1, "extract", (5, 2)), Vertex(2, "extract", (7, 2)),
        Vertex(3, "extract", (9, 1)), Vertex(4, "merge", None),
    ]  # fmt: skip


def test_what_writes_a_database_is_one_vertex():
    assert cut(WRITER, (0, 40), 1, most=8) == [Vertex(0, "extract", (0, 40))]


@given(first=st.integers(0, 63), count=st.integers(1, 64), per=st.integers(1, 8), most=st.integers(1, 8))
def test_every_part_is_read_once_and_in_order(first, count, per, most):
    vertices = cut(MERGED, (first, count), per, most=most)
    *reading, merge = vertices
    assert [vertex.number for vertex in vertices] == list(range(len(vertices)))
    assert (merge.stage, merge.parts) == ("merge", None)
    read = [part for vertex in reading for part in range(vertex.parts[0], sum(vertex.parts))]
    assert read == list(range(first, first + count))
    sizes = [vertex.parts[1] for vertex in reading]
    assert 1 <= len(reading) <= most
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= per or len(reading) == most


@pytest.fixture
def job(submission_of):
    return RunningJob(submission_of(), {"old": 2}, deque([FIRST, SECOND, MERGE]), started_at=1000.0)


def test_the_mean_of_a_skyline_counts_each_step_by_its_time():
    # 2 tokens for 3 s, 6 for 1 s, 0 for 1 s: 12 token-seconds in 5 s
    steps = [Step(1.0, 2), Step(4.0, 6), Step(5.0, 0)]
    assert mean_tokens(steps, 6.0) == pytest.approx(2.4)


def test_skylines_hold_a_step_for_each_change_and_none_where_nothing_changed(job):
    job.at_work["r/0"] = replace(FIRST, steps=[])
    job.note_tokens({"r/0": 1}, 0, 1000.0)
    job.at_work["r/1"] = replace(SECOND, steps=[])
    job.note_tokens({"r/0": 1, "r/1": 3}, 2, 1001.5)
    job.note_tokens({"r/0": 1, "r/1": 3}, 2, 1002.0)
    del job.at_work["r/0"]
    job.note_tokens({"r/1": 4}, 3, 1003.0)
    assert job.skyline == [Step(0.0, 1), Step(1.5, 4)]  # one vertex gone, its token with the other: 4 all the time
    assert job.spare == [Step(0.0, 0), Step(1.5, 2), Step(3.0, 3)]
    assert job.at_work["r/1"].steps == [Step(1.5, 3), Step(3.0, 4)]


def test_the_moment_between_two_vertices_is_no_step_without_tokens(job):
    job.note_tokens({}, 0, 1000.0)  # it waits for a slot
    assert job.skyline == []
    job.at_work["r/0"] = replace(FIRST, steps=[])
    job.note_tokens({"r/0": 2}, 0, 1000.5)
    job.at_work.clear()
    job.note_tokens({}, 0, 1001.0)
    assert (job.skyline, job.spare) == ([Step(0.5, 2)], [Step(0.5, 0)])
