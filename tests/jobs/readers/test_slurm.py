"""Slurm's accounting: small logs worked out by hand, and the phillips log of xdmod where WHORL_DATASETS has it."""

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from math import isnan, nan
from pathlib import Path

import pandas as pd
import pytest

from tasks.errors import BadInput, BadSetting, WhorlError
from tasks.jobs.params import ReadParams
from tasks.jobs.readers import READERS, slurm

NEW_YORK = ReadParams(time_zone="America/New_York")
HEADER = "JobID|Submit|Start|End|State|Elapsed|MaxRSS|TotalCPU|User|JobName"
JOB = "7|2024-12-01T11:58:00|2024-12-01T12:00:00|2024-12-01T12:10:00|COMPLETED|00:10:00||00:31.5|ada|etl"
CENSORED = {  # state and elapsed time, limit an hour: status and runtime
    "killed at its limit": ("TIMEOUT|01:00:12", ("timeout", 3612.0)),
    "cancelled at work": ("CANCELLED by 17|00:20:00", ("cancelled", 1200.0)),
    "failed": ("FAILED|00:20:00", ("failed", 1200.0)),
}
Mutation = Callable[[bytes], bytes]
FIELDS = ReadParams().sacct_fields.replace(",", "|").encode()
JOB_MEMORY, NODE_MEMORY, CPU_MEMORY = (partial(slurm.requested_memory_bytes, per=per) for per in ("", "n", "c"))
KIB, MIB, GIB = 2**10, 2**20, 2**30


def log(tmp_path: Path, *lines: str, header: str = HEADER) -> str:
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join(filter(None, [header, *lines])) + "\n")
    return str(path)


def read(path: str, params: ReadParams = NEW_YORK) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(READERS["slurm"].read(path, params))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


def test_one_job_worked_out_by_hand(tmp_path: Path) -> None:
    rows, refused = read(log(tmp_path, JOB))
    assert refused.empty
    row = rows.iloc[0]
    told = row[["run_id", "name", "user_name", "status", "wait_s", "runtime_s", "cpu_s", "place"]]
    assert told.to_list() == ["7", "etl", "ada", "completed", 120.0, 600.0, 31.5, 2]
    assert row["started_at"] == pd.Timestamp("2024-12-01 17:00:00")  # noon in New York


def test_any_order_and_subset_of_fields_gives_the_same_rows(tmp_path: Path) -> None:
    rows, _ = read(log(tmp_path, JOB))
    fields, values = HEADER.split("|"), JOB.split("|")
    for order in (list(reversed(range(len(fields)))), [0, 1, 2, 4, 5, 7, 8, 9], [9, 3, 2, 0, 7, 4, 8, 1]):
        other, _ = read(log(tmp_path, "|".join(values[i] for i in order), header="|".join(fields[i] for i in order)))
        pd.testing.assert_frame_equal(other, rows)


def test_the_trailing_bar_of_parsable_changes_nothing(tmp_path: Path) -> None:
    rows, _ = read(log(tmp_path, JOB))
    barred, _ = read(log(tmp_path, JOB + "|", header=HEADER + "|"))
    headless, _ = read(
        log(tmp_path, JOB + "|", header=""), NEW_YORK.model_copy(update={"sacct_fields": HEADER.replace("|", ",")})
    )
    pd.testing.assert_frame_equal(barred, rows)
    pd.testing.assert_frame_equal(headless.assign(place=2), rows)


def test_a_bar_in_the_last_field_belongs_to_the_name(tmp_path: Path) -> None:
    rows, refused = read(log(tmp_path, JOB + "|a|b", JOB))
    assert (rows["name"].to_list(), len(refused)) == (["etl|a|b", "etl"], 0)
    barred, _ = read(log(tmp_path, JOB + "|a|", header=HEADER + "|"))
    assert barred["name"].to_list() == ["etl|a"]


def test_steps_are_no_runs_but_lend_their_peak_memory(tmp_path: Path) -> None:
    step = JOB.replace("7|", "7.batch|", 1).replace("||", "|2G|")
    rows, refused = read(
        log(tmp_path, JOB, step, step.replace("2G", "3G").replace("batch", "0"), JOB.replace("7|", "8|", 1))
    )
    assert refused.empty
    assert rows["run_id"].to_list() == ["7", "8"]
    assert rows["peak_memory_bytes"].to_list()[:1] == [3 * GIB]
    assert pd.isna(rows["peak_memory_bytes"].iloc[1])


def test_a_job_keeps_its_steps_wherever_blocks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []
    for job in range(8):
        lines.append(JOB.replace("7|", f"{job}|", 1))
        steps = [f"{job}.{step}|" for step in range(job % 4)]
        lines += [JOB.replace("7|", step, 1).replace("||", f"|{job + 1}G|") for step in steps]
    path = log(tmp_path, *lines)
    whole, _ = read(path)
    monkeypatch.setattr("tasks.intake.files.BLOCK_BYTES", 500)
    monkeypatch.setattr(slurm, "CHUNK_LINES", 3)
    chunks = list(READERS["slurm"].read(path, NEW_YORK))
    assert len(chunks) > 2
    pd.testing.assert_frame_equal(pd.concat([chunk.rows for chunk in chunks], ignore_index=True), whole)
    assert whole["peak_memory_bytes"].notna().sum() == 6


def test_tasks_of_arrays_and_components_are_runs_and_waiting_bundles_are_not(tmp_path: Path) -> None:
    ids = ["9_4", "9_5", "10+1", "9_[6-8%2]"]
    lines = [JOB.replace("7|", f"{job}|", 1) for job in ids[:3]]
    waiting = "9_[6-8%2]|2024-12-01T11:58:00|Unknown|Unknown|PENDING|00:00:00|||ada|etl"
    rows, refused = read(log(tmp_path, *lines, waiting, waiting.replace("9_[6-8%2]", "11")))
    assert refused.empty
    assert rows["run_id"].to_list() == ["9_4", "9_5", "10+1", "11"]
    assert rows["status"].to_list() == ["completed"] * 3 + ["pending"]


def test_the_raw_id_is_preferred_because_array_tasks_share_the_other(tmp_path: Path) -> None:
    rows, _ = read(log(tmp_path, JOB.replace("7|", "7_3|12|", 1), header=HEADER.replace("JobID|", "JobID|JobIDRaw|")))
    assert rows["run_id"].to_list() == ["12"]


def test_a_running_job_has_no_runtime_with_and_without_a_state(tmp_path: Path) -> None:
    running = JOB.replace("2024-12-01T12:10:00", "Unknown").replace("COMPLETED", "RUNNING")
    rows, _ = read(log(tmp_path, running))
    assert (rows["status"][0], rows["runtime_s"].isna()[0]) == ("running", True)
    stateless, _ = read(log(tmp_path, running.replace("RUNNING|", ""), header=HEADER.replace("State|", "")))
    assert (stateless["status"][0], stateless["runtime_s"].isna()[0]) == ("running", True)


def test_a_suspended_job_ran_for_its_elapsed_time_not_until_its_end(tmp_path: Path) -> None:
    rows, _ = read(log(tmp_path, JOB.replace("00:10:00|", "00:04:00|")))
    assert rows["runtime_s"].to_list() == [240]


@pytest.mark.parametrize("start", ["2024-12-01T12:10:00", "None", "Unknown"])
def test_a_job_cancelled_before_it_began_has_neither_start_nor_runtime(tmp_path: Path, start: str) -> None:
    cancelled = JOB.replace("COMPLETED|00:10:00", "CANCELLED by 7|00:00:00").replace("2024-12-01T12:00:00", start)
    row = read(log(tmp_path, cancelled))[0].iloc[0]  # an older sacct prints the time of the cancellation as the start
    assert row["status"] == "cancelled" and row[["started_at", "runtime_s", "wait_s"]].isna().all()
    assert row["ended_at"] == pd.Timestamp("2024-12-01 17:10:00")


def test_times_with_an_offset_and_epochs_need_no_time_zone(tmp_path: Path) -> None:
    rows, _ = read(log(tmp_path, JOB))
    dated = JOB.replace("|COMPLETED", "-0500|COMPLETED").replace(":00|2024", ":00-05:00|2024")
    epochs = JOB.replace(
        "2024-12-01T11:58:00|2024-12-01T12:00:00|2024-12-01T12:10:00", "1733072280|1733072400|1733073000"
    )
    for line in (dated, epochs):
        pd.testing.assert_frame_equal(read(log(tmp_path, line), ReadParams())[0], rows)


def test_blank_lines_and_headers_of_joined_exports_are_no_rows(tmp_path: Path) -> None:
    rows, refused = read(log(tmp_path, JOB, " ", HEADER, JOB.replace("7|", "8|", 1)))
    assert (rows["place"].to_list(), len(refused)) == ([2, 5], 0)


@pytest.mark.parametrize(
    ("head", "is_slurm"),
    [
        (HEADER, True),
        (HEADER.lower() + "|", True),
        (JOB, True),
        ("7|7|phillips|2016-12-22T07:15:12|Unknown|Unknown|PENDING|x", True),
        ("; Version: 2\n1 0 1 1 1 -1 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1", False),
        ("run_id,name,started_at,runtime_s\n1,etl,2024-12-01T12:00:00,5", False),
        ("id|when|what\n7|2024-12-01T12:00:00|walked the dog", False),
        ("| JobID | State |\n|-------|-------|\n| 7 | COMPLETED |", False),
        ("JobID|JobName\x00|State|Start", False),
        ("", False),
    ],
)
def test_slurm_is_told_from_other_text(head: str, is_slurm: bool) -> None:
    assert READERS["slurm"].sniff(head.encode(), "log.txt") is is_slurm


# The real log: 4,285 rows of sacct without a header


@pytest.fixture(scope="module")
def phillips() -> Path:
    path = Path(os.environ.get("WHORL_DATASETS", "-")) / "slurm" / "phillips_sacct.log"
    if not path.exists():
        pytest.skip("needs slurm/phillips_sacct.log of xdmod in the folder WHORL_DATASETS")
    return path


def test_the_real_log_is_read_whole(phillips: Path) -> None:
    rows, refused = read(str(phillips))
    assert (len(rows), len(refused)) == (4285, 0)
    assert rows["status"].value_counts().to_dict() == {
        "completed": 2324,
        "failed": 1717,
        "cancelled": 243,
        "timeout": 1,
    }
    assert rows["runtime_s"].isna().sum() == 239  # cancelled while they waited: their NodeList is "None assigned"
    first = rows.iloc[0]
    assert first["runtime_s"] == 10 * 86_400 + 13 * 3600 + 27 * 60 + 6
    assert first["ended_at"] == pd.Timestamp("2017-01-02 01:42:19")  # 20:42:19 in New York
    # the rows whose ReqMem is 2147486648Mn ask for 8 × 3000 MiB, as their ReqTRES says
    assert (rows["requested_memory_bytes"] == 8 * 3000 * 2**20).sum() == 4238
    assert READERS["slurm"].sniff(phillips.read_bytes()[: 64 * 1024], str(phillips))


def test_a_surplus_bar_is_refused_where_it_may_not_be_the_names(tmp_path: Path) -> None:
    header = "JobName|" + HEADER.removesuffix("|JobName")
    rows, refused = read(
        log(tmp_path, "a|b|" + JOB.removesuffix("|etl"), "etl|" + JOB.removesuffix("|etl"), header=header)
    )
    assert (rows["name"].to_list(), refused["place"].to_list()) == (["etl"], [2])
    assert refused["reason"].to_list() == ["11 fields instead of 10; a bar in a name? let JobName be the last field"]


@pytest.mark.parametrize(("ended", "told"), CENSORED.values(), ids=CENSORED)
def test_runs_that_were_ended_keep_their_runtime_and_their_limit(
    tmp_path: Path, ended: str, told: tuple[str, float]
) -> None:
    header = "JobID|Submit|Start|State|Elapsed|Timelimit"
    line = f"7|2024-12-01T11:58:00|2024-12-01T12:00:00|{ended}|01:00:00"
    rows, refused = read(log(tmp_path, line, header=header))
    assert rows[["status", "runtime_s", "requested_runtime_s"]].to_numpy().tolist() == [[*told, 3600.0]]
    assert refused.empty


def test_the_raw_time_limit_is_in_minutes(tmp_path: Path) -> None:
    rows, _ = read(log(tmp_path, f"{JOB}|90", header=f"{HEADER}|TimelimitRaw"))
    assert rows["requested_runtime_s"].to_list() == [5400.0]


@pytest.mark.parametrize(("header", "account"), [("Account|Group", "physics"), ("Group", "staff")])
def test_account_partition_and_quality_of_service_are_kept(tmp_path: Path, header: str, account: str) -> None:
    values = {"Account|Group": "physics|staff", "Group": "staff"}[header]
    rows, _ = read(log(tmp_path, f"{JOB}|night|long|{values}", header=f"{HEADER}|QOS|Partition|{header}"))
    assert rows[["account", "qos", "queue"]].to_numpy().tolist() == [[account, "night", "long"]]


def in_field(field: str, value: str) -> Callable[[list[str]], list[str]]:
    """Put a value into a field of the hundredth line."""
    column = ReadParams().sacct_fields.split(",").index(field)

    def mutated(lines: list[str]) -> list[str]:
        fields = lines[99].split("|")
        return [*lines[:99], "|".join([*fields[:column], value, *fields[column + 1 :]]), *lines[100:]]

    return mutated


def cut_off(lines: list[str]) -> list[str]:
    return [*lines[:99], lines[99][:150], *lines[100:]]


@pytest.mark.parametrize("time_format", ["%d.%m.%Y %H:%M:%S", "%a %d %b %H:%M:%S %Y"])
def test_times_of_another_format_are_one_error_that_says_how_to_export_them(tmp_path: Path, time_format: str) -> None:
    first = datetime(2016, 12, 22)
    times = [(first + timedelta(hours=i)).strftime(time_format) for i in range(30)]
    lines = ["User|JobName|JobID|State|Submit|Start|End|NCPUS|ElapsedRaw"]
    lines += [f"ada|etl|{i}|COMPLETED|{at}|{at}|{at}|4|60" for i, at in enumerate(times)]
    path = tmp_path / "sacct.log"
    path.write_text("\n".join([*lines, ""]))
    with pytest.raises(BadInput, match=r"Submit: none of its times can be read; expected .*SLURM_TIME_FORMAT=standard"):
        read(str(path))


BROKEN_LINES: list[tuple[Callable[[list[str]], list[str]], str]] = [
    (in_field("Start", "yesterday"), "Start 'yesterday' is not a time (YYYY-MM-DDTHH:MM:SS)"),
    (in_field("Submit", "2016-13-30T00:00:00"), "Submit '2016-13-30T00:00:00' is not a time"),
    (in_field("Submit", "2016-03-13T02:30:00"), "does not exist in America/New_York, where clocks were put forward"),
    (in_field("Elapsed", "25 min"), "Elapsed '25 min' is not a duration ([D-]HH:MM:SS)"),
    (in_field("State", "0:0"), "State '0:0' is not a job state"),
    (in_field("JobIDRaw", "x7"), "JobIDRaw 'x7' is not a job id"),
    (in_field("Cluster", "stewart"), "Cluster 'stewart' in a log of 'phillips', whose job ids may be the same"),
    (in_field("End", "2126-01-01T00:00:00"), "lies in the future"),
    (in_field("User", "a|b"), "Submit '330719' is not a time"),  # a bar that is not the name's shifts the fields
    (cut_off, "14 fields instead of 26"),
]


@pytest.mark.parametrize(("mutate", "reason"), BROKEN_LINES, ids=[reason[:30] for _, reason in BROKEN_LINES])
def test_a_broken_line_is_refused_alone(
    phillips: Path, tmp_path: Path, mutate: Callable[[list[str]], list[str]], reason: str
) -> None:
    lines = mutate(phillips.read_text().splitlines()[:300])
    path = tmp_path / "sacct.log"
    path.write_bytes("\n".join([*lines, ""]).encode("utf-8", "surrogateescape"))
    rows, refused = read(str(path))
    assert (len(rows), refused["place"].to_list()) == (299, [100])
    assert reason in refused["reason"].iloc[0]
    assert refused["raw"].iloc[0].startswith(lines[99][:20])


NO_ZONE, NO_ID = ReadParams(), NEW_YORK.model_copy(update={"sacct_fields": "Start,End"})
WRONG_FILES: dict[str, tuple[Mutation, ReadParams, str]] = {
    "no zone": (bytes, NO_ZONE, "Submit is local time without a time zone; expected the time zone of the"),
    "no zone, what to do": (bytes, NO_ZONE, "name it: --time-zone Europe/Berlin (or export with SLURM_TIME_FORMAT"),
    "columns missing": (lambda log: log.replace(b"|phillips|", b"|"), NEW_YORK, "lines of 25 fields, but read.sacct_"),
    "fewer in the header": (lambda _: b"JobID|Start|End|JobIDRaw|QOS\na|b\n", NEW_YORK, "lines of 2 fields, but its"),
    "no start": (lambda log: FIELDS.replace(b"Start|", b"") + b"\n" + log, NEW_YORK, "the header lacks Start"),
    "no end": (lambda _: b"JobID|Start|State\n", NEW_YORK, "lacks End or Elapsed or ElapsedRaw"),
    "no id in the setting": (bytes, NO_ID, "read.sacct_fields lacks JobIDRaw or JobID; list the fields that sacct "),
    "commas for bars": (lambda log: log.replace(b"|", b","), NEW_YORK, "no bars (|) between fields; expected output"),
    "blank lines": (lambda _: b"\n \n\n", NEW_YORK, "only blank lines; expected output of sacct --parsable2"),
}


@pytest.mark.parametrize(("mutate", "params", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_file_of_the_wrong_kind_is_one_clear_line(
    phillips: Path, tmp_path: Path, mutate: Mutation, params: ReadParams, message: str
) -> None:
    path = tmp_path / "sacct.log"
    path.write_bytes(mutate(phillips.read_bytes()))
    with pytest.raises(WhorlError) as told:
        read(str(path), params)
    assert message in str(told.value) and "\n" not in str(told.value)
    assert isinstance(told.value, BadSetting) or str(told.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (slurm.duration_s, "00:00:16", 16), (slurm.duration_s, "10-13:27:06", 10 * 86_400 + 13 * 3600 + 27 * 60 + 6),
        (slurm.duration_s, "01:02.345", 62.345),  # TotalCPU of a short job
        (slurm.duration_s, "2-00:01:02.5", 172_862.5), (slurm.duration_s, "UNLIMITED", nan),
        (slurm.duration_s, "Partition_Limit", nan), (slurm.duration_s, "INVALID", nan), (slurm.count, "64", 64),
        (slurm.count, "", nan), (slurm.nodes, "1.50K", 1536), (slurm.memory_bytes, "123456K", 123_456 * KIB),
        (slurm.memory_bytes, "1.50G", 1.5 * GIB), (slurm.memory_bytes, "0", 0), (JOB_MEMORY, "64G", 64 * GIB),
        (JOB_MEMORY, "4000", 4000 * MIB), (JOB_MEMORY, "4000Mc", nan), (NODE_MEMORY, "31000Mn", 31_000 * MIB),
        (NODE_MEMORY, "0n", nan),  # all that the node has
        (CPU_MEMORY, "4000Mc", 4000 * MIB),
        (CPU_MEMORY, "2147486648Mn", 3000 * MIB),  # 2^31 + 3000: the flag bit "per CPU" printed along
        (NODE_MEMORY, "2147486648Mn", nan),
        (NODE_MEMORY, "4294967294Mn", nan),  # 0xfffffffe: not set
        (NODE_MEMORY, "2.00Pn", nan),  # the flag bit, rounded: the amount is lost
        (slurm.tres_cpus, "billing=12,cpu=12,gres/gpu=2,mem=31000M,node=1", 12),
        (slurm.tres_memory_bytes, "cpu=64,mem=62.50G,node=8", 64_000 * MIB),
        (slurm.tres_memory_bytes, "cpu=8,node=1", nan), (slurm.tres_cpus, "", nan),
    ],
)  # fmt: skip
def test_a_field_says(parse: Callable[[str], float], text: str, value: float) -> None:
    assert parse(text) == pytest.approx(value, nan_ok=True)
    assert isnan(parse(text)) == isnan(value)


STATES = {
    "completed": ["COMPLETED"],
    "failed": ["FAILED", "NODE_FAIL", "OUT_OF_MEMORY"],
    "cancelled": ["CANCELLED by 380693", "CANCELLED+", "PREEMPTED"],
    "timeout": ["TIMEOUT", "DEADLINE"],
    "running": ["RUNNING", "SUSPENDED"],
    "pending": ["PENDING", "REQUEUED"],
    "unknown": ["EXPEDITING", ""],  # of a Slurm to come
}


@pytest.mark.parametrize(("status", "states"), STATES.items())
def test_a_state_has_a_status(status: str, states: list[str]) -> None:
    assert {slurm.status(state, {}) for state in states} == {status}


@pytest.mark.parametrize(
    ("parse", "text", "objection"),
    [
        (slurm.duration_s, "25 min", "is not a duration"),
        (slurm.duration_s, "-00:01:00", "is not a duration"),
        (slurm.count, "-8", "is not a whole number"),
        (slurm.count, "٣", "is not a whole number"),
        (slurm.nodes, "many", "is not a number of nodes"),
        (slurm.memory_bytes, "4000X", "is not an amount of memory"),
        (NODE_MEMORY, "1e9Mn", "is not an amount of memory"),
        (slurm.tres_cpus, "cpu", "is not a list of resources"),
        (slurm.tres_cpus, "cpu=all", "has no number for cpu="),
        (slurm.tres_memory_bytes, "mem=all", "has no amount for mem="),
        (partial(slurm.status, mapped={}), "0:0", "is not a job state"),
    ],
)
def test_nonsense_is_refused_with_what_was_expected(parse: Callable[[str], object], text: str, objection: str) -> None:
    with pytest.raises(ValueError, match=objection):
        parse(text)
