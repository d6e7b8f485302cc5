"""What the artifact of `jobs-explain` says, as markdown."""

from collections.abc import Sequence

import pandas as pd

from flows.publish import table
from flows.shown import counted
from tasks.markdown import plain
from tasks.quantities import duration, ratio, share

MAX_RUNS = 30
NONE = "nothing that was known at submission"
NOT_CAUSES = "These are reasons of the model's predictions, which need not be causes of the runtimes."


def reasons_page(
    source: str, reasons: pd.DataFrame, families: pd.DataFrame, checks: pd.DataFrame, insights: pd.DataFrame
) -> str:
    """Rows of jobs.reasons, jobs.cause_families, jobs.cause_checks and jobs.insights of one source, in words."""
    parts = [
        f"# Why runs of source {plain(source)} take long",
        NOT_CAUSES,
        _past(reasons),
        _next(reasons),
        _families(families),
        _checks(checks),
        _insights(insights),
    ]
    return "\n\n".join(part for part in parts if part)


def _past(reasons: pd.DataFrame) -> str:
    """The longest runs, each with the largest reason to be long; some have none that was known at submission."""
    rows = []
    of_runtime = reasons[(reasons["question"] == "runtime") & reasons["run_id"].notna()]
    by_run = of_runtime.assign(times=of_runtime["runtime_s"] / of_runtime["usual_s"])
    for _, mine in by_run.sort_values(["times", "run_id", "rank"], ascending=[False, True, True]).groupby(
        ["times", "run_id"], sort=False
    ):
        first = mine.iloc[0]
        longer = mine[mine["factor"] > 1]["words"]
        times_s = (duration(first[name]) for name in ("runtime_s", "usual_s", "expected_s"))
        rows.append((f"{first['group_key']}: run {first['run_id']}", *times_s, next(iter(longer), NONE)))
    head = ("run", "took", "usual", "expected", "first reason to be longer")
    return _section("Longest runs of the last days", head, rows)


def _next(reasons: pd.DataFrame) -> str:
    """The next runs of the riskiest jobs, each with the first reason of its job to vary."""
    first = reasons[reasons["run_id"].isna() & (reasons["question"] == "variation") & (reasons["rank"] == 1)]
    rows = [
        (row["group_key"], duration(row["usual_s"]), duration(row["expected_s"]), row["words"])
        for row in first.to_dict("records")
    ]
    return _section("Next runs of the riskiest jobs", ("job", "usual", "expected", "first reason to vary"), rows)


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    more = f"\n\n{counted(len(rows) - MAX_RUNS, 'more run')} in jobs.reasons." if len(rows) > MAX_RUNS else ""
    return f"## {title}\n\n{table(head, rows[:MAX_RUNS])}{more}"


def _families(families: pd.DataFrame) -> str:
    of_runtime = families[families["question"] == "runtime"].sort_values("rank")
    if of_runtime.empty:
        return ""
    rows = [
        (row["family"], share(row["share"]), f"{ratio(row['typical_factor'])} ×", share(row["first_share"]))
        for row in of_runtime.to_dict("records")
    ]
    head = ("reason", "share", "on average", "first reason of long runs")
    n_runs, n_long = int(of_runtime["n_runs"].max()), int(of_runtime["n_long"].max())
    return (
        f"## What makes runs long or short\n\n{counted(n_runs, 'held-out run')}, {n_long:,} of them at least twice "
        f"as long as usual.\n\n{table(head, rows)}"
    )


def _checks(checks: pd.DataFrame) -> str:
    of_all = checks[checks["cause"] == "all"]
    if of_all.empty:
        return ""
    rows = [(row["order_name"], ratio(row["mrr"])) for row in of_all.sort_values("mrr").to_dict("records")]
    n = int(of_all["n"].iloc[0])
    return (
        f"## The recorded cause among the reasons\n\nMean reciprocal rank over {counted(n, 'held-out run')}, 1 if it "
        f"is always the first, beside orders that look at no run.\n\n{table(('order', 'MRR'), rows)}"
    )


def _insights(insights: pd.DataFrame) -> str:
    if insights.empty:
        return ""
    rows = [
        (row["words"], row["kind"], row["verdict"], ratio(row["rho"]), ratio(row["measured_rho"]))
        for row in insights.sort_values(["kind", "rank"], ascending=[False, True]).to_dict("records")
    ]
    return "## The paper's insights\n\n" + table(("insight", "shapes", "verdict", "rho", "measured rho"), rows)
