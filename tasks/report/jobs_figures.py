"""The figures of a job log in their order, each with its words: for the page, and as images for artifacts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from matplotlib.figure import Figure

from tasks.jobs.explain.variance import VarianceShares
from tasks.jobs.params import SummaryParams
from tasks.quantities import number, share
from tasks.report.against_median import MedianComparison, draw_against_median
from tasks.report.cov_drift import CovComparison, draw_cov_drift
from tasks.report.images import to_png
from tasks.report.jobs_data import JobsData
from tasks.report.runtimes_over_time import JobLines, draw_lines
from tasks.report.skyline import Skyline, draw_skyline
from tasks.report.style import WIDE_IN, plain_label
from tasks.report.variance_shares import draw_variance


@dataclass(frozen=True)
class FigureOfPage:
    """One figure: draw makes it at a width in inches; it is None where `words` says why there is nothing to draw.

    evidence: what it stands for, with its n."""

    name: str
    title: str
    words: str
    evidence: str
    draw: Callable[[float], Figure] | None


def figures_of(data: JobsData) -> list[FigureOfPage]:
    """Figures 1, 4(a) and 4(b) of the paper for this log; Figure 3 and the causes only where a log tells of them."""
    asked = SummaryParams.model_validate(data.summary["parameters"])
    figures = [_over_time(data.lines, asked), _against_median(data.medians, asked), _cov_drift(data.covs, asked)]
    if data.skyline:
        figures.append(_token_skyline(data.skyline))
    if data.variance:
        figures.append(_causes(data.variance))
    return figures


def figures_as_png(data: JobsData) -> dict[str, bytes]:
    """Name to PNG, of those figures that the log can fill."""
    return {figure.name: to_png(figure.draw(WIDE_IN)) for figure in figures_of(data) if figure.draw}


def _over_time(lines: JobLines | None, asked: SummaryParams) -> FigureOfPage:
    title = "Runtimes over time, from steady jobs to varying ones"
    if lines is None:
        words = f"No job has {asked.min_support} finished runs and a runtime above 0, so there is no line to draw."
        return FigureOfPage("over-time", title, words, "n = 0", None)
    slices = " Where runs are dense, a bar joins the shortest and the longest of a slice of time."
    words = (
        "Each strip is one job with an axis of its own; the line is its median. "
        f"Orange runs took at least {number(asked.slow_ratio)} times that. The jobs are not picked by hand: all jobs "
        "with enough runs are ordered by their variation and cut into equal parts, and of each part the job with "
        f"the most runs is shown.{slices if lines.has_slices else ''}"
    )
    evidence = f"n = {lines.n_runs:,} runs of {len(lines.jobs):,} jobs"
    return FigureOfPage("over-time", title, words, evidence, partial(draw_lines, lines))


def _against_median(medians: MedianComparison | None, asked: SummaryParams) -> FigureOfPage:
    title = "New runs against the median of their job's past"
    if medians is None:
        words = (
            f"No job has {asked.min_support} finished runs in the first {100 * asked.history_share:g} % of the log and "
            "any after it, so there is no historic median to compare new runs with."
        )
        return FigureOfPage("against-median", title, words, "n = 0", None)
    ratio = number(asked.slow_ratio)
    words = (
        f"Each new run against the median that its job had in the first {100 * asked.history_share:g} % of the log. "
        "Runs on the diagonal are as before; those above the dashed line are the stalagmite of slow runs: "
        f"{share(medians.slow_share)} took at least {ratio} times the historic median."
    )
    if medians.n_hidden:
        words += f" {medians.n_hidden:,} runs with a runtime or a median of 0 have no place on these axes."
    evidence = f"n = {medians.n_points:,} new runs, {_marks(medians.density.hexagon)}"
    return FigureOfPage("against-median", title, words, evidence, partial(draw_against_median, medians))


def _cov_drift(covs: CovComparison | None, asked: SummaryParams) -> FigureOfPage:
    title = "Variation of each job in the past and after it"
    if covs is None:
        words = f"No job has {asked.min_support} finished runs both in the historic part of the log and after it."
        return FigureOfPage("cov-drift", title, words, "n = 0", None)
    correlation = covs.rank_correlation
    words = (
        "Coefficient of variation (standard deviation over mean) of each job before and after the split of the log; "
        "on the line it stayed what it was. "
        + (
            "One side is the same for all jobs, so there is no rank correlation."
            if correlation is None
            else f"Rank correlation: {correlation:.2f} (1: the order of the jobs stays, 0: it is lost)."
        )
    )
    evidence = f"n = {covs.density.n_points:,} jobs, {_marks(covs.density.hexagon)}"
    return FigureOfPage("cov-drift", title, words, evidence, partial(draw_cov_drift, covs))


def _token_skyline(skyline: Skyline) -> FigureOfPage:
    words = (
        "The tokens that one run held over time. Of the runs longer than the median run, in jobs with enough runs, it "
        "is the one whose peak is the largest multiple of its allocation"
    )
    if skyline.allocation:
        words += (
            f": {number(skyline.peak_tokens / skyline.allocation)} times. What lies above the dashed line was spare"
        )
    words += "."
    evidence = f"run {plain_label(skyline.run_id)}, one of {skyline.n_finished:,} runs of its job"
    return FigureOfPage("skyline", "Tokens of a run over time", words, evidence, partial(draw_skyline, skyline))


def _causes(shares: VarianceShares) -> FigureOfPage:
    words = (
        "Share of the variance of log runtime around the mean of each job, measured on jobs that the linear fit has "
        f"not seen ({shares.n_folds} folds of jobs). Light, with its number: explained by this cause alone; dark: what "
        f"is lost when only this cause is left out. All together explain {share(max(0.0, shares.together))}; "
        "a share below 0 is shown as 0."
    )
    evidence = f"n = {shares.n_runs:,} runs of {shares.n_groups:,} jobs"
    title = "What explains the variation inside jobs"
    return FigureOfPage("causes", title, words, evidence, partial(draw_variance, shares))


def _marks(hexagon: tuple[float, float] | None) -> str:
    return "one dot each" if hexagon is None else "stronger in colour where more of them lie"
