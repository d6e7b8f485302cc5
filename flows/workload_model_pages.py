"""What the artifacts about models of workloads, identifications and alarms say, as markdown."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from flows.publish import joined, table
from flows.shown import counted, runs_or_windows
from flows.workload_pages import MAX_ROWS, rest
from tasks.markdown import plain
from tasks.quantities import digits, number, share
from tasks.workloads.choices import said
from tasks.workloads.model_steps import IdentifiedRuns, TrainedModel

SHARES = (
    ("held_out.accuracy", "identified"),
    ("held_out.macro_f1", "macro F1, over workloads"),
    ("held_out.nearest_accuracy", "nearest run is of the same workload"),
    ("held_out.false_unknown", "known, but called unknown"),
)
FOUND = ("run", "what ran", "how sure", "nearest", "distance", "label", "why")
MINUTE_CHARS = 16  # 2026-01-31T12:00


def training_page(source: str, found: TrainedModel, figures: Mapping[str, Any], confusion: pd.DataFrame) -> str:
    """Which model was trained on what, whether it is in use, and what it made of the held-out runs."""
    is_used = found["champion_id"] == found["model_id"]
    in_use = "It is in use now." if is_used else f"{plain(found['champion_id'])} stays in use: it is no worse."
    learned, held_out = (
        runs_or_windows(figures.get(f"{part}.n"), figures.get(f"{part}.n_windows")) for part in ("trained", "held_out")
    )
    rows = [(words, share(figures.get(key))) for key, words in SHARES]
    wrong = confusion[confusion["workload"] != confusion["identified_as"]]
    rows_of_wrong = wrong[["workload", "identified_as", "n_runs"]].to_numpy().tolist()
    taken = [(workload, taken_for or "unknown", int(n_runs)) for workload, taken_for, n_runs in rows_of_wrong]
    return joined(
        [
            f"# A model of the workloads of source {plain(source)}",
            f"{plain(found['model_id'])}, trained on data version {found['data_version']}: "
            f"{learned} of {int(figures.get('trained.classes') or 0)} workloads. {in_use}",
            f"## On {held_out} that were held out ({plain(found['held_out'])})",
            table(("measure", "share of them"), rows),
            _new_workloads(figures),
            "## Taken for something else" if taken else "",
            table(("what ran", "taken for", "runs"), taken[:MAX_ROWS]) + rest(len(taken)) if taken else "",
        ]
    )


def identifications_page(source: str, found: IdentifiedRuns, rows: pd.DataFrame) -> str:
    """What each run was, how sure, and why."""
    title = f"# What ran in source {plain(source)}"
    refused = [f"- {plain(line)}" for line in found["refused"][:MAX_ROWS]]
    told = (
        f"{counted(found['n_runs'], 'run')} identified by {plain(found['model_id'])}: {found['n_known']:,} known, "
        f"{found['n_unknown']:,} unknown."
    )
    return joined(
        [
            title,
            told if found["n_runs"] else "No run that had not been identified before.",
            _table_of(rows) if len(rows) else "",
            "\n".join(["## Runs that cannot be compared with the model", *refused]) + rest(len(found["refused"]))
            if refused
            else "",
        ]
    )


def watch_page(source: str, found: IdentifiedRuns, rows: pd.DataFrame, alarms: pd.DataFrame) -> str:
    """What was looked at, and the alarms that nobody was told of before."""
    new = [
        (message, kind, str(raised_at)[:MINUTE_CHARS])
        for message, kind, raised_at in alarms[["message", "kind", "raised_at"]].itertuples(index=False)
    ]
    return joined(
        [
            f"# What runs in source {plain(source)}",
            f"{counted(len(new), 'new alarm')}."
            if new
            else "Nothing runs that should not and was not reported before.",
            table(("alarm", "kind", "raised (UTC)"), new[:MAX_ROWS]) + rest(len(new)) if new else "",
            "## Looked at",
            _table_of(rows) if len(rows) else "No run.",
            "\n".join(f"- {plain(line)}" for line in found["refused"][:MAX_ROWS]),
        ]
    )


def evaluation_page(what: str, figures: Mapping[str, Any], drawn: str = "") -> str:
    """All figures of an evaluation, and why some cannot be had. drawn: its tables and pictures, which come first."""
    keys = [key for key in figures if not key.endswith(".reason") and key != "report"]
    rows = [(key, _figure(figures[key]) or figures.get(f"{key}.reason") or "") for key in keys]
    title = f"# How well the workloads of {plain(what)} are told apart"
    head = [drawn.rstrip(), "## All figures"] if drawn else [title]
    return joined([*head, table(("figure", "value"), rows)])


def _figure(value: Any) -> str:
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value) if is_number else str(value)


def _new_workloads(figures: Mapping[str, Any]) -> str:
    n_new, n_told = int(figures.get("held_out.n_new") or 0), int(figures.get("held_out.n_new_unknown") or 0)
    if not n_new:
        return ""
    return f"{counted(n_new, 'held-out run')} of workloads that were not learned: {n_told:,} called unknown."


def _table_of(rows: pd.DataFrame) -> str:
    cells = [
        (
            row["run_id"],
            said(row),
            share(row["confidence"]),
            row["nearest"],
            digits(row["nearest_distance"], 3),
            "" if pd.isna(row["label"]) else row["label"],
            "; ".join(list(row["reasons"])[:2]),
        )
        for row in rows.head(MAX_ROWS).to_dict("records")
    ]
    return table(FOUND, cells) + rest(len(rows))
