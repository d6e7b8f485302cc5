"""What the page about nodes shows, fetched over one connection so that all of it is of one moment."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasks.nodes.history import is_simulated_source
from tasks.report.nodes_learned import LearnedNodes, fetch_learned
from tasks.report.nodes_params import NodesReportParams
from tasks.report.nodes_ranking import RankedNodes
from tasks.report.nodes_repeatability import Reruns
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

# is_emulated: of the nodes of a source; a node is emulated where any of its executions is
NODES = """
WITH final AS (
    SELECT node, any_value(machine_type) AS machine_type, coalesce(bool_or(is_emulated), false) AS is_emulated,
        count(*) AS n_executions, count(*) FILTER (is_stressed) AS n_stressed,
        count(*) FILTER (is_contaminated) AS n_contaminated, count(*) FILTER (status <> 'completed') AS n_failed,
        min(started_at) AS first_at, max(started_at) AS last_at
    FROM nodes.executions WHERE source = $source GROUP BY node
)
SELECT * FROM final ORDER BY node
"""
TYPES = """
WITH counted AS (
    SELECT execution_id, count(DISTINCT metric) AS n_values
    FROM nodes.metrics WHERE source = $source GROUP BY execution_id
),
final AS (
    SELECT benchmark, coalesce(template_hash, '') AS template_hash, any_value(aspect) AS aspect,
        count(*) AS n_executions, count(DISTINCT node) AS n_nodes, median(duration_s) AS duration_s,
        median(n_values) AS n_values, sum(len(missing_metrics)) AS n_missing
    FROM nodes.executions LEFT JOIN counted USING (execution_id) WHERE source = $source GROUP BY ALL
)
SELECT * FROM final ORDER BY aspect, benchmark, template_hash
"""
EMULATED = """
WITH emulated AS (
    SELECT node, coalesce(bool_or(is_emulated), false) AS is_emulated
    FROM nodes.executions WHERE source = $source GROUP BY node
)
"""
SCORES = (
    EMULATED
    + """
SELECT aspect, node, machine_type, is_emulated, score, low, high, rank, is_tied, n_executions, shared,
    shared_place, coalesce(lacks, '') AS lacks, model_id, scored_at
FROM nodes.scores LEFT JOIN emulated USING (node) WHERE source = $source
ORDER BY aspect <> 'all', aspect, rank, score DESC, node
"""
)
DECISIONS = """
SELECT * FROM nodes.decisions WHERE source = $source AND model_id = (
    SELECT model_id FROM ops.champions WHERE word = 'nodes' AND source = $source AND kind = 'preprocessor'
    ORDER BY sequence DESC LIMIT 1
) ORDER BY benchmark_type, NOT is_kept, metric
"""
REPEATABILITY = (
    EMULATED
    + """
SELECT repeatability.*, is_emulated FROM nodes.repeatability AS repeatability LEFT JOIN emulated USING (node)
WHERE source = $source ORDER BY NOT is_counted, aspect, benchmark_type, metric, node
"""
)
PAIRS = """
SELECT benchmark_type, metric, median(coalesce(n_runs, 'infinity'::DOUBLE)) AS n_runs
FROM nodes.pairs WHERE source = $source AND is_counted GROUP BY ALL ORDER BY ALL
"""
WATCHED = (
    EMULATED
    + """
SELECT watched.*, is_emulated FROM nodes.watched AS watched LEFT JOIN emulated USING (node)
WHERE source = $source ORDER BY place
"""
)
FILES = """
    SELECT origin, reader, n_read, n_kept, n_quarantined
    FROM ops.files WHERE word = 'nodes' AND source = $source ORDER BY ordered_at, batch_id
"""
REASONS = """
WITH refused AS (
    SELECT regexp_replace(reason, '\\d+', '…', 'g') AS reason, origin, place
    FROM ops.quarantine JOIN ops.files USING (batch_id, word, source)
    WHERE word = 'nodes' AND source = $source
),
final AS (
    SELECT reason, count(*) AS n, arg_min(origin, (origin, place)) AS origin, arg_min(place, (origin, place)) AS place
    FROM refused GROUP BY reason
)
SELECT * FROM final ORDER BY n DESC, reason
"""
FIGURES = "SELECT key, value, reason FROM nodes.evaluation_figures WHERE source = $source ORDER BY key"
# What the answers rest on; data versions are empty where there are none, or nobody kept what they rest on.
BASIS = """
SELECT coalesce(any_value(data_version), '') AS ranked_version, coalesce(any_value(n_left_out), 0) AS n_left_out,
    (SELECT coalesce(any_value(data_version), '') FROM nodes.evaluation_figures WHERE source = $source)
        AS evaluated_version
FROM nodes.rankings WHERE source = $source
"""


@dataclass(frozen=True)
class NodesData:
    """Tables and figures of one source; tables are empty where their step has not been taken yet.

    nodes: one row a node; types: one a benchmark type; shown: the best nodes, which the figure has; watched: nodes by
    their slow executions; pairs: how many executions tell nodes apart. ranked_version and
    evaluated_version: data versions that answers and evaluation rest on; n_left_out: executions that the answers could
    not look at. learned: verdicts, states and fingerprints; None before the first verdicts."""

    source: str
    data_version: str
    ranked_version: str
    evaluated_version: str
    n_left_out: int
    is_simulated: bool
    nodes: pd.DataFrame
    types: pd.DataFrame
    scores: pd.DataFrame
    shown: list[str]
    decisions: pd.DataFrame
    repeatability: pd.DataFrame
    pairs: pd.DataFrame
    watched: pd.DataFrame
    evaluation: dict[str, Any]
    files: pd.DataFrame
    reasons: pd.DataFrame
    learned: LearnedNodes | None

    @property
    def is_outdated(self) -> bool:
        """Whether ranking and repeatability are of other data than the source has now."""
        return self.ranked_version not in ("", self.data_version)

    @property
    def ranking(self) -> RankedNodes | None:
        """The scores as their figure shows them."""
        return RankedNodes(self.scores[self.scores["node"].isin(self.shown)]) if len(self.scores) else None

    @property
    def reruns(self) -> Reruns | None:
        """The repeatability of the metrics that count, as their figure shows it."""
        counted = self.repeatability[self.repeatability["is_counted"]] if len(self.repeatability) else None
        return Reruns(counted) if counted is not None and len(counted) else None


def fetch_nodes_data(warehouse: Warehouse, source: str, params: NodesReportParams) -> NodesData:
    """Everything the page needs.

    Raises NotFound if the source has no executions, BadInput if it mixes simulated with measured ones."""
    asked = {"source": source}
    with reading(warehouse) as connection:
        is_simulated = is_simulated_source(connection, source)

        def table(sql: str) -> pd.DataFrame:
            return connection.execute(sql, asked).df()

        scores = table(SCORES)
        [basis] = table(BASIS).to_dict("records")
        return NodesData(
            source=source,
            data_version=data_version(connection, "nodes", source),
            ranked_version=str(basis["ranked_version"]),
            evaluated_version=str(basis["evaluated_version"]),
            n_left_out=int(basis["n_left_out"]),
            is_simulated=is_simulated,
            nodes=table(NODES),
            types=table(TYPES),
            scores=scores,
            shown=[str(node) for node in scores.loc[scores["aspect"] == "all", "node"].head(params.n_nodes)],
            decisions=table(DECISIONS),
            repeatability=table(REPEATABILITY),
            pairs=table(PAIRS),
            watched=table(WATCHED),
            evaluation=_figures(table(FIGURES)),
            files=table(FILES),
            reasons=table(REASONS),
            learned=fetch_learned(connection, source, params.n_rows),
        )


def _figures(rows: pd.DataFrame) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value, reason in rows.itertuples(index=False):
        found |= {key: float(value)} if pd.notna(value) else {key: None, f"{key}.reason": reason}
    return found
