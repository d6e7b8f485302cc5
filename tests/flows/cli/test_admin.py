"""`whorl report workloads`, `whorl runs`, `whorl models`, and verbs that run flows: what they hand over, and print."""

import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.engine.deploying import Registered
from tasks import datasets
from tasks.errors import BadInput
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, promote, register
from tasks.warehouse.runs import RunRecord, record_run
from tests.flows.cli.conftest import Whorl

pytestmark = pytest.mark.usefixtures("flows_as_they_are")


@pytest.fixture
def telemetry(job_log: Callable[..., Warehouse], home: Path) -> Warehouse:
    """A home with a source of jobs and one of telemetry, `box`, that holds a run of redis with two phases."""
    warehouse = job_log([{"runtime_s": 1.0}])
    assert warehouse.home == home
    with writing(warehouse) as connection, transaction(connection):
        for sql in (
            """INSERT INTO workloads.runs BY NAME SELECT 'box' AS source, 'r1' AS run_id, 'redis' AS workload,
            1.0 AS interval_s, 4 AS n_samples, 4.0 AS duration_s, 4 AS n_rows, 0 AS n_missed, 0 AS n_resets,
            false AS is_resampled, [0.0, 1.0, 2.0, 3.0] AS at_s, false AS is_simulated, 'b' AS batch_id""",
            """INSERT INTO workloads.counters BY NAME SELECT 'box' AS source, 'r1' AS run_id, 'disk.reads' AS counter,
            'requests' AS unit, 'software' AS kind, true AS is_rate, 'machine' AS scope, false AS is_constant,
            [1.0, 1.0, 9.0, 9.0] AS samples, 'b' AS batch_id""",
            """INSERT INTO workloads.phases BY NAME SELECT 'box' AS source, 'r1' AS run_id, 'k' AS key,
            'disk.reads' AS counter, unnest([1, 2]) AS phase, unnest([0, 2]) AS start_sample,
            unnest([2, 4]) AS end_sample, unnest([-1.0, 1.0]) AS mean, 0.0 AS median, 0.0 AS variance, 0.0 AS q10,
            0.0 AS q25, 0.0 AS q75, 0.0 AS q90""",
            """INSERT INTO workloads.run_phases BY NAME SELECT 'box' AS source, 'r1' AS run_id, 'k' AS key,
            unnest([1, 2]) AS phase, unnest([0, 2]) AS start_sample, unnest([2, 4]) AS end_sample""",
            """INSERT INTO ops.files BY NAME SELECT * REPLACE ('b' AS batch_id, 'workloads' AS word, 'box' AS source)
            FROM ops.files""",
        ):
            connection.execute(sql).fetchall()
    return warehouse


def test_figures_of_a_run_of_the_only_source_are_written_where_one_asks(whorl, telemetry: Warehouse, tmp_path) -> None:
    ended = whorl("report", "workloads", "--run", "r1", "--counter", "disk.reads", "--out", tmp_path / "out", "--json")
    told = json.loads(ended.out)
    assert told["path"] == f"{tmp_path}/out/workloads-box-runs.html"
    assert [Path(path).name for path in told["figures"]] == ["series-1.png", "phases.png"]
    assert "redis" in Path(told["path"]).read_text()
    assert "--run r1 --counter disk.reads" in Path(told["path"]).read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "jobs", "--run", "r1"), "write 'whorl report workloads --run r1'"),
        (("report", "workloads", "--counter", "cpu.user_cores"), "--counter: goes with --run"),
        (("report", "workloads", "--run", "r9"), "run 'r9' of source 'box': not there, or not cut into phases yet"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_line(
    whorl: Whorl, telemetry: Warehouse, arguments: tuple[str, ...], words: str
) -> None:
    ended = whorl(*arguments)
    assert ended.code != 0
    assert words in " ".join(ended.err.split())
    assert "Traceback" not in ended.err


@pytest.mark.usefixtures("prefect_server")
def test_an_ingest_shows_files_reasons_and_what_recurs(whorl: Whorl, long_csv_log: Path, home: Path) -> None:
    csv_log = long_csv_log
    with csv_log.open("a") as file:
        file.write("r11,nightly_load,2026-01-11T01:00:00,-1\n")
    ended = whorl.done("jobs", "ingest", csv_log, "--source", "mine")
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["runs.csv", "table", "71", "70", "1"] in lines
    reason = lines[lines.index(["refused", "first", "in", "line", "because"]) + 1]
    assert reason[:2] == ["1", "72"]
    assert "runtime" in " ".join(reason)
    assert "100.0 % of the runs are of a job that ran at least twice" in ended.out
    assert ended.out.endswith(f"report: {home}/reports/jobs-mine.html\n")
    assert "next: whorl jobs summary --source mine" in ended.err

    watched = whorl("jobs", "watch")
    assert "nightly_load: run r10 took 100 min" in watched.out
    assert " new alarm" in watched.err
    again = whorl("jobs", "watch")
    assert (again.code, again.out) == (0, "")
    assert "beyond what was told before, none is slower than its prediction allows" in again.err


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.slow
def test_the_demo_answers_speaks_while_it_works_and_leaves_the_home_alone(
    whorl: Whorl,
    csv_log: Path,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    drawn_telemetry: Callable[..., Path],
    drawn_executions: Callable[..., Path],
) -> None:
    recorded = tmp_path / "recorded"
    for word, file in (
        ("jobs", csv_log),
        ("workloads", drawn_telemetry("runs-0001")),
        ("nodes", drawn_executions(runs=10, types=2, is_emulated=True)),
    ):
        (recorded / word).mkdir(parents=True)
        shutil.copy(file, recorded / word / file.name)
    shutil.copytree(datasets.RECORDED / "advice", recorded / "advice")
    monkeypatch.setattr("tasks.datasets.RECORDED", recorded)
    ended = whorl.done("demo")
    assert ended.out.startswith("Which job's next run is most at risk?\n")
    assert "half of its " in ended.out and "would help  not known" in ended.out
    assert "d-05, which was held out\n" in ended.out
    assert "60 executions of benchmarks on 3 nodes, 3 of them emulated, from 1 file\n" in ended.out
    pages = home / "demo" / "reports"
    for name in ("index", "jobs-recorded", "workloads-recorded", "nodes-recorded"):
        assert f"{pages}/{name}.html\n" in ended.out
        assert (pages / f"{name}.html").exists()
    steps = ("jobs: land log", "jobs: predict", "workloads: identify", "nodes: learn")
    assert all(f" s  {step}\n" in ended.err for step in steps), ended.err
    assert [path.name for path in home.iterdir()] == ["demo"]
    monkeypatch.setattr("flows.engine.forms.call", None)  # what asks again fails
    again = whorl("demo")
    assert (again.code, again.out, again.err) == (0, ended.out, "")


def test_flags_of_an_ingest_reach_the_flow(whorl: Whorl, csv_log: Path, flow_finds: Any) -> None:
    csv_log.write_text(csv_log.read_text().replace("run_id,name", "id,a=b"))
    asked = flow_finds(BadInput("a.csv", "nothing in it", "rows"))
    flags = ["--time-zone", "Europe/Berlin", "--map", "run_id=id", "--map", "name=a=b", "--pseudonymise"]
    ended = whorl("jobs", "ingest", csv_log, "-s", "mine", "--reader", "table", *flags)
    assert ended.code == 3
    assert ended.err.endswith("whorl: a.csv: nothing in it; expected rows\n")
    (params,) = asked
    assert (params.paths, params.source, params.reader) == ([str(csv_log)], "mine", "table")
    assert (params.read.time_zone, params.read.pseudonymise) == ("Europe/Berlin", True)
    assert params.read.columns == {"run_id": "id", "name": "a=b"}


def test_flags_of_a_recording_are_checked_like_settings(
    whorl: Whorl, home: Path, tmp_path: Path, flow_finds: Any
) -> None:
    found = {"isolation": "threads", "n_runs": 1200, "own_cores_ratio": 0.0234}
    asked = flow_finds(lambda params: {"folder": params.folder} | found)
    flags = ["--minutes", 2, "--jobs", 9, "--isolation", "threads"]
    ended = whorl("jobs", "record", *flags, "--out", tmp_path / "out")
    assert ended.out == f"{tmp_path}/out\n"
    assert "recorded 1,200 runs, held to their tokens by threads" in ended.err
    assert "the recorder itself took 2.3 % of one core" in ended.err
    made = asked[0].record
    assert (made.minutes, made.jobs, made.seed, made.isolation) == (2, 9, 7, "threads")
    assert json.loads(whorl("jobs", "record", "--json").out) == {"folder": f"{home}/recordings/jobs-{{run}}"} | found
    found["isolation"] = "none"
    assert "every run was recorded already" in whorl("jobs", "record").err
    wrong = whorl("jobs", "record", "--minutes", 0)
    assert wrong.code == 2
    assert wrong.err.startswith("whorl: flag: jobs.record.minutes: 0.0 is not allowed")
    unknown = whorl("jobs", "record", "--isolation", "vm")
    assert (unknown.code, "expected one of auto, cgroups, threads" in unknown.err) == (2, True)


def test_serve_and_deploy_hand_over_what_was_asked(whorl: Whorl, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def serve(settings: Any, *, host: str, port: int | None, limit: int, say: Callable[[str], None], **_: Any) -> None:
        asked.update(home=settings.whorl.home, host=host, port=port, limit=limit)
        say("Prefect: http://127.0.0.1:1")

    def deploy(settings: Any, api_url: str | None) -> list[Registered]:
        asked["api_url"] = api_url
        return [Registered("deployment", "jobs-ingest", "created")]

    monkeypatch.setattr("flows.engine.serving.serve", serve)
    monkeypatch.setattr("flows.engine.deploying.deploy", deploy)
    assert whorl("serve", "--port", 0, "--limit", 3).out == "Prefect: http://127.0.0.1:1\n"
    shown = whorl("deploy", "--api-url", "http://127.0.0.1:1/api").out
    assert shown.splitlines()[1].split() == ["deployment", "jobs-ingest", "created"]
    assert asked == {"home": str(home), "host": "127.0.0.1", "port": 0, "limit": 3, "api_url": "http://127.0.0.1:1/api"}
    assert json.loads(whorl("deploy", "--json").out)[0]["change"] == "created"


def test_flags_of_a_recording_of_workloads_are_checked_like_settings(
    whorl: Whorl, home: Path, tmp_path: Path, flow_finds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {
        "isolation": "cgroups", "n_planned": 210, "n_clean": 200, "n_new": 60, "n_failed": 1,
        "sampler_cores": 0.0024,
    }  # fmt: skip

    asked = flow_finds(lambda params: {"folder": params.folder} | found)
    monkeypatch.setattr("tasks.workloads.record.campaign.lacks", lambda needs: [])
    ended = whorl("workloads", "record", "--minutes", 9, "-w", "redis", "-w", "nginx", "--out", tmp_path / "out")
    assert ended.out == f"{tmp_path}/out\n"
    assert "recorded 60 runs, 200 of 210 undisturbed so far" in ended.err
    assert "the sampler itself took 0.2 % of one core" in ended.err
    assert "1 run failed" in ended.err
    made = asked[0].record
    assert (made.minutes, made.workloads, made.rounds, made.seed) == (9, ("redis", "nginx"), 5, 7)
    told = json.loads(whorl("workloads", "record", "--json").out)
    assert told == {"folder": f"{home}/recordings/workloads-{{run}}"} | found
    wrong = whorl("workloads", "record", "--rounds", 0)
    assert (wrong.code, wrong.err.startswith("whorl: flag: workloads.record.rounds: 0 is not allowed")) == (2, True)


def test_a_dry_run_of_a_recording_says_what_would_run_and_for_how_long(whorl: Whorl) -> None:
    ended = whorl("workloads", "record", "--dry-run", "-w", "redis", "--runs", 4, "--rounds", 2)
    names = ended.out.split()
    assert len(names) == 8
    assert all("-redis-" in name for name in names)
    assert "8 runs in 2 rounds, about 5 minutes" in ended.err
    assert json.loads(whorl("workloads", "record", "--dry-run", "-w", "redis", "--json").out)["n_runs"] == 20
    assert whorl("workloads", "record", "--dry-run", "-w", "x").err.startswith("whorl: workloads.record.workloads: no ")


NOON = datetime(2026, 1, 1, 12)


def run_of(run_id: str, hour: int, **figures: float) -> RunRecord:
    started_at = NOON + timedelta(hours=hour)
    return RunRecord(
        run_id=run_id, flow="jobs-ingest", word="jobs", source="log", status="completed", started_at=started_at,
        ended_at=started_at + timedelta(seconds=200), figures=figures,
        parameters={"source": "log", "paths": ["/logs/a.csv"], "read": {"time_zone": ""}},
    )  # fmt: skip


@pytest.fixture
def runs(job_log: Callable[..., Warehouse]) -> None:
    """Two runs of a flow, the later with twice the rows."""
    warehouse = job_log([{"runtime_s": 1.0}])
    record_run(warehouse, run_of("aaaa1111", 0, n_rows=1000.0))
    record_run(warehouse, run_of("bbbb2222", 1, n_rows=2000.0))


def test_runs_are_listed_the_latest_first(
    whorl: Whorl, job_log: Callable[..., Warehouse], request: pytest.FixtureRequest
) -> None:
    job_log([{"runtime_s": 1.0}])
    ended = whorl("runs", "list")
    assert (ended.code, ended.out, ended.err) == (0, "", "no flow has run yet in this home\n")
    request.getfixturevalue("runs")

    def listed(*flags: str | int) -> list[str]:
        return [run["run_id"] for run in json.loads(whorl("runs", "list", "--json", *flags).out)["runs"]]

    assert (listed(), listed("--top", 1)) == (["bbbb2222", "aaaa1111"], ["bbbb2222"])
    shown = whorl("runs", "list").out.splitlines()[1]
    assert "2026-01-01 13:00:00" in shown and "3.3 min" in shown


def test_a_run_is_shown_by_the_beginning_of_its_id(whorl: Whorl, runs: None) -> None:
    shown = whorl("runs", "show", "bb").out
    facts = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert facts["run_id"] == "bbbb2222"
    assert facts["figures.n_rows"] == "2,000"
    assert facts["parameters.read.time_zone"] == "''"
    assert facts["took"] == "3.3 min"
    assert json.loads(whorl("runs", "show", "bb", "--json").out)["figures"] == {"n_rows": 2000.0}


def test_no_id_at_all_asks_for_one(whorl: Whorl, runs: None) -> None:
    for wanted in ("", " ", "…"):
        ended = whorl("runs", "show", wanted)
        expected = (
            f"whorl: run {wanted!r}: expected its id or the beginning of it; 'whorl runs list' shows the latest\n"
        )
        assert (ended.code, ended.err) == (2, expected)
    assert whorl("runs", "compare", "aa", "").code == 2


def test_runs_are_compared_by_what_differs(whorl: Whorl, runs: None) -> None:
    told = json.loads(whorl("runs", "compare", "aa", "bb", "--json").out)
    rows = {row["key"]: row for row in told["differences"]}
    assert len(told["runs"]) == 2
    assert rows["figures.n_rows"] == {
        "key": "figures.n_rows", "values": [1000.0, 2000.0], "best": None,
    }  # fmt: skip
    assert "source" not in rows and "run_id" not in rows
    shown = whorl("runs", "compare", "aa", "bb")
    assert ["figures.n_rows", "1,000", "2,000"] in [line.split() for line in shown.out.splitlines()]
    assert whorl("runs", "compare", "aa", "aa").err == "the runs differ in nothing\n"
    assert whorl("runs", "compare", "aa").code == 2


def test_a_comparison_of_long_values_fits_a_hundred_columns(
    whorl: Whorl, job_log: Callable[..., Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = job_log([{"runtime_s": 1.0}])
    ids = [f"0b1c0e36-9d0c-4c3c-8b7e-00000000000{i}" for i in range(3)]
    for hour, run_id in enumerate(ids):
        made = run_of(run_id, hour, n_rows=1e6 * (hour + 1))
        figures = {**made.figures, "crps": 3.0 - hour, "a_long_name_of_a_figure_" * 2: hour}
        record_run(warehouse, made.model_copy(update={"figures": figures}))
    monkeypatch.setenv("COLUMNS", "100")
    ended = whorl("runs", "compare", *ids)
    lines = ended.out.splitlines()
    assert max(len(line) for line in [*lines, *ended.err.splitlines()]) <= 100
    assert [line.split() for line in lines[:3]] == [["A", ids[0]], ["B", ids[1]], ["C", ids[2]]]
    assert ["figures.n_rows", "1,000,000", "2,000,000", "3,000,000"] in [line.split() for line in lines]
    assert ["figures.crps", "3", "2", "1", "*"] in [line.split() for line in lines]


@pytest.fixture
def models(job_log: Callable[..., Warehouse]) -> Warehouse:
    """Two models of one kind; the first is in use."""
    warehouse = job_log([{"runtime_s": 1.0}])
    for model_id, crps in (("shapes-1", 0.5), ("shapes-2", 0.4)):
        told = {"word": "jobs", "source": "log", "kind": "shapes", "trained_at": NOON, "run_id": "aaaa1111", "seed": 1}
        told |= {"data_version": "0123", "code_version": "0.1.0", "parameters": {}, "metrics": {"crps": crps}}
        register(warehouse, ModelCard(model_id=model_id, **told), lambda folder: None)
    promote(warehouse, "jobs", "shapes-1", "first")
    return warehouse


def in_use(whorl: Whorl) -> list[str]:
    listed = json.loads(whorl("models", "list", "--json").out)["models"]
    return [model["model_id"] for model in listed if model["is_champion"]]


def test_a_model_is_promoted_and_rolled_back(whorl: Whorl, models: Warehouse) -> None:
    first, second = (line.split() for line in whorl("models", "list").out.splitlines()[1:])
    assert first[:5] == ["shapes-1", "jobs", "log", "shapes", "yes"]
    assert "crps 0.4" in " ".join(second) and "yes" not in second
    ended = whorl("models", "promote", "sh…-2", "--reason", "better on D3")  # as a narrow table shows it
    assert ended.out == "shapes of source log is now shapes-2 (better on D3)\n"
    assert in_use(whorl) == ["shapes-2"]
    whorl.done("models", "rollback", "jobs", "shapes", "--source", "log")
    assert in_use(whorl) == ["shapes-1"]


def test_an_unknown_model_names_those_that_there_are(whorl: Whorl, models: Warehouse) -> None:
    assert whorl("models", "promote", "").err.startswith("whorl: model '': expected its id or the beginning of it")
    ended = whorl("models", "promote", "shapes-9")
    assert ended.code == 4
    assert ended.err.endswith("there are: shapes-1, shapes-2\n")
    ended = whorl("models", "promote", "shapes")
    assert (ended.code, "2 models begin so: shapes-1, shapes-2;" in ended.err) == (4, True)


def test_a_damaged_card_is_told_and_keeps_no_other_model_from_use(whorl: Whorl, models: Warehouse) -> None:
    (models.models / "jobs" / "shapes-1" / "model.json").write_text("{")
    listed = whorl("models", "list")
    assert (listed.code, "shapes-2" in listed.out) == (0, True)
    assert "shapes-1/model.json: not a ModelCard" in listed.err
    assert "is now shapes-2" in whorl.done("models", "promote", "shapes-2").out


def test_no_model_at_all_is_a_note(whorl: Whorl, home: Path) -> None:
    ended = whorl("models", "list")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"{home}/models: no model has been trained yet, or none can be read\n"


def test_the_graph_tells_its_parts_which_are_no_machines(whorl: Whorl, flow_finds: Callable[[Any], list[Any]]) -> None:
    said = {"nodes-answer lab": "3 nodes are ranked", "nodes-page lab": "its page is written"}
    asked = flow_finds({"n_nodes": 2, "n_done": 1, "said": said})
    lines = whorl.done("pipeline", "--word", "nodes", "--source", "lab", "--into", "lab").out.splitlines()
    assert lines[0].split() == ["part", "what", "it", "says"]
    assert lines[-1] == "1 of 2 parts done, the others were as they are"
    refused = whorl("pipeline", "--source", "lba", "--into", "lab")  # before a server starts
    assert (refused.code, len(asked)) == (4, 1)
    assert "source 'lba': no rows of jobs, workloads, nodes; there are: none; fill one with" in refused.err
