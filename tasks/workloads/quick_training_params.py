"""A training that takes seconds and identifies a little less well: for a first look. Nothing heavy is imported here."""

from tasks.workloads.identify.params import IdentifyParams


def quick(params: IdentifyParams) -> IdentifyParams:
    """The parameters with fewer trees and fewer workloads left out in turn; what is compared, and how, stays."""
    trees = params.trees.model_copy(update={"rounds": min(params.trees.rounds, 30), "seeds": 1})
    open_set = params.open_set.model_copy(update={"most_left_out": min(params.open_set.most_left_out, 4)})
    return params.model_copy(update={"trees": trees, "open_set": open_set})
