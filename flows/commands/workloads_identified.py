"""What `whorl workloads identify` shows of its answer."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flows.shown import clean, text
from flows.tables import Column, show_facts, show_table
from tasks.quantities import number, share, times

if TYPE_CHECKING:
    from tasks.warehouse.registry import ModelCard
    from tasks.workloads.identify.model import Model
    from tasks.workloads.identifying import Identified
    from tasks.workloads.telemetry import Telemetry

UNKNOWN = "unknown"
MANY = (
    Column("run_id", "run", kind="key"),
    Column("workload", "what", lambda workload: workload or UNKNOWN, kind="name"),
    Column("confidence", "sure", share, kind="number"),
    Column("nearest", "nearest", lambda nearest: _near(nearest[0])),
    Column("label", "label", text, kind="name", is_extra=True),
)


def as_records(
    found: "Identified",
    runs: "Sequence[Telemetry]",
    models: "Sequence[tuple[ModelCard, Model]]",
    public: Sequence[str] | None,
) -> list[dict[str, Any]]:
    """One record a run, in their order. public: workloads that may stand for it; given, all are listed with distances.

    Raises NotFound for a public workload that the model does not know."""
    by_id, by_model = {run.run_id: run for run in runs}, {card.model_id: model for card, model in models}
    records = []
    for model_id, one in found.found:
        record: dict[str, Any] = {
            "run_id": one.run_id,
            "label": by_id[one.run_id].workload,
            "workload": one.workload if one.is_known else None,
            "is_known": one.is_known,
            "confidence": one.confidence,
            "unknown_score": one.unknown_score,
            "nearest": [{"workload": name, "distance": far, "run_id": run_id} for name, far, run_id in one.nearest],
            "reasons": list(one.reasons),
            "proxy": one.proxy,
            "probabilities": one.probabilities,
            "missing": list(one.missing),
            "model_id": model_id,
        }
        if public:
            from tasks.workloads.identify.proxies import find_proxies

            record["proxies"] = find_proxies(by_id[one.run_id], by_model[model_id], public)
        records.append(record)
    return records


def show_found(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one run with its reasons, or a table of several."""
    if len(rows) != 1:
        show_table([dict(row) for row in rows], MANY)
        return
    [row] = rows
    show_facts(_facts(row))
    if row["reasons"]:
        print()
        for reason in row["reasons"]:
            print(f"- {clean(reason)}")


def _facts(row: Mapping[str, Any]) -> dict[str, str]:
    facts = {
        "run": row["run_id"],
        "workload": row["workload"] or UNKNOWN,
        "sure": share(row["confidence"]),
        "nearest": ", ".join(_near(near) for near in row["nearest"]),
    }
    if row["label"]:
        facts["label"] = row["label"]
    if row["proxy"]:
        facts["may stand for it"] = row["proxy"]
    if row.get("proxies"):
        facts["public workloads"] = ", ".join(f"{one.workload} {number(one.distance)} ×" for one in row["proxies"])
    if row["missing"]:
        facts["counters it lacks"] = ", ".join(row["missing"])
    return facts | {"model": row["model_id"]}


def _near(near: Mapping[str, Any]) -> str:
    """A known workload, and how far in multiples of what is usual between its own runs."""
    return f"{near['workload']} at {times(near['distance'])} the usual distance"
