"""Tokens in use over time, from starts and ends as they are logged: least, mean, peak and a bounded skyline."""

from itertools import pairwise

MAX_STEPS = 1000  # of a skyline; beyond twice as many, neighbours become one step with their mean
MS = 1000

Step = tuple[float, float]  # from (ms since 1970), tokens until the next step


class Tokens:
    """Tokens held by a run or a vertex. Events come in the order of time, or nearly: time never runs back here."""

    def __init__(self, *, has_steps: bool = False) -> None:
        self.now, self.peak, self.area_ms = 0.0, 0.0, 0.0
        self.first_ms: float | None = None
        self.last_ms = 0.0
        self.lowest: float | None = None
        self.has_steps = has_steps
        self.steps: list[Step] = []

    def change(self, at_ms: float, tokens: float) -> None:
        """So many tokens more (or fewer) are in use from this moment on."""
        if self.first_ms is None:
            self.first_ms = self.last_ms = at_ms
        if at_ms > self.last_ms:
            self.area_ms += self.now * (at_ms - self.last_ms)
            self.lowest = self.now if self.lowest is None else min(self.lowest, self.now)
            self.last_ms = at_ms
        self.now = max(0.0, self.now + tokens)
        self.peak = max(self.peak, self.now)
        if self.has_steps:
            self._step()

    def mean(self, span_ms: float) -> float | None:
        """Tokens in use, mean over so many milliseconds; None if there are none."""
        return self.area_ms / span_ms if span_ms > 0 else None

    @property
    def least(self) -> float | None:
        """Smallest number of tokens between the first start and the last end; None if nothing ran."""
        return self.peak if self.lowest is None and self.first_ms is not None else self.lowest

    def _step(self) -> None:
        if self.steps and self.steps[-1][0] == self.last_ms:
            self.steps.pop()
        self.steps.append((self.last_ms, self.now))
        if len(self.steps) >= 2 * MAX_STEPS:
            self.steps = _thinned(self.steps)


def _thinned(steps: list[Step]) -> list[Step]:
    """Half as many steps: two neighbours become one with their mean over time, so the area stays the same."""
    pairs = pairwise([*steps[:-1:2], steps[-1]])
    thin = []
    for index, ((start, first), (end, _)) in enumerate(pairs):
        middle, second = steps[min(2 * index + 1, len(steps) - 1)]
        middle = min(middle, end)
        thin.append((start, (first * (middle - start) + second * (end - middle)) / (end - start)))
    return [*thin, steps[-1]]
