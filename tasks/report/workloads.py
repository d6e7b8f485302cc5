"""What is known of the workloads of a source: what ran, what should not have, how sure that is, and how runs look."""

from collections import Counter as Tally
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.choices import identification_words
from tasks.errors import BadInput, NotFound
from tasks.quantities import duration, number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.evaluation import list_table
from tasks.report.intake import IntakeRows, fetch_intake, intake_sections
from tasks.report.result import (
    Column,
    Fact,
    Figure,
    Result,
    Section,
    State,
    Table,
    alone,
    command,
    count,
    moment,
    one_line,
    plot,
    records,
    sentence,
    table,
)
from tasks.report.workloads_evaluation import (
    METHOD,
    OTHERS,
    MeasuredModel,
    confusion_figure,
    fetch_measured,
    known_table,
)
from tasks.report.workloads_runs import NO_PHASES, series_figure
from tasks.warehouse.connection import Connection
from tasks.warehouse.sources import kinds_of
from tasks.workloads.clusters import Clusters, clusters_of, seen_words
from tasks.workloads.cut_runs import fetch_cut_runs
from tasks.workloads.intake import read_runs
from tasks.workloads.params import WindowParams, WorkloadsReportParams

WORD = "workloads"
UNKNOWN, REST, NO_LABEL = "unknown", "others", "no label"
MOST_RUNS, MOST_ROWS = 300, 14  # of the timeline: the latest runs, and rows of workloads
MOST_ALIKE = 300  # runs that are held against each other, the latest
MOST_OF_ITEM, MOST_REASONS, LISTED_REASONS, NAME_CHARS = 200, 4, 2, 60
MOST_LOOKED_AT = 20  # of the latest runs, by the command that identifies them
IDENTIFIED_WORDS = (
    "What each run was called, how sure the model is, and the counters and phases that speak for it or against it. A "
    "run that is none of the known workloads is unknown; then the one that it is most like is named. Runs that the "
    "model learned from may be among them: how good it is on others stands below."
)
TIMELINE_WORDS = (
    "A mark is a run, in the row of what it was called, stronger in colour where the model is surer. Orange: it is "
    "unknown, or is not what its label says or what should run."
)
ALIKE_WORDS = (
    "Runs without a label, and what they are like: each kind by the run in its middle, the labels among its runs, and "
    "the counters that set it apart. New: nothing like it ran until the last week. "
    "To name them, list one run of each in a manifest (path, run_id, workload)"
)
MARKED = {"as it should be": charts.BLUE, "not so, or unknown": charts.ORANGE}
# Runs by what ran on what input. n_phases: of the workload as a whole; medians over the runs.
GROUPS = """
WITH counted AS (
    SELECT run_id, count(*) AS n_counters FROM workloads.counters WHERE source = $source GROUP BY run_id
),
cut AS (SELECT run_id, count(*) AS n_phases FROM workloads.run_phases WHERE source = $source GROUP BY run_id)
SELECT workload, input, count(*) AS n_runs, count(DISTINCT round) AS n_rounds,
    count(DISTINCT machine) AS n_machines, median(duration_s) AS duration_s, sum(duration_s) AS total_s,
    median(n_counters) AS n_counters, sum(n_missed) AS n_missed, sum(n_samples) AS n_samples,
    median(n_phases) AS n_phases, count(n_phases) AS n_cut
FROM workloads.runs LEFT JOIN counted USING (run_id) LEFT JOIN cut USING (run_id)
WHERE source = $source GROUP BY workload, input
ORDER BY workload NULLS LAST, input NULLS LAST
"""
IDENTIFICATIONS = """
SELECT identifications.*, runs.workload AS label, runs.input AS input, runs.machine, runs.started_at, runs.duration_s,
    runs.conditions.subject AS subject
FROM workloads.identifications AS identifications LEFT JOIN workloads.runs AS runs USING (source, run_id)
WHERE source = $source
QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY identified_at DESC, model_id DESC) = 1
ORDER BY identified_at DESC, started_at DESC NULLS LAST, run_id
"""
RUNS = """
SELECT run_id, coalesce(workload, 'no label') AS workload, input, machine, started_at, duration_s, n_samples, n_missed
FROM workloads.runs WHERE source = $source ORDER BY started_at DESC NULLS LAST, run_id
"""
LATEST_CUT = """
SELECT run_id FROM workloads.runs SEMI JOIN workloads.run_phases USING (source, run_id) WHERE source = $source
ORDER BY started_at DESC NULLS LAST, run_id LIMIT 1
"""


@dataclass(frozen=True)
class WorkloadsData(IntakeRows):
    """Tables of one source, and how one of its runs looks (figure).

    groups: runs by workload and input; identifications: the latest of each run, the newest first; alike: kinds of
    runs, None where all have labels, or are of one kind."""

    is_simulated: bool
    groups: pd.DataFrame
    runs: pd.DataFrame
    figure: Figure
    identifications: pd.DataFrame
    alike: Clusters | None
    measured: MeasuredModel

    @property
    def n_runs(self) -> int:
        """Runs of the source."""
        return int(self.groups["n_runs"].sum())


def fetch_workloads(connection: Connection, source: str, params: WorkloadsReportParams) -> WorkloadsData:
    """Everything that the result needs.

    Raises NotFound if the source has no runs, BadInput if it mixes simulated with measured ones."""
    n_simulated, n_measured = kinds_of(connection, "workloads.runs", source)
    if not n_simulated + n_measured:
        raise NotFound(f"source {source!r} has no runs of workloads; fill it with 'whorl workloads ingest PATH'")
    groups, runs, identifications = (
        connection.execute(sql, {"source": source}).df() for sql in (GROUPS, RUNS, IDENTIFICATIONS)
    )
    return WorkloadsData(
        **vars(fetch_intake(connection, WORD, source)), is_simulated=bool(n_simulated), groups=groups, runs=runs,
        figure=_run_figure(connection, source, identifications, params), identifications=identifications,
        alike=_alike(connection, source, runs), measured=fetch_measured(connection, source),
    )  # fmt: skip


def _alike(connection: Connection, source: str, runs: pd.DataFrame) -> Clusters | None:
    if not (runs["workload"] == NO_LABEL).any():
        return None
    latest = [str(name) for name in runs["run_id"].head(MOST_ALIKE)]
    try:
        alike = clusters_of(read_runs(connection, source, latest), WindowParams())
    except BadInput:  # no counter that all of them have
        return None
    return alike if alike.clusters[1:] else None


def _run_figure(connection: Connection, source: str, identified: pd.DataFrame, params: WorkloadsReportParams) -> Figure:
    """The run that was identified last, else the latest one, over time; empty before runs are cut into phases."""
    latest = [str(run_id) for (run_id,) in connection.execute(LATEST_CUT, {"source": source}).fetchall()]
    names = [*identified["run_id"].head(1).map(str), *latest]
    for run in (run for name in names for run in fetch_cut_runs(connection, source, [name])):
        return series_figure(connection, source, run, params.n_counters)
    return Figure("series", "When a run changes", NO_PHASES, "n = 0")


def called(row: Mapping[Any, Any], *, how_sure: bool = False) -> str:
    """What a run was called: its workload, or unknown with what it is most like; how_sure: with probabilities."""
    if row["is_known"] and isinstance(row["workload"], str):
        present = row.get("present")  # missing, or no list, where an older whorl said it
        kept = present if isinstance(present, list | np.ndarray) else None
        return one_line(identification_words({**row, "present": kept}, how_sure=how_sure), NAME_CHARS * (1 + how_sure))
    return f"{identification_words(row, how_sure=how_sure)}, most like {one_line(str(row['nearest']), NAME_CHARS)}"


def reasons_of(row: Mapping[Any, Any]) -> list[str]:
    """The first reasons of an identification, each on one line."""
    return [sentence(reason) for reason in list(row["reasons"])[:MOST_REASONS]]


def workloads_result(data: WorkloadsData, item: str = "") -> Result:
    """All that is known of the workloads of a source. item: address of the pages of single workloads."""
    rests_on = f"data version {data.data_version}, {data.n_runs:,} runs"
    notices = ("Simulated: these runs were drawn, not measured.",) if data.is_simulated else ()
    reasons = reasons_of(data.identifications.iloc[0].to_dict()) if len(data.identifications) else ()
    parts = {"reasons": reasons, "facts": _facts(data), "notices": notices, "sections": _sections(data, item)}
    return data.result(_answer(data), _certainty(data), rests_on, METHOD, **parts)


def _answer(data: WorkloadsData) -> tuple[str, str, State]:
    """What ran, and whether somebody has to look."""
    rows = data.identifications
    if rows.empty:
        n_labelled, n_kinds = data.groups["workload"].nunique(), len(data.alike.clusters) if data.alike else 0
        kinds = f"of {n_labelled:,} labelled workloads" if n_labelled else "without a label"
        kinds += f", of {n_kinds:,} kinds" if n_kinds and not n_labelled else ""
        return f"{data.n_runs:,} runs {kinds}; none was identified yet.", f"Next: {_towards_names(data)}.", "unknown"
    odd = _is_odd(rows, data.alarms["subject"])
    latest = rows.iloc[0].to_dict()
    last = f"The latest run, {one_line(latest['run_id'], 60)}, is {called(latest, how_sure=True)}"
    if odd.any():
        n_unknown = int((~rows["is_known"].astype(bool)).sum())
        text = f"{int(odd.sum()):,} of {len(rows):,} identified runs are not what they should be, {n_unknown:,} unknown"
        return f"{last}; {text}.", f"Look at the runs marked below; {data.command('watch')} raises alarms.", "look"
    more = f"; all {len(rows):,} identified runs are known and as labelled" if len(rows) > 1 else ""
    return f"{last}{more}.", "", "good"


def _towards_names(data: WorkloadsData) -> str:
    """The next command where no run was identified: the one that keeps what runs are called, or what that needs."""
    if data.measured.model_id:
        return data.command("watch", "--newest", str(MOST_LOOKED_AT))
    return data.command("train" if data.groups["workload"].nunique() else "clusters")


def _is_odd(identified: pd.DataFrame, alarmed: Iterable[object] = ()) -> "pd.Series[bool]":
    """Runs that are unknown, that have another label than they were called, or that have raised an alarm."""
    mislabelled = identified["label"].notna() & (identified["label"] != identified["workload"])
    return (
        ~identified["is_known"].astype(bool)
        | mislabelled
        | identified["run_id"].isin([str(run_id) for run_id in alarmed])
    )


def _certainty(data: WorkloadsData) -> str:
    right, n = (data.measured.figures.get(f"held_out.{key}") for key in ("accuracy", "n"))
    if right is None or not n:
        return ""
    return f"The model called {share(right)} of {n:,.0f} held-out runs right (model {data.measured.model_id})."


def _facts(data: WorkloadsData) -> Iterator[Fact]:
    groups, identified = data.groups, data.identifications
    n_workloads, n_bare = int(groups["workload"].nunique()), int(groups.loc[groups["workload"].isna(), "n_runs"].sum())
    words = f"runs of {n_workloads} workload{'' if n_workloads == 1 else 's'}"
    yield Fact("workloads.n_runs", data.n_runs, words + (f", {n_bare:,} without a label" if n_bare else ""), count)
    yield Fact("workloads.total_s", float(groups["total_s"].sum()), "of telemetry", duration)
    if len(identified):
        n_unknown = int((~identified["is_known"].astype(bool)).sum())
        yield Fact("workloads.n_identified", len(identified), f"runs identified, {n_unknown:,} of them unknown", count)
    if len(data.alarms):
        yield Fact("workloads.n_alarms", len(data.alarms), "alarms", count)


def _sections(data: WorkloadsData, item: str) -> Iterator[Section]:
    version, rows, measured = f"data version {data.data_version}", data.identifications, data.measured
    timeline = timeline_figure(rows, data.alarms["subject"].astype(str))
    if len(rows) != 1:  # one mark says no more than its row
        yield Section(timeline.title, figures=(timeline,), is_open=bool(len(rows)))
    yield Section(
        "Latest identifications", IDENTIFIED_WORDS, f"model {rows['model_id'].iloc[0]}" if len(rows) else "",
        tables=(identified_table(rows),), is_open=True,
        nothing=f"No run of this source was identified yet. Next: {_towards_names(data)}.",
    )  # fmt: skip
    yield _groups_section(data, item, version)
    if data.alike:
        yield _alike_section(data.alike, data, version)
    yield alone(confusion_figure(measured.confusion, f"model {measured.model_id}"), _measured_words(data))
    by, words = _measured_words(data), "Of the last evaluation: means over the held-out runs of each kind of split."
    yield Section("How well workloads are told apart", words, by, tables=(known_table(measured.evaluation),))
    others = list_table({**measured.evaluation, **measured.figures}, OTHERS)
    yield Section("What was measured", "", by, tables=(others,))
    fill = f" {data.command('fingerprint')} cuts them."
    yield alone(data.figure, version, fill)
    yield from intake_sections(data, "Nothing that ran has raised an alarm", item)


def _measured_words(data: WorkloadsData) -> str:
    """What measured the figures, and on which data."""
    measured, parts = data.measured, []
    if measured.evaluation:
        old = ", not of the files of now" if measured.evaluated_version != data.data_version else ""
        parts.append(f"evaluation of data version {measured.evaluated_version}{old}")
    if measured.model_id:
        parts.append(f"model {measured.model_id}")
    return " · ".join(parts)


def identified_table(identified: pd.DataFrame) -> Table:
    """What each run was called, how sure, and why. identified: rows of workloads.identifications with labels."""
    rows = [
        row | {"called": called(row), "because": "; ".join(reasons_of(row)[:LISTED_REASONS])}
        for row in records(identified)
    ]
    group = [("subject", "group")] if identified["subject"].notna().any() else []
    return table(
        rows, ("run_id", "run"), *group, ("called", "called"), ("confidence", "sure", share),
        ("unknown_score", "unlike the known", ratio), ("label", "label"), ("input", "input"), ("because", "because"),
        ("proxy", "proxy"), ("identified_at", "when (UTC)", moment), name="identifications",
    )  # fmt: skip


def _groups_section(data: WorkloadsData, item: str, version: str) -> Section:
    n_cut = int(data.groups["n_cut"].sum())
    cut = (
        f" No run has been cut into phases yet: {data.command('fingerprint')} does."
        if not n_cut
        else f" Phases of {n_cut:,} runs; the others have not been cut yet."
        if n_cut < data.n_runs
        else ""
    )
    rows = [
        row
        | {"workload": row["workload"] if isinstance(row["workload"], str) else NO_LABEL}
        | {"missed": row["n_missed"] / row["n_samples"] if row["n_samples"] else None}
        for row in records(data.groups)
    ]
    words = f"Length, counters, and phases of the workload as a whole: medians over the runs.{cut}"
    evidence = f"n = {data.n_runs:,} runs · {version}"
    shown = table(
        rows, Column("workload", "workload", link=f"{item}#" if item else ""), ("input", "input"),
        ("n_runs", "runs", count), ("n_rounds", "rounds", count), ("n_machines", "machines", count),
        ("duration_s", "length", duration), ("n_counters", "counters", number), ("n_phases", "phases", number),
        ("missed", "samples missed", share), name="list",
    )  # fmt: skip
    return Section("Runs by workload and input", words, evidence, tables=(shown,), is_open=True)


def clusters_table(clusters: Clusters) -> Table:
    """A row a kind of runs: how many, the one in the middle, labels, when they were seen, and what sets it apart."""
    rows = [
        vars(cluster) | {"n_runs": len(cluster.run_ids), "seen": seen_words(cluster)} for cluster in clusters.clusters
    ]
    return table(
        rows, ("number", "kind", count), ("n_runs", "runs", count), ("medoid", "like", "key"),
        Column("labels", "labels", ", ".join, kind="name"), ("seen", "seen (UTC)"),
        ("telling", "what sets it apart", "; ".join), name="alike",
    )  # fmt: skip


def _alike_section(clusters: Clusters, data: WorkloadsData, version: str) -> Section:
    shown = clusters_table(clusters)
    n_runs = sum(len(cluster.run_ids) for cluster in clusters.clusters)
    labelling = command("whorl", WORD, "ingest", "--manifest", "FILE", "--source", data.source)
    words = f"{ALIKE_WORDS}: {labelling}, then {data.command('train')}."
    return Section("Runs that are alike", words, f"n = {n_runs:,} runs, the latest · {version}", tables=(shown,))


def timeline_figure(identified: pd.DataFrame, odd: Collection[str] = ()) -> Figure:
    """What ran when, as runs were identified: a row a workload, orange where it is not what it should be.

    identified: run_id, workload, is_known, confidence, label, started_at; odd: ids of runs that raised an alarm."""
    title, nothing = "What ran when", "No run was identified yet."
    if identified.empty:
        return Figure("timeline", title, nothing, "n = 0")
    ordered = identified.sort_values(["started_at", "run_id"], na_position="first", kind="stable").tail(MOST_RUNS)
    names = ordered["workload"].where(ordered["is_known"].astype(bool), UNKNOWN).astype(str)
    tally = Tally(name for name in names if name != UNKNOWN)
    most = sorted(tally, key=lambda name: (-tally[name], name))[:MOST_ROWS]
    rows = pd.DataFrame(
        {
            "called": [name if name in most or name == UNKNOWN else REST for name in names],
            "run": ordered["run_id"].astype(str).to_numpy(),
            "confidence": ordered["confidence"].to_numpy(dtype=float),
            "odd": _marked(_is_odd(ordered, odd)),
        }
    )
    at = ordered["started_at"]
    has_times = bool(at.notna().all()) and len(set(at)) > 1
    over = (
        Axis("started_at", "started (UTC)", "time") if has_times else Axis("place", "identified runs, in their order")
    )
    rows[over.field] = at.to_numpy() if has_times else np.arange(1, len(rows) + 1)
    order = [*sorted(most), REST, UNKNOWN]
    rows = rows.sort_values("called", key=lambda column: column.map(order.index), kind="stable")
    n_odd = int((rows["odd"] != next(iter(MARKED))).sum())
    evidence = f"n = {len(rows):,} identified runs, {n_odd:,} not what they should be"
    return plot("timeline", title, TIMELINE_WORDS, evidence, charts.timeline, rows, over, "called", "odd", MARKED,
                "confidence")  # fmt: skip


def _marked(odd: "pd.Series[bool]") -> Any:
    """Truths as MARKED says them."""
    right, wrong = MARKED
    return np.where(odd, wrong, right)


def item_chart() -> charts.Chart:
    """The chart of the runs of a workload over time, with one row that stands for all."""
    row = {"started_at": pd.Timestamp(0), "called": "", "odd": "", "confidence": 0.5}
    started, frame = Axis("started_at", "started (UTC)", "time"), pd.DataFrame([row])
    return charts.timeline(frame, started, "called", "odd", MARKED, "confidence")


def workload_items(connection: Connection, data: WorkloadsData) -> Iterator[tuple[str, Result]]:
    """Each workload with its result: its runs over time, what they were called, and how it looks."""
    del connection
    called_as = data.identifications.set_index("run_id", drop=False)
    for name, runs in data.runs.groupby("workload", sort=True):
        run_ids = [run_id for run_id in runs["run_id"] if run_id in called_as.index]
        yield str(name), _item(str(name), runs, called_as.loc[run_ids], data.alarms["subject"])


def _item(name: str, runs: pd.DataFrame, identified: pd.DataFrame, alarmed: Iterable[object]) -> Result:
    right = f"{int((identified['workload'] == name).sum()):,} of {len(identified):,} identified ones were called so"
    answer = f"{len(runs):,} runs of {one_line(name, 60)}; {right if len(identified) else 'none was identified yet'}."
    facts = (
        Fact("workloads.item.n_runs", len(runs), "runs", count),
        Fact("workloads.item.duration_s", float(runs["duration_s"].median()), "long in the middle", duration),
    )
    said = {row["run_id"]: {"called": called(row), "confidence": row["confidence"]} for row in records(identified)}
    nothing = {"called": None, "confidence": None}
    rows = [row | said.get(row["run_id"], nothing) for row in records(runs.head(MOST_OF_ITEM))]
    more = f"The latest {MOST_OF_ITEM} of {len(runs):,}." if len(runs) > MOST_OF_ITEM else ""
    shown = table(
        rows, ("run_id", "run"), ("input", "input"), ("machine", "machine"), ("started_at", "started (UTC)", moment),
        ("duration_s", "length", duration), ("called", "called"), ("confidence", "sure", share), name="runs", more=more,
    )  # fmt: skip
    sections = [Section("Runs", tables=(shown,), is_open=True)]
    timed = identified[identified["started_at"].notna()]
    if len(timed):
        drawn = pd.DataFrame(
            {
                "workload": name,
                "started_at": pd.to_datetime(timed["started_at"]).to_numpy(),
                "called": [called(row) for row in records(timed)],
                "odd": _marked(_is_odd(timed, alarmed)),
                "confidence": timed["confidence"].to_numpy(dtype=float),
            }
        )
        columns, parts = charts.parts_of(drawn, "workload")
        seen = Figure("runs", "Runs over time", "", f"n = {len(drawn):,} identified runs", use="runs", columns=columns,
                     rows=parts[name])  # fmt: skip
        sections.insert(0, Section("Runs over time", figures=(seen,), is_open=True))
    wrong = Tally(called(row) for row in records(identified) if row["workload"] != name or not row["is_known"])
    reasons = tuple(f"{n:,} called {words}" for words, n in wrong.most_common(5))
    state: State = "look" if wrong else "good" if len(identified) else "unknown"
    return Result(one_line(name), answer, "", reasons, facts=facts, sections=tuple(sections), state=state)
