"""What `whorl workloads identify` shows of its answer."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flows.shown import clean, text
from flows.tables import Column, show_facts, show_table
from tasks.quantities import number, share
from tasks.workloads.choices import said

if TYPE_CHECKING:
    from tasks.workloads.identifying import Identified
    from tasks.workloads.telemetry import Telemetry

MANY = (
    Column("run_id", "run", kind="key"),
    Column("said", "what", kind="name"),
    Column("confidence", "sure", share, kind="number"),
    Column("view", "by the counters of", kind="name"),
    Column("nearest", "nearest", lambda nearest: nearest[0]["workload"], kind="name"),
    Column("label", "label", text, kind="name", is_extra=True),
)
N_NEAREST = 3
VIEWS = {"own": "its own group", "machine": "the machine"}


def as_records(found: "Identified", runs: "Sequence[Telemetry]", public: Sequence[str] | None) -> list[dict[str, Any]]:
    """One record a run, in their order. public: workloads that may stand for it; given, those among the nearest.

    Raises NotFound for a public workload that the model does not know."""
    by_id = {run.run_id: run for run in runs}
    records = []
    for one in found.found:
        nearest = [near._asdict() for near in one.nearest]
        record: dict[str, Any] = {
            "run_id": one.run_id,
            "label": by_id[one.run_id].workload,
            "statement": one.statement,
            "workload": one.workload,
            "is_known": one.is_known,
            "confidence": one.confidence,
            "unknown_score": one.unknown_score,
            "present": [part._asdict() for part in one.present],
            "nearest": nearest[:N_NEAREST],
            "reasons": list(one.reasons),
            "proxy": one.proxy,
            "view": one.view,
            "foreign_share": one.foreign_share,
            "stolen_share": one.stolen_share,
            "surer": list(one.surer),
            "missing": list(one.missing),
            "model_id": found.model_id,
        }
        if public:
            unknown = sorted(set(public) - {near["workload"] for near in nearest})
            if unknown:
                from tasks.errors import NotFound

                known = ", ".join(sorted(near["workload"] for near in nearest))
                raise NotFound(f"workload {', '.join(unknown)}: not in the model; it knows {known}")
            record["proxies"] = [near for near in nearest if near["workload"] in public]
        records.append(record)
    return records


def show_found(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one run with its reasons, or a table of several."""
    if len(rows) != 1:
        shown = [{**row, "said": said(row), "view": VIEWS[row["view"]]} for row in rows]
        show_table(shown, MANY)
        return
    [row] = rows
    show_facts(_facts(row))
    if row["reasons"]:
        print()
        for reason in row["reasons"]:
            print(f"- {clean(reason)}")


def _facts(row: Mapping[str, Any]) -> dict[str, str]:
    """Each percentage belongs to what stands beside it."""
    facts = {"run": row["run_id"], "workload": f"{said(row)} ({share(row['confidence'])} sure)"}
    if len(row["present"]) > 1:
        facts["at once"] = ", ".join(
            f"{part['workload']} {share(part['share'])} of the known part ({share(part['probability'])} sure)"
            for part in row["present"]
        )
    if row["statement"] == "known and something unknown":
        facts["something unknown besides"] = f"{share(row['unknown_score'])} sure"
    facts["by the counters of"] = VIEWS[row["view"]]
    facts["nearest"] = ", ".join(_near(near) for near in row["nearest"])
    if row["label"]:
        facts["label"] = row["label"]
    if row["proxy"]:
        facts["may stand for it"] = row["proxy"]
    if row.get("proxies"):
        facts["public workloads"] = ", ".join(_near(near) for near in row["proxies"])
    for key, words in (("foreign_share", "others took"), ("stolen_share", "the hypervisor took")):
        if row[key] is not None:
            facts[words] = f"{share(row[key])} of the machine"
    if row["surer"]:
        facts["what would make it surer"] = "; ".join(row["surer"])
    if row["missing"]:
        facts["counters it lacks"] = ", ".join(row["missing"])
    return facts | {"model": row["model_id"]}


def _near(near: Mapping[str, Any]) -> str:
    """A known workload, and how far: mean squared deviation from it, 1 being what its own runs differ by."""
    return f"{near['workload']} at distance {number(near['distance'])}"
