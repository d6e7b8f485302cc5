"""Options of the verbs that read files, of every word: columns of other names, time zones, and where files are."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.shown import clean

KeptUnder = Annotated[
    str, typer.Option("--source", "-s", help="Name to keep the rows under; different sources never mix")
]
Renamed = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="OURS=THEIRS", help="Column of a table that has another name; repeatable"),
]
TimeZone = Annotated[
    str | None, typer.Option(help="Time zone of times that name none, such as Europe/Berlin", show_default=False)
]


def absolute_paths(paths: list[str] | None) -> list[str]:
    """The paths as they are named from anywhere; addresses stay as they are."""
    return [path if "://" in path else str(Path(path).absolute()) for path in paths or []]


def renamed_columns(renamed: list[str] | None, example: str) -> dict[str, str]:
    """Names of columns in the file by ours. example: an OURS=THEIRS. Raises BadParameter for a --map that is none."""
    pairs = [pair.partition("=") for pair in renamed or []]
    if wrong := [ours + sign for ours, sign, theirs in pairs if not (ours and theirs)]:
        raise typer.BadParameter(f"{wrong[0]!r} is not OURS=THEIRS, such as {example}", param_hint="--map")
    return {ours: theirs for ours, _, theirs in pairs}


def labelled_read_flags(
    label_from: str | None, manifest: Path | None, renamed: list[str] | None, time_zone: str | None, *, example: str
) -> dict[str, Any]:
    """Flags of the command line as settings of <word>.read. Raises BadParameter for a --map that is none."""
    told = {
        "label_from": label_from,
        "manifest": str(manifest.absolute()) if manifest else None,
        "columns": renamed_columns(renamed, example) or None,
        "time_zone": time_zone,
    }
    return {key: value for key, value in told.items() if value is not None}


def refuse_unreadable(files: Sequence[str], begin: Callable[[str], object]) -> None:
    """Refuse files of which none can be read, before Prefect is started: a line for each but the last, which is raised.

    begin: reads the beginning of a file, and raises BadInput for one that is wrong as a whole. Addresses of servers
    are not asked: that is left to the flow, which has their keys."""
    from tasks.errors import BadInput

    refused: list[BadInput] = []
    for file in files:
        if file.startswith(("http://", "https://")):
            return
        try:
            begin(file)
        except BadInput as error:
            refused.append(error)
        else:
            return
    for problem in refused[:-1]:
        print(f"whorl: {clean(str(problem))}", file=sys.stderr)
    if refused:
        raise refused[-1]
