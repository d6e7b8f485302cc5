"""The parameters of identification; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params
from tasks.workloads.changepoints.params import ChangePointParams
from tasks.workloads.normalisation_params import NormalisationParams
from tasks.workloads.phase_params import PhaseParams
from tasks.workloads.similarity.params import SimilarityParams

ScopeChoice = Literal["machine", "workload", "both"]
Parts = Literal["phases", "levels", "both", "apart"]
MetricChoice = Literal["scaled", "whitened"]


class FingerprintParams(Params):
    """Which counters make a fingerprint, and how."""

    scope: ScopeChoice = Field(
        "both", description="Counters of the whole machine, of the workload's own control group, or both"
    )
    least_common: float = Field(
        0.9,
        gt=0,
        le=1,
        description="Share of a model's counters that a run must have; one with fewer is refused, and told which",
    )
    normalisation: NormalisationParams = NormalisationParams()
    phases: PhaseParams = PhaseParams()
    changepoints: ChangePointParams = ChangePointParams()


class FeatureParams(Params):
    """What the trees read of a run."""

    parts: Parts = Field(
        "apart",
        description="phases: the padded fingerprint (V-C); levels: statistics over the whole run; both: in one table; "
        "apart: trees of each, whose probabilities are averaged",
    )
    max_phases: int = Field(
        0,
        ge=0,
        le=10_000,
        description="Phases of a counter that are told apart, the last holding the rest; 0: the most in training",
    )


class TreeParams(Params):
    """Gradient boosted trees for few runs and many features."""

    rounds: int = Field(60, ge=1, le=10_000, description="Trees for each workload")
    learning_rate: float = Field(0.1, gt=0, le=1, description="Shrinkage of each tree")
    leaves: int = Field(7, ge=2, le=1_000, description="Most leaves of a tree")
    min_leaf: int = Field(2, ge=1, le=1_000_000, description="Fewest training runs in a leaf")
    feature_fraction: float = Field(0.1, gt=0, le=1, description="Share of the features that a tree may look at")
    bagging_fraction: float = Field(0.8, gt=0, le=1, description="Share of the training runs that a tree sees")
    l2: float = Field(1.0, ge=0, le=1e6, description="Penalty on the values of leaves")
    extra_trees: bool = Field(True, description="Try one random threshold of each feature, not all")
    is_balanced: bool = Field(True, description="Every workload weighs the same, however many runs it has")
    seeds: int = Field(2, ge=1, le=100, description="Boosters of each table, with different seeds, that are averaged")
    distance_weight: float = Field(
        0.25, ge=0, le=1_000, description="Weight of the distance to the nearest runs beside the trees; 0: trees alone"
    )


class OpenSetParams(Params):
    """When a run is called unknown."""

    metric: MetricChoice = Field(
        "scaled",
        description="Distance between runs: each statistic by its deviation within workloads, or whitened by their "
        "shrunk covariance too",
    )
    neighbours: int = Field(1, ge=1, le=1_000, description="Nearest runs of a workload whose mean distance counts")
    floor_share: float = Field(
        0.1, gt=0, le=10, description="Least deviation within workloads, as a share of that over all runs"
    )
    clip: float = Field(10.0, gt=0, le=1e6, description="Deviations beyond which a statistic counts no more")
    most_runs: int = Field(
        60, ge=2, le=100_000, description="Runs of a workload that distances are taken to; of more, an even sample"
    )
    folds: int = Field(5, ge=2, le=100, description="Blocks of runs held out in turn; whole rounds if there are any")
    most_left_out: int = Field(
        12, ge=1, le=10_000, description="Most workloads that are left out in turn to learn what unknown ones look like"
    )
    known_recall: float = Field(
        0.95, gt=0, lt=1, description="Share of held-out known runs to be called known: sets the limit, below even odds"
    )
    l2: float = Field(0.1, gt=0, le=1e6, description="Penalty on the weights of the evidence")


class IdentifyParams(Params):
    """How workloads are learned and identified."""

    fingerprint: FingerprintParams = FingerprintParams()
    features: FeatureParams = FeatureParams()
    trees: TreeParams = TreeParams()
    similarity: SimilarityParams = SimilarityParams()
    open_set: OpenSetParams = OpenSetParams()
    seed: int = Field(7, ge=0, le=2**31 - 1, description="Decides all that is random in the trees")
