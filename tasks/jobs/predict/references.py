"""What the accuracy of predicted labels is held against: an oracle, two halves of the runs, and the job's history.

Each gives one row a job (n_runs, hit); `summarise` weighs them by runs and by jobs, over any choice of jobs."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.jobs.pmf import Counts, Floats, pmfs_of
from tasks.jobs.posterior import hard_labels, log_shapes, prior_weights
from tasks.jobs.predict.classifier_params import LabelParams
from tasks.jobs.predict.targets import log_posteriors
from tasks.jobs.shape_params import PosteriorParams
from tasks.jobs.shapes import (
    NO_LABEL,
    ShapeSet,
)

MAX_COUNTS_AT_ONCE = 4_000_000  # drawn histograms of a job, in numbers: 32 MB


@dataclass(frozen=True)
class Reference:
    """by_run, by_group: mean hit with each run, and each job, counting the same; None, with a reason, without any.

    n_groups, n_runs: that it is taken over; n_left_out: jobs without a hit of their own."""

    by_run: float | None
    by_group: float | None
    n_groups: int
    n_runs: int
    n_left_out: int
    reason: str | None = None


def summarise(table: pd.DataFrame, keys: pd.Index | None = None) -> Reference:
    """Means over the jobs of a table that have a hit, or over those among `keys` (jobs that it lacks are skipped)."""
    chosen = table if keys is None else table[table.index.isin(keys)]
    known = chosen[chosen["hit"].notna()]
    n_left_out = len(chosen) - len(known)
    if known.empty:
        return Reference(None, None, 0, 0, n_left_out, "no job with enough runs")
    hits, n_runs = known["hit"].to_numpy(dtype=float), known["n_runs"].to_numpy()
    by_run = float((hits * n_runs).sum() / n_runs.sum())
    return Reference(by_run, float(hits.mean()), len(known), int(n_runs.sum()), n_left_out)


def ceiling(
    by_group: pd.DataFrame, counts: Counts, shapes: ShapeSet, params: LabelParams, posterior: PosteriorParams
) -> pd.DataFrame:
    """Expected accuracy of an oracle that knows each job's distribution: n_runs, hit, oracle_label by group_key.

    by_group: of label_groups for the test period; counts: (n_groups, n_bins) in its order, the runs of ALL periods.
    A job's distribution is its runs and params.oracle_shape_runs runs of its most likely shape. As many runs as the
    test period has are drawn from it oracle_draws times and labelled; `hit` is the share of the most frequent label,
    which the oracle always says. Only labelled jobs, of more than oracle_max_groups a sample; hit is missing for the
    others. It errs high: a job's own runs vary less than what it could have done, and the best of finitely many draws
    is picked. Raises BadInput if counts and by_group differ in length."""
    rng, chosen = _begin(by_group, counts, params)
    weight = params.oracle_shape_runs
    best = shapes.centres[hard_labels(log_posteriors(counts, shapes, posterior))]
    distributions = pmfs_of(counts + weight * best)
    scorer = _Scorer(shapes, posterior)
    hits, labels = np.full(len(counts), np.nan), np.full(len(counts), NO_LABEL)
    with threadpool_limits(1):  # products this small gain nothing from more
        for row in chosen:
            n_runs, tally = int(by_group["n_runs"].iloc[row]), np.zeros(len(shapes.centres), dtype=np.int64)
            order = np.argsort(-distributions[row], kind="stable")  # drawing ends when all runs have a bin
            for n_draws in _portions(params.oracle_draws, counts.shape[1]):
                drawn = rng.multinomial(n_runs, distributions[row, order], size=n_draws)  # (n_draws, n_bins)
                tally += np.bincount(scorer.labels(drawn, order), minlength=len(tally))
            hits[row], labels[row] = tally.max() / params.oracle_draws, tally.argmax()
    return pd.DataFrame({"n_runs": by_group["n_runs"], "hit": hits, "oracle_label": labels}, index=by_group.index)


def split_half(
    by_group: pd.DataFrame, counts: Counts, shapes: ShapeSet, params: LabelParams, posterior: PosteriorParams
) -> pd.DataFrame:
    """How often two random halves of a job's runs have the same label: n_runs, hit by group_key.

    counts: (n_groups, n_bins) of the same period, in the order of by_group. Each half needs params.min_support runs;
    hit, over half_draws ways to deal them, is missing for jobs with fewer. A diagnostic: halves have fewer runs than
    the label, so an oracle can be right more often than they agree. Raises as ceiling does."""
    rng, chosen = _begin(by_group, counts, params)
    scorer, hits = _Scorer(shapes, posterior), np.full(len(counts), np.nan)
    with threadpool_limits(1):
        for row in chosen:
            half = int(counts[row].sum()) // 2
            if half < params.min_support:
                continue
            used = np.flatnonzero(counts[row])  # the fewer bins, the faster
            first = np.zeros((params.half_draws, counts.shape[1]), dtype=np.int64)
            first[:, used] = rng.multivariate_hypergeometric(counts[row, used], half, params.half_draws)
            hits[row] = np.mean(scorer.labels(first) == scorer.labels(counts[row] - first))
    return pd.DataFrame({"n_runs": by_group["n_runs"], "hit": hits}, index=by_group.index)


def history_baseline(by_group: pd.DataFrame, history: pd.DataFrame, params: LabelParams) -> pd.DataFrame:
    """Is a job's label the one of its history? n_runs, hit (0 or 1), history_label, n_before by group_key.

    by_group: of the test period; history: label_groups of everything before it. The most probable shape of at least
    params.min_history runs counts as history; a labelled job without it has history_label -1 and is wrong. hit is
    missing for jobs without a label in the test period. The baseline that a model must beat."""
    n_before = history["n_runs"].reindex(by_group.index).fillna(0).astype(np.int64)
    columns = [name for name in history if str(name).startswith("posterior_")]
    most_probable = pd.Series(hard_labels(history[columns]) if len(history) else [], index=history.index, dtype=float)
    labels = most_probable.reindex(by_group.index).where(n_before >= params.min_history).fillna(NO_LABEL)
    is_labelled = by_group["label"] != NO_LABEL
    hits = (labels == by_group["label"]).astype(float).where(is_labelled)
    columns_out = {"n_runs": by_group["n_runs"], "hit": hits, "history_label": labels.astype(np.intp)}
    return pd.DataFrame({**columns_out, "n_before": n_before}, index=by_group.index)


class _Scorer:
    """The labels that label_groups would give."""

    def __init__(self, shapes: ShapeSet, params: PosteriorParams) -> None:
        self._log_theta = log_shapes(shapes.centres, empty_bin_prior=params.empty_bin_prior).T  # (n_bins, k)
        with np.errstate(divide="ignore"):  # a shape without groups
            self._log_prior: Floats = np.log(prior_weights(params.prior, shapes.n_groups))

    def labels(self, counts: Counts, order: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """counts: (n, n_bins), its columns in `order`."""
        log_theta = self._log_theta if order is None else self._log_theta[order]
        return hard_labels(counts.astype(float) @ log_theta + self._log_prior)


def _begin(by_group: pd.DataFrame, counts: Counts, params: LabelParams) -> tuple[np.random.Generator, NDArray[np.intp]]:
    """The generator, and the rows of labelled jobs, at most params.oracle_max_groups, in order."""
    if len(by_group) != len(counts):
        raise BadInput("counts", f"{len(counts)} rows", f"one for each of the {len(by_group)} jobs, in their order")
    rng = np.random.default_rng(params.seed)
    rows = np.flatnonzero((by_group["label"] != NO_LABEL).to_numpy())
    return rng, np.sort(rng.permutation(rows)[: params.oracle_max_groups])


def _portions(n_draws: int, n_bins: int) -> list[int]:
    """Draws in portions that fit into memory."""
    portion = max(1, MAX_COUNTS_AT_ONCE // n_bins)
    return [min(portion, n_draws - start) for start in range(0, n_draws, portion)]
