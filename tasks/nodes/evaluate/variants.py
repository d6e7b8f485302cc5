"""Both variants of preprocessing on the same executions: ours, and beside it the paper's."""

from tasks.nodes.evaluate.figures import THEIRS
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.protocol import Evaluation, evaluate_history
from tasks.nodes.history import History
from tasks.nodes.preprocess.params import Variant

THEIR_TABLES = "paper_"


def evaluate_both(history: History, params: EvaluateParams) -> Evaluation:
    """Ours, and the figures of the paper's preprocessing as `paper_preprocessing.<key>`, its tables as `paper_<name>`.

    Figures that no preprocessing moves (n, seed, …) stand there once, and so do those of the learned model, whose
    variants bring their own preprocessing. Raises BadInput as evaluate_history."""
    ours = evaluate_history(history, with_variant(params, "robust"))
    plain = params.model_copy(update={"learned": params.learned.model_copy(update={"variants": ()})})
    theirs = evaluate_history(history, with_variant(plain, "paper"))
    beside = {f"{THEIRS}{key}": value for key, value in theirs.figures.items() if "." in key}
    tables = {f"{THEIR_TABLES}{name}": table for name, table in theirs.tables.items()}
    return Evaluation(ours.figures | beside, ours.tables | tables)


def with_variant(params: EvaluateParams, variant: Variant) -> EvaluateParams:
    """The same evaluation with another variant of preprocessing."""
    return params.model_copy(update={"preprocess": params.preprocess.model_copy(update={"variant": variant})})
