"""Cross entropy of the benchmark type, read from an encoding by one linear layer. Source: Perona, III-D."""

from torch import Tensor
from torch.nn.functional import cross_entropy

from tasks.nodes.losses.means import mean_where


def type_cross_entropy(logits: Tensor, type_of: Tensor, is_counted: Tensor) -> Tensor:
    """Mean of -ln softmax(logits)[type] over the counted vertices of a known type.

    logits: (v, t); type_of: (v,), -1 for a type that training did not have; is_counted: (v,)."""
    each = cross_entropy(logits, type_of.clamp(min=0), reduction="none")
    return mean_where(each, is_counted & (type_of >= 0))
