"""From a fingerprint back to scaled metrics. Source: Perona, III-C and IV-B."""

from torch import Tensor, nn

from tasks.nodes.model.layers import linear
from tasks.nodes.model.params import NetworkParams


class Decoder(nn.Module):
    """dec(c) = W_2 · AlphaDropout(SELU(W_1 c)), through a sigmoid where inputs lie between 0 and 1 (the paper's)."""

    def __init__(self, n_inputs: int, params: NetworkParams, *, has_bias: bool, is_bounded: bool) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            linear(params.hidden, params.intermediate, has_bias=has_bias),
            nn.SELU(),
            nn.AlphaDropout(params.dropout),
            linear(params.intermediate, n_inputs, has_bias=has_bias),
            nn.Sigmoid() if is_bounded else nn.Identity(),
        )

    def forward(self, codes: Tensor) -> Tensor:
        """(v, hidden) to (v, f)."""
        decoded: Tensor = self.layers(codes)
        return decoded
