"""The learned model under each way of splitting, several seeds each: what it flags, and what its fits are worth.

chronological, random, left_node: true predecessors as context, chosen by predicted labels; thresholds from validation.
paper: as its authors do. The random split, graphs within each part by labels, three predecessors or no verdict; their
variant flags from probability 0.5 on, ours from a threshold chosen on the validation part."""

import logging
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed, type_names
from tasks.nodes.detect.plain import Case
from tasks.nodes.evaluate.detection import COLUMNS, Prepare, case_of, judged_rows, labels_reason
from tasks.nodes.evaluate.measures import WITHOUT_ONE_HOT, Figures, LearnedResults, fits_table, put_seeds
from tasks.nodes.evaluate.measures import measures_of as verdict_measures
from tasks.nodes.evaluate.network import (
    NO_STRESS,
    Prepared,
    fit_prepared,
    graph_logits,
    judged_by,
    known_labels,
    logit_threshold,
    measures_of,
    n_drawn,
    part_graphs,
    prepare_case,
    type_accuracy,
    why_not,
    without_one_hot,
)
from tasks.nodes.evaluate.params import NAMES, EvaluateParams, LearnedProtocol
from tasks.nodes.evaluate.splits import Split, as_told, splits_of
from tasks.nodes.history import History
from tasks.nodes.perona.judging import is_metric, logit_of
from tasks.nodes.perona.params import LossParams, ModelParams, Variant
from tasks.nodes.perona.training import Diverged, FittedNetwork
from tasks.progress import report_progress

PAPER_THRESHOLD = 0.0  # the logit of probability 0.5
BY_LABELS = "the paper's protocol makes its graphs by labels, which are hidden"
FAMILIES: tuple[tuple[LearnedProtocol, ...], ...] = (
    ("chronological",),
    ("random", "paper"),
    ("left_node",),
)  # share splits
TOLD_AGAIN = ("chronological", "paper")  # where the fit without the type among the inputs is made

logger = logging.getLogger(__name__)


@dataclass
class _OfSplit:
    """What all fits of one split share: made once. history: with all labels, to measure by; case: as it is told."""

    history: History
    split: Split
    case: Case
    prepared: dict[Variant, Prepared] = field(default_factory=dict)


def detect_learned(history: History, prepare: Prepare, params: EvaluateParams) -> LearnedResults:
    """Fit and judge every variant that params.learned names, under every protocol that it names."""
    asked = params.learned
    reason = labels_reason(history.executions)
    reasons = {(str(protocol), NAMES[one]): reason for protocol in asked.protocols for one in asked.variants}
    judged: list[pd.DataFrame] = []
    fits: list[dict[str, Any]] = []
    for family in () if reason else FAMILIES:
        protocols = [protocol for protocol in asked.protocols if protocol in family]
        planned, why = plan_fits(history, family[0], params) if protocols else ([], "")
        reasons |= {(protocol, NAMES[one]): why for protocol in protocols for one in asked.variants}
        shared: _OfSplit | None = None
        for at, (number, seed, split) in enumerate(planned):
            if shared is None or shared.split is not split:
                shared = _OfSplit(history, split, case_of(as_told(history, params), split, prepare, params.seed))
            for protocol, variant in product(protocols, asked.variants):
                name = NAMES[variant]
                report_progress(f"fitting {name}, {protocol}", at, len(planned))
                is_first = all((one["protocol"], one["detector"]) != (protocol, name) for one in fits)
                try:
                    rows, told = _fit(shared, protocol, asked.asked(variant, seed), params, is_first=is_first)
                except (Diverged, ValueError) as error:
                    logger.info("no fit of %s, %s: %s", name, protocol, error)
                    reasons[protocol, name] = str(error)
                    continue
                about = {"protocol": protocol, "round": number, "detector": name, "split": split.name, "seed": seed}
                judged.append(rows.assign(protocol=protocol, round=number))
                fits.append({**about, **told})
    found = pd.concat(judged, ignore_index=True)[COLUMNS] if judged else pd.DataFrame(columns=COLUMNS)
    return LearnedResults(found, fits_table(fits), _of_none(reasons, fits))


def plan_fits(
    history: History, protocol: LearnedProtocol, params: EvaluateParams
) -> tuple[list[tuple[int, int, Split]], str]:
    """(round, seed, split) of each fit, and why there is none.

    A round a seed. By time: always the same split. At random: a split of its own, from as many as params.repeats says.
    Left nodes: each of them in each round, one after another, as fits of one split share what is made of it."""
    types = type_names(history.executions).tolist()
    found = splits_of(history.executions, types, "random" if protocol == "paper" else protocol, params)
    first, seeds = params.learned.model.fit.seed, range(params.learned.seeds)
    if not found.rounds:
        return [], found.reason
    if protocol == "left_node":
        return [(at, first + at, split) for split in found.rounds[0] for at in seeds], ""
    return [(at, first + at, found.rounds[at % len(found.rounds)][0]) for at in seeds], ""


def _of_none(reasons: dict[tuple[str, str], str], fits: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Without the reasons of those that have a fit all the same."""
    fitted = {(one["protocol"], one["detector"]) for one in fits}
    return {key: "" if key in fitted else reason for key, reason in reasons.items()}


def _fit(
    shared: _OfSplit, protocol: LearnedProtocol, model: ModelParams, params: EvaluateParams, *, is_first: bool
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The judged executions of one fit, and its measures. Raises ValueError with a reason, or Diverged."""
    if protocol == "paper" and params.without_labels:
        raise ValueError(BY_LABELS)
    if model.variant not in shared.prepared:
        shared.prepared[model.variant] = prepare_case(shared.case, model, params)
    prepared, split = shared.prepared[model.variant], shared.split
    if protocol == "paper":
        prepared = by_parts(prepared, split, model)
    if reason := why_not(prepared):
        raise ValueError(reason)
    fitted = fit_prepared(prepared, model, params.learned)
    if not fitted.network.params.loss.detection:
        raise ValueError(NO_STRESS)
    rows = _judged(shared, protocol, prepared, fitted, params)
    is_tested = np.zeros(len(prepared.inputs), dtype=bool)
    is_tested[rows["execution"].to_numpy(dtype=np.int64)] = True
    told: dict[str, Any] = measures_of(prepared.inputs, fitted.network, split.is_train, is_tested)
    if is_first and protocol in TOLD_AGAIN and params.learned.without_one_hot:
        told[WITHOUT_ONE_HOT] = _without(prepared, model, params, is_tested, told["type_accuracy"])
    n_graphs = n_drawn(len(prepared.train), params.learned.share, params.learned.most_graphs)
    told |= {"best_epoch": float(fitted.best_epoch), "n_graphs": float(n_graphs)}
    told |= {"validation_loss": fitted.validation_loss, "seconds": float(fitted.history["seconds"].iloc[-1])}
    return rows, told


def by_parts(prepared: Prepared, split: Split, model: ModelParams) -> Prepared:
    """The graphs of the paper's protocol, within each part of the split."""
    train = part_graphs(prepared.train.inputs, split.is_train, model)
    return replace(
        prepared, train=train, validation=part_graphs(prepared.validation.inputs, split.is_validation, model)
    )


def _judged(
    shared: _OfSplit, protocol: LearnedProtocol, prepared: Prepared, fitted: FittedNetwork, params: EvaluateParams
) -> pd.DataFrame:
    history, split, model = shared.history, shared.split, fitted.network.params
    name, share = NAMES[model.variant], params.false_alarm_share
    if protocol != "paper":
        logits, chosen_at = judged_by(fitted.network, prepared, split.is_validation, params)
        return judged_rows(history, split, name, logits, share, threshold=logit_of(chosen_at))
    known = replace(prepared.inputs, labels=known_labels(shared.case))
    logits = graph_logits(fitted.network, part_graphs(known, split.is_test, model))
    chosen = graph_logits(fitted.network, prepared.validation)
    threshold = PAPER_THRESHOLD
    if model.variant == "ours":
        threshold = logit_threshold(chosen, prepared.inputs, split.is_validation, params)
    return judged_rows(history, split, name, np.where(split.is_test, logits, chosen), share, threshold=threshold)


def _without(
    prepared: Prepared, model: ModelParams, params: EvaluateParams, is_tested: np.ndarray, told_with: float
) -> float:
    """Type accuracy of a fit that is not told the type; where it never is, that of the fit there is."""
    if is_metric(prepared.inputs).all():
        return told_with
    silent = replace(prepared, train=without_one_hot(prepared.train), validation=without_one_hot(prepared.validation))
    fitted = fit_prepared(silent, model, params.learned)
    inputs = without_one_hot(replace(prepared.train, inputs=prepared.inputs)).inputs
    return type_accuracy(inputs, fitted.network, is_tested)


NONE = "none"
TERMS = tuple(name for name, field in LossParams.model_fields.items() if field.annotation is bool)
VERDICTS = ("f1_outlier", "weighted_f1", "auprc")
ABLATION_MEASURES = (*VERDICTS, "mse_own", "type_accuracy", "score_spearman", "score_deviation")
ABLATION_COLUMNS = ["detector", "term", "seed", *ABLATION_MEASURES]


@dataclass(frozen=True)
class Ablation:
    """rows: ABLATION_COLUMNS, one a fit. reasons: by variant, empty where there is a row."""

    rows: pd.DataFrame
    reasons: dict[str, str]


def ablate(history: History, prepare: Prepare, params: EvaluateParams) -> Ablation:
    """Fit every variant without each term of the loss in turn, with params.learned.ablation_seeds seeds."""
    reason = labels_reason(history.executions)
    reasons = {NAMES[one]: reason for one in params.learned.variants}
    if reason:
        return Ablation(pd.DataFrame(columns=ABLATION_COLUMNS), reasons)
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
                    told = _fit_without(history, split, prepared, model, params)
                except (ValueError, Diverged) as error:
                    logger.info("no fit of %s without %s: %s", NAMES[variant], term, error)
                    reasons[NAMES[variant]] = str(error)
                    continue
                rows.append({"detector": NAMES[variant], "term": term, "seed": seed, **told})
    return Ablation(pd.DataFrame(rows, columns=ABLATION_COLUMNS), reasons)


def without(model: ModelParams, term: str) -> ModelParams:
    """The parameters without one term of the loss; `none`: as they are."""
    if term == NONE:
        return model
    return model.model_copy(update={"loss": model.loss.model_copy(update={term: False})})


def _fit_without(
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
        **{name: others[name] for name in ABLATION_MEASURES if name in others},
    }


def ablation_figures(found: Ablation) -> Figures:
    """Means over seeds, with deviation and interval."""
    figures: Figures = {}
    for name, reason in found.reasons.items():
        for term in (NONE, *TERMS):
            own = found.rows[(found.rows["detector"] == name) & (found.rows["term"] == term)]
            for measure in ABLATION_MEASURES:
                put_seeds(figures, f"ablation.{term}.{measure}.{name}", own[measure].tolist(), reason)
    return figures
