"""One graph over all words: files in, preprocessing, search, training, fingerprints, groups, answers, pages.

| word | ingest | preprocess | search | train | fingerprint | cluster | answer |
|---|---|---|---|---|---|---|---|
| jobs | logs of the inbox | its recurring jobs | | model of runtimes | | shapes of jobs | next runs, alarms |
| workloads | telemetry of the inbox | | | model of workloads | phases of runs | | what ran |
| nodes | results of the inbox | metrics that count | network | detector, network | verdicts, fingerprints | | ranking |
| advice | | | | | | alike machines | |

A node is a task. It is tried again where that may help, and done again only when its data, settings, code or what it
rests on have changed, or when what it had made is gone: a second run of the graph does nothing."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from prefect import Task
from prefect.cache_policies import INPUTS, CachePolicy
from prefect.client.schemas.objects import State
from prefect.context import TaskRunContext
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.types import DateTime
from pydantic import Field

from flows.engine.artifacts import announce, artifact_key, publish, site_params
from flows.engine.forms import Source, WordsParams, flow
from flows.engine.steps import SameCode, load_each, step
from tasks.advice import steps as advice_steps
from tasks.advice.params import MachineGroupParams
from tasks.choices import DEFAULT_SOURCE
from tasks.errors import BadInput, NotFound
from tasks.jobs import intake as jobs_intake
from tasks.jobs import steps as jobs_steps
from tasks.jobs.params import CharacteriseParams, JobsParams
from tasks.jobs.summary import read_summary
from tasks.nodes import answers as node_answers
from tasks.nodes import steps as node_steps
from tasks.nodes import verdict_steps
from tasks.nodes.params import ModelParams, NodesParams
from tasks.params import Params
from tasks.quantities import plain
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import folder_of
from tasks.warehouse.sources import SOURCES, data_version, require_sources
from tasks.workloads import fingerprint_steps
from tasks.workloads import steps as workload_steps
from tasks.workloads.params import WorkloadsParams

logger = logging.getLogger(__name__)
INBOXES = {"jobs": "inbox", "workloads": "inbox-workloads", "nodes": "inbox-nodes"}
READ = "SELECT count(*) AS n FROM ops.files WHERE list_contains($batches, batch_id) HAVING n = $n_batches"
LONG_AGO = DateTime(1970, 1, 1, tzinfo=UTC)
NodeOutcome = dict[str, Any]
S = TypeVar("S", bound=Params)
Future = PrefectFuture[NodeOutcome]


@dataclass
class WhileThere(CachePolicy):
    """A key of the node, its inputs and the code, that counts as long as what the node has made is there.

    there: SQL that finds a row, with the node's result as values; `$name` of a result's entry."""

    there: str = ""

    def compute_key(
        self, task_ctx: TaskRunContext, inputs: dict[str, Any], flow_parameters: dict[str, Any], **kwargs: Any
    ) -> str | None:
        """The key. A result under it that speaks of what is gone is made to have expired."""
        key = (INPUTS + SameCode()).compute_key(task_ctx, inputs, flow_parameters, **kwargs)
        store = task_ctx.result_store
        if key and store.exists(key) and not self._is_there(inputs["warehouse"], store.read(key).result):
            logger.info("%s: what it had made is gone; it is done again", task_ctx.task.name)
            store.write(obj=None, key=key, expiration=LONG_AGO)
        return key

    def _is_there(self, warehouse: Warehouse, outcome: NodeOutcome) -> bool:
        if "refused" in outcome:
            return True
        paths = [Path(path) for path in (outcome.get("path"), outcome.get("folder")) if path]
        values = {name: value for name, value in outcome.items() if f"${name}" in self.there}
        return all(path.exists() for path in paths) and len(fetch(warehouse, self.there, values)) > 0


@dataclass(frozen=True)
class StageInputs(Generic[S]):
    """What a node works on. after: the results of the nodes that it rests on."""

    warehouse: Warehouse
    source: str
    settings: S
    after: list[NodeOutcome]

    @property
    def where(self) -> tuple[Warehouse, str]:
        """Warehouse and source, which steps take first."""
        return self.warehouse, self.source


def node(there: str) -> Callable[[Callable[..., NodeOutcome]], Task[..., NodeOutcome]]:
    """A node of the graph: the task of a function that takes warehouse, source, data version, settings, and what it
    rests on. Data that cannot give an answer are no failure: the node says so. there: as in WhileThere."""

    def decorate(function: Callable[..., NodeOutcome]) -> Task[..., NodeOutcome]:
        def run_node(
            warehouse: Warehouse, source: str, version: str, settings: Params | None, after: list[NodeOutcome]
        ) -> NodeOutcome:
            try:
                outcome = function(StageInputs(warehouse, source, settings, after))
            except (BadInput, NotFound) as error:
                logger.warning("%s: %s", function.__name__, error)
                return {"refused": str(error)}
            return {"source": source, "data_version": version, **outcome}

        update_wrapper(run_node, function, ("__module__", "__name__", "__qualname__", "__doc__"), ())
        vars(run_node).pop("__wrapped__")  # Prefect reads the parameters of run_node
        return step(run_node).with_options(cache_policy=WhileThere(there=there))

    return decorate


@node(READ)
def jobs_ingest(inputs: StageInputs[JobsParams]) -> NodeOutcome:
    """Job logs of the inbox into the warehouse."""
    ingested = _read_each(inputs, jobs_intake.find_logs, jobs_steps, jobs_steps.land_log, inputs.settings.group)
    grouped = jobs_steps.group_source(*inputs.where, inputs.settings.group, ingested["batches"])
    return ingested | {
        "batches": sorted(grouped["batches"]),
        "said": "; ".join(filter(None, (ingested["said"], grouped["key"]))),
    }


@node("SELECT 1 FROM jobs.summaries WHERE source = $source AND data_version = $data_version")
def jobs_preprocess(inputs: StageInputs[JobsParams]) -> NodeOutcome:
    """Which jobs recur, how often, and how much their runtimes vary."""
    jobs_steps.summarise(*inputs.where, inputs.settings.summary)
    totals = read_summary(*inputs.where)
    return {"said": f"{totals['n_runs']:,} runs of {totals['n_groups']:,} jobs"}


@node("SELECT 1 FROM ops.models WHERE model_id = $model_id")
def jobs_train(inputs: StageInputs[JobsParams]) -> NodeOutcome:
    """A model of runtimes, put into use if it is better than the one before."""
    training = jobs_steps.train(*inputs.where, inputs.settings.evaluate, str(flow_run.id))
    return _model("jobs", inputs.warehouse, training) | {"said": f"CRPS {training['crps']:,.3g} s on held-out runs"}


@node("SELECT 1 FROM jobs.shapes WHERE source = $source AND data_version = $data_version")
def jobs_cluster(inputs: StageInputs[JobsParams]) -> NodeOutcome:
    """The typical shapes of runtime distributions (K-means), and the shape of each job."""
    characterised = jobs_steps.characterise(*inputs.where, CharacteriseParams())
    return {"said": f"{characterised['n_groups']:,} jobs in {max(characterised['k'].values(), default=0)} shapes"}


@node("SELECT 1 FROM jobs.predictions WHERE source = $source AND model_id = $model_id AND data_version = $data_version")
def jobs_answer(inputs: StageInputs[JobsParams]) -> NodeOutcome:
    """How the next run of each job will go, and alarms about runs that went beyond that."""
    predictions = jobs_steps.predict(*inputs.where)
    ids = jobs_steps.watch(*inputs.where, inputs.settings.watch, inputs.settings.drift)
    announce(inputs.warehouse, ids)
    line = f"the next runs of {predictions['n_jobs']:,} jobs, {len(ids):,} new alarms"
    return {"model_id": predictions["model_id"], "said": line}


@node(READ)
def workloads_ingest(inputs: StageInputs[WorkloadsParams]) -> NodeOutcome:
    """Telemetry of the inbox into the warehouse."""
    find = partial(workload_steps.find_files, read=inputs.settings.read)
    return _read_each(inputs, find, workload_steps, workload_steps.land_telemetry)


@node("SELECT 1 FROM workloads.run_phases WHERE source = $source LIMIT 1")
def workloads_fingerprint(inputs: StageInputs[WorkloadsParams]) -> NodeOutcome:
    """The phases of each run, and the counters that tell them."""
    plan = fingerprint_steps.plan_fingerprints(
        *inputs.where,
        inputs.settings.fan_out.model_copy(update={"ray_address": ""}),
    )
    parts = [fingerprint_steps.cut_phases(part) for part in plan["parts"]]
    n_new = sum(fingerprint_steps.keep_phases(*inputs.where, part) for part in parts)
    fingerprint_steps.clear_parts(plan["parts"])
    return {"said": f"phases of {plan['n_runs']:,} runs, {n_new:,} of them new"}


@node("SELECT 1 FROM ops.models WHERE model_id = $model_id")
def workloads_train(inputs: StageInputs[WorkloadsParams]) -> NodeOutcome:
    """A model of the labelled runs, put into use if it is better than the one before."""
    training = workload_steps.train(
        *inputs.where, inputs.settings.identify, inputs.settings.train, [], str(flow_run.id)
    )
    line = f"accuracy {training['accuracy']:.2f} on held-out runs ({training['held_out']})"
    return _model("workloads", inputs.warehouse, training) | {"said": line}


@node("SELECT 1 FROM workloads.identifications WHERE source = $source AND model_id = $model_id LIMIT 1")
def workloads_answer(inputs: StageInputs[WorkloadsParams]) -> NodeOutcome:
    """What ran, run by run."""
    identified = workload_steps.identify(*inputs.where, None, "all")
    return {"model_id": identified["model_id"], "said": f"{len(identified['run_ids']):,} runs identified"}


@node(READ)
def nodes_ingest(inputs: StageInputs[NodesParams]) -> NodeOutcome:
    """Results of benchmarks of the inbox into the warehouse."""
    find = partial(node_steps.find_files, read=inputs.settings.read)
    return _read_each(inputs, find, node_steps, node_steps.land_executions)


@node("SELECT 1 FROM ops.models WHERE model_id = $model_id")
def nodes_preprocess(inputs: StageInputs[NodesParams]) -> NodeOutcome:
    """Which metrics count, and which way; the reference that nodes are measured against."""
    preprocessing = node_answers.preprocess(
        *inputs.where, inputs.settings.preprocess, inputs.settings.score, str(flow_run.id)
    )
    return _model("nodes", inputs.warehouse, preprocessing) | {"said": "metrics that count are chosen"}


@node("SELECT 1 FROM nodes.executions WHERE source = $source LIMIT 1")
def nodes_search(inputs: StageInputs[NodesParams]) -> NodeOutcome:
    """The best parameters of Perona's network, by Ray Tune with Optuna; a search that was stopped goes on."""
    settings = inputs.settings
    search = node_steps.tune(*inputs.where, ModelParams(), settings.preprocess, settings.score, settings.search)
    return {"best": search["best"], "path": search["trials"], "said": f"{inputs.settings.search.n_trials} trials"}


@node("SELECT 1 FROM ops.models WHERE model_id = $model_id")
def nodes_train(inputs: StageInputs[NodesParams]) -> NodeOutcome:
    """Perona's network, with the parameters that the search found."""
    best = next((outcome["best"] for outcome in inputs.after if "best" in outcome), None)
    model = ModelParams.model_validate(best) if best else ModelParams()
    settings = inputs.settings
    training = node_steps.train(*inputs.where, model, settings.preprocess, settings.score, str(flow_run.id))
    return _model("nodes", inputs.warehouse, training) | {"said": "a network that makes fingerprints"}


@node("SELECT 1 FROM ops.models WHERE model_id = $model_id")
def nodes_detector(inputs: StageInputs[NodesParams]) -> NodeOutcome:
    """What tells degraded executions, at the stated budget of false alarms."""
    of = inputs.settings
    detector = verdict_steps.learn(
        *inputs.where, of.preprocess, of.detect, of.budget, of.alarm, of.score, str(flow_run.id)
    )
    return _model("nodes", inputs.warehouse, detector) | {"said": "a detector of degraded executions"}


@node("SELECT 1 FROM nodes.judgings WHERE source = $source AND data_version = $data_version")
def nodes_fingerprint(inputs: StageInputs[NodesParams]) -> NodeOutcome:
    """Which executions were degraded, and by which metrics; fingerprints where there is a network."""
    verdicts = verdict_steps.judge(*inputs.where, inputs.settings.score)
    n_prints = 0
    if node_steps.has_network(*inputs.where):
        n_prints = node_steps.fingerprint(*inputs.where, inputs.settings.score)["n_fingerprints"]
    return {
        "said": f"{verdicts['n_flagged']:,} of {verdicts['n_judged']:,} executions degraded, {n_prints:,} fingerprints"
    }


@node("SELECT 1 FROM nodes.rankings WHERE source = $source AND data_version = $data_version")
def nodes_answer(inputs: StageInputs[NodesParams]) -> NodeOutcome:
    """How good each node is, by aspect."""
    ranking = node_answers.rank(*inputs.where, inputs.settings.score, f"{inputs.after}")
    return {"said": f"nodes ranked by {ranking['n_executions']:,} executions"}


@node("SELECT 1 FROM nodes.scores WHERE source = $source LIMIT 1")
def advice_cluster(inputs: StageInputs[MachineGroupParams]) -> NodeOutcome:
    """Which machines are alike, as far as their scores tell them apart (Tarema)."""
    answer = advice_steps.groups(None, inputs.source, inputs.warehouse, [], None, inputs.settings, {})
    published = answer.page(inputs.warehouse)
    return {"path": published["report"], "said": str(published.get("answer", "machines are grouped"))}


@node("SELECT 1 FROM ops.files WHERE source = $source LIMIT 1")
def page(inputs: StageInputs[Params]) -> NodeOutcome:
    """The page of a source in the site."""
    from tasks.report.site import write_source

    path = write_source(inputs.warehouse, inputs.after[0]["word"], inputs.source, site_params())
    return {"path": str(path), "said": "its page is written"}


Word = Literal["jobs", "workloads", "nodes", "advice"]


class PipelineParams(WordsParams):
    """Which part of the graph from files to answers is run."""

    sources: tuple[str, ...] = Field((), description="Sources that are answered; empty: all that have rows")
    inbox_source: Source = Field(
        DEFAULT_SOURCE, description="Source that the inboxes are read into, where it is among those that are answered"
    )
    words: tuple[Word, ...] = Field(
        ("jobs", "workloads", "nodes", "advice"), min_length=1, description="Words that are answered"
    )
    trials: int = Field(
        0,
        ge=0,
        le=10_000,
        description="Trials of the search for Perona's network (Ray Tune, Optuna); 0: it is trained as it is set",
    )
    trains_network: bool = Field(
        True,
        description="Train Perona's network, which makes fingerprints; what is degraded is told without it",
    )


@flow(
    lambda: f"from files to answers, {', '.join(flow_run.parameters['sources']) or 'every source'}",
    task_runner=ThreadPoolTaskRunner(max_workers=1),  # steps use all threads that they may; one writer a warehouse
)
def whorl_pipeline(params: PipelineParams) -> dict[str, Any]:
    """Files in, preprocessing, search, training, fingerprints, groups, answers: of all words, each node a task.

    Only nodes whose data, settings or code have changed are run; each says what it found, or why it has no answer."""
    graph = Graph(params)
    words = [word for word in INBOXES if word in params.words] or ["nodes"]  # what advice rests on
    is_filled = any(graph.inbox(word) for word in words)
    require_sources(params.warehouse, words, {*params.sources} - ({params.inbox_source} if is_filled else set()))
    for word in words:
        graph.ingest(word)
    sources = {word: graph.sources(word) for word in words}
    for word in words:
        for source in sources[word]:
            getattr(graph, word)(source)
    return graph.result()


class Graph:
    """The nodes that were handed in so far, as futures, by the name of the node and its source."""

    def __init__(self, params: PipelineParams) -> None:
        self.warehouse, self.params = params.warehouse, params
        self.futures: dict[tuple[str, str], Future] = {}
        search = params.nodes.search.model_copy(update={"n_trials": params.trials or params.nodes.search.n_trials})
        self.nodes_settings = params.nodes.model_copy(update={"search": search})

    def inbox(self, word: str) -> list[Path]:
        """The files that lie in the inbox of a word."""
        return sorted(path for path in (self.warehouse.home / INBOXES[word]).rglob("*") if path.is_file())

    def ingest(self, word: str) -> None:
        """Read what lies in the inbox of a word into its source, where that is answered; returns when it is read."""
        source = self.params.inbox_source
        if (files := self.inbox(word)) and source in (self.params.sources or [source]):
            stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
            after: NodeOutcome = {"inbox": str(self.warehouse.home / INBOXES[word]), "files": stats}
            settings = getattr(self.params, word)
            work = {"jobs": jobs_ingest, "workloads": workloads_ingest, "nodes": nodes_ingest}[word]
            self._submit(work, source, "", settings, [after]).wait()

    def sources(self, word: str) -> list[str]:
        """The sources whose nodes are run: that of the parameters, or all that have rows of the word."""
        if not self.warehouse.file.exists():
            return []
        names = [str(name) for name in fetch(self.warehouse, SOURCES, {"word": word})["source"]]
        return [name for name in names if not self.params.sources or name in self.params.sources]

    def jobs(self, source: str) -> None:
        """The nodes of a source of jobs."""
        given = (source, self._version("jobs", source), self.params.jobs)
        summary = self._submit(jobs_preprocess, *given, self._read("jobs", source))
        shapes = self._submit(jobs_cluster, *given, [summary])
        model = self._submit(jobs_train, *given, [summary])
        answer = self._submit(jobs_answer, *given, [model])
        self._page("jobs", given, [answer, shapes])

    def workloads(self, source: str) -> None:
        """The nodes of a source of workloads."""
        given = (source, self._version("workloads", source), self.params.workloads)
        read = self._read("workloads", source)
        phases = self._submit(workloads_fingerprint, *given, read)
        model = self._submit(workloads_train, *given, read)
        answer = self._submit(workloads_answer, *given, [model])
        self._page("workloads", given, [answer, phases])

    def nodes(self, source: str) -> None:
        """The nodes of a source of benchmarks, and the groups of machines that advice makes of their scores."""
        version = self._version("nodes", source)
        given = (source, version, self.nodes_settings)
        metrics = self._submit(nodes_preprocess, *given, self._read("nodes", source))
        detector = self._submit(nodes_detector, *given, [metrics])
        models = [detector]
        if self.params.trains_network:
            searched = [self._submit(nodes_search, *given, [metrics])] if self.params.trials else [metrics]
            models.append(self._submit(nodes_train, *given, searched))
        verdicts = self._submit(nodes_fingerprint, *given, models)
        ranking = self._submit(nodes_answer, *given, [metrics])
        if "advice" in self.params.words:
            self._submit(advice_cluster, source, version, self.params.advice.groups, [ranking])
        self._page("nodes", given, [verdicts, ranking])

    def result(self) -> dict[str, Any]:
        """What all nodes have said, by name and source, when they are done, and how many were not done before; shown as
        an artifact too.

        Raises the error of the first node that failed, when the others are done."""
        states: dict[str, State[NodeOutcome]] = {}
        lines = {}
        for (name, source), future in self.futures.items():
            future.wait()
            state = states[f"{name} {source}"] = future.state
            outcome = future.result() if state.is_completed() else {"said": state.message or state.name}
            lines[f"{name} {source}"] = str(outcome.get("said") or outcome.get("refused", ""))
        rows = [f"| {plain(key)} | {states[key].name} | {plain(line)} |" for key, line in lines.items()]
        publish(
            artifact_key("whorl", "-".join(self.params.sources) or "all", "pipeline"),
            "\n".join(["| part | | what it says |", "|---|---|---|", *rows]),
            "From files to answers",
        )
        for future in self.futures.values():
            future.result()
        n_done = sum(state.name != "Cached" for state in states.values())
        return {"n_nodes": len(states), "n_done": n_done, "said": lines}

    def _submit(
        self, work: Task[..., NodeOutcome], source: str, version: str, settings: Params | None, after: list[Any]
    ) -> Future:
        future = work.submit(self.warehouse, source, version, settings, after)
        self.futures[work.name, source] = future
        return future

    def _page(self, word: str, given: tuple[str, str, Params], after: list[Future]) -> None:
        work = page.with_options(name=f"{word}-page")
        self._submit(work, given[0], given[1], None, [{"word": word}, *after])

    def _read(self, word: str, source: str) -> list[Any]:
        read = self.futures.get((f"{word}-ingest", source))
        return [read] if read else []

    def _version(self, word: str, source: str) -> str:
        with reading(self.warehouse) as connection:
            return data_version(connection, word, source)


def _read_each(
    inputs: StageInputs[Any],
    find: Callable[[list[str]], list[str]],
    steps: Any,
    land: Callable[..., str],
    *more: Params,
) -> NodeOutcome:
    """The files of an inbox, landed and loaded. steps: of the word; more: what `land` takes beside settings."""
    paths = find([inputs.after[0]["inbox"]])
    read = (inputs.source, "", inputs.settings.read, *more)
    ids, refused = load_each(
        paths, lambda path: steps.ingest_batch(inputs.warehouse, land(inputs.warehouse, path, *read))
    )
    headline = f"{len(ids):,} of {len(paths):,} files are in the warehouse"
    lines = "; ".join(str(error) for error in refused)
    return {
        "batches": sorted(ids),
        "n_batches": len(set(ids)),
        "said": f"{headline}{f'; refused: {lines}' if lines else ''}",
    }


def _model(word: str, warehouse: Warehouse, answer: Mapping[str, Any]) -> NodeOutcome:
    return {"model_id": answer["model_id"], "folder": str(folder_of(warehouse.models, word, answer["model_id"]))}
