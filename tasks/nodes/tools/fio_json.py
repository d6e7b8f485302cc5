"""The JSON of fio (--output-format=json, json+), of 3.x with times in ns and of 2.x in us.

A direction without I/O is all zeros there: it is missing. So are latencies that nothing was measured for (slat of
synchronous engines) and minima and maxima without samples. io_bytes is in KiB in 2.x, where io_kbytes does not exist.
bw_min to bw_dev are in KiB/s while bw_bytes is in B/s."""

import re
from collections.abc import Mapping

from tasks.nodes.tools.fio_facts import DIRECTIONS, LATENCIES, PERCENTILES, percentile_name
from tasks.nodes.tools.fio_settings import read_json_settings
from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.json_text import Document, at_path, documents, mapping

PLAIN = {
    "iops": ("iops", "iops"),
    "runtime": ("runtime", "ms"),
    "total_ios": ("total_ios", ""),
    "short_ios": ("short_ios", ""),
    "dropped_ios": ("drop_ios", ""),
}
MOMENTS = {"min": "min", "max": "max", "mean": "avg", "stddev": "stdev"}
SAMPLED = {"bw": {"mean": "avg", "min": "min", "max": "max", "dev": "stdev"}, "iops": MOMENTS}
SAMPLE_UNITS = {"bw": "KiB/s", "iops": "iops"}
CPU = {
    "usr_cpu": ("cpu_usr", "%"),
    "sys_cpu": ("cpu_sys", "%"),
    "ctx": ("cpu_ctx", ""),
    "majf": ("cpu_majf", ""),
    "minf": ("cpu_minf", ""),
}
NUMBER_OF_JOBS = re.compile(r"[0-9]{1,9}")
NAMES = {percentile: percentile_name(percentile) for percentile in PERCENTILES}


def read_json(found: Gathering, text: str) -> None:
    """The values of the first document; broken JSON and further documents are faults."""
    read = documents(text, lambda content: bool({"jobs", "fio version"} & mapping(content).keys()))
    for place, reason in read.broken:
        found.fault(place, reason)
    for document in read.found[1:]:
        found.fault(document.place, "another log begins here; only the first of fio is read")
    for document in read.found[:1]:
        _read(found, document)


def _read(found: Gathering, document: Document) -> None:
    content, place = document.content, document.place
    found.version = str(mapping(content).get("fio version") or "").removeprefix("fio-")
    jobs = mapping(content).get("jobs")
    if not isinstance(jobs, list) or not jobs:
        found.fault(place, "no jobs in it; expected the output of a run")
        return
    for number, other in enumerate(jobs[1:], 2):
        told = f"job {number} of {len(jobs)} ({mapping(other).get('jobname')}) is not read; run with --group_reporting"
        found.fault(place, told)
    job = mapping(jobs[0])
    if job.get("error"):
        told = f"the job ended with error {job['error']}"
        found.fault(place, told, f"jobs.0.error: {job['error']}", is_failure=True)
    _read_processes(found, content, job, len(jobs), place)
    read_json_settings(found, content, jobs)
    has_io = [_read_direction(found, mapping(job.get(name)), name, place) for name in DIRECTIONS]
    if not any(has_io):
        found.fault(place, "neither read nor written")
    for key, (metric, unit) in CPU.items():
        if key in job:
            found.json(metric, job[key], unit, place, f"jobs.0.{key}")
    utilisation = at_path(content, "disk_util.0.util")
    if utilisation is not None:
        found.json("disk_util", utilisation, "%", place, "disk_util.0.util")


def _read_processes(found: Gathering, content: object, job: Mapping[str, object], n_jobs: int, place: int) -> None:
    own = at_path(job, "job options.numjobs") or at_path(content, "global options.numjobs")
    if isinstance(own, str) and NUMBER_OF_JOBS.fullmatch(own):
        found.json("number_of_processes", max(int(own), n_jobs), "", place, "jobs.0.job options.numjobs")
    elif own is None:
        found.json("number_of_processes", n_jobs, "", place, "jobs")


def _read_direction(found: Gathering, block: Mapping[str, object], direction: str, place: int) -> bool:
    """Whether there was I/O, that is whether anything of it was measured."""
    if not block.get("io_bytes") and not block.get("total_ios"):
        return False
    path = f"jobs.0.{direction}"
    if "io_bytes" in block:
        unit = "B" if "io_kbytes" in block else "KiB"
        found.json(f"{direction}_io_size", block["io_bytes"], unit, place, f"{path}.io_bytes")
    for key, unit in (("bw_bytes", "B/s"), ("bw", "KiB/s")):
        if key in block and (key == "bw_bytes" or "bw_bytes" not in block):
            found.json(f"{direction}_bw", block[key], unit, place, f"{path}.{key}")
    for name, (key, unit) in PLAIN.items():
        if key in block:
            found.json(f"{direction}_{name}", block[key], unit, place, f"{path}.{key}")
    for kind in LATENCIES:
        for key, unit in ((f"{kind}_ns", "ns"), (kind, "us")):
            _read_latency(found, mapping(block.get(key)), f"{direction}_{kind}", unit, place, f"{path}.{key}")
    for kind in SAMPLED:
        _read_samples(found, block, f"{direction}_{kind}", kind, place, path)
    return True


def _read_latency(found: Gathering, block: Mapping[str, object], name: str, unit: str, place: int, path: str) -> None:
    if not block or block.get("N") == 0 or block.get("max") == 0:
        return
    for key, moment in MOMENTS.items():
        if key in block:
            found.json(f"{name}_{moment}", block[key], unit, place, f"{path}.{key}")
    for key, value in mapping(block.get("percentile")).items():
        _read_percentile(found, key, value, name, unit, place, f"{path}.percentile.{key}")


def _read_percentile(found: Gathering, key: str, value: object, name: str, unit: str, place: int, path: str) -> None:
    try:
        percentile = float(key)
    except ValueError:
        found.fault(place, f"{key} is no percentile", f"{path}: {value}")
        return
    if percentile in NAMES and name.endswith("_clat"):
        found.json(f"{name}_{NAMES[percentile]}", value, unit, place, path)
    elif percentile > 0 and name.endswith("_clat"):  # 2.x fills its list up with 0.00
        found.fault(place, f"percentile {key} is not kept", f"{path}: {value}")


def _read_samples(found: Gathering, block: Mapping[str, object], name: str, kind: str, place: int, path: str) -> None:
    if block.get(f"{kind}_samples") == 0 or not block.get(f"{kind}_max"):
        return
    for key, moment in SAMPLED[kind].items():
        if f"{kind}_{key}" in block:
            found.json(f"{name}_{moment}", block[f"{kind}_{key}"], SAMPLE_UNITS[kind], place, f"{path}.{kind}_{key}")
    if f"{kind}_samples" in block:
        found.json(f"{name}_samples", block[f"{kind}_samples"], "", place, f"{path}.{kind}_samples")
    if kind == "bw" and "bw_agg" in block:
        found.json(f"{name}_per", block["bw_agg"], "%", place, f"{path}.bw_agg")
