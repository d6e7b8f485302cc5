"""Fields of text: the names in a header line and what parts them, missing values, numbers; light to import."""

import csv
import re
from collections.abc import Collection

MISSING = ["", "-", "--", "n/a", "na", "nan", "none", "null", "nat", "\\n"]  # in lower case
DELIMITERS = ",;\t|"


def csv_fields(line: str, delimiter: str = ",", *, strict: bool = False) -> list[str]:
    """The fields of one line of CSV. Raises ValueError for what is none, such as a field over 131,072 characters."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=strict), [])
    except csv.Error as error:
        raise ValueError(str(error)) from error


def split_header(line: str, known: Collection[str] = ()) -> tuple[list[str], str]:
    """The names in a header line, and the delimiter: the one that makes most of them known, then most of them."""
    splits = []
    for mark in DELIMITERS:
        try:
            names = csv_fields(line, mark)
        except ValueError:  # a field that is too long for a name
            names = line.split(mark)
        splits.append(([name.strip() for name in names], mark))
    return max(splits, key=lambda split: (sum(name in known for name in split[0]), len(split[0])))


def key_of(name: str) -> str:
    """What spellings of one name share: small letters, digits, and the dots of nested names."""
    return re.sub(r"[^a-z0-9.%]", "", name.lower())


def number_of(text: object) -> float | None:
    """A number as Python reads it; None for what is none."""
    try:
        return float(str(text)) if text is not None else None
    except ValueError:
        return None
