"""Which reader a file is for: by its content, whatever its name."""

import pytest

from tasks.errors import BadInput
from tasks.params import ReadLimits
from tasks.workloads.intake import find_files
from tasks.workloads.readers import detect

LIMITS = ReadLimits()
HEADS = {
    "perf": "# started on Sat Nov 21 11:15:08 2026\n\n     1.000000000,1,,cycles,1,100.00,,\n",
    "perf without its first line": "     1.000000000;1;;cycles;1;100.00;;\n",
    "sadf": "# hostname;interval;timestamp;CPU;%user\n",
    "perfspect": "TS,SKT,CPU,CID,CPU utilization %\n",
    "perfspect of version 1": "time,metric_CPU utilization %\n0,1\n",
    "perf with decimal commas": "     1,000000000;1;;cycles;1;100,00;;\n",
    "wide": "timestamp,a,b\n1,2,3\n",
    "wide with numbers of nine digits": "at_s,disk.read_bytes_per_s,a\n0,405060957.9,1\n1,404218089,1\n",
}


@pytest.mark.parametrize(("name", "head"), HEADS.items(), ids=HEADS)
def test_the_format_is_told_by_the_content(tmp_path, name, head):
    (tmp_path / "file.txt").write_text(head)
    assert detect(str(tmp_path / "file.txt"), LIMITS).name == name.split()[0]


def test_an_address_is_a_server():
    assert detect("http://127.0.0.1:9090?match[]=up", LIMITS).name == "prometheus"


def test_what_is_no_telemetry_is_refused_with_what_would_be(tmp_path):
    (tmp_path / "note.txt").write_text("Dear all,\n")
    with pytest.raises(BadInput, match=r"no known telemetry .*; expected a Prometheus server .*; name the reader"):
        detect(str(tmp_path / "note.txt"), LIMITS)


def test_a_folder_stands_for_what_sar_perf_and_prometheus_wrote_whatever_its_name(tmp_path):
    texts = {
        "sar26": "Linux 6.1 (vm) \t11/26/26 \t_x86_64_\t(2 CPU)\n\n04:42:09  CPU  %user\n04:42:10  all  5.00\n",
        "redis.txt": HEADS["perf"],
        "answer.json": '{"status":"success","data":{"resultType":"matrix","result":[]}}',
        "README": "Recorded on a Monday.\n",
        "labels.json": "[]",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for name in ("b/2.csv", "b/1.csv.gz", "a/x.parquet", "labels.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("path\n")
    found = find_files([str(tmp_path)], str(tmp_path / "labels.csv"))  # without the manifest
    expected = ["/a/x.parquet", "/answer.json", "/b/1.csv.gz", "/b/2.csv", "/redis.txt", "/sar26"]
    assert [path.removeprefix(str(tmp_path)) for path in found] == expected
