"""What can be chosen in preprocessing; nothing heavy is imported here."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.params import Params

Variant = Literal["robust", "paper"]


class PreprocessParams(Params):
    """How metrics are selected, oriented, imputed and scaled: by our rules, or by those of the paper's authors."""

    variant: Variant = Field(default="robust", description="Whose rules hold: ours, or those of the paper's authors")
    min_dispersion: Annotated[float, Field(ge=0, le=10)] = Field(
        default=0.001, description="Metrics that vary less, as a share of their median, are dropped (ours)"
    )

    @property
    def is_paper(self) -> bool:
        """Whether the rules of the paper's authors hold."""
        return self.variant == "paper"
