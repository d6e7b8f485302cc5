"""The flows that answer questions about nodes: preprocess, rank, evaluate."""

from typing import Any

from prefect.runtime import flow_run

from flows.forms import call, flow
from flows.node_answer_params import NodeEvaluateParams, NodePreprocessParams, NodeRankParams
from flows.node_pages import decisions_page, evaluation_page, ranking_page
from flows.node_results import NodesPreprocessed, NodesRanked
from flows.policies import step
from flows.publish import artifact_key, joined, publish
from flows.run_names import files_or_source, of_evaluation, of_source
from flows.site_pages import publish_summary, report_part, write_report
from tasks.nodes import answers, steps
from tasks.nodes.answers import read_decisions, read_scores, read_watched
from tasks.nodes.node_words import KIND, WORD
from tasks.nodes.reader_names import reader_asked_for
from tasks.warehouse.registry import champion

TAGS = [WORD]

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


def preprocess_nodes(params: NodePreprocessParams) -> NodesPreprocessed:
    """Run nodes-preprocess here and now. Raises WhorlError."""
    return call(nodes_preprocess, params)


def rank_nodes(params: NodeRankParams) -> NodesRanked:
    """Run nodes-rank here and now. Raises WhorlError."""
    return call(nodes_rank, params)


def evaluate_nodes(params: NodeEvaluateParams) -> dict[str, Any]:
    """Run nodes-evaluate here and now. Raises WhorlError."""
    return call(nodes_evaluate, params)
