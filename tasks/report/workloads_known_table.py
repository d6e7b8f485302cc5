"""Table II of the paper: how well known workloads are told apart, by what tells them and how runs were split."""

from collections.abc import Mapping
from typing import Any

MEASURES = ("accuracy", "precision", "recall", "macro_f1", "confirmed")
SLICES = {
    "random": "random runs",
    "by_time": "later runs",
    "by_round": "a round left out",
    "by_input": "another input",
    "by_machine": "another machine",
}
METHODS = {
    "model": "the model: sums of known fingerprints",
    "trees": "boosted trees on phases",
    "ed": "distance of phases (ED)",
    "dtw": "distance of phases (DTW)",
    "nearest": "nearest run, logarithm of means",
    "nnls": "non-negative least squares on means",
    "forest": "random forest, no phases",
}
PART = "known."
UNNAMED = "model"  # what a key without a method is of


def known_table(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row a split and method that has figures: split, method, and each measure (None where there is none).

    figures: keys `known.<measure>.<split>[.<method>]`, in any order of the last two; without a method it is that of
    the model. Keys without a split repeat one of them and do not count."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for key, value in figures.items():
        read = _read(key)
        if read is not None and value is not None:
            measure, split, method = read
            row = rows.setdefault((split, method or UNNAMED), {})
            row[measure] = value if method else row.get(measure, value)
    order = [(split, method) for split in SLICES for method in METHODS if (split, method) in rows]
    return [
        {"split": SLICES[split], "method": METHODS[method], **dict.fromkeys(MEASURES), **rows[split, method]}
        for split, method in order
    ]


def _read(key: str) -> tuple[str, str, str | None] | None:
    """Measure, split and method (None: not named) of a key; None for any other, deviations and reasons among them."""
    if not key.startswith(PART):
        return None
    words = key.removeprefix(PART).split(".")
    found = [next((word for word in words if word in names), None) for names in (MEASURES, SLICES, METHODS)]
    measure, split, method = found
    if measure is None or split is None or len(words) != sum(word is not None for word in found):
        return None
    return measure, split, method


def missing_splits(figures: Mapping[str, Any]) -> list[str]:
    """One line for each split that could not be made, with its reason."""
    lines = []
    for split, words in SLICES.items():
        reasons = [
            str(value)
            for key, value in figures.items()
            if key.startswith(PART) and key.endswith(".reason") and split in key.split(".")
        ]
        if reasons:
            lines.append(f"{words}: {reasons[0]}")
    return list(dict.fromkeys(lines))
