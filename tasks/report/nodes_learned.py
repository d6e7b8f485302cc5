"""Verdicts on executions, states of nodes and, where there is a network, fingerprints: for pages and artifacts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasks.nodes.node_words import interval, is_missing, is_true, reason_of_row
from tasks.quantities import MISSING, number, ratio, share
from tasks.report.jobs_page import drawn
from tasks.report.nodes_figures import plane_figure
from tasks.report.nodes_params import NodesReportParams
from tasks.report.nodes_plane import PlaneOfNodes
from tasks.report.nodes_rows import NOTHING, Cell, Row, Table, plain_cells
from tasks.report.nodes_watching import HEADS, cost_words, counted_states, excluded_nodes, state_values
from tasks.report.nodes_words import OVERALL, aspect_name, node_name, type_name
from tasks.report.page import moment
from tasks.report.workloads_artifact import figure_part, table
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse

MOST_POINTS, MOST_TYPES = 600, 16  # of the figure: dots, and rows of names
# is_emulated: a node is emulated where any of its executions is
EMULATED = """
WITH emulated AS (
    SELECT node, coalesce(bool_or(is_emulated), false) AS is_emulated
    FROM nodes.executions WHERE source = $source GROUP BY node
)
"""
JUDGED = "SELECT * FROM nodes.judgings WHERE source = $source"
ASKED = "SELECT * FROM nodes.fingerprintings WHERE source = $source"
# Of each type the first by a hash of their names, so that the part that is drawn is spread over nodes and time.
POINTS = """
WITH prints AS (
    SELECT benchmark, coalesce(template_hash, '') AS template_hash, execution_id, x, y, log_norm,
        coalesce(verdicts.is_flagged, false) AS is_flagged
    FROM nodes.fingerprints JOIN nodes.executions USING (source, execution_id)
        LEFT JOIN nodes.verdicts AS verdicts USING (source, execution_id)
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
    probability, is_stressed, is_contaminated
FROM nodes.verdicts JOIN nodes.executions USING (source, execution_id) LEFT JOIN emulated USING (node)
WHERE source = $source AND is_flagged ORDER BY started_at DESC NULLS FIRST, execution_id LIMIT $most
"""
)
REASONS = """
SELECT * FROM nodes.verdict_reasons
WHERE source = $source AND list_contains($ids, execution_id) ORDER BY execution_id, place
"""
KNOWN = """
SELECT count(*) FILTER (is_stressed) AS n_stressed, count(*) FILTER (is_stressed AND is_flagged) AS n_found,
    count(*) FILTER (NOT is_stressed) AS n_calm, count(*) FILTER (NOT is_stressed AND is_flagged) AS n_false
FROM nodes.verdicts JOIN nodes.executions USING (source, execution_id)
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
class FingerprintedPart:
    """ranked: one row an aspect and node by fingerprints, with what the plain ranking says beside it. n_executions: of
    benchmarks, of which n_fingerprints have one. plane: Figure 4; None without points."""

    model_id: str
    data_version: str
    n_executions: int
    n_fingerprints: int
    plane: PlaneOfNodes | None
    ranked: pd.DataFrame


@dataclass(frozen=True)
class LearnedNodes:
    """flagged: the latest ones, some of n_flagged. reasons: of these, the most telling first. known: of executions of
    which somebody says whether they were stressed, n_stressed and of them n_found, n_calm and of them n_false.
    alarms_per_day: false ones to be expected; None where the threshold was not chosen by a budget.

    states: of nodes.states, those that need looking at first; empty before the first watch. prints: None where no
    network was asked."""

    model_id: str
    data_version: str
    n_judged: int
    n_flagged: int
    alarms_per_day: float | None
    flagged: pd.DataFrame
    reasons: pd.DataFrame
    known: dict[str, int]
    states: pd.DataFrame
    prints: FingerprintedPart | None


def fetch_learned(connection: Connection, source: str, n_rows: int) -> LearnedNodes | None:
    """What the latest judging, watching and fingerprinting of a source found; None before the first judging.

    n_rows: flagged executions that are fetched."""

    def table(sql: str, **asked: Any) -> pd.DataFrame:
        return connection.execute(sql, {"source": source, **asked}).df()

    judgings = table(JUDGED).to_dict("records")
    if not judgings:
        return None
    [judging] = judgings
    flagged = table(FLAGGED, most=n_rows)
    [known] = table(KNOWN).to_dict("records")
    fingerprintings = table(ASKED).to_dict("records")
    return LearnedNodes(
        model_id=str(judging["model_id"]),
        data_version=str(judging["data_version"]),
        n_judged=int(judging["n_judged"]),
        n_flagged=int(judging["n_flagged"]),
        alarms_per_day=None if is_missing(judging["alarms_per_day"]) else float(judging["alarms_per_day"]),
        flagged=flagged,
        reasons=table(REASONS, ids=[str(one) for one in flagged["execution_id"]]),
        known={str(name): int(count) for name, count in known.items()},
        states=table(STATES),
        prints=FingerprintedPart(
            model_id=str(fingerprintings[0]["model_id"]),
            data_version=str(fingerprintings[0]["data_version"]),
            n_executions=int(fingerprintings[0]["n_executions"]),
            n_fingerprints=int(fingerprintings[0]["n_fingerprints"]),
            plane=plane_of_rows(table(POINTS, most=MOST_POINTS), float(fingerprintings[0]["shown"])),
            ranked=table(RANKED),
        )
        if fingerprintings
        else None,
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


LEAST_NODES = 3  # to say how much two rankings agree
MOST_REASONS = 3
RANK_HEADS = ("place", "score", "plain place", "plain score", "executions")
FLAGGED_HEADS = ("started (UTC)", "probability", "it shows in", "known of it")
FLAGGED_WORDS, STATE_WORDS = frozenset({2, 3}), frozenset({0, 1})  # columns, from 0


def one_number_table(prints: FingerprintedPart, n_rows: int) -> Table:
    """The nodes by their one number: by fingerprints, and beside it the place and score of the plain ranking."""
    rows = prints.ranked[prints.ranked["aspect"] == OVERALL].head(n_rows)
    return Table("node", RANK_HEADS, tuple(_ranked(row) for row in rows.to_dict("records")))


def _ranked(row: Mapping[Any, Any]) -> Row:
    plain = {"score": row["plain_score"], "low": row["plain_low"], "high": row["plain_high"]}
    cells = (
        Cell(_place(row["rank"], row["is_tied"])),
        _score(row),
        Cell(_place(row["plain_rank"], row["plain_is_tied"])),
        _score(plain),
        Cell(f"{int(row['n_executions']):,}"),
    )
    return Row(node_name(row), cells, "" if is_missing(row["machine_type"]) else str(row["machine_type"]))


def aspects_table(prints: FingerprintedPart, n_rows: int) -> Table:
    """A node a row, an aspect a column: the score by fingerprints, and the plain one below it."""
    ranked = prints.ranked
    aspects = [str(aspect) for aspect in ranked["aspect"].unique() if aspect != OVERALL]
    cells = {(row["node"], row["aspect"]): _beside(row) for row in ranked.to_dict("records")}
    first = ranked[ranked["aspect"] == OVERALL].head(n_rows)
    rows = tuple(
        Row(node_name(row), tuple(cells.get((row["node"], aspect), NOTHING) for aspect in aspects))
        for row in first.to_dict("records")
    )
    return Table("node", tuple(aspect_name(aspect) for aspect in aspects), rows)


def _beside(row: Mapping[Any, Any]) -> Cell:
    plain = "not ranked" if is_missing(row["plain_score"]) else ratio(float(row["plain_score"]))
    return Cell(ratio(float(row["score"])), (f"plain: {plain}",))


def agreement_words(prints: FingerprintedPart) -> str:
    """How much both rankings agree; empty where fewer than three nodes have both."""
    both = prints.ranked[(prints.ranked["aspect"] == OVERALL) & prints.ranked["plain_score"].notna()]
    if len(both) < LEAST_NODES or both["score"].nunique() < 2 or both["plain_score"].nunique() < 2:
        return ""
    rho = float(both["score"].rank().corr(both["plain_score"].rank()))
    return f"Spearman's correlation of both scores is {ratio(rho)}, over {len(both):,} nodes."


def flagged_table(learned: LearnedNodes) -> Table:
    """The latest flagged executions, with the metrics that say so."""
    said: dict[str, list[str]] = {}
    for _, row in learned.reasons.iterrows():
        said.setdefault(str(row["execution_id"]), []).append(reason_of_row(row).words())
    rows = [
        Row(
            node_name(row),
            (
                Cell(moment(row["started_at"])),
                Cell(share(row["probability"])),
                Cell(_first_of(said.get(str(row["execution_id"]), []))),
                Cell(_known(row)),
            ),
            type_name(str(row["benchmark"]), str(row["template_hash"])),
        )
        for row in learned.flagged.to_dict("records")
    ]
    return Table("node and benchmark", FLAGGED_HEADS, tuple(rows), of_words=FLAGGED_WORDS)


def _first_of(reasons: list[str]) -> str:
    if not reasons:
        return "no metric alone says so"
    more = len(reasons) - MOST_REASONS
    return "; ".join(reasons[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _known(row: Mapping[Any, Any]) -> str:
    if is_true(row["is_contaminated"]):
        return "disturbed by others"
    if is_missing(row["is_stressed"]):
        return MISSING
    return "stressed on purpose" if row["is_stressed"] else "not stressed"


def known_words(learned: LearnedNodes) -> str:
    """How the flags fit what is known of these executions; empty where nobody says which were stressed."""
    known = learned.known
    if not known["n_stressed"]:
        return ""
    stressed, found, calm, wrong = (f"{known[name]:,}" for name in ("n_stressed", "n_found", "n_calm", "n_false"))
    return (
        f"Of {stressed} executions that were stressed on purpose {found} are flagged, of {calm} others {wrong}. The "
        "detector learned from these; how well it tells those that it has not seen is what its training says."
    )


def states_table(learned: LearnedNodes, n_rows: int) -> Table:
    """The state of each node and aspect, those that need looking at first."""
    rows: pd.DataFrame = learned.states.head(n_rows)
    found = tuple(Row(node_name(row), plain_cells(state_values(row))) for row in rows.to_dict("records"))
    return Table(HEADS[0], HEADS[1:], found, of_words=STATE_WORDS)


def _place(place: Any, is_tied: Any) -> str:
    return MISSING if is_missing(place) else f"{int(place)}{' tied' if is_true(is_tied) else ''}"


def _score(row: Mapping[Any, Any]) -> Cell:
    if is_missing(row["score"]):
        return NOTHING
    told = interval(row)
    return Cell(ratio(float(row["score"])), (told,) if told else ())


def learned_values(learned: LearnedNodes | None, data_version: str, n_rows: int) -> dict[str, Any] | None:
    """What nodes_learned.html shows; None before the first judging. data_version: of the source now."""
    if learned is None:
        return None
    states = learned.states
    return {
        "made_of": made_of(learned),
        "data_version": learned.data_version,
        "is_outdated": learned.data_version != data_version,
        "n_judged": learned.n_judged,
        "n_flagged": learned.n_flagged,
        "alarms": budget_words(learned),
        "flagged": flagged_table(learned),
        "known": known_words(learned),
        "states": states_table(learned, n_rows),
        "n_states": len(states),
        "counted": counted_states(states),
        "excluded": excluded_nodes(states),
        "cost": cost_words(states),
        "watched": _watched(learned),
        "prints": prints_values(learned.prints, data_version, n_rows) if learned.prints else None,
    }


def prints_values(prints: FingerprintedPart, data_version: str, n_rows: int) -> dict[str, Any]:
    """What the page shows of fingerprints."""
    return {
        "made_of": made_of(prints),
        "data_version": prints.data_version,
        "is_outdated": prints.data_version != data_version,
        "n_executions": prints.n_executions,
        "n_fingerprints": prints.n_fingerprints,
        "plane": drawn(plane_figure(prints.plane)),
        "one_number": one_number_table(prints, n_rows),
        "n_ranked": int((prints.ranked["aspect"] == OVERALL).sum()),
        "by_aspect": aspects_table(prints, n_rows),
        "agreement": agreement_words(prints),
    }


def budget_words(learned: LearnedNodes) -> str:
    """What the threshold costs; empty where it was not chosen by a budget of alarms."""
    if learned.alarms_per_day is None:
        return ""
    return f"To be expected over all nodes: about {number(learned.alarms_per_day)} false alarms a day."


def _watched(learned: LearnedNodes) -> str:
    """By which model and when nodes were watched, and whether another was asked since."""
    if learned.states.empty:
        return ""
    row = learned.states.iloc[0]
    since = "" if row["model_id"] == learned.model_id else f"; model {learned.model_id} has been asked since"
    return f"nodes and aspects, watched {moment(row['watched_at'])} (UTC) by model {row['model_id']}{since}"


def fingerprints_artifact(warehouse: Warehouse, source: str, params: NodesReportParams) -> str:
    """Flagged executions with their reasons and, where there are fingerprints, Figure 4 and both rankings by aspect;
    empty before the first judging."""
    with reading(warehouse) as connection:
        learned = fetch_learned(connection, source, params.n_rows)
    return fingerprints_markdown(learned, params.n_rows) if learned else ""


def fingerprints_markdown(learned: LearnedNodes, n_rows: int) -> str:
    """The same from data that were fetched."""
    parts = []
    flagged = flagged_table(learned)
    if flagged.rows:
        count = f"{learned.n_flagged:,} of {learned.n_judged:,}, the latest first. {known_words(learned)}"
        parts += ["## Flagged executions, and why", count, markdown_table(flagged)]
    if prints := learned.prints:
        parts.append(figure_part(plane_figure(prints.plane), made_of(prints)))
        aspects = aspects_table(prints, n_rows)
        if aspects.heads:
            parts += ["## By fingerprint, beside the plain ranking", agreement_words(prints), markdown_table(aspects)]
    return "\n\n".join(part for part in parts if part)


def watching_lines(learned: LearnedNodes) -> list[str]:
    """Which nodes are to be left out, and what watching costs; none before the first watch."""
    if learned.states.empty:
        return []
    return [f"To be left out: {'; '.join(excluded_nodes(learned.states)) or 'none'}.", cost_words(learned.states)]


def made_of(of: LearnedNodes | FingerprintedPart) -> str:
    """What verdicts, or fingerprints, rest on."""
    return f"model {of.model_id}, data version {of.data_version}"


def markdown_table(of: Table) -> str:
    """A table in markdown; what is small on a page stands in brackets."""
    return table([of.first, *of.heads], of.lines)
