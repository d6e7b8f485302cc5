"""The parameters of change point detection; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.choices import ChangePointMethod
from tasks.params import Params

Scale = Literal["deviation", "none"]


class PriorParams(Params):
    """What is believed of a segment before its first sample: a normal-inverse-gamma prior, values in scaled units."""

    mean: float = Field(0.0, ge=-1e12, le=1e12, description="Expected level of a segment")
    kappa: float = Field(
        0.1, gt=0, le=1e6, description="Samples that the belief in the level is worth; small: levels may lie far apart"
    )
    alpha: float = Field(
        3.0, gt=0, le=1e6, description="Half the samples that the belief in the noise is worth (2 alpha: freedom of t)"
    )
    noise: float = Field(
        0.3, gt=0, le=1e12, description="Expected variance of the noise, 1 being the whole series (beta: alpha noise)"
    )
    trend_share: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="Prior probability that a segment is a straight line and not a level; 0: levels only",
    )
    trend_span: float = Field(
        30.0, gt=0, le=1e6, description="Prior deviation of a line's rise over the whole series, in deviations of noise"
    )


class ChangePointParams(Params):
    """How change points are found."""

    method: ChangePointMethod = Field(
        "bayes", description="bayes: run-length posterior; pelt, kernel, binseg: the offline methods of ruptures"
    )
    expected_run_length: float | None = Field(
        None, gt=1, le=1e12, description="Samples between changes before any is seen; None: ten times the series"
    )
    prior: PriorParams | None = Field(
        None, description="Of segments with noise that does not depend on itself; None: season and noise by evidence"
    )
    scale: Scale = Field(
        "deviation", description="deviation: each counter by its mean and standard deviation; none: values as they are"
    )
    outlier_deviations: float = Field(
        10.0,
        ge=0,
        le=1e6,
        description="One or two samples this many robust deviations from their neighbours count as missing; 0: none do",
    )
    min_segment: int = Field(2, ge=1, le=1_000_000, description="Fewest samples between changes")
    prune_nats: float = Field(
        30.0, ge=5, le=1e6, description="Run lengths whose log probability is this far below the best are dropped"
    )
    max_run_lengths: int = Field(
        256, ge=8, le=1_000_000, description="Most run lengths kept at a time; more cost more, in proportion"
    )
    near: int = Field(
        5, ge=0, le=1000, description="A change's probability counts that it lies within so many samples of the place"
    )
    penalty: float = Field(
        3.0, gt=0, le=1e6, description="Penalty of a change for pelt, kernel and binseg, in logs of the samples"
    )
