"""`whorl nodes`: nodes recorded, read, summarised, preprocessed, ranked."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from flows.cli.invocation import Invocation, Output, progress_bar, run_flow, source_with_rows
from flows.cli.output import as_command, moment, say, show_described, show_facts, show_table
from flows.cli.reading import ingesting, read_results, show_read, totals
from tasks.choices import AUTO, DEFAULT_SOURCE, NodeReader, checked_source, intake_reader
from tasks.errors import NotFound
from tasks.nodes.node_words import (
    DETECTOR,
    HOW_TO_DATE,
    KIND,
    behind_words,
    best_words,
    called,
    degrading_words,
    interval,
    left_out,
    placed_by,
    shared_words,
    standing_out,
)
from tasks.quantities import MISSING, counted, duration, ratio, share
from tasks.report.result import Column, as_text, columns, count, extra, records

if TYPE_CHECKING:
    import pandas as pd

    from tasks.nodes.record.params import RecordParams
    from tasks.warehouse.place import Warehouse


def source_with_executions(warehouse: "Warehouse", source: str | None) -> str:
    """As source_with_rows; it must have executions, so that this is told before Prefect is started.

    Raises BadInput if simulated executions stand among measured ones."""
    from tasks.nodes.history import version_of

    source_name = source_with_rows(warehouse, source, "nodes")
    version_of(warehouse, source_name)
    return source_name


def source_with_detector(warehouse: "Warehouse", source: str | None) -> str:
    """As source_with_executions; raises NotFound too if it has no detector."""
    from tasks.nodes.verdict_steps import require_detector

    source_name = source_with_executions(warehouse, source)
    require_detector(warehouse, source_name)
    return source_name


def record(call: Invocation, source: str | None = None, out: Path | None = None, dry_run: bool = False) -> Output:
    """Run standard benchmarks and record them with the machine's own metrics.

    Without a campaign (--runs) it completes what the node lacks, then repeats what is doubtful or stalest. Needs the
    six tools, and root for emulated nodes. Prints the folder of the recording.

    --node (str .record.node): Name of this machine as a node; otherwise its host name
    --benchmark, -b NAME (strs .record.benchmarks): Only this one; may be repeated
    --runs (int .record.runs): A campaign: executions of each benchmark on each node; 0: what is lacking or stalest
    --executions (int .record.executions): Executions of this call without a campaign
    --minutes (float .record.minutes): How long executions are started; the next call with the same folder goes on
    --place (local|emulated .record.place): This machine as it is, or emulated nodes on it
    --profile (short|paper .record.profile): short: 2 s a benchmark; paper: 30 s
    --stressed (float .record.stressed_ratio): Share of a campaign's executions under stress, 0 to 0.5
    --seed (int .record.seed): Decides the order of a campaign, and what is stressed
    --source, -s: Put it into the landing folder under this name, for ingest
    --out: Folder of the recording; otherwise <home>/recordings/nodes
    --dry-run: Only say what a campaign would run"""
    settings = call.settings
    if dry_run:
        yield from show_plan(call, settings.nodes.record)
        return
    from tasks.nodes.record.campaign import runnable

    runnable(settings.nodes.record)
    parameters = {"source": checked_source(source)} if source is not None else {}
    folder = out.absolute() if out else settings.warehouse.home / "recordings" / "nodes"
    landing = settings.warehouse.landing_folder if source is not None else ""
    recording = run_flow(call, "nodes-record", folder=str(folder), landing=landing, **parameters)
    yield recording
    print(recording["folder"])
    done = (
        f", {recording['n_clean']:,} of {recording['n_planned']:,} undisturbed so far" if recording["n_planned"] else ""
    )
    call.note(f"recorded {counted(recording['n_new'], 'execution')}{done}")
    for name, faults in recording["unavailable"].items():
        call.note(f"{name}: {'; '.join(faults)}")
    call.note(f"the sampler itself took {share(recording['sampler_cores'])} of one core")
    if recording["n_failed"]:
        call.note(f"{counted(recording['n_failed'], 'execution')} could not be run; -v says why")
    elif not recording["n_new"] and recording["n_clean"] < recording["n_planned"]:
        times = counted(settings.nodes.record.repeats, "time")
        call.note(f"what is missing was disturbed, and repeated {times} already; raise nodes.record.repeats")
    call.go_on("nodes", "ingest", *(() if source is not None else (recording["folder"],)), source=source)


def show_plan(call: Invocation, params: "RecordParams") -> Output:
    """Print the executions of a campaign in order; without a campaign, what one call runs."""
    from tasks.nodes.record.campaign import check_parsers, planned
    from tasks.nodes.record.plan import lacking_stress, selected_templates
    from tasks.nodes.tools import PARSERS

    templates, has_groups = selected_templates(params), params.isolation != "none"
    check_parsers(templates, PARSERS, params.profile)
    plan = planned(params, templates, has_groups=has_groups)
    names = ("number", "node", "benchmark", "dose", "dose_level")
    executions = plan.executions if plan else ()
    rows = [{name: getattr(execution, name) for name in names} for execution in executions]
    yield {"n_executions": len(rows) if plan else params.executions, "executions": rows}
    for row in rows:
        print(f"{row['number']:>5}  {row['node']}  {row['benchmark']}  {row['dose']}".rstrip())
    n_stressed = sum(execution.stress_wanted for execution in executions)
    per_call = counted(params.executions, "execution")
    campaign = f"{counted(len(rows), 'execution')}, {n_stressed:,} of them stressed"
    call.note(campaign if plan else f"no campaign: {per_call} on each node of what it lacks, or what is stalest")
    for line in lacking_stress(params, templates, has_groups=has_groups):
        call.note(line)


TOTALS = """
SELECT count(*) AS n_executions, count(DISTINCT node) AS n_nodes, count(*) FILTER (is_stressed) AS n_stressed,
    count(DISTINCT node) FILTER (is_emulated) AS n_emulated, count(*) FILTER (started_at IS NULL) AS n_without_start
FROM nodes.executions WHERE source = $source
"""
UNITS = "SELECT unit, count(*) AS n FROM nodes.metrics WHERE source = $source AND unit <> '' GROUP BY ALL ORDER BY unit"


def unknown_units(warehouse: "Warehouse", source: str) -> dict[str, int]:
    """How many values of a source stand in a unit that nobody defined, by unit: they are kept as they were written."""
    from tasks.nodes.preprocess.unification import conversion_of
    from tasks.warehouse.connection import fetch

    found = fetch(warehouse, UNITS, {"source": source})
    each = zip(found["unit"].astype(str), found["n"].astype(int), strict=True)
    return {unit: n for unit, n in each if not conversion_of(unit).is_known}


def ingest(
    call: Invocation,
    paths: list[str] = [],
    source: str = DEFAULT_SOURCE,
    reader: NodeReader = AUTO,
    dry_run: bool = False,
) -> Output:
    """Read results of benchmarks into the warehouse.

    The same file twice adds nothing. Which node a file is of, and whether it was stressed, is said by its columns, by
    --label-from, or by a manifest, which may also name the files.

    PATH: Results: files or folders; without any, what recorders have put into the landing folder
    --source, -s NAME: Name to keep the rows under; different sources never mix
    --reader: Format; auto looks into each file
    --label-from stem|parent|column:NAME (str .read.label_from): Where the node of a file is written
    --manifest FILE (path .read.manifest): CSV or JSONL: path, benchmark, node, machine_type, started_at,
        is_stressed, dose
    --map, --time-zone, --max-refused-share, --pseudonymise, --dry-run"""
    from tasks.nodes.intake import Intake, begin_executions, find_files, left_out_line, preview_executions

    source = checked_source(source)
    read = call.settings.nodes.read
    if not paths and not read.manifest and (read.pseudonymise or dry_run):
        raise typer.BadParameter(
            "name files: what recorders have landed is written already, with its names", param_hint="PATH"
        )
    files = find_files(paths, read.manifest) if paths or read.manifest else []
    if line := left_out_line(paths):
        call.note(line)
    intake = Intake(source, intake_reader(reader), read)
    parameters = {"results": paths, "reader": reader, "dry_run": dry_run}
    with ingesting(call, "nodes-ingest", files, intake, begin_executions, preview_executions, **parameters) as ingested:
        if ingested is None:
            return
        result = read_results(call.warehouse, source, ingested["batches"]) | totals(call.warehouse, TOTALS, source)
        result |= {"not_loaded": ingested["not_loaded"], "unknown_units": unknown_units(call.warehouse, source)}
        yield result
        if result["files"] or not ingested["not_loaded"]:
            show_read(result)
            stressed = f", {result['n_stressed']:,} of them stressed" if result["n_stressed"] else ""
            emulated = f" ({result['n_emulated']:,} of them emulated)" if result["n_emulated"] else ""
            on = f"{counted(result['n_nodes'], 'node')}{emulated}"
            print(f"source {source}: {counted(result['n_executions'], 'execution')} on {on}{stressed}")
            if units := result["unknown_units"]:
                names = ", ".join(map(repr, list(units)[:MOST_UNITS])) + (", …" if len(units) > MOST_UNITS else "")
                values = counted(sum(units.values()), "value")
                call.note(f"{values} not converted, as nobody knows the unit: {names}; each is a scale of its own")
            if n := result["n_without_start"]:
                without = f"{n:,} of {counted(result['n_executions'], 'execution')} without a start"
                is_mixed = n < result["n_executions"]
                call.note(f"{without}: {LEFT_OUT if is_mixed else BY_NAMES}; {HOW_TO_DATE}")
            call.go_on("nodes", "rank", source=source)


BENCHMARKS = """
WITH counted AS (
    SELECT execution_id, count(DISTINCT metric) AS n_metrics
    FROM nodes.metrics WHERE source = $source GROUP BY execution_id
)
SELECT benchmark || CASE WHEN coalesce(template_hash, '') = '' THEN '' ELSE '@' || template_hash[1:8] END AS benchmark,
    aspect, count(*) AS n_executions, count(DISTINCT node) AS n_nodes, median(duration_s) AS duration_s,
    max(counted.n_metrics) AS n_metrics
FROM nodes.executions LEFT JOIN counted USING (execution_id) WHERE source = $source
GROUP BY ALL ORDER BY aspect, benchmark
"""
NODE_COLUMNS = columns(
    ("name", "node", "key"), *extra(("machine_type", "machine type")), ("n_executions", "executions", count),
    ("n_stressed", "stressed", count),
    *extra(("n_contaminated", "disturbed", count), ("n_not_completed", "not completed", count)),
    ("last_at", "last (UTC)", moment),
)  # fmt: skip
BENCHMARK_COLUMNS = columns(
    ("benchmark", "benchmark", "key"), ("aspect", "aspect", "name"), ("n_executions", "executions", count),
    ("n_nodes", "nodes", count), ("duration_s", "takes", duration), ("n_metrics", "metrics", count),
)  # fmt: skip
MOST_NODES = 50  # of a table for a person
MOST_UNITS = 5  # that are named in a line
BY_NAMES = "their order is taken from their names"
LEFT_OUT = "watch leaves them out where others of their node and aspect have one"


def summary(call: Invocation, source: str | None = None) -> Output:
    """Show the nodes and benchmarks of a source, and how often each ran.

    A benchmark with another template is another benchmark, and stands in a line of its own.

    --source"""
    from tasks.report.nodes import TABLES
    from tasks.warehouse.connection import fetch

    warehouse = call.warehouse
    source_name = source_with_rows(warehouse, source, "nodes")
    nodes = records(
        fetch(warehouse, TABLES["nodes"], {"source": source_name}).rename(columns={"n_failed": "n_not_completed"})
    )
    benchmarks = records(fetch(warehouse, BENCHMARKS, {"source": source_name}))
    yield {"source": source_name, "nodes": nodes, "benchmarks": benchmarks}
    show_table([row | {"name": called(row["node"], row["is_emulated"])} for row in nodes[:MOST_NODES]], NODE_COLUMNS)
    if len(nodes) > MOST_NODES:
        print(f"{len(nodes) - MOST_NODES:,} more nodes; --json shows all")
    print()
    show_table(benchmarks, BENCHMARK_COLUMNS)
    n_executions = sum(int(row["n_executions"]) for row in nodes)
    counts = f"{counted(n_executions, 'execution')} on {counted(len(nodes), 'node')}"
    call.note(f"source {source_name}: {counts}; next: {as_command('whorl', 'nodes', 'rank', '--source', source_name)}")


def preprocess(call: Invocation, source: str | None = None) -> Output:
    """Decide which metrics count and which way, and freeze the reference that nodes are measured against.

    Done again with other data or settings, scores are no longer comparable with those before. 'whorl models rollback'
    brings the former reference back.

    --source
    --variant (robust|paper .preprocess.variant): Whose rules hold: ours, or the paper's"""
    source_name = source_with_executions(call.warehouse, source)
    preprocessing = run_flow(call, "nodes-preprocess", source=source_name)
    yield {**preprocessing, "source": source_name}
    facts = {
        "source": source_name,
        "model": preprocessing["model_id"],
        "executions": f"{preprocessing['n_executions']:,}",
        "metrics kept": f"{preprocessing['n_kept']:,} of {preprocessing['n_recorded']:,} (the paper: 54 of 153)",
        "the paper's rule contradicts": f"{preprocessing['n_disagree']:,} of them in what is declared",
        "reference": preprocessing["reference"],
    }
    show_facts(facts)
    call.go_on("nodes", "metrics", source=source_name, report=preprocessing["report"])


def metrics(call: Invocation, source: str | None = None, benchmark: str | None = None, kept: bool = False) -> Output:
    """Show for each metric unit, kept or dropped and why, orientation, and whether the paper's rule agrees with that.

    As decided by the preprocessing in use of the source. The rule is asked with and without the stressed ones.

    --source
    --benchmark, -b: Only those of this benchmark
    --kept: Only those that count"""
    from tasks.nodes.answers import read_decisions, require_model
    from tasks.report.nodes_tables import decisions_table

    warehouse = call.warehouse
    source_name = source_with_rows(warehouse, source, "nodes")
    model_id = require_model(warehouse, source_name)
    decisions = read_decisions(warehouse, source_name, model_id)
    n_all, n_kept = len(decisions), int(decisions["is_kept"].sum())
    if benchmark is not None:
        decisions = decisions[decisions["benchmark_type"].str.partition("@")[0] == benchmark.partition("@")[0]]
    decisions = decisions[decisions["is_kept"]] if kept else decisions
    facts = {"source": source_name, "model_id": model_id, "n_recorded": n_all, "n_kept": n_kept}
    yield facts | {"metrics": records(decisions)}
    show_described(decisions_table(decisions))
    call.note(f"{n_kept:,} of {n_all:,} metrics kept by {model_id}; the paper: 54 of 153")


RANKED = columns(
    ("aspect", "aspect", "name"), ("rank", "place", count), ("name", "node", "key"), ("score", "score", ratio),
    ("interval", "interval", "name"), ("tied", "tied", "name"), ("n_executions", "executions", count),
    *extra(("machine_type", "machine type")),
)  # fmt: skip
MOST_NAMED = 10
SHARED = Column("shared_words", "shared component", kind="name")
LACKS = Column("lacks", "did not run", as_text)


def shown_rank(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a ranking with what RANKED shows of it."""
    texts = {"interval": interval(row) or MISSING, "tied": "tied" if row["is_tied"] else ""}
    return {**row, **texts, "name": called(row["node"], row["is_emulated"])}


def rank(
    call: Invocation,
    source: str | None = None,
    node: str | None = None,
    machine_type: str | None = None,
    aspect: str | None = None,
    top: int | None = None,
) -> Output:
    """Rank the nodes of a source, as one number and by aspect.

    A score is a ratio to the reference fleet: 1 is the reference, 2 is twice as good. Where ten nodes of a machine type
    ran two tools or more, what tools say of them in common gives their order within it (--machine-type). Tied nodes
    share their place: their executions do not tell them apart. A node that did not run an aspect that half of the
    reference ran stands behind those that did. A source that was never preprocessed is so first.

    --source
    --node: Only this node
    --machine-type: Only nodes of this type
    --aspect: Only this aspect, or all
    --top (1..): Only the first of each aspect"""
    from tasks.nodes import answers
    from tasks.nodes.verdict_steps import read_states
    from tasks.warehouse.registry import champion

    warehouse, nodes = call.warehouse, call.settings.nodes
    source_name = source_with_rows(warehouse, source, "nodes")
    with progress_bar(call, first="reading executions"):
        if champion(warehouse.models, "nodes", source_name, KIND) is None:
            answers.preprocess(warehouse, source_name, nodes.preprocess, nodes.score, "")
        ranking = answers.rank(warehouse, source_name, nodes.score, "")
    scores, watched = answers.read_scores(warehouse, source_name), answers.read_watched(warehouse, source_name)
    names = {str(row.node): called(str(row.node), bool(row.is_emulated)) for row in scores.itertuples()}
    answer = {
        "best": best_words(ranking["best"], ranking["n_nodes"], names),
        "most_suspicious": standing_out(watched.to_dict("records"), names),
        "far_behind": behind_words(scores.to_dict("records"), names),
        "degrading": degrading_words(read_states(warehouse, source_name).to_dict("records"), names),
    }
    rows = records(_selected_rows(scores, node, machine_type, aspect, top))
    yield {"source": source_name, **ranking, "answer": answer, "scores": rows, "watched": records(watched)}
    say(*(f"{name.replace('_', ' ')}: {words}" for name, words in answer.items() if words))
    print()
    extra = [SHARED] if scores["shared"].notna().any() else []
    extra += [LACKS] if any(row["lacks"] for row in rows) else []
    show_table([shown_rank(row) | {"shared_words": shared_words(row)} for row in rows], (*RANKED, *extra))
    print()
    say(f"places: {placed_by(scores)}")
    if line := left_out(ranking["n_left_out"], source_name):
        call.note(line)
    has_detector = champion(warehouse.models, "nodes", source_name, DETECTOR) is not None
    verb = ("explain", "NODE") if answer["degrading"] else ("watch",) if has_detector else ("train",)
    call.note(f"which executions are flagged: {as_command('whorl', 'nodes', *verb, '--source', source_name)}")


def _selected_rows(
    scores: "pd.DataFrame", node: str | None, machine_type: str | None, aspect: str | None, top: int | None
) -> "pd.DataFrame":
    """The rows that are asked for. Raises NotFound where there are none.

    Places are those among all nodes; with a machine type that has a shared component, among its nodes by that."""
    wanted = {"node": node, "machine_type": machine_type, "aspect": aspect}
    for column, value in wanted.items():
        if value is not None:
            known = sorted(scores[column].dropna().unique())
            if value not in known:
                what = column.replace("_", " ")
                raise NotFound(f"no {what} {value!r} in the ranking; expected one of {', '.join(known[:MOST_NAMED])}")
            scores = scores[scores[column] == value]
    if machine_type is not None and scores["shared_place"].notna().any():
        is_placed = scores["shared_place"].notna()
        rank = scores["rank"].where(~is_placed, scores["shared_place"]).astype(int)
        n_there = scores.assign(rank=rank).groupby(["aspect", "rank"])["node"].transform("size")
        scores = scores.assign(rank=rank, is_tied=scores["is_tied"].where(~is_placed, n_there > 1))
        scores = scores.assign(is_aspect=scores["aspect"] != "all")
        scores = scores.sort_values(["is_aspect", "aspect", "rank"], kind="stable", ignore_index=True)
        scores = scores.drop(columns="is_aspect")
    return scores if top is None else scores.groupby("aspect", sort=False).head(top)


def report(call: Invocation, source: str | None = None) -> Output:
    """Write the page of a source and print its path.

    Ranking, scores by aspect, verdicts, repeatability, and what became of each metric; each node has a page.

    --source"""
    from flows.cli.admin import report as report_page

    yield from report_page(call, "nodes", source)
