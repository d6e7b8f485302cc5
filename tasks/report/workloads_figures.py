"""The figures of workloads with their words: for the page of a source, of an evaluation, and for artifacts."""

from tasks.quantities import number, ratio, share
from tasks.report.figure_of import figure_of
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.workloads_adf import AdfShares, draw_adf
from tasks.report.workloads_alignment import Alignment, draw_alignment
from tasks.report.workloads_confusion import WorkloadConfusion, draw_workload_confusion
from tasks.report.workloads_distances import WorkloadDistances, draw_distances_of_workloads
from tasks.report.workloads_online import OnlineCurve, draw_online
from tasks.report.workloads_open_set import OpenSetScores, draw_open_set
from tasks.report.workloads_phases import PhasesOfRuns, draw_phases
from tasks.report.workloads_series import RunSeries, draw_series
from tasks.report.workloads_timeline import RunsOverTime, draw_runs_over_time

NO_PHASES = "No run has been cut into phases yet."
SIGNED = (
    "Levels count from the mean over all runs that were learned from, in their deviations: orange above, blue below, "
    "stronger the further away, empty where it is as usual"
)
UNSIGNED = (
    "Levels are distances from the counter's own mean over its run, in its deviations (equation 7): orange far from "
    "it, stronger the further, empty near it"
)


def series_figure(run: RunSeries | None, name: str = "series", more: str = "") -> FigureOfPage:
    """Figure 2: a run over time with its change points."""
    words = (
        "Dots are samples, pale bars the mean of each phase. A dashed line is a change point, with the probability "
        "that the counter changes at it or near it. Shown are the counters that moved most, of each family one before "
        "a second."
    )
    empty = run is None or not run.counters or not len(run.at_s)
    title, evidence = "When a run changes", run.evidence if run else ""
    return figure_of(
        name, title, f"{words} {more}".strip(), evidence, draw_series, run, nothing=NO_PHASES, is_empty=empty
    )


def phases_figure(phases: PhasesOfRuns | None, name: str = "phases", more: str = "") -> FigureOfPage:
    """Figure 4: phases of runs side by side."""
    words = (
        "Each row is a counter, each cell one of its phases, as long as it lasted. "
        f"{SIGNED if _has_signs(phases) else UNSIGNED}. Shown are the counters that differ most."
    )
    empty = phases is None or not phases.runs or not phases.runs[0].counters
    nothing = NO_PHASES if phases is None or not phases.runs else "The runs have no counter in common that varies."
    title, evidence = "Phases side by side", phases.evidence if phases else ""
    words = f"{words} {more}".strip()
    return figure_of(name, title, words, evidence, draw_phases, phases, nothing=nothing, is_empty=empty)


def _has_signs(phases: PhasesOfRuns | None) -> bool:
    """Whether some level lies below 0: by equation 7 none does."""
    return phases is not None and any((level < 0).any() for run in phases.runs for level in run.levels)


def alignment_figure(pair: Alignment | None, name: str = "alignment", more: str = "") -> FigureOfPage:
    """Two runs at their best offset."""
    words = (
        "Two runs phase by phase: the one with fewer phases lies where it fits best in the other. In each row the "
        "upper strip is the longer run, the lower one the shorter; where the colours agree the runs are alike. The "
        "bars are the distances of the phases that meet."
    )
    nothing = "There are no two runs with phases to compare."
    title, evidence = "How alike two runs are", pair.evidence if pair else ""
    words = f"{words} {more}".strip()
    empty = pair is not None and draw_alignment_is_empty(pair)
    return figure_of(name, title, words, evidence, draw_alignment, pair, nothing=nothing, is_empty=empty)


def draw_alignment_is_empty(pair: Alignment) -> bool:
    """Whether no counter differs between the phases of both runs."""
    levels = [*pair.longer.workload_levels, *pair.shorter.workload_levels]
    return all((one == levels[0]).all() for one in levels)


def confusion_figure(confusion: WorkloadConfusion | None, name: str = "confusion", more: str = "") -> FigureOfPage:
    """What was taken for what."""
    words = (
        "Runs that were held out: of those in a row, which percentage was called what the column says; framed in grey "
        "what is right, in orange the worst error."
    )
    title, evidence = "What runs were taken for", confusion.evidence if confusion else ""
    return figure_of(
        name,
        title,
        f"{words} {more}".strip(),
        evidence,
        draw_workload_confusion,
        confusion,
        nothing="No run was held out and called by a model yet.",
        is_empty=confusion is not None and not confusion.n,
    )


def distances_figure(found: WorkloadDistances | None, name: str = "distances") -> FigureOfPage:
    """Table IV as a figure."""
    words = (
        "How far fingerprints lie apart: mean and deviation of the distance between runs of a workload (blue), and of "
        "its runs to those of others (orange). The less they overlap, the better a threshold on the distance works."
    )
    title, evidence = "Distances within workloads and to others", found.evidence if found else ""
    nothing = "No workload has two runs, so there is no distance to show."
    empty = found is not None and not found.workloads
    return figure_of(name, title, words, evidence, draw_distances_of_workloads, found, nothing=nothing, is_empty=empty)


def online_figure(curve: OnlineCurve | None, name: str = "online") -> FigureOfPage:
    """Accuracy after so many seconds."""
    words = (
        "The share of held-out runs that are called right from their first seconds alone, by what was learned from as "
        "many first seconds, and from whole runs. Dotted: what guessing would reach."
    )
    title, evidence = "How soon a run is known", curve.evidence if curve else ""
    empty = curve is not None and not any(curve.accuracy.values())
    nothing = "No run was called from its first seconds."
    return figure_of(name, title, words, evidence, draw_online, curve, nothing=nothing, is_empty=empty)


def open_set_figure(scores: OpenSetScores | None, name: str = "open-set") -> FigureOfPage:
    """Scores of known and unknown workloads."""
    words = "Workloads are held out in turn, unseen by the model, and their runs are scored beside known ones."
    if scores is not None and scores.n_held_out > 1:
        words += " Scores of all choices stand here together; the AUROC is the mean over choices."
    if scores is not None and len(scores.known) and len(scores.unknown):
        words += (
            f" With {share(scores.kept_share)} of the known runs called known, so are "
            f"{share(scores.false_known_share)} of the unknown ones. AUROC: how often an unknown run scores above a "
            f"known one, here {ratio(scores.auroc)}."
        )
    title, evidence = "Known and unknown workloads", scores.evidence if scores else ""
    empty = scores is not None and not (len(scores.known) and len(scores.unknown))
    nothing = "Too few workloads to hold some out as unknown."
    return figure_of(name, title, words, evidence, draw_open_set, scores, nothing=nothing, is_empty=empty)


def adf_figure(shares: AdfShares, name: str = "adf", least: int | None = None) -> FigureOfPage:
    """Share of the phases with a determined Dickey–Fuller statistic."""
    below = f" below {number(least)} samples and" if least else ""
    words = (
        f"The augmented Dickey–Fuller statistic is undetermined{below} in constant phases, which have the value 0 in a "
        f"fingerprint. It is determined in {share(shares.share)} of the phases."
    )
    title = "Where the Dickey–Fuller statistic is determined"
    empty = not len(shares.lengths)
    return figure_of(name, title, words, shares.evidence, draw_adf, shares, nothing=NO_PHASES, is_empty=empty)


def timeline_figure(runs: RunsOverTime | None, name: str = "timeline", more: str = "") -> FigureOfPage:
    """What ran when."""
    words = (
        "A mark is a run, in the row of what it was called, stronger in colour where the model is surer. Orange: it is "
        "unknown, or is not what its label says or what should run."
    )
    title, evidence = "What ran when", runs.evidence if runs else ""
    words = f"{words} {more}".strip()
    empty = runs is not None and not runs.called
    nothing = "No run was identified yet."
    return figure_of(name, title, words, evidence, draw_runs_over_time, runs, nothing=nothing, is_empty=empty)
