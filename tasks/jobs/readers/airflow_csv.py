"""The records of a CSV of Airflow's table task_instance; `place` is the number of the line."""

import csv
from collections.abc import Iterator

from tasks.errors import BadInput
from tasks.jobs.readers.airflow_fields import missing_fields
from tasks.jobs.readers.airflow_found import EXPECTED, Found, shown
from tasks.jobs.readers.missing_words import MISSING_WORDS
from tasks.read_limits import ReadLimits
from tasks.reading import read_lines

SEPARATORS = (",", ";", "\t", "|")
NAMES = ("dag_id", "task_id")  # never missing in the table: a task may be called None


def csv_records(path: str, limits: ReadLimits) -> Iterator[Found]:
    """The lines below the header. Raises BadInput for a header that lacks a column."""
    names: list[str] = []
    separator = ","
    for lines in read_lines(path, limits):
        for place, reason, raw in lines.refused.itertuples(index=False):
            yield Found(int(place), None, str(reason), str(raw))
        for place, line in zip(lines.places, lines.lines, strict=True):
            if not line.strip():
                continue
            if not names:
                names, separator = _header(path, line)
                continue
            yield _record(place, line, names, separator)
    if not names:
        raise BadInput(path, "only blank lines", EXPECTED, "export it again")


def _header(path: str, line: str) -> tuple[list[str], str]:
    separator = max(SEPARATORS, key=line.count)
    names = [name.strip().strip('"').lower() for name in line.split(separator)]
    lacks = missing_fields(set(names))
    if lacks:
        raise BadInput(path, f"the header lacks {', '.join(lacks)}", EXPECTED, "export these columns as well")
    return names, separator


def _record(place: int, line: str, names: list[str], separator: str) -> Found:
    """One line is one record: a quoted field with a line feed in it is told, not guessed."""
    try:
        fields = next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as error:
        return Found(place, None, f"not a line of CSV ({error}); leave out columns that hold line feeds", line)
    if len(fields) != len(names):
        return Found(place, None, f"{len(fields)} fields instead of {len(names)}", line)
    pairs = zip(names, fields, strict=True)
    record = {name: "" if name not in NAMES and field in MISSING_WORDS else field for name, field in pairs}
    return Found(place, record, "", shown(record))
