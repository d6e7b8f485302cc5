"""`whorl nodes train`, `tune`, `fingerprint`, `watch`, `explain`, `evaluate`: what is degraded."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from flows.cli.invocation import Invocation, Output, given, progress_bar, run_flow
from flows.cli.nodes import RANKED, shown_rank, source_with_detector, source_with_executions
from flows.cli.output import say, show_described, show_facts, show_table
from tasks.choices import AUTO, NodeReader, intake_reader
from tasks.nodes.node_words import DETECTOR, NO_REASON, TOGETHER, called, called_all
from tasks.quantities import counted, number, ratio
from tasks.quantities import share as shown_share
from tasks.report.result import records

if TYPE_CHECKING:
    from tasks.settings import Settings


def train(
    call: Invocation,
    source: str | None = None,
    variant: Literal["detector", "ours", "paper"] = "detector",
    epochs: int | None = None,
    seed: int | None = None,
    fresh: bool = False,
) -> Output:
    """Train what tells degraded executions; with --variant ours or paper the network that makes fingerprints.

    The detector learns from all executions; its threshold keeps the budget of false alarms (nodes.budget), and its
    figures are of each execution by what others taught. The network learns from the earlier executions, is measured on
    the latest, and is used if it is better than the one before. Nothing is learned twice from the same data with the
    same parameters. 'whorl models list' shows all, 'whorl models rollback' brings the former one back.

    --source
    --variant: What tells verdicts; or Perona's network, ours or with its authors' choices
    --epochs (1..): Most passes over the training executions
    --seed
    --fresh: The parameters that the variant begins with instead of those of the model in use, and a training even
        of what was trained before"""
    fit = given(epochs=epochs, seed=seed)
    if fit and variant == DETECTOR:
        raise typer.BadParameter("--epochs and --seed are of the network; name --variant ours or paper")
    source_name = source_with_executions(call.warehouse, source)
    parameters: dict[str, Any] = {"as_in_use": not fresh, "trains_again": fresh, "variant": variant}
    if variant != DETECTOR:
        flags = {"variant": variant, **({"fit": fit} if fit else {})}
        parameters |= {"model": flags} if fresh else training_parameters(call.settings, source_name, flags)
    training = run_flow(call, "nodes-train", source=source_name, **parameters)
    few = cautions_of(call, source_name) if variant == DETECTOR else []
    yield {**training, "source": source_name, "cautions": few}
    from flows.nodes import detector_facts, facts_of

    show_facts(facts_of(training) if "champion_id" in training else detector_facts(training))
    if training["is_from_before"]:
        call.note("nothing was learned: the same data, parameters and code made this model; --fresh trains again")
    for line in few:
        call.note(line)
    call.go_on("nodes", "fingerprint", source=source_name, report=training["report"])


def training_parameters(settings: "Settings", source: str, flags: dict[str, Any]) -> dict[str, Any]:
    """What a training is told where flags name some parameters: the others are those of the model in use.

    They are what the variant begins with where no model of it is in use. Raises BadInput as steps.in_use."""
    from tasks.nodes.params import ModelParams
    from tasks.nodes.steps import in_use

    known = in_use(settings.warehouse, source)
    if known is None or flags.get("variant", known["variant"]) != known["variant"]:
        return {"as_in_use": False, "model": flags}
    fit = {**known["fit"], **flags.get("fit", {})}
    return {"as_in_use": False, "model": ModelParams.model_validate({**known, "fit": fit})}


def tune(call: Invocation, source: str | None = None) -> Output:
    """Search the parameters of the model with Optuna through Ray, and train with the best.

    The latest executions, which models are measured on, have no part in it. A search of the same data that was stopped
    goes on; asked for more trials it adds to them.

    --source
    --trials (1.., int .search.n_trials): Configurations that are tried (paper: 100)
    --ray-address ADDRESS (str .search.ray_address): Ray that runs the trials, such as ray://head:10001"""
    from tasks.nodes.params import RAY_SETTING, WITHOUT_RAY
    from tasks.ray_address import check_ray

    settings = call.settings
    source_name = source_with_executions(settings.warehouse, source)
    if settings.nodes.search.runner == "ray":
        address = settings.nodes.search.ray_address  # before minutes of work that would end with this line
        check_ray(address, setting=RAY_SETTING, otherwise=WITHOUT_RAY)
    search = run_flow(call, "nodes-tune", source=source_name)
    yield {**search, "source": source_name}
    from flows.nodes import facts_of

    show_facts(_search_facts(search) | facts_of(search["trained"]))
    call.go_on("nodes", "fingerprint", source=source_name, report=search["report"])


def _search_facts(search: dict[str, Any]) -> dict[str, str]:
    """What a search came to, in words."""
    from tasks.nodes.params import ModelParams
    from tasks.nodes.perona.hyperparameters import space_of

    names = [name.split(".") for name in space_of(ModelParams.model_validate(search["best"]))]
    values = [f"{key.replace('_', ' ')} {search['best'][part][key]}" for part, key in names]
    before = f", {search['n_resumed']:,} of them from before" if search["n_resumed"] else ""
    return {
        "searched": f"{counted(search['n_trials'], 'trial')}{before}",
        "least validation loss": number(search["validation_loss"]),
        "best": ", ".join(values),
        "trials": search["trials"],
    }


def fingerprint(call: Invocation, source: str | None = None) -> Output:
    """Say which executions of a source were degraded; where a network was trained, fingerprint them and rank nodes.

    A score of 1 is the reference fleet, 2 is twice as good. Verdicts stand in nodes.verdicts, the metrics that say so
    in nodes.verdict_reasons, fingerprints in nodes.fingerprints.

    --source"""
    source_name = source_with_detector(call.warehouse, source)
    verdicts = run_flow(call, "nodes-fingerprint", source=source_name)
    from tasks.nodes.answers import read_scores

    rows = records(read_scores(call.warehouse, source_name, "fingerprint_scores")) if verdicts["network_id"] else []
    yield {**verdicts, "source": source_name, "scores": rows}
    print(f"{verdicts['n_flagged']:,} of {counted(verdicts['n_judged'], 'execution')} flagged")
    if verdicts["network_id"]:
        print(f"{verdicts['n_fingerprints']:,} of {counted(verdicts['n_executions'], 'execution')} have a fingerprint")
        print()
        show_table([shown_rank(row) for row in rows], [column for column in RANKED if not column.is_extra])
        names = {row["node"]: called(row["node"], row["is_emulated"]) for row in rows}
        say(f"best by fingerprints: {', '.join(names[node] for node in verdicts['best']) or 'none'}")
    else:
        call.note("without a trained network there are no fingerprints; whorl nodes train --variant ours makes one")
    call.go_on("nodes", "watch", source=source_name, report=verdicts["report"])


def watch(call: Invocation, source: str | None = None, ask: bool = True) -> Output:
    """Say which nodes are degrading, by the model in use and stated rules, and raise an alarm for each.

    One bad execution is no alarm, and an alarm that goes on is told once. What a suspected node runs next confirms the
    alarm or clears it; a confirmed node is to be left out.

    --source
    --ask/--no-ask: Ask suspected nodes for a fresh benchmark, by their deployments"""
    source_name = source_with_detector(call.warehouse, source)
    watched = run_flow(call, "nodes-watch", source=source_name, asks_for_benchmarks=ask)
    from tasks.nodes.verdict_steps import open_messages, read_states
    from tasks.report.nodes_tables import states_table
    from tasks.warehouse.alarms import read_alarms

    still = [text for name, text in open_messages(call.warehouse, source_name).items() if name not in watched["alarms"]]
    states = read_states(call.warehouse, source_name)
    rows = records(states)
    few = cautions_of(call, source_name)
    yield {**watched, "source": source_name, "open": still, "states": rows, "cautions": few}
    names = {row["node"]: called(row["node"], row["is_emulated"]) for row in rows}
    if watched["alarms"]:
        for message in read_alarms(call.warehouse, watched["alarms"])["message"]:
            say(f"alarm: {message}")
    else:
        print("no new alarm")
    say(*(f"open: {message}" for message in still))
    say(*few)
    say(f"to be left out: {', '.join(names.get(node, node) for node in watched['excluded']) or 'none'}")
    print(f"report: {watched['report']}")
    for name in watched["asked"]:
        print(f"asked for a fresh benchmark: {name}")
    print()
    is_shown = (states["state"] != "healthy") | (states.index < MOST_STATES)
    show_described(states_table(states[is_shown]))
    if n_more := int((~is_shown).sum()):
        print(f"and {n_more:,} more, all healthy; --json has them all")
    if watched["cannot_ask"]:
        nodes_without = ", ".join(watched["cannot_ask"])
        call.note(f"no deployment nodes-record/<node> for {nodes_without}: run 'whorl nodes record' there")


def cautions_of(call: Invocation, source: str, node: str | None = None) -> list[str]:
    """What may look healthy and not be, by the parameters of this call: a line each."""
    from tasks.nodes.verdict_steps import cautions

    return cautions(call.warehouse, source, call.settings.nodes.alarm, call.settings.nodes.score, node)


MOST_STATES = 50  # of a node and aspect, of a table for a person; those that are not healthy are shown anyway
MOST = 5  # flagged executions of a node that are told one by one


def explain(call: Invocation, what: str, source: str | None = None) -> Output:
    """Say why an execution or a node looks degraded or does not, in the tool's own metrics and units.

    Verdicts are those of the last 'whorl nodes fingerprint' or 'watch'; without any they are made now.

    NODE|EXECUTION: A node, or the id of one of its executions
    --source"""
    from tasks.nodes.verdict_steps import explain as steps_explain

    source_name = source_with_detector(call.warehouse, source)
    explanation = steps_explain(call.warehouse, source_name, what, call.settings.nodes.score)
    few = cautions_of(call, source_name, what) if explanation["what"] == "node" else []
    yield {**explanation, "source": source_name, "cautions": few}
    say(explanation["answer"], *explanation["states"], *few)
    for execution in explanation["executions"][:MOST]:
        reasons = execution["reasons"] or ([NO_REASON] if execution["is_flagged"] else [])
        heading = [f"  {TOGETHER}"] if execution["reasons"] and execution["is_together"] else []
        say("", _head(execution), *heading, *(f"  {reason}" for reason in reasons))
    if len(explanation["executions"]) > MOST:
        print(f"\nand {len(explanation['executions']) - MOST:,} more; --json has them all")


def _head(execution: dict[str, Any]) -> str:
    when = f" at {execution['started_at'][:16].replace('T', ' ')} UTC" if execution["started_at"] else ""
    verdict = "flagged" if execution["is_flagged"] else "not flagged"
    if execution["probability"] is None:
        verdict += ", no verdict"
    elif execution["by_labels"]:  # without known stress it is how far the headline metrics are from usual
        verdict += f", probability {execution['probability']:.2f}"
    return f"{execution['execution_id']} ({execution['benchmark']}){when}: {verdict}"


PROTOCOLS = {"chronological", "paper"}
LEARNED = {"ours": ("ours",), "paper": ("paper",), "both": ("ours", "paper"), "none": ()}


def evaluation_parameters(
    variant: str | None,
    model: str | None,
    seeds: int | None,
    protocols: list[Any] | None,
    repeats: int | None,
    seed: int | None,
    without_labels: bool,
    curve: bool,
) -> dict[str, Any]:
    """Flags of the command line as parameters of an evaluation; what was not given is not in it."""
    if unknown := sorted({*(protocols or ())} - PROTOCOLS):
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(sorted(PROTOCOLS))}", param_hint="--protocol")
    fit = None if seed is None else {"fit": {"seed": seed}}
    learned = given(seeds=seeds, protocols=protocols or None, model=fit)
    parameters = given(
        seed=seed,
        preprocess={"variant": variant} if variant else None,
        without_labels=without_labels or None,
        curve=curve or None,
    )
    if repeats is not None:
        parameters |= {"injection": {"repeats": repeats}, "repeats": max(repeats, 1)}
    return {**parameters, "learned": {**learned, "variants": LEARNED[model or "both"]}}


LEFT_OUT = {"n_refused": "refused row", "n_values_refused": "refused value", "n_replaced": "replaced execution"}


def evaluate(
    call: Invocation,
    paths: list[str] = [],
    reader: NodeReader = AUTO,
    variant: Literal["robust", "paper"] | None = None,
    model: Literal["ours", "paper", "both", "none"] | None = None,
    seeds: int | None = None,
    protocols: list[str] | None = None,
    without_labels: bool = False,
    train: list[str] = [],
    curve: bool = False,
    repeats: int | None = None,
    seed: int | None = None,
    out: Path | None = None,
) -> Output:
    """Measure on results of benchmarks how well stressed executions are found, and what scores of nodes are worth.

    Only the paths are read, into memory; nothing is kept. tasks/nodes/README.md says what each figure means.

    PATH: Results: files or folders; not needed with --manifest
    --reader: Format; auto looks into each file
    --label-from stem|parent|column:NAME (str .read.label_from): Where the node of a file is written
    --manifest FILE (path .read.manifest): CSV or JSONL: path, benchmark, node, machine_type, started_at,
        is_stressed, dose
    --map, --time-zone
    --variant: Preprocessing: ours, or the paper's
    --model: Perona's network beside the plain answers: ours, the paper's, both or none; or else both
    --seeds (1..1000): Fits of the network in each split
    --protocol chronological|paper: Way of splitting that it is fitted in; may be repeated
    --without-labels: Hide labels of stress from all that learns or chooses: they only measure
    --train PATH: Results that are learned from alone: those of PATH are tested; may be repeated
    --curve: Measure as well what 0, 1, 2, 5, 10 and 20 known stressed executions teach
    --repeats (0..1000): Random splits, and draws of injected degradation; 0: no such draw
    --seed
    --out DIR: Write tables as Parquet, and a page with figures, there"""
    parameters = evaluation_parameters(variant, model, seeds, protocols, repeats, seed, without_labels, curve)
    settings = call.settings.nodes
    if not paths and not settings.read.manifest:
        raise typer.BadParameter("name results, or a --manifest of them", param_hint="PATH")
    from tasks.nodes.intake import left_out_line
    from tasks.nodes.params import EvaluateParams
    from tasks.nodes.steps import evaluate_results, write_page
    from tasks.report.nodes_evaluation import detectors_table

    with progress_bar(call, first="reading results"):
        evaluation, name, emulated = evaluate_results(
            paths, intake_reader(reader), settings.read, EvaluateParams.model_validate(parameters), train=train
        )
    if line := left_out_line(paths):
        call.note(line)
    if out is not None:
        call.note(f"tables: {out}; page: {write_page(evaluation, name, str(out), emulated)}")
    yield evaluation.figures
    show_facts(_evaluation_facts(evaluation.figures, emulated))
    if (shown := detectors_table(evaluation.figures)).rows:
        print()
        show_described(shown)


def _evaluation_facts(figures: dict[str, Any], emulated: frozenset[str]) -> dict[str, str]:
    """What was evaluated, and what is not in the table of detectors."""

    def text(key: str, show: Any = ratio) -> str:
        value = figures.get(key)
        return str(figures.get(f"{key}.reason", "not measured")) if value is None else str(show(value))

    def named(names: str) -> str:
        return called_all(names, emulated)

    of = f"{counted(figures['n'], 'execution')} on {counted(figures['n_nodes'], 'node')}"
    of += f" ({len(emulated):,} of them emulated)" if emulated else ""
    return {
        "evaluated": f"{of}, {figures['n_stressed']:,} known to be stressed",
        "left out": ", ".join(counted(figures[key], what) for key, what in LEFT_OUT.items()),
        "metrics": f"{figures['metrics.kept']:,} of {figures['metrics.recorded']:,} kept",
        "best node": text("nodes.best", named),
        "most suspicious": text("nodes.most_suspicious", named),
        "score and applications": f"Spearman {text('rank.spearman')}; best single benchmark {text('rank.best_single')}",
        "a rerun differs by": f"{text('repeatability.rerun_median', shown_share)} (median), "
        f"{text('repeatability.rerun_p90', shown_share)} (one in ten)",
        "stressed executions": text("detect.n", number) if figures.get("detect.n") is None else "see below",
    }
