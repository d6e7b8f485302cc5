"""The whole story on the recordings that whorl ships: what jobs did and will do, what ran, how good nodes are."""

from contextlib import suppress
from typing import Any

import pandas as pd

from flows.engine.artifacts import pages_at_the_end
from flows.engine.forms import WordsParams, call, flow
from flows.jobs import jobs_characterise, jobs_explain, jobs_ingest, jobs_predict, jobs_train, jobs_watch, jobs_whatif
from flows.nodes import nodes_fingerprint, nodes_ingest, nodes_preprocess, nodes_rank, nodes_train, nodes_watch
from flows.workloads import workloads_fingerprint, workloads_identify, workloads_ingest, workloads_train
from tasks import datasets
from tasks.advice.params import AdviceParams
from tasks.advice.steps import recorded_story
from tasks.errors import BadInput
from tasks.jobs.control.lateness import NO_REASON, reason_of, with_answers, with_costs
from tasks.jobs.explain.reasons import explain_next_of
from tasks.jobs.outlook import next_run
from tasks.jobs.params import ExplainParams, JobsParams, quick
from tasks.jobs.predict.predicting import read_predictions
from tasks.jobs.summary import read_summary
from tasks.nodes.answers import read_scores
from tasks.nodes.node_words import KIND as NODES_KIND
from tasks.nodes.node_words import called, degrading_words
from tasks.nodes.params import NodesParams
from tasks.nodes.verdict_steps import open_messages, read_states
from tasks.quantities import duration
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion, read_card
from tasks.workloads.identifications import identify_each, latest_labelled_run
from tasks.workloads.intake import fetch_runs
from tasks.workloads.models import KIND as WORKLOADS_KIND
from tasks.workloads.models import model_in_use
from tasks.workloads.params import WorkloadsParams

SOURCE = "recorded"
N_NEAREST = 3
UNDISTURBED_RUNS = "runs-*.parquet"  # beside them lie the runs that something disturbed


def recorded_files(word: str, pattern: str) -> list[str]:
    """The recordings of a word that whorl ships. Raises BadInput where there are none."""
    folder = datasets.RECORDED / word
    if not (paths := [str(path) for path in sorted(folder.glob(pattern))]):
        raise BadInput(folder, f"no recording of {word}", pattern, "bring the files back")
    return paths


def identify_recorded(warehouse: Warehouse, workloads: WorkloadsParams) -> dict[str, Any]:
    """Read the recorded workloads, learn all runs but the last one, and say what that is. Raises WhorlError.

    A model of these very data that has not seen the run is used again."""
    known = {"source": SOURCE, "warehouse": warehouse, **dict(workloads)}
    read = call(workloads_ingest, known, telemetry=recorded_files("workloads", UNDISTURBED_RUNS))
    run_id, label = latest_labelled_run(warehouse, SOURCE)
    in_use = champion(warehouse.models, "workloads", SOURCE, WORKLOADS_KIND)
    version, left_out = (in_use.data_version, in_use.parameters.get("left_out", [])) if in_use else ("", [])
    if version != read["data_version"] or run_id not in left_out:
        call(workloads_fingerprint, known)
        call(workloads_train, known, left_out=[run_id])
    answer = call(workloads_identify, known, run_ids=[run_id])
    identified = identify_each(fetch_runs(warehouse, SOURCE, [run_id]), *model_in_use(warehouse, SOURCE))
    if identified.refused:
        raise identified.refused[0]
    [identification] = identified.identifications
    card = read_card(warehouse.models, "workloads", identified.model_id)
    return {
        "run_id": run_id,
        "label": label,
        "workload": identification.workload if identification.is_known else None,
        "confidence": identification.confidence,
        "nearest": [near._asdict() for near in identification.nearest[:N_NEAREST]],
        "reasons": list(identification.reasons),
        "model_id": card.model_id,
        "accuracy": card.metrics["held_out.accuracy"],
        "n_held_out": int(card.metrics["held_out.n"]),
        "n_runs": int(card.metrics["trained.n"]),
        "n_workloads": int(card.metrics["trained.classes"]),
        "report": answer["report"],
    }


UNDISTURBED_EXECUTIONS = "executions-*.parquet"  # beside them may lie the executions that something disturbed


def rank_recorded(warehouse: Warehouse, nodes: NodesParams) -> dict[str, Any]:
    """Read the recorded executions; rank their nodes, learn what is normal, say which look degraded. Raises WhorlError.

    A preprocessing and a detector of these very data, and answers that rest on them, are used again. No node is asked
    for a fresh benchmark: these are recordings."""
    known = {"source": SOURCE, "warehouse": warehouse, **dict(nodes)}
    read = call(nodes_ingest, known, results=recorded_files("nodes", UNDISTURBED_EXECUTIONS))
    in_use = champion(warehouse.models, "nodes", SOURCE, NODES_KIND)
    if in_use is None or in_use.data_version != read["data_version"]:
        call(nodes_preprocess, known)
    ranked = call(nodes_rank, known)
    rows = read_scores(warehouse, SOURCE).to_dict("records")
    names = {str(row["node"]): called(str(row["node"]), row["is_emulated"]) for row in rows}
    learned = call(nodes_train, known)
    judged = call(nodes_fingerprint, known)
    call(nodes_watch, known, asks_for_benchmarks=False)
    states = read_states(warehouse, SOURCE)
    cost = states["cost_share"].max()
    verdicts = {
        **{key: judged[key] for key in ("model_id", "n_judged", "n_flagged")},
        "figures": learned["figures"],
        "degrading": degrading_words(states.to_dict("records"), names),
        "alarms": list(open_messages(warehouse, SOURCE).values()),
        "cost_share": None if pd.isna(cost) else float(cost),
    }
    return {
        **{key: ranked[key] for key in ("n_executions", "model_id", "report")},
        "n_nodes": len(names),
        "n_emulated": len({row["node"] for row in rows if row["is_emulated"]}),
        "best": _best(rows, names),
        "verdicts": verdicts,
    }


def _best(rows: list[dict[Any, Any]], names: dict[str, str]) -> list[dict[str, Any]]:
    """rows: of the ranking, by aspect, the one number and the best first."""
    best = []
    for aspect in dict.fromkeys(str(row["aspect"]) for row in rows):
        first = [row for row in rows if row["aspect"] == aspect and row["rank"] == 1]
        nodes = [names[str(row["node"])] for row in first]
        best.append({"aspect": aspect, "nodes": nodes, "score": float(first[0]["score"])})
    return best


KIND = "runtime"
ALARMS_PER_DAY = 100.0  # the recording lasts some hours: at one a day there would be none to show
FILES = "SELECT word, count(*) AS n_files FROM ops.files WHERE source = $source GROUP BY word ORDER BY word"


class DemoParams(WordsParams):
    """Where the demo works, and with which settings."""


@flow(lambda: "tell the story of the recordings")
def whorl_demo(params: DemoParams) -> dict[str, Any]:
    """Read the recorded jobs that whorl ships, summarise them, raise an alarm for each slow run, and predict the next
    run of each job; then name a recorded run of a workload that was held out; and rank recorded nodes, learn what is
    normal for them, and say which look degraded; and choose a machine type for a job that has run on one alone."""
    jobs, warehouse = params.jobs, params.warehouse
    known = {"source": SOURCE, "warehouse": warehouse, **dict(jobs)}
    with pages_at_the_end(warehouse):
        ingested = call(jobs_ingest, known, paths=[str(datasets.RECORDED / "jobs")])
        watch = jobs.watch.model_copy(update={"alarms_per_day": ALARMS_PER_DAY})
        watched = call(jobs_watch, known, watch=watch)
        predicted = _predicted(warehouse, ingested["data_version"], jobs)
        totals = read_summary(warehouse, SOURCE)
        return {
            "source": SOURCE,
            **{key: ingested[key] for key in ("n_rows", "n_quarantined", "data_version")},
            "n_runs": totals["n_runs"],
            "n_jobs": totals["n_groups"],
            "alarms": watched["alarms"],
            **{key: predicted[key] for key in ("report", "model_id")},
            "riskiest": riskiest_job(warehouse, jobs),
            "workload": identify_recorded(warehouse, params.workloads),
            "nodes": rank_recorded(warehouse, params.nodes),
            "n_files": fetch(warehouse, FILES, {"source": SOURCE}).set_index("word")["n_files"].to_dict(),
            "advice": choose_recorded(warehouse, params.advice),
        }


def choose_recorded(warehouse: Warehouse, params: AdviceParams) -> dict[str, Any]:
    """The cheapest machine type for a recorded job that is rarely late, checked with runs that were held back."""
    from tasks.report.advice import story_checks, story_result
    from tasks.report.site import write_advice

    story = recorded_story(str(datasets.RECORDED / "advice"), params.choose)
    again = "whorl advice choose --recording data/recorded/advice"
    write_advice(warehouse, "advice-story", story_result(story, "recorded", again))
    said = {key: getattr(story, key) for key in ("answer", "sureness", "reason", "next_run")}
    return said | {"checks": list(story_checks(story))}


def _predicted(warehouse: Warehouse, data_version: str, jobs: JobsParams) -> dict[str, Any]:
    """The next run of each job by a model of these very data: the one in use, or one trained quickly, with what it says
    of shapes, reasons and changes."""
    known = {"source": SOURCE, "warehouse": warehouse, **dict(jobs)}
    in_use = champion(warehouse.models, "jobs", SOURCE, KIND)
    if in_use is None or in_use.data_version != data_version:
        call(jobs_train, known, evaluate=quick(jobs.evaluate))
        call(jobs_characterise, known)
        call(jobs_explain, known, explain=ExplainParams(n_longest=3, n_riskiest=3))
        with suppress(BadInput):  # a log that tells nothing of machines
            call(jobs_whatif, known, scenarios=["newest_sku"])
    return call(jobs_predict, known)


def riskiest_job(warehouse: Warehouse, jobs: JobsParams) -> dict[str, Any] | None:
    """The job that is most likely to take twice its usual time, why, and which of three changes would help most."""
    rows = with_costs(
        warehouse, SOURCE, read_predictions(warehouse, SOURCE, min_before=jobs.summary.min_support, limit=1)
    )
    for row in with_answers(warehouse, SOURCE, rows, most=1).to_dict("records"):
        key = str(row["group_key"])
        return {
            "group_key": key,
            **{name: float(row[name]) for name in ("usual_s", "exceeds_2x_share", "p95_s")},
            "because": _because(warehouse, key, jobs),
            "would_help": str(row["would_help"]),
        }
    return None


def _because(warehouse: Warehouse, key: str, jobs: JobsParams) -> str:
    """How far apart the runs of a job lie, and what, known before a run, makes the next one long: often nothing."""
    outlook = next_run(warehouse, SOURCE, key, jobs.summary)
    low, high, longest = (duration(outlook.quantiles_s[level]) for level in (0.25, 0.75, 0.95))
    spread = f"half of its {outlook.n:,} runs took {low} to {high}, one in twenty over {longest}"
    return f"{spread}; {reason_of(explain_next_of(warehouse, SOURCE, key)) or NO_REASON}"
