"""The values that a search tries: Table II of Perona, and in ours the batches and rates that ours learns with."""

from collections.abc import Mapping

from tasks.nodes.model.params import LARGE_BATCH, SMALL_BATCH, ModelParams

Choice = bool | int | float
Space = dict[str, tuple[Choice, ...]]

TABLE_II: Space = {
    "network.heads": (1, 3, 5),
    "network.beta": (False, True),
    "network.dropout": (0.0, 0.1, 0.2),
    "network.edge_dropout": (0.0, 0.1, 0.2),
    "network.root_weight": (False, True),
    "loss.focal_gamma": (0.5, 1.0, 2.0, 5.0),
    "loss.class_balance": (0.9, 0.99, 0.999, 0.9999),
    "fit.learning_rate": (0.1, 0.01, 0.001),
    "fit.weight_decay": (0.01, 0.001, 0.0001),
}
PAPER_ALONE = ("network.beta", "network.root_weight")  # our variant has no way for a node to see itself
OURS: Space = {
    "fit.batch_size": (SMALL_BATCH, 32, 64, LARGE_BATCH),  # Table II fixes 16
    "fit.learning_rate": (0.1, 0.02, 0.01, 0.001),  # 0.02 is what batches of 128 learn with (model/params.py)
}


def space_of(params: ModelParams) -> Space:
    """What is searched in a variant, by `part.name`: all of Table II in the paper's; in ours what of it has an effect,
    and the batches and the rate that it learns with when nobody searches."""
    if params.variant == "paper":
        return dict(TABLE_II)
    return {name: choices for name, choices in TABLE_II.items() if name not in PAPER_ALONE} | OURS


def with_values(params: ModelParams, values: Mapping[str, object]) -> ModelParams:
    """The parameters with some replaced. values: by `part.name`; raises KeyError for a part that there is not."""
    content = params.model_dump()
    for name, value in values.items():
        part, key = name.split(".")
        content[part][key] = value
    return ModelParams.model_validate(content)
