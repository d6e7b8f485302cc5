"""What tells two shapes apart, for one run and over many, and the points of a beeswarm plot of one shape."""

from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions

def push(parts: Contributions, a: int, b: int) -> Floats:
    """What each feature adds to log(P(b) / P(a)) of each run, (n, p): above 0 it pushes from shape a to shape b.

    Exactly additive, since both raw scores are. Raises ValueError if a and b are the same, not of the k shapes, or if
    the model knows only one of them."""
    k = parts.k
    if a == b or not (0 <= a < k and 0 <= b < k):
        raise ValueError(f"shapes {a} and {b}: expected two different ones from 0 to {k - 1}")
    if not parts.knows[[a, b]].all():
        raise ValueError(f"shapes {a} and {b}: the model was not trained on both; expected shapes that it knows")
    return parts.to_score(b) - parts.to_score(a)
