"""A trained model is asked about all executions of a history."""

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.nodes.evaluate.learned import known_labels
from tasks.nodes.evaluate.learned_inputs import told_of
from tasks.nodes.fingerprint.fingerprint_params import AskingParams, FingerprintParams
from tasks.nodes.fingerprint.judging import Judged, judge, undisturbed
from tasks.nodes.history import History
from tasks.nodes.learned.cases import case_of_model
from tasks.nodes.learned.champions import TrainedModel
from tasks.nodes.perona.inputs import Inputs, Labels
from tasks.nodes.type_tables import Bools


@dataclass(frozen=True)
class Asked:
    """inputs, judged: of all executions. labels: (n,) what is known of them. is_learned: (n,) by this model."""

    inputs: Inputs
    judged: Judged
    labels: Labels
    is_learned: Bools


def ask(history: History, model: TrainedModel, params: AskingParams | None = None) -> Asked:
    """Judge all executions, each beside earlier ones that the model did not flag. Labels are not looked at.

    params: how; flagged is what lies above the threshold that was chosen in training. Where the network sees what plain
    detectors say, these learn from the executions that the model learned, again."""
    fitted = model.fitted
    network = fitted.network
    given = (params or AskingParams()).model_dump()
    how = FingerprintParams.model_validate({**given, "threshold": model.frozen.threshold})
    with threadpool_limits(1):
        seed = network.params.fit.seed
        case = case_of_model(history, fitted.scales.preprocessor, model.learned, model.chosen, seed)
        detect = model.frozen.detect
        inputs = told_of(case, fitted.scales, network.params, detect, is_imitated=fitted.is_imitated)
        judged = judge(inputs, network, how, may_precede=undisturbed(history.executions))
    return Asked(inputs, judged, np.asarray(known_labels(case)), case.is_train)
