"""p-norms of vectors: what scores and rankings are made of. Source: Perona, III-D and IV-B (p = 10)."""

from torch import Tensor

SMALLEST = 1e-12


def p_norms(vectors: Tensor, power: float) -> Tensor:
    """(Σ |v|^p)^(1/p) of each row: (n, d) to (n,), above 0 also for a row of zeros, whose gradient is 0.

    The rows are divided by their largest entry first: the tenth power of 1e-4 or of 1e4 does not fit into float32."""
    sizes = vectors.abs()
    largest = sizes.detach().amax(dim=-1, keepdim=True).clamp(min=SMALLEST)  # constant: the norm does not depend on it
    total = ((sizes / largest) ** power).sum(dim=-1)
    norms: Tensor = largest.squeeze(-1) * total.clamp(min=SMALLEST) ** (1 / power)
    return norms
