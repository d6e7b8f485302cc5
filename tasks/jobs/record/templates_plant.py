"""Templates over sensor readings: time buckets, gaps, as-of joins, quantiles and exports."""

from tasks.jobs.record.template import Choice, Span, Template

QUALITY = Choice(("ok", "warn", "bad"))

PLANT = (
    Template(
        "hourly_means",
        "readings",
        5,
        """SELECT device_id % {groups} AS line, date_trunc('hour', ts) AS hour, avg(temperature) AS temperature,
        min(pressure) AS low, max(pressure) AS high FROM {input} GROUP BY ALL ORDER BY ALL""",
        {"groups": Span(20, 60)},
    ),
    Template(
        "gaps",
        "readings",
        3,
        """SELECT device_id, count(*) AS gaps, max(silence) AS longest FROM (
            SELECT device_id, ts - lag(ts) OVER (PARTITION BY device_id ORDER BY ts) AS silence FROM {input})
        WHERE silence > INTERVAL {limit} SECOND GROUP BY device_id ORDER BY longest DESC LIMIT 100""",
        {"limit": Span(60, 900)},
        memory_mb=(512, 160),
    ),
    Template(
        "calibrated",
        "readings",
        4,
        """SELECT d.site, avg(r.temperature + d.offset_c) AS temperature, count(*) AS n FROM {input} AS r
        ASOF JOIN dims.devices AS d ON r.device_id = d.device_id AND r.ts >= d.calibrated_at
        WHERE r.quality <> '{quality}' GROUP BY d.site ORDER BY d.site""",
        {"quality": QUALITY},
        databases=("dims",),
    ),
    Template(
        "device_quantiles",
        "readings",
        4,
        """SELECT device_id, quantile_cont(temperature, [0.05, 0.5, {percent} / 100.0]) AS low_middle_high
        FROM {input} GROUP BY device_id ORDER BY device_id""",
        {"percent": Span(90, 99)},
        memory_mb=(512, 160),
    ),
    Template(
        "spikes",
        "readings",
        3,
        """SELECT device_id, ts, temperature FROM {input}
        WINDOW near AS (PARTITION BY device_id ORDER BY ts ROWS BETWEEN 30 PRECEDING AND CURRENT ROW)
        QUALIFY abs(temperature - avg(temperature) OVER near) > {tenths} / 10.0 * stddev_samp(temperature) OVER near
        ORDER BY temperature DESC LIMIT 200""",
        {"tenths": Span(20, 40)},
        memory_mb=(512, 160),
    ),
    Template(
        "csv_export",
        "readings",
        2,
        """COPY (SELECT device_id, strftime(ts, '%Y-%m-%d %H:%M:%S') AS at, temperature, pressure FROM {input}
        WHERE quality <> '{quality}') TO '{out}' (FORMAT csv)""",
        {"quality": QUALITY},
    ),
    Template(
        "site_health",
        "readings",
        6,
        """SELECT d.site, r.quality, count(*) AS n, min(r.battery_v) AS battery FROM {input} AS r
        JOIN dims.devices AS d USING (device_id) WHERE r.battery_v < {tenths} / 10.0 GROUP BY ALL ORDER BY ALL""",
        {"tenths": Span(34, 43)},
        source="table",
        databases=("plant", "dims"),
    ),
    Template(
        "load_readings",
        "readings",
        14,
        """CREATE OR REPLACE TABLE plant.recent AS SELECT * FROM {input} WHERE quality <> '{quality}'
        ORDER BY device_id, ts""",
        {"quality": Choice(("bad", "warn"))},
        writes="plant",
    ),
)
