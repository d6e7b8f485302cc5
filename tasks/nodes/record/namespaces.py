"""Network namespaces: made with iproute2, entered by a thread, and found again if their recorder was killed."""

import contextlib
import ctypes
import os
import signal
import subprocess
from pathlib import Path

from tasks.errors import WhorlError
from tasks.machine import find_tool
from tasks.nodes.record.limits import is_recorder

PREFIX = "whorl-"  # and the recorder's process id
FOLDER = Path("/run/netns")
CLONE_NEWNET = 0x40000000
ASK_TIMEOUT_S = 10.0


class NoNamespace(WhorlError):
    """A network namespace, a device in it or a limit on it that cannot be had here."""


def ip(*words: str) -> str:
    """Run iproute2's ip; returns what it says. Raises NoNamespace."""
    return _ask("ip", *words)


def tc(namespace: str, *words: str) -> None:
    """Run iproute2's tc in a namespace. Raises NoNamespace."""
    _ask("tc", "-n", namespace, *words)


def _ask(tool: str, *words: str) -> str:
    found = find_tool(tool)
    if found is None:
        raise NoNamespace(f"{tool} is not installed (Debian: apt-get install iproute2)")
    try:
        asked = subprocess.run(
            [found, *words],
            capture_output=True,
            text=True,
            timeout=ASK_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoNamespace(f"{tool} {' '.join(words)}: {error}") from error
    if asked.returncode:
        raise NoNamespace(f"{tool} {' '.join(words)}: {asked.stderr.strip() or asked.returncode}")
    return asked.stdout


def make_namespace(name: str) -> None:
    """Make a namespace with its loopback device up. Raises NoNamespace."""
    ip("netns", "add", name)
    ip("-n", name, "link", "set", "lo", "up")


def remove_namespace(name: str) -> None:
    """Remove a namespace with its devices; nothing if there is none."""
    with contextlib.suppress(NoNamespace):
        ip("netns", "del", name)


def enter(name: str) -> None:
    """Move the calling thread, and it alone, into a namespace. Raises OSError."""
    handle = os.open(FOLDER / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(handle, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the network namespace {name}")
    finally:
        os.close(handle)


def remove_abandoned(folder: Path = FOLDER) -> list[str]:
    """End what a killed recorder has left in its namespaces, and remove them; returns their names."""
    gone = []
    for path in sorted(folder.glob(f"{PREFIX}[0-9]*-*")) if folder.is_dir() else ():
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        if not pid.isdigit() or is_recorder(int(pid), path.stat().st_mtime):
            continue
        with contextlib.suppress(NoNamespace):
            for inside in ip("netns", "pids", path.name).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(inside), signal.SIGKILL)
        remove_namespace(path.name)
        gone.append(path.name)
    return gone
