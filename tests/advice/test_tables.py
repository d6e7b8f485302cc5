"""Tables of runs, machine types, needs, profiles and scores, and traces of workflows."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.advice.tables import (
    PROFILE,
    duration_s,
    one_machine,
    read_columns,
    read_job_runs,
    read_machine_scores,
    read_machines,
    read_needs,
    read_runs,
    read_scores,
    read_traces,
    size_bytes,
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


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("Duration (min)", "2.5"),
        ("runtime_ms", "150000"),
        ("runtime_s", "2m 30s"),
        ("Elapsed", "150"),
        ("t_h", "150 s"),
    ],
)
def test_a_unit_in_the_name_of_a_column_or_in_a_cell_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, column: str, cell: str
) -> None:
    path = written(tmp_path, f"Job name,Instance type,workers,{column}\nsort,a,2,{cell}\n")
    assert read_runs(path, {"runtime_s": column} if column == "t_h" else {})["runtime_s"].tolist() == [150]
    assert (f"read `{column}` as runtime_s in " in caplog.text) == (column != "runtime_s")  # no guess in silence


def test_a_map_may_speak_of_several_tables_of_which_one_has_a_name_of_its_own(tmp_path: Path) -> None:
    renamed = {"job": "what", "machine_type": "where", "memory_gb": "RAM (GiB)", "price_per_h": "usd", "status": "how"}
    machines = read_machines(written(tmp_path, "name,vcpus,RAM (GiB),usd\na,2,4,0.1\n"), renamed)
    assert machines.types["a"].memory_gb == 4 * 1.024**3
    runs = read_runs(written(tmp_path, "what,where,nodes,runtime_s,how\nsort,a,2,10,failed\n"), renamed)
    assert runs["completed"].tolist() == [False]
    with pytest.raises(BadInput, match="cannot map 'x' to 'sparkle'"):
        read_runs(
            written(tmp_path, "what,where,nodes,runtime_s\nsort,a,2,10\n"),
            {"job": "what", "machine_type": "where", "sparkle": "x"},
        )


def test_a_map_by_an_alias_is_right_for_the_tables_that_have_no_such_column(tmp_path: Path) -> None:
    renamed = {"workload": "what", "price": "usd"}
    assert read_machines(written(tmp_path, "name,vcpus,memory,usd\na,2,4,0.1\n"), renamed).types["a"].price_per_h == 0.1
    assert read_runs(written(tmp_path, "what,machine,nodes,runtime_s\nsort,a,2,10\n"), renamed)["job"].tolist() == [
        "sort"
    ]


def test_the_type_of_a_machine_goes_before_the_name_of_one(tmp_path: Path) -> None:
    runs = read_runs(written(tmp_path, "job,instance,machine,nodes,runtime_s\nsort,i-0abc,m4.large,2,10\n"), {})
    assert runs["machine_type"].tolist() == ["m4.large"]


@pytest.mark.parametrize("column", ["CPUs", "cpus", "vCPUs", "CPUS"])
def test_a_number_of_processors_is_no_cpu_time(tmp_path: Path, column: str) -> None:
    assert "cpu_s" not in read_job_runs(written(tmp_path, f"job,machine,runtime_s,{column}\nsort,a,10,8\n"), {})


@pytest.mark.parametrize("column", ["cpu_s", "CPU (s)", "CPU seconds", "cpuTimeMs"])
def test_cpu_time_is_known_by_its_unit(tmp_path: Path, column: str) -> None:
    cell = "8000" if column.endswith("Ms") else "8"
    runs = read_job_runs(written(tmp_path, f"job,machine,runtime_s,{column}\nsort,a,10,{cell}\n"), {})
    assert runs["cpu_s"].tolist() == [8]


def test_runs_without_a_status_have_completed(tmp_path: Path) -> None:
    assert read_runs(written(tmp_path, "Job,Machine Type,nodes,runtime_s\nsort,a,2,10\n"), {})["completed"].all()


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("sort,a,0,10,completed", "line 2: nodes is '0'; expected a whole number from 1"),
        ("sort,a,1.5,10,completed", "line 2: nodes is '1.5'"),
        ("sort,a,2,soon,completed", "line 2: runtime_s is 'soon'; expected a number"),
        ("sort,a,2,,completed", "a run of 'sort' says no runtime; expected runtimes above 0"),
        ("sort,a,2,-1,failed", "a run of 'sort' took -1 s"),
        ("sort,a,2,-1,completed", "a run of 'sort' took -1 s; expected runtimes above 0"),
        ("sort,a,2,10,perhaps", "line 2: completed is 'perhaps'; expected completed, failed or killed"),
        ("sort,a,2,10,running", "line 2: completed is 'running'"),
        (",a,2,10,completed", "line 2: job is"),
    ],
)
def test_a_wrong_value_is_told_with_its_line(tmp_path: Path, row: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem.replace("(", r"\(")):
        read_runs(written(tmp_path, f"{RUNS}{row}\n"), {})


MEMORY = (  # as clusters and their tools say it
    "OOMKilled", "OUT_OF_MEMORY", "oom", "java.lang.OutOfMemoryError: Java heap space", "exit code 137",
    "Container killed by YARN for exceeding memory limits", "Insufficient memory", "MemoryError",
    "Exited (137) 2 minutes ago", "exited with 137", "OSError: [Errno 12] Cannot allocate memory", "ENOMEM",
    "terminate called after throwing an instance of 'std::bad_alloc'", "Unable to allocate 3.00 GiB for an array",
    "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit", "memory limit reached", "memory exceeded",
    "exceeded its memory", "exceeded 2.5 GB of memory", "Reached heap limit Allocation failed",
    "running beyond physical memory limits", "java.lang.OutOfMemoryError: Metaspace",
)  # fmt: skip
ENOUGH_MEMORY = (
    "exceeded the time limit; memory 3 GB", "wall time exceeded, memory used 3 GB", "exceeded time with memory 3 GB",
    "failed within memory limits", "ended within the memory limit", "exit code 1", "exit code 1370", "room is full",
    "time exceeded. Memory 3 GB", "cannot allocate nodes", "deadline exceeded (memory 3 GB)", "allocated memory 3 GB",
    "137 rows",
)  # fmt: skip


@pytest.mark.parametrize("words", MEMORY)
def test_a_run_that_failed_needs_no_runtime_and_words_tell_that_it_lacked_memory(tmp_path: Path, words: str) -> None:
    with_status = f"{RUNS}sort,a,2,,{words}\nsort,a,2,,failed\nsort,a,2,9,done\n"
    with_reason = f"{RUNS[:-1]},error\nsort,a,2,0,failed,{words}\nsort,a,2,0,failed,\nsort,a,2,9,done,\n"
    for text in (with_status, with_reason):
        runs = read_runs(written(tmp_path, text), {})
        assert runs["completed"].tolist() == [False, False, True]
        assert runs["lacked_memory"].tolist() == [True, False, False]
        assert runs["runtime_s"].isna().tolist() == [True, True, False]


@pytest.mark.parametrize("words", ENOUGH_MEMORY)
def test_words_of_another_end_are_no_lack_of_memory(tmp_path: Path, words: str) -> None:
    runs = read_runs(written(tmp_path, f'{RUNS[:-1]},error\nsort,a,2,0,failed,"{words}"\n'), {})
    assert runs["lacked_memory"].tolist() == [False]


def test_what_emr_exports_is_read_by_itself(tmp_path: Path) -> None:
    header = "Application Name,Instance Type,Core nodes,Elapsed time (min),Cluster status,State reason\n"
    rows = "als,m5.xlarge,4,,TERMINATED_WITH_ERRORS,exceeding memory limits\nals,m5.xlarge,8,2,TERMINATED,\n"
    runs = read_runs(written(tmp_path, header + rows), {})
    assert runs[["job", "machine_type", "nodes", "completed", "lacked_memory"]].to_numpy().tolist() == [
        ["als", "m5.xlarge", 4, False, True],
        ["als", "m5.xlarge", 8, True, False],
    ]
    assert runs["runtime_s"].tolist()[1] == 120
    machines = "Instance Type,vCPUs,Memory (GiB),Hourly price (USD)\nm5.xlarge,4,16,0.24\n"
    assert read_machines(written(tmp_path, machines), {}).types["m5.xlarge"].price_per_h == 0.24


@pytest.mark.parametrize(
    ("column", "rows", "completed"),
    [
        ("Cluster status", ["Terminated,"], [True]),
        ("cluster_state", ["TERMINATED,ALL_STEPS_COMPLETED", "TERMINATED,USER_REQUEST"], [True, False]),
        ("State", ["TERMINATED,", "TERMINATED_WITH_ERRORS,STEP_FAILURE"], [True, False]),
        ("State", ["TERMINATED,Steps completed", "TERMINATED,Terminated by user request"], [True, False]),
        ("cluster_status", ["TERMINATED,Steps completed with errors", "TERMINATED,INSTANCE_FAILURE"], [False, False]),
        ("State", ["TERMINATED,", "COMPLETED,"], [False, True]),  # of containers or jobs: somebody ended it
    ],
)
def test_a_cluster_that_terminated_has_completed_unless_somebody_or_an_error_ended_it(
    tmp_path: Path, column: str, rows: list[str], completed: list[bool]
) -> None:
    head = f"job,machine_type,nodes,runtime_s,{column},State change reason\n"
    path = written(tmp_path, head + "".join(f"als,m5.xlarge,4,60,{row}\n" for row in rows))
    assert read_runs(path, {})["completed"].tolist() == completed
    assert (read_job_runs(path, {})["status"] == "completed").tolist() == completed


def test_runs_without_a_number_of_nodes_are_of_one_machine(tmp_path: Path, caplog) -> None:  # type: ignore[no-untyped-def]
    text = "model_name,warehouse_size,execution_time,status\nfct_orders,X-Small,945.23,success\n"
    runs = read_runs(written(tmp_path, text), {})
    assert runs[["job", "machine_type", "nodes"]].to_numpy().tolist() == [["fct_orders", "X-Small", 1]]
    assert "no column nodes: each run counts as one on a single machine" in caplog.text


def test_a_missing_column_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no column runtime_s"):
        read_runs(written(tmp_path, "job,machine_type,nodes\nsort,a,2\n"), {})


def test_machine_types_have_a_price_and_its_day(tmp_path: Path) -> None:
    found = read_machines(written(tmp_path, "name,vcpus,memory,Price ($/h),priced_on\na,2,4,0.1,2026-01-01\n"), {})
    assert found.types["a"].price_per_h == 0.1
    assert found.priced_on == "2026-01-01"
    assert read_machines(written(tmp_path, f"{MACHINES}a,2,4,0.1\n"), {}).priced_on == ""


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
        read_machines(written(tmp_path, text), {})


def test_needs_are_flat_unclear_or_gb(tmp_path: Path) -> None:
    needs = read_needs(written(tmp_path, "job,need_gb\na,0\nb,\nc,12.5\n"), {})
    assert [needs[job].pattern for job in "abc"] == ["flat", "unclear", "linear"]
    assert needs["c"].need_gb == 12.5
    with pytest.raises(BadInput, match="need_gb of 'a' is 'much'"):
        read_needs(written(tmp_path, "job,need_gb\na,much\n"), {})


def test_profiles_of_ruya_are_known_by_their_own_names(tmp_path: Path) -> None:
    profile = read_columns(written(tmp_path, "job,dataset_size,max_memory_used\na,10,20\n"), PROFILE, {})
    assert profile.to_numpy().tolist() == [["a", 10.0, 20.0]]
    in_gb = read_columns(written(tmp_path, "job,input_gb,peak_gb\na,10,20\n"), PROFILE, {})
    assert in_gb.to_numpy().tolist() == [["a", 10e9, 20e9]]


def test_scores_are_above_0(tmp_path: Path) -> None:
    text = "machine_type,aspect,score\na,cpu,1.5\n"
    assert np.isclose(read_scores(written(tmp_path, text), {})["score"], 1.5).all()
    with pytest.raises(BadInput, match="score 0 of 'a'"):
        read_scores(written(tmp_path, text.replace("1.5", "0")), {})


def test_scores_of_machines_come_in_rows_or_in_columns_by_aspect(tmp_path: Path) -> None:
    rows = read_machine_scores(written(tmp_path, "node,aspect,score,low,high\na,cpu,2,1.9,2.1\nb,cpu,1,,\n"), [], {})
    assert rows["machine"].tolist() == ["a", "b"]
    assert rows["low"].tolist()[0] == 1.9
    spelled = written(tmp_path, "Node,Aspect,Score\na,cpu,2\na,disk,1\n")
    assert read_machine_scores(spelled, ["cpu"], {})["score"].tolist() == [2]
    path = written(tmp_path, "instance,vcpu,cpu_one,ram\na,4,2,5\nb,2,1,7\n")
    wide = read_machine_scores(path, ["cpu_one", "ram"], {})
    assert wide.to_numpy().tolist() == [["a", "cpu_one", 2], ["b", "cpu_one", 1], ["a", "ram", 5], ["b", "ram", 7]]
    with pytest.raises(BadInput, match="no column aspect"):
        read_machine_scores(path, [], {})
    with pytest.raises(BadInput, match="no score of aspect 'disk'; expected some of 'cpu'"):
        read_machine_scores(written(tmp_path, "node,aspect,score\na,cpu,2\nb,cpu,1\n"), ["disk"], {})


NEXTFLOW = """task_id\thash\tname\tstatus\texit\trealtime\t%cpu\tpeak_rss\trchar\twchar
1\tab/1\tNFCORE:FASTQC (s1)\tCOMPLETED\t0\t1m 2s\t99.0%\t1.2 GB\t1 KB\t3 MB
2\tab/2\tNFCORE:FASTQC (s2)\tCACHED\t0\t350ms\t99.0%\t1.2 GB\t1.5 GB\t3 MB
3\tab/3\tNFCORE:ALIGN (s1)\tFAILED\t1\t5s\t99.0%\t1.2 GB\t2 GB\t3 MB
4\tab/4\tNFCORE:ALIGN (s1)\tCOMPLETED\t0\t0ms\t99.0%\t1.2 GB\t2 GB\t3 MB
5\tab/5\tNFCORE:ALIGN (s1)\tCOMPLETED\t0\t1h 3m\t99.0%\t1.2 GB\t-\t3 MB
"""
LOTARU = """Label,Machine,Workflow,NumberSequences,Task,Realtime,TaskInputSizeUncompressed
train-1,n2,chipseq,100,FASTQC,8009,2000
test,n2,chipseq,200,FASTQC,16000,4000
"""


@pytest.fixture
def trace(tmp_path: Path):
    """A function: the path of a file with this text in a folder of this name."""

    def write(text: str, folder: str = "local", name: str = "trace.txt") -> str:
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1m 2s", 62), ("350ms", 0.35), ("1h 3m", 3780), ("2d 1h", 176_400), ("1.5s", 1.5), ("62000", 62), ("1M 2S", 62)],
)
def test_durations_are_read_as_nextflow_writes_them(text: str, expected: float) -> None:
    assert duration_s(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["-", "", "soon", "1m and a bit", "3 weeks"])
def test_what_is_no_duration_is_missing(text: str) -> None:
    assert math.isnan(duration_s(text))


@pytest.mark.parametrize(
    ("text", "expected"), [("1.5 GB", 1.5 * 2**30), ("12 MB", 12 * 2**20), ("100", 100), ("7 B", 7)]
)
def test_sizes_are_read_as_nextflow_writes_them(text: str, expected: float) -> None:
    assert size_bytes(text) == expected
    assert math.isnan(size_bytes("-"))


def test_a_trace_of_nextflow_has_tasks_without_what_they_worked_on(trace, caplog) -> None:
    told = read_traces([trace(NEXTFLOW)], {})
    assert told.to_numpy().tolist() == [
        ["trace", "NFCORE:FASTQC", "local", 1024.0, 62.0],
        ["trace", "NFCORE:FASTQC", "local", 1.5 * 2**30, pytest.approx(0.35)],
    ]
    reasons = ("not finished", "no runtime above 0", "no size above 0")
    assert caplog.messages == [f"left out 1 tasks of the traces: {reason}" for reason in reasons]


def test_the_machine_can_be_named(trace) -> None:
    told = read_traces([trace(NEXTFLOW)], {}, machine="laptop")
    assert set(told["machine"]) == {"laptop"}


def test_the_size_can_be_another_column(trace) -> None:
    told = read_traces([trace(NEXTFLOW)], {"size": "peak_rss"})
    assert told["size"].tolist() == [pytest.approx(1.2 * 2**30)] * 3


def test_a_report_of_lotaru_is_known_by_itself(trace) -> None:
    told = read_traces([trace(LOTARU, "somewhere", "report.csv")], {})
    assert told.to_numpy().tolist() == [
        ["chipseq", "FASTQC", "n2", 2000.0, 8.009],
        ["chipseq", "FASTQC", "n2", 4000.0, 16.0],
    ]


def test_a_table_of_ones_own_is_read_by_names(trace) -> None:
    text = "step,host,gb,secs\na,m1,2,10\nb,m2,3,20\n"
    renamed = {"task": "step", "machine": "host", "size": "gb", "runtime_s": "secs"}
    told = read_traces([trace(text, name="mine.csv")], renamed)
    assert told.to_numpy().tolist() == [["mine", "a", "m1", 2.0, 10.0], ["mine", "b", "m2", 3.0, 20.0]]


@pytest.mark.parametrize(
    ("column", "cell"), [("Runtime (min)", "2"), ("runtime_s", "2 min"), ("runtime_s", "120"), ("runtime_ms", "120000")]
)
def test_units_count_in_traces_too(trace, column: str, cell: str) -> None:
    told = read_traces([trace(f"task,size_gb,{column}\na,2,{cell}\n", name="mine.csv")], {})
    assert told[["size", "runtime_s"]].to_numpy().tolist() == [[2e9, 120]]


def test_several_traces_are_put_together(trace) -> None:
    paths = [trace(NEXTFLOW, "one"), trace(LOTARU, "two", "report.csv")]
    assert read_traces(paths, {})["machine"].tolist() == ["one", "one", "n2", "n2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,machine,size\na,m,1\n", "no column runtime_s or runtime_ms or realtime among"),
        ("task,machine,realtime\na,m,1s\n", "no column size among 'task', 'machine', 'realtime'"),
        ("task,machine,size,runtime_s\na,m,1,0\n", "each of its 1 finished tasks took 0 s, or says no time"),
        ("task,machine,size,runtime_s\na,m,0,5\n", "none of its 1 finished tasks says a size above 0"),
        ("task,machine,size,runtime_s,status\na,m,1,5,FAILED\n", "none of its 1 tasks has finished"),
        ("", "empty"),
    ],
)
def test_what_cannot_be_used_is_one_clear_line(trace, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as told:
        read_traces([trace(text, name="bad.csv")], {})
    assert "\n" not in str(told.value)


def test_no_trace_at_all_is_refused() -> None:
    with pytest.raises(BadInput, match="no file is named; expected at least one trace; name it with --traces"):
        read_traces([], {})


def test_one_machine_needs_no_name_and_several_do() -> None:
    runs = pd.DataFrame({"machine": ["a", "a"]})
    assert one_machine(runs, "") == "a"
    both = pd.DataFrame({"machine": ["a", "b"]})
    assert one_machine(both, "b") == "b"
    with pytest.raises(BadInput, match="runs on 'a', 'b'; expected one of them with --from"):
        one_machine(both, "")
