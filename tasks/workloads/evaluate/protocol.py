"""`whorl workloads evaluate`: the whole protocol on any readable labelled telemetry."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.progress import report_progress
from tasks.warehouse.versions import code_version
from tasks.workloads.evaluate.cohort import Cohort, cohort_of, sampled
from tasks.workloads.evaluate.counter_use import counter_figures, counter_table
from tasks.workloads.evaluate.figures import Figures
from tasks.workloads.evaluate.known import Told, Trial, scores_table, told_of, told_table, try_split
from tasks.workloads.evaluate.known_figures import known_figures
from tasks.workloads.evaluate.pairs import pair_figures
from tasks.workloads.evaluate.paper_unknown import table_iii
from tasks.workloads.evaluate.params import EvaluateParams
from tasks.workloads.evaluate.partial_figures import partial_results
from tasks.workloads.evaluate.reading import read_labelled
from tasks.workloads.evaluate.scores import confusion_of
from tasks.workloads.evaluate.similarity_figures import similarity_of
from tasks.workloads.evaluate.splits import SLICES, Slice, Split, base_splits, splits_of
from tasks.workloads.evaluate.thresholds import threshold_figures, threshold_table
from tasks.workloads.evaluate.unknown import LEAST_WORKLOADS, held_out_pairs, unknown_tables
from tasks.workloads.evaluate.unknown_figures import paper_figures, unknown_figures
from tasks.workloads.evaluate.windows import cut
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.telemetry import Telemetry

logger = logging.getLogger(__name__)
ONE_WORKLOAD = "there is one workload; at least two are needed"
NO_SPLIT = "nothing to learn from and to test; known.accuracy.reason says why"


@dataclass(frozen=True)
class Evaluation:
    """figures: number, text or None by key, and `<key>.reason` beside a None. tables: by name."""

    figures: Figures
    tables: dict[str, pd.DataFrame]


def evaluate_telemetry(paths: Sequence[str], read: ReadParams, params: EvaluateParams, reader: str = "") -> Evaluation:
    """Read the files into memory and evaluate their labelled runs.

    Raises BadInput for a file that is wrong as a whole, if no run has a label, and if the runs have no counter in
    common."""
    found = read_labelled(paths, read, reader)
    evaluation = evaluate_runs(found.runs, params)
    evaluation.figures.update(
        {
            "n_unlabelled": found.n_unlabelled,
            "rows.kept": found.n_rows,
            "rows.refused": found.n_refused,
            "data_sha256": found.data_sha256,
            "version": code_version(),
        }
    )
    return evaluation


def evaluate_runs(runs: Sequence[Telemetry], params: EvaluateParams) -> Evaluation:
    """Evaluate the runs that have a label, in one thread.

    Raises BadInput if none has one, and if they have no counter in common."""
    labelled = [run for run in runs if run.workload is not None]
    if not labelled:
        raise BadInput(
            f"{len(runs)} runs", "none has a label", "runs that say which workload they are of", "label some"
        )
    with threadpool_limits(1):
        found = _evaluate(labelled, params)
    found.figures["n_unlabelled"] = len(runs) - len(labelled)
    return found


def _evaluate(runs: Sequence[Telemetry], params: EvaluateParams) -> Evaluation:
    cutting = cut(runs, params.windows)
    items = sampled(cutting.items, params.sample.max_items, params.seed)
    cohort = cohort_of(items, params.identify.fingerprint)
    figures: Figures = {
        "n": len(items),
        "n_found": len(cutting.items),
        "n_windows": sum(item.is_window for item in items),
        "runs": len(runs),
        "traces": len({item.trace for item in items}),
        "classes": len(set(cohort.labels.tolist())),
        "samples.left_over": cutting.n_left_over,
        "seed": params.seed,
    }
    used = counter_table(runs, cohort.counters)
    similarity = similarity_of(cohort, params.identify)
    figures |= counter_figures(used) | similarity.figures
    tables = {"counters": used, "table_iv": similarity.table_iv, "phase_lengths": similarity.phase_lengths}
    known, base, trials = _known(cohort, params)
    for part in (known, _on_trials(cohort, base, trials, params), _unknown(cohort, base, params)):
        figures |= part.figures
        tables |= part.tables
    return Evaluation(figures, tables)


def _known(cohort: Cohort, params: EvaluateParams) -> tuple[Evaluation, list[Split], list[Trial]]:
    """Known workloads over all slices; the splits that the rest is measured on, and trials of the first of them."""
    base, base_found = base_splits(cohort.items, params)
    is_one = len(set(cohort.labels.tolist())) < 2
    told: dict[Slice, list[Told]] = {}
    reasons: dict[Slice, str] = {}
    kept: list[Trial] = []
    for slice_ in SLICES:
        splits = splits_of(cohort.items, slice_, params)
        reasons[slice_] = ONE_WORKLOAD if is_one else splits.reason
        told[slice_] = []
        for done, split in enumerate([] if is_one else splits.splits):
            report_progress(f"known workloads, {slice_}", done, len(splits.splits))
            trial = try_split(cohort, split, params.identify)
            if trial is None:
                continue
            told[slice_].append(told_of(trial))
            if slice_ == base and len(kept) < params.sample.online_repeats:
                kept.append(trial)
    tables = {
        "scores": pd.concat([scores_table(own, slice_) for slice_, own in told.items()], ignore_index=True),
        "predictions": pd.concat([told_table(own, slice_) for slice_, own in told.items()], ignore_index=True),
        "confusion": _confusions(told),
    }
    return Evaluation(known_figures(told, reasons, base), tables), base_found.splits, kept


def _confusions(told: dict[Slice, list[Told]]) -> pd.DataFrame:
    """One row a slice, method and pair of workloads: slice, method, actual, predicted, n, over all splits."""
    parts = []
    for slice_, own in told.items():
        for method in own[0].told if own else ():
            truth = [name for one in own for name in one.truth]
            found = confusion_of(truth, [name for one in own for name in one.told[method]])
            parts.append(found.assign(slice=slice_, method=method))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _on_trials(cohort: Cohort, splits: Sequence[Split], trials: Sequence[Trial], params: EvaluateParams) -> Evaluation:
    """Thresholds, pairs of runs, first seconds and windows, each on a few of the base splits."""
    reason = (
        "" if trials else ONE_WORKLOAD if splits else "nothing to learn from and to test; see known.accuracy.reason"
    )
    thresholds = threshold_table(trials)
    partial = partial_results(cohort, trials, params, reason)
    figures = threshold_figures(thresholds, params.identify.similarity, reason)
    figures |= pair_figures(trials, params.sample.max_run_pairs, reason) | partial.figures
    return Evaluation(figures, {"thresholds": thresholds, **partial.tables})


def _unknown(cohort: Cohort, splits: Sequence[Split], params: EvaluateParams) -> Evaluation:
    workloads = sorted(set(cohort.labels.tolist()))
    pairs = held_out_pairs(workloads, params.sample.unknown_pairs, params.seed)
    reason = ""
    if len(workloads) < LEAST_WORKLOADS:
        reason, pairs = f"{len(workloads)} workloads; at least {LEAST_WORKLOADS} are needed, to hold out two", []
    elif not splits:
        reason, pairs = NO_SPLIT, []
    found = unknown_tables(cohort, splits, pairs, params.identify, params.known_recall)
    n_choices = len(workloads) * (len(workloads) - 1) // 2
    paper = table_iii(cohort, params.paper_known, params.paper_unknown, params.identify)
    figures = unknown_figures(found.pairs, params.known_recall, n_choices, reason) | paper_figures(paper)
    return Evaluation(figures, {"unknown": found.pairs, "unknown_scores": found.scores, "table_iii": paper.table})
