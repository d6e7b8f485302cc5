"""Figure 6 of the paper: the runs of one job against two shapes, with how likely each of them makes the runs."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.errors import BadSetting
from tasks.jobs.normalisation import (
    Counts,
    Floats,
    pmfs_of,
)
from tasks.jobs.shapes import (
    ShapeSet,
    log_likelihood,
    log_posterior,
)
from tasks.quantities import share
from tasks.report.direct_labels import INSIDE, write
from tasks.report.shapes_axis import BinAxis, bin_axis, share_axis
from tasks.report.style import BLUE, DENSITY, INK, ORANGE, is_narrow, new_figure, plain_label, whorl_style

PANEL_IN = 1.45
TITLE_IN = {False: 0.38, True: 0.52}
HEAD_IN = 0.3
FOOT_IN = 0.56
NAME_CHARS = {False: 60, True: 38}
COLOURS = (BLUE, ORANGE)


@dataclass(frozen=True)
class JobAgainstShapes:
    """counts: (n_bins,) runs of the job in each bin. numbers: of the two shapes compared.

    log_likelihoods, posteriors: of the two; all_log_likelihoods, all_posteriors: (k,) of every shape (equation 8)."""

    group_key: str
    shapes: ShapeSet
    counts: Counts
    numbers: tuple[int, int]
    all_log_likelihoods: Floats
    all_posteriors: Floats

    @property
    def log_likelihoods(self) -> tuple[float, float]:
        """Of the runs under each of the two shapes."""
        one, other = self.numbers
        return float(self.all_log_likelihoods[one]), float(self.all_log_likelihoods[other])

    @property
    def posteriors(self) -> tuple[float, float]:
        """Of the two shapes, among all."""
        one, other = self.numbers
        return float(self.all_posteriors[one]), float(self.all_posteriors[other])

    @property
    def n_runs(self) -> int:
        """Runs of the job."""
        return int(self.counts.sum())

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n_runs:,} run{'' if self.n_runs == 1 else 's'} of one job, {self.shapes.bins.n_bins} bins"


def compare_with_shapes(
    group_key: str,
    counts: Counts,
    shapes: ShapeSet,
    *,
    empty_bin_prior: float,
    prior: Floats | None = None,
    numbers: tuple[int, int] | None = None,
) -> JobAgainstShapes | None:
    """The job against two shapes, by default the most likely and the second; None for a job without runs.

    counts: (n_bins,); prior: (k,) of the shapes, by default all alike. Raises BadSetting for a number that is no
    shape, or only one shape."""
    k = len(shapes.n_groups)
    if k < 2:
        raise BadSetting("shapes: there is only one, and so no two to compare")
    if numbers is not None and not (len(set(numbers)) == 2 and all(0 <= number < k for number in numbers)):
        shown = " and ".join(str(number) for number in numbers)
        raise BadSetting(f"shapes {shown}: expected two different ones of the {k} shapes, from 0 to {k - 1}")
    if not np.sum(counts):
        return None
    likelihoods = log_likelihood(counts, shapes.centres, empty_bin_prior=empty_bin_prior)[0]
    posteriors = np.exp(log_posterior(counts, shapes.centres, empty_bin_prior=empty_bin_prior, prior=prior))[0]
    if numbers is None:
        best, second = np.argsort(-likelihoods, kind="stable")[:2]
        numbers = (int(best), int(second))
    return JobAgainstShapes(group_key, shapes, np.asarray(counts), numbers, likelihoods, posteriors)


def draw_likelihood(job: JobAgainstShapes, width_in: float) -> Figure:
    """A panel a shape: bars are the job's runs, the line is the shape; above it the log-likelihood."""
    narrow = is_narrow(width_in)
    pmf = pmfs_of(job.counts[None, :])[0]
    chosen = job.shapes.centres[list(job.numbers)]
    axis = bin_axis(job.shapes.bins, np.vstack([pmf, chosen]))
    with whorl_style():
        height_in = HEAD_IN + 2 * (PANEL_IN + TITLE_IN[narrow]) + FOOT_IN
        figure = new_figure(width_in, height_in, top_in=HEAD_IN + TITLE_IN[narrow])
        figure.subplots_adjust(bottom=FOOT_IN / height_in, hspace=TITLE_IN[narrow] / PANEL_IN)
        name = plain_label(job.group_key, NAME_CHARS[narrow])
        figure.text(0.02, 1 - 0.06 / height_in, name, va="top", ha="left")
        panels = figure.subplots(2, 1, sharex=True)
        for place, axes in enumerate(panels):
            _draw_panel(axes, pmf, chosen[place], axis, COLOURS[place])
            axes.set_title(_title(job, place, narrow), loc="left", fontsize="medium", color=COLOURS[place], pad=4)
        axis.label(panels[-1])
        figure.supylabel("share of runs", x=0.004, ha="left", fontsize="medium")
    return figure


def _title(job: JobAgainstShapes, place: int, narrow: bool) -> str:
    likelihood, posterior = f"{job.log_likelihoods[place]:,.1f}".replace("-", "−"), share(job.posteriors[place])
    shape = f"shape {job.numbers[place]}"
    return (
        f"{shape}: log-likelihood {likelihood}\nposterior {posterior}"
        if narrow
        else f"{shape}: log-likelihood {likelihood}, posterior {posterior}"
    )


def _draw_panel(axes: Axes, pmf: np.ndarray, shape: np.ndarray, axis: BinAxis, colour: str) -> None:
    share_axis(axes, n_ticks=3)
    floor = axes.get_ylim()[0]
    axes.stairs(axis.inside(pmf), axis.edges, baseline=floor, fill=True, color=DENSITY[1])
    for edges, mass in axis.outliers(pmf):
        axes.stairs([mass], edges, baseline=floor, fill=True, color=DENSITY[1])
    axes.stairs(axis.inside(shape), axis.edges, baseline=None, color=colour, linewidth=1.4)
    for edges, mass in axis.outliers(shape):
        axes.plot(edges, [mass, mass], color=colour, linewidth=2.2)
    write(axes, "bars: the job's runs", (0, 1), (4, -3), INK, at=INSIDE, va="top")
    axes.set_xlim(*axis.limits)
