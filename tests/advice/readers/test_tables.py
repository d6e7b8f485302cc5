"""Tables of runs, machine types, needs, profiles and scores."""

from pathlib import Path

import numpy as np
import pytest

from tasks.advice.readers.tables import (
    read_machine_scores,
    read_machines,
    read_needs,
    read_profile,
    read_runs,
    read_scores,
)
from tasks.errors import BadInput

RUNS = "job,machine_type,nodes,runtime_s,status\n"
MACHINES = "machine_type,vcpu,memory_gb,price_per_h\n"


def written(folder: Path, text: str) -> str:
    path = folder / "table.csv"
    path.write_text(text)
    return str(path)


def test_runs_of_scout_are_known_by_their_own_names(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "workload,node_count,vm_type,completed,elapsed_time_s,framework,input_size_bytes\n"
        "sort_huge_spark,4,c4.large,True,100.5,spark,1000\nsort_huge_hadoop,6,c4.large,False,7,hadoop,1000\n",
    )
    runs = read_runs(path, {})
    assert runs["completed"].tolist() == [True, False]
    assert runs["application"].tolist() == ["sort", "sort"]
    assert runs["family"].tolist() == ["sort spark", "sort hadoop"]
    assert runs["nodes"].tolist() == [4, 6]


def test_columns_of_any_name_are_mapped_and_a_status_in_words_is_understood(tmp_path: Path) -> None:
    path = written(tmp_path, "what,where,n,secs,how\nsort,a,2,10,OOMKilled\nsort,a,4,10,Succeeded\n")
    mapping = {"job": "what", "machine_type": "where", "nodes": "n", "runtime_s": "secs", "completed": "how"}
    assert read_runs(path, mapping)["completed"].tolist() == [False, True]


def test_runs_without_a_status_have_completed(tmp_path: Path) -> None:
    assert read_runs(written(tmp_path, "job,machine_type,nodes,runtime_s\nsort,a,2,10\n"), {})["completed"].all()


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("sort,a,0,10,completed", "line 2: nodes is '0'; expected a whole number from 1"),
        ("sort,a,1.5,10,completed", "line 2: nodes is '1.5'"),
        ("sort,a,2,soon,completed", "line 2: runtime_s is 'soon'; expected a number"),
        ("sort,a,2,-1,completed", "a run of 'sort' took -1 s; expected runtimes above 0"),
        ("sort,a,2,10,perhaps", "line 2: completed is 'perhaps'; expected completed, failed or killed"),
        ("sort,a,2,10,running", "line 2: completed is 'running'"),
        (",a,2,10,completed", "line 2: job is"),
    ],
)
def test_a_wrong_value_is_told_with_its_line(tmp_path: Path, row: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem.replace("(", r"\(")):
        read_runs(written(tmp_path, f"{RUNS}{row}\n"), {})


def test_a_missing_column_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no column runtime_s"):
        read_runs(written(tmp_path, "job,machine_type,nodes\nsort,a,2\n"), {})


def test_machine_types_have_a_price_and_its_day(tmp_path: Path) -> None:
    found = read_machines(written(tmp_path, "name,vcpus,memory,price,priced_on\na,2,4,0.1,2026-01-01\n"))
    assert found.types["a"].price_per_h == 0.1
    assert found.priced_on == "2026-01-01"
    assert read_machines(written(tmp_path, f"{MACHINES}a,2,4,0.1\n")).priced_on == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("machine_type,vcpu,memory_gb\na,2,4\n", "no column price_per_h"),
        (f"{MACHINES}a,2,4,\n", "price_per_h is"),
        (f"{MACHINES}a,2,0,1\n", "memory_gb is 0; expected a number above 0"),
        (f"{MACHINES}a,2,4,1\na,2,8,1\n", "machine type 'a' stands there twice"),
    ],
)
def test_a_machine_type_that_cannot_be_used_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        read_machines(written(tmp_path, text))


def test_needs_are_flat_unclear_or_gb(tmp_path: Path) -> None:
    needs = read_needs(written(tmp_path, "job,need_gb\na,0\nb,\nc,12.5\n"))
    assert [needs[job].pattern for job in "abc"] == ["flat", "unclear", "linear"]
    assert needs["c"].need_gb == 12.5
    with pytest.raises(BadInput, match="need_gb of 'a' is 'much'"):
        read_needs(written(tmp_path, "job,need_gb\na,much\n"))


def test_profiles_of_ruya_are_known_by_their_own_names(tmp_path: Path) -> None:
    profile = read_profile(written(tmp_path, "job,dataset_size,max_memory_used\na,10,20\n"), {})
    assert profile.to_numpy().tolist() == [["a", 10.0, 20.0]]


def test_scores_are_above_0(tmp_path: Path) -> None:
    text = "machine_type,aspect,score\na,cpu,1.5\n"
    assert np.isclose(read_scores(written(tmp_path, text), {})["score"], 1.5).all()
    with pytest.raises(BadInput, match="score 0 of 'a'"):
        read_scores(written(tmp_path, text.replace("1.5", "0")), {})


def test_scores_of_machines_come_in_rows_or_in_columns_by_aspect(tmp_path: Path) -> None:
    rows = read_machine_scores(written(tmp_path, "node,aspect,score,low,high\na,cpu,2,1.9,2.1\nb,cpu,1,,\n"), [], {})
    assert rows["machine"].tolist() == ["a", "b"]
    assert rows["low"].tolist()[0] == 1.9
    path = written(tmp_path, "instance,vcpu,cpu_one,ram\na,4,2,5\nb,2,1,7\n")
    wide = read_machine_scores(path, ["cpu_one", "ram"], {})
    assert wide.to_numpy().tolist() == [["a", "cpu_one", 2], ["b", "cpu_one", 1], ["a", "ram", 5], ["b", "ram", 7]]
    with pytest.raises(BadInput, match="no column aspect"):
        read_machine_scores(path, [], {})
    with pytest.raises(BadInput, match="no score of aspect 'disk'; expected some of 'cpu'"):
        read_machine_scores(written(tmp_path, "node,aspect,score\na,cpu,2\nb,cpu,1\n"), ["disk"], {})
