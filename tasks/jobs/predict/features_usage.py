"""What earlier runs of the job used: data read, vertices by SKU, and tokens."""

import numpy as np

from tasks.jobs.predict.features_earlier import EarlierRuns, Floats

MEANS_AND_SDS = {  # feature, without _mean or _sd: column
    "read_bytes": "read_bytes",
    "min_tokens": "min_tokens",
    "mean_tokens": "used_cpus",
    "peak_tokens": "peak_tokens",
    "spare_tokens": "spare_tokens_used",
}
MEANS = {"temp_bytes_mean": "temp_bytes", "n_vertices_mean": "n_vertices"}
BY_SKU = "vertices_"


def usage_features(earlier: EarlierRuns) -> dict[str, Floats]:
    """One array (n_rows,) for each feature that the log allows; missing for a job without an earlier run."""
    found: dict[str, Floats] = {}
    for name, column in MEANS_AND_SDS.items():
        if earlier.has(column):
            found[f"{name}_mean"], found[f"{name}_sd"] = earlier.mean_sd(earlier.values(column))
    for name, column in MEANS.items():
        if earlier.has(column):
            found[name] = earlier.mean(earlier.values(column))
    if not earlier.has("n_vertices"):
        return found
    total = earlier.values("n_vertices")
    for column in [str(name) for name in earlier.past if str(name).startswith(BY_SKU)]:
        vertices, sku = earlier.values(column), column.removeprefix(BY_SKU)
        found[f"vertices_{sku}_mean"] = earlier.mean(vertices)
        found[f"vertex_share_{sku}_mean"] = earlier.mean(vertices / np.where(total > 0, total, np.nan))
    return found
