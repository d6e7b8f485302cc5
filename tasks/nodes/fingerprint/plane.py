"""Fingerprints in two dimensions, by type and with their norms: what Figure 4 of the paper shows."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.fingerprint.fingerprints import Fingerprints
from tasks.nodes.perona.inputs import NO_TYPE, Floats, Inputs

COLUMNS = ["execution", "type", "node", "x", "y", "norm"]
SMALLEST = 1e-12  # length of a fingerprint that has a direction


@dataclass(frozen=True)
class Plane:
    """points: one row an execution with a fingerprint: execution (row of the inputs), type, node, x and y (from -1 to
    1), norm. shown: the share of the variance that the two dimensions hold, 0 without any."""

    points: pd.DataFrame
    shown: float


def plane_of(inputs: Inputs, prints: Fingerprints) -> Plane:
    """Directions of fingerprints on their first two principal components; types count alike, however often they ran.

    Types are clustered by direction (cosine similarity) and nodes are ranked by norm, so the place tells the type and
    the norm is told beside it. The same fingerprints always have the same places: signs are fixed."""
    rows = np.flatnonzero(np.isfinite(prints.log_norm) & (inputs.type_of != NO_TYPE))
    enc, type_of = prints.enc[rows], inputs.type_of[rows]
    length = np.linalg.norm(enc, axis=1, keepdims=True)
    direction = enc / np.maximum(length, SMALLEST)  # (k, h)
    sizes = np.bincount(type_of, minlength=len(inputs.types))
    weight = 1 / (sizes[type_of] * max(1, int((sizes > 0).sum())))  # sums to 1
    apart = direction - weight @ direction
    axes, shown = _first_two(apart, weight)
    place = apart @ axes  # (k, 2)
    told = {
        "execution": rows,
        "type": np.array(inputs.types, dtype=object)[type_of],
        "node": np.array(inputs.nodes, dtype=object)[inputs.node_of[rows]],
        "x": place[:, 0],
        "y": place[:, 1],
        "norm": np.exp(prints.log_norm[rows]),
    }
    return Plane(pd.DataFrame(told)[COLUMNS].astype({"type": "str", "node": "str"}), shown)


def _first_two(apart: Floats, weight: Floats) -> tuple[Floats, float]:
    """The first two principal axes, (h, 2), and the share of the variance along them. apart: (k, h), of mean 0."""
    variance, axes = np.linalg.eigh((apart * weight[:, None]).T @ apart)  # rising
    chosen = axes[:, ::-1][:, :2]
    largest = chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])]
    total = variance.sum()
    shown = float(variance[::-1][:2].sum() / total) if total > 0 else 0.0
    return chosen * np.where(largest < 0, -1.0, 1.0), shown
