"""The word `nodes` as flows: recording, results in, ranking, detector and network, watch with fresh benchmarks."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.responses import DeploymentResponse
from prefect.runtime import flow_run
from pydantic import Field

from flows.engine import artifacts, forms
from flows.engine.deploying import DEPLOYED
from flows.engine.forms import flow
from flows.engine.steps import (
    files_or_inbox,
    load_each,
    make_limit,
    network_turn,
    step,
    take_back_turns,
    unless_refused,
)
from tasks.choices import DEFAULT_SOURCE, ONLY_SOURCE, NodeReader, intake_reader
from tasks.nodes import answers, steps, verdict_steps
from tasks.nodes import params as of_nodes
from tasks.nodes.node_words import KIND, called_all
from tasks.nodes.record.params import RecordParams, node_name
from tasks.nodes.steps import TrainedNodes, benchmarks_of_aspect
from tasks.nodes.verdict_steps import LearnedVerdicts
from tasks.params import Params
from tasks.quantities import counted, number, plain
from tasks.report.result import count
from tasks.settings import leaves, load_settings
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion

logger = logging.getLogger(__name__)
WORD = "nodes"
INBOX = "inbox-nodes"  # in the home folder; job logs and telemetry have their own
ASKED_TAGS = ["whorl", "nodes", "fresh-benchmark"]
RUN_DIGITS = 8
PAPER = "the paper recorded 153 metrics of six benchmarks and kept 54"
LEAST_EXPECTED = 30  # alarms among the executions learned from, from which measured rates were as stated within a half
LEAST_RATE = 0.001  # false alarms a day that are told as a number
NODES_OF_FIGURES = ("nodes.best", "nodes.most_suspicious")  # figures that name nodes
FINGERPRINTS = ("Flagged executions, and why", "By fingerprint, beside the plain ranking")

land_recording = step(steps.land_recording)
landed_batches = step(steps.landed_batches)
find_files = step(steps.find_files)
land_executions = step(steps.land_executions)
ingest_batch = step(steps.ingest_batch)
source_version = step(steps.source_version)
count_emulated = step(steps.count_emulated)
preprocess = step(answers.preprocess)
rank = step(answers.rank)
evaluate_files = step(steps.evaluate_files)
evaluate_source = step(steps.evaluate_source)
train = step(steps.train)
tune = step(steps.tune)
fingerprint = step(steps.fingerprint)
learn = step(verdict_steps.learn)
judge = step(verdict_steps.judge)
watch = step(verdict_steps.watch)
announce_alarms = step(artifacts.announce)


@step
def record(params: RecordParams, folder: str) -> dict[str, Any]:
    """Record benchmarks; those that need the network wait until no other node uses it."""
    make_limit()
    take_back_turns()
    return steps.record(params, folder, turn=network_turn)


def _record_name() -> str:
    parameters = flow_run.parameters
    is_local = parameters[forms.EXPERT].get("record.place", "local") == "local"
    return f"record benchmarks on {parameters['node'] or 'this node'}" if is_local else "record emulated nodes"


class NodeRecordParams(Params):
    """A recording of benchmarks on the machine of the worker."""

    FIRST: ClassVar = "record.node record.benchmarks record.runs record.executions"
    folder: str = Field(
        min_length=1,
        description="Folder for the recording; the next run with the same folder goes on. {run} stands for the id of "
        "the run, {home} for the home folder of the worker",
    )
    record: RecordParams = RecordParams()
    landing: str = Field(
        "",
        description="Landing folder where the executions are put for nodes-ingest: a path or an fsspec address; empty: "
        "they stay in the folder of the recording",
    )
    source: forms.Source = Field(DEFAULT_SOURCE, description="Name under which they are put there")


@flow(_record_name)
def nodes_record(params: NodeRecordParams) -> dict[str, Any]:
    """Run benchmarks on the worker's machine and record them with the machine's own metrics.

    Without a campaign it completes what the node lacks, and then repeats what is doubtful or stalest, so it can be put
    on a schedule. Nodes that share a Prefect server use the network one after another. A continued run goes on."""
    recording = record(params.record, _folder(params.folder))
    landing, n_recorded = params.landing, recording["n_clean"] + recording["n_new"]
    batches = land_recording(recording["folder"], landing, params.source, n_recorded) if landing else []
    return {**recording, "batches": batches}


class NodeIngestParams(forms.InHomeParams):
    """Executions of benchmarks into the warehouse."""

    FIRST: ClassVar = f"{forms.LABELLED} read.pseudonymise"
    results: list[str] = Field(
        [],
        description="Results to read: files, folders or addresses; empty: the files of read.manifest, or without one "
        f"what recorders have put into the landing folder, and the folder {INBOX} in the home folder",
    )
    source: forms.Source = Field(DEFAULT_SOURCE, description=forms.SOURCE)
    reader: NodeReader = Field("auto", description="Format of the files; auto looks into each")
    read: of_nodes.ReadParams = of_nodes.ReadParams()


@flow(lambda: forms.of_ingest("results", "what was recorded"))
def nodes_ingest(params: NodeIngestParams) -> dict[str, Any]:
    """Read results of benchmarks into the warehouse.

    Files that were read before add nothing. A file that cannot be read does not hold up the others: they are loaded,
    and the run fails at its end with a line that says which file and why. Single bad rows go to the quarantine."""
    warehouse, source, read, reader = params.warehouse, params.source, params.read, intake_reader(params.reader)
    is_named, find = bool(params.results or read.manifest), lambda paths: find_files(paths, read)
    landed = [] if is_named else landed_batches(warehouse, source)
    known = [ingest_batch(warehouse, batch_id) for batch_id in landed]
    files = files_or_inbox(warehouse, INBOX, params.results, is_named=is_named, find=find)
    loaded, refused = load_each(
        files, lambda path: ingest_batch(warehouse, land_executions(warehouse, path, source, reader, read))
    )
    ids = [*known, *loaded]
    n_emulated = count_emulated(warehouse, source, ids) if ids else 0
    nodes = f"{counted(n_emulated, 'node')} of the source {'is' if n_emulated == 1 else 'are'}"
    notice = f"**Emulated:** {nodes} made of limits on a larger machine." if n_emulated else ""
    tables = {"executions": "execution", "metrics": "value"}
    batches = artifacts.show_ingest(warehouse, WORD, source, "Executions of benchmarks", ids, tables, refused, notice)
    result = {
        "batches": ids,
        "n_landed": len(landed),
        "n_executions": sum(batch.tables["executions"].n_rows for batch in batches),
        "n_quarantined": sum(batch.n_quarantined for batch in batches),
        "data_version": source_version(warehouse, source, ids) if ids else "",
    }
    return unless_refused(result, refused, len(files), "results of benchmarks")


def _folder(pattern: str) -> str:
    """The folder of a recording, with the places in braces filled in."""
    folder = pattern.replace("{run}", str(flow_run.id)[:RUN_DIGITS])
    return folder.replace("{home}", str(load_settings().settings.warehouse.home)) if "{home}" in folder else folder


class PreparedParams(forms.OfSourceParams):
    """What counts of the metrics of a source, and how nodes are scored by it."""

    preprocess: of_nodes.PreprocessParams = of_nodes.PreprocessParams()
    score: of_nodes.ScoreParams = of_nodes.ScoreParams()


@flow(lambda: forms.of_source("preprocess the metrics of"))
def nodes_preprocess(params: PreparedParams) -> dict[str, Any]:
    """Decide of each metric of a source whether it counts and which way, and freeze the reference fleet.

    Scores are ratios to that reference: they can be compared until it is made anew, with other data or parameters."""
    warehouse, source = params.warehouse, params.source
    metrics = preprocess(warehouse, source, params.preprocess, params.score, str(flow_run.id))
    done = (
        f"{metrics['n_kept']:,} of {counted(metrics['n_recorded'], 'metric')} kept, from "
        f"{counted(metrics['n_executions'], 'execution')}; {PAPER}. The paper's rule of orientation contradicts what "
        f"is declared in {counted(metrics['n_disagree'], 'metric')}. Model {plain(metrics['model_id'])}, reference: "
        f"{plain(metrics['reference'])}."
    )
    title, sections = f"The metrics of source {source}", ("Metrics: kept or dropped, and why",)
    return artifacts.reported(WORD, params, metrics, "metrics", title, done, sections=sections)


class NodeRankParams(PreparedParams):
    """The ranking of the nodes of a source, and which of them stand out."""

    FIRST: ClassVar = "score.left_out_aspects score.aspect_weights"


@flow(lambda: forms.of_source("rank the nodes of"))
def nodes_rank(params: NodeRankParams) -> dict[str, Any]:
    """Rank the nodes of a source by aspect, with intervals and ties, and say which stand out by slow executions.

    A source that was never preprocessed is so first; later its reference stays as it is."""
    warehouse, source = params.warehouse, params.source
    in_use = champion(warehouse.models, WORD, source, KIND)
    model_id = (
        in_use.model_id
        if in_use
        else preprocess(warehouse, source, params.preprocess, params.score, str(flow_run.id))["model_id"]
    )
    ranking = rank(warehouse, source, params.score, model_id)
    title = f"The ranking of the nodes of source {source}"
    sections = ("How good each node is", "Nodes")
    return artifacts.reported(WORD, params, ranking, "ranking", title, sections=sections, is_summarised=True)


class NodeEvaluateParams(forms.InHomeParams):
    """An experiment: how well plain answers find stressed executions and rank nodes, on a source or on files."""

    FIRST: ClassVar = f"{forms.LABELLED} evaluate.seed"
    source: forms.OfSource = Field(ONLY_SOURCE, description=f"{forms.OF_SOURCE}; not looked at where results are named")
    results: list[str] = Field(
        [], description="Results to evaluate instead of the source: files or folders; they are not kept"
    )
    reader: NodeReader = Field("auto", description="Format of these files; auto looks into each")
    read: of_nodes.ReadParams = of_nodes.ReadParams()
    evaluate: of_nodes.EvaluateParams = of_nodes.EvaluateParams()


@flow(lambda: forms.of_evaluation("results"))
def nodes_evaluate(params: NodeEvaluateParams) -> dict[str, Any]:
    """Measure how well plain answers find stressed executions and rank nodes; figures, tables and a page are kept.

    The figures are the result of the run, so 'whorl runs compare A B' shows two experiments beside each other; the page
    of a source shows the last ones."""
    warehouse, source, folder = params.warehouse, params.source, forms.evaluation_folder(params.warehouse, WORD)
    if params.results or params.read.manifest:
        reader = intake_reader(params.reader)
        figures = evaluate_files(params.results, reader, params.read, params.evaluate, folder)
        what, about = forms.files_or_source("results"), "files"
    else:
        figures = evaluate_source(warehouse, source, params.evaluate, folder)
        artifacts.write_report(warehouse, WORD, source, str(flow_run.id))
        what, about = f"source {source}", source
    parts = evaluation_parts(what, figures)
    artifacts.show(warehouse, WORD, about, "evaluation", f"Evaluation of {what}", *parts, path=figures["report"])
    return figures


class NodeTrainParams(PreparedParams):
    """The training of a detector of degraded executions, or of the network that makes fingerprints."""

    FIRST: ClassVar = "budget.alarms_per_day model.fit.epochs"
    variant: Literal["detector", "ours", "paper"] = Field(
        "detector",
        description="detector: says which executions are degraded; ours, paper: Perona's network: fingerprints",
    )
    detect: of_nodes.DetectorParams = of_nodes.DetectorParams()
    budget: of_nodes.BudgetParams = of_nodes.BudgetParams()
    alarm: of_nodes.AlarmParams = of_nodes.AlarmParams()
    as_in_use: bool = Field(
        True,
        description="Train with the settings of the model in use, where there is one (graph, network, losses, fitting)",
    )
    trains_again: bool = Field(
        False, description="Train also where the same data, parameters and code have made a model before"
    )
    model: of_nodes.ModelParams = of_nodes.ModelParams()


@flow(lambda: forms.of_source("train on the nodes of"))
def nodes_train(params: NodeTrainParams) -> dict[str, Any]:
    """Train what tells degraded executions, or Perona's network, which makes fingerprints.

    The detector learns from all executions of a source; its threshold keeps the budget of false alarms, and its
    figures are of executions by what the others taught. The network learns from the earlier executions of each node, is
    measured on the latest, and is used if it is better than the one before. What the same data, parameters and code
    made before is used again. Models stay until they are pruned, so 'whorl models rollback' brings the former back."""
    if params.variant == "detector":
        return _detector(params)
    known = steps.in_use(params.warehouse, params.source) if params.as_in_use else None
    model = of_nodes.ModelParams.model_validate(known) if known else params.model
    model = model if model.variant == params.variant else params.model.model_copy(update={"variant": params.variant})
    training = _trained(params, model, again=params.trains_again)
    return _shown(params, training, *_training(params.source, training))


class NodeTuneParams(PreparedParams):
    """The search of the parameters of a source's model, and a training with the best of them."""

    FIRST: ClassVar = "search.n_trials search.ray_address search.runner"
    search: of_nodes.NetworkSearchParams = of_nodes.NetworkSearchParams()
    model: of_nodes.ModelParams = of_nodes.ModelParams()


@flow(lambda: forms.of_source("search a model of the nodes of"))
def nodes_tune(params: NodeTuneParams) -> dict[str, Any]:
    """Search the parameters of the model, train with the best, and use that if it is better than the one before.

    Only executions that models learn from and choose by are looked at; a search that was stopped goes on."""
    scoring = (params.preprocess, params.score)
    search = tune(params.warehouse, params.source, params.model, *scoring, params.search)
    trained = _trained(params, of_nodes.ModelParams.model_validate(search["best"]))
    resumed = f", {search['n_resumed']:,} of them from before" if search["n_resumed"] else ""
    parts = (
        f"# The search for source {plain(params.source)}",
        f"{counted(search['n_trials'], 'trial')}{resumed}; the least validation loss is "
        f"{number(search['validation_loss'])}. All of them: {plain(search['trials'])}",
        artifacts.facts_part(leaves(search["best"]), "parameter"),
    )
    return _shown(params, {**search, "trained": trained}, *parts, *_training(params.source, trained))


class NodeFingerprintParams(forms.OfSourceParams):
    """Fingerprints and verdicts of the executions of a source, and its nodes ranked by them."""

    score: of_nodes.ScoreParams = of_nodes.ScoreParams()


@flow(lambda: forms.of_source("fingerprint the nodes of"))
def nodes_fingerprint(params: NodeFingerprintParams) -> dict[str, Any]:
    """Say which executions of a source were degraded and by which metrics; where a network was trained, fingerprint
    them too and rank the nodes by that.

    With the same data and models what stands there is given again."""
    warehouse, source = params.warehouse, params.source
    verdicts = judge(warehouse, source, params.score)
    done = (
        f"{verdicts['n_flagged']:,} of {counted(verdicts['n_judged'], 'execution')} with a verdict flagged, by "
        f"{plain(verdicts['model_id'])}; {verdicts['n_executions'] - verdicts['n_judged']:,} others are of benchmarks "
        "that it did not learn."
    )
    network: dict[str, Any] = {"network_id": "", "n_fingerprints": 0, "best": []}
    if steps.has_network(warehouse, source):
        made = fingerprint(warehouse, source, params.score)
        network = {"network_id": made["model_id"], **{name: made[name] for name in ("n_fingerprints", "best")}}
        done += f" {made['n_fingerprints']:,} have a fingerprint by model {plain(made['model_id'])}."
    title = f"Verdicts and fingerprints of the nodes of source {source}"
    return artifacts.reported(WORD, params, verdicts | network, "fingerprints", title, done, sections=FINGERPRINTS)


class NodeWatchParams(forms.OfSourceParams):
    """The check whether nodes of a source are degrading."""

    FIRST: ClassVar = "alarm.flagged alarm.last"
    alarm: of_nodes.AlarmParams = of_nodes.AlarmParams()
    asks_for_benchmarks: bool = Field(
        True, description="A suspected node runs a fresh benchmark, by its deployment nodes-record/<node> on the server"
    )
    score: of_nodes.ScoreParams = of_nodes.ScoreParams()


@flow(lambda: forms.of_source("watch the nodes of"))
def nodes_watch(params: NodeWatchParams) -> dict[str, Any]:
    """Say which nodes are degrading, and raise an alarm for each; one that goes on is told once.

    An alarm asks the node for a fresh benchmark, by its deployment; what that gives confirms the alarm or clears it
    when it has been ingested and this runs again. Confirmed nodes are listed to be left out."""
    warehouse, source = params.warehouse, params.source
    verdicts = judge(warehouse, source, params.score)
    watched = watch(warehouse, source, params.alarm, f"{verdicts}")
    announce_alarms(warehouse, watched["alarms"])
    least = enough_for(params.alarm)
    started, cannot = ask(warehouse, source, watched["suspected"], least) if params.asks_for_benchmarks else ([], [])
    title = f"Which nodes of source {source} are degrading"
    parts = (
        artifacts.alarms_part(title, warehouse, watched["alarms"], "No alarm that had not been raised before."),
        f"{counted(watched['n_nodes'], 'node')} watched by model {plain(watched['model_id'])}. To be left out: "
        f"{plain(', '.join(watched['excluded'])) or 'none'}.",
        f"Fresh benchmarks were asked for: {plain(', '.join(started))}." if started else "",
        f"Suspected, without a deployment nodes-record/<node> on this server: {plain(', '.join(cannot))}. Record "
        "them by hand."
        if cannot
        else "",
    )
    answer = {**watched, "asked": started, "cannot_ask": cannot}
    return artifacts.reported(WORD, params, answer, "states", title, *parts, sections=("Which nodes are degrading",))


def _detector(params: NodeTrainParams) -> dict[str, Any]:
    """A detector of degraded executions, with its page."""
    given = (params.preprocess, params.detect, params.budget, params.alarm, params.score)
    detector = learn(params.warehouse, params.source, *given, str(flow_run.id), again=params.trains_again)
    parts = (
        f"# The detector of the nodes of source {plain(params.source)}",
        artifacts.facts_part(detector_facts(detector), "of the detector"),
        "The figures are of each execution by what the other fifths of its type taught." if detector["figures"] else "",
        artifacts.figures_part(detector["figures"]),
    )
    return _shown(params, detector, *parts)


WORDS = {
    "auprc": "average precision",
    "f1_outlier": "F1, degraded",
    "precision": "precision",
    "recall": "recall",
    "false_alarms_per_1000": "false alarms per 1,000",
    "error_ratio": "error of own metrics, of the type's mean",
    "mse_own": "squared error, own metrics",
    "mse_own_mean_predictor": "the same of the type's mean",
    "score_spearman": "scores follow performance",
    "score_deviation": "their ratio varies by",
}


def detector_facts(detector: LearnedVerdicts) -> dict[str, str]:
    """What the training of a detector came to, in words."""
    known = f"{count(detector['n_learned'])} executions, {count(detector['n_stressed'])} of them known to be stressed"
    basis = "models that know stress" if detector["n_stressed"] else "headline metrics alone, as no stress is known"
    return {
        "detector": detector["model_id"],
        "learned": f"{known}{', before' if detector['is_from_before'] else ''}",
        "verdicts by": basis,
        **{words: number(detector["figures"][key]) for key, words in WORDS.items() if key in detector["figures"]},
        "false alarms": budget_words(detector),
        "data version": detector["data_version"],
    }


def facts_of(training: TrainedNodes) -> dict[str, str]:
    """What a training came to, in words."""
    figures = training["figures"]
    return {
        "model": training["model_id"],
        "in use": forms.in_use(training, "this one was not found to be better"),
        "learned": f"{count(training['n_learned'])} executions{', before' if training['is_from_before'] else ''}",
        "held out": f"{count(training['n_tested'])} executions, the latest, which the figures below are of",
        **{words: number(figures[key]) for key, words in WORDS.items() if key in figures},
        "data version": training["data_version"],
    }


def _trained(
    params: NodeTrainParams | NodeTuneParams, model: of_nodes.ModelParams, *, again: bool = False
) -> TrainedNodes:
    scoring = (params.preprocess, params.score)
    return train(params.warehouse, params.source, model, *scoring, str(flow_run.id), again=again)


def _training(source: str, training: TrainedNodes) -> tuple[str, ...]:
    """What a training of the network learned, and how good it is on executions that it did not see."""
    return (
        f"# The model of the nodes of source {plain(source)}",
        artifacts.facts_part(facts_of(training), "of the model"),
        f"The better model is chosen by {plain(training['metric'])}.",
        artifacts.figures_part(training["figures"]),
    )


def _shown(params: NodeTrainParams | NodeTuneParams, answer: Mapping[str, Any], *parts: str) -> dict[str, Any]:
    """What a training or a search gave, shown as what is known of the model, with the page of the source."""
    return artifacts.reported(
        WORD, params, answer, "model", f"The model of the nodes of source {params.source}", *parts
    )


def budget_words(detector: LearnedVerdicts) -> str:
    """What the threshold costs, in a sentence."""
    if detector["alarms_per_day"] is None:
        return "The threshold was chosen by the share of flags that is asked for."
    a_day, n, per_day = detector["alarms_per_day"], detector["n_learned"], detector["executions_per_day"]
    if per_day is None:
        span, expected = f"in as many executions as these {n:,}, as nobody knows when they ran", a_day
    else:
        span, expected = f"a day, at {per_day:,.0f} executions a day", a_day * n / per_day
    about = f"about {number(a_day)}" if a_day >= LEAST_RATE else f"fewer than {LEAST_RATE:g}"
    words = f"To be expected over this fleet: {about} false {'alarm' if number(a_day) == '1' else 'alarms'} {span}."
    if expected >= LEAST_EXPECTED:
        return words
    return f"{words} A guess: {LEAST_EXPECTED} alarms tell a rate, and these executions are too few to raise so many."


def evaluation_parts(what: str, figures: Mapping[str, Any]) -> list[str]:
    """All figures of an evaluation, and why some cannot be had; emulated nodes are called so.

    Where a learned model was measured, first whether it is ahead of simple detectors, and what falls short."""
    from tasks.report.nodes_evaluation import falls_short, summary_words, verdict_tables
    from tasks.report.result import table_markdown

    emulated = str(figures.get("nodes.emulated", "")).split(", ")
    shown = {key: called_all(str(figures[key]), emulated) for key in NODES_OF_FIGURES if figures.get(key) is not None}
    short = falls_short(figures)
    return [
        f"# Answers about the nodes of {plain(what)}",
        plain(summary_words(figures)),
        *(part for table in verdict_tables(figures) for part in (f"### {table.title}", table_markdown(table))),
        "\n".join(["## What falls short", *(f"- {plain(line)}" for line in short)]) if short else "",
        artifacts.figures_part({**figures, **shown}),
    ]


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
            overrides = {"benchmarks": benchmarks, "runs": 0, "executions": max(len(benchmarks), least)}
            client.create_flow_run_from_deployment(
                deployment.id,
                parameters={**deployment.parameters, **overrides},
                tags=ASKED_TAGS,
                idempotency_key=f"whorl fresh benchmark {source} {node} {aspect} {newest}",
            )
            started.append(f"{DEPLOYED}/{deployment.name} ({aspect})")
            logger.info("asked %s for %s", deployment.name, ", ".join(benchmarks))
    return started, sorted(without)


def enough_for(rules: of_nodes.AlarmParams) -> int:
    """Executions after which an alarm is decided if they agree: confirmed if all are flagged, cleared if none is."""
    return max(rules.confirm, rules.clear)


def _deployments(client: SyncPrefectClient, source: str) -> dict[str, DeploymentResponse]:
    """The deployments of remote nodes that record into a source, by the name that executions carry.

    The server tells of so many at once only."""
    of_flow = FlowFilter(name=FlowFilterName(any_=[DEPLOYED]))
    deployments: list[DeploymentResponse] = []
    while page := client.read_deployments(flow_filter=of_flow, offset=len(deployments)):
        deployments += page
    remote = [deployment for deployment in deployments if deployment.name != DEPLOYED]
    return {
        node_name(deployment.name): deployment
        for deployment in remote
        if deployment.parameters.get("source", source) == source
    }


ask = step(ask_for_benchmarks)
