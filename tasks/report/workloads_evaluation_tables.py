"""From the figures and tables of an evaluation of workloads to what its page shows."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tasks.report.workloads_adf import AdfShares
from tasks.report.workloads_confusion import WorkloadConfusion
from tasks.report.workloads_distances import WorkloadDistances
from tasks.report.workloads_evaluated import EvaluatedWorkloads, UnknownCalled
from tasks.report.workloads_examples import Examples
from tasks.report.workloads_measured import confusion_of_rows
from tasks.report.workloads_online import OnlineCurve
from tasks.report.workloads_open_set import OpenSetScores
from tasks.workloads.evaluate.protocol import Evaluation
from tasks.workloads.similarity.thresholds import Spread

METHOD, METHOD_WORDS = "model", "the model"
ONLINE = {"model": "first seconds", "whole": "whole runs"}  # what was learned from: as many seconds, or whole runs
RULES = {
    "within": "its distance is within mean ± deviation (V-D)",
    "radius": "its distance is at most the mean (VI-C)",
    "one_sided": "its distance is at most mean + deviations",
}
LEVELS = {"workload": "whole runs", "phase": "phase by phase"}
VERSION_CHARS = 12
RECALL = 0.95
NOTHING = pd.DataFrame()


def evaluated_workloads(
    found: Evaluation, name: str, examples: Examples | None = None, *, recall: float = RECALL
) -> EvaluatedWorkloads:
    """What the page shows of an evaluation. name: of the data; examples: of its runs, None: none are shown.

    recall: of known runs, where the line is drawn."""
    figures, tables = found.figures, found.tables
    sha256 = str(figures.get("data_sha256") or "")[:VERSION_CHARS]
    return EvaluatedWorkloads(
        name=name,
        n_runs=int(figures["n"]),
        n_workloads=int(figures["classes"]),
        made_of=f"data {sha256}" if sha256 else f"{name}, seed {figures.get('seed')}",
        figures=figures,
        confusion=_confusion(tables.get("confusion", NOTHING), str(figures.get("known.base"))),
        unknown_called=list(_unknown_called(tables.get("table_iii", NOTHING))),
        distances=_distances(tables.get("table_iv", NOTHING), int(figures["n"])),
        online=_online(tables.get("online", NOTHING), int(figures["classes"])),
        scores=_scores(tables.get("unknown_scores", NOTHING), figures, recall),
        adf=_adf(tables.get("phase_lengths", NOTHING)),
        series=examples.series if examples else (),
        phases=examples.phases if examples else None,
        alignment=examples.alignment if examples else None,
        thresholds=list(_thresholds(tables.get("thresholds", NOTHING))),
    )


def _confusion(rows: pd.DataFrame, slice_: str) -> WorkloadConfusion | None:
    if rows.empty:
        return None
    return confusion_of_rows(rows[(rows["slice"] == slice_) & (rows["method"] == METHOD)], METHOD_WORDS)


def _unknown_called(rows: pd.DataFrame) -> Iterator[UnknownCalled]:
    if rows.empty:
        return
    for workload, own in rows.groupby("unknown", sort=False):
        shares = dict(zip(own["known"], own["share"].astype(float), strict=True))
        yield UnknownCalled(str(workload), shares, int(own["n"].iloc[0]), float(own["said_unknown"].iloc[0]))


def _distances(rows: pd.DataFrame, n_runs: int) -> WorkloadDistances | None:
    if rows.empty:
        return None
    by: dict[str, dict[str, tuple[Spread | None, Spread | None]]] = {}
    for row in rows.to_dict("records"):
        pair = _spread(row, ""), _spread(row, "others_")
        by.setdefault(str(row["measure"]), {})[str(row["workload"])] = pair
    return WorkloadDistances(by, n_runs)


def _spread(row: Mapping[Any, Any], prefix: str) -> Spread | None:
    n = int(row.get(f"{prefix}n_pairs") or 0)
    return Spread(float(row[f"{prefix}mean"]), float(row[f"{prefix}deviation"]), n) if n else None


def _online(rows: pd.DataFrame, n_workloads: int) -> OnlineCurve | None:
    if rows.empty:
        return None
    means = rows.groupby(["method", "seconds"])["accuracy"].mean()
    n_runs = int(rows.groupby(["method", "seconds"])["n"].sum().max())
    lines = {
        words: {float(second): float(value) for second, value in means[method].items()}
        for method, words in ONLINE.items()
        if method in means.index.get_level_values("method")
    }
    return OnlineCurve(lines, n_runs, n_workloads)


def _scores(rows: pd.DataFrame, figures: Mapping[str, Any], recall: float) -> OpenSetScores | None:
    """Scores of all choices of held-out workloads together, with one line for all of them."""
    if rows.empty:
        return None
    known, unknown = (rows.loc[rows["is_unknown"] == kind, "score"].to_numpy(dtype=float) for kind in (False, True))
    limit = float(np.quantile(known, recall, method="higher"))
    auroc = figures.get("unknown.auroc")
    return OpenSetScores(known, unknown, limit, auroc, len(rows[["first", "second"]].drop_duplicates()))


def _adf(rows: pd.DataFrame) -> AdfShares | None:
    if rows.empty:
        return None
    n, n_determined = rows["n"].to_numpy(np.int64), rows["n_determined"].to_numpy(np.int64)
    counts = np.stack([n_determined, n - n_determined], axis=1).ravel()
    lengths = np.repeat(rows["n_samples"].to_numpy(np.int64), 2)
    return AdfShares(np.repeat(lengths, counts), np.repeat(np.tile([True, False], len(rows)), counts))


def _thresholds(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A row a rule, level and measure: the shares of wrong decisions, over all splits together."""
    if rows.empty:
        return
    counts = rows.groupby(["rule", "level", "measure"], sort=False)[
        ["n_own", "n_rejected", "n_other", "n_accepted"]
    ].sum()
    sums = {tuple(key): row for key, row in zip(counts.index, counts.to_dict("records"), strict=True)}
    for rule, rule_words in RULES.items():
        for level, level_words in LEVELS.items():
            for measure in ("ed", "dtw"):
                n = sums.get((rule, level, measure))
                if n is not None:
                    yield {
                        "rule": rule_words,
                        "level": level_words,
                        "measure": measure.upper(),
                        "false_reject": n["n_rejected"] / n["n_own"] if n["n_own"] else None,
                        "false_accept": n["n_accepted"] / n["n_other"] if n["n_other"] else None,
                    }
