"""The parameters of an evaluation of benchmark results; nothing heavy is imported here."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tasks.nodes.detect.params import AlarmParams
from tasks.nodes.perona.params import ModelParams, Variant
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.params import Params

LearnedProtocol = Literal["chronological", "paper"]
Kind = Literal["replaced", "shifted"]
Share = Annotated[float, Field(gt=0, le=1)]
PerDay = Annotated[float, Field(gt=0, le=1_000_000)]
NAMES: dict[Variant, str] = {"ours": "model", "paper": "paper"}  # of the detectors, in the keys of figures


class InjectionParams(Params):
    """How results are spoiled where nobody knows which executions were degraded."""

    repeats: int = Field(3, ge=0, le=1000, description="Times that nodes and beginnings are drawn; 0: not measured")
    kinds: tuple[Kind, ...] = Field(
        ("replaced", "shifted"), description="Results of another machine type instead, or worse by a drawn factor"
    )
    least_runs: int = Field(
        20, ge=5, le=1_000_000, description="Executions of one benchmark from which a node counts as long-lived"
    )
    most_executions: int = Field(
        100_000,
        ge=100,
        le=100_000_000,
        description="Executions of them that are judged; of more, as many whole benchmark types are drawn",
    )
    max_nodes: int = Field(30, ge=2, le=100_000, description="Long-lived nodes; of more, those with most executions")
    altered_nodes: Share = Field(0.5, description="Share of the long-lived nodes that is spoiled in each repeat")
    altered_share: Share = Field(0.5, description="Share of a node's later executions that is spoiled")
    least_factor: float = Field(1.05, gt=1, le=1000, description="Shifted: worse by at least this factor")
    largest_factor: float = Field(1.5, gt=1, le=1000, description="Shifted: worse by at most this factor")
    train_share: float = Field(0.4, gt=0, lt=1, description="First share of each node's executions, to learn from")
    validation_share: float = Field(0.1, gt=0, lt=1, description="Share after it, to choose thresholds on")
    alarm: AlarmParams = AlarmParams()

    @model_validator(mode="after")
    def _in_order(self) -> "InjectionParams":
        if self.least_factor > self.largest_factor:
            raise ValueError(
                f"least_factor ({self.least_factor:g}) must not be more than largest_factor ({self.largest_factor:g})"
            )
        if self.train_share + self.validation_share >= 1:
            total = self.train_share + self.validation_share
            raise ValueError(f"train_share and validation_share make {total:g}; expected less than 1, the rest tests")
        return self


class LearnedParams(Params):
    """What is measured of Perona's network; nothing unless variants are named."""

    variants: tuple[Variant, ...] = Field((), description="ours, paper: each is fitted and measured; none: neither")
    protocols: tuple[LearnedProtocol, ...] = Field(
        ("chronological", "paper"),
        description="Ways of splitting; paper: graphs within each part of a random split, by labels, as its authors do",
    )
    seeds: int = Field(5, ge=1, le=1000, description="Fits of each split by time, and random splits, each with a seed")
    most_graphs: int = Field(
        5000, ge=10, le=100_000_000, description="Training executions of a fit; of more, so many are drawn"
    )
    model: ModelParams = ModelParams()

    def asked(self, variant: Variant, seed: int) -> ModelParams:
        """The parameters of one fit."""
        fit = self.model.fit.model_copy(update={"seed": seed})
        return self.model.model_copy(update={"variant": variant, "fit": fit})


class EvaluateParams(Params):
    """The protocol of an evaluation: what is learned from, what is tested, how it is measured."""

    preprocess: PreprocessParams = PreprocessParams()
    score: ScoreParams = ScoreParams()
    learned: LearnedParams = LearnedParams()
    injection: InjectionParams = InjectionParams()
    train_share: float = Field(0.6, gt=0, lt=1, description="Share of the executions to learn from")
    validation_share: float = Field(
        0.2, gt=0, lt=1, description="Share of them to choose thresholds on; the rest tests"
    )
    repeats: int = Field(5, ge=1, le=1000, description="Random splits")
    max_left_nodes: int = Field(10, ge=1, le=10_000, description="Nodes that are left out in turn; of more, the first")
    false_alarm_share: float = Field(
        0.01, gt=0, lt=1, description="Share of flagged executions where validation has no stressed one to choose by"
    )
    least_nodes: int = Field(
        10, ge=4, le=100_000, description="Nodes of a machine type from which correlations with applications are told"
    )
    min_runs: int = Field(5, ge=3, le=100_000, description="Runs of a node and metric from which repeatability is told")
    max_ranked: int = Field(
        200, ge=1, le=1_000_000, description="Nodes up to which the ranking is given intervals and ties"
    )
    resamples: int = Field(1000, ge=100, le=100_000, description="Resamples of tested executions behind an interval")
    budgets: tuple[PerDay, ...] = Field(
        (0.1, 1.0, 10.0, 100.0, 1000.0),
        description="False alarms a day over all nodes that thresholds are set for, to see whether as many are raised",
    )
    curve: bool = Field(
        False, description="Measure as well what few known stressed executions of each benchmark teach, down to none"
    )
    without_labels: bool = Field(
        False, description="Labels of stress are hidden from all that learns or chooses a threshold: they only measure"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of splits and resamples")
