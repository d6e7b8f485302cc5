"""`whorl nodes train`, `tune`, `fingerprint`, `watch`, `explain`, `evaluate`: what is degraded."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from typer import Argument, Option

from flows.cli.invocation import (
    Invocation,
    Json,
    Renamed,
    Seed,
    Source,
    TablesOut,
    TimeZone,
    absolute_paths,
    given,
    invocation_of,
    progress_bar,
    run_flow,
)
from flows.cli.nodes import RANKED, LabelFrom, Manifest, one_learning_source, one_trained_source, read_flags
from flows.cli.output import as_command, records, show_described, show_facts, show_json, show_table
from tasks.choices import AUTO, NodeReader, reader_asked_for
from tasks.nodes.node_words import called, called_all, interval
from tasks.quantities import MISSING, counted, number, ratio
from tasks.quantities import share as shown_share
from tasks.report.result import count

if TYPE_CHECKING:
    from tasks.nodes.evaluate.protocol import Evaluation
    from tasks.nodes.network_steps import TrainedNodes
    from tasks.nodes.verdict_steps import Explained, LearnedVerdicts
    from tasks.settings import Settings


class Variant(StrEnum):
    """What is trained."""

    DETECTOR = "detector"
    OURS = "ours"
    PAPER = "paper"


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


def train(
    context: typer.Context,
    source: Source = None,
    variant: Annotated[
        Variant, Option(help="What tells verdicts; or Perona's network, ours or with its authors' choices")
    ] = Variant.DETECTOR,
    epochs: Annotated[int | None, Option(min=1, help="Most passes over the training executions")] = None,
    seed: Seed = None,
    fresh: Annotated[
        bool,
        Option(
            "--fresh",
            help="The parameters that the variant begins with instead of those of the model in use, and a training "
            "even of what was trained before",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Train what tells degraded executions; with --variant ours or paper the network that makes fingerprints.

    The detector learns from all executions; its threshold keeps the budget of false alarms (nodes.budget), and its
    figures are of each execution by what others taught. The network learns from the earlier executions, is measured on
    the latest, and is used if it is better than the one before. Nothing is learned twice from the same data with the
    same parameters. 'whorl models list' shows all, 'whorl models rollback' brings the former one back."""
    invocation = invocation_of(context)
    fit = given(epochs=epochs, seed=seed)
    is_network = variant is not Variant.DETECTOR
    if fit and not is_network:
        raise typer.BadParameter("--epochs and --seed are of the network; name --variant ours or paper")
    flags: dict[str, Any] = {"variant": variant.value, **({"fit": fit} if fit else {})} if is_network else {}
    settings = invocation.settings
    chosen = one_learning_source(settings.warehouse, source)
    own: dict[str, Any] = {"as_in_use": not fresh, "trains_again": fresh, "variant": variant.value}
    if flags:
        own |= {"model": flags} if fresh else asked_model(settings, chosen, flags)
    found = run_flow(invocation, "nodes-train", settings, source=chosen, **own)
    if as_json:
        return show_json({**found, "source": chosen})
    if "champion_id" in found:
        show_facts(facts_of(cast("TrainedNodes", found)))
    else:
        show_facts(detector_facts(found))
    print(f"report: {found['report']}")
    if found["is_from_before"]:
        invocation.note("nothing was learned: the same data, parameters and code made this model; --fresh trains again")
    invocation.note(f"next: {as_command('whorl', 'nodes', 'fingerprint', '--source', chosen)}")


def asked_model(settings: "Settings", source: str, flags: dict[str, Any]) -> dict[str, Any]:
    """What a training is told where flags name some parameters: the others are those of the model in use.

    They are what the variant begins with where no model of it is in use. Raises BadInput as network_steps.in_use."""
    from tasks.nodes.network_steps import in_use
    from tasks.nodes.params import ModelParams

    known = in_use(settings.warehouse, source)
    if known is None or flags.get("variant", known["variant"]) != known["variant"]:
        return {"as_in_use": False, "model": flags}
    fit = {**known["fit"], **flags.get("fit", {})}
    return {"as_in_use": False, "model": ModelParams.model_validate({**known, "fit": fit})}


def detector_facts(found: "LearnedVerdicts") -> dict[str, str]:
    """What the training of a detector came to, in words."""
    from flows.nodes import budget_words

    known = f"{count(found['n_learned'])} executions, {count(found['n_stressed'])} of them known to be stressed"
    basis = "models that know stress" if found["n_stressed"] else "headline metrics alone, as no stress is known"
    return {
        "detector": found["model_id"],
        "learned": f"{known}{', before' if found['is_from_before'] else ''}",
        "verdicts by": basis,
        **{words: number(found["figures"][key]) for key, words in WORDS.items() if key in found["figures"]},
        "false alarms": budget_words(found),
        "data version": found["data_version"],
    }


def facts_of(found: "TrainedNodes") -> dict[str, str]:
    """What a training came to, in words."""
    champion, figures = found["champion_id"], found["figures"]
    in_use = "this model" if champion == found["model_id"] else f"{champion}: this one was not found to be better"
    return {
        "model": found["model_id"],
        "in use": in_use,
        "learned": f"{count(found['n_learned'])} executions{', before' if found['is_from_before'] else ''}",
        "held out": f"{count(found['n_tested'])} executions, the latest, which the figures below are of",
        **{words: number(figures[key]) for key, words in WORDS.items() if key in figures},
        "data version": found["data_version"],
    }


def tune(
    context: typer.Context,
    source: Source = None,
    trials: Annotated[int | None, Option(min=1, help="Configurations that are tried (paper: 100)")] = None,
    ray_address: Annotated[
        str | None, Option(metavar="ADDRESS", help="Ray that runs the trials, such as ray://head:10001")
    ] = None,
    as_json: Json = False,
) -> None:
    """Search the parameters of the model with Optuna through Ray, and train with the best.

    The latest executions, which models are measured on, have no part in it. A search of the same data that was stopped
    goes on; asked for more trials it adds to them."""
    from tasks.nodes.params import RAY_SETTING, WITHOUT_RAY
    from tasks.ray_address import check_ray

    invocation = invocation_of(context)
    flags = given(n_trials=trials, ray_address=ray_address)
    settings = invocation.resolved({"nodes": {"search": flags} if flags else {}}).settings
    chosen = one_learning_source(settings.warehouse, source)
    if settings.nodes.search.runner == "ray":
        address = settings.nodes.search.ray_address  # before minutes of work that would end with this line
        check_ray(address, setting=RAY_SETTING, otherwise=WITHOUT_RAY)
    found = run_flow(invocation, "nodes-tune", settings, source=chosen)
    if as_json:
        return show_json({**found, "source": chosen})
    show_facts(_search_facts(found) | facts_of(found["trained"]))
    print(f"report: {found['report']}")
    invocation.note(f"next: {as_command('whorl', 'nodes', 'fingerprint', '--source', chosen)}")


def _search_facts(found: dict[str, Any]) -> dict[str, str]:
    """What a search came to, in words."""
    from tasks.nodes.params import ModelParams
    from tasks.nodes.perona.search import space_of

    names = [name.split(".") for name in space_of(ModelParams.model_validate(found["best"]))]
    values = [f"{key.replace('_', ' ')} {found['best'][part][key]}" for part, key in names]
    before = f", {found['n_resumed']:,} of them from before" if found["n_resumed"] else ""
    return {
        "searched": f"{counted(found['n_trials'], 'trial')}{before}",
        "least validation loss": number(found["validation_loss"]),
        "best": ", ".join(values),
        "trials": found["trials"],
    }


def fingerprint(context: typer.Context, source: Source = None, as_json: Json = False) -> None:
    """Say which executions of a source were degraded; where a network was trained, fingerprint them and rank nodes.

    A score of 1 is the reference fleet, 2 is twice as good. Verdicts stand in nodes.verdicts, the metrics that say so
    in nodes.verdict_reasons, fingerprints in nodes.fingerprints."""
    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_trained_source(settings.warehouse, source)
    found = run_flow(invocation, "nodes-fingerprint", settings, source=chosen)
    from flows.nodes import with_emulated
    from tasks.nodes.network_steps import read_fingerprint_scores

    scores = read_fingerprint_scores(settings.warehouse, chosen) if found["network_id"] else None
    rows = [] if scores is None else records(with_emulated(scores, settings.warehouse, chosen))
    if as_json:
        return show_json({**found, "source": chosen, "scores": rows})
    print(f"{found['n_flagged']:,} of {counted(found['n_judged'], 'execution')} look degraded")
    if found["network_id"]:
        print(f"{found['n_fingerprints']:,} of {counted(found['n_executions'], 'execution')} have a fingerprint")
        print()
        show_table([_shown(row) for row in rows], RANKED)
        names = {row["node"]: called(row["node"], row["is_emulated"]) for row in rows}
        print(f"best by fingerprints: {', '.join(names[node] for node in found['best']) or 'none'}")
    else:
        invocation.note(
            "without a trained network there are no fingerprints; whorl nodes train --variant ours makes one"
        )
    print(f"report: {found['report']}")
    invocation.note(f"next: {as_command('whorl', 'nodes', 'watch', '--source', chosen)}")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    told = {"interval": interval(row) or MISSING, "tied": "tied" if row["is_tied"] else ""}
    return {**row, **told, "name": called(row["node"], row["is_emulated"])}


def watch(
    context: typer.Context,
    source: Source = None,
    ask: Annotated[
        bool, Option("--ask/--no-ask", help="Ask suspected nodes for a fresh benchmark, by their deployments")
    ] = True,
    as_json: Json = False,
) -> None:
    """Say which nodes are degrading, by the model in use and stated rules, and raise an alarm for each.

    One bad execution is no alarm, and an alarm that goes on is told once. What a suspected node runs next confirms the
    alarm or clears it; a confirmed node is to be left out."""
    invocation = invocation_of(context)
    settings = invocation.settings
    chosen = one_trained_source(settings.warehouse, source)
    found = run_flow(invocation, "nodes-watch", settings, source=chosen, asks_for_benchmarks=ask)
    from flows.nodes import with_emulated
    from tasks.nodes.verdict_steps import open_messages, read_states
    from tasks.report.nodes import states_table
    from tasks.warehouse.alarms import read_alarms

    still = [one for name, one in open_messages(settings.warehouse, chosen).items() if name not in found["alarms"]]
    states = with_emulated(read_states(settings.warehouse, chosen), settings.warehouse, chosen)
    rows = records(states)
    if as_json:
        return show_json({**found, "source": chosen, "open": still, "states": rows})
    names = {row["node"]: called(row["node"], row["is_emulated"]) for row in rows}
    show_described(states_table(states))
    print()
    if found["alarms"]:
        for message in read_alarms(settings.warehouse, ids=found["alarms"], limit=len(found["alarms"]))["message"]:
            print(f"alarm: {message}")
    else:
        print("no new alarm")
    for message in still:
        print(f"open: {message}")
    print(f"to be left out: {', '.join(names.get(node, node) for node in found['excluded']) or 'none'}")
    print(f"report: {found['report']}")
    for name in found["asked"]:
        print(f"asked for a fresh benchmark: {name}")
    if found["cannot_ask"]:
        nodes_without = ", ".join(found["cannot_ask"])
        invocation.note(f"no deployment nodes-record/<node> for {nodes_without}: run 'whorl nodes record' there")


MOST = 5  # flagged executions of a node that are told one by one


def explain(
    context: typer.Context,
    what: Annotated[str, Argument(metavar="NODE|EXECUTION", help="A node, or the id of one of its executions")],
    source: Source = None,
    as_json: Json = False,
) -> None:
    """Say why an execution or a node looks degraded or does not, in the tool's own metrics and units.

    Verdicts are those of the last 'whorl nodes fingerprint' or 'watch'; without any they are made now."""
    from tasks.nodes.verdict_steps import explain as steps_explain

    settings = invocation_of(context).settings
    chosen = one_trained_source(settings.warehouse, source)
    found = steps_explain(settings.warehouse, chosen, what, settings.nodes.score)
    if as_json:
        return show_json({**found, "source": chosen})
    for line in _lines(found):
        print(line)


def _lines(found: "Explained") -> list[str]:
    """The answer first, then each flagged execution with its reasons, the latest first."""
    lines = [found["answer"], *found["states"]]
    for one in found["executions"][:MOST]:
        lines += ["", _head(one), *(f"  {reason}" for reason in one["reasons"] or ["no metric alone says so"])]
    if len(found["executions"]) > MOST:
        lines += ["", f"and {len(found['executions']) - MOST:,} more; --json has them all"]
    return lines


def _head(one: dict[str, Any]) -> str:
    when = f" at {one['started_at'][:16].replace('T', ' ')} UTC" if one["started_at"] else ""
    sure = "no verdict" if one["probability"] is None else f"probability {one['probability']:.2f}"
    return (
        f"{one['execution_id']} ({one['benchmark']}){when}: {'flagged' if one['is_flagged'] else 'not flagged'}, {sure}"
    )


BOTH = "both"
PROTOCOLS = {"chronological", "paper"}
LEARNED = {"ours": ("ours",), "paper": ("paper",), BOTH: ("ours", "paper"), "none": ()}

EvaluatedVariant = Annotated[Literal["robust", "paper"] | None, Option(help="Preprocessing: ours, or the paper's")]
Model = Annotated[
    Literal["ours", "paper", "both", "none"] | None,
    Option(help="Perona's network beside the plain answers: ours, the paper's, both or none; or else both"),
]
Seeds = Annotated[int | None, Option(min=1, max=1000, help="Fits of the network in each split")]
Protocols = Annotated[
    list[str] | None,
    Option("--protocol", metavar="chronological|paper", help="Way of splitting that it is fitted in; may be repeated"),
]
Train = Annotated[
    list[str] | None,
    Option(
        "--train", metavar="PATH", help="Results that are learned from alone: those of PATH are tested; may be repeated"
    ),
]
Curve = Annotated[
    bool, Option("--curve", help="Measure as well what 0, 1, 2, 5, 10 and 20 known stressed executions teach")
]
Repeats = Annotated[
    int | None, Option(min=0, max=1000, help="Random splits, and draws of injected degradation; 0: no such draw")
]
WithoutLabels = Annotated[
    bool, Option("--without-labels", help="Hide labels of stress from all that learns or chooses: they only measure")
]


def asked_settings(
    variant: str | None,
    model: str | None,
    seeds: int | None,
    protocols: list[Any] | None,
    seed: int | None,
    repeats: int | None = None,
    *,
    without_labels: bool,
    curve: bool = False,
) -> dict[str, Any]:
    """Flags of the command line as parameters of an evaluation; what was not given is not in it."""
    if unknown := sorted({*(protocols or ())} - PROTOCOLS):
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(sorted(PROTOCOLS))}", param_hint="--protocol")
    learned: dict[str, Any] = {"seeds": seeds, "protocols": protocols or None}
    learned["variants"] = LEARNED[model or BOTH]
    asked: dict[str, Any] = {}
    if repeats is not None:
        asked = {"injection": {"repeats": repeats}, "repeats": max(repeats, 1)}
    if seed is not None:
        asked |= {"seed": seed}
        learned["model"] = {"fit": {"seed": seed}}
    if without_labels:
        asked["without_labels"] = True
    if curve:
        asked["curve"] = True
    if variant:
        asked["preprocess"] = {"variant": variant}
    return asked | {"learned": {name: value for name, value in learned.items() if value is not None}}


LEFT_OUT = {"n_refused": "refused row", "n_values_refused": "refused value", "n_replaced": "replaced execution"}


def evaluate(
    context: typer.Context,
    paths: Annotated[
        list[str] | None, Argument(metavar="PATH", help="Results: files or folders; not needed with --manifest")
    ] = None,
    reader: Annotated[NodeReader, Option(help="Format; auto looks into each file")] = AUTO,
    label_from: LabelFrom = None,
    manifest: Manifest = None,
    renamed: Renamed = None,
    time_zone: TimeZone = None,
    variant: EvaluatedVariant = None,
    model: Model = None,
    seeds: Seeds = None,
    protocols: Protocols = None,
    without_labels: WithoutLabels = False,
    train: Train = None,
    curve: Curve = False,
    repeats: Repeats = None,
    seed: Seed = None,
    out: TablesOut = None,
    as_json: Json = False,
) -> None:
    """Measure on results of benchmarks how well stressed executions are found, and what scores of nodes are worth.

    Only the paths are read, into memory; nothing is kept. tasks/nodes/README.md says what each figure means."""
    invocation = invocation_of(context)
    read = read_flags(label_from, manifest, renamed, time_zone)
    asked = asked_settings(variant, model, seeds, protocols, seed, repeats, without_labels=without_labels, curve=curve)
    settings = invocation.resolved({"nodes": {"read": read}}).settings.nodes
    if not paths and not settings.read.manifest:
        raise typer.BadParameter("name results, or a --manifest of them", param_hint="PATH")
    from tasks.nodes.intake import tell_left_out
    from tasks.nodes.params import EvaluateParams
    from tasks.nodes.steps import evaluate_results

    absolute = absolute_paths(paths)
    with progress_bar(invocation, first="reading results"):
        found, name, emulated = evaluate_results(
            absolute,
            reader_asked_for(reader),
            settings.read,
            EvaluateParams.model_validate(asked),
            train=absolute_paths(train),
        )
    if line := tell_left_out(absolute):
        invocation.note(line)
    if out is not None:
        _write(invocation, found, name, out, emulated)
    if as_json:
        return show_json(found.figures)
    _show(found.figures, emulated)


def _write(invocation: Invocation, found: "Evaluation", name: str, out: Path, emulated: frozenset[str]) -> None:
    from tasks.nodes.steps import write_page

    page = write_page(found, name, str(out), emulated)
    invocation.note(f"tables: {out}; page: {page}")


def _show(figures: dict[str, Any], emulated: frozenset[str]) -> None:
    from tasks.report.nodes_evaluation import detectors_table

    show_facts(_evaluation_facts(figures, emulated))
    if (shown := detectors_table(figures)).rows:
        print()
        show_described(shown)


def _evaluation_facts(figures: dict[str, Any], emulated: frozenset[str]) -> dict[str, str]:
    """What was evaluated, and what is not in the table of detectors."""

    def told(key: str, show: Any = ratio) -> str:
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
        "best node": told("nodes.best", named),
        "best by first component": told("nodes.best.pc1", named),
        "most suspicious": told("nodes.most_suspicious", named),
        "score and applications": f"Spearman {told('rank.spearman')}; best single benchmark {told('rank.best_single')}",
        "a rerun differs by": f"{told('repeatability.rerun_median', shown_share)} (median), "
        f"{told('repeatability.rerun_p90', shown_share)} (one in ten)",
        "stressed executions": told("detect.n", number) if figures.get("detect.n") is None else "see below",
    }
