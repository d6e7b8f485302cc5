"""Background load from stress-ng on one SKU, changing from phase to phase of the plan."""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
from pathlib import Path

from tasks.errors import MissingTool
from tasks.jobs.record.params import RecordParams
from tasks.lifeline import tied_to_parent
from tasks.machine_groups import Group

STOP_S = 5.0
STRESSORS = {  # how much of a SKU they take is the quota of their group
    "cpu": "--cpu 2 --cpu-method matrixprod{limit}",
    "memory": "--vm 1 --vm-bytes 256M --vm-keep",
    "disk": "--hdd 1 --hdd-bytes 128M --temp-path {temp}",
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


def stress_command(level: str, temp: Path, *, has_group: bool = True) -> list[str]:
    """The stress-ng command of a level; empty for `none`. Without a group it limits itself, as far as it can."""
    kind, _, percent = level.partition("-")
    if kind == "none":
        return []
    limit = "" if has_group else f" --cpu-load {percent}"
    return ["stress-ng", "--quiet", *STRESSORS[kind].format(temp=temp, limit=limit).split()]


class BackgroundLoad:
    """One level of load at a time on one SKU; leaves no stressor behind."""

    def __init__(self, source: str, temp: Path, group: Group | None) -> None:
        self.source, self.temp, self.group = source, temp, group
        self.level = "none"
        self._process: subprocess.Popen[bytes] | None = None
        self._ending: list[subprocess.Popen[bytes]] = []

    @property
    def pids(self) -> list[int]:
        """Process ids of the stressors."""
        return [process.pid for process in (self._process, *self._ending) if process]

    def switch(self, level: str) -> None:
        """Go to another level; without stress-ng the level stays `none`. The same kind goes on at another quota."""
        if self.source != "stress-ng" or level == self.level:
            return
        command, before = (
            stress_command(one, self.temp, has_group=self.group is not None) for one in (level, self.level)
        )
        if command != before or self.group is None:
            self._end()
            if command:
                self._start(command)
        self.level = level

    def _start(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            tied_to_parent(command if self.group is None else self.group.command_inside(command)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # one process group, so that all of it can be stopped
        )

    def _end(self) -> None:
        """Ask the stressor to end; nobody waits for it, since runs are being timed."""
        self._ending = [process for process in self._ending if process.poll() is None]
        if self._process is not None:
            self._signal(self._process, signal.SIGTERM)
            self._ending.append(self._process)
            self._process = None

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], what: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, what)

    def stop(self) -> None:
        """End every stressor and everything it started, and wait for that."""
        self._end()
        self.level = "none"
        for process in self._ending:
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._signal(process, signal.SIGKILL)
                process.wait(STOP_S)
        self._ending = []
