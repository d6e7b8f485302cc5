"""The parameters of `advice`: what an operator changes stands in conf/advice.yaml."""

from tasks.advice.choice import ChoiceParams
from tasks.advice.estimate import EstimateParams
from tasks.advice.groups import GroupParams
from tasks.advice.next_run import SearchParams
from tasks.advice.replay import ReplayParams
from tasks.advice.transfer import TransferParams
from tasks.params import Params


class AdviceParams(Params):
    """Everything of the word `advice` that can be set."""

    search: SearchParams = SearchParams()
    evaluate: ReplayParams = ReplayParams()
    choose: ChoiceParams = ChoiceParams()
    groups: GroupParams = GroupParams()
    estimate: EstimateParams = EstimateParams()
    transfer: TransferParams = TransferParams()
