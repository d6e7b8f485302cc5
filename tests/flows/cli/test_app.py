"""The command line: start, help, errors, completion, and what is refused before Prefect starts."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from flows.cli.app import hoisted
from flows.cli.invocation import Invocation
from tasks.errors import NotFound
from tasks.warehouse.lock import hold
from tasks.warehouse.place import Warehouse
from tests.flows.cli.conftest import Whorl

ROOT = Path(__file__).parents[3]
HEAVY = {"prefect", "pandas", "numpy", "duckdb", "pyarrow", "httpx", "tasks.settings"}


def python(code: str, *, cwd: Path = ROOT, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False
    )


def test_an_interrupt_while_the_commands_are_imported_ends_quietly() -> None:
    code = (
        "import sys, flows.cli\nclass CtrlC:\n def find_spec(self, name, *_):\n"
        "  if name == 'flows.cli.app': raise KeyboardInterrupt\nsys.meta_path.insert(0, CtrlC()); flows.cli.main()"
    )
    ended = python(code)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_help_imports_nothing_heavy() -> None:
    asked = [["--help"], ["--version"], ["jobs", "ingest", "--help"], ["nodes", "train", "--help"], ["warehouse"]]
    code = "import sys; from flows.cli import run\nfor one in {}: run(one); print(sorted(sys.modules), file=sys.stderr)"
    told = [line for line in python(code.format(asked)).stderr.splitlines() if line.startswith("['")]
    loaded = [set(re.findall(r"'([^']+)'", line)) for line in told]
    assert "flows.cli.app" in loaded[0] and len(loaded) == len(asked)
    assert loaded[-1] & HEAVY == set()
    assert "pydantic" not in loaded[0]  # typer checks the values of options with it


def test_changes_of_a_series_are_told_without_pandas_or_a_warehouse(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("a\n" + "0\n1\n" * 20 + "8\n9\n" * 20)
    arguments = ["workloads", "changepoints", str(tmp_path / "s.csv"), "--json"]
    ended = python(
        f"import sys; from flows.cli import run; run({arguments!r}); print(sorted(sys.modules), file=sys.stderr)"
    )
    assert json.loads(ended.stdout)["changepoints"] == [40]
    loaded = set(re.findall(r"'([^']+)'", ended.stderr))
    assert loaded & {"pandas", "pyarrow", "duckdb", "fsspec", "prefect"} == set()


def test_the_version_is_that_of_the_package(whorl: Callable[..., Any]) -> None:
    from importlib.metadata import version

    ended = whorl("--version")
    assert (ended.code, ended.out) == (0, f"whorl {version('whorl')}\n")


def test_without_a_verb_help_is_shown_and_the_usage_was_wrong(whorl: Callable[..., Any]) -> None:
    ended = whorl()
    assert ended.code == 2 and "jobs" in ended.out
    unknown = whorl("jobs", "sumary")
    assert unknown.code == 2 and "No such command 'sumary'. Did you mean 'summary'?" in unknown.err


def test_wrong_usage_is_an_object_too_where_a_machine_reads(whorl: Callable[..., Any]) -> None:
    ended = whorl("jobs", "predict", "--json", "--nonsense")
    assert ended.code == 2
    assert json.loads(ended.out) == {"error": {"message": "No such option: --nonsense", "exit_code": 2}}


def test_every_group_has_help_for_every_verb(whorl: Callable[..., Any]) -> None:
    listed = re.findall(r"^  (\w+) +\S", whorl("--help").out.split("Commands:")[1], re.MULTILINE)
    assert {"demo", "report", "query", "config", "doctor", "serve", "deploy", "jobs", "runs"} <= set(listed)
    for group in ("jobs", "workloads", "nodes", "advice", "runs", "models", "warehouse", "datasets"):
        verbs = re.findall(r"^  (\w+) +\S", whorl(group, "--help").out.split("Commands:")[1], re.MULTILINE)
        for verb in verbs:
            told = whorl(group, verb, "--help")
            assert told.code == 0, (group, verb)
            assert not re.search(r"<(?:str|int|float|path)", told.out), (group, verb)  # types of Python
            assert max(map(len, told.out.splitlines())) <= 80, (group, verb)


def test_shared_options_may_stand_anywhere_before_two_dashes() -> None:
    assert hoisted(["runs", "list", "--home", "x", "-q"]) == ["--home", "x", "-q", "runs", "list"]
    assert hoisted(["query", "--", "-v"]) == ["query", "--", "-v"]
    assert hoisted(["runs", "--home"]) == ["runs", "--home"]


def test_a_note_names_no_module_and_the_log_of_the_work_does(whorl: Whorl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert whorl("datasets", "list").err.startswith("left out at a width of 60: ")
    assert "flows.cli.output: left out at a width of 60: " in whorl("-v", "datasets", "list").err


def test_an_error_is_one_line_on_stderr_with_its_own_exit_code(whorl: Callable[..., Any], tmp_path: Path) -> None:
    ended = whorl("runs", "list", "--home", tmp_path / "elsewhere")  # which wins over the environment
    assert (ended.code, ended.out, ended.err.count("\n")) == (4, "", 1)
    assert ended.err.startswith(f"whorl: {tmp_path}/elsewhere/warehouse.duckdb: there is no warehouse yet")


def test_a_warehouse_that_another_has_is_one_line_with_an_exit_code_of_its_own(
    whorl: Callable[..., Any], job_log: Callable[..., Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = hold(job_log([{"runtime_s": 1.0}]).home, "exclusive", 0)
    monkeypatch.setenv("WHORL_WHORL__LOCK_WAIT_S", "0")
    with ThreadPoolExecutor(1) as other:
        other.submit(held.__enter__).result()
        ended = whorl("runs", "list")
        other.submit(held.__exit__, None, None, None).result()
    assert (ended.code, ended.out, ended.err.count("\n")) == (5, "", 1)
    assert "the warehouse is in use by " in ended.err


def test_a_wrong_setting_is_one_line_with_its_place(whorl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHORL_JOBS__SUMMARY__MIN_SUPPORT", "1")
    ended = whorl("config")
    assert ended.code == 2
    assert ended.err.startswith("whorl: WHORL_JOBS__SUMMARY__MIN_SUPPORT: jobs.summary.min_support: '1' is not allowed")


def test_an_error_cannot_steer_the_terminal(whorl: Callable[..., Any], job_log: Callable[..., Any]) -> None:
    job_log([{"group_key": "evil\x1b[2Jjob\nwhorl: all is well", "runtime_s": 1.0}])
    ended = whorl("jobs", "summary", "--job", "nothing alike")
    assert ended.code == 4
    assert "\x1b" not in ended.err
    assert ended.err.count("\n") == 1


def test_a_bug_is_a_short_line_and_its_traceback_is_kept(
    whorl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.warehouse.migrations.data_dictionary", lambda: {}["no such key"])
    ended = whorl("warehouse", "dictionary")
    assert (ended.code, ended.out) == (70, "")
    assert ended.err.startswith("whorl: unexpected KeyError: 'no such key'\n")
    assert "Traceback" not in ended.err
    kept = Path(re.findall(r"the traceback is in (\S+),", ended.err)[0])
    assert "Traceback (most recent call last)" in kept.read_text()
    kept.unlink()
    assert "Traceback (most recent call last)" in whorl("warehouse", "dictionary", "-v").err


def test_tracebacks_of_this_user_go_after_a_week_or_when_there_are_many(
    whorl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    now = time.time()
    made = [tmp_path / f"whorl-error-{at:08}.txt" for at in range(25)]
    for at, file in enumerate(made):
        file.touch()
        os.utime(file, (now - at, now - at - 8 * 86_400 * (at == 3)))
    others = [tmp_path / name for name in ("whorl-error-notes.txt", "whorl-error-00000099.txt")]
    others[0].touch()
    others[1].symlink_to(made[0])
    for other in others:
        os.utime(other, (0, 0), follow_symlinks=False)
    whorl.done("--version")
    assert [file.exists() for file in made] == [at < 21 and at != 3 for at in range(25)]
    assert all(other.is_symlink() or other.exists() for other in others)


@pytest.mark.parametrize(
    ("number", "told"),
    [(28, "/data/page: the disk is full (full); expected room"), (20, "/data/page: cannot be used (full)")],
)
def test_what_is_wrong_with_a_place_that_is_written_to_is_one_line(
    whorl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    def full() -> str:
        raise OSError(number, "full", "/data/page")

    monkeypatch.setattr("tasks.warehouse.migrations.data_dictionary", full)
    ended = whorl("warehouse", "dictionary")
    assert (ended.code, ended.err.count("\n")) == (1, 1)
    assert ended.err.startswith(f"whorl: {told}")


@pytest.mark.parametrize(
    "arguments",
    [("jobs", "evaluate", "log.csv"), ("nodes", "evaluate", "x"), ("advice", "groups"), ("jobs", "explain"),
     ("report", "workloads")],
)  # fmt: skip
def test_a_folder_for_pages_that_is_a_file_is_refused_before_the_work(
    whorl: Callable[..., Any], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "out").touch()
    ended = whorl(*arguments, "--out", tmp_path / "out")
    assert ended.code == 2
    assert "is a file" in " ".join(ended.err.split())


def test_ctrl_c_ends_with_130_and_no_traceback(whorl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("tasks.warehouse.migrations.data_dictionary", interrupted)
    ended = whorl("warehouse", "dictionary")
    assert (ended.code, ended.out, ended.err) == (130, "", "")


@pytest.mark.parametrize(
    "shape", ["--csv", *(pytest.param(one, marks=pytest.mark.slow) for one in ("--json", "--limit=0"))]
)
def test_a_reader_that_goes_is_no_error(varied_log: Any, home: Path, shape: str) -> None:
    sql = "SELECT range AS i, repeat('x', 100) AS filler FROM range(20000)"  # more than a pipe holds
    command = f'{sys.executable} -m flows.cli -q query "{sql}" {shape} | head -n 1'
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    assert len(ended.stdout.splitlines()) == 1


def test_a_stranger_in_our_place_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "__init__.py").write_text("raise RuntimeError('not ours')")
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    ended = python("from flows.cli import main; main()", cwd=tmp_path, PYTHONPATH=path)
    assert ended.returncode == 8
    assert ended.stderr.startswith(f"whorl: Python finds {tmp_path}/tasks as package 'tasks' instead of {ROOT}/tasks;")
    assert ended.stderr.count("\n") == 1


def test_a_terminal_that_cannot_write_a_letter_still_gets_the_answer(varied_log: Any, home: Path) -> None:
    code = "from flows.cli import main; import sys; sys.argv = ['whorl', 'query', \"SELECT 'Läufe – 5'\"]; main()"
    ended = python(code, PYTHONIOENCODING="ascii")
    assert ended.returncode == 0
    assert "L?ufe ? 5" in ended.stdout


def test_an_error_that_was_told_keeps_nothing_alive(whorl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    told = NotFound("nothing there")

    def fail() -> str:
        try:
            raise KeyError("the cause")
        except KeyError as error:
            raise told from error

    monkeypatch.setattr("tasks.warehouse.migrations.data_dictionary", fail)
    assert whorl("warehouse", "dictionary").err == "whorl: nothing there\n"
    assert (told.__traceback__, told.__cause__, told.__context__) == (None, None, None)


def test_what_a_library_writes_after_the_last_word_is_not_shown() -> None:
    late = "import atexit, os, sys; atexit.register(os.write, 2, b'leaked 27 instances'); sys.argv[1:] = ['--version']"
    ended = python(f"{late}; from flows.cli import main; main()")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.fixture
def offered(whorl: Whorl, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """What is offered for a half-written line."""

    def offer(line: str) -> list[str]:
        monkeypatch.setenv("_WHORL_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        ended = whorl.done()
        assert ended.err == ""
        return str(ended.out).split()

    return offer


def test_verbs_and_values_are_offered(offered: Callable[[str], list[str]]) -> None:
    assert offered("whorl jo") == ["jobs"]
    assert offered("whorl jobs summary --sort c") == ["cov"]
    assert offered("whorl datasets fetch s") == ["swf", "slurm", "sparecores", "scout"]
    assert offered("whorl config j") == ["jobs"]


def test_names_of_the_warehouse_are_offered(offered: Callable[[str], list[str]], whorl: Whorl, varied_log: Any) -> None:
    whorl.done("jobs", "summary")
    assert offered("whorl jobs summary --source ") == ["log"]
    assert offered("whorl jobs summary --job st") == ["steady_load#aaaaaaaa"]
    assert offered("whorl jobs summary --source other --job st") == []


@pytest.mark.parametrize("line", ["jobs summary --source ", "runs show ", "models promote "])
def test_without_a_warehouse_nothing_is_offered_and_nothing_made(
    offered: Callable[[str], list[str]], home: Path, line: str
) -> None:
    assert offered(f"whorl {line}") == []
    assert not home.exists()


def test_a_wrong_setting_does_not_disturb_the_line(
    offered: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHORL_NONSENSE", "1")
    assert offered("whorl jobs summary --source ") == []


WITHOUT_ROWS = [
    *(("jobs", verb) for verb in ("watch", "train", "characterise")),
    *(("workloads", verb) for verb in ("train", "fingerprint", "watch")),
    *(("nodes", verb) for verb in ("preprocess", "train", "tune", "fingerprint", "watch")),
]


@pytest.fixture(autouse=True)
def _prefect_is_never_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Invocation, "prepare_flows", lambda self: pytest.fail("Prefect was started"))


@pytest.mark.parametrize("word", ["jobs", "workloads", "nodes"])
def test_files_of_which_none_can_be_read_are_each_told(whorl: Whorl, home: Path, tmp_path: Path, word: str) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("colour,shape\nred,round\n")
    ended = whorl(word, "ingest", tmp_path / "a.csv", tmp_path / "b.csv")
    assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 2)
    for line, name in zip(ended.err.splitlines(), ("a.csv", "b.csv"), strict=True):
        assert line.startswith(f"whorl: {tmp_path / name}: ")
    assert not home.exists()


def test_a_dry_run_says_first_what_the_columns_were_taken_for(whorl: Whorl, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("job,begin,dur_ms,state\netl,2024-01-01T00:00:00Z,1500,SUCCESS\n")
    ended = whorl("jobs", "ingest", "--dry-run", file)
    lines = ended.out.splitlines()
    assert lines[:4] == [
        "runs.csv:", "  read `job` as name", "  read `begin` as started_at", "  read `dur_ms` as runtime_s in ms",
    ]  # fmt: skip
    assert "  read the words SUCCESS as completed" in lines
    assert "  say otherwise with --map OURS=THEIRS (and, of jobs, --unit, --map-value)" in lines
    told = json.loads(whorl("jobs", "ingest", "--dry-run", "--json", file).out)["files"][0]
    assert (told["n_kept"], told["understood"][0]) == (1, "read `job` as name")


@pytest.mark.parametrize("word", ["jobs", "workloads", "nodes"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("/nowhere.csv",), 3), (("a.csv", "--map", "oops"), 2), (("a.csv", "--reader", "theirs"), 2)],
)
def test_a_path_a_map_and_a_reader_that_are_none_are_refused(
    whorl: Whorl, home: Path, word: str, arguments: tuple[str, ...], code: int
) -> None:
    assert whorl(word, "ingest", *arguments).code == code
    assert not home.exists()


def test_a_word_that_the_graph_has_not_is_refused_with_those_that_it_has(whorl: Whorl) -> None:
    ended = whorl("pipeline", "--word", "job")
    assert (ended.code, "'job' is none of jobs, workloads, nodes, advice" in ended.err) == (2, True)


@pytest.mark.parametrize("verb", WITHOUT_ROWS, ids=" ".join)
def test_an_empty_home_and_an_unknown_source_are_refused(
    whorl: Whorl, job_log: Callable[..., Warehouse], verb: tuple[str, str]
) -> None:
    empty = whorl(*verb)
    assert (empty.code, empty.out, empty.err.count("\n")) == (4, "", 1)
    job_log([{"group_key": "once#cccccccc", "runtime_s": 5.0}])
    unknown = whorl(*verb, "--source", "nowhere")
    assert (unknown.code, unknown.out, unknown.err.count("\n")) == (4, "", 1)
    assert "source 'nowhere' has no" in unknown.err


@pytest.mark.parametrize(
    "arguments",
    [("jobs", "--isolation", "cgroups"), ("workloads", "-w", "redis"), ("nodes", "-b", "cpu-sysbench")],
    ids=lambda arguments: arguments[0],
)
def test_a_recording_without_its_tools_says_what_to_install(
    whorl: Whorl, home: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    from tasks import machine

    monkeypatch.setattr("tasks.jobs.record.cluster.read_cgroups", lambda: machine.Cgroups("none", [], []))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(machine, "SYSTEM_FOLDERS", ())
    monkeypatch.setattr(machine, "POSTGRES_FOLDERS", "/nowhere")
    ended = whorl(arguments[0], "record", *arguments[1:])
    assert (ended.code, ended.out, ended.err.count("\n")) == (7, "", 1)
    assert not home.exists()
