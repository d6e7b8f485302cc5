"""`whorl nodes evaluate`: the whole protocol on anybody's benchmark results, as figures by key and as tables."""

import hashlib
from collections.abc import Collection

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput, report_progress
from tasks.nodes.detect.plain import DETECTORS
from tasks.nodes.evaluate.applications import compare_by_machine_type, node_matrix, rank_figures
from tasks.nodes.evaluate.detection import detect, detection_results, learning_curve
from tasks.nodes.evaluate.injection import inject
from tasks.nodes.history import History
from tasks.nodes.params import MIN_EXECUTIONS, EvaluateParams
from tasks.nodes.preprocess.fitting import decisions, fit, tables_of
from tasks.nodes.ranking.node_scores import counted_in, learn_reference, score_nodes, usual_aspects
from tasks.nodes.ranking.places import ALL, lacking, rank_nodes
from tasks.nodes.ranking.repeatability import Repeatability, repeatability_of
from tasks.nodes.ranking.suspicion import suspicious_nodes
from tasks.nodes.type_tables import Bools, NodeTables, is_contaminated, is_stressed, is_unstressed
from tasks.report.evaluation import Evaluation, Figures, put
from tasks.warehouse.sources import code_version

REPEATED = ("cv", "rerun_median", "rerun_p90", "runs_for_5", "runs_for_10")
ALL_NODES = "all nodes, their executions without known stress"
NO_SCORE = "no node has a metric that counts in a score"
NONE = "no node stands out by slow executions"
HASHED = (
    "source", "node", "machine_type", "benchmark", "aspect", "template_hash", "started_at", "duration_s", "status",
    "is_stressed", "dose", "dose_level", "is_contaminated",
)  # fmt: skip
Part = tuple[Figures, dict[str, pd.DataFrame]]


def evaluate_history(history: History, params: EvaluateParams, taught: Bools | None = None) -> Evaluation:
    """Evaluate executions of benchmarks, in one thread: detection where stress is labelled, correlation with
    applications where they ran on the same nodes, repeatability and ranking always.

    taught: (n_executions,) executions of another recording: detectors learn from these alone, and the others are
    tested; the network has no figures then. Raises BadInput if there is no execution with a metric."""
    if not len(history.executions) or not len(history.metrics):
        raise BadInput(
            f"{len(history.executions)} executions", "none has a metric", "results of benchmarks", "give other files"
        )
    with threadpool_limits(1):
        return _evaluate(history, params, taught)


def _evaluate(history: History, params: EvaluateParams, taught: Bools | None) -> Evaluation:
    report_progress("preprocessing", 0, 4)
    preprocessor = fit(history, params.preprocess)
    tables, executions = tables_of(history, preprocessor), history.executions
    figures: Figures = {
        "n": len(executions),
        "n_nodes": int(executions["node"].nunique()),
        "n_types": len(tables.tables),
        "n_machine_types": len(set(tables.machine_types)),
        "n_stressed": int(is_stressed(executions).sum()),
        "n_contaminated": int(is_contaminated(executions).sum()),
        "n_not_completed": int((executions["status"] != "completed").sum()),
        "metrics.recorded": len(preprocessor.metrics),
        "metrics.kept": len(preprocessor.kept),
        "seed": params.seed,
        "version": code_version(),
        "data_sha256": sha256_of_history(history),
    }
    evaluation = Evaluation(figures, {"metrics": decisions(preprocessor)})
    is_calm = is_unstressed(executions).to_numpy(dtype=bool)
    report_progress("finding stressed executions", 1, 4)
    parts = [_detection(history, params, taught)]
    if params.curve and taught is None:
        parts.append((learning_curve(history, params), {}))
    report_progress("ranking nodes", 2, 4)
    compared = compare_by_machine_type(node_matrix(tables, is_calm, params.score))
    series = [comparison.correlations for comparison in compared if len(comparison.correlations)]
    correlations = pd.concat(series, ignore_index=True) if series else pd.DataFrame()
    ranked, best = ranked_nodes(tables, is_calm, params)
    parts.append((rank_figures(compared) | best, {"correlations": correlations, **ranked}))
    report_progress("measuring repeatability", 3, 4)
    repeated = repeatability_of(tables, is_calm)
    of_reruns = repeatability_figures(repeated, tables, counted_in(ranked["reference"]))
    parts.append((of_reruns, {"repeatability": repeated.metrics, "pairs": repeated.pairs}))
    if params.injection.repeats:
        injected, rows = inject(history, DETECTORS, params)
        parts.append((injected, {"injected": rows}))
    for more, more_tables in parts:
        evaluation = Evaluation(evaluation.figures | more, evaluation.tables | more_tables)
    return evaluation


def _detection(history: History, params: EvaluateParams, taught: Bools | None) -> Part:
    """Detection, and what of Perona's network is asked for."""
    detection = detect(history, DETECTORS, params, taught)
    if not params.learned.variants or taught is not None:
        figures, tables = detection_results(history.executions, detection, list(DETECTORS), params)
        return figures, {**tables, "judged": detection.judged}
    from tasks.nodes.evaluate.network_fits import fit_variants, learned_figures  # torch

    learned = fit_variants(history, params)
    figures, tables = detection_results(history.executions, detection, list(DETECTORS), params, learned)
    parts = [part for part in (detection.judged, learned.judged) if len(part)]
    judged = pd.concat(parts, ignore_index=True) if parts else detection.judged
    return figures | learned_figures(learned), {**tables, "judged": judged, "fits": learned.fits}


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


def repeatability_figures(
    repeatability: Repeatability, tables: NodeTables, counted: Collection[tuple[str, str]]
) -> Figures:
    """Medians over nodes and metrics: cv, rerun_median, rerun_p90, runs_for_5, runs_for_10, and runs_to_tell_apart over
    pairs of nodes of one type; all types together, and each alone.

    counted: the types and metrics that count in a score."""
    figures: Figures = {}
    counted_tables = [  # of metrics, and of pairs
        table[[key in counted for key in zip(table["type"], table["metric"], strict=True)]] if len(table) else table
        for table in (repeatability.metrics, repeatability.pairs)
    ]
    for name in ("", *(table.name for table in tables.tables)):
        slice_ = f".{name}" if name else ""
        metrics, pairs = (frame[frame["type"] == name] if name and len(frame) else frame for frame in counted_tables)
        for measure in REPEATED:
            value = float(metrics[measure].median()) if len(metrics) else None
            reason = f"no node ran a benchmark {MIN_EXECUTIONS} times without stress"
            put(figures, f"repeatability.{measure}{slice_}", value, reason)
        n_runs = float(pairs["n_runs"].median()) if len(pairs) else None
        alike = "half of the pairs of nodes or more do not differ"
        why = alike if len(pairs) else "no two nodes ran it often enough"
        put(figures, f"repeatability.runs_to_tell_apart{slice_}", n_runs, why)
    return figures


def ranked_nodes(tables: NodeTables, is_calm: Bools, params: EvaluateParams) -> tuple[dict[str, pd.DataFrame], Figures]:
    """Tables `ranking`, `suspicious` and `reference`; figures nodes.best and nodes.most_suspicious.

    All of it is from executions without known stress: what stress does to a node says nothing against it. More nodes
    than params.max_ranked have their one number alone, without intervals."""
    calm = tables.of_executions(is_calm)
    reference = learn_reference(calm, np.ones(tables.n_executions, dtype=bool), params.score, ALL_NODES)
    if len(tables.nodes) <= params.max_ranked:
        table = rank_nodes(calm, reference, params.score)
    else:
        scores, usual = score_nodes(calm, reference, params.score), usual_aspects(reference.table)
        lacks = [
            ", ".join(lacking(scores.levels, aspect_scores, usual))
            for aspect_scores in scores.levels.by_aspect(scores.log_scores)
        ]
        columns = {"aspect": ALL, "node": calm.nodes, "machine_type": calm.machine_types, "score": scores.overall()}
        table = pd.DataFrame({**columns, "lacks": lacks}).dropna(subset="score")
        table = table.assign(is_part=table["lacks"] != "")
        table = table.sort_values(["is_part", "score", "node"], ascending=[True, False, True], ignore_index=True)
        table = table.drop(columns="is_part").assign(place=table.index + 1, low=np.nan, high=np.nan, n_tied=1)
    suspicious = suspicious_nodes(calm, reference, params.score)
    best = table.loc[(table["aspect"] == ALL) & (table["place"] == 1), "node"].astype(str)
    outstanding = suspicious.loc[suspicious["stands_out"].astype(bool), "node"].astype(str)
    why = NONE if len(suspicious) else f"no node ran a benchmark {MIN_EXECUTIONS} times"
    named = {"best": (", ".join(best), NO_SCORE), "most_suspicious": (next(iter(outstanding), ""), why)}
    figures: Figures = {f"nodes.{key}": node or None for key, (node, _) in named.items()}
    figures |= {f"nodes.{key}.reason": reason for key, (node, reason) in named.items() if not node}
    return {"ranking": table, "suspicious": suspicious, "reference": reference.table}, figures
