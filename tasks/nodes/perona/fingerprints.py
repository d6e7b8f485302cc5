"""A trained network of a source, kept if it is the better one, and what it is asked for: fingerprints.

A network learns from earlier executions and is measured on the latest. A fingerprint is what the encoder makes of an
execution alone: it needs no history and no verdict, so executions of a machine that was just set up have one as well.

    score of an execution = exp(log norm - log norm of its type at the reference)
    score of a node and aspect = exp(median over its calm executions), mean over the types of the aspect

Training makes ratios of norms follow ratios of measured performance, so a score of 2 is twice the reference. What
stands for the reference is learned once and frozen with the model: a machine that joins moves no other. No one-hot is
part of a norm: with one in it, as the authors have it, 0.1 against 0.9 becomes 1 against 1.14. Source: III-D."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.nodes.history import History
from tasks.nodes.node_words import LEARNED, NETWORK, WORD
from tasks.nodes.params import ModelParams, NetworkSearchParams, PreprocessParams, ScoreParams
from tasks.nodes.perona.hyperparameters import SearchResult, search
from tasks.nodes.perona.inputs import UNSTRESSED, InputScales, NetworkInputs, inputs_of, load_inputs, save_inputs
from tasks.nodes.perona.network import Encoder, Fingerprints, fingerprints_of, load_network, save_network
from tasks.nodes.perona.training import MOST_GRAPHS, PreparedInputs, fit_prepared, measures_of, prepare
from tasks.nodes.ranking.node_scores import COLUMNS, ReferenceFleet
from tasks.nodes.ranking.places import rank_nodes
from tasks.nodes.type_tables import Bools, Floats, NodeTables, TypeTable, is_unstressed, time_places
from tasks.params import Params
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, folder_of, new_card, promote, register

logger = logging.getLogger(__name__)
FINGERPRINT = "fingerprint.json"
FORMAT, VERSION = "whorl.nodes.fingerprint", 4
METRIC = "error_ratio"  # parts the better network from the worse: the smaller the better
SCORE = "fingerprint_score"  # stands where other tables have the names of metrics
TRAIN_SHARE, VALIDATION_SHARE = 0.6, 0.2  # of each node and type: learned from, and chosen by; the rest measures


class NormReference(Params):
    """log_norms: by type, the log norm of an execution that performs as the reference. n_nodes: behind each of them."""

    log_norms: dict[str, float]
    n_nodes: dict[str, int]


@dataclass(frozen=True)
class TrainedNetwork:
    """scales: of what the network is given. norms: what stands for the reference. learned: ids of the executions that
    it was fitted to; validation: those that its epoch was chosen on."""

    scales: InputScales
    network: Encoder
    norms: NormReference
    learned: frozenset[str]
    validation: frozenset[str]


def save_trained(model: TrainedNetwork, folder: Path) -> None:
    """Write the files of a model; nothing in them is code."""
    save_inputs(model.scales, folder)
    save_network(model.network, folder)
    main = {"format": FORMAT, "version": VERSION, "norms": model.norms.model_dump(mode="json")}
    (folder / FINGERPRINT).write_text(json.dumps(main, indent=1, allow_nan=False), encoding="utf-8")
    ids = sorted(model.learned | model.validation)
    table = pd.DataFrame({"execution_id": ids, "is_learned": [execution_id in model.learned for execution_id in ids]})
    table.to_parquet(folder / LEARNED, compression="zstd", index=False)


def load_trained(folder: Path) -> TrainedNetwork:
    """What save_trained wrote. Raises BadInput for files that are missing, damaged or foreign."""
    scales, network = load_inputs(folder), load_network(folder)
    try:
        main = json.loads((folder / FINGERPRINT).read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.get("format"), main.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        norms = NormReference.model_validate(main["norms"])
        table = pd.read_parquet(folder / LEARNED, columns=["execution_id", "is_learned"])
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        problem = f"no model of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "what 'whorl nodes train' wrote", "train again") from error
    is_learned, ids = table["is_learned"].to_numpy(dtype=bool), table["execution_id"].astype(str)
    return TrainedNetwork(scales, network, norms, frozenset(ids[is_learned]), frozenset(ids[~is_learned]))


def trained_in_use(warehouse: Warehouse, source: str) -> tuple[ModelCard, TrainedNetwork] | None:
    """The model in use for a source, loaded; None before the first training. Raises BadInput for broken files."""
    card = champion(warehouse.models, WORD, source, NETWORK)
    return (card, load_trained(folder_of(warehouse.models, WORD, card.model_id))) if card else None


def train_source(
    warehouse: Warehouse,
    source: str,
    history: History,
    version: str,
    model: ModelParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
    *,
    run_id: str,
    key: str,
) -> tuple[ModelCard, str]:
    """Fit a model to a source's executions, measure it on the latest ones, register it, and use it if it is better.

    history: of the source; version: of its data. key: of data, parameters and code, kept in the card. Returns the card
    of the new model, and the id of the one in use afterwards. Raises BadInput for too little to learn from."""
    is_train, is_validation = parts_by_time(history)
    with threadpool_limits(1):
        prepared = prepare(history, is_train, is_validation, model, preprocess, score)
        trained = _trained(history, prepared, fit_prepared(prepared, model).network)
    is_tested = ~(is_train | is_validation)
    figures = figures_of(trained, history, is_tested)
    parts = {"model": model, "preprocess": preprocess, "score": score}
    parameters = {name: part.model_dump(mode="json") for name, part in parts.items()}
    card = new_card(
        word=WORD, source=source, kind=NETWORK, run_id=run_id, data_version=version, seed=model.fit.seed,
        parameters=parameters | {"key": key, "n_tested": int(is_tested.sum())},
        figures=figures, identity=f"{run_id}{parameters}",
    )  # fmt: skip
    register(warehouse, card, lambda folder: save_trained(trained, folder))
    in_use = promote_if_better(warehouse, card, trained, history, is_tested)
    logger.info("trained %s of source %s: %s; in use: %s", card.model_id, source, figures, in_use)
    return card, in_use


def parts_by_time(history: History) -> tuple[Bools, Bools]:
    """Which executions train and which validate, (n,) each: the first share of each node and type, and the next.

    Raises BadInput if a part is empty, or nothing is left to measure on."""
    part = np.digitize(time_places(history.executions), [TRAIN_SHARE, TRAIN_SHARE + VALIDATION_SHARE])
    for number, name in enumerate(("learn from", "choose by", "test")):
        if not (part == number).any():
            n = len(history.executions)
            raise BadInput(f"{n} executions", f"none is left to {name}", "several of each node and type", "record more")
    return part == 0, part == 1


def _trained(history: History, prepared: PreparedInputs, network: Encoder) -> TrainedNetwork:
    """The model with what else it needs to answer: norms of the reference."""
    inputs, targets = prepared.inputs, prepared.train.targets
    calm = is_unstressed(history.executions).to_numpy(dtype=bool) & np.isin(np.arange(len(inputs)), targets)
    norms = learn_norm_reference(inputs, fingerprints_of(inputs, network), calm)
    ids = history.executions["execution_id"].astype(str).to_numpy(dtype=object)
    learned, validation = frozenset(ids[targets]), frozenset(ids[prepared.validation.targets])
    return TrainedNetwork(prepared.scales, network, norms, learned, validation)


def figures_of(model: TrainedNetwork, history: History, is_tested: Bools) -> dict[str, float]:
    """METRIC, the error of a type's own metrics as a share of that of the type's mean, then measures_of, of some
    executions, is_tested (n,); without those that cannot be had."""
    inputs = inputs_of(history, model.scales, model.network.params)
    is_learned = history.executions["execution_id"].astype(str).isin(model.learned).to_numpy(dtype=bool)
    measures = measures_of(inputs, model.network, is_learned, is_tested)
    mse_own, by_mean = measures["mse_own"], measures["mse_own_mean_predictor"]
    figures = {METRIC: mse_own / by_mean if by_mean > 0 else np.nan} | measures
    return {name: float(value) for name, value in figures.items() if np.isfinite(value)}


def promote_if_better(
    warehouse: Warehouse, card: ModelCard, trained: TrainedNetwork, history: History, is_tested: Bools
) -> str:
    """The id of the model in use afterwards: the one that rebuilds own metrics better.

    Both are asked about those of the tested executions, (n,), that the present model has neither learned nor chosen by,
    and of which both know the type. Where there are none to compare them on, the present model stays; it goes where it
    knows the type of none."""
    new = card.metrics.get(METRIC)
    figure = f"{METRIC} {new:.4g}" if new is not None else f"{METRIC} not known"
    try:
        present = trained_in_use(warehouse, card.source)
    except BadInput as error:
        logger.warning("the model in use before cannot be read: %s", error)
        present = None
    if present is None:
        promote(warehouse, WORD, card.model_id, f"the first that can be read, {figure}")
        return card.model_id
    old_card, old = present
    ids = history.executions["execution_id"].astype(str)
    fresh = is_tested & ~ids.isin(old.learned | old.validation).to_numpy(dtype=bool)
    can = [inputs_of(history, model.scales, model.network.params).is_measured & fresh for model in (old, trained)]
    both = can[0] & can[1]
    before, now = (figures_of(model, history, both).get(METRIC) if both.any() else None for model in (old, trained))
    is_better = now is not None and (before is None or now < before) if both.any() else not can[0].any() and fresh.any()
    if old_card.model_id == card.model_id or not is_better:
        logger.info("kept %s, %s %s; %s: %s", old_card.model_id, METRIC, before, card.model_id, now)
        return old_card.model_id
    had = f"had {before:.4g} on the same {both.sum():,} executions" if before is not None else "can say nothing of them"
    promote(warehouse, WORD, card.model_id, f"{figure}, {old_card.model_id} {had}")
    return card.model_id


def tune(
    history: History,
    model: ModelParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
    search_params: NetworkSearchParams,
    journal: Path,
) -> SearchResult:
    """Search; the latest executions, which models are measured on, have no part in it.

    journal: Optuna's file, from which a search that was stopped goes on. Raises BadInput with too few executions."""
    prepared = prepare(history, *parts_by_time(history), model, preprocess, score)
    rng = np.random.default_rng(model.fit.seed)
    graphs = (prepared.train.drawn(MOST_GRAPHS, rng), prepared.validation.drawn(MOST_GRAPHS, rng))
    return search(*graphs, model, search_params, journal=journal)


def fingerprint(
    history: History, model: TrainedNetwork, is_flagged: Bools, score: ScoreParams
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fingerprints of all executions, and the ranking of the nodes by those that are not flagged, is_flagged (n,).

    Of fingerprints one row each: execution_id, log_norm, score (1 is the reference, NaN without one), encoding (list of
    numbers)."""
    with threadpool_limits(1):
        inputs = inputs_of(history, model.scales, model.network.params)
        prints = fingerprints_of(inputs, model.network)
    log_scores = log_scores_of(inputs, prints, model.norms)
    calm = calm_executions(history.executions, inputs, is_flagged)
    rows = np.flatnonzero(np.isfinite(prints.log_norm))
    ids = history.executions["execution_id"].astype(str).to_numpy(dtype=object)[rows]
    columns = {"execution_id": ids, "log_norm": prints.log_norm[rows], "score": np.exp(log_scores[rows])}
    executions = pd.DataFrame(columns).assign(encoding=list(prints.enc[rows]))
    return executions, rank_fingerprints(history.executions, inputs, log_scores, calm, score)


def learn_norm_reference(inputs: NetworkInputs, prints: Fingerprints, is_learned: Bools) -> NormReference:
    """What log norm stands for the reference, by type; nodes count alike, however often they ran.

    is_learned: (n,) calm training executions. Where the performance of executions is known the reference performs at
    0, so that scores are on the scale of measured ones; else it is the middle of the nodes. A type without any of them
    has none."""
    log_norms: dict[str, float] = {}
    n_nodes: dict[str, int] = {}
    for number, name in enumerate(inputs.types):
        is_used = is_learned & (inputs.type_of == number)
        at_zero = prints.log_norm - inputs.performance
        at_zero = at_zero if np.isfinite(at_zero[is_used]).any() else prints.log_norm
        medians = pd.Series(at_zero[is_used]).groupby(inputs.node_of[is_used]).median().dropna()
        if len(medians):
            log_norms[name], n_nodes[name] = float(medians.median()), len(medians)
    return NormReference(log_norms=log_norms, n_nodes=n_nodes)


def log_scores_of(inputs: NetworkInputs, prints: Fingerprints, reference: NormReference) -> Floats:
    """Natural logarithm of the score of each execution: (n,), NaN without a fingerprint or a reference for its type."""
    levels = np.array([reference.log_norms.get(name, np.nan) for name in inputs.types] + [np.nan])
    return np.asarray(prints.log_norm - levels[inputs.type_of])  # NO_TYPE is -1: the last one, NaN


def calm_executions(executions: pd.DataFrame, inputs: NetworkInputs, is_flagged: Bools) -> Bools:
    """The executions that a node's score is made of: (n,).

    Completed, neither disturbed nor known to be stressed, and not flagged unless known to be unstressed. A node and
    type of which every such execution is flagged is slow rather than stressed, and keeps them all."""
    is_fair = is_unstressed(executions).to_numpy(dtype=bool)
    is_calm = is_fair & (~is_flagged | (inputs.labels == UNSTRESSED))
    series = np.unique(inputs.series, return_inverse=True)[1]
    has_calm = np.bincount(series[is_calm], minlength=len(inputs)) > 0
    return np.asarray(is_calm | (is_fair & ~has_calm[series]))


def rank_fingerprints(
    executions: pd.DataFrame, inputs: NetworkInputs, log_scores: Floats, is_calm: Bools, params: ScoreParams
) -> pd.DataFrame:
    """Nodes by the scores of their calm executions: one number each and by aspect, with intervals and ties.

    The rules are those of ranking/places.py: medians, executions resampled within node and type. executions: of the
    history, as rows of the inputs; aspect and machine_type are read. log_scores, is_calm: (n,)."""
    aspects = executions["aspect"].fillna("unknown").astype(str).to_numpy(dtype=object)
    tables = []
    for number, name in enumerate(inputs.types):  # a table a type, its only metric being the score itself
        rows = np.flatnonzero((inputs.type_of == number) & np.isfinite(log_scores))
        if len(rows):
            scores, aspect, nodes = log_scores[rows, None], str(aspects[rows[0]]), inputs.node_of[rows]
            tables.append(TypeTable(name, aspect, rows, nodes, (SCORE,), ("",), np.exp(scores), np.ones(1), scores))
    kinds = executions["machine_type"].fillna("").astype(str).groupby(inputs.node_of).first()
    machine_types = tuple(str(kind) for kind in kinds.reindex(range(len(inputs.nodes)), fill_value=""))
    # scores are ratios to the reference: its own is 1
    reference_rows = [(table.name, table.aspect, SCORE, "", 1.0, 1.0, 1.0, 0, 0) for table in tables]
    reference = ReferenceFleet(pd.DataFrame(reference_rows, columns=COLUMNS), "frozen with the model")
    node_tables = NodeTables(inputs.nodes, machine_types, tuple(tables), len(inputs))
    return rank_nodes(node_tables.of_executions(is_calm), reference, params)
