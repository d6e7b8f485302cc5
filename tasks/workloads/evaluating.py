"""An evaluation of telemetry in files, with the runs that it was made on: its page shows some of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.warehouse.versions import code_version
from tasks.workloads.evaluate.params import EvaluateParams
from tasks.workloads.evaluate.protocol import Evaluation, evaluate_runs
from tasks.workloads.evaluate.reading import read_labelled
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.telemetry import Telemetry


@dataclass(frozen=True)
class EvaluatedFiles:
    """What was found, and the labelled runs of the files."""

    evaluation: Evaluation
    runs: list[Telemetry]


def evaluate_read(paths: Sequence[str], read: ReadParams, params: EvaluateParams, reader: str = "") -> EvaluatedFiles:
    """Read the files into memory and evaluate their labelled runs.

    Raises BadInput for a file that is wrong as a whole, if no run has a label, and if the runs have no counter in
    common."""
    found = read_labelled(paths, read, reader)
    evaluation = evaluate_runs(found.runs, params)
    evaluation.figures.update(
        {
            "n_unlabelled": found.n_unlabelled,
            "rows.kept": found.n_rows,
            "rows.refused": found.n_refused,
            "data_sha256": found.data_sha256,
            "version": code_version(),
        }
    )
    return EvaluatedFiles(evaluation, found.runs)
