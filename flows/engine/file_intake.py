"""What the flows that read files share: which files there are, and one line about those that could not be read."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from tasks.errors import BadInput
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)


def files_or_inbox(
    warehouse: Warehouse, inbox_name: str, paths: list[str], *, is_named: bool, find: Callable[[list[str]], list[str]]
) -> list[str]:
    """The files behind the paths, else in the inbox; one that nobody has put anything into is no error on a schedule.

    is_named: whether paths, or a manifest, say what to read; find: the files behind paths."""
    if is_named:
        return find(paths)
    inbox = warehouse.home / inbox_name
    if not inbox.exists() or not any(inbox.iterdir()):
        logger.info("nothing to read: %s is empty", inbox)
        return []
    return find([str(inbox)])


def load_each(files: list[str], load: Callable[[str], str]) -> tuple[list[str], list[BadInput]]:
    """What load makes of each file, such as the id of its batch, and why others could not be read."""
    loaded: list[str] = []
    refused: list[BadInput] = []
    for path in files:
        try:
            loaded.append(load(path))
        except BadInput as error:
            refused.append(error)
    return loaded, refused


class NotAllRead(BadInput):
    """Some files could not be read. result: of the flow, about those that are loaded; refused: a line a file."""

    result: Mapping[str, Any]
    refused: list[str]


def not_all_read(refused: list[BadInput], n_files: int, expected: str, result: Mapping[str, Any]) -> NotAllRead:
    """What a flow raises at its end, whose result is not lost. expected: what the files should have been."""
    line = _all_in_one(refused, n_files, expected)
    error = NotAllRead(line.where, line.problem, line.expected, line.fix)
    error.result, error.refused = result, [str(one) for one in refused]
    return error


def _all_in_one(refused: list[BadInput], n_files: int, expected: str) -> BadInput:
    """One line about all files that could not be read."""
    n_loaded = n_files - len(refused)
    rest = f"the other {n_loaded} of {n_files} files are loaded" if n_loaded else ""
    first = refused[0]
    if len(refused) == 1:
        return BadInput(first.where, first.problem, first.expected, "; ".join(filter(None, (first.fix, rest))))
    where = f"{len(refused)} of {n_files} files"
    return BadInput(where, f"could not be read, the first: {first}", expected, rest)
