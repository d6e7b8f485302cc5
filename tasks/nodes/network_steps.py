"""The steps of Perona's model: keys in, keys and figures out. Flows wrap them, and commands that ask call them."""

import logging
from contextlib import suppress
from typing import Any, TypedDict

import pandas as pd
from pydantic import ValidationError

from tasks.errors import BadInput
from tasks.nodes.history import benchmarks_of, version_of
from tasks.nodes.node_words import NETWORK, WORD, no_trained_model
from tasks.nodes.params import ModelParams, NetworkSearchParams, PreprocessParams, ScoreParams
from tasks.nodes.verdict_steps import read_flagged
from tasks.params import first_fault
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, folder_of, require_champion
from tasks.warehouse.sources import key_of, now, read_row, replace_rows

logger = logging.getLogger(__name__)
JOURNALS = "searches"  # below the home folder
SCORE_COLUMNS = ["aspect", "node", "machine_type", "score", "low", "high", "rank", "n_executions", "n_types"]


class TrainedNodes(TypedDict):
    """model_id: of the new model; champion_id: of the one in use now. metric: by which the better one is chosen.

    figures: of the new one, on the executions that were held out. n_learned, n_tested: executions. is_from_before: the
    same data, parameters and code had made the model in use already, and nothing was learned."""

    model_id: str
    champion_id: str
    data_version: str
    metric: str
    figures: dict[str, float]
    n_learned: int
    n_tested: int
    is_from_before: bool


class TunedNodes(TypedDict):
    """best: the parameters that were found, to train with. n_trials: finished, of which n_resumed from before."""

    best: dict[str, Any]
    validation_loss: float
    n_trials: int
    n_resumed: int
    trials: str


class FingerprintedNodes(TypedDict):
    """n_executions: of benchmarks; n_fingerprints: of them. best: first place by fingerprints."""

    model_id: str
    n_executions: int
    n_fingerprints: int
    best: list[str]


def train(
    warehouse: Warehouse,
    source: str,
    model: ModelParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
    run_id: str,
    *,
    again: bool = False,
) -> TrainedNodes:
    """Train a model on the executions of a source, measure it on the latest ones, and use it if it is the better one.

    run_id: of the flow run; the same run, data and parameters make the same model once. Where the model in use is of
    the same data, parameters and code it is given again, unless `again` says to train all the same."""
    from tasks.nodes.perona.fingerprints import train_source

    version = version_of(warehouse, source)
    key = key_of(source, version, [one.model_dump(mode="json") for one in (model, preprocess, score)])
    present = champion(warehouse.models, WORD, source, NETWORK)
    if present is not None and present.parameters.get("key") == key and not again:
        with suppress(BadInput):  # a model that cannot be read is mended by a training
            found = _told(warehouse, present, present.model_id, is_from_before=True)
            logger.info("%s was made of the same data, parameters and code: nothing to learn", present.model_id)
            return found
    history, version = benchmarks_of(warehouse, source, score, with_telemetry=True)
    given = (history, version, model, preprocess, score)
    card, in_use = train_source(warehouse, source, *given, run_id=run_id, key=key)
    return _told(warehouse, card, in_use, is_from_before=False)


def _told(warehouse: Warehouse, card: ModelCard, in_use: str, *, is_from_before: bool) -> TrainedNodes:
    """What a training came to. Raises BadInput for a model that cannot be read."""
    from tasks.nodes.perona.fingerprints import METRIC, load_trained

    return TrainedNodes(
        model_id=card.model_id,
        champion_id=in_use,
        data_version=card.data_version,
        metric=METRIC,
        figures=dict(card.metrics),
        n_learned=len(load_trained(folder_of(warehouse.models, WORD, card.model_id)).learned),
        n_tested=int(card.parameters["n_tested"]),
        is_from_before=is_from_before,
    )


def tune(
    warehouse: Warehouse,
    source: str,
    model: ModelParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
    search: NetworkSearchParams,
) -> TunedNodes:
    """Search the parameters of a source's model; a search of the same data and settings that was stopped goes on.

    `trials`: path of a table of them, beside the journal."""
    from tasks.nodes.perona.fingerprints import tune as searched

    history, version = benchmarks_of(warehouse, source, score, with_telemetry=True)
    journal = warehouse.home / JOURNALS / f"nodes-{source}.journal"
    found = searched(history, model, preprocess, score, search, journal)
    table = journal.with_name(f"nodes-{source}-{version}-trials.parquet")
    draft = table.with_suffix(".part")
    found.trials.to_parquet(draft, index=False)
    draft.replace(table)  # a table is whole or as it was
    logger.info("best of %d trials: validation loss %.4f", len(found.trials), found.validation_loss)
    return TunedNodes(
        best=found.best.model_dump(mode="json"), validation_loss=found.validation_loss, n_trials=len(found.trials),
        n_resumed=found.n_resumed, trials=str(table),
    )  # fmt: skip


def in_use(warehouse: Warehouse, source: str) -> dict[str, Any] | None:
    """The parameters of the model in use for a source; None before the first training.

    Raises BadInput for those of a version of whorl that had others."""
    card = champion(warehouse.models, WORD, source, NETWORK)
    if card is None:
        return None
    try:
        return ModelParams.model_validate(card.parameters.get("model")).model_dump(mode="json")
    except ValidationError as error:
        problem = f"parameters that are none of this version ({first_fault(error)})"
        fix = "train with 'whorl nodes train --fresh'"
        raise BadInput(warehouse.models / WORD / card.model_id, problem, "those of a model", fix) from error


def fingerprint(warehouse: Warehouse, source: str, score: ScoreParams) -> FingerprintedNodes:
    """Fingerprints and scores of a source by the network in use, in place of what was there.

    Nodes are ranked by executions that are not flagged (nodes.verdicts). With the same data, verdicts, network,
    parameters and code what stands there is given again. Raises NotFound without executions, and without a network."""
    version = version_of(warehouse, source)
    model_id = require_trained(warehouse, source)
    verdicts = (read_row(warehouse, "nodes.judgings", source) or {}).get("key")
    key = key_of(version, model_id, verdicts, score.model_dump(mode="json"))
    row = read_row(warehouse, "nodes.fingerprintings", source)
    if row is None or row["key"] != key:
        from tasks.nodes.perona.fingerprints import fingerprint as ask
        from tasks.nodes.perona.fingerprints import trained_in_use

        if found := trained_in_use(warehouse, source):
            history, version = benchmarks_of(warehouse, source, score, with_telemetry=True)
            flagged = history.executions["execution_id"].astype(str).isin(read_flagged(warehouse, source))
            told = ask(history, found[1], flagged.to_numpy(dtype=bool), score)
            row = {"key": key, "data_version": version, "n_executions": len(history.executions)}
            row |= {"n_fingerprints": len(told.executions), "shown": told.shown, "fingerprinted_at": now()}
            ranked = told.ranking.rename(columns={"place": "rank"})
            frames = {
                "fingerprints": told.executions,
                "fingerprint_scores": ranked[SCORE_COLUMNS].assign(is_tied=ranked["n_tied"] > 1),
                "fingerprintings": pd.DataFrame([row]),
            }
            replace_rows(warehouse, WORD, {"source": source, "model_id": model_id}, frames)
    row = row or {}
    scores = read_fingerprint_scores(warehouse, source)
    first = scores[(scores["aspect"] == "all") & (scores["rank"] == 1)]
    return FingerprintedNodes(
        model_id=model_id,
        n_executions=int(row["n_executions"]),
        n_fingerprints=int(row["n_fingerprints"]),
        best=[str(node) for node in first["node"]],
    )


def has_network(warehouse: Warehouse, source: str) -> bool:
    """Whether a network is in use for a source, so that its executions have fingerprints."""
    return champion(warehouse.models, WORD, source, NETWORK) is not None


def require_trained(warehouse: Warehouse, source: str) -> str:
    """The id of the trained model in use for a source. Raises NotFound before the first training."""
    return require_champion(warehouse.models, WORD, source, NETWORK, no_trained_model(source)).model_id


def read_fingerprint_scores(warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The nodes of a source by their fingerprints, by aspect (`all` first), the best first."""
    return fetch(
        warehouse,
        "SELECT * FROM nodes.fingerprint_scores WHERE source = $source "
        "ORDER BY aspect <> 'all', aspect, rank, score DESC, node",
        {"source": source},
    )
