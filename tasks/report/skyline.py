"""Figure 3 of the paper for any log with token skylines: the tokens that one run held over time."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tasks.jobs.params import SummaryParams
from tasks.quantities import number
from tasks.report.runtimes_over_time import GOOD_SUPPORT
from tasks.report.style import BLUE, DENSITY, MUTED, ORANGE, is_narrow, new_figure, plain_label, whorl_style
from tasks.warehouse.connection import Connection

HEIGHT_IN = 2.7
TITLE_IN = {False: 0.32, True: 0.48}  # by whether the figure is narrow
NAME_CHARS = {False: 50, True: 34}
HEADROOM = 1.3  # room for the legend
# Of the runs longer than the median run of the log, in jobs with enough runs, the one whose peak is the largest
# multiple of its allocation; of several the one with the largest peak.
CHOICE = """
WITH finished AS (
    SELECT run_id, group_key, runtime_s, requested_cpus, skyline,
        count(*) OVER (PARTITION BY group_key) AS n_finished, median(runtime_s) OVER () AS median_s
    FROM jobs.runs
    WHERE source = $source AND what_if IS NULL AND runtime_s > 0 AND isfinite(runtime_s)
        AND list_contains($statuses, status) AND len(skyline) > 1
),
peaks AS (
    SELECT *,
        list_max([step.tokens FOR step IN skyline]) AS peak_tokens,
        coalesce(list_max([step.guaranteed FOR step IN skyline]), requested_cpus) AS allocation,
        max(n_finished) OVER () >= $good_support AS has_good
    FROM finished
),
final AS (
    SELECT run_id, group_key, runtime_s, n_finished, peak_tokens, allocation FROM peaks
    WHERE runtime_s >= median_s AND (n_finished >= $good_support OR NOT has_good)
    ORDER BY peak_tokens / nullif(allocation, 0) DESC NULLS LAST, peak_tokens DESC, run_id LIMIT 1
)
SELECT * FROM final
"""
STEPS = """
SELECT at_s, tokens, guaranteed FROM jobs.skylines WHERE source = $source AND run_id = $run_id ORDER BY at_s
"""


@dataclass(frozen=True)
class Skyline:
    """One run. steps: at_s, tokens, guaranteed, each until the next step; the last until runtime_s.

    n_finished: finished runs of its job with a skyline. allocation: tokens guaranteed; None if the log does not
    say."""

    run_id: str
    group_key: str
    runtime_s: float
    n_finished: int
    peak_tokens: float
    allocation: float | None
    steps: pd.DataFrame


def fetch_skyline(connection: Connection, source: str, params: SummaryParams) -> Skyline | None:
    """The run that the figure shows, chosen by a fixed rule; None if no run has a skyline."""
    values = {"source": source, "statuses": list(params.statuses), "good_support": GOOD_SUPPORT}
    found = connection.execute(CHOICE, values).fetchone()
    if found is None:
        return None
    steps = connection.execute(STEPS, {"source": source, "run_id": found[0]}).df().astype(float)
    run_id, group_key, runtime_s, n_finished, peak_tokens, allocation = found
    return Skyline(run_id, group_key, runtime_s, n_finished, peak_tokens, allocation, steps)


def draw_skyline(skyline: Skyline, width_in: float) -> Figure:
    """The tokens held as a filled step function, the allocation as a dashed line."""
    with whorl_style():
        narrow = is_narrow(width_in)
        figure = new_figure(width_in, HEIGHT_IN, top_in=TITLE_IN[narrow])
        axes = figure.subplots()
        at_s = np.append(skyline.steps["at_s"], max(skyline.runtime_s, skyline.steps["at_s"].iloc[-1]))
        tokens = _held(skyline.steps["tokens"])
        axes.fill_between(at_s, tokens, step="post", color=DENSITY[0], linewidth=0)
        axes.step(at_s, tokens, where="post", color=BLUE, linewidth=1.4, label="held")
        guaranteed = _held(
            skyline.steps["guaranteed"].fillna(np.nan if skyline.allocation is None else skyline.allocation)
        )
        if not np.isnan(guaranteed).all():
            axes.step(at_s, guaranteed, where="post", color=ORANGE, linewidth=1.4, linestyle="--", label="allocation")
        axes.set_xlim(0, at_s[-1])
        axes.set_ylim(0, HEADROOM * np.nanmax([tokens.max(), np.nanmax(guaranteed, initial=0.0)]))
        axes.set_xlabel("seconds after the start", color=MUTED)
        axes.set_ylabel("tokens")
        axes.legend(loc="upper right", ncols=2, frameon=False, fontsize="medium", borderaxespad=0.1)
        name, peak = plain_label(skyline.group_key, NAME_CHARS[narrow]), f"peak {number(skyline.peak_tokens)} tokens"
        axes.set_title(f"{name}\n{peak}" if narrow else name, loc="left", fontsize="medium", pad=4)
        if not narrow:
            axes.set_title(peak, loc="right", fontsize="medium", color=MUTED, pad=4)
    return figure


def _held(column: pd.Series) -> np.ndarray:
    """The values of the steps and, once more, of the last one: it lasts until the end."""
    return np.append(column.to_numpy(dtype=float), column.iloc[-1])
