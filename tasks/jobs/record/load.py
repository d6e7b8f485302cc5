"""Background load from stress-ng, changing from phase to phase of the plan."""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
from pathlib import Path

from tasks.errors import MissingTool
from tasks.jobs.record.lifeline import tied_to_parent
from tasks.jobs.record.params import LoadLevel, RecordParams

STOP_S = 5.0
STRESSORS = {
    "cpu": "--cpu {n} --cpu-method matrixprod",
    "memory": "--vm {n} --vm-bytes 256M --vm-keep",
    "disk": "--hdd {n} --hdd-bytes 128M --temp-path {temp}",
}
logger = logging.getLogger(__name__)


def load_source(params: RecordParams) -> str:
    """`stress-ng` or `jobs`: where this campaign's load comes from.

    Raises MissingTool if stress-ng is asked for by name and is not installed.
    """
    if params.load == "jobs" or shutil.which("stress-ng"):
        return "jobs" if params.load == "jobs" else "stress-ng"
    missing = "stress-ng is not installed (Debian: apt-get install stress-ng)"
    if params.load == "stress-ng":
        raise MissingTool(f"{missing}; install it, or record with load=jobs")
    logger.warning("%s: load comes from concurrent jobs only", missing)
    return "jobs"


def stress_command(level: LoadLevel, temp: Path) -> list[str]:
    """The stress-ng command of a level; empty for `none`."""
    kind, _, count = level.partition("-")
    if kind == "none":
        return []
    return ["stress-ng", "--quiet", *STRESSORS[kind].format(n=count, temp=temp).split()]


class BackgroundLoad:
    """One level of load at a time; a context manager that leaves no stressor behind."""

    def __init__(self, source: str, temp: Path) -> None:
        self.source, self.temp = source, temp
        self.level: LoadLevel = "none"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "BackgroundLoad":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pids(self) -> list[int]:
        """Process ids of the stressor, or none."""
        return [self._process.pid] if self._process else []

    def switch(self, level: LoadLevel) -> None:
        """Go to another level; without stress-ng the level stays `none`."""
        if self.source != "stress-ng" or level == self.level:
            return
        self.stop()
        command = stress_command(level, self.temp)
        if command:
            self._process = subprocess.Popen(
                tied_to_parent(command),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # one group, so that all of it can be stopped
            )
        self.level = level

    def stop(self) -> None:
        """End the stressor and everything it started."""
        process, self._process, self.level = self._process, None, "none"
        if process is None:
            return
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
                return
