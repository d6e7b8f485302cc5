"""Plan signatures: the same hash for the same operators, whatever the literals, parameters and inputs."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Node = Mapping[str, Any]
FUNCTION = re.compile(r"\b([a-z_]+)\(")
STRUCTURAL = ("Join Type", "Aggregates", "Expressions")  # what an operator does, not what it is given
DIGITS = 16


@dataclass(frozen=True)
class Plan:
    """What is known of a query before it runs.

    estimated_rows: estimated cardinality of the result, rows. estimated_cost: estimated cardinalities summed over
    all operators, rows: C_out, by which the engine orders joins.
    """

    signature: str
    operators: dict[str, int]
    estimated_rows: float
    estimated_cost: float


def _details(node: Node) -> list[str]:
    info = node.get("extra_info") or {}
    values = [str(info[key]) for key in STRUCTURAL if key in info]
    joins = [value for value in values if value.isupper()]
    return joins + sorted(name for value in values for name in FUNCTION.findall(value))


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("children", ()):
        yield from _walk(child)


def _shape(node: Node) -> list[Any]:
    children = [_shape(child) for child in node.get("children", ())]
    # projections are free, and the optimiser adds or drops them (narrower types) as statistics change
    if node["name"] == "PROJECTION" and len(children) == 1:
        return children[0]
    return [node["name"].strip(), _details(node), children]


def read_plan(explained: str) -> Plan:
    """Signature, operator counts, estimated cardinality and estimated cost of EXPLAIN (FORMAT JSON).

    The signature is a SHA-256 over the tree of operators with join types and the names of aggregate functions,
    cut to 16 hex digits; projections are left out. Raises ValueError where the text is no such plan.
    Source: Zhu et al. 2023, 3.1.
    """
    roots = json.loads(explained)
    if not isinstance(roots, list) or not roots or "name" not in roots[0]:
        raise ValueError("not a plan: expected the JSON list that EXPLAIN (FORMAT JSON) prints")
    nodes = [node for root in roots for node in _walk(root)]
    shape = json.dumps([_shape(root) for root in roots], separators=(",", ":"))
    told = [str((node.get("extra_info") or {}).get("Estimated Cardinality", "")) for node in nodes]
    estimates = [float(text) for text in told if text.isdigit()]  # from the root down: the first is the result's
    return Plan(
        signature=hashlib.sha256(shape.encode()).hexdigest()[:DIGITS],
        operators=dict(sorted(Counter(node["name"].strip() for node in nodes).items())),
        estimated_rows=estimates[0] if estimates else 0.0,
        estimated_cost=sum(estimates),
    )
