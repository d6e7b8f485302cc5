"""A new model is used if it beats the present one on executions that neither has seen."""

import logging
from dataclasses import dataclass

import numpy as np

from tasks.errors import BadInput
from tasks.nodes.fingerprint.judging import can_be_judged
from tasks.nodes.history import History
from tasks.nodes.learned.asking import ask
from tasks.nodes.learned.champions import TrainedModel, trained_in_use
from tasks.nodes.learned.held_out import Measured, is_better, measure
from tasks.nodes.learned.names import WORD
from tasks.nodes.type_tables import Bools
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, promote

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

    By average precision where these are labelled, else by how well they are rebuilt (see held_out.measure)."""
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
