"""Labels that --label-from makes of the path of a file, whatever the word calls them."""

from pathlib import PurePosixPath

from tasks.errors import BadSetting

COLUMN = "column:"


def path_label(path: str, label_from: str, endings: tuple[str, ...]) -> str | None:
    """The label that `label_from` makes of an absolute path; None where it is empty, or names a column.

    endings: see path_stem. Raises BadSetting for another one."""
    if label_from == "stem":
        return path_stem(path, endings)
    if label_from == "parent":
        return PurePosixPath(path).parent.name
    if label_from and not named_column(label_from):
        raise BadSetting(f"label_from {label_from!r}: expected stem, parent or column:NAME; mend --label-from")
    return None


def named_column(label_from: str) -> str:
    """The column that `label_from` names, or empty."""
    return label_from.removeprefix(COLUMN) if label_from.startswith(COLUMN) else ""


def path_stem(path: str, endings: tuple[str, ...]) -> str:
    """The name of a file without its endings. endings: those that are taken off, in lower case."""
    stem = PurePosixPath(path).name
    while stem.lower().endswith(endings) and stem.rpartition(".")[0]:
        stem = stem.rpartition(".")[0]
    return stem
