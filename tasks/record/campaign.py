"""A campaign: the order of its runs, which are left, that nobody else records meanwhile, how a call of it ends."""

import contextlib
import fcntl
import hashlib
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import pyarrow as pa

from tasks.errors import BadSetting
from tasks.machine import only_recorder
from tasks.record.parts import CLEAN, Parts, Record

T = TypeVar("T")
AGAIN = ".again"  # and the number of the repetition, behind the id of a run
DIGEST_DIGITS = 16
SIGTERM_STATUS = 128 + signal.SIGTERM
ON_DISK = Path("/var/tmp")
Progress = Callable[[int, int], None]  # how many runs are done, and planned


def digest_of(text: str) -> str:
    """A short hash of all that a plan says: a campaign that began with another plan is not continued."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]


def mixed(cases: Sequence[T], subject: Callable[[T], str], dice: random.Random, last: str = "") -> list[T]:
    """Shuffled, and the same subject never twice in a row as long as there is another way. last: the one before."""
    left, order = list(cases), list[T]()
    while left:
        most, n = Counter(map(subject, left)).most_common(1)[0]
        others = [case for case in left if subject(case) != last] or left
        if most != last and 2 * n > len(left):  # or it would be left over
            others = [case for case in left if subject(case) == most]
        order.append(dice.choice(others))
        left.remove(order[-1])
        last = subject(order[-1])
    return order


class Planned(Protocol, Hashable):
    """A run of a plan."""

    def again(self, n: int) -> Self:
        """Its n-th repetition."""


P = TypeVar("P", bound=Planned)


class Ledger(Generic[P]):
    """The runs that a folder holds, and those that a plan has left.

    rounds: the runs of the plan; id_of: the id of a run, that of its n-th repetition ending in .againN; repeats: how
    often what was disturbed is repeated, at the end. statuses: what became of each recorded run, by id; errors: of
    those that could not be run in this call."""

    def __init__(self, parts: Parts, rounds: Sequence[Sequence[P]], id_of: Callable[[P], str], *, repeats: int) -> None:
        self.parts, self.rounds, self.id_of, self.repeats = parts, rounds, id_of, repeats
        self.statuses: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        self.n_before = 0

    def begin(self, statuses: dict[str, str]) -> None:
        """Know what earlier calls have recorded."""
        self.statuses |= statuses
        self.n_before = len(self.statuses)

    @property
    def runs(self) -> list[P]:
        """All runs of the plan, in order."""
        return [run for round_runs in self.rounds for run in round_runs]

    @property
    def n_clean(self) -> int:
        """How many runs of the plan were recorded undisturbed, at once or when they were repeated."""
        clean = self._clean()
        return sum(self.id_of(run) in clean for run in self.runs)

    @property
    def recorded(self) -> dict[str, int]:
        """Runs of this call by status."""
        return dict(Counter(list(self.statuses.values())[self.n_before :]))

    def _clean(self) -> set[str]:
        return {run_id.partition(AGAIN)[0] for run_id, status in self.statuses.items() if status == CLEAN}

    def left(self, runs: Iterable[P]) -> list[P]:
        """The runs that were never recorded to their end, disturbed or not, and have not failed in this call."""
        return [run for run in runs if self.id_of(run) not in self.statuses and self.id_of(run) not in self.errors]

    def repetition(self, n: int) -> list[P]:
        """The n-th repetition of all runs that are not clean yet and were not repeated so often."""
        clean = self._clean()
        return self.left(run.again(n) for run in self.runs if self.id_of(run) not in clean)

    def todo(self) -> Iterator[list[P]]:
        """What is left of each round, then of each repetition; what is next is asked for when it is its turn."""
        yield from map(self.left, self.rounds)
        for n in range(self.repeats):
            yield self.repetition(n + 1)

    def add(self, name: str, table: pa.Table, record: Record, status: str) -> None:
        """Write a finished run down. name: its id; record: how it was made."""
        self.parts.keep(name, table, record)
        self.statuses[name] = status

    def summary(self, isolation: str, **more: Any) -> "RecordSummary":
        """What this call did."""
        return RecordSummary(len(self.runs), self.n_clean, self.recorded, self.errors, isolation, more)


@dataclass(frozen=True)
class RecordSummary:
    """What a call did. planned, clean: runs of the campaign, and those of them that were recorded undisturbed so far;
    recorded: runs of this call by status; errors: of those that could not be run, by id; isolation: cgroups, or none;
    more: what a word says beside it."""

    planned: int
    clean: int
    recorded: dict[str, int]
    errors: dict[str, str]
    isolation: str
    more: dict[str, Any]

    def as_result(self, folder: str) -> dict[str, Any]:
        """What a flow returns of it: the folder of the recording, and figures."""
        return {
            "folder": folder,
            "isolation": self.isolation,
            "n_planned": self.planned,
            "n_clean": self.clean,
            "n_new": sum(self.recorded.values()),
            "n_failed": len(self.errors),
        } | self.more


def in_time(runs: Iterable[T], ends_s: float) -> Iterator[T]:
    """Runs one after the other, as long as there is time for another (on the monotonic clock)."""
    return takewhile(lambda _: time.monotonic() < ends_s, runs)


@contextlib.contextmanager
def sigterm_unwinds() -> Iterator[None]:
    """SIGTERM raises SystemExit here, so that every `finally` runs; only the main thread can have it so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(*_: object) -> None:
        raise SystemExit(SIGTERM_STATUS)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def recording(word: str, out_dir: Path, *, wait_s: float = 0.0) -> Iterator[None]:
    """A call at work: its folder is there, nobody else records on this machine, and SIGTERM unwinds it.

    wait_s: how long to wait for another recording's end. Raises BadSetting."""
    out_dir.mkdir(parents=True, exist_ok=True)
    with sigterm_unwinds(), only_recorder(word, wait_s=wait_s):
        yield


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Nobody else records into this folder meanwhile. Raises BadSetting."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise BadSetting(
            f"{folder}: another recording is at work here; wait for its end, or use another folder"
        ) from error
    finally:
        os.close(handle)


def on_disk() -> Path:
    """Where scratch folders lie that have to be on a disk: a temporary folder may be memory."""
    return ON_DISK if os.access(ON_DISK, os.W_OK) else Path(tempfile.gettempdir())
