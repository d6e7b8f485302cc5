"""The flows of advice, run here and now as the command line and a worker run them."""

import hashlib
from pathlib import Path

import pytest

from flows.advice import (
    AdviceEvaluateParams,
    EstimateFlowParams,
    GroupsFlowParams,
    SearchFlowParams,
    advice_estimate,
    advice_evaluate,
    advice_groups,
    advice_search,
)
from flows.engine.forms import call
from tasks.advice.params import ReplayParams
from tasks.errors import BadInput, BadSetting
from tasks.warehouse.place import Warehouse
from tasks.warehouse.runs import list_runs
from tests.flows.artifacts import artifact

pytestmark = pytest.mark.usefixtures("prefect_server")
MACHINES = "machine_type,vcpu,memory_gb,price_per_h,priced_on\na,2,4,0.1,2026-01-01\nb,4,32,0.3,2026-01-01\n"
HEADER = "job,machine_type,nodes,runtime_s,status\n"


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_search_is_kept_and_shown_with_its_answer_first(tmp_path: Path) -> None:
    warehouse = Warehouse(home=tmp_path / "home")
    params = SearchFlowParams(
        history=written(tmp_path / "runs.csv", f"{HEADER}sort,a,4,3600,completed\nsort,b,4,600,failed\n"),
        machines=written(tmp_path / "machines.csv", MACHINES),
        memory_gb=40,
        max_runtime_s=7200,
        warehouse=warehouse,
    )
    found = call(advice_search, params)
    page = artifact("advice-sort-search")
    assert f"**{found['answer']}**" in page
    assert "| a | 4 | 1 h | 0.4 | completed |" in page
    assert "prices of 2026-01-01" in page
    assert Path(found["report"]).is_file()
    kept = list_runs(warehouse)
    assert kept[["flow", "status"]].to_numpy().tolist() == [["advice-search", "completed"]]


def test_a_replay_keeps_its_figures_and_searches(tmp_path: Path) -> None:
    rows = [f"{job},{kind},{n},{600 / n},completed" for job in ("sort_1", "join_1") for kind in "ab" for n in (2, 4, 8)]
    warehouse = Warehouse(home=tmp_path / "home")
    found = call(
        advice_evaluate,
        AdviceEvaluateParams(
            runs=written(tmp_path / "runs.csv", HEADER + "\n".join(rows)),
            machines=written(tmp_path / "machines.csv", MACHINES),
            evaluate=ReplayParams(searches=3, runs=6),
            warehouse=warehouse,
        ),
    )
    assert found["completed.learned.hit.6"] == 1
    assert (found["jobs"], found["n"]) == (2, 12)
    assert (Path(found["report"]).parent / "searches.parquet").is_file()
    assert "After six runs" in artifact("advice-runs-csv-" + _hash("runs.csv") + "-evaluation")


def test_a_history_that_cannot_be_read_fails_in_one_line(tmp_path: Path) -> None:
    bad = written(tmp_path / "runs.csv", f"{HEADER}sort,a,four,3600,completed\n")
    with pytest.raises(BadInput, match="line 2: nodes is 'four'"):
        call(advice_search, SearchFlowParams(history=bad, warehouse=Warehouse(home=tmp_path / "home")))


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def test_groups_of_machines_are_shown_with_their_answer_first(tmp_path: Path) -> None:
    rows = [f"{name}{n},{aspect},{score * (1 + n / 1000)}" for name, score in (("a", 1), ("b", 3)) for n in range(3)
            for aspect in ("cpu", "disk")]  # fmt: skip
    scores = written(tmp_path / "scores.csv", "machine,aspect,score\n" + "\n".join(rows))
    found = call(advice_groups, GroupsFlowParams(scores=scores, warehouse=Warehouse(home=tmp_path / "home")))
    assert sorted(sorted(one["machines"]) for one in found["groups"]) == [["a0", "a1", "a2"], ["b0", "b1", "b2"]]
    assert "**6 machines are of 2 kinds" in artifact(f"advice-scores-csv-{_hash('scores.csv')}-groups")
    assert Path(found["report"]).is_file()


def test_an_estimate_is_kept_and_shown_with_its_answer_first(tmp_path: Path) -> None:
    warehouse = Warehouse(home=tmp_path / "home")
    trace = written(tmp_path / "trace.csv", "workflow,task,machine,size,runtime_s\nw,a,m,1,10\nw,a,m,2,20\n")
    scores = written(tmp_path / "scores.csv", "machine_type,score\nm,1\nn,2\n")
    found = call(advice_estimate, EstimateFlowParams(onto="n", traces=[trace], scores=scores, warehouse=warehouse))
    assert f"**{found['answer']}**" in artifact("advice-traces-n-estimate")
    assert found["workflows"][0]["runtime_s"] == pytest.approx(10)
    assert Path(found["report"]).is_file()
    with pytest.raises(BadSetting, match="traces and job: expected one of them"):
        call(advice_estimate, EstimateFlowParams(onto="n", warehouse=warehouse))
