"""A trained model is asked about all executions of a history."""

from dataclasses import dataclass

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.nodes.fingerprint.fingerprint_params import FingerprintParams
from tasks.nodes.fingerprint.judging import Judged, judge, undisturbed
from tasks.nodes.history import History
from tasks.nodes.learned.champions import TrainedModel
from tasks.nodes.perona.inputs import Inputs, Labels, inputs_of
from tasks.nodes.type_tables import Bools


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
