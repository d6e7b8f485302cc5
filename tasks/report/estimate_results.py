"""The results of `advice estimate`, described once for terminal, artifact and page."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from tasks.advice.estimate import Estimate
from tasks.advice.transfer import TransferredRuns
from tasks.quantities import duration, share
from tasks.report.result import Column, Figure, Result, Table
from tasks.report.style import BLUE, GRID, INK, MUTED, ORANGE, new_figure

HEIGHT_IN, ROW_IN = 1.2, 0.36
NAME_ABOVE = 0.22  # of a row: the name of a task above its interval
MOST_DRAWN = 40  # tasks in a figure, the longest
RUNTIME = (
    Column("runtime_s", "runtime", duration, is_number=True),
    Column("low_s", "from", duration, is_number=True),
    Column("high_s", "to", duration, is_number=True),
)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, by column."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def estimate_figures(found: Estimate) -> dict[str, Any]:
    """The answer as whole keys and numbers, for machines."""
    return {
        "source": found.source,
        "target": found.target,
        "score_ratio": found.score_ratio,
        "aspect": found.aspect,
        "confidence": found.calibration.confidence,
        "rests_on": found.rests_on,
        "workflows": records(found.workflows),
        "tasks": records(found.tasks.drop(columns="spread")),
    }


def estimate_result(found: Estimate, again: str) -> Result:
    """Each task and the whole workflow on another machine."""
    sure = share(found.calibration.confidence)
    said = [
        f"{row['workflow']} takes {duration(row['runtime_s'])} on {found.target} "
        f"({duration(row['low_s'])} to {duration(row['high_s'])}), its {row['n_tasks']} tasks one after the other"
        for row in records(found.workflows)
    ]
    rows = records(found.tasks.sort_values("runtime_s", ascending=False))
    columns = (
        Column("workflow", "workflow"),
        Column("task", "task"),
        *RUNTIME,
        Column("shape", "grows with its input"),
        Column("n_runs", "runs", str, is_number=True),
        Column("n_target_runs", "of them there", str, is_number=True),
    )
    whole = (Column("workflow", "workflow"), *RUNTIME, Column("n_tasks", "tasks", str, is_number=True))
    reasons = (
        f"One thread of {found.source} does {found.score_ratio:.3f} of the work of one of {found.target} "
        f"in the same time ({found.aspect}).",
    )
    tables = (
        Table("Workflows", "All tasks one after the other, one run of each.", whole, records(found.workflows)),
        Table("Tasks", f"{sure} of the runs are expected between from and to.", columns, rows),
    )
    certainty = f"{sure} intervals, from {found.calibration.rests_on}."
    title = f"Runtimes on {found.target}"
    return Result(
        title, "; ".join(said) + ".", certainty, reasons, tables, (_task_figure(found),), found.rests_on, again
    )


def _task_figure(found: Estimate) -> Figure:
    rows = found.tasks.sort_values("runtime_s").tail(MOST_DRAWN)

    def draw(width_in: float) -> Drawing:
        figure = new_figure(width_in, HEIGHT_IN + ROW_IN * len(rows))
        axes = figure.subplots()
        at = np.arange(len(rows))
        reach = [rows["runtime_s"] - rows["low_s"], rows["high_s"] - rows["runtime_s"]]
        axes.errorbar(rows["runtime_s"], at, xerr=reach, fmt="o", color=BLUE, ecolor=MUTED, capsize=2)
        axes.set_yticks([])
        for place, task, low_s in zip(at, rows["task"], rows["low_s"], strict=True):
            axes.text(low_s, place + NAME_ABOVE, task, fontsize="small", color=INK, parse_math=False)
        axes.set_ylim(-0.6, len(rows))
        axes.set_xscale("log")
        axes.set_xlabel(f"runtime on {found.target}, s")
        axes.grid(axis="x", color=GRID)
        return figure

    words = f"Each task with its {share(found.calibration.confidence)} interval; the axis is logarithmic."
    return Figure("tasks", "Tasks", words, f"n = {len(found.tasks)} tasks", draw)


def transfer_figures(found: TransferredRuns, confidence: float, deadline_s: float | None) -> dict[str, Any]:
    """The answer as whole keys and numbers, for machines. Quantiles are of a run on the target, in seconds."""
    at = (0.05, 0.25, 0.5, 0.75, 0.95)
    told: dict[str, Any] = {
        "job": found.job,
        "source": found.source,
        "target": found.target,
        "median_s": float(np.median(found.draws)),
        "quantiles_s": {str(one): float(value) for one, value in zip(at, np.quantile(found.draws, at), strict=True)},
        "low_s": found.low_s,
        "high_s": found.high_s,
        "confidence": confidence,
        "rests_on": found.rests_on,
        "stages": records(found.stages),
    }
    if deadline_s is not None:
        chance, low, high = found.late_ratio(deadline_s)
        told |= {"deadline_s": deadline_s, "late_ratio": chance, "late_ratio_low": low, "late_ratio_high": high}
    return told


def transfer_result(found: TransferredRuns, confidence: float, deadline_s: float | None, again: str) -> Result:
    """The runtimes of a recurring job on another machine type, and the chance of being late."""
    median = duration(float(np.median(found.draws)))
    answer = f"{found.job} takes {median} on {found.target} in half of its runs"
    if deadline_s is not None:
        chance, low, high = found.late_ratio(deadline_s)
        answer += f", and longer than {duration(deadline_s)} in {share(chance)} ({share(low)} to {share(high)})"
    certainty = (
        f"{share(confidence)} of its runs are expected from {duration(found.low_s)} to {duration(found.high_s)}."
    )
    columns = (
        Column("stage", "stage"),
        Column("median_s", "median", duration, is_number=True),
        *RUNTIME[1:],
        Column("n_runs", "runs", str, is_number=True),
    )
    reasons = (
        f"CPU seconds for each token come from its runs on {found.source}, what slows them down from other jobs on "
        f"{found.target}.",
    )
    words = f"A vertex of each stage on {found.target}."
    tables = (Table("Stages", words, columns, records(found.stages)),)
    drawn = (_runtime_figure(found, deadline_s),)
    title = f"{found.job} on {found.target}"
    return Result(title, f"{answer}.", certainty, reasons, tables, drawn, found.rests_on, again)


def _runtime_figure(found: TransferredRuns, deadline_s: float | None) -> Figure:
    def draw(width_in: float) -> Drawing:
        figure = new_figure(width_in, 2 * HEIGHT_IN)
        axes = figure.subplots()
        values = np.sort(found.draws)
        axes.step(values, np.arange(1, len(values) + 1) / len(values), color=BLUE)
        axes.axvspan(found.low_s, found.high_s, color=GRID, alpha=0.5, zorder=0)
        if deadline_s is not None:
            axes.axvline(deadline_s, color=ORANGE)
        axes.axvline(float(np.median(values)), color=INK, linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlabel(f"runtime on {found.target}, s")
        axes.set_ylabel("share of runs")
        return figure

    words = "Share of runs that take at most so long; grey: the interval, black: the median, orange: the deadline."
    return Figure("runtimes", "Runtimes", words, f"n = {len(found.draws):,} draws", draw)
