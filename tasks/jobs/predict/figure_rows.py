"""jobs.model_figures: what a training measured on the runs that it held out."""

import pyarrow as pa

from tasks.jobs.evaluate_figures import Figures
from tasks.warehouse.connection import reading, transaction, writing
from tasks.warehouse.place import Warehouse

REASON = ".reason"


def write_figures(warehouse: Warehouse, source: str, model_id: str, figures: Figures) -> None:
    """Write the figures of one model; twice changes nothing. `<key>.reason` becomes the reason of `<key>`."""
    keys = [key for key in figures if not key.endswith(REASON)]
    numbers = [key for key in keys if figures[key] is None or isinstance(figures[key], int | float)]
    rows = pa.table(
        {
            "source": pa.array([source] * len(numbers), pa.string()),
            "model_id": pa.array([model_id] * len(numbers), pa.string()),
            "key": pa.array(numbers, pa.string()),
            "value": pa.array([figures[key] for key in numbers], pa.float64()),
            "reason": pa.array([figures.get(key + REASON) for key in numbers], pa.string()),
        }
    )
    values = {"source": source, "model_id": model_id}
    with writing(warehouse) as connection, transaction(connection):
        connection.execute("DELETE FROM jobs.model_figures WHERE source = $source AND model_id = $model_id", values)
        connection.register("new_rows", rows)
        connection.execute("INSERT INTO jobs.model_figures BY NAME SELECT * FROM new_rows").fetchall()
        connection.unregister("new_rows")


def read_figures(warehouse: Warehouse, source: str, model_id: str) -> Figures:
    """The figures of one model as its training returned them; none for a model that is not known."""
    with reading(warehouse) as connection:
        rows = connection.execute(
            "SELECT key, value, reason FROM jobs.model_figures WHERE source = $source AND model_id = $model_id "
            "ORDER BY key",
            {"source": source, "model_id": model_id},
        ).fetchall()
    figures: Figures = {}
    for key, value, reason in rows:
        figures |= {key: value} if value is not None else {key: None, f"{key}{REASON}": reason}
    return figures
