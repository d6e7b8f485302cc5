"""Telemetry as people have it, read in one call without an option: sysstat, long tables, other names."""

import pandas as pd
import pytest

from tasks.workloads.intake import Intake, begin_telemetry, read_file
from tasks.workloads.params import ReadParams
from tasks.workloads.readers import detect

# sysstat, man sadf(1), -d: a header a section, as a German machine prints it
CPU = "# hostname;interval;timestamp;CPU;%user;%idle\n"
GERMAN = CPU + "".join(f"vm1;60;2024-03-01 02:{at:02} UTC;-1;{at},50;{90 - at},50\n" for at in range(6))
LONG = "date;host;metric;value\n" + "".join(
    f"01.03.2024 02:{at:02};vm1;{name};{value},5\n" for at in range(6) for name, value in (("cpu", at), ("mem", 7))
)
DEVICES = "time,host,core,metric,value,count\n" + "".join(
    f"2024-03-13T02:0{at}:00Z,vm1,{core},busy,{at + core}.5,{17 * at + core}\n" for at in range(6) for core in range(2)
)
WIDE = "Time,Hostname,cpu\n" + "".join(f"2024-03-13T02:0{at}:00Z,vm{1 + at % 2},{at}.5\n" for at in range(6))
INFLUX = (
    "#group,false,false,true,false,false,true,true\n#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,double,"
)
INFLUX += "string,string\n#default,_result,,,,,,\n,result,table,_start,_time,_value,_field,host\n" + "".join(
    f",,{at},2024-03-13T02:00:00Z,2024-03-13T02:0{at}:00Z,{value}.5,{name},vm1\n"
    for at in range(6)
    for name, value in (("usage_user", at), ("usage_system", 7))
)
DSTAT = '"Dstat 0.7.4 CSV output"\n"Author:","Dag Wieers",,,,"URL:","http://dag.wieers.com"\n"Host:","vm1",,,,"User:","root"\n'
DSTAT += '"Cmdline:","dstat -T -cd --output x.csv",,,,"Date:","13 Mar 2024 02:00:00 UTC"\n\n"epoch","total cpu usage",,'
DSTAT += '"dsk/total",\n"epoch","usr","sys","read","writ"\n' + "".join(
    f"{1710295200 + 60 * at}.123,{at}.5,2,0.0,4096.0\n" for at in range(6)
)
FILES = {  # text, reader, runs, counter, its values in the first run
    "sadf -d with decimal commas": (GERMAN, "sadf", 1, "cpu.all.pct_user", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]),
    "a long table of a spreadsheet": (LONG, "wide", 1, "cpu", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]),
    "a long table of two cores": (DEVICES, "wide", 1, "busy.1", [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]),
    "InfluxDB's annotated CSV": (INFLUX, "wide", 1, "usage_user", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]),
    "dstat": (DSTAT, "wide", 1, "total_cpu_usage.usr", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]),
    "a wide table of two hosts": (WIDE, "wide", 2, "cpu", [0.5, 2.5, 4.5]),
}


@pytest.mark.parametrize(("text", "reader", "n_runs", "counter", "values"), FILES.values(), ids=FILES)
def test_an_export_is_read_as_it_was_worked_out_by_hand(found_in, tmp_path, text, reader, n_runs, counter, values):
    found = found_in(text, name="export.csv")
    assert (found.reasons, len(found.runs), found.n_read) == ([], n_runs, 6)
    assert found.column(counter) == values
    assert found.runs[0].telemetry.machine == (None if text is DSTAT else "vm1")
    assert found.runs[0].telemetry.started_at.year == 2024
    assert detect(str(tmp_path / "export.csv"), ReadParams().limits).name == reader


def test_lists_beside_the_values_of_a_long_table_are_no_part_of_their_names(tmp_path):
    rows = [{"time": f"2024-03-13T02:0{at}:00Z", "core": core, "metric": "busy", "value": at + core, "tags": [core]}
            for at in range(6) for core in range(2)]  # fmt: skip
    pd.DataFrame(rows).to_parquet(tmp_path / "long.parquet")
    (run,), _ = read_file(str(tmp_path / "long.parquet"), ReadParams())
    assert run.telemetry.names == ("busy.0", "busy.1")


def test_what_was_understood_is_said(tmp_path):
    (tmp_path / "long.csv").write_text(LONG)
    assert begin_telemetry(str(tmp_path / "long.csv"), Intake("s", "", ReadParams())) == (
        "read `metric` as the names of counters, `value` as their values",
        "read `date` as timestamp",
        "read `host` as machine",
    )
