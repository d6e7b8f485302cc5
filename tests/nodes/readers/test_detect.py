"""Which reader a path is for: by its content, whatever its name; and what a folder stands for."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput
from tasks.nodes.execution import Execution, write_part
from tasks.nodes.intake import find_files
from tasks.nodes.readers import detect
from tasks.params import ReadLimits

LIMITS = ReadLimits()
LONG = {"node": ["n"], "benchmark": ["x"], "metric": ["m"], "value": [1.0], "started_at": ["2026-01-31"]}
AZURE = {
    name: ["a"] for name in ("test_suite", "test_name", "lifespan", "region", "sku", "vm_id", "unit", "started_at")
}


@pytest.fixture
def samples(tmp_path, database):
    """A file of each format, called file.bin; and the folder of one benchmark."""
    made = {
        name: tmp_path / name / "file.bin"
        for name in ("recorded", "azure-vm-noise", "long", "logs", "text", "perona-sqlite")
    }
    for path in made.values():
        path.parent.mkdir()
    write_part(made["recorded"], [Execution({"execution_id": "e", "node": "n", "benchmark": "x", "aspect": "cpu"}, ())])
    pq.write_table(pa.table({**AZURE, "value": [1.0], "runtime_s": [1.0]}), made["azure-vm-noise"])
    pq.write_table(pa.table(LONG), made["long"])
    made["text"].write_text("node;benchmark;metric;value;started_at\nn;x;m;1;2026-01-31\n")
    made["logs"].write_text("sysbench 1.0.20\nPrime numbers limit: 10000\nCPU speed:\n    events per second: 9.5\n")
    database().rename(made["perona-sqlite"])
    made["json"] = made["text"].with_name("samples.json")
    made["json"].write_text('{"metric": "Throughput", "value": 942.1, "unit": "Mbits/sec", "test": "iperf"}\n')
    meta = tmp_path / "sparecores" / "aws" / "c4" / "bw_mem" / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text('{"exit_code": 0}')
    return {**made, "sparecores": tmp_path / "sparecores"}


def test_the_format_is_told_by_the_content(samples):
    found = {name: detect(str(path), LIMITS).name for name, path in samples.items()}
    assert found == {name: "long" if name in ("text", "json") else name for name in samples}


def test_what_holds_no_results_is_refused_with_what_would(tmp_path):
    (tmp_path / "note.txt").write_text("Dear all,\n")
    with pytest.raises(
        BadInput, match=r"no known results of benchmarks \(it begins with 'Dear all,.n'\); .* name the reader"
    ):
        detect(str(tmp_path / "note.txt"), LIMITS)


def test_a_folder_stands_for_its_tables_and_for_its_logs_as_one(tmp_path):
    for name in ("b/2.csv", "b/1.parquet", "a/run.db", "a/n1/cpu.log", "labels.csv", "note.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("sysbench 1.0.20\nPrime numbers limit: 10\n" if name.endswith("log") else "path\n")
    found = find_files([str(tmp_path)], str(tmp_path / "labels.csv"))
    assert [path.removeprefix(str(tmp_path)) for path in found] == ["/a/run.db", "/b/1.parquet", "/b/2.csv", ""]


def test_without_paths_the_files_of_the_manifest_are_read(tmp_path):
    (tmp_path / "labels.csv").write_text("path,node\na.log,n1\nb.log,n2\na.log,n3\n")
    (tmp_path / "a.log").touch()
    (tmp_path / "b.log").touch()
    assert find_files([], str(tmp_path / "labels.csv")) == [str(tmp_path / "a.log"), str(tmp_path / "b.log")]


@pytest.mark.parametrize(
    ("path", "problem"),
    [("nowhere", "no such file or folder; expected results of benchmarks"), ("empty", "0 files, none with results of")],
)
def test_a_path_without_results_is_refused(tmp_path, path, problem):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=problem):
        find_files([str(tmp_path / path)])


RENAMED = {
    "long": ("host,what,when,name,result\nn,x,2026-01-31,m,1\n", {"metric": "name", "value": "result"}, "long"),
    "all of it": (
        "host,what,when,name,result\n",
        {"node": "host", "benchmark": "what", "started_at": "when", "metric": "name", "value": "result"},
        "long",
    ),
    "azure": (",".join(name.replace("sku", "size") for name in [*AZURE, "value"]), {"sku": "size"}, "azure-vm-noise"),
}


@pytest.mark.parametrize(("text", "renamed", "name"), RENAMED.values(), ids=RENAMED)
def test_a_table_with_renamed_columns_is_told_by_ours(tmp_path, text, renamed, name):
    (tmp_path / "r.csv").write_text(text)
    assert detect(str(tmp_path / "r.csv"), LIMITS, renamed).name == name


def test_a_table_without_a_column_that_is_needed_is_for_the_reader_that_says_which(tmp_path, found_in):
    (tmp_path / "r.csv").write_text("node,benchmark,metric\nn,x,m\n")
    assert detect(str(tmp_path / "r.csv"), LIMITS).name == "long"
    with pytest.raises(
        BadInput, match="no column value and no started_at or execution_id among 'node', 'benchmark', 'metric'"
    ):
        found_in(tmp_path / "r.csv")


def test_a_folder_of_sparecores_is_one_thing(samples):
    assert find_files([str(samples["sparecores"])]) == [str(samples["sparecores"])]
