"""Which files make one Spark event log: a plain file, or a rolled one: a folder eventlog_v2_<application>.

A rolled folder holds events_1_<application>, events_2_… (perhaps packed), and an empty file appstatus_<application>
(.inprogress while the application runs). Where Spark compacted, events_N_….compact stands for all files up to N."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tasks.errors import BadInput
from tasks.jobs.readers.spark_packing import CutOff, open_event_log
from tasks.read_limits import ReadLimits
from tasks.reading import Lines, read_lines
from tasks.storage import storage_of

ROLLED = "eventlog_v2_"
PART = re.compile(r"events_(\d+)_.+")
COMPACT = ".compact"
IN_PROGRESS = ".inprogress"
PACKINGS = r"(\.(zstd|lz4|snappy|lzf|gz))?"
APPLICATION = r"(app-\d{14}-\d{4}|application_\d+_\d+(_\d+)?|local-\d{13}|spark-(application-\d{13}|[0-9a-f]{32}))"
PLAIN_NAME = re.compile(rf"{APPLICATION}(_\d+)?{PACKINGS}({re.escape(IN_PROGRESS)})?")
ROLLED_PART = re.compile(rf".*/{ROLLED}[^/]+/[^/]+")


def has_event_log_name(path: str) -> bool:
    """Whether a path is called as Spark calls its event logs, plain or rolled."""
    name = PurePosixPath(path).name
    return name.startswith(ROLLED) or PLAIN_NAME.fullmatch(name) is not None


def is_rolled(path: str) -> bool:
    """Whether the path is called as the folder of a rolled log."""
    return PurePosixPath(path).name.startswith(ROLLED)


def without_parts(names: list[str]) -> list[str]:
    """The names, with each rolled log's folder once in place of its files."""
    gathered = [str(PurePosixPath(name).parent) if ROLLED_PART.fullmatch(name) else name for name in names]
    return list(dict.fromkeys(gathered))


def parts_of(path: str) -> list[str]:
    """The files of one event log in their order; a plain log is its own only part.

    Raises BadInput if a rolled log has no events, or a gap between its files."""
    if not is_rolled(path):
        return [path]
    numbered = {name: _number(name) for name in _names_in(path)}
    parts = sorted((number, name) for name, number in numbered.items() if number is not None)
    compacted = [number for number, name in parts if name.endswith(COMPACT)]
    if compacted:  # what it stands for may not be deleted yet
        newest = compacted[-1]
        parts = [(n, name) for n, name in parts if n > newest or (n == newest and name.endswith(COMPACT))]
    if not parts:
        raise BadInput(path, "no events in it", "files events_1_<application> and so on", "copy the whole folder again")
    first, last = parts[0][0], parts[-1][0]
    missing = sorted(set(range(first if compacted else 1, last + 1)) - {number for number, _ in parts})
    if missing:
        raise BadInput(
            path,
            f"file events_{missing[0]}_… is missing",
            f"all files up to events_{last}_…",
            "copy the whole folder again",
        )
    return [name for _, name in parts]


def is_compacted(path: str) -> bool:
    """Whether Spark has left out events of this log that it no longer shows."""
    return any(name.endswith(COMPACT) for name in parts_of(path))


def is_in_progress(path: str) -> bool:
    """Whether Spark says by a name that the application still runs."""
    names = _names_in(path) if is_rolled(path) else [path]
    return any(name.endswith(IN_PROGRESS) for name in names)


def read_parts(path: str, limits: ReadLimits) -> Iterator[Lines]:
    """The lines of an event log, numbered through all of its files.

    Raises BadInput as read_lines does; the last file may end too early while the application runs, or be empty yet."""
    is_running, before, parts = is_in_progress(path), 0, parts_of(path)
    for part in parts:
        last, may_be_cut = 0, is_running and part == parts[-1]
        try:
            for lines in read_lines(part, limits, open_as=open_event_log):
                last = max([last, *lines.places[-1:], *lines.refused["place"][-1:]])
                refused = lines.refused.assign(place=lines.refused["place"] + before)
                yield Lines([place + before for place in lines.places], lines.lines, refused)
        except CutOff:
            if not may_be_cut or not before + last:
                raise
        before += last


def _names_in(folder: str) -> list[str]:
    fs, root = storage_of(folder)
    if not fs.exists(root):
        raise BadInput(folder, "no such folder", "the folder of a rolled event log", "check the path")
    return sorted(fs.unstrip_protocol(str(name)).removeprefix("file://") for name in fs.find(root))


def _number(name: str) -> int | None:
    match = PART.fullmatch(PurePosixPath(name).name)
    return int(match[1]) if match else None
