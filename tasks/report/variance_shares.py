"""What explains the variation inside jobs (3.2 of the paper): input size, tokens, SKU, load, and all together."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tasks.jobs.explain.variance import (
    VarianceShares,
    explain_variance,
)
from tasks.jobs.params import SummaryParams
from tasks.quantities import share
from tasks.report.style import BLUE, DENSITY, GRID, INK, LEFT_IN, MUTED, is_narrow, new_figure, whorl_style
from tasks.warehouse.connection import Connection

MOST_RUNS = 200_000  # the latest; more would take memory and change nothing
MOST_SKUS = 20  # with the most vertex time; the others are told apart from them only
BAR_IN, ROW_IN, HEAD_IN = 0.3, 0.46, 0.35
LABEL_IN = 0.45  # more than a time on the axis needs
INPUT, TOKENS, SKU, LOAD = "input size", "tokens", "SKU", "load"
TOGETHER = "all together"
# Runs that were changed on purpose (what_if) show what somebody did and not how the job varies.
RUNS = """
WITH finished AS (
    SELECT * FROM jobs.runs
    WHERE source = $source AND what_if IS NULL AND runtime_s > 0 AND isfinite(runtime_s)
        AND list_contains($statuses, status)
    QUALIFY count(*) OVER (PARTITION BY group_key) >= $min_support
),
final AS (
    SELECT run_id, group_key, runtime_s, input_bytes, requested_cpus, spare_tokens_available, spare_tokens_used,
        load_mean, load_sd
    FROM finished ORDER BY coalesce(submitted_at, started_at) DESC, run_id LIMIT $most
)
SELECT * FROM final ORDER BY run_id
"""
HAS_CONDITIONS = """
SELECT count(load_mean) + count(spare_tokens_used) + count(spare_tokens_available) + count(vertices) > 0
FROM jobs.runs WHERE source = $source
"""
SKU_TIMES = """
WITH timed AS (
    SELECT run_id, sku, date_diff('microsecond', started_at, ended_at) / 1e6 AS seconds
    FROM jobs.vertices WHERE source = $source AND sku IS NOT NULL
),
final AS (SELECT run_id, sku, sum(seconds) AS seconds FROM timed GROUP BY run_id, sku)
SELECT * FROM final WHERE seconds IS NOT NULL ORDER BY run_id, sku
"""


# Load of the SKUs that the vertices ran on; load_mean and load_sd of a run are of all SKUs offered.
SKU_LOADS = """
WITH used AS (
    SELECT run_id, sku, count(*) AS n FROM jobs.vertices WHERE source = $source GROUP BY run_id, sku
),
offered AS (SELECT run_id, sku, load_mean, load_sd FROM jobs.run_skus WHERE source = $source AND load_mean IS NOT NULL),
final AS (
    SELECT run_id, sum(n * load_mean) / sum(n) AS used_load_mean, sum(n * load_sd) / sum(n) AS used_load_sd
    FROM used JOIN offered USING (run_id, sku) GROUP BY run_id
)
SELECT * FROM final ORDER BY run_id
"""


def fetch_variance(connection: Connection, source: str, params: SummaryParams) -> VarianceShares | None:
    """Shares of the variance within jobs by cause; None for a log that has neither tokens nor load nor vertices."""
    has_any = connection.execute(HAS_CONDITIONS, {"source": source}).fetchone()
    if not has_any or not has_any[0]:
        return None
    asked = {"statuses": list(params.statuses), "min_support": params.min_support, "most": MOST_RUNS}
    runs = connection.execute(RUNS, {"source": source, **asked}).df()
    sku_times = connection.execute(SKU_TIMES, {"source": source}).df()
    runs = runs.merge(connection.execute(SKU_LOADS, {"source": source}).df(), on="run_id", how="left")
    return explain_variance(runs["runtime_s"], runs["group_key"], causes_of(runs, sku_times))


def causes_of(runs: pd.DataFrame, sku_times: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The features of each cause, in the order of runs; sizes and tokens as logarithms.

    runs: columns of jobs.runs and of SKU_LOADS, one row a run_id. sku_times: run_id, sku, seconds of
    its vertices on that SKU."""
    tokens = ["requested_cpus", "spare_tokens_available", "spare_tokens_used"]
    return {
        INPUT: _logarithms(runs[["input_bytes"]]),
        TOKENS: _logarithms(runs[tokens]),
        SKU: sku_shares(runs["run_id"], sku_times),
        LOAD: runs[["load_mean", "load_sd", "used_load_mean", "used_load_sd"]].astype(float),
    }


def _logarithms(amounts: pd.DataFrame) -> pd.DataFrame:
    """log (1 + x), so that none is 0."""
    return pd.DataFrame(np.log1p(amounts.to_numpy(dtype=float, na_value=np.nan)), columns=amounts.columns)


def sku_shares(run_ids: pd.Series, sku_times: pd.DataFrame) -> pd.DataFrame:
    """Share of each run's vertex time by SKU, a column a SKU; missing for a run without vertices."""
    largest = sku_times.groupby("sku")["seconds"].sum().nlargest(MOST_SKUS).index.sort_values()
    seconds = sku_times.pivot_table(index="run_id", columns="sku", values="seconds", aggfunc="sum").fillna(0.0)
    shares = seconds.div(seconds.sum(axis=1).replace(0.0, np.nan), axis=0)
    return shares.reindex(index=run_ids, columns=largest).reset_index(drop=True)


def draw_variance(shares: VarianceShares, width_in: float) -> Figure:
    """A bar a cause: light what it explains alone, dark what only it explains; below 0 there is no bar."""
    with whorl_style():
        names = [one.cause for one in shares.causes] + [TOGETHER]
        alone = np.array([one.alone for one in shares.causes] + [shares.together])
        unique = np.array([one.unique for one in shares.causes])
        height_in = ROW_IN * len(names) + HEAD_IN + 0.5
        figure = new_figure(width_in, height_in, top_in=HEAD_IN)
        figure.subplots_adjust(left=(LEFT_IN + LABEL_IN * (not is_narrow(width_in))) / width_in)
        axes = figure.subplots()
        rows, thickness = np.arange(len(names)), BAR_IN / ROW_IN
        axes.barh(rows[:-1], np.clip(alone[:-1], 0, 1), thickness, color=DENSITY[1], label="alone")
        axes.barh(rows[:-1], np.clip(unique, 0, 1), thickness / 2, color=BLUE, label="only by it")
        axes.barh(rows[-1:], np.clip(alone[-1:], 0, 1), thickness, color=DENSITY[4])
        top = max(0.1, float(np.clip(alone, 0, 1).max()), float(np.clip(unique, 0, 1).max()))
        ends = np.append(np.maximum(alone[:-1], unique), alone[-1:])  # unique is more where causes hide each other
        for row, value in enumerate(alone):
            axes.text(
                max(0.0, float(ends[row])) + top * 0.015, row, share(max(0.0, float(value))), va="center", color=INK
            )
        axes.set_xlim(0, top * 1.15)
        axes.set_yticks(rows, names)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        axes.locator_params(axis="x", nbins=4)
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=GRID)
        what = (
            "share of variance inside jobs"
            if is_narrow(width_in)
            else "share of the variance of log runtime inside jobs"
        )
        axes.set_xlabel(what, color=MUTED)
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderaxespad=0.2, fontsize="medium"
        )
    return figure
