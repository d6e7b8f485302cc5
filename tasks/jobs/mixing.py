"""Whether the runs of a source were measured or drawn: figures never mix the two, and say so where all were drawn."""

import logging
from typing import Literal

from tasks.jobs.summary import refuse_mixture
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)
Kind = Literal["measured", "simulated"]


def kind_of_runs(warehouse: Warehouse, source: str) -> Kind:
    """What the runs of a source are; a log line says so if they are simulated.

    Raises NotFound if there are none, BadInput if simulated runs stand among measured ones."""
    with reading(warehouse) as connection:
        n_simulated, _ = refuse_mixture(connection, source)
    if not n_simulated:
        return "measured"
    logger.warning("source %r is simulated: its runs were drawn, not measured", source)
    return "simulated"
