"""The records of an Airflow export: objects of the REST API's JSON, or lines of a CSV of the table task_instance."""

from collections.abc import Iterator

from tasks.jobs.readers.airflow_csv import csv_records
from tasks.jobs.readers.airflow_found import Found
from tasks.jobs.readers.airflow_json import json_records
from tasks.read_limits import ReadLimits
from tasks.reading import open_checked

BLOCK_BYTES = 1024 * 1024
JSON_MARKS = (b"{", b"[")


def read_records(path: str, limits: ReadLimits) -> Iterator[Found]:
    """The records of an export, in its order. Raises BadInput for a file that is none."""
    with open_checked(path, limits) as stream:
        start = stream.read(BLOCK_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    return (json_records if start.startswith(JSON_MARKS) else csv_records)(path, limits)
