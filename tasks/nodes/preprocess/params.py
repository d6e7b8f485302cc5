"""What can be chosen in preprocessing, and what the paper's own variant chooses."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tasks.params import Params

Variant = Literal["robust", "paper"]
Imputation = Literal["neutral", "mean"]
Scaling = Literal["log_ratio", "robust", "min_max"]


class PreprocessParams(Params):
    """How metrics are selected, oriented, imputed and scaled.

    The defaults of selection and orientation follow the variant; imputation and scaling can be set apart from it."""

    variant: Variant = Field(default="robust", description="Whose rules hold: ours, or those of the paper's authors")
    imputation: Imputation | Literal["variant"] = Field(
        default="variant",
        description="What stands for a value that is missing; variant: neutral in ours, mean in theirs",
    )
    scaling: Scaling | Literal["variant"] = Field(
        default="variant", description="How metrics come to one scale; variant: log_ratio in ours, min_max in theirs"
    )
    min_dispersion: Annotated[float, Field(ge=0, le=10)] = Field(
        default=0.001, description="Metrics that vary less, as a share of their median, are dropped (ours)"
    )
    min_distinct: Annotated[int, Field(ge=2, le=1000)] = Field(
        default=2, description="Metrics with fewer distinct values in training are dropped (ours)"
    )
    clip_from: Annotated[float, Field(gt=0, le=100)] = Field(
        default=4.0, description="Scaled values up to here stay as they are, in spreads from the median (ours)"
    )
    clip_at: Annotated[float, Field(gt=0, le=1000)] = Field(
        default=10.0, description="Those beyond are drawn towards this, and keep their order (ours)"
    )

    @model_validator(mode="after")
    def _clips_in_order(self) -> "PreprocessParams":
        if self.clip_from >= self.clip_at:
            raise ValueError(f"clip_from ({self.clip_from:g}) must be less than clip_at ({self.clip_at:g})")
        return self

    @property
    def imputes(self) -> Imputation:
        """The imputation that holds."""
        if self.imputation == "variant":
            return "mean" if self.variant == "paper" else "neutral"
        return self.imputation

    @property
    def scales(self) -> Scaling:
        """The scaling that holds."""
        if self.scaling == "variant":
            return "min_max" if self.variant == "paper" else "log_ratio"
        return self.scaling
