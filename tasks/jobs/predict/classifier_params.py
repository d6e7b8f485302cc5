"""The parameters of labels, feature selection, classifiers and their search; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

Method = Literal["lightgbm", "forest", "ensemble"]
Seed = Field(0, ge=0, le=2**32 - 1, description="Seed of everything random here")


class LabelParams(Params):
    """Which jobs get a label, and how the references beside the accuracy are drawn."""

    min_support: int = Field(3, ge=1, le=1_000_000, description="Runs in the period that a job needs for a label")
    min_history: int = Field(
        1, ge=1, le=1_000_000, description="Earlier runs that a job needs for the label of its history"
    )
    oracle_shape_runs: float = Field(
        1, ge=0, le=1_000_000, description="Runs that the most likely shape counts as in a job's own distribution"
    )
    oracle_draws: int = Field(500, ge=10, le=100_000, description="Times that the runs of a job are drawn anew")
    oracle_max_groups: int = Field(
        2000, ge=1, le=1_000_000, description="Jobs of the ceiling and of the halves; of more, a sample"
    )
    half_draws: int = Field(20, ge=1, le=10_000, description="Ways that the runs of a job are dealt into two halves")
    seed: int = Seed


class SelectionParams(Params):
    """Which features a classifier gets."""

    aggressiveness: float = Field(
        0.01, gt=0, le=1000, description="Largest step of the passive-aggressive classifier (C in the literature)"
    )
    n_epochs: int = Field(10, ge=1, le=1000, description="Passes over the rows")
    n_rounds: int = Field(3, ge=1, le=100, description="Fits with other noise columns; importances are their mean")
    max_correlation: float = Field(
        0.98, gt=0, le=1, description="Features whose ranks correlate above this are one; the more important one stays"
    )
    noise_quantile: float = Field(
        0.5, ge=0, le=1, description="A feature stays above this quantile of the noise columns' importances"
    )
    min_features: int = Field(5, ge=1, le=10_000, description="Features that stay in any case, where there are so many")
    indicator_share: float = Field(
        0.01, ge=0, lt=0.5, description="Share of missing, and of known, values from which being missing is looked at"
    )
    clip_sd: float = Field(5, gt=0, le=1000, description="Standard deviations at which values are cut, here only")
    max_rows: int = Field(50_000, ge=10, le=10_000_000, description="Rows that are looked at; of more, a sample")
    seed: int = Seed


class ClassifierParams(Params):
    """How the shape of a run is learnt from its features."""

    method: Method = Field(
        "lightgbm", description="lightgbm is kept as a model; forest and ensemble are for comparison"
    )
    n_rounds: int = Field(80, ge=1, le=10_000, description="Rounds of LightGBM; a tree for each shape a round")
    learning_rate: float = Field(0.05, gt=0, le=1, description="Of LightGBM")
    n_leaves: int = Field(6, ge=2, le=4096, description="Largest number of leaves of a tree of LightGBM")
    min_leaf: int = Field(50, ge=1, le=1_000_000, description="Rows that a leaf of LightGBM needs")
    feature_share: float = Field(0.3, gt=0, le=1, description="Share of the features that a tree of LightGBM sees")
    row_share: float = Field(0.7, gt=0, le=1, description="Share of the rows that a round of LightGBM sees")
    l2: float = Field(10, ge=0, le=1e6, description="L2 penalty on the leaves of LightGBM")
    forest_trees: int = Field(200, ge=1, le=10_000, description="Trees of the random forest")
    forest_min_leaf: int = Field(20, ge=1, le=1_000_000, description="Rows that a leaf of the random forest needs")
    forest_feature_share: float = Field(
        0.3, gt=0, le=1, description="Share of the features that a split of the random forest chooses from"
    )
    boosting_trees: int = Field(50, ge=1, le=10_000, description="Rounds of the other boosted trees of the ensemble")
    boosting_max_rows: int = Field(
        20_000, ge=10, le=10_000_000, description="Rows for scikit-learn's gradient boosting; of more, a sample"
    )
    least_posterior: float = Field(
        0.02, ge=0, le=0.5, description="Probability of a shape from which a row is learnt as one of it, if so asked"
    )
    calibration_share: float = Field(
        0, ge=0, le=0.5, description="Last share of the rows that sets how sure the probabilities are; 0: as they are"
    )
    seed: int = Seed


class SearchParams(Params):
    """How the parameters of a classifier are searched."""

    n_trials: int = Field(30, ge=1, le=100_000, description="Trials in all, those of a resumed search among them")
    pruner: Literal["median", "hyperband", "none"] = Field("median", description="When a bad trial is given up")
    warm_up_trials: int = Field(10, ge=1, le=10_000, description="Trials at random before the sampler learns")
    report_every: int = Field(10, ge=1, le=1000, description="Rounds of LightGBM between two looks of the pruner")
    max_rounds: int = Field(300, ge=1, le=10_000, description="Largest number of rounds of LightGBM; the best is taken")
    row_share: float = Field(0.1, gt=0, le=1, description="Share of the rows that the search looks at")
    min_rows: int = Field(20_000, ge=10, le=10_000_000, description="Rows that it looks at in any case")
    validation_share: float = Field(
        0.3, gt=0, lt=1, description="Last share of the training rows, by time, that trials are scored on"
    )
    unseen_share: float = Field(
        0.2, ge=0, lt=1, description="Share of the jobs of the validation that no trial is trained on"
    )
    seed: int = Seed
