"""What a trained model says of the nodes of a source, as its page shows it: fingerprints, both rankings, states."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasks.report.nodes_plane import PlaneOfNodes
from tasks.report.nodes_words import type_name
from tasks.warehouse.connection import Connection

MOST_POINTS, MOST_TYPES = 600, 16  # of the figure: dots, and rows of names
# is_emulated: a node is emulated where any of its executions is
EMULATED = """
WITH emulated AS (
    SELECT node, coalesce(bool_or(is_emulated), false) AS is_emulated
    FROM nodes.executions WHERE source = $source GROUP BY node
)
"""
ASKED = "SELECT * FROM nodes.fingerprintings WHERE source = $source"
# Of each type the first by a hash of their names, so that the part that is drawn is spread over nodes and time.
POINTS = """
WITH prints AS (
    SELECT benchmark, coalesce(template_hash, '') AS template_hash, execution_id, x, y, log_norm, is_flagged
    FROM nodes.fingerprints JOIN nodes.executions USING (source, execution_id)
    WHERE source = $source AND x IS NOT NULL AND y IS NOT NULL
),
typical AS (
    SELECT benchmark, template_hash, median(log_norm) AS middle, count(*) AS n_of_type FROM prints GROUP BY ALL
),
final AS (
    SELECT benchmark, template_hash, x, y, exp(log_norm - middle) AS ratio, is_flagged, n_of_type,
        row_number() OVER (PARTITION BY benchmark, template_hash ORDER BY md5(execution_id), execution_id) AS place
    FROM prints JOIN typical USING (benchmark, template_hash)
)
SELECT * FROM final WHERE place <= $most ORDER BY n_of_type DESC, benchmark, template_hash, place
"""
RANKED = (
    EMULATED
    + """
SELECT own.aspect, own.node, own.machine_type, emulated.is_emulated, own.rank, own.is_tied, own.score, own.low,
    own.high, own.n_executions, plain.rank AS plain_rank, plain.is_tied AS plain_is_tied, plain.score AS plain_score,
    plain.low AS plain_low, plain.high AS plain_high
FROM nodes.fingerprint_scores AS own
    LEFT JOIN nodes.scores AS plain
        ON plain.source = own.source AND plain.aspect = own.aspect AND plain.node = own.node
    LEFT JOIN emulated ON emulated.node = own.node
WHERE own.source = $source ORDER BY own.aspect <> 'all', own.aspect, own.rank, own.score DESC, own.node
"""
)
FLAGGED = (
    EMULATED
    + """
SELECT execution_id, node, emulated.is_emulated, benchmark, coalesce(template_hash, '') AS template_hash, started_at,
    probability, score, n_predecessors, is_stressed, is_contaminated
FROM nodes.fingerprints JOIN nodes.executions USING (source, execution_id) LEFT JOIN emulated USING (node)
WHERE source = $source AND is_flagged ORDER BY started_at DESC NULLS FIRST, execution_id LIMIT $most
"""
)
REASONS = """
SELECT execution_id, metric, deviation, is_beside_others FROM nodes.fingerprint_reasons
WHERE source = $source AND list_contains($ids, execution_id) ORDER BY execution_id, place
"""
KNOWN = """
SELECT count(*) FILTER (is_stressed) AS n_stressed, count(*) FILTER (is_stressed AND is_flagged) AS n_found,
    count(*) FILTER (NOT is_stressed) AS n_calm, count(*) FILTER (NOT is_stressed AND is_flagged) AS n_false
FROM nodes.fingerprints JOIN nodes.executions USING (source, execution_id)
WHERE source = $source AND probability IS NOT NULL
"""
STATES = (
    EMULATED
    + """
SELECT states.*, emulated.is_emulated FROM nodes.states AS states LEFT JOIN emulated USING (node) WHERE source = $source
ORDER BY list_position(['confirmed', 'suspected', 'cleared', 'healthy'], state), node, aspect
"""
)


@dataclass(frozen=True)
class LearnedNodes:
    """ranked: one row an aspect and node by fingerprints, with what the plain ranking says beside it. flagged: the
    latest ones, some of n_flagged. reasons: of these, the worst first. known: of executions of which somebody says
    whether they were stressed, n_stressed and of them n_found, n_calm and of them n_false, as the model flagged them.

    states: of nodes.states, those that need looking at first; empty before the first watch."""

    model_id: str
    data_version: str
    n_executions: int
    n_fingerprints: int
    n_flagged: int
    plane: PlaneOfNodes | None
    ranked: pd.DataFrame
    flagged: pd.DataFrame
    reasons: pd.DataFrame
    known: dict[str, int]
    states: pd.DataFrame


def fetch_learned(connection: Connection, source: str, n_rows: int) -> LearnedNodes | None:
    """What the latest fingerprinting and watching of a source found; None before the first fingerprinting.

    n_rows: flagged executions that are fetched."""

    def table(sql: str, **asked: Any) -> pd.DataFrame:
        return connection.execute(sql, {"source": source, **asked}).df()

    about = table(ASKED).to_dict("records")
    if not about:
        return None
    [row] = about
    flagged = table(FLAGGED, most=n_rows)
    [known] = table(KNOWN).to_dict("records")
    return LearnedNodes(
        model_id=str(row["model_id"]),
        data_version=str(row["data_version"]),
        n_executions=int(row["n_executions"]),
        n_fingerprints=int(row["n_fingerprints"]),
        n_flagged=int(row["n_flagged"]),
        plane=plane_of_rows(table(POINTS, most=MOST_POINTS), float(row["shown"])),
        ranked=table(RANKED),
        flagged=flagged,
        reasons=table(REASONS, ids=[str(one) for one in flagged["execution_id"]]),
        known={str(name): int(count) for name, count in known.items()},
        states=table(STATES),
    )


def plane_of_rows(rows: pd.DataFrame, shown: float) -> PlaneOfNodes | None:
    """The figure's data from rows of POINTS; None without any. Types with most fingerprints come first.

    A benchmark with one template is called by its name alone."""
    if rows.empty:
        return None
    kinds = rows.drop_duplicates(["benchmark", "template_hash"])
    is_alone = ~kinds["benchmark"].duplicated(keep=False)
    names = [
        str(benchmark) if alone else type_name(str(benchmark), str(template))
        for benchmark, template, alone in zip(kinds["benchmark"], kinds["template_hash"], is_alone, strict=True)
    ]
    drawn = kinds[["benchmark", "template_hash"]].assign(type=names).head(MOST_TYPES)
    points = rows.merge(drawn, on=["benchmark", "template_hash"])
    points = points[points["place"] <= max(MOST_POINTS // len(drawn), 1)]
    kept = points[["type", "x", "y", "ratio", "is_flagged"]].reset_index(drop=True)
    return PlaneOfNodes(kept, int(kinds["n_of_type"].sum()), len(kinds), shown)
