"""What is known of a home as metrics in Prometheus' format: nodes, workloads, jobs, alarms, freshness of sources."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse

MOST_JOBS = 50  # with a series of their own, the likeliest to be late; more would burden a server of metrics
NODE_STATES = ("healthy", "cleared", "suspected", "confirmed")
SCORES = "SELECT source, node, aspect, score FROM nodes.scores ORDER BY ALL"
STATES = "SELECT source, node, aspect, state FROM nodes.states ORDER BY ALL"
UNKNOWN = """
WITH latest AS (
    SELECT source, is_known FROM workloads.identifications
    QUALIFY row_number() OVER (PARTITION BY source, run_id ORDER BY identified_at DESC, model_id DESC) = 1
)
SELECT source, avg((NOT is_known)::INT) FROM latest GROUP BY source ORDER BY source
"""
RISKS = """
SELECT source, group_key, exceeds_2x_share, p95_s FROM jobs.predictions WHERE exceeds_2x_share IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY source ORDER BY exceeds_2x_share DESC, group_key) <= $most ORDER BY ALL
"""
READ = "SELECT word, source, epoch(max(landed_at)) FROM ops.files WHERE landed_at IS NOT NULL GROUP BY ALL ORDER BY ALL"
ALARMS = "SELECT word, source, kind, count(*) FROM ops.alarms GROUP BY ALL ORDER BY ALL"


def metrics_text(warehouse: Warehouse) -> bytes:
    """All metrics of a home; only `whorl_up` where it has no warehouse yet. Raises WarehouseBusy."""
    registry = CollectorRegistry()
    Gauge("whorl_up", "Whether this home has a warehouse", registry=registry).set(int(warehouse.file.exists()))
    if not warehouse.file.exists():
        return bytes(generate_latest(registry))
    of_node = ("source", "node", "aspect")
    score = Gauge("whorl_node_score", "Score of a node, 1: as the reference", of_node, registry=registry)
    state = Gauge("whorl_node_state", "0 healthy, 1 cleared, 2 suspected, 3 confirmed", of_node, registry=registry)
    unknown = Gauge("whorl_workloads_unknown_ratio", "Share of runs called unknown", ("source",), registry=registry)
    chance = Gauge(
        "whorl_job_twice_usual_ratio",
        "Chance that the next run takes twice the usual",
        ("source", "job"),
        registry=registry,
    )
    limit = Gauge("whorl_job_p95_seconds", "What 95 % of next runs stay under", ("source", "job"), registry=registry)
    age = Gauge("whorl_data_age_seconds", "Since a file was last read", ("word", "source"), registry=registry)
    alarms = Counter("whorl_alarms", "Alarms raised so far", ("word", "source", "kind"), registry=registry)
    with reading(warehouse) as connection:
        for *labels, value in connection.execute(SCORES).fetchall():
            score.labels(*labels).set(value)
        for *labels, name in connection.execute(STATES).fetchall():
            state.labels(*labels).set(NODE_STATES.index(name))
        for source, value in connection.execute(UNKNOWN).fetchall():
            unknown.labels(source).set(value)
        for source, job, value, p95_s in connection.execute(RISKS, {"most": MOST_JOBS}).fetchall():
            chance.labels(source, job).set(value)
            limit.labels(source, job).set(p95_s)
        for word, source, read_at in connection.execute(READ).fetchall():
            age.labels(word, source).set(max(0.0, time.time() - read_at))
        for *labels, n in connection.execute(ALARMS).fetchall():
            alarms.labels(*labels).inc(n)
    return bytes(generate_latest(registry))
