"""`whorl jobs`: what a person and a program get to see."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest

Whorl = Callable[..., Any]


def test_the_orders_of_the_command_line_are_those_of_the_code() -> None:
    from flows.cli import jobs
    from tasks.jobs.summary import ORDERS

    assert set(get_args(jobs.Sort)) == set(ORDERS) == set(jobs.SORTED)


def test_the_job_with_most_runs_comes_first(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("jobs", "summary")
    rows = ended.out[ended.out.index("median  ") :].splitlines()
    assert ended.code == 0
    assert rows[1].split()[:4] == ["steady_load#aaaaaaaa", "30", "10", "s"]
    assert rows[2].startswith("varied_export#bbbbbbbb")
    assert "once#" not in ended.out
    assert "2 of 2 jobs with at least 3 finished runs, most runs first" in ended.err


def test_outliers_say_which_jobs_they_leave_out(whorl: Whorl, job_log: Callable[..., Any]) -> None:
    rows = [{"group_key": "zero#aaaaaaaa", "runtime_s": 0.0} for _ in range(4)]
    rows += [{"group_key": "load#bbbbbbbb", "runtime_s": float(x)} for x in (1, 1, 1, 10)]
    rows += [{"group_key": "once#cccccccc", "runtime_s": 0.0}]  # has not run often enough to be counted at all
    job_log(rows)
    shown = " ".join(whorl("jobs", "summary").out.split())
    assert "25.0 % of their runs take at least 10 times the median of their job (1 job with a median of 0" in shown
    assert "is left out: 4 runs), 0.0 % more than 15 min beyond it" in shown
    found = json.loads(whorl("jobs", "summary", "--json").out)
    assert (found["n_zero_median_groups"], found["n_zero_median_runs"]) == (1, 4)


def test_nothing_is_said_of_jobs_left_out_where_there_are_none(whorl: Whorl, varied_log: Any) -> None:
    assert "left out" not in whorl("jobs", "summary").out


def test_sorting_by_variation_turns_them_round(whorl: Whorl, varied_log: Any) -> None:
    found = json.loads(whorl("jobs", "summary", "--sort", "cov", "--top", 1, "--json").out)
    assert [job["group_key"] for job in found["jobs"]] == ["varied_export#bbbbbbbb"]
    assert (found["source"], found["n_runs"], found["n_groups"]) == ("log", 41, 3)


def test_runs_at_a_limit_fall_on_the_stated_side(
    whorl: Whorl, job_log: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run at the split is history; 3 times the historic and 10 times the median count, 900 s above it do not."""
    monkeypatch.setenv("WHORL_JOBS__SUMMARY__HISTORY_SHARE", "0.6")
    runs = [*zip(["a"] * 5, (10.0, 10.0, 10.0, 30.0, 29.0), strict=True)]
    runs += [*zip(["b"] * 5, (100.0, 100.0, 100.0, 1000.0, 999.0), strict=True)]
    runs += [*zip(["c"] * 5, (1e3, 1e3, 1e3, 1900.0, 1900.5), strict=True)]
    midnight, minute = pd.Timestamp("2026-01-01"), pd.Timedelta(minutes=1)
    rows = [
        {"group_key": f"{job}#0000000a", "runtime_s": runtime_s, "submitted_at": midnight + (i % 5) * minute}
        for i, (job, runtime_s) in enumerate(runs)
    ]
    # neither when they started nor what did not finish moves the split: the third of the five
    rows = [{**row, "started_at": midnight + pd.Timedelta(hours=1) - i * minute} for i, row in enumerate(rows)]
    late = {"group_key": "d#0000000a", "runtime_s": 1.0, "submitted_at": midnight + pd.Timedelta(days=1)}
    others = [("failed", 39), ("timeout", 1), ("cancelled", 2), ("running", 3)]
    rows += [{**late, "status": status} for status, n in others for _ in range(n)]
    job_log([*rows, *[{**late, "what_if": "baseline"}] * 40, {**late, "runtime_s": None}])
    found = json.loads(whorl("jobs", "summary", "--json", "--all").out)
    jobs = {job["group_key"][0]: job for job in found["jobs"]}
    assert [(jobs[job]["n_history"], jobs[job]["n_new"]) for job in "abc"] == [(3, 2)] * 3
    assert [jobs[job]["history_median_s"] for job in "abc"] == [10, 100, 1000]
    assert [jobs[job]["slow_share"] for job in "abc"] == [0.5, 1, 0]
    assert [jobs[job]["outlier_share_ratio"] for job in "abc"] == [0, 0.2, 0]
    assert [jobs[job]["outlier_share_delta"] for job in "abc"] == [0, 0, 0.2]
    assert [jobs["d"][f"n_{part}"] for part in ("failed", "cancelled", "ongoing", "finished")] == [40, 2, 3, 0]
    assert [(jobs[job]["first_at"][11:16], jobs[job]["last_at"][11:16]) for job in "abc"] == [("00:00", "00:04")] * 3


@pytest.mark.parametrize(("support", "has_figures"), [(2, True), (3, False)])
def test_a_job_needs_just_so_many_runs_on_each_side_of_the_split(
    whorl: Whorl, job_log: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, support: int, has_figures: bool
) -> None:
    monkeypatch.setenv("WHORL_JOBS__SUMMARY__MIN_SUPPORT", str(support))
    job_log([{"runtime_s": float(x)} for x in (10, 30, 40, 80)])
    (job,) = json.loads(whorl("jobs", "summary", "--json", "--all").out)["jobs"]
    figures = [job[name] for name in ("history_median_s", "history_cov", "slow_share", "new_cov")]
    # 20 ± 200 ** 0.5; 80 is three times 20 and more, 40 is not; 60 ± 800 ** 0.5
    expected = [20, 0.5**0.5, 0.5, (2 / 9) ** 0.5] if has_figures else [None] * 4
    assert figures == (pytest.approx(expected) if has_figures else expected)


def test_all_shows_jobs_that_ran_once_as_well(whorl: Whorl, varied_log: Any) -> None:
    found = json.loads(whorl("jobs", "summary", "--all", "--json").out)
    assert len(found["jobs"]) == 3
    once = next(job for job in found["jobs"] if job["group_key"] == "once#cccccccc")
    assert once["cov"] is None


def test_keys_are_shortened_for_a_narrow_terminal_but_never_in_json(
    whorl: Whorl, job_log: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "a_very_long_name_of_a_recurring_job_that_somebody_chose_years_ago#0123abcd"
    job_log([{"group_key": key, "runtime_s": 10.0} for _ in range(4)])
    monkeypatch.setenv("COLUMNS", "80")
    shown = whorl("jobs", "summary").out
    assert key not in shown
    assert "ago#0123abcd" in shown  # both ends stay
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert json.loads(whorl("jobs", "summary", "--json").out)["jobs"][0]["group_key"] == key


def test_a_summary_follows_the_files_without_being_told(whorl: Whorl, job_log: Callable[..., Any]) -> None:
    job_log([{"runtime_s": 10.0} for _ in range(3)])
    assert json.loads(whorl("jobs", "summary", "--json").out)["n_runs"] == 3
    job_log([{"runtime_s": 10.0} for _ in range(2)])
    assert json.loads(whorl("jobs", "summary", "--json").out)["n_runs"] == 5


def test_a_summary_follows_its_parameters(whorl: Whorl, varied_log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(whorl("jobs", "summary", "--json").out)["n_supported_groups"] == 2
    monkeypatch.setenv("WHORL_JOBS__SUMMARY__MIN_SUPPORT", "20")
    assert json.loads(whorl("jobs", "summary", "--json").out)["n_supported_groups"] == 1


def test_one_of_several_sources_must_be_named(whorl: Whorl, job_log: Callable[..., Any]) -> None:
    job_log([{"runtime_s": 1.0}], source="a")
    job_log([{"runtime_s": 1.0}], source="b")
    ended = whorl("jobs", "summary")
    assert ended.code == 4
    assert ended.err == "whorl: there are 2 sources: a, b; choose one with --source, or in the field source of a form\n"
    assert whorl("jobs", "summary", "--source", "b").code == 0


def test_an_unknown_source_names_those_that_there_are(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("jobs", "summary", "--source", "lag")
    assert ended.code == 4
    assert "source 'lag' has no job runs; sources that have some: 'log'" in ended.err


def test_the_chance_that_the_next_run_takes_longer(whorl: Whorl, varied_log: Any) -> None:
    found = json.loads(whorl("jobs", "summary", "--job", "varied", "--exceeds", 100, "--json").out)
    assert found["group_key"] == "varied_export#bbbbbbbb"
    assert (found["chance"]["k"], found["chance"]["n"], found["chance"]["share"]) == (5, 10, 0.5)
    shown = whorl("jobs", "summary", "--job", "varied", "--exceeds", 100).out
    assert "50.0 % (5 of 10 runs; 90 % interval" in shown
    assert "99 % stay under    not known: needs 100 finished runs" in shown


def test_a_chance_needs_a_job(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("jobs", "summary", "--exceeds", 100)
    assert ended.code == 2
    assert "say which job with --job KEY" in ended.err


def test_a_job_that_nobody_has_names_the_nearest(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("jobs", "summary", "--job", "stedy_lod")
    assert ended.code == 4
    assert "no job of source 'log' is called so; nearest: 'steady_load#aaaaaaaa'" in ended.err


LOG = """run_id,what,started_at,runtime_s
r1,nightly,2026-01-01T01:00:00,60
r2,nightly,2026-01-02T01:00:00,61
r3,weekly,2026-01-03T01:00:00,-5
"""


LENIENT = ("--max-refused-share", "0.5")


def test_a_dry_run_counts_and_keeps_nothing(whorl: Whorl, home: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    ended = whorl("jobs", "ingest", tmp_path / "log.csv", "--map", "name=what", "--dry-run", "--json", *LENIENT)
    (found,) = json.loads(ended.out)["files"]
    counted = (found["reader"], found["n_read"], found["n_kept"], found["n_refused"], found["n_groups"])
    assert counted == ("own", 3, 2, 1, 1)
    assert found["recurring_share"] == 1
    assert found["refused"][0]["n_rows"] == 1
    assert not home.exists()


def test_a_dry_run_says_why_rows_are_refused(whorl: Whorl, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG.replace("what", "name"))
    ended = whorl("jobs", "ingest", tmp_path / "log.csv", "--dry-run", *LENIENT)
    assert "runtime" in ended.out[ended.out.index("because") :]
    assert ended.err == "nothing was kept: this was a dry run\n"


def test_a_renaming_that_is_none_is_wrong_usage(whorl: Whorl, tmp_path: Path) -> None:
    ended = whorl("jobs", "ingest", tmp_path, "--map", "name")
    assert ended.code == 2
    assert "'name' is not OURS=THEIRS, such as run_id=job" in ended.err


def test_a_mistyped_path_is_told_before_prefect_starts(
    whorl: Whorl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def must_not_start(*_: Any, **__: Any) -> None:
        raise AssertionError("Prefect was set up")

    monkeypatch.setattr("flows.engine.servers.prepare", must_not_start)
    ended = whorl("jobs", "ingest", tmp_path / "lgo.csv")
    assert ended.code == 3
    assert ended.err.startswith(f"whorl: {tmp_path}/lgo.csv: no such file or folder")


def test_a_report_is_written_and_its_path_printed(whorl: Whorl, varied_log: Any, home: Path) -> None:
    ended = whorl("report", "jobs")
    assert ended.out == f"{home}/reports/jobs-log.html\n"
    assert "steady_load" in Path(ended.out.strip()).read_text()


def test_a_dry_run_looks_at_all_files_of_a_folder_and_tells_the_bad_ones(whorl: Whorl, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "b.csv").write_text("x,y\n1,2\n")
    (tmp_path / "c.csv").write_text(LOG.replace("what", "name"))
    ended = whorl("jobs", "ingest", tmp_path, "--dry-run")
    assert ended.code == 3
    assert "c.csv" in ended.out and "a.csv" not in ended.out
    note, first, second, third = ended.err.splitlines()
    assert note == "nothing was kept: this was a dry run"
    assert first.startswith(f"whorl: {tmp_path}/a.csv: the file is empty; expected")
    assert second.startswith(f"whorl: {tmp_path}/b.csv: no column run_id and no name or group_key")
    assert third.startswith(
        f"whorl: {tmp_path}/c.csv: not loaded: 1 of 3 rows are refused, most of them (1, in line 4)"
    )
    shown = whorl("jobs", "ingest", tmp_path, "--dry-run", "--json")
    assert (shown.code, len(json.loads(shown.out)["files"])) == (3, 1)


def test_a_mapping_of_values_or_a_unit_that_is_none_is_told(whorl: Whorl, tmp_path: Path) -> None:
    for flags, said in (
        (("--map-value", "queue:a=b"), "'queue:a=b': statuses alone can be mapped"),
        (("--map-value", "status:green"), "'green' is not status:THEIRS=OURS, such as status:passed=completed"),
        (("--map-value", "status:green=fine"), "statuses"),
        (("--unit", "input_bytes"), "'input_bytes' is not OURS=UNIT, such as input_bytes=GB"),
        (("--unit", "input_bytes=GX"), "'GX' is no unit of input_bytes; expected one of B, kB, MB"),
    ):
        ended = whorl("jobs", "ingest", tmp_path, *flags)
        assert ended.code == 2 and said in ended.err, ended.err


GOOD = {
    "workloads": "run_id,workload,machine,at_s,cpu\n" + "".join(f"r,k,m,{n},{n % 5}\n" for n in range(9)),
    "nodes": "execution_id,node,benchmark,metric,value,unit,started_at\n"
    + "".join(f"e{n},m,cpu-x,speed,{n},1/s,2026-01-0{n}T00:00:00Z\n" for n in range(1, 10)),
}


@pytest.mark.parametrize("word", GOOD)
def test_every_word_that_ingests_can_look_first(whorl: Whorl, home: Path, tmp_path: Path, word: str) -> None:
    (tmp_path / "good.csv").write_text(GOOD[word])
    (tmp_path / "bad.csv").write_text(GOOD[word].splitlines()[0] + "\n")
    for flags in ((), ("--pseudonymise",)):
        ended = whorl(word, "ingest", tmp_path, "--dry-run", "--json", *flags)
        assert (ended.code, [row["n_kept"] for row in json.loads(ended.out)["files"]]) == (3, [9]), ended.err
        assert "bad.csv" in ended.err and not home.exists()
