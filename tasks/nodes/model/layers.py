"""The plain layers of the network, initialised as the paper's authors do."""

from torch import nn


def linear(n_in: int, n_out: int, *, has_bias: bool) -> nn.Linear:
    """A linear layer of normal weights with variance 1 / n_in (Kaiming, fan in, gain 1) and a bias of 0."""
    layer = nn.Linear(n_in, n_out, bias=has_bias)
    nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="linear")
    if has_bias:
        nn.init.zeros_(layer.bias)
    return layer
