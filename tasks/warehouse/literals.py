"""SQL for the places where DuckDB takes no parameter."""


def as_text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def parquet(path: str) -> str:
    """The rows of one landing file; a folder called `env=prod` above it is a name and no column."""
    return f"read_parquet({as_text(path)}, hive_partitioning = false)"
