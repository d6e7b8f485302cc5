"""What `advice` answers, described once: where to run next, which machines are alike, how long runs take elsewhere."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tasks.advice.choice import Choice
from tasks.advice.estimate import Estimate
from tasks.advice.groups import LEVEL_NAMES, Grouping
from tasks.advice.replay import CHECKPOINTS, OURS, WORDS
from tasks.advice.search import SearchProposal
from tasks.advice.story import OURS as CHOICE
from tasks.advice.story import STAY, LateCheck, Story, TypeAnswer, story_of
from tasks.advice.tarema import Assignment
from tasks.advice.transfer import TransferredRuns
from tasks.quantities import duration, number, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Column, Figure, Result, Table, columns, count, plot, records, table

MOST_STEPS = 300  # of a distribution in a figure
RATIO = "{:.3f}".format


def next_run_result(proposal: SearchProposal, again: str) -> Result:
    """What to run next, with the runs so far."""
    tried = table(
        [vars(run) for run in proposal.tried], ("machine_type", "machine type"), ("nodes", "nodes", count),
        ("runtime_s", "runtime", duration), ("cost", "cost", number), ("status", "ended"), title="Runs so far",
        words="In their order.",
    )  # fmt: skip
    prices = f"prices of {proposal.priced_on}" if proposal.priced_on else "prices without a date"
    made_of = f"{len(proposal.tried)} runs of {proposal.job}, {proposal.n_candidates} configurations, {prices}"
    title = f"Where to run {proposal.job} next"
    return Result(title, proposal.answer, proposal.certainty, proposal.reasons, (tried,), (), made_of, again)


def evaluation_result(figures: Mapping[str, Any], name: str, again: str) -> Result:
    """How good each method is on a table of runs: the figures of Perona's Figure 5."""
    tables = []
    for candidates, words in (("completed", "configurations that completed"), ("all", "all configurations")):
        for prefix, target in ((candidates, ""), (f"{candidates}.target", ", with a runtime target")):
            rows = [_row(figures, prefix, method) for method in WORDS if f"{prefix}.{method}.n" in figures]
            if rows:
                tables.append(Table(f"Among {words}{target}", _TABLE_WORDS, _columns(rows), rows))
    made_of = f"{name}: {figures['jobs']} jobs, {figures['n']:,} configurations, seed {figures['seed']}"
    answer, certainty = _verdict(figures)
    title = f"How well the cheapest configuration is found: {name}"
    return Result(title, answer, certainty, (), tuple(tables), (), made_of, again)


_TABLE_WORDS = (
    "Cost of the best valid configuration after so many runs, as a multiple of the optimum: mean, median over "
    "searches; no mean where searches had found nothing valid. Against ours: mean log difference after 6 runs, with a "
    "90 % interval over jobs; above 0 ours is cheaper."
)


def _columns(rows: list[dict[str, Any]]) -> tuple[Column, ...]:
    shown = [n for n in CHECKPOINTS if any(f"mean.{n}" in row for row in rows)]
    run_columns = (Column(f"after.{n}", f"{n} run" if n == 1 else f"{n} runs", kind="number") for n in shown)
    return columns(
        ("words", "method"), *run_columns, ("valid.6", "valid in 6", share), ("hit.6", "optimum in 6", share),
        ("against", "against ours, 6"), ("spent.6", "spent in 6", number), ("cpu_s", "CPU of a search", duration),
    )  # fmt: skip


def _row(figures: Mapping[str, Any], prefix: str, method: str) -> dict[str, Any]:
    start = f"{prefix}.{method}."
    row = {key.removeprefix(start): value for key, value in figures.items() if key.startswith(start)}
    if "minus_ours.6" in row:
        low, high = row["minus_ours.6.low"], row["minus_ours.6.high"]
        row["against"] = f"{row['minus_ours.6']:+.3f} ({low:+.3f} to {high:+.3f})"
    for n in CHECKPOINTS:
        ratios = (row.get(f"mean.{n}"), row.get(f"median.{n}"))
        row[f"after.{n}"] = ", ".join("–" if ratio is None else RATIO(ratio) for ratio in ratios)
    return {**row, "words": WORDS[method]}


def _verdict(figures: Mapping[str, Any]) -> tuple[str, str]:
    key = next(
        (f"completed.{ours}" for ours in (OURS[True], OURS[False]) if f"completed.{ours}.mean.6" in figures), None
    )
    if key is None:
        return "Searches were too short to say what is found in six runs.", ""
    mean, hit = figures[f"{key}.mean.6"], figures[f"{key}.hit.6"]
    outcome = "nothing valid in some searches" if mean is None else f"{share(mean - 1)} above the optimum on average"
    rival = "ruya" if key.endswith("memory") else "cherrypick"
    certainty = ""
    if f"completed.{rival}.minus_ours.6" in figures:
        low, high = (figures[f"completed.{rival}.minus_ours.6.{end}"] for end in ("low", "high"))
        certainty = (
            f"{WORDS[rival]} costs {signed_share(low)} to {signed_share(high)} against that (90 % interval over jobs)."
        )
    return f"After six runs: {outcome}, and the optimum itself in {share(hit)} of the searches.", certainty


def signed_share(value: float) -> str:
    """A difference in percent, with its sign."""
    return f"{'−' if value < 0 else '+'}{share(abs(value))}"


TYPES = columns(
    ("machine_type", "type"), ("verdict", "verdict"), ("late", "late", share), ("late_low", "from", share),
    ("late_high", "to", share), ("median_s", "median", duration), ("p95_s", "95 % within", duration),
    ("cost_1000_runs", "1,000 runs cost", number), ("bound", "bound by"),
)  # fmt: skip
COST_RATIO = Column("cost_ratio", "cost over the best's", RATIO, kind="number")
JOBS = columns(
    ("job", "job"), ("deadline_s", "deadline", duration), ("answer", "answer"), ("said_late", "predicted late", share),
    ("late", "was late", share), ("best", "best type"), COST_RATIO, ("is_safe", "sure"),
)  # fmt: skip
RULES = columns(
    ("rule", "rule"), ("regret", "regret", share), ("regret_low", "from", share), ("regret_high", "to", share),
    ("misses", "jobs late too often", share), ("charged", "regret with these on the dearest type", share),
    ("late", "late runs", share), COST_RATIO,
)  # fmt: skip
RUNTIMES = columns(
    ("machine_type", "type"), Column("median_error", "error of the median (log)", RATIO, kind="number"),
    ("below_p95", "runs within the said 95 %", share),
)  # fmt: skip
CALIBRATION = columns(
    ("low", "said from", share), ("high", "to", share), ("said", "said, mean", share), ("late", "was late", share),
    ("n", "jobs on types", count),
)  # fmt: skip
TYPES_WORDS = "Chance of being late with its interval, and what runs cost, as expected from the runs on one type."


def choice_result(choice: Choice, again: str) -> Result:
    """The type for one job: what it is expected to do, and what to run next."""
    made_of = f"{choice.n_runs} runs of {choice.job} on {choice.source}, {len(choice.estimates)} types"
    return _type_result(story_of(choice), f"A machine type for {choice.job}", (), made_of, again)


def story_result(story: Story, name: str, again: str, job: str | None = None) -> Result:
    """The answers from a recording and their check with the runs that were held back; job: the answer for one."""
    made_of = f"{name}: machine types are emulated, their prices invented"
    checks = story_checks(story)
    if job is not None:
        return _type_result(story, f"A machine type for {job}", checks, made_of, again)
    tables = (
        Table("Every job", "The answers beside what the held-back runs say.", JOBS, records(story.jobs)),
        Table("Plain rules beside it", "Regret: cost over that of the best type.", RULES, records(story.rules)),
        Table("Chances", "Every job on every type, by what was said.", CALIBRATION, records(story.calibration)),
        Table("Runtimes", "Medians and tails on each type over all jobs.", RUNTIMES, records(story.runtimes)),
    )
    answer, certainty, *reasons = checks
    return Result("A machine type for each job", answer, certainty, tuple(reasons), tables, (), made_of, again)


def story_checks(story: Story) -> tuple[str, ...]:
    """The check of all answers in sentences: cost, and how often they are late."""
    rules = {str(row["rule"]): row for row in story.rules.to_dict("records")}
    ours, stay = rules[CHOICE], rules[STAY]
    n_jobs = story.chosen.jobs
    return (
        f"The chosen types cost {share(ours['regret'])} more than the cheapest that are rarely late "
        f"(staying where a job is: {share(stay['regret'])}), and {round(ours['misses'] * n_jobs)} of {n_jobs} jobs "
        f"are late too often ({round(stay['misses'] * n_jobs)} if they stay).",
        _check("the chosen types", story.chosen),
        _check("all types", story.everywhere),
    )


def _check(what: str, check: LateCheck) -> str:
    verdict = "as predicted" if check.is_inside else "not as predicted"
    return (
        f"Late on {what}: {share(check.late)} of {check.runs:,} held-back runs "
        f"(90 % over jobs: {share(check.late_low)} to {share(check.late_high)}), "
        f"{verdict}: {share(check.said)}, {share(check.said_low)} to {share(check.said_high)}."
    )


def _type_result(told: TypeAnswer, title: str, checks: tuple[str, ...], made_of: str, again: str) -> Result:
    types = Table("Types", TYPES_WORDS, TYPES, records(told.types))
    reasons = (told.reason, f"next: {told.next_run}", *checks)
    return Result(title, told.answer, told.sureness, reasons, (types,), (), made_of, again)


def groups_result(
    grouping: Grouping, assigned: Sequence[Assignment], published: Mapping[str, int], name: str, again: str
) -> Result:
    """Groups of alike machines with their scores and labels, what is in doubt, and which tasks go where.

    published: the group of each machine by Tarema's original, 1 the best; empty where it cannot group."""
    aspects = tuple(grouping.noise_ratios)
    scored = [entry for aspect in aspects for entry in ((aspect, aspect, number), (f"{aspect} level", "level"))]
    rows = [
        {"name": group.name, "n": len(group.machines), **group.scores}
        | {f"{aspect} level": LEVEL_NAMES[group.levels[aspect]] for aspect in aspects}
        for group in grouping.groups
    ]
    machines = [
        {"machine": machine, "group": of, "tarema": published.get(machine)} for machine, of in grouping.group_of.items()
    ]
    tasks = [{"task": entry.task, "demands": entry.demand_class, "group": entry.group} for entry in assigned]
    tables = (
        table(
            rows, ("name", "group"), ("n", "machines", count), *scored, title="Groups",
            words="Geometric means of the scores; levels by quartiles over groups that the aspect tells apart.",
        ),
        table(
            machines, ("machine", "machine"), ("group", "group"), ("tarema", "by the original", count),
            title="Machines", words="The best group first. Beside it the group of Tarema's original, which always "
            "makes three, of unscaled scores.",
        ),
        table(
            [vars(doubt) for doubt in grouping.doubts], ("machine", "machine"), ("group", "group"),
            ("other", "or rather"), ("probability", "probability of its group", share), title="In doubt",
            words="Machines that may belong elsewhere, given how much their scores vary.",
        ),
        table(
            tasks, ("task", "task"), ("demands", "demands"), ("group", "group"), title="Tasks",
            words="The least group that has what a task demands, so that the best stay free.",
        ),
    )  # fmt: skip
    made_of = f"{name}: scores of {len(machines)} machines in {len(aspects)} aspects ({', '.join(aspects)})"
    shown = tuple(entry for entry in tables if len(entry.rows))
    return Result(f"Kinds of machines: {name}", grouping.sentence, grouping.certainty, grouping.reasons, shown, (),
                  made_of, again)  # fmt: skip


RUNTIME = (("runtime_s", "runtime", duration), ("low_s", "from", duration), ("high_s", "to", duration))


def estimate_figures(estimate: Estimate) -> dict[str, Any]:
    """The answer as whole keys and numbers, for machines."""
    return {
        **{key: getattr(estimate, key) for key in ("source", "target", "score_ratio", "aspect", "rests_on")},
        "confidence": estimate.calibration.confidence,
        "workflows": records(estimate.workflows),
        "tasks": records(estimate.tasks.drop(columns="spread")),
    }


def estimate_result(estimate: Estimate, again: str) -> Result:
    """Each task and the whole workflow on another machine."""
    sure = share(estimate.calibration.confidence)
    sentences = [
        f"{row['workflow']} takes {duration(row['runtime_s'])} on {estimate.target} "
        f"({duration(row['low_s'])} to {duration(row['high_s'])}), its {row['n_tasks']} tasks one after the other"
        for row in records(estimate.workflows)
    ]
    rows = records(estimate.tasks.sort_values("runtime_s", ascending=False))
    reasons = (
        f"One thread of {estimate.source} does {estimate.score_ratio:.3f} of the work of one of {estimate.target} "
        f"in the same time ({estimate.aspect}).",
    )
    tables = (
        table(
            records(estimate.workflows), ("workflow", "workflow"), *RUNTIME, ("n_tasks", "tasks", count),
            title="Workflows", words="All tasks one after the other, one run of each.",
        ),
        table(
            rows, ("workflow", "workflow"), ("task", "task"), *RUNTIME, ("shape", "grows with its input"),
            ("n_runs", "runs", count), ("n_target_runs", "of them there", count), title="Tasks",
            words=f"{sure} of the runs are expected between from and to.",
        ),
    )  # fmt: skip
    certainty = f"{sure} intervals, from {estimate.calibration.rests_on}."
    title = f"Runtimes on {estimate.target}"
    return Result(title, "; ".join(sentences) + ".", certainty, reasons, tables, (), estimate.rests_on, again)


def transfer_figures(runs: TransferredRuns, confidence: float, deadline_s: float | None) -> dict[str, Any]:
    """The answer as whole keys and numbers, for machines. Quantiles are of a run on the target, in seconds."""
    at = (0.05, 0.25, 0.5, 0.75, 0.95)
    figures: dict[str, Any] = {
        **{key: getattr(runs, key) for key in ("job", "source", "target", "low_s", "high_s", "rests_on")},
        "median_s": float(np.median(runs.draws)),
        "quantiles_s": {str(level): float(value) for level, value in zip(at, np.quantile(runs.draws, at), strict=True)},
        "confidence": confidence,
        "stages": records(runs.stages),
    }
    if deadline_s is not None:
        chance, low, high = runs.late_ratio(deadline_s)
        figures |= {"deadline_s": deadline_s, "late_ratio": chance, "late_ratio_low": low, "late_ratio_high": high}
    return figures


def transfer_result(runs: TransferredRuns, confidence: float, deadline_s: float | None, again: str) -> Result:
    """The runtimes of a recurring job on another machine type, and the chance of being late."""
    median = duration(float(np.median(runs.draws)))
    answer = f"{runs.job} takes {median} on {runs.target} in half of its runs"
    if deadline_s is not None:
        chance, low, high = runs.late_ratio(deadline_s)
        answer += f", and longer than {duration(deadline_s)} in {share(chance)} ({share(low)} to {share(high)})"
    certainty = f"{share(confidence)} of its runs are expected from {duration(runs.low_s)} to {duration(runs.high_s)}."
    reasons = (
        f"CPU seconds for each token come from its runs on {runs.source}, what slows them down from other jobs on "
        f"{runs.target}.",
    )
    stages = table(
        records(runs.stages), ("stage", "stage"), ("median_s", "median", duration), *RUNTIME[1:],
        ("n_runs", "runs", count), title="Stages", words=f"A vertex of each stage on {runs.target}.",
    )  # fmt: skip
    drawn = (_runtime_figure(runs, deadline_s),)
    title = f"{runs.job} on {runs.target}"
    return Result(title, f"{answer}.", certainty, reasons, (stages,), drawn, runs.rests_on, again)


def _runtime_figure(runs: TransferredRuns, deadline_s: float | None) -> Figure:
    values = np.sort(runs.draws)
    rows = charts.sampled(
        pd.DataFrame({"runtime_s": values, "share": np.arange(1, len(values) + 1) / len(values)}), MOST_STEPS
    )
    rules = {"interval from": runs.low_s, "median": float(np.median(values)), "to": runs.high_s}
    if deadline_s is not None:
        rules["deadline"] = deadline_s
    axes = Axis("runtime_s", f"runtime on {runs.target}", "seconds"), Axis("share", "share of runs", "share")
    words = "Share of runs that take at most so long, with the median, the interval and the deadline."
    return plot("runtimes", "Runtimes", words, f"n = {len(runs.draws):,} draws", charts.lines, rows, *axes,
                rules=rules, steps=True)  # fmt: skip
