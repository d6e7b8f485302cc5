"""A trained network of a source: learned from earlier executions, measured on the latest, kept if it is the better one,
and asked for fingerprints."""

import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.nodes.aspects import is_unstressed, type_names
from tasks.nodes.detect.plain import Case
from tasks.nodes.evaluate.detection import case_of
from tasks.nodes.evaluate.measures import measures_of as detection_measures
from tasks.nodes.evaluate.network import (
    NO_STRESS,
    FittedModel,
    Prepared,
    drawn_graphs,
    fit_prepared,
    judged_by,
    known_labels,
    measures_of,
    prepare_case,
    why_not,
)
from tasks.nodes.evaluate.params import EvaluateParams, LearnedParams
from tasks.nodes.evaluate.splits import Split, splits_of
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
from tasks.nodes.perona.inputs import STRESSED, UNKNOWN, Inputs, Labels, inputs_of, load_inputs, save_inputs
from tasks.nodes.perona.judging import Judged, can_be_judged, judge, series_of, undisturbed
from tasks.nodes.perona.network import PeronaNetwork, load_network, save_network
from tasks.nodes.perona.params import FingerprintParams, ModelParams, SearchParams, TrainParams
from tasks.nodes.perona.search import search
from tasks.nodes.preprocess.fitting import learn_tables
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking import Ranking
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.type_tables import Bools, NodeTables
from tasks.params import Params
from tasks.warehouse.new_card import new_card
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import NOTE_FILE, Direction, ModelCard, champion, folder_of, promote, register
from tasks.warehouse.versions import code_version


def asked_of(
    model: ModelParams,
    train: TrainParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
) -> EvaluateParams:
    """The same parameters in the form that splits and fits take."""
    return EvaluateParams(
        preprocess=preprocess,
        score=score,
        train_share=train.train_share,
        validation_share=train.validation_share,
        false_alarm_share=train.false_alarm_share,
        seed=model.fit.seed,
        learned=LearnedParams(variants=(model.variant,), model=model, most_graphs=train.most_graphs),
    )


def fingerprinted(history: History, score: ScoreParams) -> History:
    """The executions that have fingerprints: benchmarks, not the applications that scores are for."""
    return history.where(~history.executions["aspect"].isin(score.left_out_aspects).to_numpy(dtype=bool))


def case_by_time(history: History, params: EvaluateParams) -> tuple[Case, Split]:
    """The first share of each node and type trains, the next validates, the rest tests.

    Raises BadInput if there is nothing to learn from, or nothing is left to measure on."""
    types = type_names(history.executions).tolist()
    [[split]] = splits_of(history.executions, types, "chronological", params).rounds
    for is_part, name in ((split.is_train, "learn from"), (split.is_validation, "choose by"), (split.is_test, "test")):
        if not is_part.any():
            n = len(history.executions)
            raise BadInput(f"{n} executions", f"none is left to {name}", "several of each node and type", "record more")

    def prepare(of: History, is_train: Bools) -> NodeTables:
        return learn_tables(of, is_train, params.preprocess)

    return case_of(history, split, prepare, params.seed), split


FINGERPRINT = "fingerprint.json"
FORMAT, VERSION = "whorl.nodes.fingerprint", 3


class Frozen(Params):
    """What a training fixed beside the weights. threshold: probability above which an execution is flagged."""

    threshold: float
    norms: NormReference


@dataclass(frozen=True)
class TrainedModel:
    """fitted: network and scales. learned: ids of the executions that it was fitted to; chosen: those that epoch and
    threshold were chosen on."""

    fitted: FittedModel
    frozen: Frozen
    learned: frozenset[str]
    chosen: frozenset[str]


def save_trained(model: TrainedModel, folder: Path) -> None:
    """Write the files of a model; nothing in them is code."""
    save_inputs(model.fitted.scales, folder)
    save_network(model.fitted.network, {}, folder)
    main = {"format": FORMAT, "version": VERSION, **model.frozen.model_dump(mode="json")}
    (folder / FINGERPRINT).write_text(json.dumps(main, indent=1, allow_nan=False), encoding="utf-8")
    ids = sorted(model.learned | model.chosen)
    table = pa.table({"execution_id": ids, "is_learned": [one in model.learned for one in ids]})
    pq.write_table(table, folder / LEARNED, compression="zstd")


def load_trained(folder: Path) -> TrainedModel:
    """What save_trained wrote. Raises BadInput for files that are missing, damaged or foreign."""
    scales = load_inputs(folder)
    network, _ = load_network(folder)
    try:
        main = json.loads((folder / FINGERPRINT).read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.pop("format", None), main.pop("version", None)) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        frozen = Frozen.model_validate(main)
        table = pq.read_table(folder / LEARNED, columns=["execution_id", "is_learned"]).to_pandas()
    except (OSError, ValueError, ValidationError, pa.ArrowException) as error:
        problem = f"no model of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "what 'whorl nodes train' wrote", "train again") from error
    is_learned = table["is_learned"].to_numpy(dtype=bool)
    ids = table["execution_id"].astype(str)
    fitted = FittedModel(scales, network, frozen.threshold)
    return TrainedModel(fitted, frozen, frozenset(ids[is_learned]), frozenset(ids[~is_learned]))


def trained_in_use(warehouse: Warehouse, source: str) -> tuple[ModelCard, TrainedModel] | None:
    """The model in use for a source, loaded; None before the first training. Raises BadInput for broken files."""
    card = champion(warehouse.models, WORD, source, NETWORK)
    return (card, load_trained(folder_of(warehouse.models, WORD, card.model_id))) if card else None


@dataclass(frozen=True)
class Asked:
    """inputs, judged: of all executions. labels: (n,) what is known of them. is_learned: (n,) by this model."""

    inputs: Inputs
    judged: Judged
    labels: Labels
    is_learned: Bools


def ask(history: History, model: TrainedModel, params: FingerprintParams | None = None) -> Asked:
    """Judge all executions, each beside earlier ones that the model did not flag. Labels are not looked at.

    params: how; flagged is what lies above the threshold that was chosen in training."""
    fitted = model.fitted
    network = fitted.network
    how = (params or FingerprintParams()).model_copy(update={"threshold": model.frozen.threshold})
    with threadpool_limits(1):
        inputs = inputs_of(history, fitted.scales, network.params)
        judged = judge(inputs, network, how, may_precede=undisturbed(history.executions))
    is_learned = history.executions["execution_id"].astype(str).isin(model.learned).to_numpy(dtype=bool)
    return Asked(inputs, judged, inputs.labels, is_learned)


DETECTED = ("auprc", "weighted_f1", "false_alarms_per_1000", "f1_outlier", "f1_normal", "balanced_accuracy")
BY_LABELS, WITHOUT = "auprc", "error_ratio"
Figures = dict[str, float]


@dataclass(frozen=True)
class Measured:
    """figures: of held-out executions, those that can be had, what matters most first, as lists show the first few.

    metric: which of them parts the better from the worse."""

    figures: Figures
    metric: str

    @property
    def direction(self) -> Direction:
        """Whether more of the metric is better."""
        return "higher" if self.metric == BY_LABELS else "lower"


def measure(
    inputs: Inputs, network: PeronaNetwork, judged: Judged, labels: Labels, is_learned: Bools, is_tested: Bools
) -> Measured:
    """Detection where both classes are labelled among the tested executions, and how well inputs are rebuilt.

    labels: (n,) of all executions. Without labels the better model is the one that rebuilds a type's own metrics
    better: mean squared error as a share of that of the type's mean (error_ratio)."""
    found = measures_of(inputs, network, is_learned, is_tested)
    own, by_mean = found["mse_own"], found["mse_own_mean_predictor"]
    ratio = own / by_mean if by_mean > 0 else np.nan
    found = {WITHOUT: ratio, "mse_own": own, "mse_own_mean_predictor": by_mean} | found
    is_known = is_tested & (labels != UNKNOWN) & np.isfinite(judged.logit)
    stressed = labels[is_known] == STRESSED
    metric = WITHOUT
    if stressed.any() and not stressed.all():
        told = detection_measures(
            judged.logit[is_known], judged.is_flagged[is_known], stressed, series_of(inputs)[is_known]
        )
        found = {name: value for name in DETECTED if (value := told[name]) is not None} | found
        metric = BY_LABELS
    return Measured({name: float(value) for name, value in found.items() if np.isfinite(value)}, metric)


def is_better(new: float | None, old: float | None, direction: Direction) -> bool:
    """Whether the new figure beats the old one; one that is not known beats nothing, and is beaten by any."""
    if new is None or not np.isfinite(new):
        return False
    if old is None or not np.isfinite(old):
        return True
    return new > old if direction == "higher" else new < old


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Compared:
    """before, now: the present model and the new one, over the very same executions, n of them.

    can_old, can_new: whether each can judge any of the executions that it was asked about."""

    before: Measured
    now: Measured
    n: int
    can_old: bool
    can_new: bool

    @property
    def is_better(self) -> bool:
        """Whether the new one is better; it is where it alone can judge."""
        if not self.n:
            return self.can_new and not self.can_old
        metric = self.now.metric
        return is_better(self.now.figures.get(metric), self.before.figures.get(metric), self.now.direction)

    @property
    def had(self) -> str:
        """What the present model came to, in words."""
        value = self.before.figures.get(self.now.metric)
        if not self.n or value is None:
            return "can say nothing of them"
        return f"had {value:.4g} on the same {self.n:,} executions"


def promote_if_better(
    warehouse: Warehouse,
    card: ModelCard,
    trained: TrainedModel,
    measured: Measured,
    history: History,
    is_tested: Bools,
) -> str:
    """The id of the model in use afterwards. measured: the new one on its held-out executions, is_tested (n,).

    Both are asked about those of them that the present model has neither learned nor chosen by, and that both can
    judge. Where there are none to compare them on, the present model stays; it goes where it can judge none of them."""
    new = measured.figures.get(measured.metric)
    told = f"{measured.metric} {new:.4g}" if new is not None else f"{measured.metric} not known"
    try:
        present = trained_in_use(warehouse, card.source)
    except BadInput as error:
        logger.warning("the model in use before cannot be read: %s", error)
        present = None
    if present is None:
        promote(warehouse, WORD, card.model_id, f"the first that can be read, {told}")
        return card.model_id
    old_card, old = present
    if old_card.model_id == card.model_id:
        return card.model_id
    ids = history.executions["execution_id"].astype(str)
    fresh = is_tested & ~ids.isin(old.learned | old.chosen).to_numpy(dtype=bool)
    if not fresh.any():
        logger.info("kept %s, which has learned what %s was measured on", old_card.model_id, card.model_id)
        return old_card.model_id
    found = compared(old, trained, history, fresh)
    if not found.is_better:
        logger.info("kept %s, which %s; %s: %s", old_card.model_id, found.had, card.model_id, found.now.figures)
        return old_card.model_id
    promote(warehouse, WORD, card.model_id, f"{told}, {old_card.model_id} {found.had}")
    return card.model_id


def compared(old: TrainedModel, new: TrainedModel, history: History, is_asked: Bools) -> Compared:
    """Both models, measured on those of some executions, is_asked (n,), that both can judge.

    By average precision where these are labelled, else by how well they are rebuilt (measure)."""
    asked = [ask(history, one) for one in (old, new)]
    can = [is_asked & can_be_judged(one.inputs) for one in asked]
    both = can[0] & can[1]
    verdicts = [np.isfinite(one.judged.logit) for one in asked]
    if all((both & one).any() for one in verdicts):  # of what only one of two judges says, nothing can be compared
        both = both & verdicts[0] & verdicts[1]
    before, now = (
        measure(one.inputs, model.fitted.network, one.judged, one.labels, one.is_learned, both)
        for one, model in zip(asked, (old, new), strict=True)
    )
    return Compared(before, now, int(both.sum()), bool(can[0].any()), bool(can[1].any()))


def training_key(source: str, version: str, *params: Params) -> str:
    """The same for the same data, parameters and code. version: of the data of the source."""
    asked = [one.model_dump(mode="json") for one in params]
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{source}\n{version}\n{code_version()}\n{asked}").hex


def remember(warehouse: Warehouse, key: str, found: Mapping[str, Any]) -> None:
    """Keep what a training came to. found: with `model_id`, whose folder it is kept in.

    Call it when the model is in use or was found to be no better: what was stopped before is done again."""
    file = warehouse.models / WORD / found["model_id"] / NOTE_FILE
    draft = file.with_suffix(".part")
    draft.write_text(json.dumps({"key": key, "found": dict(found)}, allow_nan=False), encoding="utf-8")
    draft.replace(file)


def remembered(warehouse: Warehouse, source: str, key: str) -> dict[str, Any] | None:
    """What the training of that key came to, champion_id being the model in use now; None where it has to be made.

    That is so too where no model is in use or its files are broken: a training is what mends it. Of several models of
    one key the one in use is meant."""
    found = {one["model_id"]: one for file in _kept(warehouse) if (one := _of_key(file, key))}
    card = champion(warehouse.models, WORD, source, NETWORK) if found else None
    if card is None:
        return None
    pass  # merged: imported itself

    try:
        load_trained(folder_of(warehouse.models, WORD, card.model_id))
    except BadInput:
        return None
    return {**found.get(card.model_id, next(reversed(found.values()))), "champion_id": card.model_id}


def _kept(warehouse: Warehouse) -> list[Path]:
    """The kept ones of all models, the latest last."""
    files = (warehouse.models / WORD).glob(f"*/{NOTE_FILE}")
    return sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.parent.name))


def _of_key(file: Path, key: str) -> dict[str, Any] | None:
    """What is kept in a file, if it has that key; a file that is damaged, or of another model, has none."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        is_meant = content["key"] == key and content["found"]["model_id"] == file.parent.name
        return dict(content["found"]) if is_meant else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True)
class Training:
    """model_id: of the new model; champion_id: of the one in use afterwards. measured: on the held-out executions.

    n_learned, n_tested: executions."""

    model_id: str
    champion_id: str
    measured: Measured
    n_learned: int
    n_tested: int


def train_source(
    warehouse: Warehouse, source: str, history: History, version: str, params: EvaluateParams, *, run_id: str
) -> Training:
    """Fit a model to a source's executions, measure it on the latest ones, register it, and use it if it is better.

    history: of the source, with telemetry; version: of its data. Better: by `Measured.metric`, the present model being
    asked about the very same executions as far as it did not learn or choose by them itself. Raises BadInput where
    there is too little to learn from."""
    model = params.learned.model
    with threadpool_limits(1):
        case, split = case_by_time(history, params)
        prepared = prepare_case(case, model, params)
        if reason := why_not(prepared):
            raise BadInput(
                f"source {source!r}", reason, "more executions of benchmarks", "record more, then train again"
            )
        network = fit_prepared(prepared, model, params.learned).network
        if not network.params.loss.detection:
            logger.info("source %s: %s", source, NO_STRESS)
        _, threshold = judged_by(network, prepared, case.is_validation, params)
        judged = judge(
            prepared.inputs, network, FingerprintParams(threshold=threshold), may_precede=prepared.undisturbed
        )
        measured = measure(prepared.inputs, network, judged, known_labels(case), case.is_train, split.is_test)
    fitted = FittedModel(prepared.scales, network, threshold)
    trained = _trained(history, prepared, fitted)
    card = _card(source, version, params, measured, run_id)
    register(warehouse, card, lambda folder: save_trained(trained, folder))
    in_use = promote_if_better(warehouse, card, trained, measured, history, split.is_test)
    logger.info("trained %s of source %s: %s; in use: %s", card.model_id, source, card.metrics, in_use)
    return Training(card.model_id, in_use, measured, len(trained.learned), int(split.is_test.sum()))


def _trained(history: History, prepared: Prepared, fitted: FittedModel) -> TrainedModel:
    """The model with what else it needs to answer: norms of the reference."""
    inputs, network = prepared.inputs, fitted.network
    is_train = np.zeros(len(inputs), dtype=bool)
    is_train[prepared.train.targets] = True
    calm = is_train & is_unstressed(history.executions).to_numpy(dtype=bool)
    norms = learn_norm_reference(inputs, fingerprints_of(inputs, network), calm)
    ids = history.executions["execution_id"].astype(str).to_numpy(dtype=object)
    chosen = frozenset(ids[prepared.validation.targets])
    frozen = Frozen(threshold=fitted.threshold, norms=norms)
    return TrainedModel(fitted, frozen, frozenset(ids[is_train]), chosen)


def _card(source: str, version: str, params: EvaluateParams, measured: Measured, run_id: str) -> ModelCard:
    model = params.learned.model
    parameters = params.model_dump(mode="json", exclude={"learned"}) | {"model": model.model_dump(mode="json")}
    return new_card(
        word=WORD,
        source=source,
        kind=NETWORK,
        run_id=run_id,
        data_version=version,
        seed=model.fit.seed,
        parameters=parameters,
        figures=measured.figures,
        identity=f"{run_id}{parameters}",
    )


@dataclass(frozen=True)
class Tuning:
    """best: parameters with the least validation loss. trials: one row a finished one. n_resumed: from before."""

    best: ModelParams
    validation_loss: float
    trials: pd.DataFrame
    n_resumed: int


def tune(history: History, params: EvaluateParams, asked: SearchParams, journal: Path, *, source: str) -> Tuning:
    """Search; the latest executions, which models are measured on, have no part in it.

    journal: Optuna's file, from which a search that was stopped goes on. Raises BadInput with too few executions."""
    model = params.learned.model
    case, _ = case_by_time(history, params)
    prepared = prepare_case(case, model, params)
    if reason := why_not(prepared):
        raise BadInput(f"source {source!r}", reason, "more executions of benchmarks", "record more, and tune again")
    rng = np.random.default_rng(model.fit.seed)
    train = drawn_graphs(prepared.train, 1.0, params.learned.most_graphs, rng)
    validation = drawn_graphs(prepared.validation, 1.0, params.learned.most_graphs, rng)
    found = search(train, validation, model, asked, journal=journal)
    return Tuning(found.best, found.validation_loss, found.trials, found.n_resumed)


@dataclass(frozen=True)
class Told:
    """executions: one row a fingerprinted execution: execution_id, log_norm, score (1 is the reference, NaN without
    one), x, y (Figure 4; NaN without a fingerprint), encoding (list of numbers).

    ranking: nodes by fingerprints. shown: share of the variance in x and y."""

    executions: pd.DataFrame
    ranking: Ranking
    shown: float


def fingerprint(history: History, model: TrainedModel, is_flagged: Bools, score: ScoreParams) -> Told:
    """Fingerprints of all executions, and the ranking of the nodes by those that are not flagged, is_flagged (n,)."""
    with threadpool_limits(1):
        inputs = inputs_of(history, model.fitted.scales, model.fitted.network.params)
        prints = fingerprints_of(inputs, model.fitted.network)
    log_scores = log_scores_of(inputs, prints, model.frozen.norms)
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
    return Told(executions, ranking, plane.shown)
