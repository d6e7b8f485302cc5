"""Which nodes of a source are emulated: they are called so wherever their names are shown."""

import pandas as pd

from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

EMULATED = "SELECT DISTINCT node FROM nodes.executions WHERE source = $source AND is_emulated"


def with_emulated(rows: pd.DataFrame, warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The rows with a column is_emulated. rows: of nodes of the source, with their names in `node`."""
    emulated = fetch(warehouse, EMULATED, {"source": source})["node"]
    return rows.assign(is_emulated=rows["node"].isin(emulated))
