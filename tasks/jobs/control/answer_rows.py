"""What-if answers in plain figures for JSON, and in the tables of the warehouse."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.control.answering import Answer, Measured
from tasks.jobs.control.outcomes import Migration, Outcome, changes_by_group
from tasks.jobs.control.params import MEASURES, WhatIfParams
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.place import Warehouse

BY = "p95_s"  # what the jobs are ordered by
MOST_JOBS = 10
OF_CHANGE = ["before", "after", "change", "low", "high", "n_runs", "reason"]


def answer_figures(answer: Answer, params: WhatIfParams) -> dict[str, Any]:
    """One tree of plain values. changes: by measure; moves: by normalisation, of runs and of jobs, as counts
    [before][after]; pairs: None with pairs_reason where nothing was measured."""
    outcome, price = answer.outcome, {"per_token_hour": params.price_per_token_hour, "currency": params.currency}
    changes = {str(name): _plain(row) for name, row in outcome.changes.iterrows()}
    return {
        "scenario": answer.scenario.name,
        "edits": str(answer.scenario),
        "features": outcome.features,
        "n_runs": len(outcome.before),
        "changes": {name: {"words": MEASURES[name], **row} for name, row in changes.items()},
        "price": price | {"date": params.price_date},
        "moves": {kind: {"runs": _moves(one.runs), "jobs": _moves(one.groups)} for kind, one in outcome.moves.items()},
        "moves_in_words": {kind: one.words for kind, one in outcome.moves.items()},
        "placement": asdict(answer.placement),
        "support": asdict(outcome.support),
        "companions": _rows(outcome.companions),
        "pairs": None if answer.measured is None else _pairs(answer.measured),
        "pairs_reason": answer.reason,
        "can": answer.claims.can,
        "cannot": answer.claims.cannot,
    }


def most_helped(outcome: Outcome) -> list[dict[str, Any]]:
    """Jobs by how much their 95th percentile falls, in seconds."""
    return _rows(changes_by_group(outcome).sort_values(BY, kind="stable").head(MOST_JOBS).reset_index())


def write_answer(warehouse: Warehouse, source: str, model_id: str, answer: Answer, params: WhatIfParams) -> None:
    """Replace what the tables say of this scenario and source, in one transaction; twice changes nothing."""
    asked = {"source": source, "scenario": answer.scenario.name}
    changes = answer.outcome.changes.reset_index()
    parameters = json.dumps(params.model_dump(mode="json"), sort_keys=True)
    changes = changes[["measure", *OF_CHANGE]].assign(n_jobs=changes["n_groups"])
    rows = {
        "what_ifs": changes.assign(edits=str(answer.scenario), parameters=parameters),
        "what_if_moves": _move_rows(answer),
        "what_if_pairs": pd.DataFrame([_pair_row(answer)]),
        "what_if_claims": _claim_rows(answer),
    }
    with writing(warehouse) as connection, transaction(connection):
        for table, frame in rows.items():
            sql = f"DELETE FROM jobs.{table} WHERE source = $source AND scenario = $scenario"
            connection.execute(sql, asked).fetchall()
            if len(frame):
                connection.register("new_rows", frame.assign(**asked, model_id=model_id))
                connection.execute(f"INSERT INTO jobs.{table} BY NAME SELECT * FROM new_rows").fetchall()
                connection.unregister("new_rows")


def _moves(found: Migration) -> dict[str, Any]:
    return {"counts": found.counts.tolist(), "n": found.n, "share_moved": found.share_moved}


def _pairs(measured: Measured) -> dict[str, Any]:
    found = measured.comparison
    return {
        "what_if": found.what_if,
        "score": _value(asdict(found.score)),
        "overall": {str(name): _plain(row) for name, row in found.overall.iterrows()},
        "told_conditions": _value(asdict(measured.told)),
        "conditions": _rows(measured.conditions),
        "noise": asdict(measured.noise),
    }


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [_plain(row) for _, row in frame.iterrows()]


def _plain(row: pd.Series) -> dict[str, Any]:
    return {str(name): _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _value(inner) for name, inner in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _move_rows(answer: Answer) -> pd.DataFrame:
    rows = []
    for kind, one in answer.outcome.moves.items():
        runs, jobs, shares = one.runs.counts, one.groups.counts, one.groups.shares
        rows += [
            (kind, before, after, int(runs[before, after]), int(jobs[before, after]), float(shares[before, after]))
            for before, after in np.argwhere((runs > 0) | (jobs > 0)).tolist()
        ]
    return pd.DataFrame(rows, columns=["kind", "from_shape", "to_shape", "n_runs", "n_jobs", "share"])


def _pair_row(answer: Answer) -> dict[str, Any]:
    if answer.measured is None:
        return {"n_pairs": 0, "n_jobs": 0, "reason": answer.reason}
    score, noise = answer.measured.comparison.score, answer.measured.noise
    right, usual = score.directions, score.directions_mean_change
    return {
        "n_pairs": score.n,
        "n_jobs": score.n_groups,
        "mean_measured": score.mean_measured,
        "mean_predicted": score.mean_predicted,
        "right_share": right.share if right else None,
        "low": right.low if right else None,
        "high": right.high if right else None,
        "right_share_mean_change": usual.share if usual else None,
        "mae_log_model": score.mae,
        "mae_log_no_change": score.mae_no_change,
        "mae_log_mean_change": score.mae_mean_change,
        "mae_log_noise": noise.mean_absolute,
        "correlation": score.correlation,
        "reason": score.reason,
    }


def _claim_rows(answer: Answer) -> pd.DataFrame:
    told = {"can": answer.claims.can, "cannot": answer.claims.cannot}
    told |= {f"move_{kind}": one.words for kind, one in answer.outcome.moves.items()}
    rows = [(about, place, claim) for about, lines in told.items() for place, claim in enumerate(lines)]
    return pd.DataFrame(rows, columns=["about", "place", "claim"])
