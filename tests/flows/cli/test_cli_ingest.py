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
LIMIT_S = 180


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
    (alarm,) = json.loads(watched.stdout)
    assert alarm["subject"] == "r10"
    assert alarm["evidence"]["runtime_s"] == 6000

    (logs / "b.csv").write_text("colour,shape\nred,round\n")
    (logs / "c.csv").write_text("run_id,name,started_at,runtime_s\nx1,weekly,2026-01-01T01:00:00,5\n")
    mixed = whorl(home, "jobs", "ingest", logs)
    assert (mixed.returncode, mixed.stdout) == (3, "")
    lines = [line for line in mixed.stderr.splitlines() if line.startswith("whorl: ")]
    assert len(lines) == 1
    assert "b.csv" in lines[0]
    assert "Traceback" not in mixed.stderr
    runs = json.loads(whorl(home, "runs", "list", "--json").stdout)
    assert [run["status"] for run in runs] == ["failed", "completed", "completed", "completed"]
    assert json.loads(whorl(home, "query", "SELECT count(*) AS n FROM jobs.runs", "--json").stdout) == [{"n": 11}]
