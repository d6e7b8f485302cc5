"""What fits of Perona's network are worth beside the paper, read from the keys of an evaluation: tables, and lines that
say what falls short."""

from collections.abc import Mapping
from typing import Any

from tasks.quantities import MISSING, number, ratio, share
from tasks.report.nodes_evaluation_words import LEARNED, MODEL, PAPER, PROTOCOLS, Show, detector_name
from tasks.report.nodes_rows import NOTHING, Cell, Row, Table

ALL_COLUMNS, OWN = "reconstruction.mse.{name}", "reconstruction.mse.own.{name}"
BY_MEANS, ALL_BY_MEANS = (f"{key}.mean_predictor" for key in (OWN, ALL_COLUMNS))
TYPES = "type.accuracy.{name}"
FITTED: dict[str, tuple[str, Show]] = {
    TYPES: ("types told rightly", share),
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


def short_lines(figures: Mapping[str, Any]) -> list[str]:
    """Where fits of ours are worth less than means of types or tell types wrongly, and the paper's below the paper."""
    lines = []
    for protocol, words in PROTOCOLS.items():
        own, means = (figures.get(key_of(key, MODEL, protocol)) for key in (OWN, BY_MEANS))
        if own is not None and means is not None and own >= means:
            lines.append(f"error of own metrics, {words}: {number(own)}; the means of types make {number(means)}")
        told = figures.get(key_of(TYPES, MODEL, protocol))
        if told is not None and told < 1:
            lines.append(f"types told rightly, {words}: {share(told)}")
    for key, (words, show, says) in PAPER_SAYS.items():
        value = figures.get(key_of(key, PAPER, PAPER))
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
