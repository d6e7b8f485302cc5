"""What fits of the learned model are worth beside the paper and without parts of the loss, read from the keys of an
evaluation: tables, and lines that say what falls short."""

from collections.abc import Mapping
from typing import Any

from tasks.quantities import MISSING, digits, number, ratio, share
from tasks.report.nodes_evaluation_words import LEARNED, MEASURES, MODEL, PAPER, PROTOCOLS, Show, detector_name
from tasks.report.nodes_rows import NOTHING, Cell, Row, Table

ALL_COLUMNS, OWN = "reconstruction.mse.{name}", "reconstruction.mse.own.{name}"
BY_MEANS, ALL_BY_MEANS = (f"{key}.mean_predictor" for key in (OWN, ALL_COLUMNS))
TYPES = "type.accuracy.{name}"
FITTED: dict[str, tuple[str, Show]] = {
    TYPES: ("types told rightly", share),
    "type.accuracy_without_one_hot.{name}": ("not told the type", share),
    OWN: ("error of own metrics", number),
    BY_MEANS: ("the same by means of types", number),
    ALL_COLUMNS: ("error of all columns", number),
    ALL_BY_MEANS: ("the same by means of types", number),
    "score.spearman.{name}": ("norm with performance", ratio),
    "score.deviation.{name}": ("their ratio varies by", number),
    "fit.best_epoch.{name}": ("best epoch", number),
    "fit.graphs.{name}": ("training graphs", number),
    "fit.rounds.{name}": ("rounds that came to something", number),
}
SAYS_NOTHING = {(ALL_COLUMNS, MODEL), (ALL_BY_MEANS, MODEL)}  # ours does not learn the columns of other types
PAPER_SAYS: dict[str, tuple[str, Show, float]] = {  # Perona, IV-C, on its own data
    ALL_COLUMNS: ("error of all columns", number, 0.01),
    TYPES: ("types told rightly", share, 1.0),
    "detect.f1_normal.{name}": ("F1 of others", ratio, 0.93),
    "detect.f1_outlier.{name}": ("F1 of stressed", ratio, 0.75),
    "detect.weighted_f1.{name}": ("weighted F1 (probably its weighted accuracy)", ratio, 0.90),
}
ABLATED: dict[str, tuple[str, Show]] = {
    **{name: MEASURES[name] for name in ("f1_outlier", "weighted_f1", "auprc")},
    "mse_own": ("error of own metrics", number),
    "type_accuracy": ("types told rightly", share),
    "score_spearman": ("norm with performance", ratio),
    "score_deviation": ("their ratio varies by", number),
}
WITH_ALL = "none"


def fitted_table(figures: Mapping[str, Any]) -> Table:
    """A row a variant and way of splitting, a column a measure of its fits."""
    rows = []
    for protocol, words in PROTOCOLS.items():
        for name in LEARNED:
            cells = tuple(
                NOTHING if (key, name) in SAYS_NOTHING else cell_of(figures, key_of(key, name, protocol), show)
                for key, (_, show) in FITTED.items()
            )
            if any(cell != NOTHING for cell in cells):
                rows.append(Row(detector_name(name), cells, words))
    return Table("fits of the", tuple(words for words, _ in FITTED.values()), tuple(rows))


def paper_table(figures: Mapping[str, Any]) -> Table:
    """Both variants by the paper's way of splitting, beside what the paper reports of its own data."""
    rows = []
    for key, (words, show, says) in PAPER_SAYS.items():
        cells = tuple(
            NOTHING if (key, name) in SAYS_NOTHING else cell_of(figures, key_of(key, name, PAPER), show)
            for name in LEARNED
        )
        if any(cell != NOTHING for cell in cells):
            rows.append(Row(words, (*cells, Cell(show(says)))))
    return Table("measure", (*(detector_name(name) for name in LEARNED), "the paper, its own data"), tuple(rows))


def ablation_table(figures: Mapping[str, Any]) -> Table:
    """A row a term of the loss that was left out, what the model needs most on top; below each value the difference."""
    rows = []
    for name in LEARNED:
        terms = list(dict.fromkeys(key.split(".")[1] for key in figures if _is_ablation(key, name)))
        full = {key: figures.get(f"ablation.{WITH_ALL}.{key}.{name}") for key in ABLATED}

        def loss(term: str, of: str = name) -> tuple[bool, float]:
            value = figures.get(f"ablation.{term}.f1_outlier.{of}")
            return term != WITH_ALL, 2.0 if value is None else float(value)

        for term in sorted(terms, key=loss):
            cells = tuple(
                _beside_full(figures.get(f"ablation.{term}.{key}.{name}"), full[key], show, is_full=term == WITH_ALL)
                for key, (_, show) in ABLATED.items()
            )
            if any(cell != NOTHING for cell in cells):
                words = "with all terms" if term == WITH_ALL else f"without {term.replace('_', ' ')}"
                rows.append(Row(words, cells, detector_name(name)))
    return Table("fitted", tuple(words for words, _ in ABLATED.values()), tuple(rows))


def _is_ablation(key: str, name: str) -> bool:
    words = key.split(".")
    return words[0] == "ablation" and len(words) == 4 and words[3] == name


def _beside_full(value: Any, full: Any, show: Show, *, is_full: bool) -> Cell:
    if value is None:
        return NOTHING
    if is_full or full is None:
        return Cell(show(float(value)))
    return Cell(show(float(value)), (digits(float(value) - float(full), 2, sign="+"),))


def short_lines(figures: Mapping[str, Any]) -> list[str]:
    """Where fits of the model are worth less than the means of types, tell types wrongly, or fall below the paper."""
    lines = []
    for protocol, words in PROTOCOLS.items():
        own, means = (figures.get(key_of(key, MODEL, protocol)) for key in (OWN, BY_MEANS))
        if own is not None and means is not None and own >= means:
            lines.append(f"error of own metrics, {words}: {number(own)}; the means of types make {number(means)}")
        told = figures.get(key_of(TYPES, MODEL, protocol))
        if told is not None and told < 1:
            lines.append(f"types told rightly, {words}: {share(told)}")
    for key, (words, show, says) in PAPER_SAYS.items():
        value = figures.get(key_of(key, MODEL, PAPER))
        if key.startswith("detect.") and value is not None and value < says:
            lines.append(f"{words}, {PROTOCOLS[PAPER]}: {show(value)}; the paper reports {show(says)} of its own data")
    return lines


def key_of(template: str, name: str, protocol: str) -> str:
    """The key of a figure of a variant in a way of splitting."""
    return template.format(name=name) + (f".{protocol}" if protocol else "")


def cell_of(figures: Mapping[str, Any], key: str, show: Show) -> Cell:
    """A figure with the interval of its mean over fits below it."""
    value = figures.get(key)
    if value is None:
        return NOTHING
    low, high = (show(figures.get(f"{key}.{end}")) for end in ("low", "high"))
    return Cell(show(float(value)), () if low == MISSING else (f"{low} to {high}",))
