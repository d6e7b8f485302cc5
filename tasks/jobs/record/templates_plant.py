"""Templates over sensor readings: time buckets, gaps, as-of joins, quantiles and exports."""

from tasks.jobs.record.templates import (
    Choice,
    Span,
    Template,
)

QUALITY = Choice(("ok", "warn", "bad"))

PLANT = (
    Template(
        "hourly_means",
        "readings",
        4,
        """SELECT device_id % {groups} AS line, date_trunc('hour', ts) AS hour, sum(temperature) AS temperature,
        count(*) AS n, min(pressure) AS low, max(pressure) AS high FROM {input} GROUP BY ALL""",
        {"groups": Span(20, 60)},
        merge="""SELECT line, hour, sum(temperature) / sum(n) AS temperature, min(low) AS low, max(high) AS high
        FROM {partials} GROUP BY ALL ORDER BY ALL""",
    ),
    Template(
        "gaps",
        "readings",
        2,
        """SELECT device_id, count(*) AS gaps, max(silence_s) AS longest_s FROM (
            SELECT device_id, date_diff('second', lag(ts) OVER (PARTITION BY device_id ORDER BY ts), ts) AS silence_s
            FROM {input})
        WHERE silence_s > {limit} GROUP BY device_id""",
        {"limit": Span(60, 900)},
        memory_mb=(512, 64),
        merge="""SELECT device_id, sum(gaps) AS gaps, max(longest_s) AS longest_s FROM {partials} GROUP BY device_id
        ORDER BY longest_s DESC, device_id LIMIT 100""",
        is_exact=False,
    ),
    Template(
        "calibrated",
        "readings",
        2,
        """SELECT d.site, sum(r.temperature + d.offset_c) AS temperature, count(*) AS n FROM {input} AS r
        ASOF JOIN dims.devices AS d ON r.device_id = d.device_id AND r.ts >= d.calibrated_at
        WHERE r.quality <> '{quality}' GROUP BY d.site""",
        {"quality": QUALITY},
        databases=("dims",),
        merge="""SELECT site, sum(temperature) / sum(n) AS temperature, sum(n) AS n FROM {partials}
        GROUP BY site ORDER BY site""",
    ),
    Template(
        "device_quantiles",
        "readings",
        2,
        "SELECT device_id, round(temperature, 1) AS temperature, count(*) AS n FROM {input} GROUP BY ALL",
        {"percent": Span(90, 99)},
        memory_mb=(512, 64),
        merge="""SELECT device_id, min(temperature) FILTER (WHERE so_far >= n * 0.05) AS low,
        min(temperature) FILTER (WHERE so_far >= n * 0.5) AS middle,
        min(temperature) FILTER (WHERE so_far >= n * {percent} / 100.0) AS high FROM (
            SELECT device_id, temperature, sum(n) OVER (PARTITION BY device_id ORDER BY temperature) AS so_far,
            sum(n) OVER (PARTITION BY device_id) AS n FROM {partials})
        GROUP BY device_id ORDER BY device_id""",
    ),
    Template(
        "spikes",
        "readings",
        1,
        """SELECT device_id, ts, temperature FROM {input}
        WINDOW near AS (PARTITION BY device_id ORDER BY ts ROWS BETWEEN 30 PRECEDING AND CURRENT ROW)
        QUALIFY abs(temperature - avg(temperature) OVER near) > {tenths} / 10.0 * stddev_samp(temperature) OVER near
        ORDER BY temperature DESC LIMIT 200""",
        {"tenths": Span(13, 18)},
        memory_mb=(512, 64),
        merge="SELECT * FROM {partials} ORDER BY temperature DESC, device_id, ts LIMIT 200",
        is_exact=False,
    ),
    Template(
        "csv_export",
        "readings",
        1,
        """COPY (SELECT device_id, strftime(ts, '%Y-%m-%d %H:%M:%S') AS at, temperature, pressure FROM {input}
        WHERE quality <> '{quality}') TO '{out}' (FORMAT csv)""",
        {"quality": QUALITY},
    ),
    Template(
        "site_health",
        "readings",
        4,
        """SELECT d.site, r.quality, count(*) AS n, min(r.battery_v) AS battery FROM {input} AS r
        JOIN dims.devices AS d USING (device_id) WHERE r.battery_v < {tenths} / 10.0 GROUP BY ALL""",
        {"tenths": Span(34, 43)},
        source="table",
        databases=("plant", "dims"),
        merge="""SELECT site, quality, sum(n) AS n, min(battery) AS battery FROM {partials}
        GROUP BY GROUPING SETS ((site, quality), (site), ()) ORDER BY ALL""",
    ),
    Template(
        "load_readings",
        "readings",
        2,
        """CREATE OR REPLACE TABLE plant.recent AS SELECT *, rank() OVER (PARTITION BY device_id ORDER BY ts) AS number
        FROM {input} WHERE quality <> '{quality}'""",
        {"quality": Choice(("ok", "warn"))},
        writes="plant",
    ),
    Template(
        "load_minutes",
        "readings",
        4,
        """CREATE OR REPLACE TABLE plant.minutes AS SELECT device_id, date_trunc('minute', ts) AS minute,
        avg(temperature) AS temperature, any_value(quality) AS quality FROM {input} WHERE device_id >= {device}
        GROUP BY ALL""",
        {"device": Span(100, 2000)},
        writes="plant",
    ),
    Template(
        "weather_drift",
        "readings",
        4,
        """SELECT date_trunc('hour', ts) AS hour, corr(temperature, pressure) AS r, regr_slope(temperature, battery_v)
        AS slope, count(*) AS n FROM {input} WHERE pressure > {pressure} GROUP BY ALL""",
        {"pressure": Span(980, 1010)},
        merge="""SELECT hour, sum(r * n) / sum(n) AS r, sum(slope * n) / sum(n) AS slope FROM {partials}
        GROUP BY hour ORDER BY hour""",
        is_exact=False,
    ),
)
