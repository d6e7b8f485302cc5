"""Families of features that mean the same, so that correlated features do not split a reason between them."""

import re
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions

Family = Literal[
    "input",
    "tokens",
    "spare tokens",
    "SKU",
    "load",
    "queue",
    "plan",
    "history",
    "calendar",
    "memory",
    "requested time",
    "other",
]
FAMILIES: tuple[Family, ...] = get_args(Family)

# The first pattern that fits, from the start of the name. Within the jobs of a recording, estimated cost follows the
# input (Spearman 0.93), since the plan of a job is the same; free tokens of a SKU follow the spare tokens on offer
# (0.45 to 0.56) rather than its load (-0.12 to -0.18).
PATTERNS: tuple[tuple[str, Family], ...] = (
    (r"input_|read_bytes|estimated_|cost_ratio", "input"),
    (r"spare_tokens|sku_free_tokens", "spare tokens"),
    (r"(requested_|min_|mean_|peak_)?tokens|(requested|used)_cpus", "tokens"),
    (r"(sku_)?load_", "load"),
    (r"offered_|vertices_|vertex_share_", "SKU"),
    (r"queue_|wait_", "queue"),
    (r"op_|n_operators|n_vertices", "plan"),
    (r"hour_of_day|day_of_week", "calendar"),
    (r"requested_memory|peak_memory|temp_bytes", "memory"),
    (r"requested_runtime", "requested time"),
    (r"n_before|log_|last_|ewma_|p25_p75|outlier_share|hours_since|shape_|recent_shape_", "history"),
)

# What a recorded cause is called here (record/cause.py). None: nothing known before a run tells of it.
RECORDED: dict[str, Family | None] = {
    "big_input": "input",
    "few_tokens": "tokens",
    "load": "load",
    "spill": "memory",
    "lock": None,
    "cold_cache": None,
}


def family_of(feature: str) -> Family:
    """The family of a feature by its name; `other` for a name that no pattern fits."""
    for pattern, family in PATTERNS:
        if re.match(pattern, feature):
            return family
    return "other"


def families_of(features: Sequence[str]) -> tuple[Family, ...]:
    """The families that the features have, in the order of FAMILIES."""
    found = {family_of(feature) for feature in features}
    return tuple(family for family in FAMILIES if family in found)


def by_family(parts: Contributions) -> tuple[Floats, tuple[Family, ...]]:
    """Contributions of one score summed within families, (n, number of families), and the families."""
    families = families_of(parts.features)
    place = {family: number for number, family in enumerate(families)}
    member = np.zeros((len(parts.features), len(families)))
    member[np.arange(len(parts.features)), [place[family_of(feature)] for feature in parts.features]] = 1.0
    summed: Floats = parts.single @ member
    return summed, families
