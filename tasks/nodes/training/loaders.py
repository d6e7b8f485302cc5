"""What Lightning takes batches from: whole arrays are gathered, no Data object is made and none is collated."""

from collections.abc import Iterator

import numpy as np

from tasks.nodes.graph.batches import Batches, GraphBatch

GRAPHS_AT_ONCE = 64  # of a validation batch


class ShuffledBatches:
    """Batches of all graphs in a new order each time they are gone through; the last may be smaller.

    seed: of the orders, which are the same ones for the same seed and depend on nothing else."""

    def __init__(self, batches: Batches, batch_size: int, seed: int) -> None:
        self._batches, self._batch_size = batches, batch_size
        self._rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        """Batches of one pass."""
        return -(-len(self._batches) // self._batch_size)

    def __iter__(self) -> Iterator[GraphBatch]:
        """One pass. The order is drawn when the first batch is asked for: Lightning makes iterators that it drops."""
        order = self._rng.permutation(len(self._batches))
        for first in range(0, len(order), self._batch_size):
            yield self._batches.of(order[first : first + self._batch_size])


class InParts:
    """All graphs in as few batches as triplets allow, the same ones every time, gathered once.

    The similarities of all pairs of vectors are sorted for the triplets, so a batch of a thousand graphs takes longer
    than sixteen of 64. Which graphs are in a part is drawn, so that its triplets are of all types."""

    def __init__(self, batches: Batches, graphs_at_once: int = GRAPHS_AT_ONCE) -> None:
        n_parts = -(-len(batches) // graphs_at_once)
        order = np.random.default_rng(0).permutation(len(batches))
        self._parts = [batches.of(np.sort(part)) for part in np.array_split(order, n_parts)]

    def __len__(self) -> int:
        """Batches."""
        return len(self._parts)

    def __iter__(self) -> Iterator[GraphBatch]:
        """The batches."""
        return iter(self._parts)
