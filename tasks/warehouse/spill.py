"""What DuckDB puts on the disk when memory is short, and what a killed process left of it."""

import logging
from pathlib import Path

SPILLED = "duckdb_temp_"  # DuckDB's prefix, before the process id; it removes these files itself unless it is killed
MB = 1_000_000

logger = logging.getLogger(__name__)


def clear_spill(folder: Path) -> list[Path]:
    """Remove what was spilled by processes that are gone; returns the files. Other files in the folder stay.

    The caller holds the exclusive lock and has no connection yet, so nobody alive needs any of them, whatever process
    id stands in their names: in a container the next process often gets the same one."""
    removed, n_bytes = [], 0
    for file in sorted(folder.glob(f"{SPILLED}*")):
        try:
            size = file.stat().st_size
            file.unlink()
        except OSError as error:  # another user's: no reason to keep a writer from its work
            logger.warning("%s: cannot be removed (%s); a killed process left it", file, error.strerror)
            continue
        removed.append(file)
        n_bytes += size
    if removed:
        logger.info("removed %d files that killed processes spilled, %d MB", len(removed), n_bytes // MB)
    return removed
