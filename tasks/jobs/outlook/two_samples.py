"""Do two samples come from one distribution: Anderson-Darling and Kolmogorov-Smirnov, p-values by permutation.

Runtimes are often whole seconds, and runs of one busy day are slow together: ties and clusters spoil the tables of
both tests. If nothing changed, though, every way to deal the stretches of time (days, say), with all their runs, into
`before` and `after` is as likely. So the p-value is the share of random deals whose statistic is at least the observed
one: right with ties, and with any dependence within a stretch; dependence over several stretches is not covered."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.jobs.distribution import Floats

Test = Literal["anderson-darling", "kolmogorov-smirnov"]
Booleans = NDArray[np.bool_]
ENOUGH = 20  # deals at least as extreme after which the p-value is known well enough
FIRST_BLOCK = 128
CELLS = 2_000_000  # deals times runs gone through together
ROUNDING = 1e-9  # of a statistic: the same deal must count as at least as extreme


def statistics(values: Floats, is_after: Booleans, test: Test) -> Floats:
    """The statistic of each deal: (n_deals,). values: (N,) ascending; is_after: (n_deals, N), some but not all.

    kolmogorov-smirnov: the largest difference of both empirical cdfs. anderson-darling: with n runs before, m after,
    and C_j of the after among the j smallest, sum over distinct values, h of which are tied at place j, of
    h (N C_j - m j)² / (j (N - j)) / (n m). Source: Pettitt 1976; ties as in Scholz & Stephens 1987, equation 6."""
    n_all = len(values)
    last = np.flatnonzero(np.append(np.diff(values) > 0, True))  # the last of each run of ties
    if len(last) == 1:
        return np.zeros(len(is_after))
    place = (last + 1)[:-1].astype(np.float64)  # j; at the largest value both cdfs are 1
    ties = np.diff(last, prepend=-1)[:-1]  # h
    after = np.cumsum(is_after, axis=1, dtype=np.int32)  # (n_deals, N)
    n_after = after[:, -1].astype(np.float64)  # m
    gap = n_all * after[:, last[:-1]] - n_after[:, None] * place  # (n_deals, n_distinct - 1)
    both = (n_all - n_after) * n_after
    if test == "kolmogorov-smirnov":
        return np.asarray(np.abs(gap).max(axis=1) / both)  # |C/m - (j - C)/n| = |N C - m j| / (n m)
    return np.asarray((gap**2) @ (ties / (place * (n_all - place))) / both)


def permutation_test(
    values: Floats,
    stretch: NDArray[np.int64],
    is_after: Booleans,
    test: Test,
    rng: np.random.Generator,
    *,
    max_permutations: int,
) -> tuple[float, float]:
    """Statistic and p-value of the values before and after: (N,) each, in any order; ties are fine.

    stretch: number of the stretch of time of each value; those of one stretch are all before or all after and stay
    together; is_after: some but not all. Deals stop when ENOUGH of them were as extreme: p = ENOUGH / deals so far;
    otherwise p = (1 + extreme) / (1 + max_permutations). Either way P(p <= u) is at most u if nothing changed.
    Source: Besag & Clifford 1991. Raises ValueError for a stretch on both sides."""
    names, number = np.unique(stretch, return_inverse=True)
    sides = np.bincount(number, weights=is_after) / np.bincount(number)
    if not np.isin(sides, (0.0, 1.0)).all():
        raise ValueError(f"stretch {names[(sides > 0) & (sides < 1)][0]}: has runs before and after; expected one side")
    order = np.argsort(values, kind="stable")
    ascending, number = values[order], number[order]
    observed = float(statistics(ascending, (sides > 0)[number][None, :], test)[0])
    if ascending[0] == ascending[-1]:
        return observed, 1.0
    done = extreme = 0
    block = FIRST_BLOCK
    while done < max_permutations:
        n_deals = min(block, max_permutations - done, max(1, CELLS // len(values)))
        deals = rng.permuted(np.tile(sides > 0, (n_deals, 1)), axis=1)  # (n_deals, n_stretches)
        hits = np.flatnonzero(statistics(ascending, deals[:, number], test) >= observed * (1 - ROUNDING))
        if extreme + len(hits) >= ENOUGH:
            return observed, ENOUGH / float(done + hits[ENOUGH - extreme - 1] + 1)
        done, extreme, block = done + n_deals, extreme + len(hits), 4 * block
    return observed, (1 + extreme) / (1 + max_permutations)
