"""What is known of the nodes of a source: which are degrading, how good each is, and what that rests on."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any

import pandas as pd

from tasks.nodes.history import is_simulated_source
from tasks.nodes.node_words import (
    agreement,
    agreement_without,
    best_words,
    called,
    counts_as,
    decision,
    interval,
    is_missing,
    is_true,
    left_out,
    placed_by,
    reason_of_row,
    slow_time,
    standing_out,
)
from tasks.quantities import MISSING, digits, duration, number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.intake import Intake, fetch_intake, intake_sections
from tasks.report.result import (
    NOTHING,
    Cell,
    Column,
    Fact,
    Figure,
    Result,
    Row,
    Section,
    Table,
    cell_table,
    count,
    figure,
    moment,
    numbers,
    one_line,
    records,
    sentence,
)
from tasks.warehouse.connection import Connection

WORD = "nodes"
OVERALL = "all"  # the aspect of the one number of a node, from all aspects
HASH_DIGITS = 8
PAPER_RECORDED, PAPER_KEPT = 153, 54  # Perona, IV-B
MOST_POINTS, MOST_TYPES, MOST_SHOWN = 600, 16, 12  # of figures: dots, benchmarks, nodes
MOST_FLAGGED, MOST_OF_NODE = 200, 300  # executions in a list; of a node over time
LEAST_NODES = 3  # to say how much two rankings agree
MOST_REASONS = 3
STATES = ("confirmed", "suspected", "cleared", "healthy")
METHOD = (
    "Benchmarks and preprocessing after Scheinert et al., Perona: Robust Infrastructure Fingerprinting for "
    "Resource-Efficient Big Data Analytics, 2022; where they differ, tasks/nodes/README.md says why. Scores are plain "
    "ratios, except those by fingerprint: these are of the network of the paper."
)
# is_emulated: a node is emulated where any of its executions is
EMULATED = """
WITH emulated AS (
    SELECT node, coalesce(bool_or(is_emulated), false) AS is_emulated
    FROM nodes.executions WHERE source = $source GROUP BY node
)
"""
TABLES = {
    "nodes": """
SELECT node, any_value(machine_type) AS machine_type, coalesce(bool_or(is_emulated), false) AS is_emulated,
    count(*) AS n_executions, count(*) FILTER (is_stressed) AS n_stressed,
    count(*) FILTER (is_contaminated) AS n_contaminated, count(*) FILTER (status <> 'completed') AS n_failed,
    min(started_at) AS first_at, max(started_at) AS last_at
FROM nodes.executions WHERE source = $source GROUP BY node ORDER BY node
""",
    "types": """
WITH counted AS (
    SELECT execution_id, count(DISTINCT metric) AS n_values
    FROM nodes.metrics WHERE source = $source GROUP BY execution_id
)
SELECT benchmark, coalesce(template_hash, '') AS template_hash, any_value(aspect) AS aspect,
    count(*) AS n_executions, count(DISTINCT node) AS n_nodes, median(duration_s) AS duration_s,
    median(n_values) AS n_values, sum(len(missing_metrics)) AS n_missing
FROM nodes.executions LEFT JOIN counted USING (execution_id) WHERE source = $source
GROUP BY ALL ORDER BY aspect, benchmark, template_hash
""",
    "scores": EMULATED
    + """
SELECT aspect, node, machine_type, is_emulated, score, low, high, rank, is_tied, n_executions, shared,
    shared_place, coalesce(lacks, '') AS lacks, model_id, scored_at
FROM nodes.scores LEFT JOIN emulated USING (node) WHERE source = $source
ORDER BY aspect <> 'all', aspect, rank, score DESC, node
""",
    "decisions": """
SELECT * FROM nodes.decisions WHERE source = $source AND model_id = (
    SELECT model_id FROM ops.champions WHERE word = 'nodes' AND source = $source AND kind = 'preprocessor'
    ORDER BY sequence DESC LIMIT 1
) ORDER BY benchmark_type, NOT is_kept, metric
""",
    "repeatability": EMULATED
    + """
SELECT repeatability.*, is_emulated FROM nodes.repeatability AS repeatability LEFT JOIN emulated USING (node)
WHERE source = $source ORDER BY NOT is_counted, aspect, benchmark_type, metric, node
""",
    "pairs": """
SELECT benchmark_type, metric, median(coalesce(n_runs, 'infinity'::DOUBLE)) AS n_runs
FROM nodes.pairs WHERE source = $source AND is_counted GROUP BY ALL ORDER BY ALL
""",
    "watched": EMULATED
    + """
SELECT watched.*, is_emulated FROM nodes.watched AS watched LEFT JOIN emulated USING (node)
WHERE source = $source ORDER BY place
""",
    "evaluation": "SELECT key, value, reason FROM nodes.evaluation_figures WHERE source = $source ORDER BY key",
    "judgings": "SELECT * FROM nodes.judgings WHERE source = $source",
    "fingerprintings": "SELECT * FROM nodes.fingerprintings WHERE source = $source",
    "flagged": EMULATED
    + """
SELECT execution_id, node, emulated.is_emulated, benchmark, coalesce(template_hash, '') AS template_hash, started_at,
    probability, is_stressed, is_contaminated
FROM nodes.verdicts JOIN nodes.executions USING (source, execution_id) LEFT JOIN emulated USING (node)
WHERE source = $source AND is_flagged ORDER BY started_at DESC NULLS FIRST, execution_id LIMIT $most
""",
    "known": """
SELECT count(*) FILTER (is_stressed) AS n_stressed, count(*) FILTER (is_stressed AND is_flagged) AS n_found,
    count(*) FILTER (NOT is_stressed) AS n_calm, count(*) FILTER (NOT is_stressed AND is_flagged) AS n_false
FROM nodes.verdicts JOIN nodes.executions USING (source, execution_id)
WHERE source = $source AND probability IS NOT NULL
""",
    "states": EMULATED
    + """
SELECT states.*, emulated.is_emulated FROM nodes.states AS states LEFT JOIN emulated USING (node) WHERE source = $source
ORDER BY list_position(['confirmed', 'suspected', 'cleared', 'healthy'], state), node, aspect
""",
    # Of each type the first by a hash of their names, so that the part that is drawn is spread over nodes and time.
    "points": """
WITH prints AS (
    SELECT benchmark, coalesce(template_hash, '') AS template_hash, execution_id, node, x, y, log_norm,
        coalesce(verdicts.is_flagged, false) AS is_flagged
    FROM nodes.fingerprints JOIN nodes.executions USING (source, execution_id)
        LEFT JOIN nodes.verdicts AS verdicts USING (source, execution_id)
    WHERE source = $source AND x IS NOT NULL AND y IS NOT NULL
),
typical AS (
    SELECT benchmark, template_hash, median(log_norm) AS middle, count(*) AS n_of_type FROM prints GROUP BY ALL
)
SELECT benchmark, template_hash, node, x, y, exp(log_norm - middle) AS ratio, is_flagged, n_of_type,
    row_number() OVER (PARTITION BY benchmark, template_hash ORDER BY md5(execution_id), execution_id) AS place
FROM prints JOIN typical USING (benchmark, template_hash)
QUALIFY place <= $most ORDER BY n_of_type DESC, benchmark, template_hash, place
""",
    "ranked": EMULATED
    + """
SELECT own.aspect, own.node, own.machine_type, emulated.is_emulated, own.rank, own.is_tied, own.score, own.low,
    own.high, own.n_executions, plain.rank AS plain_rank, plain.is_tied AS plain_is_tied, plain.score AS plain_score,
    plain.low AS plain_low, plain.high AS plain_high
FROM nodes.fingerprint_scores AS own
    LEFT JOIN nodes.scores AS plain
        ON plain.source = own.source AND plain.aspect = own.aspect AND plain.node = own.node
    LEFT JOIN emulated ON emulated.node = own.node
WHERE own.source = $source ORDER BY own.aspect <> 'all', own.aspect, own.rank, own.score DESC, own.node
""",
    # What the answers rest on; data versions are empty where there are none, or nobody kept what they rest on.
    "basis": """
SELECT coalesce(any_value(data_version), '') AS ranked_version, coalesce(any_value(n_left_out), 0) AS n_left_out,
    (SELECT coalesce(any_value(data_version), '') FROM nodes.evaluation_figures WHERE source = $source)
        AS evaluated_version
FROM nodes.rankings WHERE source = $source
""",
}
REASONS = """
SELECT reasons.*, executions.node FROM nodes.verdict_reasons AS reasons JOIN nodes.executions USING (source,
execution_id) WHERE source = $source AND ($ids IS NULL OR list_contains($ids, execution_id)) ORDER BY execution_id,
place """
VERDICTS = """
SELECT node, started_at, benchmark, probability, is_flagged
FROM nodes.verdicts JOIN nodes.executions USING (source, execution_id)
WHERE source = $source AND started_at IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY node ORDER BY started_at DESC, execution_id) <= $most
ORDER BY node, benchmark, started_at
"""


@dataclass(frozen=True)
class NodesData:
    """Tables of one source by their names in TABLES; they are empty where their step has not been taken yet.

    reasons: of the flagged executions, the most telling first."""

    source: str
    is_simulated: bool
    tables: dict[str, pd.DataFrame]
    reasons: pd.DataFrame
    intake: Intake

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self.tables[name]

    @property
    def data_version(self) -> str:
        """Of the files that the source has now."""
        return self.intake.data_version

    @property
    def ranked_version(self) -> str:
        """Of the files that ranking and repeatability rest on; empty where nobody kept it."""
        basis = self["basis"]["ranked_version"]
        return str(basis.iloc[0]) if len(basis) else ""

    @property
    def is_outdated(self) -> bool:
        """Whether ranking and repeatability are of other data than the source has now."""
        return self.ranked_version not in ("", self.data_version)

    @property
    def best(self) -> pd.DataFrame:
        """The nodes by their one number, the best first."""
        scores = self["scores"]
        return scores[scores["aspect"] == OVERALL]

    def command(self, verb: str) -> str:
        """The command that makes what is missing."""
        return shlex.join(["whorl", WORD, verb, "--source", self.source])


def fetch_nodes(connection: Connection, source: str) -> NodesData:
    """Everything that the result needs.

    Raises NotFound if the source has no executions, BadInput if it mixes simulated with measured ones."""
    is_simulated = is_simulated_source(connection, source)
    most = {"points": MOST_POINTS, "flagged": MOST_FLAGGED}
    tables = {
        name: connection.execute(sql, {"source": source} | ({"most": most[name]} if name in most else {})).df()
        for name, sql in TABLES.items()
    }
    ids = [str(one) for one in tables["flagged"]["execution_id"]]
    reasons = connection.execute(REASONS, {"source": source, "ids": ids}).df()
    return NodesData(source, is_simulated, tables, reasons, fetch_intake(connection, WORD, source))


def node_name(row: Mapping[Any, Any]) -> str:
    """The node of a row, and whether it is emulated."""
    return called(one_line(row["node"]), row.get("is_emulated"))


def type_name(benchmark: str, template_hash: str) -> str:
    """A benchmark type: the benchmark with the first digits of its template's hash, where it has one."""
    return f"{benchmark}@{template_hash[:HASH_DIGITS]}" if template_hash else benchmark


def aspect_name(aspect: str) -> str:
    """An aspect, or what stands for all of them."""
    return "all aspects" if aspect == OVERALL else aspect


def nodes_result(data: NodesData, item: str = "") -> Result:
    """All that is known of the nodes of a source. item: address of the pages of single nodes."""
    answer, action, state = _answer(data)
    executions = int(data["nodes"]["n_executions"].sum())
    return Result(
        f"Nodes: {data.source}",
        answer,
        _certainty(data),
        tuple(_reasons(data)),
        made_of=f"source {data.source}, data version {data.data_version}, {executions:,} executions",
        again=shlex.join(["whorl", "report", WORD, "--source", data.source]),
        facts=tuple(_facts(data)),
        notices=tuple(_notices(data)),
        sections=tuple(_sections(data, item)),
        action=action,
        state=state,
        method=METHOD,
    )


def _answer(data: NodesData) -> tuple[str, str, Any]:
    """The verdict, what to do, and whether somebody has to look: by watching, else by slow executions."""
    states, source = data["states"], data.source
    suspected = states[states["state"] == "suspected"]
    if out := excluded_nodes(states):
        return (
            f"Leave out {'; '.join(out)}: its degradation is confirmed.",
            "Run no work there until it is repaired.",
            "look",
        )
    if len(suspected):
        told = "; ".join(
            f"{node_name(row)} in {row['aspect']}, since {moment(row['since'])} UTC" for row in records(suspected)
        )
        action = f"Record a fresh benchmark there: it confirms the alarm or clears it ({data.command('record')})."
        return f"Suspected to be degrading: {told}.", action, "look"
    slow = [row for row in records(data["watched"]) if is_true(row["stands_out"])]
    if len(states):
        return f"No node of {source} is degrading: {counted_states(states)} nodes and aspects.", "", "good"
    if slow:
        names = ", ".join(node_name(row) for row in slow)
        return f"Many slow executions on {names}.", f"Have it watched: {data.command('watch')}.", "look"
    return (
        f"No node of {source} stands out by slow executions." if len(data["watched"]) else "No node was judged yet.",
        f"Nobody has watched these nodes yet: {data.command('watch')}." if len(data["watched"])
        else f"Rank them: {data.command('rank')}.",
        "unknown",
    )  # fmt: skip


def _certainty(data: NodesData) -> str:
    parts = []
    if (
        len(data["judgings"])
        and (budget := data["judgings"]["alarms_per_day"].iloc[0]) == budget
        and budget is not None
    ):
        parts.append(f"To be expected over all nodes: about {number(float(budget))} false alarms a day.")
    if line := known_words(data["known"]):
        parts.append(line)
    return " ".join(parts)


def _reasons(data: NodesData) -> Iterator[str]:
    if len(data.best):
        names = {str(row["node"]): node_name(row) for row in records(data.best)}
        first = [str(node) for node in data.best["node"][data.best["rank"] == 1]]
        yield f"Best: {sentence(best_words(first, len(data.best), names))}. Places: {placed_by(data['scores'])}."
    if len(data["watched"]):
        rows = records(data["watched"])
        yield f"By slow executions: {sentence(standing_out(rows, {str(row['node']): node_name(row) for row in rows}))}."
    if len(data["states"]):
        yield cost_words(data["states"])


def _facts(data: NodesData) -> Iterator[Fact]:
    nodes = data["nodes"]
    n_stressed = int(nodes["n_stressed"].sum())
    stressed = f", {n_stressed:,} of them stressed on purpose" if n_stressed else ""
    words = f"executions of {len(data['types']):,} benchmarks{stressed}"
    yield Fact("nodes.n_executions", int(nodes["n_executions"].sum()), words, count)
    yield Fact("nodes.n_nodes", len(nodes), "node" if len(nodes) == 1 else "nodes", count)
    first = data.best[data.best["rank"] == 1]
    if len(first):
        names = ", ".join(node_name(row) for row in records(first.head(3)))
        yield Fact("nodes.best_score", float(first["score"].iloc[0]), f"best score: {names}", digits)
    if len(data["judgings"]):
        judging = data["judgings"].iloc[0]
        words = f"of {int(judging['n_judged']):,} executions look degraded"
        yield Fact("nodes.n_flagged", int(judging["n_flagged"]), words, count)
    if len(data["decisions"]):
        words = f"of {len(data['decisions']):,} metrics kept"
        yield Fact("nodes.metrics_kept", int(data["decisions"]["is_kept"].sum()), words, count)


def _notices(data: NodesData) -> Iterator[str]:
    if data.is_simulated:
        yield "Simulated: these executions were drawn, not measured."
    if n := int(data["nodes"]["is_emulated"].sum()):
        yield (
            f"Emulated nodes: {n} of {len(data['nodes'])} are made of limits on a larger machine (processor quota, "
            "memory, disk and network), not machines of their own. They are called emulated wherever they are named."
        )
    if data.is_outdated:
        yield (
            f"Older data: ranking and repeatability are of data version {data.ranked_version}, the source has "
            f"{data.data_version}; {data.command('rank')} makes them anew."
        )
    for name, verb in (("judgings", "the detector"), ("fingerprintings", "the network")):
        if len(data[name]) and (version := data[name]["data_version"].iloc[0]) != data.data_version:
            yield (
                f"Older data: {verb} was asked about data version {version}; {data.command('fingerprint')} asks it "
                "again."
            )
    if line := left_out(int(data["basis"]["n_left_out"].sum()), data.source):
        yield f"Left out: {line}."


def _sections(data: NodesData, item: str) -> Iterator[Section]:
    ranked = f"data version {data.ranked_version or 'not kept'}"
    if len(data.best):
        shown = data["scores"][data["scores"]["node"].isin(data.best["node"].head(MOST_SHOWN))]
        yield Section("How good each node is", evidence=ranked, figures=(ranking_figure(shown),), is_open=True)
    yield Section(
        "Nodes",
        "Scores are geometric means of a node's metrics as ratios to the reference fleet, each turned so that more is "
        "better: 1 is the reference, 2 is twice as good; below them the interval in which they would lie if the same "
        "benchmarks ran again.",
        f"n = {int(data['nodes']['n_executions'].sum()):,} executions, {ranked}",
        tables=(_nodes_table(data, item),),
        is_open=True,
    )
    yield _watching(data)
    yield _flagged(data)
    if len(data["ranked"]):
        yield from _fingerprints(data)
    yield _slow(data, ranked)
    yield _reruns(data, ranked)
    yield Section(
        "Metrics: kept or dropped, and why",
        _counts(data["decisions"]),
        f"model {data['decisions']['model_id'].iloc[0]}" if len(data["decisions"]) else "",
        tables=(decisions_table(data["decisions"], "metrics"),),
        nothing=f"Nothing has been decided yet: {data.command('preprocess')}.",
    )
    yield _benchmarks(data)
    if len(data["evaluation"]):
        yield _evaluated(data)
    yield from intake_sections(data.intake, "No alarm yet", data.command("watch"))


def ranking_figure(scores: pd.DataFrame) -> Figure:
    """Scores with intervals. scores: aspect, node, is_emulated, score, low, high, is_tied, n_executions."""
    words = (
        "A dot is a node's score, the bar behind it the interval in which it would lie if the same benchmarks ran "
        "again; nodes marked as tied share their place, since their executions do not tell them apart."
    )
    title, nothing = "How good each node is", "No node has been ranked yet."
    if scores.empty:
        return figure("ranking", title, words, "", None, nothing)
    rows = pd.DataFrame(
        {
            "aspect": [aspect_name(str(one)) for one in scores["aspect"]],
            "node": [node_name(row) + (" (tied)" if is_true(row["is_tied"]) else "") for row in records(scores)],
            "score": scores["score"].to_numpy(dtype=float),
            "low": scores["low"].fillna(scores["score"]).to_numpy(dtype=float),
            "high": scores["high"].fillna(scores["score"]).to_numpy(dtype=float),
        }
    )
    overall = scores[scores["aspect"] == OVERALL]
    evidence = f"n = {int(overall['n_executions'].sum()):,} executions on {len(overall):,} nodes"
    score = Axis("score", "score, 1: as the reference", "log")
    return Figure("ranking", title, words, evidence, partial(charts.intervals, rows, score, "node", panel="aspect"))


def _nodes_table(data: NodesData, item: str) -> Table:
    """A row a node: its place, its state, its scores and what was recorded on it."""
    scores, states = data["scores"], data["states"]
    cells = {(row["node"], row["aspect"]): _score(row) for row in records(scores)}
    best = {str(row["node"]): row for row in records(data.best)}
    slow = {str(row["node"]): row for row in records(data["watched"])}
    worst = states.drop_duplicates("node").set_index("node")["state"].to_dict() if len(states) else {}
    aspects = [str(one) for one in scores["aspect"].unique()]
    rows = []
    for row in records(data["nodes"]):
        node, first = str(row["node"]), best.get(str(row["node"]), {})
        lacks = (f"did not run {first['lacks']}",) if first.get("lacks") else ()
        place = _place(first.get("rank"), first.get("is_tied"))
        shared = first.get("shared")
        rows.append(
            row
            | {
                "node": node_name(row),
                "node.href": f"{item}#{_address(node)}" if item else None,
                "state": worst.get(node),
            }
            | {"rank": Cell(place, lacks, value=first.get("rank")), "shared": shared}
            | {aspect: cells.get((node, aspect), NOTHING) for aspect in aspects}
            | {"n_low": slow.get(node, {}).get("n_low")}
        )
    rows.sort(key=lambda row: (row["rank"].value is None, row["rank"].value or 0))
    columns = [Column("node", "node"), Column("state", "state", meaning="Of the aspect that most needs looking at")]
    columns += [Column("rank", "place", is_number=True)]
    if data.best["shared"].notna().any():
        columns += numbers(("shared", "shared component", number))
    columns += [Column(aspect, aspect_name(aspect), is_number=True) for aspect in aspects]
    columns += [
        *numbers(
            ("n_low", "slow", count),
            ("n_executions", "executions", count),
            ("n_stressed", "stressed on purpose", count),
        ),
        *numbers(("n_contaminated", "disturbed", count), ("n_failed", "failed", count)),
        Column("machine_type", "machine type"),
        Column("first_at", "first (UTC)", moment),
        Column("last_at", "last (UTC)", moment),
    ]
    return Table("", "", tuple(columns), rows, name="list")


def _address(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="!'()*~")


def _watching(data: NodesData) -> Section:
    states = data["states"]
    words = (
        "One flagged execution is no alarm: several of the last ones make a node suspected, and it is asked for a "
        "fresh benchmark. What it runs next confirms the alarm or clears it; a confirmed node is to be left out."
    )
    if len(states):
        out = "; ".join(excluded_nodes(states)) or "none"
        words += f" {counted_states(states)}. To be left out: {out}. {cost_words(states)}"
    evidence = ""
    if len(states):
        row = states.iloc[0]
        evidence = f"nodes and aspects, watched {moment(row['watched_at'])} (UTC) by model {row['model_id']}"
    return Section(
        "Which nodes are degrading",
        words,
        evidence,
        tables=(states_table(states),),
        nothing=f"Nobody has watched these nodes yet: {data.command('watch')}.",
        is_open=bool(len(states)) and bool((states["state"] != "healthy").any()),
    )


def states_table(states: pd.DataFrame) -> Table:
    """The state of each node and aspect, those that need looking at first."""
    columns = (
        Column("name", "node"),
        Column("aspect", "aspect"),
        Column("state", "state"),
        Column("since", "since (UTC)", moment),
        *numbers(("n_executions", "executions", count), ("n_recent_flagged", "flagged of the last", count)),
        *numbers(("n_left_out", "left out", count), ("cost_share", "share of its time", share)),
    )
    return Table("", "", columns, [row | {"name": node_name(row)} for row in records(states)], name="states")


def counted_states(states: pd.DataFrame) -> str:
    """How many nodes and aspects are in each state, those that need looking at first."""
    counts = states["state"].value_counts()
    return ", ".join(f"{int(counts.get(state, 0)):,} {state}" for state in STATES)


def excluded_nodes(states: pd.DataFrame) -> list[str]:
    """Each node that is to be left out, with the aspects in which that is confirmed."""
    out = states[states["is_excluded"].map(is_true).astype(bool)]
    confirmed = states[states["state"] == "confirmed"]
    found = []
    for row in records(out.drop_duplicates("node").sort_values("node")):
        aspects = ", ".join(sorted(str(one) for one in confirmed.loc[confirmed["node"] == row["node"], "aspect"]))
        found.append(f"{node_name(row)}{f' ({aspects})' if aspects else ''}")
    return found


def cost_words(states: pd.DataFrame) -> str:
    """What watching costs as a share of machine time: in the middle of the nodes, and at most."""
    each = states.drop_duplicates("node").set_index("node")["cost_share"].dropna()
    if each.empty:
        return "What watching costs is not known: no node ran benchmarks twice with a known start and duration."
    dearest = node_name(states[states["node"] == each.idxmax()].iloc[0].to_dict())
    nodes = "1 node" if len(each) == 1 else f"{len(each):,} nodes"
    middle, largest = share(float(each.median())), share(float(each.max()))
    return (
        f"At the pace of the record benchmarks take {middle} of a node's time (median of {nodes}), {largest} at most "
        f"({dearest})."
    )


def _flagged(data: NodesData) -> Section:
    n_judged, n_flagged = (int(data["judgings"][name].sum()) for name in ("n_judged", "n_flagged"))
    more = (
        f"The latest {len(data['flagged']):,}; all are in the warehouse, nodes.verdicts."
        if n_flagged > MOST_FLAGGED
        else ""
    )
    evidence = ""
    if len(data["judgings"]):
        judging = data["judgings"].iloc[0]
        evidence = (
            f"{n_flagged:,} of {n_judged:,} executions are flagged, by model {judging['model_id']}, data version "
            f"{judging['data_version']}"
        )
    return Section(
        "Executions that look degraded, and why",
        "Each is judged by how far its metrics lie from what its node did before. A reason is a metric that is worse "
        "than "
        f"usual, in its usual deviations. {known_words(data['known'])}".strip(),
        evidence,
        tables=(flagged_table(data["flagged"], data.reasons, more),),
        nothing="None is flagged."
        if n_judged
        else f"No detector has been asked about this source yet: {data.command('train')} makes one, "
        f"{data.command('fingerprint')} asks it, and {data.command('watch')} says which nodes are degrading.",
    )


def flagged_table(flagged: pd.DataFrame, reasons: pd.DataFrame, more: str = "") -> Table:
    """The latest flagged executions, with the metrics that say so."""
    said: dict[str, list[str]] = {}
    for row in records(reasons):
        said.setdefault(str(row["execution_id"]), []).append(reason_of_row(row).words())
    columns = (
        Column("name", "node"),
        Column("type", "benchmark"),
        Column("started_at", "started (UTC)", moment),
        Column("probability", "probability", share, is_number=True),
        Column("because", "it shows in"),
        Column("known", "known of it"),
    )
    rows = [
        row
        | {"name": node_name(row), "type": type_name(str(row["benchmark"]), str(row["template_hash"]))}
        | {"because": _first_of(said.get(str(row["execution_id"]), [])), "known": _known(row)}
        for row in records(flagged)
    ]
    return Table("", "", columns, rows, name="flagged", more=more)


def _first_of(reasons: Sequence[str]) -> str:
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


def known_words(known: pd.DataFrame) -> str:
    """How the flags fit what is known of these executions; empty where nobody says which were stressed."""
    if known.empty or not known["n_stressed"].iloc[0]:
        return ""
    stressed, found, calm, wrong = (
        f"{int(known[name].iloc[0]):,}" for name in ("n_stressed", "n_found", "n_calm", "n_false")
    )
    return (
        f"Of {stressed} executions that were stressed on purpose {found} are flagged, of {calm} others {wrong}. The "
        "detector learned from these; how well it tells those that it has not seen is what its training says."
    )


def _fingerprints(data: NodesData) -> Iterator[Section]:
    ranked, asked = data["ranked"], data["fingerprintings"].iloc[0]
    made_of = f"model {asked['model_id']}, data version {asked['data_version']}"
    aspects = [str(one) for one in ranked["aspect"].unique() if one != OVERALL]
    cells = {(row["node"], row["aspect"]): row for row in records(ranked)}
    rows = []
    for row in records(ranked[ranked["aspect"] == OVERALL]):
        plain = {"score": row["plain_score"], "low": row["plain_low"], "high": row["plain_high"]}
        found = [Cell(_place(row["rank"], row["is_tied"]), value=row["rank"]), _score(row)]
        found += [Cell(_place(row["plain_rank"], row["plain_is_tied"])), _score(plain)]
        found += [_beside(cells[row["node"], one]) if (row["node"], one) in cells else NOTHING for one in aspects]
        rows.append(
            Row(node_name(row), tuple(found), "" if is_missing(row["machine_type"]) else str(row["machine_type"]))
        )
    heads = ("place", "score", "plain place", "plain score", *(aspect_name(one) for one in aspects))
    yield Section(
        "By fingerprint, beside the plain ranking",
        "A score by fingerprints is the norm of a node's encoded executions as a ratio to the reference fleet, by the "
        "executions that were not flagged; a plain score is the geometric mean of its metrics. Both are 1 at the "
        "reference "
        f"and 2 where twice as good. {agreement_words(ranked)}".strip(),
        f"n = {int(asked['n_fingerprints']):,} fingerprints of {int(asked['n_executions']):,} executions, {made_of}",
        tables=(cell_table("node", heads, rows),),
    )
    plane = plane_figure(data["points"], float(asked["shown"]))
    yield Section(plane.title, evidence=made_of, figures=(plane,))


def agreement_words(ranked: pd.DataFrame) -> str:
    """How much both rankings agree; empty where fewer than three nodes have both."""
    both = ranked[(ranked["aspect"] == OVERALL) & ranked["plain_score"].notna()]
    if len(both) < LEAST_NODES or both["score"].nunique() < 2 or both["plain_score"].nunique() < 2:
        return ""
    rho = float(both["score"].rank().corr(both["plain_score"].rank()))
    return f"Spearman's correlation of both scores is {ratio(rho)}, over {len(both):,} nodes."


def plane_figure(points: pd.DataFrame, shown: float) -> Figure:
    """Figure 4 of Perona: fingerprints in two dimensions by benchmark, and their norms within each.

    points: benchmark, template_hash, node, x, y, ratio, is_flagged, n_of_type, place; shown: share of the variance of
    directions that x and y hold."""
    title = "Fingerprints by benchmark, and their norms"
    words = (
        "Each dot is an execution. Above its fingerprint's direction on the first two principal components: "
        "executions of one benchmark should lie together and apart from all others. Below its norm, which is what "
        "nodes are scored by, as a multiple of the median of its benchmark; orange ones were flagged as degraded."
    )
    rows = points.dropna(subset=["x", "y", "ratio"]) if len(points) else points
    if rows.empty:
        return figure("plane", title, words, "", None, "No execution has a fingerprint by a trained model yet.")
    kinds = rows.drop_duplicates(["benchmark", "template_hash"])
    is_alone = ~kinds["benchmark"].duplicated(keep=False)
    names = [
        str(benchmark) if alone else type_name(str(benchmark), str(template))
        for benchmark, template, alone in zip(kinds["benchmark"], kinds["template_hash"], is_alone, strict=True)
    ]
    few = kinds[["benchmark", "template_hash"]].assign(type=names).head(MOST_TYPES)
    drawn = rows.merge(few, on=["benchmark", "template_hash"])
    drawn = drawn[drawn["place"] <= max(MOST_POINTS // len(few), 1)]
    n, n_types = int(kinds["n_of_type"].sum()), drawn["type"].nunique()
    of = f" of {n:,}" if len(drawn) < n else ""
    of_types = f" of {len(kinds):,}" if n_types < len(kinds) else ""
    evidence = f"n = {len(drawn):,}{of} fingerprints of {n_types}{of_types} benchmarks; x and y hold {share(shown)}"
    return Figure("plane", title, words, evidence, partial(_draw_plane, drawn))


def _draw_plane(drawn: pd.DataFrame) -> charts.Chart:
    flagged = drawn["is_flagged"].map(lambda one: "flagged" if one else "not flagged")
    rows = drawn[["type", "node", "x", "y", "ratio"]].assign(flagged=flagged).reset_index(drop=True)
    kinds = dict(zip(dict.fromkeys(rows["type"]), charts.SERIES * len(rows), strict=False))
    first, second = (Axis(name, f"principal component {at}") for at, name in enumerate("xy", 1))
    directions = charts.scatter(rows[["x", "y", "type", "node"]], first, second, colour="type", colours=kinds)
    tones = {"not flagged": charts.BLUE, "flagged": charts.ORANGE}
    norm = Axis("ratio", "norm, over the median of its benchmark", "log")
    norms = charts.dots(
        rows[["type", "ratio", "flagged", "node"]], norm, "type", colour="flagged", colours=tones, mean=False
    )
    return charts.beneath(directions, norms)


def _slow(data: NodesData, ranked: str) -> Section:
    columns = (
        Column("name", "node"),
        *numbers(("n_low", "slow", count), ("n_executions", "executions", count), ("low_share", "share", share)),
        Column("worst_type", "most in"),
        *numbers(("worst_ratio", "there at", ratio), ("p_value", "p", number)),
        Column("slow_time", "in time"),
    )
    rows = [row | {"name": node_name(row), "slow_time": slow_time(row)} for row in records(data["watched"])]
    return Section(
        "Nodes by slow executions",
        "Slow are executions below the level that the node has shown, or that of the other nodes of its machine "
        "type, by 3.5 robust deviations and 10 % (beside others 20 %). A node stands out where so many of them would "
        "be chance in fewer than one of a hundred fleets (exact test of equal shares, Holm), and one in ten of a "
        "benchmark or more is slow. Executions that were stressed on purpose or disturbed are left out.",
        ranked,
        tables=(Table("", "", columns, rows, name="slow"),),
        nothing=f"No node has been judged yet: {data.command('rank')}.",
    )


def _reruns(data: NodesData, ranked: str) -> Section:
    counted = (
        data["repeatability"][data["repeatability"]["is_counted"]]
        if len(data["repeatability"])
        else data["repeatability"]
    )
    columns = (
        Column("benchmark_type", "benchmark"),
        Column("metric", "metric"),
        Column("name", "node"),
        *numbers(
            ("n_runs", "executions", number), ("cv", "spread", share), ("rerun_median", "a rerun differs by", share)
        ),
        *numbers(("rerun_p90", "in one of ten by", share), ("runs_for_5", "runs to see 5 %", count)),
        *numbers(("runs_for_10", "runs to see 10 %", count)),
    )
    table = Table(
        "How much a rerun differs", "", columns, [row | {"name": node_name(row)} for row in records(counted)], "reruns"
    )
    pairs = [
        f"{row['benchmark_type'].partition('@')[0]} {row['metric']}: "
        + (f"{count(row['n_runs'])} executions of each" if isfinite(row["n_runs"]) else "no number")
        for row in records(data["pairs"])
    ]
    lines = (f"To tell two nodes apart, in the middle of all pairs: {'; '.join(pairs)}.",) if pairs else ()
    return Section(
        "How repeatable each benchmark is",
        "The difference between two executions of the same benchmark on the same node that chance alone makes, as a "
        "share of the median, and how many executions of each it takes to tell two nodes apart that differ by so much.",
        f"executions that were not stressed, {ranked}",
        lines,
        (table,),
        (reruns_figure(counted),) if len(counted) else (),
        nothing=f"No benchmark ran often enough on any node to say how much a rerun differs: {data.command('rank')}.",
    )


def reruns_figure(counted: pd.DataFrame) -> Figure:
    """How much a rerun differs: a dot a node and metric. counted: rows of nodes.repeatability that count."""
    rows = counted.dropna(subset=["cv"])
    words = (
        "Each dot is a node: how far its executions of one benchmark lie apart, as a share of their median, by the "
        "metrics that count in scores; the tick is the mean."
    )
    most = rows.groupby(["benchmark_type", "node"])["n_runs"].max()
    evidence = (
        f"n = {int(most.sum()):,} executions of {rows['benchmark_type'].nunique():,} benchmarks on "
        f"{rows['node'].nunique():,} nodes"
    )
    shown = pd.DataFrame(
        {
            "benchmark": [str(one).partition("@")[0] + f" {metric}" for one, metric in
                          zip(rows["benchmark_type"], rows["metric"], strict=True)],
            "spread": rows["cv"].to_numpy(dtype=float),
            "node": [node_name(row) for row in records(rows)],
        }
    )  # fmt: skip
    draw = partial(charts.dots, charts.sampled(shown, MOST_POINTS), Axis("spread", "spread", "share"), "benchmark")
    return figure("reruns", "Spread by benchmark", words, evidence, draw if len(rows) else None, "")


def decisions_table(rows: pd.DataFrame, name: str) -> Table:
    """What became of each metric; rows: as in nodes.decisions."""
    columns = (
        Column("metric", "metric"),
        Column("benchmark_type", "benchmark"),
        Column("unit_words", "unit"),
        *numbers(("n_values", "values", count), ("dispersion", "varies by", share)),
        Column("decision", "kept or dropped"),
        Column("direction", "counts as"),
        Column("orientation_from", "said by"),
        Column("rule", "the paper's rule"),
        Column("without", "without stressed"),
    )
    found = [
        row
        | {"unit_words": row["unit"] + (f" (written {row['unit_written']})" if row["unit_written"] else "")}
        | {"decision": sentence(decision(row) + (f"; {row['note']}" if row["note"] else ""))}
        | {"direction": counts_as(row), "rule": agreement(row["agrees"]), "without": agreement_without(row)}
        for row in records(rows)
    ]
    return Table("", "", columns, found, name=name)


def _counts(decisions: pd.DataFrame) -> str:
    """How many metrics there are beside the paper's, and how the paper's rule of orientation does."""
    if decisions.empty:
        return ""
    told = decisions[decisions["agrees"].notna()]
    silent = int((told["agrees"] == False).sum())  # noqa: E712  (a column of truths and missing ones)
    both = decisions[decisions["rule_with_stressed"].notna() & decisions["rule_without_stressed"].notna()]
    turned = int((both["rule_with_stressed"] != both["rule_without_stressed"]).sum())
    return (
        f"{len(decisions):,} metrics were recorded and {int(decisions['is_kept'].sum()):,} are kept (a metric of two "
        f"benchmarks counts twice); the paper recorded {PAPER_RECORDED} and kept {PAPER_KEPT}. The paper's rule of "
        f"orientation contradicts what is declared in {silent:,} of {len(told):,} metrics of which both are known, and "
        f"says something else without the stressed executions in {turned:,} of {len(both):,}."
    )


def _benchmarks(data: NodesData) -> Section:
    columns = (
        Column("name", "benchmark"),
        Column("aspect", "aspect"),
        *numbers(("n_executions", "executions", count), ("n_nodes", "nodes", count), ("duration_s", "takes", duration)),
        *numbers(("n_values", "metrics", number), ("n_missing", "metrics not found", number)),
    )
    rows = [
        row | {"name": type_name(str(row["benchmark"]), str(row["template_hash"]))} for row in records(data["types"])
    ]
    words = "A benchmark with another template is another benchmark: never compared. Duration and metrics: medians."
    return Section(
        "Benchmarks", words, f"data version {data.data_version}", tables=(Table("", "", columns, rows, "benchmarks"),)
    )


def _evaluated(data: NodesData) -> Section:
    from tasks.report.nodes_evaluation import figure_rows, figures_table

    figures: dict[str, Any] = {}
    for key, value, reason in data["evaluation"].itertuples(index=False):
        figures |= {key: float(value)} if pd.notna(value) else {key: None, f"{key}.reason": reason}
    version = str(data["basis"]["evaluated_version"].iloc[0]) if len(data["basis"]) else ""
    changed = "; the source has changed since" if version != data.data_version else ""
    rows = figure_rows(figures)
    return Section(
        "What the last evaluation measured", "", f"data version {version}{changed}", tables=(figures_table(rows),)
    )


def _place(place: Any, is_tied: Any) -> str:
    return MISSING if is_missing(place) else f"{int(place)}{' tied' if is_true(is_tied) else ''}"


def _score(row: Mapping[Any, Any]) -> Cell:
    if is_missing(row["score"]):
        return NOTHING
    told = interval(row)
    return Cell(ratio(float(row["score"])), (told,) if told else (), value=float(row["score"]))


def _beside(row: Mapping[Any, Any]) -> Cell:
    plain = "not ranked" if is_missing(row["plain_score"]) else ratio(float(row["plain_score"]))
    return Cell(ratio(float(row["score"])), (f"plain: {plain}",), value=float(row["score"]))


ITEM_COLUMNS = ("started_at", "benchmark", "probability", "is_flagged")


def item_chart() -> charts.Chart:
    """The chart of the verdicts on one node over time, with one row that stands for all."""
    row = {"started_at": pd.Timestamp(0), "benchmark": "", "probability": 0.5, "is_flagged": False}
    started = Axis("started_at", "started (UTC)", "time")
    words = ("not flagged", "flagged")
    return charts.timeline(
        pd.DataFrame([row]), started, "benchmark", marked="is_flagged", words=words, strength="probability"
    )


def node_items(connection: Connection, data: NodesData) -> Iterator[tuple[str, Result]]:
    """Each node with its result: scores, states, verdicts over time, and the metrics that speak most against it."""
    verdicts = connection.execute(VERDICTS, {"source": data.source, "most": MOST_OF_NODE}).df()
    reasons = connection.execute(REASONS, {"source": data.source, "ids": None}).df()
    over_time, why = dict(list(verdicts.groupby("node"))), dict(list(reasons.groupby("node")))
    for row in records(data["nodes"]):
        node = str(row["node"])
        yield node, _item(data, row, over_time.get(node), why.get(node))


def _item(data: NodesData, row: Mapping[Any, Any], verdicts: pd.DataFrame | None, why: pd.DataFrame | None) -> Result:
    node, name = str(row["node"]), node_name(row)
    states, scores = (data[table][data[table]["node"] == node] for table in ("states", "scores"))
    bad = states[states["state"].isin(("confirmed", "suspected"))]
    slow = [one for one in records(data["watched"]) if str(one["node"]) == node]
    if len(bad):
        told = "; ".join(f"{one['state']} in {one['aspect']} since {moment(one['since'])} UTC" for one in records(bad))
        answer, state = f"{name} needs looking at: {told}.", "look"
    elif len(states):
        answer, state = f"{name} is healthy in {len(states)} aspects.", "good"
    else:
        answer, state = f"Nobody has watched {name} yet.", "unknown"
    first = scores[scores["aspect"] == OVERALL]
    facts = [Fact("nodes.item.n_executions", int(row["n_executions"]), "executions", count)]
    if len(first):
        one = first.iloc[0]
        facts.append(Fact("nodes.item.rank", _place(one["rank"], one["is_tied"]), f"place of {len(data.best):,}"))
        facts.append(Fact("nodes.item.score", float(one["score"]), f"score, {interval(dict(one))}", ratio))
    heads = ("score", "place", "executions")
    by_aspect = [
        Row(
            aspect_name(str(one["aspect"])),
            (_score(one), Cell(_place(one["rank"], one["is_tied"])), Cell(count(one["n_executions"]))),
        )
        for one in records(scores)
    ]
    sections = [Section("Scores by aspect", tables=(cell_table("aspect", heads, by_aspect),), is_open=True)]
    if verdicts is not None:
        seen = verdicts.assign(is_flagged=verdicts["is_flagged"].map(lambda one: "flagged" if one else "not flagged"))
        n = f"n = {len(seen):,} latest executions"
        words = "A mark is an execution, stronger in colour where it more probably is degraded."
        shown = Figure("verdicts", "Verdicts over time", words, n, use="verdicts", data=seen[list(ITEM_COLUMNS)])
        sections.append(Section("Verdicts over time", figures=(shown,), is_open=True))
    if why is not None and len(why):
        counted = why.groupby("metric").agg(n=("execution_id", "nunique"), deviation=("deviation", "median"))
        rows = records(counted.sort_values(["n", "deviation"], ascending=False).head(20).reset_index())
        columns = (
            Column("metric", "metric"),
            *numbers(("n", "executions", count), ("deviation", "median deviations", number)),
        )
        sections.append(Section("What speaks against it", tables=(Table("", "", columns, rows),), is_open=True))
    if len(states):
        sections.append(Section("States", tables=(states_table(states),)))
    reasons = tuple(f"{share(one['low_share'])} of its executions slow: {slow_time(one) or 'none'}" for one in slow)
    return Result(name, answer, "", reasons, facts=tuple(facts), sections=tuple(sections), state=state)  # type: ignore[arg-type]
