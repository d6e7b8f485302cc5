"""The parameters of an evaluation of a job log; nothing heavy is imported here."""

from pydantic import Field

from tasks.jobs.predict.classifier_params import ClassifierParams, LabelParams, SearchParams, SelectionParams
from tasks.jobs.predict.feature_params import FeatureParams
from tasks.jobs.predict.predictor_params import PredictorParams
from tasks.jobs.shape_params import BinParams, CharacteriseParams
from tasks.params import Params


class PredictParams(Params):
    """How the next runs of a log are predicted: shapes, features, classifier and distribution."""

    characterise: CharacteriseParams = CharacteriseParams(bins=BinParams(ranges="data"))
    features: FeatureParams = FeatureParams()
    labels: LabelParams = LabelParams()
    selection: SelectionParams = SelectionParams()
    classifier: ClassifierParams = ClassifierParams()
    search: SearchParams = SearchParams()
    predictor: PredictorParams = PredictorParams()


class EvaluateParams(Params):
    """The protocol of an evaluation: train on what came earlier, score what came later."""

    predict: PredictParams = PredictParams()
    with_search: bool = Field(False, description="Sweep the classifier's parameters on the training runs first")
    with_rivals: bool = Field(True, description="Fit the random forest and the voting ensemble beside LightGBM")
    forest_trees: int = Field(100, ge=1, le=10_000, description="Trees of the random-forest regression")
    forest_min_leaf: int = Field(3, ge=1, le=1_000_000, description="Runs that a leaf of that forest needs")
    min_group_runs: int = Field(
        20, ge=2, le=1_000_000, description="Test runs that a job needs for its own KS distance"
    )
    max_test_runs: int = Field(
        50_000, ge=100, le=10_000_000, description="Test runs that are scored; of more, an even sample over time"
    )
    max_training_runs: int = Field(
        100_000, ge=100, le=100_000_000, description="Training runs that models learn from; of more, the latest"
    )
    boosted_trees: int = Field(150, ge=1, le=10_000, description="Trees of each of the boosted quantiles beside it")
    max_rival_runs: int = Field(
        20_000, ge=100, le=100_000_000, description="Runs that the forests and the ensemble learn from; the latest"
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Seed of everything random")
