"""Labels of files from outside of them: of their path, as --label-from says, and of a manifest."""

import re
from pathlib import Path, PurePosixPath

from tasks.errors import BadInput, BadSetting, quoted
from tasks.intake.tables import WholeTable, check_once, whole_table
from tasks.params import ReadLimits
from tasks.storage import ADDRESS

COLUMN = "column:"
REPETITION = re.compile(r"[-_. ]+\d+$")  # what a name ends in that is the same workload once more: redis-2


def path_label(path: str, label_from: str, endings: tuple[str, ...]) -> str | None:
    """The label that `label_from` makes of an absolute path; None where it is empty, or names a column.

    endings: see path_stem; name is a stem without the number at its end. Raises BadSetting for another one."""
    if label_from in ("stem", "name"):
        stem = path_stem(path, endings)
        return stem if label_from == "stem" else REPETITION.sub("", stem)
    if label_from == "parent":
        return PurePosixPath(path).parent.name
    if label_from and not named_column(label_from):
        raise BadSetting(f"label_from {label_from!r}: expected stem, name, parent or column:NAME; mend --label-from")
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


def absolute(path: str) -> str:
    """A path that tells files apart wherever it is named from."""
    return path if ADDRESS in path else str(Path(path).expanduser().resolve())


def manifest(path: str, expected: str) -> list[dict[str, str]]:
    """The entries of a manifest, CSV or JSON, their paths absolute (in the file they are relative to its folder).

    expected: its columns in words. Raises BadInput for one without `path` or with a broken line."""
    table: WholeTable = whole_table(path, ReadLimits(), row="file")
    if len(table.refused):
        first = table.refused.iloc[0]
        raise BadInput(f"{path}, line {first['place']}", str(first["reason"]), expected, "mend the line")
    check_once(path, table.names, ["path"])
    if "path" not in table.names:
        raise BadInput(path, f"no column path among {quoted(table.names)}", expected, "add a header line")
    columns = {name: [_text(value) for value in column.to_pylist()] for name, column in table.by_name().items()}
    base = "" if ADDRESS in path else str(Path(path).expanduser().resolve().parent)
    entries = []
    for row, place in enumerate(table.places.tolist()):
        entry = {name: texts[row] for name, texts in columns.items() if texts[row]}
        if "\0" in entry.get("path", "\0"):
            raise BadInput(f"{path}, line {place}", "no path", expected, "name the file")
        entries.append({**entry, "path": _placed(base, entry["path"])})
    return entries


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _placed(base: str, path: str) -> str:
    return path if ADDRESS in path else str((Path(base) / Path(path).expanduser()).resolve())
