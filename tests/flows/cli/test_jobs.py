"""`whorl jobs`: read, summarise, watch, characterise, train, evaluate."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from flows.cli import jobs
from tasks.jobs import steps
from tasks.jobs.params import EvaluateParams, SummaryParams
from tasks.jobs.summary import summarise
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import cards
from tests.flows.cli.conftest import Whorl


def test_the_job_with_most_runs_comes_first(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("jobs", "summary")
    rows = ended.out[ended.out.index("median  ") :].splitlines()
    assert ended.code == 0
    assert rows[1].split()[:4] == ["steady_load#aaaaaaaa", "30", "10", "s"]
    assert rows[2].startswith("varied_export#bbbbbbbb")
    assert "once#" not in ended.out
    assert "2 of 2 jobs with at least 3 finished runs, most runs first" in ended.err


def test_a_log_of_failed_runs_alone_says_how_its_statuses_are_mapped(whorl: Whorl, job_log: Callable[..., Any]) -> None:
    job_log([{"group_key": "load#bbbbbbbb", "runtime_s": 1.0, "status": "failed"} for _ in range(4)])
    assert "all runs that ended have failed; " in whorl("jobs", "summary").err
    job_log(
        [{"group_key": "load#bbbbbbbb", "runtime_s": 1.0, "status": status} for status in ("completed", "cancelled")]
    )
    ended = whorl("jobs", "summary")
    assert "all runs that ended have failed" not in ended.err
    counts = "1 runs; 4 failed or ran into their limit, 1 were cancelled or lack a status or runtime, 0 have not ended"
    assert counts in " ".join(ended.out.split())


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


def test_jobs_are_sorted_cut_and_all_of_them_shown_on_demand(whorl: Whorl, varied_log: Any) -> None:
    found = json.loads(whorl("jobs", "summary", "--sort", "cov", "--top", 1, "--json").out)
    assert [job["group_key"] for job in found["jobs"]] == ["varied_export#bbbbbbbb"]
    assert (found["source"], found["n_runs"], found["n_groups"]) == ("log", 41, 3)
    every = {
        job["group_key"]: job["cov"] for job in json.loads(whorl("jobs", "summary", "--all", "--json").out)["jobs"]
    }
    assert len(every) == 3 and every["once#cccccccc"] is None


def test_runs_at_a_limit_fall_on_the_stated_side(
    whorl: Whorl, job_log: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run at the split is history; 3 times the historic and 10 times the median count, 900 s above it do not."""
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


def test_a_summary_follows_the_files_and_its_parameters_without_being_told(
    whorl: Whorl, job_log: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for n_runs, n in ((3, 3), (5, 2)):
        job_log([{"runtime_s": 10.0} for _ in range(n)])
        assert json.loads(whorl("jobs", "summary", "--json").out)["n_runs"] == n_runs
    for support, n_groups in ((3, 1), (20, 0)):
        monkeypatch.setenv("WHORL_JOBS__SUMMARY__MIN_SUPPORT", str(support))
        assert json.loads(whorl("jobs", "summary", "--json").out)["n_supported_groups"] == n_groups


def test_one_of_several_sources_must_be_named(whorl: Whorl, job_log: Callable[..., Any]) -> None:
    job_log([{"runtime_s": 1.0}], source="a")
    job_log([{"runtime_s": 1.0}], source="b")
    ended = whorl("jobs", "summary")
    assert ended.code == 4
    assert ended.err == "whorl: there are 2 sources: a, b; choose one with --source, or in the field source of a form\n"
    whorl.done("jobs", "summary", "--source", "b")


def test_the_chance_that_the_next_run_takes_longer(whorl: Whorl, varied_log: Any) -> None:
    found = json.loads(whorl("jobs", "summary", "--job", "varied", "--exceeds", 100, "--json").out)
    assert found["group_key"] == "varied_export#bbbbbbbb"
    assert (found["chance"]["k"], found["chance"]["n"], found["chance"]["share"]) == (5, 10, 0.5)
    shown = whorl("jobs", "summary", "--job", "varied", "--exceeds", 100).out
    assert "50.0 % (5 of 10 runs; 90 % interval" in shown
    assert "99 % stay under    not known: needs 100 finished runs" in shown
    of_none = whorl("jobs", "summary", "--exceeds", 100)
    assert (of_none.code, "say which job with --job KEY" in of_none.err) == (2, True)


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
    assert counted == ("table", 3, 2, 1, 1)
    assert found["recurring_share"] == 1
    assert found["refused"][0]["n_rows"] == 1
    assert not home.exists()


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


WRONG = ["", " log", "log\n", "a\tb", "x" * 101]
EXPECTED = "not a name that everyone can type; expected 1 to 100 printable characters without blanks at the ends"


READ = {
    "batches": [], "group_by": [], "key": "runs of one job share name", "better": "by user it is", "data_version": "0",
    "report": "r.html",
}  # fmt: skip
VERBS = ("jobs ingest .", "jobs ingest . --dry-run", "jobs summary", "jobs watch", "report jobs")


@pytest.mark.parametrize("verb", [*VERBS, "models rollback jobs shapes"])
def test_a_source_that_cannot_be_one_is_one_clear_line_whatever_the_verb(whorl: Whorl, verb: str) -> None:
    for source in WRONG:
        ended = whorl(*verb.split(), "--source", source)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == f"whorl: source {source!r}: {EXPECTED}; choose another\n"


def test_the_next_command_after_an_ingest_can_be_pasted(
    whorl: Whorl, job_log: Callable[..., Any], tmp_path: Path, flow_finds: Any
) -> None:
    source = "it's mine"
    warehouse = job_log([{"runtime_s": 1.0}], source=source)
    summarise(warehouse, source, SummaryParams())
    flow_finds(READ)
    (tmp_path / "log.csv").write_text("run_id,name,started_at,runtime_s\n")
    noted = whorl("jobs", "ingest", tmp_path / "log.csv", "--source", source).err.splitlines()[-1]
    assert noted.startswith("next: ")
    assert shlex.split(noted.removeprefix("next: ")) == ["whorl", "jobs", "summary", "--source", source]


def test_an_ingest_tells_names_that_recur_and_are_taken_for_one_job(
    whorl: Whorl, job_log: Callable[..., Any], tmp_path: Path, flow_finds: Any
) -> None:
    named = [("pipeline {n}", f"pipeline_{1001 + n % 3}") for n in range(9)]  # three names, three times each
    dated = [("load {date}", f"load 2026-01-0{n}") for n in range(1, 6)]  # a name a run: they are one job
    warehouse = job_log([{"runtime_s": 1.0, "group_key": job, "name": name} for job, name in named + dated])
    summarise(warehouse, "log", SummaryParams())
    flow_finds(READ)
    (tmp_path / "log.csv").write_text("run_id,name,started_at,runtime_s\n")
    told = whorl("jobs", "ingest", tmp_path / "log.csv", "--source", "log").out
    assert all(line in told for line in (READ["key"], READ["better"]))
    assert "3 names that recur as they stand, such as pipeline_1001, are taken for 1 job," in " ".join(told.split())
    assert "--group-by user,full_name" in told


@pytest.mark.parametrize(
    ("verb", "word"),
    [
        (("nodes", "rank"), "nodes"),
        (("nodes", "summary"), "nodes"),
        (("workloads", "train"), "workloads"),
        (("report", "workloads"), "workloads"),
        (("jobs", "summary"), "jobs"),
    ],
    ids=str,
)
def test_an_empty_home_is_filled_by_the_ingest_of_the_same_word(whorl: Whorl, verb: tuple[str, ...], word: str) -> None:
    ended = whorl(*verb)
    assert (ended.code, ended.out) == (4, "")
    assert f"for instance with 'whorl {word} ingest FILE', or name another home" in ended.err


def test_settings_of_alarms_and_drift_reach_the_flow(
    whorl: Whorl, varied_log: Any, flow_finds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = flow_finds({"alarms": [], "n_alarms": 0})
    for name, value in {"WATCH__LOOK_BACK_DAYS": "3", "DRIFT__IS_WATCHED": "false"}.items():
        monkeypatch.setenv(f"WHORL_JOBS__{name}", value)
    ended = whorl("jobs", "watch")
    assert (ended.code, ended.out, asked[0].watch.look_back_days, asked[0].drift.is_watched) == (0, "", 3, False)
    assert "no new alarm: of 41 finished runs those of the log's last 3 days were looked at; beyond what" in ended.err


def test_a_watch_without_a_finished_run_does_not_say_that_all_is_well(
    whorl: Whorl, job_log: Any, flow_finds: Any
) -> None:
    job_log([{"group_key": "load#bbbbbbbb", "runtime_s": 1.0, "status": "failed"}])
    flow_finds({"alarms": [], "n_alarms": 0})
    assert "has no finished run with a runtime, so that none can be judged" in whorl("jobs", "watch").err


@pytest.fixture
def without_flows(monkeypatch: pytest.MonkeyPatch, quick_training: EvaluateParams) -> None:
    """The steps alone, without a flow around them."""

    def run(call: Any, name: str, *, source: str) -> Any:
        settings = call.settings
        if name == "jobs-train":
            return {**steps.train(settings.warehouse, source, quick_training, "r"), "report": "/reports/next.html"}
        return steps.characterise(settings.warehouse, source, quick_training.predict.characterise)

    monkeypatch.setattr(jobs, "run_flow", run)


def test_a_training_shows_model_shapes_and_baselines(whorl: Whorl, trained_log: Warehouse, without_flows: None) -> None:
    first = cards(trained_log.models)[0]
    ended = whorl.done("jobs", "train")
    assert f"{first.model_id}: no worse on the same runs, so it stays in use" in ended.out
    assert "144 later runs, which the figures below are of" in ended.out
    rows = [line.split("  ")[0] for line in ended.out.splitlines()]
    assert rows[-1] == "report: /reports/next.html"
    stacked = "these and the job's runs, by its number of runs"
    names = ["the model", "the job's own earlier runs", "boosted quantiles", stacked, "one shape for all jobs"]
    at = rows.index("predicted by")
    assert rows[at + 1 : at + 6] == names
    assert ended.err.startswith("CRPS: ") and ended.err.endswith("\nnext: whorl jobs predict --source log\n")
    found = json.loads(whorl("jobs", "train", "--json").out)
    assert found["champion_id"] == first.model_id
    assert found["figures"]["predict.crps.model"] == found["crps"]


def test_shapes_are_told_as_table_2_and_drawn_where_asked(
    whorl: Whorl, job_log: Callable[..., Any], varied_runs: Callable[..., Any], without_flows: None, tmp_path: Path
) -> None:
    job_log(varied_runs())
    ended = whorl.done("jobs", "characterise", "--out", tmp_path / "drawn")
    images = {image.name for image in (tmp_path / "drawn").iterdir()}
    assert images >= {f"shapes-{kind}.png" for kind in ("delta", "ratio")}
    first, header, *_ = ended.out.splitlines()
    assert first.startswith("2 shapes (ratio) of 12 jobs with at least 10 runs in the history; the curve of inertia")
    assert header.split()[:4] == ["shape", "jobs", "runs", "outliers"]
    found = json.loads(whorl("jobs", "characterise", "--json").out)
    assert [row["n_groups"] for row in found["ratio"]["shapes"]] == [6, 6]
    assert set(found["ratio"]["inertia"]) == {"1", "2", "3", "4"} or found["ratio"]["k"] == 2


CONF = """
evaluate:
  baseline_trees: 5
  predict: {n_rounds: 5, n_trees: 5}
"""
PARTS = ("model", "history", "lightgbm", "stacked", "global")


@pytest.fixture
def log(tmp_path):
    rng = np.random.default_rng(1)
    n = 1000
    inputs = np.exp(rng.normal(0, 1, n))
    submitted = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n) * 600, unit="s")
    runtime = 10.0 * inputs * np.exp(rng.normal(0, 0.1, n)) * (1 + np.arange(n) % 10)
    path = tmp_path / "log.parquet"
    pd.DataFrame(
        {
            "run_id": [f"r{i:04}" for i in range(n)], "name": [f"job{chr(97 + i % 10)}" for i in range(n)],
            "submitted_at": submitted, "started_at": submitted, "runtime_s": runtime, "status": "completed",
            "input_bytes": 1e6 * inputs,
        }
    ).to_parquet(path, index=False)  # fmt: skip
    return path


@pytest.fixture
def quick(tmp_path, monkeypatch, _the_same_runs_are_evaluated_once):
    """Settings with models of a few small trees."""
    for key, value in _flat(yaml.safe_load(CONF)["evaluate"], "WHORL_JOBS__EVALUATE"):
        monkeypatch.setenv(key, json.dumps(value))


def _flat(values, prefix):
    for key, value in values.items():
        name = f"{prefix}__{key.upper()}"
        yield from _flat(value, name) if isinstance(value, dict) else [(name, value)]


def test_one_json_object_holds_every_promised_figure(whorl, log, quick):
    ended = whorl.done("jobs", "evaluate", log, "--json")
    found = json.loads(ended.out)
    assert (found["n"], found["groups"], found["recurring_share"], found["seed"]) == (1000, 10, 1.0, 0)
    assert len(found["data_sha256"]) == 64 and found["version"]
    for kind in ("ratio", "delta"):
        assert found[f"shapes.k.{kind}"] >= 1
        for name in ("accuracy", "accuracy_group", "ceiling", "history_baseline"):
            assert 0 <= found[f"label.{name}.{kind}"] <= 1
    for name in PARTS:
        for measure in ("crps", "coverage90", "ks_group", "ks_pooled"):
            assert isinstance(found[f"predict.{measure}.{name}"], float), (measure, name)
        assert found[f"unseen.crps.{name}"] is None and found[f"unseen.crps.{name}.reason"]
    assert found["group.by"] == "as the log is grouped" and found["group.crps.as the log is grouped"] > 0
    # what decides the runtime is known: the job's own runtimes cannot tell as well
    assert found["predict.crps.model"] < 0.8 * found["predict.crps.history"]


def test_a_person_sees_predictors_side_by_side(whorl, log, quick):
    ended = whorl.done("jobs", "evaluate", log)
    assert "1,000 of 10 jobs; 200 later ones are predicted" in ended.out
    assert all(words in ended.out for words in ("the job's own earlier runs", "one shape for all jobs"))


@pytest.mark.slow
def test_nothing_is_kept_but_the_tables_and_the_page_that_were_asked_for(whorl, log, quick, home, tmp_path):
    whorl.done("jobs", "evaluate", log, "--out", tmp_path / "tables", "--json")
    assert not (home / "warehouse.duckdb").exists()
    told = pd.read_parquet(tmp_path / "tables" / "predictions.parquet")
    assert len(told) == 200 and (told["p05_s"] < told["p95_s"]).all()
    page = (tmp_path / "tables" / "jobs-evaluation.html").read_text()
    assert "log.parquet" in page and "1,000 runs of 10 jobs" in " ".join(page.split())
    titles = ("Predictors side by side", "What was predicted, and what came", "Right shapes")
    assert [title for title in titles if title not in page] == []
    assert '"spec":{' in page  # charts are drawn


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("run_id,name,started_at,runtime_s\na,x,2026-01-01T00:00:00Z,5\n", "at least three"),
        ("run_id,name,started_at,runtime_s,status\na,x,2026-01-01T00:00:00Z,,running\n", "no finished run"),
    ],
)
def test_a_log_that_is_too_small_gets_one_line(whorl, quick, tmp_path, content, words):
    path = tmp_path / "small.csv"
    path.write_text(content)
    ended = whorl("jobs", "evaluate", path, "--json")
    said = ended.err.strip().removeprefix("whorl: ")
    assert json.loads(ended.out) == {"error": {"message": said, "exit_code": 3}} and ended.code == 3
    assert words in ended.err and ended.err.count("\n") == 1


def test_of_all_columns_those_known_before_are_used_and_the_others_named(whorl, log, quick):
    runs = pd.read_parquet(log)
    runs = runs.assign(took_ms=1000 * runs["runtime_s"], branch=np.where(runs.index % 3, "main", "dev"))
    runs.rename(columns={"runtime_s": "seconds"}).to_parquet(log)
    flags = ["--features", "all", "--known-before", "branch", "--map", "runtime_s=seconds", "--group-by", "queue,name"]
    ended = whorl.done("jobs", "evaluate", log, *flags, "--json")
    found = json.loads(ended.out)
    assert found["own.used"] == ["branch"]
    assert found["own.left_out.took_ms"] == "is the runtime in 100.0% of the runs"
    assert found["predict.coverage90_tenth.model.1"] is None or "predict.coverage90_tenth.model.10" in found
    assert (found["group.by"], found["group.reason"], found["groups"]) == ("queue,name", "as it was set", 10)
