"""Accounting of PBS, Torque and Grid Engine: lines drawn by the published field lists, values worked out by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.intake import find_logs
from tasks.jobs.params import ReadParams
from tasks.jobs.readers import READERS, detect
from tasks.params import ReadLimits

START = 1_767_225_600  # 2026-01-01 00:00:00 UTC
TORQUE = (
    "01/01/2026 01:15:00;{kind};{id}.head.example.org;user=ada group=lab account=phys jobname=relax queue=short "
    "ctime=1767225540 qtime=1767225550 etime=1767225550 start=1767225600 owner=ada@login "
    "exec_host=n1/0-2,7+n2/5 Resource_List.nodes=2:ppn=4 Resource_List.ncpus=1 Resource_List.pmem=2gb "
    "Resource_List.walltime=01:00:00 session=7 end={end} Exit_status={code} resources_used.cput=3600 "
    "resources_used.mem=2048kb resources_used.vmem=4096kb resources_used.walltime={used}\n"
)
PRO = (
    '01/01/2026 01:15:00;E;{id}.pbs1;user=bob group=lab project=_pbs_project_default jobname="my run" queue=workq '
    "ctime=1767225540 qtime=1767225540 etime=1767225540 start=1767225600 exec_host=n1/0*8+n2/1*4 "
    "exec_vnode=(n1:ncpus=8)+(n2:ncpus=4) Resource_List.mem=4gb Resource_List.ncpus=20 "
    "Resource_List.select=2:ncpus=8:mem=1gb+1:ncpus=4 Resource_List.walltime=00:10:00 end=1767226200 "
    "Exit_status={code} resources_used.cpupercent=50 resources_used.cput=100:00:01 resources_used.mem=1048576kb "
    "resources_used.ncpus=12 resources_used.walltime=00:09:58 run_count=1\n"
)


def torque(
    run_id: str = "7", kind: str = "E", *, end: object = 1_767_226_500, code: object = 0, used: str = "00:15:00"
) -> str:
    return TORQUE.format(id=run_id, kind=kind, end=end, code=code, used=used)


def accounted(**changes: object) -> str:
    """A line of Grid Engine's file accounting."""
    at: dict[str, Any] = {
        "qname": "all.q", "hostname": "n1", "group": "lab", "owner": "ada", "job_name": "relax", "job_number": 7,
        "account": "sge", "priority": 0, "submission_time": START - 60, "start_time": START, "end_time": START + 900,
        "failed": 0, "exit_status": 0, "ru_wallclock": 900, "ru_utime": 1.5, "ru_stime": 0.5, "ru_maxrss": 5160,
        **{f"zero{n}": 0 for n in range(14)}, "project": "NONE", "department": "defaultdepartment",
        "granted_pe": "NONE", "slots": 4, "task_number": 0, "cpu": 3500.25, "mem": 1.5, "io": 0.25,
        "category": "-U users -l h_rt=3600,h_vmem=2G -pe smp 4", "iow": 0.0, "pe_taskid": "NONE",
        "maxvmem": 1048576.0, "arid": 0, "ar_submission_time": 0,
    }  # fmt: skip
    assert len(at) == 45 and set(changes) <= set(at)
    return ":".join(map(str, (at | changes).values())) + "\n"


QACCT = """==============================================================
qname        all.q
hostname     n1
group        lab
owner        ada
project      NONE
department   defaultdepartment
jobname      relax
jobnumber    {number}
taskid       {task}
account      sge
priority     0
qsub_time    Thu Jan  1 00:59:00 2026
start_time   {start}
end_time     Thu Jan  1 01:15:00 2026
granted_pe   NONE
slots        4
failed       {failed}
exit_status  {code}
ru_wallclock 900s
ru_maxrss    5.160KB
cpu          3500.250s
mem          0.000GBs
maxvmem      1.500MB
arid         undefined
category     -l h_rt=900,h_vmem=2G
"""


def qacct(
    *,
    number: object = 7,
    task: object = "undefined",
    start: str = "Thu Jan  1 01:00:00 2026",
    failed: str = "0",
    code: str = "0",
) -> str:
    return QACCT.format(number=number, task=task, start=start, failed=failed, code=code)


def read(path: Path, reader: str, text: str, **params: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    path.write_text(text)
    assert detect(str(path), ReadLimits()).name == reader
    chunks = list(READERS[reader].read(str(path), ReadParams(**params)))
    rows, refused = (pd.concat([getattr(chunk, name) for chunk in chunks]) for name in ("rows", "refused"))
    return rows.reset_index(drop=True), refused.reset_index(drop=True)


def statuses(rows: pd.DataFrame) -> list[str]:
    return rows.set_index("run_id")["status"].to_list()


def only(rows: pd.DataFrame, names: Sequence[str]) -> list[Any]:
    assert len(rows) == 1
    return [rows[name].iloc[0] for name in names]


TEXTS = ("run_id", "name", "user_name", "queue", "account", "status")
TIMES = ("submitted_at", "started_at", "ended_at")
AMOUNTS = ("wait_s", "runtime_s", "requested_runtime_s", "requested_cpus", "used_cpus", "cpu_s")
MEMORY = ("requested_memory_bytes", "peak_memory_bytes")
WHEN = [pd.Timestamp("2025-12-31 23:59:00"), pd.Timestamp("2026-01-01 00:00:00")]


def test_a_run_of_torque_has_what_its_record_says(tmp_path: Path) -> None:
    rows, refused = read(tmp_path / "20260101", "pbs", torque())
    assert only(rows, TEXTS) == ["7", "relax", "ada", "short", "phys", "completed"]
    assert only(rows, TIMES) == [*WHEN, pd.Timestamp("2026-01-01 00:15:00")]
    assert only(rows, AMOUNTS) == [60, 900, 3600, 8, 5, 3600]  # 2 nodes of 4; slots 0, 1, 2, 7 and 5
    assert only(rows, MEMORY) == [8 * 2 * 2**30, 2 * 2**20]  # 2 GiB for each of 8 processes
    assert refused.empty


def test_a_run_of_pbs_professional_has_what_its_record_says(tmp_path: Path) -> None:
    rows, _ = read(tmp_path / "20260101", "pbs", PRO.format(id="9", code=0))
    assert only(rows, TEXTS) == ["9", "my run", "bob", "workq", "lab", "completed"]
    assert only(rows, AMOUNTS) == [60, 598, 600, 2 * 8 + 4, 12, 100 * 3600 + 1]
    assert only(rows, MEMORY) == [4 * 2**30, 2**30]


@pytest.mark.parametrize(
    ("code", "used", "status"),
    [
        (0, "01:00:07", "completed"),
        (1, "01:00:07", "failed"),  # its own fault, whenever that comes
        (271, "01:00:07", "timeout"),  # SIGTERM at the limit
        (-11, "01:00:00", "timeout"),
        (271, "00:59:00", "cancelled"),  # qdel
        (143, "00:59:00", "cancelled"),
        (265, "00:59:00", "failed"),  # SIGKILL
        (-10, "00:59:00", "failed"),  # memory
        (-29, "00:59:59", "timeout"),  # PBS Professional: KILL_WALLTIME
    ],
)
def test_how_a_pbs_run_ended_goes_by_its_status_and_its_limit(
    tmp_path: Path, code: int, used: str, status: str
) -> None:
    rows, _ = read(tmp_path / "log", "pbs", torque(code=code, used=used))
    assert statuses(rows) == [status]


def test_a_run_that_was_suspended_did_not_run_then_and_none_ran_longer_than_it_was_there(tmp_path: Path) -> None:
    rows, _ = read(tmp_path / "log", "pbs", torque("1", used="00:10:00") + torque("2", used="02:00:00"))
    assert rows["runtime_s"].to_list() == [600, 900]  # the second was run before, and PBS adds that up


def test_a_status_of_a_site_is_mapped(tmp_path: Path) -> None:
    rows, _ = read(tmp_path / "log", "pbs", torque(code=99) + torque("8", code=1), statuses={"99": "completed"})
    assert statuses(rows) == ["completed", "failed"]


def test_what_began_and_did_not_end_goes_on_unless_it_was_aborted_or_requeued(tmp_path: Path) -> None:
    begun = "".join(torque(str(n), "S", end="", code="", used="") for n in range(1, 6))
    rest = torque("2") + "".join(
        f"01/01/2026 02:00:00;{kind};{n}.head.example.org;x=1\n" for n, kind in ((3, "A"), (4, "R"))
    )
    rows, refused = read(
        tmp_path / "log", "pbs", begun + rest + "01/01/2026 02:00:00;Q;9.head.example.org;queue=short\n"
    )
    assert rows.set_index("run_id")["status"].to_dict() == {"2": "completed", "1": "running", "5": "running"}
    assert rows["runtime_s"].isna().to_list() == [False, True, True]
    assert refused.empty


def test_tasks_of_an_array_are_runs_of_one_job_and_the_array_is_none(tmp_path: Path) -> None:
    text = "".join(torque(f"7[{n}]").replace("jobname=relax", f"jobname=relax-{n}") for n in (1, 12)) + torque("7[]")
    rows, refused = read(tmp_path / "log", "pbs", text)
    assert rows["run_id"].to_list() == ["7[1]", "7[12]"] and rows["name"].to_list() == ["relax", "relax"]
    assert refused.empty


@pytest.mark.parametrize(
    ("asked", "cpus"),
    [("16:myrinet", 16), ("n1:ppn=2+n2:ppn=3", 5), ("4", 4), ("n7", 1), ("1:ppn=8:gpus=2+2", 10)],
)
def test_the_processors_of_nodes_are_counted_by_chunk(tmp_path: Path, asked: str, cpus: int) -> None:
    rows, _ = read(tmp_path / "log", "pbs", torque().replace("2:ppn=4", asked))
    assert rows["requested_cpus"].to_list() == [cpus]


PBS_FAULTS = {
    "01/01/2026 01:15:00;E": "no record of PBS; expected date;letter;id;key=value …",
    torque().replace("=3600 ", "=soon "): "resources_used.cput 'soon' is not a time",
    torque().replace("2048kb", "2 kb,"): None,
    torque().replace("2048kb", "much"): "resources_used.mem 'much' is not an amount of memory",
    torque(code="ok"): "Exit_status 'ok' is not a number",
    torque(end="late"): "ended_at is no time",
    torque(end=START - 1, used=""): "negative runtime; expected 0 s or more",
    torque()
    .replace("start=", "s=")
    .replace(" end=", " e=")
    .replace("ctime=", "c=")
    .replace("qtime=", "q="): "neither submission nor start time",
}


def test_memory_that_is_written_with_an_exponent_refuses_no_run(tmp_path: Path) -> None:
    rows, refused = read(tmp_path / "log", "pbs", torque().replace("2048kb", "1.5e+08"))
    assert (rows["peak_memory_bytes"].to_list(), len(refused)) == ([1.5e8], 0)


@pytest.mark.parametrize(("line", "reason"), PBS_FAULTS.items())
def test_a_wrong_record_is_refused_with_its_line_and_the_others_are_read(
    tmp_path: Path, line: str, reason: str | None
) -> None:
    rows, refused = read(tmp_path / "log", "pbs", torque("1") + torque("2") + line.strip() + "\n" + torque("3"))
    assert {"1", "2", "3"} <= set(rows["run_id"])
    assert reason is None or (refused["place"].to_list() == [3] and reason in refused["reason"].iloc[0])


def test_a_folder_of_days_is_read_without_endings(tmp_path: Path) -> None:
    days = tmp_path / "accounting"
    days.mkdir()
    for day in ("20260101", "20260102.gz", "README"):
        (days / day).write_text("x")
    assert [Path(path).name for path in find_logs([str(tmp_path)])] == ["20260101", "20260102.gz"]


def test_a_line_of_grid_engine_has_what_accounting_5_says(tmp_path: Path) -> None:
    rows, refused = read(tmp_path / "accounting", "grid-engine", "# Version: 6.2u5\n" + accounted())
    assert only(rows, TEXTS) == ["7", "relax", "ada", "all.q", "lab", "completed"]
    assert only(rows, TIMES) == [*WHEN, pd.Timestamp("2026-01-01 00:15:00")]
    assert only(rows, AMOUNTS) == [60, 900, 3600, 4, 4, 3500.25]
    assert only(rows, MEMORY) == [4 * 2 * 2**30, 2**20]
    assert refused.empty


def test_a_run_of_qacct_is_read_in_the_time_zone_of_its_clock(tmp_path: Path) -> None:
    rows, refused = read(tmp_path / "qacct.txt", "grid-engine", qacct(task=3) * 2, time_zone="Europe/Berlin")
    first = rows.head(1)
    assert only(first, TEXTS) == ["7.3", "relax", "ada", "all.q", "lab", "completed"]
    assert only(first, TIMES) == [*WHEN, pd.Timestamp("2026-01-01 00:15:00")]
    assert only(first, AMOUNTS) == [60, 900, 900, 4, 4, 3500.25]
    assert only(first, MEMORY) == [4 * 2 * 2**30, 1.5 * 2**20]
    assert rows["place"].to_list() == [1, 27] and refused.empty


def test_qacct_of_univa_writes_times_and_signals_in_another_way(tmp_path: Path) -> None:
    text = qacct(start="01/01/2026 01:00:00.250", failed="100 : assumedly after job", code="137 (Killed)")
    rows, _ = read(tmp_path / "q", "grid-engine", text, time_zone="Europe/Berlin")
    assert only(rows, ("started_at", "status")) == [WHEN[1], "timeout"]


def test_the_totals_that_end_qacct_are_no_run(tmp_path: Path) -> None:
    totals = "Total System Usage\n    WALLCLOCK  UTIME\n" + "=" * 80 + "\n        900    1.500\n"
    rows, refused = read(tmp_path / "q", "grid-engine", qacct() + totals, time_zone="UTC")
    assert len(rows) == 1 and refused.empty
    rows, refused = read(tmp_path / "q", "grid-engine", qacct() + qacct(number="NONE"), time_zone="UTC")
    assert (len(rows), refused["reason"].to_list()) == (1, ["no jobnumber"])


def test_local_times_without_a_zone_are_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"submitted_at is local time without a time zone; .*--time-zone Europe/Berlin"):
        read(tmp_path / "q", "grid-engine", qacct())


def test_milliseconds_of_univa_are_told_by_their_size(tmp_path: Path) -> None:
    at = {
        name: (START + after) * 1000 for name, after in (("submission_time", -60), ("start_time", 0), ("end_time", 900))
    }
    rows, _ = read(tmp_path / "log", "grid-engine", accounted(**at))
    assert only(rows, ("wait_s", "runtime_s")) == [60, 900]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"exit_status": 2}, "failed"),
        ({"failed": 100, "exit_status": 137}, "failed"),
        ({"failed": 100, "exit_status": 137, "ru_wallclock": 3600}, "timeout"),
        ({"failed": 37, "exit_status": 137, "ru_wallclock": 3601}, "timeout"),
        ({"failed": 37, "exit_status": 137, "category": "-l h_vmem=1G"}, "failed"),  # without a limit it was memory
        ({"exit_status": 138, "ru_wallclock": 60, "category": "-l s_rt=00-0"}, None),  # no time
        ({"exit_status": 138, "ru_wallclock": 60, "category": "-l s_rt=60"}, "timeout"),
        ({"exit_status": 2, "ru_wallclock": 3600}, "failed"),
        ({"failed": 25, "exit_status": 0}, "cancelled"),  # it runs again
        ({"failed": 1, "start_time": 0, "end_time": 0}, "cancelled"),  # it never began
    ],
)
def test_how_a_grid_engine_run_ended_goes_by_its_codes_and_its_limit(
    tmp_path: Path, changes: dict[str, object], status: str | None
) -> None:
    rows, refused = read(tmp_path / "log", "grid-engine", accounted(**changes) + accounted(job_number=8))
    assert statuses(rows) == ([status] if status else []) + ["completed"]
    assert len(refused) == (status is None)


def test_parts_of_a_parallel_job_and_jobs_without_any_time_are_no_runs(tmp_path: Path) -> None:
    never = dict.fromkeys(("submission_time", "start_time", "end_time"), 0)
    text = accounted(pe_taskid="1.n2") + accounted(failed=9, **never) + accounted(task_number=5)
    rows, refused = read(tmp_path / "log", "grid-engine", text)
    assert rows["run_id"].to_list() == ["7.5"] and refused.empty


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("all.q:n1:lab:ada\n", "4 fields between colons; expected those of accounting(5)"),
        (accounted(job_name="a:b"), "no number where accounting(5) has one"),
        (accounted(slots="four"), "slots 'four' is not a number"),
        (accounted(end_time=START - 100), "negative runtime"),
    ],
)
def test_a_wrong_line_of_grid_engine_is_refused_and_the_others_are_read(tmp_path: Path, line: str, reason: str) -> None:
    rows, refused = read(tmp_path / "log", "grid-engine", accounted(job_number=1) * 2 + line + accounted(job_number=3))
    assert set(rows["run_id"]) == {"1", "3"}
    assert refused["place"].to_list() == [3] and reason in refused["reason"].iloc[0]


def test_a_colon_in_what_was_asked_for_moves_no_field(tmp_path: Path) -> None:
    rows, _ = read(tmp_path / "log", "grid-engine", accounted(category="-l h_rt=01:00:00,h_vmem=512M"))
    assert only(rows, ("requested_runtime_s", *MEMORY)) == [3600, 4 * 512 * 2**20, 2**20]
