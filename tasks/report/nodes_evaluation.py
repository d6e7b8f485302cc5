"""How well degraded executions are told and nodes ranked, as an evaluation of benchmark results measured it: read from
the keys of its figures into tables, the answer first, and what falls short named.

Keys are `detect.<measure>.<detector>[.<protocol>][.<dose>]`, `inject.<kind>.<measure>.<detector>` and
`rank.<method>[.<machine type>|.mean][.<variant>]`, with `.low` and `.high` beside those of several fits."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from tasks.quantities import number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.evaluation import REASON, Given, Measures, Show, better_line, gap, matrix, missing_lines, reasons
from tasks.report.nodes_tables import decisions_table, ranking_figure
from tasks.report.result import (
    NOTHING,
    Cell,
    Column,
    Fact,
    Figure,
    Result,
    Section,
    Table,
    cell_table,
    columns,
    count,
    plot,
    table,
)

if TYPE_CHECKING:
    from tasks.report.evaluation import Evaluation

MODEL, PAPER = "model", "paper"  # Perona's network, ours and its authors', and their protocol
LEARNED = (MODEL, PAPER)
VERDICTS, WITHOUT_LABELS = "detector", "headline"  # what verdicts are told by, and where nobody knows of stress
DETECTORS = {
    MODEL: "our variant",
    PAPER: "paper's variant",
    "detector": "the detector",
    "logistic": "logistic regression a benchmark",
    "headline": "headline metrics, without labels",
    "zscore": "robust z-scores",
}
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
MEASURES: Measures = {
    "f1_outlier": ("F1 of stressed", ratio),
    "f1_normal": ("F1 of others", ratio),
    "weighted_f1": ("weighted F1", ratio),
    "auprc": ("area under precision over recall", ratio),
    "precision": ("precision", share),
    "recall": ("recall", share),
    "false_alarms_per_1000": ("false alarms in 1,000", number),
    "delay_executions": ("executions until it is told", number),
}
IN_BRIEF = ("f1_outlier", "f1_normal", "auprc", "false_alarms_per_1000")  # where there is little room
JUDGED_BY = ("f1_outlier", "auprc")
ANY, DOSE, STRONG, KIND = "any", "dose_", "from_dose_", "kind_"  # of stress: all, of a level, from it on, of a kind
METHODS = {
    "spearman": "the score of all microbenchmarks",
    "best_single": "the one metric that did best on other nodes",
    "best_oracle": "the one metric that does best here, known afterwards",
    "pc1": "the first principal component",
    "shared": "what microbenchmarks of several tools share",
}
RANKED_BY, KNOWN_AFTERWARDS = "shared", "best_oracle"
FIT_PARTS = ("reconstruction.", "type.", "score.", "fit.")
ALL_COLUMNS, OWN, TYPES = "reconstruction.mse.{name}", "reconstruction.mse.own.{name}", "type.accuracy.{name}"
BY_MEANS = f"{OWN}.mean_predictor"
FITTED: Measures = {
    TYPES: ("types told rightly", share),
    OWN: ("error of own metrics", number),
    BY_MEANS: ("the same by means of types", number),
    ALL_COLUMNS: ("error of all columns", number),
    f"{ALL_COLUMNS}.mean_predictor": ("the same by means of types", number),
    "score.spearman.{name}": ("norm with performance", ratio),
    "score.deviation.{name}": ("their ratio varies by", number),
    "fit.best_epoch.{name}": ("best epoch", number),
    "fit.graphs.{name}": ("training graphs", number),
    "fit.rounds.{name}": ("rounds that came to something", number),
}
REPORTED: dict[str, tuple[str, Show, float]] = {  # Perona, IV-C, on its own data
    "detect.f1_normal.{name}": ("F1 of others", ratio, 0.93),
    "detect.f1_outlier.{name}": ("F1 of stressed", ratio, 0.75),
    "detect.weighted_f1.{name}": ("weighted F1 (probably its weighted accuracy)", ratio, 0.90),
}
KINDS = {
    "replaced": "replaced by those of another machine type",
    "shifted": "made worse by one factor",
    "unaltered": "unaltered",
}
INJECTED: Measures = {
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
    "false_alarms_per_1000": ("flags in 1,000 unaltered", number),
    "alarms": ("alarms", number),
    "alarms_per_node_month": ("alarms a node and month", number),
}
REPEATED: Measures = {
    "cv": ("spread", share),
    "rerun_median": ("a rerun differs by", share),
    "rerun_p90": ("in one of ten by", share),
    "runs_for_5": ("executions to see 5 %", number),
    "runs_for_10": ("executions to see 10 %", number),
    "runs_to_tell_apart": ("executions to tell two nodes apart", number),
}
FACTS = {
    "n": "executions",
    "n_nodes": "nodes",
    "n_stressed": "known to be stressed",
    "n_refused": "rows of files refused",
    "metrics.kept": "metrics kept",
}
MOST_NODES, MOST_POINTS = 12, 400
BY_TIME = "chronological"
NOTHING_SHORT = "Nothing that was measured: it is behind no simple answer, and below nothing that it should reach."
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
SPOILED = (
    "From a drawn time on half of a node's results of a benchmark are replaced or made worse; the history as it is, by "
    "the same thresholds, says what a detector makes of nodes of which nobody knows any fault."
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


def evaluation_result(evaluation: "Evaluation", name: str, emulated: frozenset[str] = frozenset()) -> Result:
    """What an evaluation measured. name: of the data; emulated: nodes that are not machines of their own."""
    figures = evaluation.figures
    why = reasons(figures, "detect.") or "no execution is known to be stressed"
    notices = (f"Emulated nodes: {len(emulated)} of them are made of limits on a larger machine.",) if emulated else ()
    return Result(
        f"Answers about nodes: {name}",
        summary_words(figures) or f"No detector could be measured against simpler ones: {why}",
        f"From {figures['n']:,} executions of benchmarks on {figures['n_nodes']:,} nodes.",
        made_of=f"seed {figures['seed']}, data {str(figures['data_sha256'])[:12]}",
        again="whorl nodes evaluate PATH… --out DIR",
        notices=notices,
        facts=tuple(Fact(f"nodes.evaluation.{key}", figures.get(key), words, count) for key, words in FACTS.items()),
        sections=tuple(_sections(evaluation, emulated)),
        method=METHOD,
    )


def _sections(evaluation: "Evaluation", emulated: frozenset[str]) -> Iterator[Section]:
    figures, metrics = evaluation.figures, evaluation.tables.get("metrics", pd.DataFrame())
    if verdicts := verdict_tables(figures):
        yield Section("Is the detector ahead of simpler ones?", AHEAD, tables=tuple(verdicts), is_open=True)
    if verdicts or is_learned(figures):
        lines = (*falls_short(figures), *missing_lines(figures, "detect.", *FIT_PARTS))
        yield Section("What falls short", lines=lines or (NOTHING_SHORT,), is_open=True)
    detectors, nothing = detectors_table(figures, doses=True), f"Not measured: {reasons(figures, 'detect.')}."
    yield Section("Stressed executions found", SPLITS, tables=(detectors,), nothing=nothing, is_open=not verdicts)
    yield Section("How surely stressed executions are found", figures=(precision_figure(evaluation),))
    yield Section("How good each node is", figures=(ranking_figure(_ranked(evaluation, emulated)),))
    nothing = f"Not measured: {reasons(figures, 'rank.') or 'no application ran on these nodes'}."
    yield Section("Scores and what applications did on the same nodes", RANKED, tables=(rank_table(figures),),
                  nothing=nothing)  # fmt: skip
    injected = injected_table(figures)
    missing = missing_lines(figures, "inject.") if injected.rows else ()
    yield Section("Degradation that was put into the history", SPOILED, lines=tuple(missing), tables=(injected,))
    yield Section("What fingerprints hold", HOLD, tables=(fitted_table(figures),))
    yield Section("How much a rerun differs", RERUNS, tables=(repeated_table(figures),))
    decided = decisions_table(metrics.rename(columns={"type": "benchmark_type"}))
    yield Section("Metrics: kept or dropped, and why", tables=(decided,))


def detector_name(detector: str) -> str:
    """A detector in words; one that joined later has its own name."""
    return DETECTORS.get(detector, detector)


def is_learned(figures: Given) -> bool:
    """Whether Perona's network was asked for at all."""
    return any(key_of(OWN, name, protocol) in figures for name in LEARNED for protocol in ("", PAPER))


def detectors_table(figures: Given, *, doses: bool = False) -> Table:
    """A row a way of splitting and detector, a column a measure; doses: one more a dose of stress.

    Of each way of splitting the detector that tells stressed executions best stands on top."""
    by_place: dict[tuple[str, str, str], dict[str, float]] = {}
    for measure in MEASURES:
        for place, key in keys_of(figures, measure).items():
            if doses or place[1] == ANY:
                by_place.setdefault(place, {})[measure] = float(figures[key])
    splits = list(PROTOCOLS)
    order = sorted(
        by_place,
        key=lambda entry: (splits.index(entry[0]), _by_level(entry[1]), -by_place[entry].get(JUDGED_BY[0], -1)),
    )
    rows = [
        {"split": PROTOCOLS[of], "dose": dose_name(dose), "detector": detector_name(name), **by_place[of, dose, name]}
        for of, dose, name in order
    ]
    shown = columns(*((key, words, show) for key, (words, show) in MEASURES.items()))
    shown = tuple(replace(entry, is_extra=entry.key not in IN_BRIEF) for entry in shown)
    stress = (Column("dose", "stress", kind="name"),) if doses else ()
    return table(rows, ("detector", "told by", "name"), ("split", "tested on", "name"), *stress, *shown,
                 name="detectors")  # fmt: skip


def keys_of(figures: Given, measure: str) -> dict[tuple[str, str, str], str]:
    """The keys of a measure that has a figure, by protocol (empty: later executions), dose (`any`: all), detector."""
    keys = {}
    for key, value in figures.items():
        words = key.split(".")
        if words[:2] == ["detect", measure] and len(words) > 2 and value is not None:
            rest = words[3:]
            protocol = rest.pop(0) if rest and rest[0] in PROTOCOLS else ""
            dose = rest.pop(0) if rest and rest[0].startswith((DOSE, STRONG, KIND)) else ANY
            if not rest:
                keys[protocol, dose, words[2]] = key
    return keys


def dose_name(dose: str) -> str:
    """A dose in words: of its level or name, those from a level on, or all of them."""
    if dose.startswith(STRONG):
        return f"doses from {dose.removeprefix(STRONG)} on"
    words = {ANY: "all doses"}.get(dose, f"dose {dose.removeprefix(DOSE)}")
    return f"stress of kind {dose.removeprefix(KIND)}" if dose.startswith(KIND) else words


def _by_level(dose: str) -> tuple[bool, bool, str]:
    """The order of doses: all together, the strong ones together, then by level and name."""
    return dose != ANY, not dose.startswith(STRONG), dose


def duels(figures: Given, measure: str) -> dict[tuple[str, str], tuple[str, dict[str, float]]]:
    """By protocol and dose where the detector and any simpler one have a figure: its key, and the others by name, the
    best first."""
    keys = keys_of(figures, measure)
    compared = {}
    for protocol in PROTOCOLS:
        for dose in sorted({dose for of, dose, _ in keys if of == protocol}, key=_by_level):
            others = {
                detector_name(name): float(figures[key])
                for (of, at, name), key in keys.items()
                if (of, at) == (protocol, dose) and name not in (VERDICTS, *LEARNED)
            }
            if others and (protocol, dose, VERDICTS) in keys:
                best_first = dict(sorted(others.items(), key=lambda rival: -rival[1]))
                compared[protocol, dose] = keys[protocol, dose, VERDICTS], best_first
    return compared


def verdict_tables(figures: Given) -> list[Table]:
    """By each measure of JUDGED_BY how far the detector is ahead of the best simpler one, by split and dose.

    Marked is where it is behind. Nothing without a detector."""
    tables = []
    for measure in JUDGED_BY:
        compared = duels(figures, measure)
        doses = sorted({dose for _, dose in compared}, key=_by_level)
        cells = {place: _ahead(figures, key, others, MEASURES[measure][1]) for place, (key, others) in compared.items()}
        rows = [
            (Cell(words), *(cells.get((protocol, dose), NOTHING) for dose in doses))
            for protocol, words in PROTOCOLS.items()
            if any(of == protocol for of, _ in compared)
        ]
        if rows:
            tables.append(cell_table("tested on", [dose_name(dose) for dose in doses], rows, MEASURES[measure][0]))
    return tables


def _ahead(figures: Given, key: str, others: dict[str, float], show: Show) -> Cell:
    rival, best = next(iter(others.items()))
    ahead, low = gap(figures[key], best), figures.get(f"{key}.low")
    notes: tuple[str, ...] = (f"{show(figures[key])} against {show(best)}", rival)
    if ahead > 0 and low is not None and low <= best:
        notes += ("within its spread",)
    return Cell(f"{ahead:+.2f}" if ahead else "level", notes, is_marked=ahead < 0)


def summary_words(figures: Given) -> str:
    """In how many places the detector is ahead of every simpler one; empty where it was not measured."""
    compared = duels(figures, JUDGED_BY[0]).values()
    if not compared:
        return ""
    gaps = [gap(figures[key], max(others.values())) for key, others in compared]
    ahead, behind = sum(lead > 0 for lead in gaps), sum(lead < 0 for lead in gaps)
    return (
        f"By {MEASURES[JUDGED_BY[0]][0]} the detector is ahead of every simpler one in {ahead} of {len(gaps)} places "
        f"(each a way of splitting and a dose), level with the best of them in {len(gaps) - ahead - behind}, behind in "
        f"{behind}."
    )


def falls_short(figures: Given) -> list[str]:
    """Where detector, ranking or network are behind a simpler answer or what they should reach: one line each."""
    lines = []
    for measure in JUDGED_BY:
        words, show = MEASURES[measure]
        for (protocol, dose), (key, others) in duels(figures, measure).items():
            lines += better_line(f"{words}, {PROTOCOLS[protocol]}, {dose_name(dose)}", figures[key], others, show)
    for kind, words in KINDS.items():
        scores = {name: figures.get(f"inject.{kind}.auprc.{name}") for of, name in injected_into(figures) if of == kind}
        ours = scores.pop(WITHOUT_LABELS, None)
        rivals = {detector_name(name): value for name, value in scores.items()}
        lines += better_line(f"{INJECTED['auprc'][0]}, later results {words}", ours, rivals, ratio)
    for suffix, (words, show) in _ranked_in(figures).items():
        plain = {METHODS[name]: figures.get(f"rank.{name}{suffix}") for name in METHODS if name != KNOWN_AFTERWARDS}
        ours = figures.get(f"rank.{RANKED_BY}{suffix}")
        lines += better_line(f"ranking beside applications, {words}", ours, plain, show)
    return lines + list(_network_falls_short(figures))


def _network_falls_short(figures: Given) -> Iterator[str]:
    """Where fits of ours are worth less than means of types or tell types wrongly, and the paper's below the paper."""
    for protocol, words in PROTOCOLS.items():
        error, means, accuracy = (figures.get(key_of(key, MODEL, protocol)) for key in (OWN, BY_MEANS, TYPES))
        if error is not None and means is not None and error >= means:
            yield f"error of own metrics, {words}: {number(error)}; the means of types make {number(means)}"
        if accuracy is not None and accuracy < 1:
            yield f"types told rightly, {words}: {share(accuracy)}"
    for key, (words, show, reported) in REPORTED.items():
        value = figures.get(key_of(key, PAPER, PAPER))
        if value is not None and value < reported:
            yield f"{words}, {PROTOCOLS[PAPER]}: {show(value)}; the paper reports {show(reported)} of its own data"


def key_of(template: str, name: str, protocol: str) -> str:
    """The key of a figure of a variant in a way of splitting."""
    return template.format(name=name) + (f".{protocol}" if protocol else "")


def _of_fit(row: tuple[str, str], template: str) -> str:
    """The key of a fit; ours does not learn the columns of other types."""
    return "" if row[0] == MODEL and template.startswith(ALL_COLUMNS) else key_of(template, *row)


def fitted_table(figures: Given) -> Table:
    """A row a variant and way of splitting, a column a measure of its fits."""
    rows = {(name, protocol): (DETECTORS[name], words) for protocol, words in PROTOCOLS.items() for name in LEARNED}
    return matrix(figures, "fits of the", rows, FITTED, _of_fit)


def injected_into(figures: Given) -> list[tuple[str, str]]:
    """What results were made of, and the detectors that were asked about them."""
    keys = (key.split(".") for key in figures if key.startswith("inject."))
    places = dict.fromkeys((words[1], words[3]) for words in keys if len(words) == 4 and words[1] in KINDS)
    return sorted(places, key=lambda one: list(KINDS).index(one[0]))


def injected_table(figures: Given) -> Table:
    """A row a kind of degradation and detector, a column a measure."""
    rows = {(kind, name): (detector_name(name), KINDS[kind]) for kind, name in injected_into(figures)}
    return matrix(figures, "told by", rows, INJECTED, lambda row, measure: f"inject.{row[0]}.{measure}.{row[1]}")


def rank_table(figures: Given) -> Table:
    """A row a way of ranking, a column a machine type that nodes were ranked in, and all together."""
    return matrix(figures, "ranked by", METHODS, _ranked_in(figures), lambda method, one: f"rank.{method}{one}")


def _ranked_in(figures: Given) -> Measures:
    """What follows the method in a key, and its words: machine types, all together, and their mean if there are two."""
    types = [key.removeprefix("rank.nodes.") for key in figures if key.startswith("rank.nodes.")]
    suffixes = {f".{kind}": (kind, ratio) for kind in types} | {"": ("all together", ratio)}
    return suffixes | ({".mean": ("mean of machine types", ratio)} if len(types) > 1 else {})


def repeated_table(figures: Given) -> Table:
    """A row a benchmark type, and one for all: how much a rerun differs."""
    start = "repeatability.cv"
    types = [key.removeprefix(start).removeprefix(".") for key in figures if key.startswith(start)]
    rows = {name: name or "all benchmarks" for name in types if not f".{name}".endswith(REASON)}
    return matrix(figures, "benchmark", rows, REPEATED, lambda name, key: f"repeatability.{key}.{name}".rstrip("."))


def precision_figure(evaluation: "Evaluation") -> Figure:
    """Precision over recall of each detector, on later executions."""
    title, nothing = "How surely stressed executions are found", "No execution that was tested is labelled as stressed."
    curves, tested = (
        rows[(rows["protocol"] == BY_TIME) & (rows["round"] == 0)] if len(rows) else rows
        for rows in (evaluation.tables.get(name, pd.DataFrame()) for name in ("precision_recall", "detection"))
    )
    tested = tested[tested["dose"] == ANY] if len(tested) else tested
    if curves.empty or tested.empty:
        return Figure("precision", title, nothing, "n = 0")
    n, n_stressed = int(tested["n"].max()), int(tested["n_stressed"].max())
    areas = dict(zip(tested["detector"].astype(str), tested["auprc"].astype(float), strict=True))
    rows = pd.concat(
        [
            charts.sampled(part.sort_values("recall"), MOST_POINTS)[["recall", "precision"]].assign(
                detector=f"{detector_name(str(name))} ({ratio(areas.get(str(name)))})"
            )
            for name, part in curves.groupby("detector", sort=False)
        ]
    )
    words = (
        "The lower the threshold, the more of the stressed executions are flagged (recall), and the more others as "
        "well, which costs precision. In brackets: the area under the curve; guessing reaches "
        f"{share(n_stressed / n if n else 0.0)} precision."
    )
    evidence = f"n = {n:,} tested executions, later than those learned from"
    axes = Axis("recall", "recall", "share"), Axis("precision", "precision", "share")
    return plot("precision", title, words, evidence, charts.lines, rows, *axes, series="detector", height=300)


def _ranked(evaluation: "Evaluation", emulated: frozenset[str]) -> pd.DataFrame:
    ranking = evaluation.tables.get("ranking", pd.DataFrame())
    if ranking.empty:
        return ranking
    best = ranking.loc[ranking["aspect"] == "all", "node"].head(MOST_NODES)
    shown = ranking[ranking["node"].isin(best)].rename(columns={"place": "rank"})
    n_executions = shown.get("n_executions", 0)  # of many nodes nobody counts them
    return shown.assign(
        is_tied=shown["n_tied"] > 1, is_emulated=shown["node"].isin(emulated), n_executions=n_executions
    )
