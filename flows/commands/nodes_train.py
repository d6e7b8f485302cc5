"""`whorl nodes train`: a model of the nodes of a source."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from flows.commands.nodes_options import one_learning_source
from flows.commands.options import Json, Seed, Source
from flows.invocation import invocation_of
from flows.running import flow_running
from flows.shown import as_command, count
from flows.tables import show_facts
from tasks.quantities import number

if TYPE_CHECKING:
    from tasks.nodes.network_steps import TrainedNodes
    from tasks.nodes.verdict_steps import LearnedVerdicts
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
        Variant, typer.Option(help="What tells verdicts; or Perona's network, ours or with its authors' choices")
    ] = Variant.DETECTOR,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Most passes over the training executions", show_default=False)
    ] = None,
    seed: Seed = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Parameters of conf/nodes.yaml instead of those of the model in use, and a training even of what was "
            "trained before",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Train what tells degraded executions; with --variant ours or paper the network that makes fingerprints.

    The detector learns from all executions; its threshold keeps the budget of false alarms (nodes.budget), and its
    figures are of each execution by what others taught. The network learns from the earlier executions, is measured on
    the latest, and is used if it is better than the one before. Nothing is learned twice from the same data with the
    same parameters. 'whorl models list' shows all, 'whorl models rollback' brings the former one back."""
    from flows.machine_output import show_json

    invocation = invocation_of(context)
    fit = {key: value for key, value in {"epochs": epochs, "seed": seed}.items() if value is not None}
    is_network = variant is not Variant.DETECTOR
    if fit and not is_network:
        raise typer.BadParameter("--epochs and --seed are of the network; name --variant ours or paper")
    flags: dict[str, Any] = {"variant": variant.value, **({"fit": fit} if fit else {})} if is_network else {}
    settings = invocation.resolved({"nodes": {"model": flags} if flags else {}}).settings
    chosen = one_learning_source(settings.warehouse, source)
    own: dict[str, Any] = {"as_in_use": not fresh, "trains_again": fresh, "variant": variant.value}
    if flags and not fresh:
        own |= asked_model(settings, chosen, flags)
    with flow_running(invocation):
        from flows.node_model_params import NodeTrainParams, filled_in
        from flows.node_models import train_nodes

        found = train_nodes(filled_in(NodeTrainParams, settings.nodes, settings.warehouse, chosen, **own))
    if as_json:
        show_json({**found, "source": chosen})
        return
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

    They are those of the settings where no model of that variant is in use. Raises BadInput as network_steps.in_use."""
    from tasks.nodes.network_steps import in_use
    from tasks.nodes.perona.params import ModelParams

    known = in_use(settings.warehouse, source)
    if known is None or flags.get("variant", known["variant"]) != known["variant"]:
        return {"as_in_use": False}
    fit = {**known["fit"], **flags.get("fit", {})}
    return {"as_in_use": False, "model": ModelParams.model_validate({**known, "fit": fit})}


def detector_facts(found: "LearnedVerdicts") -> dict[str, str]:
    """What the training of a detector came to, in words."""
    from flows.node_model_pages import budget_words

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
