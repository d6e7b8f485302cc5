"""`whorl jobs train`: a model of the runtimes of a source."""

from typing import TYPE_CHECKING, Any

import typer

from flows.commands.options import Json, Seed, Source, one_source_with_runs
from flows.commands.reading_options import KnownBefore, listed
from flows.invocation import Invocation, invocation_of
from flows.predictor_words import MEASURES, predictor_rows
from flows.running import flow_running
from flows.shown import as_command, count
from flows.tables import Column, show_facts, show_table
from tasks.quantities import duration, number, share

if TYPE_CHECKING:
    from flows.job_results import TrainedAndShown
    from tasks.settings import Settings

SHOWN = {
    "crps": ("CRPS", duration),
    "log_score": ("log-score", number),
    "coverage90": ("in 90 % interval", share),
    "ks_group": ("KS by job", number),
    "ks_pooled": ("KS pooled", number),
}
COLUMNS = (
    Column("name", "predictor", kind="name"),
    *(Column(key, *SHOWN[key], kind="number") for key in MEASURES),
)


def train(
    context: typer.Context,
    source: Source = None,
    known_before: KnownBefore = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Train a model that predicts how long the next runs take.

    It learns from the earlier runs, is measured on the later ones, and is put into use if it is better than the model
    before. 'whorl models list' shows all, 'whorl models rollback' brings the former one back."""
    from flows.machine_output import show_json

    invocation = invocation_of(context)
    asked: dict[str, Any] = {"predict": listed("known_before", known_before)} | ({} if seed is None else {"seed": seed})
    settings = invocation.resolved({"jobs": {"evaluate": asked}}).settings
    chosen = one_source_with_runs(settings.warehouse, source)
    found = _trained(invocation, settings, chosen)
    from tasks.jobs.predict.training import read_figures  # not before: it imports seconds

    figures = read_figures(settings.warehouse, chosen, found["model_id"])
    if as_json:
        show_json({**found, "source": chosen, "figures": figures})
        return
    show_facts(_facts(found, figures))
    print()
    show_table(predictor_rows(figures), COLUMNS)
    if found["report"]:
        print(f"report: {found['report']}")
    invocation.note(f"next: {as_command('whorl', 'jobs', 'predict', '--source', chosen)}")


def _trained(invocation: Invocation, settings: "Settings", source: str) -> "TrainedAndShown":
    with flow_running(invocation):
        from flows.job_model_params import TrainFlowParams
        from flows.job_models import train_jobs

        return train_jobs(TrainFlowParams(source=source, evaluate=settings.jobs.evaluate, warehouse=settings.warehouse))


def _facts(found: "TrainedAndShown", figures: dict[str, Any]) -> dict[str, str]:
    champion = found["champion_id"]
    in_use = (
        "this model" if champion == found["model_id"] else f"{champion}: no worse on the same runs, so it stays in use"
    )
    return {
        "model": found["model_id"],
        "in use": in_use,
        "shapes": ", ".join(found["shapes"].values()),
        "held out": f"{count(figures['predict.n'])} later runs, which the figures below are of",
        "data version": found["data_version"],
    }
