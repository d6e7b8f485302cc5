"""Labels of runs: from the columns of a file, from its name or folder, or from a manifest."""

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tasks.intake.labels import absolute, manifest, named_column, path_label, path_stem
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
    entries = [one for one in manifest(params.manifest, EXPECTED) if one["path"] == whole]
    by_run = {one["run_id"]: _labels(one) for one in entries if one.get("run_id")}
    of_all = [one for one in entries if not one.get("run_id")]
    return FileLabels(run_id, labels | (_labels(of_all[-1]) if of_all else {}), by_run)


def label_column(params: ReadParams) -> str:
    """The column that --label-from names, or empty."""
    return named_column(params.label_from)


def _labels(entry: dict[str, str]) -> dict[str, str]:
    return {name: entry[name] for name in LABELS if entry.get(name)}
