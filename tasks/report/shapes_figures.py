"""The figures of characterising with their words: faults of the COV, shapes, their number, and one job against two."""

from tasks.quantities import share
from tasks.report.figure_of import figure_of
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.shapes_bins import BinComparison, draw_bins
from tasks.report.shapes_cov_drawing import draw_cov_faults
from tasks.report.shapes_cov_faults import CovFaults
from tasks.report.shapes_inertia import InertiaChoice, draw_inertia
from tasks.report.shapes_likelihood import JobAgainstShapes, draw_likelihood
from tasks.report.shapes_panels import ShapePanels, draw_shapes
from tasks.report.shapes_rivals import RivalClusterings, draw_rivals

NORMALISED = {"ratio": "runtime over the historic median of the job", "delta": "runtime minus that median"}
NO_SHAPES = "No job has enough runs in the historic part of the log to take a shape from."


def cov_figure(faults: CovFaults | None) -> FigureOfPage:
    """The three faults of the COV."""
    words = (
        "The coefficient of variation of a job depends on how long its runs are, jumps with a single run, where the "
        "gap between the 25th and the 75th percentile stays, and is the same for jobs whose runtimes are distributed "
        "quite differently. The job that one run moved most, and the two neighbours in COV that differ most, are shown."
    )
    nothing = "No job of this log shows a fault of the COV: there are too few runs, or they all take the same time."
    is_empty = faults is None or not (faults.biased or faults.unstable or faults.coarse)
    evidence = faults.evidence if faults else ""
    title = "Three faults of the coefficient of variation"
    return figure_of("cov-faults", title, words, evidence, draw_cov_faults, faults, nothing=nothing, is_empty=is_empty)


def shapes_figure(panels: ShapePanels | None, kind: str) -> FigureOfPage:
    """The shapes of one normalisation, with the columns of Table 2."""
    title = f"Typical distributions of runtimes ({kind})"
    words = (
        f"Each row is a shape that many jobs share: the distribution of {NORMALISED.get(kind, kind)}. They are ranked "
        "by the gap between the 25th and the 75th percentile, the steadiest first. Shares are logarithmic, so that "
        "rare slow runs are seen; orange bars hold the outliers beyond the end of the axis."
    )
    evidence = panels.evidence if panels else ""
    return figure_of(f"shapes-{kind}", title, words, evidence, draw_shapes, panels, nothing=NO_SHAPES)


def inertia_figure(choice: InertiaChoice | None, kind: str) -> FigureOfPage:
    """How many shapes there are."""
    title = f"How many shapes ({kind})"
    elbow = choice.curve.elbow if choice else None
    told = (
        "The curve has no elbow."
        if elbow is None
        else f"The elbow, where the curve lies deepest below its chord, is at {elbow}."
    )
    words = (
        f"Inertia is the sum of squared distances of the jobs' distributions from their shape: what more shapes would "
        f"still explain. {told}" + (f" {choice.chosen} were chosen." if choice else "")
    )
    evidence = choice.evidence if choice else ""
    return figure_of(f"inertia-{kind}", title, words, evidence, draw_inertia, choice, nothing=NO_SHAPES)


def bins_figure(compared: BinComparison | None, kind: str) -> FigureOfPage:
    """How many bins."""
    words = (
        "The runs of each job are dealt into two halves at random. The agreement says how far both halves of a job get "
        "the same shape: 1 always, 0 as by chance. The log-score says how probable the runs of one half are under the "
        "shape of the other; higher is better. Orange is the number of bins that the shapes have."
    )
    nothing = "Numbers of bins were not compared: no job has enough runs to be dealt into two halves."
    empty = compared is None or compared.table.empty
    title, evidence = f"How many bins ({kind})", compared.evidence if compared else ""
    return figure_of(f"bins-{kind}", title, words, evidence, draw_bins, compared, nothing=nothing, is_empty=empty)


def rivals_figure(rivals: RivalClusterings | None, kind: str) -> FigureOfPage:
    """How lopsided other clusterings are."""
    words = (
        "Each method puts the same distributions into the same number of clusters. A method that puts most jobs into "
        "one cluster, and the rest into tiny ones, tells them apart no more; the dotted line is where the largest "
        "would be if all were alike."
    )
    empty = rivals is None or rivals.table.empty
    title, evidence = f"Other ways to cluster ({kind})", rivals.evidence if rivals else ""
    return figure_of(f"rivals-{kind}", title, words, evidence, draw_rivals, rivals, nothing=NO_SHAPES, is_empty=empty)


def likelihood_figure(job: JobAgainstShapes | None, name: str = "likelihood") -> FigureOfPage:
    """One job against two shapes."""
    title = "How a job is matched with a shape"
    words = "" if job is None else _likelihood_words(job)
    nothing = "There is no job with runs to match, or only one shape."
    evidence = job.evidence if job else ""
    return figure_of(name, title, words, evidence, draw_likelihood, job, nothing=nothing)


def _likelihood_words(job: JobAgainstShapes) -> str:
    one, other = job.numbers
    likely = one if job.log_likelihoods[0] >= job.log_likelihoods[1] else other
    return (
        "Bars are the runs of one job, lines are two shapes. The log-likelihood adds up, over the runs, the logarithm "
        f"of what the shape gives to their bin; the larger is the more probable: here shape {likely}. Posterior "
        f"probabilities among all shapes: {share(job.posteriors[0])} for {one}, {share(job.posteriors[1])} for {other}."
    )
