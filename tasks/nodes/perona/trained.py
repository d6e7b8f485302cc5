"""A trained network of a source: learned from earlier executions, measured on the latest, kept if it is the better one,
and asked for fingerprints."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.nodes.aspects import is_unstressed, time_places
from tasks.nodes.history import History
from tasks.nodes.node_words import LEARNED, NETWORK, WORD
from tasks.nodes.perona.fingerprints import (
    NormReference,
    calm_executions,
    fingerprints_of,
    learn_norm_reference,
    log_scores_of,
    plane_of,
    rank_fingerprints,
)
from tasks.nodes.perona.fitting import Prepared, fit_prepared, measures_of, prepare
from tasks.nodes.perona.inputs import InputScales, inputs_of, load_inputs, save_inputs
from tasks.nodes.perona.network import Encoder, load_network, save_network
from tasks.nodes.perona.params import ModelParams, SearchParams, TrainParams
from tasks.nodes.perona.search import SearchResult, search
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.ranking.places import Ranking
from tasks.nodes.type_tables import Bools
from tasks.params import Params
from tasks.warehouse.new_card import new_card
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, folder_of, promote, register

logger = logging.getLogger(__name__)
FINGERPRINT = "fingerprint.json"
FORMAT, VERSION = "whorl.nodes.fingerprint", 4
METRIC = "error_ratio"  # parts the better network from the worse: the smaller the better


@dataclass(frozen=True)
class TrainedModel:
    """scales: of what the network is given. norms: what stands for the reference. learned: ids of the executions that
    it was fitted to; chosen: those that its epoch was chosen on."""

    scales: InputScales
    network: Encoder
    norms: NormReference
    learned: frozenset[str]
    chosen: frozenset[str]


class Frozen(Params):
    """What a training fixed beside the weights."""

    norms: NormReference


def save_trained(model: TrainedModel, folder: Path) -> None:
    """Write the files of a model; nothing in them is code."""
    save_inputs(model.scales, folder)
    save_network(model.network, folder)
    main = {"format": FORMAT, "version": VERSION, "norms": model.norms.model_dump(mode="json")}
    (folder / FINGERPRINT).write_text(json.dumps(main, indent=1, allow_nan=False), encoding="utf-8")
    ids = sorted(model.learned | model.chosen)
    table = pa.table({"execution_id": ids, "is_learned": [one in model.learned for one in ids]})
    pq.write_table(table, folder / LEARNED, compression="zstd")


def load_trained(folder: Path) -> TrainedModel:
    """What save_trained wrote. Raises BadInput for files that are missing, damaged or foreign."""
    scales, network = load_inputs(folder), load_network(folder)
    try:
        main = json.loads((folder / FINGERPRINT).read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.pop("format", None), main.pop("version", None)) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        norms = Frozen.model_validate(main).norms
        table = pq.read_table(folder / LEARNED, columns=["execution_id", "is_learned"]).to_pandas()
    except (OSError, ValueError, ValidationError, pa.ArrowException) as error:
        problem = f"no model of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "what 'whorl nodes train' wrote", "train again") from error
    is_learned, ids = table["is_learned"].to_numpy(dtype=bool), table["execution_id"].astype(str)
    return TrainedModel(scales, network, norms, frozenset(ids[is_learned]), frozenset(ids[~is_learned]))


def trained_in_use(warehouse: Warehouse, source: str) -> tuple[ModelCard, TrainedModel] | None:
    """The model in use for a source, loaded; None before the first training. Raises BadInput for broken files."""
    card = champion(warehouse.models, WORD, source, NETWORK)
    return (card, load_trained(folder_of(warehouse.models, WORD, card.model_id))) if card else None


@dataclass(frozen=True)
class Training:
    """model_id: of the new model; champion_id: of the one in use afterwards. figures: of the latest executions, METRIC
    first (the error of a type's own metrics as a share of that of the type's mean), then measures_of; without those
    that cannot be had. n_learned, n_tested: executions."""

    model_id: str
    champion_id: str
    figures: dict[str, float]
    n_learned: int
    n_tested: int


def train_source(
    warehouse: Warehouse,
    source: str,
    history: History,
    version: str,
    model: ModelParams,
    train: TrainParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
    *,
    run_id: str,
    key: str,
) -> Training:
    """Fit a model to a source's executions, measure it on the latest ones, register it, and use it if it is better.

    history: of the source; version: of its data. key: of data, parameters and code, kept in the card. Raises BadInput
    where there is too little to learn from."""
    is_train, is_validation = parts_by_time(history, train)
    with threadpool_limits(1):
        prepared = prepare(history, is_train, is_validation, model, preprocess, score)
        trained = _trained(history, prepared, fit_prepared(prepared, model, train.most_graphs).network)
    is_tested = ~(is_train | is_validation)
    figures = figures_of(trained, history, is_tested)
    parts = {"model": model, "train": train, "preprocess": preprocess, "score": score}
    parameters = {name: part.model_dump(mode="json") for name, part in parts.items()}
    card = new_card(
        word=WORD,
        source=source,
        kind=NETWORK,
        run_id=run_id,
        data_version=version,
        seed=model.fit.seed,
        parameters=parameters | {"key": key, "n_tested": int(is_tested.sum())},
        figures=figures,
        identity=f"{run_id}{parameters}",
    )
    register(warehouse, card, lambda folder: save_trained(trained, folder))
    in_use = promote_if_better(warehouse, card, trained, history, is_tested)
    logger.info("trained %s of source %s: %s; in use: %s", card.model_id, source, figures, in_use)
    return Training(card.model_id, in_use, figures, len(trained.learned), int(is_tested.sum()))


def parts_by_time(history: History, params: TrainParams) -> tuple[Bools, Bools]:
    """Which executions train and which validate, (n,) each: the first share of each node and type, and the next.

    Raises BadInput if a part is empty, or nothing is left to measure on."""
    places = time_places(history.executions)
    is_train = places < params.train_share
    is_validation = ~is_train & (places < params.train_share + params.validation_share)
    for is_part, name in ((is_train, "learn from"), (is_validation, "choose by"), (~is_train & ~is_validation, "test")):
        if not is_part.any():
            n = len(history.executions)
            raise BadInput(f"{n} executions", f"none is left to {name}", "several of each node and type", "record more")
    return is_train, is_validation


def _trained(history: History, prepared: Prepared, network: Encoder) -> TrainedModel:
    """The model with what else it needs to answer: norms of the reference."""
    inputs = prepared.inputs
    is_learned = np.zeros(len(inputs), dtype=bool)
    is_learned[prepared.train.targets] = True
    calm = is_learned & is_unstressed(history.executions).to_numpy(dtype=bool)
    norms = learn_norm_reference(inputs, fingerprints_of(inputs, network), calm)
    ids = history.executions["execution_id"].astype(str).to_numpy(dtype=object)
    chosen = frozenset(ids[prepared.validation.targets])
    return TrainedModel(prepared.scales, network, norms, frozenset(ids[is_learned]), chosen)


def figures_of(model: TrainedModel, history: History, is_asked: Bools) -> dict[str, float]:
    """Training.figures of some executions, is_asked (n,)."""
    inputs = inputs_of(history, model.scales, model.network.params)
    is_learned = history.executions["execution_id"].astype(str).isin(model.learned).to_numpy(dtype=bool)
    found = measures_of(inputs, model.network, is_learned, is_asked)
    own, by_mean = found["mse_own"], found["mse_own_mean_predictor"]
    told = {METRIC: own / by_mean if by_mean > 0 else np.nan} | found
    return {name: float(value) for name, value in told.items() if np.isfinite(value)}


def promote_if_better(
    warehouse: Warehouse, card: ModelCard, trained: TrainedModel, history: History, is_tested: Bools
) -> str:
    """The id of the model in use afterwards: the one that rebuilds own metrics better.

    Both are asked about those of the tested executions, (n,), that the present model has neither learned nor chosen by,
    and of which both know the type. Where there are none to compare them on, the present model stays; it goes where it
    knows the type of none."""
    new = card.metrics.get(METRIC)
    told = f"{METRIC} {new:.4g}" if new is not None else f"{METRIC} not known"
    try:
        present = trained_in_use(warehouse, card.source)
    except BadInput as error:
        logger.warning("the model in use before cannot be read: %s", error)
        present = None
    if present is None:
        promote(warehouse, WORD, card.model_id, f"the first that can be read, {told}")
        return card.model_id
    old_card, old = present
    ids = history.executions["execution_id"].astype(str)
    fresh = is_tested & ~ids.isin(old.learned | old.chosen).to_numpy(dtype=bool)
    can = [inputs_of(history, one.scales, one.network.params).is_measured & fresh for one in (old, trained)]
    both = can[0] & can[1]
    before, now = (figures_of(one, history, both).get(METRIC) if both.any() else None for one in (old, trained))
    is_better = now is not None and (before is None or now < before) if both.any() else not can[0].any() and fresh.any()
    if old_card.model_id == card.model_id or not is_better:
        logger.info("kept %s, %s %s; %s: %s", old_card.model_id, METRIC, before, card.model_id, now)
        return old_card.model_id
    had = f"had {before:.4g} on the same {both.sum():,} executions" if before is not None else "can say nothing of them"
    promote(warehouse, WORD, card.model_id, f"{told}, {old_card.model_id} {had}")
    return card.model_id


def tune(
    history: History,
    model: ModelParams,
    train: TrainParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
    asked: SearchParams,
    journal: Path,
) -> SearchResult:
    """Search; the latest executions, which models are measured on, have no part in it.

    journal: Optuna's file, from which a search that was stopped goes on. Raises BadInput with too few executions."""
    prepared = prepare(history, *parts_by_time(history, train), model, preprocess, score)
    rng = np.random.default_rng(model.fit.seed)
    graphs = (prepared.train.drawn(train.most_graphs, rng), prepared.validation.drawn(train.most_graphs, rng))
    return search(*graphs, model, asked, journal=journal)


@dataclass(frozen=True)
class Fingerprinted:
    """executions: one row a fingerprinted execution: execution_id, log_norm, score (1 is the reference, NaN without
    one), x, y (Figure 4; NaN without a fingerprint), encoding (list of numbers).

    ranking: nodes by fingerprints. shown: share of the variance in x and y."""

    executions: pd.DataFrame
    ranking: Ranking
    shown: float


def fingerprint(history: History, model: TrainedModel, is_flagged: Bools, score: ScoreParams) -> Fingerprinted:
    """Fingerprints of all executions, and the ranking of the nodes by those that are not flagged, is_flagged (n,)."""
    with threadpool_limits(1):
        inputs = inputs_of(history, model.scales, model.network.params)
        prints = fingerprints_of(inputs, model.network)
    log_scores = log_scores_of(inputs, prints, model.norms)
    calm = calm_executions(history.executions, inputs, is_flagged)
    plane = plane_of(inputs, prints)
    rows = np.flatnonzero(np.isfinite(prints.log_norm))
    place = plane.points.set_index("execution")[["x", "y"]].reindex(rows)
    executions = pd.DataFrame(
        {
            "execution_id": history.executions["execution_id"].astype(str).to_numpy(dtype=object)[rows],
            "log_norm": prints.log_norm[rows],
            "score": np.exp(log_scores[rows]),
            "x": place["x"].to_numpy(),
            "y": place["y"].to_numpy(),
            "encoding": list(prints.enc[rows]),
        }
    )
    ranking = rank_fingerprints(history.executions, inputs, log_scores, calm, score)
    return Fingerprinted(executions, ranking, plane.shown)
