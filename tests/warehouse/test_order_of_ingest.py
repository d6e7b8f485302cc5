"""Whatever the order: ingest in any order, rebuild, and a plain-Python model of the rules give the same rows."""

import shutil
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.jobs.columns import RUNS_SCHEMA
from tasks.warehouse import landing
from tasks.warehouse.connection import fetch
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse
from tasks.warehouse.rebuild import rebuild

ONGOING = ("running", "pending")


@dataclass(frozen=True)
class Line:
    """One line of an export."""

    run_id: str
    status: str
    runtime_s: float


@dataclass(frozen=True)
class Reading:
    """One file as it was read once: the same file may be read again in another way."""

    source: str
    file: str
    version: str
    lines: tuple[Line, ...]


LINES = st.builds(
    Line, st.sampled_from("abcd"), st.sampled_from(["completed", "failed", "running"]), st.integers(0, 9).map(float)
)
READINGS = st.builds(
    Reading,
    st.sampled_from(["one", "two"]),
    st.sampled_from(["f.csv", "g.csv", "h.csv"]),
    st.sampled_from(["1", "2"]),
    st.lists(LINES, max_size=5).map(tuple),
)


def modelled(readings):
    """The rules, without a database: (source, run id) to line.

    Of each file the reading that came last counts; a reading gives the same lines whenever it is made. Of the lines of
    one run a finished one wins, then that of the file that was first read later, then the later line."""
    first_read, counts = {}, {}
    for at, reading in enumerate(readings):
        first_read.setdefault((reading.source, reading.file), at)
        counts[reading.source, reading.file] = reading
    best = {}
    for key, reading in counts.items():
        for place, line in enumerate(reading.lines):
            rank = (line.status not in ONGOING, first_read[key], place)
            run = (reading.source, line.run_id)
            if run not in best or rank > best[run][0]:
                best[run] = (rank, line)
    return sorted((source, line.run_id, line.status, line.runtime_s) for (source, _), (_, line) in best.items())


def consistent(readings):
    """The same file read in the same way holds the same lines."""
    known = {}
    return [known.setdefault((one.source, one.file, one.version), one) for one in readings]


def rows_of(warehouse):
    found = fetch(warehouse, "SELECT source, run_id, status, runtime_s FROM jobs.runs ORDER BY ALL")
    return [tuple(row) for row in found.itertuples(index=False)]


def kept_of(warehouse):
    """What ops.files and the quarantine say, and that they agree."""
    found = fetch(
        warehouse,
        """SELECT batch_id, n_read, n_kept, n_quarantined,
            (SELECT count(*) FROM ops.quarantine AS bad WHERE bad.batch_id = files.batch_id) AS n_counted
        FROM ops.files AS files ORDER BY batch_id""",
    )
    assert (found["n_quarantined"] == found["n_counted"]).all()
    assert (found["n_read"] == found["n_kept"] + found["n_quarantined"]).all()
    return found.to_numpy().tolist()


def check(folder, migrated, origin, chunk, noon, readings, order):
    warehouse = Warehouse(home=Path(folder), memory_mb=128, threads=1)
    shutil.copy(migrated, warehouse.file)
    readings, batches = consistent(readings), []
    for at, one in enumerate(readings):
        what = origin(one.file, source=one.source, version=one.version)
        chunks = [chunk([vars(line) for line in one.lines])] if one.lines else []
        now = noon + timedelta(minutes=at)
        batches.append(landing.land(warehouse.landing_folder, what, {"runs": RUNS_SCHEMA}, chunks, now=now))
    for at in order:
        ingest(warehouse, "jobs", batches[at % len(batches)].batch_id)
    for batch in landing.live_batches(warehouse.landing_folder, "jobs"):
        ingest(warehouse, "jobs", batch.batch_id)
    incremental, kept = rows_of(warehouse), kept_of(warehouse)
    assert incremental == modelled(readings)
    rebuild(warehouse)
    assert rows_of(warehouse) == incremental
    assert kept_of(warehouse) == kept


def property_over(n_examples, migrated, origin, chunk, noon):
    readings = st.lists(READINGS, min_size=1, max_size=6)
    orders = st.lists(st.integers(0, 5), max_size=8)

    @settings(max_examples=n_examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(readings=readings, order=orders)
    def holds(readings, order):
        with tempfile.TemporaryDirectory(prefix="whorl-order-") as folder:
            check(folder, migrated, origin, chunk, noon, readings, order)

    holds()


@pytest.mark.slow
def test_ingest_in_any_order_equals_rebuild_and_the_model(migrated, origin, chunk, noon):
    property_over(4, migrated, origin, chunk, noon)


@pytest.mark.slow
def test_ingest_in_any_order_equals_rebuild_and_the_model_over_many_exports(migrated, origin, chunk, noon):
    property_over(150, migrated, origin, chunk, noon)
