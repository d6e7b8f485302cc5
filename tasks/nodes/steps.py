"""The steps of `nodes` about results themselves: keys in, keys out. Flows wrap them; the command line may call some."""

import logging

from tasks.nodes import intake
from tasks.nodes.reading_params import ReadParams
from tasks.warehouse import ingest
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

logger = logging.getLogger(__name__)
EMULATED = """
SELECT count(DISTINCT node) AS n_emulated FROM nodes.executions WHERE source = $source AND is_emulated
"""


def find_files(paths: list[str], read: ReadParams) -> list[str]:
    """The files and folders of results behind files, folders and the manifest, databases of Perona last."""
    return intake.local_last(intake.find_files(paths, read.manifest))


def land_executions(warehouse: Warehouse, path: str, source: str, reader: str, read: ReadParams) -> str:
    """Read one file or folder into the landing folder; returns the batch id."""
    batch = intake.land_executions(warehouse, path, intake.Intake(source, reader, read))
    n_executions, n_refused = batch.tables["executions"].n_rows, batch.n_quarantined
    logger.info("read %s with %s: %d executions, %d rows refused", path, batch.origin.reader, n_executions, n_refused)
    return batch.batch_id


def ingest_batch(warehouse: Warehouse, batch_id: str) -> str:
    """Load a landed batch into the warehouse; returns its id."""
    is_new = ingest.ingest(warehouse, intake.WORD, batch_id)
    logger.info("batch %s %s", batch_id, "loaded" if is_new else "was in the warehouse already")
    return batch_id


def source_version(warehouse: Warehouse, source: str, after: list[str]) -> str:
    """The version of the files of a source. after: batches that it rests on; a continued run with others asks again."""
    with reading(warehouse) as connection:
        version = data_version(connection, intake.WORD, source)
    logger.info("source %s has data version %s after %d batches", source, version, len(after))
    return version


def count_emulated(warehouse: Warehouse, source: str, after: list[str]) -> int:
    """How many nodes of a source are emulated. after: batches that it rests on, as for source_version."""
    found = fetch(warehouse, EMULATED, {"source": source})
    logger.debug("counted emulated nodes of source %s after %d batches", source, len(after))
    return int(found["n_emulated"].iloc[0])
