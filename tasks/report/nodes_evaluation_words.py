"""Detectors, measures and ways of splitting as words of an evaluation's page. Light: no figures."""

from collections.abc import Callable

from tasks.quantities import number, ratio, share

Show = Callable[[float | None], str]

MODEL, PAPER = "model", "paper"  # Perona's network, ours and its authors', and their protocol
VERDICTS, WITHOUT_LABELS = "detector", "headline"  # what verdicts are told by, and where nobody knows of stress
DETECTORS = {
    MODEL: "our variant",
    PAPER: "paper's variant",
    "detector": "the detector",
    "logistic": "logistic regression a benchmark",
    "headline": "headline metrics, without labels",
    "zscore": "robust z-scores",
    "forest": "isolation forest",
    "lastk": "median of the last executions",
    "changepoint": "change points",
}
LEARNED = (MODEL, PAPER)
PROTOCOLS = {
    "": "later executions",
    "random": "random executions",
    "rolling": "the next tenth, six times",
    "left_node": "a node left out",
    "left_node_warm": "a node left out, from its sixth execution on",
    "left_node_cold": "a node left out, its first five executions",
    "after_warm_up": "all after the first tenth, without labels",
    "transfer": "another recording",
    PAPER: "the paper's way",
}
MEASURES: dict[str, tuple[str, Show]] = {
    "f1_outlier": ("F1 of stressed", ratio),
    "f1_normal": ("F1 of others", ratio),
    "weighted_f1": ("weighted F1", ratio),
    "auprc": ("area under precision over recall", ratio),
    "precision": ("precision", share),
    "recall": ("recall", share),
    "false_alarms_per_1000": ("false alarms in 1,000", number),
    "delay_executions": ("executions until it is told", number),
}
ANY, DOSE, STRONG = "any", "dose_", "from_dose_"  # a level or name; strong: of a level and above
KIND = "kind_"  # of stress, where the recording says one
DOSES = (DOSE, STRONG, KIND)


def detector_name(detector: str) -> str:
    """A detector in words; one that joined later has its own name."""
    return DETECTORS.get(detector, detector)


def dose_name(dose: str) -> str:
    """A dose in words: of its level or name, those from a level on, or all of them."""
    if dose == ANY:
        return "all doses"
    if dose.startswith(KIND):
        return f"stress of kind {dose.removeprefix(KIND)}"
    is_strong = dose.startswith(STRONG)
    return f"doses from {dose.removeprefix(STRONG)} on" if is_strong else f"dose {dose.removeprefix(DOSE)}"


METHODS = {
    "spearman": "the score of all microbenchmarks",
    "standardised": "the score of all, each in its own deviations",
    "best_single": "the one metric that did best on other nodes",
    "best_oracle": "the one metric that does best here, known afterwards",
    "pc1": "the first principal component",
    "shared": "what microbenchmarks of several tools share",
}
KNOWN_AFTERWARDS = "best_oracle"
