"""`whorl report workloads`: the page of a source of telemetry, figures of runs, and what cannot be asked."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.place import Warehouse

Whorl = Callable[..., Any]


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


def test_the_page_of_the_only_source_of_telemetry_is_written(whorl: Whorl, telemetry: Warehouse, home: Path) -> None:
    ended = whorl("report", "workloads")
    assert (ended.code, ended.out) == (0, f"{home}/reports/workloads-box.html\n")
    assert "redis" in (home / "reports" / "workloads-box.html").read_text()


def test_figures_of_a_run_are_written_where_one_asks(whorl: Whorl, telemetry: Warehouse, tmp_path: Path) -> None:
    ended = whorl("report", "workloads", "--run", "r1", "--counter", "disk.reads", "--out", tmp_path / "out", "--json")
    told = json.loads(ended.out)
    assert told["path"] == f"{tmp_path}/out/workloads-box-runs.html"
    assert [Path(path).name for path in told["figures"]] == ["series-1.png", "phases.png"]
    assert "--run r1 --counter disk.reads" in Path(told["path"]).read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "jobs", "--run", "r1"), "write 'whorl report workloads --run r1'"),
        (("report", "workloads", "--counter", "cpu.user_cores"), "--counter: goes with --run"),
        (("report", "workloads", "--run", "r9"), "run 'r9' of source 'box': not there, or not cut into phases yet"),
        (("report", "workloads", "--source", "log"), "source 'log' has no runs of workloads"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_line(
    whorl: Whorl, telemetry: Warehouse, arguments: tuple[str, ...], words: str
) -> None:
    ended = whorl(*arguments)
    assert ended.code != 0
    assert words in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
