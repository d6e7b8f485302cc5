"""Unknown workloads (RQ2): two workloads are held out, the others learned; how well does the score tell them apart?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.progress import report_progress
from tasks.workloads.evaluate.cohort import Cohort
from tasks.workloads.evaluate.splits import Positions, Split
from tasks.workloads.identify.cutting import Cut
from tasks.workloads.identify.identification import fingerprint_distances
from tasks.workloads.identify.model import Model, describe, fit_model
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.telemetry import FloatArray, Telemetry

ROUNDING = 1e-9  # of a number of runs
LEAST_WORKLOADS = 3  # two held out, one known


def held_out_pairs(workloads: Sequence[str], n_most: int, seed: int) -> list[tuple[str, str]]:
    """Every choice of two workloads, in order; of more than n_most a random sample."""
    pairs = list(combinations(sorted(set(workloads)), 2))
    if len(pairs) <= n_most:
        return pairs
    chosen = np.sort(np.random.default_rng(seed).permutation(len(pairs))[:n_most])
    return [pairs[at] for at in chosen]


@dataclass(frozen=True)
class Unknown:
    """What became of the runs of each pair.

    pairs: one row a pair: first, second, split, n_known, n_unknown, auroc (of the calibrated score), auroc_trees,
    auroc_nearest (of what it is made of), false_known (share of unknown runs below the score that the stated share of
    the known ones stays below), said_known, said_unknown (what the model's own limit makes of unknown, and of known
    runs). scores: one row a run: first, second, run_id, workload, is_unknown, score, limit."""

    pairs: pd.DataFrame
    scores: pd.DataFrame


def unknown_tables(
    cohort: Cohort, splits: Sequence[Split], pairs: Sequence[tuple[str, str]], params: IdentifyParams, recall: float
) -> Unknown:
    """Learn without each pair. Known runs are those that the split tests, unknown ones all runs of the pair; the splits
    take turns. A pair that leaves no known run to test is skipped."""
    rows, scores = [], []
    for turn, pair in enumerate(pairs):
        report_progress("holding out unknown workloads", turn, len(pairs))
        split = splits[turn % len(splits)]
        is_out = np.isin(cohort.labels, pair)
        train = split.train[~is_out[split.train]]
        known = _seen(cohort, split.test[~is_out[split.test]], train)
        if not len(known):
            continue
        model = fit_model(cohort.runs(train), params, cuts=cohort.cuts)
        is_unknown = np.repeat([False, True], [len(known), int(is_out.sum())])
        judged = np.concatenate([known, np.flatnonzero(is_out)])
        seen = _scored(cohort.runs(judged), model, cohort.cuts)
        about = {"first": pair[0], "second": pair[1]}
        rows.append({**about, "split": split.name, **_measured(seen, is_unknown, model.open_set.limit, recall)})
        told = {"workload": cohort.labels[judged], "is_unknown": is_unknown, "score": seen["score"]}
        scores.append(pd.DataFrame({"run_id": [run.run_id for run in cohort.runs(judged)], **told}))
        scores[-1] = scores[-1].assign(limit=model.open_set.limit, **about)
    return Unknown(pd.DataFrame(rows), pd.concat(scores, ignore_index=True) if scores else pd.DataFrame())


def _scored(runs: Sequence[Telemetry], model: Model, cuts: Mapping[str, Cut]) -> dict[str, FloatArray]:
    """Suspicion that each run is unknown, rising, by name: (n,) each. `score` is that of `identify`."""
    described = describe(runs, model, cuts=cuts)
    between = fingerprint_distances(described, model)
    judgement = model.judge.judge(described.features, described.points, between)
    return {
        "score": model.open_set.scores(judgement.evidence),
        "trees": 1 - model.judge.trees.probabilities(described.features).max(axis=1),
        "nearest": judgement.relative.min(axis=1),
    }


def _seen(cohort: Cohort, tested: Positions, train: Positions) -> Positions:
    """The tested items whose workload was learned from."""
    return tested[np.isin(cohort.labels[tested], cohort.labels[train])]


def _measured(
    seen: Mapping[str, FloatArray], is_unknown: NDArray[np.bool_], limit: float, recall: float
) -> dict[str, float]:
    known, unknown = seen["score"][~is_unknown], seen["score"][is_unknown]
    return {
        "n_known": len(known),
        "n_unknown": len(unknown),
        "auroc": auroc(known, unknown),
        "auroc_trees": auroc(seen["trees"][~is_unknown], seen["trees"][is_unknown]),
        "auroc_nearest": auroc(seen["nearest"][~is_unknown], seen["nearest"][is_unknown]),
        "false_known": false_known(known, unknown, recall),
        "said_known": float((unknown <= limit).mean()),
        "said_unknown": float((known > limit).mean()),
    }


def auroc(known: FloatArray, unknown: FloatArray) -> float:
    """Probability that an unknown run has a higher score than a known one, ties counting half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([known, unknown]))
    n_unknown = len(unknown)
    return float((ranks[len(known) :].sum() - n_unknown * (n_unknown + 1) / 2) / (len(known) * n_unknown))


def false_known(known: FloatArray, unknown: FloatArray, recall: float) -> float:
    """Share of unknown runs at or below the lowest score that at least `recall` of the known ones are at or below."""
    place = math.ceil(recall * len(known) - ROUNDING) - 1
    return float((unknown <= np.sort(known)[place]).mean())
