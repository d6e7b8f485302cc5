"""Runtimes on other machines, from a warehouse and from traces."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.advice.params import EstimateParams
from tasks.advice.steps import estimate_job, estimate_traces, read_vertices, scores_for
from tasks.errors import BadInput, BadSetting, NotFound
from tasks.jobs import steps
from tasks.jobs.params import GroupParams, ReadParams
from tasks.warehouse.place import Warehouse

PARAMS = EstimateParams()
START = pd.Timestamp("2026-01-01")
SLOWDOWN = {"old": 15.0, "new": 10.0}


def runs_of(rng: np.random.Generator, n_jobs: int = 26, n_runs: int = 60) -> pd.DataFrame:
    """Jobs of one stage, half of the runs on each machine type; `job-0` has run on `old` alone, `job-1` on `new`."""
    alone = {0: "old", 1: "new"}
    rows = []
    for job in range(n_jobs):
        work = 0.5 + job / 10
        for run in range(n_runs):
            kind = alone.get(job, ("old", "new")[run % 2])
            cpu_s = work * float(np.exp(rng.normal(0, 0.2)))
            duration_s = cpu_s / 2 * SLOWDOWN[kind] * float(np.exp(abs(rng.normal(0, 0.3))))
            begin = START + pd.Timedelta(minutes=10 * (run * n_jobs + job))
            end = begin + pd.Timedelta(seconds=duration_s)
            vertex = {"vertex": 0, "stage": "map", "sku": kind, "started_at": begin, "ended_at": end, "cpu_s": cpu_s}
            vertex |= {"min_tokens": 2.0, "mean_tokens": 2.0, "peak_tokens": 2.0, "read_bytes": 1.0, "temp_bytes": 0.0}
            about = {
                "run_id": f"{job}-{run}",
                "name": f"job-{chr(97 + job)}",
                "submitted_at": begin,
                "started_at": begin,
            }
            rows.append(about | {"ended_at": end, "runtime_s": duration_s, "status": "completed", "vertices": [vertex]})
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    folder = tmp_path_factory.mktemp("home")
    path = folder / "runs.parquet"
    runs_of(np.random.default_rng(4)).to_parquet(path)
    home = Warehouse(home=folder)
    steps.ingest_batch(home, steps.land_log(home, str(path), "made", "", ReadParams(), GroupParams()))
    return home


def test_vertices_are_read_by_source(warehouse: Warehouse) -> None:
    vertices, runtimes_s = read_vertices(warehouse, "made")
    assert len(vertices) == len(runtimes_s) == 26 * 60
    assert set(vertices["machine_type"]) == {"old", "new"}
    assert runtimes_s.sum() == pytest.approx(vertices["duration_s"].sum(), rel=1e-4)


def test_a_job_that_ran_on_one_type_alone_is_answered_on_another(warehouse: Warehouse) -> None:
    usual_s = 0.5 / 2 * 10 * 1.22  # the median of e^|N(0, 0.3)| is 1.22
    told = estimate_job(warehouse, "made", "job-a", "new", PARAMS, deadline_s=usual_s).figures
    assert (told["source"], told["target"]) == ("old", "new")
    assert told["median_s"] == pytest.approx(usual_s, rel=0.15)
    assert told["late_ratio_low"] <= told["late_ratio"] <= told["late_ratio_high"]
    assert told["late_ratio"] == pytest.approx(0.5, abs=0.3)


def test_a_job_that_ran_on_the_target_alone_is_sent_to_its_own_runs(warehouse: Warehouse) -> None:
    with pytest.raises(BadInput, match="has runs on no other machine type than new"):
        estimate_job(warehouse, "made", "job-b", "new", PARAMS)


def test_what_is_not_there_is_named(warehouse: Warehouse) -> None:
    with pytest.raises(NotFound, match="no vertex ran on machine type 'gen9'; known: 'new', 'old'"):
        estimate_job(warehouse, "made", "job-a", "gen9", PARAMS)
    with pytest.raises(NotFound, match="no job of source 'made' is called so"):
        estimate_job(warehouse, "made", "nothing", "new", PARAMS)
    with pytest.raises(NotFound, match="no job runs"):
        read_vertices(warehouse, "elsewhere")


def test_a_page_of_a_job_says_how_often_it_is_late(warehouse: Warehouse) -> None:
    told = estimate_job(warehouse, "made", "job-a", "new", PARAMS, deadline_s=1_000).page(warehouse)
    assert told["late_ratio"] == told["late_ratio_high"] == 0
    assert "longer than 16.7 min in 0" in told["answer"]
    assert Path(told["report"]).read_text().count("job-a")
    assert told["markdown"].startswith("# job-a on new\n\n**job-a takes")
    assert [row["stage"] for row in told["stages"]] == ["map"]


def test_a_page_of_traces_has_scores_from_a_table_and_says_how_it_is_made_again(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    trace, scores = tmp_path / "trace.csv", tmp_path / "scores.csv"
    trace.write_text("workflow,task,machine,size,runtime_s\nw,a,m,1,10\nw,a,m,2,20\n")
    scores.write_text("instance,stressng_1\nm,1\nn,4\n")
    renamed = {"score": "stressng_1"}
    asked = ([str(trace)], "n", str(scores), warehouse, None, EstimateParams())
    told = estimate_traces(*asked, renamed=renamed).page(warehouse)
    assert told["workflows"][0]["runtime_s"] == pytest.approx(5)
    again = f"estimate --onto n --traces {trace} --scores {scores} --size-ratio 1.0 --map score=stressng_1"
    assert f"whorl advice {again}" in Path(told["report"]).read_text()


def test_scores_come_from_one_place(warehouse: Warehouse) -> None:
    with pytest.raises(BadSetting, match="no scores of the machines; expected --scores FILE or --scores-of SOURCE"):
        scores_for(None, warehouse, None, {})
    with pytest.raises(BadSetting, match="both --scores and --scores-of"):
        scores_for("scores.csv", warehouse, "nodes", {})
