"""`ablation.<term>.<measure>.<variant>`: what each term of the loss is worth, on the split by time.

One term is left out at a time, together with the same for what earlier executions promise; `none` leaves out none.
Where detection is left out there are no verdicts to measure."""

import logging
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed
from tasks.nodes.evaluate.alarms import measures_of as verdict_measures
from tasks.nodes.evaluate.detection import Prepare, case_of, judged_rows, labels_reason
from tasks.nodes.evaluate.figures import Figures
from tasks.nodes.evaluate.hidden_labels import as_told
from tasks.nodes.evaluate.learned import Prepared, fit_prepared, judged_by, prepare_case, why_not
from tasks.nodes.evaluate.learned_detection import plan_fits
from tasks.nodes.evaluate.learned_figures import put_seeds
from tasks.nodes.evaluate.learned_measures import measures_of
from tasks.nodes.evaluate.learned_params import NAMES
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.splits import Split
from tasks.nodes.fingerprint.judging import logit_of
from tasks.nodes.history import History
from tasks.nodes.perona.params import LossParams, ModelParams
from tasks.nodes.perona.training import Diverged
from tasks.progress import report_progress

NONE = "none"
TERMS = tuple(name for name, field in LossParams.model_fields.items() if field.annotation is bool)
VERDICTS = ("f1_outlier", "weighted_f1", "auprc")
MEASURES = (*VERDICTS, "mse_own", "type_accuracy", "score_spearman", "score_deviation")
COLUMNS = ["detector", "term", "seed", *MEASURES]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ablation:
    """rows: COLUMNS, one a fit. reasons: by variant, empty where there is a row."""

    rows: pd.DataFrame
    reasons: dict[str, str]


def ablate(history: History, prepare: Prepare, params: EvaluateParams) -> Ablation:
    """Fit every variant without each term of the loss in turn, with params.learned.ablation_seeds seeds."""
    reason = labels_reason(history.executions)
    reasons = {NAMES[one]: reason for one in params.learned.variants}
    if reason:
        return Ablation(pd.DataFrame(columns=COLUMNS), reasons)
    ((_, first, split), *_), _ = plan_fits(history, "chronological", params)
    case = case_of(as_told(history, params), split, prepare, params.seed)
    rows: list[dict[str, object]] = []
    for variant in params.learned.variants:
        prepared = prepare_case(case, params.learned.asked(variant, first), params)
        for at, term in enumerate((NONE, *TERMS)):
            report_progress(f"fitting {NAMES[variant]} without {term}", at, len(TERMS) + 1)
            for seed in range(first, first + params.learned.ablation_seeds):
                model = without(params.learned.asked(variant, seed), term)
                try:
                    told = _fit(history, split, prepared, model, params)
                except (ValueError, Diverged) as error:
                    logger.info("no fit of %s without %s: %s", NAMES[variant], term, error)
                    reasons[NAMES[variant]] = str(error)
                    continue
                rows.append({"detector": NAMES[variant], "term": term, "seed": seed, **told})
    return Ablation(pd.DataFrame(rows, columns=COLUMNS), reasons)


def without(model: ModelParams, term: str) -> ModelParams:
    """The parameters without one term of the loss; `none`: as they are."""
    if term == NONE:
        return model
    return model.model_copy(update={"loss": model.loss.model_copy(update={term: False})})


def _fit(
    history: History, split: Split, prepared: Prepared, model: ModelParams, params: EvaluateParams
) -> dict[str, float | None]:
    if reason := why_not(prepared):
        raise ValueError(reason)
    network = fit_prepared(prepared, model, params.learned).network
    logits, threshold = judged_by(network, prepared, split.is_validation, params)
    limit = logit_of(threshold)
    rows = judged_rows(history, split, NAMES[model.variant], logits, params.false_alarm_share, threshold=limit)
    of = rows["execution"].to_numpy(dtype=np.int64)
    stressed = is_stressed(history.executions).to_numpy(dtype=bool)[of]
    verdicts = verdict_measures(rows["score"].to_numpy(), rows["is_flagged"].to_numpy(), stressed, np.zeros(len(of)))
    is_tested = np.zeros(len(prepared.inputs), dtype=bool)
    is_tested[of] = True
    others = measures_of(prepared.inputs, network, split.is_train, is_tested)
    return {
        **{name: verdicts[name] for name in VERDICTS},
        **{name: others[name] for name in MEASURES if name in others},
    }


def ablation_figures(found: Ablation) -> Figures:
    """Means over seeds, with deviation and interval."""
    figures: Figures = {}
    for name, reason in found.reasons.items():
        for term in (NONE, *TERMS):
            own = found.rows[(found.rows["detector"] == name) & (found.rows["term"] == term)]
            for measure in MEASURES:
                put_seeds(figures, f"ablation.{term}.{measure}.{name}", own[measure].tolist(), reason)
    return figures
