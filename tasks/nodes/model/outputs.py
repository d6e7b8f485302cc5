"""What the network says of the vertices of a batch."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Outputs:
    """v vertices, encodings of h, f inputs, t types; all finite.

    enc: (v, h) fingerprints. decoded: (v, f) the inputs that they stand for. type_logits: (v, t).
    nxt: (v, h) what earlier executions promise; enc without its gradient where not is_inferred. decoded_nxt,
    type_logits_nxt: (v, f) and (v, t) of nxt.
    is_inferred: (v,) whether there were earlier executions enough.
    logit: (v,) that an execution is stressed, from enc - nxt where is_inferred, else logit_alone.
    logit_alone: (v,) by the fingerprint alone; in the paper's variant the constant that its detector says of no
    difference.
    nxt_taught, decoded_taught, type_logits_taught: what losses look at in place of the three of nxt. The same, but in
    the paper's variant executions known to be stressed stand for themselves there: enc without its gradient. Nothing
    else depends on labels."""

    enc: Tensor
    decoded: Tensor
    type_logits: Tensor
    nxt: Tensor
    decoded_nxt: Tensor
    type_logits_nxt: Tensor
    is_inferred: Tensor
    logit: Tensor
    logit_alone: Tensor
    nxt_taught: Tensor
    decoded_taught: Tensor
    type_logits_taught: Tensor
