"""Perona's network: fingerprints of executions, and how they differ from what earlier ones promise. Source: IV-B."""

import torch
from torch import Tensor, nn
from torch_geometric.utils import dropout_edge

from tasks.nodes.graph.batches import GraphBatch
from tasks.nodes.losses.norms import p_norms
from tasks.nodes.model.aggregation import Aggregation
from tasks.nodes.model.decoder import Decoder
from tasks.nodes.model.detector import Detector
from tasks.nodes.model.encoder import Encoder
from tasks.nodes.model.layers import linear
from tasks.nodes.model.outputs import Outputs
from tasks.nodes.model.params import ModelParams
from tasks.params import Params

__all__ = ["Outputs", "PeronaNetwork", "Sizes"]


class Sizes(Params):
    """Inputs, types, length of an edge's attributes, and scores of plain detectors that come with an execution."""

    n_inputs: int
    n_types: int
    edge_size: int
    n_evidence: int


class PeronaNetwork(nn.Module):
    """Encoder, decoder, type classifier, aggregation of earlier executions and detectors; see ModelParams.variant.

    Weights are drawn from torch's generator as it stands. Evidence is heeded in our variant alone, and there only if
    network.evidence asks for it."""

    def __init__(self, n_inputs: int, n_types: int, edge_size: int, n_evidence: int, params: ModelParams) -> None:
        super().__init__()
        network, self.is_paper = params.network, params.variant == "paper"
        self.params = params
        self.sizes = Sizes(n_inputs=n_inputs, n_types=n_types, edge_size=edge_size, n_evidence=n_evidence)
        self.fewest = params.graph.predecessors if self.is_paper else 1  # neighbours that something is inferred from
        self.encoder = Encoder(n_inputs, network, has_bias=not self.is_paper)
        self.decoder = Decoder(n_inputs, network, has_bias=not self.is_paper, is_bounded=self.is_paper)
        self.classifier = linear(network.hidden, n_types, has_bias=True)
        self.aggregation = Aggregation(edge_size, network, sees_itself=self.is_paper)
        self.n_heeded = n_evidence if network.evidence and not self.is_paper else 0
        self.detector = Detector(network.hidden, self.n_heeded)
        self.lone_detector = None if self.is_paper else Detector(network.hidden, self.n_heeded)

    def forward(self, batch: GraphBatch) -> Outputs:
        """What the network says of the vertices of a batch."""
        enc = self.encode(batch.x)
        nxt, is_inferred = self._infer(enc, batch)
        logit_alone = self._alone(enc, batch.evidence)
        logit = self.detector(enc - nxt, batch.evidence[:, : self.n_heeded])
        decoded_nxt, type_logits_nxt = self.decoder(nxt), self.classifier(nxt)
        nxt_taught, decoded_taught, type_logits_taught = nxt, decoded_nxt, type_logits_nxt
        if self.is_paper:  # a stressed execution does not teach what a calm one would look like
            nxt_taught = torch.where((batch.label == 1)[:, None], enc.detach(), nxt)
            decoded_taught, type_logits_taught = self.decoder(nxt_taught), self.classifier(nxt_taught)
        return Outputs(
            enc=enc,
            decoded=self.decoder(enc),
            type_logits=self.classifier(enc),
            nxt=nxt,
            decoded_nxt=decoded_nxt,
            type_logits_nxt=type_logits_nxt,
            nxt_taught=nxt_taught,
            decoded_taught=decoded_taught,
            type_logits_taught=type_logits_taught,
            is_inferred=is_inferred,
            logit=torch.where(is_inferred, logit, logit_alone),
            logit_alone=logit_alone,
        )

    def encode(self, x: Tensor) -> Tensor:
        """Fingerprints of executions by themselves: (v, f) to (v, hidden)."""
        enc: Tensor = self.encoder(x)
        return enc

    def judge_alone(self, x: Tensor, evidence: Tensor) -> Tensor:
        """Logits of executions by themselves, (v,): Outputs.logit_alone without a graph. evidence: (v, n_evidence)."""
        return self._alone(self.encode(x), evidence)

    @staticmethod
    def norms(enc: Tensor, power: float) -> Tensor:
        """p-norms of fingerprints, the raw scores: (v, hidden) to (v,)."""
        return p_norms(enc, power)

    def set_prior(self, n_stressed: int, n_calm: int) -> None:
        """Let the detectors start from the share of stressed executions in training."""
        for detector in (self.detector, self.lone_detector):
            if detector is not None:
                detector.set_prior(n_stressed, n_calm)

    def _infer(self, enc: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """nxt (v, hidden) and is_inferred (v,), after the edges that a training step leaves out."""
        edge_index, is_kept = dropout_edge(batch.edge_index, self.params.network.edge_dropout, training=self.training)
        edge_attr = batch.edge_attr[is_kept] if self.training else batch.edge_attr
        source, to = edge_index
        n_neighbours = torch.bincount(to[source != to], minlength=len(enc))
        is_inferred = n_neighbours >= self.fewest
        promised = self.aggregation(enc, edge_index, edge_attr)
        return torch.where(is_inferred[:, None], promised, enc.detach()), is_inferred

    def _alone(self, enc: Tensor, evidence: Tensor) -> Tensor:
        heeded = evidence[:, : self.n_heeded]
        if self.lone_detector is None:
            logits: Tensor = self.detector(torch.zeros_like(enc), heeded)
        else:
            logits = self.lone_detector(enc, heeded)
        return logits
