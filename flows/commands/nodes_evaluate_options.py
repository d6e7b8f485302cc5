"""The options of `whorl nodes evaluate` about what is measured, as settings of nodes.evaluate."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from tasks.nodes.evaluate.params import EvaluateParams

BOTH = "both"
LEARNED = {"ours": ("ours",), "paper": ("paper",), BOTH: ("ours", "paper"), "none": ()}

Variant = Annotated[
    Literal["robust", "paper", "both"] | None,
    typer.Option(
        help="Preprocessing: ours, the paper's, or ours with the figures of the paper's beside them", show_default=False
    ),
]
Model = Annotated[
    Literal["ours", "paper", "both", "none"] | None,
    typer.Option(
        help="Perona's network beside the plain answers: ours, the paper's, both or none; as in conf/, or else both",
        show_default=False,
    ),
]
Seeds = Annotated[
    int | None, typer.Option(min=1, max=1000, help="Fits of the network in each split", show_default=False)
]
Protocols = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol",
        metavar="chronological|paper",
        help="Way of splitting that it is fitted in; may be repeated",
        show_default=False,
    ),
]
Train = Annotated[
    list[str] | None,
    typer.Option(
        "--train",
        metavar="PATH",
        help="Results that are learned from alone: those of PATH are tested; may be repeated",
        show_default=False,
    ),
]
TestedHalf = Annotated[
    Literal["development", "reported"] | None,
    typer.Option(
        "--half", help="With --train: the half of a recorded plan, by its stretches, that is tested", show_default=False
    ),
]
Curve = Annotated[
    bool, typer.Option("--curve", help="Measure as well what 0, 1, 2, 5, 10 and 20 known stressed executions teach")
]
WithoutLabels = Annotated[
    bool,
    typer.Option("--without-labels", help="Hide labels of stress from all that learns or chooses: they only measure"),
]


def asked_settings(
    variant: str | None,
    model: str | None,
    seeds: int | None,
    protocols: list[Any] | None,
    seed: int | None,
    *,
    without_labels: bool,
    half: str | None = None,
    curve: bool = False,
) -> dict[str, Any]:
    """Flags of the command line as settings of nodes.evaluate; what was not given is not in it."""
    learned: dict[str, Any] = {"seeds": seeds, "protocols": protocols or None}
    learned["variants"] = None if model is None else LEARNED[model]
    asked: dict[str, Any] = {}
    if seed is not None:
        asked = {"seed": seed, "score": {"seed": seed}}
        learned["model"] = {"fit": {"seed": seed}}
    if without_labels:
        asked["without_labels"] = True
    if half is not None:
        asked["half"] = half
    if curve:
        asked["curve"] = True
    if variant in ("robust", "paper"):
        asked["preprocess"] = {"variant": variant}
    return asked | {"learned": {name: value for name, value in learned.items() if value is not None}}


def with_models(params: "EvaluateParams", model: str | None) -> "EvaluateParams":
    """With both variants of the model, unless the command line or the settings name some."""
    if model is not None or params.learned.variants:
        return params
    learned = params.learned.model_copy(update={"variants": LEARNED[BOTH]})
    return params.model_copy(update={"learned": learned})
