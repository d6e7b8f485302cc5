"""The card of a model that was trained just now."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tasks.warehouse.registry import ModelCard
from tasks.warehouse.versions import code_version

ID_DIGITS = 8


def new_card(
    *,
    word: str,
    source: str,
    kind: str,
    run_id: str,
    data_version: str,
    seed: int,
    parameters: dict[str, Any],
    figures: Mapping[str, Any],
    identity: str,
) -> ModelCard:
    """The card; its id is of kind, data version and `identity`, so the same training gives the same model.

    figures: on held-out data; those that are numbers become the card's metrics, in their order."""
    digest = uuid.uuid5(uuid.NAMESPACE_OID, identity).hex[:ID_DIGITS]
    return ModelCard(
        model_id=f"{kind}-{data_version}-{digest}",
        word=word,
        source=source,
        kind=kind,
        trained_at=datetime.now(UTC).replace(tzinfo=None),
        run_id=run_id,
        data_version=data_version,
        code_version=code_version(),
        seed=seed,
        parameters=parameters,
        metrics={key: float(value) for key, value in figures.items() if isinstance(value, int | float)},
    )
