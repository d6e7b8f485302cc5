"""Traces of workflows: Nextflow's, Lotaru's, and a person's own table."""

import math
from pathlib import Path

import pandas as pd
import pytest

from tasks.advice.readers.traces import duration_s, one_machine, read_traces, size_bytes
from tasks.errors import BadInput

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
def written(tmp_path: Path):
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


def test_a_trace_of_nextflow_has_tasks_without_what_they_worked_on(written) -> None:
    told = read_traces([written(NEXTFLOW)], {})
    assert told.runs.to_numpy().tolist() == [
        ["trace", "NFCORE:FASTQC", "local", 1024.0, 62.0],
        ["trace", "NFCORE:FASTQC", "local", 1.5 * 2**30, pytest.approx(0.35)],
    ]
    assert told.n_left_out == {"not finished": 1, "no runtime above 0": 1, "no size above 0": 1}


def test_the_machine_can_be_named(written) -> None:
    told = read_traces([written(NEXTFLOW)], {}, machine="laptop")
    assert set(told.runs["machine"]) == {"laptop"}


def test_the_size_can_be_another_column(written) -> None:
    told = read_traces([written(NEXTFLOW)], {"size": "peak_rss"})
    assert told.runs["size"].tolist() == [pytest.approx(1.2 * 2**30)] * 3


def test_a_report_of_lotaru_is_known_by_itself(written) -> None:
    told = read_traces([written(LOTARU, "somewhere", "report.csv")], {})
    assert told.runs.to_numpy().tolist() == [
        ["chipseq", "FASTQC", "n2", 2000.0, 8.009],
        ["chipseq", "FASTQC", "n2", 4000.0, 16.0],
    ]
    assert told.n_left_out == {}


def test_a_table_of_ones_own_is_read_by_names(written) -> None:
    text = "step,host,gb,secs\na,m1,2,10\nb,m2,3,20\n"
    renamed = {"task": "step", "machine": "host", "size": "gb", "runtime_s": "secs"}
    told = read_traces([written(text, name="mine.csv")], renamed)
    assert told.runs.to_numpy().tolist() == [["mine", "a", "m1", 2.0, 10.0], ["mine", "b", "m2", 3.0, 20.0]]


def test_several_traces_are_put_together(written) -> None:
    paths = [written(NEXTFLOW, "one"), written(LOTARU, "two", "report.csv")]
    assert read_traces(paths, {}).runs["machine"].tolist() == ["one", "one", "n2", "n2"]


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
def test_what_cannot_be_used_is_one_clear_line(written, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as told:
        read_traces([written(text, name="bad.csv")], {})
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
