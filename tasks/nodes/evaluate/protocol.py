"""`whorl nodes evaluate`: the whole protocol on anybody's benchmark results."""

import hashlib
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput, MissingTool
from tasks.nodes.aspects import is_contaminated, is_stressed, is_unstressed
from tasks.nodes.detect.contenders import DETECTORS, Detector
from tasks.nodes.evaluate.against_applications import compare_by_machine_type
from tasks.nodes.evaluate.detection import Prepare, detect
from tasks.nodes.evaluate.detection_figures import detection_results
from tasks.nodes.evaluate.figures import Figures
from tasks.nodes.evaluate.learned_figures import learned_figures
from tasks.nodes.evaluate.matrices import node_matrix
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.rank_figures import rank_figures
from tasks.nodes.evaluate.ranked_nodes import ranked_nodes
from tasks.nodes.evaluate.repeat_figures import repeatability_figures
from tasks.nodes.history import History
from tasks.nodes.preprocess.decisions import count_metrics, decisions
from tasks.nodes.preprocess.fitting import fit
from tasks.nodes.reference_fleet import counted_in
from tasks.nodes.repeatability import repeatability_of
from tasks.nodes.tabulating import learn_tables, tables_of
from tasks.nodes.type_tables import Bools, NodeTables
from tasks.progress import report_progress
from tasks.warehouse.versions import code_version

logger = logging.getLogger(__name__)
HASHED = (
    "source", "node", "machine_type", "benchmark", "aspect", "template_hash", "started_at", "duration_s", "status",
    "is_stressed", "dose", "dose_level", "is_contaminated",
)  # fmt: skip


@dataclass(frozen=True)
class Evaluation:
    """figures: number, text, truth or None by key, and `<key>.reason` beside a None. tables: by name."""

    figures: Figures
    tables: dict[str, pd.DataFrame]


def evaluate_history(
    history: History, params: EvaluateParams, detectors: Mapping[str, Detector] = DETECTORS
) -> Evaluation:
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
    detection, ranked = _detection(history, params, detectors), _ranking(tables, is_calm, params)
    for part in (
        detection,
        ranked,
        _repeatability(tables, is_calm, counted_in(ranked.tables["reference"]), params),
        _learned(history, tables, is_calm, params, detectors),
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
        "n_stressed": int(is_stressed(executions).sum()),
        "n_contaminated": int(is_contaminated(executions).sum()),
        "n_not_completed": int((executions["status"] != "completed").sum()),
    }


def _prepare(params: EvaluateParams) -> Prepare:
    def prepare(of: History, is_train: Bools) -> NodeTables:
        return learn_tables(of, is_train, params.preprocess)

    return prepare


def _detection(history: History, params: EvaluateParams, detectors: Mapping[str, Detector]) -> Evaluation:
    report_progress("finding stressed executions", 1, 4)
    found = detect(history, _prepare(params), detectors, params)
    if not params.learned.variants:
        figures, tables = detection_results(history.executions, found, list(detectors))
        return Evaluation(figures, {**tables, "judged": found.judged})
    with _needs_torch():
        from tasks.nodes.evaluate.learned_detection import detect_learned

    learned = detect_learned(history, _prepare(params), params)
    figures, tables = detection_results(history.executions, found, list(detectors), learned)
    judged = [part for part in (found.judged, learned.judged) if len(part)]
    each = pd.concat(judged, ignore_index=True) if judged else found.judged
    return Evaluation(figures | learned_figures(learned), {**tables, "judged": each, "fits": learned.fits})


def _learned(
    history: History,
    tables: NodeTables,
    is_calm: Bools,
    params: EvaluateParams,
    detectors: Mapping[str, Detector],
) -> Evaluation:
    """What else is measured of the learned model; nothing where no variant is asked for."""
    if not params.learned.variants:
        return Evaluation({}, {})
    with _needs_torch():
        from tasks.nodes.evaluate.learned_parts import learned_parts

    return Evaluation(*learned_parts(history, tables, is_calm, _prepare(params), detectors, params))


@contextmanager
def _needs_torch() -> Iterator[None]:
    """Raises MissingTool where a package that the learned model needs is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingTool(
            f"evaluate.learned.variants needs the Python package {error.name}, which is not installed; install whorl "
            "again with what its pyproject.toml names, or ask for no variants"
        ) from error


def _ranking(tables: NodeTables, is_calm: Bools, params: EvaluateParams) -> Evaluation:
    report_progress("ranking nodes", 2, 4)
    found = compare_by_machine_type(node_matrix(tables, is_calm, params.score), params)
    correlations = [one.correlations for one in found if len(one.correlations)]
    ranked, figures = ranked_nodes(tables, is_calm, params)
    each = pd.concat(correlations, ignore_index=True) if correlations else pd.DataFrame()
    return Evaluation(rank_figures(found, params) | figures, {"correlations": each, **ranked})


def _repeatability(
    tables: NodeTables, is_calm: Bools, counted: Collection[tuple[str, str]], params: EvaluateParams
) -> Evaluation:
    report_progress("measuring repeatability", 3, 4)
    found = repeatability_of(tables, is_calm, params.min_runs)
    figures = repeatability_figures(found, tables, counted, params.min_runs)
    return Evaluation(figures, {"repeatability": found.metrics, "pairs": found.pairs})


def sha256_of_history(history: History) -> str:
    """Of what figures are made of: executions, their metrics and telemetry, whatever files they came from."""
    digest = hashlib.sha256()
    frames = (
        (history.executions, HASHED),
        (history.metrics, ("execution", "metric", "value", "unit")),
        (history.telemetry, ("execution", "metric", "unit")),
    )
    for frame, columns in frames:
        for name in columns:
            codes, distinct = pd.factorize(frame[name])
            digest.update(np.ascontiguousarray(codes, dtype=np.int64).tobytes())
            digest.update("\n".join([name, *map(str, distinct)]).encode())
    for name in ("at_s", "samples"):
        for series in history.telemetry[name]:
            digest.update(np.asarray(series, dtype=np.float64).tobytes())
    return digest.hexdigest()
