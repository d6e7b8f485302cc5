"""Finished runs on their way into part files: written beside the recording, so that no run waits for the disk."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tasks.jobs.record.parts import KINDS, kind_of, write_part


class PartWriter:
    """Keeps rows until `flush`, which hands them to a thread; all are written when the block ends, however it ends."""

    def __init__(self, folder: Path, record: dict[str, Any]) -> None:
        """record: how the runs were made, kept as metadata of each part."""
        self.folder, self.record = folder, record
        self._rows: dict[str, deque[dict[str, Any]]] = {kind: deque() for kind in KINDS}
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._writing: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
        self._thread.shutdown()
        self._check()

    def add(self, row: dict[str, Any]) -> None:
        """Keep a finished run."""
        self._rows[kind_of(row)].append(row)

    def flush(self) -> None:
        """Have everything kept so far written. Raises what an earlier write failed with."""
        if self._writing is not None and self._writing.done():
            self._check()
        self._writing = self._thread.submit(self._write)

    def _check(self) -> None:
        if self._writing is not None:
            self._writing.result()

    def _write(self) -> None:
        for kind, rows in self._rows.items():
            taken = list(rows)
            if taken:
                write_part(self.folder, kind, taken, self.record)
            for _ in taken:  # only now: what a failed write holds is written by the next one
                rows.popleft()
