"""Known workloads (RQ1): how often each method names the right one, over the splits of a slice, and from parts of runs.

Beside the model stand plain baselines, given the same counters and the same runs: the nearest run by L1 on the
logarithm of means, non-negative least squares on means, a random forest on means and deviations; and the
paper's methods."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.errors import report_progress
from tasks.report.evaluation import Figures, put, put_mean
from tasks.workloads.evaluate.distances import DISTANCES
from tasks.workloads.evaluate.items import LEAST_SAMPLES, Item, Positions, Slice, Split, part_of
from tasks.workloads.evaluate.paper import PaperModel, by_distance, fit_paper
from tasks.workloads.evaluate.scores import MEASURES, SplitScore, score_of
from tasks.workloads.identify.counters import (
    FLOOR_QUANTILE,
    columns_of,
    common_counters,
    floors_of,
    giveaway_of,
    is_of_one_core,
    means_of,
    unfit,
)
from tasks.workloads.identify.identification import Identification, identify_all
from tasks.workloads.identify.model import VIEWS, Model, fit_model
from tasks.workloads.identify.phases import Cut, cut_run
from tasks.workloads.params import IdentifyParams
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

METHODS = ("model", "nearest", "nnls", "forest", "trees", "ed", "dtw")
FIRST = "model"  # what a key without a method means: what `whorl workloads identify` says
N_TREES = 300
ONLINE_S = (5.0, 10.0, 15.0, 20.0, 30.0)  # seconds after which runs are identified
MIDDLE = (0.25, 0.75)  # of a run
EDGE = 1e-6  # of an interval, against rounding
NAMED = 20  # counters that a figure names; the table has all
NOT_COMMON = "not in every run"
ONE_CORE = "one core, where all are counted together as well: other machines have other cores"


@dataclass(frozen=True)
class Cohort:
    """items and their labels, in the same order; counters: those that all have; cuts: phases by run id.

    Change points are found in each run alone and on a scale of its own, so they serve every split."""

    items: list[Item]
    labels: Sequence[str]
    counters: tuple[Counter, ...]
    cuts: dict[str, Cut]

    def runs(self, positions: Sequence[int] | Positions) -> list[Telemetry]:
        """The runs at these positions."""
        return [self.items[at].run for at in positions]


@dataclass(frozen=True)
class Trial:
    """What was learned from one side of a split, and the runs of the other. n_unseen: items left out, as none of their
    workload was learned from."""

    split: Split
    model: Model
    paper: PaperModel
    train: list[Telemetry]
    test: list[Telemetry]
    n_unseen: int

    @property
    def truth(self) -> list[str]:
        """The workloads of the tested runs."""
        return [str(run.workload) for run in self.test]


@dataclass(frozen=True)
class SplitPredictions:
    """What each method says of the tested runs of a split. confirmed: by measure, share that is named rightly and lies
    within the threshold of its workload. answers: the model's, unknown ones among them."""

    split: str
    run_ids: list[str]
    truth: list[str]
    by_method: dict[str, list[str]]
    confirmed: dict[str, float]
    answers: list[Identification]
    n_unseen: int

    def score(self, method: str) -> SplitScore:
        """How good one method was."""
        return score_of(self.truth, self.by_method[method])


def cohort_of(items: Sequence[Item], params: IdentifyParams) -> Cohort:
    """Leave each run the counters that all have alone, and find its phases, once. Raises BadInput if there are none."""
    runs = [item.run for item in items]
    used = tuple(_counters(runs))
    if not used:
        fit_model(runs, params)  # says why there is none
    names = [counter.name for counter in used]
    kept, cuts = [], {}
    for done, item in enumerate(items):
        report_progress("finding phases", done, len(items))
        columns = [counter for counter in item.run.counters if counter.name in names or giveaway_of(counter) == ""]
        run = replace(
            item.run, counters=tuple(columns), values=columns_of(item.run, [counter.name for counter in columns])
        )
        kept.append(replace(item, run=run))
        cuts[run.run_id] = cut_run(run, used)
    return Cohort(kept, [item.workload for item in kept], used, cuts)


def try_split(cohort: Cohort, split: Split, params: IdentifyParams) -> Trial | None:
    """Learn from one side of a split and look at the other; None where no tested workload was learned from."""
    train = cohort.runs(split.train)
    known = {str(run.workload) for run in train}
    test = [run for run in cohort.runs(split.test) if run.workload in known]
    if not test:
        return None
    model = fit_model(train, params)
    paper = fit_paper(train, cohort.counters, params.seed, cohort.cuts)
    return Trial(split, model, paper, train, test, len(split.test) - len(test))


def split_predictions(trial: Trial, cuts: Mapping[str, Cut]) -> SplitPredictions:
    """Name the tested runs by every method; of the model what it finds most likely, whether it says unknown or not."""
    answers = identify_all(trial.test, trial.model, with_reasons=False)
    described, features = trial.paper.describe(trial.test, cuts)
    by_method = {"model": [closed_set(answer) for answer in answers], "trees": trial.paper.trees.workloads(features)}
    by_method |= {name: fit(trial.train, trial.test) for name, fit in BASELINES.items()}
    confirmed: dict[str, float] = {}
    for measure in DISTANCES:
        by_method[measure], is_confirmed = by_distance(trial.paper, described, measure)
        confirmed[measure] = float(((np.asarray(by_method[measure]) == np.asarray(trial.truth)) & is_confirmed).mean())
    run_ids = [run.run_id for run in trial.test]
    return SplitPredictions(trial.split.name, run_ids, trial.truth, by_method, confirmed, answers, trial.n_unseen)


def closed_set(answer: Identification) -> str:
    """The most likely known workload, also of a run that is called unknown or idle."""
    return answer.present[0].workload if answer.present else answer.nearest[0].workload


def log_distances(
    train: Sequence[Telemetry], test: Sequence[Telemetry], quantile: float = FLOOR_QUANTILE
) -> FloatArray:
    """L1 between the logarithms of means of each tested and each training run: (n_test, n_train).

    quantile: of what is not 0 in training, added before the logarithm."""
    known, seen = paired_means(train, test)
    floor = floors_of(known, quantile)
    logs = np.log(known + floor)
    return np.array([np.abs(logs - np.log(row + floor)).sum(axis=1) for row in seen])


def least_squares(train: Sequence[Telemetry], test: Sequence[Telemetry]) -> list[str]:
    """The workload with the largest part of a non-negative combination of training runs, by their means."""
    names = sorted({str(run.workload) for run in train})
    return [
        names[at] for at in nnls_shares(*paired_means(train, test), [str(run.workload) for run in train]).argmax(axis=1)
    ]


def nnls_shares(known: FloatArray, seen: FloatArray, labels: Sequence[str]) -> FloatArray:
    """Part of each workload, by name, in each run, (n, n_classes). Counters in deviations over the training runs."""
    from scipy.optimize import nnls

    deviation = known.std(axis=0)
    scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0.0)
    basis, names = (known * scale).T, np.asarray(labels)
    sizes = (known * scale).sum(axis=1)
    parts = np.array([nnls(basis, row * scale)[0] * sizes for row in seen])
    return np.stack([parts[:, names == name].sum(axis=1) for name in sorted(set(labels))], axis=1)


def random_forest(train: Sequence[Telemetry], test: Sequence[Telemetry]) -> list[str]:
    """By a random forest on the mean and the deviation of each counter, with scikit-learn's own defaults but for the
    number of trees; it has no format without code, so it is asked and dropped, never kept."""
    from sklearn.ensemble import RandomForestClassifier  # type: ignore[import-untyped, unused-ignore]

    counters = _counters(train)
    ordered = sorted(train, key=lambda run: (str(run.workload), run.run_id))
    forest = RandomForestClassifier(N_TREES, random_state=0, n_jobs=1)
    forest.fit(_moments(ordered, counters), [str(run.workload) for run in ordered])
    return [str(name) for name in forest.predict(_moments(test, counters))]


BASELINES: dict[str, Callable[[Sequence[Telemetry], Sequence[Telemetry]], list[str]]] = {
    "nearest": lambda train, test: [str(train[at].workload) for at in log_distances(train, test).argmin(axis=1)],
    "nnls": least_squares,
    "forest": random_forest,
}


def known_figures(
    predictions: Mapping[Slice, Sequence[SplitPredictions]], reasons: Mapping[Slice, str], base: Slice
) -> Figures:
    """`known.<measure>.<slice>.<method>`: means over the splits of each slice. Without a method: of the model; without
    a slice: of the base slice."""
    figures: Figures = {}
    for slice_, splits in predictions.items():
        figures[f"known.splits.{slice_}"] = len(splits)
        figures[f"known.n.{slice_}"] = sum(len(of_split.truth) for of_split in splits)
        figures[f"known.n_unseen.{slice_}"] = sum(of_split.n_unseen for of_split in splits)
        reason = reasons.get(slice_) or "no tested run is of a workload that was learned from"
        for method in METHODS:
            scores = [of_split.score(method) for of_split in splits]
            for measure in MEASURES:
                values = [getattr(score, measure) for score in scores]
                put_mean(figures, f"known.{measure}.{slice_}.{method}", values, reason)
        for name in DISTANCES:
            values = [of_split.confirmed[name] for of_split in splits]
            put_mean(figures, f"known.confirmed.{slice_}.{name}", values, reason)
        unknown_shares = [float(np.mean([not answer.is_known for answer in of_split.answers])) for of_split in splits]
        put_mean(figures, f"known.said_unknown.{slice_}", unknown_shares, reason)
        told = [zip(of_split.answers, of_split.truth, strict=True) for of_split in splits]
        right = [float(np.mean([answer.workload == name for answer, name in of_split])) for of_split in told]
        put_mean(figures, f"known.named.{slice_}", right, reason)
        for measure in MEASURES:
            _same(figures, f"known.{measure}.{slice_}", f"known.{measure}.{slice_}.{FIRST}")
    for measure in MEASURES:
        _same(figures, f"known.{measure}", f"known.{measure}.{base}.{FIRST}")
    figures["known.base"] = base
    return figures


def scores_table(predictions: Sequence[SplitPredictions], slice_: str) -> pd.DataFrame:
    """One row a split and method: slice, split, method, the measures of a SplitScore, confirmed, n, n_unseen."""
    rows = []
    for of_split in predictions:
        for method in of_split.by_method:
            score = of_split.score(method)
            about = {"slice": slice_, "split": of_split.split, "method": method}
            measures = {measure: getattr(score, measure) for measure in MEASURES}
            confirmed = of_split.confirmed.get(method)
            rows.append({**about, **measures, "confirmed": confirmed, "n": score.n, "n_unseen": of_split.n_unseen})
    return pd.DataFrame(rows)


def predictions_table(predictions: Sequence[SplitPredictions], slice_: str) -> pd.DataFrame:
    """One row a split and tested run: slice, split, run_id, workload, and what each method said."""
    parts = [
        pd.DataFrame(
            {"slice": slice_, "split": of_split.split, "run_id": of_split.run_ids, "workload": of_split.truth}
        ).assign(**of_split.by_method)
        for of_split in predictions
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def counter_table(runs: Sequence[Telemetry], used: Sequence[Counter]) -> pd.DataFrame:
    """One row a counter of any run, by name: counter, n_runs, is_used, reason (empty where it is used)."""
    names = {counter.name for counter in used}
    n_runs: dict[str, int] = {}
    about: dict[str, Counter] = {}
    for run in runs:
        for counter in run.counters:
            n_runs[counter.name] = n_runs.get(counter.name, 0) + 1
            about.setdefault(counter.name, counter)
    rows = [
        {
            "counter": name,
            "n_runs": n,
            "is_used": name in names,
            "reason": ""
            if name in names
            else unfit(about[name]) or (ONE_CORE if is_of_one_core(name, names) else NOT_COMMON),
        }
        for name, n in sorted(n_runs.items())
    ]
    return pd.DataFrame(rows)


def counter_figures(table: pd.DataFrame) -> Figures:
    """counters.n, and how many were left out as unfit or because not every run has them, with the first names."""
    is_missing = table["reason"] == NOT_COMMON
    given = table[~table["is_used"] & ~is_missing]
    return {
        "counters.n": int(table["is_used"].sum()),
        "counters.giveaways": len(given),
        "counters.not_common": int(is_missing.sum()),
        "counters.not_common.names": ", ".join(table["counter"][is_missing].head(NAMED)),
        "counters.giveaways.names": ", ".join(given["counter"].head(NAMED)),
    }


def partial_results(
    cohort: Cohort, trials: Sequence[Trial], params: IdentifyParams, reason: str
) -> tuple[Figures, dict[str, pd.DataFrame]]:
    """First seconds (`online.…`) and windows from the middle of runs (`window.…`): figures, and the tables `online` and
    `windows`. reason: why there are no trials."""
    figures: Figures = {}
    tables = []
    for seconds in ONLINE_S:
        rows, why = _online(cohort, trials, seconds, params) if trials else ([], reason)
        table = pd.DataFrame(rows, columns=["split", "method", "accuracy", "confidence", "n"])
        for name, method, measure in (
            ("accuracy.{}", "model", "accuracy"),
            ("accuracy.{}.whole", "whole", "accuracy"),
            ("confidence.{}", "model", "confidence"),
        ):
            values = table[table["method"] == method][measure].tolist()
            put_mean(figures, f"online.{name.format(f'{seconds:g}s')}", values, why)
        tables.append(table.assign(seconds=seconds))
    rows, why = _from_the_middle(cohort, trials) if trials else ([], reason)
    middle = pd.DataFrame(rows, columns=["split", "method", "accuracy", "macro_f1", "n"])
    for measure in ("accuracy", "macro_f1"):
        for method in METHODS:
            values = middle[middle["method"] == method][measure].tolist()
            put_mean(figures, f"window.{measure}.{method}", values, why)
        _same(figures, f"window.{measure}", f"window.{measure}.{FIRST}")
    return figures, {"online": pd.concat(tables, ignore_index=True), "windows": middle}


def _online(
    cohort: Cohort, trials: Sequence[Trial], seconds: float, params: IdentifyParams
) -> tuple[list[dict[str, object]], str]:
    """model: learned from the first seconds of the training runs; whole: from whole runs."""
    runs = [item.run for item in cohort.items]
    longest_s = max(run.duration_s for run in runs)
    if longest_s < seconds - max(run.interval_s or 0.0 for run in runs) - EDGE:
        return [], f"no run lasts {seconds:g} s; the longest {longest_s:g} s"
    if np.median([run.interval_s or 0.0 for run in runs]) * LEAST_SAMPLES > seconds + EDGE:
        return [], f"fewer than {LEAST_SAMPLES} samples in {seconds:g} s"
    rows: list[dict[str, object]] = []
    for trial in trials:
        test = [first_seconds(run, seconds) for run in trial.test]
        short = fit_model([first_seconds(run, seconds) for run in trial.train], params)
        for method, model in (("model", short), ("whole", trial.model)):
            answers = identify_all(test, model, with_reasons=False)
            is_right = [closed_set(answer) == name for answer, name in zip(answers, trial.truth, strict=True)]
            confidence = float(np.mean([answer.confidence for answer in answers]))
            about = {"split": trial.split.name, "method": method, "n": len(test)}
            rows.append({**about, "accuracy": float(np.mean(is_right)), "confidence": confidence})
    return rows, ""


def _from_the_middle(cohort: Cohort, trials: Sequence[Trial]) -> tuple[list[dict[str, object]], str]:
    """The middle half of a run, named by what was learned from whole ones."""

    def middle(run: Telemetry) -> Telemetry:
        first, last = (round(share * run.n_samples) for share in MIDDLE)
        return part_of(run, first, last)

    if np.median([middle(item.run).n_samples for item in cohort.items]) < LEAST_SAMPLES:
        return [], f"fewer than {LEAST_SAMPLES} samples in the middle of a run"
    rows: list[dict[str, object]] = []
    for trial in trials:
        predictions = split_predictions(replace(trial, test=[middle(run) for run in trial.test]), {})
        for method in predictions.by_method:
            score = predictions.score(method)
            about = {"split": predictions.split, "method": method, "n": score.n}
            rows.append({**about, "accuracy": score.accuracy, "macro_f1": score.macro_f1})
    return rows, ""


def first_seconds(run: Telemetry, seconds: float) -> Telemetry:
    """The samples whose intervals end within the first seconds, at least two; of a shorter run all."""
    n_samples = int(np.floor(seconds / run.interval_s + EDGE)) if run.interval_s else run.n_samples
    return part_of(run, 0, max(LEAST_SAMPLES, n_samples))


def _same(figures: Figures, key: str, of: str) -> None:
    put(figures, key, figures[of], str(figures.get(f"{of}.reason", "")))


def _counters(runs: Sequence[Telemetry]) -> list[Counter]:
    return [counter for view in VIEWS for counter in common_counters(runs, view)]


def paired_means(train: Sequence[Telemetry], test: Sequence[Telemetry]) -> tuple[FloatArray, FloatArray]:
    """Means of the counters that all training runs have, 0 where there is no value."""
    counters = _counters(train)
    return np.nan_to_num(np.abs(means_of(train, counters))), np.nan_to_num(np.abs(means_of(test, counters)))


def _moments(runs: Sequence[Telemetry], counters: Sequence[Counter]) -> FloatArray:
    names = [counter.name for counter in counters]
    tables = [np.nan_to_num(columns_of(run, names)) for run in runs]
    return np.array([np.concatenate([table.mean(axis=0), table.std(axis=0)]) for table in tables])
