"""Templates over sensor readings: what the people who keep the devices running ask."""

from tasks.jobs.record.templates import (
    Choice,
    Span,
    Template,
)

MAINTENANCE = (
    Template(
        "silent_devices",
        "readings",
        7,
        "SELECT DISTINCT device_id FROM {input} WHERE quality = '{quality}'",
        {"quality": Choice(("ok", "warn"))},
        databases=("dims",),
        merge="""SELECT d.site, count(*) AS silent FROM dims.devices AS d ANTI JOIN {partials} AS s USING (device_id)
        GROUP BY d.site ORDER BY silent DESC, d.site""",
    ),
    Template(
        "weak_batteries",
        "readings",
        5,
        """SELECT device_id, min(battery_v) AS battery_v, max(ts) AS seen FROM {input}
        WHERE battery_v < 3.3 + {cents} / 100.0 GROUP BY device_id""",
        {"cents": Span(10, 60)},
        databases=("dims",),
        merge="""SELECT d.site, d.device_id, min(p.battery_v) AS battery_v, max(p.seen) AS seen FROM dims.devices AS d
        LEFT JOIN {partials} AS p USING (device_id) GROUP BY ALL
        ORDER BY battery_v NULLS LAST, d.device_id LIMIT 500""",
    ),
    Template(
        "site_ranks",
        "readings",
        4,
        """SELECT device_id, sum(temperature) AS temperature, count(*) AS n FROM {input}
        WHERE pressure BETWEEN 980 AND {pressure} GROUP BY device_id""",
        {"pressure": Span(990, 1030)},
        databases=("dims",),
        merge="""SELECT d.site, p.device_id, p.mean, rank() OVER (PARTITION BY d.site ORDER BY p.mean DESC) AS place
        FROM (
            SELECT device_id, round(sum(temperature) / sum(n), 6) AS mean FROM {partials} GROUP BY device_id) AS p
        JOIN dims.devices AS d USING (device_id) ORDER BY d.site, place, p.device_id""",
    ),
    Template(
        "pressure_bands",
        "readings",
        3,
        """SELECT b.band, r.quality, count(*) AS n, avg(r.temperature) AS temperature FROM {input} AS r
        JOIN (SELECT i AS band, 975 + i * {width} AS low FROM range(4) AS t(i)) AS b
        ON r.pressure >= b.low AND r.pressure < b.low + {width} GROUP BY ALL""",
        {"width": Span(5, 14)},
        merge="""SELECT band, quality, sum(n) AS n, sum(temperature * n) / sum(n) AS temperature FROM {partials}
        GROUP BY ALL ORDER BY ALL""",
    ),
    Template(
        "quality_matrix",
        "readings",
        6,
        """SELECT device_id // 200 AS line, quality, count(*) AS n, max(temperature) AS top FROM {input}
        WHERE temperature > {degrees} GROUP BY ALL""",
        {"degrees": Span(15, 22)},
        merge="""PIVOT {partials} ON quality IN ('ok', 'warn', 'bad') USING sum(n) AS n, max(top) AS top
        GROUP BY line ORDER BY line""",
    ),
    Template(
        "first_and_last",
        "readings",
        3,
        """SELECT device_id, arg_min(temperature, struct_pack(ts := ts, t := temperature)) AS opening,
        arg_max(temperature, struct_pack(ts := ts, t := temperature)) AS closing, min(ts) AS first, max(ts) AS latest
        FROM {input} WHERE quality <> '{quality}' GROUP BY device_id""",
        {"quality": Choice(("ok", "warn", "bad"))},
        merge="""SELECT DISTINCT device_id,
        first_value(opening) OVER (PARTITION BY device_id ORDER BY first, opening) AS opening,
        first_value(closing) OVER (PARTITION BY device_id ORDER BY latest DESC, closing DESC) AS closing
        FROM {partials} ORDER BY device_id""",
    ),
    Template(
        "hour_to_hour",
        "readings",
        4,
        """SELECT device_id % {lines} AS line, date_trunc('hour', ts) AS hour, sum(temperature) AS temperature,
        count(*) AS n FROM {input} GROUP BY ALL""",
        {"lines": Span(10, 80)},
        source="table",
        databases=("plant",),
        merge="""SELECT line, hour, mean, mean - lag(mean) OVER (PARTITION BY line ORDER BY hour) AS change FROM (
            SELECT line, hour, sum(temperature) / sum(n) AS mean FROM {partials} GROUP BY ALL) ORDER BY ALL""",
    ),
    Template(
        "worst_readings",
        "readings",
        5,
        """SELECT device_id, ts, temperature, pressure, battery_v FROM {input} WHERE quality = 'bad'
        ORDER BY battery_v, temperature DESC, device_id, ts, pressure LIMIT {k}""",
        {"k": Span(50, 1000)},
        databases=("dims",),
        merge="""SELECT d.site, p.* FROM (
            FROM {partials} ORDER BY battery_v, temperature DESC, device_id, ts, pressure LIMIT {k}) AS p
        LEFT JOIN dims.devices AS d USING (device_id) ORDER BY ALL""",
    ),
    Template(
        "battery_histogram",
        "readings",
        6,
        """SELECT CAST(battery_v * 100 AS INTEGER) // {width} AS bucket, count(*) AS n, min(ts) AS first FROM {input}
        GROUP BY bucket""",
        {"width": Span(1, 8)},
        source="table",
        databases=("plant",),
        merge="""SELECT bucket, n, sum(n) OVER (ORDER BY bucket) / sum(n) OVER () AS share, first FROM (
            SELECT bucket, sum(n) AS n, min(first) AS first FROM {partials} GROUP BY bucket) ORDER BY bucket""",
    ),
    Template(
        "partitioned_export",
        "readings",
        1,
        """COPY (SELECT r.*, d.site FROM {input} AS r LEFT JOIN dims.devices AS d USING (device_id)
        WHERE r.temperature > {degrees}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)""",
        {"degrees": Span(15, 20)},
        databases=("dims",),
    ),
)
