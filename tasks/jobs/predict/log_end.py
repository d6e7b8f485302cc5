"""The end of a job log, which is what `now` means to a question about it."""

from pathlib import Path

import pandas as pd

from tasks.errors import NotFound
from tasks.warehouse.connection import Connection

ENDS = Path(__file__).with_name("log_end.sql")


def log_end(connection: Connection, source: str, *, with_unfinished: bool = False) -> pd.Timestamp:
    """The moment just after the last submission or end of a finished run of a source, UTC, as predicting.end_of has it.

    with_unfinished: of any run, also submitted and started ones that go on. Raises NotFound for a source without."""
    found = connection.execute(ENDS.read_text(), {"source": source, "with_unfinished": with_unfinished}).fetchone()
    if found is None or found[0] is None:
        raise NotFound(f"source {source!r} has no run that has ended; fill it with 'whorl jobs ingest FILE'")
    return pd.Timestamp(found[0])
