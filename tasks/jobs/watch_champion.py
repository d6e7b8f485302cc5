"""The model that the watch asks: loaded when it is needed, and not missed where there is none."""

import logging
from typing import TYPE_CHECKING

from tasks.errors import BadInput, NotFound
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import decisions

if TYPE_CHECKING:
    from tasks.jobs.predict.trained import Trained

logger = logging.getLogger(__name__)
Champion = tuple[str, "Trained"]  # id of the model, and the model


def champion_in_use(warehouse: Warehouse, source: str) -> Champion | None:
    """The model in use for a source; None before the first training, and, with a warning, if it cannot be read."""
    try:
        if not any(one.source == source for one in decisions(warehouse.models, "jobs")):
            return None
        from tasks.jobs.predict.training import champion_of  # trees: seconds of import, needed with a model only

        found = champion_of(warehouse, source)
    except (BadInput, NotFound) as error:
        logger.warning("watching source %s without its model: %s", source, error)
        return None
    return (found[0].model_id, found[1]) if found else None
