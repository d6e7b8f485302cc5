"""A long series as a line of few points that looks the same: of each slice of time its lowest and highest sample."""

import numpy as np

from tasks.workloads.telemetry import FloatArray


def thinned(times: FloatArray, values: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """At most `most` points, (m,) twice, in the order of time; missing samples (NaN) leave gaps where whole slices are.

    Series that are short enough come back as they are."""
    if len(values) <= most:
        return times, values
    keep: list[int] = []
    for part in np.array_split(np.arange(len(values)), most // 2):
        there = part[np.isfinite(values[part])]
        ends = {int(there[values[there].argmin()]), int(there[values[there].argmax()])} if len(there) else {part[0]}
        keep += sorted(int(place) for place in ends)
    return times[keep], values[keep]
