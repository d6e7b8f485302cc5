"""The flow that watches nodes: verdicts, states by stated rules, alarms, and fresh benchmarks for the suspected."""

from flows.alarms import announce
from flows.emulated_nodes import with_emulated
from flows.forms import call, flow
from flows.fresh_benchmarks import ask_for_benchmarks, enough_for
from flows.node_model_pages import states_page
from flows.node_model_params import NodeWatchParams
from flows.node_model_results import NodesWatched
from flows.policies import step
from flows.publish import artifact_key, joined, publish
from flows.run_names import of_source
from flows.site_pages import report_part, write_report
from tasks.nodes import verdict_steps
from tasks.nodes.node_words import WORD
from tasks.nodes.verdict_steps import read_states
from tasks.warehouse.alarms import read_alarms

TAGS = [WORD]

judge = step(verdict_steps.judge)
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


def watch_nodes(params: NodeWatchParams) -> NodesWatched:
    """Run nodes-watch here and now. Raises WhorlError."""
    return call(nodes_watch, params)
