"""One recording at a time on a machine: a second one would be recorded by the first."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from tasks.errors import BadSetting
from tasks.machine_groups import PREFIX, ROOT, root_group
from tasks.machine_lock import machine_lock, only_recorder

JOBS_SCRATCH = f"{PREFIX}*"


@contextlib.contextmanager
def alone_on_this_machine(lock: Path | None = None, root: Path = ROOT) -> Iterator[None]:
    """Nobody else records on this machine meanwhile, neither workloads nor jobs nor nodes. Raises BadSetting."""
    path = lock or machine_lock()
    with only_recorder("workloads", path):
        if where := jobs_recording(path.parent, root):  # one of an earlier version, which has no machine-wide lock
            raise BadSetting(f"{where}: a recording of jobs is at work; wait for its end")
        yield


def jobs_recording(temporary: Path, root: Path = ROOT) -> Path | None:
    """Where `whorl jobs record` is at work: it holds a lock on its scratch folder, and control groups of its own."""
    for folder in sorted(temporary.glob(JOBS_SCRATCH)):
        if folder.is_dir() and _is_locked(folder):
            return folder
    base = root_group(root)
    for parent in base.folders.values() if base else ():
        for group in sorted(parent.glob(f"{PREFIX}[0-9]*")):
            if Path("/proc", group.name.removeprefix(PREFIX)).exists():
                return group
    return None


def _is_locked(folder: Path) -> bool:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
