"""A training that takes seconds and predicts a little less well: for a first look. Nothing heavy is imported here."""

from tasks.jobs.predict.evaluation_params import EvaluateParams


def quick(params: EvaluateParams) -> EvaluateParams:
    """The parameters with fewer trees, choices and test runs; what is split, and how, stays."""
    predict = params.predict
    changed = {
        "classifier": predict.classifier.model_copy(update={"n_rounds": 20}),
        "selection": predict.selection.model_copy(update={"n_rounds": 1, "n_epochs": 3}),
        "labels": predict.labels.model_copy(update={"oracle_draws": 50, "half_draws": 5}),
        "predictor": predict.predictor.model_copy(update={"n_trees": 20}),
    }
    return params.model_copy(
        update={
            "predict": predict.model_copy(update=changed),
            "with_rivals": False,
            "forest_trees": 5,
            "boosted_trees": 20,
            "max_test_runs": 1500,
            "max_training_runs": 10_000,
        }
    )
