"""What single fields of Slurm's accounting say, in seconds, bytes, counts and our statuses.

Each function takes one text and raises ValueError where it is not what it should be. Words by which Slurm says
that there is no value give NaN. Source: man sacct, "JOB ACCOUNTING FIELDS" and "JOB STATE CODES"."""

import re
from collections.abc import Mapping
from math import nan

from tasks.jobs.params import Status
from tasks.jobs.statuses import KNOWN_TO_SLURM, status_of

NO_VALUE = frozenset(
    {"", "Unknown", "None", "NONE", "N/A", "n/a", "INVALID", "UNLIMITED", "Partition_Limit", "Not set"}
)
BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
# A newer sacct prints the flag bit "per CPU" of an older record as part of the amount, in megabytes: 2147486648Mn
# are 3000 for each processor, which ReqTRES confirms in all 4,238 such rows of xdmod's phillips log.
PER_CPU_FLAG = 2**31
NO_VALUE_FROM = 2**32 - 3  # 0xfffffffd and above: Slurm's "unset" and "infinite"
DURATION = re.compile(r"(?:([0-9]{1,7})-)?(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{1,9}(?:\.[0-9]{1,9})?)")
COUNT = re.compile(r"[0-9]{1,18}")
AMOUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)([KMGTPE]?)")
REQUESTED_MEMORY = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)([KMGTPE]?)([nc]?)")
STATE = re.compile(r"([A-Z_]+)\+?(?: by \S+)?")


def duration_s(text: str) -> float:
    """Seconds of `[D-]HH:MM:SS`, `MM:SS.mmm` (TotalCPU of short jobs)."""
    if text in NO_VALUE:
        return nan
    found = DURATION.fullmatch(text)
    if not found:
        raise ValueError("is not a duration ([D-]HH:MM:SS)")
    days, hours, minutes, seconds = found.groups(default="0")
    return int(days) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def count(text: str) -> float:
    """A whole number of something, or raw seconds."""
    if text in NO_VALUE:
        return nan
    if not COUNT.fullmatch(text):
        raise ValueError("is not a whole number")
    return float(text)


def nodes(text: str) -> float:
    """A number of nodes; sacct shortens large ones to `1K` or `1.50K` (1024 each)."""
    return _amount(text, "", "is not a number of nodes")


def memory_bytes(text: str) -> float:
    """Bytes of `123456K`, `1.50G`; sacct prints no unit for bytes (MaxRSS 0)."""
    return _amount(text, "", "is not an amount of memory")


def job_memory_bytes(text: str) -> float:
    """ReqMem where it is for the whole job (`64G`), else NaN."""
    return _requested_memory(text, "")


def node_memory_bytes(text: str) -> float:
    """ReqMem where it is for each node (`31000Mn`), else NaN."""
    return _requested_memory(text, "n")


def cpu_memory_bytes(text: str) -> float:
    """ReqMem where it is for each processor (`4000Mc`, `2147487648Mn`), else NaN."""
    return _requested_memory(text, "c")


def tres_cpus(text: str) -> float:
    """Processors in a list of trackable resources, `billing=8,cpu=8,mem=24000M,node=1`."""
    return _amount(_resources(text).get("cpu", ""), "", "has no number for cpu=")


def tres_memory_bytes(text: str) -> float:
    """Memory in a list of trackable resources, for the whole job; no unit means megabytes."""
    return _amount(_resources(text).get("mem", ""), "M", "has no amount for mem=") or nan


def status(text: str, mapped: Mapping[str, Status]) -> Status:
    """Our status for a job state; a state of a newer Slurm that we do not know is `unknown`. mapped: the user's words.

    `CANCELLED by 380693` names who did it, `CANCELLED+` is a state cut at ten characters."""
    if text in NO_VALUE:
        return "unknown"
    known = status_of(text, mapped, KNOWN_TO_SLURM)
    if known is None and not STATE.fullmatch(text):
        raise ValueError("is not a job state")
    return known or "unknown"


def is_state(text: str) -> bool:
    """Whether a text is a state as sacct prints it."""
    found = STATE.fullmatch(text)
    return bool(found and len(found[1]) > 2 and status_of(found[1], {}, KNOWN_TO_SLURM))


def _requested_memory(text: str, wanted_per: str) -> float:
    """No unit means megabytes; 0 asks for all of a node's memory, of which the log does not say how much it is."""
    if text in NO_VALUE:
        return nan
    found = REQUESTED_MEMORY.fullmatch(text)
    if not found:
        raise ValueError("is not an amount of memory")
    number, unit, per = float(found[1]), found[2] or "M", found[3]
    is_flagged = number * BYTES[unit] >= PER_CPU_FLAG * BYTES["M"]
    if is_flagged and (unit != "M" or number >= NO_VALUE_FROM):  # rounded to `2.00P`: the amount is lost
        return nan
    if is_flagged:
        number, per = number - PER_CPU_FLAG, "c"
    return number * BYTES[unit] if number and per == wanted_per else nan


def _resources(text: str) -> dict[str, str]:
    if text in NO_VALUE:
        return {}
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("is not a list of resources (cpu=8,mem=24000M)")
    return {name: value for name, _, value in pairs}


def _amount(text: str, default_unit: str, problem: str) -> float:
    if text in NO_VALUE:
        return nan
    found = AMOUNT.fullmatch(text)
    if not found:
        raise ValueError(problem)
    return float(found[1]) * BYTES[found[2] or default_unit]
