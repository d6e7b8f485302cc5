"""The tables of an evaluation, as Parquet files in a folder."""

from pathlib import Path

from tasks.nodes.evaluate.protocol import Evaluation


def write_tables(found: Evaluation, folder: Path) -> list[Path]:
    """One file a table that has rows; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in found.tables.items():
        if len(table):
            path = folder / f"{name}.parquet"
            table.to_parquet(path, index=False)
            written.append(path)
    return written
