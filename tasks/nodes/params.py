"""The parameters of the word `nodes`, as conf/nodes.yaml, flow forms and flags show them."""

from tasks.nodes.detect.params import AlarmParams, BudgetParams, DetectorParams
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.fleet_params import FleetParams
from tasks.nodes.perona.params import ModelParams, SearchParams, TrainParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.reading_params import ReadParams
from tasks.nodes.record.params import RecordParams
from tasks.nodes.score_params import ScoreParams
from tasks.params import Params
from tasks.report.nodes_params import NodesReportParams


class NodesParams(Params):
    """Everything of the word `nodes` that can be set in conf/nodes.yaml."""

    record: RecordParams = RecordParams()
    read: ReadParams = ReadParams()
    preprocess: PreprocessParams = PreprocessParams()
    score: ScoreParams = ScoreParams()
    detect: DetectorParams = DetectorParams()
    budget: BudgetParams = BudgetParams()
    evaluate: EvaluateParams = EvaluateParams()
    model: ModelParams = ModelParams()
    train: TrainParams = TrainParams()
    search: SearchParams = SearchParams()
    alarm: AlarmParams = AlarmParams()
    fleet: FleetParams = FleetParams()
    report: NodesReportParams = NodesReportParams()
