"""Labels of runs: from the columns of a file, from its name or folder, or from a manifest."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from tasks.errors import BadInput, quoted
from tasks.intake.files import csv_fields, json_of, read_lines
from tasks.intake.limits import ReadLimits
from tasks.path_labels import named_column, path_label, path_stem
from tasks.storage import ADDRESS
from tasks.workloads.columns import LABELS
from tasks.workloads.reading_params import ReadParams

EXPECTED = "the columns path and one of " + ", ".join(LABELS)
ENDINGS = (".gz", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".sys", ".log", ".out")


@dataclass(frozen=True)
class FileLabels:
    """What is known of the runs of a file from outside of it.

    run_id: for a file that names none. labels: of every run of the file; by_run: of single ones, by run id."""

    run_id: str
    labels: dict[str, str] = field(default_factory=dict)
    by_run: dict[str, dict[str, str]] = field(default_factory=dict)

    def of(self, run_id: str) -> dict[str, str]:
        """The labels of one run."""
        return self.labels | self.by_run.get(run_id, {})


def file_labels(path: str, params: ReadParams) -> FileLabels:
    """The run id and labels of a file: folder and name, --label-from, then the manifest, which wins.

    Raises BadSetting for another --label-from, BadInput for a manifest that cannot be used."""
    whole = absolute(path)
    workload = path_label(whole, params.label_from, ENDINGS)
    labels = {"workload": workload} if workload is not None else {}
    run_id = "/".join(filter(None, (PurePosixPath(whole).parent.name, path_stem(whole, ENDINGS))))
    if not params.manifest:
        return FileLabels(run_id, labels)
    entries = [one for one in manifest(params.manifest) if one["path"] == whole]
    by_run = {one["run_id"]: _labels(one) for one in entries if one.get("run_id")}
    of_all = [one for one in entries if not one.get("run_id")]
    return FileLabels(run_id, labels | (_labels(of_all[-1]) if of_all else {}), by_run)


def label_column(params: ReadParams) -> str:
    """The column that --label-from names, or empty."""
    return named_column(params.label_from)


def absolute(path: str) -> str:
    """A path that tells files apart wherever it is named from."""
    return path if ADDRESS in path else str(Path(path).expanduser().resolve())


def manifest(path: str) -> list[dict[str, str]]:
    """The entries of a manifest, their paths absolute (in the file they are relative to its folder).

    CSV with a header line, or JSON lines. Raises BadInput for one without `path` or with a broken line."""
    limits = ReadLimits()
    lines = [
        (place, text)
        for block in read_lines(path, limits)
        for place, text in zip(block.places, block.lines, strict=True)
        if text.strip()
    ]
    if not lines:
        raise BadInput(path, "no entry in it", EXPECTED, "write one line a file")
    is_json = lines[0][1].lstrip().startswith("{")
    entries = list(_json_entries(path, lines) if is_json else _csv_entries(path, lines))
    base = "" if ADDRESS in path else str(Path(path).expanduser().resolve().parent)
    return [{**one, "path": _placed(base, one["path"])} for one in entries]


def _json_entries(path: str, lines: list[tuple[int, str]]) -> Iterator[dict[str, str]]:
    for place, text in lines:
        try:
            entry: Any = json_of(text)
        except ValueError as error:
            raise BadInput(f"{path}, line {place}", f"malformed JSON ({error})", "one object a line") from error
        if not isinstance(entry, dict) or not entry.get("path") or "\0" in str(entry["path"]):
            raise BadInput(f"{path}, line {place}", "no path", EXPECTED, "name the file")
        yield {str(key): str(value) for key, value in entry.items() if value is not None}


def _csv_entries(path: str, lines: list[tuple[int, str]]) -> Iterator[dict[str, str]]:
    rows = [_fields(path, place, text) for place, text in lines]
    names = [name.strip() for name in rows[0]]
    if "path" not in names:
        raise BadInput(path, f"no column path among {quoted(names)}", EXPECTED, "add a header line")
    for (place, _), row in zip(lines[1:], rows[1:], strict=True):
        if len(row) != len(names):
            raise BadInput(f"{path}, line {place}", f"{len(row)} fields; the header has {len(names)}", EXPECTED)
        entry = {name: value.strip() for name, value in zip(names, row, strict=True) if value.strip()}
        if "path" not in entry:
            raise BadInput(f"{path}, line {place}", "no path", EXPECTED, "name the file")
        yield entry


def _fields(path: str, place: int, text: str) -> list[str]:
    try:
        return csv_fields(text)
    except ValueError as error:
        raise BadInput(f"{path}, line {place}", f"no line of CSV ({error})", EXPECTED, "mend the line") from error


def _labels(entry: dict[str, str]) -> dict[str, str]:
    return {name: entry[name] for name in LABELS if entry.get(name)}


def _placed(base: str, path: str) -> str:
    return path if ADDRESS in path else str((Path(base) / Path(path).expanduser()).resolve())
