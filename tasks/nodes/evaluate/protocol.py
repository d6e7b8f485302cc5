"""`whorl nodes evaluate`: the whole protocol on anybody's benchmark results."""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.nodes.aspects import is_unstressed
from tasks.nodes.detectors.registry import PLAIN, Detector
from tasks.nodes.evaluate.against_applications import compare_by_machine_type
from tasks.nodes.evaluate.detection import detect
from tasks.nodes.evaluate.detection_figures import detection_results
from tasks.nodes.evaluate.figures import Figures
from tasks.nodes.evaluate.matrices import node_matrix
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.rank_figures import rank_figures
from tasks.nodes.evaluate.ranked_nodes import ranked_nodes
from tasks.nodes.evaluate.repeat_figures import repeatability_figures
from tasks.nodes.history import History
from tasks.nodes.preprocess.decisions import count_metrics, decisions
from tasks.nodes.preprocess.fitting import fit
from tasks.nodes.repeatability import repeatability_of
from tasks.nodes.tabulating import learn_tables, tables_of
from tasks.nodes.type_tables import Bools, NodeTables
from tasks.progress import report_progress
from tasks.warehouse.versions import code_version

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Evaluation:
    """figures: number, text, truth or None by key, and `<key>.reason` beside a None. tables: by name."""

    figures: Figures
    tables: dict[str, pd.DataFrame]


def evaluate_history(history: History, params: EvaluateParams, detectors: Mapping[str, Detector] = PLAIN) -> Evaluation:
    """Evaluate executions of benchmarks, in one thread: detection where stress is labelled, correlation with
    applications where they ran on the same nodes, repeatability and ranking always.

    detectors: by the name that their figures have. Raises BadInput if there is no execution with a metric."""
    if not len(history.executions) or not len(history.metrics):
        raise BadInput(
            f"{len(history.executions)} executions", "none has a metric", "results of benchmarks", "give other files"
        )
    with threadpool_limits(1):
        return _evaluate(history, params, detectors)


def _evaluate(history: History, params: EvaluateParams, detectors: Mapping[str, Detector]) -> Evaluation:
    report_progress("preprocessing", 0, 4)
    preprocessor = fit(history, params.preprocess)
    tables = tables_of(history, preprocessor)
    is_calm = is_unstressed(history.executions).to_numpy(dtype=bool)
    counts = count_metrics(preprocessor)
    figures = _overview(history, tables) | {"metrics.recorded": counts.recorded, "metrics.kept": counts.kept}
    found_tables = {"metrics": decisions(preprocessor)}
    for part in (
        _detection(history, params, detectors),
        _ranking(tables, is_calm, params),
        _repeatability(tables, is_calm, params),
    ):
        figures |= part.figures
        found_tables |= part.tables
    figures |= {"seed": params.seed, "version": code_version(), "data_sha256": sha256_of_history(history)}
    return Evaluation(figures, found_tables)


def _overview(history: History, tables: NodeTables) -> Figures:
    executions = history.executions
    return {
        "n": len(executions),
        "n_nodes": int(executions["node"].nunique()),
        "n_types": len(tables.tables),
        "n_machine_types": len(set(tables.machine_types)),
        "n_stressed": int(executions["is_stressed"].astype("boolean").fillna(False).sum()),
        "n_contaminated": int(executions["is_contaminated"].astype("boolean").fillna(False).sum()),
        "n_not_completed": int((executions["status"] != "completed").sum()),
    }


def _detection(history: History, params: EvaluateParams, detectors: Mapping[str, Detector]) -> Evaluation:
    report_progress("finding stressed executions", 1, 4)

    def prepare(of: History, is_train: Bools) -> NodeTables:
        return learn_tables(of, is_train, params.preprocess)

    found = detect(history, prepare, detectors, params)
    figures, tables = detection_results(history.executions, found, list(detectors))
    return Evaluation(figures, {**tables, "judged": found.judged})


def _ranking(tables: NodeTables, is_calm: Bools, params: EvaluateParams) -> Evaluation:
    report_progress("ranking nodes", 2, 4)
    found = compare_by_machine_type(node_matrix(tables, is_calm, params.score), params)
    correlations = [one.correlations for one in found if len(one.correlations)]
    ranked, figures = ranked_nodes(tables, is_calm, params)
    each = pd.concat(correlations, ignore_index=True) if correlations else pd.DataFrame()
    return Evaluation(rank_figures(found, params) | figures, {"correlations": each, **ranked})


def _repeatability(tables: NodeTables, is_calm: Bools, params: EvaluateParams) -> Evaluation:
    report_progress("measuring repeatability", 3, 4)
    found = repeatability_of(tables, is_calm, params.min_runs)
    figures = repeatability_figures(found, tables, params.score, params.min_runs)
    return Evaluation(figures, {"repeatability": found.metrics, "pairs": found.pairs})


def sha256_of_history(history: History) -> str:
    """Of the executions and their metrics, whatever files they came from."""
    digest = hashlib.sha256()
    names = ("source", "node", "machine_type", "benchmark", "template_hash", "started_at", "is_stressed", "dose")
    for frame, columns in ((history.executions, names), (history.metrics, ("execution", "metric", "value", "unit"))):
        for name in columns:
            codes, distinct = pd.factorize(frame[name])
            digest.update(np.ascontiguousarray(codes, dtype=np.int64).tobytes())
            digest.update("\n".join([name, *map(str, distinct)]).encode())
    return digest.hexdigest()
