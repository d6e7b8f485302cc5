"""How well degraded executions are told and nodes ranked, as an evaluation of benchmark results measured it: read from
the keys of its figures into tables, the answer first, and what falls short named.

Keys are `detect.<measure>.<detector>[.<protocol>][.<dose>]`, `inject.<kind>.<measure>.<detector>` and
`rank.<method>[.<machine type>|.mean][.<variant>]`, with `.low` and `.high` beside those of several fits."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pandas as pd

from tasks.nodes.evaluate.measures import their_figures
from tasks.quantities import MISSING, number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.nodes import decisions_table, ranking_figure
from tasks.report.result import (
    NOTHING,
    Cell,
    Column,
    Fact,
    Figure,
    Result,
    Row,
    Section,
    Table,
    cell_table,
    count,
    figure,
    numbers,
    sentence,
)

if TYPE_CHECKING:
    from tasks.nodes.evaluate.protocol import Evaluation

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


PART = "detect"
ENDS = ("low", "high")
DECIMALS = 2  # what is equal in so many is level

Place = tuple[str, str, str]  # protocol, dose, detector


@dataclass(frozen=True)
class Told:
    """A figure, and its 95 % interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Comparison:
    """The detector and one simpler one, in one way of splitting and at one dose."""

    protocol: str
    dose: str
    rival: str
    ours: Told
    theirs: Told

    @property
    def gap(self) -> float:
        """How far the detector is ahead, as it is shown: negative where it is behind, 0 where both are level."""
        return gap_of(self.ours, self.theirs)

    @property
    def is_sure(self) -> bool:
        """Whether the detector is ahead with its whole interval."""
        return self.ours.low is not None and self.ours.low > self.theirs.value


def gap_of(ours: Told, theirs: Told) -> float:
    """The difference in so many decimals as are shown."""
    return round(ours.value - theirs.value, DECIMALS) or 0.0


def told_of(figures: Mapping[str, Any], measure: str) -> dict[Place, Told]:
    """All that is known of a measure, by protocol (empty: later executions), dose (`any`: all) and detector."""
    found: dict[Place, dict[str, float]] = {}
    for key, value in figures.items():
        words = key.split(".")
        if words[:2] != [PART, measure] or len(words) < 3 or value is None:
            continue
        place = _place(words[3:])
        if place is not None:
            protocol, dose, end = place
            found.setdefault((protocol, dose, words[2]), {})[end] = float(value)
    return {place: Told(**ends) for place, ends in found.items() if "value" in ends}


def _place(words: list[str]) -> tuple[str, str, str] | None:
    """Protocol, dose, and which end of an interval (`value`: none) the last words of a key are of; None for others."""
    rest = list(words)
    end = rest.pop() if rest and rest[-1] in ENDS else "value"
    protocol = rest.pop(0) if rest and rest[0] in PROTOCOLS else ""
    dose = rest.pop(0) if rest and rest[0].startswith(DOSES) else ANY
    return None if rest else (protocol, dose, end)


def of_protocol(told: Mapping[Place, Told], protocol: str) -> dict[tuple[str, str], Told]:
    """The figures of a protocol, by dose and detector."""
    return {(dose, name): value for (of, dose, name), value in told.items() if of == protocol}


def in_order(doses: Iterable[str]) -> list[str]:
    """Each dose once: all together, the strong ones together, then by level and name."""
    return sorted(set(doses), key=lambda dose: (dose != ANY, not dose.startswith(STRONG), dose))


def comparisons(figures: Mapping[str, Any], measure: str) -> list[Comparison]:
    """The detector with each simpler one, wherever both have a figure; in the order of protocols and doses."""
    told = told_of(figures, measure)
    found = []
    for protocol in PROTOCOLS:
        values = of_protocol(told, protocol)
        for dose in in_order(of for of, _ in values):
            ours = values.get((dose, VERDICTS))
            others = {VERDICTS, *LEARNED}
            rivals = [(name, value) for (of, name), value in values.items() if of == dose and name not in others]
            if ours is not None:
                found += [Comparison(protocol, dose, name, ours, theirs) for name, theirs in rivals]
    return found


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
    return cell_table("fits of the", tuple(words for words, _ in FITTED.values()), tuple(rows))


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
    return cell_table("measure", (*(detector_name(name) for name in LEARNED), "the paper, its own data"), tuple(rows))


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


INJECT, UNALTERED = "inject", "unaltered"
KINDS = {
    "replaced": (
        "Later results replaced by those of another machine type",
        "From a drawn time on half of a node's results of a benchmark are those of another machine type instead.",
    ),
    "shifted": (
        "Later results made worse",
        "From a drawn time on half of a node's results are worse by one factor, drawn for the node.",
    ),
    UNALTERED: (
        "Flags and alarms where nothing was altered",
        "The history as it is, by the same thresholds: what a detector says of nodes of which nobody knows any fault.",
    ),
}
SPOILED: dict[str, tuple[str, Show]] = {
    "auprc": ("area under precision over recall", ratio),
    "recall": ("spoiled ones flagged", share),
    "missed": ("nodes never flagged", share),
    "delay_executions": ("executions until flagged", number),
    "delay_hours": ("hours until flagged", number),
    "alarm_missed": ("nodes without an alarm", share),
    "alarm_delay_executions": ("executions until an alarm", number),
    "alarm_delay_hours": ("hours until an alarm", number),
    "false_alarms_before_per_1000": ("flags before, in 1,000", number),
    "false_alarms_other_per_1000": ("flags on other nodes, in 1,000", number),
}
CALM: dict[str, tuple[str, Show]] = {
    "false_alarms_per_1000": ("flags in 1,000", number),
    "alarms": ("alarms", number),
    "alarms_per_node_month": ("alarms a node and month", number),
}


def injected_tables(figures: Mapping[str, Any]) -> list[Table]:
    """A table a kind of degradation that has figures, a row a detector."""
    tables = []
    for kind, (title, words) in KINDS.items():
        measures = CALM if kind == UNALTERED else SPOILED
        each = {name: _cells(figures, kind, name, measures) for name in _best_first(figures, kind)}
        rows = [Row(detector_name(name), cells) for name, cells in each.items() if any(one != NOTHING for one in cells)]
        if rows:
            heads = tuple(head for head, _ in measures.values())
            tables.append(cell_table("told by", heads, tuple(rows), title=title, words=words))
    return tables


def injected_evidence(figures: Mapping[str, Any]) -> str:
    """What was judged: executions, benchmarks, long-lived nodes, and for how long; what is not known is left out."""
    counts = {
        "executions": "executions",
        "types": "benchmarks",
        "nodes": "long-lived nodes",
        "node_months": "months of a node",
    }
    told = {words: figures.get(f"{INJECT}.{key}") for key, words in counts.items()}
    return ", ".join(f"{number(float(count))} {words}" for words, count in told.items() if count is not None)


def injected_behind_lines(figures: Mapping[str, Any]) -> list[str]:
    """Where the detector tells spoiled executions less surely than a simpler one: one line a kind."""
    lines = []
    for kind, (title, _) in KINDS.items():
        told = {name: figures.get(f"{INJECT}.{kind}.auprc.{name}") for name in _best_first(figures, kind)}
        ours = told.pop(WITHOUT_LABELS, None)
        if ours is None:
            continue
        better = [
            f"{detector_name(name)} {ratio(value)}"
            for name, value in told.items()
            if value is not None and round(value - ours, DECIMALS) > 0
        ]
        if better:
            lines.append(f"{SPOILED['auprc'][0]}, {title.lower()}: {ratio(ours)}; better: {', '.join(better)}")
    return lines


def _best_first(figures: Mapping[str, Any], kind: str) -> list[str]:
    """Detectors that were asked: those that tell most surely, or on the unaltered history flag least."""
    measure, sign = ("false_alarms_per_1000", 1.0) if kind == UNALTERED else ("auprc", -1.0)
    before = f"{INJECT}.{kind}.{measure}."
    names = [key.removeprefix(before) for key in figures if key.startswith(before)]
    asked = [name for name in names if "." not in name]

    def place(name: str) -> float:
        value = figures[before + name]
        return float("inf") if value is None else sign * float(value)

    return sorted(asked, key=place)


def _cells(
    figures: Mapping[str, Any], kind: str, name: str, measures: Mapping[str, tuple[str, Show]]
) -> tuple[Cell, ...]:
    return tuple(cell_of(figures, f"{INJECT}.{kind}.{key}.{name}", show) for key, (_, show) in measures.items())


RANK, RANK_NODES = "rank.", "rank.nodes."
SHOWN = "shared"  # the method that nodes are ranked by
TOGETHER, MEAN = "all together", "mean of machine types"


def rank_table(figures: Mapping[str, Any]) -> Table:
    """A row a way of ranking, a column a machine type that nodes were ranked in, and all together.

    Marked is the best of each column; what is only known afterwards stands at the end and is never the best."""
    slices = _slices(figures)
    values = {name: {one: _value(figures, name, one) for one in slices} for name in METHODS}
    known = [name for name in METHODS if any(value is not None for value in values[name].values())]
    fair = [name for name in known if name != KNOWN_AFTERWARDS]
    best = {
        one: max((value for name in fair if (value := values[name][one]) is not None), default=None) for one in slices
    }

    def place(name: str) -> tuple[bool, float]:
        value = values[name][""]
        return name not in fair, 1.0 if value is None else -value

    rows = []
    for name in sorted(known, key=place):
        cells = (_cell(values[name][one], best[one] if name in fair else None) for one in slices)
        rows.append(Row(METHODS[name], tuple(cells)))
    return cell_table("ranked by", tuple(slices.values()), tuple(rows))


def rank_behind_lines(figures: Mapping[str, Any]) -> list[str]:
    """Where the shared component, by which nodes are ranked, follows applications less than another way: one line a
    machine type."""
    lines = []
    for one, words in _slices(figures).items():
        ours = _value(figures, SHOWN, one)
        plain = {name: _value(figures, name, one) for name in METHODS if name != KNOWN_AFTERWARDS}
        known = {name: value for name, value in plain.items() if value is not None}
        better = [name for name in known if ours is not None and round(known[name] - ours, DECIMALS) > 0]
        if better:
            better.sort(key=lambda name: -known[name])
            rivals = ", ".join(f"{METHODS[name]} {ratio(known[name])}" for name in better)
            lines.append(f"ranking beside applications, {words}: {ratio(ours)}; better: {rivals}")
    return lines


def _slices(figures: Mapping[str, Any]) -> dict[str, str]:
    """What follows the method in a key, and its words: machine types, all together, and their mean if there are two."""
    types = [key.removeprefix(RANK_NODES) for key in figures if key.startswith(RANK_NODES)]
    found = {f".{one}": one for one in types} | {"": TOGETHER}
    return found | ({".mean": MEAN} if len(types) > 1 else {})


def _value(figures: Mapping[str, Any], method: str, slice_: str) -> float | None:
    value = figures.get(f"{RANK}{method}{slice_}")
    return None if value is None else float(value)


def _cell(value: float | None, best: float | None) -> Cell:
    if value is None:
        return NOTHING
    return Cell(ratio(value), is_marked=best is not None and ratio(value) == ratio(best))


JUDGED_BY = ("f1_outlier", "auprc")
LEVEL = "level"


def verdict_tables(figures: Mapping[str, Any]) -> list[Table]:
    """By each measure of JUDGED_BY how far the detector is ahead of the best simpler one, by split and dose.

    Marked is where it is behind. Nothing without a detector."""
    return [table for measure in JUDGED_BY if (table := _verdict_table(figures, measure)).rows]


def _verdict_table(figures: Mapping[str, Any], measure: str) -> Table:
    found = _strongest(comparisons(figures, measure))
    doses = in_order(one.dose for one in found)
    by_place = {(one.protocol, one.dose): one for one in found}
    rows = []
    for protocol, words in PROTOCOLS.items():
        cells = [by_place.get((protocol, dose)) for dose in doses]
        if any(cells):
            rows.append(Row(words, tuple(_ahead(one, measure) if one else NOTHING for one in cells)))
    heads = tuple(dose_name(dose) for dose in doses)
    return cell_table("tested on", heads, tuple(rows), title=MEASURES[measure][0])


def _strongest(found: Sequence[Comparison]) -> list[Comparison]:
    """Of each protocol and dose the comparison with the best simple detector."""
    groups = groupby(found, key=lambda one: (one.protocol, one.dose))
    return [max(group, key=lambda one: one.theirs.value) for _, group in groups]


def _ahead(one: Comparison, measure: str) -> Cell:
    show = MEASURES[measure][1]
    notes = (f"{show(one.ours.value)} against {show(one.theirs.value)}", detector_name(one.rival))
    unsure = one.gap > 0 and one.ours.low is not None and not one.is_sure
    return Cell(gap_words(one.gap), (*notes, "within its spread") if unsure else notes, is_marked=one.gap < 0)


def gap_words(gap: float) -> str:
    """How far ahead: +0.12, −0.03 or level."""
    return f"{gap:+.{DECIMALS}f}" if gap else LEVEL


def summary_words(figures: Mapping[str, Any]) -> str:
    """In how many places the detector is ahead of every simpler one; empty where it was not measured."""
    found = _strongest(comparisons(figures, JUDGED_BY[0]))
    if not found:
        return ""
    words, n = MEASURES[JUDGED_BY[0]][0], len(found)
    ahead, behind = sum(one.gap > 0 for one in found), sum(one.gap < 0 for one in found)
    return (
        f"By {words} the detector is ahead of every simpler one in {ahead} of {n} places (each a way of "
        f"splitting and a dose), level with the best of them in {n - ahead - behind}, behind in {behind}."
    )


def behind_lines(figures: Mapping[str, Any]) -> list[str]:
    """Where the detector is behind, and which simpler ones are better there: one line a place."""
    lines = []
    for measure in JUDGED_BY:
        words, show = MEASURES[measure]
        for (protocol, dose), group in groupby(comparisons(figures, measure), key=lambda one: (one.protocol, one.dose)):
            better = sorted((one for one in group if one.gap < 0), key=lambda one: -one.theirs.value)
            if better:
                rivals = ", ".join(f"{detector_name(one.rival)} {show(one.theirs.value)}" for one in better)
                ours = show(better[0].ours.value)
                lines.append(f"{words}, {PROTOCOLS[protocol]}, {dose_name(dose)}: {ours}; better: {rivals}")
    return lines


def dose_tables(figures: Mapping[str, Any], measure: str = JUDGED_BY[0]) -> list[Table]:
    """A table a way of splitting: detectors with the best on top, by dose; beside each simpler one how far the detector
    is ahead of it. Marked is the best of each dose."""
    told = told_of(figures, measure)
    tables = []
    for protocol, words in PROTOCOLS.items():
        values = of_protocol(told, protocol)
        doses = in_order(dose for dose, _ in values)
        if len(doses) > 1:
            heads = tuple(dose_name(dose) for dose in doses)
            tables.append(cell_table("told by", heads, _dose_rows(values, doses, measure), title=words))
    return tables


def _dose_rows(values: Mapping[tuple[str, str], Told], doses: Sequence[str], measure: str) -> tuple[Row, ...]:
    show = MEASURES[measure][1]
    best = {dose: max(told.value for (of, _), told in values.items() if of == dose) for dose in doses}
    names = dict.fromkeys(name for _, name in values)

    def place(name: str) -> float:
        known = [told.value for dose in doses if (told := values.get((dose, name)))]
        return -known[0] if known else 0.0

    def cell(name: str, dose: str) -> Cell:
        told, ours = values.get((dose, name)), values.get((dose, VERDICTS))
        if told is None:
            return NOTHING
        notes: tuple[str, ...] = (f"{show(told.low)} to {show(told.high)}",) if told.low is not None else ()
        if ours is not None and name not in {VERDICTS, *LEARNED}:
            notes = (f"detector {gap_words(gap_of(ours, told))}",)
        return Cell(show(told.value), notes, is_marked=show(told.value) == show(best[dose]))

    return tuple(
        Row(detector_name(name), tuple(cell(name, dose) for dose in doses)) for name in sorted(names, key=place)
    )


REASON = ".reason"
SORTED_BY = "f1_outlier"
REPEATED: dict[str, tuple[str, Show]] = {
    "cv": ("spread", share),
    "rerun_median": ("a rerun differs by", share),
    "rerun_p90": ("in one of ten by", share),
    "runs_for_5": ("executions to see 5 %", number),
    "runs_for_10": ("executions to see 10 %", number),
    "runs_to_tell_apart": ("executions to tell two nodes apart", number),
}
OVERVIEW: dict[str, tuple[str, Show]] = {
    "n": ("executions", number),
    "n_nodes": ("nodes", number),
    "n_types": ("benchmark types", number),
    "n_stressed": ("executions that were stressed", number),
    "n_contaminated": ("executions that others disturbed", number),
    "n_not_completed": ("executions that did not complete", number),
    "n_refused": ("rows of files that were refused", number),
    "n_values_refused": ("values of other rows that were refused", number),
    "n_replaced": ("executions that a later file or row gives again", number),
    "metrics.recorded": ("metrics recorded", number),
    "metrics.kept": ("metrics kept", number),
}


def detection_figures(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row a way of splitting and detector that has figures: split, detector, and each measure that is known.

    Of each way of splitting the detector that tells stressed executions best stands on top."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for measure in MEASURES:
        for (protocol, dose, detector), told in told_of(figures, measure).items():
            if dose == ANY:
                found.setdefault((protocol, detector), {})[measure] = told.value
    splits = list(PROTOCOLS)
    order = sorted(found, key=lambda one: (splits.index(one[0]), -found[one].get(SORTED_BY, -1.0)))
    return [{"split": PROTOCOLS[one[0]], "detector": detector_name(one[1]), **found[one]} for one in order]


def figure_rows(figures: Mapping[str, Any]) -> list[dict[str, str]]:
    """The main figures with words and value, or why there is none.

    theirs: the same by the paper's preprocessing; empty where that was not asked for, or does not matter."""
    keys: dict[str, tuple[str, Show]] = dict(OVERVIEW)
    for measure in ("f1_outlier", "f1_normal", "auprc"):
        for detector, name in DETECTORS.items():
            keys[f"detect.{measure}.{detector}"] = (f"{MEASURES[measure][0]}, by {name}", MEASURES[measure][1])
    keys |= {
        f"rank.{method}": (f"correlation with applications of {words}", ratio) for method, words in METHODS.items()
    }
    keys |= {
        key_of(template, MODEL, ""): (f"{detector_name(MODEL)}: {words}", show)
        for template, (words, show) in FITTED.items()
        if (template, MODEL) not in SAYS_NOTHING
    }
    keys |= {f"repeatability.{key}": (f"reruns: {words}", show) for key, (words, show) in REPEATED.items()}
    theirs = their_figures(figures)
    return [
        {
            "words": words,
            "value": _told(figures, key, show),
            "theirs": _told(theirs, key, show) if key in theirs else "",
        }
        for key, (words, show) in keys.items()
        if key in figures
    ]


def reasons(figures: Mapping[str, Any], parts: Sequence[str]) -> list[str]:
    """Why figures of these parts cannot be had, each reason once."""
    told = [
        str(value) for key, value in figures.items() if key.endswith(REASON) and key.startswith(tuple(parts)) and value
    ]
    return [sentence(reason) for reason in dict.fromkeys(told)]


def _told(figures: Mapping[str, Any], key: str, show: Show) -> str:
    value = figures[key]
    return show(float(value)) if value is not None else sentence(figures.get(f"{key}{REASON}") or "not measured")


NOTHING_SHORT = "Nothing that was measured: it is behind no simple answer, and below nothing that it should reach."


def is_learned(figures: Mapping[str, Any]) -> bool:
    """Whether Perona's network was asked for at all."""
    return any(key_of(OWN, name, protocol) in figures for name in LEARNED for protocol in ("", PAPER))


def falls_short(figures: Mapping[str, Any]) -> list[str]:
    """Where detector, ranking or network are behind a simpler answer or what they should reach: one line each."""
    parts = (behind_lines, injected_behind_lines, rank_behind_lines, short_lines)
    return [line for part in parts for line in part(figures)]


def missing_lines(figures: Mapping[str, Any]) -> list[str]:
    """What could not be measured of each, and why: one line a reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in (VERDICTS, *LEARNED):
        for key, words in _asked(name):
            if figures.get(key, 0) is None:
                found.setdefault((name, str(figures.get(f"{key}.reason") or "")), []).append(words)
    return [f"{detector_name(name)}, {', '.join(words)}: {reason}" for (name, reason), words in found.items()]


def _asked(name: str) -> Iterator[tuple[str, str]]:
    """The main key of each part of an evaluation, and its words."""
    main = OWN if name in LEARNED else "detect.f1_outlier.{name}"
    for protocol, words in PROTOCOLS.items():
        yield key_of(main, name, protocol), words
    if name == VERDICTS:
        for kind, (title, _) in KINDS.items():
            measure = "false_alarms_per_1000" if kind == UNALTERED else "auprc"
            yield f"inject.{kind}.{measure}.{WITHOUT_LABELS}", title.lower()


MOST_NODES, MOST_POINTS = 12, 400
BY_TIME = "chronological"
METHOD = (
    "Benchmarks and preprocessing after Scheinert et al., Perona: Robust Infrastructure Fingerprinting for "
    "Resource-Efficient Big Data Analytics, 2022; where they differ, tasks/nodes/README.md says why, and what each "
    "key means."
)
AHEAD = (
    "Each cell says how far the detector is ahead of the best simpler one on the same executions, and below it both "
    "values. A value in bold is one where it is behind; within its spread: its 95 % interval holds the other's value."
)
SPLITS = (
    "Each detector learns from some executions, takes its threshold from others, and is measured on the rest: later "
    "ones, random ones, and those of a node that it has never seen. Of each way of splitting the best stands on top."
)
BY_DOSE = (
    "All executions that were not stressed against those stressed at one dose alone; doses 1, 2 and 3 were meant to "
    "move the main metric by about 1, 3 and 10 standard deviations. The best on top; in bold the best of each dose. "
    "Below a simpler detector: how far the detector is ahead of it; below others: the 95 % interval."
)
BESIDE = (
    "Random executions, graphs within each part, predecessors that are labelled as unstressed. The paper's figures are "
    "of its own 1,800 executions, on other machines and under other stress: they say what to expect, not who is better."
)
HOLD = (
    "Errors of decoded inputs are in squares of each metric's range in training; a decoder has to beat the means of "
    "types. The norm should follow performance within a type: by Spearman's correlation, and by how much their ratio "
    "varies (0: a norm twice as large is a machine twice as fast)."
)
RANKED = (
    "Spearman correlation of nodes' scores, from microbenchmarks alone, with each application that ran on them: the "
    "median of its absolute value over the applications."
)
RERUNS = "Medians over nodes and over the metrics that count in scores, from executions that were not stressed."


def evaluation_result(found: "Evaluation", name: str, emulated: frozenset[str] = frozenset()) -> Result:
    """What an evaluation found. name: of the data; emulated: nodes that are not machines of their own."""
    figures = found.figures
    summary = summary_words(figures)
    answer = summary or "No detector could be measured against simpler ones: " + (
        "; ".join(reasons(figures, ["detect."])[:3]) or "no execution is known to be stressed"
    )
    notices = (f"Emulated nodes: {len(emulated)} of them are made of limits on a larger machine.",) if emulated else ()
    short = falls_short(figures)
    return Result(
        f"Answers about nodes: {name}",
        answer,
        f"From {figures['n']:,} executions of benchmarks on {figures['n_nodes']:,} nodes.",
        made_of=f"seed {figures['seed']}, data {str(figures['data_sha256'])[:12]}",
        again="whorl nodes evaluate PATH… --out DIR",
        notices=notices,
        facts=(
            Fact("nodes.evaluation.n", figures["n"], "executions", count),
            Fact("nodes.evaluation.n_nodes", figures["n_nodes"], "nodes", count),
            Fact("nodes.evaluation.n_stressed", figures.get("n_stressed"), "known to be stressed", count),
        ),
        sections=tuple(_sections(found, short, emulated)),
        method=METHOD,
    )


def _sections(found: "Evaluation", short: Sequence[str], emulated: frozenset[str]) -> Iterator[Section]:
    figures = found.figures
    if verdicts := verdict_tables(figures):
        yield Section("Is the detector ahead of simpler ones?", AHEAD, tables=tuple(verdicts), is_open=True)
    if verdicts or is_learned(figures):
        is_measured = any(figures.get(key) is not None for key, _ in _asked(VERDICTS))
        lines = (*short, *(f"not measured: {line}" for line in missing_lines(figures)))
        yield Section("What falls short", lines=lines or ((NOTHING_SHORT,) if is_measured else ()), is_open=True)
    detected = detection_table(figures)
    no_detection = f"Not measured: {'; '.join(reasons(figures, ['detect.'])[:3])}."
    yield Section("Stressed executions found", SPLITS, tables=(detected,), nothing=no_detection, is_open=not verdicts)
    if doses := dose_tables(figures):
        yield Section("F1 of stressed executions, by how strong the stress was", BY_DOSE, tables=tuple(doses))
    if (beside := paper_table(figures)).rows:
        yield Section("The paper's way of splitting, beside what the paper reports", BESIDE, tables=(beside,))
    if (fitted := fitted_table(figures)).rows:
        yield Section("What fingerprints hold", HOLD, tables=(fitted,))
    for table in injected_tables(figures):
        yield Section(table.title, table.words, injected_evidence(figures), tables=(_untitled(table),))
    yield Section("How surely stressed executions are found", figures=(precision_figure(found),))
    yield Section("How good each node is", figures=(ranking_figure(_ranked(found, emulated)),))
    no_ranking = "; ".join(reasons(figures, ["rank."])[:3]) or "no application ran on these nodes"
    yield Section(
        "Scores and what applications did on the same nodes",
        RANKED,
        tables=(rank_table(figures),),
        nothing=f"Not measured: {no_ranking}.",
    )
    if (repeated := repeated_table(figures)).rows:
        yield Section("How much a rerun differs", RERUNS, tables=(repeated,))
    metrics = found.tables.get("metrics", pd.DataFrame())
    if len(metrics):
        rows = metrics.rename(columns={"type": "benchmark_type"})
        yield Section("Metrics: kept or dropped, and why", tables=(decisions_table(rows, "metrics"),))
    yield Section("All main figures", tables=(figures_table(figure_rows(figures)),))


def _untitled(table: Table) -> Table:
    return Table("", "", table.columns, table.rows)


def detection_table(figures: Mapping[str, Any]) -> Table:
    """A row a way of splitting and detector, a column a measure."""
    columns = [Column("detector", "told by"), Column("split", "tested on")]
    columns += numbers(*((key, words, show) for key, (words, show) in MEASURES.items()))
    return Table("", "", tuple(columns), detection_figures(figures), name="detectors")


def repeated_table(figures: Mapping[str, Any]) -> Table:
    """A row a benchmark type, and one for all: how much a rerun differs."""
    names = dict.fromkeys(
        key.removeprefix("repeatability.cv").removeprefix(".")
        for key in figures
        if key.startswith("repeatability.cv") and not key.endswith(REASON)
    )
    rows = [
        {"type": name or "all benchmarks"}
        | {key: figures.get(f"repeatability.{key}.{name}".rstrip(".")) for key in REPEATED}
        for name in names
        if figures.get(f"repeatability.cv.{name}".rstrip(".")) is not None
    ]
    shown = numbers(*((key, words, show) for key, (words, show) in REPEATED.items()))
    return Table("", "", (Column("type", "benchmark"), *shown), rows)


def figures_table(rows: Sequence[Mapping[str, str]]) -> Table:
    """The main figures with their values, and beside them those of the paper's preprocessing where it was asked for."""
    has_both = any(row.get("theirs") for row in rows)
    value = Column("value", "our preprocessing" if has_both else "value")
    theirs = (Column("theirs", "the paper's"),) if has_both else ()
    return Table("", "", (Column("words", "figure"), value, *theirs), rows)


def precision_figure(found: "Evaluation") -> Figure:
    """Precision over recall of each detector, on later executions."""
    curves, measured = (found.tables.get(name, pd.DataFrame()) for name in ("precision_recall", "detection"))
    words = (
        "The lower the threshold, the more of the stressed executions are flagged (recall), and the more others as "
        "well, which costs precision."
    )
    title, nothing = "How surely stressed executions are found", "No execution that was tested is labelled as stressed."
    if curves.empty:
        return figure("precision", title, words, "", None, nothing)
    own = curves[(curves["protocol"] == BY_TIME) & (curves["round"] == 0)]
    tested = measured[(measured["protocol"] == BY_TIME) & (measured["round"] == 0) & (measured["dose"] == ANY)]
    if own.empty or tested.empty:
        return figure("precision", title, words, "", None, nothing)
    n, n_stressed = int(tested["n"].max()), int(tested["n_stressed"].max())
    areas = dict(zip(tested["detector"].astype(str), tested["auprc"].astype(float), strict=True))
    rows = pd.concat(
        [
            charts.sampled(part.sort_values("recall"), MOST_POINTS)[["recall", "precision"]].assign(
                detector=f"{detector_name(str(name))} ({ratio(areas.get(str(name)))})"
            )
            for name, part in own.groupby("detector", sort=False)
        ]
    )
    draw = partial(charts.lines, rows, Axis("recall", "recall", "share"), Axis("precision", "precision", "share"),
                   series="detector", height=300)  # fmt: skip
    words += (
        f" In brackets: the area under the curve; guessing reaches {share(n_stressed / n if n else 0.0)} precision."
    )
    return Figure("precision", title, words, f"n = {n:,} tested executions, later than those learned from", draw)


def _ranked(found: "Evaluation", emulated: frozenset[str]) -> pd.DataFrame:
    table = found.tables.get("ranking")
    if table is None or table.empty:
        return pd.DataFrame()
    best = table.loc[table["aspect"] == "all", "node"].head(MOST_NODES)
    shown = table[table["node"].isin(best)].rename(columns={"place": "rank"})
    n_executions = shown.get("n_executions", 0)  # of many nodes nobody counts them
    return shown.assign(
        is_tied=shown["n_tied"] > 1, is_emulated=shown["node"].isin(emulated), n_executions=n_executions
    )
