"""Wide tables: anybody's CSV and Parquet, whorl's own, their times, labels and columns."""

import gzip
import json
import os
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput, BadSetting

HEADER = "timestamp,cpu-cycles,disk_free\n"


def rows(n: int, start: int = 1_700_000_000) -> str:
    return HEADER + "".join(f"{start + 2 * at},{at}0,{100 - at}\n" for at in range(n))


def test_a_table_of_somebody_becomes_a_run_called_after_folder_and_file(found_in):
    (run,) = found_in(rows(5), label_from="stem").runs
    told = run.telemetry
    assert (told.run_id, told.workload, told.interval_s, run.n_rows) == ("set/redis", "redis", 2.0, 5)
    assert (told.started_at, told.at_s.tolist()) == (datetime(2023, 11, 14, 22, 13, 20), [0, 2, 4, 6, 8])
    assert told.names == ("cpu_cycles", "disk_free")


UNIX = [str(1_700_000_000 * unit) for unit in (1, 1000, 1_000_000, 1_000_000_000)]
TEXTS = ["2023-11-14T22:13:20Z", "2023-11-14 23:13:20+01:00", "2023-11-14 22:13:20"]


@pytest.mark.parametrize("first", [*UNIX, *TEXTS])
def test_times_may_be_unix_times_in_any_unit_or_text(found_in, first):
    second = first.replace("13:20", "13:21") if ":" in first else f"1700000001{first[10:]}"
    told = found_in(f"date,a\n{first},1\n{second},2\n").runs[0].telemetry
    assert (told.started_at, told.interval_s) == (datetime(2023, 11, 14, 22, 13, 20), 1.0)


def test_seconds_since_some_start_have_no_date(found_in):
    for columns in ({"at_s": "elapsed"}, {}):
        told = found_in("elapsed,a\n0,1\n1,2\n", columns=columns).runs[0].telemetry
        assert (told.started_at, told.at_s.tolist()) == (None, [0, 1])


def test_a_date_and_a_clock_in_two_columns_are_one_time(found_in):
    told = found_in("Date,Time,a\n13.11.2023,23:59:59.5,1\n14.11.2023,00:00:00.5,2\n14.11.2023,,3\n")
    (run,) = told.runs
    assert (run.telemetry.started_at, run.telemetry.at_s.tolist()) == (
        datetime(2023, 11, 13, 23, 59, 59, 500_000),
        [0, 1],
    )
    assert run.telemetry.names == ("a",)
    assert len(told.refused) == 1  # a date without its clock is no time


def test_a_table_without_a_time_needs_an_interval(found_in):
    with pytest.raises(BadInput, match="no column with the time; expected at_s, or timestamp; name it, as in --map"):
        found_in("a,b\n1,2\n")
    assert found_in("a,b\n1,2\n3,4\n", interval_s=2).runs[0].telemetry.at_s.tolist() == [0, 2]


def test_columns_of_text_are_listed_with_their_reason(found_in):
    found = found_in("timestamp,a,state,empty,a\n1,1,run,,1\n2,2,stop,,2\n")
    assert found.runs[0].refused == (
        "state: holds text", "empty: no value in it", "a: the name a stands there twice",
    )  # fmt: skip
    assert (found.n_read, found.runs[0].telemetry.names) == (2, ("a",))
    found = found_in("timestamp,a\n1,NA\n2,\n3,-\n4,nan\n5,7\n")  # what is missing is never filled in
    assert (found.column("a"), len(found.refused)) == ([None, None, None, None, 7], 0)


def test_cells_may_carry_their_unit_as_screens_export_them(found_in):
    """percent, 1 KiB = 1,024 and 1 kB = 1,000 bytes, seconds; one word among them makes it text."""
    found = found_in(
        "time,busy,used,received,latency,mode\n"
        "2026-09-01 08:00:00,45.5%,1.5 KiB,2 kB/s,20 ms,5 %\n2026-09-01 08:00:01,5 %,1 MiB,1.25 MB/s,1.5 s,fast\n"
        "2026-09-01 08:00:02,,2048,0 B/s,3 ms,slow\n"
    )
    assert found.column("busy") == [45.5, 5, None]
    assert found.column("received") == [2000, 1_250_000, 0]
    assert found.column("latency") == [0.02, 1.5, 0.003]
    kinds = {counter.name: (counter.unit, counter.is_rate) for counter in found.runs[0].telemetry.counters}
    assert kinds == {"busy": ("%", False), "received": ("B", True), "latency": ("s", False)}
    assert found.runs[0].refused == ("used: holds text", "mode: holds text")  # a bare 2048 may be of any unit


def test_samples_may_be_objects_of_json(found_in):
    lines = [
        {
            "name": "cpu",
            "timestamp": 1_700_000_000 + 10 * at,
            "fields": {"usage": at, "idle": 100 - at},
            "tags": {"cpu": "all"},
        }
        for at in range(3)
    ]
    datapoints = [{"Timestamp": f"2023-11-14T22:13:{20 + at}Z", "Average": at, "Unit": "Percent"} for at in range(3)]
    for text, name, values in (
        ("\n".join(map(json.dumps, lines)), "fields.usage", [0, 1, 2]),
        (json.dumps(lines), "fields.idle", [100, 99, 98]),
        (json.dumps({"Label": "CPU", "Count": 3, "Datapoints": datapoints}), "average", [0, 1, 2]),
    ):
        found = found_in(text, name="samples.json")
        assert found.column(name) == values
        assert found.runs[0].telemetry.started_at == datetime(2023, 11, 14, 22, 13, 20)
        assert "Count" not in str(found.runs[0].telemetry.names)  # it stands around the samples


def test_series_of_several_containers_are_told_apart_by_a_column_that_is_named(found_in):
    text = "time,container,cpu\n1,db,5%\n1,web,7%\n2,db,6%\n2,web,8%\n"
    assert "--map run_id=COLUMN" in found_in(text).reasons[0]
    assert [run.telemetry.run_id for run in found_in(text, columns={"run_id": "container"}).runs] == ["db", "web"]


BROKEN = {
    "a word": ("3,x,1\n", "cpu_cycles is no finite number"),
    "infinite": ("3,inf,1\n", "cpu_cycles is no finite number"),
    "no time": (",1,1\n", "no time"),
    "fields": ("3,1\n", "2 fields; the header has 3"),
    "the same time": ("4,9,9\n", "a second sample at the same time"),
    "not UTF-8": ("3,\udcff,1\n", "the line is not UTF-8"),
}


@pytest.mark.parametrize(("line", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_row_is_refused_alone_and_blank_lines_are_none(found_in, line, reason):
    text = HEADER + "1,1,1\n2,1,1\n\n4,1,1\n" + line + "\n"
    found = found_in(text.encode("utf-8", "surrogateescape"))
    assert (found.n_read, len(found.refused)) == (4, 1)
    assert found.reasons[0].startswith(reason)
    assert found.refused["place"].to_list() == [6]


def test_runs_are_told_apart_by_their_id_or_by_their_labels(found_in):
    by_id = found_in("run_id,workload,at_s,a\nr1,db,0,1\nr2,web,0,2\nr1,db,1,1\nr2,web,1,2\n")
    assert [(run.telemetry.run_id, run.telemetry.workload) for run in by_id.runs] == [("r1", "db"), ("r2", "web")]
    by_label = found_in("app,at_s,a\ndb,0,1\nweb,0,2\ndb,1,1\n", label_from="column:app")
    assert [run.telemetry.run_id for run in by_label.runs] == ["set/redis/db", "set/redis/web"]
    assert [run.n_rows for run in by_label.runs] == [2, 1]


def test_a_run_with_two_labels_keeps_the_rows_of_the_first(found_in):
    found = found_in("run_id,workload,at_s,a\nr1,db,0,1\nr1,web,1,1\nr1,db,2,1\n")
    assert found.reasons == ["workload web in a run of db; expected one a run"]
    assert found.n_read == 3


def test_the_manifest_wins_and_its_paths_are_relative_to_it(found_in, tmp_path):
    (tmp_path / "labels.csv").write_text("path,workload,input,round\nset/redis.csv,Redis,large,3\n")
    told = found_in(rows(3), label_from="stem", manifest=str(tmp_path / "labels.csv")).runs[0].telemetry
    assert (told.workload, told.input, told.round) == ("Redis", "large", "3")


def test_a_manifest_of_json_lines_labels_single_runs(found_in, tmp_path):
    entry = {"path": "set/redis.csv", "run_id": "r2", "workload": "web", "machine": 7}
    (tmp_path / "labels.jsonl").write_text(json.dumps(entry) + "\n")
    found = found_in("run_id,at_s,a\nr1,0,1\nr2,0,1\n", manifest=str(tmp_path / "labels.jsonl"))
    assert [(run.telemetry.workload, run.telemetry.machine) for run in found.runs] == [(None, None), ("web", "7")]


def test_pieces_of_a_run_that_was_cut_keep_its_labels_and_count_from_their_own_start(found_in, tmp_path):
    (tmp_path / "labels.csv").write_text("path,run_id,workload\nset/redis.csv,r,web\n")
    text = "run_id,timestamp,a\n" + "".join(f"r,{1_700_000_000 + at},1\n" for at in (0, 1, 2, 60, 61, 62))
    found = found_in(text, manifest=str(tmp_path / "labels.csv"))
    told = [run.telemetry for run in found.runs]
    assert [(one.run_id, one.workload, one.at_s.tolist()) for one in told] == [
        ("r+1", "web", [0, 1, 2]), ("r+2", "web", [0, 1, 2]),
    ]  # fmt: skip
    assert (told[1].started_at - told[0].started_at).total_seconds() == 60


@pytest.mark.parametrize(
    ("text", "reason"), [("file,workload\na,b\n", "no column path"), ('{"a": 1}\n', "no column path")]
)
def test_a_manifest_that_names_no_file_is_refused(found_in, tmp_path, text, reason):
    (tmp_path / "labels").write_text(text)
    with pytest.raises(BadInput, match=reason):
        found_in(rows(3), manifest=str(tmp_path / "labels"))


def test_another_source_of_labels_is_a_wrong_setting(found_in):
    with pytest.raises(BadSetting, match="expected stem, name, parent or column:NAME"):
        found_in(rows(3), label_from="folder")


def test_parquet_metadata_says_what_a_counter_is(found_in, tmp_path):
    about = {"unit": "B", "kind": "software", "is_rate": "true", "scope": "workload"}
    schema = pa.schema(
        [
            ("workload", pa.string()),
            ("at_s", pa.float64()),
            pa.field("own.disk.read_bytes", pa.float64(), metadata=about),
        ],
        metadata={"whorl.record": json.dumps({"is_simulated": True})},
    )
    table = pa.table({"workload": ["db", "db"], "at_s": [1.0, 2.0], "own.disk.read_bytes": [5.0, None]}, schema=schema)
    pq.write_table(table, tmp_path / "r1.parquet")
    found = found_in(tmp_path / "r1.parquet")
    (counter,) = found.runs[0].telemetry.counters
    assert (counter.unit, counter.kind, counter.is_rate, counter.scope) == ("B", "software", True, "workload")
    assert (found.column("own.disk.read_bytes"), found.runs[0].is_simulated) == ([5, None], True)


def test_whorls_own_csv_guesses_rates_by_the_group_of_the_name(found_in):
    found = found_in("run_id,at_s,cpu.user_cores,memory.free_bytes,own.disk.read_bytes\nr,1,1,1,1\nr,2,1,1,1\n")
    rates = {one.name: one.is_rate for one in found.runs[0].telemetry.counters}
    assert rates == {"cpu.user_cores": True, "memory.free_bytes": False, "own.disk.read_bytes": True}


@pytest.mark.parametrize("content", [b"PAR1 damaged PAR1", b"", b"timestamp,a\n", b"1,2\n3,4\n"])
def test_a_file_that_is_none_is_refused_in_one_line(found_in, content):
    with pytest.raises(BadInput):
        found_in(content, reader="wide")


def test_cloudsuite_keeps_or_refuses_every_row(found_in):
    folder = Path(os.environ.get("WHORL_DATASETS", "-")) / "cloudsuite"
    paths = sorted(folder.glob("*/*.csv.gz"))
    if not paths:
        pytest.skip("needs cloudsuite in the folder WHORL_DATASETS")
    for path in paths:
        with gzip.open(path, "rt") as lines:
            n_rows = sum(1 for line in lines if line.strip()) - 1
        found = found_in(path, label_from="stem")
        assert (path.name, found.n_read) == (path.name, n_rows)
        assert {run.telemetry.interval_s for run in found.runs} == {2.0}


def test_a_table_without_counters_names_its_columns_and_says_what_they_hold(found_in):
    with pytest.raises(
        BadInput, match=r"no counter in it \('Tool 5.3.6 of somebody', 'b': holds text or no value in it\)"
    ):
        found_in("at_s,Tool 5.3.6 of somebody,b\n0,x,\n1,y,\n")
