"""A job at work: its stages, its end, and the skylines of what it held."""

from collections import deque

import pytest

from tasks.jobs.record.scheduler import RunningJob, Step, Vertex, VertexAtWork, mean_tokens

FIRST, SECOND, MERGE = Vertex(0, "extract", (0, 2)), Vertex(1, "extract", (2, 2)), Vertex(2, "merge", None)


@pytest.fixture
def job(submission_of):
    return RunningJob(submission_of(), {"old": 2}, deque([FIRST, SECOND, MERGE]), started_at=1000.0)


def _work(vertex):
    return VertexAtWork(vertex, "old-0", "old")


def test_the_mean_of_a_skyline_counts_each_step_by_its_time():
    # 2 tokens for 3 s, 6 for 1 s, 0 for 1 s: 12 token-seconds in 5 s
    steps = [Step(1.0, 2), Step(4.0, 6), Step(5.0, 0)]
    assert mean_tokens(steps, 6.0) == pytest.approx(2.4)


def test_steps_after_the_end_do_not_count():
    assert mean_tokens([Step(0.0, 2), Step(3.0, 6), Step(9.0, 50)], 4.0) == pytest.approx(3.0)  # (2·3 + 6·1) / 4


def test_a_skyline_in_which_no_time_passed_has_its_first_value():
    assert mean_tokens([Step(2.0, 1), Step(2.5, 4)], 2.0) == 1.0
    assert mean_tokens([Step(2.0, 3)], 1.0) == 3.0
    assert mean_tokens([], 5.0) == 0.0


def test_the_merge_waits_until_everything_that_reads_has_ended(job):
    assert job.next_stage() == "extract"
    job.waiting.popleft()
    job.at_work["r/0"] = _work(FIRST)
    assert job.next_stage() == "extract"
    job.waiting.popleft()
    assert job.next_stage() is None
    job.at_work.clear()
    assert job.next_stage() == "merge"
    job.waiting.popleft()
    assert job.next_stage() is None


def test_a_job_is_over_when_nothing_is_at_work_and_nothing_waits(job):
    assert not job.is_over
    job.waiting.clear()
    job.at_work["r/2"] = _work(MERGE)
    assert not job.is_over
    job.at_work.clear()
    assert job.is_over


def test_after_an_error_nothing_more_starts_and_the_job_ends_with_what_is_at_work(job):
    job.at_work["r/0"], job.error = _work(FIRST), "no such column"
    assert job.next_stage() is None
    assert not job.is_over
    job.at_work.clear()
    assert job.is_over


def test_skylines_hold_a_step_for_each_change_and_none_where_nothing_changed(job):
    job.at_work["r/0"] = _work(FIRST)
    job.note_tokens({"r/0": 1}, 0, 1000.0)
    job.at_work["r/1"] = _work(SECOND)
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
    job.at_work["r/0"] = _work(FIRST)
    job.note_tokens({"r/0": 2}, 0, 1000.5)
    job.at_work.clear()
    job.note_tokens({}, 0, 1001.0)
    assert (job.skyline, job.spare) == ([Step(0.5, 2)], [Step(0.5, 0)])
