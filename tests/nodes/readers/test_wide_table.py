"""Wide tables of results as people have them: a column a metric or a benchmark, other names, local numbers."""

import pytest

from tasks.nodes.intake import Intake, begin_executions
from tasks.nodes.params import ReadParams

WIDE = "Host;Datum;Test;throughput (MB);latency_ms\nvm1;31.01.2026 12:00;fio;1,5;2\nvm2;31.01.2026 12:00;fio;2,5;\n"
WIDE = WIDE.replace("Datum", "Date")
SHOUTED = "VM,Test,Metric,Result,Unit,Timestamp\nvm1,fio,IOPS,9000,,2026-01-31T12:00:00Z\n"
BENCHMARKS = "server,instance_type,timestamp,sysbench_cpu,fio_read\nvm1,m5.large,2026-01-31T12:00:00Z,900,250.5\n"


def test_a_column_a_metric_gives_an_execution_a_row(found_in):
    found = found_in(WIDE, name="results.csv")
    assert found.n_read == 2 and found.reasons == []
    assert found.told("vm1/fio/2026-01-31T12:00:00") == {"throughput_mb": (1.5, "MB"), "latency_ms": (2.0, "ms")}
    assert found.told("vm2/fio/2026-01-31T12:00:00") == {"throughput_mb": (2.5, "MB")}


def test_columns_are_known_in_capitals(found_in):
    assert found_in(SHOUTED, name="results.csv").told("vm1/fio/2026-01-31T12:00:00") == {"IOPS": (9000.0, "")}


def test_without_a_benchmark_each_column_is_one(found_in):
    found = found_in(BENCHMARKS, name="results.csv")
    for benchmark, value in (("sysbench_cpu", 900.0), ("fio_read", 250.5)):
        assert found.told(f"vm1/{benchmark}/2026-01-31T12:00:00") == {"result": (value, "")}
    assert set(found.executions["machine_type"]) == {"m5.large"}


@pytest.mark.parametrize(
    ("text", "line"), [(WIDE, "read `Host` as node"), (BENCHMARKS, "read `sysbench_cpu`, `fio_read` as benchmarks")]
)
def test_what_was_understood_is_said(tmp_path, text, line):
    (tmp_path / "results.csv").write_text(text)
    assert line in begin_executions(str(tmp_path / "results.csv"), Intake("s", "", ReadParams()))
