"""Known workloads (RQ1): how often each method names the right one, over the splits of a slice."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.workloads.evaluate.cohort import Cohort
from tasks.workloads.evaluate.distances import MEASURES, Measure, by_measure
from tasks.workloads.evaluate.learned import Learned, Seen, learn, see
from tasks.workloads.evaluate.scores import Score, score_of
from tasks.workloads.evaluate.splits import Positions, Split
from tasks.workloads.identify.forest import fit_forest
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.similarity.nearest_workload import nearest_workloads
from tasks.workloads.telemetry import FloatArray, Telemetry

Method = Literal["trees", "model", "ed", "dtw", "nearest", "forest"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class Trial:
    """What was learned from one side of a split, and how the other looks to it.

    test: positions of the tested items; runs: theirs; n_unseen: items left out, as none of their workload was learned
    from."""

    split: Split
    learned: Learned
    seen: Seen
    test: Positions
    runs: list[Telemetry]
    n_unseen: int

    @property
    def truth(self) -> list[str]:
        """The workloads of the tested runs."""
        return [str(run.workload) for run in self.runs]


@dataclass(frozen=True)
class Told:
    """What each method says of the tested runs of a split. confirmed: by measure, share that is named rightly and
    lies within the threshold of its workload."""

    split: str
    run_ids: list[str]
    truth: list[str]
    told: dict[Method, list[str]]
    confirmed: dict[str, float]
    n_unseen: int

    def score(self, method: Method) -> Score:
        """How good one method was."""
        return score_of(self.truth, self.told[method])


def try_split(cohort: Cohort, split: Split, params: IdentifyParams, *, tested: Cohort | None = None) -> Trial | None:
    """Learn from one side of a split and look at the other; None where no tested workload was learned from.

    tested: the same items with other samples (such as their first seconds), to test instead."""
    is_seen = np.isin(cohort.labels[split.test], cohort.labels[split.train])
    test = split.test[is_seen]
    if not len(test):
        return None
    learned, asked = learn(cohort, split.train, params), tested or cohort
    return Trial(split, learned, see(asked, test, learned), test, asked.runs(test), int((~is_seen).sum()))


def most_probable(learned: Learned, probabilities: FloatArray) -> list[str]:
    """The most probable workload of each run. probabilities: (n, n_classes)."""
    return [learned.judge.classes[at] for at in probabilities.argmax(axis=1)]


def told_of(trial: Trial) -> Told:
    """Name the tested runs by every method."""
    learned, seen = trial.learned, trial.seen
    told: dict[Method, list[str]] = {
        "trees": most_probable(learned, seen.of_trees),
        "model": most_probable(learned, seen.probabilities),
        "nearest": [learned.judge.classes[at] for at in seen.relative.argmin(axis=1)],
        "forest": fit_forest(learned.runs, learned.maker.counters, learned.params.seed).workloads(trial.runs),
    }
    confirmed: dict[str, float] = {}
    for measure in MEASURES:
        told[measure], is_confirmed = _by_distance(learned, seen, measure)
        confirmed[measure] = float(((np.asarray(told[measure]) == np.asarray(trial.truth)) & is_confirmed).mean())
    return Told(trial.split.name, [run.run_id for run in trial.runs], trial.truth, told, confirmed, trial.n_unseen)


def _by_distance(learned: Learned, seen: Seen, measure: Measure) -> tuple[list[str], NDArray[np.bool_]]:
    """The distance classifier of V-D: candidates by number of phases, the nearest of them, its threshold."""
    verdicts = nearest_workloads(
        seen.to_known[measure],
        [len(one.workload_phases) for one in seen.fingerprints],
        [len(one.workload_phases) for one in learned.known],
        [str(run.workload) for run in learned.runs],
        learned.spreads[measure],
        by_measure(learned.params.similarity, measure),
    )
    return list(verdicts.workloads), verdicts.is_known


def scores_table(told: Sequence[Told], slice_: str) -> pd.DataFrame:
    """One row a split and method: slice, split, method, the measures of a Score, confirmed, n, n_unseen."""
    rows = []
    for one in told:
        for method in one.told:
            score = one.score(method)
            rows.append(
                {
                    "slice": slice_,
                    "split": one.split,
                    "method": method,
                    "accuracy": score.accuracy,
                    "macro_f1": score.macro_f1,
                    "precision": score.precision,
                    "recall": score.recall,
                    "confirmed": one.confirmed.get(method),
                    "n": score.n,
                    "n_unseen": one.n_unseen,
                }
            )
    return pd.DataFrame(rows)


def told_table(told: Sequence[Told], slice_: str) -> pd.DataFrame:
    """One row a split and tested run: slice, split, run_id, workload, and what each method said."""
    parts = [
        pd.DataFrame({"slice": slice_, "split": one.split, "run_id": one.run_ids, "workload": one.truth}).assign(
            **{str(method): named for method, named in one.told.items()}
        )
        for one in told
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
