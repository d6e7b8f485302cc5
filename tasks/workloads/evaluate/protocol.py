"""`whorl workloads evaluate`: the whole protocol on any readable labelled telemetry."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput, report_progress
from tasks.report.evaluation import Evaluation, Figures
from tasks.warehouse.sources import code_version
from tasks.workloads.evaluate.conditions import shared_results, unknown_results
from tasks.workloads.evaluate.items import SLICES, Slice, Split, base_splits, cut, sampled, splits_of
from tasks.workloads.evaluate.known import (
    Cohort,
    SplitPredictions,
    Trial,
    cohort_of,
    counter_figures,
    counter_table,
    known_figures,
    partial_results,
    predictions_table,
    scores_table,
    split_predictions,
    try_split,
)
from tasks.workloads.evaluate.paper import (
    fit_paper,
    similarity_of,
    table_iii,
    table_iii_figures,
    threshold_figures,
    threshold_rows,
)
from tasks.workloads.evaluate.scores import confusion_of
from tasks.workloads.identify.counters import PLAIN, condition_of
from tasks.workloads.identify.identification import identify_all
from tasks.workloads.identify.model import fit_model
from tasks.workloads.identify.phases import fingerprints_of, learn_scale
from tasks.workloads.intake import read_telemetry
from tasks.workloads.params import EvaluateParams, IdentifyParams, ReadParams
from tasks.workloads.telemetry import Telemetry

ONE_WORKLOAD = "there is one workload; at least two are needed"
NO_SPLIT = "nothing to learn from and to test; known.accuracy.reason says why"
MOST_ITEMS = 2_000  # runs and windows; of more, a sample
N_TRIALS = 3  # base splits that first seconds, windows and thresholds are measured on
PAPER_KNOWN = ("mariadb", "cnn", "redis", "wordpress")  # Table III: learned from
PAPER_UNKNOWN = ("bayes", "postgresql")  # and never seen


def evaluate_read(
    paths: Sequence[str], read: ReadParams, params: EvaluateParams, identify: IdentifyParams, reader: str = ""
) -> Evaluation:
    """Read the files into memory and evaluate their labelled runs.

    Raises BadInput for a file that is wrong as a whole, if no run has a label, and if the runs have no counter in
    common."""
    labelled = read_telemetry(paths, read, reader)
    evaluation = evaluate_runs(labelled.runs, params, identify)
    evaluation.figures.update(
        {
            "rows.kept": labelled.n_rows,
            "rows.refused": labelled.n_refused,
            "data_sha256": labelled.data_sha256,
            "version": code_version(),
        }
    )
    return evaluation


def evaluate_runs(runs: Sequence[Telemetry], params: EvaluateParams, identify: IdentifyParams) -> Evaluation:
    """Evaluate the runs that have a label, in one thread.

    Raises BadInput if none has one, and if they have no counter in common."""
    labelled = [run for run in runs if run.workload is not None]
    if not labelled:
        raise BadInput(
            "telemetry",
            f"none of {len(runs)} runs has a label",
            "runs that say which workload they are of",
            "name it with --label-from stem|name|parent|column:NAME, --manifest FILE or a column workload",
        )
    with threadpool_limits(1):
        evaluation = _evaluate(labelled, params, identify)
    evaluation.figures["n_unlabelled"] = len(runs) - len(labelled)
    return evaluation


def _evaluate(runs: Sequence[Telemetry], params: EvaluateParams, identify: IdentifyParams) -> Evaluation:
    """Runs that were recorded in a condition are tested apart: beside others, of programs that nobody learns, on other
    inputs, and idle."""
    shared = [run for run in runs if condition_of(run) not in PLAIN]
    quiet = [run for run in runs if condition_of(run) in PLAIN] or list(runs)
    cutting = cut(quiet, params.windows)
    items = sampled(cutting.items, MOST_ITEMS, params.seed)
    cohort = cohort_of(items, identify)
    used = counter_table(runs, cohort.counters)
    all_runs = cohort.runs(range(len(items)))
    scale = learn_scale(all_runs, cohort.counters)  # of all runs: there is nothing to predict here
    made = fingerprints_of(all_runs, cohort.counters, scale, cohort.cuts)
    similarity, table_iv = similarity_of(made)
    figures: Figures = {
        "n": len(items),
        "n_found": len(cutting.items),
        "n_windows": sum(item.is_window for item in items),
        "runs": len(runs),
        "traces": len({item.trace for item in items}),
        "classes": len(set(cohort.labels)),
        "samples.left_over": cutting.n_left_over,
        "seed": params.seed,
        **counter_figures(used),
        **similarity,
    }
    tables = {"table_iv": table_iv, "counters": used}
    known, base, trials = _known(cohort, params, identify)
    reason = "" if trials else ONE_WORKLOAD if base else NO_SPLIT
    rounds = splits_of(items, "by_round", params).splits or base
    unknown, unknown_tables = unknown_results(cohort, base, identify, params.seed, "" if base else NO_SPLIT)
    in_company, company = shared_results(cohort, shared, rounds, identify, params.seed, reason)
    figures |= unknown | in_company
    tables |= {**unknown_tables, "shared": company}
    for part in (known, _on_trials(cohort, trials, identify, reason), _paper_unknown(cohort, identify)):
        figures |= part.figures
        tables |= part.tables
    return Evaluation(figures, tables)


def _known(
    cohort: Cohort, params: EvaluateParams, identify: IdentifyParams
) -> tuple[Evaluation, list[Split], list[Trial]]:
    """Known workloads over all slices; the splits that the rest is measured on, and trials of the first of them."""
    base, of_base = base_splits(cohort.items, params)
    has_one_workload = len(set(cohort.labels)) < 2
    by_slice: dict[Slice, list[SplitPredictions]] = {}
    reasons: dict[Slice, str] = {}
    kept: list[Trial] = []
    for slice_ in SLICES:
        splits = splits_of(cohort.items, slice_, params)
        reasons[slice_] = ONE_WORKLOAD if has_one_workload else splits.reason
        by_slice[slice_] = []
        for done, split in enumerate([] if has_one_workload else splits.splits):
            report_progress(f"known workloads, {slice_}", done, len(splits.splits))
            trial = try_split(cohort, split, identify)
            if trial is None:
                continue
            by_slice[slice_].append(split_predictions(trial, cohort.cuts))
            if slice_ == base and len(kept) < N_TRIALS:
                kept.append(trial)
    tables = {
        name: pd.concat([table_of(made, slice_) for slice_, made in by_slice.items()], ignore_index=True)
        for name, table_of in (("scores", scores_table), ("predictions", predictions_table))
    }
    tables["confusion"] = _confusions(by_slice)
    return Evaluation(known_figures(by_slice, reasons, base), tables), of_base.splits, kept


def _confusions(by_slice: dict[Slice, list[SplitPredictions]]) -> pd.DataFrame:
    """One row a slice, method and pair of workloads: slice, method, actual, predicted, n, over all splits."""
    parts = []
    for slice_, predictions in by_slice.items():
        for method in predictions[0].by_method if predictions else ():
            truth = [name for of_split in predictions for name in of_split.truth]
            confusion = confusion_of(truth, [name for of_split in predictions for name in of_split.by_method[method]])
            parts.append(confusion.assign(slice=slice_, method=method))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _on_trials(cohort: Cohort, trials: Sequence[Trial], identify: IdentifyParams, reason: str) -> Evaluation:
    """Thresholds, first seconds and windows, each on a few of the base splits."""
    thresholds: list[dict[str, Any]] = []
    for trial in trials:
        described, _ = trial.paper.describe(trial.test, cohort.cuts)
        thresholds += [{"split": trial.split.name, **row} for row in threshold_rows(trial.paper, described)]
    table = pd.DataFrame(thresholds)
    partial, tables = partial_results(cohort, trials, identify, reason)
    figures = threshold_figures(table, reason) | partial
    return Evaluation(figures, {"thresholds": table, **tables})


def _paper_unknown(cohort: Cohort, identify: IdentifyParams) -> Evaluation:
    """The paper's second case study: learned from four workloads, which of them are two others taken for?"""
    labels = np.asarray(cohort.labels)
    missing = sorted({*PAPER_KNOWN, *PAPER_UNKNOWN} - set(cohort.labels))
    if missing:
        table, reason = pd.DataFrame(), f"no runs of {', '.join(missing)}"
        return Evaluation(table_iii_figures(table, reason), {"table_iii": table})
    train = cohort.runs(np.flatnonzero(np.isin(labels, PAPER_KNOWN)))
    model = fit_model(train, identify)
    paper = fit_paper(train, cohort.counters, identify.seed, cohort.cuts)
    named, called_unknown = {}, {}
    for workload in PAPER_UNKNOWN:
        runs = cohort.runs(np.flatnonzero(labels == workload))
        named[workload] = paper.trees.workloads(paper.describe(runs, cohort.cuts)[1])
        called_unknown[workload] = [not answer.is_known for answer in identify_all(runs, model, with_reasons=False)]
    table = table_iii(named, PAPER_KNOWN, called_unknown)
    return Evaluation(table_iii_figures(table), {"table_iii": table})
