"""The flows about Perona's model: tune, train, fingerprint."""

from prefect.runtime import flow_run

from flows.forms import call, flow
from flows.node_model_pages import fingerprints_page, training_page, tuning_page
from flows.node_model_params import NodeFingerprintParams, NodeTrainParams, NodeTuneParams
from flows.node_model_results import NodesFingerprinted, NodesTrained, NodesTuned
from flows.node_reports import report_part, write_report
from flows.policies import step
from flows.publish import artifact_key, joined, publish
from flows.run_names import of_source
from tasks.nodes import learned_steps
from tasks.nodes.learned.names import WORD
from tasks.nodes.learned.rows import read_fingerprint_scores
from tasks.nodes.model.params import ModelParams

TAGS = [WORD]

train = step(learned_steps.train)
tune = step(learned_steps.tune)
fingerprint = step(learned_steps.fingerprint)


@flow(name="nodes-train", run_name=lambda: of_source("train on the nodes of"), tags=TAGS)
def nodes_train(params: NodeTrainParams) -> NodesTrained:
    """Train a model of the nodes of a source, and put it into use if it is better than the one before.

    It learns from the earlier executions of each node and is measured on the latest ones, which neither has seen.
    Models stay until they are pruned, so 'whorl models rollback' brings the former one back."""
    warehouse, source = params.warehouse, params.source
    known = learned_steps.in_use(warehouse, source) if params.as_in_use else None
    model = ModelParams.model_validate(known) if known else params.model
    asked = (model, params.train, params.preprocess, params.score, params.detect)
    found = train(warehouse, source, *asked, str(flow_run.id))
    path = write_report(warehouse, source, params.report, found["model_id"])
    page = joined([training_page(source, found), report_part(path)])
    publish(artifact_key(WORD, source, "model"), page, f"The model of the nodes of source {source}")
    return NodesTrained(**found, report=path)


@flow(name="nodes-tune", run_name=lambda: of_source("search a model of the nodes of"), tags=TAGS)
def nodes_tune(params: NodeTuneParams) -> NodesTuned:
    """Search the parameters of the model, train with the best, and use that if it is better than the one before.

    Only executions that models learn from and choose by are looked at; a search that was stopped goes on."""
    warehouse, source = params.warehouse, params.source
    given = (params.train, params.preprocess, params.score, params.detect)
    found = tune(warehouse, source, params.model, *given, params.search)
    best = ModelParams.model_validate(found["best"])
    trained = train(warehouse, source, best, *given, str(flow_run.id))
    path = write_report(warehouse, source, params.report, trained["model_id"])
    page = joined([tuning_page(source, found), training_page(source, trained), report_part(path)])
    publish(artifact_key(WORD, source, "model"), page, f"The model of the nodes of source {source}")
    return NodesTuned(**found, trained=trained, report=path)


@flow(name="nodes-fingerprint", run_name=lambda: of_source("fingerprint the nodes of"), tags=TAGS)
def nodes_fingerprint(params: NodeFingerprintParams) -> NodesFingerprinted:
    """Fingerprint the executions of a source by its model in use, say which of them were degraded and by which metrics,
    and rank the nodes by aspect.

    With the same data and model what stands there is given again."""
    warehouse, source = params.warehouse, params.source
    found = fingerprint(warehouse, source, params.fingerprint, params.score)
    path = write_report(warehouse, source, params.report, f"{found}")
    page = joined([fingerprints_page(source, found, read_fingerprint_scores(warehouse, source)), report_part(path)])
    publish(artifact_key(WORD, source, "fingerprints"), page, f"The fingerprints of the nodes of source {source}")
    return NodesFingerprinted(**found, report=path)


def train_nodes(params: NodeTrainParams) -> NodesTrained:
    """Run nodes-train here and now. Raises WhorlError."""
    return call(nodes_train, params)


def tune_nodes(params: NodeTuneParams) -> NodesTuned:
    """Run nodes-tune here and now. Raises WhorlError."""
    return call(nodes_tune, params)


def fingerprint_nodes(params: NodeFingerprintParams) -> NodesFingerprinted:
    """Run nodes-fingerprint here and now. Raises WhorlError."""
    return call(nodes_fingerprint, params)
