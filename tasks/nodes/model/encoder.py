"""From scaled metrics to a fingerprint. Source: Perona, III-C and IV-B."""

from torch import Tensor, nn

from tasks.nodes.model.layers import linear
from tasks.nodes.model.params import NetworkParams


class Encoder(nn.Module):
    """enc(x) = SELU(W_2 · AlphaDropout(SELU(W_1 x))).

    has_bias: the paper's has none. Ours needs them: its inputs are 0 for a typical execution, whose fingerprint would
    be 0 as well, and a norm of 0 has no logarithm to rank by."""

    def __init__(self, n_inputs: int, params: NetworkParams, *, has_bias: bool) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            linear(n_inputs, params.intermediate, has_bias=has_bias),
            nn.SELU(),
            nn.AlphaDropout(params.dropout),
            linear(params.intermediate, params.hidden, has_bias=has_bias),
            nn.SELU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(v, f) to (v, hidden)."""
        enc: Tensor = self.layers(x)
        return enc
