"""`whorl nodes train|tune|fingerprint|watch`: quick help, and one line where something is wrong or missing."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.warehouse.place import Warehouse

Whorl = Callable[..., Any]
ROOT = Path(__file__).parents[3]
VERBS = ["train", "tune", "fingerprint", "watch"]
HEAVY = {"prefect", "pandas", "numpy", "duckdb", "pyarrow", "altair", "torch", "torch_geometric", "optuna", "ray"}


def never_started(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """Prefect takes 20 s to start: what can be told before is told before."""
    module = "nodes_verdicts" if verb in VERBS else "nodes"
    monkeypatch.setattr(f"flows.cli.{module}.flow_running", lambda _: pytest.fail("started"))


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from flows.cli import run\n"
        f"ended = [run(['nodes', verb, '--help']) for verb in {[*VERBS, 'evaluate']!r}]\n"
        "print(ended, sorted(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert ended.stderr.startswith("[0, 0, 0, 0, 0] "), ended.stderr
    assert set(re.findall(r"'([^']+)'", ended.stderr)) & (HEAVY | {"tasks.settings"}) == set()


@pytest.mark.parametrize(
    ("verb", "flag", "value"),
    [
        ("train", "--epochs", "0"),
        ("train", "--epochs", "many"),
        ("train", "--seed", "-1"),
        ("train", "--variant", "theirs"),
        ("tune", "--trials", "0"),
    ],
)
def test_a_wrong_flag_is_told_in_one_line_below_the_usage(whorl: Whorl, verb: str, flag: str, value: str) -> None:
    ended = whorl("nodes", verb, flag, value)
    assert (ended.code, ended.out) == (2, "")
    *usage, last = ended.err.splitlines()
    assert usage[0].startswith(f"Usage: whorl nodes {verb} ")
    assert last.startswith(f"Error: Invalid value for '{flag}': ")


def test_a_flag_that_no_setting_allows_is_one_line(whorl: Whorl) -> None:
    ended = whorl("nodes", "train", "--variant", "ours", "--seed", 2**31)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("whorl: flag: nodes.model.fit.seed: 2147483648 is not allowed")


@pytest.mark.parametrize("verb", VERBS)
def test_without_executions_it_says_how_to_get_some_before_prefect_starts(
    whorl: Whorl, monkeypatch: pytest.MonkeyPatch, job_log: Callable[..., Warehouse], verb: str
) -> None:
    never_started(monkeypatch, verb)
    job_log([{"group_key": "once#cccccccc", "runtime_s": 5.0}])
    ended = whorl("nodes", verb)
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.endswith("no executions of benchmarks yet; read some with 'whorl nodes ingest PATH'\n")
    named = whorl("nodes", verb, "--source", "nowhere")
    assert (named.code, named.out) == (4, "")
    assert named.err == (
        "whorl: source 'nowhere' has no executions of benchmarks; fill it with 'whorl nodes ingest PATH'\n"
    )
    assert whorl("nodes", verb, "--source", " x").code == 2


@pytest.mark.parametrize("verb", VERBS)
def test_without_a_warehouse_it_is_one_line(whorl: Whorl, home: Path, verb: str) -> None:
    ended = whorl("nodes", verb)
    assert (ended.code, ended.out, ended.err.count("\n")) == (4, "", 1)
    assert "there is no warehouse yet" in ended.err
    assert not home.exists()


@pytest.mark.parametrize("verb", ["fingerprint", "watch"])
def test_without_a_model_it_says_how_to_make_one_before_prefect_starts(
    whorl: Whorl, monkeypatch: pytest.MonkeyPatch, nodes_log: Warehouse, verb: str
) -> None:
    never_started(monkeypatch, verb)
    ended = whorl("nodes", verb)
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == (
        "whorl: source 'log' has no trained model of nodes yet; make one with whorl nodes train --source log\n"
    )


def test_a_ray_that_does_not_answer_is_told_before_prefect_starts(
    whorl: Whorl, monkeypatch: pytest.MonkeyPatch, nodes_log: Warehouse
) -> None:
    never_started(monkeypatch, "tune")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))  # and does not listen
        ended = whorl("nodes", "tune", "--ray-address", f"127.0.0.1:{server.getsockname()[1]}")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "nothing answers at 127.0.0.1:" in ended.err
