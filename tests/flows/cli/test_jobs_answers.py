"""`whorl jobs predict`, `explain`, `whatif`, with their figures."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest

from flows.cli import jobs, jobs_answers
from tasks.choices import RISKS, SORTED, Risk
from tasks.jobs import steps
from tasks.jobs.explain.reasons import Explanation, RunReasons
from tasks.jobs.params import EvaluateParams
from tasks.jobs.summary import ORDERS
from tasks.warehouse.connection import fetch, writing
from tasks.warehouse.place import Warehouse
from tests.flows.cli.conftest import Whorl

JOB = "job03#00000003"


def table_of(ended: Any) -> list[str]:
    """The rows of the table that stands below the sentences."""
    return str(ended.out.split("\n\n")[-1]).splitlines()[1:]


def test_every_order_has_its_words() -> None:
    assert set(get_args(Risk)) == set(RISKS) == set(SORTED)
    assert set(get_args(jobs.Sort)) == set(ORDERS) == set(jobs.SORTED)


def test_the_riskiest_job_comes_first(whorl: Whorl, trained_log: Warehouse) -> None:
    ended = whorl.done("jobs", "predict", "--top", 3)
    found = json.loads(whorl("jobs", "predict", "--json", "--top", 3).out)
    assert [line.split()[0] for line in table_of(ended)] == [job["group_key"] for job in found["jobs"]]
    chances = [job["exceeds_2x_share"] for job in found["jobs"]]
    assert chances == sorted(chances, reverse=True)
    assert "3 of 12 jobs with at least 3 finished runs, most likely to take twice the usual first" in ended.err
    assert f"predicted by {found['model_id']} as of 2026-01-01" in ended.err
    assert (found["source"], found["n_jobs"]) == ("log", 12)
    costliest = json.loads(whorl("jobs", "predict", "--by", "cost", "--json").out)["jobs"]
    costs = [row["cost_s_per_day"] for row in costliest]
    assert costs == sorted(costs, reverse=True)
    assert all(int(row["group_key"][3:5]) % 2 == 1 for row in costliest[:5])


def test_the_riskiest_jobs_have_their_reason_and_help_after_a_training_alone(
    whorl: Whorl, trained_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = json.loads(whorl("jobs", "predict", "--json", "--top", 5).out)["jobs"]
    for row in found:
        assert row["answer"].endswith(f"; why: {row['reason']}; what would help: {row['would_help']}")
    assert fetch(trained_log, "SELECT count(*) AS n FROM jobs.reasons")["n"].to_list() == [0]
    monkeypatch.setenv("COLUMNS", "80")
    lines = whorl.done("jobs", "predict", "--top", 5).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines[: lines.index("")]).split()) == " ".join(row["answer"] for row in found[:3])


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
    shown = whorl.done("jobs", "predict", "--job", "job03", "--exceeds", 30)
    lines = {line.split("  ")[0]: line for line in shown.out.splitlines()}
    assert "60, usually 1" in lines["finished runs"]
    assert lines["99 %"].split()[-3:] == ["needs", "100", "runs"]
    assert "% predicted;" in lines["longer than 30 s"] and "of its 60 runs did" in lines["longer than 30 s"]
    assert "half of whose runs take" in lines["shape (ratio)"] and "times the median" in lines["shape (ratio)"]
    found = json.loads(whorl("jobs", "predict", "--job", "job03", "--exceeds", 30, "--json").out)
    assert shown.out.startswith(found["next_run"]["answer"])
    assert found["next_run"] in json.loads(whorl("jobs", "predict", "--json").out)["jobs"]
    assert [limit["level"] for limit in found["limits"]] == [0.5, 0.9, 0.95, 0.99]
    assert found["limits"][3]["own"] == {"level": 0.99, "time_s": None, "n_needed": 100}
    assert found["chances"][0]["history"]["n"] == 60
    assert sum(shape["share"] for shape in found["shapes"]["ratio"]) == pytest.approx(1)


@pytest.mark.parametrize("asked", [(), ("--job", "x"), ("--running",)], ids=str)
def test_without_a_model_one_line_says_how_to_make_one(
    whorl: Whorl, job_log: Callable[..., Any], asked: tuple[str, ...]
) -> None:
    job_log([{"runtime_s": 1.0}])
    ended = whorl("jobs", "predict", *asked)
    assert ended.code == 4
    expected = "whorl: source 'log' has no trained model yet; make one with whorl jobs train --source log\n"
    assert (ended.out, ended.err) == ("", expected)


def test_a_broken_model_is_one_line(whorl: Whorl, trained_log: Warehouse) -> None:
    for file in trained_log.models.glob("jobs/*/boosted.json"):
        file.write_text("")
    for asked in ((), ("--job", "job03")):
        ended = whorl("jobs", "predict", *asked)
        assert ended.code == 3
        assert ended.err.startswith(f"whorl: {trained_log.models}/jobs/")
        assert "boosted.json: has changed since the model was registered" in ended.err
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


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--exceeds", "60"), "say which job with --job KEY, or use --running"),
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


@pytest.fixture
def longest(trained_log: Warehouse) -> str:
    """The run that took the longest."""
    return str(fetch(trained_log, "SELECT run_id FROM jobs.runs ORDER BY runtime_s DESC LIMIT 1")["run_id"].iloc[0])


def test_without_a_run_the_source_is_explained(whorl: Whorl, trained_log: Warehouse) -> None:
    ended = whorl.done("jobs", "explain")
    assert "144 that the model did not learn from" in ended.out
    assert "first reason of long runs" in ended.out
    assert ended.out.startswith("What moves predicted runtimes of log from their job's usual: ")
    assert "more history gives better accuracy" in ended.out
    assert "Window operators vary more" not in ended.out  # the log has no plan
    assert "not tested, for want of these columns of jobs.runs: " in ended.err and "operators" in ended.err
    assert "recorded causes" not in ended.out  # this log has none
    assert "need not be causes" in ended.err
    assert "the answer is kept" in ended.err
    again = whorl("jobs", "explain")
    assert again.out == ended.out
    assert "the answer is kept" not in again.err


def test_the_reason_of_a_run_is_told_with_what_is_usual(whorl: Whorl, trained_log: Warehouse, longest: str) -> None:
    ended = whorl.done("jobs", "explain", longest)
    lines = ended.out.splitlines()
    assert f", {longest}: took " in lines[0] and "; expected to take " in lines[0] and "; why: input" in lines[0]
    assert lines[2].split() == ["run", longest]
    assert "longer because of" in lines
    first = lines[lines.index("longer because of") + 1]
    assert first.startswith("input")
    assert "usual" in first
    assert first.endswith("times as long") or "more on input" in first
    assert (
        "its runtimes vary widely with a chance of " in ended.out and "(shape 1 of 0, the steadiest, to 1)" in ended.out
    )


def next_run(*, expected_s: float, of_those_s: float) -> RunReasons:
    """Of a job whose 5 runs took 100 s, and without a cause."""
    runtime = Explanation("factor", math.log(of_those_s), math.log(expected_s), (), 0.0)
    return RunReasons(
        source="log", model_id="m", run_id=None, group_key="nightly", submitted_at=pd.Timestamp(0), runtime_s=None,
        usual_s=100.0, expected_s=expected_s, n_usual=5, last_s=100.0, n_longer=2,
        n_conditions=5, runtime=runtime, variation=None, chance=None, k=0,
    )  # fmt: skip


def test_the_answer_is_the_first_line_and_speaks_of_a_factor_only_where_there_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    jobs_answers.show_reasons(next_run(expected_s=101.0, of_those_s=100.0))
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("nightly, next run: expected to take 101 s, as usual; why: no single cause")
    assert "was expected" not in told
    jobs_answers.show_reasons(next_run(expected_s=1000.0, of_those_s=900.0))
    told = " ".join(capsys.readouterr().out.split())  # as wide as the terminal is
    assert "expected to take 16.7 min, 10 times the usual 100 s; why: the 5 runs of the job count little" in told
    assert "of those 5 runs 15 min was expected, too: others count more" in told
    changed = replace(next_run(expected_s=1000.0, of_those_s=900.0), n_usual=20, n_longer=20, last_s=900.0)
    jobs_answers.show_reasons(changed)
    told = " ".join(capsys.readouterr().out.split())
    assert "why: its last 20 runs took 15 min, in the median" in told and "others count more" not in told


def test_json_has_every_figure(whorl: Whorl, trained_log: Warehouse, longest: str) -> None:
    found = json.loads(whorl("jobs", "explain", longest, "--json").out)
    assert (found["source"], found["run_id"]) == ("log", longest)
    first = found["runtime"]["reasons"][0]
    assert {"family", "feature", "value", "typical", "contribution", "text"} <= set(first)
    assert first["family"] == "input"
    of_source = json.loads(whorl("jobs", "explain", "--json").out)
    assert set(of_source) == {"source", "model_id", "data_version", "families", "insights"}
    shares = [row["share"] for row in of_source["families"] if row["question"] == "runtime"]
    assert sum(shares) == pytest.approx(1)


def test_a_change_is_told_with_what_it_can_and_cannot_claim(whorl: Whorl, trained_log: Warehouse) -> None:
    ended = whorl.done("jobs", "whatif", "--set", "input=x2")
    shown = " ".join(ended.out.split())
    assert "change input=x2" in shown
    assert "of 12 jobs" in shown
    assert "95th percentile" in shown
    assert "What they do not - Nothing measured stands behind it" in shown
    assert "not measured: runs were done again with no_spare, newest_sku, steady_load only, if at all" in ended.err
    assert fetch(trained_log, "SELECT count(*) AS n FROM jobs.what_ifs")["n"].to_list() == [0]


@pytest.mark.usefixtures("trained_log")
def test_a_program_gets_one_value_and_more_data_take_longer(whorl: Whorl) -> None:
    of_one = json.loads(whorl("jobs", "whatif", "--set", "input=x2", "--job", "job03", "--json").out)
    assert (of_one["job"], of_one["changes"]["median_s"]["n_groups"]) == (JOB, 1)
    assert [row["group_key"] for row in of_one["jobs"]] == [JOB]
    found = json.loads(whorl("jobs", "whatif", "--set", "input=x2", "--json").out)
    assert (found["source"], found["job"], found["edits"]) == ("log", None, "input=x2")
    assert found["features"] == ["input_bytes", "input_ratio", "input_usual"]
    assert found["changes"]["median_s"]["change"] > 0
    assert found["changes"]["token_s"]["before"] is None  # the log says nothing of tokens
    assert found["pairs"] is None
    assert len(found["jobs"]) == 10
    assert set(found["moves"]) <= {"ratio", "delta"}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "what-if: nothing is changed; expected at least one change"),
        (["--set-std", "cpu_load=0"], "the log has no standard deviation of 'cpu_load'"),
        (["--set", "input=x2", "--job", "nowhere"], "'nowhere'"),
        (["--set", "input=x2", "--source", "other"], "source 'other' has no trained model yet"),
    ],
)
@pytest.mark.usefixtures("trained_log")
def test_what_cannot_be_asked_is_one_line(whorl: Whorl, arguments: list[str], line: str) -> None:
    ended = whorl("jobs", "whatif", *arguments)
    assert ended.code != 0
    assert line in ended.err
    assert ended.out == ""
    assert len(ended.err.strip().splitlines()) == 1


POSTERIOR = "SELECT posterior FROM jobs.group_shapes WHERE kind = 'ratio' AND part = 'all' AND group_key LIKE 'job03%'"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, quick_training: EvaluateParams) -> list[str]:
    """Characterising is the step alone, without a flow around it; each call is counted here."""
    found: list[str] = []

    def characterised(call: Any, name: str, *, source: str) -> Any:
        assert name == "jobs-characterise"
        found.append(source)
        return steps.characterise(call.warehouse, source, call.settings.jobs.evaluate.predict.characterise)

    monkeypatch.setattr(jobs, "run_flow", characterised)
    monkeypatch.setenv("WHORL_JOBS__EVALUATE__PREDICT__CHARACTERISE__SHAPES__K", "2")
    return found


def test_a_job_is_told_how_likely_each_shape_makes_its_runs(
    whorl: Whorl, trained_log: Warehouse, calls: list[str]
) -> None:
    ended = whorl.done("jobs", "characterise", "--job", "job03", "--json")
    found = json.loads(ended.out)
    assert (found["job"], found["normalisation"], found["n_runs"]) == ("job03#00000003", "ratio", 60)
    kept = fetch(trained_log, POSTERIOR, {})["posterior"].iloc[0]
    assert [row["posterior"] for row in found["shapes"]] == pytest.approx(list(kept), abs=1e-12)
    shown = whorl("jobs", "characterise", "--job", "job03")
    assert [line.split()[0] for line in shown.out.splitlines() if line] == ["job", "runs", "most", "shape", "0", "1"]
    assert len(calls) <= 1  # the shapes of now are kept


def test_any_two_shapes_are_drawn_against_a_job(
    whorl: Whorl, trained_log: Warehouse, calls: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "figures"
    asked = ("jobs", "characterise", "--job", "job03", "--shapes", "1,0", "--normalisation", "delta", "--out", out)
    ended = whorl.done(*asked)
    page, image = sorted(path for path in out.iterdir() if path.is_file())
    assert (page.suffix, image.suffix) == (".html", ".png")
    assert f"written: {page}" in ended.err
    assert "shape 1: log-likelihood" in page.read_text()  # the panel of the chart
    assert "--shapes 1,0 --normalisation delta" in page.read_text()


WRONG = (
    (("--job", "nowhere"), 4, "job 'nowhere': no job of source 'log' is called so"),
    (("--job", "job"), 4, "12 jobs of source 'log' fit"),
    (("--job", "job03", "--shapes", "0,9"), 2, "shapes 0 and 9: expected two different ones of the 2 shapes"),
    (("--job", "job03", "--shapes", "1,1"), 2, "shapes 1 and 1: expected two different ones"),
    (("--job", "job03", "--shapes", "1"), 2, "'1'; expected two numbers of shapes, such as 0,3"),
    (("--job", "job03", "--shapes", "a,b"), 2, "'a,b'; expected two numbers of shapes"),
    (("--job", "job03", "--shapes", "-1,0"), 2, "'-1,0'; expected two numbers of shapes"),
    (("--shapes", "0,1"), 2, "say which job with --job KEY"),
)


def test_a_job_or_shape_that_is_none_is_said_in_one_line(
    whorl: Whorl, trained_log: Warehouse, calls: list[str]
) -> None:
    for arguments, code, line in WRONG:
        ended = whorl("jobs", "characterise", *arguments)
        assert (ended.code, ended.out) == (code, ""), arguments
        told = [said for said in ended.err.splitlines() if line in said]
        assert len(told) == 1, (arguments, ended.err)


def test_what_speaks_for_shapes_is_drawn_for_any_of_them(whorl: Whorl, trained_log: Warehouse, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    ended = whorl.done("jobs", "explain", "--out", out, "--shapes", "1,0", "--json")
    assert json.loads(ended.out)["source"] == "log"
    assert sorted(path.stem for path in out.glob("*.png")) == [
        "beeswarm-ratio-0", "beeswarm-ratio-1", "two-shapes-ratio-1-0",
    ]  # fmt: skip
    page = (out / "jobs-log-reasons-ratio-1-0.html").read_text()
    assert "n = 144 runs" in page
    assert "What tells shape 1 and shape 0 apart" in page


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--shapes", "1"), "it needs --out DIR, and neither a run nor a job"),
        (("--shapes", "1", "--job", "job03", "--out", "x"), "it needs --out DIR, and neither a run nor a job"),
        (("--shapes", "5", "--out", "x"), "knows the ratio shapes 0, 1"),
        (("r1", "--job", "job03"), "either a run or a job, not both"),
    ],
)
def test_what_cannot_be_explained_is_one_line(whorl, trained_log, monkeypatch, tmp_path, arguments, told) -> None:
    monkeypatch.chdir(tmp_path)
    ended = whorl("jobs", "explain", *arguments)
    assert (ended.code, ended.out, told in " ".join(ended.err.split())) == (2, "", True)
    assert not (tmp_path / "x").exists()


def test_the_reasons_of_the_next_run_are_drawn(whorl: Whorl, trained_log: Warehouse, tmp_path: Path) -> None:
    ended = whorl.done("jobs", "explain", "--job", "job03", "--out", tmp_path / "figures")
    assert "the next one" in ended.out and "as if it came under the conditions of its last 10" in ended.out
    (page,) = (tmp_path / "figures").glob("*.html")
    assert "What speaks" not in page.read_text()
    assert "Why this run is predicted so" in page.read_text()


def test_a_what_if_is_drawn_and_says_why_nothing_was_measured(
    whorl: Whorl, trained_log: Warehouse, tmp_path: Path
) -> None:
    whorl.done("jobs", "whatif", "--set", "input=x2", "--out", tmp_path / "figures")
    (page,) = (tmp_path / "figures").glob("*.html")
    text = page.read_text()
    assert "No run was done again with this change, so nothing was measured." in text
    assert "What would change: input=x2 (ratio)" in text
    assert "--set input=x2 --out" in text
    assert "What they do not" in text
