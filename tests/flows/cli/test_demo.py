"""`whorl demo`: five answers first, and nothing is asked again while what they rest on is as it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli.demo import show_story
from flows.cli.invocation import Invocation

RISKIEST = {
    "group_key": "load#1a2b3c4d",
    "usual_s": 20.0,
    "exceeds_2x_share": 0.35,
    "p95_s": 90.0,
    "because": "half of its 40 runs took 15 s to 30 s, one in twenty over 80 s; nothing that is known before tells "
    "which",
    "would_help": "steadier load: 95 % under 60 s in place of 90 s, by the model",
}
WORKLOAD = {
    "run_id": "5-nginx-large-09",
    "label": "nginx",
    "workload": "redis",
    "confidence": 0.734,
    "reasons": ["net sent bytes in phase 2: 3 MB a second, as in redis (3.1 MB a second)"],
    "accuracy": 0.975,
    "n_held_out": 40,
    "n_runs": 159,
    "n_workloads": 10,
    "report": "workloads.html",
}
VERDICTS = {
    "n_judged": 1800, "n_flagged": 361, "figures": {"recall": 0.912, "false_alarms_per_1000": 14.2},
    "degrading": "none", "alarms": [], "cost_share": 0.1184,
}  # fmt: skip
ADVICE = {
    "answer": "Run sort on large: late in 0.6% of its runs.",
    "sureness": "80% interval of the chance 0.0% to 1.9%",
    "reason": "on small it is bound by disk",
    "next_run": "one run on middle",
    "checks": ["The chosen types cost 8.4 % more.", "Late: 0.5 %.", "Late on all types: 12.7 %."],
}
NODES = {
    "n_executions": 1800,
    "n_nodes": 3,
    "n_emulated": 3,
    "best": [
        {"aspect": "all", "nodes": ["large (emulated)"], "score": 1.62},
        {"aspect": "cpu", "nodes": ["large (emulated)", "small (emulated)"], "score": 1.5},
        {"aspect": "disk", "nodes": ["large (emulated)"], "score": 1.7},
    ],
    "verdicts": VERDICTS,
    "report": "nodes.html",
}
TOLD = {
    "n_files": {"jobs": 33, "workloads": 7, "nodes": 1}, "n_quarantined": 2, "n_runs": 22_215, "n_jobs": 228,
    "alarms": ["a"], "riskiest": RISKIEST, "report": "jobs.html", "workload": WORKLOAD, "nodes": NODES,
    "advice": ADVICE,
}  # fmt: skip


def shown(
    told: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    home: str = "/my data/demo",
) -> list[str]:
    monkeypatch.delenv("COLUMNS", raising=False)
    show_story(told, Path(home))
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_the_answers_come_first_then_reports_then_what_was_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(TOLD, capsys, monkeypatch) == [
        "Which job's next run is most at risk?",
        "answer load#1a2b3c4d",
        "how sure over twice its usual 20 s with probability 35.0 %; 95 % under 90 s",
        f"because {RISKIEST['because']}",
        "would help steadier load: 95 % under 60 s in place of 90 s, by the model",
        "",
        "What ran here?",
        "answer redis, a known workload (labelled nginx, so that is wrong): 5-nginx-large-09, which was held out",
        "how sure 73.4 %; the model is right for 97.5 % of 40 other runs that were held out",
        "because net sent bytes in phase 2: 3 MB a second, as in redis (3.1 MB a second)",
        "",
        "Which node is best?",
        "answer large (emulated), 1.62 times the reference fleet",
        "because it is best in disk; large (emulated) and small (emulated) (tied) in cpu",
        "",
        "Is a node degrading?",
        "answer none",
        "how sure 361 of 1,800 executions are flagged; of those that it has not seen the detector finds 91.2 % under "
        "recorded stress, and flags 14 of 1,000 others",
        "costs 11.8 % of a node's time at most, at the pace of the recording",
        "",
        "Which machine type should a job run on?",
        "answer Run sort on large: late in 0.6% of its runs.",
        "how sure 80% interval of the chance 0.0% to 1.9%",
        "because on small it is bound by disk",
        "profile next one run on middle",
        "held back The chosen types cost 8.4 % more. Late: 0.5 %.",
        "",
        "all on one page index.html",
        "jobs jobs.html",
        "workloads workloads.html",
        "nodes nodes.html",
        "",
        "read jobs 22,215 runs of 228 jobs, 2 rows refused, from 33 files",
        "read workloads 200 runs of 10 workloads, from 7 files",
        "read nodes 1,800 executions of benchmarks on 3 nodes, 3 of them emulated, from 1 file",
        "",
        "look further whorl jobs summary --home '/my data/demo'",
        "all alarms whorl query 'SELECT word, raised_at, message FROM ops.alarms' --home '/my data/demo'",
    ]


def test_a_log_without_enough_runs_and_a_workload_that_nobody_knows_are_answers_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = dict(**TOLD | {"riskiest": None, "workload": dict(**WORKLOAD | {"workload": None})})
    lines = shown(told, capsys, monkeypatch)
    assert lines[1] == "answer none: no job has enough runs for a prediction"
    assert lines[4].startswith("answer an unknown workload (labelled nginx, so that is wrong)")


def test_a_degrading_node_is_named_with_what_its_alarm_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms = ["node small, disk: looks degraded", "node small, cpu: looks degraded"]
    verdicts = {**VERDICTS, "degrading": "small (emulated) in disk (confirmed)", "alarms": alarms, "cost_share": None}
    lines = shown(TOLD | {"nodes": NODES | {"verdicts": verdicts}}, capsys, monkeypatch)
    at = lines.index("Is a node degrading?")
    assert lines[at + 1 : at + 3] == ["answer small (emulated) in disk (confirmed)", f"because {alarms[0]}"]
    assert lines[at + 4] == "costs not known"


@pytest.fixture
def runs_of_the_flow(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the flow is asked, each time it runs; it leaves a report, a model, a warehouse and a recording behind."""
    asked: list[Any] = []
    recorded = tmp_path / "recorded"
    (recorded / "jobs").mkdir(parents=True)
    (recorded / "jobs" / "runs.csv").write_text("1,2\n")
    monkeypatch.setattr("tasks.datasets.RECORDED", recorded)
    monkeypatch.setattr(Invocation, "prepare_flows", lambda self: None)

    def tell(params: Any) -> dict[str, Any]:
        asked.append(params)
        for name in ("reports/jobs.html", "models/jobs/m/model.json", "landing/jobs/b.parquet", "warehouse.duckdb"):
            (home / "demo" / name).parent.mkdir(parents=True, exist_ok=True)
            (home / "demo" / name).write_text(f"made of {params.jobs.summary.min_support}")
        return TOLD

    monkeypatch.setattr("flows.engine.forms.call", lambda _, params: tell(params))
    return asked


def test_the_second_demo_gives_the_same_answers_and_runs_no_flow(
    whorl: Callable[..., Any], runs_of_the_flow: list[Any]
) -> None:
    first, second = whorl("demo"), whorl("demo")
    assert (first.code, first.out) == (second.code, second.out) == (0, first.out)
    assert "starting Prefect" in first.err
    assert second.err == ""
    assert len(runs_of_the_flow) == 1
    told = json.loads(whorl("demo", "--json").out)
    assert told == {**TOLD, "alarms": []}  # none of them is new
    assert len(runs_of_the_flow) == 1


@pytest.mark.parametrize(
    "name", ["reports/jobs.html", "models/jobs/m/model.json", "landing/jobs/b.parquet", "warehouse.duckdb", "demo.json"]
)
def test_what_was_deleted_or_damaged_is_made_again(
    whorl: Callable[..., Any], home: Path, tmp_path: Path, runs_of_the_flow: list[Any], monkeypatch: Any, name: str
) -> None:
    whorl("demo")
    file = home / "demo" / name
    file.write_bytes(file.read_bytes()[:-1])
    whorl("demo")
    assert len(runs_of_the_flow) == 2
    file.unlink()
    whorl("demo")
    assert len(runs_of_the_flow) == 3
    assert file.exists()
    monkeypatch.setenv("WHORL_JOBS__SUMMARY__MIN_SUPPORT", "7")  # so are answers by other settings, and of other files
    whorl("demo")
    assert [params.jobs.summary.min_support for params in runs_of_the_flow] == [3, 3, 3, 7]
    (tmp_path / "recorded" / "jobs" / "runs.csv").write_text("1,3\n")
    whorl("demo")
    assert len(runs_of_the_flow) == 5
