"""`whorl jobs evaluate`: the whole protocol on any readable job log, in a temporary warehouse."""

import hashlib
import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.jobs.evaluate_figures import Figures, label_figures, log_figures, runtime_figures
from tasks.jobs.intake import (
    WORD,
    Intake,
    find_logs,
    land_log,
)
from tasks.jobs.labels.evaluation import LabelEvaluation, evaluate_labels
from tasks.jobs.predict.outcomes import ENDED, outcome_figures
from tasks.jobs.predict.params import EvaluateParams
from tasks.jobs.predict.preparation import (
    KINDS,
    Prepared,
    prepare,
)
from tasks.jobs.predict.rows import read_runs
from tasks.jobs.predict.runtime_evaluation import RuntimeEvaluation, evaluate_runtimes
from tasks.jobs.shape_params import Kind
from tasks.reading import open_plain
from tasks.storage import storage_of
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import code_version

SOURCE = "evaluated"
CHUNK_BYTES = 1 << 20
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Evaluation:
    """figures: number, text or None by key, and `<key>.reason` beside a None; the rest for tables and figures.

    labels: by kind, without those that could not be learnt."""

    figures: Figures
    prepared: Prepared
    labels: dict[Kind, LabelEvaluation]
    runtimes: RuntimeEvaluation


def evaluate_logs(paths: Sequence[str], intake: Intake, params: EvaluateParams, memory_mb: int) -> Evaluation:
    """Read the logs into a temporary warehouse and evaluate their runs.

    Raises BadInput for a path that is no job log, and for logs without enough runs."""
    logs = find_logs(list(paths))
    with tempfile.TemporaryDirectory(prefix="whorl-evaluate-") as folder:
        warehouse = Warehouse(home=Path(folder), memory_mb=memory_mb)
        for log in logs:
            ingest(warehouse, WORD, land_log(warehouse, log, intake).batch_id)
        runs, ended = read_runs(warehouse, SOURCE), read_runs(warehouse, SOURCE, statuses=ENDED)
    if runs.empty:
        raise BadInput(
            ", ".join(logs[:3]), "no finished run with a runtime", "runs that have ended", "give more of the log"
        )
    with threadpool_limits(1):
        found = evaluate_runs(runs, params)
        found.figures.update(outcome_figures(ended, params.seed))
    found.figures.update(data_sha256=_sha256(logs), version=code_version(), seed=params.seed)
    return found


def evaluate_runs(runs: pd.DataFrame, params: EvaluateParams) -> Evaluation:
    """Split the runs by time, learn from the earlier ones, score the later ones. runs: of read_runs.

    Raises BadInput for a log with fewer than three times of submission."""
    prepared = prepare(runs, params.predict.characterise)
    figures = log_figures(prepared)
    labels: dict[Kind, LabelEvaluation] = {}
    for kind in KINDS:
        reason = ""
        try:
            labels[kind] = evaluate_labels(prepared, kind, params)
        except BadInput as error:  # no job with enough runs: runtimes are still predicted
            reason = str(error)
            logger.warning("%s: no labels: %s", kind, error)
        figures |= label_figures(prepared, kind, labels.get(kind), reason)
    found = evaluate_runtimes(prepared, {kind: one.probabilities for kind, one in labels.items()}, params)
    return Evaluation(figures | runtime_figures(found), prepared, labels, found)


def _sha256(logs: Sequence[str]) -> str:
    """Of the files' contents in the order of their names; of its name for what is no file."""
    total = hashlib.sha256()
    for log in sorted(logs):
        if "://" in log:
            total.update(log.encode())
            continue
        files, name = storage_of(log)
        names = sorted(str(one) for one in files.find(name)) if files.isdir(name) else [name]
        for one in names:
            with open_plain(one) as content:
                while chunk := content.read(CHUNK_BYTES):
                    total.update(chunk)
    return total.hexdigest()
