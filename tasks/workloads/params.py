"""The parameters of the word `workloads`, as conf/workloads.yaml, flow forms and flags show them."""

from tasks.params import Params
from tasks.workloads.record.params import RecordParams


class WorkloadsParams(Params):
    """Everything of the word `workloads` that can be set in conf/workloads.yaml."""

    record: RecordParams = RecordParams()
