"""The parameters of the word `workloads`, as conf/workloads.yaml, flow forms and flags show them."""

from tasks.params import Params
from tasks.report.params import WorkloadsReportParams
from tasks.workloads.evaluate.params import EvaluateParams
from tasks.workloads.fan_out_params import FanOutParams
from tasks.workloads.identify.params import IdentifyParams, TrainParams
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.record.params import RecordParams
from tasks.workloads.watch_params import WatchParams


class WorkloadsParams(Params):
    """Everything of the word `workloads` that can be set in conf/workloads.yaml."""

    record: RecordParams = RecordParams()
    read: ReadParams = ReadParams()
    identify: IdentifyParams = IdentifyParams()
    train: TrainParams = TrainParams()
    watch: WatchParams = WatchParams()
    evaluate: EvaluateParams = EvaluateParams()
    fan_out: FanOutParams = FanOutParams()
    report: WorkloadsReportParams = WorkloadsReportParams()
