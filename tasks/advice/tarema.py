"""Tarema's grouping as it was published, to stand beside ours: k-means++ with k = 3 on unscaled scores."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.advice.groups import quartile_levels, score_table
from tasks.advice.machines import Floats, Ints
from tasks.advice.params import GroupParams
from tasks.errors import BadInput

TAREMA_GROUPS = 3  # the smallest k that the original tries, and the one that it always takes


@dataclass(frozen=True)
class DistinctGroups:
    """groups: (n,) number of each machine's. levels: (k, d) the label of each group in each aspect."""

    groups: Ints
    levels: Ints


def tarema_groups(scores: Floats, rng: np.random.Generator) -> DistinctGroups:
    """The original's variant: k-means++ with k = 3 on unscaled scores, labels by quartiles of the centres.

    scores: (n, d), n >= 3. The published code means to choose k by silhouette and takes 3 always. Source: Bader et al.
    (2021) and its published client. Raises BadInput for fewer than 3 machines."""
    from sklearn.cluster import KMeans  # type: ignore[import-untyped, unused-ignore]

    if len(scores) < TAREMA_GROUPS:
        raise BadInput("scores", f"{len(scores)} machines", f"at least {TAREMA_GROUPS}, as the original needs")
    model = KMeans(TAREMA_GROUPS, n_init=1, random_state=int(rng.integers(2**31))).fit(scores)
    levels = np.stack([quartile_levels(centres) for centres in model.cluster_centers_.T], axis=1)
    return DistinctGroups(model.labels_.astype(np.int64), levels)


def published_groups(scores: pd.DataFrame, params: GroupParams) -> dict[str, int]:
    """The original's group of each machine, 1 the best by its mean log score; empty for fewer than 3 machines.

    scores: as group_machines takes them. Raises BadInput as it does."""
    table = score_table(scores, params)
    if len(table.machines) < TAREMA_GROUPS:
        return {}
    groups = tarema_groups(np.exp(table.log_scores), np.random.default_rng(params.seed)).groups
    means = {group: -float(table.log_scores[groups == group].mean()) for group in set(groups.tolist())}
    places = {group: place for place, group in enumerate(sorted(means, key=lambda one: means[one]), 1)}
    return {machine: places[group] for machine, group in zip(table.machines, groups.tolist(), strict=True)}
