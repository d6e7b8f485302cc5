"""What the artifacts of the flows about shapes and models of jobs say, as markdown."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from flows.predictor_words import predictor_rows
from flows.publish import table
from flows.shown import counted
from tasks.jobs.steps import (
    Predicted,
    TrainedModel,
)
from tasks.markdown import plain
from tasks.quantities import duration, number, share

MAX_ROWS = 20
HEADER = ("predictor", "CRPS", "log-score", "in 90 % interval", "KS by job", "KS pooled")
RISKIEST = ("job", "runs", "usual", "predicted median", "95 % stay under", "99 % stay under", "takes twice the usual")


def training_page(source: str, found: TrainedModel, figures: Mapping[str, Any]) -> str:
    """Which model was trained on what, whether it is in use, and how it did beside its baselines."""
    in_use = "It is in use now." if found["champion_id"] == found["model_id"] else _kept(found["champion_id"])
    shapes = ", ".join(found["shapes"].values())
    parts = [
        f"# A model of the jobs of source {plain(source)}",
        f"{plain(found['model_id'])}, trained on data version {found['data_version']}, with the shapes {shapes}. "
        f"{in_use}",
        figures_part(figures),
    ]
    return "\n\n".join(parts)


def evaluation_page(what: str, figures: Mapping[str, Any]) -> str:
    """How well the runtimes of a log were predicted."""
    return "\n\n".join([f"# How well the runtimes of {plain(what)} are predicted", figures_part(figures)])


def figures_part(figures: Mapping[str, Any]) -> str:
    """The figures of the held-out runs: predictors beside each other, and labels beside their references."""
    rows = [
        (
            row["name"],
            duration(row["crps"]),
            number(row["log_score"]),
            share(row["coverage90"]),
            number(row["ks_group"]),
            number(row["ks_pooled"]),
        )
        for row in predictor_rows(figures)
    ]
    labels = [
        f"- Shapes ({kind}): right for {share(figures[f'label.accuracy.{kind}'])} of the runs; an oracle would be for "
        f"{share(figures.get(f'label.ceiling.{kind}'))}, the job's history is for "
        f"{share(figures.get(f'label.history_baseline.{kind}'))}."
        for kind in ("ratio", "delta")
        if figures.get(f"label.accuracy.{kind}") is not None
    ]
    n = figures.get("predict.n") or 0
    return "\n\n".join(
        [
            f"## On {counted(int(n), 'later run')} that were held out",
            table(HEADER, rows),
            "A smaller CRPS, a larger log-score and a smaller KS are better; 90 % intervals should hold 90 % of the "
            "runs.",
            *(["\n".join(labels)] if labels else []),
        ]
    )


def predictions_page(source: str, found: Predicted, riskiest: pd.DataFrame, n_listed: int, least: int) -> str:
    """The jobs whose next run is most likely to take twice the usual time or longer.

    riskiest: rows of jobs.predictions; n_listed: jobs with at least `least` finished runs."""
    title = f"# The next runs of source {plain(source)}"
    told = (
        f"{counted(found['n_jobs'], 'job')}, predicted by {plain(found['model_id'])} as if submitted at "
        f"{found['predicted_at'][:16].replace('T', ' ')} UTC, the end of the log."
    )
    if riskiest.empty:
        return f"{title}\n\n{told} None of them has {least} finished runs yet."
    rows = [
        (
            job["group_key"],
            job["n_before"],
            duration(job["usual_s"]),
            duration(job["p50_s"]),
            duration(job["p95_s"]),
            duration(job["p99_s"]),
            share(job["exceeds_2x_share"]),
        )
        for job in riskiest.head(MAX_ROWS).to_dict("records")
    ]
    more = n_listed - len(rows)
    rest = f"\n\n{more:,} more are in jobs.predictions." if more > 0 else ""
    asked = f"Of the {counted(n_listed, 'job')} with at least {least} finished runs, the riskiest first."
    return f"{title}\n\n{told}\n\n{asked}\n\n{table(RISKIEST, rows)}{rest}"


def _kept(champion_id: str) -> str:
    return f"{plain(champion_id)} stays in use: on the same held-out runs it is no worse."
