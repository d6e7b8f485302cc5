"""What is known of the jobs of a source: which next runs are likely to be late, how runtimes vary and why, and what a
change would do."""

import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tasks.jobs.normalisation import Counts
from tasks.jobs.params import MEASURES, Kind, ReportParams, SummaryParams
from tasks.jobs.summary import fetch_summary, refuse_mixture
from tasks.quantities import MISSING, duration, number, ratio, share
from tasks.report import charts
from tasks.report.intake import Intake, fetch_intake, intake_sections
from tasks.report.jobs_evaluation import (
    SIDE_BY_SIDE,
    label_rows,
    labels_table,
    predictor_rows,
    predictor_words,
    predictors_table,
)
from tasks.report.jobs_history import History, fetch_history, history_sections
from tasks.report.jobs_shapes import KindOfShapes, fetch_shapes, shape_sections
from tasks.report.result import (
    Column,
    Fact,
    Figure,
    Result,
    Section,
    Table,
    count,
    moment,
    numbers,
    one_line,
    records,
    sentence,
)
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse

WORD = "jobs"
KINDS: tuple[Kind, ...] = ("ratio", "delta")
RISKY = 0.25  # chance of taking twice the usual from which a job is counted as likely to be late
MOST_OF_ITEM = 60  # runs in the history of a job
MOST_EXPLAINED = 200
NOT_CAUSES = "These are reasons of the prediction, which need not be causes of the runtime."
NO_REASON = "nothing that was known at submission"
METHOD = (
    "Method and figures after Zhu et al., Runtime Variation in Big Data Analytics, 2023; where they differ, "
    "tasks/jobs/README.md says why. Shapes are numbered by rising gap between the 25th and the 75th percentile, 0 the "
    "steadiest. COV: standard deviation over mean."
)
ORDERS = {
    "reasons": "the reasons of each run",
    "importance": "one order for all: importance over the training runs",
    "frequency": "one order for all: how often each cause was recorded before",
    "random": "a random order",
}
CLAIMS = {
    "can": "What the figures support",
    "cannot": "What they do not",
    "move_ratio": "Moves between shapes (ratio to the historic median)",
    "move_delta": "Moves between shapes (seconds from the historic median)",
}
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
    "cause_checks": "cause, order_name",
    "insights": "kind DESC, rank",
    "explanations": "model_id",
    "what_ifs": "scenario, measure",
    "what_if_pairs": "scenario",
    "what_if_moves": "scenario, kind, from_shape, to_shape",
    "what_if_claims": "scenario, about, place",
    "reasons": "group_key, run_id, question, rank",
}
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
class JobsData:
    """Everything that is known of the jobs of a source, of one moment.

    summary: the row of jobs.summaries; jobs: one row a job, the likeliest to be late first; tables: by their names in
    TABLES; figures: of the model in use, by key."""

    source: str
    summary: dict[str, Any]
    asked: SummaryParams
    least: int
    jobs: pd.DataFrame
    history: History
    shapes: dict[Kind, KindOfShapes]
    model_id: str | None
    figures: dict[str, float | None]
    tables: dict[str, pd.DataFrame]
    intake: Intake

    @property
    def data_version(self) -> str:
        """Of the files that the source has now."""
        return self.intake.data_version

    @property
    def listed(self) -> pd.DataFrame:
        """Jobs with a prediction and enough runs, the likeliest to be late first."""
        found: pd.DataFrame = self.jobs[self.jobs["is_listed"].astype(bool) & self.jobs["exceeds_2x_share"].notna()]
        return found

    def command(self, verb: str, *more: str) -> str:
        """The command that makes what is missing."""
        return shlex.join(["whorl", WORD, verb, "--source", self.source, *more])


def fetch_jobs(connection: Connection, source: str, params: ReportParams) -> JobsData:
    """Everything that the result needs.

    Raises NotFound if the source has no summary, BadInput if it mixes simulated with measured runs."""
    refuse_mixture(connection, source)
    summary = fetch_summary(connection, source)
    asked = SummaryParams.model_validate(summary["parameters"])
    told = connection.execute(MEASURED_MODEL, {"source": source}).fetchone()
    model_id = str(told[0]) if told else None
    rows = connection.execute(MODEL_FIGURES, {"source": source, "model_id": model_id}).fetchall() if told else []
    shapes = {kind: found for kind in KINDS if (found := fetch_shapes(connection, source, kind)) is not None}
    return JobsData(
        source=source,
        summary=summary,
        asked=asked,
        least=params.min_support,
        jobs=connection.execute(JOBS, {"source": source, "least": params.min_support}).df(),
        history=fetch_history(connection, source, asked, params),
        shapes=shapes,
        model_id=model_id,
        figures=dict(rows),
        tables={name: _rows(connection, name, source) for name in TABLES},
        intake=fetch_intake(connection, WORD, source),
    )


def _rows(connection: Connection, name: str, source: str) -> pd.DataFrame:
    sql = f"SELECT * FROM jobs.{name} WHERE source = $source ORDER BY {TABLES[name]}"
    return connection.execute(sql, {"source": source}).df()


def jobs_result(data: JobsData, item: str = "") -> Result:
    """All that is known of the jobs of a source. item: address of the pages of single jobs."""
    answer, action, state = _answer(data)
    summary = data.summary
    period = (
        f", submitted {moment(summary['first_at'])} to {moment(summary['last_at'])} (UTC)" if summary["n_runs"] else ""
    )
    return Result(
        f"Jobs: {data.source}",
        answer,
        _certainty(data),
        tuple(_reasons(data)),
        made_of=f"source {data.source}, data version {summary['data_version']}, {summary['n_runs']:,} runs of "
        f"{summary['n_groups']:,} jobs{period}",
        again=shlex.join(["whorl", "report", WORD, "--source", data.source]),
        facts=tuple(_facts(data)),
        notices=tuple(_notices(data)),
        sections=tuple(_sections(data, item)),
        action=action,
        state=state,
        method=METHOD,
    )


def _answer(data: JobsData) -> tuple[str, str, Literal["good", "look", "unknown"]]:
    """Which next runs are likely to be late, what to do, and whether somebody has to look."""
    listed, summary = data.listed, data.summary
    if not summary["n_supported_groups"]:
        least = data.asked.min_support
        return f"No job of {data.source} has {least} finished runs, so there is no variation to report.", "", "unknown"
    if listed.empty:
        cov = ratio(summary["median_cov"])
        told = f"Runtimes of {summary['n_supported_groups']:,} recurring jobs vary by a median COV of {cov}"
        verb = "predict" if data.model_id else "train"
        return f"{told}; nothing is predicted yet.", f"Next: {data.command(verb)}.", "unknown"
    first = listed.iloc[0]
    n_risky = int((listed["exceeds_2x_share"] >= RISKY).sum())
    job = one_line(first["group_key"], 60)
    usual, limit = duration(first["usual_s"]), duration(first["next_p95_s"])
    one = f"{job} with {share(first['exceeds_2x_share'])} (usually {usual}; 95 % under {limit})"
    chance = f"a chance of {share(RISKY)} or more to take over twice its usual time next"
    if not n_risky:
        return f"No job of {data.source} has {chance}; the likeliest is {one}.", "", "good"
    helps = data.command("whatif", "--job", str(first["group_key"]), "--scenario", "no_spare")
    answer = f"{n_risky:,} of {len(listed):,} jobs have {chance.replace('its', 'their')}, first {one}."
    return answer, f"What would help: {helps}.", "look"


def _certainty(data: JobsData) -> str:
    """How good the model was on runs that it had not seen."""
    if not data.figures:
        return ""
    parts = [predictor_words({row["name"]: row["crps"] for row in predictor_rows(data.figures)})]
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
    for words in _reasons_of(data.tables["reasons"], str(first["group_key"]))[:2]:
        yield f"{words}."


def _reasons_of(reasons: pd.DataFrame, key: str) -> list[str]:
    """What makes the next run of a job vary, the largest first."""
    own = reasons[(reasons["group_key"] == key) & reasons["run_id"].isna() & (reasons["factor"] > 1)]
    return [sentence(words) for words in dict.fromkeys(own.sort_values("rank")["words"])]


def _facts(data: JobsData) -> Iterator[Fact]:
    summary, asked = data.summary, data.asked
    words = f"finished runs, {summary['n_failed']:,} failed, {summary['n_ongoing']:,} go on"
    yield Fact("jobs.n_finished", summary["n_finished"], words, count)
    yield Fact(
        "jobs.n_supported_groups",
        summary["n_supported_groups"],
        f"jobs with {asked.min_support} or more of them",
        count,
    )
    yield Fact("jobs.median_cov", summary["median_cov"], "median COV of these jobs", ratio)
    words = f"of their runs took {number(asked.outlier_ratio)} × the median or more"
    yield Fact("jobs.outlier_share_ratio", summary["outlier_share_ratio"], words, share)
    words = f"took over {duration(asked.outlier_delta_s)} more than the median"
    yield Fact("jobs.outlier_share_delta", summary["outlier_share_delta"], words, share)
    words = f"of new runs took {number(asked.slow_ratio)} × the historic median or more"
    yield Fact("jobs.slow_share", summary["slow_share"], words, share)
    yield Fact("jobs.excess_s", summary["excess_s"], "lost to variation: time beyond the median", duration)


def _notices(data: JobsData) -> Iterator[str]:
    if data.summary["is_simulated"]:
        yield "Simulated: these runs were drawn, not measured."
    if data.summary["is_stale"]:
        yield f"Older data: files were added after the summary was made; {data.command('summary')} counts them in."
    versions = data.jobs["data_version"].dropna().unique()
    if len(versions) and any(version != data.data_version for version in versions):
        yield f"Older data: next runs are of data version {versions[0]}; {data.command('predict')} predicts anew."


def _sections(data: JobsData, item: str) -> Iterator[Section]:
    summary, version = data.summary, f"data version {data.summary['data_version']}"
    yield _jobs_section(data, item)
    yield _quality(data)
    yield from _explained(data)
    yield from _what_ifs(data)
    missing = f"This source has no shapes yet: {data.command('characterise')} finds them."
    yield from shape_sections(data.shapes, data.data_version, missing)
    yield from history_sections(data.history, data.asked, summary["slow_share"], version)
    recurring = (
        f"{share(summary['recurring_share'])} of the runs belong to a job that ran at least twice, "
        f"{share(summary['support_3_share'])} to one that ran at least 3 times, {share(summary['support_20_share'])} "
        "to one that ran at least 20 times.",
        f"Finished runs are those with status {' or '.join(data.asked.statuses)} and a runtime. Historic: the first "
        f"{100 * data.asked.history_share:g} % of the finished runs by submission, until "
        f"{moment(summary['split_at'])}.",
    )
    yield Section("Which jobs recur", evidence=f"n = {summary['n_runs']:,} runs, {version}", lines=recurring)
    yield from intake_sections(data.intake, "No run or job has raised an alarm", data.command("watch"))


def _jobs_section(data: JobsData, item: str) -> Section:
    asked = data.asked
    columns = (
        Column("group_key", "job", one_line, link=f"{item}#" if item else ""),
        *numbers(("exceeds_2x_share", "twice the usual next", share), ("usual_s", "usual", duration)),
        *numbers(("next_p95_s", "95 % stay under", duration), ("p99_s", "99 % stay under", duration)),
        *numbers(("expected_excess_s", "expected beyond usual", duration), ("n_finished", "runs", count)),
        *numbers(("median_s", "median", duration), ("p05_s", "5 %", duration), ("p95_s", "95 %", duration)),
        Column("cov", "COV", ratio, is_number=True, meaning="Standard deviation over mean"),
        Column(
            "excess_s", "time lost", duration, is_number=True, meaning="What its runs took beyond the median, added up"
        ),
        *numbers(("outlier_share_ratio", f"≥ {number(asked.outlier_ratio)} × median", share)),
        *numbers(("outlier_share_delta", f"> {duration(asked.outlier_delta_s)} over it", share)),
        *numbers(("slow_share", "slow new runs", share), ("shape_ratio", "shape (ratio)", count)),
        *numbers(("shape_delta", "shape (delta)", count), ("n_failed", "failed", count)),
    )
    predicted = data.jobs["predicted_at"].dropna()
    made = (
        f", predicted as if submitted {moment(predicted.max())} (UTC) by model {data.jobs['model_id'].dropna().iloc[0]}"
        if len(predicted)
        else ""
    )
    words = (
        f"All jobs, the likeliest to take twice their usual time first; jobs under {data.least} finished runs stand "
        "last. Sort by COV for what varies most, by time lost for what costs most, by runs for what runs most often."
    )
    return Section(
        "Jobs and their next runs",
        words,
        f"n = {len(data.jobs):,} jobs, data version {data.summary['data_version']}{made}",
        tables=(Table("", "", columns, records(data.jobs), name="list"),),
        nothing="This source has no jobs yet.",
        is_open=True,
    )


def _quality(data: JobsData) -> Section:
    labels = label_rows(data.figures)
    return Section(
        "Predictors side by side",
        f"On the last part of the log, which no predictor had seen. {SIDE_BY_SIDE}",
        f"n = {count(data.figures.get('predict.n'))} runs · model {data.model_id}" if data.model_id else "",
        tables=(predictors_table(predictor_rows(data.figures)), labels_table(labels)),
        nothing=f"This source has no trained model yet: {data.command('train')} trains one and measures it.",
    )


def _explained(data: JobsData) -> Iterator[Section]:
    families, checks, insights, reasons = (
        data.tables[name] for name in ("cause_families", "cause_checks", "insights", "reasons")
    )
    nothing = f"Nothing is explained in this source yet: {data.command('explain')} says what makes runs long."
    by = {(row["question"], row["family"]): row["share"] for row in records(families)}
    rows = [
        row | {kind: by.get((kind, row["family"])) for kind in KINDS}
        for row in records(families[families["question"] == "runtime"].sort_values("rank"))
    ]
    columns = (
        Column("family", "reason"),
        *numbers(
            ("share", "share", share),
            ("typical_factor", "on average", _times),
            ("first_share", "first reason of long runs", share),
        ),
        *numbers(("ratio", "of variation (ratio)", share), ("delta", "of variation (delta)", share)),
    )
    evidence = (
        f"n = {rows[0]['n_runs']:,} runs, {rows[0]['n_long']:,} of them at least twice as long as usual · model "
        f"{rows[0]['model_id']}"
        if rows
        else ""
    )
    of_all = {row["order_name"]: row for row in records(checks[checks["cause"] == "all"])}
    checked = [
        {"name": words, "mrr": of_all[key]["mrr"], "interval": _lead(key, of_all[key]), "n": of_all[key]["n"]}
        for key, words in ORDERS.items()
        if key in of_all
    ]
    check_columns = (
        Column("name", "order"),
        *numbers(("mrr", "mean reciprocal rank", ratio), ("n", "runs", count)),
        Column("interval", "95 % interval"),
    )
    check_words = (
        "Mean reciprocal rank of the cause that was recorded with a long run: 1 if it always comes first. Beside it "
        "orders that look at no run."
    )
    yield Section(
        "What makes runs long",
        "By how much the families of features move the expected runtime of held-out runs, and the odds that their "
        f"job varies much. {NOT_CAUSES}",
        evidence,
        tables=(
            Table("", "", columns, rows),
            Table("The recorded cause among the reasons", check_words, check_columns, checked),
        ),
        nothing=nothing,
    )
    long_runs, next_runs = _runs_explained(reasons)
    if long_runs or next_runs:
        columns = (
            Column("group_key", "job", one_line),
            Column("run_id", "run", one_line),
            *numbers(
                ("runtime_s", "took", duration), ("usual_s", "usual", duration), ("expected_s", "expected", duration)
            ),
            Column("words", "first reason"),
        )
        yield Section(
            "Why single runs were long",
            "The longest recent runs against the usual time of their job, and the next runs of the riskiest jobs, "
            f"each with its first reason to be longer, or to vary. {NOT_CAUSES}",
            f"model {reasons['model_id'].iloc[0]}",
            tables=(
                Table("Longest runs", "", columns, long_runs[:MOST_EXPLAINED], "long"),
                Table("Next runs", "", (columns[0], *columns[3:]), next_runs[:MOST_EXPLAINED], "varying"),
            ),
        )
    if len(insights):
        columns = (
            Column("words", "insight", sentence),
            Column("kind", "shapes"),
            Column("verdict", "by the model"),
            *numbers(("rho", "rho", ratio)),
            Column("interval", "95 % interval"),
            Column("measured_verdict", "as measured"),
            *numbers(("measured_rho", "rho", ratio)),
            Column("measured_interval", "95 % interval"),
            Column("reason", "not told"),
        )
        rows = [
            row
            | {
                "interval": ends(row["low"], row["high"]),
                "measured_interval": ends(row["measured_low"], row["measured_high"]),
            }
            for row in records(insights)
        ]
        yield Section(
            "The paper's insights here",
            "Whether what Zhu et al. found holds in this source: by the model, whose rho says how the feature goes "
            "with the odds of a variable shape, and as measured, without a model, with the distance of each run from "
            "the usual time of its job.",
            f"n = {int(insights['n_runs'].max()):,} held-out runs · model {insights['model_id'].iloc[0]}",
            tables=(Table("", "", columns, rows),),
        )


def _runs_explained(reasons: pd.DataFrame) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Each explained run with its largest reason to be long, and each next run with its largest reason to vary."""
    found = []
    for question, is_past in (("runtime", True), ("variation", False)):
        rows = reasons[(reasons["question"] == question) & (reasons["run_id"].notna() == is_past)]
        over = "runtime_s" if is_past else "expected_s"
        longer = (
            rows[rows["factor"] > 1].sort_values("rank").groupby(["group_key", "run_id"], dropna=False)["words"].first()
        )
        runs = rows.drop_duplicates(["group_key", "run_id"]).assign(times=lambda one: one[over] / one["usual_s"])  # noqa: B023
        runs = runs.drop(columns="words").merge(longer.reset_index(), on=["group_key", "run_id"], how="left")
        ordered = records(runs.sort_values(["times", "group_key"], ascending=[False, True]))
        found.append(
            [row | {"words": sentence(row["words"]) if isinstance(row["words"], str) else NO_REASON} for row in ordered]
        )
    return found[0], found[1]


@dataclass(frozen=True)
class AnsweredWhatIf:
    """One scenario. changes: rows of jobs.what_ifs by measure; pairs: its row of jobs.what_if_pairs; moves: runs by
    shape before and after, (k, k), of ratios; claims: sentences by what they are about."""

    scenario: str
    edits: str
    model_id: str
    changes: pd.DataFrame
    pairs: dict[str, Any] | None
    moves: Counts
    claims: dict[str, list[str]]


def fetch_what_ifs(warehouse: Warehouse, source: str) -> list[AnsweredWhatIf]:
    """The answers to what-if questions that stand in the tables of a source, by scenario."""
    with reading(warehouse) as connection:
        return answered({name: _rows(connection, name, source) for name in TABLES if name.startswith("what_if")})


def answered(tables: Mapping[str, pd.DataFrame]) -> list[AnsweredWhatIf]:
    """The answers that stand in tables of what-ifs."""
    found = []
    for scenario in tables["what_ifs"]["scenario"].unique():
        changes, pairs, moves, claims = (
            tables[name][tables[name]["scenario"] == scenario]
            for name in ("what_ifs", "what_if_pairs", "what_if_moves", "what_if_claims")
        )
        told = {str(about): [str(line) for line in lines["claim"]] for about, lines in claims.groupby("about")}
        pair = None
        if len(pairs):
            pair = {str(key): None if pd.isna(value) else value for key, value in pairs.iloc[0].items()}
        edits, model_id = str(changes["edits"].iloc[0]), str(changes["model_id"].iloc[0])
        by_measure = changes.set_index("measure").reindex(list(MEASURES))
        counts = _migration(moves[moves["kind"] == "ratio"])
        found.append(AnsweredWhatIf(str(scenario), edits, model_id, by_measure, pair, counts, told))
    return found


def _migration(moves: pd.DataFrame) -> Counts:
    """Runs by shape before (rows) and after (columns): (k, k) up to the last shape that any run has."""
    k = int(moves[["from_shape", "to_shape"]].to_numpy().max()) + 1 if len(moves) else 0
    counts = np.zeros((k, k), dtype=np.int64)
    counts[moves["from_shape"], moves["to_shape"]] = moves["n_runs"]
    return counts


def _what_ifs(data: JobsData) -> Iterator[Section]:
    answers = answered(data.tables)
    rows = []
    for one in answers:
        pair = one.pairs or {}
        rows.append(
            pair
            | {"scenario": one.scenario, "n_pairs": pair.get("n_pairs") or 0}
            | {"predicted": factor(pair.get("mean_predicted")), "measured": factor(pair.get("mean_measured"))}
            | {"interval": ends(pair.get("low"), pair.get("high"), share)}
        )
    columns = (
        Column("scenario", "change"),
        *numbers(
            ("n_pairs", "pairs", count), ("predicted", "mean change predicted", str), ("measured", "measured", str)
        ),
        *numbers(("right_share", "right direction", share)),
        Column("interval", "interval"),
        *numbers(
            ("right_share_mean_change", "as other jobs went", share), ("mae_log_model", "error of the log", number)
        ),
        *numbers(("mae_log_no_change", "of no change", number), ("mae_log_mean_change", "of the mean change", number)),
        Column("reason", "not measured since"),
    )
    at_once = data.command("whatif", "--scenario", "no_spare")
    nothing = (
        f"No change was tried on this source yet: the flow jobs-whatif writes its answers; {at_once} asks at once."
    )
    yield Section(
        "What a change would do",
        "Each change is made in what is known of held-out runs, and the model predicts them again. Where runs were "
        "done again with the change, the prediction is held against them, each pair by the logarithm of the changed "
        "over the unchanged runtime.",
        f"{len(rows)} changes · model {answers[0].model_id}" if answers else "",
        tables=(Table("", "", columns, rows),),
        nothing=nothing,
    )
    if answers:
        from tasks.report.jobs_reasons import MigrationMap, migration_figure  # imports the models: seconds
    for at, one in enumerate(answers):
        lines = (f"{title}: {sentence(line)}" for about, title in CLAIMS.items() for line in one.claims.get(about, ()))
        moves = migration_figure(MigrationMap(one.moves, one.scenario), f"migration-{at}") if one.moves.any() else None
        n_runs, n_jobs = int(one.changes["n_runs"].max()), int(one.changes["n_jobs"].max())
        yield Section(
            f"What if: {one_line(one.scenario)}",
            sentence(one.edits),
            f"n = {n_runs:,} runs of {n_jobs:,} jobs · model {one.model_id}",
            tuple(lines),
            (changes_table(one.changes),),
            (moves,) if moves else (),
        )


def change_rows(changes: pd.DataFrame) -> list[dict[str, str]]:
    """measure, before, after, change and interval in words; changes: one row a measure, indexed by it, with before,
    after, change, low and high. What has no figure at all is left out."""
    return [
        {
            "measure": MEASURES.get(str(name), str(name)),
            "before": _shown(str(name), row["before"]),
            "after": _shown(str(name), row["after"]),
            "change": _signed(str(name), row["change"]),
            "interval": MISSING
            if pd.isna(row["low"]) or pd.isna(row["high"])
            else f"{_signed(str(name), row['low'])} to {_signed(str(name), row['high'])}",
        }
        for name, row in changes.iterrows()
        if not pd.isna(row["before"])
    ]


def changes_table(changes: pd.DataFrame) -> Table:
    """The same as a table."""
    shown = numbers(*((key, key, str) for key in ("before", "after", "change", "interval")))
    return Table("", "", (Column("measure", "mean over the runs"), *shown), change_rows(changes))


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
    return MISSING if log_ratio is None or pd.isna(log_ratio) else _times(math.exp(log_ratio))


def _times(value: float) -> str:
    return f"{ratio(value)} ×"


def ends(low: Any, high: Any, show: Any = ratio) -> str:
    """An interval; a dash if it is not known."""
    return MISSING if low is None or high is None or pd.isna(low) or pd.isna(high) else f"{show(low)} to {show(high)}"


def _lead(order: str, row: Mapping[str, Any]) -> str:
    """Of the reasons the interval is of the figure itself, of the others of the lead that the reasons have."""
    told = ends(row["low"], row["high"])
    return told if order == "reasons" or told == MISSING else f"reasons lead by {told}"


def item_chart() -> charts.Chart:
    """The chart of the history of a job, with one row that stands for all."""
    row = {"submitted_at": pd.Timestamp(0), "runtime_s": 1.0, "is": "as usual", **dict.fromkeys(QUANTILES, 1.0)}
    return charts.history(pd.DataFrame([row]))


QUANTILES = ("p05_s", "p25_s", "p50_s", "p75_s", "p95_s")


def job_items(connection: Connection, data: JobsData) -> Iterator[tuple[str, Result]]:
    """Each job with its result: history, next run with its chances, reasons, shapes, and alarms."""
    asked = {"source": data.source}
    runs = connection.execute(HISTORY, asked | {"statuses": list(data.asked.statuses), "most": MOST_OF_ITEM}).df()
    shapes, alarms = (connection.execute(sql, asked).df() for sql in (SHAPES_OF_JOBS, ALARMS_OF_JOBS))
    by_job, by_shape, by_alarm = (dict(list(frame.groupby("group_key"))) for frame in (runs, shapes, alarms))
    reasons = data.tables["reasons"]
    explained = set(reasons["group_key"])
    for row in records(data.jobs):
        key = str(row["group_key"])
        why = _reasons_of(reasons, key) if key in explained else []
        yield key, _item(data, row, by_job.get(key), by_shape.get(key), by_alarm.get(key), why)


def _item(
    data: JobsData,
    row: Mapping[str, Any],
    runs: pd.DataFrame | None,
    shapes: pd.DataFrame | None,
    alarms: pd.DataFrame | None,
    why: list[str],
) -> Result:
    key, chance = str(row["group_key"]), row["exceeds_2x_share"]
    is_predicted = chance is not None and chance == chance
    state: Literal["good", "look", "unknown"] = "unknown"
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
    if runs is not None:
        runs = runs.reset_index(drop=True)
        slow = runs["runtime_s"] >= data.asked.slow_ratio * row["median_s"]
        shown = pd.DataFrame(
            {
                "submitted_at": runs["submitted_at"],
                "runtime_s": runs["runtime_s"],
                "is": np.where(slow, "slow", "as usual"),
            }
        ).assign(**dict.fromkeys(QUANTILES, np.nan))
        if is_predicted:
            quantiles = {name: row["p50_s"] if name == "p50_s" else row[f"next_{name}"] for name in QUANTILES}
            after = {
                "submitted_at": max(row["predicted_at"], runs["submitted_at"].max()),
                "runtime_s": np.nan,
                "is": "next run",
            }
            shown.loc[len(shown)] = after | quantiles
        words = "The latest runs, and at the right the interval that the next one is expected in (90 %, 50 %, median)."
        one = Figure(
            "history",
            "Runs and the next one",
            words,
            f"n = {len(runs):,} latest finished runs",
            use="history",
            data=shown,
        )
        sections.append(Section("Runs and the next one", figures=(one,), is_open=True))
    if is_predicted:
        told = [
            {"what": words, "value": row[name]}
            for name, words in (
                ("next_p05_s", "5 % stay under"), ("next_p25_s", "25 % stay under"), ("p50_s", "median"),
                ("next_p75_s", "75 % stay under"), ("p90_s", "90 % stay under"), ("next_p95_s", "95 % stay under"),
                ("p99_s", "99 % stay under"), ("expected_excess_s", "expected beyond the usual"),
            )
        ]  # fmt: skip
        columns = (Column("what", "next run"), *numbers(("value", "time", duration)))
        sections.append(
            Section("Next run", evidence=f"model {row['model_id']}", tables=(Table("", "", columns, told),))
        )
    if shapes is not None:
        columns = (
            Column("kind", "normalisation"),
            *numbers(("label", "shape", count), ("posterior", "posterior", share)),
        )
        sections.append(Section("Typical distribution", tables=(Table("", "", columns, records(shapes)),)))
    if alarms is not None:
        columns = (
            Column("message", "what happened", sentence),
            Column("kind", "kind"),
            Column("raised_at", "raised (UTC)", moment),
        )
        sections.append(Section("Alarms", tables=(Table("", "", columns, records(alarms.head(20))),)))
    helps = data.command("whatif", "--job", key, "--scenario", "no_spare")
    action = f"Why, and what would help: {data.command('explain', '--job', key)}; {helps}."
    reasons = tuple(f"{words}." for words in why[:3])
    return Result(one_line(key), answer, "", reasons, facts=facts, sections=tuple(sections), state=state, action=action)
