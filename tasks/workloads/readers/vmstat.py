"""What `vmstat 1` prints: a line a second under two lines of headings, which may be repeated; with -w, -a, -n, -t.

Columns that sysstat counts too have its names, so that files of `sar -A` can stand beside them; `us` holds nice, `sy`
interrupts. The first line is about the time since the machine was started and is no sample. Lines have a time with -t
(of params.time_zone unless the heading says UTC); without one they are params.interval_s apart."""

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.intake.files import SINCE_BOOT, Refused, all_refusals, read_lines, refusals, refused_rows
from tasks.workloads.params import ReadParams
from tasks.workloads.prepared import Reading, row_per_sample
from tasks.workloads.readers.tables import start_and_offsets, unix_seconds
from tasks.workloads.telemetry import Counter, spelled

GROUPS, FIRST, TIMED = "procs", ["r", "b"], "timestamp"
UNIVERSAL = ("UTC", "GMT")
TIME_WORDS = 2  # a date and a clock
NAMES = {
    "r": "sar.runq_sz", "b": "sar.blocked", "bi": "sar.pgpgin", "bo": "sar.pgpgout", "in": "intr.sum.intr",
    "cs": "sar.cswch", "us": "cpu.all.pct_usr", "sy": "cpu.all.pct_sys", "id": "cpu.all.pct_idle",
    "wa": "cpu.all.pct_iowait", "st": "cpu.all.pct_steal", "gu": "cpu.all.pct_guest", "swpd": "vmstat.mem_swap_used",
    "free": "vmstat.mem_free", "buff": "vmstat.mem_buffers", "cache": "vmstat.mem_cached",
    "inact": "vmstat.mem_inactive", "active": "vmstat.mem_active", "si": "vmstat.swap_in", "so": "vmstat.swap_out",
}  # fmt: skip
RATES = ("bi", "bo", "in", "cs", "si", "so")


def sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """By both lines of headings."""
    groups, columns, *_ = *head.decode("utf-8", "replace").lstrip("\ufeff\r\n").splitlines(), "", ""
    return GROUPS in groups and columns.split()[:2] == FIRST


def read(path: str, params: ReadParams) -> Reading:
    """See Reader.read. Raises BadInput without a line of numbers, and without times where no interval is set."""
    rows, bad, zone = _rows(path, params)
    places = np.array([place for place, _, _ in rows], dtype=np.int64)
    times = [time for _, _, time in rows]
    if rows and not any(times) and not params.interval_s:
        fix = "record with vmstat -t 1, or set read.interval_s to the seconds between the lines"
        raise BadInput(path, "no times in it", "lines that end in a date and a clock", fix)
    is_absolute = any(times)
    seconds = params.interval_s * np.arange(len(rows), dtype=np.float64)
    if is_absolute:
        seconds = unix_seconds(times, zone)
    is_timed = ~np.isnan(seconds)
    untimed = refusals(places[~is_timed], "no time; expected a date and a clock", [""] * int((~is_timed).sum()))
    refused = all_refusals([refused_rows(bad), untimed])
    if not is_timed.any():
        if len(refused):
            return Reading([], refused)
        raise BadInput(path, "no sample in it", "several lines of numbers", "record with vmstat -t 1")
    started, at_s = start_and_offsets(seconds[is_timed]) if is_absolute else (None, seconds)
    table = pd.DataFrame([values for _, values, _ in rows])[is_timed]
    named = {column: NAMES.get(column, f"vmstat.{spelled(column)}") for column in table.columns}
    counters = tuple(
        Counter(name, "%" if ".pct_" in name else "", "software", column in RATES) for column, name in named.items()
    )
    values = table.to_numpy(dtype=float)
    return Reading([row_per_sample(counters, at_s, values, places=places[is_timed], started_at=started)], refused)


def _rows(path: str, params: ReadParams) -> tuple[list[tuple[int, dict[str, float], str]], list[Refused], str]:
    """The samples, each with its place, values and time (empty: none); what was refused; and the zone of the times."""
    rows: list[tuple[int, dict[str, float], str]] = []
    bad: list[Refused] = []
    names: list[str] = []
    zone, is_timed, is_first = params.time_zone, False, True
    for block in read_lines(path, params.limits):
        bad += block.refused
        for place, line in zip(block.places, block.lines, strict=True):
            words = line.split()
            if not words:
                continue
            if GROUPS in words[0]:
                is_timed = TIMED in line
            elif words[:2] == FIRST:
                names = words[:-1] if is_timed else words
                zone = "UTC" if is_timed and words[-1] in UNIVERSAL else zone
            elif len(words) != (expected := len(names) + TIME_WORDS * is_timed):
                bad.append((place, f"{len(words)} fields; expected {expected}, as the heading has them", line))
            elif is_first:
                is_first = False
                bad.append((place, SINCE_BOOT, line))
            elif any(not word.isdecimal() for word in words[: len(names)]):
                bad.append((place, "a value is no whole number; expected numbers before the time", line))
            else:
                values = {name: float(word) for name, word in zip(names, words, strict=False)}
                rows.append((place, values, " ".join(words[len(names) :])))
    return rows, bad, zone
