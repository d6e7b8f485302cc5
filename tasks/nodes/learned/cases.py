"""A source as a case that the network learns from, or is asked about."""

from tasks.errors import BadInput
from tasks.nodes.aspects import type_names
from tasks.nodes.detect.plain import Case
from tasks.nodes.evaluate.detection import case_of
from tasks.nodes.evaluate.params import EvaluateParams, LearnedParams
from tasks.nodes.evaluate.splits import Split, splits_of
from tasks.nodes.history import History
from tasks.nodes.learned.train_params import TrainParams
from tasks.nodes.perona.params import ModelParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.tabulating import learn_tables
from tasks.nodes.type_tables import Bools, NodeTables


def asked_of(
    model: ModelParams,
    train: TrainParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
) -> EvaluateParams:
    """The same parameters in the form that splits and fits take."""
    return EvaluateParams(
        preprocess=preprocess,
        score=score,
        train_share=train.train_share,
        validation_share=train.validation_share,
        false_alarm_share=train.false_alarm_share,
        seed=model.fit.seed,
        learned=LearnedParams(variants=(model.variant,), model=model, most_graphs=train.most_graphs),
    )


def fingerprinted(history: History, score: ScoreParams) -> History:
    """The executions that have fingerprints: benchmarks, not the applications that scores are for."""
    return history.where(~history.executions["aspect"].isin(score.left_out_aspects).to_numpy(dtype=bool))


def case_by_time(history: History, params: EvaluateParams) -> tuple[Case, Split]:
    """The first share of each node and type trains, the next validates, the rest tests.

    Raises BadInput if there is nothing to learn from, or nothing is left to measure on."""
    types = type_names(history.executions).tolist()
    [[split]] = splits_of(history.executions, types, "chronological", params).rounds
    for is_part, name in ((split.is_train, "learn from"), (split.is_validation, "choose by"), (split.is_test, "test")):
        if not is_part.any():
            n = len(history.executions)
            raise BadInput(f"{n} executions", f"none is left to {name}", "several of each node and type", "record more")

    def prepare(of: History, is_train: Bools) -> NodeTables:
        return learn_tables(of, is_train, params.preprocess)

    return case_of(history, split, prepare, params.seed), split
