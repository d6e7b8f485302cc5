"""What was predicted for each run of a job and what came: intervals over time, with the runs as points."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tasks.jobs.distribution import Predicted
from tasks.quantities import duration, share
from tasks.report.date_ticks import date_axis
from tasks.report.direct_labels import Coords, EndLabel, label_ends, write
from tasks.report.style import (
    BLUE,
    DENSITY,
    INK,
    MUTED,
    ORANGE,
    is_narrow,
    log_time_axis,
    new_figure,
    plain_label,
    whorl_style,
)

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
COLUMNS = ["submitted_at", "runtime_s", "p05_s", "p25_s", "p50_s", "p75_s", "p95_s"]
PLOT_IN, FOOT_IN = {False: 3.0, True: 2.7}, 0.56
TITLE_IN = {False: 0.34, True: 0.5}
LEFT_IN, LABELS_IN = {False: 0.86, True: 0.76}, {False: 0.72, True: 0.66}
NAME_CHARS = {False: 44, True: 36}
PAST_SHARE = 0.3  # of the width, at most, for runs before the first prediction
ROOM, MARGIN = 0.09, 1.2  # above the highest and below the lowest: share of the span, and at least so many times
TIME: Coords = ("data", "axes fraction")
PAST_WORD = 0.15  # of the width: with less the word would leave the axes


@dataclass(frozen=True)
class Fan:
    """One job. runs: COLUMNS, in order of submission, runtime_s missing for a run that is yet to end.

    past: submitted_at, runtime_s of runs before the first prediction; may be empty."""

    group_key: str
    runs: pd.DataFrame
    past: pd.DataFrame

    @property
    def is_outside(self) -> NDArray[np.bool_]:
        """Runs outside their 90 % interval: (n_runs,)."""
        actual = self.runs["runtime_s"].to_numpy(dtype=float)
        return np.asarray((actual < self.runs["p05_s"].to_numpy()) | (actual > self.runs["p95_s"].to_numpy()))

    @property
    def n_ended(self) -> int:
        """Runs with a runtime."""
        return int(self.runs["runtime_s"].notna().sum())

    @property
    def inside_share(self) -> float | None:
        """Share of the ended runs inside their 90 % interval; None without any."""
        return 1 - float(self.is_outside.sum()) / self.n_ended if self.n_ended else None

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        before = f", {len(self.past):,} before them" if len(self.past) else ""
        held = "" if self.inside_share is None else f"; the 90 % interval held {share(self.inside_share)}"
        return f"n = {self.n_ended:,} predicted runs of one job{before}{held}"


def fan_of(group_key: str, runs: pd.DataFrame, predicted: Predicted, past: pd.DataFrame) -> Fan:
    """The fan of one job from what was predicted for its runs.

    runs: submitted_at, runtime_s (missing for a run that is yet to end), row i that of instance i of `predicted`;
    past: submitted_at, runtime_s of earlier runs. Raises ValueError if the numbers of runs and instances differ."""
    if len(runs) != predicted.n:
        raise ValueError(f"runs: {len(runs)}; expected {predicted.n}, one for each predicted instance")
    shape = (predicted.n, len(LEVELS))
    quantiles = predicted.quantile(np.broadcast_to(LEVELS, shape)) if len(runs) else np.zeros(shape)
    frame = runs[["submitted_at", "runtime_s"]].reset_index(drop=True)
    frame[COLUMNS[2:]] = quantiles
    in_order = frame.sort_values("submitted_at", kind="stable", ignore_index=True)
    return Fan(group_key, in_order, past.sort_values("submitted_at", kind="stable", ignore_index=True))


def draw_fan(fan: Fan, width_in: float) -> Figure | None:
    """Bands of 50 and 90 % and the median, named at their ends; runs outside are orange. None without predictions."""
    if fan.runs.empty:
        return None
    narrow = is_narrow(width_in)
    with whorl_style():
        height_in = TITLE_IN[narrow] + PLOT_IN[narrow] + FOOT_IN
        figure = new_figure(width_in, height_in, top_in=TITLE_IN[narrow])
        figure.subplots_adjust(
            left=LEFT_IN[narrow] / width_in, right=1 - LABELS_IN[narrow] / width_in, bottom=FOOT_IN / height_in
        )
        axes = figure.subplots()
        past = _shown_past(fan)
        log_time_axis(axes, "y", *_limits(fan, past), n_ticks=5)
        _draw_bands(axes, fan.runs)
        _draw_runs(axes, fan, past)
        _draw_time(axes, fan.runs, past, narrow)
        _name_bands(axes, fan.runs.iloc[-1])
        _name_largest(axes, fan)
        _title(axes, fan, narrow)
    return figure


def _shown_past(fan: Fan) -> pd.DataFrame:
    """The latest of the runs before: what fits into PAST_SHARE of the width."""
    times = fan.runs["submitted_at"]
    span = max(times.iloc[-1] - times.iloc[0], pd.Timedelta(minutes=1))
    first = times.iloc[0] - span * (PAST_SHARE / (1 - PAST_SHARE))
    shown: pd.DataFrame = fan.past[(fan.past["submitted_at"] >= first) & (fan.past["runtime_s"] > 0)]
    return shown


def _limits(fan: Fan, past: pd.DataFrame) -> tuple[float, float]:
    values = np.r_[fan.runs[COLUMNS[1:]].to_numpy(dtype=float).ravel(), past["runtime_s"].to_numpy(dtype=float)]
    values = values[np.isfinite(values) & (values > 0)]
    if not len(values):
        return 0.1, 10.0
    low, high = float(values.min()), float(values.max())
    room = max((high / low) ** ROOM, MARGIN)  # for words, above and below all marks
    return low / room, high * room


def _draw_bands(axes: Axes, runs: pd.DataFrame) -> None:
    times, low = runs["submitted_at"].to_numpy(), axes.get_ylim()[0]
    if len(runs) == 1:  # a band needs a width
        half = np.timedelta64(30, "s")
        runs, times = pd.concat([runs, runs]), np.array([times[0] - half, times[0] + half])
    for lower, upper, colour in (("p05_s", "p95_s", DENSITY[0]), ("p25_s", "p75_s", DENSITY[1])):
        bottom = np.maximum(runs[lower].to_numpy(dtype=float), low)
        top = runs[upper].to_numpy(dtype=float)
        axes.fill_between(times, bottom, top, step="mid", color=colour, linewidth=0, zorder=1)
    axes.step(times, runs["p50_s"], where="mid", color=BLUE, linewidth=1.4, zorder=2)


def _draw_runs(axes: Axes, fan: Fan, past: pd.DataFrame) -> None:
    is_outside, runs = fan.is_outside, fan.runs
    axes.scatter(past["submitted_at"], past["runtime_s"], s=9, color=MUTED, alpha=0.7, linewidths=0, zorder=3)
    size = 13 if len(runs) < 150 else 8
    for chosen, colour, bigger in ((runs[~is_outside], INK, 1.0), (runs[is_outside], ORANGE, 2.0)):
        axes.scatter(chosen["submitted_at"], chosen["runtime_s"], s=size * bigger, color=colour, linewidths=0, zorder=4)


def _draw_time(axes: Axes, runs: pd.DataFrame, past: pd.DataFrame, narrow: bool) -> None:
    first = past["submitted_at"].iloc[0] if len(past) else runs["submitted_at"].iloc[0]
    start, last = runs["submitted_at"].iloc[0], runs["submitted_at"].iloc[-1]
    pad = max((last - first) * 0.015, pd.Timedelta(seconds=45))
    if len(past):
        between = past["submitted_at"].iloc[-1] + (start - past["submitted_at"].iloc[-1]) / 2
        axes.axvline(between, color=MUTED, linewidth=0.8, linestyle=":", zorder=1)
        write(axes, "predicted →", (between, 0.01), (4, 0), MUTED, at=TIME, va="bottom")
        if (between - first) > PAST_WORD * (last - first):
            write(axes, "past", (between, 0.01), (-4, 0), MUTED, at=TIME, ha="right", va="bottom")
    date_axis(axes, first, last, most=4 if narrow else 7)
    axes.set_xlim(first - pad, last + pad)


def _name_bands(axes: Axes, last: pd.Series) -> None:
    words = ("5 %", "25 %", "median", "75 %", "95 %")
    colours = (MUTED, MUTED, BLUE, MUTED, MUTED)
    ends = zip(words, last[COLUMNS[2:]], colours, strict=True)
    label_ends(axes, [EndLabel(text, float(value), colour) for text, value, colour in ends])


def _name_largest(axes: Axes, fan: Fan) -> None:
    """The time of the run that took longest beyond its interval."""
    beyond = (fan.runs["runtime_s"] / fan.runs["p95_s"]).where(fan.runs["runtime_s"] > fan.runs["p95_s"])
    if beyond.isna().all():
        return
    run = fan.runs.iloc[int(np.nanargmax(beyond.to_numpy(dtype=float)))]
    times = fan.runs["submitted_at"]
    is_late = run["submitted_at"] > times.iloc[0] + (times.iloc[-1] - times.iloc[0]) / 2
    place, words = (run["submitted_at"], run["runtime_s"]), duration(run["runtime_s"])
    write(axes, words, place, (0, 4), ORANGE, ha="right" if is_late else "left", va="bottom")


def _title(axes: Axes, fan: Fan, narrow: bool) -> None:
    name = plain_label(fan.group_key, NAME_CHARS[narrow])
    n_outside = int(fan.is_outside.sum())
    facts = f"{n_outside:,} of {fan.n_ended:,} outside the 90 % interval"
    if narrow:
        axes.set_title(f"{name}\n{facts}", loc="left", fontsize="medium", pad=5, x=-0.12)
    else:
        axes.set_title(name, loc="left", fontsize="medium", pad=5)
        axes.set_title(facts, loc="right", fontsize="medium", color=ORANGE if n_outside else MUTED, pad=5)
