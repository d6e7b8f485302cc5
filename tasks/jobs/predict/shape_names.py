"""Names of sets of shapes, so that a model can say which it used: `ratio-8-3fa9c1d2`."""

import hashlib
from collections.abc import Mapping

from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import ShapeSet

HASH_CHARS = 8


def shape_names(shapes: Mapping[Kind, ShapeSet]) -> dict[str, str]:
    """By kind: the kind, how many shapes, and a hash over all of their numbers."""
    return {kind: f"{kind}-{len(one.centres)}-{_hash(one)}" for kind, one in shapes.items()}


def _hash(shapes: ShapeSet) -> str:
    return hashlib.sha256(shapes.to_json().encode()).hexdigest()[:HASH_CHARS]
