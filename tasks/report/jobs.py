"""What is known of the jobs of a source: which next runs are likely to be late, how runtimes vary and why, and what a
change would do."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.characterise import Characterisation
from tasks.jobs.params import FAMILY_WORDS, MEASURES, NO_COLUMN, STALAGMITE_RATIO, Kind, ReportParams, SummaryParams
from tasks.jobs.summary import fetch_summary, refuse_mixture
from tasks.quantities import MISSING, TINY_SHARE, counted, duration, number, ratio, share
from tasks.report import charts
from tasks.report.intake import IntakeRows, fetch_intake, intake_sections
from tasks.report.jobs_evaluation import SIDE_BY_SIDE, labels_table, predictor_words, predictors_table
from tasks.report.jobs_variation import METHOD, NOT_CAUSES, fetch_shapes, history_sections, shape_sections
from tasks.report.result import (
    Column,
    Fact,
    Figure,
    Result,
    Section,
    State,
    Table,
    count,
    extra,
    moment,
    one_line,
    records,
    sentence,
    table,
    times,
)
from tasks.warehouse.connection import Connection

WORD = "jobs"
KINDS: tuple[Kind, ...] = ("ratio", "delta")
RISKY = 0.25  # chance of taking twice the usual from which a job is counted as likely to be late
MOST_OF_ITEM = 60  # runs in the history of a job
MOST_EXPLAINED, MOST_ALARMS = 200, 20
NEEDED = {  # for an insight: the column of jobs.runs that tells of it
    "inputs": "input_bytes",
    "tokens": "requested_cpus",
    **dict.fromkeys(("index_lookup", "window", "range"), "operators"),
    "load": "load_mean",
    "load_deviation": "load_sd",
    "spare_tokens": "spare_tokens_used",
    "newer_skus": "vertices",
}
NO_REASON = "nothing that was known at submission"
MADE_UP = {
    "next_p05_s": "5 % stay under", "next_p25_s": "25 % stay under", "p50_s": "median",
    "next_p75_s": "75 % stay under", "p90_s": "90 % stay under", "next_p95_s": "95 % stay under",
    "p99_s": "99 % stay under", "expected_excess_s": "expected beyond the usual",
}  # fmt: skip
TONES = {"as usual": charts.BLUE, "slow": charts.ORANGE, "next run": charts.INK}
QUANTILES = ("p05_s", "p25_s", "p50_s", "p75_s", "p95_s")
LIST_WORDS = (
    "All jobs, the likeliest to take twice their usual time first; jobs under {least} finished runs (status "
    "{statuses}, with a runtime) stand last; new runs are those after {split_at} (UTC). Sort by COV for what varies "
    "most, by time lost for what costs most, by runs for what runs most often."
)
HISTORY_WORDS = "The latest runs, and at the right the interval that the next one is expected in (90 %, 50 %, median)."
REASONS_WORDS = (
    "By how much the families of features move the expected runtime of held-out runs, and the odds that their "
    f"job varies much. {NOT_CAUSES}"
)
RUNS_WORDS = (
    "The longest recent runs against the usual time of their job, each with its first reason to be longer; those of a "
    f"next run stand on the page of its job. {NOT_CAUSES}"
)
INSIGHTS_WORDS = (
    "Whether what Zhu et al. found holds in this source: by the model, whose rho says how the feature goes "
    "with the odds of a variable shape, and as measured, without a model, with the distance of each run from "
    "the usual time of its job."
)
CHANGES_WORDS = (
    "Each change is made in what is known of held-out runs, and the model predicts them again. Where runs were "
    "done again with the change, the prediction is held against them, each pair by the logarithm of the changed "
    "over the unchanged runtime."
)
# Who moves between shapes of ratios is drawn
CLAIMS = {"can": "", "cannot": "Mind: ", "move_delta": "Moves between shapes (seconds from the historic median): "}
JOBS = """
SELECT groups.* EXCLUDE (source), found.* EXCLUDE (source, group_key, last_at, p05_s, p25_s, p75_s, p95_s),
    found.p05_s AS next_p05_s, found.p25_s AS next_p25_s, found.p75_s AS next_p75_s, found.p95_s AS next_p95_s,
    groups.n_finished >= $least AS is_listed
FROM jobs.groups AS groups LEFT JOIN jobs.predictions AS found USING (source, group_key) WHERE groups.source = $source
ORDER BY is_listed DESC, found.exceeds_2x_share DESC NULLS LAST, found.expected_excess_s DESC NULLS LAST,
    groups.excess_s DESC NULLS LAST, groups.group_key
"""
# The figures of the model in use; before the first decision, of any that was trained.
MEASURED_MODEL = """
WITH measured AS (SELECT DISTINCT model_id FROM jobs.model_figures WHERE source = $source),
in_use AS (
    SELECT arg_max(model_id, sequence) AS model_id FROM ops.champions
    WHERE word = 'jobs' AND source = $source AND kind = 'runtime'
)
SELECT measured.model_id FROM measured LEFT JOIN in_use USING (model_id)
ORDER BY in_use.model_id IS NULL, measured.model_id DESC LIMIT 1
"""
MODEL_FIGURES = "SELECT key, value FROM jobs.model_figures WHERE source = $source AND model_id = $model_id"
TABLES = {
    "cause_families": "question, rank",
    "insights": "kind DESC, rank",
    "what_ifs": "scenario, measure",
    "what_if_pairs": "scenario",
    "what_if_moves": "scenario, kind, from_shape, to_shape",
    "what_if_claims": "scenario, about, place",
    "reasons": "group_key, run_id, question, rank",
}
ROWS = "SELECT * FROM jobs.{name} WHERE source = $source ORDER BY {order}"
HISTORY = """
SELECT group_key, coalesce(submitted_at, started_at, ended_at) AS submitted_at, runtime_s
FROM jobs.runs WHERE source = $source AND what_if IS NULL AND runtime_s > 0 AND isfinite(runtime_s)
    AND list_contains($statuses, status) AND coalesce(submitted_at, started_at, ended_at) IS NOT NULL
QUALIFY row_number() OVER (
    PARTITION BY group_key ORDER BY coalesce(submitted_at, started_at, ended_at) DESC, run_id) <= $most
ORDER BY group_key, submitted_at
"""
SHAPES_OF_JOBS = """
SELECT group_key, kind, label, n_runs, list_max(posterior) AS posterior FROM jobs.group_shapes
WHERE source = $source AND part = 'all' AND label IS NOT NULL ORDER BY group_key, kind DESC
"""
ALARMS_OF_JOBS = """
SELECT coalesce(json_extract_string(evidence, 'group_key'), subject) AS group_key, message, kind, raised_at
FROM ops.alarms WHERE word = 'jobs' AND source = $source ORDER BY raised_at DESC, alarm_id
"""


@dataclass(frozen=True)
class JobsData(IntakeRows):
    """Everything that is known of the jobs of a source, of one moment.

    summary: the row of jobs.summaries; jobs: one row a job, the likeliest to be late first; tables: by their names in
    TABLES; figures: of the model in use, by key."""

    summary: dict[str, Any]
    summary_params: SummaryParams
    least: int
    jobs: pd.DataFrame
    history: tuple[Section, ...]
    shapes: dict[Kind, tuple[Characterisation, str]]
    model_id: str | None
    figures: dict[str, float | None]
    tables: dict[str, pd.DataFrame]

    @property
    def listed(self) -> pd.DataFrame:
        """Jobs with a prediction and enough runs, the likeliest to be late first."""
        jobs: pd.DataFrame = self.jobs[self.jobs["is_listed"].astype(bool) & self.jobs["exceeds_2x_share"].notna()]
        return jobs


def fetch_jobs(connection: Connection, source: str, params: ReportParams) -> JobsData:
    """Everything that the result needs.

    Raises NotFound if the source has no summary, BadInput if it mixes simulated with measured runs."""
    refuse_mixture(connection, source)
    summary = fetch_summary(connection, source)
    summary_params = SummaryParams.model_validate(summary["parameters"])
    model_row = connection.execute(MEASURED_MODEL, {"source": source}).fetchone()
    model_id = str(model_row[0]) if model_row else None
    rows = connection.execute(MODEL_FIGURES, {"source": source, "model_id": model_id}).fetchall() if model_row else []
    shapes = {kind: fetched for kind in KINDS if (fetched := fetch_shapes(connection, source, kind)) is not None}
    version = f"data version {summary['data_version']}"
    return JobsData(
        **vars(fetch_intake(connection, WORD, source)),
        summary=summary,
        summary_params=summary_params,
        least=params.min_support,
        jobs=connection.execute(JOBS, {"source": source, "least": params.min_support}).df(),
        history=tuple(history_sections(connection, source, summary_params, summary["slow_share"], version)),
        shapes=shapes,
        model_id=model_id,
        figures=dict(rows),
        tables={
            name: connection.execute(ROWS.format(name=name, order=order), {"source": source}).df()
            for name, order in TABLES.items()
        },
    )


def jobs_result(data: JobsData, item: str = "") -> Result:
    """All that is known of the jobs of a source. item: address of the pages of single jobs."""
    summary = data.summary
    of = f"{summary['n_runs']:,} runs of {summary['n_groups']:,} jobs"
    if summary["n_runs"]:
        of += f", submitted {moment(summary['first_at'])} to {moment(summary['last_at'])} (UTC)"
    rests_on = f"data version {summary['data_version']}, {of}" + (f"; {summary['key']}" if summary.get("key") else "")
    parts = {"facts": _facts(data), "notices": _notices(data), "sections": _sections(data, item)}
    return data.result(_answer(data), _certainty(data), rests_on, METHOD, reasons=_reasons(data), **parts)


def _answer(data: JobsData) -> tuple[str, str, State]:
    """Which next runs are likely to be late, what to do, and whether somebody has to look."""
    listed, summary = data.listed, data.summary
    if not summary["n_supported_groups"]:
        least = data.summary_params.min_support
        return f"No job of {data.source} has {least} finished runs, so there is no variation to report.", "", "unknown"
    if listed.empty:
        cov = ratio(summary["median_cov"])
        variation = (
            f"Runtimes vary by a median COV of {cov} in {counted(summary['n_supported_groups'], 'recurring job')}"
        )
        verb = "predict" if data.model_id else "train"
        return f"{variation}; nothing is predicted yet.", f"Next: {data.command(verb)}.", "unknown"
    first = listed.iloc[0]
    n_risky = int((listed["exceeds_2x_share"] >= RISKY).sum())
    job = one_line(first["group_key"], 60)
    usual, limit = duration(first["usual_s"]), duration(first["next_p95_s"])
    likeliest = f"{job} with {share(first['exceeds_2x_share'])} (usually {usual}; 95 % under {limit})"
    chance = f"a chance of {share(RISKY)} or more to take over twice its usual time next"
    if not n_risky:
        return f"No job of {data.source} has {chance}; the likeliest is {likeliest}.", "", "good"
    helps = data.command("predict", "--job", str(first["group_key"]))
    answer = f"{n_risky:,} of {len(listed):,} jobs have {chance.replace('its', 'their')}, first {likeliest}."
    return answer, f"Why, and what would help: {helps}.", "look"


def _certainty(data: JobsData) -> str:
    """How good the model was on runs that it had not seen."""
    if not data.figures:
        return ""
    parts = [predictor_words(data.figures)]
    if (held := data.figures.get("predict.coverage90.model")) is not None:
        parts.append(f"Its 90 % intervals held {share(held)} of {count(data.figures.get('predict.n'))} held-out runs.")
    return " ".join(parts)


def _reasons(data: JobsData) -> Iterator[str]:
    if data.listed.empty:
        return
    first = data.listed.iloc[0]
    yield (
        f"Half of the {first['n_finished']:,.0f} runs of {one_line(first['group_key'], 60)} took "
        f"{duration(first['p25_s'])} to {duration(first['p75_s'])}, one in twenty over {duration(first['p95_s'])}."
    )
    yield from _reasons_by_job(data).get(str(first["group_key"]), [])[:2]


def _reasons_by_job(data: JobsData) -> dict[str, list[str]]:
    """What makes the next run of each job vary, the largest first, as sentences; a name in them stays as it is."""
    rows = data.tables["reasons"]
    rows = rows[rows["run_id"].isna() & (rows["factor"] > 1)].sort_values(["group_key", "rank"], kind="stable")
    by_job = _by_job(rows[["group_key", "words"]])
    sentences = {key: dict.fromkeys(sentence(row["words"]) for row in its_rows) for key, its_rows in by_job.items()}
    return {
        key: [f"{line[:1].upper() if line.partition(' ')[0].isalpha() else line[:1]}{line[1:]}." for line in lines]
        for key, lines in sentences.items()
    }


def _facts(data: JobsData) -> Iterator[Fact]:
    summary, summary_params = data.summary, data.summary_params
    descriptions = {
        "n_finished": (f"finished runs, {summary['n_failed']:,} failed, {summary['n_ongoing']:,} go on", count),
        "n_supported_groups": (f"jobs with {summary_params.min_support} or more of them", count),
        "median_cov": ("median COV of these jobs", ratio),
        "outlier_share_ratio": (
            f"of their runs took {number(summary_params.outlier_ratio)} × the median or more",
            share,
        ),
        "outlier_share_delta": (f"took over {duration(summary_params.outlier_delta_s)} more than the median", share),
        "slow_share": (f"of new runs took {number(STALAGMITE_RATIO)} × the historic median or more", share),
        "excess_s": ("lost to variation: time beyond the median", duration),
    }
    for key, (words, show) in descriptions.items():
        yield Fact(f"jobs.{key}", summary[key], words, show)


def _notices(data: JobsData) -> Iterator[str]:
    if data.summary["is_simulated"]:
        yield "Simulated: these runs were drawn, not measured."
    if data.summary["is_stale"]:
        yield f"Older data: files were added after the summary was made; {data.command('summary')} counts them in."
    versions = data.jobs["data_version"].dropna().unique()
    if len(versions) and any(version != data.data_version for version in versions):
        yield f"Older data: next runs are of data version {versions[0]}; {data.command('predict')} predicts anew."


def _sections(data: JobsData, item: str) -> Iterator[Section]:
    yield _jobs_section(data, item)
    yield _quality(data)
    yield from _explained(data, item)
    yield from _what_ifs(data)
    if not data.shapes:
        nothing = f"This source has no shapes yet: {data.command('characterise')} finds them."
        yield Section("Typical distributions of runtimes", nothing=nothing)
    yield from shape_sections(data.shapes, data.data_version)
    yield from data.history
    yield from intake_sections(data, "No run or job has raised an alarm", item)


def _jobs_section(data: JobsData, item: str) -> Section:
    summary_params, predicted = data.summary_params, data.jobs["predicted_at"].dropna()
    made = ""
    if len(predicted):
        model = data.jobs["model_id"].dropna().iloc[0]
        made = f", predicted as if submitted {moment(predicted.max())} (UTC) by model {model}"
    shown = table(
        records(data.jobs), Column("group_key", "job", one_line, link=f"{item}#" if item else ""),
        ("exceeds_2x_share", "twice the usual next", share), ("median_s", "median", duration),
        ("next_p95_s", "95 % stay under", duration), ("p99_s", "99 % stay under", duration),
        ("expected_excess_s", "expected beyond usual", duration), ("n_finished", "runs", count),
        ("p05_s", "5 %", duration), ("p95_s", "95 %", duration),
        Column("cov", "COV", ratio, kind="number", meaning="Standard deviation over mean"),
        Column("excess_s", "time lost", duration, kind="number",
               meaning="What its runs took beyond the median, added up"),
        ("outlier_share_ratio", f"≥ {number(summary_params.outlier_ratio)} × median", share),
        ("outlier_share_delta", f"> {duration(summary_params.outlier_delta_s)} over it", share),
        ("slow_share", "slow new runs", share), ("shape_ratio", "shape (ratio)", count),
        ("shape_delta", "shape (delta)", count), ("n_failed", "failed", count), name="list",
    )  # fmt: skip
    words = LIST_WORDS.format(
        least=data.least, statuses=" or ".join(summary_params.statuses), split_at=moment(data.summary["split_at"])
    )
    evidence = f"n = {counted(len(data.jobs), 'job')}, data version {data.summary['data_version']}{made}"
    return Section("Jobs and their next runs", words, evidence, tables=(shown,),
                   nothing="This source has no jobs yet.", is_open=True)  # fmt: skip


def _quality(data: JobsData) -> Section:
    return Section(
        "Predictors side by side",
        f"On the last part of the log, which no predictor had seen. {SIDE_BY_SIDE}",
        f"n = {count(data.figures.get('predict.n'))} runs · model {data.model_id}" if data.model_id else "",
        tables=(predictors_table(data.figures), labels_table(data.figures)),
        nothing=f"This source has no trained model yet: {data.command('train')} trains one and measures it.",
    )


def _explained(data: JobsData, item: str) -> Iterator[Section]:
    families, insights, reasons = (data.tables[name] for name in ("cause_families", "insights", "reasons"))
    moving = families_table(families)
    evidence = "".join(
        f"n = {row['n_runs']:,} runs, {row['n_long']:,} of them at least twice as long as usual · {_of_model(families)}"
        for row in moving.rows[:1]
    )
    nothing = f"Nothing is explained in this source yet: {data.command('explain')} says what makes runs long."
    yield Section("What makes runs long", REASONS_WORDS, evidence, tables=(moving,), nothing=nothing)
    shown = table(
        _longest_runs(reasons)[:MOST_EXPLAINED], Column("group_key", "job", one_line, link=f"{item}#" if item else ""),
        ("run_id", "run", one_line), ("runtime_s", "took", duration), ("usual_s", "usual", duration),
        ("expected_s", "expected", duration), ("words", "first reason"), name="long",
    )  # fmt: skip
    yield Section("Why single runs were long", RUNS_WORDS, _of_model(reasons), tables=(shown,))
    evidence = f"n = {count(insights['n_runs'].max())} held-out runs · {_of_model(insights)}"
    lacking = lacking_columns(insights)
    lines = (f"Not tested, for want of these columns of jobs.runs: {', '.join(lacking)}.",) if lacking else ()
    yield Section("The paper's insights here", INSIGHTS_WORDS, evidence, lines, tables=(insights_table(insights),))


def _of_model(rows: pd.DataFrame) -> str:
    return "".join(f"model {model_id}" for model_id in rows["model_id"].head(1))


def families_table(families: pd.DataFrame) -> Table:
    """What makes runs long, the largest first, and vary. families: rows of jobs.cause_families.

    A family that adds next to nothing to either is left out."""
    families = families.assign(family=families["family"].replace(FAMILY_WORDS))
    by = {(row["question"], row["family"]): row["share"] for row in records(families)}
    rows = [
        row | {kind: by.get((kind, row["family"])) for kind in KINDS}
        for row in records(families[families["question"] == "runtime"].sort_values("rank"))
        if max(by.get((question, row["family"])) or 0.0 for question in ("runtime", *KINDS)) >= TINY_SHARE
    ]
    return table(
        rows, ("family", "reason", "name"), ("share", "share", share), ("typical_factor", "changes a run by", times),
        ("first_share", "first reason of long runs", share), ("ratio", "of variation (ratio)", share),
        ("delta", "of variation (delta)", share),
    )  # fmt: skip


def insights_table(insights: pd.DataFrame) -> Table:
    """Whether what the paper found holds, where the log has the columns. insights: rows of jobs.insights."""
    rows = [
        row | {"interval": ends(row["low"], row["high"])}
        | {"measured_interval": ends(row["measured_low"], row["measured_high"])}
        for row in records(insights[insights["reason"] != NO_COLUMN])
    ]  # fmt: skip
    return table(
        rows, ("words", "insight", sentence), *extra(("kind", "shapes", "name")), ("verdict", "by the model", "name"),
        ("rho", "rho", ratio), ("interval", "95 % interval", "name"), ("measured_verdict", "as measured", "name"),
        *extra(("measured_rho", "rho", ratio), ("measured_interval", "95 % interval", "name"), ("reason", "not told")),
    )  # fmt: skip


def lacking_columns(insights: pd.DataFrame) -> list[str]:
    """The columns of jobs.runs that would tell of the insights that this log cannot be asked about."""
    columns, is_lacking = insights["insight"].map(NEEDED), insights["reason"] == NO_COLUMN
    told = set(columns[~is_lacking])  # a log without the operators of one insight has those of another
    return [column for column in dict.fromkeys(columns[is_lacking]) if column not in told]


def _longest_runs(reasons: pd.DataFrame) -> list[dict[str, Any]]:
    """Each explained run with its largest reason to be long, the longest against the usual time of its job first."""
    run = ["group_key", "run_id"]
    rows = reasons[(reasons["question"] == "runtime") & reasons["run_id"].notna()]
    first = rows[rows["factor"] > 1].sort_values("rank").groupby(run)["words"].first()
    runs = rows.drop_duplicates(run).drop(columns="words").merge(first.reset_index(), on=run, how="left")
    runs = runs.assign(times=runs["runtime_s"] / runs["usual_s"], words=runs["words"].fillna(NO_REASON).map(sentence))
    return records(runs.sort_values(["times", "group_key"], ascending=[False, True]))


def _what_ifs(data: JobsData) -> Iterator[Section]:
    changes, pairs, moves, claims = (data.tables[name] for name in TABLES if name.startswith("what_if"))
    scenarios = list(changes["scenario"].unique())
    by = {row["scenario"]: row for row in records(pairs)}
    rows = [
        (pair := by.get(scenario, {}))
        | {"scenario": scenario, "n_pairs": pair.get("n_pairs", 0)}
        | {"predicted": factor(pair.get("mean_predicted")), "measured": factor(pair.get("mean_measured"))}
        | {"interval": ends(pair.get("low"), pair.get("high"), share)}
        for scenario in scenarios
    ]
    shown = table(
        rows, ("scenario", "change"), ("n_pairs", "pairs", count), ("predicted", "mean change predicted"),
        ("measured", "measured"), ("right_share", "right direction", share), ("interval", "interval"),
        ("right_share_mean_change", "as other jobs went", share), ("mae_log_model", "error of the log", number),
        ("mae_log_no_change", "of no change", number), ("mae_log_mean_change", "of the mean change", number),
        ("reason", "not measured since"),
    )  # fmt: skip
    evidence = f"{counted(len(rows), 'change')} · {_of_model(changes)}" if rows else ""
    at_once = data.command("whatif", "--scenario", "no_spare")
    nothing = (
        f"No change was tried on this source yet: the flow jobs-whatif writes its answers; {at_once} asks at once."
    )
    yield Section("What a change would do", CHANGES_WORDS, evidence, tables=(shown,), nothing=nothing)
    if rows:
        from tasks.report.jobs_reasons import migration_figure  # imports the models: seconds
    for at, scenario in enumerate(scenarios):
        of, claimed = changes[changes["scenario"] == scenario], claims[claims["scenario"] == scenario]
        lines = (f"{CLAIMS[line['about']]}{sentence(line['claim'])}" for about in CLAIMS for line in records(claimed)
                 if line["about"] == about)  # fmt: skip
        moved = moves[(moves["scenario"] == scenario) & (moves["kind"] == "ratio")]
        k = int(moved[["from_shape", "to_shape"]].to_numpy().max()) + 1 if len(moved) else 0
        counts = np.zeros((k, k), dtype=np.int64)
        counts[moved["from_shape"], moved["to_shape"]] = moved["n_runs"]
        n_runs, n_jobs = int(of["n_runs"].max()), int(of["n_jobs"].max())
        yield Section(
            f"What if: {one_line(scenario)}",
            f"The change: {sentence(of['edits'].iloc[0])}.",
            f"n = {n_runs:,} runs of {n_jobs:,} jobs · model {of['model_id'].iloc[0]}",
            tuple(lines),
            (changes_table(of.set_index("measure").reindex(list(MEASURES))),),
            (migration_figure(counts, str(scenario), f"migration-{at}"),) if counts.any() else (),
        )


def changes_table(changes: pd.DataFrame) -> Table:
    """Before, after, change and its interval; changes: one row a measure, indexed by it, with before, after, change,
    low and high. What has no figure at all is left out."""
    rows = [
        {"measure": MEASURES.get(str(name), str(name))}
        | {key: _shown(str(name), row[key]) for key in ("before", "after")}
        | {"change": _signed(str(name), row["change"])}
        | {"interval": ends(row["low"], row["high"], lambda value, name=name: _signed(str(name), value))}
        for name, row in changes.iterrows()
        if not pd.isna(row["before"])
    ]
    shown = (Column(key, key, kind="number") for key in ("before", "after", "change", "interval"))
    return table(rows, ("measure", "mean over the runs"), *shown)


def _shown(name: str, value: Any) -> str:
    if value is None or pd.isna(value):
        return MISSING
    if name.startswith("outlier_share"):
        return share(value)
    return duration(value) if name.endswith("_s") and name != "token_s" else number(value)


def _signed(name: str, value: Any) -> str:
    if value is None or pd.isna(value):
        return MISSING
    sign, shown = "+" if value > 0 else "−" if value < 0 else "", _shown(name, abs(value))
    if shown.startswith("<"):  # too small for its digits
        return f"{'<' if value > 0 else '>'} {sign}{shown.removeprefix('< ')}"
    return sign + shown


def factor(log_ratio: Any) -> str:
    """What a logarithm of a ratio multiplies by: 1.20 ×."""
    return MISSING if log_ratio is None or pd.isna(log_ratio) else times(math.exp(log_ratio))


def ends(low: Any, high: Any, show: Any = ratio) -> str:
    """An interval; a dash if it is not known."""
    return MISSING if low is None or high is None or pd.isna(low) or pd.isna(high) else f"{show(low)} to {show(high)}"


def item_chart() -> charts.Chart:
    """The chart of the history of a job, with one row that stands for all."""
    row = {"submitted_at": pd.Timestamp(0), "runtime_s": 1.0, "is": "as usual", **dict.fromkeys(QUANTILES, 1.0)}
    return charts.fan(pd.DataFrame([row]), TONES, is_next=True, height=260)


def job_items(connection: Connection, data: JobsData) -> Iterator[tuple[str, Result]]:
    """Each job with its result: history, next run with its chances, reasons, shapes, and alarms."""
    values, statuses = {"source": data.source}, list(data.summary_params.statuses)
    runs = connection.execute(HISTORY, values | {"statuses": statuses, "most": MOST_OF_ITEM}).df()
    shapes, alarms = (_by_job(connection.execute(sql, values).df()) for sql in (SHAPES_OF_JOBS, ALARMS_OF_JOBS))
    columns, history = charts.parts_of(_history(runs, data), "group_key")
    reasons = _reasons_by_job(data)
    for row in records(data.jobs):
        key = str(row["group_key"])
        seen = None
        if key in history:
            n = sum(entry[1] is not None for entry in history[key])
            seen = Figure("history", "Runs and the next one", HISTORY_WORDS, f"n = {n:,} latest finished runs",
                          use="history", columns=columns, rows=history[key])  # fmt: skip
        yield key, _item(data, row, seen, shapes.get(key, []), alarms.get(key, []), reasons.get(key, []))


def _by_job(rows: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    by_job: dict[str, list[dict[str, Any]]] = {}
    for row in records(rows):
        by_job.setdefault(str(row["group_key"]), []).append(row)
    return by_job


def _history(runs: pd.DataFrame, data: JobsData) -> pd.DataFrame:
    """The latest runs of each job, and last the interval of its next one."""
    jobs = data.jobs.set_index("group_key")
    slow = runs["runtime_s"] >= STALAGMITE_RATIO * runs["group_key"].map(jobs["median_s"])
    runs = runs.assign(**{"is": np.where(slow, "slow", "as usual")}, **dict.fromkeys(QUANTILES, np.nan))
    latest = runs.groupby("group_key")["submitted_at"].max()
    coming = jobs[jobs["exceeds_2x_share"].notna() & jobs.index.isin(latest.index)]
    last = pd.DataFrame({name: coming[name if name == "p50_s" else f"next_{name}"] for name in QUANTILES})
    at = np.maximum(coming["predicted_at"], latest.reindex(coming.index))
    last = last.assign(submitted_at=at, runtime_s=np.nan, **{"is": "next run"}).reset_index()
    return pd.concat([runs, last[list(runs)]], ignore_index=True) if len(last) else runs


def _item(
    data: JobsData,
    row: Mapping[str, Any],
    seen: Figure | None,
    shapes: list[dict[str, Any]],
    alarms: list[dict[str, Any]],
    why: list[str],
) -> Result:
    key, chance = str(row["group_key"]), row["exceeds_2x_share"]
    is_predicted = chance is not None and chance == chance
    state: State = "unknown"
    half = duration(row["median_s"])
    answer = f"{row['n_finished']:,} finished runs, half of them under {half}; its next run is not predicted."
    if is_predicted:
        state = "look" if chance >= RISKY else "good"
        answer = (
            f"The next run takes over twice its usual {duration(row['usual_s'])} with a chance of {share(chance)}; "
            f"it stays under {duration(row['next_p95_s'])} with 95 %."
        )
    facts = (
        Fact("jobs.item.n_finished", row["n_finished"], f"finished runs, {row['n_failed']:,} failed", count),
        Fact("jobs.item.median_s", row["median_s"], "median", duration),
        Fact("jobs.item.cov", row["cov"], "COV", ratio),
        Fact("jobs.item.excess_s", row["excess_s"], "lost to variation", duration),
    )
    sections = []
    if seen is not None:
        sections.append(Section(seen.title, figures=(seen,), is_open=True))
    if is_predicted:
        rows = [{"what": words, "value": row[name]} for name, words in MADE_UP.items()]
        shown = table(rows, ("what", "next run"), ("value", "time", duration))
        sections.append(Section("Next run", evidence=f"model {row['model_id']}", tables=(shown,)))
    shown = table(shapes, ("kind", "normalisation"), ("label", "shape", count), ("posterior", "posterior", share))
    sections.append(Section("Typical distribution", tables=(shown,)))
    shown = table(
        alarms[:MOST_ALARMS], ("message", "what happened", sentence), ("kind", "kind"),
        ("raised_at", "raised (UTC)", moment),
    )  # fmt: skip
    sections.append(Section("Alarms", tables=(shown,)))
    action = f"Why, and what would help: {data.command('predict', '--job', key)}."
    reasons = tuple(why[:3])
    return Result(one_line(key), answer, "", reasons, facts=facts, sections=tuple(sections), state=state, action=action)
