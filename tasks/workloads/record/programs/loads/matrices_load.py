"""The workload `matrices`: products or factors of random matrices, until killed."""

import json
import sys
from typing import Any

import numpy as np


def main(options: dict[str, Any]) -> None:
    """Compute for ever."""
    dice = np.random.default_rng(int(options["seed"]))
    size = int(options["size"])
    matrix = dice.normal(size=(size, size))
    while True:
        if options["mode"] == "products":
            matrix = matrix @ dice.normal(size=(size, size))
            matrix /= np.abs(matrix).max()
        else:
            np.linalg.svd(matrix + dice.normal(size=(size, size)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
