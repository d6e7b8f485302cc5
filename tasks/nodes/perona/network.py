"""Perona's network: codes of executions, and how they differ from what earlier ones promise. Source: III-C and IV-B.

    enc      = SELU(W_2 · AlphaDropout(SELU(W_1 x)))                                   code of an execution
    decoded  = W_4 · AlphaDropout(SELU(W_3 enc))             the paper's: through a sigmoid, as inputs lie in 0 … 1
    nxt      = SELU(W_5 · AlphaDropout(SELU((transformer(h) + topology_adaptive(h)) / 2)))      what neighbours promise
    P        = σ(w · SELU(W_6 (enc - nxt) + b) + c)                                    that the execution was stressed
    score    = (Σ |enc|^p)^(1/p)

The paper's authors let a vertex see itself: by self-loops, by the transformer's root weight and its query, which is the
vertex' own code, and by the term A^0 h of the topology adaptive convolution. Ours has none of them, the mean of the
neighbours asks instead: what is inferred of a vertex does not depend on its own metrics. Ours has biases, which theirs
has not: its inputs are 0 for a typical execution, whose code would be 0 as well, and a norm of 0 has no logarithm."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors import torch as tensors
from torch import Tensor, nn
from torch_geometric.nn import Linear, TAGConv, TransformerConv
from torch_geometric.utils import dropout_edge, scatter

from tasks.errors import BadInput
from tasks.nodes.perona.graph import GraphBatch
from tasks.nodes.perona.params import ModelParams, NetworkParams
from tasks.params import Params

HOPS = 3  # of the topology adaptive convolution, as in the authors' code
SMALLEST = 1e-12  # norm of a row of zeros
FORMAT, VERSION = "whorl.nodes.network", 2
WEIGHTS, DESCRIPTION = "network.safetensors", "network.json"
MOST = 100_000  # no size of a network is larger


class Sizes(Params):
    """Inputs, types, and the length of an edge's attributes."""

    n_inputs: int
    n_types: int
    edge_size: int


@dataclass(frozen=True)
class Outputs:
    """What the network says of v vertices: codes of h, f inputs, t types; all finite.

    enc: (v, h) codes. decoded: (v, f) the inputs that they stand for. type_logits: (v, t).
    nxt: (v, h) what earlier executions promise; enc without its gradient where not is_inferred. decoded_nxt,
    type_logits_nxt: (v, f) and (v, t) of nxt.
    is_inferred: (v,) whether there were earlier executions enough. logit: (v,) that an execution is stressed; where not
    is_inferred it is that of no difference, and says nothing."""

    enc: Tensor
    decoded: Tensor
    type_logits: Tensor
    nxt: Tensor
    decoded_nxt: Tensor
    type_logits_nxt: Tensor
    is_inferred: Tensor
    logit: Tensor


class PeronaNetwork(nn.Module):
    """Encoder, decoder, type classifier, aggregation of earlier executions and detector; see ModelParams.variant.

    Weights are drawn from torch's generator as it stands."""

    def __init__(self, n_inputs: int, n_types: int, edge_size: int, params: ModelParams) -> None:
        super().__init__()
        network, is_paper = params.network, params.variant == "paper"
        self.params = params
        self.sizes = Sizes(n_inputs=n_inputs, n_types=n_types, edge_size=edge_size)
        self.fewest = params.graph.predecessors if is_paper else 1  # neighbours that something is inferred from
        self.encoder = nn.Sequential(*_two_layers(n_inputs, network.hidden, network, has_bias=not is_paper), nn.SELU())
        self.decoder = nn.Sequential(
            *_two_layers(network.hidden, n_inputs, network, has_bias=not is_paper),
            nn.Sigmoid() if is_paper else nn.Identity(),
        )
        self.classifier = linear(network.hidden, n_types, has_bias=True)
        self.aggregation = Aggregation(edge_size, network, sees_itself=is_paper)
        self.detector = nn.Sequential(
            linear(network.hidden, network.hidden, has_bias=True), nn.SELU(), linear(network.hidden, 1, has_bias=True)
        )

    def forward(self, batch: GraphBatch, *, is_itself: Tensor | None = None) -> Outputs:
        """What the network says of the vertices of a batch.

        is_itself: (v,) vertices whose own code, without its gradient, is decoded and classified in place of nxt: in the
        paper's losses the stressed ones, which are not to teach what a calm one looks like."""
        enc = self.encode(batch.x)  # (v, h)
        nxt, is_inferred = self._infer(enc, batch)  # (v, h), (v,)
        shown = nxt if is_itself is None else torch.where(is_itself[:, None], enc.detach(), nxt)
        return Outputs(
            enc=enc,
            decoded=self.decoder(enc),
            type_logits=self.classifier(enc),
            nxt=nxt,
            decoded_nxt=self.decoder(shown),
            type_logits_nxt=self.classifier(shown),
            is_inferred=is_inferred,
            logit=self.detector(enc - nxt).squeeze(1),
        )

    def encode(self, x: Tensor) -> Tensor:
        """Codes of executions by themselves: (v, f) to (v, h)."""
        enc: Tensor = self.encoder(x)
        return enc

    def set_prior(self, n_stressed: int, n_calm: int) -> None:
        """Start from the logit of their share, ln(n_stressed / n_calm); a class without any counts as one."""
        *_, bias = self.detector.parameters()
        nn.init.constant_(bias, math.log(max(n_stressed, 1) / max(n_calm, 1)))

    def _infer(self, enc: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """nxt (v, h) and is_inferred (v,), after the edges that a training step leaves out."""
        edge_index, is_kept = dropout_edge(batch.edge_index, self.params.network.edge_dropout, training=self.training)
        edge_attr = batch.edge_attr[is_kept] if self.training else batch.edge_attr
        source, to = edge_index
        n_neighbours = torch.bincount(to[source != to], minlength=len(enc))
        is_inferred = n_neighbours >= self.fewest
        promised = self.aggregation(enc, edge_index, edge_attr)
        return torch.where(is_inferred[:, None], promised, enc.detach()), is_inferred


class Aggregation(nn.Module):
    """Two graph convolutions, averaged. sees_itself: the paper's, with root weight and gate as the parameters say."""

    def __init__(self, edge_size: int, params: NetworkParams, *, sees_itself: bool) -> None:
        super().__init__()
        size = params.hidden
        self.sees_itself = sees_itself
        self.transformer = TransformerConv(
            size,
            size,
            heads=params.heads,
            concat=False,
            beta=params.beta and sees_itself,
            dropout=params.dropout,
            edge_dim=edge_size,
            root_weight=params.root_weight and sees_itself,
        )
        # the authors' version of PyG has no bias here; without a root weight the layer is not used at all
        self.transformer.lin_skip = Linear(size, size, bias=False) if sees_itself else nn.Identity()
        self.adaptive = _paper_hops(size) if sees_itself else NeighboursOnly(size, HOPS)
        self.dropout = nn.AlphaDropout(params.dropout)
        self.last = linear(size, size, has_bias=not sees_itself)

    def forward(self, h: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """h: (v, size); edge_index: (2, E); edge_attr: (E, d). Returns (v, size); it means nothing for a vertex that no
        edge leads to.

        The mean over the heads of the attention weights weighs the edges of the topology adaptive convolution."""
        ends = h if self.sees_itself else (h, neighbour_means(h, edge_index))
        by_attention, (_, attention) = self.transformer(ends, edge_index, edge_attr, return_attention_weights=True)
        by_hops = self.adaptive(h, edge_index, attention.mean(dim=1))  # (v, size)
        merged = self.dropout(torch.selu((by_attention + by_hops) / 2))
        return torch.selu(self.last(merged))


class NeighboursOnly(TAGConv):  # type: ignore[misc]  # torch_geometric tells no types
    """Σ_k A^k h Θ_k + b for k = 1 … K: TAGConv without its term of k = 0, the vertex itself."""

    def __init__(self, size: int, hops: int) -> None:
        super().__init__(size, size, K=hops, normalize=False)
        self.lins = nn.ModuleList([Linear(size, size, bias=False) for _ in range(hops)])

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """x: (v, size); edge_index: (2, E); edge_weight: (E,). Returns (v, size)."""
        source, to = edge_index
        total: Tensor = torch.zeros_like(x) + self.bias
        for layer in self.lins:
            x = torch.zeros_like(x).index_add(0, to, edge_weight[:, None] * x[source])  # A^k h
            total = total + layer(x)
        return total


def neighbour_means(h: Tensor, edge_index: Tensor) -> Tensor:
    """Mean of the vertices from which edges lead to each vertex, (v, size); 0 where none does."""
    source, to = edge_index
    means: Tensor = scatter(h[source], to, dim=0, dim_size=len(h), reduce="mean")
    return means


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


def save_network(network: PeronaNetwork, meta: Mapping[str, Any], folder: Path) -> None:
    """Write a network into a folder, which is made if it is not there: weights as safetensors, and JSON with what is
    needed to build it. Nothing in them is code. meta: what JSON can hold, kept as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = tensors.save({name: one.detach().cpu().contiguous() for name, one in network.state_dict().items()})
    main = {
        "format": FORMAT,
        "version": VERSION,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "sizes": network.sizes.model_dump(),
        "params": network.params.model_dump(mode="json"),
        "meta": dict(meta),
    }
    text = json.dumps(main, indent=1, allow_nan=False)
    (folder / WEIGHTS).write_bytes(weights)
    (folder / DESCRIPTION).write_text(text, encoding="utf-8")


def load_network(folder: Path) -> tuple[PeronaNetwork, dict[str, Any]]:
    """The network that save_network wrote, ready to judge (eval mode), and its meta.

    Raises BadInput if a file is missing, damaged or foreign. Nothing is drawn from torch's generator."""
    try:
        main = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.get("format"), main.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        weights = (folder / WEIGHTS).read_bytes()
        if hashlib.sha256(weights).hexdigest() != main["weights_sha256"]:
            raise ValueError(f"{WEIGHTS} is not the file that {DESCRIPTION} was written with")
        network = _built(Sizes.model_validate(main["sizes"]), ModelParams.model_validate(main["params"]))
        network.load_state_dict(_finite(tensors.load(weights)))
        return network.eval(), dict(main["meta"])
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        problem = f"no network of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "what 'whorl nodes train' wrote", "train again") from error


def _two_layers(n_in: int, n_out: int, params: NetworkParams, *, has_bias: bool) -> list[nn.Module]:
    """W_2 · AlphaDropout(SELU(W_1 x)), of encoder and decoder."""
    return [
        linear(n_in, params.intermediate, has_bias=has_bias),
        nn.SELU(),
        nn.AlphaDropout(params.dropout),
        linear(params.intermediate, n_out, has_bias=has_bias),
    ]


def _paper_hops(size: int) -> TAGConv:
    """With a bias in each of its linear layers, as PyG 2.0.4 has them whatever one asks for."""
    layer = TAGConv(size, size, K=HOPS, bias=False, normalize=False)
    layer.lins = nn.ModuleList([Linear(size, size) for _ in range(HOPS + 1)])
    return layer


def _built(sizes: Sizes, params: ModelParams) -> PeronaNetwork:
    """A network of these sizes; its first weights do not matter, so the generator is left as it was."""
    for name, size in sizes.model_dump().items():
        if not 0 <= size <= MOST:
            raise ValueError(f"{name} is {size}; expected 0 to {MOST}")
    with torch.random.fork_rng(devices=[]):
        return PeronaNetwork(**sizes.model_dump(), params=params)


def _finite(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    for name, one in weights.items():
        if not torch.isfinite(one).all():
            raise ValueError(f"{name} is not finite")
    return weights
