"""The flows about Perona's model: tune, train, fingerprint."""

from prefect.runtime import flow_run

from flows.emulated_nodes import with_emulated
from flows.forms import call, flow
from flows.node_model_pages import detector_page, fingerprints_page, training_page, tuning_page, verdicts_page
from flows.node_model_params import NodeFingerprintParams, NodeTrainParams, NodeTuneParams
from flows.node_model_results import NodesDetector, NodesFingerprinted, NodesTrained, NodesTuned
from flows.policies import step
from flows.publish import artifact_key, joined, publish
from flows.run_names import of_source
from flows.site_pages import FINGERPRINTS, report_part, sections_part, write_report
from tasks.nodes import network_steps, verdict_steps
from tasks.nodes.network_steps import TrainedNodes, read_fingerprint_scores
from tasks.nodes.node_words import WORD
from tasks.nodes.perona.params import ModelParams, TrainParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams

TAGS = [WORD]
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


def train_nodes(params: NodeTrainParams) -> NodesTrained | NodesDetector:
    """Run nodes-train here and now. Raises WhorlError."""
    return call(nodes_train, params)


def tune_nodes(params: NodeTuneParams) -> NodesTuned:
    """Run nodes-tune here and now. Raises WhorlError."""
    return call(nodes_tune, params)


def fingerprint_nodes(params: NodeFingerprintParams) -> NodesFingerprinted:
    """Run nodes-fingerprint here and now. Raises WhorlError."""
    return call(nodes_fingerprint, params)


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
