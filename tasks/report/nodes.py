"""What is known of the nodes of a source: which are degrading, how good each is, and what that rests on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tasks.nodes import node_words
from tasks.nodes.history import is_simulated_source
from tasks.nodes.type_tables import HASH_DIGITS
from tasks.quantities import MISSING, digits, duration, is_missing, number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.intake import IntakeRows, fetch_intake, intake_sections
from tasks.report.nodes_evaluation import detectors_table, rank_table, summary_words
from tasks.report.nodes_tables import (
    OVERALL,
    aspect_name,
    decisions_table,
    named,
    node_name,
    ranking_figure,
    states_table,
)
from tasks.report.result import (
    NOTHING,
    Cell,
    Column,
    Fact,
    Figure,
    Result,
    Section,
    State,
    Table,
    alone,
    cell_table,
    count,
    moment,
    records,
    sentence,
    table,
)
from tasks.warehouse.connection import Connection

WORD = "nodes"
MOST_SHOWN = 12  # nodes of the figure
MOST_FLAGGED, MOST_OF_NODE = 200, 300  # executions in a list; of a node over time
MOST_REASONS, MOST_METRICS = 3, 20
FRESH = "A fresh benchmark there confirms the alarm or clears it"
STATES = ("confirmed", "suspected", "cleared", "healthy")
METHOD = (
    "Benchmarks and preprocessing after Scheinert et al., Perona: Robust Infrastructure Fingerprinting for "
    "Resource-Efficient Big Data Analytics, 2022; where they differ, tasks/nodes/README.md says why. Scores are plain "
    "ratios, except those by fingerprint: these are of the network of the paper."
)
SCORES_WORDS = (
    "Scores are geometric means of a node's metrics as ratios to the reference fleet, each turned so that more is "
    "better: 1 is the reference, 2 is twice as good; below them their intervals."
)
WATCHED_WORDS = (
    "One flagged execution is no alarm: several of the last ones make a node suspected, and it is asked for a "
    "fresh benchmark. What it runs next confirms the alarm or clears it; a confirmed node is to be left out."
)
FLAGGED_WORDS = (
    "Each is judged by how far its metrics lie from what its node did before. A reason is a metric that is worse than "
    "usual, in its usual deviations."
)
FINGERPRINT_WORDS = (
    "A score by fingerprints is the norm of a node's encoded executions as a ratio to the reference fleet, by the "
    "executions that were not flagged; a plain score is the geometric mean of its metrics. Both are 1 at the "
    "reference and 2 where twice as good."
)
SLOW = (
    "Executions below the level that the node has shown, or that of the other nodes of its machine type, by 3.5 robust "
    "deviations and 10 % (beside others 20 %); those stressed on purpose or disturbed are left out"
)
RERUNS_WORDS = (
    "The difference between two executions of the same benchmark on the same node that chance alone makes, as a "
    "share of the median, and how many executions of each it takes to tell two nodes apart that differ by so much."
)
BENCHMARKS_WORDS = (
    "A benchmark with another template is another benchmark: never compared. Duration and metrics: medians."
)
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
    "scores": """
SELECT aspect, node, machine_type, score, low, high, rank, is_tied, n_executions, shared,
    shared_place, coalesce(lacks, '') AS lacks, model_id, scored_at
FROM nodes.scores WHERE source = $source
ORDER BY aspect <> 'all', aspect, rank, score DESC, node
""",
    "decisions": """
SELECT * FROM nodes.decisions WHERE source = $source AND model_id = (
    SELECT model_id FROM ops.champions WHERE word = 'nodes' AND source = $source AND kind = 'preprocessor'
    ORDER BY sequence DESC LIMIT 1
) ORDER BY benchmark_type, NOT is_kept, metric
""",
    "repeatability": """
SELECT * FROM nodes.repeatability WHERE source = $source ORDER BY NOT is_counted, aspect, benchmark_type, metric, node
""",
    "watched": "SELECT * FROM nodes.watched WHERE source = $source ORDER BY place",
    "evaluation": "SELECT key, value, reason FROM nodes.evaluation_figures WHERE source = $source ORDER BY key",
    "judgings": "SELECT * FROM nodes.judgings WHERE source = $source",
    "fingerprintings": "SELECT * FROM nodes.fingerprintings WHERE source = $source",
    "flagged": """
SELECT execution_id, node, benchmark, coalesce(template_hash, '') AS template_hash, started_at,
    probability, is_stressed, is_contaminated
FROM nodes.verdicts JOIN nodes.executions USING (source, execution_id)
WHERE source = $source AND is_flagged ORDER BY started_at DESC NULLS FIRST, execution_id LIMIT $most
""",
    "known": """
SELECT count(*) FILTER (is_stressed) AS n_stressed, count(*) FILTER (is_stressed AND is_flagged) AS n_found,
    count(*) FILTER (NOT is_stressed) AS n_calm, count(*) FILTER (NOT is_stressed AND is_flagged) AS n_false
FROM nodes.verdicts JOIN nodes.executions USING (source, execution_id)
WHERE source = $source AND probability IS NOT NULL
""",
    "states": node_words.STATES,
    "ranked": """
SELECT own.aspect, own.node, own.machine_type, own.rank, own.is_tied, own.score, own.low,
    own.high, own.n_executions, plain.rank AS plain_rank, plain.is_tied AS plain_is_tied, plain.score AS plain_score,
    plain.low AS plain_low, plain.high AS plain_high
FROM nodes.fingerprint_scores AS own
    LEFT JOIN nodes.scores AS plain
        ON plain.source = own.source AND plain.aspect = own.aspect AND plain.node = own.node
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
OF_NODES = ("scores", "repeatability", "watched", "flagged", "states", "ranked")  # tables with a column of nodes
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
class NodesData(IntakeRows):
    """Tables of one source by their names in TABLES; they are empty where their step has not been taken yet.

    reasons: of the flagged executions, the most telling first."""

    is_simulated: bool
    tables: dict[str, pd.DataFrame]
    reasons: pd.DataFrame

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self.tables[name]

    @property
    def ranked_version(self) -> str:
        """Of the files that ranking and repeatability rest on; empty where nobody kept it."""
        basis = self["basis"]["ranked_version"]
        return str(basis.iloc[0]) if len(basis) else ""

    @property
    def n_executions(self) -> int:
        """Of all nodes."""
        return int(self["nodes"]["n_executions"].sum())

    @property
    def is_outdated(self) -> bool:
        """Whether ranking and repeatability are of other data than the source has now."""
        return self.ranked_version not in ("", self.data_version)

    @property
    def best(self) -> pd.DataFrame:
        """The nodes by their one number, the best first."""
        scores = self["scores"]
        return scores[scores["aspect"] == OVERALL]


def fetch_nodes(connection: Connection, source: str) -> NodesData:
    """Everything that the result needs.

    Raises NotFound if the source has no executions, BadInput if it mixes simulated with measured ones."""
    is_simulated = is_simulated_source(connection, source)
    tables = {
        name: connection.execute(sql, {"source": source} | ({"most": MOST_FLAGGED} if "$most" in sql else {})).df()
        for name, sql in TABLES.items()
    }
    emulated = tables["nodes"].set_index("node")["is_emulated"]  # where any of its executions is
    for name in OF_NODES:
        tables[name] = tables[name].assign(is_emulated=tables[name]["node"].map(emulated))
    ids = tables["flagged"]["execution_id"].tolist()
    reasons = connection.execute(REASONS, {"source": source, "ids": ids}).df()
    return NodesData(**vars(fetch_intake(connection, WORD, source)), is_simulated=is_simulated, tables=tables,
                     reasons=reasons)  # fmt: skip


def type_name(row: Mapping[Any, Any]) -> str:
    """A benchmark type: the benchmark with the first digits of its template's hash, where it has one."""
    template = str(row["template_hash"])
    return f"{row['benchmark']}@{template[:HASH_DIGITS]}" if template else str(row["benchmark"])


def nodes_result(data: NodesData, item: str = "") -> Result:
    """All that is known of the nodes of a source. item: address of the pages of single nodes."""
    rests_on = f"data version {data.data_version}, {data.n_executions:,} executions"
    parts = {"facts": _facts(data), "notices": _notices(data), "sections": _sections(data, item)}
    return data.result(_answer(data), _certainty(data), rests_on, METHOD, reasons=_reasons(data), **parts)


def _answer(data: NodesData) -> tuple[str, str, State]:
    """The verdict, what to do, and whether somebody has to look: by watching, else by slow executions."""
    states, watch = data["states"], data.command("watch")
    if out := excluded_nodes(states):
        words = f"Leave out {'; '.join(out)}: its degradation is confirmed."
        return words, "Run no work there until it is repaired.", "look"
    suspected = named(states[states["state"] == "suspected"])
    if suspected:
        suspects = "; ".join(f"{row['name']} in {row['aspect']}, since {moment(row['since'])} UTC" for row in suspected)
        why = data.command("explain", str(suspected[0]["node"]))
        action = f"Why: {why}. {FRESH} ({data.command('record')})."
        return f"Suspected to be degrading: {suspects}.", action, "look"
    if len(states):
        return f"No node of {data.source} is degrading: {counted_states(states)} nodes and aspects.", "", "good"
    if data["watched"].empty:
        return "No node was judged yet.", f"Rank them: {data.command('rank')}.", "unknown"
    if slow := [row["name"] for row in named(data["watched"]) if node_words.is_true(row["stands_out"])]:
        return f"Many slow executions on {', '.join(slow)}.", f"Have it watched: {watch}.", "look"
    words = f"No node of {data.source} stands out by slow executions."
    return words, f"Nobody has watched these nodes yet: {watch}.", "unknown"


def _certainty(data: NodesData) -> str:
    budgets = data["judgings"]["alarms_per_day"].dropna()
    shown = [number(float(per_day)) for per_day in budgets]
    parts = [f"To be expected over all nodes: about {n} false alarm{'' if n == '1' else 's'} a day." for n in shown]
    return " ".join([*parts, known_words(data["known"])]).strip()


def _reasons(data: NodesData) -> Iterator[str]:
    if len(data.best):
        names = {str(row["node"]): row["name"] for row in named(data.best)}
        first = [str(node) for node in data.best["node"][data.best["rank"] == 1]]
        best, places = node_words.best_words(first, len(data.best), names), node_words.placed_by(data["scores"])
        yield f"Best: {sentence(best)}. Places: {places}."
        if behind := node_words.behind_words(data["scores"].to_dict("records"), names):
            yield f"Far behind: {behind}."
    if rows := named(data["watched"]):
        names = {str(row["node"]): row["name"] for row in rows}
        yield f"By slow executions: {sentence(node_words.standing_out(rows, names))}."
    if len(data["states"]):
        yield cost_words(data["states"])


def _facts(data: NodesData) -> Iterator[Fact]:
    n_stressed, n_nodes = int(data["nodes"]["n_stressed"].sum()), len(data["nodes"])
    stressed = f", {n_stressed:,} of them stressed on purpose" if n_stressed else ""
    yield Fact("nodes.n_executions", data.n_executions, f"executions of {len(data['types']):,} benchmarks{stressed}",
               count)  # fmt: skip
    yield Fact("nodes.n_nodes", n_nodes, "node" if n_nodes == 1 else "nodes", count)
    first = named(data.best[data.best["rank"] == 1])
    if first:
        names = ", ".join(row["name"] for row in first[:3])
        yield Fact("nodes.best_score", float(first[0]["score"]), f"best score: {names}", digits)
    for row in records(data["judgings"]):
        yield Fact("nodes.n_flagged", int(row["n_flagged"]), f"of {row['n_judged']:,} executions flagged", count)
    if n := len(data["decisions"]):
        yield Fact("nodes.metrics_kept", int(data["decisions"]["is_kept"].sum()), f"of {n:,} metrics kept", count)


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
        for version in data[name]["data_version"]:
            if version != data.data_version:
                again = data.command("fingerprint")
                yield f"Older data: {verb} was asked about data version {version}; {again} asks it again."
    if line := node_words.left_out(int(data["basis"]["n_left_out"].sum()), data.source):
        yield f"Left out: {line}."


def _sections(data: NodesData, item: str) -> Iterator[Section]:
    ranked, decisions, states = f"data version {data.ranked_version or 'not kept'}", data["decisions"], data["states"]
    if len(data.best):
        shown = data["scores"][data["scores"]["node"].isin(data.best["node"].head(MOST_SHOWN))]
        yield alone(ranking_figure(shown), ranked, is_open=True)
    evidence = f"n = {data.n_executions:,} executions, {ranked}"
    yield Section("Nodes", SCORES_WORDS, evidence, tables=(_nodes_table(data, item),), is_open=True)
    words, evidence = WATCHED_WORDS, ""
    if len(states):
        out = "; ".join(excluded_nodes(states)) or "none"
        words += f" {counted_states(states)}. To be left out: {out}."
        watched_at, model_id = states[["watched_at", "model_id"]].iloc[0]
        evidence = f"nodes and aspects, watched {moment(watched_at)} (UTC) by model {model_id}"
    yield Section(
        "Which nodes are degrading", words, evidence, tables=(states_table(states, item),),
        nothing=f"Nobody has watched these nodes yet: {data.command('watch')}.",
        is_open=bool(len(states)) and bool((states["state"] != "healthy").any()),
    )  # fmt: skip
    yield _flagged(data, item)
    if len(data["ranked"]):
        yield _fingerprints(data)
    yield _reruns(data, ranked, item)
    yield Section(
        "Metrics: kept or dropped, and why", "",
        f"model {decisions['model_id'].iloc[0]}" if len(decisions) else "", tables=(decisions_table(decisions),),
        nothing=f"Nothing has been decided yet: {data.command('preprocess')}.",
    )  # fmt: skip
    benchmarks = table(
        [row | {"name": type_name(row)} for row in records(data["types"])],
        ("name", "benchmark"), ("aspect", "aspect"), ("n_executions", "executions", count), ("n_nodes", "nodes", count),
        ("duration_s", "takes", duration), ("n_values", "metrics", number), ("n_missing", "metrics not found", number),
        name="benchmarks",
    )  # fmt: skip
    yield Section("Benchmarks", BENCHMARKS_WORDS, f"data version {data.data_version}", tables=(benchmarks,))
    if len(data["evaluation"]):
        yield _evaluated(data)
    yield from intake_sections(data, "No alarm yet", item)


def _nodes_table(data: NodesData, item: str) -> Table:
    """A row a node: its place, its state, its scores and what was recorded on it."""
    scores, states = data["scores"], data["states"]
    cells = {(row["node"], row["aspect"]): _score(row) for row in records(scores)}
    best, slow = ({str(row["node"]): row for row in records(each)} for each in (data.best, data["watched"]))
    worst = states.drop_duplicates("node").set_index("node")["state"].to_dict()
    aspects = [str(each) for each in scores["aspect"].unique()]
    rows = []
    for row in named(data["nodes"], item):
        node = str(row["node"])
        first = best.get(node, {})
        lacks = (f"did not run {first['lacks']}",) if first.get("lacks") else ()
        place = Cell(_place(first.get("rank"), first.get("is_tied")), lacks, value=first.get("rank"))
        row |= {"state": worst.get(node), "rank": place, "shared": first.get("shared")}
        row |= {aspect: cells.get((node, aspect), NOTHING) for aspect in aspects}
        rows.append(row | {key: slow.get(node, {}).get(key) for key in ("n_low", "worst_type")})
    rows.sort(key=lambda row: (row["rank"].value is None, row["rank"].value or 0))
    shared = [("shared", "shared component", number)] if data.best["shared"].notna().any() else []
    return table(
        rows,
        ("name", "node"), Column("state", "state", meaning="Of the aspect that most needs looking at"),
        Column("rank", "place", kind="number"), *shared,
        *(Column(aspect, aspect_name(aspect), kind="number") for aspect in aspects),
        Column("n_low", "slow", count, kind="number", meaning=SLOW), ("n_executions", "executions", count),
        ("n_stressed", "stressed", count), ("n_contaminated", "disturbed", count), ("n_failed", "failed", count),
        ("machine_type", "machine type"), ("worst_type", "slow most in"), ("first_at", "first (UTC)", moment),
        ("last_at", "last (UTC)", moment), name="list",
    )  # fmt: skip


def counted_states(states: pd.DataFrame) -> str:
    """How many nodes and aspects are in each state, those that need looking at first."""
    counts = states["state"].value_counts()
    return ", ".join(f"{int(counts.get(state, 0)):,} {state}" for state in STATES)


def excluded_nodes(states: pd.DataFrame) -> list[str]:
    """Each node that is to be left out, with the aspects in which that is confirmed."""
    out = states[states["is_excluded"].map(node_words.is_true).astype(bool)]
    confirmed = states[states["state"] == "confirmed"].groupby("node")["aspect"].agg(lambda one: ", ".join(sorted(one)))
    rows = named(out.drop_duplicates("node").sort_values("node"))
    return [row["name"] + (f" ({confirmed[row['node']]})" if row["node"] in confirmed.index else "") for row in rows]


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


def _flagged(data: NodesData, item: str) -> Section:
    """The latest flagged executions, with the metrics that say so."""
    n_judged, n_flagged = (int(data["judgings"][name].sum()) for name in ("n_judged", "n_flagged"))
    evidence = "".join(
        f"{n_flagged:,} of {n_judged:,} executions are flagged, by model {row['model_id']}, data version "
        f"{row['data_version']}"
        for row in records(data["judgings"])
    )
    reasons: dict[str, list[str]] = {}
    for row in records(data.reasons):
        reasons.setdefault(str(row["execution_id"]), []).append(node_words.reason_of_row(row).words())
    rows = [
        row | {"type": type_name(row), "known": _known(row)}
        | {"because": _first_of(reasons.get(str(row["execution_id"]), []))}
        for row in named(data["flagged"], item)
    ]  # fmt: skip
    most = f"The latest {len(rows):,}; all are in the warehouse, nodes.verdicts." if n_flagged > MOST_FLAGGED else ""
    shown = table(
        rows, ("name", "node"), ("type", "benchmark"), ("started_at", "started (UTC)", moment),
        ("probability", "probability", share), ("because", "it shows in"), ("known", "known of it"), name="flagged",
        more=most,
    )  # fmt: skip
    nothing = (
        f"No detector has been asked about this source yet: {data.command('train')} makes one, "
        f"{data.command('fingerprint')} asks it, and {data.command('watch')} says which nodes are degrading."
    )
    nothing = "None is flagged." if n_judged else nothing
    return Section("Flagged executions, and why", FLAGGED_WORDS, evidence, tables=(shown,), nothing=nothing)


def _first_of(reasons: Sequence[str]) -> str:
    more = len(reasons) - MOST_REASONS
    words = "; ".join(reasons[:MOST_REASONS]) or node_words.NO_REASON
    return words + (f"; and {more} more" if more > 0 else "")


def _known(row: Mapping[Any, Any]) -> str:
    if node_words.is_true(row["is_contaminated"]):
        return "disturbed by others"
    if is_missing(row["is_stressed"]):
        return MISSING
    return "stressed on purpose" if row["is_stressed"] else "not stressed"


def known_words(known: pd.DataFrame) -> str:
    """How the flags fit what is known of these executions; empty where nobody says which were stressed."""
    if known.empty or not known["n_stressed"].iloc[0]:
        return ""
    stressed, hits, calm, wrong = (
        f"{int(known[name].iloc[0]):,}" for name in ("n_stressed", "n_found", "n_calm", "n_false")
    )
    return (
        f"Of {stressed} executions that were stressed on purpose {hits} are flagged, of {calm} others {wrong}. The "
        "detector learned from these; how well it tells those that it has not seen is what its training says."
    )


def _fingerprints(data: NodesData) -> Section:
    ranked, latest = data["ranked"], data["fingerprintings"].iloc[0]
    made_of = f"model {latest['model_id']}, data version {latest['data_version']}"
    aspects = [str(aspect) for aspect in ranked["aspect"].unique() if aspect != OVERALL]
    cells = {(row["node"], row["aspect"]): _beside(row) for row in records(ranked)}
    rows = [
        row | {"place": Cell(_place(row["rank"], row["is_tied"]), value=row["rank"]), "own": _score(row)}
        | {"plain_place": _place(row["plain_rank"], row["plain_is_tied"])}
        | {"plain": _score({end: row[f"plain_{end}"] for end in ("score", "low", "high")})}
        | {aspect: cells.get((row["node"], aspect), NOTHING) for aspect in aspects}
        for row in named(ranked[ranked["aspect"] == OVERALL])
    ]  # fmt: skip
    shown = table(
        rows, ("name", "node"), ("machine_type", "machine type"), ("place", "place", "number"),
        ("own", "score", "number"), ("plain_place", "plain place", "number"), ("plain", "plain score", "number"),
        *((aspect, aspect, "number") for aspect in aspects),
    )  # fmt: skip
    evidence = f"n = {latest['n_fingerprints']:,} fingerprints of {latest['n_executions']:,} executions, {made_of}"
    return Section("By fingerprint, beside the plain ranking", FINGERPRINT_WORDS, evidence, tables=(shown,))


def _reruns(data: NodesData, ranked: str, item: str) -> Section:
    counted = data["repeatability"]
    counted = counted[counted["is_counted"]] if len(counted) else counted
    shown = table(
        named(counted, item), ("benchmark_type", "benchmark"), ("metric", "metric"), ("name", "node"),
        ("n_runs", "executions", number), ("cv", "spread", share), ("rerun_median", "a rerun differs by", share),
        ("rerun_p90", "in one of ten by", share), ("runs_for_5", "runs to see 5 %", count),
        ("runs_for_10", "runs to see 10 %", count), title="How much a rerun differs", name="reruns",
    )  # fmt: skip
    return Section(
        "How repeatable each benchmark is", RERUNS_WORDS, f"executions that were not stressed, {ranked}",
        tables=(shown,),
        nothing=f"No benchmark ran often enough on any node to say how much a rerun differs: {data.command('rank')}.",
    )  # fmt: skip


def _evaluated(data: NodesData) -> Section:
    figures: dict[str, Any] = {}
    for key, value, reason in data["evaluation"].itertuples(index=False):
        figures |= {key: float(value)} if pd.notna(value) else {key: None, f"{key}.reason": reason}
    version = "".join(map(str, data["basis"]["evaluated_version"]))
    evidence = f"data version {version}" + ("" if version == data.data_version else "; the source has changed since")
    tables = (detectors_table(figures), rank_table(figures))
    return Section("What the last evaluation measured", summary_words(figures), evidence, tables=tables)


def _place(place: Any, is_tied: Any) -> str:
    return MISSING if is_missing(place) else f"{int(place)}{' tied' if node_words.is_true(is_tied) else ''}"


def _score(row: Mapping[Any, Any]) -> Cell:
    if is_missing(row["score"]):
        return NOTHING
    interval = node_words.interval(row)
    return Cell(ratio(float(row["score"])), (interval,) if interval else (), value=float(row["score"]))


def _beside(row: Mapping[Any, Any]) -> Cell:
    """A score by fingerprint with the plain one below it."""
    plain = "not ranked" if is_missing(row["plain_score"]) else ratio(float(row["plain_score"]))
    return Cell(ratio(float(row["score"])), (f"plain: {plain}",), value=float(row["score"]))


ITEM_COLUMNS = ("started_at", "benchmark", "probability", "verdict")
FLAGGED = {"not flagged": charts.BLUE, "flagged": charts.ORANGE}


def item_chart() -> charts.Chart:
    """The chart of the verdicts on one node over time, with one row that stands for all."""
    row = dict(zip(ITEM_COLUMNS, (pd.Timestamp(0), "", 0.5, ""), strict=True))
    started, frame = Axis("started_at", "started (UTC)", "time"), pd.DataFrame([row])
    return charts.timeline(frame, started, "benchmark", "verdict", FLAGGED, "probability")


def node_items(connection: Connection, data: NodesData) -> Iterator[tuple[str, Result]]:
    """Each node with its result: scores, states, verdicts over time, and the metrics that speak most against it."""
    verdicts = connection.execute(VERDICTS, {"source": data.source, "most": MOST_OF_NODE}).df()
    reasons = connection.execute(REASONS, {"source": data.source, "ids": None}).df()
    verdicts["verdict"] = verdicts.pop("is_flagged").map(dict(zip((False, True), FLAGGED, strict=True)))
    columns, over_time = charts.parts_of(verdicts, "node")
    why = dict(list(reasons.groupby("node")))
    for row in named(data["nodes"]):
        rows, seen = over_time.get(str(row["node"]), []), None
        if rows:
            words = "A mark is an execution, stronger in colour where it more probably is degraded."
            seen = Figure("verdicts", "Verdicts over time", words, f"n = {len(rows):,} latest executions",
                          use="verdicts", columns=columns, rows=rows)  # fmt: skip
        yield str(row["node"]), _item(data, row, seen, why.get(row["node"]))


def _item(data: NodesData, row: Mapping[Any, Any], seen: Figure | None, why: pd.DataFrame | None) -> Result:
    name = row["name"]
    state: State
    states, scores, slow = (
        data[entry][data[entry]["node"] == row["node"]] for entry in ("states", "scores", "watched")
    )
    bad = records(states[states["state"].isin(node_words.GOING_ON)])
    degrading = "; ".join(f"{entry['state']} in {entry['aspect']} since {moment(entry['since'])} UTC" for entry in bad)
    answer, state = f"Nobody has watched {name} yet.", "unknown"
    if bad:
        answer, state = f"{name} needs looking at: {degrading}.", "look"
    elif len(states):
        answer, state = f"{name} is healthy in {len(states)} aspects.", "good"
    facts = [Fact("nodes.item.n_executions", int(row["n_executions"]), "executions", count)]
    for entry in records(scores[scores["aspect"] == OVERALL]):
        facts.append(Fact("nodes.item.rank", _place(entry["rank"], entry["is_tied"]), f"place of {len(data.best):,}"))
        facts.append(Fact("nodes.item.score", float(entry["score"]), f"score, {node_words.interval(entry)}", ratio))
    by_aspect = [
        (
            Cell(aspect_name(str(entry["aspect"]))),
            _score(entry),
            Cell(_place(entry["rank"], entry["is_tied"])),
            Cell(count(entry["n_executions"])),
        )
        for entry in records(scores)
    ]
    shown = cell_table("aspect", ("score", "place", "executions"), by_aspect)
    sections = [Section("Scores by aspect", tables=(shown,), is_open=True)]
    if seen is not None:
        sections.append(alone(seen, is_open=True))
    if why is not None:
        counted = why.groupby("metric").agg(n=("execution_id", "nunique"), deviation=("deviation", "median"))
        most = counted.sort_values(["n", "deviation"], ascending=False).head(MOST_METRICS).reset_index()
        against = table(
            records(most), ("metric", "metric"), ("n", "executions", count), ("deviation", "median deviations", number)
        )
        sections.append(Section("What speaks against it", tables=(against,), is_open=True))
    sections.append(Section("States", tables=(states_table(states),)))
    reasons = (
        f"{share(entry['low_share'])} of its executions slow: {node_words.slow_time(entry) or 'none'}"
        for entry in records(slow)
    )
    action = f"Why: {data.command('explain', str(row['node']))}. {FRESH} ({data.command('record')})." if bad else ""
    return Result(
        name, answer, "", tuple(reasons), facts=tuple(facts), sections=tuple(sections), state=state, action=action
    )
