"""Training on a source: learn from its earlier executions, measure on the latest, keep the better model."""

import logging
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.nodes.aspects import is_unstressed
from tasks.nodes.evaluate.network import (
    NO_STRESS,
    FittedModel,
    Prepared,
    fit_prepared,
    judged_by,
    known_labels,
    prepare_case,
    why_not,
)
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.fingerprint.fingerprint_params import FingerprintParams
from tasks.nodes.fingerprint.fingerprints import fingerprints_of
from tasks.nodes.fingerprint.judging import judge
from tasks.nodes.fingerprint.node_scores import learn_norm_reference
from tasks.nodes.history import History
from tasks.nodes.learned.cases import case_by_time
from tasks.nodes.learned.champions import Frozen, TrainedModel, save_trained
from tasks.nodes.learned.held_out import Measured, measure
from tasks.nodes.learned.names import KIND, WORD
from tasks.nodes.learned.promoting import promote_if_better
from tasks.warehouse.new_card import new_card
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, register

logger = logging.getLogger(__name__)


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
        kind=KIND,
        run_id=run_id,
        data_version=version,
        seed=model.fit.seed,
        parameters=parameters,
        figures=measured.figures,
        identity=f"{run_id}{parameters}",
    )
