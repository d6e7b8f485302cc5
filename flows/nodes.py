"""The word `nodes` as flows: recording, results in, ranking, detector and network, watch with fresh benchmarks."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pandas as pd
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.responses import DeploymentResponse
from prefect.runtime import flow_run

from flows.cli.output import counted
from flows.engine.alarms import announce
from flows.engine.artifacts import (
    FINGERPRINTS,
    artifact_key,
    joined,
    publish,
    publish_summary,
    report_part,
    sections_part,
    table,
    write_report,
)
from flows.engine.deploying import DEPLOYED
from flows.engine.file_intake import files_or_inbox, load_each, not_all_read
from flows.engine.forms import flow
from flows.engine.kept_runs import files_or_source, of_evaluation, of_ingest, of_source
from flows.engine.steps import step
from flows.engine.turns import make_limit, network_turn, take_back_turns
from flows.parameters import (
    NODES_INBOX,
    NodeEvaluateParams,
    NodeFingerprintParams,
    NodeIngestParams,
    NodePreprocessParams,
    NodeRankParams,
    NodeRecordParams,
    NodeTrainParams,
    NodeTuneParams,
    NodeWatchParams,
)
from tasks.markdown import plain
from tasks.nodes import answers, network_steps, steps, verdict_steps
from tasks.nodes.answers import Preprocessed, Ranked, read_decisions, read_scores, read_watched
from tasks.nodes.detect.params import AlarmParams
from tasks.nodes.evaluate.measures import THEIRS
from tasks.nodes.network_steps import FingerprintedNodes, TrainedNodes, TunedNodes, read_fingerprint_scores
from tasks.nodes.node_words import (
    KIND,
    agreement,
    agreement_without,
    best_words,
    called,
    called_all,
    counts_as,
    decision,
    interval,
    left_out,
    placed_by,
    shared_words,
    slow_time,
    standing_out,
)
from tasks.nodes.perona.params import ModelParams, TrainParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.reader_names import reader_asked_for
from tasks.nodes.record.params import RecordParams, node_name
from tasks.nodes.steps import Recording, benchmarks_of_aspect
from tasks.nodes.verdict_steps import Judged, LearnedVerdicts, WatchedNodes, read_states
from tasks.quantities import number, ratio
from tasks.report.nodes import cost_words, counted_states, excluded_nodes, states_table
from tasks.report.result import table_markdown
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import fetch
from tasks.warehouse.landing import Batch, find_batch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion


class NodesRecorded(Recording):
    """A recording. batches: ids of what was put into the landing folder; empty without one."""

    batches: list[str]


class ResultsIngested(TypedDict):
    """What an ingest found. batches: their ids; n_landed: those of them that a recorder had landed.

    n_quarantined: rows of the files that no execution could be made of, and single values of others; data_version: of
    the source, empty where nothing was read."""

    batches: list[str]
    n_landed: int
    n_executions: int
    n_quarantined: int
    data_version: str


class NodesPreprocessed(Preprocessed):
    """What a preprocessing found. report: path of the page."""

    report: str


class NodesRanked(Ranked):
    """What a ranking found. report: path of the page."""

    report: str


class NodesTrained(TrainedNodes):
    """A training. report: path of the page."""

    report: str


class NodesTuned(TunedNodes):
    """A search. trained: the training with the best parameters; report: path of the page."""

    trained: TrainedNodes
    report: str


class NodesDetector(LearnedVerdicts):
    """The training of a detector. report: path of the page."""

    report: str


class NodesFingerprinted(Judged):
    """Verdicts, and fingerprints where a network was trained (network_id; empty where none was).

    n_fingerprints: executions that have one. best: first place by fingerprints. report: path of the page."""

    network_id: str
    n_fingerprints: int
    best: list[str]
    report: str


class NodesWatched(WatchedNodes):
    """A watch. asked: deployments that were started for suspected nodes; cannot_ask: suspected nodes without one.

    report: path of the page."""

    asked: list[str]
    cannot_ask: list[str]
    report: str


EMULATED = "SELECT DISTINCT node FROM nodes.executions WHERE source = $source AND is_emulated"


def with_emulated(rows: pd.DataFrame, warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The rows with a column is_emulated. rows: of nodes of the source, with their names in `node`."""
    emulated = fetch(warehouse, EMULATED, {"source": source})["node"]
    return rows.assign(is_emulated=rows["node"].isin(emulated))


MAX_ROWS = 50
PAPER = "the paper recorded 153 metrics of six benchmarks and kept 54"
SPREAD = ("low", "high", "deviation")  # of a figure over splits and fits, in keys after its own
NODES_OF_FIGURES = ("nodes.best", "nodes.best.pc1", "nodes.most_suspicious")  # figures that name nodes


def executions_page(source: str, batches: Sequence[Batch], refused: Sequence[str], n_emulated: int = 0) -> str:
    """What was read from each file, and which files were refused. n_emulated: nodes of the source that are emulated."""
    n_executions = sum(batch.tables["executions"].n_rows for batch in batches)
    n_refused = sum(batch.n_quarantined for batch in batches)
    rows = [
        (
            batch.origin.path,
            batch.origin.reader,
            batch.tables["executions"].n_rows,
            batch.tables["metrics"].n_rows if "metrics" in batch.tables else 0,
            batch.n_quarantined,
            batch.batch_id,
        )
        for batch in batches[:MAX_ROWS]
    ]
    header = ("file", "reader", "executions", "values", "rows in quarantine", "batch")
    return joined(
        [
            f"# Executions of benchmarks in source {plain(source)}",
            f"{counted(len(batches), 'file')}, {counted(n_executions, 'execution')} and {counted(n_refused, 'row')} in "
            "quarantine.",
            _emulated(n_emulated),
            table(header, rows) + rest(len(batches)) if rows else "",
            "\n".join(["## Files that could not be read", *(f"- {plain(line)}" for line in refused)])
            if refused
            else "",
        ]
    )


def _emulated(n_nodes: int) -> str:
    is_one = n_nodes == 1
    told = f"{counted(n_nodes, 'node')} of the source {'is' if is_one else 'are'} made of limits on a larger machine."
    return f"**Emulated:** {told}" if n_nodes else ""


def decisions_page(source: str, found: Preprocessed, rows: pd.DataFrame) -> str:
    """How many metrics count, and of each what became of it."""
    told = [
        (
            row["benchmark_type"],
            row["metric"],
            row["unit"],
            decision(row),
            counts_as(row),
            agreement(row["agrees"]),
            agreement_without(row),
        )
        for row in rows.head(MAX_ROWS).to_dict("records")
    ]
    header = ("benchmark", "metric", "unit", "kept or dropped", "counts as", "the paper's rule", "without stressed")
    return joined(
        [
            f"# The metrics of source {plain(source)}",
            f"{found['n_kept']:,} of {counted(found['n_recorded'], 'metric')} kept, from "
            f"{counted(found['n_executions'], 'execution')}; {PAPER}. The paper's rule of orientation contradicts what "
            f"is declared in {counted(found['n_disagree'], 'metric')}.",
            f"Model {plain(found['model_id'])}, reference: {plain(found['reference'])}.",
            table(header, told) + rest(len(rows)) if told else "",
        ]
    )


def ranking_page(source: str, found: Ranked, scores: pd.DataFrame, watched: pd.DataFrame) -> str:
    """The nodes in order, by aspect, and those with slow executions."""
    names = {str(row["node"]): called(str(row["node"]), row["is_emulated"]) for row in scores.to_dict("records")}
    best = best_words(found["best"], found["n_nodes"], names)
    has_shared = bool(scores["shared"].notna().any())
    plain_header = ("aspect", "place", "node", "score", "interval", "tied", "executions")
    header = (*plain_header, "shared component") if has_shared else plain_header
    rows = [
        _scored(row, names) + ((shared_words(row),) if has_shared else ())
        for row in scores.head(MAX_ROWS).to_dict("records")
    ]
    low = _low(watched, names)
    return joined(
        [
            f"# The nodes of source {plain(source)}",
            f"Best: {plain(best)}. Most suspicious: {plain(standing_out(watched.to_dict('records'), names))}.",
            plain(left_out(found["n_left_out"], source)),
            table(header, rows) + rest(len(scores)) if rows else "No node has a score.",
            f"Places: {placed_by(scores)}." if rows else "",
            "## Nodes by slow executions" if low else "",
            table(("node", "slow", "of", "most in", "there at", "p", "in time"), low) if low else "",
        ]
    )


def _scored(row: Mapping[Any, Any], names: Mapping[str, str]) -> tuple[object, ...]:
    place, told = int(row["rank"]), (ratio(row["score"]), interval(row), bool(row["is_tied"]))
    return (row["aspect"], place, names[row["node"]], *told, int(row["n_executions"]))


def _low(watched: pd.DataFrame, names: Mapping[str, str]) -> list[tuple[object, ...]]:
    rows = watched[watched["n_low"] > 0].head(MAX_ROWS).to_dict("records")
    return [
        (
            names.get(row["node"], row["node"]),
            int(row["n_low"]),
            int(row["n_executions"]),
            row["worst_type"],
            ratio(row["worst_ratio"]),
            number(row["p_value"]),
            slow_time(row),
        )
        for row in rows
    ]


def evaluation_page(what: str, figures: Mapping[str, Any]) -> str:
    """All figures of an evaluation, and why some cannot be had; emulated nodes are called so.

    Where a learned model was measured, first whether it is ahead of simple detectors, and what falls short."""
    emulated = str(figures.get("nodes.emulated", "")).split(", ")
    shown = {
        key: called_all(str(value), emulated)
        for key, value in figures.items()
        if key.removeprefix(THEIRS) in NODES_OF_FIGURES and value is not None
    }
    keys = [key for key in figures if key != "report" and not _is_beside(key, figures)]
    rows = [(key, shown.get(key) or _figure(figures, key) or figures.get(f"{key}.reason") or "") for key in keys]
    from tasks.report.nodes_evaluation import falls_short, summary_words, verdict_tables
    from tasks.report.result import table_markdown

    short = falls_short(figures)
    verdicts = [part for one in verdict_tables(figures) for part in (f"### {one.title}", table_markdown(one))]
    return joined(
        [
            f"# Answers about the nodes of {plain(what)}",
            plain(summary_words(figures)),
            *verdicts,
            "\n".join(["## What falls short", *(f"- {plain(line)}" for line in short)]) if short else "",
            table(("figure", "value"), rows),
        ]
    )


def rest(n_all: int) -> str:
    """How many rows a table leaves out."""
    more = n_all - MAX_ROWS
    return f"\n\n{more:,} more are in the warehouse." if more > 0 else ""


def _is_beside(key: str, figures: Mapping[str, Any]) -> bool:
    """Whether a key says more of another figure: why it is missing, or how it spreads."""
    of, _, last = key.rpartition(".")
    return last == "reason" or (last in SPREAD and of in figures)


def _figure(figures: Mapping[str, Any], key: str) -> str:
    """A figure with its interval, or its deviation; empty where it is missing."""
    value = figures[key]
    if value is None:
        return ""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    low, high, deviation = (figures.get(f"{key}.{name}") for name in SPREAD)
    if low is not None and high is not None:
        return f"{number(value)} ({number(low)} to {number(high)})"
    return f"{number(value)} ± {number(deviation)}" if deviation is not None else number(value)


WORD = "nodes"
TAGS = [WORD]
RUN_DIGITS = 8

land_recording = step(steps.land_recording)
landed_batches = step(steps.landed_batches)
find_files = step(steps.find_files)
land_executions = step(steps.land_executions)
ingest_batch = step(steps.ingest_batch)
source_version = step(steps.source_version)
count_emulated = step(steps.count_emulated)


@step
def record(params: RecordParams, folder: str) -> Recording:
    """Record benchmarks; those that need the network wait until no other node uses it."""
    make_limit()
    take_back_turns()
    return steps.record(params, folder, turn=network_turn)


def _record_name() -> str:
    asked = flow_run.parameters
    is_local = asked["place"] == "local"
    return f"record benchmarks on {asked['node'] or 'this node'}" if is_local else "record emulated nodes"


@flow(name="nodes-record", run_name=_record_name, tags=TAGS)
def nodes_record(params: NodeRecordParams) -> NodesRecorded:
    """Run benchmarks on the worker's machine and record them with the machine's own metrics.

    Without a campaign it completes what the node lacks, and then repeats what is doubtful or stalest, so it can be put
    on a schedule. Nodes that share a Prefect server use the network one after another. A continued run goes on."""
    found = record(params.record, _folder(params.folder))
    batches = (
        land_recording(found["folder"], params.landing, params.source, found["n_clean"] + found["n_new"])
        if params.landing
        else []
    )
    return NodesRecorded(**found, batches=batches)


@flow(name="nodes-ingest", run_name=lambda: of_ingest("results", "what was recorded"), tags=TAGS)
def nodes_ingest(params: NodeIngestParams) -> ResultsIngested:
    """Read results of benchmarks into the warehouse.

    Files that were read before add nothing. A file that cannot be read does not hold up the others: they are loaded,
    and the run fails at its end with a line that says which file and why. Single bad rows go to the quarantine."""
    warehouse, source = params.warehouse, params.source
    reader = reader_asked_for(params.reader)
    is_named = bool(params.results or params.read.manifest)
    landed = [] if is_named else landed_batches(warehouse, source)
    known = [ingest_batch(warehouse, batch_id) for batch_id in landed]
    files = files_or_inbox(
        warehouse, NODES_INBOX, params.results, is_named=is_named, find=lambda paths: find_files(paths, params.read)
    )
    loaded, refused = load_each(
        files, lambda path: ingest_batch(warehouse, land_executions(warehouse, path, source, reader, params.read))
    )
    ids = [*known, *loaded]
    batches = [find_batch(warehouse.landing_folder, WORD, batch_id) for batch_id in ids]
    n_emulated = count_emulated(warehouse, source, ids) if ids else 0
    page = executions_page(source, batches, [str(error) for error in refused], n_emulated)
    publish(artifact_key(WORD, source, "ingest"), page, f"Executions of benchmarks read into source {source}")
    result = ResultsIngested(
        batches=ids,
        n_landed=len(landed),
        n_executions=sum(batch.tables["executions"].n_rows for batch in batches),
        n_quarantined=sum(batch.n_quarantined for batch in batches),
        data_version=source_version(warehouse, source, ids) if ids else "",
    )
    if refused:
        raise not_all_read(refused, len(files), "results of benchmarks", result)
    return result


def _folder(asked: str) -> str:
    """The folder of a recording, with the places in braces filled in."""
    from tasks.settings import load_settings

    folder = asked.replace("{run}", str(flow_run.id)[:RUN_DIGITS])
    return folder.replace("{home}", str(load_settings().settings.warehouse.home)) if "{home}" in folder else folder


preprocess = step(answers.preprocess)
rank = step(answers.rank)
evaluate_files = step(steps.evaluate_files)
evaluate_source = step(steps.evaluate_source)


@flow(name="nodes-preprocess", run_name=lambda: of_source("preprocess the metrics of"), tags=TAGS)
def nodes_preprocess(params: NodePreprocessParams) -> NodesPreprocessed:
    """Decide of each metric of a source whether it counts and which way, and freeze the reference fleet.

    Scores are ratios to that reference: they can be compared until it is made anew, with other data or parameters."""
    warehouse, source = params.warehouse, params.source
    found = preprocess(warehouse, source, params.preprocess, params.score, str(flow_run.id))
    path = write_report(warehouse, WORD, source, found["model_id"])
    rows = read_decisions(warehouse, source, found["model_id"])
    page = joined([decisions_page(source, found, rows), report_part(path)])
    publish(artifact_key(WORD, source, "metrics"), page, f"The metrics of source {source}")
    return NodesPreprocessed(**found, report=path)


@flow(name="nodes-rank", run_name=lambda: of_source("rank the nodes of"), tags=TAGS)
def nodes_rank(params: NodeRankParams) -> NodesRanked:
    """Rank the nodes of a source by aspect, with intervals and ties, and say which stand out by slow executions.

    A source that was never preprocessed is so first; later its reference stays as it is."""
    warehouse, source = params.warehouse, params.source
    in_use = champion(warehouse.models, WORD, source, KIND)
    model_id = (
        in_use.model_id
        if in_use
        else preprocess(warehouse, source, params.preprocess, params.score, str(flow_run.id))["model_id"]
    )
    found = rank(warehouse, source, params.score, model_id)
    path = write_report(warehouse, WORD, source, f"{found}")
    scores, watched = read_scores(warehouse, source), read_watched(warehouse, source)
    page = joined([ranking_page(source, found, scores, watched), report_part(path)])
    publish_summary(warehouse, WORD, source, path)
    publish(artifact_key(WORD, source, "ranking"), page, f"The ranking of the nodes of source {source}")
    return NodesRanked(**found, report=path)


@flow(name="nodes-evaluate", run_name=lambda: of_evaluation("results"), tags=TAGS)
def nodes_evaluate(params: NodeEvaluateParams) -> dict[str, Any]:
    """Measure how well plain answers find stressed executions and rank nodes; figures, tables and a page are kept.

    The figures are the result of the run, so 'whorl runs compare A B' shows two experiments beside each other; the page
    of a source shows the last ones. With both_variants those of the paper's preprocessing stand beside ours."""
    warehouse, source = params.warehouse, params.source
    folder = str(warehouse.home / "reports" / f"nodes-evaluation-{str(flow_run.id)[:8]}")
    if params.results or params.read.manifest:
        reader = reader_asked_for(params.reader)
        figures = evaluate_files(params.results, reader, params.read, params.evaluate, folder, params.both_variants)
        what, key = files_or_source("results"), "files"
    else:
        figures = evaluate_source(warehouse, source, params.evaluate, folder, params.both_variants)
        write_report(warehouse, WORD, source, str(flow_run.id))
        what, key = f"source {source}", source
    page = joined([evaluation_page(what, figures), report_part(figures["report"])])
    publish(artifact_key(WORD, key, "evaluation"), page, f"Evaluation of {what}")
    return figures


WORDS = {
    "auprc": "average precision",
    "f1_outlier": "F1, degraded",
    "precision": "precision",
    "recall": "recall",
    "false_alarms_per_1000": "flagged of 1,000 calm",
}


def training_page(source: str, found: TrainedNodes) -> str:
    """What a training learned, and how good it is on executions that it did not see."""
    is_used = found["champion_id"] == found["model_id"]
    in_use = "this model" if is_used else f"{found['champion_id']}: this one was not found to be better"
    in_use += "; made before, of the same data, with the same parameters and code" if found["is_from_before"] else ""
    rows = [(name, number(value)) for name, value in found["figures"].items()]
    return joined(
        [
            f"# The model of the nodes of source {plain(source)}",
            f"Model {plain(found['model_id'])}, data version {plain(found['data_version'])}. In use: {plain(in_use)}.",
            f"It learned {counted(found['n_learned'], 'execution')}; the figures are of the latest "
            f"{found['n_tested']:,}, which it did not see. The better model is chosen by {plain(found['metric'])}.",
            table(("figure", "value"), rows) if rows else "",
        ]
    )


def detector_page(source: str, found: LearnedVerdicts) -> str:
    """What a detector learned, how good it is on executions that taught it nothing, and what its threshold costs."""
    rows = [(WORDS.get(name, name), number(value)) for name, value in found["figures"].items()]
    return joined(
        [
            f"# The detector of the nodes of source {plain(source)}",
            f"{budget_words(found)} Model {plain(found['model_id'])}, data version {plain(found['data_version'])}.",
            f"It learned {counted(found['n_learned'], 'execution')}, {found['n_stressed']:,} of them known to be "
            "stressed; the figures are of each by what the other fifths of its type taught."
            if rows
            else f"It learned {counted(found['n_learned'], 'execution')}; no stress is known, so nothing can be "
            "measured, and verdicts rest on the headline metrics of each tool.",
            table(("figure", "value"), rows) if rows else "",
        ]
    )


def budget_words(found: LearnedVerdicts) -> str:
    """What the threshold costs, in a sentence."""
    if found["alarms_per_day"] is None or found["executions_per_day"] is None:
        return "The threshold was chosen by the share of flags that is asked for."
    return (
        f"To be expected over this fleet: about {number(found['alarms_per_day'])} false alarms a day, at "
        f"{found['executions_per_day']:,.0f} executions a day."
    )


def verdicts_page(source: str, found: Judged) -> str:
    """How many executions look degraded."""
    return joined(
        [
            f"# Degraded executions of source {plain(source)}",
            f"{found['n_flagged']:,} of {counted(found['n_judged'], 'execution')} with a verdict look degraded, by "
            f"{plain(found['model_id'])}; {found['n_executions'] - found['n_judged']:,} others are of benchmarks that "
            "it did not learn.",
        ]
    )


def tuning_page(source: str, found: TunedNodes) -> str:
    """What a search found."""
    resumed = f", {found['n_resumed']:,} of them from before" if found["n_resumed"] else ""
    return joined(
        [
            f"# The search for source {plain(source)}",
            f"{counted(found['n_trials'], 'trial')}{resumed}; the least validation loss is "
            f"{number(found['validation_loss'])}. All of them: {plain(found['trials'])}",
            table(("parameter", "value"), [(key, str(value)) for key, value in _flat(found["best"])]),
        ]
    )


def fingerprints_page(source: str, found: FingerprintedNodes, scores: pd.DataFrame) -> str:
    """The nodes by their fingerprints, one number each and by aspect. scores: with is_emulated beside them."""
    names = {str(row["node"]): called(str(row["node"]), row["is_emulated"]) for row in scores.to_dict("records")}
    rows = [
        (
            row["aspect"],
            int(row["rank"]),
            names[str(row["node"])],
            ratio(row["score"]),
            interval(row),
            bool(row["is_tied"]),
            int(row["n_executions"]),
        )
        for row in scores.head(MAX_ROWS).to_dict("records")
    ]
    best = [names[node] for node in found["best"]]
    header = ("aspect", "place", "node", "score", "interval", "tied", "executions")
    return joined(
        [
            f"# The fingerprints of the nodes of source {plain(source)}",
            f"{found['n_fingerprints']:,} of {counted(found['n_executions'], 'execution')} have one by model "
            f"{plain(found['model_id'])}. Best: {plain(', '.join(best))}.",
            table(header, rows) + rest(len(scores)) if rows else "No node has a score.",
        ]
    )


def states_page(
    source: str,
    found: WatchedNodes,
    states: pd.DataFrame,
    alarms: pd.DataFrame,
    asked: Sequence[str],
    cannot: Sequence[str],
) -> str:
    """Which nodes are degrading, what was told anew, and which fresh benchmarks were asked for.

    states: with is_emulated beside them."""
    excluded = "; ".join(excluded_nodes(states)) or "none"
    new = [f"- {plain(str(message))}" for message in alarms["message"]] if len(alarms) else []
    return joined(
        [
            f"# Which nodes of source {plain(source)} are degrading",
            f"{counted(found['n_nodes'], 'node')} watched by model {plain(found['model_id'])}. To be left out: "
            f"{plain(excluded)}.",
            "\n".join(["## New alarms", *new]) if new else "",
            f"Fresh benchmarks were asked for: {plain(', '.join(asked))}." if asked else "",
            f"Suspected, without a deployment nodes-record/<node> on this server: {plain(', '.join(cannot))}. Record "
            "them by hand."
            if cannot
            else "",
            f"{counted_states(states)}. {plain(cost_words(states))}" if len(states) else "",
            table_markdown(states_table(states)) if len(states) else "",
        ]
    )


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Nested parameters as one list, by dotted name."""
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        name = f"{before}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]
    return found


Learning = NodeTrainParams | NodeTuneParams

train = step(network_steps.train)
tune = step(network_steps.tune)
fingerprint = step(network_steps.fingerprint)
learn = step(verdict_steps.learn)
judge = step(verdict_steps.judge)


@flow(name="nodes-train", run_name=lambda: of_source("train on the nodes of"), tags=TAGS)
def nodes_train(params: NodeTrainParams) -> NodesTrained | NodesDetector:
    """Train what tells degraded executions, or Perona's network, which makes fingerprints.

    The detector learns from all executions of a source; its threshold keeps the budget of false alarms, and its
    figures are of executions by what the others taught. The network learns from the earlier executions of each node, is
    measured on the latest, and is used if it is better than the one before. What the same data, parameters and code
    made before is used again. Models stay until they are pruned, so 'whorl models rollback' brings the former back."""
    if params.variant == "detector":
        return _detector(params)
    known = network_steps.in_use(params.warehouse, params.source) if params.as_in_use else None
    model = ModelParams.model_validate(known) if known else params.model
    model = model if model.variant == params.variant else params.model.model_copy(update={"variant": params.variant})
    found = _trained(params, model, again=params.trains_again)
    path = _published(params, found["model_id"], training_page(params.source, found))
    return NodesTrained(**found, report=path)


@flow(name="nodes-tune", run_name=lambda: of_source("search a model of the nodes of"), tags=TAGS)
def nodes_tune(params: NodeTuneParams) -> NodesTuned:
    """Search the parameters of the model, train with the best, and use that if it is better than the one before.

    Only executions that models learn from and choose by are looked at; a search that was stopped goes on."""
    found = tune(params.warehouse, params.source, params.model, *_learning(params), params.search)
    trained = _trained(params, ModelParams.model_validate(found["best"]))
    pages = (tuning_page(params.source, found), training_page(params.source, trained))
    path = _published(params, trained["model_id"], *pages)
    return NodesTuned(**found, trained=trained, report=path)


@flow(name="nodes-fingerprint", run_name=lambda: of_source("fingerprint the nodes of"), tags=TAGS)
def nodes_fingerprint(params: NodeFingerprintParams) -> NodesFingerprinted:
    """Say which executions of a source were degraded and by which metrics; where a network was trained, fingerprint
    them too and rank the nodes by that.

    With the same data and models what stands there is given again."""
    warehouse, source = params.warehouse, params.source
    verdicts = judge(warehouse, source, params.score)
    has_network = network_steps.has_network(warehouse, source)
    found = fingerprint(warehouse, source, params.score) if has_network else None
    path = write_report(warehouse, WORD, source, f"{verdicts}{found}")
    parts = [verdicts_page(source, verdicts)]
    if found is not None:
        scores = with_emulated(read_fingerprint_scores(warehouse, source), warehouse, source)
        parts.append(fingerprints_page(source, found, scores))
    page = joined([*parts, sections_part(warehouse, WORD, source, FINGERPRINTS), report_part(path)])
    publish(
        artifact_key(WORD, source, "fingerprints"), page, f"Verdicts and fingerprints of the nodes of source {source}"
    )
    return NodesFingerprinted(
        **verdicts,
        network_id=found["model_id"] if found else "",
        n_fingerprints=found["n_fingerprints"] if found else 0,
        best=found["best"] if found else [],
        report=path,
    )


def _detector(params: NodeTrainParams) -> NodesDetector:
    """A detector of degraded executions, with its page."""
    given = (params.preprocess, params.detect, params.budget, params.alarm, params.score)
    found = learn(params.warehouse, params.source, *given, str(flow_run.id), again=params.trains_again)
    return NodesDetector(**found, report=_published(params, found["model_id"], detector_page(params.source, found)))


def _learning(params: Learning) -> tuple[TrainParams, PreprocessParams, ScoreParams]:
    """What both steps are given after the model."""
    return params.train, params.preprocess, params.score


def _trained(params: Learning, model: ModelParams, *, again: bool = False) -> TrainedNodes:
    return train(params.warehouse, params.source, model, *_learning(params), str(flow_run.id), again=again)


def _published(params: Learning, model_id: str, *pages: str) -> str:
    """Write the page of the source, show what was found as an artifact, and return the path of the page."""
    path = write_report(params.warehouse, WORD, params.source, model_id)
    key = artifact_key(WORD, params.source, "model")
    publish(key, joined([*pages, report_part(path)]), f"The model of the nodes of source {params.source}")
    return path


ASKED_TAGS = ["whorl", "nodes", "fresh-benchmark"]

logger = logging.getLogger(__name__)


def ask_for_benchmarks(
    warehouse: Warehouse, source: str, suspected: Sequence[Sequence[str]], least: int = 1
) -> tuple[list[str], list[str]]:
    """Start the deployment of each suspected node, with the benchmarks of the suspected aspect alone.

    suspected: node, aspect and start of the newest execution; as long as that stays the newest, the node is asked once.
    least: executions that the node is asked for, at least one of each benchmark (see enough_for). Returns the
    deployments that were started, with the aspect, and the nodes that have none on this server which puts executions
    into this source: those are to be recorded by hand."""
    if not suspected:
        return [], []
    started: list[str] = []
    without: set[str] = set()
    with get_client(sync_client=True) as client:
        by_node = _deployments(client, source)
        for node, aspect, newest in suspected:
            deployment = by_node.get(node_name(node))
            benchmarks = benchmarks_of_aspect(warehouse, source, node, aspect)
            if deployment is None or not benchmarks:
                without.add(node)
                continue
            asked = {"benchmarks": benchmarks, "runs": 0, "executions": max(len(benchmarks), least)}
            client.create_flow_run_from_deployment(
                deployment.id,
                parameters={**deployment.parameters, **asked},
                tags=ASKED_TAGS,
                idempotency_key=f"whorl fresh benchmark {source} {node} {aspect} {newest}",
            )
            started.append(f"{DEPLOYED}/{deployment.name} ({aspect})")
            logger.info("asked %s for %s", deployment.name, ", ".join(benchmarks))
    return started, sorted(without)


def enough_for(rules: AlarmParams) -> int:
    """Executions after which an alarm is decided if they agree: confirmed if all are flagged, cleared if none is."""
    return max(rules.confirm, rules.clear)


def _deployments(client: SyncPrefectClient, source: str) -> dict[str, DeploymentResponse]:
    """The deployments of remote nodes that record into a source, by the name that executions carry.

    The server tells of so many at once only."""
    of_flow = FlowFilter(name=FlowFilterName(any_=[DEPLOYED]))
    found: list[DeploymentResponse] = []
    while page := client.read_deployments(flow_filter=of_flow, offset=len(found)):
        found += page
    remote = [one for one in found if one.name != DEPLOYED]
    return {node_name(one.name): one for one in remote if one.parameters.get("source", source) == source}


watch = step(verdict_steps.watch)
announce_alarms = step(announce)
ask = step(ask_for_benchmarks)


@flow(name="nodes-watch", run_name=lambda: of_source("watch the nodes of"), tags=TAGS)
def nodes_watch(params: NodeWatchParams) -> NodesWatched:
    """Say which nodes are degrading, and raise an alarm for each; one that goes on is told once.

    An alarm asks the node for a fresh benchmark, by its deployment; what that gives confirms the alarm or clears it
    when it has been ingested and this runs again. Confirmed nodes are listed to be left out."""
    warehouse, source = params.warehouse, params.source
    told = judge(warehouse, source, params.score)
    found = watch(warehouse, source, params.alarm, f"{told}")
    announce_alarms(warehouse, found["alarms"])
    least = enough_for(params.alarm)
    asked, cannot = ask(warehouse, source, found["suspected"], least) if params.asks_for_benchmarks else ([], [])
    alarms = read_alarms(warehouse, ids=found["alarms"], limit=max(1, len(found["alarms"])))
    path = write_report(warehouse, WORD, source, f"{found}")
    states = with_emulated(read_states(warehouse, source), warehouse, source)
    page = joined([states_page(source, found, states, alarms, asked, cannot), report_part(path)])
    publish(artifact_key(WORD, source, "states"), page, f"Which nodes of source {source} are degrading")
    return NodesWatched(**found, asked=asked, cannot_ask=cannot, report=path)
