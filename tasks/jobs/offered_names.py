"""Names that forms and flags offer: readers, orders, changes; nothing heavy is imported here, so help stays quick."""

from typing import Literal

ReaderName = Literal["auto", "swf", "slurm", "spark", "airflow", "prefect-api", "table"]
AUTO: ReaderName = "auto"


def reader_asked_for(name: ReaderName) -> str:
    """The reader's name for an Intake: empty where the file decides."""
    return "" if name == AUTO else name


Risk = Literal["chance", "excess", "limit"]
RISKS: dict[Risk, str] = {"chance": "exceeds_2x_share", "excess": "expected_excess_s", "limit": "p95_s"}
SORTED: dict[Risk, str] = {
    "chance": "most likely to take twice the usual first",
    "excess": "most time beyond the usual first",
    "limit": "longest first",
}

Named = Literal["no_spare", "newest_sku", "steady_load", "even_load"]  # changes that the paper tries, and one more
