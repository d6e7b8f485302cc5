"""What the accuracy of predicted labels is held against: an oracle, two halves of the runs, and the job's history.

Each gives one row a job (n_runs, hit); `summarise` weighs them by runs and by jobs, over any choice of jobs."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.jobs.labels.targets import log_posteriors, posteriors_in
from tasks.jobs.normalisation import Counts, Floats, pmfs_of
from tasks.jobs.shape_params import PosteriorParams
from tasks.jobs.shapes import NO_LABEL, ShapeSet, hard_labels, log_shapes, prior_weights

MAX_COUNTS_AT_ONCE = 4_000_000  # drawn histograms of a job, in numbers: 32 MB
MOST_GROUPS = 2000  # of the oracle and of the halves; of more a sample
ORACLE_DRAWS = 500  # times that the runs of a job are drawn anew
HALF_DRAWS = 20  # ways that the runs of a job are dealt into two halves
ORACLE_SHAPE_RUNS = 1.0  # that the most likely shape counts as in a job's own distribution


@dataclass(frozen=True)
class Reference:
    """by_run, by_group: mean hit with each run, and each job, counting the same; None, with a reason, without any.

    n_groups, n_runs: that it is taken over."""

    by_run: float | None
    by_group: float | None
    n_groups: int
    n_runs: int
    reason: str | None = None


def summarise(table: pd.DataFrame, keys: pd.Index | None = None) -> Reference:
    """Means over the jobs of a table that have a hit, or over those among `keys` (jobs that it lacks are skipped)."""
    known = table[table["hit"].notna() & (True if keys is None else table.index.isin(keys))]
    if known.empty:
        return Reference(None, None, 0, 0, "no job with enough runs")
    hits, n_runs = known["hit"].to_numpy(dtype=float), known["n_runs"].to_numpy()
    return Reference(float((hits * n_runs).sum() / n_runs.sum()), float(hits.mean()), len(known), int(n_runs.sum()))


def ceiling(
    by_group: pd.DataFrame,
    counts: Counts,
    shapes: ShapeSet,
    posterior: PosteriorParams,
    *,
    n_draws: int = ORACLE_DRAWS,
    shape_runs: float = ORACLE_SHAPE_RUNS,
    most_groups: int = MOST_GROUPS,
    seed: int = 0,
) -> pd.DataFrame:
    """Expected accuracy of an oracle that knows each job's distribution: n_runs, hit, oracle_label by group_key.

    by_group: of label_groups for the test period; counts: (n_groups, n_bins) in its order, the runs of ALL periods.
    A job's distribution is its runs and shape_runs runs of its most likely shape. As many runs as the test period has
    are drawn from it n_draws times and labelled; `hit` is the share of the most frequent label, which the oracle
    always says. Only labelled jobs, of more than most_groups a sample; hit is missing for the others. It errs high: a
    job's own runs vary less than what it could have done, and the best of finitely many draws is picked. Raises
    BadInput if counts and by_group differ in length."""
    rng, rows = _begin(by_group, counts, most_groups, seed)
    best = shapes.centres[hard_labels(log_posteriors(counts, shapes, posterior))]
    distributions = pmfs_of(counts + shape_runs * best)
    scorer = _Scorer(shapes, posterior)
    hits, labels = np.full(len(counts), np.nan), np.full(len(counts), NO_LABEL)
    portion = max(1, MAX_COUNTS_AT_ONCE // counts.shape[1])  # of the draws, which fits into memory
    with threadpool_limits(1):  # products this small gain nothing from more
        for row in rows:
            n_runs, tally = int(by_group["n_runs"].iloc[row]), np.zeros(len(shapes.centres), dtype=np.int64)
            order = np.argsort(-distributions[row], kind="stable")  # drawing ends when all runs have a bin
            for start in range(0, n_draws, portion):
                size = min(portion, n_draws - start)
                drawn = rng.multinomial(n_runs, distributions[row, order], size=size)  # (size, n_bins)
                tally += np.bincount(scorer.labels(drawn, order), minlength=len(tally))
            hits[row], labels[row] = tally.max() / n_draws, tally.argmax()
    return pd.DataFrame({"n_runs": by_group["n_runs"], "hit": hits, "oracle_label": labels}, index=by_group.index)


def split_half(
    by_group: pd.DataFrame,
    counts: Counts,
    shapes: ShapeSet,
    min_support: int,
    posterior: PosteriorParams,
    *,
    n_draws: int = HALF_DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """How often two random halves of a job's runs have the same label: n_runs, hit by group_key.

    counts: (n_groups, n_bins) of the same period, in the order of by_group. Each half needs min_support runs; hit,
    over n_draws ways to deal them, is missing for jobs with fewer. A diagnostic: halves have fewer runs than the
    label, so an oracle can be right more often than they agree. Raises as ceiling does."""
    rng, rows = _begin(by_group, counts, MOST_GROUPS, seed)
    scorer, hits = _Scorer(shapes, posterior), np.full(len(counts), np.nan)
    with threadpool_limits(1):
        for row in rows:
            half = int(counts[row].sum()) // 2
            if half < min_support:
                continue
            used = np.flatnonzero(counts[row])  # the fewer bins, the faster
            first = np.zeros((n_draws, counts.shape[1]), dtype=np.int64)
            first[:, used] = rng.multivariate_hypergeometric(counts[row, used], half, n_draws)
            hits[row] = np.mean(scorer.labels(first) == scorer.labels(counts[row] - first))
    return pd.DataFrame({"n_runs": by_group["n_runs"], "hit": hits}, index=by_group.index)


def history_baseline(by_group: pd.DataFrame, history: pd.DataFrame) -> pd.DataFrame:
    """Is a job's label the one of its history? n_runs, hit (0 or 1), history_label, n_before by group_key.

    by_group: of the test period; history: label_groups of everything before it. Any run counts as history; a labelled
    job without one has history_label -1 and is wrong. hit is missing for jobs without a label in the test period. The
    baseline that a model must beat."""
    n_before = history["n_runs"].reindex(by_group.index).fillna(0).astype(np.int64)
    most_probable = hard_labels(posteriors_in(history)) if len(history) else np.zeros(0)
    labels = pd.Series(most_probable, index=history.index, dtype=float).reindex(by_group.index)
    labels = labels.where(n_before > 0).fillna(NO_LABEL)
    hits = (labels == by_group["label"]).astype(float).where(by_group["label"] != NO_LABEL)
    known = {"n_runs": by_group["n_runs"], "hit": hits, "history_label": labels.astype(np.intp), "n_before": n_before}
    return pd.DataFrame(known, index=by_group.index)


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


def _begin(
    by_group: pd.DataFrame, counts: Counts, most_groups: int, seed: int
) -> tuple[np.random.Generator, NDArray[np.intp]]:
    """The generator, and the rows of labelled jobs, at most so many, in order."""
    if len(by_group) != len(counts):
        raise BadInput("counts", f"{len(counts)} rows", f"one for each of the {len(by_group)} jobs, in their order")
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero((by_group["label"] != NO_LABEL).to_numpy())
    return rng, np.sort(rng.permutation(rows)[:most_groups])
