"""The steps of a recording of benchmarks: keys in, keys and figures out."""

import logging
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from tasks.nodes.node_words import WORD
from tasks.nodes.record.params import SHORT, RecordParams
from tasks.progress import report_progress
from tasks.warehouse import landing
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.faults import told_clearly
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    from tasks.nodes.record.params import BenchmarkTemplate

Turn = Callable[["BenchmarkTemplate"], AbstractContextManager[object]]

PARTS = "executions-*.parquet"  # disturbed executions stand in flagged-*.parquet, and are repeated
RECORDED_AS = "recorded"
logger = logging.getLogger(__name__)


class Recording(TypedDict):
    """Where a recording is, and what the call added. isolation: cgroups, or none; nodes: that were recorded.

    n_planned, n_clean: executions of the whole campaign, and those of them that were recorded undisturbed so far (of
    this call where there is no campaign); n_new: executions that this call recorded, n_failed: that could not be run;
    unavailable: what of a node does not work on this machine; sampler_cores: CPU time of the sampler over time."""

    folder: str
    campaign: str
    isolation: str
    nodes: list[str]
    n_planned: int
    n_clean: int
    n_new: int
    n_failed: int
    unavailable: dict[str, list[str]]
    sampler_cores: float


def record(params: RecordParams, out_dir: str, turn: Turn | None = None) -> Recording:
    """Run and record benchmarks on this machine; returns the folder of the recording, and figures.

    turn: entered around each execution, so that those that need the network can wait for each other."""
    from tasks.nodes.record.campaign import record_nodes

    folder = Path(out_dir)

    def tell(done: int, total: int) -> None:
        report_progress("recording benchmarks", done, total)

    found = record_nodes(params, folder, tell, turn=turn)
    logger.info("recorded %s", found)
    return Recording(
        folder=out_dir,
        campaign=found.campaign,
        isolation=found.isolation,
        nodes=list(found.nodes),
        n_planned=found.planned,
        n_clean=found.clean,
        n_new=sum(found.recorded.values()),
        n_failed=len(found.errors),
        unavailable={node: list(faults) for node, faults in found.unavailable.items()},
        sampler_cores=found.sampler_cores,
    )


def land_recording(folder: str, landing_folder: str, source: str, after: int) -> list[str]:
    """Put the parts of a recording into a landing folder, which any number of nodes may share; returns the batch ids.

    Parts that were put there before stay as they are. after: executions recorded so far: with more it is done again."""
    from tasks.nodes.intake import Intake, land_executions
    from tasks.nodes.reading_params import ReadParams

    logger.debug("landing after %d executions", after)
    asked = Intake(source, RECORDED_AS, ReadParams())
    with tempfile.TemporaryDirectory(prefix="whorl-landing-") as home:  # this machine needs no warehouse
        place = Warehouse(home=Path(home), landing=landing_folder)
        with told_clearly(place.landing_folder):
            known = landing.batches(place.landing_folder, WORD)  # once, and not for each part: they become many
        batches: list[landing.Batch] = []
        for part in sorted(Path(folder).glob(PARTS), key=lambda path: (len(path.name), path.name)):
            batches.append(land_executions(place, str(part), asked, [*known, *batches]))
    logger.info("%d parts of %s are in %s, source %s", len(batches), folder, landing_folder, source)
    return [batch.batch_id for batch in batches]


def landed_batches(warehouse: Warehouse, source: str) -> list[str]:
    """The ids of batches of a source that lie in the landing folder and are not in the warehouse yet, in order."""
    there = [batch for batch in landing.live_batches(warehouse.landing_folder, WORD) if batch.origin.source == source]
    if not there or not warehouse.file.exists():
        return [batch.batch_id for batch in there]
    with reading(warehouse) as connection:
        known = {
            batch_id
            for (batch_id,) in connection.execute("SELECT batch_id FROM ops.files WHERE word = ?", [WORD]).fetchall()
        }
    return [batch.batch_id for batch in there if batch.batch_id not in known]


def benchmarks_of_aspect(warehouse: Warehouse, source: str, node: str, aspect: str) -> list[str]:
    """The benchmarks of an aspect that a node has run and that our recorder can run, by name."""
    found = fetch(
        warehouse,
        "SELECT DISTINCT benchmark FROM nodes.executions "
        "WHERE source = $source AND node = $node AND coalesce(aspect, 'unknown') = $aspect ORDER BY benchmark",
        {"source": source, "node": node, "aspect": aspect},
    )
    ours = {template.benchmark for template in SHORT}
    return [str(name) for name in found["benchmark"] if name in ours]
