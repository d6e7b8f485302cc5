"""Table IV and the phases behind it, over all runs: distances between runs of a workload, and what phases tell."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.workloads.evaluate.cohort import Cohort
from tasks.workloads.evaluate.distances import MEASURES, by_measure, phases_of
from tasks.workloads.evaluate.figures import Figures, put
from tasks.workloads.fingerprints import Fingerprint
from tasks.workloads.identify.fingerprinting import fingerprints_of, learn_fingerprinting
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.phases import ADF, UNDETERMINED
from tasks.workloads.similarity.subsequence import distances_of_pairs
from tasks.workloads.similarity.thresholds import Spread, spread_of

MOST_RUNS = 600  # in Table IV; of more, an even sample


@dataclass(frozen=True)
class Similarity:
    """figures. table_iv: a row a workload and measure. phase_lengths: phases of counters by their n_samples, and in how
    many the Dickey–Fuller statistic is determined."""

    figures: Figures
    table_iv: pd.DataFrame
    phase_lengths: pd.DataFrame


def similarity_of(cohort: Cohort, params: IdentifyParams) -> Similarity:
    """Fingerprints of all runs on one scale, learned from all of them: there is nothing to predict here."""
    runs = cohort.runs(range(len(cohort.items)))
    fingerprints = fingerprints_of(runs, learn_fingerprinting(runs, params.fingerprint), cuts=cohort.cuts)
    lengths = _phase_lengths(fingerprints)
    table = _table_iv(fingerprints, params)
    n_phases = int(lengths["n"].sum())
    figures: Figures = {
        "adf.determined_share": float(lengths["n_determined"].sum() / n_phases),
        "phases.n": n_phases,
        "phases.mean": float(np.mean([len(one.workload_phases) for one in fingerprints])),
        "phases.mean_of_counters": n_phases / sum(len(one.summaries) for one in fingerprints),
        "phases.most": max(one.most_phases for one in fingerprints),
    }
    for row in table.to_dict("records"):
        for name in ("mean", "deviation"):
            reason = "one run of this workload: no pair"
            put(figures, f"distance.{name}.{row['measure']}.{row['workload']}", row[name], reason)
    return Similarity(figures, table, lengths)


def _phase_lengths(fingerprints: Sequence[Fingerprint]) -> pd.DataFrame:
    """One row a length: n_samples, n, n_determined."""
    lengths = np.concatenate([np.diff(bounds) for run in fingerprints for bounds in run.bounds])
    statistics = np.concatenate([one[:, ADF] for run in fingerprints for one in run.summaries])
    told = pd.DataFrame({"n_samples": lengths, "is_determined": statistics != UNDETERMINED})
    grouped = told.groupby("n_samples")["is_determined"]
    return grouped.agg(n="size", n_determined="sum").reset_index()


def _table_iv(fingerprints: Sequence[Fingerprint], params: IdentifyParams) -> pd.DataFrame:
    """workload, measure, mean, deviation, n_pairs of the distances between its own runs, and the same with `others_`
    for those to runs of other workloads."""
    kept = np.unique(np.linspace(0, len(fingerprints) - 1, min(len(fingerprints), MOST_RUNS)).astype(int))
    chosen = [fingerprints[at] for at in kept]
    labels = np.array([str(one.workload) for one in chosen])
    rows = []
    for measure in MEASURES:
        distances = distances_of_pairs(phases_of(chosen), by_measure(params.similarity, measure))
        for workload in np.unique(labels):
            own = labels == workload
            inner = distances[np.ix_(own, own)]
            rows.append(
                {
                    "workload": str(workload),
                    "measure": measure,
                    **_told(spread_of(inner[np.triu_indices(len(inner), k=1)]), ""),
                    **_told(spread_of(distances[np.ix_(own, ~own)].ravel()), "others_"),
                }
            )
    return pd.DataFrame(rows)


def _told(spread: Spread | None, prefix: str) -> dict[str, float | int | None]:
    return {
        f"{prefix}mean": spread.mean if spread else None,
        f"{prefix}deviation": spread.deviation if spread else None,
        f"{prefix}n_pairs": spread.n if spread else 0,
    }
