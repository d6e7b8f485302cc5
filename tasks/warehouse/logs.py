"""The write-ahead logs that DuckDB keeps beside a file: they belong to that file and to no other."""

from datetime import UTC, datetime
from pathlib import Path

ENDINGS = (".wal", ".wal.checkpoint", ".wal.recovery")  # what DuckDB 2.0 writes


def logs_of(file: Path) -> list[Path]:
    """The logs that stand beside a file now; none if all that was committed is in the file itself."""
    return [log for ending in ENDINGS if (log := file.with_name(f"{file.name}{ending}")).exists()]


def move_logs(file: Path, target: Path) -> None:
    """Rename the logs of one file to be those of another."""
    for log in logs_of(file):
        log.rename(target.with_name(f"{target.name}{log.name.removeprefix(file.name)}"))


def set_aside(file: Path, reason: str) -> Path:
    """A name beside `file` that is free: file name, reason and time."""
    return file.with_name(f"{file.name}.{reason}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%f')}")


def remove_with_logs(file: Path) -> None:
    """Remove a draft and its logs, if they are there."""
    for leftover in (file, *logs_of(file)):
        leftover.unlink(missing_ok=True)
