"""`whorl jobs evaluate`: the whole protocol on any readable job log, in a temporary warehouse."""

import hashlib
import logging
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.jobs.evaluate_figures import Figures, key_figures, label_figures, log_figures, runtime_figures
from tasks.jobs.intake import (
    WORD,
    Intake,
    find_logs,
    land_log,
)
from tasks.jobs.labels.evaluation import LabelEvaluation, evaluate_labels
from tasks.jobs.predict.job_keys import choose_key
from tasks.jobs.predict.outcomes import ENDED, Outcomes, evaluate_outcomes
from tasks.jobs.predict.params import EvaluateParams
from tasks.jobs.predict.preparation import (
    KINDS,
    Prepared,
    prepare,
)
from tasks.jobs.predict.rows import named_columns, read_runs
from tasks.jobs.predict.runtime_evaluation import (
    RuntimeEvaluation,
    evaluate_runtimes,
)
from tasks.jobs.shape_params import Kind
from tasks.reading import open_plain
from tasks.storage import storage_of
from tasks.warehouse.connection import reading
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import code_version

SOURCE = "evaluated"
CHUNK_BYTES = 1 << 20
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Evaluation:
    """figures: number, text or None by key, and `<key>.reason` beside a None; the rest for tables and figures.

    labels: by kind, without those that could not be learnt; outcomes: how runs end, None where no limit says."""

    figures: Figures
    prepared: Prepared
    labels: dict[Kind, LabelEvaluation]
    runtimes: RuntimeEvaluation
    outcomes: Outcomes | None


def evaluate_logs(paths: Sequence[str], intake: Intake, params: EvaluateParams, memory_mb: int) -> Evaluation:
    """Read the logs into a temporary warehouse and evaluate their runs.

    Raises BadInput for a path that is no job log, and for logs without enough runs."""
    logs = find_logs(list(paths))
    with tempfile.TemporaryDirectory(prefix="whorl-evaluate-") as folder:
        warehouse = Warehouse(home=Path(folder), memory_mb=memory_mb)
        for log in logs:
            ingest(warehouse, WORD, land_log(warehouse, log, intake).batch_id)
        runs, ended = read_runs(warehouse, SOURCE), read_runs(warehouse, SOURCE, statuses=ENDED)
        with reading(warehouse) as connection:
            named = named_columns(connection, SOURCE)
    if runs.empty:
        raise BadInput(
            ", ".join(logs[:3]), "no finished run with a runtime", "runs that have ended", "give more of the log"
        )
    with threadpool_limits(1):
        choice = None if intake.group.by else choose_key(runs, params.predict.characterise.split)
        if choice:
            runs, ended = choice.regrouped(runs), choice.regrouped(ended)
        found = evaluate_runs(runs, params, ended, named)
    found.figures.update(key_figures(choice, intake.group.by))
    found.figures.update(data_sha256=_sha256(logs), version=code_version(), seed=params.seed)
    return found


def evaluate_runs(
    runs: pd.DataFrame, params: EvaluateParams, ended: pd.DataFrame | None = None, named: Collection[str] = ()
) -> Evaluation:
    """Split the runs by time, learn from the earlier ones, score the later ones. runs: of read_runs; ended: the same
    with those that failed or were stopped (default: there are none), for the chances of how a run ends; named: own
    columns that may be features (`preparation.leaks`).

    Raises BadInput for a log with fewer than three times of submission."""
    asked = params.predict
    prepared = prepare(runs, asked.characterise, named=named, known_before=asked.known_before)
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
    of_outcomes, outcomes = evaluate_outcomes(runs if ended is None else ended, params.seed)
    return Evaluation(figures | runtime_figures(found) | of_outcomes, prepared, labels, found, outcomes)


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
