"""The order of a plan, and what tells one plan from another."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
CLEAN = "clean"  # what became of a run that nothing disturbed
AGAIN = ".again"  # and the number of the repetition, behind the id of a run
DIGEST_DIGITS = 16


def digest_of(text: str) -> str:
    """A short hash of all that a plan says: a campaign that began with another plan is not continued."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]


def mixed(cases: Sequence[T], subject: Callable[[T], str], dice: random.Random, last: str = "") -> list[T]:
    """Shuffled, and the same subject never twice in a row as long as there is another way. last: the one before."""
    left, order = list(cases), list[T]()
    while left:
        most, n = Counter(map(subject, left)).most_common(1)[0]
        others = [case for case in left if subject(case) != last] or left
        if most != last and 2 * n > len(left):  # or it would be left over
            others = [case for case in left if subject(case) == most]
        order.append(dice.choice(others))
        left.remove(order[-1])
        last = subject(order[-1])
    return order
