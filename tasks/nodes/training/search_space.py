"""The values that a search tries: Table II of Perona, and no others."""

from collections.abc import Mapping

from tasks.nodes.model.params import ModelParams

Choice = bool | int | float

SPACE: dict[str, tuple[Choice, ...]] = {
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


def space_of(params: ModelParams) -> dict[str, tuple[Choice, ...]]:
    """What is searched in a variant, by `part.name`: all of Table II in the paper's, what has an effect in ours."""
    if params.variant == "paper":
        return dict(SPACE)
    return {name: choices for name, choices in SPACE.items() if name not in PAPER_ALONE}


def with_values(params: ModelParams, values: Mapping[str, object]) -> ModelParams:
    """The parameters with some replaced. values: by `part.name`; raises KeyError for a part that there is not."""
    content = params.model_dump()
    for name, value in values.items():
        part, key = name.split(".")
        content[part][key] = value
    return ModelParams.model_validate(content)
