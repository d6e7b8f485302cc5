"""What an evaluation of workloads found, as its page and its artifact show it: the paper's tables and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.report.jobs_figures import FigureOfPage
from tasks.report.workloads_adf import AdfShares
from tasks.report.workloads_alignment import Alignment
from tasks.report.workloads_confusion import WorkloadConfusion
from tasks.report.workloads_distances import WorkloadDistances
from tasks.report.workloads_figures import (
    adf_figure,
    alignment_figure,
    confusion_figure,
    distances_figure,
    online_figure,
    open_set_figure,
    phases_figure,
    series_figure,
)
from tasks.report.workloads_online import OnlineCurve
from tasks.report.workloads_open_set import OpenSetScores
from tasks.report.workloads_phases import PhasesOfRuns
from tasks.report.workloads_series import RunSeries
from tasks.workloads.similarity.thresholds import Spread

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


def figures_of_workloads(found: EvaluatedWorkloads) -> list[FigureOfPage]:
    """The figures in the order of the page; those of single runs only where there are some."""
    figures = [
        confusion_figure(found.confusion),
        open_set_figure(found.scores),
        online_figure(found.online),
        distances_figure(found.distances),
    ]
    figures += [series_figure(run, f"series-{place}", EXAMPLE) for place, run in enumerate(found.series, 1)]
    if found.phases is not None:
        figures.append(phases_figure(found.phases, more=EXAMPLE))
    if found.alignment is not None:
        figures.append(alignment_figure(found.alignment))
    if found.adf is not None:
        figures.append(adf_figure(found.adf, least=found.adf_least))
    return figures


def distance_rows(found: WorkloadDistances | None) -> list[dict[str, Any]]:
    """Table IV: of each workload mean and deviation of its own distances, by ED and DTW, and of those to others."""
    if found is None:
        return []
    return [
        {
            "workload": name,
            **{kind: _numbers(spreads.get(name, (None, None))) for kind, spreads in found.by.items()},
        }
        for name in found.workloads
    ]


def _numbers(spreads: tuple[Spread | None, Spread | None]) -> dict[str, float | None]:
    own, others = spreads
    return {
        "mean": own.mean if own else None,
        "deviation": own.deviation if own else None,
        "others_mean": others.mean if others else None,
        "others_deviation": others.deviation if others else None,
    }
