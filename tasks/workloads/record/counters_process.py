"""Counters of one process and its descendants, for what runs outside a control group of its own."""

import contextlib
import os
from pathlib import Path

from tasks.workloads.record.counters_memory import parse_fields
from tasks.workloads.record.measures import Source, gauge, owned, rate

MINOR, MAJOR, USER, SYSTEM, ENDED_USER, ENDED_SYSTEM, THREADS, RSS = 7, 9, 11, 12, 13, 14, 17, 21
IO_KEYS = ("read_bytes", "write_bytes", "syscr", "syscw")


class ProcessSource(Source):
    """The sum over a process and its living descendants, and the CPU time of those that have ended."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        tick_s, page = 1 / os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
        measures = (
            rate("cpu.user_cores", "core-seconds", "processor time of its programs", "user", scale=tick_s),
            rate("cpu.system_cores", "core-seconds", "processor time of the kernel on its behalf", "sys", scale=tick_s),
            rate("vm.page_faults", "faults", "accesses to pages that were not mapped yet", "minor", "major"),
            rate("vm.major_faults", "faults", "those that had to wait for a disk", "major"),
            gauge("memory.resident_bytes", "B", "memory that it has mapped, shared parts counted each time", "rss",
                  scale=page),
            gauge("cpu.tasks", "tasks", "its processes and threads", "threads"),
            rate("disk.read_bytes", "B", "bytes read from disks", "read_bytes"),
            rate("disk.written_bytes", "B", "bytes on their way to disks", "write_bytes"),
            rate("io.read_calls", "calls", "system calls that read", "syscr"),
            rate("io.write_calls", "calls", "system calls that write", "syscw"),
        )  # fmt: skip
        super().__init__(proc / str(pid) / "stat", parse_fields, tuple(owned(measure) for measure in measures))
        self.pid, self.proc = pid, proc

    def read(self) -> bytes | None:
        """Lines `key sum`; None once the process has ended."""
        found: dict[str, int] = {}
        waiting = [self.pid]
        while waiting:
            pid = waiting.pop()
            if not self._add(pid, found) and pid == self.pid:
                return None
            with contextlib.suppress(OSError):
                for children in (self.proc / str(pid) / "task").glob("*/children"):
                    waiting += [int(text) for text in children.read_text().split()]
        return "".join(f"{key} {value}\n" for key, value in found.items()).encode()

    def _add(self, pid: int, found: dict[str, int]) -> bool:
        try:
            fields = (self.proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        told = {
            "minor": int(fields[MINOR]),
            "major": int(fields[MAJOR]),
            "user": int(fields[USER]) + int(fields[ENDED_USER]),
            "sys": int(fields[SYSTEM]) + int(fields[ENDED_SYSTEM]),
            "threads": int(fields[THREADS]),
            "rss": int(fields[RSS]),
        }
        with contextlib.suppress(OSError):
            lines = (line.split(": ") for line in (self.proc / str(pid) / "io").read_text().splitlines())
            told |= {key: int(value) for key, value in lines if key in IO_KEYS}
        for key, value in told.items():
            found[key] = found.get(key, 0) + value
        return True
