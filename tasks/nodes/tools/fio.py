"""fio: JSON of 2.x and 3.x (--output-format=json or json+, behind any lines of text), or text of 2.x and 3.x.

JSON: a direction without I/O is all zeros there: it is missing. So are latencies that nothing was measured for (slat of
synchronous engines) and minima and maxima without samples. 2.x has times in us where 3.x has ns, and io_bytes in KiB,
where io_kbytes does not exist. bw_min to bw_dev are in KiB/s while bw_bytes is in B/s.

Text: percentiles may stand in several lines that begin with |, or, where a log was unwrapped, in one. fio writes 10.1k
for 10,100. In 2.x KB is 1,024 bytes and becomes KiB. Percentiles of other times than clat are passed over.

Jobs: each job of a run is a log of its own. Copies of a job (numjobs) are one, as with --group_reporting: what all of
them did over the longest run time, means of latencies weighed by requests; percentiles and deviations of all of them
nobody can tell. Of a run that told how far it was (--status-interval) the last results count, which are of all of it.

Start: newer versions say when a job began (job_start); of others it is the time at which the results were written, less
the run time of the job and of the groups that ran after it. JSON has that time since 1970, text and the first JSON by
the machine's clock alone.

Settings: text says direction, block size, engine and depth of each job before the results, as fio understood it; JSON
lists the options that were given, so that what is not among them is fio's default. Names of files and places are no
part of the work and are left out. A job among several is other work than one alone: its name, and which jobs ran beside
it, are settings, too."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

from tasks.nodes.tools.parsing import (
    CUT,
    DURATION,
    NUMBER,
    VALUE_SHOWN,
    Document,
    Log,
    LogLine,
    MetricFacts,
    Parser,
    at_path,
    checked,
    documents_in,
    facts_of,
    in_binary,
    looks_like_json,
    mapping,
    unix_time,
    wall_clock,
)

TOOL = "fio"
DIRECTIONS = ("read", "write")
RUNTIMES = tuple(f"{way}_runtime" for way in DIRECTIONS)
PERCENTILES = (1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
NAMES = {percentile: f"{percentile:g}".replace(".", "_").rjust(2, "0") + "p" for percentile in PERCENTILES}
IN_JSON = {f"{percentile:.6f}" for percentile in PERCENTILES} | {"0.00"}  # with which 2.x fills its list up
LATENCIES = {
    "slat": "from the request to its submission",
    "clat": "from submission to completion",
    "lat": "from the request to completion",
}
MOMENTS = {"min": "min", "max": "max", "avg": "mean", "stdev": "stddev"}  # ours and of the text: of the JSON
SAMPLED = {"bw": {**MOMENTS, "stdev": "dev"}, "iops": MOMENTS}
# of reads or writes, with the paths of the JSON below their block: of 3.x, then of 2.x
TOTALS = """
    io_size | + B per {way}_runtime | io_bytes=B; io_kbytes=KiB | bytes of all {way}s
    bw | +! B/s | bw_bytes=B/s; bw=KiB/s | bytes of {way}s a second over the run
    iops | +! 1/s | iops=iops | {way}s a second over the run
    runtime | = s | runtime=ms | time that {way}s ran
    total_ios | + 1 per {way}_runtime | total_ios= | {way}s issued
    short_ios | - 1 per {way}_runtime | short_ios= | {way}s that moved less than asked for
    dropped_ios | - 1 per {way}_runtime | drop_ios= | {way}s that were dropped
    """
LATENCY_OF = "{kind}_{moment} | -{headline} s | {kind}_ns/{key}=ns; {kind}/{key}=us | {moment} time of a {way} {span}\n"
SHARE_OF = "clat_{name} | - s | {places} | {percentile:g} % of the {way}s completed within this time from submission\n"
SAMPLED_OF = """
    {kind}_min | + {unit} | {kind}_min={printed} | least {of} in an interval of half a second
    {kind}_max | + {unit} | {kind}_max={printed} | most {of} in an interval of half a second
    {kind}_avg | + {unit} | {kind}_mean={printed} | mean {of} over these intervals
    {kind}_stdev | - {unit} | {kind}_{deviation}={printed} | standard deviation of {of} over these intervals
    {kind}_samples | = 1 per {way}_runtime | {kind}_samples= | how many such intervals there were
    """
SHARE_OF_GROUP = "bw_per | = % ~0.01 | bw_agg=% | share of the bytes of all jobs in the group\n"


def _direction(way: str) -> dict[str, MetricFacts]:
    lines = [TOTALS.format(way=way)]
    for kind, span in LATENCIES.items():
        for moment, key in MOMENTS.items():
            headline = "!" if moment == "avg" and kind != "slat" else ""  # that one is the processor's
            lines.append(LATENCY_OF.format(kind=kind, moment=moment, headline=headline, key=key, way=way, span=span))
    for percentile, name in NAMES.items():
        places = f"clat_ns/percentile/{percentile:.6f}=ns; clat/percentile/{percentile:.6f}=us"
        lines.append(SHARE_OF.format(name=name, places=places, percentile=percentile, way=way))
    for kind, unit, printed, of in (
        ("bw", "B/s", "KiB/s", "bytes a second"),
        ("iops", "1/s", "iops", "requests a second"),
    ):
        deviation = SAMPLED[kind]["stdev"]
        lines.append(SAMPLED_OF.format(kind=kind, unit=unit, printed=printed, of=of, deviation=deviation, way=way))
        lines.append(SHARE_OF_GROUP if kind == "bw" else "")
    return facts_of("disk", "".join(lines))


OF_DIRECTION = {way: _direction(way) for way in DIRECTIONS}
OF_JOB = facts_of(  # with the paths of the JSON below the job
    "disk",
    f"""
    cpu_usr | = % | usr_cpu=% | processor use of the job in user mode
    cpu_sys | = % | sys_cpu=% | processor use of the job in kernel mode
    cpu_ctx | = 1 per {DURATION} | ctx= | context switches of the job
    cpu_majf | = 1 per {DURATION} | majf= | page faults of the job that needed the disk
    cpu_minf | = 1 per {DURATION} | minf= | page faults of the job that did not
    """,
)
OF_ALL = facts_of(
    "disk",
    """
    number_of_processes | = 1 | | setting: processes or threads
    disk_util | = % ~0.01 | disk_util/0/util=% | share of the time that the (first) disk was busy
    """,
)
METRICS: dict[str, MetricFacts] = {
    "number_of_processes": OF_ALL["number_of_processes"],
    **{f"{way}_{name}": facts for way, table in OF_DIRECTION.items() for name, facts in table.items()},
    **OF_JOB,
    "disk_util": OF_ALL["disk_util"],
}

VERSION = re.compile(r"^fio[- ]([0-9][0-9A-Za-z.\-]*)\s*$")
DESCRIBED = re.compile(
    r"^(?P<name>\S.*?): \(g=(?P<group>\d+)\): rw=(?P<rw>[a-z]+), (?:bs|bsrange)=(?P<bs>.*?), "
    r"ioengine=(?P<ioengine>[^,\s]+), iodepth=(?P<iodepth>\d+)"
)
JOB = re.compile(
    r"^(?P<name>\S.*?): \(groupid=(?P<group>\d+), jobs=(?P<jobs>\d+)\): err=\s*(?P<error>\d+)"
    r"(?:: pid=(?P<pid>\d+): (?P<at>.*))?"
)
ERRORS = re.compile(r"^fio: (?!file hash not empty)|^\S+: (you need to specify|No I/O performed by)|^Bad option")
SIGNS = re.compile(
    rf'{VERSION.pattern}|^\S.*: \(g=\d+\): rw=|{JOB.pattern}|"fio version"\s*:|^fio: ', re.MULTILINE
)  # fmt: skip
STARTING = re.compile(r"^Starting [0-9]")
STARTED = re.compile(r"\b([0-9]{1,9}) (?:process|thread)")
RUN_STATUS = re.compile(r"^Run status group")
DISKS = re.compile(r"^Disk stats")
UTIL = re.compile(rf"util=({NUMBER})%")
DIRECTION = re.compile(r"^\s+(read|write|trim)\s*: (.*)$")
LATENCY = re.compile(r"^\s+(slat|clat|lat) \(([a-z]+)\)\s*: (min=.*)$")
PERCENTILES_OF = re.compile(r"^\s+([a-z]+) percentiles \(([a-z]+)\)\s*:")
PERCENTILE = re.compile(r"(?<![0-9.,])([0-9]{1,3}(?:[.,][0-9]{1,6})?)th=\[\s*([^\]]*?)\s*\]")  # 99,95th elsewhere
SAMPLES = re.compile(r"^\s+(?:(bw) \(\s*([KMGT]?i?B)\s*/s\)|(iops))\s*: (.*)$")
SYNC = re.compile(r"^\s+fsync/fdatasync")
CPU = re.compile(r"^\s+cpu\s*: (.*)$")
ISSUED = re.compile(r"^\s+issued(?: rwts?)?\s*: (.*)$")
PAIR = re.compile(r"\b([A-Za-z]+)=\s*(\S+?),?(?=\s|$)")  # a comma inside is a decimal point of another locale
AMOUNT = re.compile(rf"({NUMBER})([kKMGTP]?i?B)(?:/s)?")
COUNT = re.compile(rf"({NUMBER})([kKMGTP]?)%?")
SIZE_AND_TIME = re.compile(r"\(([^()/]*)/(-?[0-9][^()]*?)([a-z]+)\)")
OLD_TIME = re.compile(r"(.*?)([a-z]+)")
WHOLE = re.compile(r"(util=[0-9.]+%|msec)\s*$")
ISSUES = {"total": "total_ios", "short": "short_ios", "dropped": "dropped_ios", "drop": "dropped_ios"}
NUMBER_OF_JOBS = re.compile(r"[0-9]{1,9}")
OPTIONS = {  # setting: the options of which the first counts, and what fio does without them
    "rw": (("rw", "readwrite"), "read"),
    "bs": (("bs", "blocksize", "bsrange", "blocksize_range", "bssplit"), "4k"),
    "ioengine": (("ioengine",), "psync"),
    "iodepth": (("iodepth",), "1"),
}
FURTHER_OPTIONS = (
    "direct", "buffered", "sync", "fsync", "fdatasync", "end_fsync", "rwmixread", "rwmixwrite", "rate", "rate_iops",
    "thinktime", "size", "filesize", "io_size", "number_ios", "runtime", "loops",
)  # fmt: skip
UNSET = "0"  # of these: what fio takes for not given
NOT_BEGUN = "0"  # the process of a job that waits for others
MILLI = 1_000
RISING = [f"{way}/{total}" for way in DIRECTIONS for total in ("total_ios", "io_bytes", "io_kbytes")]
IDLE_S = 3.0  # of a run that goes on: between its jobs, and while it writes
SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]+)?)([kmgt]?)(?:i?b)?", re.IGNORECASE)
POWERS, BINARY = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}, 1_024


def _read(log: Log) -> None:
    if looks_like_json(log.text):
        _split_formats(log)
    if looks_like_json(log.text):
        document = log.document(lambda content: bool({"jobs", "fio version"} & mapping(content).keys()), _goes_on)
        log.fault_lines(log.lines, ERRORS, is_failure=False)  # its job says whether it failed
        if document:
            _read_json(log, document)
        return
    _split(log)
    log.fault_lines(log.lines, ERRORS, is_failure=False)
    log.version = next((match[1] for line in log.lines if (match := VERSION.match(line.text))), "")
    if log.version or any(JOB.match(line.text) for line in log.lines):
        _read_text(log)


def _split(log: Log) -> None:
    """Behind results a further run begins with what describes its jobs, with the version, or, behind the status of
    their groups, with a job or process that is not among them."""
    heads, results, has_status = [log.place], set[tuple[str, ...]](), False
    for line in log.lines:
        job = JOB.match(line.text)
        key = job.group("group", "name", "pid") if job else ()
        is_other = has_status and key and key not in results and not any(pid == NOT_BEGUN for *_, pid in results)
        if results and (is_other or DESCRIBED.match(line.text) or VERSION.match(line.text)):
            heads.append(line.place)
            results, has_status = set(), False
        results |= {key} if key else set()
        has_status |= bool(results and RUN_STATUS.match(line.text))
    log.split(heads)


def _split_formats(log: Log) -> None:
    """A run that is told in JSON ends where another is described; one that is told as text, where JSON begins.

    Results as text behind JSON, without a description, are of the same run (--output-format=normal,json)."""
    lines_before, until = partial(log.text.count, "\n", 0), 0
    ends = {log.place + lines_before(start): log.place + lines_before(end) for start, end, _ in documents_in(log.text)}
    heads, is_told, is_json = [log.place], False, False
    for line in log.lines:
        if line.place in ends:
            heads += [line.place] if is_told and not is_json else []
            is_told, is_json, until = True, True, ends[line.place]
        elif line.place <= until:
            continue
        elif is_json and (DESCRIBED.match(line.text) or VERSION.match(line.text)):
            heads.append(line.place)
            is_told = is_json = False
        else:
            is_told |= bool(JOB.match(line.text))
    log.split(heads)


def _goes_on(before: object, later: object) -> bool:
    """Whether JSON is of the same run as JSON before it: of the same jobs, which ran on all of the time between."""
    runs = [mapping(content) for content in (before, later)]
    jobs = [[mapping(job) for job in listed] if isinstance(listed := run.get("jobs"), list) else [] for run in runs]
    written = [unix_time(run.get("timestamp_ms"), MILLI) or unix_time(run.get("timestamp")) for run in runs]
    is_same = len(jobs[0]) == len(jobs[1]) and runs[0].get("global options") == runs[1].get("global options")
    if not (is_same and all(map(_is_later, *jobs)) and written[0] and written[1]):
        return False
    passed_s = (written[1] - written[0]).total_seconds()
    ran_s = [_ran_s(listed) for listed in jobs]
    gained_s = ran_s[1] - ran_s[0]
    return not ran_s[0] or (0 <= passed_s <= 2 * gained_s and abs(passed_s - gained_s) <= IDLE_S)


def _is_later(before: Mapping[str, object], job: Mapping[str, object]) -> bool:
    """Whether a job can be one that was told before: called alike, begun at the same time, with no total that fell."""
    is_same = all(before.get(name) == job.get(name) for name in ("jobname", "groupid", "job options"))
    starts = [start for start in (before.get("job_start"), job.get("job_start")) if start]  # 0: it has not begun
    done = [[checked(at_path(one, total, 0)) for total in RISING] for one in (before, job)]
    has_fallen = any(isinstance(was, str) or isinstance(now, str) or now < was for was, now in zip(*done, strict=True))
    return is_same and starts[:1] == starts[-1:] and not before.get("error") and not has_fallen


def _ran_s(jobs: Sequence[Mapping[str, object]]) -> float:
    """How long jobs have run: the longest of each group, one group after the other."""
    longest: dict[str, float] = {}
    for job in jobs:
        for way in DIRECTIONS:
            time_ms, group = checked(at_path(job, f"{way}/runtime", 0)), str(job.get("groupid"))
            longest[group] = max(longest.get(group, 0), 0 if isinstance(time_ms, str) else time_ms / MILLI)
    return sum(longest.values())


@dataclass(frozen=True)
class Copy:
    """What was told of one process of a job, or of all of them. told: its JSON, or its lines."""

    group: str
    name: str
    place: int
    told: Any
    path: str = ""


Part = tuple[Log, list[Copy]]


def _parts(log: Log, copies: Iterable[Copy], read: Callable[[Log, Copy], None]) -> list[Part]:
    """The jobs of a run, each with its log, which is read, and its copies. The first job's log is that of the run."""
    jobs: dict[tuple[str, str], list[Copy]] = {}
    for copy in copies:
        jobs.setdefault((copy.group, copy.name), []).append(copy)
    parts = [
        (log.job(name, of_job[0].place) if at else log, of_job) for at, ((_, name), of_job) in enumerate(jobs.items())
    ]
    for part, of_job in parts:
        if len(parts) > 1:
            part.name = of_job[0].name
            beside = [name for group, name in jobs if group == of_job[0].group and name != part.name]
            part.setting("job", part.name)
            part.setting("beside", "+".join(beside))
        if len(of_job) == 1:
            read(part, of_job[0])
        else:
            _join(part, of_job, read)
    return parts


def _join(log: Log, copies: Sequence[Copy], read: Callable[[Log, Copy], None]) -> None:
    """The values of all copies of a job together, as far as those of each tell them."""
    logs = [Log(log.tool, log.metrics, log.piece) for _ in copies]
    for one, copy in zip(logs, copies, strict=True):
        read(one, copy)
        log.faults += one.faults
    place, what = copies[0].place, f"{len(copies)} copies of job {copies[0].name}"
    log.fault(place, f"{what} are read as one; for percentiles and deviations of all run with --group_reporting")
    for metric, facts in log.metrics.items():
        values = [value for one in logs if (value := one.base(metric)) is not None]
        join = next((join for names, join in JOINED.items() if names.search(metric)), None)
        if join is fmean and "lat_" in metric:
            weights = [one.value(f"{metric.partition('_')[0]}_total_ios") or 0 for one in logs]
            join = partial(fmean, weights=weights) if all(weights) else None
        if join and len(values) == len(copies):
            log.take_json(metric, join(values), facts.unit, place, f"{what}/{metric}")
    for way, (rate, unit, total) in product(DIRECTIONS, (("bw", "B/s", "io_size"), ("iops", "iops", "total_ios"))):
        done, time_s = log.base(f"{way}_{total}"), log.base(f"{way}_runtime")
        if done is not None and time_s:
            log.take_json(f"{way}_{rate}", done / time_s, unit, place, f"{what}/{way}_{rate}")


JOINED: dict[re.Pattern[str], Callable[[Sequence[float]], float]] = {
    re.compile(r"_(io_size|[a-z]+_ios|bw_per|ctx|majf|minf)$"): sum,
    re.compile(r"lat_min$"): min,
    re.compile(r"(lat_max|_runtime)$"): max,
    re.compile(r"(lat_avg|cpu_usr|cpu_sys)$"): fmean,
}


def _put_starts(parts: Sequence[Part], written_at: datetime | None) -> None:
    """When jobs began: those of one group ended together, those of an earlier one when these began."""
    for group in reversed(dict.fromkeys(copies[0].group for _, copies in parts)):
        logs = [log for log, copies in parts if copies[0].group == group]
        for log in logs:
            log.ended(written_at, RUNTIMES)
        written_at = min((log.started_at for log in logs if log.started_at), default=written_at)


def _read_json(log: Log, document: Document) -> None:
    content, place = mapping(document.content), document.place
    log.version = str(content.get("fio version") or "").removeprefix("fio-")
    listed = content.get("jobs")
    if not isinstance(listed, list) or not listed:
        log.fault(place, "no jobs in it; expected the output of a run")
        return
    copies = [
        Copy(str(job.get("groupid")), str(job.get("jobname")), place, job, f"jobs/{at}")
        for at, job in enumerate(map(mapping, listed))
    ]
    parts = _parts(log, copies, _read_json_job)
    written_at = unix_time(content.get("timestamp_ms"), MILLI) or unix_time(content.get("timestamp"))
    _put_starts(parts, written_at or wall_clock(content.get("time")))
    if len(parts) == 1:
        log.take_paths(document, OF_ALL)
    for part, of_job in parts:
        jobs = [copy.told for copy in of_job]
        processes = at_path(jobs[0], "job options/numjobs") or at_path(content, "global options/numjobs")
        if isinstance(processes, str) and NUMBER_OF_JOBS.fullmatch(processes):
            part.take_json("number_of_processes", max(int(processes), len(jobs)), "", place, "job options/numjobs")
        elif processes is None:
            part.take_json("number_of_processes", len(jobs), "", place, "jobs")
        _read_options(part, content, jobs)
        part.started_at = unix_time(jobs[0].get("job_start"), MILLI) or part.started_at


def _read_json_job(log: Log, copy: Copy) -> None:
    job, place, path = copy.told, copy.place, copy.path
    if error := job.get("error"):
        raw = f"{path.replace('/', '.')}.error: {error}"
        log.fault(place, f"the job ended with error {error}", raw, is_failure=True)
    blocks = {way: _measured(mapping(job.get(way))) for way in DIRECTIONS}
    if not any(blocks.values()):
        log.fault(place, "neither read nor written")
    for way, block in blocks.items():
        log.take_paths(Document(place, block, f"{path}/{way}/"), OF_DIRECTION[way], f"{way}_{{}}")
        percentiles = mapping(at_path(block, "clat_ns/percentile") or at_path(block, "clat/percentile"))
        for key in sorted(percentiles.keys() - IN_JSON):
            raw = f"{path.replace('/', '.')}.{way}.clat.percentile.{key}: {percentiles[key]}"
            log.fault(place, f"percentile {key} is not kept", raw)
    log.take_paths(Document(place, job, f"{path}/"), OF_JOB)


def _measured(block: Mapping[str, object]) -> dict[str, object]:
    """What was measured of the block of a direction: nothing if there was no I/O."""
    if not block.get("io_bytes") and not block.get("total_ios"):
        return {}
    absent = set[str]()
    for key in (f"{kind}{suffix}" for kind in LATENCIES for suffix in ("", "_ns")):
        times = mapping(block.get(key))
        if not times or times.get("N") == 0 or times.get("max") == 0:
            absent.add(key)
    for kind, moments in SAMPLED.items():
        if block.get(f"{kind}_samples") == 0 or not block.get(f"{kind}_max"):
            absent |= {f"{kind}_{key}" for key in (*moments.values(), "samples", "agg")}
    measured = {key: value for key, value in block.items() if key not in absent}
    if "io_bytes" in measured and "io_kbytes" not in measured:  # 2.x
        measured["io_kbytes"] = measured.pop("io_bytes")
    return measured


def _read_options(log: Log, content: Mapping[str, object], jobs: Sequence[object]) -> None:
    """Settings of these jobs, with the options that they share; nothing where none are listed (2.x)."""
    shared = mapping(content.get("global options"))
    listed = [{**shared, **mapping(mapping(job).get("job options"))} for job in jobs]
    _put_settings(log, [_settings_of({name: str(value) for name, value in given.items()}) for given in listed if given])


def _settings_of(options: Mapping[str, str]) -> dict[str, str]:
    """Each setting of one job by name; of the further ones, UNSET where it was not given."""
    settings = {
        name: next((options[option] for option in names if options.get(option)), default)
        for name, (names, default) in OPTIONS.items()
    }
    if settings["rw"] == "readwrite":
        settings["rw"] = "rw"
    ranges = [part.strip() or OPTIONS["bs"][1] for part in settings["bs"].split(",")]  # 4k, 1k-4k, or reads,writes
    settings["bs"] = _sizes([part.partition("-") for part in ranges[:2]])
    return settings | {name: _bytes(options.get(name) or UNSET) for name in FURTHER_OPTIONS}


def _read_described(parts: Sequence[Part], lines: Sequence[LogLine]) -> None:
    """Settings of all jobs that a text describes before its results: of each part those that it stands for."""
    matches = [match for line in lines if not line.is_cut and (match := DESCRIBED.match(line.text))]
    for log, copies in parts:
        of_group = [match for match in matches if len(parts) == 1 or match["group"] == copies[0].group]
        named = [match for match in of_group if match["name"] == copies[0].name]
        is_alone = sum(others[0].group == copies[0].group for _, others in parts) == 1
        jobs = []
        for match in of_group if is_alone else named:
            # `(R) 4096B-4096B, (W) 8192B-8192B, …` or `4K-4K/8K-8K/4K-4K`: of reads and writes
            ranges = re.findall(r"([0-9.]+[kKMGT]?i?B?)(-)([0-9.]+[kKMGT]?i?B?)", match["bs"])
            jobs.append({**match.groupdict(), "bs": _sizes(ranges[:2]) or match["bs"]})
        _put_settings(log, jobs)


def _put_settings(log: Log, jobs: Sequence[Mapping[str, str]]) -> None:
    """The settings of all jobs; where they differ, all of what they have, joined by +."""
    for name in (*OPTIONS, *FURTHER_OPTIONS) if jobs else ():
        text = "+".join(dict.fromkeys(job.get(name, UNSET) for job in jobs))
        if name in OPTIONS or text != UNSET:
            log.setting(name, text)


def _sizes(ranges: Sequence[tuple[str, str, str]]) -> str:
    """Sizes in bytes from least, dash and most; of reads and writes one if they are alike."""
    sizes = [(_bytes(least), dash, _bytes(most)) for least, dash, most in ranges]
    return ",".join(dict.fromkeys(low if low == high else f"{low}{dash}{high}" for low, dash, high in sizes))


def _bytes(text: str) -> str:
    """A size in bytes, powers of 1,024; anything else as it is."""
    match = SIZE.fullmatch(text.strip())
    return str(int(float(match[1]) * BINARY ** POWERS[match[2].lower()])) if match else text


def _read_text(log: Log) -> None:
    copies: dict[tuple[str, ...], Copy] = {}  # of results that are told several times the last ones
    has_status, in_disks, started, util, written_at = False, False, 0, None, None
    told: list[LogLine] = []
    for line in log.lines:
        if line.is_cut and not WHOLE.search(line.text):
            log.fault(line.place, CUT, line.text)
        elif head := JOB.match(line.text):
            told, has_status, written_at = [line], False, wall_clock(head["at"])
            key = (head["group"], head["name"], head["pid"] or str(line.place))
            copies[key] = Copy(head["group"], head["name"], line.place, told)
        elif RUN_STATUS.match(line.text):
            told, has_status = [], True
        elif DISKS.match(line.text):
            told, in_disks = [], True
        elif STARTING.match(line.text) and not copies:
            started = sum(map(int, STARTED.findall(line.text)))
        elif in_disks and (match := UTIL.search(line.text)):
            in_disks, util = False, (match[1], line)
        else:
            told.append(line)
    parts = _parts(log, copies.values(), _read_job)
    n_told = 0
    for part, of_job in parts:
        number = sum(int(head["jobs"]) for copy in of_job if (head := JOB.match(copy.told[0].text)))
        n_told += number
        part.take_json("number_of_processes", number, "", of_job[0].place, "jobs")
    if not has_status and n_told < started:  # nobody knows how many copies the last job has
        (parts[-1][0] if parts else log).drop(METRICS)
    if util and len(parts) <= 1:
        log.take("disk_util", util[0], "%", util[1])
    _read_described(parts, log.lines)
    _put_starts(parts, written_at)
    if not has_status:
        lacking = "no 'Run status group' at its end" if copies else "no job in it"
        log.fault(log.lines[-1].place, f"the log is cut off: {lacking}", log.lines[-1].text)


def _read_job(log: Log, copy: Copy) -> None:
    head, *lines = copy.told
    if (match := JOB.match(head.text)) and match["error"] != "0":
        log.fault(head.place, f"the job ended with error {match['error']}", head.text, is_failure=True)
    way, time_unit, is_old = "", "", False  # direction; unit of the percentiles, empty where they are passed over
    for line in lines:
        text = line.text
        if head := DIRECTION.match(text):
            way, time_unit = head[1] if head[1] in DIRECTIONS else "", ""
            if way:
                is_old = _read_totals(log, way, head[2], line)
        elif head := PERCENTILES_OF.match(text):
            time_unit = head[2] if head[1] == "clat" else ""
            _read_percentiles(log, way, time_unit, text, line)
        elif text.strip().startswith("|"):
            _read_percentiles(log, way, time_unit, text, line)
        elif head := CPU.match(text):
            way, pairs = "", dict(PAIR.findall(head[1]))
            for name in ("usr", "sys", "ctx", "majf", "minf"):
                _count(log, f"cpu_{name}", pairs.get(name), "%" if name in ("usr", "sys") else "", line)
        elif head := ISSUED.match(text):
            _read_issued(log, head[1], line)
        elif way and (head := LATENCY.match(text)):
            _read_moments(log, f"{way}_{head[1]}", head[2], head[3], line)
        elif way and (head := SAMPLES.match(text)):
            unit = f"{in_binary(head[2]) if is_old else head[2]}/s" if head[1] else "iops"
            _read_moments(log, f"{way}_{head[1] or head[3]}", unit, head[4], line)
        elif SYNC.match(text):
            way = ""


def _read_totals(log: Log, way: str, rest: str, line: LogLine) -> bool:
    """`io=1452.0MB, bw=49535KB/s, iops=12, runt= 30016msec` or `IOPS=2, BW=11.5MiB/s (12.0MB/s)(24.0MiB/2095msec)`.

    Returns whether it is the first of these, of 2.x."""
    pairs = {name.lower(): value for name, value in PAIR.findall(rest)}
    is_old = "runt" in pairs
    if is_old:
        size, both = pairs.get("io", ""), OLD_TIME.fullmatch(pairs["runt"])
        time, unit = both.groups() if both else (pairs["runt"], "")
    else:
        both = SIZE_AND_TIME.search(rest)
        size, time, unit = both.groups() if both else ("", "", "")
    _count(log, f"{way}_iops", pairs.get("iops"), "iops", line)
    _amount(log, f"{way}_bw", pairs.get("bw", "").partition("(")[0], "/s", line, is_old=is_old)
    if is_old or both:
        _amount(log, f"{way}_io_size", size, "", line, is_old=is_old)
        log.take(f"{way}_runtime", time, unit, line)
    else:
        log.fault(line.place, f"{way}: no size and time in parentheses", line.text)
    return is_old


def _read_moments(log: Log, prefix: str, unit: str, rest: str, line: LogLine) -> None:
    pairs = dict(PAIR.findall(rest))
    for moment in MOMENTS:
        _count(log, f"{prefix}_{moment}", pairs.get(moment), unit, line)
    for name, name_unit in (("per", "%"), ("samples", "")):
        if name in pairs and f"{prefix}_{name}" in METRICS:
            _count(log, f"{prefix}_{name}", pairs[name], name_unit, line)


def _read_percentiles(log: Log, way: str, unit: str, text: str, line: LogLine) -> None:
    for percentile, value in PERCENTILE.findall(text) if way and unit else ():
        if name := NAMES.get(float(percentile.replace(",", "."))):
            log.take(f"{way}_clat_{name}", value, unit, line)
        else:
            log.fault(line.place, f"percentile {percentile} is not kept", line.text)


def _read_issued(log: Log, rest: str, line: LogLine) -> None:
    """`total=7680,7720,0,0 short=0,0,0,0 dropped=0,0,0,0`, or `total=r=7680/w=7720/d=0, short=r=0/w=0/d=0`."""
    for name, metric in ISSUES.items():
        match = re.search(rf"\b{name}=(?:r=)?([0-9]+)(?:,|/w=)([0-9]+)", rest)
        for way, number in zip(DIRECTIONS, match.groups() if match else (), strict=False):
            if f"{way}_runtime" in log:  # zeros of a direction that did not run are no values
                log.take(f"{way}_{metric}", number, "", line)


def _count(log: Log, metric: str, text: str | None, unit: str, line: LogLine) -> None:
    """A number of this unit, where the line has one; fio puts a prefix behind a large one."""
    if text is None:
        log.fault(line.place, f"{metric} is not in its line", line.text)
    elif match := COUNT.fullmatch(text):
        log.take(metric, match[1], unit, line, prefix=match[2])
    else:
        log.fault(line.place, f"{metric} ({text[:VALUE_SHOWN]}) is no number", line.text)


def _amount(log: Log, metric: str, text: str, per: str, line: LogLine, *, is_old: bool) -> None:
    if match := AMOUNT.fullmatch(text):
        log.take(metric, match[1], f"{in_binary(match[2]) if is_old else match[2]}{per}", line)
    else:
        log.fault(line.place, f"{metric} ({text[:VALUE_SHOWN]}) is no number with a unit", line.text)


PARSER = Parser("disk-fio", TOOL, "disk", METRICS, _read, SIGNS)
