"""The real commands, as a user types them: each starts its own Prefect server."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
LIMIT_S = 400


def whorl(home: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run the program in a process of its own, away from the checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("WHORL_", "PREFECT_"))}
    command = [sys.executable, "-c", "from flows.cli import main; main()", *map(str, arguments)]
    return subprocess.run(
        command,
        cwd=home.parent,
        env=environment | {"WHORL_HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def hashes(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(whorl(home, "warehouse", "hashes", "--json").stdout)
    return found


def test_a_log_is_ingested_once_watched_and_a_bad_file_does_not_hold_up_the_others(tmp_path: Path) -> None:
    home, logs = tmp_path / "home", tmp_path / "logs"
    logs.mkdir()
    rows = [f"r{i},nightly_load,2026-01-{i:02}T01:00:00,{60 + i}" for i in range(1, 10)]
    rows += ["r10,nightly_load,2026-01-10T01:00:00,6000", "r11,nightly_load,2026-01-11T01:00:00,-1"]
    (logs / "a.csv").write_text("run_id,name,started_at,runtime_s\n" + "\n".join(rows) + "\n")

    first = whorl(home, "jobs", "ingest", logs, "--json")
    assert first.returncode == 0, first.stderr
    found = json.loads(first.stdout)  # one value and nothing else
    (file,) = found["files"]
    assert (file["n_read"], file["n_kept"], file["n_quarantined"]) == (11, 10, 1)
    assert (found["source"], found["n_runs"], found["n_groups"], found["support_3_share"]) == ("main", 10, 1, 1.0)
    assert Path(found["report"]).exists()
    assert "Traceback" not in first.stderr

    before = hashes(home)
    again = whorl(home, "-q", "jobs", "ingest", logs)
    assert (again.returncode, again.stderr) == (0, "")
    after = hashes(home)
    assert [table for table in before if before[table] != after[table]] == ["ops.runs"]

    watched = whorl(home, "jobs", "watch", "--json")
    (alarm,) = json.loads(watched.stdout)["alarms"]
    assert alarm["subject"] == "r10"
    assert alarm["evidence"]["runtime_s"] == 6000

    (logs / "b.csv").write_text("colour,shape\nred,round\n")
    (logs / "c.csv").write_text("run_id,name,started_at,runtime_s\nx1,weekly,2026-01-01T01:00:00,5\n")
    mixed = whorl(home, "jobs", "ingest", logs)
    assert mixed.returncode == 3 and "c.csv" in mixed.stdout  # what is loaded is told as well
    lines = [line for line in mixed.stderr.splitlines() if line.startswith("whorl: ")]
    assert len(lines) == 1
    assert "b.csv" in lines[0]
    assert "Traceback" not in mixed.stderr
    runs = json.loads(whorl(home, "runs", "list", "--json").stdout)["runs"]
    assert [run["status"] for run in runs] == ["failed", "completed", "completed", "completed"]
    assert json.loads(whorl(home, "query", "SELECT count(*) AS n FROM jobs.runs", "--json").stdout)["rows"] == [
        {"n": 11}
    ]


SECRET = "zqsecretname"
SLOW = ("--limit-s", "300")  # a busy machine
HALF_BAD = {
    "jobs": (
        "log.csv",
        "run_id,name,user_name,started_at,runtime_s,status\n",
        "{n},etl,{secret},2026-01-0{n},{n},{word}\n",
    ),
    "workloads": ("series.csv", "run_id,workload,machine,at_s,cpu\n", "r,kmeans,{secret},{n},{word}\n"),
    "nodes": (
        "results.csv",
        "execution_id,node,benchmark,metric,value,unit,started_at\n",
        "e{n},{secret},cpu-x,speed,{word},1/s,2026-01-0{n}T00:00:00Z\n",
    ),
}


@pytest.mark.parametrize("word", HALF_BAD)
def test_a_refused_file_leaves_nothing_of_it_and_the_result_of_the_others_is_printed(tmp_path: Path, word: str) -> None:
    home, files = tmp_path / "home", tmp_path / "files"
    files.mkdir()
    name, header, line = HALF_BAD[word]
    good = "ok" if word == "jobs" else "7"
    lines = [line.format(n=n, secret=SECRET, word=good) for n in range(1, 9)]
    spoilt = [line.format(n=n, secret=SECRET, word=f"{SECRET}{n}") for n in range(1, 9)]
    (files / name).write_text(header + "".join(lines))
    (files / f"half-{name}").write_text(header + "".join(lines[:4] + spoilt[4:]))
    (files / f"other-{name}").write_text(header.replace(",", f",{SECRET},"))
    ended = whorl(home, word, "ingest", files, "--pseudonymise", "--json")
    assert ended.returncode == 3, ended.stderr
    found = json.loads(ended.stdout)
    assert [file["n_kept"] for file in found["files"]] == [8]
    assert [Path(line.partition(": ")[0]).name for line in found["not_loaded"]] == [f"half-{name}", f"other-{name}"]
    assert "of 8 rows are refused" in ended.stderr
    export = tmp_path / "rows.csv"
    rows = whorl(home, "query", f"SELECT * FROM {word}.{'executions' if word == 'nodes' else 'runs'}", "--json", *SLOW)
    kept = whorl(home, "query", "SELECT * FROM ops.runs", "--json", *SLOW)
    export.write_text(rows.stdout + kept.stdout + ended.stdout + ended.stderr)
    assert json.loads(rows.stdout)["rows"] and json.loads(kept.stdout)["rows"]
    left = [path for path in [*home.rglob("*"), export] if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert left == []
