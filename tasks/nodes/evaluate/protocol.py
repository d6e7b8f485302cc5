"""`whorl nodes evaluate`: the whole protocol on anybody's benchmark results, as figures by key and as tables."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput, MissingTool
from tasks.nodes.aspects import is_contaminated, is_stressed, is_unstressed
from tasks.nodes.detect.plain import DETECTORS, Detector
from tasks.nodes.evaluate.applications import compare_by_machine_type, node_matrix, rank_figures
from tasks.nodes.evaluate.detection import Prepare, detect, detection_results, learning_curve
from tasks.nodes.evaluate.injection import inject, injected_figures
from tasks.nodes.evaluate.measures import THEIRS, Figures, learned_figures, put
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.history import History
from tasks.nodes.preprocess.fitting import count_metrics, decisions, fit, learn_tables, tables_of
from tasks.nodes.preprocess.params import Variant
from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.ranking.places import ALL, component_scores, lacking, rank_nodes
from tasks.nodes.ranking.repeatability import Repeatability, repeatability_of
from tasks.nodes.ranking.scores import score_nodes
from tasks.nodes.ranking.suspicion import suspicious_nodes
from tasks.nodes.reference_fleet import ReferenceFleet, counted_in, learn_reference, usual_aspects
from tasks.nodes.type_tables import Bools, NodeTables
from tasks.progress import report_progress
from tasks.warehouse.versions import code_version

REPEATED = ("cv", "rerun_median", "rerun_p90", "runs_for_5", "runs_for_10")
ALL_NODES = "all nodes, their executions without known stress"
NO_SCORE = "no node has a metric that counts in a score"
NO_COMPONENT = "no benchmark varies between nodes"
NONE = "no node stands out by slow executions"
THEIR_TABLES = "paper_"
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
    history: History,
    params: EvaluateParams,
    detectors: Mapping[str, Detector] = DETECTORS,
    taught: Bools | None = None,
) -> Evaluation:
    """Evaluate executions of benchmarks, in one thread: detection where stress is labelled, correlation with
    applications where they ran on the same nodes, repeatability and ranking always.

    detectors: by the name that their figures have. taught: (n_executions,) executions of another recording: detectors
    learn from these alone, and the others are tested; the learned model has no figures then. Raises BadInput if there
    is no execution with a metric."""
    if not len(history.executions) or not len(history.metrics):
        raise BadInput(
            f"{len(history.executions)} executions", "none has a metric", "results of benchmarks", "give other files"
        )
    with threadpool_limits(1):
        return _evaluate(history, params, detectors, taught)


def _evaluate(
    history: History, params: EvaluateParams, detectors: Mapping[str, Detector], taught: Bools | None
) -> Evaluation:
    report_progress("preprocessing", 0, 4)
    preprocessor = fit(history, params.preprocess)
    tables = tables_of(history, preprocessor)
    is_calm = is_unstressed(history.executions).to_numpy(dtype=bool)
    counts = count_metrics(preprocessor)
    figures = _overview(history, tables) | {"metrics.recorded": counts.recorded, "metrics.kept": counts.kept}
    found_tables = {"metrics": decisions(preprocessor)}
    detection, ranked = _detection(history, params, detectors, taught), _ranking(tables, is_calm, params)
    for part in (
        detection,
        ranked,
        _repeatability(tables, is_calm, counted_in(ranked.tables["reference"]), params),
        _curve(history, params, taught),
        _injection(history, params, detectors),
        _learned(history, tables, is_calm, params, taught),
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


def _detection(
    history: History, params: EvaluateParams, detectors: Mapping[str, Detector], taught: Bools | None
) -> Evaluation:
    report_progress("finding stressed executions", 1, 4)
    found = detect(history, _prepare(params), detectors, params, taught)
    if not params.learned.variants or taught is not None:
        figures, tables = detection_results(history.executions, found, list(detectors), params)
        return Evaluation(figures, {**tables, "judged": found.judged})
    with _needs_torch():
        from tasks.nodes.evaluate.network import fit_variants

    learned = fit_variants(history, params)
    figures, tables = detection_results(history.executions, found, list(detectors), params, learned)
    judged = [part for part in (found.judged, learned.judged) if len(part)]
    each = pd.concat(judged, ignore_index=True) if judged else found.judged
    return Evaluation(figures | learned_figures(learned), {**tables, "judged": each, "fits": learned.fits})


def _curve(history: History, params: EvaluateParams, taught: Bools | None) -> Evaluation:
    """What few known stressed executions teach; nothing unless it is asked for."""
    is_asked = params.curve and taught is None
    return Evaluation(learning_curve(history, _prepare(params), params) if is_asked else {}, {})


def _injection(history: History, params: EvaluateParams, detectors: Mapping[str, Detector]) -> Evaluation:
    """Degradation that is put into a history of which nobody knows any."""
    if not params.injection.repeats:
        return Evaluation({}, {})
    injected = inject(history, _prepare(params), detectors, params)
    return Evaluation(injected_figures(injected, params), {"injected": injected.rows})


def _learned(
    history: History, tables: NodeTables, is_calm: Bools, params: EvaluateParams, taught: Bools | None
) -> Evaluation:
    """The ranking of nodes by networks; nothing without a variant."""
    if not params.learned.variants or taught is not None:
        return Evaluation({}, {})
    with _needs_torch():
        from tasks.nodes.evaluate.network import rank_learned, rank_learned_figures

    ranks = rank_learned(history, is_calm, node_matrix(tables, is_calm, params.score), params)
    return Evaluation(rank_learned_figures(ranks), {"learned_correlations": ranks.correlations})


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


def write_tables(found: Evaluation, folder: Path) -> list[Path]:
    """One file a table that has rows; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in found.tables.items():
        if len(table):
            path = folder / f"{name}.parquet"
            table.to_parquet(path, index=False)
            written.append(path)
    return written


def evaluate_both(history: History, params: EvaluateParams, taught: Bools | None = None) -> Evaluation:
    """Ours, and the figures of the paper's preprocessing as `paper_preprocessing.<key>`, its tables as `paper_<name>`.

    Figures that no preprocessing moves (n, seed, …) stand there once, and so do those of the learned model, whose
    variants bring their own preprocessing. Raises BadInput as evaluate_history."""
    ours = evaluate_history(history, with_variant(params, "robust"), taught=taught)
    plain = params.model_copy(update={"learned": params.learned.model_copy(update={"variants": ()})})
    theirs = evaluate_history(history, with_variant(plain, "paper"), taught=taught)
    beside = {f"{THEIRS}{key}": value for key, value in theirs.figures.items() if "." in key}
    tables = {f"{THEIR_TABLES}{name}": table for name, table in theirs.tables.items()}
    return Evaluation(ours.figures | beside, ours.tables | tables)


def with_variant(params: EvaluateParams, variant: Variant) -> EvaluateParams:
    """The same evaluation with another variant of preprocessing."""
    return params.model_copy(update={"preprocess": params.preprocess.model_copy(update={"variant": variant})})


def repeatability_figures(
    found: Repeatability, tables: NodeTables, counted: Collection[tuple[str, str]], min_runs: int
) -> Figures:
    """Medians over nodes and metrics: cv, rerun_median, rerun_p90, runs_for_5, runs_for_10, and runs_to_tell_apart over
    pairs of nodes of one type; all types together, and each alone.

    counted: the types and metrics that count in a score."""
    reason = f"no node ran a benchmark {min_runs} times without stress"
    figures: Figures = {}
    metrics, pairs = _counted(found.metrics, counted), _counted(found.pairs, counted)
    for name in ("", *(table.name for table in tables.tables)):
        slice_ = f".{name}" if name else ""
        own = metrics[metrics["type"] == name] if name and len(metrics) else metrics
        for measure in REPEATED:
            put(figures, f"repeatability.{measure}{slice_}", _median(own, measure), reason)
        apart = pairs[pairs["type"] == name] if name and len(pairs) else pairs
        put(figures, f"repeatability.runs_to_tell_apart{slice_}", _median(apart, "n_runs"), _why_not_apart(apart))
    return figures


def _counted(table: pd.DataFrame, counted: Collection[tuple[str, str]]) -> pd.DataFrame:
    if not len(table):
        return table
    return table[[key in counted for key in zip(table["type"], table["metric"], strict=True)]]


def _median(table: pd.DataFrame, column: str) -> float | None:
    known = table[column].dropna().to_numpy(dtype=np.float64) if len(table) else np.empty(0)
    return float(np.median(known)) if len(known) else None


def _why_not_apart(pairs: pd.DataFrame) -> str:
    return "half of the pairs of nodes or more do not differ" if len(pairs) else "no two nodes ran it often enough"


def ranked_nodes(tables: NodeTables, is_calm: Bools, params: EvaluateParams) -> tuple[dict[str, pd.DataFrame], Figures]:
    """Tables `ranking`, `suspicious` and `reference`; figures nodes.best, nodes.best.pc1 and nodes.most_suspicious.

    All of it is from executions without known stress: what stress does to a node says nothing against it. More nodes
    than params.max_ranked have scores without intervals."""
    calm = tables.of_executions(is_calm)
    reference = learn_reference(calm, np.ones(tables.n_executions, dtype=bool), params.score, ALL_NODES)
    if len(tables.nodes) <= params.max_ranked:
        table = rank_nodes(calm, reference, params.score).table
    else:
        table = _without_intervals(calm, reference, params.score)
    suspicious = suspicious_nodes(calm, reference, params.score)
    found = {"ranking": table, "suspicious": suspicious, "reference": reference.table}
    return found, _best(table[table["aspect"] == ALL]) | _most_suspicious(suspicious, params.score.min_executions)


def _without_intervals(calm: NodeTables, reference: ReferenceFleet, params: ScoreParams) -> pd.DataFrame:
    """Nodes by their one number alone."""
    found = score_nodes(calm, reference, params)
    usual = usual_aspects(reference.table)
    lacks = [", ".join(lacking(found.levels, own, usual)) for own in found.levels.by_aspect(found.log_scores)]
    told = {"aspect": ALL, "node": calm.nodes, "machine_type": calm.machine_types, "score": found.overall()}
    table = pd.DataFrame({**told, "lacks": lacks, "pc1": component_scores(found)}).dropna(subset="score")
    table = table.assign(is_part=table["lacks"] != "")
    order = ["is_part", "score", "node"]
    table = table.sort_values(order, ascending=[True, False, True], ignore_index=True).drop(columns="is_part")
    return table.assign(place=np.arange(1, len(table) + 1), low=np.nan, high=np.nan, n_tied=1)


def _best(nodes: pd.DataFrame) -> Figures:
    """The first place by score, and by the first principal component. nodes: the ranking by the one number."""
    first = nodes[nodes["place"] == 1]["node"].tolist()
    figures: Figures = {"nodes.best": ", ".join(map(str, first)) or None}
    if not first:
        figures["nodes.best.reason"] = NO_SCORE
    by_component = nodes.dropna(subset="pc1")
    if not len(by_component):
        return figures | {"nodes.best.pc1": None, "nodes.best.pc1.reason": NO_COMPONENT}
    farthest = int(by_component["pc1"].to_numpy(dtype=np.float64).argmax())
    return figures | {"nodes.best.pc1": str(by_component["node"].iloc[farthest])}


def _most_suspicious(suspicious: pd.DataFrame, min_executions: int) -> Figures:
    if len(suspicious) and suspicious["stands_out"].iloc[0]:
        return {"nodes.most_suspicious": str(suspicious["node"].iloc[0])}
    reason = NONE if len(suspicious) else f"no node ran a benchmark {min_executions} times"
    return {"nodes.most_suspicious": None, "nodes.most_suspicious.reason": reason}
