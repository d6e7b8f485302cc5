"""How well workloads are told apart, as training and evaluation measured it: known and unknown ones, thresholds on the
distance, and how soon a run is known (Hossain et al., Tables II to IV and their figures)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tasks.quantities import MISSING, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Column, Fact, Figure, Result, Section, Table, count, figure, numbers, records
from tasks.report.workloads_measured import (
    METHOD,
    METHODS,
    WORDS,
    AdfShares,
    WorkloadConfusion,
    adf_figure,
    confusion_figure,
    confusion_of_rows,
    figures_table,
    known_rows,
    known_table,
    missing_splits,
    other_figures,
)
from tasks.report.workloads_runs import (
    Alignment,
    CounterSeries,
    PhasesOfRuns,
    RunPhases,
    RunSeries,
    align,
    alignment_figure,
    movement,
    phases_figure,
    phases_of_fingerprint,
    phases_of_runs,
    pick_counters,
    series_figure,
    short_number,
    unit_words,
)
from tasks.workloads.evaluate.distances import Spread, spread_by_workload, spread_of
from tasks.workloads.evaluate.items import cut, sampled
from tasks.workloads.fingerprint_steps import probabilities_of
from tasks.workloads.identify.counters import common_counters
from tasks.workloads.identify.phases import Scale, columns_of, fingerprints_of, learn_scale, on_scale
from tasks.workloads.params import EvaluateParams, FingerprintParams, IdentifyParams
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

if TYPE_CHECKING:
    from tasks.workloads.evaluate.protocol import Evaluation

TITLES = {"ed": "Euclidean (ED)", "dtw": "dynamic time warping (DTW)"}


@dataclass(frozen=True)
class WorkloadDistances:
    """by: of each distance (`ed`, `dtw`) and workload, its spread among its own runs, and to all other runs.

    None: a workload with one run has no own distance, one without others none to them."""

    by: Mapping[str, Mapping[str, tuple[Spread | None, Spread | None]]]
    n_runs: int

    @property
    def workloads(self) -> list[str]:
        """All that have any distance, in the order given."""
        return list(dict.fromkeys(name for one in self.by.values() for name in one))

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        n_pairs = sum(own.n for own, _ in next(iter(self.by.values()), {}).values() if own)
        return f"n = {self.n_runs:,} runs of {len(self.workloads)} workloads, {n_pairs:,} pairs of the same workload"


def spreads_of(distances: FloatArray, workloads: Sequence[str]) -> dict[str, tuple[Spread | None, Spread | None]]:
    """Of each workload the spread of the distances among its own runs, and to all runs of others.

    distances: (n, n), symmetric."""
    own, labels = spread_by_workload(distances, workloads), np.asarray(workloads)
    found: dict[str, tuple[Spread | None, Spread | None]] = {}
    for name in sorted(set(workloads)):
        is_it = labels == name
        found[name] = own.get(name), spread_of(distances[np.ix_(is_it, ~is_it)].ravel())
    return found


@dataclass(frozen=True)
class OnlineCurve:
    """accuracy: by name of a line (the first is told in numbers), of each time in seconds the share called right.

    n_runs: at each time; n_workloads: to choose from."""

    accuracy: Mapping[str, Mapping[float, float]]
    n_runs: int
    n_workloads: int

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n_runs:,} held-out runs of {self.n_workloads} workloads"


N_BINS = 30


@dataclass(frozen=True)
class OpenSetScores:
    """known, unknown: (n,), (m,) scores of runs, larger: less known. threshold: that so many known ones stay below.

    auroc: chance that an unknown run scores above a known one; n_held_out: choices of workloads held out."""

    known: FloatArray
    unknown: FloatArray
    threshold: float
    auroc: float | None
    n_held_out: int = 1

    @property
    def kept_share(self) -> float:
        """Share of the known runs that are called known."""
        return float(np.mean(self.known <= self.threshold))

    @property
    def false_known_share(self) -> float:
        """Share of the unknown runs that are called known."""
        return float(np.mean(self.unknown <= self.threshold))

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        times = "" if self.n_held_out == 1 else f", over {self.n_held_out:,} choices of held-out workloads"
        return f"n = {len(self.known):,} scores of known runs, {len(self.unknown):,} of unknown ones{times}"


EXAMPLE = "An example: a typical run of each of two workloads that are alike."


@dataclass(frozen=True)
class UnknownCalled:
    """Table III: of the runs of a workload that was never learned, the share that was called each known one.

    shares: by known workload, adding up to 1; n_runs: of the unknown one; said_unknown: share of them that the model,
    which need not choose, calls unknown."""

    workload: str
    shares: Mapping[str, float]
    n_runs: int
    said_unknown: float | None = None


@dataclass(frozen=True)
class EvaluatedWorkloads:
    """figures: by key (see tasks/workloads/README.md). What an evaluation did not measure is None or empty.

    n_runs: runs and windows; made_of: the data in words; adf_least: samples below which the statistic is not asked.
    series, phases, alignment: of example runs."""

    name: str
    n_runs: int
    n_workloads: int
    made_of: str
    figures: Mapping[str, Any]
    confusion: WorkloadConfusion | None = None
    unknown_called: Sequence[UnknownCalled] = ()
    distances: WorkloadDistances | None = None
    online: OnlineCurve | None = None
    scores: OpenSetScores | None = None
    adf: AdfShares | None = None
    adf_least: int | None = None
    series: Sequence[RunSeries] = ()
    phases: PhasesOfRuns | None = None
    alignment: Alignment | None = None
    thresholds: Sequence[Mapping[str, Any]] = ()
    shared: Sequence[Mapping[str, Any]] = ()


N_COUNTERS = 5  # over time
MOST_SAMPLED = 600  # that the typical ones are chosen among; of more, an even sample


@dataclass(frozen=True)
class Examples:
    """A run of each of two workloads, in the order of their names: over time, side by side, and one on the other."""

    series: tuple[RunSeries, ...]
    phases: PhasesOfRuns
    alignment: Alignment | None


def examples_of(
    runs: Sequence[Telemetry], params: EvaluateParams, identify: IdentifyParams, n_counters: int = N_COUNTERS
) -> Examples | None:
    """The examples among labelled runs, long traces in windows; None where there is one workload alone.

    Raises BadInput if the runs have no counter in common."""
    labelled = [run for run in runs if run.workload is not None]
    kept = [item.run for item in sampled(cut(labelled, params.windows).items, MOST_SAMPLED, params.seed)]
    if len({run.workload for run in kept}) < 2:
        return None
    counters = tuple(one for view in ("own", "machine") for one in common_counters(kept, view))
    scale = learn_scale(kept, counters)
    names = sorted({str(run.workload) for run in kept})
    pairs = kin_among(names) or list(combinations(names, 2))
    chosen = typical_of_the_most_alike(kept, levels_of(kept, scale), pairs)
    fingerprints = fingerprints_of(chosen, counters, identify.fingerprint, scale)
    one, other = (
        phases_of_fingerprint(found, run.interval_s, input_name=run.input)
        for found, run in zip(fingerprints, chosen, strict=True)
    )
    series = tuple(
        _example_series(run, cut_run, counters, identify.fingerprint, n_counters)
        for run, cut_run in zip(chosen, (one, other), strict=True)
    )
    return Examples(series, phases_of_runs([one, other]), align(one, other))


def levels_of(runs: Sequence[Telemetry], scale: Scale) -> FloatArray:
    """Mean of each counter over each run, on a learned scale: (n_runs, n_counters).

    A counter without a value has the level 0: that of the mean."""
    samples = (on_scale(columns_of(run, scale.counters), scale) for run in runs)
    return np.array([np.nanmean(_with_a_value(values), axis=0) for values in samples])


def _with_a_value(values: FloatArray) -> FloatArray:
    """The samples, with 0 for a counter that has none."""
    return np.where(np.isnan(values).all(axis=0), 0.0, values)


def kin_among(names: Sequence[str]) -> list[tuple[str, str]]:
    """Those pairs of the workloads that whorl records as kin: each resembles the other by design."""
    from tasks.workloads.record.programs import PROGRAMS

    kin = {(name, PROGRAMS[name].kin) for name in names if name in PROGRAMS}
    return [(one, other) for one, other in combinations(names, 2) if (one, other) in kin or (other, one) in kin]


def typical_of_the_most_alike(
    runs: Sequence[Telemetry], levels: FloatArray, pairs: Sequence[tuple[str, str]]
) -> list[Telemetry]:
    """Of that pair of workloads whose typical levels lie nearest, each one's run that is nearest to these levels.

    levels: (n_runs, n_counters). Typical: the medians over the runs of a workload. Ties go to the first pair or run."""
    labels = np.array([str(run.workload) for run in runs])
    centres = {str(name): np.median(levels[labels == name], axis=0) for name in np.unique(labels)}
    pair = min(pairs, key=lambda two: float(np.abs(centres[two[0]] - centres[two[1]]).sum()))
    found = []
    for name in pair:
        own = np.flatnonzero(labels == name)
        found.append(runs[own[np.abs(levels[own] - centres[name]).sum(axis=1).argmin()]])
    return found


def _example_series(
    run: Telemetry, phases: RunPhases, counters: Sequence[Counter], params: FingerprintParams, n_counters: int
) -> RunSeries:
    """The counters of a run that moved most, with their change points."""
    moved = pick_counters(phases.counters, movement(phases.levels, phases.bounds), n_counters)
    probabilities = probabilities_of(run, counters, phases.bounds, params)
    values = columns_of(run, phases.counters)
    shown = [
        CounterSeries(
            counters[at].name,
            unit_words(counters[at].unit, is_rate=counters[at].is_rate),
            values[:, at],
            phases.bounds[at][1:-1],
            np.array(probabilities[at][1:], dtype=float),
        )
        for at in moved or range(min(n_counters, len(counters)))
    ]
    title = f"{phases.name} ({run.run_id})" if phases.name != run.run_id else run.run_id
    return RunSeries(title, run.at_s, shown, len(run.counters))


SHARED = (
    Column("condition", "condition"),
    Column("view", "counters of"),
    Column("method", "method"),
    Column("measure", "measure"),
    *numbers(("value", "share", share), ("low", "from", share), ("high", "to", share), ("n", "runs", count)),
)
SHOWN, SHOWN_WORDS = "model", "the model"
ONLINE = {"model": "first seconds", "whole": "whole runs"}  # what was learned from: as many seconds, or whole runs
RULES = {
    "within": "its distance is within mean ± deviation (V-D)",
    "radius": "its distance is at most the mean (VI-C)",
    "one_sided": "its distance is at most mean + deviations",
}
LEVELS = {"workload": "whole runs", "phase": "phase by phase"}
RECALL, VERSION_CHARS = 0.95, 12
NOTHING = pd.DataFrame()


def evaluated_workloads(
    found: "Evaluation", name: str, examples: Examples | None = None, *, recall: float = RECALL
) -> EvaluatedWorkloads:
    """What the page shows of an evaluation. name: of the data; examples: of its runs, None: none are shown.

    recall: of known runs, where the line is drawn."""
    figures, tables = found.figures, found.tables
    sha256 = str(figures.get("data_sha256") or "")[:VERSION_CHARS]
    return EvaluatedWorkloads(
        name=name,
        n_runs=int(figures["n"]),
        n_workloads=int(figures["classes"]),
        made_of=f"data {sha256}" if sha256 else f"{name}, seed {figures.get('seed')}",
        figures=figures,
        confusion=_confusion(tables.get("confusion", NOTHING), str(figures.get("known.base"))),
        unknown_called=list(_unknown_called(tables.get("table_iii", NOTHING))),
        distances=_distances(tables.get("table_iv", NOTHING), int(figures["n"])),
        online=_online(tables.get("online", NOTHING), int(figures["classes"])),
        scores=_scores(tables.get("unknown_scores", NOTHING), figures, recall),
        adf=_adf(tables.get("phase_lengths", NOTHING)),
        series=examples.series if examples else (),
        phases=examples.phases if examples else None,
        alignment=examples.alignment if examples else None,
        thresholds=list(_thresholds(tables.get("thresholds", NOTHING))),
        shared=_shared(tables.get("shared", NOTHING)),
    )


def _confusion(rows: pd.DataFrame, slice_: str) -> WorkloadConfusion | None:
    if rows.empty:
        return None
    return confusion_of_rows(rows[(rows["slice"] == slice_) & (rows["method"] == SHOWN)], SHOWN_WORDS)


def _shared(rows: pd.DataFrame) -> list[dict[str, Any]]:
    if rows.empty:
        return []
    kept = rows[rows["measure"] != "names"]  # a number, not a share
    return records(kept.assign(measure=kept["measure"].str.replace("_", " ")))


def _unknown_called(rows: pd.DataFrame) -> Iterator[UnknownCalled]:
    if rows.empty:
        return
    for workload, own in rows.groupby("unknown", sort=False):
        shares = dict(zip(own["known"], own["share"].astype(float), strict=True))
        yield UnknownCalled(str(workload), shares, int(own["n"].iloc[0]), float(own["said_unknown"].iloc[0]))


def _distances(rows: pd.DataFrame, n_runs: int) -> WorkloadDistances | None:
    if rows.empty:
        return None
    by: dict[str, dict[str, tuple[Spread | None, Spread | None]]] = {}
    for row in rows.to_dict("records"):
        pair = _spread(row, ""), _spread(row, "others_")
        by.setdefault(str(row["measure"]), {})[str(row["workload"])] = pair
    return WorkloadDistances(by, n_runs)


def _spread(row: Mapping[Any, Any], prefix: str) -> Spread | None:
    n = int(row.get(f"{prefix}n_pairs") or 0)
    return Spread(float(row[f"{prefix}mean"]), float(row[f"{prefix}deviation"]), n) if n else None


def _online(rows: pd.DataFrame, n_workloads: int) -> OnlineCurve | None:
    if rows.empty:
        return None
    means = rows.groupby(["method", "seconds"])["accuracy"].mean()
    n_runs = int(rows.groupby(["method", "seconds"])["n"].sum().max())
    lines = {
        words: {float(second): float(value) for second, value in means[method].items()}
        for method, words in ONLINE.items()
        if method in means.index.get_level_values("method")
    }
    return OnlineCurve(lines, n_runs, n_workloads)


def _scores(rows: pd.DataFrame, figures: Mapping[str, Any], recall: float) -> OpenSetScores | None:
    """Scores of all choices of held-out workloads together, with one line for all of them."""
    if rows.empty:
        return None
    known, unknown = (rows.loc[rows["is_unknown"] == kind, "score"].to_numpy(dtype=float) for kind in (False, True))
    limit = float(np.quantile(known, recall, method="higher"))
    auroc = figures.get("unknown.auroc")
    return OpenSetScores(known, unknown, limit, auroc, len(rows[["first", "second"]].drop_duplicates()))


def _adf(rows: pd.DataFrame) -> AdfShares | None:
    if rows.empty:
        return None
    n, n_determined = rows["n"].to_numpy(np.int64), rows["n_determined"].to_numpy(np.int64)
    counts = np.stack([n_determined, n - n_determined], axis=1).ravel()
    lengths = np.repeat(rows["n_samples"].to_numpy(np.int64), 2)
    return AdfShares(np.repeat(lengths, counts), np.repeat(np.tile([True, False], len(rows)), counts))


def _thresholds(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A row a rule, level and measure: the shares of wrong decisions, over all splits together."""
    if rows.empty:
        return
    counts = rows.groupby(["rule", "level", "measure"], sort=False)[
        ["n_own", "n_rejected", "n_other", "n_accepted"]
    ].sum()
    sums = {tuple(key): row for key, row in zip(counts.index, counts.to_dict("records"), strict=True)}
    for rule, rule_words in RULES.items():
        for level, level_words in LEVELS.items():
            for measure in ("ed", "dtw"):
                n = sums.get((rule, level, measure))
                if n is not None:
                    yield {
                        "rule": rule_words,
                        "level": level_words,
                        "measure": measure.upper(),
                        "false_reject": n["n_rejected"] / n["n_own"] if n["n_own"] else None,
                        "false_accept": n["n_accepted"] / n["n_other"] if n["n_other"] else None,
                    }


KNOWN = (
    "The model learns from some runs and calls the others: means over the splits of each kind. The model, "
    "sums of known fingerprints, is what identifies; boosted trees on phases are the method of the paper. Beside them "
    "stand the runs that are nearest, by several distances, and plain baselines that know no phases. Confirmed: "
    "named rightly, and within the threshold on the distance."
)


def evaluation_result(found: EvaluatedWorkloads) -> Result:
    """What an evaluation measured, the answer first."""
    figures = found.figures
    rows = known_table(figures)
    best = next((row for row in rows if row["method"] == METHODS["model"]), rows[0] if rows else None)
    auroc = figures.get("unknown.auroc")
    known = (
        f"{share(best['accuracy'])} of the held-out runs are called right ({best['split']}, {best['method']})"
        if best
        else "No split could be made"
    )
    unknown = (
        f"; unknown workloads are told from known ones with an AUROC of {ratio(auroc)}" if auroc is not None else ""
    )
    return Result(
        f"How well workloads are told apart: {found.name}",
        f"{known}{unknown}.",
        f"{found.n_runs:,} runs or windows of {found.n_workloads:,} workloads, each called from its telemetry by "
        "what was learned from others.",
        made_of=found.made_of,
        again="whorl workloads evaluate PATH… --out DIR",
        facts=tuple(
            Fact(f"workloads.evaluation.{key}", figures[key], words, show)
            for key, (words, show) in WORDS.items()
            if key in ("unknown.auroc", "threshold.false_reject", "threshold.false_accept")
            and figures.get(key) is not None
        ),
        sections=tuple(_sections(found, rows)),
        method=METHOD,
    )


def _sections(found: EvaluatedWorkloads, rows: list[dict[str, Any]]) -> Iterator[Section]:
    missing = tuple(f"not measured: {line}" for line in missing_splits(found.figures))
    evidence = f"n = {found.n_runs:,} · {found.made_of}"
    yield Section(
        "Known workloads",
        KNOWN,
        evidence,
        missing,
        (known_rows(rows),),
        nothing="No split could be made.",
        is_open=True,
    )
    yield _alone(confusion_figure(found.confusion), is_open=True)
    if found.unknown_called:
        names = sorted({name for one in found.unknown_called for name in one.shares})
        columns: tuple[Column, ...] = (
            Column("workload", "unknown workload"),
            Column("n_runs", "runs", count, is_number=True),
            *numbers(*((f"as {name}", name, share) for name in names), ("said", "said to be unknown", share)),
        )
        called_as = [
            {"workload": one.workload, "n_runs": one.n_runs, "said": one.said_unknown}
            | {f"as {name}": one.shares.get(name, 0.0) for name in names}
            for one in found.unknown_called
        ]
        yield Section(
            "What never-seen workloads are taken for",
            "Workloads that were not learned from, and which known one the trees take their runs for, since trees must "
            "choose. The last column is what the model says that need not choose.",
            tables=(Table("", "", columns, called_as),),
        )
    yield _alone(open_set_figure(found.scores))
    yield _alone(online_figure(found.online))
    distances = distances_figure(found.distances)
    yield Section(distances.title, figures=(distances,), tables=(distances_table(found.distances),))
    if found.shared:
        yield Section(
            "On machines that others use as well",
            "The same questions while something else runs: telemetry of two runs added up, and conditions that were "
            "recorded as such. The share stands between the ends of its 95 % interval.",
            tables=(Table("", "", SHARED, list(found.shared)),),
        )
    if found.thresholds:
        columns = (
            Column("rule", "a run is of a workload if"),
            Column("level", "compared"),
            Column("measure", "distance"),
            *numbers(("false_reject", "own runs rejected", share), ("false_accept", "others' runs accepted", share)),
        )
        words = "How often a threshold is wrong: it rejects a run of the workload itself, or accepts one of another."
        yield Section("Thresholds on the distance", words, tables=(Table("", "", columns, list(found.thresholds)),))
    figures = [series_figure(run, f"series-{place}", EXAMPLE) for place, run in enumerate(found.series, 1)]
    if found.phases is not None:
        figures.append(phases_figure(found.phases, more=EXAMPLE))
    if found.alignment is not None:
        figures.append(alignment_figure(found.alignment))
    if figures:
        yield Section("Two typical runs", EXAMPLE, figures=tuple(figures))
    if found.adf is not None:
        yield _alone(adf_figure(found.adf, found.adf_least))
    if others := other_figures(found.figures):
        yield Section("Further figures", tables=(figures_table(others),))


def _alone(one: Figure, *, is_open: bool = False) -> Section:
    return Section(one.title, figures=(one,), is_open=is_open)


def distances_figure(found: WorkloadDistances | None) -> Figure:
    """Table IV as a figure."""
    words = (
        "How far fingerprints lie apart: mean and deviation of the distance between runs of a workload (blue), and "
        "of its runs to those of others (orange). The less they overlap, the better a threshold on the distance works."
    )
    title = "Distances within workloads and to others"
    rows = [
        {"measure": TITLES.get(kind, kind), "workload": name, "of": of, "mean": one.mean}
        | {"low": max(one.mean - one.deviation, 0.0), "high": one.mean + one.deviation}
        for kind, spreads in (found.by if found else {}).items()
        for name, pair in spreads.items()
        for of, one in zip(("own runs", "to others"), pair, strict=True)
        if one is not None
    ]
    if found is None or not rows:
        return figure("distances", title, words, "", None, "No workload has two runs, so there is no distance to show.")
    tones = {"own runs": charts.BLUE, "to others": charts.ORANGE}
    draw = partial(charts.intervals, pd.DataFrame(rows), Axis("mean", "distance", "count"), "workload", series="of",
                   colours=tones, panel="measure")  # fmt: skip
    return Figure("distances", title, words, found.evidence, draw)


def distances_table(found: WorkloadDistances | None) -> Table:
    """Table IV: of each workload mean and deviation of its own distances, by ED and DTW, and of those to others."""
    rows: list[dict[str, Any]] = []
    for name in found.workloads if found else []:
        row: dict[str, Any] = {"workload": name}
        for kind, spreads in (found.by if found else {}).items():
            for prefix, one in zip((kind, f"{kind} others"), spreads.get(name, (None, None)), strict=True):
                row |= {f"{prefix} mean": one.mean if one else None, f"{prefix} sd": one.deviation if one else None}
        rows.append(row)
    columns = [Column("workload", "workload")]
    for kind in ("dtw", "ed"):
        for key, words in ((kind, f"{kind.upper()}, own runs"), (f"{kind} others", f"{kind.upper()}, to others")):
            columns += numbers((f"{key} mean", f"{words}: mean", _short), (f"{key} sd", "deviation", _short))
    return Table("", "The mean is the radius that the paper proposes as a threshold.", tuple(columns), rows)


def _short(value: float | None) -> str:
    return MISSING if value is None else short_number(value)


def online_figure(curve: OnlineCurve | None) -> Figure:
    """Accuracy after so many seconds."""
    title = "How soon a run is known"
    rows = [
        {"seconds": after_s, "accuracy": value, "learned from": name}
        for name, line in (curve.accuracy if curve else {}).items()
        for after_s, value in line.items()
    ]
    if curve is None or not rows:
        return figure("online", title, "", "", None, "No run was called from its first seconds.")
    words = (
        "The share of held-out runs that are called right from their first seconds alone, by what was learned from "
        f"as many first seconds, and from whole runs. Guessing would reach {share(1 / max(curve.n_workloads, 1))}."
    )
    seconds, right = Axis("seconds", "seconds seen"), Axis("accuracy", "called right", "share")
    draw = partial(charts.lines, pd.DataFrame(rows), seconds, right, series="learned from")
    return Figure("online", title, words, curve.evidence, draw)


def open_set_figure(scores: OpenSetScores | None) -> Figure:
    """Scores of known and unknown workloads."""
    title = "Known and unknown workloads"
    if scores is None or not (len(scores.known) and len(scores.unknown)):
        return figure("open-set", title, "", "", None, "Too few workloads to hold some out as unknown.")
    words = "Workloads are held out in turn, unseen by the model, and their runs are scored beside known ones."
    if scores.n_held_out > 1:
        words += " Scores of all choices stand here together; the AUROC is the mean over choices."
    words += (
        f" Above the dashed line a run is called unknown: with {share(scores.kept_share)} of the known runs called "
        f"known, so are {share(scores.false_known_share)} of the unknown ones. AUROC: how often an unknown run "
        f"scores above a known one, here {ratio(scores.auroc)}."
    )
    both = np.concatenate([scores.known, scores.unknown])
    edges = np.linspace(both.min(), both.max() + 1e-9, N_BINS + 1)
    rows = [
        {"runs": name, "score": low, "end": high, "share": n / len(values)}
        for name, values in (("known", scores.known), ("unknown", scores.unknown))
        for low, high, n in zip(edges[:-1], edges[1:], np.histogram(values, edges)[0], strict=True)
    ]
    draw = partial(charts.histogram, pd.DataFrame(rows), Axis("score", "score, larger: less known"),
                   Axis("share", "share of runs", "share"), panel="runs", rule=scores.threshold)  # fmt: skip
    return Figure("open-set", title, words, scores.evidence, draw)
