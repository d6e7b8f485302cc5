"""`whorl jobs predict`: what a person and a program get to see of the next runs."""

import json
from collections.abc import Callable
from typing import Any, get_args

import pytest

from tasks.jobs.offered_names import RISKS, SORTED, Risk
from tasks.warehouse.connection import writing
from tasks.warehouse.place import Warehouse

Whorl = Callable[..., Any]
JOB = "job03#00000003"


def table_of(ended: Any) -> list[str]:
    """The rows of the table that stands below the sentences."""
    return str(ended.out.split("\n\n")[-1]).splitlines()[1:]


def test_every_order_has_its_words() -> None:
    assert set(get_args(Risk)) == set(RISKS) == set(SORTED)


def test_the_riskiest_job_comes_first(whorl: Whorl, trained_log: Warehouse) -> None:
    ended = whorl("jobs", "predict", "--top", 3)
    assert ended.code == 0
    found = json.loads(whorl("jobs", "predict", "--json", "--top", 3).out)
    assert [line.split()[0] for line in table_of(ended)] == [job["group_key"] for job in found["jobs"]]
    chances = [job["exceeds_2x_share"] for job in found["jobs"]]
    assert chances == sorted(chances, reverse=True)
    assert "3 of 12 jobs with at least 3 finished runs, most likely to take twice the usual first" in ended.err
    assert f"predicted by {found['model_id']} as of 2026-01-01" in ended.err
    assert (found["source"], found["n_jobs"]) == ("log", 12)


def test_jobs_that_ran_too_seldom_are_shown_on_demand(
    whorl: Whorl, trained_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHORL_JOBS__SUMMARY__MIN_SUPPORT", "100")
    ended = whorl("jobs", "predict")
    assert (ended.code, ended.out) == (0, "")
    assert "no job has at least 100 finished runs (jobs.summary.min_support); --all shows every job" in ended.err
    assert len(table_of(whorl("jobs", "predict", "--all"))) == 12


def test_predictions_follow_the_files_without_being_told(whorl: Whorl, trained_log: Warehouse) -> None:
    before = json.loads(whorl("jobs", "predict", "--json").out)["jobs"]
    with writing(trained_log) as connection:
        connection.execute("DELETE FROM jobs.runs WHERE group_key = $job", {"job": JOB})
        connection.execute("UPDATE ops.files SET batch_id = 'batch-001'")
    after = json.loads(whorl("jobs", "predict", "--json").out)["jobs"]
    assert {job["group_key"] for job in before} - {job["group_key"] for job in after} == {JOB}


def test_one_job_is_told_beside_what_its_own_runs_say(whorl: Whorl, trained_log: Warehouse) -> None:
    shown = whorl("jobs", "predict", "--job", "job03", "--exceeds", 30)
    assert shown.code == 0
    lines = {line.split("  ")[0]: line for line in shown.out.splitlines()}
    assert "60, usually 1" in lines["finished runs"]
    assert lines["99 %"].split()[-3:] == ["needs", "100", "runs"]
    assert "% predicted;" in lines["longer than 30 s"] and "of its 60 runs did" in lines["longer than 30 s"]
    assert "half of whose runs take" in lines["shape (ratio)"] and "times the median" in lines["shape (ratio)"]
    found = json.loads(whorl("jobs", "predict", "--job", "job03", "--exceeds", 30, "--json").out)
    assert [limit["level"] for limit in found["limits"]] == [0.5, 0.9, 0.95, 0.99]
    assert found["limits"][3]["own"] == {"level": 0.99, "time_s": None, "n_needed": 100}
    assert found["chances"][0]["history"]["n"] == 60
    assert sum(shape["share"] for shape in found["shapes"]["ratio"]) == pytest.approx(1)


def test_an_unknown_job_names_the_nearest(whorl: Whorl, trained_log: Warehouse) -> None:
    ended = whorl("jobs", "predict", "--job", "jbo03")
    assert ended.code == 4
    assert "no job of source 'log' is called so; nearest: 'job0" in ended.err


@pytest.mark.parametrize("asked", [(), ("--job", "x"), ("--running",), ("--costliest",)], ids=str)
def test_without_a_model_one_line_says_how_to_make_one(
    whorl: Whorl, job_log: Callable[..., Any], asked: tuple[str, ...]
) -> None:
    job_log([{"runtime_s": 1.0}])
    ended = whorl("jobs", "predict", *asked)
    assert ended.code == 4
    expected = "whorl: source 'log' has no trained model yet; make one with whorl jobs train --source log\n"
    assert (ended.out, ended.err) == ("", expected)


def test_a_broken_model_is_one_line(whorl: Whorl, trained_log: Warehouse) -> None:
    for file in trained_log.models.glob("jobs/*/forest.txt"):
        file.write_text("")
    for asked in ((), ("--job", "job03")):
        ended = whorl("jobs", "predict", *asked)
        assert ended.code == 3
        assert ended.err.startswith(f"whorl: {trained_log.models}/jobs/")
        assert "forest.txt: has changed since the model was registered" in ended.err
        assert ended.err.endswith("or train again\n")


def test_runs_that_go_on_are_told_as_of_the_end_of_the_log(whorl: Whorl, trained_log: Warehouse) -> None:
    nothing = whorl("jobs", "predict", "--running")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err == "no run goes on as of 2026-01-01 11:59:20 UTC, the last moment in the log\n"
    with writing(trained_log) as connection:
        connection.execute(
            "UPDATE jobs.runs SET status = 'running', runtime_s = NULL, ended_at = NULL "
            "WHERE run_id IN (SELECT run_id FROM jobs.runs ORDER BY submitted_at DESC LIMIT 3)"
        )
    shown = whorl("jobs", "predict", "--running", "--exceeds", 90)
    assert "longer than 90 s" in shown.out.splitlines()[0]
    assert "3 runs as of 2026-01-01 11:59:00 UTC" in shown.err
    found = json.loads(whorl("jobs", "predict", "--running", "--exceeds", 90, "--json").out)
    assert [run["exceeds"] for run in found["runs"] if run["elapsed_s"] > 90] == [1.0]
    assert json.loads(whorl("jobs", "predict", "--running", "--json").out)["runs"][0]["exceeds"] is None


def test_the_costliest_jobs_are_the_varied_ones(whorl: Whorl, trained_log: Warehouse) -> None:
    ended = whorl("jobs", "predict", "--costliest")
    first = ended.out.splitlines()[1].split()[0]
    assert int(first[3:5]) % 2 == 1
    assert "time beyond the median of each job, over the 12 h of the log" in ended.err
    found = json.loads(whorl("jobs", "predict", "--costliest", "--json").out)
    assert (len(found["jobs"]), found["jobs"][0]["group_key"]) == (10, first)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--exceeds", "60"), "say which job with --job KEY, or use --running"),
        (("--running", "--costliest"), "ask for one of them at a time"),
        (("--job", "x", "--running"), "ask for one of them at a time"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_wrong_usage(
    whorl: Whorl, trained_log: Warehouse, asked: tuple[str, ...], told: str
) -> None:
    ended = whorl("jobs", "predict", *asked)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())
