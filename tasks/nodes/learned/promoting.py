"""A new model is used if it beats the present one on executions that neither has seen."""

import logging

from tasks.errors import BadInput
from tasks.nodes.history import History
from tasks.nodes.learned.asking import ask
from tasks.nodes.learned.champions import TrainedModel, trained_in_use
from tasks.nodes.learned.held_out import Measured, is_better, measure
from tasks.nodes.learned.names import WORD
from tasks.nodes.type_tables import Bools
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, promote

logger = logging.getLogger(__name__)


def promote_if_better(
    warehouse: Warehouse,
    card: ModelCard,
    trained: TrainedModel,
    measured: Measured,
    history: History,
    is_tested: Bools,
) -> str:
    """The id of the model in use afterwards. measured: the new one on its held-out executions, is_tested (n,).

    Both are asked about those of them that the present model has neither learned nor chosen by. Where there are none,
    the newer one is used: it knows more."""
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
    had = "has learned the same executions itself"
    if fresh.any():
        before, now = (_asked(one, history, fresh, measured.metric) for one in (old, trained))
        if not is_better(now, before, measured.direction):
            logger.info("kept %s: %s %s, %s %s", old_card.model_id, measured.metric, before, card.model_id, now)
            return old_card.model_id
        had = f"had {before:.4g} on the same executions" if before is not None else "can say nothing of them"
    promote(warehouse, WORD, card.model_id, f"{told}, {old_card.model_id} {had}")
    return card.model_id


def _asked(model: TrainedModel, history: History, is_tested: Bools, metric: str) -> float | None:
    """The metric of a model over some executions; None where it cannot be had."""
    asked = ask(history, model)
    found = measure(asked.inputs, model.fitted.network, asked.judged, asked.labels, asked.is_learned, is_tested)
    return found.figures.get(metric)
