"""Fingerprints: what the encoder makes of each execution alone, and the norms that scores are made of.

A fingerprint needs no history and no verdict: executions of a machine that was just set up have one as well."""

from dataclasses import dataclass

import numpy as np
import torch

from tasks.nodes.fingerprint.judging import can_be_judged
from tasks.nodes.perona.inputs import Floats, Inputs
from tasks.nodes.perona.network import PeronaNetwork, p_norms

AT_ONCE = 65_536  # executions


@dataclass(frozen=True)
class Fingerprints:
    """enc: (n, h) codes. log_norm: (n,) natural logarithm of their p-norms, p being that of the model.

    NaN for executions of a type that training did not have, and for those without any measurement."""

    enc: Floats
    log_norm: Floats


def fingerprints_of(inputs: Inputs, network: PeronaNetwork) -> Fingerprints:
    """The fingerprints of all executions, row by row; the network is as it was afterwards. Source: Perona, III-D."""
    rows = np.flatnonzero(can_be_judged(inputs))
    enc = np.full((len(inputs), network.params.network.hidden), np.nan)
    log_norm = np.full(len(inputs), np.nan)
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            parts = [
                network.encode(torch.from_numpy(inputs.x[rows[first : first + AT_ONCE]])).double()
                for first in range(0, len(rows), AT_ONCE)
            ]
            if not parts:
                return Fingerprints(enc, log_norm)
            codes = torch.cat(parts)  # (k, h)
            norms = p_norms(codes, network.params.loss.norm_power)  # (k,)
    finally:
        network.train(was_training)
    enc[rows], log_norm[rows] = codes.numpy(), np.log(norms.numpy())
    return Fingerprints(enc, log_norm)
