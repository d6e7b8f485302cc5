"""Perona's network: codes of executions, and how they differ from what earlier ones promise. Source: III-C and IV-B.

    enc      = SELU(W_2 · AlphaDropout(SELU(W_1 x)))                                   code of an execution
    decoded  = W_4 · AlphaDropout(SELU(W_3 enc))             the paper's: through a sigmoid, as inputs lie in 0 … 1
    score    = (Σ |enc|^p)^(1/p)

and in the paper's variant alone

    nxt      = SELU(W_5 · AlphaDropout(SELU((transformer(h) + topology_adaptive(h)) / 2)))      what neighbours promise
    P        = σ(w · SELU(W_6 (enc - nxt) + b) + c)                                    that the execution was stressed

The paper's authors let a vertex see itself: by self-loops, by the transformer's root weight and its query, which is the
vertex' own code, and by the term A^0 h of the topology adaptive convolution. Ours has biases, which theirs has not: its
inputs are 0 for a typical execution, whose code would be 0 as well, and a norm of 0 has no logarithm."""

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from safetensors import SafetensorError
from safetensors import torch as tensors
from torch import Tensor, nn

from tasks.errors import BadInput
from tasks.nodes.params import ModelParams, NetworkParams
from tasks.nodes.perona.inputs import Floats32, GraphBatch, NetworkInputs
from tasks.nodes.type_tables import Floats
from tasks.params import Params

HOPS = 3  # of the topology adaptive convolution, as in the authors' code
SMALLEST = 1e-12  # norm of a row of zeros
AT_ONCE = 65_536  # executions
FORMAT, VERSION = "whorl.nodes.network", 3
WEIGHTS, DESCRIPTION = "network.safetensors", "network.json"
Size = Annotated[int, Field(ge=0, le=100_000)]  # no size of a network is larger


class Sizes(Params):
    """Inputs, types, and the length of an edge's attributes."""

    n_inputs: Size
    n_types: Size
    edge_size: Size


@dataclass(frozen=True)
class Outputs:
    """What an encoder says of v executions: codes of h, f inputs, t types; all finite.

    enc: (v, h) codes. decoded: (v, f) the inputs that they stand for. type_logits: (v, t)."""

    enc: Tensor
    decoded: Tensor
    type_logits: Tensor


@dataclass(frozen=True)
class GraphOutputs(Outputs):
    """And what their predecessors say of them.

    nxt: (v, h) what earlier executions promise; enc without its gradient where not is_inferred. decoded_nxt,
    type_logits_nxt: (v, f) and (v, t) of nxt. is_inferred: (v,) whether there were earlier executions enough. logit:
    (v,) that an execution is stressed; where not is_inferred it is that of no difference, and says nothing."""

    nxt: Tensor
    decoded_nxt: Tensor
    type_logits_nxt: Tensor
    is_inferred: Tensor
    logit: Tensor


class Encoder(nn.Module):
    """Our variant: encoder, decoder and type classifier. Weights are drawn from torch's generator as it stands."""

    def __init__(self, n_inputs: int, n_types: int, edge_size: int, params: ModelParams) -> None:
        super().__init__()
        network, is_paper = params.network, params.is_paper
        self.params = params
        self.sizes = Sizes(n_inputs=n_inputs, n_types=n_types, edge_size=edge_size)
        self.encoder = nn.Sequential(*_two_layers(n_inputs, network.hidden, network, has_bias=not is_paper), nn.SELU())
        self.decoder = nn.Sequential(
            *_two_layers(network.hidden, n_inputs, network, has_bias=not is_paper),
            nn.Sigmoid() if is_paper else nn.Identity(),
        )
        self.classifier = linear(network.hidden, n_types, has_bias=True)

    def forward(self, batch: GraphBatch) -> Outputs:
        """What the network says of the executions of a batch."""
        enc = self.encode(batch.x)
        return Outputs(enc=enc, decoded=self.decoder(enc), type_logits=self.classifier(enc))

    def encode(self, x: Tensor) -> Tensor:
        """Codes of executions by themselves: (v, f) to (v, h)."""
        enc: Tensor = self.encoder(x)
        return enc


class PeronaNetwork(Encoder):
    """The paper's variant: aggregation of earlier executions and detector besides."""

    def __init__(self, n_inputs: int, n_types: int, edge_size: int, params: ModelParams) -> None:
        super().__init__(n_inputs, n_types, edge_size, params)
        hidden = params.network.hidden
        self.aggregation = Aggregation(edge_size, params.network)
        self.detector = nn.Sequential(
            linear(hidden, hidden, has_bias=True), nn.SELU(), linear(hidden, 1, has_bias=True)
        )

    def forward(self, batch: GraphBatch) -> GraphOutputs:
        """What the network says of the vertices of a batch.

        Stressed vertices are not to teach what a calm one looks like: their own codes, without their gradient, are
        decoded and classified in place of nxt."""
        enc = self.encode(batch.x)  # (v, h)
        nxt, is_inferred = self._infer(enc, batch)  # (v, h), (v,)
        shown = torch.where((batch.label == 1)[:, None], enc.detach(), nxt)
        return GraphOutputs(
            enc=enc,
            decoded=self.decoder(enc),
            type_logits=self.classifier(enc),
            nxt=nxt,
            decoded_nxt=self.decoder(shown),
            type_logits_nxt=self.classifier(shown),
            is_inferred=is_inferred,
            logit=self.detector(enc - nxt).squeeze(1),
        )

    def set_prior(self, n_stressed: int, n_calm: int) -> None:
        """Start from the logit of their share, ln(n_stressed / n_calm); a class without any counts as one."""
        *_, bias = self.detector.parameters()
        nn.init.constant_(bias, math.log(max(n_stressed, 1) / max(n_calm, 1)))

    def _infer(self, enc: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """nxt (v, h) and is_inferred (v,), after the edges that a training step leaves out."""
        from torch_geometric.utils import dropout_edge

        edge_index, is_kept = dropout_edge(batch.edge_index, self.params.network.edge_dropout, training=self.training)
        edge_attr = batch.edge_attr[is_kept] if self.training else batch.edge_attr
        source, to = edge_index
        n_neighbours = torch.bincount(to[source != to], minlength=len(enc))
        is_inferred = n_neighbours >= self.params.n_predecessors
        promised = self.aggregation(enc, edge_index, edge_attr)
        return torch.where(is_inferred[:, None], promised, enc.detach()), is_inferred


class Aggregation(nn.Module):
    """Two graph convolutions, averaged, with root weight and gate as the parameters say."""

    def __init__(self, edge_size: int, params: NetworkParams) -> None:
        from torch_geometric.nn import Linear, TAGConv, TransformerConv  # seconds, for the paper's variant alone

        super().__init__()
        size = params.hidden
        self.transformer = TransformerConv(
            size, size, heads=params.heads, concat=False, beta=params.beta, dropout=params.dropout, edge_dim=edge_size,
            root_weight=params.root_weight,
        )  # fmt: skip
        self.transformer.lin_skip = Linear(size, size, bias=False)  # the authors' version of PyG has no bias here
        self.adaptive = TAGConv(size, size, K=HOPS, bias=False, normalize=False)
        # with a bias in each of its linear layers, as PyG 2.0.4 has them whatever one asks for
        self.adaptive.lins = nn.ModuleList([Linear(size, size) for _ in range(HOPS + 1)])
        self.dropout = nn.AlphaDropout(params.dropout)
        self.last = linear(size, size, has_bias=False)

    def forward(self, h: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """h: (v, size); edge_index: (2, E); edge_attr: (E, d). Returns (v, size).

        The mean over the heads of the attention weights weighs the edges of the topology adaptive convolution."""
        by_attention, (_, attention) = self.transformer(h, edge_index, edge_attr, return_attention_weights=True)
        by_hops = self.adaptive(h, edge_index, attention.mean(dim=1))  # (v, size)
        merged = self.dropout(torch.selu((by_attention + by_hops) / 2))
        return torch.selu(self.last(merged))


def network_of(n_inputs: int, n_types: int, edge_size: int, params: ModelParams) -> Encoder:
    """An untrained network of the variant that the parameters name."""
    return (PeronaNetwork if params.is_paper else Encoder)(n_inputs, n_types, edge_size, params)


def linear(n_in: int, n_out: int, *, has_bias: bool) -> nn.Linear:
    """A linear layer of normal weights with variance 1 / n_in (Kaiming, fan in, gain 1) and a bias of 0."""
    layer = nn.Linear(n_in, n_out, bias=has_bias)
    nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="linear")
    if has_bias:
        nn.init.zeros_(layer.bias)
    return layer


def p_norms(vectors: Tensor, power: float) -> Tensor:
    """(Σ |v|^p)^(1/p) of each row: (n, d) to (n,), above 0 also for a row of zeros, whose gradient is 0.

    The rows are divided by their largest entry first: the tenth power of 1e-4 or of 1e4 does not fit into float32.
    Source: Perona, III-D and IV-B (p = 10)."""
    sizes = vectors.abs()
    largest = sizes.detach().amax(dim=-1, keepdim=True).clamp(min=SMALLEST)  # constant: the norm does not depend on it
    total = ((sizes / largest) ** power).sum(dim=-1)
    norms: Tensor = largest.squeeze(-1) * total.clamp(min=SMALLEST) ** (1 / power)
    return norms


@dataclass(frozen=True)
class Fingerprints:
    """enc: (n, h) codes. log_norm: (n,) natural logarithm of their p-norms, p being that of the model.

    NaN for executions of a type that training did not have, and for those without any measurement."""

    enc: Floats
    log_norm: Floats


def fingerprints_of(inputs: NetworkInputs, network: Encoder) -> Fingerprints:
    """The fingerprints of all executions, row by row. Source: Perona, III-D."""
    enc = np.full((len(inputs), network.params.network.hidden), np.nan)
    log_norm = np.full(len(inputs), np.nan)
    if (is_measured := inputs.is_measured).any():
        codes = codes_of(inputs.x[is_measured], network).double()  # (k, h)
        enc[is_measured] = codes.numpy()
        log_norm[is_measured] = np.log(p_norms(codes, network.params.loss.norm_power).numpy())
    return Fingerprints(enc, log_norm)


def codes_of(x: Floats32, network: Encoder) -> Tensor:
    """The codes of executions by themselves: (n, f) to (n, h)."""
    with judging(network):
        return torch.cat([network.encode(part) for part in torch.split(torch.from_numpy(x), AT_ONCE)])


@contextmanager
def judging(network: Encoder) -> Iterator[None]:
    """The network without dropout and gradients; afterwards it is as it was."""
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        network.train(was_training)


def save_network(network: Encoder, folder: Path) -> None:
    """Write a network into a folder, which is made if it is not there: weights as safetensors, and JSON with what is
    needed to build it. Nothing in them is code."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = tensors.save({name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()})
    about = {"format": FORMAT, "version": VERSION, "weights_sha256": hashlib.sha256(weights).hexdigest()}
    about |= {"sizes": network.sizes.model_dump(), "params": network.params.model_dump(mode="json")}
    (folder / WEIGHTS).write_bytes(weights)
    (folder / DESCRIPTION).write_text(json.dumps(about, indent=1, allow_nan=False), encoding="utf-8")


def load_network(folder: Path) -> Encoder:
    """The network that save_network wrote, in evaluation mode.

    Raises BadInput if a file is missing, damaged or foreign. Torch's generator is left as it was."""
    try:
        main = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.get("format"), main.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        weights = (folder / WEIGHTS).read_bytes()
        if hashlib.sha256(weights).hexdigest() != main["weights_sha256"]:
            raise ValueError(f"{WEIGHTS} is not the file that {DESCRIPTION} was written with")
        sizes, params = Sizes.model_validate(main["sizes"]), ModelParams.model_validate(main["params"])
        with torch.random.fork_rng(devices=[]):
            network = network_of(**sizes.model_dump(), params=params)
        state = tensors.load(weights)
        if odd := [name for name, tensor in state.items() if not torch.isfinite(tensor).all()]:
            raise ValueError(f"{odd[0]} is not finite")
        network.load_state_dict(state)
        return network.eval()
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        problem = f"no network of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "what 'whorl nodes train' wrote", "train again") from error


def _two_layers(n_in: int, n_out: int, params: NetworkParams, *, has_bias: bool) -> list[nn.Module]:
    """W_2 · AlphaDropout(SELU(W_1 x)), of encoder and decoder."""
    first = linear(n_in, params.intermediate, has_bias=has_bias)
    return [first, nn.SELU(), nn.AlphaDropout(params.dropout), linear(params.intermediate, n_out, has_bias=has_bias)]
