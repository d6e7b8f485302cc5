"""The parameters of an evaluation of benchmark results; nothing heavy is imported here."""

from pydantic import Field

from tasks.nodes.evaluate.learned_params import LearnedParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.score_params import ScoreParams
from tasks.params import Params


class EvaluateParams(Params):
    """The protocol of an evaluation: what is learned from, what is tested, how it is measured."""

    preprocess: PreprocessParams = PreprocessParams()
    score: ScoreParams = ScoreParams()
    learned: LearnedParams = LearnedParams()
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
    nothing_below: float = Field(
        0.2, ge=0, le=1, description="Correlation with applications below which there is almost nothing to rank"
    )
    min_runs: int = Field(5, ge=3, le=100_000, description="Runs of a node and metric from which repeatability is told")
    max_ranked: int = Field(
        200, ge=1, le=1_000_000, description="Nodes up to which the ranking is given intervals and ties"
    )
    resamples: int = Field(1000, ge=100, le=100_000, description="Resamples of nodes behind an interval")
    without_labels: bool = Field(
        False, description="Labels of stress are hidden from all that learns or chooses a threshold: they only measure"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of splits and resamples")
