"""Who gets which tokens: promised ones when a job starts, spare ones while there is room. Pure arithmetic.

Source: Zhu et al. 2023, 3.2 (guaranteed tokens, preemptive spare tokens, their cap); Boutin et al. 2014.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Holder:
    """A vertex at work: its job, the tokens promised to it there, and how many it may hold in all."""

    vertex: str
    job: str
    promised: int
    most: int


def promise(tokens: int, free: Mapping[str, int], n_vertices: int) -> dict[str, int] | None:
    """Spread a request over SKUs; None while they have too few.

    free: tokens not promised to anybody, by SKU offered. No more SKUs than vertices; those with most room first,
    token by token, so that the mix follows the room. A request beyond n_vertices is spread all the same."""
    order = sorted(free, key=lambda sku: -free[sku])[:n_vertices]
    if sum(free[sku] for sku in order) < tokens:
        return None
    left = {sku: free[sku] for sku in order}
    given: Counter[str] = Counter()
    for _ in range(tokens):
        sku = max(left, key=lambda name: left[name])
        given[sku] += 1
        left[sku] -= 1
    return dict(given)


def split(tokens: int, n_vertices: int) -> list[int]:
    """A job's tokens on one SKU, shared by its vertices at work there: as equal as whole tokens can be."""
    least, more = divmod(tokens, n_vertices)
    return [least + (place < more) for place in range(n_vertices)]


def grant_spare(holders: Sequence[Holder], room: int, allowance: Mapping[str, int]) -> dict[str, int]:
    """Spare tokens for each vertex on one SKU: one each, in turn, while there is room.

    room: tokens of the SKU that nobody uses; allowance: spare tokens that each job may still take. Returns only
    what was granted: a vertex that is not in it has to give back what it had (preemption)."""
    granted: Counter[str] = Counter()
    left = dict(allowance)
    in_turn = list(holders)
    while room > 0 and in_turn:
        still = []
        for holder in in_turn:
            fits = holder.promised + granted[holder.vertex] < holder.most
            if room > 0 and fits and left.get(holder.job, 0) > 0:
                granted[holder.vertex] += 1
                left[holder.job] -= 1
                room -= 1
                still.append(holder)
        in_turn = still
    return dict(granted)
