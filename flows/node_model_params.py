"""The parameters of the flows about Perona's model. Nothing here imports prefect."""

from typing import Literal, TypeVar

from pydantic import Field

from flows.job_params import OF_SOURCE, WAREHOUSE, OfSource
from flows.node_answer_params import PREPROCESS, SCORE
from tasks.nodes.detect.params import AlarmParams, BudgetParams, DetectorParams
from tasks.nodes.params import NodesParams
from tasks.nodes.perona.params import ModelParams, SearchParams, TrainParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.params import Params
from tasks.source_names import ONLY_SOURCE
from tasks.warehouse.place import Warehouse

MODEL = "Graph, network, losses and fitting of the model"
Trained = Literal["detector", "ours", "paper"]
DETECT = "What is known beforehand of benchmarks that no tool here describes"
BUDGET = "How many false alarms may be raised; the threshold of verdicts follows from it"
ALARM = "When verdicts become an alarm, and what confirms or clears it"
Asked = TypeVar("Asked", bound=Params)


class LearningParams(Params):
    """What a training and a search have in common: executions to learn from, what is made of them, and the page.

    Forms show it after what is their own: of several bases, pydantic takes the fields of the last one first."""

    train: TrainParams = Field(TrainParams(), description="What is learned, chosen by, and held out to be measured on")
    preprocess: PreprocessParams = Field(PreprocessParams(), description=PREPROCESS)
    score: ScoreParams = Field(ScoreParams(), description=SCORE)
    warehouse: Warehouse = Field(description=WAREHOUSE)


class InUseParams(Params):
    """What is trained, and whose parameters a training of the network takes."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    variant: Trained = Field(
        "detector", description="detector: what tells verdicts; ours, paper: Perona's network, which makes fingerprints"
    )
    detect: DetectorParams = Field(DetectorParams(), description=DETECT)
    budget: BudgetParams = Field(BudgetParams(), description=BUDGET)
    alarm: AlarmParams = Field(AlarmParams(), description=f"{ALARM}: false alarms are counted by these rules")
    as_in_use: bool = Field(
        True, description="Take graph, network, losses and fitting of the model in use, where there is one"
    )
    trains_again: bool = Field(
        False, description="Train also where the same data, parameters and code have made a model before"
    )
    model: ModelParams = Field(ModelParams(), description=f"{MODEL}, where they are not taken from the one in use")


class SearchedParams(Params):
    """What is searched, and what stays as it is."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    search: SearchParams = Field(SearchParams(), description="How many configurations are tried, where and how long")
    model: ModelParams = Field(ModelParams(), description=f"{MODEL}: what is not searched")


class NodeTrainParams(LearningParams, InUseParams):
    """The training of a detector of degraded executions, or of the network that makes fingerprints."""


class NodeTuneParams(LearningParams, SearchedParams):
    """The search of the parameters of a source's model, and a training with the best of them."""


class NodeFingerprintParams(Params):
    """Fingerprints and verdicts of the executions of a source, and its nodes ranked by them."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    score: ScoreParams = Field(ScoreParams(), description=SCORE)
    warehouse: Warehouse = Field(description=WAREHOUSE)


class NodeWatchParams(Params):
    """The check whether nodes of a source are degrading."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)
    alarm: AlarmParams = Field(AlarmParams(), description=ALARM)
    asks_for_benchmarks: bool = Field(
        True, description="A suspected node runs a fresh benchmark, by its deployment nodes-record/<node> on the server"
    )
    score: ScoreParams = Field(ScoreParams(), description=SCORE)
    warehouse: Warehouse = Field(description=WAREHOUSE)


def filled_in(asked: type[Asked], nodes: NodesParams, warehouse: Warehouse, source: str, **own: object) -> Asked:
    """The parameters of a flow about nodes: of its own what is given, the settings of the same name for the rest.

    A deployment is filled in by the same names (flows/resolved.py)."""
    known = asked.model_fields.keys() & type(nodes).model_fields.keys()
    given = {"source": source, "warehouse": warehouse, **own}
    return asked.model_validate({name: getattr(nodes, name) for name in known} | given)
