"""What-if answers in plain figures for JSON, and in the tables of the warehouse."""

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.control.answering import (
    Answer,
    Measured,
)
from tasks.jobs.control.outcomes import (
    MEASURES,
    Migration,
    Outcome,
    changes_by_group,
    describe_moves,
)
from tasks.jobs.control.pairs import PairScore
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.support import Support
from tasks.jobs.shape_params import Kind
from tasks.warehouse.connection import Connection, reading, transaction, writing
from tasks.warehouse.place import Warehouse

UNITS: dict[Kind, str] = {"ratio": "", "delta": "s"}
BY = "p95_s"  # what the jobs are ordered by
MOST_JOBS = 10


def answer_figures(answer: Answer, params: WhatIfParams) -> dict[str, Any]:
    """One tree of plain values. changes: by measure; moves: by normalisation, of runs and of jobs, as counts
    [before][after]; pairs: None with pairs_reason where nothing was measured."""
    outcome = answer.outcome
    changes = {str(name): _plain(row) for name, row in outcome.changes.iterrows()}
    return {
        "scenario": answer.scenario.name,
        "edits": str(answer.scenario),
        "features": outcome.features,
        "n_runs": len(outcome.before),
        "changes": {name: {"words": MEASURES[name], **row} for name, row in changes.items()},
        "price": {
            "per_token_hour": params.price_per_token_hour,
            "currency": params.currency,
            "date": params.price_date,
        },
        "moves": {kind: {"runs": _moves(one.runs), "jobs": _moves(one.groups)} for kind, one in outcome.moves.items()},
        "moves_in_words": moves_in_words(outcome),
        "placement": asdict(answer.placement),
        "support": _support(outcome.support),
        "companions": [] if outcome.companions is None else _rows(outcome.companions),
        "pairs": None if answer.measured is None else _pairs(answer.measured),
        "pairs_reason": answer.reason,
        "can": answer.claims.can,
        "cannot": answer.claims.cannot,
    }


def moves_in_words(outcome: Outcome) -> dict[str, list[str]]:
    """The most frequent moves of runs in sentences, by normalisation."""
    return {str(kind): describe_moves(one.run_moves, unit=UNITS[kind]) for kind, one in outcome.moves.items()}


def most_helped(outcome: Outcome) -> list[dict[str, Any]]:
    """Jobs by how much their 95th percentile falls, in seconds."""
    found = changes_by_group(outcome.before, outcome.after, outcome.groups)
    return _rows(found.sort_values(BY, kind="stable").head(MOST_JOBS).reset_index())


def _moves(found: Migration) -> dict[str, Any]:
    return {"counts": found.counts.tolist(), "n": found.n, "share_moved": found.share_moved}


def _support(found: Support | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "n_changed": found.n_changed,
        "share": found.share,
        "share_outside": found.share_outside,
        "share_unlike": found.share_unlike,
        "outside": found.outside,
        "reason": found.reason,
    }


def _pairs(measured: Measured) -> dict[str, Any]:
    found = measured.comparison
    return {
        "what_if": found.what_if,
        "score": _score(found.score),
        "overall": {str(name): _plain(row) for name, row in found.overall.iterrows()},
        "told_conditions": _score(measured.told),
        "conditions": _rows(measured.conditions),
        "noise": asdict(measured.noise),
    }


def _score(score: PairScore) -> dict[str, Any]:
    return {name: _value(value) for name, value in asdict(score).items()}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [_plain(row) for _, row in frame.iterrows()]


def _plain(row: pd.Series) -> dict[str, Any]:
    return {str(name): _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _value(inner) for name, inner in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


TABLES = ("what_ifs", "what_if_moves", "what_if_pairs", "what_if_claims")
OF_CHANGE = ["before", "after", "change", "low", "high", "n_runs", "reason"]


@dataclass(frozen=True)
class WrittenAnswer:
    """What the tables hold of one scenario. changes: one row a measure, in the order of MEASURES; moves: one row for
    each pair of shapes; pairs: of jobs.what_if_pairs; claims: sentences by what they are about."""

    scenario: str
    edits: str
    model_id: str
    changes: pd.DataFrame
    moves: pd.DataFrame
    pairs: dict[str, Any]
    claims: dict[str, list[str]]


def write_answer(warehouse: Warehouse, source: str, model_id: str, answer: Answer, params: WhatIfParams) -> None:
    """Replace what the tables say of this scenario and source, in one transaction; twice changes nothing."""
    name = answer.scenario.name
    constants = {"source": source, "scenario": name, "model_id": model_id}
    changes = answer.outcome.changes.reset_index()
    parameters = json.dumps(params.model_dump(mode="json"), sort_keys=True)
    asked = {**constants, "edits": str(answer.scenario), "parameters": parameters}
    changes = changes[["measure", *OF_CHANGE]].assign(n_jobs=changes["n_groups"], **asked)
    rows = {
        "what_ifs": changes,
        "what_if_moves": _move_rows(answer).assign(**constants),
        "what_if_pairs": pd.DataFrame([{**constants, **_pair_row(answer)}]),
        "what_if_claims": _claims(answer).assign(**constants),
    }
    with writing(warehouse) as connection, transaction(connection):
        for table in TABLES:
            connection.execute(
                f"DELETE FROM jobs.{table} WHERE source = $source AND scenario = $scenario",
                {"source": source, "scenario": name},
            ).fetchall()
            _insert(connection, table, rows[table])


def read_answers(warehouse: Warehouse, source: str) -> list[WrittenAnswer]:
    """What stands in the tables of a source, by scenario."""
    with reading(warehouse) as connection:
        found = {
            table: connection.execute(f"SELECT * FROM jobs.{table} WHERE source = $source", {"source": source}).df()
            for table in TABLES
        }
    changes = found["what_ifs"]
    return [
        _written(str(name), {table: frame[frame["scenario"] == name] for table, frame in found.items()})
        for name in sorted(changes["scenario"].unique())
    ]


def _written(name: str, rows: dict[str, pd.DataFrame]) -> WrittenAnswer:
    changes = rows["what_ifs"].set_index("measure").reindex(list(MEASURES))
    claims = rows["what_if_claims"].sort_values(["about", "place"])
    pairs = {key: None if pd.isna(value) else value for key, value in rows["what_if_pairs"].iloc[0].items()}
    return WrittenAnswer(
        name,
        str(changes["edits"].iloc[0]),
        str(changes["model_id"].iloc[0]),
        changes,
        rows["what_if_moves"].sort_values(["kind", "from_shape", "to_shape"]).reset_index(drop=True),
        {str(key): value for key, value in pairs.items()},
        {str(about): list(lines["claim"]) for about, lines in claims.groupby("about")},
    )


def _move_rows(answer: Answer) -> pd.DataFrame:
    rows = []
    for kind, one in answer.outcome.moves.items():
        runs, jobs, shares = one.runs.counts, one.groups.counts, one.groups.shares
        rows += [
            (kind, before, after, int(runs[before, after]), int(jobs[before, after]), float(shares[before, after]))
            for before in range(len(runs))
            for after in range(len(runs))
            if runs[before, after] or jobs[before, after]
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


def _claims(answer: Answer) -> pd.DataFrame:
    moved = {f"move_{kind}": lines for kind, lines in moves_in_words(answer.outcome).items()}
    told = {"can": answer.claims.can, "cannot": answer.claims.cannot, **moved}
    rows = [(about, place, claim) for about, lines in told.items() for place, claim in enumerate(lines)]
    return pd.DataFrame(rows, columns=["about", "place", "claim"])


def _insert(connection: Connection, table: str, rows: pd.DataFrame) -> None:
    if rows.empty:
        return
    connection.register("new_rows", rows)
    connection.execute(f"INSERT INTO jobs.{table} BY NAME SELECT * FROM new_rows").fetchall()
    connection.unregister("new_rows")
